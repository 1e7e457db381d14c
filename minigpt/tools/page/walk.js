// Following one character through the whole model: its stops, in the order in which the character
// passes them. The walk goes through one head; of the other blocks it tells what they add. Space
// or → goes on, ← goes back, and Esc ends it.
import { UNIT } from "content";
import { $, still } from "elements";
import { sum } from "forward";
import { probabilities, ranked } from "generation";
import { mapOf } from "pictures";
import { stepsOf } from "sheets";
import { active, choose, knobs, onChange, partOf, positionOf, step, watch, watched } from "state";
import { texts } from "tokens";
import { isWriting, stop, write } from "writing";

const RIVAL = .1; // a probability: whoever has more of it might well have come
const FAR = 8; // characters back: as far as a head may have a habit
export let walking = false;
let text = null; // the ids that are walked through
export let through = "head 1.1"; // the head that the walk goes through

/** All steps: [{name, at}]. */
function steps() {
  const { n_layer } = active.whole.config, { layer, index } = partOf(through);
  const blocks = Array.from({ length: n_layer }, (_, i) => {
    const n = i + 1, head = `${n}.${index + 1}`;
    return i !== layer ? [`block ${n}`] : [`norm ${n}`, `query ${head}`, `head ${head}`,
      `heads ${head}`, `feed-forward ${n}`, `add ${n}`];
  });
  return ["embedding", ...blocks.flat(), "logits"].flatMap((name) =>
    Array.from({ length: stepsOf(name) }, (_, i) => ({ name, at: i + 1 })));
}

/** [the number of the step that is shown, from 1 on; how many there are]. */
export function stepNumber() {
  const all = steps(), i = all.findIndex(({ name, at }) => name === watched && at === step);
  return [Math.max(0, i) + 1, all.length];
}

/** Go to a step, counted from 1. */
export function goTo(number) {
  const all = steps(), { name, at } = all[Math.min(Math.max(number, 1), all.length) - 1];
  watch(name, at);
}

/** One step on (1) or back (−1). Behind the last one, what was just drawn goes in. */
async function walkOn(by) {
  if (isWriting() || !positionOf(active)) return;
  const [number, all] = stepNumber();
  if (number + by > all) await followNext();
  else goTo(number + by);
  setWalking(true);
}

/** From the beginning, for the chosen character or a telling one. */
export async function follow() {
  stop();
  const position = active.chosen ?? midWord(active) ?? positionOf(active);
  if (!position) return;
  choose(active, position);
  watch(tellingHead(active));
  goTo(1);
  setWalking(true);
  $("watch").focus({ preventScroll: true });
  $("model").scrollIntoView({ behavior: still ? "auto" : "smooth" });
}

/** The walk for the character behind this one, which is written if it's not there yet. */
async function followNext() {
  const next = positionOf(active) + 1, missing = next - active.ids.length;
  if (missing > 0) await write(missing);
  choose(active, next);
  goTo(1);
}

/** Whether a character is being followed: then the keys belong to the walk. */
export function setWalking(on) {
  [walking, text] = [on, active.ids];
  document.body.classList.toggle("walking", on);
}

onChange((side) => {
  if (side !== active) return;
  if (walking && (text !== side.ids || isWriting())) setWalking(false);
  const { kind, layer, index = partOf(through).index } = partOf(watched);
  const { n_layer, n_head } = side.whole.config, here = through.slice(5).split(".");
  if (layer >= 0 && kind !== "block") through = nameOf(layer, index);
  else if (here[0] > n_layer || here[1] > n_head) through = "head 1.1";
  const [number, all] = stepNumber();
  $("walk-count").textContent = `${number} of ${all}`;
  $("walk-count").style.setProperty("--done", number / all);
  $("step-back").setAttribute("aria-disabled", number === 1);
  $("step-on").textContent = number < all ? "Next ▸" : `The next ${UNIT} ▸`;
});

const nameOf = (layer, index) => `head ${layer + 1}.${index + 1}`;

/** The head of block 1, which reads the characters themselves, that keeps most to one distance
 * other than its own, over the window in view. */
export function tellingHead(side) {
  const { rows } = side.reading.reader, { n_head } = side.whole.config;
  const habit = Array.from({ length: n_head }, (_, h) => {
    const maps = mapOf(rows, { layer: 0, index: h });
    const shares = Array.from({ length: FAR }, (_, n) =>
      sum(maps.map((weights, t) => weights[t - n - 1] ?? 0)));
    return Math.max(...shares);
  });
  return nameOf(0, habit.indexOf(Math.max(...habit)));
}

/** The last character with letters on both sides which is another one than the one before it,
 * so that one sees which goes in and which comes out, and which had a rival, but was the
 * likeliest or the second; or null. */
export function midWord({ ids, reading: { after } }) {
  const isLetter = (i) => /^\p{L}+$/u.test(texts[ids[i]] ?? "");
  const lower = (i) => texts[ids[i]].toLowerCase();
  for (let i = ids.length - 2; i > 1; i--) {
    if (![i - 2, i - 1, i, i + 1].every(isLetter) || lower(i) === lower(i - 1)) continue;
    if (!after[i - 1]) continue;
    const { logits } = after[i - 1], probs = probabilities(logits, knobs());
    const contested = probs[ids[i]] > RIVAL && probs.filter((p) => p > RIVAL).length > 1;
    if (contested && ranked(logits).indexOf(ids[i]) < 2) return i;
  }
  return null;
}

$("follow").addEventListener("click", follow);
$("step-back").addEventListener("click", () => stepNumber()[0] > 1 && walkOn(-1));
$("step-on").addEventListener("click", () => walkOn(1));

/** → and ← go on and back, wherever no list or field needs them; so does Space, which presses
 * a button that has the focus. */
document.addEventListener("keydown", (event) => {
  const { key, target } = event, by = { ArrowRight: 1, " ": 1, ArrowLeft: -1 }[key];
  if (!walking || !by || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest("input, select, textarea, [role=option]")) return;
  if (key === " " && target.closest("button, summary")) return;
  event.preventDefault();
  if (by > 0 || stepNumber()[0] > 1) walkOn(by);
});
