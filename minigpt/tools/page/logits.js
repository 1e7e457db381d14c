// The sheet of the last layer, up to the draw: its rows are the characters that may come next.
import { UNIT, V } from "content";
import { element, number, signed } from "elements";
import { softmax, sum } from "forward";
import { drawn, ranked } from "generation";
import { knobs } from "state";
import { biasIn, bracket, multiplied, productOf } from "telling";
import { glyph, quoted, texts } from "tokens";
import { unfoldLogits } from "unfold";
import { word } from "words";

const MOST = 64; // rows; the others are summed up
const ALL = 128; // a vocabulary that is shown whole

export function logitsSheet({ model, seen, few, me, id, came, chance }) {
  const settings = knobs(), u = unfoldLogits(model, seen, settings), C = u.read.length;
  const { temperature } = settings, { softcap } = model.config, b = biasIn(model, "lm_head");
  const order = ranked(u.logits).slice(0, V <= ALL ? V : MOST), rest = V - order.length;
  const at = (list) => order.map((i) => list[i]), char = (k) => quoted(order[k]);
  const dropped = u.kept.filter((v) => v === -Infinity).length, lit = ["last biases"];
  const divided = temperature ? `÷ ${number(temperature, 2)}` : "largest";
  const drawnRow = order.indexOf(came);
  const score = (k) => `${char(k)}: ${productOf(u.read, u.weightsOf(order[k]), u.biasOf(order[k]))}`;
  return {
    title: `The last layer decides what comes after ${me}`,
    first: UNIT,
    rows: order.map((i, k) => ({ label: glyph(texts[i]), aside: `${k + 1}.`,
      later: u.kept[i] === -Infinity })),
    few: [...order.keys()].slice(0, few),
    shown: 0,
    steps: [
      { lit, why: [`Now each of the ${V} ${UNIT}s is asked: how well do you fit this list?`],
        says: [`Each ${UNIT} has ${C} `, word("parameters"), " of its own. The normed list is multiplied "
          + "by them and added up", ...(b ? [", plus a ", word("bias")] : []), ". That’s its score, or ",
        word("logit"), ".", ...(softcap ? [` Scores are held within ±${softcap}.`] : [])] },
      { lit, why: ["The scores become chances, which add up to 1."],
        says: [...(temperature
          ? ["Each score is divided by the ", word("temperature"), ` ${number(temperature, 2)}. `]
          : ["At ", word("temperature"), " 0, only the largest score counts. "]),
        dropped ? `The sliders rule out ${dropped} of ${V}. ` : "", "Then ", word("softmax"),
        ` makes probabilities.${knobsSay(u, id)}`] },
      { lit: [...lit, "to"], row: drawnRow < 0 ? undefined : drawnRow,
        why: [`Chance decides: a random number falls on one ${UNIT}.`],
        says: [`The likelier it is, the wider its stretch. ${drawSays(u.probs, came, chance)}`,
          ...closing({ model, seen, me, came, chance, probs: u.probs })] },
    ],
    columns: [
      { step: 1, head: "logit", values: at(u.logits) },
      { step: 2, head: divided, values: at(u.kept) },
      { step: 2, head: "probability", values: at(u.probs), bar: true, digits: 3,
        foot: sum(u.probs), note: rest ? `with ${rest} others` : "" },
    ],
    lines: [
      (k) => score(k) + (softcap ? `; ${softcap} × tanh(${number(u.scores[order[k]])} ÷ ${softcap}) = `
        + number(u.logits[order[k]]) : ""),
      (k) => (u.kept[order[k]] === -Infinity ? `${char(k)} is ruled out: its probability is 0`
        : `${char(k)}: e to the power of (${number(u.kept[order[k]])} − ${bracket(u.largest)}) is `
          + `${number(u.powers[order[k]])}. Divided by ${number(u.sum)}, the sum of all, that makes `
          + number(u.probs[order[k]])),
      (k) => `${char(k)} is picked by a number from ${number(u.from[order[k]])} to `
        + number(u.upTo[order[k]]),
    ],
    strips: (k, step) => (step > 1 ? undefined
      : multiplied(["normed", glyph(texts[order[k]])], u.read, u.weightsOf(order[k]))),
  };
}

/** What the knobs make of the model's own probability, if that is seen. */
function knobsSay({ logits, probs }, id) {
  const own = number(softmax(logits)[id]), now = number(probs[id]);
  return own === now ? "" : ` For ${quoted(id)}, the sliders turn ${own} into ${now}.`;
}

/** Where the random number fell, or would. */
function drawSays(probs, came, chance) {
  if (came === undefined) {
    return `A random number decides how it goes on. Press “One ${UNIT}” to draw one.`;
  }
  if (chance === undefined) return `Nothing was drawn here: ${quoted(came)} was given.`;
  const now = drawn(probs, () => chance), fell = `The random number was ${number(chance)}, `;
  return now === came ? `${fell}which falls on ${quoted(came)}, so that was written.`
    : `${fell}which now falls on ${quoted(now)}. When it was drawn, it fell on ${quoted(came)}.`;
}

/** The way up in a sentence: what came, and which part did most for it. */
function closing({ model, seen, me, came, chance, probs }) {
  if (chance === undefined || came !== drawn(probs, () => chance)) return [];
  const shares = model.shares(seen, came);
  const parts = [...shares.keys()].filter((name) => /^(head|feed-forward) \d/.test(name));
  const best = parts.reduce((a, b) => (shares.get(b) > shares.get(a) ? b : a));
  return [" ", element("b", { className: "closing", textContent: `So after ${me} it drew `
    + `${quoted(came)}: heads fetched, neurons added, and chance chose. `
    + `${best[0].toUpperCase()}${best.slice(1)} contributed most: ${signed(shares.get(best))} of its `
    + `score of ${number(seen.logits[came], 2)}.` })];
}
