// What one sees of a side: its name, the stages of its training, its text, and how much the text
// surprised the model.
import { Characters } from "characters";
import { content } from "content";
import { $, element, number } from "elements";
import { Film } from "film";
import { active, choose, onChange, positionOf, sides } from "state";
import { charactersIn, spoken, texts } from "tokens";
import { word } from "words";

class SideView {
  constructor(side, model) {
    const { name, snapshots } = model;
    this.side = side;
    this.text = element("div", { className: "text", lang: "", translate: false,
      "aria-label": name ? `the text of ${name}` : "the text" });
    this.list = new Characters(this.text, (position) => choose(side, position), "▮");
    this.figures = element("span");
    this.means = element("p", { className: "means" }, "Surprise in ", word("nats"), this.figures);
    if (snapshots.length > 1) this.film = new Film(side, model);
    this.box = element("article", { className: "side" },
      ...(sides.length > 1 ? [element("h3", { textContent: name })] : []),
      ...(this.film ? [this.film.box] : []), this.text, this.means);
  }

  /** Add what has come since; of a new text, all. */
  show() {
    const { side, list } = this, { ids, given, reading, chosen } = side;
    if (this.ids !== ids) {
      list.clear();
      this.ids = ids;
    }
    if (this.reading !== reading) [this.reading, this.shaded] = [reading, 0];
    while (list.spans.length < ids.length) {
      list.push(texts[ids[list.spans.length]]);
      list.spans.at(-1).classList.toggle("given", list.spans.length <= given);
    }
    for (; this.shaded < reading.nats.length; this.shaded++) this.shade(this.shaded);
    this.mark();
    if (side.writing && chosen === null) this.text.scrollTop = this.text.scrollHeight;
    this.box.classList.toggle("active", side === active && sides.length > 1);
    this.film?.show();
    this.tellMeans(reading, given);
  }

  /** Mark the chosen character; while the model writes, the one that the rest of the page shows,
   * which is drawn less often than the text. */
  mark() {
    const { side, list } = this, follows = side.writing && side.chosen === null;
    list.select(follows ? this.described ?? positionOf(side) : positionOf(side));
  }

  /** What the model no longer sees is paler. */
  fade(start) {
    const { spans } = this.list, was = this.faded?.ids === this.ids ? this.faded.start : 0;
    for (let i = Math.min(was, start); i < Math.max(was, start); i++) {
      spans[i]?.classList.toggle("beyond", i < start);
    }
    this.faded = { ids: this.ids, start };
  }

  /** −ln p on average, of the reader's part and of the model's. */
  tellMeans(reading, given) {
    const parts = [], ids = reading.side.ids.slice(1);
    const [typed, written] = [reading.mean(0, given), reading.mean(given)];
    if (typed !== null) parts.push(`${number(typed, 2)} given`);
    if (written !== null) parts.push(`${number(written, 2)} written`);
    const guess = number(Math.log(texts.length) * ids.length / charactersIn(ids), 2);
    this.means.classList.toggle("idle", !parts.length);
    this.figures.textContent = ` per character: ${parts.join(", ")} (a blind guess: ${guess}).`;
  }

  shade(position) {
    const nats = this.reading.nats[position], name = texts[this.ids[position]];
    const size = position ? `${number(nats, 2)} nats` : "nothing to predict it from";
    // Fully shaded at 1.5 times what guessing costs.
    const depth = Math.min(1, nats / (1.5 * Math.log(texts.length)));
    this.list.shade(position, depth, `${spoken(name)}, ${size}`);
  }
}

const views = new Map(sides.map((side, i) => [side, new SideView(side, content.models[i])]));
$("sides").append(...[...views.values()].map((view) => view.box));
onChange((side) => (side === active ? [...views.values()] : [views.get(side)])
  .forEach((view) => view.show()));

/** Say what the rest of the page shows: the position that is predicted, and where the window
 * begins in which it is read. */
export function describe(side, position, start) {
  const view = views.get(side);
  view.described = position;
  view.mark();
  if (start !== undefined) view.fade(start);
}

/** To the character that is chosen, by keyboard. */
export const focusText = () => views.get(active).list.selected.focus();

/** edit() is called when the reader wants to type into a text. */
export function onEdit(edit) {
  for (const { text } of views.values()) {
    text.addEventListener("dblclick", edit);
    text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      edit();
    });
  }
}
