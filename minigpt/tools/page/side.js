// One model with its text: what it says of each character, and what it writes.

import { Reader, drawn, mulberry32, probabilities, windowStart } from "generation";
import { charactersIn } from "tokens";

export const SLICE = 10; // milliseconds of computing between two pictures

/** Until the next picture: what is written shows, and keys are heard. */
export function pause() {
  return new Promise((resolve) => requestAnimationFrame(resolve));
}

/** What one model says of the text of a side. after[i] is what it computed when it had read
 * ids[0] to ids[i], so ids[i + 1] was predicted by after[i]; nats[i] is −ln p of ids[i], and
 * 0 for the first, which nothing predicts. */
class Reading {
  constructor(side, model) {
    Object.assign(this, { side, model, reader: new Reader(model), after: [], nats: [] });
  }

  /** Read on to the end of the text, character by character. */
  *steps() {
    const { ids } = this.side;
    while (this.after.length < ids.length) {
      const position = this.after.length, start = this.side.startOf(position);
      yield* this.reader.steps(ids, start, position + 1);
      this.nats.push(position
        ? -Math.log(probabilities(this.after[position - 1].logits)[ids[position]]) : 0);
      this.after.push({ start, logits: this.reader.rows.at(-1).logits });
    }
  }

  /** The mean surprise, in nats per character, of a part of the text; null of none. */
  mean(from, to) {
    const start = Math.max(1, from), some = this.nats.slice(start, to);
    const length = charactersIn(this.side.ids.slice(start, start + some.length));
    return length ? some.reduce((a, b) => a + b) / length : null;
  }
}

export class Side {
  /** snapshots: [{step, model}], the last of them trained to the end. */
  constructor(snapshots) {
    this.snapshots = snapshots;
    this.stage = snapshots.length - 1;
    this.off = new Set(); // names of the parts that are switched off
    this.zero = false; // what is off says zeros, and not its mean
    this.turn = 0; // each run takes a number; an older one then stops
    this.writing = false;
    this.begin([], 0);
  }

  get whole() {
    return this.snapshots[this.stage].model;
  }

  /** Another text, all of it the reader's; what is written behind it follows the seed. */
  begin(ids, seed) {
    this.stop();
    Object.assign(this, { ids: [...ids], given: ids.length, chosen: null, seed, wish: null });
    this.drawn = []; // of each written position its settings and its probability then
    this.random = mulberry32(seed);
    this.forget();
  }

  /** Read all anew, for the text or the model has changed. */
  forget() {
    const model = this.off.size ? this.whole.without(this.off, this.zero) : this.whole;
    this.intact = new Reading(this, this.whole);
    this.reading = this.off.size ? new Reading(this, model) : this.intact;
    this.looker = new Reader(model);
  }

  /** The parts that are off have changed; what the whole model said stays. */
  switchOff() {
    const { intact } = this;
    this.forget();
    this.intact = intact;
    if (!this.off.size) this.reading = intact;
  }

  /** Where the window begins in which the character at `position` is read. The reader's text is
   * read from its beginning, the last of it as `generate` begins: with a whole context. */
  startOf(position) {
    const { block_size } = this.whole.config;
    const first = position < this.given - 1 ? 0 : Math.max(0, this.given - block_size);
    return windowStart(first, position + 1, block_size);
  }

  /** The end of the window in which the character at `position` is read. */
  endOf(position) {
    const start = this.startOf(position);
    while (position < this.ids.length && this.startOf(position) === start) position++;
    return position;
  }

  *read() {
    while (this.reading.after.length < this.ids.length) yield* this.reading.steps();
  }

  /** What was seen on the way to the prediction of `position`, and in all of its window:
   * {start, rows}, as in Reader. */
  *look(position) {
    const start = this.startOf(position - 1), { reader } = this.reading;
    if (reader.start === start && start + reader.rows.length >= position) return reader;
    yield* this.looker.steps(this.ids, start, this.endOf(position - 1));
    return this.looker;
  }

  /** fast/writing.py, tokens. knobs: a function, for they may move while it writes. */
  *write(count, knobs) {
    for (let n = 0; n < count; n++) {
      yield* this.read(); // a part may have been switched off since
      const settings = knobs();
      const probs = probabilities(this.reading.after.at(-1).logits, settings);
      const chance = this.random(), id = drawn(probs, () => chance);
      this.drawn[this.ids.length] =
        { settings, chance, probability: probs[id], made: this.made() };
      this.ids.push(id);
      yield;
    }
    yield* this.read();
  }

  /** By what it is written: the training's stage and what is off, as text. */
  made() {
    return [this.stage, this.zero, ...[...this.off].sort()].join();
  }

  /** Do some work in slices, with a picture between two; show() shows what is there. Ends
   * early, with false, when something else begins. early(): whether to wait before more. */
  async run(work, show, early = () => false) {
    const mine = ++this.turn;
    let since = performance.now();
    for (const _ of work) {
      if (performance.now() - since < SLICE && !early()) continue;
      show();
      do {
        await pause();
        if (mine !== this.turn) return false;
      } while (early());
      since = performance.now();
    }
    show();
    await null; // or what was begun behind this work, which took no pause, would be taken for it
    return mine === this.turn;
  }

  stop() {
    this.turn++;
    this.writing = false;
  }
}
