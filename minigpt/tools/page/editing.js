// The text as a field, and what to do about characters that the model does not know.
"use strict";

/** The text becomes a field; all of it is selected, so that typing replaces it. */
function edit() {
  for (const side of sides) if (side.writing) side.stop();
  $("prompt").value = textOf(active.ids);
  showField(true);
  $("prompt").focus();
  $("prompt").select();
  $("status").textContent = "Type, then let it write (Ctrl+Enter). Esc ends the typing.";
}

function showField(on) {
  $("card").hidden = true;
  $("prompt").hidden = !on;
  $("sides").hidden = on;
  $("edit").textContent = on ? "Done" : "Type your own";
  for (const id of ["one", "again", "another"]) $(id).hidden = on;
  showButtons();
}

/** Back to the text as it was before. */
function giveUp() {
  showField(false);
  complain("", []);
  showInside();
}

/** Back to the coloured text -> whether that was possible. */
async function edited() {
  if ($("prompt").hidden) return true;
  const ids = typedIds();
  if (!ids) return false;
  showField(false);
  $("status").textContent = "";
  if (textOf(ids) !== textOf(active.ids)) await begin(ids);
  for (const side of sides) show(side);
  remember();
  return true;
}

/** The field as ids, or null: then the page has said what is wrong, and offers to mend it. */
function typedIds() {
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
    ways.push(["Leave out what it does not know", chars.filter(isKnown)]);
  } else if (!chars.length) {
    said = "Give at least one character to go on from.";
  } else if (ids.length > LIMIT) {
    said = `These are ${ids.length.toLocaleString("en")} ${content.unit}s; `
      + `this page reads ${LIMIT.toLocaleString("en")}.`;
    ways.push(["Keep the last of them", Array.from(textOf(ids.slice(-LIMIT)))]);
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
  if (refused) $("position").textContent = "What may come next is shown once this text can be read.";
  $("prompt").setAttribute("aria-invalid", Boolean(said));
  const line = document.createElement("p");
  line.textContent = said;
  $("complaint").replaceChildren(...(said ? [line] : []));
  for (const [name, chars] of ways) {
    const button = Object.assign(document.createElement("button"),
      { type: "button", textContent: name });
    button.addEventListener("click", () => {
      $("prompt").value = chars.join("");
      $("prompt").focus();
      $("prompt").dispatchEvent(new Event("input"));
    });
    $("complaint").append(button);
  }
}
