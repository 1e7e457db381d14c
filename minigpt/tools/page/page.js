// The page: what the reader does, and what is then shown.
"use strict";

const $ = (id) => document.getElementById(id);
const content = JSON.parse($("content").textContent);
const idOf = new Map(content.chars.map((char, id) => [char, id]));
const ROWS = 10; // bars
const LIMIT = 10000; // characters of a text
const PLAIN = { "’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "--", "…": "...",
  "\u00a0": " ", "\t": " ", "\r": "" }; // what telephones put in by themselves
const number = (value, digits = 3) => value.toFixed(digits);
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

// --- what there is ---

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
let painted = { at: 0, took: 0 }; // when the maps were painted last, in milliseconds
let typed = null; // a timer: the text is read when the typing pauses

/** The knobs of generation.py's `generate`; one at its end is off. */
function knobs() {
  const value = (id) => Number($(id).value);
  return {
    temperature: value("temperature"),
    topK: value("top-k") < content.chars.length ? value("top-k") : null,
    topP: value("top-p") < 1 ? value("top-p") : null,
  };
}

/** The number in a field, within its bounds. */
function field(id) {
  const { min, max, value, defaultValue } = $(id);
  const whole = value === "" ? Number(defaultValue) : Math.round(Number(value));
  return $(id).value = Math.min(Math.max(whole, Number(min)), Number(max));
}

const textOf = (ids) => ids.map((id) => content.chars[id]).join("");
const plainly = (text) => text.replaceAll("\n", "↵"); // in a sentence
const placeOf = (side) => side.chosen ?? side.ids.length;

// --- the text of a side ---

/** What one sees of a side: its name, its training, its text and what that cost. */
class SideView {
  constructor(side, { name, snapshots }) {
    this.side = side;
    const box = this.box = document.createElement("article");
    box.className = "side";
    const add = (tag, parts) => {
      const element = Object.assign(document.createElement(tag), parts);
      box.append(element);
      return element;
    };
    if (sides.length > 1) add("h3", { textContent: name });
    if (snapshots.length > 1) {
      const label = add("label", { className: "training" });
      this.step = document.createElement("span");
      this.slider = Object.assign(document.createElement("input"), {
        type: "range", min: 0, max: snapshots.length - 1, value: side.stage });
      this.slider.addEventListener("input", () => train(side, Number(this.slider.value)));
      label.append(this.step, this.slider);
    }
    const text = add("div", { className: "text", lang: "", translate: false });
    text.setAttribute("aria-label", name ? `the text of ${name}` : "the text");
    this.text = text;
    this.list = new Characters(text, {
      choose: (place) => choose(side, place),
      peek: (place) => side === active && peekAt(place),
      end: "▮",
    });
    text.addEventListener("dblclick", () => edit());
    text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      edit();
    });
    this.means = add("p", { className: "means" });
  }

  /** Add what has come since; of a new text, all. */
  show() {
    const { side, list } = this, { ids, given, reading, chosen } = side;
    if (this.ids !== ids) {
      list.clear();
      this.ids = ids;
    }
    if (this.reading !== reading) [this.reading, this.shaded] = [reading, 0];
    while (list.spans.length < ids.length) {
      list.push(content.chars[ids[list.spans.length]]);
      list.spans.at(-1).classList.toggle("given", list.spans.length <= given);
    }
    for (; this.shaded < reading.nats.length; this.shaded++) this.shade(this.shaded);
    list.select(placeOf(side));
    if (side.writing && chosen === null) this.text.scrollTop = this.text.scrollHeight;
    this.box.classList.toggle("active", side === active && sides.length > 1);
    if (this.slider) {
      const { step } = side.snapshots[side.stage];
      const words = step === "end" ? "finished" : `after ${step.toLocaleString("en")} steps`;
      this.step.textContent = `Training: ${words}`;
      this.slider.setAttribute("aria-valuetext", words);
      this.slider.value = side.stage;
    }
    this.means.textContent = sentence(reading.mean(0, given), reading.mean(given, ids.length));
  }

  shade(place) {
    const nats = this.reading.nats[place], char = content.chars[this.ids[place]];
    const size = place ? `${number(nats, 2)} nats` : "nothing to predict it from";
    // Fully shaded at 1.5 times what guessing costs.
    const depth = Math.min(1, nats / (1.5 * Math.log(content.chars.length)));
    this.list.shade(place, depth, `${spoken(char)}, ${size}`);
    this.list.spans[place].dataset.nats = place ? number(nats, 1) : "–";
  }
}

/** The mean surprise of the reader's text and of the model's; null is none. */
function sentence(given, written) {
  const parts = [];
  if (given !== null) parts.push(`${number(given, 2)} given`);
  if (written !== null) parts.push(`${number(written, 2)} written`);
  const guess = number(Math.log(content.chars.length), 2);
  return parts.length
    ? `Surprise in nats per character: ${parts.join(", ")} (a blind guess: ${guess}).` : "";
}

const views = sides.map((side, i) => new SideView(side, content.models[i]));
const viewOf = (side) => views[sides.indexOf(side)];

function show(side) {
  viewOf(side).show();
  showButtons();
  if (side === active) showInside();
}

// --- writing and reading ---

function showButtons() {
  const writing = sides.some((side) => side.writing);
  $("go").textContent = writing ? "Stop" : "Go on";
  $("one").setAttribute("aria-disabled", writing);
}

/** Begin all sides with a text, and read it. */
async function begin(ids) {
  await Promise.all(sides.map((side) => {
    side.begin(ids, field("seed"));
    return side.run(side.read(), () => show(side));
  }));
}

/** Let all sides write `count` characters behind what they have. */
async function write(count, pace = Number($("pace").value)) {
  $("status").textContent = "";
  await Promise.all(sides.map((side) => writeOne(side, count, pace)));
  remember();
}

async function writeOne(side, count, pace) {
  const first = side.ids.length, n = Math.min(count, LIMIT - first);
  side.stop();
  side.writing = true;
  const began = performance.now();
  const early = () =>
    (side.ids.length - first) / pace * 1000 > performance.now() - began;
  const done = await side.run(side.write(n, knobs), () => show(side), early);
  if (!done) return;
  side.writing = false;
  await account(side);
  const written = textOf(side.ids.slice(first));
  $("spoken").textContent = `Written: ${written.length > 1 ? written : spoken(written)}`;
  if (n < count) $("status").textContent = `A text here ends at ${LIMIT.toLocaleString("en")} characters.`;
}

/** Read what the whole model says, too, if a part of it is off, to compare. */
function account(side) {
  return side.run(side.off.size ? side.intact.steps() : [], () => show(side));
}

function stop() {
  for (const side of sides) {
    if (side.writing) side.stop();
    show(side);
  }
  $("status").textContent = `Stopped after ${active.ids.length - active.given} characters.`;
  remember();
}

/** Write behind the same beginning once more. */
async function again() {
  await begin(active.ids.slice(0, active.given));
  await write(field("count"));
}

/** Another stage of the training: the same beginning and seed, written by that one. */
async function train(side, stage) {
  const { given, ids, chosen } = side, count = ids.length - given;
  side.stage = stage;
  side.begin(ids.slice(0, given), field("seed"));
  side.chosen = chosen;
  drawing = null;
  await writeOne(side, count, Infinity);
  remember();
}

/** Switch parts off or on: the text is read again, and what is written next is written so. */
async function switchParts(change) {
  const side = active;
  change(side);
  side.switchOff();
  if (!side.writing && await side.run(reread(side), () => show(side))) await account(side);
  remember();
}

/** Read all, but first what is looked at. */
function* reread(side) {
  if (side.ids.length && placeOf(side)) yield* side.look(placeOf(side));
  yield* side.read();
}

// --- editing ---

/** The text becomes a field; what the model wrote is selected, so that typing replaces it. */
function edit() {
  for (const side of sides) if (side.writing) side.stop();
  showButtons();
  $("prompt").value = textOf(active.ids);
  showField(true);
  $("prompt").focus();
  $("prompt").setSelectionRange(textOf(active.ids.slice(0, active.given)).length, LIMIT);
  $("status").textContent = "Type; Esc ends it, Ctrl+Enter lets the model write.";
}

function showField(on) {
  $("prompt").hidden = !on;
  $("sides").hidden = on;
  $("edit").textContent = on ? "Done" : "Type your own";
}

/** Back to the coloured text -> whether that was possible. */
async function edited() {
  if ($("prompt").hidden) return true;
  const ids = typedIds();
  if (!ids) return false;
  showField(false);
  $("status").textContent = "";
  if (textOf(ids) !== textOf(active.ids)) await begin(ids);
  for (const side of sides) show(side);
  remember();
  return true;
}

/** The field as ids, or null: then the page has said what is wrong, and offers to mend it. */
function typedIds() {
  const text = $("prompt").value, chars = Array.from(text);
  const unknown = [...new Set(chars.filter((char) => !idOf.has(char)))];
  const plain = (char) => Array.from(PLAIN[char] ?? "�");
  const plainable = unknown.filter((char) => plain(char).every((c) => idOf.has(c)));
  let said = "";
  const ways = [];
  if (unknown.length) {
    said = `The model has never seen ${unknown.map(glyph).join(" ")}.`;
    if (plainable.length) {
      ways.push([`Use plain characters for ${plainable.map(glyph).join(" ")}`,
        chars.map((c) => (plainable.includes(c) ? PLAIN[c] : c))]);
    }
    ways.push(["Leave out what it does not know", chars.filter((char) => idOf.has(char))]);
  } else if (!chars.length) {
    said = "Give at least one character to go on from.";
  } else if (chars.length > LIMIT) {
    said = `These are ${chars.length.toLocaleString("en")} characters; `
      + `this page reads ${LIMIT.toLocaleString("en")}.`;
    ways.push(["Keep the last of them", chars.slice(-LIMIT)]);
  }
  complain(said, ways);
  return said ? null : chars.map((char) => idOf.get(char));
}

function complain(said, ways) {
  $("prompt").setAttribute("aria-invalid", Boolean(said));
  const line = document.createElement("p");
  line.textContent = said;
  $("complaint").replaceChildren(...(said ? [line] : []));
  for (const [name, chars] of ways) {
    const button = Object.assign(document.createElement("button"),
      { type: "button", textContent: name });
    button.addEventListener("click", () => {
      $("prompt").value = chars.join("");
      $("prompt").focus();
      $("prompt").dispatchEvent(new Event("input"));
    });
    $("complaint").append(button, " ");
  }
}

// --- inside ---

function choose(side, place) {
  const was = active;
  active = side;
  side.chosen = place >= side.ids.length ? null : Math.max(0, place);
  peeked = null;
  if (was !== side) drawing = null;
  for (const view of views) view.show();
  showInside().then(() => { $("spoken").textContent = $("place").textContent; });
  if (!side.writing) remember();
}

/** How the chosen character was predicted, or the one to come will be. */
async function showInside() {
  const mine = ++looking, side = active, place = placeOf(side);
  $("parts").hidden = !place;
  for (const id of ["back", "forth"]) {
    $(id).setAttribute("aria-disabled", id === "back" ? !place : side.chosen === null);
  }
  if (!place) {
    $("place").textContent = "Nothing comes before the first character: the model has no "
      + "prediction for it.";
    return;
  }
  const work = side.look(place);
  let step = work.next();
  for (let since = performance.now(); !step.done; step = work.next()) {
    if (performance.now() - since < SLICE) continue;
    await pause();
    if (mine !== looking) return;
    since = performance.now();
  }
  const { start, rows } = step.value, seen = rows[place - 1 - start];
  const actual = side.chosen === null ? null : side.ids[place];
  showBars(side, place, seen, actual);
  showDrawing(side, seen, actual);
  showMaps(side, place, start, rows);
}

function describe(side, place, probs, actual) {
  const before = textOf(side.ids.slice(Math.max(0, place - 20), place));
  const context = `“${place > 20 ? "…" : ""}${plainly(before)}”`;
  if (actual === null) return `What comes after ${context}? Drag a knob, and see.`;
  const char = `“${glyph(content.chars[actual])}”`, drawn = side.drawn[place];
  const says = `The model ${side.off.size ? "as it is now " : ""}gives ${char} after ${context} `
    + `a probability of ${number(probs[actual])}: ${number(-Math.log(probs[actual]), 2)} nats.`;
  if (!drawn) return says;
  const { temperature, topK, topP } = drawn.settings;
  const how = [`temperature ${temperature}`, topK && `top-k ${topK}`, topP && `top-p ${topP}`];
  return `${says} It was drawn with ${number(drawn.probability)}, at `
    + `${how.filter(Boolean).join(", ")}.`;
}

function showBars(side, place, seen, actual) {
  const probs = probabilities(seen.logits), knobbed = probabilities(seen.logits, knobs());
  $("place").textContent = describe(side, place, probs, actual);
  const likeliest = ranked(probs), shown = likeliest.slice(0, ROWS);
  if (actual !== null && !shown.includes(actual)) shown[shown.length - 1] = actual;
  const body = $("bars").tBodies[0];
  body.replaceChildren();
  const row = (name, share, model) => {
    const line = body.insertRow(), bar = document.createElement("span");
    bar.className = "bar";
    bar.style.setProperty("--share", number(share));
    bar.style.setProperty("--model", number(model));
    const [filled, mark] = [document.createElement("i"), document.createElement("i")];
    filled.className = "with";
    mark.className = "model-mark";
    bar.append(filled, number(share), mark);
    for (const cell of [name, bar, number(model)]) line.insertCell().append(cell);
    return line;
  };
  for (const id of shown) {
    const came = id === actual;
    row(glyph(content.chars[id]) + (came ? " came" : ""), knobbed[id], probs[id])
      .classList.toggle("came", came);
  }
  const rest = likeliest.filter((id) => !shown.includes(id));
  const sum = (of) => rest.reduce((total, id) => total + of[id], 0);
  if (rest.length) row(`${rest.length} others`, sum(knobbed), sum(probs));
}

function showDrawing(side, seen, actual) {
  const { model } = side.reading;
  drawing ??= new Drawing($("drawing"), model, {
    look: (chosen) => {
      head = chosen;
      showInside();
    },
    toggle: (name, on) => switchParts(({ off }) => (on ? off.delete(name) : off.add(name))),
  });
  const id = actual ?? ranked(seen.logits)[0], char = `“${glyph(content.chars[id])}”`;
  const last = seen.streams.length - 1;
  const lenses = seen.streams.map((stream, layer) => {
    const probs = probabilities(layer < last ? model.logits(stream) : seen.logits);
    const three = ranked(probs).slice(0, 3)
      .map((i) => `${glyph(content.chars[i])}\u00a0${number(probs[i], 2)}`).join("  ");
    return `It would say: ${three}`;
  });
  lenses.push(`It says ${char}: logit ${number(seen.logits[id], 2)}, `
    + `probability ${number(probabilities(seen.logits)[id])}`);
  drawing.update({ shares: model.shares(seen, id), off: side.off, lenses, head });
  $("model-title").textContent = `Inside: what each part adds to ${char}`;
  showCut(side);
}

/** What it costs that some parts are off. */
function showCut(side) {
  const off = [...side.off].sort(), { ids, reading, intact } = side;
  const now = reading.mean(0, ids.length), before = intact.mean(0, ids.length);
  const ready = intact.nats.length === ids.length && reading.nats.length === ids.length;
  $("rewrite").hidden = $("whole").hidden = !off.length;
  $("zero").checked = side.zero || !side.whole.hasMeans;
  $("zero").disabled = !side.whole.hasMeans;
  $("cut").textContent = !off.length
    ? "Everything is on. Take the tick out of a box: what does the text cost then?"
    : `Off: ${off.join(", ")}. `
      + (ready && now !== null ? `This text now costs ${number(now, 2)} nats per character; the `
        + `whole model pays ${number(before, 2)}.` : "…");
}

/** All heads at a glance, and the chosen one in large. */
function showMaps(side, place, start, rows) {
  const now = performance.now(), { at, took } = painted;
  if (side.writing && now - at < 10 * took) return; // large maps must not slow the writing
  const ink = colours(), chars = rows.map((_, t) => content.chars[side.ids[start + t]]);
  drawing.paint(rows, place - 1 - start, ink);
  paint($("map"), mapOf(rows, head), ink);
  const row = Math.min(peeked ?? place - 1 - start, rows.length - 1);
  showRow(rows, chars, row);
  painted = { at: now, took: performance.now() - now };
}

/** What one character of the window looks at. */
function showRow(rows, chars, row) {
  const weights = rows[row].attention[head.layer][head.index], most = Math.max(...weights);
  if (windowText.spans.length !== chars.length || windowText.chars !== chars.join("")) {
    windowText.clear();
    chars.forEach((char) => windowText.push(char));
    windowText.chars = chars.join("");
  }
  windowText.spans.forEach((span, t) => {
    const weight = weights[t] ?? 0, name = spoken(chars[t]);
    windowText.shade(t, weight / most, `${name}: ${number(weight)}`);
    span.classList.toggle("later", t > row);
  });
  windowText.select(row);
  $("mark").style.top = `${row / rows.length * 100}%`;
  $("mark").style.height = `${100 / rows.length}%`;
  const top = ranked(weights).slice(0, 4)
    .map((t) => `“${glyph(chars[t])}” ${back(row - t)} ${number(weights[t], 2)}`);
  const name = `head ${head.layer + 1}.${head.index + 1}`;
  $("look-title").textContent = `Where ${name} looks`;
  $("looked").textContent = `“${glyph(chars[row])}”, character ${row + 1} in view, `
    + `looks at ${top.join(", ")}.`;
}

const back = (places) => (places ? `${places} back` : "itself");

/** Look at another row of the window; null: back to the chosen one. */
function peekAt(place) {
  const start = placeOf(active) && active.startOf(placeOf(active) - 1);
  const row = place === null ? null : place - start;
  if (row !== null && (row < 0 || row >= windowText.spans.length)) return;
  peeked = row;
  showInside();
}

const windowText = new Characters($("window"), {
  choose: (row) => peekAt(row + active.startOf(placeOf(active) - 1)),
  peek: (row) => row !== null && peekAt(row + active.startOf(placeOf(active) - 1)),
});

// --- the address ---

/** What one sees as an address. A text that was written in several ways is given whole. */
function remember() {
  if (!active.ids.length) return;
  const { ids, given, drawn } = active, now = JSON.stringify([knobs(), active.made()]);
  const same = active.seed === field("seed") && drawn.slice(given).every(({ settings, made }) =>
    JSON.stringify([settings, made]) === now);
  const state = {
    text: textOf(same ? ids.slice(0, given) : ids), n: same ? ids.length - given : 0,
    seed: $("seed").value, at: active.chosen, side: sides.indexOf(active),
    zero: sides.some((side) => side.zero) ? 1 : null,
    sides: sides.map((side) => ({ off: side.off,
      step: side.snapshots.length > 1 ? side.snapshots[side.stage].step : null })),
  };
  for (const id of KNOBS) state[id] = $(id).value;
  history.replaceState(null, "", toAddress(state));
}

/** Show what an address says -> whether it says anything. */
async function restore() {
  const state = fromAddress(location.hash);
  if (!state) return false;
  for (const id of [...KNOBS, "seed"]) if (state[id]) $(id).value = state[id];
  showKnobs();
  active = sides[state.side] ?? sides[0];
  sides.forEach((side, i) => {
    const { off = [], step } = state.sides[i] ?? {};
    const stage = side.snapshots.findIndex((snapshot) => String(snapshot.step) === step);
    if (stage >= 0) side.stage = stage;
    const sizes = side.whole.sizes();
    side.off = new Set(off.filter((name) => /^(head|feed)/.test(name) && sizes.has(name)));
    side.zero = Boolean(state.zero);
  });
  $("prompt").value = state.text;
  const ids = typedIds();
  if (!ids) {
    showField(true);
    return true;
  }
  await begin(ids);
  await write(Math.min(Number(state.n) || 0, LIMIT), Infinity);
  if (state.at !== undefined) choose(active, Number(state.at));
  return true;
}

// --- what the reader does ---

function showKnobs() {
  const { temperature, topK, topP } = knobs();
  const words = [temperature ? number(temperature, 2) : "the likeliest",
    topK ?? "all", topP ? number(topP, 2) : "all"];
  KNOBS.forEach((id, i) => {
    $(id).nextElementSibling.textContent = words[i];
    $(id).setAttribute("aria-valuetext", words[i]);
  });
}

const acts = {
  go: () => (sides.some((side) => side.writing) ? stop() : write(field("count"))),
  one: () => write(1),
  again,
  rewrite: again,
  another: () => {
    $("seed").value = (field("seed") + 1) % 2 ** 32;
    return again();
  },
  whole: () => switchParts(({ off }) => off.clear()),
  back: () => choose(active, placeOf(active) - 1),
  forth: () => choose(active, placeOf(active) + 1),
  link: async () => {
    remember();
    const done = await copied(location.href);
    $("status").textContent = done
      ? "The link is copied. It needs this file: send both, or put the page on the web."
      : "This browser lets no page copy: take the link from the address line.";
  },
  "save-text": () => save(textPicture(viewOf(active).list.spans,
    active.ids.map((id) => content.chars[id]), document.title), "text.png"),
  "save-map": () => save(mapPicture($("map"), Array.from(windowText.chars),
    `${$("look-title").textContent}, in a GPT of ${content.count} weights`), "map.png"),
};
for (const [id, act] of Object.entries(acts)) {
  $(id).addEventListener("click", async () => {
    if ($(id).getAttribute("aria-disabled") !== "true" && await edited()) await act();
  });
}
$("edit").addEventListener("click", () => ($("prompt").hidden ? edit() : edited()));
$("prompt").addEventListener("input", () => {
  clearTimeout(typed);
  const ids = typedIds();
  if (ids) typed = setTimeout(() => $("prompt").hidden || begin(ids), 250);
});
for (const id of KNOBS) {
  $(id).addEventListener("input", () => {
    showKnobs();
    showInside();
  });
  $(id).addEventListener("change", remember);
}
$("zero").addEventListener("change", () =>
  switchParts((side) => { side.zero = $("zero").checked; }));
$("numbers").addEventListener("change", () =>
  $("sides").classList.toggle("numbers", $("numbers").checked));
$("map").addEventListener("pointermove", (event) => {
  const row = Math.floor(event.offsetY / $("map").clientHeight * windowText.spans.length);
  if (placeOf(active)) peekAt(row + active.startOf(placeOf(active) - 1));
});
for (const box of [$("map"), $("window")]) {
  box.addEventListener("pointerleave", () => peekAt(null));
}
document.addEventListener("keydown", async (event) => {
  if (event.key === "Escape") {
    if (sides.some((side) => side.writing)) stop();
    else if (!$("prompt").hidden && await edited()) viewOf(active).list.selected.focus();
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && await edited()) again();
});
window.addEventListener("hashchange", restore);

for (const example of content.examples) {
  const button = Object.assign(document.createElement("button"),
    { type: "button", textContent: plainly(example) });
  button.addEventListener("click", async () => {
    showField(false);
    complain("", []);
    await begin(Array.from(example, (char) => idOf.get(char)));
    await write(field("count"));
  });
  $("examples").append(button, " ");
}
$("sides").append(...views.map((view) => view.box));
$("top-k").max = $("top-k").value = content.chars.length;
showKnobs();

/** On the first visit it writes by itself; an address says what else to do. */
async function open() {
  if (await restore()) return;
  await begin(Array.from(content.prompt, (char) => idOf.get(char)));
  await write(field("count"), still ? Infinity : Number($("pace").value));
}
open();
