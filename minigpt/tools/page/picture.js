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

/** The large map with the characters of the window along both sides. */
function mapPicture(map, chars, title) {
  const cell = Math.max(4, Math.floor(1152 / chars.length)), size = cell * chars.length;
  const { canvas, pen } = sheet(size + 70, size + 50, title);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(map, 40, 100, size, size);
  pen.strokeStyle = pen.fillStyle;
  pen.strokeRect(40, 100, size, size);
  pen.font = `${Math.min(cell, 18)}px ui-monospace, monospace`;
  pen.textAlign = "center";
  chars.forEach((char, i) => {
    pen.fillText(glyph(char), 28, 100 + (i + .8) * cell);
    pen.fillText(glyph(char), 40 + (i + .5) * cell, 94);
  });
  return canvas;
}

/** A text as it is shaded: spans are those of Characters, with lines of 60 at most. */
function textPicture(spans, chars, title) {
  const cells = [], wide = 18, high = 38;
  let row = 0, column = 0;
  chars.forEach((char, i) => {
    if (column === 60) [row, column] = [row + 1, 0];
    cells.push({ row, column: column++, span: spans[i], char });
    if (char === "\n") [row, column] = [row + 1, 0];
  });
  const { canvas, pen } = sheet(60 * wide + 60, (row + 1) * high, title);
  for (const { row, column, span, char } of cells) {
    const x = 30 + column * wide, y = 70 + row * high, style = getComputedStyle(span);
    pen.fillStyle = style.backgroundColor;
    pen.fillRect(x, y, wide, high - 6);
    pen.fillStyle = style.color;
    pen.font = `${style.fontWeight} 26px ui-monospace, monospace`;
    pen.fillText(char === " " ? " " : glyph(char), x + 1, y + 25);
  }
  return canvas;
}
