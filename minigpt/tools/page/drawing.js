// The model as it is drawn: its parts in the order in which a character passes them, each a
// square whose area is its number of weights.
"use strict";

const TITLES = { token: "token", position: "position", "last biases": "norm and lm_head" };

class Drawing {
  /** look({layer, index}) and toggle(name, on) are called as the reader does so. */
  constructor(box, model, { look, toggle }) {
    const { n_layer, n_head } = model.config;
    Object.assign(this, { box, tiles: new Map(), lenses: [], sizes: model.sizes() });
    const head = this.sizes.get("head 1.1");
    this.unit = Math.min(64, 184 / Math.sqrt(Math.max(...this.sizes.values()) / head));
    box.style.setProperty("--unit", `${this.unit}px`);
    box.replaceChildren();
    const embeddings = [...this.sizes.keys()].filter((name) => name in TITLES).slice(0, -1)
      .filter((name) => this.sizes.get(name));
    this.stage("Embedding", embeddings.map((name) => this.tile(name)));
    for (let layer = 1; layer <= n_layer; layer++) {
      const heads = document.createElement("div");
      heads.className = "heads";
      heads.style.setProperty("--across", Math.ceil(Math.sqrt(n_head)));
      for (let index = 1; index <= n_head; index++) {
        heads.append(this.tile(`head ${layer}.${index}`, toggle,
          () => look({ layer: layer - 1, index: index - 1 })));
      }
      this.stage(`Block ${layer}`, [heads, this.tile(`feed-forward ${layer}`, toggle)]);
    }
    this.stage("Logits", [this.tile("last biases")]);
  }

  stage(title, parts) {
    const stage = document.createElement("section"), row = document.createElement("div");
    const heading = document.createElement("h3"), lens = document.createElement("p");
    stage.className = "stage";
    row.className = "parts";
    lens.className = "lens";
    heading.textContent = title;
    row.append(...parts);
    stage.append(heading, row, lens);
    this.lenses.push(lens);
    this.box.append(stage);
  }

  /** The square of a part, with what it adds below. One that can be switched off has a box
   * to tick; a head is its map, which is chosen to be seen in large. */
  tile(name, toggle = null, look = null) {
    const tile = document.createElement("div"), square = document.createElement("label");
    const share = document.createElement("span"), label = document.createElement("label");
    tile.className = "tile";
    tile.style.setProperty("--side", Math.sqrt(this.sizes.get(name) / this.sizes.get("head 1.1")));
    tile.title = `${name}: ${this.sizes.get(name).toLocaleString("en")} weights`;
    square.className = "square";
    share.className = "share";
    label.className = "switch";
    const face = { tile, share };
    face.picture = document.createElement("canvas");
    square.append(face.picture);
    if (look) {
      face.radio = Object.assign(document.createElement("input"),
        { type: "radio", name: "head", ariaLabel: `Show the map of ${name}` });
      face.radio.addEventListener("change", look);
      square.prepend(face.radio);
    }
    if (toggle) {
      face.box = Object.assign(document.createElement("input"),
        { type: "checkbox", checked: true, ariaLabel: `${name} is switched on` });
      face.box.addEventListener("change", () => toggle(name, face.box.checked));
      label.append(face.box, name.replace("head ", ""));
      if (!look) square.addEventListener("click", () => face.box.click());
    } else {
      label.textContent = TITLES[name];
    }
    tile.append(square, label, share);
    this.tiles.set(name, face);
    return tile;
  }

  /** shares: a Map by name, in logits; lenses: a sentence for each stage. */
  update({ shares, off, lenses, head }) {
    const most = Math.max(...[...this.tiles.keys()].map((name) => Math.abs(shares.get(name))));
    for (const [name, { tile, share, box, radio }] of this.tiles) {
      const value = shares.get(name);
      share.textContent = `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
      tile.style.setProperty("--strength", Math.abs(value) / most);
      tile.classList.toggle("against", value < 0);
      tile.classList.toggle("off", off.has(name));
      if (box) box.checked = !off.has(name);
      if (radio) radio.checked = name === `head ${head.layer + 1}.${head.index + 1}`;
    }
    lenses.forEach((text, i) => { this.lenses[i].textContent = text; });
  }

  /** All heads at a glance, and the neurons, the vectors and the logits of one row. */
  paint(rows, row, ink) {
    const { parts, neurons, logits } = rows[row];
    const wrote = new Map(parts.map((part) => [part.name, part.wrote]));
    for (const [name, { picture }] of this.tiles) {
      const [layer, index] = name.replace(/^\D+/, "").split(".").map((number) => number - 1);
      if (name.startsWith("head")) paint(picture, mapOf(rows, { layer, index }), ink);
      else if (neurons[layer]) paintNumbers(picture, neurons[layer], ink);
      else paintNumbers(picture, wrote.get(name) ?? softmax(logits), ink);
    }
  }
}
