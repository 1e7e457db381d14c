// What unfold.js has computed, as a sheet that can be read: a few steps with a sentence for each,
// and a table with a row for each letter, number or neuron.
//
// A sheet: {title; first: what a row is; rows: [{label, aside, later, when: "few" or "all", if it
// is seen only then, since: from which step on}]; few: the rows that are seen at first, or null:
// those around the one that is looked at; shown: the row that is looked at first; steps: [{why:
// what it's for, says: what is computed, lit: what lights up in the drawing, row: the row that it
// speaks of}]; columns: [{step: from which on it is seen, head, values, digits, bar, signed,
// foot, note}]; lines[step](i): the arithmetic of a row; strips(i, step): lists of numbers that
// are shown beside the table, as for strips() of pictures.js, or undefined: then a picture is}.
import { headSheet } from "heads";
import { logitsSheet } from "logits";
import { feedForwardSheet } from "neurons";
import { partOf } from "state";
import { glyph, texts } from "tokens";
import { addSheet, blockSheet, embeddingSheet, headsSheet, normSheet, querySheet } from "vectors";

const FEW = 5; // rows that are seen at first

/** {kind of a part: its sheet, and how many steps that has}. partOf calls a kind what the part's
 * name begins with. */
const SHEETS = {
  embedding: { sheet: embeddingSheet, steps: 1 }, norm: { sheet: normSheet, steps: 1 },
  query: { sheet: querySheet, steps: 1 }, head: { sheet: headSheet, steps: 4 },
  heads: { sheet: headsSheet, steps: 1 }, "feed-forward": { sheet: feedForwardSheet, steps: 2 },
  add: { sheet: addSheet, steps: 1 }, block: { sheet: blockSheet, steps: 1 },
  logits: { sheet: logitsSheet, steps: 3 },
};

export const stepsOf = (name) => SHEETS[partOf(name).kind].steps;

/** A part of what was computed for `position`, as a sheet; rows: as in Reader. */
export function sheetOf(name, side, position, start, rows, id) {
  const part = partOf(name), row = position - 1 - start;
  const tokens = rows.map((_, t) => glyph(texts[side.ids[start + t]]));
  return SHEETS[part.kind].sheet({ model: side.reading.model, rows, row, seen: rows[row], part, id,
    name, tokens, few: FEW, me: `“${tokens[row]}”`, token: side.ids[position - 1],
    off: side.off.has(name) ? " It’s switched off. These are the numbers it would have given." : "",
    came: side.ids[position], chance: side.drawn[position]?.chance });
}
