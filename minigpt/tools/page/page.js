// What one sees: the text, and how each of its characters was predicted.
"use strict";

const $ = (id) => document.getElementById(id);
const content = JSON.parse($("content").textContent);
const model = new Model(
  content.config, unpack(content.tensors, $("weights").textContent.trim()));
const idOf = new Map(content.chars.map((char, id) => [char, id]));

const ROWS = 10; // bars
const SLICE = 12; // milliseconds of computing between two pictures
const TELL = 500; // milliseconds between two words on how far the reading is
const MARKS = { "\n": "↵", "\t": "⇥", " ": "␣" }; // for what one would not see
const NAMES = { "\n": "line break", "\t": "tab", " ": "space" };
const glyph = (char) => MARKS[char] ?? char;
const spoken = (char) => NAMES[char] ?? char;
const number = (value, digits = 3) => value.toFixed(digits);
const whole = (value) => value.toLocaleString("en");

// The text so far. after[i] is what the model computed when it had read ids[0] to
// ids[i], so ids[i + 1] was predicted by after[i].
let ids = [], after = [], given = 0;
let nats = []; // how surprising each was; it grows when they are shown
let chosen = null; // the place in the text that is looked into; null: the one to come
let head = { layer: 0, index: 0 };
let writer = null; // {reader, random} of the text that is being written
let turn = 0; // each reading or writing takes a number; an older one then stops
let writing = false;
let unread = true; // what is shown is not the prompt, or has more behind it
let reading = null; // {text, reader, seen}: how far the prompt has been read, for next time
let typed = null; // a timer: the prompt is read when the typing pauses

// --- reading and writing ---

/** The knobs of generation.py's `generate`; an empty field is off. */
function knobs() {
  const value = (id) => ($(id).value === "" ? null : Number($(id).value));
  return { temperature: value("temperature"), topK: value("top-k"), topP: value("top-p") };
}

/** Until the next picture: what is written shows, and keys are heard. */
function pause() {
  return new Promise((resolve) => requestAnimationFrame(resolve));
}

/** The prompt as ids, or null: then the page has said what is wrong with it. */
function encodedPrompt() {
  const chars = Array.from($("prompt").value);
  const unknown = [...new Set(chars.filter((char) => !idOf.has(char)))];
  let complaint = "";
  if (unknown.length) {
    const marks = content.chars.filter((char) => MARKS[char])
      .map((char, i) => `${glyph(char)} ${i ? "" : "is "}a ${spoken(char)}`).join(", ");
    complaint = `The model has never seen ${unknown.map(glyph).join(" ")}. Remove or replace it: `
      + `it knows ${content.chars.map(glyph).join("")}${marks && ` (${marks})`}`;
  } else if (!chars.length) {
    complaint = "Give at least one character to go on from, for example a line break.";
  }
  $("complaint").textContent = complaint;
  $("prompt").setAttribute("aria-invalid", Boolean(complaint));
  for (const id of ["write", "go-on", "one"]) $(id).disabled = Boolean(complaint);
  if (complaint) markOld(true);
  return complaint ? null : chars.map((char) => idOf.get(char));
}

/** What is shown belongs to the text before: a new one is wrong, or not yet read. */
function markOld(old) {
  old &&= ids.length > 0;
  document.querySelector("main").classList.toggle("old", old);
  $("old-text").textContent = old ? "Below is still the text before." : "";
  $("old-inside").textContent = old ? "This is still about the text before." : "";
}

/** Read the prompt and show how surprising it was. What has been read of the same text
 * is kept: a second call goes on from there. */
async function readPrompt() {
  clearTimeout(typed);
  const mine = ++turn, prompt = encodedPrompt(), text = $("prompt").value;
  if (!prompt) return false;
  if (reading?.text !== text) reading = { text, reader: new Reader(model), seen: [] };
  const { reader, seen } = reading;
  let since = performance.now(), told = since;
  while (seen.length < prompt.length) {
    seen.push(reader.read(prompt, seen.length + 1));
    const now = performance.now();
    if (now - since < SLICE) continue;
    if (now - told >= TELL) {
      markOld(true);
      $("status").textContent =
        `Reading your text: ${whole(seen.length)} of ${whole(prompt.length)} characters …`;
      told = now;
    }
    await pause();
    if (mine !== turn) return false;
    since = performance.now();
  }
  [ids, after, nats, given, chosen, writer] = [prompt, [...seen], [], prompt.length, null, null];
  unread = false;
  markOld(false);
  show();
  $("status").textContent = "";
  return true;
}

/** Write `count` characters behind the text, or until something else begins. */
async function writeOn(count) {
  if (!$("form").reportValidity() || (unread && !encodedPrompt())) return;
  setWriting(true); // from here on Write is Stop, while it reads, too
  if (unread && !(await readPrompt())) return;
  const mine = ++turn, pace = Number($("pace").value), first = ids.length;
  const settings = knobs();
  writer ??= { reader: new Reader(model), random: mulberry32(Number($("seed").value)) };
  after[first - 1] = writer.reader.read(ids); // it may begin elsewhere than readPrompt's
  const began = performance.now();
  let since = began, busy = 0;
  for (const seen of write(writer.reader, ids, count, settings, writer.random)) {
    after.push(seen);
    const now = performance.now(), written = ids.length - first;
    const early = written / pace * 1000 > now - began;
    if (now - since < SLICE && !early) continue;
    busy += now - since;
    show();
    do {
      await pause();
      if (mine !== turn) return;
    } while (written / pace * 1000 > performance.now() - began);
    since = performance.now();
  }
  busy += performance.now() - since;
  show();
  setWriting(false);
  report(first, busy);
}

/** Say what was written from `first` on, and how long the model took for it. */
function report(first, milliseconds) {
  const written = ids.slice(first).map((id) => content.chars[id]).join("");
  const n = ids.length - first, rate = Math.round(n / milliseconds * 1000);
  $("status").textContent = n === 1
    ? `One character: ${spoken(written)}`
    : `${n} characters; at full speed ${whole(rate)} a second.`;
  $("spoken").textContent = n > 1 ? `Written: ${written}` : "";
}

function setWriting(on) {
  writing = on;
  $("write").textContent = on ? "Stop" : "Write";
  $("go-on").disabled = $("one").disabled = on;
}

function stop() {
  turn++;
  setWriting(false);
  $("status").textContent = unread
    ? `Stopped; the ${whole(reading.seen.length)} characters read so far are kept.`
    : `Stopped after ${ids.length - given} characters.`;
}

function show() {
  showText();
  showInside();
}

// --- the text ---

/** −ln p of the character at a place, by the model's own probabilities; of the first,
 * which nothing predicts, 0. */
function surpriseAt(place) {
  return place ? -Math.log(probabilities(after[place - 1].logits)[ids[place]]) : 0;
}

/** One character of a text, shaded from 0 to 1; a line break is shown and done. */
function characterSpan(char, depth, title) {
  const span = document.createElement("span");
  span.textContent = char === " " ? " " : glyph(char);
  span.style.setProperty("--depth", number(depth, 2));
  span.title = title;
  return span;
}

/** Add to the page what has come since; of a new text, all. */
function showText() {
  const box = $("text"), next = $("next");
  if (!nats.length) box.replaceChildren(next);
  for (let place = nats.length; place < ids.length; place++) {
    nats.push(surpriseAt(place));
    const char = content.chars[ids[place]];
    const size = place ? `${number(nats[place], 2)} nats` : "nothing to predict it from";
    // Fully shaded at 1.5 times what guessing costs.
    const depth = Math.min(1, nats[place] / (1.5 * Math.log(content.chars.length)));
    const span = characterSpan(char, depth, `${spoken(char)}: ${size}`);
    span.dataset.nats = place ? number(nats[place], 1) : "–";
    span.classList.toggle("given", place < given);
    asOption(span, place, `${spoken(char)}, ${size}`);
    if (!place || /\s/.test(content.chars[ids[place - 1]])) next.before(newWord());
    next.previousElementSibling.append(span);
    if (char === "\n") next.before("\n");
  }
  asOption(next, ids.length, "the character to come");
  select();
  if (writing && chosen === null) box.scrollTop = box.scrollHeight;
  showMeans();
}

/** A word with the space behind it: its numbers stay on one line. */
function newWord() {
  const word = document.createElement("span");
  word.className = "word";
  word.setAttribute("role", "none");
  return word;
}

function asOption(span, place, label) {
  span.setAttribute("role", "option");
  span.setAttribute("aria-label", label);
  span.dataset.place = place;
}

/** Mark what is chosen; it alone is reached with the Tab key. */
function select() {
  for (const old of $("text").querySelectorAll("[tabindex='0']")) {
    old.tabIndex = -1;
    old.setAttribute("aria-selected", false);
  }
  const span = $("text").querySelector(`[data-place="${chosen ?? ids.length}"]`);
  span.tabIndex = 0;
  span.setAttribute("aria-selected", true);
  return span;
}

function choose(place) {
  chosen = place >= ids.length ? null : Math.max(0, place);
  select().focus();
  showInside();
}

/** The mean surprise of the user's text and of the model's. */
function showMeans() {
  const part = (name, from, to) => {
    const sum = nats.slice(from, to).reduce((a, b) => a + b, 0);
    return to > from ? `${name}: ${number(sum / (to - from), 2)} nats per character` : "";
  };
  const parts = [part("Your text", 1, given), part("what it wrote", given, ids.length)];
  $("surprise").textContent = parts.filter(Boolean).join("; ");
}

// --- inside ---

/** How the chosen character was predicted, or the one to come will be. */
function showInside() {
  const place = chosen ?? ids.length, seen = after[place - 1];
  const actual = chosen === null ? null : ids[place];
  $("place").textContent = describe(place, actual);
  $("parts").hidden = !seen;
  if (!seen) return;
  for (const id of ["bars", "lens"]) $(id).tBodies[0].replaceChildren();
  $("attention").replaceChildren();
  showBars(seen, actual);
  showHeads(seen);
  showAttention(seen, place);
  showLens(seen, actual);
}

function describe(place, actual) {
  if (place === 0) {
    return "Nothing comes before the first character: the model has no prediction for it.";
  }
  const from = Math.max(0, place - 20);
  const before = ids.slice(from, place).map((id) => glyph(content.chars[id])).join("");
  const what = actual === null ? "What comes next"
    : `How “${glyph(content.chars[actual])}” was predicted (${number(nats[place], 2)} nats)`;
  return `${what}, after “${from ? "…" : ""}${before}”, with ${place - after[place - 1].start} `
    + "characters in view.";
}

function row(body, ...cells) {
  const line = body.insertRow();
  for (const cell of cells) line.insertCell().append(cell);
  return line;
}

function showBars(seen, actual) {
  const settings = $("form").checkValidity() ? knobs() : {}; // or half typed
  const probs = probabilities(seen.logits), drawn = probabilities(seen.logits, settings);
  const likeliest = ranked(probs), shown = likeliest.slice(0, ROWS);
  if (actual !== null && !shown.includes(actual)) shown.push(actual);
  const body = $("bars").tBodies[0];
  for (const id of shown) {
    const bar = document.createElement("span");
    bar.className = "bar";
    bar.style.setProperty("--share", number(probs[id]));
    bar.textContent = number(probs[id]);
    const name = glyph(content.chars[id]) + (id === actual ? " came" : "");
    row(body, name, bar, number(drawn[id])).classList.toggle("came", id === actual);
  }
  const rest = likeliest.filter((id) => !shown.includes(id));
  const sum = (of) => number(rest.reduce((total, id) => total + of[id], 0));
  if (rest.length) row(body, `${rest.length} others`, sum(probs), sum(drawn));
}

/** A radio button for each head. */
function buildHeads() {
  for (let layer = 0; layer < model.config.n_layer; layer++) {
    const line = document.createElement("div");
    line.className = "layer";
    line.style.setProperty("--heads", model.config.n_head);
    for (let index = 0; index < model.config.n_head; index++) {
      const label = document.createElement("label"), face = document.createElement("span");
      const name = document.createElement("small");
      const input = Object.assign(document.createElement("input"), {
        type: "radio", name: "head", value: `${layer}.${index}`, checked: !layer && !index,
      });
      name.textContent = `${layer + 1}.${index + 1}`;
      label.dataset.name = `layer ${layer + 1}, head ${index + 1}`;
      face.append(name, document.createElement("span"));
      label.append(input, face);
      line.append(label);
    }
    $("heads").append(line);
  }
}

/** Beside each head, the character that it looked at most. */
function showHeads(seen) {
  const labels = $("heads").querySelectorAll("label");
  seen.attention.flat().forEach((weights, i) => {
    const most = ranked(weights)[0], char = content.chars[ids[seen.start + most]];
    const weight = number(weights[most], 2), back = weights.length - 1 - most;
    const [input, face] = labels[i].children;
    face.lastChild.textContent = `${glyph(char)} ${weight}`;
    labels[i].title = `${labels[i].dataset.name}: ${weight} on ${spoken(char)}, ${back} back`;
    input.setAttribute("aria-label", labels[i].title);
  });
}

/** The text in view, shaded by the weights of the chosen head. */
function showAttention(seen, place) {
  const weights = seen.attention[head.layer][head.index], most = Math.max(...weights);
  weights.forEach((weight, t) => {
    const char = content.chars[ids[seen.start + t]];
    const span = characterSpan(char, weight / most, `${spoken(char)}: ${number(weight)}`);
    $("attention").append(span, char === "\n" ? "\n" : "");
  });
  const far = (t) => place - 1 - seen.start - t;
  const top = ranked(weights).slice(0, 5).map((t) =>
    `“${glyph(content.chars[ids[seen.start + t]])}” ${far(t)} back ${number(weights[t], 2)}`);
  const name = `Layer ${head.layer + 1}, head ${head.index + 1}`;
  $("looked").textContent = `${name}, from the last character read: ${top.join(", ")}.`;
}

/** The logit lens: what each stage would have said. */
function showLens(seen, actual) {
  $("lens-actual").textContent = actual === null ? "" : `p of “${glyph(content.chars[actual])}”`;
  seen.streams.forEach((stream, layer) => {
    const probs = probabilities(model.logits(stream));
    const likeliest = ranked(probs).slice(0, 3)
      .map((id) => `${glyph(content.chars[id])}\u00a0${number(probs[id], 2)}`).join("  ");
    row($("lens").tBodies[0], layer ? `block ${layer}` : "embedding", likeliest,
      actual === null ? "" : number(probs[actual]));
  });
}

// --- what the reader does ---

$("prompt").addEventListener("input", () => {
  clearTimeout(typed);
  turn++; // whatever reads or writes the text before stops
  setWriting(false);
  unread = true;
  $("status").textContent = "";
  encodedPrompt();
  typed = setTimeout(readPrompt, 250);
});
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (writing) return stop();
  unread = true; // Write begins anew
  writeOn(Number($("count").value));
});
$("go-on").addEventListener("click", () => writeOn(Number($("count").value)));
$("one").addEventListener("click", () => writeOn(1));
for (const id of ["temperature", "top-k", "top-p"]) $(id).addEventListener("input", showInside);
$("numbers").addEventListener("change", (event) =>
  $("text").classList.toggle("numbers", event.target.checked));
$("text").addEventListener("click", (event) => {
  const span = event.target.closest("[role=option]");
  if (span) choose(Number(span.dataset.place));
});
$("text").addEventListener("keydown", (event) => {
  const here = chosen ?? ids.length;
  const to = { ArrowLeft: here - 1, ArrowRight: here + 1, ArrowUp: here - 10,
    ArrowDown: here + 10, Home: 0, End: ids.length }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose(to);
});
$("heads").addEventListener("change", (event) => {
  const [layer, index] = event.target.value.split(".").map(Number);
  head = { layer, index };
  const place = chosen ?? ids.length;
  $("attention").replaceChildren();
  showAttention(after[place - 1], place);
});

buildHeads();
$("norm").textContent = model.config.rms_norm ? "RMSNorm" : "LayerNorm";
$("prompt").value = content.prompt;
readPrompt();
