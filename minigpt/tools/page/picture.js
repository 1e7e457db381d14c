// What is seen, as a file: the map and the text as PNG.
"use strict";

/** Hand a canvas to the reader as a file. */
function save(canvas, name) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}

/** A canvas with a title, and room for `height` below it. */
function sheet(width, height, title) {
  const style = getComputedStyle(document.body);
  const canvas = Object.assign(document.createElement("canvas"),
    { width, height: height + 80 });
  const pen = canvas.getContext("2d");
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(0, 0, width, height + 80);
  pen.fillStyle = style.color;
  pen.font = "22px system-ui, sans-serif";
  pen.fillText(title, 30, 44, width - 60);
  return { canvas, pen };
}

/** A map with the tokens of the window along both sides. */
function mapPicture(rows, tokens, title) {
  const map = element("canvas");
  paint(map, rows, colours());
  const cell = Math.max(4, Math.floor(1152 / tokens.length)), size = cell * tokens.length;
  const labels = tokens.map(glyph), longest = Math.max(...labels.map((label) => label.length));
  const font = Math.min(cell, 18), left = Math.ceil(28 + longest * font * .62), top = left + 60;
  const { canvas, pen } = sheet(left + size + 30, left + size + 10, title);
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = `rgb(${colours().paper.join(" ")})`;
  pen.fillRect(left, top, size, size);
  pen.drawImage(map, left, top, size, size);
  pen.fillStyle = getComputedStyle(document.body).color;
  pen.strokeStyle = pen.fillStyle;
  pen.strokeRect(left, top, size, size);
  pen.font = `${font}px ui-monospace, monospace`;
  labels.forEach((label, i) => {
    const middle = (i + .5) * cell;
    pen.textAlign = "right";
    pen.fillText(label, left - 7, top + middle + font * .3);
    pen.save();
    pen.translate(left + middle, top - 7);
    if (longest > 1) pen.rotate(-Math.PI / 2); // names are turned, letters are not
    pen.textAlign = longest > 1 ? "left" : "center";
    pen.fillText(label, 0, longest > 1 ? font * .3 : 0);
    pen.restore();
  });
  return canvas;
}

/** A text as it is shaded: spans are those of Characters, with lines of 60 at most. */
function textPicture(spans, tokens, title) {
  const cells = [], wide = 18, high = 38;
  let row = 0, column = 0;
  tokens.forEach((token, i) => {
    const chars = Array.from(inText(token));
    if (column && column + chars.length > 60) [row, column] = [row + 1, 0];
    cells.push({ row, column, span: spans[i], chars });
    column += chars.length;
    if (token.includes("\n")) [row, column] = [row + 1, 0];
  });
  const { canvas, pen } = sheet(60 * wide + 60, (row + 1) * high, title);
  for (const { row, column, span, chars } of cells) {
    const x = 30 + column * wide, y = 70 + row * high, style = getComputedStyle(span);
    pen.fillStyle = style.backgroundColor;
    pen.fillRect(x, y, chars.length * wide, high - 6);
    pen.fillStyle = style.borderLeftColor; // where a token begins
    pen.fillRect(x, y, parseFloat(style.borderLeftWidth), high - 6);
    pen.fillStyle = style.color;
    pen.font = `${style.fontWeight} 26px ui-monospace, monospace`;
    chars.forEach((char, i) => pen.fillText(char, x + 1 + i * wide, y + 25));
  }
  return canvas;
}
