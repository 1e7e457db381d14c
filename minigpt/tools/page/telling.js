// What several sheets say in the same way. A sheet is described in sheets.js.
import { number } from "elements";
import { sum } from "forward";
import { ranked } from "generation";

export const bracket = (value) => (value < 0 ? `(${number(value)})` : number(value));

/** How far behind the character that looks another one is. */
export function back(distance) {
  if (distance === 0) return "itself";
  return distance > 0 ? `${distance} back` : `${-distance} later`;
}

/** left · right as a sum: the two largest products, and the others. */
export function productOf(left, right, bias = 0) {
  const products = Array.from(left, (v, i) => v * right[i]);
  const some = ranked(products.map(Math.abs)).slice(0, 2), others = products.length - some.length;
  const rest = sum(products) - sum(some.map((i) => products[i]));
  return some.map((i) => `${bracket(left[i])} × ${bracket(right[i])}`).join(" + ")
    + (others ? ` + ${bracket(rest)} (${others} others)` : "")
    + `${bias ? ` + ${bracket(bias)} (bias)` : ""} = ${number(sum(products) + bias)}`;
}

/** Two lists, and their products number by number, as strips. */
export const multiplied = (names, left, right) => [{ name: names[0], numbers: left },
  { name: names[1], sign: "×", numbers: right },
  { name: "products", sign: "=", numbers: left.map((v, i) => v * right[i]) }];

/** How a layer's product goes on: with a bias, if it has one. */
export const biasIn = (model, name) => (`${name}.bias` in model.parameters ? " + b" : "");
