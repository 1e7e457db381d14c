// What may come next, as bars: with the knobs as they are, and a mark for what the model itself
// says.
import { UNIT } from "content";
import { $, element, number } from "elements";
import { probabilities, ranked } from "generation";
import { knobs } from "state";
import { glyph, plainly, quoted, textOf, texts } from "tokens";

const ROWS = 6; // the likeliest, before "others"; as BARS of minigpt/tools/page

/** seen: what the model computed for a position; actual: the id that stands there, or null. */
export function showBars(side, position, seen, actual) {
  const own = probabilities(seen.logits), now = probabilities(seen.logits, knobs());
  $("position").textContent = sentence(side, position, own, actual);
  const likeliest = ranked(own), shown = likeliest.slice(0, ROWS);
  if (actual !== null && !shown.includes(actual)) shown[shown.length - 1] = actual;
  const rest = likeliest.filter((id) => !shown.includes(id));
  const all = (probs) => rest.reduce((total, id) => total + probs[id], 0);
  $("bars").tBodies[0].replaceChildren(
    ...shown.map((id) => line(glyph(texts[id]), now[id], own[id], id === actual)),
    ...(rest.length ? [line(`${rest.length} others`, all(now), all(own), false)] : []));
}

function line(name, share, own, came) {
  const bar = element("span", { className: "bar" }, element("i", { className: "with" }),
    element("i", { className: "model-mark" }));
  bar.style.setProperty("--share", number(share));
  bar.style.setProperty("--model", number(own));
  const title = `before the sliders change it: ${number(own)}`;
  return element("tr", { className: came ? "came" : "", title },
    element("td", {}, name, ...(came ? [element("small", { textContent: " came next" })] : [])),
    element("td", { textContent: number(share) }), element("td", {}, bar));
}

/** How the chosen character was predicted, or the one to come will be. */
function sentence(side, position, own, actual) {
  const before = textOf(side.ids.slice(Math.max(0, position - 20), position));
  const context = `“${position > 20 ? "…" : ""}${plainly(before)}”`;
  if (side.writing && actual === null) {
    return `It’s writing. These were its choices for ${UNIT} ${position + 1}, after ${context}.`;
  }
  if (actual === null) return `What comes after ${context}? Move a slider and watch.`;
  const drawn = side.drawn[position];
  const says = `After ${context}, the model ${side.off.size ? "as it is now " : ""}gives `
    + `${quoted(actual)} a probability of ${number(own[actual])}: a surprise of `
    + `${number(-Math.log(own[actual]), 2)} nats.`;
  if (!drawn) return says;
  const { temperature, topK, topP } = drawn.settings;
  const how = [`temperature ${temperature}`, topK && `top-k ${topK}`, topP && `top-p ${topP}`];
  return `${says} It was drawn with a probability of ${number(drawn.probability)}, at `
    + `${how.filter(Boolean).join(", ")}.`;
}
