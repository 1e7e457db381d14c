// Following one character through the whole model: the sheets in the order in which it passes
// them, each step lit up in the drawing. The walk goes through one head; of the other blocks
// it tells what they add. Space or → goes on, ← back, Esc ends it.
"use strict";

const STRONG = .5; // of its weight at one distance: a habit that one sees
const CALM_FRAMES = 6; // pictures in which nothing scrolls: it has ended
let walking = false;
let throughHead = "head 1.1"; // the head that the walk looks at
let stepsOf = []; // of each stop of the walk, the steps of its sheet that it leads through

/** The stops, by name: what is watched at each. */
function stops() {
  const { n_layer } = active.whole.config, { layer, index } = partOf(throughHead);
  const blocks = Array.from({ length: n_layer }, (_, i) => {
    const n = i + 1, at = `${n}.${index + 1}`;
    return i !== layer ? [`block ${n}`]
      : [`norm ${n}`, `query ${at}`, `head ${at}`, `heads ${at}`, `feed-forward ${n}`, `add ${n}`];
  });
  return ["embedding", ...blocks.flat(), ...($("every").checked ? [`norm ${n_layer + 1}`] : []),
    "logits"];
}

/** From now on the walk goes through this head; or, for another part, through its block. */
function through(name) {
  const { kind, layer } = partOf(name), { index } = partOf(throughHead);
  if (kind === "head") throughHead = name;
  if (kind === "feed-forward") throughHead = nameOf({ kind: "head", layer, index });
}

/** steps(name): the steps of a stop. The walk leads through all, or through those that can
 * stand for the ones before them. Only the walk needs to know. */
function countSteps(steps) {
  const led = (name) => steps(name).map(({ brief }, i) => ($("every").checked || brief ? i + 1 : 0))
    .filter(Boolean);
  stepsOf = walking ? stops().map(led) : [];
}

const countOf = (some) => sum(some.map(({ length }) => length));
const stepsHere = () => stepsOf[stops().indexOf(watched)] ?? [];
/** The step to which a step of the sheet leads: itself, or the next that is not left out. */
const ledTo = (at) => stepsHere().find((step) => step >= at) ?? stepsHere().at(-1) ?? at;
const isLastStep = () => walking && watched === "logits" && watching.at === stepsHere().at(-1);

/** How many steps of the walk have been, this one included. */
function stepNumber() {
  return countOf(stepsOf.slice(0, stops().indexOf(watched)))
    + Math.max(1, stepsHere().filter((at) => at <= watching.at).length);
}

/** The step before one to which the walk leads; without a walk, the one before it. */
const ledBefore = (at) => (walking ? stepsHere().findLast((other) => other < at) ?? 0 : at - 1);

/** Go to another stop, before (−1) or behind (1) this one, to its last step or its first ->
 * whether there is one. */
async function enter(by) {
  const i = stops().indexOf(watched) + by, next = stops()[i];
  if (!next) return false;
  await stand(next, stepsOf[i].at(by < 0 ? -1 : 0));
  return true;
}

/** Go to a step, counted from 1 at the beginning of the walk. */
async function goTo(number) {
  const all = stops();
  let i = 0;
  for (; i + 1 < all.length && number > stepsOf[i].length; i++) number -= stepsOf[i].length;
  await stand(all[i], stepsOf[i][Math.max(1, number) - 1] ?? stepsOf[i].at(-1));
}

async function stand(name, at) {
  watched = name;
  watching.entering = at;
  await showInside();
  if (watching.entering === null || sheetKey.watched !== name) return;
  watching.entering = null; // it was shown already
  watching.step(ledTo(at));
}

/** One step on (1) or back (−1), by hand: it is no longer played. */
async function walkOn(by) {
  watching.stop();
  const at = by > 0 ? stepsHere().find((step) => step > watching.at)
    : stepsHere().findLast((step) => step < watching.at);
  if (at) watching.step(at);
  else await enter(by);
}

/** Begin at the first step, or at another, counted from 1; what is played then comes only when
 * the page stands still. */
async function startWalk(number = 1, plays = false) {
  if (sides.some((side) => side.writing)) stop();
  for (const { film } of views) film?.pause();
  watching.stop();
  if (!positionOf(active)) return;
  through(watched);
  if (active.chosen === null && midWord(active)) choose(active, midWord(active));
  walking = true;
  document.body.classList.add("walking");
  sheetKey = {}; // so that the steps are counted
  watching.held = plays;
  await stand(stops()[0], 1);
  watching.held = false;
  if (number > 1) await goTo(number);
  drawing.fit();
  $("watch").focus({ preventScroll: true });
  $("watch").parentElement.scrollIntoView({ behavior: still ? "auto" : "smooth" });
  showStep();
  await scrolled();
}

/** Until the page stands still, so that nothing begins while it moves. */
async function scrolled() {
  for (let calm = 0, was = scrollY; calm < CALM_FRAMES; was = scrollY) {
    await pause();
    calm = scrollY === was ? calm + 1 : 0;
  }
}

/** Out of it: the head that was looked at stays. */
async function endWalk() {
  if (!walking) return false;
  watching.stop();
  walking = false;
  document.body.classList.remove("walking");
  showWays(false);
  $("onward").hidden = true;
  drawing?.reveal();
  drawing?.light([]); // another stage of the training has not drawn its own yet
  drawing?.fit();
  watched = throughHead;
  await showInside();
  remember();
  return true;
}

/** What the walk shows of a step besides its sheet: the light in the drawing, the count. */
function showStep() {
  if (!walking) {
    const tile = drawing?.lights.get(watched === "logits" ? "last biases" : watched);
    if (tile) pointAt(tile);
    return;
  }
  const { sheet, at } = watching, step = sheet.steps[at - 1];
  const lit = sheet.steps.slice(ledBefore(at), at).flatMap((one) => one.lit);
  pointAt(drawing.light([...new Set(lit)], step.shown ?? lit));
  drawing.reveal();
  paintTrail();
  const number = stepNumber(), all = countOf(stepsOf);
  $("walk-count").textContent = `${number} of ${all}`;
  $("walk-count").style.setProperty("--done", number / all);
  $("step-back").setAttribute("aria-disabled", number === 1);
  $("step-on").setAttribute("aria-disabled", number === all);
  if (!watching.playing) $("spoken").textContent = $("says").textContent;
  remember();
}

/** The sheet points at what is lit. */
function pointAt(lit) {
  const middle = (of) => of.getBoundingClientRect().left + of.getBoundingClientRect().width / 2;
  const box = $("drawing");
  box.scrollLeft += middle(lit) - middle(box); // where the model is wider than the screen
  const from = $("watch").getBoundingClientRect().left;
  $("watch").style.setProperty("--tip", `${middle(lit) - from}px`);
}

/** The heads, in the order in which one is offered: first those of block 1, which read the
 * letters themselves, and of these first who has a habit, then who adds most to what comes. */
function headsToFollow() {
  const known = habits(active), shares = drawing.shares;
  const first = (name) => Number(partOf(name).layer > 0);
  const habit = (name) => Number(Math.max(...known.get(name).slice(1)) > STRONG);
  return [...known.keys()].sort((a, b) => first(a) - first(b) || habit(b) - habit(a)
    || shares.get(b) - shares.get(a));
}

/** From the beginning, through a head of block 1. */
async function follow() {
  if (!positionOf(active)) return;
  if (active.chosen === null && midWord(active)) {
    choose(active, midWord(active));
  }
  if (tourAt === null) endTour(); // the offer has done its work
  await showInside(); // or the drawing may still tell of another
  [watched] = headsToFollow();
  await startWalk(1, !still);
  if (!still && walking && stepNumber() === 1) watching.play();
}

/** The walk for the character behind this one, which is written if it is not there yet: what
 * was just drawn goes in. */
async function followNext() {
  const next = positionOf(active) + 1, missing = next + 1 - active.ids.length;
  await endWalk();
  if (missing > 0) await write(missing);
  choose(active, next);
  await showInside();
  await follow();
}

for (const button of document.querySelectorAll(".follow")) {
  button.addEventListener("click", async () => {
    if (await edited()) follow();
  });
}
$("next-one").addEventListener("click", followNext);
$("other-head").addEventListener("click", () => {
  const all = headsToFollow();
  return watch(all[(all.indexOf(throughHead) + 1) % all.length]);
});
$("every").addEventListener("change", async () => {
  watching.stop();
  sheetKey = {}; // so that the steps are counted
  if (!stops().includes(watched)) watched = "logits";
  await stand(watched, watching.at);
});
$("step-back").addEventListener("click", () => walkOn(-1));
$("step-on").addEventListener("click", () => walkOn(1));
$("walk-end").addEventListener("click", endWalk);
$("more").addEventListener("click", () => showWays($("more").ariaExpanded === "false"));

/** On a narrow screen what is seldom needed stands behind one button. */
function showWays(on) {
  $("more").ariaExpanded = on;
}

/** → and ← go on and back, wherever no list or field needs them; so does Space, which presses
 * a button that has the focus. */
document.addEventListener("keydown", (event) => {
  const { key, target } = event, by = { ArrowRight: 1, " ": 1, ArrowLeft: -1 }[key];
  if (!walking || !by || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest("input, select, textarea, [role=option]")) return;
  if (key === " " && target.closest("button, summary")) return;
  event.preventDefault();
  walkOn(by);
});
