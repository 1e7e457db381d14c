// What changes a text: reading, writing, another training, a part that is switched off.
"use strict";

function show(side) {
  viewOf(side).show();
  showButtons();
  const { at, took } = painted, since = performance.now() - at;
  if (side === active && (!side.writing || since > CALM + 5 * took)) showInside();
  else if (side === active && side.chosen === null) showLast(side);
}

function showButtons() {
  const writing = sides.some((side) => side.writing);
  $("go").textContent = writing ? "Stop" : $("prompt").hidden ? "Go on" : "Write";
  $("one").setAttribute("aria-disabled", writing);
}

/** Begin all sides with a text, and read it. */
async function begin(ids) {
  await endWalk();
  $("card").hidden = true;
  await Promise.all(sides.map((side) => {
    side.begin(ids, field("seed"));
    return side.run(side.read(), () => show(side));
  }));
}

/** Let all sides write `count` characters behind what they have. */
async function write(count, pace = still ? Infinity : Number($("pace").value)) {
  $("status").textContent = "";
  await Promise.all(sides.map((side) => writeOne(side, count, pace)));
  remember();
}

async function writeOne(side, count, pace) {
  if (walking) await endWalk();
  const first = side.ids.length, n = Math.min(count, LIMIT - first);
  side.stop();
  $("card").hidden = true;
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
  if (n < count) $("status").textContent = `A text here ends at ${LIMIT.toLocaleString("en")} `
    + `${content.unit}s.`;
}

/** Read what the whole model says, too, if a part of it is off, to compare. Nothing of it is
 * seen before all is read, so nothing is drawn. */
function account(side) {
  const { intact } = side;
  return side.run(side.off.size ? intact.steps() : [], () => {
    if (intact.nats.length === side.ids.length) show(side);
  });
}

function stop() {
  for (const side of sides) {
    if (side.writing) side.stop();
    show(side);
  }
  $("status").textContent = `Stopped after ${active.ids.length - active.given} ${content.unit}s.`;
  remember();
}

/** Write behind the same beginning once more. */
async function again() {
  await begin(active.ids.slice(0, active.given));
  await write(field("count"));
}

/** Another stage of the training: the same beginning and seed, written by that one. Whoever
 * drags on while it writes still wants the whole text, and the position that was chosen. */
async function train(side, stage) {
  const { given, ids, chosen } = side;
  const wish = (side.writing && side.wish) || { count: ids.length - given, chosen };
  side.stage = stage;
  side.begin(ids.slice(0, given), field("seed"));
  side.wish = wish;
  drawing = null;
  await writeOne(side, wish.count, Infinity);
  if (side.wish !== wish || side.writing) return;
  side.chosen = wish.chosen;
  show(side);
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

/** Beyond the context, drop one character at a time or the older half: all is read again. */
async function slideWindows(on) {
  for (const side of sides) {
    side.slide = on;
    side.forget();
    if (!side.writing && await side.run(reread(side), () => show(side))) await account(side);
  }
  remember();
}

/** Read all, but first what is looked at. */
function* reread(side) {
  if (side.ids.length && positionOf(side)) yield* side.look(positionOf(side));
  yield* side.read();
}
