// The sheets whose rows are the numbers of a list: how a character becomes one, how a norm brings
// it to one size, how a head makes its query, and what is added to the list. Each column is a
// strip, too.
import { UNIT, V } from "content";
import { number } from "elements";
import { softmax } from "forward";
import { ranked } from "generation";
import { bracket, productOf } from "telling";
import { quoted } from "tokens";
import { unfoldBlock, unfoldEmbedding, unfoldNorm, unfoldQuery } from "unfold";
import { word } from "words";

/** terms: [{name, sign, numbers}], the columns; step: {lit, why, says}; line(i): the arithmetic. */
function vectorSheet({ title, terms, step, line, first = "number" }) {
  const numbers = terms[0].numbers, [most] = ranked(Array.from(terms.at(-1).numbers, Math.abs));
  return { title, first, steps: [step], few: null, shown: most,
    rows: Array.from(numbers, (_, i) => ({ label: String(i + 1), aside: "" })),
    columns: terms.map(({ name, numbers: values }) => ({ step: 1, head: name, values })),
    lines: [line], strips: () => terms };
}

/** The last term is the sum of those before it. */
function sumSheet({ title, terms, step }) {
  const line = (i) => `number ${i + 1}: ${terms.slice(0, -1)
    .map(({ numbers }, k) => (k ? bracket : number)(numbers[i])).join(" + ")} = `
    + number(terms.at(-1).numbers[i]);
  const signs = (k) => (k === 0 ? "" : k + 1 < terms.length ? "+" : "=");
  return vectorSheet({ title, step, line, terms: terms.map((term, k) => ({ ...term, sign: signs(k) })) });
}

export function embeddingSheet({ model, seen, row, token, me }) {
  const u = unfoldEmbedding(model, seen, token, row), C = u.sum.length;
  return sumSheet({ title: `${me} becomes ${C} numbers`,
    step: { lit: [...(u.position ? ["token", "position"] : ["token"]), "stream 0"],
      why: [`A model works with numbers, so ${me} becomes ${C} of them.`],
      says: [`${me} is number ${token + 1} of ${V} ${UNIT}s. Row ${token + 1} of a table is its `,
        word("embedding"), ". ", ...(u.position
          ? [`It’s ${UNIT} ${row + 1} in view, so row ${row + 1} of a second table is added. `]
          : ["Its position comes in later, in the heads. "]),
        "This is the ", word("stream"), ": each part reads it and adds to it."] },
    terms: [{ name: "token", numbers: u.token },
      ...(u.position ? [{ name: "position", numbers: u.position }] : []),
      { name: "stream", numbers: u.sum }] });
}

/** Before a block. */
export function normSheet({ model, seen, part: { layer }, me }) {
  const u = unfoldNorm(model, seen.layers[layer].entered, `body.${layer}.norm1`);
  const rms = model.config.rms_norm, size = number(u.size);
  const gained = (i) => `× ${bracket(u.gain[i])}${u.bias ? ` + ${bracket(u.bias[i])}` : ""}`;
  return vectorSheet({
    title: `${rms ? "RMSNorm" : "LayerNorm"}: ${me} on its way into block ${layer + 1}`,
    step: { lit: [`norm ${layer + 1}.1`],
      why: ["The list is scaled up or down to a standard size before a part reads it."],
      says: [rms ? "" : `First its mean, ${number(u.mean)}, is subtracted. `, "Each number is ",
        `divided by their typical size, ${size}. Then it’s multiplied by a `,
        word("gain"), ...(u.bias ? [", plus a ", word("bias")] : []), ", which training has found."] },
    terms: [{ name: "stream", numbers: u.stream },
      { name: `÷ ${size}`, sign: "→", numbers: u.even },
      { name: "normed", sign: "→", numbers: u.out }],
    line: (i) => (rms ? `number ${i + 1}: ${number(u.stream[i])} ÷ ${size} ${gained(i)} = `
      : `number ${i + 1}: (${number(u.stream[i])} − ${bracket(u.mean)}) ÷ ${size} ${gained(i)} = `)
      + number(u.out[i]),
  });
}

export function querySheet({ model, seen, part, me }) {
  const u = unfoldQuery(model, seen, part), n = u.query.length, { qk_norm, rotary } = model.config;
  const name = `head ${part.layer + 1}.${part.index + 1}`;
  const ways = [qk_norm && "scaled to one size", rotary && "turned by its position"].filter(Boolean);
  return vectorSheet({ title: `Head ${name.slice(5)} asks on behalf of ${me}`, first: "query",
    step: { lit: [name],
      why: ["A head makes three short lists: one to ask with, one to be found by, and one to hand over."],
      says: ["The ", word("query"), ", ", word("key"), " and ", word("value"), ` are ${n} numbers each: `
        + "the normed list, multiplied by three learned tables. ",
      ways.length ? `Query and key are then ${ways.join(" and ")}. ` : "",
      `Every other ${UNIT} has its own three.`] },
    terms: [...(ways.length ? [{ name: "w · x", numbers: u.raw }] : []),
      { name: "query", numbers: u.query }, { name: "key", numbers: u.key },
      { name: "value", numbers: u.value }],
    line: (i) => `number ${i + 1} of the query: ${productOf(u.asked, u.weightsOf(i), u.biasOf(i))}`
      + (ways.length ? `, ${ways.join(" and ")} ${number(u.query[i])}` : ""),
  });
}

/** What the heads of a block add to the stream. */
export function headsSheet({ model, seen, part: { layer, index }, me }) {
  const u = unfoldBlock(model, seen, layer, index), { n_head } = model.config, n = layer + 1;
  const head = `head ${n}.${index + 1}`, others = n_head - 1;
  return sumSheet({ title: `Block ${n}: what the heads write`,
    step: { lit: [...headNames(n, n_head), `add ${n}.1`],
      why: ["What the heads have fetched is added to the list."],
      says: [others ? `The ${others === 1 ? "other head" : `${others} other heads`} looked elsewhere. `
        : "", "The ", word("stream"), ` of ${me} now holds something of what came before it.`] },
    terms: [{ name: "stream", numbers: u.entered }, { name: head, numbers: u.head },
      ...(others ? [{ name: "others", numbers: u.others }] : []),
      { name: "new stream", numbers: u.between }] });
}

/** What the feed-forward layer of a block adds to the stream. */
export function addSheet({ model, seen, part: { layer } }) {
  const u = unfoldBlock(model, seen, layer, 0), n = layer + 1;
  return sumSheet({ title: `Block ${n}: what the neurons write`,
    step: { lit: [`add ${n}.2`],
      why: [`What the neurons wrote is added to the list, and block ${n} is done.`],
      says: lensSays(model, seen, layer) },
    terms: [{ name: "stream", numbers: u.between }, { name: "neurons", numbers: u.wrote },
      { name: "new stream", numbers: u.after }] });
}

/** A whole block, of which the walk goes through no single head. */
export function blockSheet({ model, seen, part: { layer } }) {
  const u = unfoldBlock(model, seen, layer, 0), n = layer + 1;
  return sumSheet({ title: `Block ${n}, with parameters of its own`,
    step: { lit: [...headNames(n, model.config.n_head), `feed-forward ${n}`, `add ${n}.2`],
      why: [n > 1 ? `Block ${n} does the same thing again, with what block ${n - 1} wrote.`
        : "The first block in short: its heads fetch, and its neurons look for patterns."],
      says: lensSays(model, seen, layer) },
    terms: [{ name: "stream", numbers: u.entered }, { name: "heads", numbers: u.all },
      { name: "neurons", numbers: u.wrote }, { name: "new stream", numbers: u.after }] });
}

const headNames = (n, count) => Array.from({ length: count }, (_, h) => `head ${n}.${h + 1}`);

/** What the model would write after a block, if it stopped there. */
function lensSays(model, seen, layer) {
  const probs = softmax(layer + 1 < model.config.n_layer
    ? model.logits(seen.streams[layer + 1]) : seen.logits);
  const some = ranked(probs).slice(0, 3).map((i) => `${quoted(i)} (${number(probs[i], 2)})`);
  return ["If the model stopped here, it would ", word("lens", "write"),
    ` ${some.slice(0, -1).join(", ")} or ${some.at(-1)}.`];
}
