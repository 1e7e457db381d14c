// What unfold.js has computed, as a sheet that can be read: rows, columns that belong to a
// step each, a sentence for each step and a line of arithmetic for each row and step.
//
// A sheet: {title, first: what a row is, rows: [{label, aside, later, when: "few" or
// "all", if it is seen only then, since: from which step on}], few: the rows that are seen at first, or null: those around
// the one that is looked at; shown: the row to look at
// first, telling: it and two more, further: those that follow while one still reads, steps: [{name, why: what it is for, says: what is computed,
// lit: what lights up in the drawing, briefWhy and brief: what the walk says instead, which
// stands for the steps before it, too; tell: how many of the telling rows hold still, else all;
// telling, further: others in their place; row: the one that does}],
// input: {name, numbers, from}: the strip that the others are made of, columns: [{step, head,
// values, digits, above, vectors, tinted, shaded, bar: true, or
// what a whole bar is, signed, sign, from, to, foot}], products(i,
// step): two vectors that are multiplied there, and where they come from; beside(i, step): other
// strips, lines[step](i)}.
"use strict";

const MOST = 64; // rows of neurons, or of tokens; the others are summed up
const ALL = 128; // of a vocabulary that is not cut
const FEW = 6; // rows that are seen at first

/** A part of what was computed for `position`, as a sheet. */
function sheetOf(name, side, position, start, rows, id) {
  const { model } = side.reading, part = partOf(name), row = position - 1 - start;
  const off = side.off.has(name) ? " It is switched off: this is what it would say." : "";
  const tokens = rows.map((_, t) => glyph(texts[side.ids[start + t]]));
  return SHEETS[part.kind]({ model, rows, row, seen: rows[row], part, id, off, tokens,
    token: side.ids[position - 1], me: `“${tokens[row]}”`, came: side.ids[position],
    chance: side.drawn[position]?.chance,
    effect: () => effectOf(side, name, position, start, rows[row], id) });
}

function headSheet({ model, rows, row, part, id, off, tokens, me, effect }) {
  const u = unfoldHead(model, rows, row, part, id), n = u.query.length;
  const to = `“${glyph(texts[id])}”`, share = sum(u.adds), lit = [nameOf(part)];
  const later = rows.length - 1 - row, root = number(u.root, 2);
  const other = (i) => `“${tokens[i]}” (${back(row - i)})`;
  const more = effectSays(effect(), share);
  return {
    title: `Watch ${nameOf(part)} compute, after ${me}`,
    first: UNIT,
    rows: tokens.map((label, t) => ({ label, aside: back(row - t), later: t > row })),
    few: [...ranked(u.weights).slice(0, later ? FEW - 1 : FEW), ...(later ? [row + 1] : [])],
    ...tellingRows(ranked(u.weights)), further: ranked(u.weights).slice(0, FEW - 1),
    steps: [
      { name: "q · k", lit, shown: [],
        why: [`Each earlier ${UNIT} is asked: how well do you fit what I look for?`],
        brief: [`The `, word("query"), ` of ${me} times its `, word("key"),
          `, number by number: the ${n} products are added up.${off}`],
      says: [`${me} asks with its `, word("query"), `, every ${UNIT} answers `
        + "with its ", word("key"), `: ${n} numbers each. They are multiplied one by one, and `
        + `the ${n} products are added up.${off}`] },
      { name: `÷ √${n}`, lit, shown: [], tell: 0,
        why: ["Longer lists must not give larger answers."], says: [`Each sum is divided by √${n} = ${root}: so it does not grow `
        + "with how many numbers there are. Now it is a ", word("score"), "."] },
      { name: "mask", lit, shown: [], telling: [], row: later ? row + 1 : undefined,
        why: ["Nobody may look ahead."], says: [later
        ? `What comes later than ${me} must not be seen: `
        : `Nothing stands behind ${me} in view; else `, word("mask", "−∞"),
      later ? ` takes the place of ${later === 1 ? "one score" : `${later} scores`}.`
        : " would take the place of its score."] },
      { name: "softmax", lit, tell: 1,
        why: ["The answers become shares of one whole: how much to take from each."],
        brief: [`Divided by √${n} and `, word("mask", "masked"), "; then ", word("softmax"),
          " makes ", word("weight", "weights"), ", which sum to 1: the arcs above."],
      says: [word("softmax", "Softmax"), ": e to the power of each score less "
        + `the largest, ${number(u.largest, 2)}; then divided by their sum, `
        + `${number(u.sum, 2)}. That makes the `, word("weight", "weights"), ", which sum to 1."] },
      { name: "weights · v", lit, tell: 1,
        why: [`Each ${UNIT} hands over what it has, as much of it as its share.`],
        brief: ["Its ", word("value"), " times its weight; added up they are the ", word("output"),
          `: ${n} numbers.`],
      says: [`Every ${UNIT} hands out its `, word("value"),
        ". Each is multiplied by its weight, and all are added up: the ", word("output"),
        ` of the head, ${n} numbers.`] },
      { name: "add", lit, tell: 1, why: [`What was fetched is written into the list of ${me}.`],
        brief: ["To the score (", word("logit"), `) of ${to} that ${off ? "would add" : "adds"} `
          + `${signed(share)}.${more}`],
      says: ["The ", word("projection"), ` makes ${u.wrote.length} numbers of the ${n} and adds `
        + "them to the ", word("stream"), `. That ${off ? "would move" : "moves"} the `, word("logit"),
      ` of the next ${UNIT}, ${to}, by ${signed(share)}; each ${UNIT} has its share.${more}`] },
    ],
    columns: [
      { step: 1, head: ["query, keys"], above: u.query, vectors: u.keys },
      { step: 1, head: ["q · k"], values: u.dots },
      { step: 2, head: [`÷ ${root}`], values: u.scores },
      { step: 3, head: ["masked"], values: u.masked },
      { step: 4, head: ["e^"], values: u.powers, foot: u.sum },
      { step: 4, head: ["weight"], values: u.weights, bar: 1, foot: sum(u.weights) },
      { step: 5, head: ["values, output"], vectors: u.values, foot: u.out },
      { step: 6, head: [`to ${to}`], values: u.adds, signed: true, foot: share },
    ],
    beside: (_, step) => (step === 6 ? [{ name: "output", numbers: u.out, from: lit },
      { name: "written", numbers: u.wrote, from: [0] }] : undefined),
    products: (t, step) => ({
      1: { names: ["query", "key"], left: u.query, right: u.keys[t], from: ["above", "row"] },
      5: { names: ["value", "weight"], left: u.values[t],
        right: u.values[t].map(() => u.weights[t]), from: ["row"],
        scale: largestOf([...u.values, u.weights]) }, // of all rows: a small weight is seen as such
    })[step],
    lines: [
      (t) => `q · k with ${other(t)} = ${number(u.dots[t], 3)}`,
      (t) => `${number(u.dots[t], 3)} ÷ ${number(u.root, 3)} = ${number(u.scores[t], 3)}`,
      (t) => (t > row ? `${other(t)} comes later: −∞ instead of ${number(u.scores[t], 3)}`
        : `${other(t)} may be seen: its score stays ${number(u.scores[t], 3)}`),
      (t) => (t > row ? "e to the power of −∞ = 0, and 0 remains"
        : `e to the power of (${number(u.scores[t], 3)} − ${bracket(u.largest)}) = `
        + `${number(u.powers[t], 3)}, divided by ${number(u.sum, 3)} = ${number(u.weights[t], 3)}`),
      (t) => `${number(u.weights[t], 3)} × the value of ${other(t)}`,
      (t) => `${other(t)} adds ${signed(u.adds[t], 3)} to the logit of ${to}; all together `
        + signed(share, 3),
    ],
  };
}

function logitsSheet({ model, seen, me, id, came, chance }) {
  const settings = knobs(), u = unfoldLogits(model, seen, settings), C = u.read.length;
  const { temperature, topK, topP } = settings, { softcap } = model.config;
  const order = ranked(u.logits).slice(0, V <= ALL ? V : MOST), rest = V - order.length;
  const at = (list) => order.map((i) => list[i]), char = (k) => `“${glyph(texts[order[k]])}”`;
  const cut = [topK && `top-k ${topK}`, topP && `top-p ${topP}`].filter(Boolean).join(", ");
  const dropped = u.kept.filter((v) => v === -Infinity).length;
  const lit = ["last biases"], drawing = [...lit, "to"];
  const b = biasIn(model, "lm_head"), drawnRow = order.indexOf(came);
  const cap = softcap ? 1 : 0, divided = `÷ ${number(temperature, 2)}`; // a cap is a step more
  return {
    title: `Watch the last layer compute, after ${me}`,
    first: UNIT,
    rows: order.map((id, k) => ({ label: glyph(texts[id]), aside: `${k + 1}.`,
      later: u.kept[id] === -Infinity })),
    few: [...order.keys()].slice(0, FEW),
    ...tellingRows(order.keys()), further: [...order.keys()].slice(0, FEW),
    steps: [
      { name: `w · x${b}`, lit, shown: [], tell: 2,
        why: [`Now each of the ${V} ${UNIT}s is asked: how well do you fit this list?`],
        brief: ["The normed ", word("stream"), ` times its ${C} `, word("parameters"), ", added up",
          ...(b ? [", with a ", word("bias")] : []), ": its score, the ", word("logit"), "."],
      says: [`Each of ${V} ${UNIT}s has ${C} `, word("parameters"),
        ` in the last layer: multiplied with the ${C} numbers of the normed `, word("stream"),
        ` and added up${b ? ", with a bias of its own" : ""}, they are its `, word("logit"),
        "."] },
      ...(softcap ? [{ name: "cap", lit, shown: [], tell: 1,
        why: ["No score may grow without bound."], says: [`The model holds its logits within ±${softcap}: `
        + `${softcap} × tanh(score ÷ ${softcap}).`] }] : []),
      { name: "÷ temperature", lit, shown: [], tell: 0, why: ["Your knob says how bold it may be."],
        says: temperature
        ? ["All are divided by the ", word("temperature"), ` ${number(temperature, 2)}: the `
          + `differences ${temperature < 1 ? "grow" : temperature > 1 ? "shrink" : "stay"}.`]
        : [word("temperature", "Temperature"), " 0: nothing is divided, the largest is taken."] },
      { name: "top-k, top-p", lit, shown: [], tell: 0, why: ["The least likely may be left out."],
        says: [cut || !temperature
        ? `${dropped} of ${V} are dropped (${cut || "temperature 0"}): their score becomes −∞.`
        : `No knob drops any of the ${V}: `, word("top-k"), " and ", word("top-p"),
      cut || !temperature ? " are knobs above." : " are off."] },
      { name: "softmax", lit, tell: 1,
        why: ["The scores become chances, which together make 1."],
        brief: [...(temperature ? ["Divided by the ", word("temperature"), ` ${number(temperature, 2)}`]
          : ["At ", word("temperature"), " 0 the largest is taken"]),
        `, ${dropped ? `${dropped} of ${V} dropped by the knobs` : "none dropped"}; then `,
        word("softmax"), `.${knobsSay(u, id)}`],
      says: [word("softmax", "Softmax"), ": e to the power of each less the "
        + `largest, divided by their sum, ${number(u.sum, 2)}: the probabilities from which one `
        + "is drawn."] },
      { name: "draw", lit: drawing, tell: 1, row: drawnRow < 0 ? undefined : drawnRow,
        why: [`Chance decides: a random number falls on one ${UNIT}.`],
        brief: [`Each is as wide as it is likely. ${drawSays(u.probs, came, chance)}`,
          ...closing({ model, seen, me, came, chance, probs: u.probs })],
        says: [`Between 0 and 1 each ${UNIT} has a stretch as long as it is likely, in the order of `
        + `the vocabulary; the table has the likeliest first. ${drawSays(u.probs, came, chance)}`] },
    ],
    columns: [
      { step: 1, head: [softcap ? "score" : "logit"], values: at(u.scores) },
      ...(softcap ? [{ step: 2, head: ["logit"], values: at(u.logits) }] : []),
      { step: 2 + cap, head: [temperature ? divided : "as it is"], values: at(u.cooled) },
      { step: 3 + cap, head: ["kept"], values: at(u.kept) },
      { step: 4 + cap, head: ["e^"], values: at(u.powers), foot: u.sum },
      { step: 4 + cap, head: ["probability"], values: at(u.probs), bar: 1, digits: 3,
        foot: sum(u.probs), note: rest ? `with ${rest} others` : "" },
      { step: 5 + cap, head: ["from"], values: at(u.from), digits: 3 },
      { step: 5 + cap, head: ["to"], values: at(u.upTo), digits: 3 },
    ],
    products: (k, step) => (step === 1 ? { names: ["normed", glyph(texts[order[k]])],
      left: u.read, right: u.weightsOf(order[k]), bias: u.biasOf(order[k]),
      from: ["norm last", "last biases"] } : undefined),
    lines: [
      (k) => `${char(k)}: w · x${b} = ${number(u.scores[order[k]], 3)}`,
      ...(softcap ? [(k) => `${softcap} × tanh(${number(u.scores[order[k]], 3)} ÷ ${softcap}) = `
        + number(u.logits[order[k]], 3)] : []),
      (k) => (temperature ? `${char(k)}: ${number(u.logits[order[k]], 3)} ${divided} = `
        + number(u.cooled[order[k]], 3) : `${char(k)}: ${number(u.logits[order[k]], 3)}`),
      (k) => `${char(k)} ${u.kept[order[k]] === -Infinity ? "is dropped: −∞" : "stays"}`,
      (k) => `${char(k)}: e to the power of (${number(u.kept[order[k]], 3)} − `
        + `${bracket(u.largest)}) = ${number(u.powers[order[k]], 3)}, divided by `
        + `${number(u.sum, 3)} = ${number(u.probs[order[k]], 3)}`,
      (k) => `${char(k)} is drawn by a number from ${number(u.from[order[k]], 3)} to `
        + `${number(u.upTo[order[k]], 3)}`,
    ],
  };
}

/** What the knobs make of the model's own probability, if that is seen. */
function knobsSay({ logits, probs }, id) {
  const own = number(softmax(logits)[id]), now = number(probs[id]);
  return own === now ? "" : ` That takes “${glyph(texts[id])}” from ${own} to ${now}.`;
}

/** The way up in a sentence: what came, and which part did most for it. */
function closing({ model, seen, me, came, chance, probs }) {
  if (chance === undefined || came !== drawn(probs, () => chance)) return [];
  const shares = model.shares(seen, came);
  const parts = [...shares.keys()].filter((name) => /^(head|feed-forward) \d/.test(name));
  const best = parts.reduce((a, b) => (shares.get(b) > shares.get(a) ? b : a));
  return [" ", element("b", { className: "closing", textContent: `So after ${me} it drew “${glyph(texts[came])}”: `
    + `heads fetched, neurons added, chance chose. ${best[0].toUpperCase()}${best.slice(1)} did most: `
    + `${signed(shares.get(best))} of its score ${number(seen.logits[came], 2)}.` })];
}

/** Where the random number fell, or would. */
function drawSays(probs, came, chance) {
  const name = (id) => `“${glyph(texts[id])}”`;
  if (came === undefined) return "A random number says where it goes on: “One " + UNIT + "” draws it.";
  if (chance === undefined) return `Here none was drawn: ${name(came)} was given.`;
  const now = drawn(probs, () => chance), fell = `The random number was ${number(chance)}: there `;
  return now === came ? `${fell}lies ${name(came)}, and it is written.`
    : `${fell}now lies ${name(now)}; when it was drawn, ${name(came)} did.`;
}

/** How a layer's product goes on: with a bias, if it has one. */
const biasIn = (model, name) => (`${name}.bias` in model.parameters ? " + b" : "");

/** The first of some rows is shown, and when it is played the next of `n` as well. */
function tellingRows(rows, n = 3) {
  const telling = [...rows].slice(0, n);
  return { shown: telling[0], telling };
}

const sum = (numbers) => Array.from(numbers).reduce((a, b) => a + b, 0);
const bracket = (value) => (value < 0 ? `(${number(value, 3)})` : number(value, 3));

/** {kind of a part: its sheet}; what partOf calls a kind is how the part's name begins. */
const SHEETS = { embedding: embeddingSheet, norm: normSheet, query: querySheet, head: headSheet,
  heads: headsSheet, "feed-forward": feedForwardSheet, add: addSheet, block: blockSheet,
  logits: logitsSheet };
