// What one sees of a side: its name, its training as a film, its text, and what that cost.
"use strict";

class SideView {
  constructor(side, model) {
    const { name, snapshots } = model;
    this.side = side;
    const box = this.box = document.createElement("article");
    box.className = "side";
    const add = (tag, parts) => {
      const element = Object.assign(document.createElement(tag), parts);
      box.append(element);
      return element;
    };
    if (sides.length > 1) add("h3", { textContent: name });
    if (snapshots.length > 1) box.append((this.film = new Film(side, model)).box);
    const text = add("div", { className: "text", lang: "", translate: false });
    text.setAttribute("aria-label", name ? `the text of ${name}` : "the text");
    this.text = text;
    this.list = new Characters(text, {
      choose: (position) => choose(side, position),
      peek: (position) => side === active && peekAt(position),
      end: "▮",
    });
    text.addEventListener("dblclick", () => edit());
    text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      edit();
    });
    this.figures = document.createElement("span");
    this.means = add("p", { className: "means" });
    this.means.append("Surprise in ", word("nats"), this.figures);
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

  /** Mark the chosen character; while the model writes, the one that the inside describes,
   * which is drawn less often than the text. */
  mark() {
    const { side, list } = this, follows = side.writing && side.chosen === null;
    list.select(follows ? this.described ?? positionOf(side) : positionOf(side));
  }

  /** What stands before the window is out of the model's sight: it is paler. */
  fade(start) {
    const { spans } = this.list, was = this.faded?.ids === this.ids ? this.faded.start : 0;
    for (let i = Math.min(was, start); i < Math.max(was, start); i++) {
      spans[i]?.classList.toggle("beyond", i < start);
    }
    this.faded = { ids: this.ids, start };
  }

  /** What the text cost: −ln p on average, of the reader's part and of the model's. */
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
    this.list.spans[position].dataset.nats = position ? number(nats, 1) : "–";
  }
}

const views = sides.map((side, i) => new SideView(side, content.models[i]));
const viewOf = (side) => views[sides.indexOf(side)];
