// Vectors as strips: a cell for each number, blue above zero, orange below, the brighter the
// further away. Those of a sheet stand one below the other, on one scale, so that one sees how
// one comes of the others. travel.js lets them come from there.
"use strict";

/** One vector as a row of cells; `most` is what has the full colour. */
function cells(numbers, most) {
  const canvas = element("canvas", { "aria-hidden": true });
  paintSigned(canvas, [numbers], colours(), most);
  const box = element("span", { className: "cells" }, canvas);
  box.style.setProperty("--n", numbers.length);
  box.classList.toggle("apart", numbers.length <= 64); // then there is room between them
  return box;
}

/** Strips with names, on one scale or each on its own: lines: [{name, numbers, kind}]; most: what
 * has the full colour -> an element. */
function namedStrips(lines, most) {
  const longest = Math.max(...lines.map(({ numbers }) => numbers.length));
  return element("div", { className: "factors" }, ...lines.map(({ name, numbers, kind = "" }) => {
    const box = cells(numbers, most ?? largestOf([numbers]));
    box.style.setProperty("--part", numbers.length / longest);
    if (numbers.length < longest) box.classList.remove("apart");
    return element("div", { className: `factor ${kind}` },
      element("span", { className: "strip-name", textContent: name }), box);
  }));
}

const largestOf = (vectors) => vectors.reduce((most, vector) =>
  vector.reduce((a, v) => Math.max(a, Math.abs(v)), most), 1e-9);

/** The strips of a sheet, below each other: what it reads, and the columns that are vectors.
 * choose(i) is called when one points at a number -> the boxes of cells, by their numbers, and
 * of what it reads as `input`. */
function showStrips({ columns, input, rows }, choose) {
  const some = columns.filter(({ sign }) => sign !== undefined);
  const all = [...(input ? [{ head: [input.name], values: input.numbers, step: 1, sign: "" }] : []),
    ...some];
  const most = largestOf(all.map(({ values }) => values));
  const longest = Math.max(...all.map(({ values }) => values.length));
  const boxes = all.map(({ values, step, sign, head }) => {
    const box = cells(values, most), line = element("div", { className: "strip-line of-step" },
      element("span", { className: "sign", textContent: sign }),
      element("span", { className: "strip-name", textContent: head.join("") }), box);
    line.style.setProperty("--s", step);
    box.style.setProperty("--part", values.length / longest);
    if (values.length < longest) box.classList.remove("apart");
    if (values.length === rows.length) { // then a cell is a row
      box.classList.add("pointed");
      box.addEventListener("click", ({ offsetX }) =>
        choose(Math.floor(Math.min(.999, offsetX / box.clientWidth) * values.length)));
    }
    return box;
  });
  $("strips").replaceChildren(...boxes.map((box) => box.parentElement));
  const found = input ? boxes.slice(1) : boxes;
  if (input) found.input = boxes[0];
  return found;
}
