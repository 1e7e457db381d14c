// What a model reads of a text that grows, and how a character is drawn.

import { Cache, softmax } from "forward";

/** fast/reader.py, start_of: a text that was first read from `first` grows to a whole context,
 * then its older half is dropped -> where the window begins. */
export function windowStart(first, length, context) {
  const half = Math.max(Math.floor(context / 2), 1);
  const over = Math.max(0, length - first - context);
  return first + Math.ceil(over / half) * half;
}

/** One window of a text, read through a cache. rows[t] is what model.step said after the
 * t-th character behind `start`. */
export class Reader {
  constructor(model) {
    Object.assign(this, { model, start: null, rows: [] });
  }

  /** Read ids[start] up to ids[end - 1], one character a step; what has been read of the
   * same window is kept. */
  *steps(ids, start, end) {
    if (start !== this.start || start + this.rows.length > end) {
      this.start = start;
      this.rows = [];
      this.cache = new Cache(this.model.config.n_layer);
    }
    while (start + this.rows.length < end) {
      this.rows.push(this.model.step(ids[start + this.rows.length], this.cache));
      yield;
    }
  }
}

/** generation.py, probabilities; a knob that is null is off. */
export function probabilities(logits, { temperature = 1, topK = null, topP = null } = {}) {
  const scores = Array.from(logits);
  const largest = Math.max(...scores);
  if (temperature === 0) {
    const likeliest = scores.indexOf(largest);
    return scores.map((_, i) => (i === likeliest ? 1 : 0));
  }
  const cooled = scores.map((s) => (s - largest) / Math.max(temperature, 1e-30));
  return softmax(keepLikeliest(cooled, topK, topP));
}

/** generation.py, probabilities: top-k first; ties with the k-th stay. */
export function keepLikeliest(scores, topK, topP) {
  if (topK !== null && topK < scores.length) {
    const smallest = [...scores].sort((a, b) => b - a)[topK - 1];
    scores = scores.map((s) => (s < smallest ? -Infinity : s));
  }
  if (topP !== null && topP < 1) {
    const probs = softmax(scores), kept = scores.map(() => -Infinity);
    let before = 0; // what the likelier ones sum to
    for (const i of ranked(probs)) {
      if (before >= topP) break;
      kept[i] = scores[i];
      before += probs[i];
    }
    scores = kept;
  }
  return scores;
}

/** The ids, likeliest first. */
export function ranked(probs) {
  return Array.from(probs.keys()).sort((a, b) => probs[b] - probs[a]);
}

/** One id, as torch.multinomial draws: where a random number falls on the pile. */
export function drawn(probs, random) {
  const u = random();
  let pile = 0, last = 0;
  for (let i = 0; i < probs.length; i++) {
    if (probs[i] === 0) continue;
    pile += probs[i];
    last = i;
    if (u < pile) return i;
  }
  return last; // u above a pile that rounding left short of 1
}

/** Tommy Ettinger's Mulberry32 (2017): a seed of 32 bits -> numbers in [0, 1), the same
 * in every browser, where Math.random has no seed. */
export function mulberry32(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
