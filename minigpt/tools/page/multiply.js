// Two vectors that are multiplied number by number: the products as cells, which appear one
// after another while they are added up, until the sum goes to its row.
"use strict";

// Products shown, one by one, on a wide and on a narrow screen; the smaller ones are summed up.
const CELLS = { wide: 40, narrow: 16 };
const FLIGHT = 300; // milliseconds in which a sum goes to its row

/** left[i] × right[i], one by one in their order, or the largest of them and the others'
 * sum; then the bias, if there is one. */
function productCells({ names, left, right, bias }) {
  const products = Array.from(left, (v, i) => v * right[i]);
  const most = Math.max(...products.map(Math.abs), 1e-9);
  const cell = (title, total, ...factors) => {
    const made = element("div", { className: `product${total < 0 ? " against" : ""}`, title });
    made.style.setProperty("--share", Math.min(1, Math.abs(total) / most));
    made.append(...factors.map((text) => element("i", { textContent: text })),
      element("b", { textContent: number(total, 2) }));
    return Object.assign(made, { total });
  };
  const room = CELLS[narrow.matches ? "narrow" : "wide"] - (bias ? 1 : 0);
  const some = products.length > room
    ? ranked(products.map(Math.abs)).slice(0, room - 1) : [...products.keys()];
  const legend = element("div", { className: "product legend" },
    ...names.map((name) => element("i", { textContent: name })),
    element("b", { textContent: "×" }));
  const cells = some.map((i) => cell(`number ${i + 1}: ${number(left[i], 4)} × `
    + `${number(right[i], 4)} = ${number(products[i], 4)}`, products[i],
  number(left[i], 2), number(right[i], 2)));
  if (some.length < products.length) {
    const others = sum(products) - sum(some.map((i) => products[i]));
    cells.push(cell(`the other ${products.length - some.length} products`, others,
      `${products.length - some.length}`, "others"));
  }
  if (bias) cells.push(cell("the bias", bias, "", "bias"));
  cells.forEach((made, k) => made.style.setProperty("--k", k));
  return [legend, ...cells];
}

/** Show the first n products, and what they come to by now behind the line's "=". */
function showProducts(n, line) {
  const cells = [...$("products").children].slice(1), at = line.lastIndexOf(" = ");
  $("products").style.setProperty("--seen", n);
  if (at < 0 || n >= cells.length) $("line").textContent = line;
  else {
    const total = sum(cells.slice(0, n).map((cell) => cell.total));
    $("line").textContent = `${line.slice(0, at)} = ${number(total)}`;
  }
}

/** Let the products appear within `milliseconds`, and go to the cell of their sum, if there is
 * one -> whether isOver() has become true meanwhile. */
async function multiply(line, cell, milliseconds, isOver) {
  const n = $("products").children.length - 1, began = performance.now();
  const flies = cell && line.includes(" = "), adding = milliseconds - (flies ? FLIGHT / pace() : 0);
  for (let share = 0; share < 1; share = (performance.now() - began) / adding) {
    showProducts(Math.floor(share * n), line);
    await pause();
    if (isOver()) return true;
  }
  showProducts(n, line);
  if (flies) await fly(line.slice(line.lastIndexOf(" = ") + 3), cell);
  await wait(Math.max(0, milliseconds - (performance.now() - began)));
  return isOver();
}

/** The sum goes from the end of the line to its cell. */
async function fly(text, cell) {
  const range = new Range(), { firstChild } = $("line");
  range.setStart(firstChild, firstChild.length - text.length);
  range.setEnd(firstChild, firstChild.length);
  const from = range.getBoundingClientRect(), to = cell.getBoundingClientRect();
  const flying = element("span", { className: "flying", textContent: text, "aria-hidden": true });
  Object.assign(flying.style, { left: `${from.left}px`, top: `${from.top}px` });
  $("watch").append(flying);
  const way = `translate(${to.right - from.right}px, ${to.top - from.top}px)`;
  await flying.animate([{ transform: "none" }, { transform: way }],
    { duration: FLIGHT / pace(), easing: "ease-in-out" }).finished;
  flying.remove();
}
