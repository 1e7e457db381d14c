// The text as a field, and what to do about characters that the model doesn't know.
import { UNIT } from "content";
import { $, element } from "elements";
import { active, changed, onChange, sides } from "state";
import { onEdit } from "text";
import { glyph, idsOf, isKnown, textOf } from "tokens";
import { LIMIT, begin, isWriting } from "writing";

const PLAIN = { "’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "--", "…": "...",
  "\u00a0": " ", "\t": " ", "\r": "" }; // what telephones put in by themselves
let typing = null; // a timer: the text is read when the typing pauses

onChange(() => {
  const writing = isWriting();
  document.body.classList.toggle("writing", writing);
  $("go").textContent = writing ? "Stop" : $("prompt").hidden ? "Go on" : "Write";
  $("one").setAttribute("aria-disabled", writing);
});

/** The text becomes a field; all of it is selected, so that typing replaces it. */
function edit() {
  for (const side of sides) if (side.writing) side.stop();
  $("prompt").value = textOf(active.ids);
  showField(true);
  $("prompt").focus();
  $("prompt").select();
  $("status").textContent = "Type, then let it write (Ctrl+Enter). Press Esc to stop typing.";
}

export function showField(on) {
  $("prompt").hidden = !on;
  $("sides").hidden = on;
  $("edit").textContent = on ? "Done" : "Type your own";
  for (const id of ["one", "again", "another"]) $(id).hidden = on;
  changed();
}

/** Back to the text as it was before. */
export function giveUp() {
  complain("", []);
  showField(false);
}

/** Back to the coloured text -> whether that was possible. */
export async function edited() {
  if ($("prompt").hidden) return true;
  const ids = typedIds();
  if (!ids) return false;
  showField(false);
  $("status").textContent = "";
  if (textOf(ids) !== textOf(active.ids)) await begin(ids);
  for (const side of sides) changed(side);
  return true;
}

/** The field as ids, or null: then the page has said what is wrong, and offers to mend it. */
export function typedIds() {
  const text = $("prompt").value, chars = Array.from(text), ids = idsOf(text);
  const unknown = [...new Set(chars.filter((char) => !isKnown(char)))];
  const plainable = unknown.filter((char) =>
    char in PLAIN && Array.from(PLAIN[char]).every(isKnown));
  let said = "";
  const ways = [];
  if (unknown.length) {
    said = `The model has never seen ${unknown.map(glyph).join(" ")}.`;
    if (plainable.length) {
      ways.push([`Use plain characters for ${plainable.map(glyph).join(" ")}`,
        chars.map((c) => (plainable.includes(c) ? PLAIN[c] : c))]);
    }
    ways.push(["Leave out what it doesn’t know", chars.filter(isKnown)]);
  } else if (!chars.length) {
    said = "Type at least one character to start from.";
  } else if (ids.length > LIMIT) {
    said = `That’s ${ids.length.toLocaleString("en")} ${UNIT}s, `
      + `but this page only reads ${LIMIT.toLocaleString("en")}.`;
    ways.push([`Keep the last ${LIMIT.toLocaleString("en")}`, Array.from(textOf(ids.slice(-LIMIT)))]);
  }
  complain(said, ways);
  return said ? null : ids;
}

/** Say what is wrong; what is shown of another text goes meanwhile. */
function complain(said, ways) {
  const refused = Boolean(said);
  document.body.classList.toggle("refused", refused);
  $("go").setAttribute("aria-disabled", refused);
  for (const id of ["back", "forth"]) $(id).disabled = refused;
  if (refused) $("position").textContent = "You'll see what may come next once the model can read this.";
  $("prompt").setAttribute("aria-invalid", refused);
  $("complaint").replaceChildren(...(said ? [element("p", { textContent: said })] : []));
  for (const [name, chars] of ways) {
    const button = element("button", { type: "button", textContent: name });
    button.addEventListener("click", () => {
      $("prompt").value = chars.join("");
      $("prompt").focus();
      $("prompt").dispatchEvent(new Event("input"));
    });
    $("complaint").append(button);
  }
}

onEdit(edit);
$("edit").addEventListener("click", () => ($("prompt").hidden ? edit() : edited()));
$("prompt").addEventListener("input", () => {
  clearTimeout(typing);
  const ids = typedIds();
  if (ids) typing = setTimeout(() => $("prompt").hidden || begin(ids), 250);
});
