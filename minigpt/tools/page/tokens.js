// Text as tokens, and back. A token is some bytes: a character, or by lesson 13 a piece of a
// word. A model of characters has no merges; for one of pieces, read "token" where the other
// scripts' comments say "character".

import { content } from "content";

/** tokens/byte_pairs.py, CUT; JavaScript's own \s and \w are other ones than Python's. */
const CUT = (() => {
  const space = "\\t-\\r\\x1c-\\x1f\\x85\\p{Z}";
  return new RegExp("'(?:[sdmt]|ll|ve|re)| ?[\\p{L}\\p{Nl}\\p{No}]+| ?\\p{Nd}+"
    + `| ?[^${space}\\p{L}\\p{N}]+|[${space}]+(?![^${space}])|[${space}]+`, "gu");
})();
const WHOLE = /[\0-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|./gs;
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Bytes, here and in content.tokens a letter each -> their text. */
const textOfBytes = (bytes) => utf8.decode(Uint8Array.from(bytes, (b) => b.charCodeAt(0)));

/** Each token as one reads it; bytes that are no whole character are written as by Python. */
export const texts = content.tokens.map((bytes) => bytes.replace(WHOLE, (part) =>
  (/^[\x80-\xff]$/.test(part) ? `\\x${part.charCodeAt(0).toString(16)}` : textOfBytes(part))));
export const textOf = (ids) => textOfBytes(ids.map((id) => content.tokens[id]).join(""));

/** How many characters begin in some tokens. */
const begun = content.tokens.map((bytes) => bytes.replace(/[\x80-\xbf]/g, "").length);
export const charactersIn = (ids) => ids.reduce((sum, id) => sum + begun[id], 0);

const FIRST = content.tokens.length - content.merges.length; // the id of the first merge
const idOf = new Map(content.tokens.slice(0, FIRST).map((bytes, id) => [bytes, id]));

/** The ids of a character before anything is merged: its own, or those of its bytes. */
function unmerged(char) {
  const bytes = String.fromCharCode(...new TextEncoder().encode(char));
  return idOf.has(bytes) ? [idOf.get(bytes)] : Array.from(bytes, (b) => idOf.get(b));
}

export const isKnown = (char) => !unmerged(char).includes(undefined);

/** tokens/byte_pairs.py, encode: each distinct piece once, by the merges in their order. */
export function idsOf(text) {
  const found = new Map();
  return (content.cut ? text.match(CUT) ?? [] : [text]).flatMap((piece) => {
    if (!found.has(piece)) found.set(piece, merged(Array.from(piece).flatMap(unmerged)));
    return found.get(piece);
  });
}

function merged(ids) {
  content.merges.forEach(([left, right], rank) => {
    for (let i = 0; i + 1 < ids.length; i++) {
      if (ids[i] === left && ids[i + 1] === right) ids.splice(i, 2, FIRST + rank);
    }
  });
  return ids;
}

const MARKS = { "\n": "↵", "\t": "⇥", " ": "␣" }; // for what one would not see
const NAMES = { "\n": "line break", "\t": "tab", " ": "space" };
export const glyph = (token) => token.replace(/[\n\t ]/g, (char) => MARKS[char]);
export const inText = (token) => token.replace(/[\n\t]/g, (char) => MARKS[char]); // spaces as spaces
export const spoken = (token) => token.replace(/[\n\t ]/g, (char) => ` ${NAMES[char]} `).trim();
export const plainly = (text) => text.replaceAll("\n", "↵"); // in a sentence
export const quoted = (id) => `“${glyph(texts[id])}”`;
