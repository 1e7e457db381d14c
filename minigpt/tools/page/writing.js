// What changes a text: reading, writing, another stage of the training, a part that is switched
// off.
import { UNIT } from "content";
import { $, still } from "elements";
import { active, changed, field, knobs, positionOf, sides } from "state";
import { spoken, textOf } from "tokens";

export const LIMIT = 10000; // characters or tokens of a text
const PACE = still ? Infinity : 40; // characters a second

export const isWriting = () => sides.some((side) => side.writing);

/** Begin all sides with a text, and read it. */
export async function begin(ids) {
  await Promise.all(sides.map((side) => {
    side.begin(ids, field("seed"));
    return side.run(side.read(), () => changed(side));
  }));
}

/** Let all sides write `count` characters behind what they have. */
export async function write(count, pace = PACE) {
  $("status").textContent = "";
  await Promise.all(sides.map((side) => writeOne(side, count, pace)));
}

async function writeOne(side, count, pace) {
  const first = side.ids.length, n = Math.min(count, LIMIT - first);
  side.stop();
  side.writing = true;
  const began = performance.now();
  const early = () =>
    (side.ids.length - first) / pace * 1000 > performance.now() - began;
  const done = await side.run(side.write(n, knobs), () => changed(side), early);
  if (!done) return;
  side.writing = false;
  await account(side);
  const written = textOf(side.ids.slice(first));
  $("spoken").textContent = `Written: ${written.length > 1 ? written : spoken(written)}`;
  if (n < count) $("status").textContent = `A text can have ${LIMIT.toLocaleString("en")} ${UNIT}s `
    + "here, and no more.";
}

/** Read what the whole model says, too, if a part of it is off, to compare. Nothing of it is
 * seen before all is read. */
function account(side) {
  const { intact } = side;
  return side.run(side.off.size ? intact.steps() : [], () => {
    if (intact.nats.length === side.ids.length) changed(side);
  });
}

export function stop() {
  if (!isWriting()) return;
  for (const side of sides) {
    if (side.writing) side.stop();
    changed(side);
  }
  $("status").textContent = `Stopped after ${active.ids.length - active.given} ${UNIT}s.`;
}

/** Write after the same beginning once more. */
export async function again() {
  await begin(active.ids.slice(0, active.given));
  await write(field("count"));
}

/** Another stage of the training writes after the same beginning, with the same seed. Whoever
 * drags on while it writes still wants the whole text, and the position that was chosen. */
export async function train(side, stage) {
  const { given, ids, chosen } = side;
  const wish = (side.writing && side.wish) || { count: ids.length - given, chosen };
  side.stage = stage;
  side.begin(ids.slice(0, given), field("seed"));
  side.wish = wish;
  await writeOne(side, wish.count, Infinity);
  if (side.wish !== wish || side.writing) return;
  side.chosen = wish.chosen;
  changed(side);
}

/** Switch parts off or on: change(side) does; then the text is read again, and what is written
 * next is written without them. */
export async function switchParts(change) {
  const side = active;
  change(side);
  side.switchOff();
  if (!side.writing && await side.run(reread(side), () => changed(side))) await account(side);
}

/** Read all, but first what is looked at. */
function* reread(side) {
  if (side.ids.length && positionOf(side)) yield* side.look(positionOf(side));
  yield* side.read();
}
