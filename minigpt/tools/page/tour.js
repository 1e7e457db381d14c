// The tour: four questions, each beside what it asks about. Esc, or the button, puts it away for good; so does tour=off in the link.
"use strict";

const STOPS = [
  { title: "Who decides?", before: "parts",
    says: "Set the temperature to 0 and say the next character before “One character” does. Then "
      + "drag temperature, top-k and top-p: which two settings leave one bar only?",
    answer: (side, say) => say("Temperature 0, and top-k 1: both leave the likeliest alone. So does "
      + "a top-p that is smaller than its probability.") },
  { title: "Where does it look?", before: "drawing",
    says: "Choose a character in the middle of a word, in the text or on the line at the top of "
      + "the page, and guess where a head looks before you "
      + "click its picture. Then watch it compute. Have you a story about a head? Say what will go "
      + "wrong without it, then switch it off.", answer: answerLooks },
  { title: "What does it need?", before: "drawing",
    says: "Guess first: does the text need one of the small squares most, the heads, or a large "
      + "one? Then take the tick out of one box after the other, and read above how much more the "
      + "text surprises the model without that part.", answer: answerNeeds },
  { title: "What does it write without it?", before: "asked",
    says: "Leave a part off and press “Write again with this”: the same beginning, the same seed. "
      + "Which part can it not spell without? With “zeros”, what is off says nothing instead of "
      + "what it says on average: does the surprise grow or shrink?", answer: answerSpells },
];
let tourAt = null; // null: the offer, as it stands in the page; then the number of a stop

const tourIsOff = () => $("tour").hidden;

/** Show a stop; it stands in the page before what it speaks about. */
function showTour(at) {
  tourAt = at;
  const { title, says, before } = STOPS[at];
  $("tour").hidden = $("tour-answer").hidden = $("tour-answer").open = false;
  $("tour-title").textContent = `${at + 1} of ${STOPS.length}: ${title}`;
  $("tour-says").textContent = says;
  $("tour-end").firstChild.data = "End the tour ";
  $("tour-follow").hidden = true;
  $("tour-back").hidden = at === 0;
  $("tour-next").textContent = at + 1 < STOPS.length ? "Next" : "Done";
  $("tour-next").className = "main";
  $(before).before($("tour"));
  $("tour").focus({ preventScroll: true });
  $("tour").scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" }); // above what it asks for
}

/** Measure the answer when it is opened, until it is closed or the text changes. */
function answerTour() {
  const { answer } = STOPS[tourAt] ?? {}, side = active, { ids } = side, { length } = ids;
  const says = $("tour-answer").lastElementChild, at = tourAt;
  const wanted = () => $("tour-answer").open && !tourIsOff() && tourAt === at && side === active
    && side.ids === ids && ids.length === length;
  if (!$("tour-answer").open) return;
  if (side.writing || side.intact.after.length < length || side.reading.after.length < length) {
    says.textContent = "Let it finish writing first, then open this again.";
  } else {
    says.textContent = "";
    answer(side, (text) => { if (wanted()) says.textContent = text; }, wanted);
  }
}

/** Away with it, now and on the next visit. */
function endTour() {
  if (tourIsOff()) return;
  const inside = $("tour").contains(document.activeElement);
  $("tour").hidden = true;
  if (inside) $("tour-again").focus();
  keep("off");
  remember();
}

/** The browser's memory, where a page in a file may have one. */
function keep(value) {
  try {
    localStorage.setItem(KEPT, value);
  } catch { /* then the link alone remembers */ }
}

$("tour-next").addEventListener("click", () => {
  const next = tourAt === null ? 0 : tourAt + 1;
  if (next < STOPS.length) showTour(next);
  else endTour();
});
$("tour-answer").addEventListener("toggle", answerTour);
$("tour-back").addEventListener("click", () => showTour(tourAt - 1));
$("tour-end").addEventListener("click", endTour);
$("tour-again").addEventListener("click", () => showTour(0));
