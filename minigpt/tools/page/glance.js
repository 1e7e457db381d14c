// The line at the top: what the model sees of the text, where its heads look from the last
// character, and what it thinks likely next. It moves on with every character.
import { UNIT } from "content";
import { $, element, number } from "elements";
import { probabilities, ranked } from "generation";
import { colours, css, sized, zoom } from "pictures";
import { active, choose, knobs, partOf, positionOf, watched } from "state";
import { glyph, quoted, spoken, texts } from "tokens";
import { word } from "words";

const TAPE = { font: 17, fan: 150, foot: 12, shown: 5, least: .03 };

/** Draw it for what was computed at a position: rows as in Reader, from `start` on. */
export function paintGlance(side, position, { start, rows }) {
  const { pen, high } = sized($("glance")), ink = colours(), row = position - 1 - start;
  pen.lineCap = "round";
  if (row < 0 || !rows[row]) return;
  const base = high - TAPE.foot, top = base - TAPE.font - 3;
  const { right, cell, fan } = tape(side, position);
  const tokens = rows.slice(0, row + 1).map((_, t) => glyph(texts[side.ids[start + t]]));
  const middles = paintTape(pen, tokens, right, base, cell, ink);
  paintHeads(pen, side, rows[row].layers, middles, top, ink);
  paintNext(pen, side, position, rows[row].logits, { from: right, top, wide: right + fan, high }, ink);
  tellCount(side, position - start);
}

/** Where the text ends that is read up to a position, how wide a character is, and the room
 * behind it: a whole context has room, or on a narrow screen as much as one can read. A text
 * begins on the left; it moves on to the right, and stays there when its older half goes. */
function tape(side, position) {
  const wide = $("glance").clientWidth / zoom(), fan = Math.min(TAPE.fan, wide / 3), most = wide - fan;
  const cell = Math.min(18, Math.max(13, (most - 4) / side.whole.config.block_size));
  return { right: UNIT === "token" ? most : Math.min(most, position * cell + 4), cell, fan };
}

/** The tokens, the last of them at `right`, as far as there is room -> the middle of each. */
function paintTape(pen, tokens, right, base, cell, ink) {
  pen.font = `${TAPE.font}px ui-monospace, monospace`;
  pen.textAlign = "center";
  const middles = [];
  const cut = tokens.length * cell > right; // then what leaves the picture fades
  let x = right;
  for (let t = tokens.length - 1; t >= 0 && x > 0; t--) {
    const width = Math.max(cell, pen.measureText(tokens[t]).width + (UNIT === "token" ? 6 : 0));
    middles[t] = x - width / 2;
    if (t === tokens.length - 1) {
      pen.fillStyle = css(ink.ink);
      pen.beginPath();
      pen.roundRect(x - width - 1, base - TAPE.font, width + 2, TAPE.font + 6, 4);
      pen.fill();
    }
    pen.globalAlpha = cut ? Math.min(1, x / 90) : 1;
    pen.fillStyle = css(t === tokens.length - 1 ? ink.paper : ink.text);
    pen.fillText(tokens[t], middles[t], base);
    x -= width;
  }
  pen.globalAlpha = 1;
  return middles;
}

/** From the last token an arc to each that a head looks at: the wider, the more. The watched
 * head is brightest, and comes last. */
function paintHeads(pen, side, layers, middles, top, ink) {
  const here = middles.at(-1), last = Math.max(1, layers.length - 1);
  layers.forEach(({ heads }, layer) => heads.forEach(({ weights }, index) => {
    const name = `head ${layer + 1}.${index + 1}`;
    if (side.off.has(name) || name === watched) return;
    const colour = ink.rose.map((c, i) => c + layer / last * (ink.ink[i] - c));
    paintArcs(pen, weights, middles, here, top, css(colour), .8);
  }));
  const { kind, layer, index } = partOf(watched);
  if (kind !== "head" || side.off.has(watched)) return;
  paintArcs(pen, layers[layer].heads[index].weights, middles, here, top, css(ink.text), 1);
}

function paintArcs(pen, weights, middles, here, top, colour, strength) {
  pen.strokeStyle = pen.fillStyle = colour;
  weights.forEach((weight, t) => {
    const there = middles[t], reach = (here - there) / 2;
    if (weight < TAPE.least || there === undefined) return;
    pen.globalAlpha = strength * (.12 + .88 * Math.sqrt(weight));
    pen.beginPath();
    if (reach > 0) {
      const height = (top - 6) * (1 - Math.exp(-reach / 90));
      pen.lineWidth = .8 + 6 * weight;
      pen.ellipse(here - reach, top, reach, height, 0, Math.PI, 2 * Math.PI);
      pen.stroke();
    } else { // itself
      pen.arc(here, top - 2, 1 + 4 * weight, 0, 2 * Math.PI);
      pen.fill();
    }
  });
  pen.globalAlpha = 1;
}

/** The likeliest next tokens, each at the end of a ribbon as wide as it is likely. */
function paintNext(pen, side, position, logits, { from, top, wide, high }, ink) {
  const probs = probabilities(logits, knobs()), came = side.ids[position];
  const shown = ranked(probs).slice(0, TAPE.shown);
  if (came !== undefined && !shown.includes(came)) shown[shown.length - 1] = came;
  const gap = (high - 24) / TAPE.shown, end = wide - 68;
  shown.forEach((id, k) => {
    const y = 14 + (k + .5) * gap, is = id === came;
    pen.strokeStyle = css(is ? ink.ink : ink.for);
    pen.globalAlpha = .3 + .6 * probs[id];
    pen.lineWidth = 1 + 14 * probs[id];
    pen.beginPath();
    pen.moveTo(from + 8, top + 8);
    pen.bezierCurveTo(from + 45, top + 8, end - 40, y, end - 6, y);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillStyle = css(is ? ink.ink : ink.text);
    pen.textAlign = "left";
    const label = Array.from(glyph(texts[id]));
    pen.font = `600 ${label.length > 1 ? 13 : TAPE.font}px ui-monospace, monospace`;
    pen.fillText(label.slice(0, 4).join(""), end + 2, y + 6);
    pen.font = "13px system-ui, sans-serif";
    pen.fillText(number(probs[id], 2), end + 36, y + 5);
  });
}

/** How much is in view. */
function tellCount(side, n) {
  const { n_layer, n_head, block_size } = side.whole.config;
  if ($("seen").side !== side) {
    $("seen").side = side;
    $("seen").replaceChildren(element("span", { className: "count" }),
      " Arcs show where its ", word("head", `${n_layer * n_head} heads`), " look: rose in the first "
      + "block, gold in the last, white for the head below.");
  }
  $("seen").firstChild.textContent = `It sees ${n} ${UNIT}${n === 1 ? "" : "s"} (${block_size} at `
    + "most, then it forgets the older half).";
}

/** For those who don't see the picture, what is in it. */
export function tellGlance(side, position, logits) {
  const likely = ranked(probabilities(logits, knobs())).slice(0, TAPE.shown);
  $("glance").setAttribute("aria-label", `From ${quoted(side.ids[position - 1])} arcs lead back to `
    + "what the heads look at, and ribbons lead on to what is likely: "
    + likely.map((id) => spoken(texts[id])).join(", "));
}

/** Nothing comes before the first character. */
export function clearGlance() {
  $("glance").getContext("2d").clearRect(0, 0, $("glance").width, $("glance").height);
  $("seen").replaceChildren();
  $("seen").side = null;
}

$("glance").addEventListener("click", ({ offsetX }) => { // the character that is clicked
  const position = positionOf(active), start = position && active.startOf(position - 1);
  const { right, cell } = tape(active, position), back = Math.floor((right - offsetX / zoom()) / cell);
  if (UNIT === "character" && back >= 0 && position - 1 - back >= start) {
    choose(active, position - 1 - back);
  }
});
