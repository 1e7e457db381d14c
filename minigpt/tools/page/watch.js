// A sheet of numbers that unfolds step by step: its table, its steps, the row that is looked
// at and the arithmetic behind it. It can be played, or gone through by hand. walk.js strings
// the sheets together.
"use strict";

class Watch {
  constructor() {
    // handled: the reader has moved the box, so that it is left where it is
    // held: what comes waits for the playing
    Object.assign(this, { sheet: null, at: 1, row: 0, turn: 0, playing: false, paused: null,
      trs: [], handled: false, entered: false, held: false });
    for (const hand of ["wheel", "touchmove"]) {
      $("sheet").parentElement.addEventListener(hand, () => { this.handled = true; },
        { passive: true });
    }
    $("play").addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    this.more = element("button", { type: "button", id: "all-rows" });
    this.more.addEventListener("click", () => {
      allRows = !allRows;
      this.choose(this.row);
      this.more.focus();
    });
    this.entering = null; // the step that another sheet begins with; null: its last
    $("sheet").addEventListener("click", ({ target }) => {
      const row = this.trs.indexOf(target.closest("tr"));
      if (row >= 0) this.choose(row);
    });
    $("sheet").addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Another sheet; of the same part, the step stays. */
  show(sheet, same) {
    if (!same && this.entering === null) this.stop();
    const open = this.entering ?? (this.sheet && same ? this.at : sheet.steps.length);
    this.entering = null;
    this.sheet = sheet;
    this.entered = !same;
    this.row = sheet.shown;
    $("watch-title").replaceChildren(...withWords(sheet.title));
    this.showSteps();
    this.trs = showTable(sheet, this.more);
    this.boxes = showStrips(sheet, (row) => this.choose(row));
    this.step(ledTo(Math.min(open, sheet.steps.length)));
  }

  showSteps() {
    this.chips = this.sheet.steps.map(({ name }, i) => {
      const chip = element("button", { type: "button", textContent: name });
      chip.addEventListener("click", () => {
        this.stop();
        this.step(i + 1);
      });
      return chip;
    });
    $("steps").replaceChildren(...this.chips.map((chip, i) =>
      element("li", { hidden: ledTo(i + 1) !== i + 1 }, chip)));
  }

  /** Go to a step, from 1 on: its columns are seen, and those before. */
  step(at) {
    const onward = at > this.at || this.entered;
    this.at = at;
    this.entered = false;
    $("sheet").dataset.step = at;
    $("figures").style.setProperty("--step", at);
    $("figures").style.setProperty("--upto", this.sheet.rows.length);
    const { row } = this.sheet.steps[at - 1];
    if (row !== undefined || this.led) this.row = row ?? this.sheet.shown;
    this.led = row !== undefined; // to a row that only this step speaks of
    this.boxes.forEach((box, k) => box.parentElement.classList.toggle("yet",
      this.sheet.columns.filter(({ sign }) => sign !== undefined)[k].step > at));
    const sums = this.sheet.columns.filter(({ foot }) => foot !== undefined);
    if (sums.length) $("sheet").tFoot.hidden = sums.every((column) => column.step > at);
    this.chips.forEach((chip, i) => {
      chip.setAttribute("aria-current", i + 1 === at ? "step" : false);
      chip.classList.toggle("done", i + 1 < at);
    });
    const { why, says } = saidOf(this.sheet, at);
    $("says").replaceChildren(element("b", { className: "why" }, ...why), " ", ...says);
    this.select(this.row);
    this.nameButton();
    showStep();
    land();
    if (this.held) for (const box of this.boxes) box.classList.add("coming");
    else if (onward && (walking || this.playing)) this.arrive();
  }

  /** Let come what is new in this step: its strips, and what is multiplied by hand. */
  arrive() {
    const before = ledBefore(this.at), { at, sheet } = this;
    const ways = sheet.columns.filter(({ sign }) => sign !== undefined)
      .map(({ step, from, to }, k) => ({ step, from, to, box: this.boxes[k] }))
      .filter(({ step, from }) => step > before && step <= at && from.length);
    const { input } = this.boxes;
    if (still) return;
    if (before < 1 && input) ways.unshift({ box: input, from: sheet.input.from });
    comeStrips(this.boxes, ways);
    const boxes = [...$("products").querySelectorAll(".cells")];
    const beside = sheet.beside?.(this.row, at) ?? [];
    comeStrips(boxes, beside.map(({ from }, k) => ({ box: boxes[k], from })));
    if (!this.playing) comeFactors(this.placesOf(this.row), NEAR);
  }

  /** Where the two factors of a row come from. */
  placesOf(row) {
    const { from = [] } = this.sheet.products(row, this.at) ?? {};
    const places = { above: $("sheet").tHead, row: this.trs[row] };
    return from.map((one) => places[one]?.querySelector(`.s${this.at} .cells`)
      ?? this.boxes[one] ?? placeOf(one));
  }

  /** The row that a step speaks of. */
  shown(at = this.at) {
    return this.sheet.steps[at - 1].row ?? this.sheet.shown;
  }

  nameButton() {
    document.body.classList.toggle("playing", this.playing);
    $("play").textContent = this.playing ? "❚❚ Pause" : this.paused ? "▶ Go on"
      : !walking ? "▶ Watch it" : isLastStep() ? "↻ From the start" : "▶ Play";
    paintDrawn();
    $("onward").hidden = this.playing || !isLastStep();
  }

  /** The row that is looked at, with its arithmetic. */
  select(row, follow = true) {
    this.row = row;
    this.trs.forEach((tr, i) => {
      tr.classList.toggle("selected", i === row);
      tr.setAttribute("aria-selected", i === row);
      tr.tabIndex = i === row ? 0 : -1;
    });
    $("line").textContent = this.sheet.lines[this.at - 1](row);
    $("products").style.removeProperty("--seen");
    const terms = this.sheet.products(row, this.at), beside = this.sheet.beside?.(row, this.at);
    $("products").replaceChildren(...(terms ? productCells(terms)
      : beside ? [namedStrips(beside)] : []));
    $("figures").classList.toggle("multiplied", Boolean(terms));
    $("strips").style.setProperty("--at", row);
    this.showRows();
    if (follow) this.scrollTo(row);
  }

  /** All rows, or few: those that tell most, or those around the one that is looked at. */
  showRows() {
    const { few, rows } = this.sheet, n = rows.length, first = Math.min(this.row - 2, n - FEW);
    const some = new Set(few ? [...few, this.row]
      : Array.from({ length: FEW }, (_, k) => Math.max(0, first) + k));
    const sparse = n > FEW + 1 && !allRows;
    this.trs.forEach((tr, i) => tr.classList.toggle("spare", (sparse && !some.has(i))
      || rows[i].when === (sparse ? "all" : "few") || rows[i].since > this.at));
    $("figures").classList.toggle("all", !sparse);
    this.more.hidden = n <= FEW + 1;
    const summed = rows.some(({ when }) => when); // what is not seen is summed up in a row
    this.more.textContent = allRows ? "fewer" : summed ? "more" : `all ${n}`;
    $("sheet").tFoot?.classList.toggle("sparse", sparse && !summed);
  }

  /** Bring a row into the middle of the box, between the names of the columns and their sums,
   * unless it is all seen there already. */
  scrollTo(row) {
    const box = $("sheet").parentElement, tr = this.trs[row];
    const head = $("sheet").tHead.offsetHeight, foot = $("sheet").tFoot?.offsetHeight ?? 0;
    const room = box.clientHeight - head - foot, above = tr.offsetTop - head - box.scrollTop;
    if (above >= 0 && above + tr.offsetHeight <= room) return;
    box.scrollTop = tr.offsetTop - head - (room - tr.offsetHeight) / 2;
  }

  choose(row) {
    if (this.playing) this.pause();
    if (this.sheet.few && this.trs[row].matches(".spare")) allRows = true;
    this.select(row);
  }

  onKey(event) {
    const last = this.trs.length - 1;
    const to = { ArrowUp: this.row - 1, ArrowDown: this.row + 1, Home: 0, End: last }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(to, 0), last));
    this.trs[this.row].focus({ preventScroll: true });
  }

  /** From the first step, or the one where it was paused or the walk stands, to the last; of
   * the walk, through all sheets that follow. */
  async play() {
    if (walking && this.paused === null && isLastStep()) await goTo(1);
    const mine = ++this.turn, first = this.paused ?? (walking ? this.at : 1);
    this.entered = this.paused === null; // so that the first step comes anew
    this.playing = true;
    this.paused = null;
    this.handled = false;
    for (let at = first; at; at = await this.after(at)) {
      if (mine !== this.turn) return;
      this.row = this.shown(at);
      this.step(at);
      if (await this.playStep(mine)) return;
    }
    if (mine === this.turn) this.stop();
  }

  /** The step after one: of this sheet, or of the walk's next -> null at the end. */
  async after(at) {
    if (!walking) return at < this.sheet.steps.length ? at + 1 : null;
    const next = stepsHere().find((step) => step > at);
    return next ?? (await enter(1, 1) ? this.at : null);
  }

  /** The telling rows one by one, then all others at once, so that what is read holds still;
   * with reduced motion, all at once -> whether the playing is over. */
  async playStep(mine) {
    const over = async (milliseconds) => {
      await wait(milliseconds / pace());
      return mine !== this.turn;
    };
    if (still) return over(lasting(this.sheet, this.at));
    const { tell, sweep, rest } = planOf(this.sheet, this.at);
    if (await this.tellRows(tell, over) || await this.sweepRows(sweep, mine)) return true;
    this.select(this.shown(), !this.handled); // what the sentence speaks of
    return over(rest);
  }

  /** Hold each of the telling rows -> whether the playing is over. */
  async tellRows(tell, over) {
    this.trs.forEach((tr) => tr.classList.remove("told"));
    $("figures").style.setProperty("--upto", 0);
    for (let k = 0; k < tell.length; k++) {
      const row = followingOf(this.sheet, this.at)[k]; // of the sheet that is there by then
      if (this.trs[row] === undefined) break;
      this.select(row, !this.handled);
      const multiplies = this.sheet.products(row, this.at) !== undefined;
      if (multiplies && await this.multiplyRow(row, tell[k].hold)) return true;
      this.trs[row]?.classList.add("told");
      if (!multiplies && await over(tell[k].hold)) return true;
    }
    return false;
  }

  /** Add up the products of a row -> whether the playing is over. */
  multiplyRow(row, milliseconds) {
    const mine = this.turn, { columns, lines } = this.sheet;
    const i = columns.filter(({ values }) => values).findIndex(({ step }) => step === this.at);
    const cell = i < 0 ? null : this.trs[row].querySelectorAll("td:not(.strip)")[i];
    const foot = $("sheet").tFoot?.querySelector(`.s${this.at} .cells`);
    return multiply(lines[this.at - 1](row), { from: this.placesOf(row), cell, foot },
      milliseconds / pace(), () => mine !== this.turn);
  }

  /** Show all rows, from the first to the last -> whether the playing is over. */
  async sweepRows(sweep, mine) {
    const n = this.trs.length, began = performance.now();
    for (let share = 0; share < 1; share = (performance.now() - began) * pace() / sweep) {
      $("figures").style.setProperty("--upto", Math.floor(share * n));
      await pause();
      if (mine !== this.turn) return true;
    }
    $("figures").style.setProperty("--upto", n);
    return false;
  }

  /** Hold it; it goes on from this step. */
  pause() {
    const { at } = this;
    this.stop();
    this.paused = at;
    this.nameButton();
  }

  /** End the playing; what is seen stays. */
  stop() {
    this.turn++;
    this.playing = false;
    this.paused = null;
    if (!this.sheet) return;
    $("figures").style.setProperty("--upto", this.trs.length);
    $("products").style.removeProperty("--seen");
    $("line").textContent = this.sheet.lines[this.at - 1](this.row);
    land();
    this.nameButton();
  }
}

let allRows = false; // or few
const watching = new Watch();
let sheetKey = {}; // what the sheet shows

/** The sheet of what is watched, unless it shows it already. */
function showWatch(side, position, start, rows) {
  const seen = rows[position - 1 - start], settings = JSON.stringify(knobs());
  const id = side.chosen === null ? ranked(seen.logits)[0] : side.ids[position];
  const key = { seen, id, watched, place: position, length: rows.length,
    settings: watched === "logits" ? settings : "", off: side.off.has(watched) };
  if (Object.keys(key).every((name) => key[name] === sheetKey[name])) return;
  countSteps((name) => sheetOf(name, side, position, start, rows, id).steps);
  watching.show(sheetOf(watched, side, position, start, rows, id), watched === sheetKey.watched);
  sheetKey = key;
  if (walking) paintTrail();
}

/** Another part is watched, and its computation begins; whoever clicks is led there. */
async function watch(name, pointed) {
  watched = name;
  if (walking) watching.entering = 1;
  through(name);
  await showInside();
  remember();
  if (active.writing) return;
  const led = narrow.matches ? $("watch") : $("drawing"); // a wide screen has room for both
  if (pointed && !walking) led.scrollIntoView({ behavior: still ? "auto" : "smooth" });
  watching.stop(); // not from where another was paused
  watching.play();
}
