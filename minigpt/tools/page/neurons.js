// The sheet of a feed-forward layer: its rows are neurons.
import { UNIT } from "content";
import { number, signed } from "elements";
import { sum } from "forward";
import { ranked } from "generation";
import { biasIn, productOf } from "telling";
import { quoted } from "tokens";
import { unfoldFeedForward } from "unfold";
import { word } from "words";

const MOST = 64; // rows; the others are summed up

export function feedForwardSheet({ model, seen, part, name, id, off, few, me }) {
  const u = unfoldFeedForward(model, seen, part.layer, id), { activation } = model.config;
  const n = u.bent.length, to = quoted(id), share = sum(u.adds) + u.bias;
  const b = biasIn(model, `body.${part.layer}.feed_forward.expand`);
  const fires = u.bent.reduce((count, v) => count + (v !== 0), 0), C = u.fed.length;
  const order = tellingNeurons(u, few), lit = [name];
  const others = Array.from(u.adds.keys()).filter((i) => !order.includes(i));
  const bends = {
    relu: ["What is below 0 becomes 0 (ReLU).", (h) => `bent, max(${number(h)}, 0)`],
    relu2: ["What is below 0 becomes 0, and the rest is squared (ReLU²).",
      (h) => `bent, max(${number(h)}, 0)²`],
    swiglu: ["Each is multiplied by its gate g, as g ÷ (1 + e to the power of −g) (SwiGLU).",
      (h, i) => `times the gate ${number(u.gates[i])}, bent,`],
  }[activation];
  // Behind the neurons come the sum of the others, few or all of which are seen, and the bias.
  const some = order.slice(0, few - (u.bias ? 2 : 1)), hidden = n - some.length;
  const tail = [
    { label: `${hidden} others`, when: "few", adds: sum(u.adds) - sum(some.map((i) => u.adds[i])) },
    { label: `${others.length} others`, when: "all", adds: sum(others.map((i) => u.adds[i])) },
    { label: "bias", adds: u.bias }].filter(({ label, adds }) => adds && !label.startsWith("0 "));
  const column = (list, last = tail.map(() => null)) => [...order.map((i) => list[i]), ...last];
  return {
    title: `Feed-forward ${part.layer + 1} works on ${me}`,
    first: "neuron",
    rows: [...order.map((i) => ({ label: String(i + 1), aside: u.bent[i] ? "fires" : "silent" })),
      ...tail.map(({ label, when }) => ({ label, when, since: 2, aside: "" }))],
    few: [...some.keys(), ...tail.map((_, k) => order.length + k)],
    shown: 0,
    steps: [
      { lit, why: [`Nothing is fetched now: ${n} neurons each look for a pattern in the list.`],
        says: ["Each ", word("neuron"), ` multiplies the ${C} normed numbers by ${C} `,
          word("parameters"), " of its own and adds them up. Then comes the ", word("bend"),
          `. ${bends[0]} ${fires} of ${n} fire here.${off}`] },
      { lit, why: ["Each neuron that fires writes numbers of its own into the list."],
        says: [`That ${off ? "would add" : "adds"} ${signed(share)} to the score (`, word("logit"),
          `) of the next ${UNIT}, ${to}`, ...(u.bias ? [`: ${signed(sum(u.adds))} from neurons and `
          + `${signed(u.bias)} from a `, word("bias")] : []), "."] },
    ],
    columns: [
      { step: 1, head: `w · x${b}`, values: column(u.hidden), shaded: true },
      ...(u.gates ? [{ step: 1, head: "gate", values: column(u.gates) }] : []),
      { step: 1, head: "bent", values: column(u.bent), bar: true },
      { step: 2, head: `to ${to}`, signed: true, foot: share,
        values: column(u.adds, tail.map(({ adds }) => adds)) },
    ],
    lines: [
      (k) => (k < order.length ? `neuron ${order[k] + 1}: `
        + `${productOf(u.fed, u.weightsOf(order[k]), u.biasOf(order[k]))}, `
        + `${bends[1](u.hidden[order[k]], order[k])} = ${number(u.bent[order[k]])}`
        : "all the others, added up"),
      (k) => (k < order.length
        ? `neuron ${order[k] + 1} adds ${signed(u.adds[order[k]], 3)} to the score of ${to}`
        : `${tail[k - order.length].label}: ${signed(tail[k - order.length].adds, 3)} to ${to}`),
    ],
  };
}

/** The neurons that move the logit most, and among the first some that are silent: these show
 * what the bend does. */
function tellingNeurons({ adds, hidden, bent }, few) {
  const loud = ranked(Array.from(adds, Math.abs)).filter((i) => bent[i] !== 0);
  const silent = [...bent.keys()].filter((i) => bent[i] === 0)
    .sort((a, b) => hidden[a] - hidden[b]);
  return [...new Set([...loud.slice(0, few - 3), ...silent.slice(0, 1), ...loud, ...silent])]
    .slice(0, MOST);
}
