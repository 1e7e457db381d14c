// A computation taken apart: every number on the way from a character to the logits. Nothing
// here is drawn; forward.js has computed the same, and these are its own numbers or made of
// them.

import { LAYER_EPS, add, columns, dot, meanOf, spread } from "forward";
import { keepLikeliest, probabilities } from "generation";

/** language_model.py: the rows of the two tables, and their sum, the stream. There is no
 * position with rotary. */
export function unfoldEmbedding(model, seen, id, position) {
  const row = (name, i) => {
    const table = model.parameters[`${name}_embedding.weight`];
    return table && table.data.slice(i * table.columns, (i + 1) * table.columns);
  };
  return { token: row("token", id), position: row("position", position), sum: seen.streams[0] };
}

/** block.py, a norm: the stream less its mean (which rms_norm leaves), divided by its size,
 * times the gain, plus the bias if there is one. */
export function unfoldNorm(model, stream, name) {
  const { rms_norm, norm_eps } = model.config, mean = rms_norm ? 0 : meanOf(stream);
  const size = spread(stream, mean, rms_norm ? norm_eps : LAYER_EPS);
  const centred = stream.map((v) => v - mean), even = centred.map((v) => v / size);
  const gain = model.parameters[`${name}.weight`].data;
  const bias = model.parameters[`${name}.bias`]?.data ?? null;
  return { stream, mean, size, centred, even, gain, bias, out: model.norm(stream, name) };
}

/** multi_head.py, qkv, for one head at one position: what it reads, its query as the layer
 * makes it (raw) and as it is used (query: in lesson 08 brought to one size, and turned by
 * the position), its key and its value. */
export function unfoldQuery(model, seen, { layer, index }) {
  const { asked, heads } = seen.layers[layer], { query, key, value } = heads[index];
  const name = `body.${layer}.attention.qkv`, C = asked.length, from = index * query.length;
  const weight = model.parameters[`${name}.weight`].data, bias = model.parameters[`${name}.bias`];
  const raw = model.linear(asked, name).slice(from, from + query.length);
  return { asked, raw, query, key, value, biasOf: (i) => bias?.data[from + i] ?? 0,
    weightsOf: (i) => weight.slice((from + i) * C, (from + i + 1) * C) };
}

/** block.py, Block: what is added to the stream by one head, by the others with the bias, and
 * by the feed-forward layer. */
export function unfoldBlock(model, seen, layer, index) {
  const { entered, heads, between, wrote } = seen.layers[layer];
  const bias = model.parameters[`body.${layer}.attention.proj.bias`]?.data;
  const empty = new Float32Array(entered.length);
  const others = add(bias ?? empty, ...heads.filter((_, h) => h !== index).map((h) => h.wrote));
  const head = heads[index].wrote, all = add(head, others);
  return { entered, head, others, all, between, wrote, after: seen.streams[layer + 1] };
}

/** attention.py, attention_weights and attention, for one query of one head, and what
 * comes of it. rows: of a window, as in Reader, also those behind `row`, which the mask
 * takes away; id: to whose logit it adds. Each list has an entry for each row:
 * dots (q·k), scores (divided by the root), masked, powers (e to the power of the score
 * less the largest), weights, adds (to the logit); `out` is their mixture of the values,
 * `wrote` what the projection makes of it. */
export function unfoldHead(model, rows, row, { layer, index }, id) {
  const heads = rows.map(({ layers }) => layers[layer].heads[index]);
  const { query, out } = heads[row], root = Math.sqrt(query.length);
  const dots = heads.map(({ key }) => dot(query, key));
  const scores = dots.map((sum) => sum / root);
  const masked = scores.map((score, t) => (t <= row ? score : -Infinity));
  const largest = Math.max(...masked);
  const powers = masked.map((score) => Math.exp(score - largest));
  const sum = powers.reduce((a, b) => a + b);
  const weights = powers.map((power) => power / sum);
  const proj = model.parameters[`body.${layer}.attention.proj.weight`];
  const wrote = columns(out, proj, index);
  const back = readBack(proj, model.toward(rows[row].streams, id), index * query.length,
    query.length);
  const left = model.leftOf(layer);
  const adds = weights.map((weight, t) => weight * dot(heads[t].value, back) * left);
  return { query, keys: heads.map(({ key }) => key), values: heads.map(({ value }) => value),
    root, dots, scores, masked, largest, powers, sum, weights, out, wrote, adds };
}

/** block.py, FeedForward, of one position. fed: what it reads, after the norm. Each list has
 * an entry for each neuron: hidden (w·x + b), gates (of "swiglu", else null), bent, adds (to
 * the logit of `id`); `bias` is what the projection's bias adds to it. */
export function unfoldFeedForward(model, seen, layer, id) {
  const { fed, hidden, neurons: bent } = seen.layers[layer], n = bent.length;
  const name = `body.${layer}.feed_forward`, proj = model.parameters[`${name}.proj.weight`];
  const toward = model.toward(seen.streams, id), left = model.leftOf(layer);
  const back = readBack(proj, toward, 0, n), bias = model.parameters[`${name}.proj.bias`];
  const gated = hidden.length > n; // the first half are the gates
  const from = gated ? n : 0, expand = model.parameters[`${name}.expand.weight`];
  return { fed, bent, hidden: hidden.slice(from), gates: gated ? hidden.slice(0, n) : null,
    weightsOf: (i) => expand.data.slice((from + i) * fed.length, (from + i + 1) * fed.length),
    biasOf: (i) => model.parameters[`${name}.expand.bias`]?.data[from + i] ?? 0,
    adds: Array.from(bent, (v, i) => v * back[i] * left),
    bias: bias ? dot(bias.data, toward) * left : 0 };
}

/** The last layer, and generation.py, probabilities. read: the stream after the last norm.
 * Each list has an entry for each id: scores (w·x + b), logits (the same, but with a softcap),
 * cooled (divided by the temperature), kept (−∞ for what top-k and top-p drop), powers,
 * probs, from and upTo: where it lies on their pile, onto which a random number falls. */
export function unfoldLogits(model, { streams, logits }, knobs) {
  const read = model.norm(streams.at(-1), `body.${model.config.n_layer}`);
  const lm_head = model.parameters["lm_head.weight"], bias = model.parameters["lm_head.bias"];
  const { temperature, topK, topP } = knobs, C = read.length;
  const cooled = Array.from(logits, (v) => v / (temperature || 1));
  const likeliest = Math.max(...logits);
  const kept = temperature === 0 // the first of the likeliest
    ? Array.from(logits, (v, i) => (i === logits.indexOf(likeliest) ? v : -Infinity))
    : keepLikeliest(cooled, topK, topP);
  const largest = Math.max(...kept), powers = kept.map((v) => Math.exp(v - largest));
  const probs = probabilities(logits, knobs);
  return { read, logits, cooled, kept, largest, powers, sum: powers.reduce((a, b) => a + b),
    ...stretches(probs), probs, scores: Array.from(model.linear(read, "lm_head")),
    weightsOf: (id) => lm_head.data.slice(id * C, (id + 1) * C),
    biasOf: (id) => (bias ? bias.data[id] : 0) };
}

/** generation.py, drawn: where each id lies on the pile of probabilities. */
export function stretches(probs) {
  let pile = 0;
  const upTo = probs.map((p) => (pile += p));
  return { from: probs.map((p, i) => upTo[i] - p), upTo };
}

/** What each of some columns of a projection writes along a direction of the stream (C):
 * columnᵀ · toward. */
function readBack({ rows, columns: width, data }, toward, from, n) {
  const back = new Float32Array(n);
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < n; i++) back[i] += data[r * width + from + i] * toward[r];
  }
  return back;
}
