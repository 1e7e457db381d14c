// Two vectors that are multiplied number by number: both as strips, and below them the strip of
// their products, which grows while they are added up, until the sum goes to its row. Of the
// numbers the largest products are seen, or all.
"use strict";

const TERMS = 6; // products that are seen as numbers at first
const FLIGHT = 450; // milliseconds in which a sum goes to its row
let allTerms = false;

/** left[i] × right[i] as three strips and as cells: the largest products, in their order, and
 * the others' sum; then the bias, if there is one. scale: what has the full colour in all three;
 * else each has a scale of its own. */
function productCells({ names, left, right, bias, scale }) {
  const products = Array.from(left, (v, i) => v * right[i]), n = products.length;
  const most = scale ?? largestOf([products]), few = !allTerms && n > TERMS + 1;
  const some = few ? ranked(products.map(Math.abs)).slice(0, TERMS).sort((a, b) => a - b)
    : [...products.keys()];
  const cell = (title, total, k, ...factors) => {
    const made = element("div", { className: `product${total < 0 ? " against" : ""}`, title });
    made.style.setProperty("--share", Math.min(1, Math.abs(total) / most));
    made.style.setProperty("--k", k);
    made.append(...factors.map((text) => element("i", { textContent: text })),
      element("b", { textContent: number(total, 2) }));
    return made;
  };
  const made = some.map((i) => cell(`number ${i + 1}: ${number(left[i], 4)} × `
    + `${number(right[i], 4)} = ${number(products[i], 4)}`, products[i], i,
  number(left[i], 2), number(right[i], 2)));
  if (few) {
    const others = sum(products) - sum(some.map((i) => products[i]));
    made.push(cell(`the other ${n - TERMS} products`, others, n - 1, `${n - TERMS}`, "others"));
  }
  if (bias) made.push(cell("the bias", bias, n, "", "bias"));
  const legend = element("div", { className: "legend-of" },
    ...names.map((name) => element("i", { textContent: name })), element("b", { textContent: "×" }));
  $("products").terms = bias ? [...products, bias] : products;
  const strips = namedStrips([{ name: names[0], numbers: left, kind: "left" },
    { name: names[1], numbers: right, kind: "right" }, { name: "×", numbers: products, kind: "made" }],
  scale);
  return [strips, legend, element("div", { className: "terms" },
    ...made, ...(n > TERMS + 1 ? [termsButton(n)] : []))];
}

function termsButton(n) {
  const button = element("button", { type: "button", id: "all-terms",
    textContent: allTerms ? `the largest ${TERMS}` : `all ${n}` });
  button.addEventListener("click", () => {
    allTerms = !allTerms;
    watching.choose(watching.row);
    $("all-terms").focus();
  });
  return button;
}

/** Show the first n products, and what they come to by now behind the line's "=". */
function showProducts(n, line) {
  const { terms } = $("products"), at = line.lastIndexOf(" = ");
  $("products").style.setProperty("--seen", n);
  $("products").style.setProperty("--of", terms.length);
  $("line").textContent = at < 0 || n >= terms.length ? line
    : `${line.slice(0, at)} = ${number(sum(terms.slice(0, n)))}`;
}

/** Let the factors come, their products grow within `milliseconds` in all, and their sum go to
 * its cell, or the strip of products to the sum below -> whether isOver() has become true
 * meanwhile. from: the places of both factors, if known; to: {cell, foot}, as there are. */
async function multiply(line, { from, cell, foot }, milliseconds, isOver) {
  const { length } = $("products").terms, began = performance.now();
  const flies = cell && line.includes(" = "), coming = .3 * milliseconds;
  const adding = .7 * milliseconds - (flies || foot ? FLIGHT / pace() : 0);
  showProducts(0, line);
  await comeFactors(from, coming * pace());
  if (isOver()) return true;
  const since = performance.now();
  for (let share = 0; share < 1; share = (performance.now() - since) / adding) {
    showProducts(Math.floor(share * length), line);
    await pause();
    if (isOver()) return true;
  }
  showProducts(length, line);
  const made = $("products").querySelector(".made .cells");
  if (flies) await fly(line.slice(line.lastIndexOf(" = ") + 3), cell);
  else if (foot && made) await travel(made.firstChild, made, foot, FLIGHT);
  await wait(Math.max(0, milliseconds - (performance.now() - began)));
  return isOver();
}

/** Both factors come from their places, as far as these are known. */
async function comeFactors(from, milliseconds) {
  const boxes = ["left", "right"].map((side) => $("products").querySelector(`.${side} .cells`));
  const ways = boxes.map((box, k) => [box, from[k]]).filter(([box, place]) => box && place);
  for (const [box] of ways) box.classList.add("coming");
  await Promise.all(ways.map(async ([box, place]) => {
    await travel(box.firstChild, place, box, milliseconds);
    box.classList.remove("coming");
  }));
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
