// A sheet as a table: a row for each letter, number or neuron, a column for each step; each
// cell is seen from its step on, in the style sheet.
"use strict";

/** Show a sheet as a table; `more` stands in its first corner -> its rows. */
function showTable({ first, rows, columns }, more) {
  const foot = columns.some((c) => c.foot !== undefined);
  const head = element("tr", {}, element("th", { scope: "col" },
    element("span", { className: "first", textContent: first }), more));
  for (const column of columns) {
    const th = cellOf("th", column, withWords(column.head.join("")));
    if (column.above) th.append(cells(column.above, largestOf([column.above])));
    head.append(th);
  }
  const trs = rows.map(({ label, aside, later }, i) => {
    const tr = element("tr", { tabIndex: -1, className: later ? "later" : "" });
    tr.style.setProperty("--i", i + 1);
    tr.append(element("th", { scope: "row" }, label,
      element("small", { textContent: aside })));
    for (const column of columns) {
      tr.append(column.values ? numberCell(column, i)
        : stripCell(column, column.vectors[i]));
    }
    return tr;
  });
  const last = element("tr", {}, element("th", { scope: "row" }, sumName(columns)));
  for (const column of columns) last.append(footCell(column, rows.length));
  const part = (tag, ...those) => element(tag, {}, ...those);
  $("sheet").replaceChildren(part("thead", head), part("tbody", ...trs),
    ...(foot ? [part("tfoot", last)] : []));
  return trs;
}

/** "sum", which is seen from the first sum on. */
function sumName(columns) {
  const name = element("span", { className: "of-sum" }, "sum",
    element("small", { className: "of-all", textContent: "of all" }));
  const steps = columns.filter((c) => c.foot !== undefined).map((c) => c.step);
  name.style.setProperty("--s", Math.min(...steps));
  return name;
}

/** A cell that is seen from its column's step on. */
function cellOf(tag, { step, bar, vectors, tinted, between }, children) {
  const made = element(tag, { className: `of-step s${step}` }, ...children);
  made.classList.toggle("main-of", Boolean(bar));
  made.classList.toggle("strip-of", Boolean(vectors));
  made.classList.toggle("tinted-of", Boolean(tinted));
  made.classList.toggle("between", Boolean(between));
  made.style.setProperty("--s", step);
  if (tag === "th") made.scope = "col";
  return made;
}

function numberCell(column, i) {
  const { values, digits = 2, tinted } = column, value = values[i];
  const read = column.signed ? signed : number;
  const td = cellOf("td", column, [value === null ? "" : read(value, digits)]);
  if (column.bar) {
    const most = Number(column.bar) === column.bar ? column.bar : Math.max(...values.map((v) => Math.abs(v ?? 0)), 1e-9);
    td.classList.add("barred");
    td.style.setProperty("--share", Math.abs(value ?? 0) / most);
  }
  if (tinted) {
    column.most ??= Math.max(...values.map(Math.abs), 1e-9);
    td.classList.add("tinted");
    td.classList.toggle("below", value < 0);
    td.style.setProperty("--share", Math.abs(value) / column.most);
  }
  if (column.signed || column.shaded) {
    td.classList.toggle("against", value < 0 && !isZero(value, digits));
  }
  return td;
}

/** A vector as a strip, on the scale of its column. */
function stripCell(column, vector) {
  column.most ??= largestOf(column.vectors);
  const td = cellOf("td", column, [cells(vector, column.most)]);
  td.style.setProperty("--i", 0); // it does not wait for its row
  td.classList.add("strip");
  return td;
}

function footCell(column, i) {
  const { foot, note = "", digits = 2 } = column;
  if (foot === undefined) return cellOf("td", column, []);
  const text = column.signed ? signed(foot, digits) : number(foot, digits);
  const td = column.vectors ? stripCell(column, foot)
    : cellOf("td", column, [text, element("small", { textContent: note })]);
  td.style.setProperty("--i", i); // a sum comes with the last row
  return td;
}
