// Attention as a picture: a row for each character of the window, a column for each that it
// may look at; the darker, the more.
"use strict";

/** The colours of the page, as the reader's system wants them: [r, g, b] each. */
function colours() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (colour) => {
    probe.style.color = colour;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  };
  const found = { paper: read("var(--map-paper)"), ink: read("var(--map-ink)") };
  probe.remove();
  return found;
}

/** Paint rows[t][s] onto a canvas of T × T pixels; CSS makes it larger. */
function paint(canvas, rows, { paper, ink }) {
  const size = rows.length;
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const pixels = new ImageData(size, size);
  for (let t = 0, i = 0; t < size; t++) {
    for (let s = 0; s < size; s++, i += 4) {
      const depth = s <= t ? Math.sqrt(rows[t][s]) : 0; // the root: a tenth is seen, too
      for (let c = 0; c < 3; c++) pixels.data[i + c] = paper[c] + depth * (ink[c] - paper[c]);
      pixels.data[i + 3] = s <= t ? 255 : 0; // the future is empty
    }
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** Paint numbers as a square of pixels, row by row; the darker, the larger. */
function paintNumbers(canvas, numbers, { paper, ink }) {
  const size = Math.ceil(Math.sqrt(numbers.length));
  const most = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const pixels = new ImageData(size, size);
  numbers.forEach((value, i) => {
    const depth = Math.abs(value) / most;
    for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = paper[c] + depth * (ink[c] - paper[c]);
    pixels.data[4 * i + 3] = 255;
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** The map of one head over a window: rows as in Reader. */
function mapOf(rows, { layer, index }) {
  return rows.map(({ attention }) => attention[layer][index]);
}
