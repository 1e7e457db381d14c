// The model: one character in, the scores of all that may follow out.
//
// Function by function beside the Python it mirrors; each comment names the module.
// A vector is a Float32Array, as in torch; sums are taken in float64. There is no
// batch and no T: characters are read one after the other, through the cache, as by
// forward_with_cache of minigpt/fast/reader.py.

export const LAYER_EPS = 1e-5; // torch.nn.LayerNorm's eps, unless asked otherwise
const BYTES = { float32: Float32Array, int16: Int16Array, int8: Int8Array };

/** What pack() of minigpt/tools/page wrote -> {name: {rows, columns, data: Float32Array}}. */
export function unpack(tensors, base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const parameters = {};
  for (const { name, dtype, shape, at } of tensors) {
    const size = shape.reduce((a, b) => a * b);
    const data = new Float32Array(new BYTES[dtype](bytes.buffer, at, size));
    parameters[name] = { rows: shape[0], columns: size / shape[0], data };
  }
  for (const name of Object.keys(parameters).filter((n) => n.endsWith(".scale"))) {
    scaleRows(parameters[name.replace(/scale$/, "weight")], parameters[name].data);
  }
  return parameters;
}

/** fast/quantization.py, the way back: w = scale * q, a scale for each row. */
function scaleRows({ columns, data }, scale) {
  for (let i = 0; i < data.length; i++) data[i] *= scale[Math.floor(i / columns)];
}

/** torch.nn.Linear: W x + b, and no b if there is none. */
function linear(x, weight, bias) {
  const { rows, columns, data } = weight;
  const out = new Float32Array(rows);
  for (let r = 0; r < rows; r++) out[r] = (bias ? bias.data[r] : 0) + dot(x, data, r * columns);
  return out;
}

/** modern/parts.py, rms_norm: x / sqrt(mean(x²) + eps). */
function rmsNorm(x, eps) {
  const scale = 1 / spread(x, 0, eps);
  return x.map((v) => v * scale);
}

/** torch.nn.LayerNorm, before its gain and bias. */
function layerNorm(x) {
  const mean = meanOf(x), scale = 1 / spread(x, mean, LAYER_EPS);
  return x.map((v) => (v - mean) * scale);
}

/** The root of the mean square of the distances from `centre`. */
export function spread(x, centre, eps) {
  let squares = 0;
  for (const v of x) squares += (v - centre) ** 2;
  return Math.sqrt(squares / x.length + eps);
}

export function meanOf(x) {
  let sum = 0;
  for (const v of x) sum += v;
  return sum / x.length;
}

/** modern/parts.py, rotate: turn each pair of x by the angles of its position. */
function rotate(x, position) {
  const out = new Float32Array(x.length);
  for (let j = 0; j < x.length; j += 2) {
    const angle = position * 10000 ** (-j / x.length);
    const cos = Math.cos(angle), sin = Math.sin(angle);
    out[j] = x[j] * cos - x[j + 1] * sin;
    out[j + 1] = x[j] * sin + x[j + 1] * cos;
  }
  return out;
}

/** Numbers -> probabilities; minus the largest, so that none becomes infinite. */
export function softmax(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b));
  const powers = scores.map((s) => Math.exp(s - largest));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((p) => p / sum);
}

/** Σ of some numbers. */
export const sum = (numbers) => Array.from(numbers).reduce((a, b) => a + b, 0);

export function add(...vectors) {
  const out = new Float32Array(vectors[0].length);
  for (const x of vectors) for (let i = 0; i < out.length; i++) out[i] += x[i];
  return out;
}

/** Σ x[i] y[from + i]: four sums side by side, which a processor adds up at once. */
export function dot(x, y, from = 0) {
  let a = 0, b = 0, c = 0, d = 0, i = 0;
  for (; i + 3 < x.length; i += 4) {
    a += x[i] * y[from + i];
    b += x[i + 1] * y[from + i + 1];
    c += x[i + 2] * y[from + i + 2];
    d += x[i + 3] * y[from + i + 3];
  }
  for (; i < x.length; i++) a += x[i] * y[from + i];
  return a + b + c + d;
}

/** a[0] x + a[1] y, with two learned numbers: the mixtures of modern/model.py. */
function mixed(a, x, y) {
  return x.map((v, i) => a.data[0] * v + a.data[1] * y[i]);
}

/** block.py, FeedForward, and modern/parts.py, ModernFeedForward. */
function bend(hidden, activation) {
  if (activation === "relu") return hidden.map((v) => Math.max(v, 0));
  if (activation === "relu2") return hidden.map((v) => Math.max(v, 0) ** 2);
  const gate = hidden.subarray(0, hidden.length / 2); // "swiglu"
  const rest = hidden.subarray(hidden.length / 2);
  return rest.map((v, i) => v * gate[i] / (1 + Math.exp(-gate[i])));
}

/** fast/cache.py, KVCache: what has been read; of each layer the keys and the values. */
export class Cache {
  constructor(layers) {
    this.length = 0;
    this.layers = Array.from({ length: layers }, () => ({ keys: [], values: [] }));
  }
}

/** gpt.py, GPT, and modern/model.py, ModernGPT, of which GPT is the case with all off.
 *
 * off: names of parts, as "head 1.2" and "feed-forward 1", that are switched off, as by
 * `changed` of inside/looking.py: what they write is their mean over the training text, or
 * zeros if the file has no means or `zero` is true. */
export class Model {
  constructor(config, parameters, off = new Set(), zero = false) {
    Object.assign(this, { config, parameters, off, zero });
    this.headSize = config.n_embd / config.n_head;
  }

  without(off, zero) {
    return new Model(this.config, this.parameters, new Set(off), zero);
  }

  get hasMeans() {
    return "body.0.attention.mean" in this.parameters;
  }

  linear(x, name) {
    return linear(x, this.parameters[`${name}.weight`], this.parameters[`${name}.bias`]);
  }

  norm(x, name) {
    const gain = this.parameters[`${name}.weight`], bias = this.parameters[`${name}.bias`];
    const { rms_norm, norm_eps } = this.config;
    const even = rms_norm ? rmsNorm(x, norm_eps) : layerNorm(x);
    return even.map((v, i) => v * gain.data[i] + (bias ? bias.data[i] : 0));
  }

  /** What a part says that is switched off. */
  silence(name, size, from = 0) {
    const mean = this.zero ? undefined : this.parameters[`${name}.mean`];
    return mean ? mean.data.slice(from, from + size) : new Float32Array(size);
  }

  /** language_model.py: reads one id into the cache -> logits of what comes next, and
   * what there is to see on the way: the stream before the first block and after each,
   * parts: who wrote what into the stream, and layers: what each block computed, as
   * {entered, asked, heads, between, fed, hidden, neurons, wrote}: the stream as it
   * comes in and after the norm, what the heads did, the stream behind them and after the
   * second norm, the neurons before and after the bend, and what they wrote. */
  step(id, cache) {
    const position = cache.length++, { n_layer } = this.config;
    const row = ({ columns, data }, i) => data.slice(i * columns, (i + 1) * columns);
    const parts = [{ name: "token", wrote: row(this.parameters["token_embedding.weight"], id) }];
    const positions = this.parameters["position_embedding.weight"]; // none with rotary
    if (positions) parts.push({ name: "position", wrote: row(positions, position) });
    let x = add(...parts.map((part) => part.wrote));
    const own = new Map(parts.map(({ name, wrote }) => [name, wrote]));
    const token = { position, embedding: x, own, firstValues: null };
    const streams = [x], layers = [];
    for (let layer = 0; layer < n_layer; layer++) {
      const block = this.block(x, layer, token, cache.layers[layer], parts);
      x = block.x;
      streams.push(x);
      layers.push(block.seen);
    }
    return { logits: this.logits(x), streams, parts, layers };
  }

  /** block.py, Block, and modern/model.py, ModernBlock. */
  block(x, layer, token, kept, parts) {
    const name = `body.${layer}`, mix = this.parameters[`${name}.mix`];
    if (mix) {
      x = mixed(mix, x, token.embedding);
      for (const part of parts) {
        const again = token.own.get(part.name); // the token and its position
        part.wrote = again
          ? mixed(mix, part.wrote, again) : part.wrote.map((v) => mix.data[0] * v);
      }
    }
    const entered = x, asked = this.norm(x, `${name}.norm1`);
    const said = this.attend(asked, layer, token, kept);
    const between = add(x, ...said.parts.map((part) => part.wrote));
    const fed = this.norm(between, `${name}.norm2`);
    const hidden = this.linear(fed, `${name}.feed_forward.expand`);
    const neurons = bend(hidden, this.config.activation), part = `feed-forward ${layer + 1}`;
    const wrote = this.off.has(part)
      ? this.silence(`${name}.feed_forward`, x.length)
      : this.linear(neurons, `${name}.feed_forward.proj`);
    parts.push(...said.parts, { name: part, wrote });
    const seen = { entered, asked, heads: said.heads, between, fed, hidden, neurons, wrote };
    return { x: add(between, wrote), seen };
  }

  /** multi_head.py, CausalSelfAttention, and modern/model.py, ModernAttention: the query of
   * this character meets the keys of all that are kept, itself included. Its projection is
   * a sum over the heads, as in `contributions` of inside/looking.py. -> what they wrote,
   * and of each head its query, this character's key and value, the weights over all that
   * was read, the output, and what the projection wrote of it. */
  attend(x, layer, token, kept) {
    const name = `body.${layer}.attention`, size = this.headSize;
    const { n_head, n_kv_head, qk_norm, norm_eps, rotary } = this.config;
    const rows = this.linear(x, `${name}.qkv`);
    const part = (i) => rows.subarray(i * size, (i + 1) * size);
    const turned = (i) => {
      const even = qk_norm ? rmsNorm(part(i), norm_eps) : part(i);
      return rotary ? rotate(even, token.position) : even;
    };
    let values = rows.subarray((n_head + n_kv_head) * size);
    token.firstValues ??= values; // those of block 0
    const mix = this.parameters[`${name}.value_mix`];
    if (mix) values = mixed(mix, values, token.firstValues);
    kept.keys.push(Array.from({ length: n_kv_head }, (_, i) => turned(n_head + i)));
    kept.values.push(Array.from({ length: n_kv_head },
      (_, i) => values.subarray(i * size, (i + 1) * size)));

    const heads = [], parts = [], bias = this.parameters[`${name}.proj.bias`];
    for (let h = 0; h < n_head; h++) {
      const shared = Math.floor(h * n_kv_head / n_head); // a group shares its keys
      const query = turned(h), key = kept.keys.at(-1)[shared], value = kept.values.at(-1)[shared];
      const weights = attentionWeights(query, kept.keys.map((keys) => keys[shared]));
      let out = mixture(weights, kept.values.map((some) => some[shared]));
      const head = { query, key, value, weights, out }, called = `head ${layer + 1}.${h + 1}`;
      if (this.off.has(called)) out = this.silence(name, size, h * size);
      head.wrote = columns(out, this.parameters[`${name}.proj.weight`], h);
      heads.push(head);
      parts.push({ name: called, wrote: head.wrote });
    }
    if (bias) parts.push({ name: `bias ${layer + 1}`, wrote: bias.data });
    return { parts, heads };
  }

  /** What lm_head makes of a stream: of the last one the logits, of an earlier one what
   * the model would say if it ended there (the logit lens of nostalgebraist, 2020). */
  logits(stream) {
    const { n_layer, softcap } = this.config;
    const logits = this.linear(this.norm(stream, `body.${n_layer}`), "lm_head");
    return softcap ? logits.map((v) => softcap * Math.tanh(v / softcap)) : logits;
  }

  /** inside/looking.py, logit_shares: what each part adds to the logit of one id, as a Map
   * by name. The sum is the logit (with a softcap: before it). */
  shares({ streams, parts }, id) {
    const toward = this.toward(streams, id);
    const { columns: C, data } = this.parameters["lm_head.weight"];
    const shares = new Map(parts.map(({ name, wrote }) => [name, dot(wrote, toward)]));
    const norm = this.parameters[`body.${this.config.n_layer}.bias`];
    const bias = this.parameters["lm_head.bias"];
    shares.set("last biases", (norm ? dot(norm.data, data, id * C) : 0)
      + (bias ? bias.data[id] : 0));
    return shares;
  }

  /** The direction in the stream (C) that leads to a higher logit of one id, with the last
   * norm's scale as it is here: what is written into the stream adds its dot product with
   * this to the logit. */
  toward(streams, id) {
    const { n_layer, rms_norm, norm_eps } = this.config;
    const { columns: C, data } = this.parameters["lm_head.weight"];
    const centre = rms_norm ? 0 : meanOf(streams[n_layer]);
    const scale = 1 / spread(streams[n_layer], centre, rms_norm ? norm_eps : LAYER_EPS);
    const gain = this.parameters[`body.${n_layer}.weight`].data;
    const toward = data.slice(id * C, (id + 1) * C).map((v, i) => v * gain[i] * scale);
    const mean = rms_norm ? 0 : meanOf(toward); // LayerNorm takes off what all share
    return toward.map((v) => v - mean);
  }

  /** What is left, after the mixtures of the later blocks, of what a layer has written. */
  leftOf(layer) {
    let left = 1;
    for (let later = layer + 1; later < this.config.n_layer; later++) {
      left *= this.parameters[`body.${later}.mix`]?.data[0] ?? 1;
    }
    return left;
  }

  /** {name: how many parameters it has}, for the parts that are drawn. */
  sizes() {
    const { n_layer, n_head, n_embd, n_kv_head } = this.config, size = this.headSize;
    const count = (start) => Object.entries(this.parameters)
      .filter(([name]) => name.startsWith(start) && !/\.(scale|mean)$/.test(name))
      .reduce((sum, [, { data }]) => sum + data.length, 0);
    const sizes = new Map([["token", count("token_embedding.")],
      ["position", count("position_embedding.")]]);
    for (let layer = 0; layer < n_layer; layer++) {
      const head = 2 * n_embd * size * (1 + n_kv_head / n_head); // q, proj; k and v, shared
      for (let h = 0; h < n_head; h++) sizes.set(`head ${layer + 1}.${h + 1}`, head);
      sizes.set(`feed-forward ${layer + 1}`, count(`body.${layer}.feed_forward.`));
    }
    return sizes.set("last biases", count(`body.${n_layer}.`) + count("lm_head."));
  }
}

/** The columns of a projection that read head h: W[:, mine] x. */
export function columns(x, { rows, columns, data }, h) {
  const out = new Float32Array(rows);
  for (let r = 0; r < rows; r++) out[r] = dot(x, data, r * columns + h * x.length);
  return out;
}

/** attention.py, attention_weights: softmax(q kᵀ / √head_size) of one query. */
function attentionWeights(query, keys) {
  const root = Math.sqrt(query.length);
  return softmax(new Float32Array(keys.map((key) => dot(query, key) / root)));
}

/** Σ weights[t] vectors[t]. */
function mixture(weights, vectors) {
  const out = new Float32Array(vectors[0].length);
  for (let t = 0; t < vectors.length; t++) {
    const vector = vectors[t], weight = weights[t];
    for (let d = 0; d < out.length; d++) out[d] += weight * vector[d];
  }
  return out;
}
