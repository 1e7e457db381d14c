// What becomes of what a head writes: it is added to the stream, where every later layer reads
// it, so that it can move a logit by more than it adds itself.
"use strict";

const AFFORDED = 1e8; // products that may be computed for it between two pictures
const effects = new WeakMap(); // of a position, as computed: a Map from a head and an id

/** By how much the logit of `id` is larger than if the head wrote zeros, in all that is read
 * from `start` on; null if it is off, or that takes too long. */
function effectOf(side, name, position, start, seen, id) {
  const size = sum([...side.whole.sizes().values()]);
  if (side.off.size || size * (position - start) > AFFORDED) return null;
  if (!effects.has(seen)) effects.set(seen, new Map());
  const known = effects.get(seen), key = `${name} ${id}`;
  if (!known.has(key)) {
    const reader = new Reader(side.whole.without([name], true));
    for (const _ of reader.steps(side.ids, start, position)) { /* as far as that position */ }
    known.set(key, seen.logits[id] - reader.rows.at(-1).logits[id]);
  }
  return known.get(key);
}

/** What the logit would be without the head, where that differs by more than what it adds itself. */
function effectSays(effect, share) {
  return effect === null || Math.abs(effect) < Math.abs(share) + .05 ? ""
    : " Later layers read it, too: without this head the score would be "
      + `${number(Math.abs(effect), 2)} ${effect > 0 ? "lower" : "higher"}.`;
}
