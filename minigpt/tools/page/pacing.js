// How long a computation is played: which of its rows hold still one by one, how long all
// others take together, and how long it then rests, so that its sentence can be read. Nothing
// here waits; watch.js does.
"use strict";

const HOLD = 900; // milliseconds on a telling row
const MULTIPLY = 2200; // on one whose products appear one after another,
const AGAIN = 1200; // and on the next such
const SWEEP = 600; // for all others together
const REST = 500; // after a step
const PASSING = { sweep: 350, rest: 450 }; // a step that no row tells
const WORD = 250; // to read a word

/** How many times as fast it is played as planned. */
const pace = () => Number($("walk-pace").value);

/** The rows of a step that hold still: the one that it speaks of, or the first of the sheet's
 * telling ones, as many as it says. */
function tellingOf({ steps, telling }, at) {
  const { row, tell = telling.length, telling: own } = steps[at - 1];
  return own ?? (row === undefined ? telling.slice(0, tell) : [row]);
}

/** These, and those that follow while one still reads. */
function followingOf(sheet, at) {
  const { row, telling, further: own } = sheet.steps[at - 1], first = tellingOf(sheet, at);
  const further = own ?? (row === undefined && !telling ? sheet.further ?? [] : []);
  return [...first, ...further.filter((one) => !first.includes(one))];
}

/** What is said of a step: first what it is for, then what is computed; of the walk briefly, if
 * there is a brief sentence, which stands for the steps before it, too. */
function saidOf({ steps }, at) {
  const { why, briefWhy = why, says, brief } = steps[at - 1];
  const short = brief && walking && !$("every").checked;
  return { why: short ? briefWhy : why, says: short ? brief : says };
}

/** {tell: [{row, hold}], sweep, rest}: milliseconds of a step at the steady pace. The walk waits
 * until all is read; whoever clicks a part sees it whole, reads what each step is for, and can go
 * through it by hand. */
function planOf(sheet, at) {
  const tell = tellingOf(sheet, at).map((row, k) => ({ row,
    hold: !sheet.products(row, at) ? HOLD : k ? AGAIN : MULTIPLY }));
  const { sweep, rest } = tell.length ? { sweep: SWEEP, rest: REST } : PASSING;
  const { why, says } = saidOf(sheet, at);
  let read = WORD * wordsIn(walking ? [...why, " ", ...says] : why)
    - sum(tell.map(({ hold }) => hold)) - sweep;
  for (const row of followingOf(sheet, at).slice(tell.length)) {
    const hold = sheet.products(row, at) ? AGAIN : HOLD;
    if (read < REST + hold) break;
    tell.push({ row, hold });
    read -= hold;
  }
  return { tell, sweep, rest: Math.max(rest, read) };
}

const wordsIn = (parts) => parts.map((part) => part.textContent ?? part).join("").trim()
  .split(/\s+/).length;

/** How long a step takes at the steady pace, and how long a whole sheet. */
function lasting(sheet, at) {
  const { tell, sweep, rest } = planOf(sheet, at);
  return sum(tell.map(({ hold }) => hold)) + sweep + rest;
}

const lastingAll = (sheet) => sum(sheet.steps.map((_, i) => lasting(sheet, i + 1)));
