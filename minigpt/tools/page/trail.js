// The text above the walk: what goes in last of all, what a head looks at from there, and, when
// it is drawn, what comes behind it.
"use strict";

const GROW = 1400; // milliseconds in which arcs grow, and in which a character lands
let trail = { turn: 0, arcs: [], landed: null }; // what is drawn: weights, and a token

/** Show what the step does: at softmax the arcs grow, at the draw a character lands. */
async function paintTrail() {
  const mine = ++trail.turn, { kind } = partOf(watched), { sheet, at } = watching;
  if (!walking || !sheetKey.seen) return;
  const moves = (kind === "head" && sheet.steps[at - 1].name === "softmax") || isLastStep();
  const began = performance.now();
  for (let share = still || !moves ? 1 : 0; ; await pause()) {
    if (mine !== trail.turn || !walking) return;
    drawTrail(1 - (1 - share) ** 2);
    if (share === 1) return;
    share = Math.min(1, (performance.now() - began) * pace() / GROW);
  }
}

/** share: how far what moves has come. */
function drawTrail(share) {
  const canvas = $("trail"), scale = Math.max(1, devicePixelRatio), ink = colours();
  const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
  [canvas.width, canvas.height] = [wide * scale, high * scale];
  const pen = canvas.getContext("2d"), position = positionOf(active);
  const start = active.startOf(position - 1), base = high - 8, top = base - TAPE.font - 3;
  const { cell } = tape(active, position), right = wide - 3 * cell;
  pen.scale(scale, scale);
  pen.lineCap = "round";
  const tokens = tokensFrom(active, start, position - 1 - start);
  const middles = paintTape(pen, tokens, right, base, cell, ink);
  const arcs = (weights, colour, strength) =>
    paintArcs(pen, weights, middles, middles.at(-1), top, css(colour), strength);
  const looks = lookingAt(), mine = looks.find(({ name }) => name === throughHead);
  for (const { name, weights } of looks) if (name !== throughHead) arcs(weights, ink.rose, .6);
  trail.arcs = mine ? Array.from(mine.weights, (weight) => weight * share) : [];
  arcs(trail.arcs, ink.ink, 1);
  paintLanding(pen, { right, base, cell }, share, ink);
}

/** Which heads have looked by now, as far as the step shows it: [{name, weights}]. */
function lookingAt() {
  const { kind, layer } = partOf(watched), looked = [];
  const soft = watching.sheet.steps.findIndex(({ name }) => name === "softmax") + 1;
  sheetKey.seen.layers.forEach(({ heads }, n) => heads.forEach(({ weights }, index) => {
    const name = nameOf({ kind: "head", layer: n, index });
    const shown = kind === "head" ? name === watched && watching.at >= soft
      : (kind === "heads" || kind === "block") && n === layer;
    if (shown) looked.push({ name, weights });
  }));
  return looked;
}

/** Behind the last character its place is free; what is drawn falls into it. */
function paintLanding(pen, { right, base, cell }, share, ink) {
  const came = active.ids[positionOf(active)], lands = isLastStep() && came !== undefined;
  trail.landed = lands && share === 1 ? texts[came] : null;
  pen.strokeStyle = pen.fillStyle = css(ink.for);
  pen.lineWidth = 1;
  pen.globalAlpha = lands ? share : .6;
  pen.beginPath();
  pen.roundRect(right + 3, base - TAPE.font, cell + 2, TAPE.font + 6, 4);
  if (lands) pen.fill();
  else pen.stroke();
  pen.fillStyle = css(ink.paper);
  pen.font = `700 ${TAPE.font}px ui-monospace, monospace`;
  pen.textAlign = "center";
  if (lands) pen.fillText(glyph(texts[came]), right + 4 + cell / 2, base - (1 - share) * (base - 12));
  pen.globalAlpha = 1;
}
