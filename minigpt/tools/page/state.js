// What there is: the models of the file, what is shown of them, and the knobs.
"use strict";

const $ = (id) => document.getElementById(id);
const content = JSON.parse($("content").textContent);
const ROWS = 8; // bars
const CALM = 80; // milliseconds between two looks inside, while it writes
const LIMIT = 10000; // characters or tokens of a text
const PLAIN = { "’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "--", "…": "...",
  "\u00a0": " ", "\t": " ", "\r": "" }; // what telephones put in by themselves
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

/** A number as one reads it: with a minus as long as a plus, and none before 0.00. */
function number(value, digits = 3) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** The same with its sign; what is rounded to 0 has none. */
function signed(value, digits = 2) {
  const text = number(value, digits);
  return isZero(value, digits) || text.startsWith("−") ? text : `+${text}`;
}

const isZero = (value, digits = 2) => Number(value.toFixed(digits)) === 0;
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** The models of the file; the parameters of one are unpacked when it is first needed. */
function unpackedSides() {
  const packed = $("weights").textContent.trim().split("\n");
  return content.models.map(({ config, snapshots }) => new Side(snapshots.map((snapshot) => {
    const base64 = packed.shift();
    let model = null;
    return {
      step: snapshot.step,
      get model() { return model ??= new Model(config, unpack(snapshot.tensors, base64)); },
    };
  })));
}

const sides = unpackedSides();
let active = sides[0]; // the one that is shown inside
let watched = "head 1.1"; // the part whose computation is shown: a head, …, or "logits"
let peeked = null; // the row of the window that the reader points at
let drawing = null;
let looking = 0; // each look inside takes a number; an older one then stops
let painted = { at: 0, took: 0 }; // when the inside was shown last, in milliseconds
let typed = null; // a timer: the text is read when the typing pauses

/** The knobs of generation.py's `generate`; one at its end is off. */
function knobs() {
  const value = (id) => Number($(id).value);
  return {
    temperature: value("temperature"),
    topK: value("top-k") < content.tokens.length ? value("top-k") : null,
    topP: value("top-p") < 1 ? value("top-p") : null,
  };
}

/** The number in a field, within its bounds. */
function field(id) {
  const { min, max, value, defaultValue } = $(id);
  const whole = value === "" ? Number(defaultValue) : Math.round(Number(value));
  return $(id).value = Math.min(Math.max(whole, Number(min)), Number(max));
}

/** "head 2.1" -> {kind: "head", layer: 1, index: 0}; "feed-forward 2" has no index. */
function partOf(name) {
  const [kind, numbers = ""] = name.split(" ");
  const [layer, index] = numbers.split(".").map((digits) => Number(digits) - 1);
  return { kind, layer, index };
}

/** The way back, for what has a layer. */
const nameOf = ({ kind, layer, index }) =>
  `${kind} ${layer + 1}${index === undefined ? "" : `.${index + 1}`}`;

const plainly = (text) => text.replaceAll("\n", "↵"); // in a sentence
const positionOf = (side) => side.chosen ?? side.ids.length;

/** An element with its properties; those with a dash are set as attributes. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}
