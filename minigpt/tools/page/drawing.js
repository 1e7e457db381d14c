// The model as it is drawn: its parts in the order in which a character passes them, each a
// square whose area is its number of parameters, along the line that is the stream. Between them
// are narrow bars for the norms and for what is added to the stream. Each has a name by which the
// walk lights it up.
import { $, element, isZero, number, signed } from "elements";
import { softmax, sum } from "forward";
import { mapOf, paint, paintSquare } from "pictures";
import { partOf } from "state";
import { word } from "words";

const TITLES = { token: "token", position: "position", "last biases": "logits" };

export class Drawing {
  /** watch(name) and toggle(name, on) are called as the reader does so. */
  constructor(model, { watch, toggle }) {
    const { n_layer, n_head } = model.config, box = $("drawing");
    Object.assign(this, { box, model, tiles: new Map(), stations: [], lights: new Map(),
      sizes: model.sizes() });
    const across = Math.ceil(Math.sqrt(n_head)), wide = across + this.side("feed-forward 1");
    for (const [name, value] of [["tallest", Math.max(...[...this.sizes.keys()].map((n) => this.side(n)))],
      ["blocks", n_layer], ["across-block", wide], ["across-all", n_layer * wide]]) {
      box.style.setProperty(`--${name}`, value);
    }
    box.replaceChildren();
    const embeddings = [...this.sizes.keys()].filter((name) => name in TITLES).slice(0, -1)
      .filter((name) => this.sizes.get(name));
    this.from = element("b", { className: "glyph" });
    this.to = element("b", { className: "glyph" });
    this.stage([word("embedding", "Embedding"), this.from], embeddings.map((n) => this.tile(n)));
    for (let layer = 1; layer <= n_layer; layer++) {
      const heads = element("div", { className: "heads" });
      heads.style.setProperty("--across", across);
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
  }

  /** The side of a square, beside that of a head. */
  side(name) {
    return Math.sqrt(this.sizes.get(name) / this.sizes.get("head 1.1"));
  }

  /** What is no part of its own, but a step of the way. */
  bar(name, label) {
    const bar = element("span", { className: "bar-of", textContent: label, "aria-hidden": true });
    this.lights.set(name, bar);
    return bar;
  }

  /** Light up what some names stand for, and nothing else -> the last of them. What comes behind
   * them is marked, too, for it's still ahead of the character that is followed; and so is what
   * comes next, until it is drawn. */
  light(names) {
    const lit = names.map((name) => this.lights.get(name));
    for (const light of this.lights.values()) {
      const isLit = lit.includes(light), follows = (one) =>
        one.compareDocumentPosition(light) & Node.DOCUMENT_POSITION_FOLLOWING;
      light.classList.toggle("lit", isLit);
      light.classList.toggle("ahead", !isLit && (light === this.to || lit.every(follows)));
    }
    return lit.at(-1);
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
    tile.style.setProperty("--side", this.side(name));
    tile.title = `${name}: ${count} parameters`;
    const face = { tile, share, picture };
    if (watch) {
      const what = name === "last biases" ? "logits" : name;
      face.radio = element("input", { type: "radio", name: "watched",
        ariaLabel: `Take ${what === "logits" ? "the last layer" : what} apart` });
      face.radio.addEventListener("click", () => watch(what));
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

  /** shares: a Map by name, in logits; guesses: the likeliest at each station; from, to: the last
   * character read and the one that is predicted. */
  update({ shares, off, guesses, watched, from, to, logit, probability }) {
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
    this.to.textContent = to;
    this.stations.forEach((station, i) => {
      if (i === guesses.length) {
        station.textContent = `score ${number(logit, 2)}, probability ${number(probability)}`;
        return;
      }
      const { char, probability: sure } = guesses[i];
      const guess = element("span", { className: "said" }, element("b", { textContent: char }),
        ` ${number(sure, 2)}`);
      guess.style.setProperty("--share", sure);
      station.replaceChildren(station.firstChild
        ?? element("span", {}, "best ", word("lens", "guess"), " so far"), " ", guess);
    });
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
