// What the reader does with buttons, knobs and keys. It sets everything going.
import { KNOBS, restore } from "address";
import { V, content } from "content";
import { edited, giveUp } from "editing";
import { $, number } from "elements";
import { showInside } from "inside";
import { active, changed, choose, field, knobs, positionOf, watch, watched } from "state";
import { focusText } from "text";
import { idsOf } from "tokens";
import { setWalking, tellingHead, walking } from "walk";
import { hush } from "words";
import { again, begin, isWriting, stop, write } from "writing";

const acts = {
  go: () => (isWriting() ? stop() : write(field("count"))),
  one: () => write(1),
  again,
  rewrite: () => {
    $("sides").scrollIntoView({ block: "nearest" });
    return again();
  },
  another: () => {
    $("seed").value = (field("seed") + 1) % 2 ** 32;
    return again();
  },
  back: () => look(-1),
  forth: () => look(1),
};
for (const [id, act] of Object.entries(acts)) {
  $(id).addEventListener("click", async () => {
    if ($(id).getAttribute("aria-disabled") !== "true" && await edited()) act();
  });
}

/** Look at the character before (−1) or behind (1), and say how it was predicted. */
async function look(by) {
  choose(active, positionOf(active) + by);
  await showInside();
  $("spoken").textContent = $("position").textContent;
}

content.examples.forEach((example, i) => {
  $("examples").children[i].addEventListener("click", async () => {
    giveUp();
    await begin(idsOf(example));
    await write(field("count"));
  });
});

function showKnobs() {
  const { temperature, topK, topP } = knobs();
  const words = [temperature ? number(temperature, 2) : "the likeliest",
    topK ?? "all", topP ? number(topP, 2) : "all"];
  KNOBS.forEach((id, i) => {
    $(id).nextElementSibling.textContent = words[i];
    $(id).setAttribute("aria-valuetext", words[i]);
  });
}
for (const id of KNOBS) {
  $(id).addEventListener("input", () => {
    showKnobs();
    changed();
  });
}

document.addEventListener("keydown", async (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault(); // or a button that has the focus is pressed, too
    if (await edited()) again();
  }
  if (event.key !== "Escape" || hush()) return;
  if (!$("prompt").hidden) {
    if (!await edited()) giveUp();
    focusText();
  } else if (walking) {
    setWalking(false);
    changed();
  } else {
    stop();
  }
});

/** On the first visit it writes by itself; an address says what else to do. */
async function open() {
  const told = await restore();
  showKnobs();
  if (told) return;
  await begin(idsOf(content.prompt));
  await write(field("count"));
  if (!isWriting() && watched === "head 1.1") watch(tellingHead(active), 2);
}

$("top-k").max = V; // first, for it bounds the value
$("top-k").value = V;
showKnobs();
requestAnimationFrame(() => setTimeout(open)); // once the page is seen
