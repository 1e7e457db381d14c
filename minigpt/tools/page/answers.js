// The tour's answers. They are measured here, on the text above and with the model that is in
// the page: each number is what one sees when one switches the part off oneself.
"use strict";

/** What the text of a side costs without a part, in nats per character. */
function* costWithout(side, part, zero = false) {
  const reading = new Reading(side, side.whole.without([part], zero));
  yield* reading.steps();
  return reading.mean(0, side.ids.length);
}

const partsOf = (side) => [...side.whole.sizes().keys()].filter((n) => /^(head|feed)/.test(n));
const cost = (value) => number(value, 2);

/** A list that grows while it is measured; the dearest part comes first. */
async function answerNeeds(side, say, wanted) {
  const found = [], parts = partsOf(side), whole = side.intact.mean(0, side.ids.length);
  for (const part of parts) {
    const nats = await worked(costWithout(side, part, side.zero), wanted);
    if (nats === null) return;
    found.push({ part, nats });
    found.sort((a, b) => b.nats - a.nats);
    say(`This text costs ${cost(whole)} nats per character with all parts. Without `
      + found.map(({ part: name, nats: now }) => `${name}: ${cost(now)}`).join(", ")
      + (found.length < parts.length ? " …" : `. It needs ${found[0].part} most, and `
        + `${found.at(-1).part} least.`));
  }
}

/** The head that the text needs most, by its mean and by zeros. */
async function answerSpells(side, say, wanted) {
  const found = [], heads = partsOf(side).filter((part) => part.startsWith("head"));
  say("Measuring …");
  for (const part of heads) {
    const nats = await worked(costWithout(side, part), wanted);
    if (nats === null) return;
    found.push({ part, nats });
  }
  found.sort((a, b) => b.nats - a.nats);
  const [{ part, nats }] = found, { hasMeans } = side.whole;
  const zeros = hasMeans ? await worked(costWithout(side, part, true), wanted) : nats;
  if (zeros === null) return;
  const { before } = habits(side).get(part), gap = zeros - nats;
  say(`Of the heads, the text needs ${part} most; it gives the ${UNIT} before `
    + `${cost(before)} of its weight on average. Without it the text costs ${cost(nats)} nats per `
    + `character, with all heads ${cost(side.intact.mean(0, side.ids.length))}. `
    + (hasMeans ? `With zeros it costs ${cost(zeros)}: ${Math.abs(gap) < .005 ? "no difference"
      : gap > 0 ? "silence is dearer than the mean" : "the mean is dearer than silence"} here.`
      : ""));
}

/** What each head looks at, in the window that is in view. */
async function answerLooks(side, say) {
  const rows = side.looker.rows.length ? side.looker.rows : side.reading.reader.rows;
  const told = [...habits(side, rows)].map(([part, { itself, before, most }]) =>
    `${part}: itself ${cost(itself)}, one back ${cost(before)}, its largest ${cost(most)}`);
  say(`Shares of a head's weight, on average over the ${rows.length} ${UNIT}s in view. `
    + `${told.join("; ")}. Where the largest is small, the head looks at many at once.`);
}

/** {head: the mean of what it gives itself, the one before, and the one it gives most}. */
function habits(side, rows = side.reading.reader.rows) {
  const found = new Map(), n = rows.length;
  for (const part of partsOf(side).filter((name) => name.startsWith("head"))) {
    const { layer, index } = partOf(part);
    const each = rows.map(({ layers }) => layers[layer].heads[index].weights);
    const mean = (of) => sum(each.map(of)) / n;
    found.set(part, { itself: mean((w, t) => w[t]), before: mean((w, t) => w[t - 1] ?? 0),
      most: mean((w) => w.reduce((a, b) => Math.max(a, b))) });
  }
  return found;
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
