// All that is shown of one prediction, of the chosen character or of the one to come: the line at
// the top, the bars, the drawing of the model, and the panel that takes a part of it apart.
import { showBars } from "bars";
import { UNIT } from "content";
import { Drawing } from "drawing";
import { $, still } from "elements";
import { softmax } from "forward";
import { ranked } from "generation";
import { clearGlance, paintGlance, tellGlance } from "glance";
import { showPanel } from "panel";
import { colours, onColours } from "pictures";
import { SLICE, pause } from "side";
import { active, onChange, partOf, positionOf, watch, watched } from "state";
import { toggle } from "switches";
import { describe } from "text";
import { glyph, plainly, quoted, textOf, texts } from "tokens";

const CALM = 80; // milliseconds between two looks inside, while it writes
let drawing = null;
let looking = 0; // each look inside takes a number; an older one then stops
let painted = { at: 0, took: 0 }; // when the inside was shown last, in milliseconds

/** How the chosen character was predicted, or the one to come will be. */
export async function showInside() {
  const mine = ++looking, side = active, position = positionOf(side);
  if (!side.ids.length) return; // nothing has begun yet
  for (const id of ["parts", "model"]) $(id).classList.toggle("idle", !position);
  $("back").setAttribute("aria-disabled", !position);
  $("forth").setAttribute("aria-disabled", side.chosen === null);
  if (!position) {
    clearGlance();
    $("position").textContent = `Nothing comes before the first ${UNIT}, so the model has no `
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
  const actual = side.chosen === null ? null : side.ids[position];
  const id = actual ?? ranked(seen.logits)[0];
  describe(side, position, start);
  showBars(side, position, seen, actual);
  paintGlance(side, position, step.value);
  showDrawing(side, position, seen, id);
  drawing.paint(rows, position - 1 - start, colours());
  if (!side.writing) {
    tellGlance(side, position, seen.logits);
    pointAt(drawing.light(showPanel(side, position, start, rows, id)));
  }
  painted = { at: now, took: performance.now() - now };
}

function showDrawing(side, position, seen, id) {
  const { model } = side.reading, last = seen.streams.length - 1;
  if (drawing?.model !== side.whole) drawing = new Drawing(side.whole, { watch: open, toggle });
  const guesses = seen.streams.map((stream, layer) => {
    const probs = softmax(layer < last ? model.logits(stream) : seen.logits), [i] = ranked(probs);
    return { char: glyph(texts[i]), probability: probs[i] };
  });
  drawing.update({ shares: model.shares(seen, id), off: side.off, guesses, watched,
    from: glyph(texts[side.ids[position - 1]]), to: glyph(texts[id]),
    logit: seen.logits[id], probability: softmax(seen.logits)[id] });
  const before = textOf(side.ids.slice(Math.max(0, position - 12), position));
  $("model-title").textContent = `Inside, after “${position > 12 ? "…" : ""}${plainly(before)}”`;
  $("for").textContent = quoted(id);
}

/** A part that is clicked is taken apart, a head where its map is made. */
function open(name) {
  watch(name, partOf(name).kind === "head" ? 2 : 1);
  $("watch").scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
}

/** The panel points at what is lit. */
function pointAt(lit) {
  const { left, width } = lit.getBoundingClientRect();
  $("watch").style.setProperty("--tip",
    `${left + width / 2 - $("watch").getBoundingClientRect().left}px`);
}

/** While it writes: what was just read, all of which is at hand. */
function showLast(side) {
  const { start, rows } = side.reading.reader, position = start + rows.length;
  const again = start > 0 && position < side.ids.length - 1; // the older half has gone
  if (!rows.length || again) return; // then what was seen stays, until all is read again
  paintGlance(side, position, side.reading.reader);
  describe(side, position);
  showBars(side, position, rows.at(-1), null);
}

onChange((side) => {
  if (side !== active) return;
  const { at, took } = painted, since = performance.now() - at;
  if (!side.writing || since > CALM + 5 * took) showInside();
  else if (side.chosen === null) showLast(side);
});
onColours(showInside);
new ResizeObserver(showInside).observe($("glance"));
