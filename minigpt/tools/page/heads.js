// The sheet of a head: its rows are the characters that it may look at.
import { UNIT } from "content";
import { number, signed } from "elements";
import { sum } from "forward";
import { ranked } from "generation";
import { back, bracket, multiplied, productOf } from "telling";
import { quoted } from "tokens";
import { unfoldHead } from "unfold";
import { word } from "words";

export function headSheet({ model, rows, row, part, name, id, off, tokens, few, me }) {
  const u = unfoldHead(model, rows, row, part, id), n = u.query.length, to = quoted(id);
  const share = sum(u.adds), lit = [name], order = ranked(u.weights), later = rows.length - 1 - row;
  const root = number(u.root, 2), other = (i) => `“${tokens[i]}” (${back(row - i)})`;
  return {
    title: `Head ${name.slice(5)} looks back from ${me}`,
    first: UNIT,
    rows: tokens.map((label, t) => ({ label, aside: back(row - t), later: t > row })),
    few: later ? [...order.slice(0, few - 1), row + 1] : order.slice(0, few),
    shown: order[0],
    steps: [
      { lit, why: [`Every earlier ${UNIT} is asked: how well do you fit what I’m looking for?`],
        says: [`The `, word("query"), ` of ${me} is multiplied by the `, word("key"), ` of each ${UNIT}, `
          + `number by number. The ${n} products are added up.${off}`] },
      { lit, why: ["The answers become shares of one whole: how much to take from each."],
        says: [`Each answer is divided by √${n} = ${root}. What comes later is `,
          word("mask", "masked"), ". Then ", word("softmax"), " turns the scores into ",
          word("weight", "weights"), ", which add up to 1."] },
      { lit, why: [`Each ${UNIT} hands over what it has, in proportion to its weight.`],
        says: ["Its ", word("value"), " is multiplied by its weight. Added up, that’s the ", word("output"),
          `: ${n} numbers.`] },
      { lit, why: [`The result is written into the list of ${me}.`],
        says: [`The `, word("projection"), ` turns the ${n} numbers into ${u.wrote.length}. That `
          + `${off ? "would add" : "adds"} ${signed(share)} to the score (`, word("logit"),
        `) of ${to}. The table shows how much each ${UNIT} contributed.`] },
    ],
    columns: [
      { step: 1, head: "q · k", values: u.dots },
      { step: 2, head: "score", values: u.masked },
      { step: 2, head: "weight", values: u.weights, bar: true, foot: sum(u.weights) },
      { step: 4, head: `to ${to}`, values: u.adds, signed: true, foot: share },
    ],
    lines: [
      (t) => `${me} and ${other(t)}: ${productOf(u.query, u.keys[t])}`,
      (t) => (t > row ? `${other(t)} comes later: its score becomes −∞, so its weight is 0`
        : `${number(u.dots[t])} ÷ ${number(u.root)} = ${number(u.scores[t])}. e to the power of `
          + `(${number(u.scores[t])} − ${bracket(u.largest)}) is ${number(u.powers[t])}. Divided by `
          + `${number(u.sum)}, the sum of all, that makes ${number(u.weights[t])}`),
      (t) => `${number(u.weights[t])} × the value of ${other(t)}`,
      (t) => `${other(t)} adds ${signed(u.adds[t], 3)} to the score of ${to}. Together they add `
        + signed(share, 3),
    ],
    strips: (t, step) => ({
      1: multiplied(["query", "key"], u.query, u.keys[t]),
      3: [{ name: "value", numbers: u.values[t] },
        { name: "× weight", sign: "→", numbers: u.values[t].map((v) => v * u.weights[t]) },
        { name: "output", sign: "Σ", numbers: u.out }],
      4: [{ name: "output", numbers: u.out }, { name: "written", sign: "→", numbers: u.wrote }],
    })[step],
  };
}
