// Following one character through the whole model: the sheets in the order in which it passes
// them, each step lit up in the drawing. The walk goes through one head; of the other blocks
// it tells what they add. Space or → goes on, ← back, Esc ends it.
"use strict";

let walking = false;
let throughHead = "head 1.1"; // the head that the walk looks at
let stepsOf = []; // of each stop of the walk, how many steps its sheet has

const pace = () => (walking ? Number($("walk-pace").value) : 1);

/** The stops, by name: what is watched at each. */
function stops() {
  const { n_layer } = active.whole.config, { layer, index } = partOf(throughHead);
  const blocks = Array.from({ length: n_layer }, (_, i) => {
    const n = i + 1, at = `${n}.${index + 1}`;
    return i !== layer ? [`block ${n}`]
      : [`norm ${n}`, `query ${at}`, `head ${at}`, `heads ${at}`, `feed-forward ${n}`, `add ${n}`];
  });
  return ["embedding", ...blocks.flat(), `norm ${n_layer + 1}`, "logits"];
}

/** From now on the walk goes through this head; or, for another part, through its block. */
function through(name) {
  const { kind, layer } = partOf(name), { index } = partOf(throughHead);
  if (kind === "head") throughHead = name;
  if (kind === "feed-forward") throughHead = nameOf({ kind: "head", layer, index });
}

/** steps(name): how many steps a stop has. Only the walk needs to know. */
function countSteps(steps) {
  stepsOf = walking ? stops().map(steps) : [];
}

/** How many steps of the walk have been, this one included. */
function stepNumber() {
  return sum(stepsOf.slice(0, stops().indexOf(watched))) + watching.at;
}

/** Go to another stop, before (−1) or behind (1) this one; at: its step, or null for its last
 * -> whether there is one. */
async function enter(by, at) {
  const next = stops()[stops().indexOf(watched) + by];
  if (!next) return false;
  await stand(next, at);
  return true;
}

/** Go to a step, counted from 1 at the beginning of the walk. */
async function goTo(number) {
  const all = stops();
  let i = 0;
  for (; i + 1 < all.length && number > stepsOf[i]; i++) number -= stepsOf[i];
  await stand(all[i], Math.max(1, number));
}

async function stand(name, at) {
  watched = name;
  watching.entering = at ?? Infinity;
  await showInside();
}

/** One step on (1) or back (−1), by hand: it is no longer played. */
async function walkOn(by) {
  watching.stop();
  const at = watching.at + by;
  if (at >= 1 && at <= watching.sheet.steps.length) watching.step(at);
  else await enter(by, by > 0 ? 1 : null);
}

/** Begin at the first step, or at another, counted from 1. */
async function startWalk(number = 1) {
  if (sides.some((side) => side.writing)) stop();
  for (const { film } of views) film?.pause();
  watching.stop();
  if (!positionOf(active)) return;
  through(watched);
  if (active.chosen === null && midWord(active)) choose(active, midWord(active));
  walking = true;
  document.body.classList.add("walking");
  sheetKey = {}; // so that the steps are counted
  await stand(stops()[0], 1);
  if (number > 1) await goTo(number);
  drawing.fit();
  $("watch").focus({ preventScroll: true });
  $("watch").parentElement.scrollIntoView({ behavior: still ? "auto" : "smooth" });
  showStep();
}

/** Out of it: the head that was looked at stays. */
async function endWalk() {
  if (!walking) return false;
  watching.stop();
  walking = false;
  document.body.classList.remove("walking");
  drawing?.light([]); // another stage of the training has not drawn its own yet
  drawing?.fit();
  watched = throughHead;
  await showInside();
  remember();
  return true;
}

/** What the walk shows of a step besides its sheet: the light in the drawing, the count. */
function showStep() {
  if (!walking) return;
  const { sheet, at } = watching, lit = drawing.light(sheet.steps[at - 1].lit);
  pointAt(lit);
  const number = stepNumber(), all = sum(stepsOf);
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

for (const button of document.querySelectorAll(".follow")) {
  button.addEventListener("click", async () => {
    if (!await edited()) return;
    await startWalk();
    if (!still) watching.play();
  });
}
$("step-back").addEventListener("click", () => walkOn(-1));
$("step-on").addEventListener("click", () => walkOn(1));
$("walk-end").addEventListener("click", endWalk);

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
