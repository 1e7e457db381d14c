// What one sees as an address: behind # stand the text, the seed, the knobs, the position that is
// looked into, the part that is watched, and what is switched off. Nothing of it is ever sent
// to a server.
"use strict";

const KNOBS = ["temperature", "top-k", "top-p"];

/** {text, ids, n, seed, temperature, "top-k", "top-p", at, side, part, walk, every, zero, slide, tour,
 * sides: [{off, step}]} -> "#text=…"; what is undefined or null stays away.
 * ids: the text's own, if reading it again would give others. */
function toAddress(state) {
  const params = new URLSearchParams();
  for (const name of ["text", "ids", "n", "seed", ...KNOBS, "at", "side", "part", "walk", "every", "zero",
    "slide", "tour"]) {
    if (state[name] !== undefined && state[name] !== null) params.set(name, state[name]);
  }
  for (const { off, step } of state.sides) {
    params.append("off", [...off].join());
    if (step !== null) params.append("step", step);
  }
  return `#${params}`;
}

/** The way back; null if there is no text behind #. Numbers stay text, for the fields to
 * judge. */
function fromAddress(hash) {
  const params = new URLSearchParams(hash.slice(1));
  if (!params.has("text")) return null;
  const state = Object.fromEntries(params);
  const steps = params.getAll("step");
  state.sides = params.getAll("off").map((off, i) =>
    ({ off: off.split(",").filter(Boolean), step: steps[i] ?? null }));
  return state;
}

/** Put a text on the clipboard -> whether that was allowed. Works from a file, too. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
