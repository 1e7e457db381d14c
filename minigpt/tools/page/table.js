// A sheet as a table: a row for each letter, number or neuron, and a column for each list of
// numbers, which is seen from its step on.
import { $, element, isZero, number, signed } from "elements";
import { withWords } from "words";

/** Show a sheet as it is at a step -> its rows. */
export function showTable({ first, rows, columns, title }, step) {
  const seen = columns.filter((column) => column.step <= step);
  const head = element("tr", {}, element("th", { scope: "col" }, first),
    ...seen.map((column) => element("th", { scope: "col" }, ...withWords(column.head))));
  const trs = rows.map(({ label, aside, later }, i) => element("tr",
    { tabIndex: -1, className: later ? "later" : "" },
    element("th", { scope: "row" }, label, element("small", { textContent: aside })),
    ...seen.map((column) => cell(column, i))));
  const foot = seen.some((column) => column.foot !== undefined);
  $("sheet").setAttribute("aria-label", title);
  $("sheet").replaceChildren(element("thead", {}, head), element("tbody", {}, ...trs),
    ...(foot ? [element("tfoot", {}, element("tr", {}, element("th", { scope: "row" }, "sum of all"),
      ...seen.map(sum)))] : []));
  return trs;
}

function cell(column, i) {
  const { values, digits = 2 } = column, value = values[i];
  const td = element("td", { textContent: value === null ? ""
    : (column.signed ? signed : number)(value, digits) });
  if (column.bar) {
    const most = Math.max(1, ...values.map((v) => Math.abs(v ?? 0)));
    td.classList.add("barred");
    td.style.setProperty("--share", Math.abs(value ?? 0) / most);
  }
  if (column.signed || column.shaded) {
    td.classList.toggle("against", value < 0 && !isZero(value, digits));
  }
  return td;
}

function sum({ foot, note = "", digits = 2, signed: withSign }) {
  if (foot === undefined) return element("td");
  return element("td", {}, (withSign ? signed : number)(foot, digits),
    element("small", { textContent: note }));
}
