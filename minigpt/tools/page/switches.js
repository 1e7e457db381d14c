// Parts that are switched off: what that does to the surprise at the text, and the buttons beside
// that sentence.
import { $, number } from "elements";
import { active, onChange } from "state";
import { switchParts } from "writing";

export const toggle = (name, on) =>
  switchParts(({ off }) => (on ? off.delete(name) : off.add(name)));

$("whole").addEventListener("click", () => switchParts(({ off }) => off.clear()));
$("zero").addEventListener("change", () =>
  switchParts((side) => { side.zero = $("zero").checked; }));

onChange((side) => {
  if (side !== active) return;
  const off = [...side.off].sort(), { ids, reading, intact } = side;
  const ready = intact.nats.length === ids.length && reading.nats.length === ids.length;
  $("switches").classList.toggle("idle", !off.length);
  $("zero").checked = side.zero || !side.whole.hasMeans;
  $("zero").disabled = !side.whole.hasMeans;
  $("cut").textContent = !off.length
    ? "Click a square to look inside. Uncheck its box to switch that part off, and see how much more the text "
      + "surprises the model."
    : `Off: ${off.length > 3 ? `${off.length} parts` : off.join(", ")}. `
      + (ready ? surprises(side) : side.writing ? "It’s writing without that …" : "Reading the text again …");
});

/** The surprise without the parts and with them, at the whole text; or at what was written without
 * them, which is then easy for the one that wrote it. */
function surprises(side) {
  const { given, ids, reading, intact } = side, made = side.made(), written = side.drawn.slice(given);
  const [easy, hard] = [reading.mean(given), intact.mean(given)];
  if (written.length && written.every((one) => one.made === made) && easy < hard) {
    return `It wrote this text itself, so it finds it easy: ${number(easy, 2)} nats per character. `
      + `The whole model is more surprised: ${number(hard, 2)}.`;
  }
  const now = reading.mean(0, ids.length), before = intact.mean(0, ids.length);
  return now === null ? "" : `The text now surprises it by ${number(now, 2)} nats per character. `
    + `The whole model is surprised by ${number(before, 2)}.`;
}
