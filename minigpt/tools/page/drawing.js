// The model as it is drawn: its parts in the order in which a character passes them, each a
// square whose area is its number of parameters, along the line that is the stream; between
// them narrow bars for the norms and for what is added to the stream. Each has a name by which
// the walk lights it up.
"use strict";

const TITLES = { token: "token", position: "position", "last biases": "logits" };

class Drawing {
  /** watch(name, pointed) and toggle(name, on) are called as the reader does so. */
  constructor(box, model, { watch, toggle }) {
    const { n_layer, n_head } = model.config;
    Object.assign(this, { box, watch, tiles: new Map(), stations: [], lights: new Map(),
      sizes: model.sizes() });
    this.fit();
    box.replaceChildren();
    const embeddings = [...this.sizes.keys()].filter((name) => name in TITLES).slice(0, -1)
      .filter((name) => this.sizes.get(name));
    this.from = element("b", { className: "glyph" });
    this.to = element("b", { className: "glyph" });
    this.way = element("i", { className: "way", "aria-hidden": true });
    this.stage([this.way, word("embedding", "Embedding"), this.from], embeddings.map((n) => this.tile(n)));
    for (let layer = 1; layer <= n_layer; layer++) {
      const heads = element("div", { className: "heads" });
      heads.style.setProperty("--across", Math.ceil(Math.sqrt(n_head)));
      for (let index = 1; index <= n_head; index++) {
        heads.append(this.tile(`head ${layer}.${index}`, toggle, watch));
      }
      this.stage([word("block", `Block ${layer}`)],
        [this.bar(`norm ${layer}.1`, "norm"), heads, this.bar(`add ${layer}.1`, "+"),
          this.bar(`norm ${layer}.2`, "norm"), this.tile(`feed-forward ${layer}`, toggle, watch),
          this.bar(`add ${layer}.2`, "+")]);
    }
    this.biases = element("span", { className: "share" });
    const biases = element("div", { className: "tile biases" },
      element("span", { className: "switch", textContent: "the blocks’ biases" }), this.biases);
    const last = element("div", {}, this.tile("last biases", null, watch), biases);
    this.stage([word("logit", "Logits"), this.to], [this.bar("norm last", "norm"), last]);
    this.lights.set("to", this.to);
    new ResizeObserver(() => this.carry()).observe(box);
  }

  /** How large a head is drawn: on a wide screen, or while one follows a character through, all
   * stands in a row. */
  fit() {
    const { box, sizes } = this, wide = box.clientWidth, head = sizes.get("head 1.1");
    const widest = Math.sqrt(Math.max(...sizes.values()) / head);
    const low = walking && !narrow.matches && innerHeight < 900 ? .72 : 1; // the numbers need room
    const room = walking || !narrow.matches ? low * Math.min(.9, wide / 1160) : wide < 480 ? .75 : 1;
    box.style.setProperty("--unit", `${room * Math.min(64, 184 / widest)}px`);
    box.style.setProperty("--tallest", widest);
    this.carry();
  }

  /** The character goes along the line to the part that is lit last, and leaves it gold; it
   * waits before the end, where what comes next will stand. */
  carry() {
    const to = this.reached, stage = to?.closest(".stage"), first = this.box.firstElementChild;
    const leftOf = (one) => one.getBoundingClientRect().left - first.getBoundingClientRect().left;
    if (!this.from?.offsetParent) return;
    const { offsetLeft: home, offsetWidth: wide } = this.from;
    const middle = home + wide / 2, free = wide / 2 + 6;
    const end = leftOf(this.to.closest(".stage")) - free;
    let at = middle;
    if (stage?.contains(this.to)) at = end;
    else if (stage && stage !== first) {
      const named = stage.querySelector("h3").firstElementChild;
      at = Math.min(end, Math.max(leftOf(to) + to.offsetWidth / 2,
        leftOf(named) + named.offsetWidth + free));
    }
    this.from.style.translate = `${at - middle}px`;
    this.way.style.width = `${!stage ? 0 : to === this.to ? leftOf(to) : at}px`;
  }

  /** What is no part of its own, but a step of the way. */
  bar(name, label) {
    const bar = element("span", { className: "bar-of", textContent: label, "aria-hidden": true });
    this.lights.set(name, bar);
    return bar;
  }

  /** Light up what some names stand for, and nothing else, and the stream up to there -> the
   * last of them. What was computed before is seen, and of the lit parts what is in `shown`. */
  light(names, shown = names) {
    for (const light of this.lights.values()) light.classList.remove("lit");
    const found = names.map((name) => this.lights.get(name)), last = found.at(-1);
    for (const light of found) light.classList.add("lit");
    const stages = [...this.box.children], here = stages.indexOf(last?.closest(".stage"));
    const groupOf = (one) => one.closest(".parts > *"), parts = last?.closest(".parts");
    stages.forEach((stage, i) => {
      const groups = [...stage.querySelector(".parts").children];
      const until = i < here || (last && i === here && !parts) ? groups.length
        : i === here ? groups.indexOf(groupOf(last)) : 0;
      for (const [name, { tile }] of this.tiles) {
        if (!stage.contains(tile)) continue;
        tile.classList.toggle("seen", shown.includes(name) || groups.indexOf(groupOf(tile)) < until);
      }
      stage.classList.toggle("told", until === groups.length
        || (i === here && last.matches(".bar-of:last-child")));
    });
    this.reached = last;
    this.carry();
    return last;
  }

  /** A station of the line: its name, its parts, and what the model would say there. */
  stage(name, parts) {
    const guess = element("div", { className: "guess" });
    const title = element("h3", {}, ...name);
    this.lights.set(`stream ${this.stations.length}`, title);
    this.stations.push(guess);
    this.box.append(element("section", { className: "stage" }, title,
      element("div", { className: "parts" }, ...parts), guess));
  }

  /** The square of a part, with what it adds below. One that can be switched off has a box
   * to tick; one that can be watched is chosen by its square. */
  tile(name, toggle = null, watch = null) {
    const picture = element("canvas", { "aria-hidden": true });
    const square = element(watch ? "label" : "div", { className: "square" }, picture);
    const share = element("span", { className: "share" });
    const tile = element("div", { className: "tile" });
    const count = this.sizes.get(name).toLocaleString("en");
    tile.style.setProperty("--side", Math.sqrt(this.sizes.get(name) / this.sizes.get("head 1.1")));
    tile.title = `${name}: ${count} parameters`;
    const face = { tile, share, picture };
    if (watch) {
      const what = name === "last biases" ? "logits" : name;
      face.radio = element("input", { type: "radio", name: "watched",
        ariaLabel: `Watch ${what === "logits" ? "the last layer" : what} compute` });
      face.radio.addEventListener("click", ({ detail }) => watch(what, detail > 0)); // or a key
      square.prepend(face.radio);
    }
    const label = element(toggle ? "label" : "span", { className: "switch" });
    if (toggle) {
      face.box = element("input", { type: "checkbox", checked: true,
        ariaLabel: `${name} is switched on` });
      face.box.addEventListener("change", () => toggle(name, face.box.checked));
      label.append(face.box, name.replace("head ", ""));
    } else {
      label.textContent = TITLES[name];
    }
    tile.append(square, label, share);
    this.tiles.set(name, face);
    this.lights.set(name, tile);
    return tile;
  }

  /** shares: a Map by name, in logits; guesses: of each station the likeliest; from, to: the
   * last character read and the one that is predicted. */
  update({ shares, off, guesses, watched, from, to, logit, probability,
    knobbed = probability }) {
    this.shares = shares;
    const most = Math.max(...[...this.tiles.keys()].map((name) => Math.abs(shares.get(name))));
    for (const [name, { tile, share, box, radio }] of this.tiles) {
      const value = shares.get(name);
      share.textContent = `${name === "last biases" ? "its biases " : ""}${signed(value)}`;
      tile.style.setProperty("--strength", Math.abs(value) / most);
      tile.classList.toggle("against", value < 0 && !isZero(value));
      tile.classList.toggle("off", off.has(name));
      if (box) box.checked = !off.has(name);
      if (radio) radio.checked = watched === (name === "last biases" ? "logits" : name);
    }
    const unnamed = [...shares].filter(([name]) => !this.tiles.has(name));
    this.biases.textContent = signed(sum(unnamed.map(([, value]) => value)));
    this.biases.parentElement.hidden = !unnamed.length;
    this.from.textContent = from;
    this.came = to;
    this.reveal();
    this.stations.forEach((station, i) => {
      if (i === guesses.length) {
        station.textContent = `“${to}”: logit ${number(logit, 2)}, probability `
          + number(probability)
          + (number(knobbed) === number(probability) ? "" : `, with the knobs ${number(knobbed)}`);
        return;
      }
      const bars = guesses[i].map(({ char, probability }) => {
        const bar = element("span", { className: char === to ? "came" : "" },
          element("b", { textContent: char }), ` ${number(probability, 2)}`);
        bar.style.setProperty("--share", probability);
        return bar;
      });
      const says = station.firstChild ?? element("span", {}, "would ", word("lens", "say"), " ");
      station.replaceChildren(says, ...bars);
    });
  }

  /** What comes next stands at the end of the stream; of the walk, when it is drawn. */
  reveal() {
    this.to.textContent = walking && !isLastStep() ? "?" : this.came;
  }

  /** All heads at a glance, and the neurons, the vectors and the logits of one row. */
  paint(rows, row, ink) {
    const { parts, layers, logits } = rows[row];
    const wrote = new Map(parts.map((part) => [part.name, part.wrote]));
    for (const [name, { picture }] of this.tiles) {
      const part = partOf(name);
      if (part.kind === "head") paint(picture, mapOf(rows, part), ink);
      else if (part.kind === "feed-forward") {
        paintSquare(picture, layers[part.layer].neurons, ink);
      } else paintSquare(picture, wrote.get(name) ?? softmax(logits), ink);
    }
  }
}
