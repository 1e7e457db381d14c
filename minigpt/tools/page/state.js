// What there is: the models of the file, what is shown of them, and the knobs.
"use strict";

const $ = (id) => document.getElementById(id);
const content = JSON.parse($("content").textContent);
const ROWS = 10; // bars
const CALM = 80; // milliseconds between two looks inside, while it writes
const LIMIT = 10000; // characters or tokens of a text
const PLAIN = { "’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "--", "…": "...",
  "\u00a0": " ", "\t": " ", "\r": "" }; // what telephones put in by themselves
const number = (value, digits = 3) => value.toFixed(digits);
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The models of the file; the weights of one are unpacked when it is first needed. */
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
let head = { layer: 0, index: 0 };
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

const plainly = (text) => text.replaceAll("\n", "↵"); // in a sentence
const placeOf = (side) => side.chosen ?? side.ids.length;
