// A computation taken apart: every number between what a head, a feed-forward layer or the
// last layer reads and what it adds to a logit. Nothing here is drawn; forward.js has
// computed the same, and these are its own numbers or made of them.
"use strict";

/** attention.py, attention_weights and attention, for one query of one head, and what
 * comes of it. rows: of a window, as in Reader, also those behind `row`, which the mask
 * takes away; id: to whose logit it adds. Each list has an entry for each row:
 * dots (q·k), scores (divided by the root), masked, powers (e to the power of the score
 * less the largest), weights, adds (to the logit); `out` is their mixture of the values,
 * `wrote` what the projection makes of it. */
function unfoldHead(model, rows, row, { layer, index }, id) {
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
function unfoldFeedForward(model, seen, layer, id) {
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
 * probs. */
function unfoldLogits(model, { streams, logits }, knobs) {
  const read = model.norm(streams.at(-1), `body.${model.config.n_layer}`);
  const lm_head = model.parameters["lm_head.weight"], bias = model.parameters["lm_head.bias"];
  const { temperature, topK, topP } = knobs, C = read.length;
  const cooled = Array.from(logits, (v) => v / (temperature || 1));
  const likeliest = Math.max(...logits);
  const kept = temperature === 0 // the first of the likeliest
    ? Array.from(logits, (v, i) => (i === logits.indexOf(likeliest) ? v : -Infinity))
    : keepLikeliest(cooled, topK, topP);
  const largest = Math.max(...kept), powers = kept.map((v) => Math.exp(v - largest));
  return { read, logits, cooled, kept, largest, powers, sum: powers.reduce((a, b) => a + b),
    scores: Array.from(model.linear(read, "lm_head")),
    weightsOf: (id) => lm_head.data.slice(id * C, (id + 1) * C),
    biasOf: (id) => (bias ? bias.data[id] : 0),
    probs: probabilities(logits, knobs) };
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
