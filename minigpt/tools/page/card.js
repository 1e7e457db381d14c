// On a narrow screen, the answer beside the character that was tapped: what was likely there.
// The wide screen has it to the right of the text.
"use strict";

const narrow = matchMedia("(max-width: 59.99rem)");

/** The card below the chosen character, or none. */
function showCard() {
  const side = active, position = side.chosen, span = viewOf(side).list.spans[position];
  const seen = position ? side.reading.after[position - 1] : null;
  $("card").hidden = !narrow.matches || !span || side.writing;
  if ($("card").hidden) return;
  const actual = side.ids[position];
  const probs = seen ? probabilities(seen.logits, knobs()) : []; // as in the line at the top
  const likeliest = ranked(probs), shown = likeliest.slice(0, 3);
  if (seen && !shown.includes(actual)) shown.push(actual);
  const came = `“${glyph(texts[actual])}” was ${ordinal(likeliest, actual)}:`;
  $("card-says").textContent = seen ? came : `Nothing comes before the first ${UNIT}.`;
  $("card-bars").replaceChildren(...shown.map((id) => {
    const bar = element("i");
    bar.style.setProperty("--share", probs[id]);
    return element("li", { className: id === actual ? "came" : "" },
      element("b", { textContent: glyph(texts[id]) }), bar,
      element("span", { textContent: number(probs[id]) }));
  }));
  placeCard(span);
}

/** How likely what came was, among all. */
function ordinal(likeliest, id) {
  const rank = likeliest.indexOf(id);
  return rank ? `number ${rank + 1} of ${likeliest.length}` : "the likeliest";
}

/** Below the character, within the page; its tip points at it. */
function placeCard(span) {
  const { left, width, bottom } = span.getBoundingClientRect(), card = $("card");
  const room = document.documentElement.clientWidth - card.offsetWidth - 8;
  const at = Math.max(8, Math.min(left + width / 2 - card.offsetWidth / 2, room));
  card.style.left = `${at + scrollX}px`;
  card.style.top = `${bottom + 10 + scrollY}px`;
  card.style.setProperty("--tip", `${left + width / 2 - at}px`);
}

$("card-close").addEventListener("click", () => { $("card").hidden = true; });
$("card-before").addEventListener("click", () => choose(active, positionOf(active) - 1));
$("card-after").addEventListener("click", () => choose(active, positionOf(active) + 1));
$("card-more").addEventListener("click", () => {
  $("card").hidden = true;
  $("next-title").scrollIntoView({ block: "start" });
});
narrow.addEventListener("change", showCard);
