// Numbers as pictures: attention as a map with a row for each character that looks and a column
// for each that it may look at, a list of numbers as a strip or a square, and probabilities as
// stretches of a line. The brighter, the more; what is negative has a colour of its own.
import { $, element, number } from "elements";
import { glyph, texts } from "tokens";
import { stretches } from "unfold";

/** The colours of the machine, as the reader's system wants them: [r, g, b] each. */
export function colours() {
  if (colours.found) return colours.found;
  const probe = element("span");
  $("drawing").before(probe);
  const read = (colour) => {
    probe.style.color = colour;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  };
  const names = ["paper", "glow", "rose", "ink", "for", "against", "text"];
  colours.found = Object.fromEntries(names.map((name) => [name, read(`var(--map-${name})`)]));
  probe.remove();
  return colours.found;
}

export const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

/** recoloured() is called when the reader's system wants other colours. */
export function onColours(recoloured) {
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", () => {
      colours.found = null;
      recoloured();
    });
  }
}

/** How many times as large as usual the type is. */
export const zoom = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

/** A canvas that is cleared and made as large as it is shown -> {pen, wide, high}, in units that
 * grow with the type. */
export function sized(canvas) {
  const unit = zoom(), scale = Math.max(1, devicePixelRatio), pen = canvas.getContext("2d");
  const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
  [canvas.width, canvas.height] = [Math.round(wide * scale), Math.round(high * scale)];
  pen.scale(scale * unit, scale * unit);
  return { pen, wide: wide / unit, high: high / unit };
}

/** Put pixels onto a canvas: colour(x, y) -> [depth from 0 to 1, the colours at 0 and
 * at 1], or null for none. */
function pixels(canvas, width, height, colour) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const image = new ImageData(width, height);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i += 4) {
      const found = colour(x, y);
      if (!found) continue;
      const [depth, from, to] = found;
      for (let c = 0; c < 3; c++) image.data[i + c] = from[c] + depth * (to[c] - from[c]);
      image.data[i + 3] = 255;
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** rows[t][s] onto a canvas of T × T pixels, which CSS makes larger; the future is empty. */
export function paint(canvas, rows, { paper, glow, ink }) {
  pixels(canvas, rows.length, rows.length, (s, t) => {
    if (s > t) return null;
    const depth = Math.sqrt(rows[t][s]); // the root: a tenth is seen, too
    return depth < .5 ? [2 * depth, paper, glow] : [2 * depth - 1, glow, ink];
  });
}

/** A list of numbers as pixels: how large each is, beside the largest, and of which sign. */
function paintSigned(canvas, numbers, width, most, ink) {
  pixels(canvas, width, Math.ceil(numbers.length / width), (x, y) => {
    const value = (numbers[y * width + x] ?? 0) / most;
    return [Math.sqrt(Math.abs(value)), ink.paper, value < 0 ? ink.against : ink.for];
  });
}

const largestOf = (numbers) => numbers.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-9);

/** One list as a square, row by row. */
export function paintSquare(canvas, numbers, ink) {
  paintSigned(canvas, numbers, Math.ceil(Math.sqrt(numbers.length)), largestOf(numbers), ink);
}

/** Lists as strips, one below the other and on one scale: lines: [{name, sign, numbers}] -> an
 * element. marked: the number that is looked at in the lists that are as long as `length`, and
 * choose(i) is called when the reader points at another one. */
export function strips(lines, { marked, length, choose }) {
  const longest = Math.max(...lines.map(({ numbers }) => numbers.length));
  const most = Math.max(...lines.map(({ numbers }) => largestOf(numbers)));
  return lines.map(({ name, sign = "", numbers }) => {
    const canvas = element("canvas", { "aria-hidden": true }), n = numbers.length;
    const box = element("span", { className: "cells" }, canvas);
    paintSigned(canvas, numbers, n, most, colours());
    box.style.setProperty("--part", n / longest);
    if (n === length) {
      box.classList.add("pointed");
      box.style.setProperty("--at", (marked + .5) / n);
      box.addEventListener("click", ({ offsetX }) =>
        choose(Math.floor(Math.min(.999, Math.max(0, offsetX / box.clientWidth)) * n)));
    }
    return element("div", { className: "strip" }, element("b", { textContent: sign }),
      element("span", { textContent: name }), box);
  });
}

/** The large map: the tokens of the window along both sides, where there is room, and a
 * frame around one row. */
export function paintMap(canvas, rows, tokens, row, ink) {
  const scale = Math.max(1, devicePixelRatio), wide = canvas.clientWidth * scale, n = rows.length;
  const labelled = wide / scale / (n + 2) >= 7 && tokens.every((token) => token.length === 1);
  const cell = wide / (n + (labelled ? 2 : 0)), edge = labelled ? 2 * cell : 0;
  canvas.width = canvas.height = Math.round(wide);
  canvas.rowAt = (share) => Math.floor((share * wide - edge) / cell); // where one points at it
  const pen = canvas.getContext("2d"), small = element("canvas");
  paint(small, rows, ink);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, edge, edge, n * cell, n * cell);
  pen.fillStyle = css(ink.text);
  pen.font = `${Math.min(cell * 1.15, 20 * scale)}px ui-monospace, monospace`;
  pen.textAlign = "center";
  for (let i = 0; labelled && i < n; i++) {
    pen.globalAlpha = i === row ? 1 : .75;
    pen.fillText(glyph(tokens[i]), edge / 2, edge + (i + .8) * cell);
    pen.fillText(glyph(tokens[i]), edge + (i + .5) * cell, edge * .7);
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = css(ink.text);
  pen.lineWidth = Math.max(1.5 * scale, 1);
  pen.strokeRect(edge, edge + row * cell, (row + 1) * cell, cell);
}

/** The probabilities side by side from 0 to 1, and a line where the random number fell, if
 * one did. */
export function paintPile(canvas, probs, chance, ink) {
  const { pen, wide, high } = sized(canvas), top = 24;
  const { from } = stretches(probs), most = Math.max(...probs);
  pen.textAlign = "center";
  pen.font = "600 17px ui-monospace, monospace";
  probs.forEach((p, id) => {
    const depth = .3 + .7 * Math.sqrt(p / most), width = p * wide;
    pen.fillStyle = css(ink.paper.map((v, c) => v + depth * (ink.for[c] - v)));
    pen.fillRect(from[id] * wide, top, Math.max(width - 1, width / 2), high - top - 4);
    pen.fillStyle = css(depth > .6 ? ink.paper : ink.text);
    if (width > 14) pen.fillText(glyph(texts[id]), from[id] * wide + width / 2, (high + top) / 2 + 4);
  });
  if (chance === undefined) return;
  pen.fillStyle = css(ink.ink);
  pen.fillRect(chance * wide - 1.5, top - 6, 3, high);
  pen.font = "600 14px system-ui, sans-serif";
  pen.fillText(number(chance), Math.min(Math.max(chance * wide, 22), wide - 22), top - 10);
}

/** The map of one head over a window: rows as in Reader. */
export function mapOf(rows, { layer, index }) {
  return rows.map(({ layers }) => layers[layer].heads[index].weights);
}
