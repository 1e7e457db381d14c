// Words that are explained where they stand: each is a button that opens its meaning beneath
// it, by mouse, finger or key; Esc, or a click elsewhere, closes it.
"use strict";

const V = content.tokens.length, UNIT = content.unit;
const MEANINGS = {
  nats: "How much a " + UNIT + " surprised the model: −ln p, where p is the probability that it "
    + `had given to it. 0 nats: it was sure. 0.69: one of two. ${number(Math.log(V), 2)}: a `
    + `blind guess among ${V}.`,
  parameters: "The numbers of the model that training changes, a little at every step. Nobody "
    + "wrote them down.",
  step: `A step of training: the model guesses the next ${UNIT} in some pieces of the text, and `
    + "each parameter is moved a little so that the guesses would have been better.",
  probability: `How sure the model is that this ${UNIT} comes next: 0 is never, 1 is always. All `
    + "together make 1.",
  temperature: "Before one is drawn, the logits are divided by this number. Below 1 the likely "
    + "ones become likelier, above 1 all become more alike; at 0 the likeliest always comes.",
  "top-k": "Only the k likeliest may be drawn.",
  "top-p": "Only the likeliest may be drawn that are needed to reach this probability together.",
  seed: "Where the random numbers begin. The same seed draws the same text.",
  logit: `The score of a ${UNIT}: any number. Softmax makes probabilities of all ${V} scores; `
    + "the larger the score, the likelier.",
  embedding: `The list of numbers that a ${UNIT} is for the model, and another one for its `
    + "position. Their sum enters the first block.",
  block: "One round of work: heads fetch what stood earlier, then a feed-forward layer computes "
    + "with it. Each adds its result to what came in.",
  stream: "The list of numbers that runs through all blocks at one position; each part reads it "
    + "and adds to it.",
  head: `A part that looks back. It weighs all earlier ${UNIT}s and brings a mixture of what they `
    + "hand out.",
  "feed-forward": "The part of a block that computes at one position alone: many neurons, each "
    + "of which is bent at zero.",
  neuron: "One number inside a feed-forward layer: a weighing of the whole stream. The bend "
    + "decides whether it fires.",
  lens: "What the model would say if it ended here: the last layer reads the stream as it is so "
    + "far (the logit lens).",
  query: "What a position asks for: a list of numbers.",
  key: "What a position answers to: a list of numbers, as long as the query. Where both agree, "
    + "their product is large.",
  value: "What a position hands out to those that look at it: a list of numbers.",
  score: "Query times key, divided by the root of their length. Softmax makes weights of the "
    + "scores.",
  mask: `A position may not look at what comes later. Its score becomes −∞, its weight 0.`,
  softmax: "e to the power of each number, divided by the sum of all. The results are positive "
    + "and sum to 1.",
  weight: "How much a position takes of another one's value. All weights of a position sum to 1.",
  output: "The weighted sum of the values: what the head brings along.",
  mean: "A part that is off says, at every position, what it says on average over the text that "
    + "the model learned from; or zeros, that is nothing at all.",
  bias: "One more number that training has found, added at the end.",
  gain: "A number that training has found, by which another one is multiplied.",
  bend: "What is below 0 becomes 0, or nearly so: the only place where a neuron does more than "
    + "weigh and add.",
  projection: "What a head has fetched is weighed with parameters, so that it becomes as long as "
    + "the stream.",
  product: "Query times key, number by number, all added up: the larger, the better they fit.",
  weighing: "Each number of the list times a parameter, all added up: large where the list "
    + "looks like the parameters.",
  power: "e, which is 2.718…, to the power of the number less the largest: 1 for the largest, "
    + "and nearly 0 for what is far below.",
  norm: "Before a part reads the stream, its numbers are brought to one size.",
};

/** A word that can be asked for its meaning. */
function word(name, shown = name) {
  const button = element("button", { type: "button", className: "word", textContent: shown,
    "aria-expanded": false });
  button.addEventListener("click", () => explain(button, MEANINGS[name]));
  return button;
}

/** What stands in titles and above columns: {as it is written: the name of its meaning}. */
const NAMED = { LayerNorm: "norm", RMSNorm: "norm", Block: "block", normed: "norm", masked: "mask",
  bent: "bend", keys: "key", values: "value", "q · k": "product", "w · x": "weighing",
  "e^": "power", kept: "top-k", ...Object.fromEntries(["head", "feed-forward", "query", "key",
    "value", "output", "stream", "weight", "logit", "score", "probability"].map((n) => [n, n])) };
const WORDS = new RegExp(`(?<![\\p{L}“])(${Object.keys(NAMED).map((name) =>
  name.replace("^", "\\^")).join("|")})(?![\\p{L}”])`, "u");

/** A title or the name of a column, in which the words that have a meaning can be asked. */
function withWords(text) {
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
function hush() {
  if (!meaning.asked) return false;
  meaning.asked.setAttribute("aria-expanded", false);
  meaning.asked = null;
  if (meaning.matches(":popover-open")) meaning.hidePopover();
  return true;
}

document.addEventListener("click", ({ target }) => {
  if (!target.closest(".word, #meaning")) hush();
});
