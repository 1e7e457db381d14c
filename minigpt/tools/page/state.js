// What is shown: the models with their texts, which of them is looked into, and which part of it
// is taken apart, at which of its steps. These change in this file only; whoever shows them asks
// to be told with onChange.
import { V, stages } from "content";
import { $ } from "elements";
import { Side } from "side";

export const sides = stages().map((one) => new Side(one));
export let active = sides[0]; // the side that is looked into
export let watched = "head 1.1"; // the part that is taken apart: a head, …, or "logits"
export let step = 2; // the step of its computation, counted from 1

const listeners = [];

/** listener(side) is called when something about a side has changed. */
export function onChange(listener) {
  listeners.push(listener);
}

export function changed(side = active) {
  for (const listener of listeners) listener(side);
}

/** Look at one position of a side; behind its text stands what is to come. */
export function choose(side, position) {
  active = side;
  side.chosen = position >= side.ids.length ? null : Math.max(0, position);
  if (!isPart(watched)) watched = "head 1.1"; // this model has fewer
  changed();
}

/** Take a part apart, from one of its steps on. */
export function watch(name, at = 1) {
  [watched, step] = [name, at];
  changed();
}

/** "head 2.1" -> {kind: "head", layer: 1, index: 0}; "feed-forward 2" has no index. */
export function partOf(name) {
  const [kind, numbers = ""] = name.split(" ");
  const [layer, index] = numbers.split(".").map((digits) => Number(digits) - 1);
  return { kind, layer, index };
}

function isPart(name) {
  const { n_layer, n_head } = active.whole.config, { layer = 0, index = 0 } = partOf(name);
  return !(layer > n_layer || index >= n_head);
}

/** The parts that can be switched off. */
export const partsOf = (side) => [...side.whole.sizes().keys()].filter((n) => /^(head|feed)/.test(n));

export const positionOf = (side) => side.chosen ?? side.ids.length;

/** The knobs of generation.py's `generate`; one at its end is off. */
export function knobs() {
  const value = (id) => Number($(id).value);
  return {
    temperature: value("temperature"),
    topK: value("top-k") < V ? value("top-k") : null,
    topP: value("top-p") < 1 ? value("top-p") : null,
  };
}

/** The number in a field, within its bounds. */
export function field(id) {
  const { min, max, value, defaultValue } = $(id);
  const whole = value === "" ? Number(defaultValue) : Math.round(Number(value));
  return $(id).value = Math.min(Math.max(whole, Number(min)), Number(max));
}
