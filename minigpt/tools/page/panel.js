// What a part computes, step by step: a sentence, a table of real numbers beside a picture, and
// the arithmetic of the row that is looked at.
import { $, element } from "elements";
import { probabilities } from "generation";
import { colours, mapOf, paintMap, paintPile, paintSquare, strips } from "pictures";
import { choose, knobs, partOf, step, watched } from "state";
import { sheetOf } from "sheets";
import { showTable } from "table";
import { texts } from "tokens";
import { withWords } from "words";

const FIGURES = ["where", "neurons", "pile", "strips"]; // one is seen

let sheet = null; // what is shown
let trs = []; // its rows
let row = 0; // the one that is looked at
let all = false; // all rows are seen, or few
let key = ""; // of what the row was chosen

$("all-rows").addEventListener("click", () => {
  all = !all;
  showRows();
});

/** Show the step of the part that is taken apart, for what was computed for `position`. */
export function showPanel(side, position, start, rows, id) {
  sheet = sheetOf(watched, side, position, start, rows, id);
  const { why, says, row: own } = sheet.steps[step - 1], now = [position, watched, step].join();
  if (now !== key || row >= sheet.rows.length) row = own ?? sheet.shown;
  key = now;
  $("watch-title").replaceChildren(...withWords(sheet.title));
  $("says").replaceChildren(element("b", { className: "why" }, ...why), " ", ...says);
  trs = showTable(sheet, step);
  select(row);
  paintFigure(side, position, start, rows);
  return sheet.steps[step - 1].lit;
}

/** Look at a row, with its arithmetic. */
function select(to) {
  row = to;
  trs.forEach((tr, i) => {
    tr.classList.toggle("selected", i === row);
    tr.setAttribute("aria-selected", i === row);
    tr.tabIndex = i === row ? 0 : -1;
  });
  $("line").textContent = sheet.lines[step - 1](row);
  const lines = sheet.strips?.(row, step);
  if (lines) {
    $("strips").replaceChildren(...strips(lines, { marked: row, length: sheet.rows.length,
      choose: select }));
  }
  const figure = lines ? "strips"
    : { head: "where", "feed-forward": "neurons", logits: "pile" }[partOf(watched).kind];
  for (const id of FIGURES) $(id).hidden = id !== figure;
  showRows();
}

/** All rows, or few: those that tell most, or those around the one that is looked at. */
function showRows() {
  const { few, rows } = sheet, n = rows.length, count = few?.length ?? 5;
  const first = Math.max(0, Math.min(row - 2, n - count));
  const some = new Set(few ? [...few, row] : Array.from({ length: count }, (_, k) => first + k));
  const sparse = n > count + 1 && !all;
  trs.forEach((tr, i) => { tr.hidden = (sparse && !some.has(i))
    || rows[i].when === (sparse ? "all" : "few") || rows[i].since > step; });
  $("all-rows").hidden = n <= count + 1;
  const summed = rows.some(({ when }) => when); // what isn't seen is summed up in a row
  $("all-rows").textContent = all ? "Show fewer" : summed ? "Show more" : `Show all ${n}`;
}

/** The picture beside the table: the map of a head, the neurons before and after the bend, or the
 * line that the random number falls on. */
function paintFigure(side, position, start, rows) {
  const { kind, ...part } = partOf(watched), seen = rows[position - 1 - start], ink = colours();
  if (kind === "head" && !$("where").hidden) {
    paintMap($("map"), mapOf(rows, part), rows.map((_, t) => texts[side.ids[start + t]]),
      position - 1 - start, ink);
    $("map").onclick = ({ offsetY }) => {
      const looks = $("map").rowAt(offsetY / $("map").clientHeight);
      if (looks >= 0) choose(side, start + looks + 1);
    };
  }
  if (kind === "feed-forward") {
    const { hidden, neurons } = seen.layers[part.layer], n = neurons.length;
    paintSquare($("before-bend"), hidden.subarray(hidden.length - n), ink);
    paintSquare($("after-bend"), neurons, ink);
  }
  if (kind === "logits" && !$("pile").hidden) {
    const chance = step === 3 ? side.drawn[position]?.chance : undefined;
    paintPile($("drawn-from"), probabilities(seen.logits, knobs()), chance, ink);
  }
}

$("sheet").addEventListener("click", ({ target }) => {
  const to = trs.indexOf(target.closest("tr"));
  if (to >= 0) select(to);
});
$("sheet").addEventListener("keydown", (event) => {
  const seen = trs.flatMap((tr, i) => (tr.hidden ? [] : [i])), i = seen.indexOf(row);
  const to = { ArrowUp: seen[i - 1], ArrowDown: seen[i + 1], Home: seen[0], End: seen.at(-1) }[event.key];
  if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  select(to);
  trs[row].focus({ preventScroll: true });
});
