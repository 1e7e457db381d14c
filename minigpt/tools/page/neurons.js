// The sheet of a feed-forward layer: its rows are neurons. A sheet is described in sheets.js.
"use strict";

function feedForwardSheet({ model, seen, part, id, off, me }) {
  const u = unfoldFeedForward(model, seen, part.layer, id), { activation } = model.config;
  const n = u.bent.length, to = `“${glyph(texts[id])}”`, share = sum(u.adds) + u.bias;
  const b = biasIn(model, `body.${part.layer}.feed_forward.expand`);
  const fires = u.bent.reduce((count, v) => count + (v !== 0), 0), C = u.fed.length;
  const order = tellingNeurons(u), silent = order.findIndex((i) => u.bent[i] === 0);
  const others = Array.from(u.adds.keys()).filter((i) => !order.includes(i));
  const lit = [nameOf(part)];
  const bends = {
    relu: ["What is below 0 becomes 0 (ReLU).", (h) => `max(${number(h, 3)}, 0)`],
    relu2: ["What is below 0 becomes 0, the rest is squared (ReLU²).",
      (h) => `max(${number(h, 3)}, 0)²`],
    swiglu: ["Each is multiplied by its gate g, as g ÷ (1 + e to the power of −g) (SwiGLU).",
      (h, i) => `${number(h, 3)} × the gate ${number(u.gates[i], 3)}, bent`,
      "Each is multiplied by its bent gate (SwiGLU)."],
  }[activation];
  // Behind the neurons come the sum of the others, few or all of which are seen, and the bias.
  const some = order.slice(0, FEW - (u.bias ? 2 : 1)), hidden = n - some.length;
  const tail = [
    { label: `${hidden} others`, when: "few", adds: sum(u.adds) - sum(some.map((i) => u.adds[i])) },
    { label: `${others.length} others`, when: "all", adds: sum(others.map((i) => u.adds[i])) },
    { label: "bias", adds: u.bias }].filter(({ label, adds }) => adds && !label.startsWith("0 "));
  const column = (list, last = tail.map(() => null)) => [...order.map((i) => list[i]), ...last];
  const line = (told, name = (k) => `${tail[k].label}: ${signed(tail[k].adds, 3)} to ${to}`) => (k) =>
    (k < order.length ? `neuron ${order[k] + 1}${told(order[k])}` : name(k - order.length));
  const addsUp = signed(share) + (u.bias
    ? `: ${signed(sum(u.adds))} by neurons, ${signed(u.bias)} by a bias` : "");
  const pattern = [`Nothing is fetched now: ${n} neurons each look in the list for a pattern.`];
  return {
    title: `Watch ${nameOf(part)} compute, after ${me}`,
    first: "neuron",
    rows: [...order.map((i) => ({ label: String(i + 1), aside: u.bent[i] ? "fires" : "silent" })),
      ...tail.map(({ label, when }) => ({ label, when, since: 3, aside: "" }))],
    few: [...some.keys(), ...tail.map((_, k) => order.length + k)],
    ...tellingRows(order.keys()),
    steps: [
      { name: `w · x${b}`, lit: [`norm ${part.layer + 1}.2`, ...lit], shown: [], why: pattern,
        says: [`Each of ${n} `, word("neuron", "neurons"), ` has ${C} `, word("parameters"),
          ` of its own: they are multiplied with the ${C} numbers of the `, word("stream"),
          ` at ${me} after one more `, word("norm"), ", added up",
          ...(b ? [", and a ", word("bias"), " is added"] : []), `.${off}`] },
      { name: "bend", lit, further: [1, 2, 3], why: ["A neuron that finds nothing stays silent."], briefWhy: pattern,
        ...(silent < 0 ? { tell: 1 } : { telling: [0, silent], row: silent }),
        brief: ["Each weighs the normed ", word("stream"), ". ", ...bendSays(bends[2] ?? bends[0]),
          ` ${fires} fire here.${off}`],
        says: [...bendSays(bends[0]), ` ${fires} of ${n} neurons fire here. Without the bend two `
          + "layers in a row would be no more than one."] },
      { name: "add", lit, row: 0, further: [1, 2, 3],
        why: ["Each neuron that fires writes numbers of its own into the list."],
        brief: ["To the ", word("logit"), ` of ${to} that ${off ? "would add" : "adds"} ${addsUp}.`],
        says: [`Each has ${C} of them, and writes as strongly as it fires. That `
          + `${off ? "would move" : "moves"} the `, word("logit"), ` of the next ${UNIT}, ${to}, by `
          + `${addsUp}.`] },
    ],
    columns: [
      { step: 1, head: [`w · x${b}`], values: column(u.hidden), shaded: true },
      ...(u.gates ? [{ step: 2, head: ["gate"], values: column(u.gates) }] : []),
      { step: 2, head: ["bent"], values: column(u.bent), bar: true },
      { step: 3, head: [`to ${to}`], signed: true, foot: share,
        values: column(u.adds, tail.map(({ adds }) => adds)) },
    ],
    beside: (k, step) => (step !== 2 || k >= order.length ? undefined
      : weighed(u, order[k], [`norm ${part.layer + 1}.2`, nameOf(part)])),
    products: (k, step) => (step === 1 && k < order.length
      ? { names: ["normed", "neuron"], left: u.fed, right: u.weightsOf(order[k]),
        from: [`norm ${part.layer + 1}.2`, nameOf(part)], bias: u.biasOf(order[k]) } : undefined),
    lines: [
      line((i) => `: w · x${b} = ${number(u.hidden[i], 3)}`, () => "the others are summed up"),
      line((i) => `: ${bends[1](u.hidden[i], i)} = ${number(u.bent[i], 3)}`,
        () => "the others are summed up"),
      line((i) => ` adds ${signed(u.adds[i], 3)} to the logit of ${to}`),
    ],
  };
}

/** What a neuron weighs, as strips. */
function weighed({ fed, weightsOf }, i, [norm, neurons]) {
  const weights = weightsOf(i);
  return [{ name: "normed", numbers: fed, from: [norm] },
    { name: "neuron", numbers: weights, from: [neurons] },
    { name: "×", numbers: fed.map((v, k) => v * weights[k]), from: [0, 1] }];
}

/** A sentence about the bend, with its word explained. */
function bendSays(text) {
  const [, before, name, after] = /^(.*\()(.*)(\)\.)$/.exec(text);
  return [before, word("bend", name), after];
}

/** The neurons that move the logit most, and among the first some that are silent: these show
 * what the bend does. */
function tellingNeurons({ adds, hidden, bent }) {
  const loud = ranked(Array.from(adds, Math.abs)).filter((i) => bent[i] !== 0);
  const silent = [...bent.keys()].filter((i) => bent[i] === 0)
    .sort((a, b) => hidden[a] - hidden[b]);
  const first = loud.slice(0, FEW - 4), dark = silent.slice(0, 2);
  return [...new Set([...first, ...dark, ...loud, ...silent])].slice(0, MOST);
}
