// A training as a film: its stages one after the other, the losses as a curve beside them.
// Nothing is trained here: each stage is a model of its own, kept by `train --keep`.
"use strict";

const FRAME = 1200; // milliseconds that a stage is seen at least
const CURVE = { wide: 300, high: 110, left: 34, right: 8, top: 8, bottom: 20 };

class Film {
  constructor(side, { snapshots, story }) {
    Object.assign(this, { side, snapshots, turn: 0, playing: false });
    this.steps = snapshots.map(({ step }) => (step === "end" ? story?.steps ?? null : step));
    this.button = element("button", { type: "button" });
    this.told = element("span", { className: "stage-told" });
    this.slider = element("input", { type: "range", min: 0, max: snapshots.length - 1,
      value: side.stage, ariaLabel: "The stage of the training" });
    this.slider.addEventListener("input", () => {
      const stage = Number(this.slider.value);
      this.pause(); // which shows the stage as it was
      train(side, stage);
    });
    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    const panel = element("div", { className: "reel" }, this.button, this.slider, this.told);
    this.box = element("div", { className: "film" }, panel);
    this.draw(story?.history ?? []);
    this.show();
  }

  /** Stage by stage to the end; from the beginning, if it stands at the end. */
  async play() {
    const mine = ++this.turn, last = this.snapshots.length - 1, { side } = this;
    this.playing = true;
    for (let stage = side.stage === last ? 0 : side.stage + 1; stage <= last; stage++) {
      const seen = wait(FRAME);
      await train(side, stage);
      await seen;
      if (mine !== this.turn || side.stage !== stage) return;
    }
    this.pause();
  }

  pause() {
    this.turn++;
    this.playing = false;
    this.show();
  }

  show() {
    const { step, loss } = this.snapshots[this.side.stage];
    const words = step === "end" ? "finished" : `after ${step.toLocaleString("en")} steps`;
    this.button.textContent = this.playing ? "❚❚ Pause" : "▶ Play the training";
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
      element("i", { className: "key-judged" }), " of text that it has not read, ",
      element("i", { className: "key-learned" }), " of text that it learns from");
    this.box.append(element("figure", {}, curve, key));
  }
}

/** An element of SVG with its attributes. */
function shape(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
