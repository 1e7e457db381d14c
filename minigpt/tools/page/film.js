// The stages of a training, on a slider, and the losses as a curve beside it. Nothing is trained
// here: each stage is a model of its own, kept by `train --keep`.
import { UNIT } from "content";
import { element, number } from "elements";
import { word } from "words";
import { train } from "writing";

const CURVE = { wide: 300, high: 110, left: 34, right: 8, top: 8, bottom: 20 };

export class Film {
  constructor(side, { snapshots, story }) {
    Object.assign(this, { side, snapshots });
    this.steps = snapshots.map(({ step }) => (step === "end" ? story?.steps ?? null : step));
    this.told = element("span", { className: "stage-told" });
    this.slider = element("input", { type: "range", min: 0, max: snapshots.length - 1,
      value: side.stage, ariaLabel: "The stage of the training" });
    this.slider.addEventListener("input", () => train(side, Number(this.slider.value)));
    this.box = element("div", { className: "film" },
      element("div", { className: "reel" }, this.told, this.slider));
    this.draw(story?.history ?? []);
    this.show();
  }

  show() {
    const { step, loss } = this.snapshots[this.side.stage];
    const words = step === "end" ? "finished" : `after ${step.toLocaleString("en")} steps`;
    this.told.textContent = `Training: ${words}`
      + (loss === null ? "" : `, loss ${number(loss, 2)}`);
    this.slider.setAttribute("aria-valuetext", words);
    this.slider.value = this.side.stage;
    this.dots?.forEach((dot, i) => dot.classList.toggle("now", i === this.side.stage));
  }

  /** The curve: the losses that the training measured, and a dot for each stage. */
  draw(history) {
    const kept = this.snapshots.map(({ loss }, i) => ({ step: this.steps[i], loss }))
      .filter(({ step, loss }) => step !== null && loss !== null);
    const losses = [...kept.map(({ loss }) => loss), ...history.flatMap((row) => row.slice(1))];
    const steps = [...kept.map(({ step }) => step), ...history.map((row) => row[0])];
    if (losses.length < 2) return;
    const { wide, high, left, right, top, bottom } = CURVE;
    const [low, most, end] = [Math.min(...losses), Math.max(...losses), Math.max(...steps)];
    const x = (step) => left + step / end * (wide - left - right);
    const y = (loss) => top + (most - loss) / (most - low || 1) * (high - top - bottom);
    const through = (points, name) => shape("polyline", { class: name,
      points: points.map(([step, loss]) => `${x(step)},${y(loss)}`).join(" ") });
    const label = (text, at) => Object.assign(shape("text", at), { textContent: text });
    const every = this.snapshots.map(({ loss }, i) => shape("circle", { class: "stage-dot",
      r: 4, cx: x(this.steps[i] ?? end), cy: y(loss ?? low),
      visibility: loss === null || this.steps[i] === null ? "hidden" : "visible" }));
    this.dots = every;
    const curve = shape("svg", { class: "curve", viewBox: `0 0 ${wide} ${high}`, role: "img",
      "aria-label": `The loss falls from ${number(most, 2)} to ${number(low, 2)} nats per `
        + `${UNIT} in ${end.toLocaleString("en")} steps.` });
    curve.append(through(kept.map(({ step, loss }) => [step, loss]), "between"),
      through(history.map(([step, learned]) => [step, learned]), "learned"),
      through(history.map(([step, , judged]) => [step, judged]), "judged"), ...every,
      label(number(most, 2), { x: left - 4, y: top + 6, "text-anchor": "end" }),
      label(number(low, 2), { x: left - 4, y: high - bottom + 4, "text-anchor": "end" }),
      label("0", { x: left, y: high - 4 }),
      label(`${end.toLocaleString("en")} steps`, { x: wide - right, y: high - 4,
        "text-anchor": "end" }));
    const key = element("figcaption", {}, "Loss in ", word("nats"), ` per ${UNIT}: `,
      element("i", { className: "key-judged" }), " on text it hasn’t read, ",
      element("i", { className: "key-learned" }), " on text it learns from");
    this.box.append(element("figure", {}, curve, key));
  }
}

/** An element of SVG with its attributes. */
function shape(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
