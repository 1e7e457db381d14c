// A text in which each character can be chosen by a click or by the arrow keys. For a screen
// reader it is a list of options.

import { UNIT } from "content";
import { element } from "elements";
import { inText, spoken } from "tokens";

export class Characters {
  /** choose(position) is called as the reader does so; end: what stands behind the last
   * character and can be chosen, too. */
  constructor(box, choose, end) {
    Object.assign(this, { box, choose, spans: [], word: null, chosen: 0 });
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-orientation", "horizontal");
    this.end = this.option(end, `the ${UNIT} to come`);
    this.clear();
    const position = (event) => this.spans.indexOf(event.target.closest("[role=option]"));
    const at = (event) => (event.target === this.end ? this.spans.length : position(event));
    box.addEventListener("click", (event) => at(event) >= 0 && choose(at(event)));
    box.addEventListener("keydown", (event) => this.onKey(event));
  }

  clear() {
    this.spans = [];
    this.word = null;
    this.box.replaceChildren(this.end);
  }

  option(text, label) {
    return element("span", { textContent: text, tabIndex: -1, role: "option",
      "aria-selected": false, "aria-label": label });
  }

  /** One more token; a line break is shown and done. */
  push(token) {
    const span = this.option(inText(token), spoken(token));
    if (!this.word || /^\s+\S/.test(token)) this.newWord();
    this.word.append(span);
    this.spans.push(span);
    this.settle();
    if (/\s$/.test(token)) this.word = null; // a word keeps the space behind it
    if (token.includes("\n")) this.end.before(token.replace(/[^\n]/g, ""));
  }

  /** Put what grows where it belongs anew, so that for the browser nothing has jumped; but
   * what has the focus would lose it. */
  settle() {
    if (this.box.contains(document.activeElement)) return;
    this.box.append(this.word, this.end);
  }

  newWord() {
    this.word = element("span", { className: "word", role: "none" });
    this.end.before(this.word);
  }

  /** Shade a character from 0 to 1, and say why. */
  shade(position, depth, label) {
    const span = this.spans[position];
    span.style.setProperty("--depth", depth.toFixed(2));
    span.setAttribute("aria-label", label);
    span.title = label;
  }

  /** Mark what is chosen; it alone is reached with the Tab key. */
  select(position) {
    const span = this.spans[position] ?? this.end;
    this.chosen = position;
    if (this.selected === span) return;
    this.selected?.setAttribute("aria-selected", false);
    if (this.selected) this.selected.tabIndex = -1;
    this.selected = span;
    span.tabIndex = 0;
    span.setAttribute("aria-selected", true);
    if (span === this.end) return; // whoever follows the writing scrolls
    const { top, bottom } = span.getBoundingClientRect();
    const box = this.box.getBoundingClientRect(), over = Math.max(0, bottom - box.bottom);
    this.box.scrollTop += over || Math.min(0, top - box.top);
  }

  onKey(event) {
    const here = this.chosen, last = this.spans.length;
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last }[event.key]
      ?? { ArrowUp: this.beside(-1), ArrowDown: this.beside(1) }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(to, 0), last));
    this.selected.focus();
  }

  /** The position in the line above (−1) or below (1) that is nearest to the chosen one. */
  beside(direction) {
    const all = [...this.spans, this.end];
    const middle = (span) => {
      const box = span.getBoundingClientRect();
      return { x: box.left + box.width / 2, y: box.top + box.height / 2, h: box.height };
    };
    const from = middle(all[this.chosen]);
    let best = this.chosen, line = null, nearest = Infinity;
    for (let i = this.chosen + direction; i >= 0 && i < all.length; i += direction) {
      const at = middle(all[i]);
      if (Math.abs(at.y - from.y) < from.h / 2) continue; // still the same line
      line ??= at.y;
      if (Math.abs(at.y - line) > from.h / 2) break; // already the line after
      if (Math.abs(at.x - from.x) >= nearest) continue;
      [best, nearest] = [i, Math.abs(at.x - from.x)];
    }
    return best;
  }
}
