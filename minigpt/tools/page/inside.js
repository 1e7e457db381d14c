// All that is shown of one prediction, of the chosen character or of the one to come: the bars
// on the right, the drawing of the model, the maps, and the sheet that can be watched.
"use strict";

const FIGURES = ["where", "neurons", "vectors", "pile"]; // beside the sheet; one is seen
let mapShown = null; // the rows of the large map
let pile = null; // the probabilities from which one is drawn, and the random number

function choose(side, position) {
  const was = active;
  active = side;
  side.chosen = position >= side.ids.length ? null : Math.max(0, position);
  peeked = null;
  if (was !== side) { // it may have fewer parts
    [drawing, watched] = [null, sharpest(side)];
    through(watched);
  }
  for (const view of views) view.show();
  showInside().then(() => {
    $("spoken").textContent = $("position").textContent;
    showCard();
  });
  if (!side.writing) remember();
}

/** How the chosen character was predicted, or the one to come will be. */
async function showInside() {
  const mine = ++looking, side = active, position = positionOf(side);
  $("parts").hidden = !position;
  for (const id of ["back", "forth"]) {
    $(id).setAttribute("aria-disabled", id === "back" ? !position : side.chosen === null);
  }
  if (!position) {
    $("glance").getContext("2d").clearRect(0, 0, $("glance").width, $("glance").height);
    $("seen").replaceChildren();
    $("position").textContent = `Nothing comes before the first ${content.unit}: the model has no `
      + "prediction for it.";
    return;
  }
  const work = side.look(position), { reading } = side;
  let step = work.next();
  for (let since = performance.now(); !step.done; step = work.next()) {
    if (performance.now() - since < SLICE) continue;
    await pause();
    if (mine !== looking || reading !== side.reading) return; // who changed the text looks again
    since = performance.now();
  }
  const now = performance.now(), { start, rows } = step.value, seen = rows[position - 1 - start];
  const actual = side.chosen === null ? null : side.ids[position], calm = !side.writing;
  viewOf(side).described = position;
  viewOf(side).mark();
  showBars(side, position, seen, actual);
  showDrawing(side, position, seen, actual);
  showMaps(side, position, start, rows);
  paintGlance(side, position, step.value);
  viewOf(side).fade(start);
  document.body.classList.toggle("resting", !calm);
  tellGlance(side, position, step.value, calm);
  if (calm) showWatch(side, position, start, rows);
  painted = { at: now, took: performance.now() - now };
}

function describe(side, position, probs, actual) {
  const before = textOf(side.ids.slice(Math.max(0, position - 20), position));
  const context = `“${position > 20 ? "…" : ""}${plainly(before)}”`;
  if (side.writing && actual === null) {
    return `It is writing. This is what it weighed for ${UNIT} ${position + 1}, after ${context}.`;
  }
  if (actual === null) return `What comes after ${context}? Drag a knob, and see.`;
  const char = `“${glyph(texts[actual])}”`, drawn = side.drawn[position];
  const says = `The model ${side.off.size ? "as it is now " : ""}gives ${char} after ${context} `
    + `a probability of ${number(probs[actual])}: ${number(-Math.log(probs[actual]), 2)} nats.`;
  if (!drawn) return says;
  const { temperature, topK, topP } = drawn.settings;
  const how = [`temperature ${temperature}`, topK && `top-k ${topK}`, topP && `top-p ${topP}`];
  return `${says} It was drawn with ${number(drawn.probability)}, at `
    + `${how.filter(Boolean).join(", ")}.`;
}

function showBars(side, position, seen, actual) {
  const probs = probabilities(seen.logits), knobbed = probabilities(seen.logits, knobs());
  $("position").textContent = describe(side, position, probs, actual);
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
    bar.append(filled, mark);
    for (const cell of [name, number(share), bar, number(model)]) line.insertCell().append(cell);
    return line;
  };
  for (const id of shown) {
    const came = id === actual;
    row(glyph(texts[id]) + (came ? " came" : ""), knobbed[id], probs[id])
      .classList.toggle("came", came);
  }
  const rest = likeliest.filter((id) => !shown.includes(id));
  const sum = (of) => rest.reduce((total, id) => total + of[id], 0);
  if (rest.length) row(`${rest.length} others`, sum(knobbed), sum(probs));
}

function showDrawing(side, position, seen, actual) {
  const { model } = side.reading;
  drawing ??= new Drawing($("drawing"), model, {
    watch,
    toggle: (name, on) => switchParts(({ off }) => (on ? off.delete(name) : off.add(name))),
  });
  const id = actual ?? ranked(seen.logits)[0], last = seen.streams.length - 1;
  const guesses = seen.streams.map((stream, layer) => {
    const probs = probabilities(layer < last ? model.logits(stream) : seen.logits);
    return ranked(probs).slice(0, 3).map((i) => ({ char: glyph(texts[i]), probability: probs[i] }));
  });
  const shares = model.shares(seen, id);
  drawing.update({ shares, off: side.off, guesses, watched,
    from: glyph(texts[side.ids[position - 1]]), to: glyph(texts[id]),
    logit: seen.logits[id], probability: probabilities(seen.logits)[id],
    knobbed: probabilities(seen.logits, knobs())[id] });
  $("model-title").textContent = `Inside: what each part adds to “${glyph(texts[id])}”`;
  showCut(side);
}

/** How much more surprised it is when some parts are off. */
function showCut(side) {
  const off = [...side.off].sort(), { ids, reading, intact } = side;
  const ready = intact.nats.length === ids.length && reading.nats.length === ids.length;
  $("switches").classList.toggle("idle", !off.length);
  $("zero").checked = side.zero || !side.whole.hasMeans;
  $("zero").disabled = !side.whole.hasMeans;
  $("cut").textContent = !off.length
    ? "Click a square to watch it compute. Take out its tick: how surprised is it then?"
    : `Off: ${off.length > 3 ? `${off.length} parts` : off.join(", ")}. `
      + (ready ? surprises(side) : side.writing ? "It writes without …" : "Reading the text again …");
}

/** The surprise without the parts and with them, of the whole text; or of what was written
 * without them, which is then easy for the one that wrote it. */
function surprises(side) {
  const { given, ids, reading, intact } = side, made = side.made(), written = side.drawn.slice(given);
  const [easy, hard] = [reading.mean(given), intact.mean(given)];
  if (written.length && written.every((one) => one.made === made) && easy < hard) {
    return `It wrote this text itself, so it finds it easy: ${number(easy, 2)} nats per character; `
      + `the whole model is more surprised: ${number(hard, 2)}.`;
  }
  const now = reading.mean(0, ids.length), before = intact.mean(0, ids.length);
  return now === null ? "" : `It is now surprised by ${number(now, 2)} nats per character of this `
    + `text; the whole model by ${number(before, 2)}.`;
}

/** All heads at a glance, and the watched one in large. */
function showMaps(side, position, start, rows) {
  const ink = colours(), tokens = rows.map((_, t) => texts[side.ids[start + t]]);
  drawing.paint(rows, position - 1 - start, ink);
  const part = partOf(watched), row = Math.min(peeked ?? position - 1 - start, rows.length - 1);
  const figure = { head: "where", "feed-forward": "neurons", logits: "pile" }[part.kind];
  for (const id of FIGURES) $(id).hidden = id !== (figure ?? "vectors");
  if (part.kind === "head") {
    mapShown = mapOf(rows, part);
    paintMap($("map"), mapShown, tokens, row, ink);
    showRow(rows, tokens, row, part);
  }
  if (part.kind === "feed-forward") paintNeurons(rows[position - 1 - start], part.layer, ink);
  if (part.kind === "logits") {
    const probs = probabilities(rows[position - 1 - start].logits, knobs());
    pile = { probs, chance: side.drawn[position]?.chance };
    paintDrawn();
  }
}

/** The pile; while the computation is watched, the random number falls at its last step. */
function paintDrawn() {
  if (partOf(watched).kind !== "logits" || !pile) return;
  const steps = watching.sheet?.steps ?? [], waits = walking || watching.playing;
  const at = steps.findIndex(({ name }) => name === "softmax") + 1;
  $("drawn-from").style.setProperty("--s", at);
  paintPile($("drawn-from"), pile.probs,
    waits && watching.at < steps.length ? undefined : pile.chance, colours());
}

/** What one character of the window looks at. */
function showRow(rows, tokens, row, { layer, index }) {
  const { weights } = rows[row].layers[layer].heads[index], most = Math.max(...weights);
  if (windowText.tokens?.join() !== tokens.join()) {
    windowText.clear();
    tokens.forEach((token) => windowText.push(token));
    windowText.tokens = tokens;
  }
  windowText.spans.forEach((span, t) => {
    const weight = weights[t] ?? 0, name = spoken(tokens[t]);
    windowText.shade(t, weight / most, `${name}: ${number(weight)}`);
    span.classList.toggle("later", t > row);
  });
  windowText.select(row);
  const top = ranked(weights).slice(0, 4)
    .map((t) => `“${glyph(tokens[t])}” ${back(row - t)} ${number(weights[t], 2)}`);
  $("looked").textContent = `“${glyph(tokens[row])}”, ${content.unit} ${row + 1} in view, `
    + `looks at ${top.join(", ")}.`;
}

/** How far behind the character that looks another one stands. */
function back(distance) {
  if (distance === 0) return "itself";
  return distance > 0 ? `${distance} back` : `${-distance} later`;
}

/** Look at another row of the window; null: back to the chosen one. */
function peekAt(position) {
  const start = positionOf(active) && active.startOf(positionOf(active) - 1);
  const row = position === null ? null : position - start;
  if (row !== null && (row < 0 || row >= windowText.spans.length)) return;
  peeked = row;
  showInside();
}

const windowText = new Characters($("window"), {
  choose: (row) => peekAt(row + active.startOf(positionOf(active) - 1)),
  peek: (row) => row !== null && peekAt(row + active.startOf(positionOf(active) - 1)),
});
