// What one sees of a side: its name, its training, its text, and what that cost.
"use strict";

/** What one sees of a side: its name, its training, its text and what that cost. */
class SideView {
  constructor(side, { name, snapshots }) {
    this.side = side;
    const box = this.box = document.createElement("article");
    box.className = "side";
    const add = (tag, parts) => {
      const element = Object.assign(document.createElement(tag), parts);
      box.append(element);
      return element;
    };
    if (sides.length > 1) add("h3", { textContent: name });
    if (snapshots.length > 1) {
      const label = add("label", { className: "training" });
      this.step = document.createElement("span");
      this.slider = Object.assign(document.createElement("input"), {
        type: "range", min: 0, max: snapshots.length - 1, value: side.stage });
      this.slider.addEventListener("input", () => train(side, Number(this.slider.value)));
      label.append(this.step, this.slider);
    }
    const text = add("div", { className: "text", lang: "", translate: false });
    text.setAttribute("aria-label", name ? `the text of ${name}` : "the text");
    this.text = text;
    this.list = new Characters(text, {
      choose: (place) => choose(side, place),
      peek: (place) => side === active && peekAt(place),
      end: "▮",
    });
    text.addEventListener("dblclick", () => edit());
    text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      edit();
    });
    this.means = add("p", { className: "means" });
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
    list.select(placeOf(side));
    if (side.writing && chosen === null) this.text.scrollTop = this.text.scrollHeight;
    this.box.classList.toggle("active", side === active && sides.length > 1);
    if (this.slider) {
      const { step } = side.snapshots[side.stage];
      const words = step === "end" ? "finished" : `after ${step.toLocaleString("en")} steps`;
      this.step.textContent = `Training: ${words}`;
      this.slider.setAttribute("aria-valuetext", words);
      this.slider.value = side.stage;
    }
    this.means.textContent = sentence(reading, given);
  }

  shade(place) {
    const nats = this.reading.nats[place], name = texts[this.ids[place]];
    const size = place ? `${number(nats, 2)} nats` : "nothing to predict it from";
    // Fully shaded at 1.5 times what guessing costs.
    const depth = Math.min(1, nats / (1.5 * Math.log(texts.length)));
    this.list.shade(place, depth, `${spoken(name)}, ${size}`);
    this.list.spans[place].dataset.nats = place ? number(nats, 1) : "–";
  }
}

/** The mean surprise of the reader's text, `given` tokens, and of the model's. */
function sentence(reading, given) {
  const parts = [], ids = reading.side.ids.slice(1);
  const [typed, written] = [reading.mean(0, given), reading.mean(given)];
  if (typed !== null) parts.push(`${number(typed, 2)} given`);
  if (written !== null) parts.push(`${number(written, 2)} written`);
  const guess = number(Math.log(texts.length) * ids.length / charactersIn(ids), 2);
  return parts.length
    ? `Surprise in nats per character: ${parts.join(", ")} (a blind guess: ${guess}).` : "";
}

const views = sides.map((side, i) => new SideView(side, content.models[i]));
const viewOf = (side) => views[sides.indexOf(side)];
