// The tour's answers. They are measured here, on the text above and with the model that is in
// the page: each number is what one sees when one switches the part off oneself.
"use strict";

/** The surprise at the text of a side without a part, in nats per character. */
function* surpriseWithout(side, part, zero = false) {
  const reading = new Reading(side, side.whole.without([part], zero));
  yield* reading.steps();
  return reading.mean(0, side.ids.length);
}

const partsOf = (side) => [...side.whole.sizes().keys()].filter((n) => /^(head|feed)/.test(n));
const twoDigits = (value) => number(value, 2);

/** A list that grows while it is measured; the part that it needs most comes first. */
async function answerNeeds(side, say, wanted) {
  const found = [], parts = partsOf(side), whole = side.intact.mean(0, side.ids.length);
  for (const part of parts) {
    const nats = await worked(surpriseWithout(side, part, side.zero), wanted);
    if (nats === null) return;
    found.push({ part, nats });
    found.sort((a, b) => b.nats - a.nats);
    say(`The surprise is ${twoDigits(whole)} nats per character with all parts. Without `
      + found.map(({ part: name, nats: now }) => `${name}: ${twoDigits(now)}`).join(", ")
      + (found.length < parts.length ? " …" : `. It needs ${found[0].part} most, and `
        + `${found.at(-1).part} least.`));
  }
}

/** The head that the text needs most, by its mean and by zeros. */
async function answerSpells(side, say, wanted) {
  const found = [], heads = partsOf(side).filter((part) => part.startsWith("head"));
  for (const part of heads) {
    say(`Measuring ${part} …`);
    const nats = await worked(surpriseWithout(side, part), wanted);
    if (nats === null) return;
    found.push({ part, nats });
  }
  found.sort((a, b) => b.nats - a.nats);
  const [{ part, nats }] = found, { hasMeans } = side.whole, before = habits(side).get(part)[1];
  const zeros = hasMeans ? await worked(surpriseWithout(side, part, true), wanted) : nats;
  if (zeros === null) return;
  const gap = zeros - nats;
  say(`Of the heads, the text needs ${part} most; it gives the ${UNIT} before `
    + `${twoDigits(before)} of its weight on average. Without it the surprise is `
    + `${twoDigits(nats)} nats per character, with all heads ${twoDigits(side.intact.mean(0, side.ids.length))}. `
    + (hasMeans ? `With zeros it is ${twoDigits(zeros)}: ${Math.abs(gap) < .005 ? "no difference"
      : gap > 0 ? "more than with the mean" : "less than with the mean"} here.`
      : ""));
}

/** What each head looks at, in the window that is in view. */
async function answerLooks(side, say) {
  const spread = [], told = [];
  for (const [part, shares] of habits(side)) {
    const [best] = ranked(shares), share = shares[best];
    if (share < HABIT) spread.push(part);
    else told.push(`${part} looks mostly at ${DISTANCES[best]} (${twoDigits(share)} of its weight)`);
  }
  const others = spread.length ? `${told.length ? "; " : ""}${spread.join(", ")} `
    + `${spread.length > 1 ? "have" : "has"} no fixed distance: what they look at depends on the `
    + "text" : "";
  say(`On average over what is in view, ${told.join(", ")}${others}.`);
}

const DISTANCES = [`the ${UNIT} itself`, "the one before", ...[2, 3, 4, 5, 6, 7, 8]
  .map((n) => `the one ${n} back`)];
const HABIT = .25; // of its weight at one distance: less is no habit

/** {head: the mean share of its weight at each distance}, over the window in view. */
function habits(side) {
  const found = new Map(), { rows } = side.reading.reader;
  for (const part of partsOf(side).filter((name) => name.startsWith("head"))) {
    const { layer, index } = partOf(part);
    const each = rows.map(({ layers }) => layers[layer].heads[index].weights);
    found.set(part, DISTANCES.map((_, back) =>
      sum(each.map((weights, t) => weights[t - back] ?? 0)) / rows.length));
  }
  return found;
}

/** The head that most keeps to one distance other than its own, or the first if nothing has
 * been read. */
function sharpest(side) {
  if (side.reading.reader.rows.length < 2) return "head 1.1";
  const sharpness = ([, shares]) => Math.max(...shares.slice(1));
  return [...habits(side)].reduce((a, b) => (sharpness(b) > sharpness(a) ? b : a))[0];
}

/** Work in slices, with pauses between -> its result, or null if it is no longer wanted. */
async function worked(work, wanted) {
  let step = work.next();
  for (let since = performance.now(); !step.done; step = work.next()) {
    if (performance.now() - since < SLICE) continue;
    await pause();
    if (!wanted()) return null;
    since = performance.now();
  }
  return step.value;
}
