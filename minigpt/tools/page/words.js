// Words that are explained right where they are: each is a button that opens its meaning below
// it, by mouse, finger or key. Esc, or a click elsewhere, closes it.

import { UNIT, V } from "content";
import { $, element, number } from "elements";

const MEANINGS = {
  nats: `How much a ${UNIT} surprised the model: −ln p, where p is the probability that the model `
    + "had given it. 0 nats means it was sure. 0.69 is a coin toss. "
    + `${number(Math.log(V), 2)} is a blind guess among ${V}.`,
  parameters: "The numbers in the model. Training changes them a little at every step. Nobody "
    + "wrote them by hand.",
  step: `In one step of training, the model guesses the next ${UNIT} in a few pieces of the text. `
    + "Then each parameter moves a little, in the direction that makes the guesses better.",
  probability: `How sure the model is that this ${UNIT} comes next. 0 is never, 1 is always, and `
    + "all of them add up to 1.",
  temperature: "Every score is divided by this number before the draw. Below 1, likely ones get "
    + "even likelier. Above 1, they all get more alike. At 0, the likeliest one always wins.",
  "top-k": "Only the k likeliest ones can be drawn.",
  "top-p": "Only the likeliest ones can be drawn, just enough of them to reach this probability "
    + "together.",
  seed: "Where the random numbers begin. The same seed gives the same text.",
  logit: `The score of a ${UNIT}. It can be any number. Softmax turns the ${V} scores into `
    + "probabilities: the larger the score, the likelier.",
  embedding: `The list of numbers that stands for a ${UNIT}. Another list stands for its place `
    + "in the text. Their sum enters the first block.",
  block: "One round of work. The heads fetch what came earlier, then a feed-forward layer works "
    + "on it. Each adds its result to what came in.",
  stream: "The list of numbers that runs through all blocks. Every part reads it and adds to it.",
  head: `A part that looks back. It weighs all earlier ${UNIT}s and brings back a mixture of what `
    + "they have to offer.",
  "feed-forward": `The part of a block that works on one ${UNIT} at a time. It has many neurons, `
    + "and the result of each is bent at zero.",
  neuron: "One number inside a feed-forward layer. It’s computed from the whole list, and the "
    + "bend decides whether it fires.",
  lens: "What the model would write if it stopped here: the last layer reads the list as it is so "
    + "far. This is called the logit lens.",
  query: `What a ${UNIT} is looking for, as a list of numbers.`,
  key: `What a ${UNIT} can be found by, as a list of numbers. If a key fits a query, their product `
    + "is large.",
  value: `What a ${UNIT} hands over to those that look at it, as a list of numbers.`,
  score: "Query times key, divided by the root of their length.",
  mask: "No head may look at what comes later. Its score becomes −∞, so its weight is 0.",
  softmax: "Raise e to the power of each number, then divide by their sum. The results are "
    + "positive and add up to 1.",
  weight: `How much is taken from this ${UNIT}. The weights of a head add up to 1.`,
  output: "The values, each times its weight, all added up. This is what the head brings back.",
  mean: "A part that’s off gives the same numbers everywhere: its average over the text that the "
    + "model learned from. You can also make them all zeros.",
  bias: "One more number that training has found. It’s added at the end.",
  gain: "A number that training has found. Another number is multiplied by it.",
  bend: "Whatever is below 0 becomes 0, or close to it. Without the bend, two layers in a row could "
    + "do no more than one.",
  projection: "The head’s result is multiplied by a table of parameters. That makes it as long as "
    + "the list that runs through the model.",
  product: "Query times key, number by number, all added up. The larger, the better they fit.",
  weighing: "Each number of the list times a parameter, all added up. It's large if the list looks "
    + "like the parameters.",
  norm: "Before a part reads the list, its numbers are scaled to a standard size.",
};

/** A word that can be asked for its meaning. */
export function word(name, shown = name) {
  const button = element("button", { type: "button", className: "word", textContent: shown,
    "aria-expanded": false });
  button.addEventListener("click", () => explain(button, MEANINGS[name]));
  return button;
}

/** What stands in titles and above columns: {as it is written: the name of its meaning}. */
const NAMED = { LayerNorm: "norm", RMSNorm: "norm", Block: "block", normed: "norm", bent: "bend",
  "q · k": "product", "w · x": "weighing", ...Object.fromEntries(["head", "feed-forward", "query",
    "key", "value", "output", "stream", "weight", "logit", "score", "probability"]
    .map((n) => [n, n])) };
const WORDS = new RegExp(`(?<![\\p{L}“])(${Object.keys(NAMED).join("|")})(?![\\p{L}”])`, "u");

/** A title or the name of a column, in which the words that have a meaning can be asked. */
export function withWords(text) {
  return text.split(WORDS).map((part, i) => (i % 2 ? word(NAMED[part], part) : part));
}

/** In the HTML a word is <b data-word="name">as it is written there</b>. */
for (const written of document.querySelectorAll("[data-word]")) {
  written.replaceWith(word(written.dataset.word, written.textContent));
}

const meaning = $("meaning"); // moves to the word that is asked

function explain(button, text) {
  const again = meaning.asked === button;
  hush();
  if (again) return;
  button.after(meaning); // what is read next is what it means
  meaning.textContent = $("spoken").textContent = text;
  meaning.showPopover();
  meaning.asked = button;
  button.setAttribute("aria-expanded", true);
  const at = button.getBoundingClientRect(), { width, height } = meaning.getBoundingClientRect();
  const room = document.documentElement.clientWidth - width - 8;
  const below = at.bottom + height + 8 < innerHeight;
  meaning.style.left = `${Math.max(8, Math.min(at.left, room)) + scrollX}px`;
  meaning.style.top = `${(below ? at.bottom + 6 : at.top - height - 6) + scrollY}px`;
}

/** Close what is explained -> whether anything was. */
export function hush() {
  if (!meaning.asked) return false;
  meaning.asked.setAttribute("aria-expanded", false);
  meaning.asked = null;
  if (meaning.matches(":popover-open")) meaning.hidePopover();
  return true;
}

document.addEventListener("click", ({ target }) => {
  if (!target.closest(".word, #meaning")) hush();
});
