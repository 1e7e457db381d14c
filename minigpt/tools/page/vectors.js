// The sheets whose rows are the numbers of a vector: how a character becomes the stream, how a
// norm brings it to one size, how a head makes its query, and what is added to the stream. A
// sheet is described in sheets.js; a column with a `sign` is also seen as a strip (strips.js).
"use strict";

const shownTerms = () => (narrow.matches ? 1 : 2); // products that a line tells

function embeddingSheet({ model, seen, row, token, me }) {
  const u = unfoldEmbedding(model, seen, token, row), C = u.sum.length;
  const why = [`A model reckons with numbers: so ${me} becomes ${C} of them.`];
  const steps = [{ name: "token", lit: ["token"], why, says: [`${me} is number ${token + 1} `
    + `of ${V} ${UNIT}s. Row ${token + 1} of a table is its `,
  word("embedding"), `, ${C} numbers that training has found.`] }];
  if (u.position) {
    steps.push({ name: "position", lit: ["position"], why: ["It must also know where it stands."],
      says: [`It is ${UNIT} ${row + 1} in `
      + `view: row ${row + 1} of a second table says so, with ${C} numbers more.`] });
  }
  steps.push({ name: "stream", lit: ["stream 0"], shown: ["token", "position"],
    why: u.position ? ["What it is and where it stands become one list."] : why, briefWhy: why,
    brief: ["Its row in a table, the ", word("embedding"),
      u.position ? `, plus the row of place ${row + 1}: the ` : ": the ", word("stream"), "."],
    says: [u.position
    ? "Number by number both are added up. " : "Where it stands, the heads will see for "
      + "themselves. ", "This is the ", word("stream"), ": from here to the end each part reads "
    + "it, and adds to it."] });
  return sumSheet({ title: `${me} becomes ${C} numbers`, steps, total: u.sum, named: "stream", to: "stream 0",
    terms: [{ name: "token", numbers: u.token, step: 1, from: ["token"] },
      ...(u.position ? [{ name: "position", numbers: u.position, step: 2, from: ["position"] }]
        : [])] });
}

/** Before a block, or with layer = n_layer before the last layer. */
function normSheet({ model, seen, part: { layer }, me }) {
  const last = layer === model.config.n_layer, name = `body.${layer}${last ? "" : ".norm1"}`;
  const u = unfoldNorm(model, last ? seen.streams[layer] : seen.layers[layer].entered, name);
  const rms = model.config.rms_norm, called = rms ? "RMSNorm" : "LayerNorm", C = u.out.length;
  const lit = [last ? "norm last" : `norm ${layer + 1}.1`], size = number(u.size, 3);
  const why = ["The list is brought to one loudness, so that parts can compare."];
  const steps = [
    ...(rms ? [] : [{ name: "− mean", lit, why, says: [`Before a part reads it, the stream goes `
      + "through a ", word("norm", called), `. First the mean of its ${C} numbers, `
      + `${number(u.mean, 3)}, is taken off each.`] }]),
    { name: "÷ size", lit, why: ["A loud position and a quiet one become alike."],
      says: [rms ? `${called}: each of the ${C} numbers is divided by ` : "Each is divided by ",
        `how large they are on average, ${size} (the root of the mean of their squares).`] },
    { name: u.bias ? "× gain + bias" : "× gain", lit, briefWhy: why,
      why: ["Training has found how much each number shall count."],
      brief: ["A ", word("norm", called), `: ${rms ? "" : "its mean off, "}divided by ${size}, times `,
        word("gain"), ...(u.bias ? [", plus ", word("bias")] : []), "."],
    says: [`Each of the ${C} numbers has a `, word("gain"),
      ...(u.bias ? [" and a ", word("bias")] : []), " of its own, which are ", word("parameters"),
    last ? ". This is what the last layer reads." : ": this is what the heads read. The stream "
      + "itself stays as it was."] },
  ];
  const at = (k) => k - (rms ? 1 : 0); // without the mean there is a step less
  return narrowed({
    title: `${called}: ${me} ${last ? "before the last layer" : `on its way into block ${layer + 1}`}`,
    ...numbered(u.out), steps,
    columns: [vector("stream", u.stream, 1, "", [`stream ${layer}`]),
      ...(rms ? [] : [vector("− mean", u.centred, 1, "→", [0])]),
      vector(`÷ ${size}`, u.even, at(2), "→", [at(1)]),
      vector("normed", u.out, at(3), "→", [at(2)])],
    products: () => undefined,
    lines: [
      ...(rms ? [] : [(i) => `number ${i + 1}: ${number(u.stream[i])} − ${bracket(u.mean)} = `
        + number(u.centred[i])]),
      (i) => `number ${i + 1}: ${number(u.centred[i])} ÷ ${size} = ${number(u.even[i])}`,
      (i) => `number ${i + 1}: ${number(u.even[i])} × ${bracket(u.gain[i])}`
        + `${u.bias ? ` + ${bracket(u.bias[i])}` : ""} = ${number(u.out[i])}`,
    ],
  });
}

function querySheet({ model, seen, part, me }) {
  const u = unfoldQuery(model, seen, part), n = u.query.length, C = u.asked.length;
  const { qk_norm, rotary } = model.config, name = `head ${part.layer + 1}.${part.index + 1}`;
  const ways = [qk_norm && "brought to one size", rotary && "turned by its position"];
  const how = ways.filter(Boolean).join(" and "), lit = [name];
  const key = how ? 3 : 2;
  return narrowed({
    title: `${name} asks for ${me}`, ...numbered(u.query, "query"),
    steps: [
      { name: "query", lit, shown: [], why: [`What does ${me} look for?`],
        says: [`The `, word("head"), ` makes ${n} numbers of the ${C}: its `, word("query"), `, what ${me} asks for. Each is a weighing of all ${C}, with `, word("parameters"),
        " of its own."] },
      ...(how ? [{ name: "turn", lit, shown: [], why: ["Then it is made ready to be compared."],
        says: [`The query is ${how}.`] }] : []),
      { name: "key, value", lit, shown: [], why: ["What can it be found by, and what does it hand out?"],
        briefWhy: ["A ", word("head"),
          " makes three short lists of it: to ask, to answer, to hand out."],
        brief: ["Its ", word("query"), ", ", word("key"), " and ", word("value"), ": each is the list "
          + `times a learned table, ${n} numbers; every other ${UNIT} has them, too.`],
      says: ["In the same way, with other parameters, it makes a ",
        word("key"), ", to which later ones will compare their queries, and a ", word("value"),
        ", which it hands out."] },
    ],
    input: { name: "normed", numbers: u.asked, from: [`norm ${part.layer + 1}.1`] },
    columns: [vector(how ? "w · x" : "query", u.raw, 1, "", ["input"]),
      ...(how ? [vector("query", u.query, 2, "→", [0])] : []),
      vector("key", u.key, key, "", ["input"]), vector("value", u.value, key, "", ["input"])],
    products: (i, step) => (step === 1 ? { names: ["normed", "parameters"], left: u.asked,
      right: u.weightsOf(i), bias: u.biasOf(i), from: ["input", name] } : undefined),
    lines: [
      (i) => `number ${i + 1} of the query: w · x${u.biasOf(i) ? " + b" : ""} = ${number(u.raw[i])}`,
      ...(how ? [(i) => `number ${i + 1}: ${number(u.raw[i])} becomes ${number(u.query[i])}`] : []),
      (i) => (walking && !$("every").checked ? `number ${i + 1} of ${how ? "w · x" : "the query"}: ${weighing(u, i)}`
        : `number ${i + 1} of the key: ${number(u.key[i])}, of the value: ${number(u.value[i])}`),
    ],
  });
}

/** One number as a sum of products: the largest, and the others. */
function weighing({ asked, raw, weightsOf, biasOf }, i) {
  const weights = weightsOf(i), products = Array.from(asked, (v, k) => v * weights[k]);
  const some = ranked(products.map(Math.abs)).slice(0, shownTerms());
  const others = products.length - some.length;
  const rest = raw[i] - biasOf(i) - sum(some.map((k) => products[k])), bias = biasOf(i);
  return some.map((k) => `${bracket(asked[k])} × ${bracket(weights[k])}`).join(" + ")
    + (others > 0 ? ` + ${bracket(rest)} (${others} others)` : "")
    + `${bias ? ` + ${bracket(bias)} (bias)` : ""} = ${number(raw[i])}`;
}

/** What the heads of a block add to the stream. */
function headsSheet({ model, seen, part: { layer, index }, me }) {
  const u = unfoldBlock(model, seen, layer, index), { n_head } = model.config, n = layer + 1;
  const head = `head ${n}.${index + 1}`;
  const heads = Array.from({ length: n_head }, (_, h) => `head ${n}.${h + 1}`);
  const terms = [{ name: "stream", numbers: u.entered, step: 1, from: [`stream ${layer}`] },
    { name: head, numbers: u.head, step: 1, from: [head] }];
  const steps = [{ name: "project", lit: [head], why: ["What the head has fetched must fit into the list."],
    says: ["The ", word("projection"), ` has made ${u.head.length} numbers of what ${head} brings `
      + "along, as many as the ", word("stream"), " has."] }];
  if (n_head > 1) {
    const rest = heads.filter((name) => name !== head);
    steps.push({ name: "other heads", lit: rest, shown: heads,
      why: [`The ${n_head - 1} other heads of the block have looked elsewhere meanwhile.`],
      says: ["What they write comes together here."] });
    terms.push({ name: "others", numbers: u.others, step: 2, from: rest });
  }
  steps.push({ name: "add", lit: [`add ${n}.1`], shown: heads,
    why: [n_head > 1 ? "All that the heads have fetched is added to the list."
      : "What the head has fetched is added to the list."],
    brief: [n_head > 1 ? `The ${n_head - 1} other heads looked elsewhere. ` : "", "The ",
      word("stream"), ` of ${me} now holds something of what stands before it.`],
    says: [`The stream at ${me} still holds what it was, and now something of what stands before `
      + "it, too."] });
  return sumSheet({ title: `Block ${n}: what the heads write`, terms, steps,
    total: u.between, named: "new stream", to: `add ${n}.1` });
}

/** What the feed-forward layer of a block adds to the stream. */
function addSheet({ model, seen, part: { layer }, me }) {
  const u = unfoldBlock(model, seen, layer, 0), n = layer + 1;
  return sumSheet({
    title: `Block ${n}: what the neurons write`,
    terms: [{ name: "stream", numbers: u.between, step: 1, from: [`add ${n}.1`] },
      { name: "wrote", numbers: u.wrote, step: 1, from: [`feed-forward ${n}`] }],
    steps: [{ name: "add", lit: [`add ${n}.2`],
      why: [`What the neurons wrote is added to the list: block ${n} is done.`],
      brief: lensSays(model, seen, layer), says: lensSays(model, seen, layer) }],
    total: u.after, named: "new stream", to: `add ${n}.2` });
}

/** A whole block, of which the walk goes through no single head. */
function blockSheet({ model, seen, part: { layer } }) {
  const u = unfoldBlock(model, seen, layer, 0), n = layer + 1, { n_head } = model.config;
  const heads = Array.from({ length: n_head }, (_, h) => `head ${n}.${h + 1}`);
  const why = [n > 1 ? `Block ${n} does the same, on what block ${n - 1} wrote.`
    : "The first block, in short: its heads fetch, its neurons look for patterns."];
  const sheet = sumSheet({
    title: `Block ${n}, with parameters of its own`,
    terms: [{ name: "stream", numbers: u.entered, step: 1, from: [`stream ${layer}`] },
      { name: "heads", numbers: u.all, step: 1, from: heads },
      { name: "neurons", numbers: u.wrote, step: 2, from: [`feed-forward ${n}`] }],
    steps: [
      { name: "heads", lit: heads, why, says: [`Norm, queries, weights, values: the ${n_head} heads of `
        + `block ${n} look back once more, now at positions that have gone through the blocks `
        + "before, and write into the ", word("stream"), "."] },
      { name: "feed-forward", lit: [`feed-forward ${n}`, `add ${n}.2`],
        shown: [...heads, `feed-forward ${n}`], briefWhy: why, brief: lensSays(model, seen, layer),
        why: ["Then its ", word("feed-forward"), " layer writes."],
        says: lensSays(model, seen, layer) },
    ],
    total: u.after, named: "new stream", to: `add ${n}.2` });
  return { ...sheet, telling: sheet.telling.slice(0, 1) }; // it has been told once
}

/** What the model would say behind a block, if it ended there. */
function lensSays(model, seen, layer) {
  const probs = softmax(layer + 1 < model.config.n_layer
    ? model.logits(seen.streams[layer + 1]) : seen.logits);
  const some = ranked(probs).slice(0, 3).map((i) => `“${glyph(texts[i])}” ${number(probs[i], 2)}`);
  return ["If the model ended here, it would ", word("lens", "say"), ` ${some.join(", ")}.`];
}

/** Vectors that are added up, number by number: terms: [{name, numbers, step}]; the last step
 * shows their sum. */
function sumSheet({ title, terms, steps, total, named, to }) {
  const last = steps.length;
  const line = (step) => (i) => {
    const known = terms.filter((term) => term.step <= step);
    const added = known.map(({ numbers }, k) => (k ? bracket : number)(numbers[i])).join(" + ");
    return `number ${i + 1}: ${added}${step === last ? ` = ${number(total[i])}` : ""}`;
  };
  return narrowed({
    title, ...numbered(total), steps,
    columns: [...terms.map(({ name, numbers, step, from }, k) =>
      vector(name, numbers, step, k ? "+" : "", from)),
    { ...vector(named, total, last, "=", [...terms.keys()]), to }],
    products: () => undefined,
    lines: steps.map((_, k) => line(k + 1)),
  });
}

/** Rows for the numbers of a vector, of which only those around one are seen; the largest is
 * told first, and then the one beside it. */
function numbered(numbers, of = "number") {
  const [most] = ranked(Array.from(numbers, Math.abs));
  return { first: of, rows: Array.from(numbers, (_, i) => ({ label: String(i + 1), aside: "" })),
    ...tellingRows([most, most + 1 < numbers.length ? most + 1 : most - 1], 2), few: null,
    further: Array.from({ length: Math.min(FEW, numbers.length) }, (_, k) =>
      (most + 2 + k) % numbers.length) };
}

/** A column that is a strip, too; from: where it comes from, the names of parts in the drawing
 * or the numbers of strips above it. */
const vector = (name, values, step, sign = "", from = []) =>
  ({ step, head: [name], values, tinted: true, sign, from });

/** Of four columns or more a narrow screen leaves out those between the first and the last,
 * except at their step. */
function narrowed(sheet) {
  const { columns } = sheet, inner = columns.length > 3 ? columns.slice(1, -1) : [];
  for (const column of inner) column.between = true;
  return sheet;
}
