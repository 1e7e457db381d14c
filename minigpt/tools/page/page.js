// What the reader does: buttons, knobs and keys, and the address that repeats what is seen. It
// comes last and sets everything going.
"use strict";

/** What one sees as an address. A text that was written in several ways is given whole. */
function remember() {
  if (!active.ids.length) return;
  const { ids, given, drawn } = active, now = JSON.stringify([knobs(), active.made()]);
  const same = active.seed === field("seed") && drawn.slice(given).every(({ settings, made }) =>
    JSON.stringify([settings, made]) === now);
  const told = same ? ids.slice(0, given) : ids, text = textOf(told);
  const state = {
    text, ids: idsOf(text).join() === told.join() ? null : told.join(), n: ids.length - told.length,
    seed: $("seed").value, at: active.chosen, side: sides.indexOf(active),
    zero: sides.some((side) => side.zero) ? 1 : null, slide: active.slide ? 1 : null,
    part: walking ? throughHead : watched, walk: walking ? stepNumber() : null,
    every: walking && $("every").checked ? 1 : null, tour: tourIsOff() ? "off" : null,
    sides: sides.map((side) => ({ off: side.off,
      step: side.snapshots.length > 1 ? side.snapshots[side.stage].step : null })),
  };
  for (const id of KNOBS) state[id] = $(id).value;
  history.replaceState(null, "", toAddress(state));
}

/** Show what an address says -> whether it says anything. */
async function restore() {
  const state = fromAddress(location.hash);
  if (!state) return false;
  for (const id of [...KNOBS, "seed"]) if (state[id]) $(id).value = state[id];
  showKnobs();
  active = sides[state.side] ?? sides[0];
  sides.forEach((side, i) => {
    const { off = [], step } = state.sides[i] ?? {};
    const stage = side.snapshots.findIndex((snapshot) => String(snapshot.step) === step);
    if (stage >= 0) side.stage = stage;
    const sizes = side.whole.sizes();
    side.off = new Set(off.filter((name) => /^(head|feed)/.test(name) && sizes.has(name)));
    side.zero = Boolean(state.zero);
    side.slide = $("slide").checked = Boolean(state.slide);
  });
  const known = [...active.whole.sizes().keys()].filter((name) => /^(head|feed)/.test(name));
  const isNamed = [...known, "logits"].includes(state.part);
  watched = isNamed ? state.part : "head 1.1";
  $("prompt").value = state.text;
  const told = state.ids?.split(",").map(Number).filter((id) => id in texts);
  const ids = told?.length ? told.slice(0, LIMIT) : typedIds();
  if (!ids) {
    showField(true);
    return true;
  }
  await begin(ids);
  await write(Math.min(Number(state.n) || 0, LIMIT), Infinity);
  if (!isNamed) await rest();
  if (state.at !== undefined) choose(active, Number(state.at));
  $("every").checked = Boolean(state.every);
  if (state.walk) await startWalk(Number(state.walk) || 1);
  return true;
}

function showKnobs() {
  const { temperature, topK, topP } = knobs();
  const words = [temperature ? number(temperature, 2) : "the likeliest",
    topK ?? "all", topP ? number(topP, 2) : "all"];
  KNOBS.forEach((id, i) => {
    $(id).nextElementSibling.textContent = words[i];
    $(id).setAttribute("aria-valuetext", words[i]);
  });
}

const acts = {
  go: () => (sides.some((side) => side.writing) ? stop() : write(field("count"))),
  one: () => write(1),
  again,
  rewrite: () => {
    views[0].box.scrollIntoView({ block: "nearest" });
    return again();
  },
  another: () => {
    $("seed").value = (field("seed") + 1) % 2 ** 32;
    return again();
  },
  whole: () => switchParts(({ off }) => off.clear()),
  back: () => choose(active, positionOf(active) - 1),
  forth: () => choose(active, positionOf(active) + 1),
  link: async () => {
    remember();
    const done = await copied(location.href);
    $("status").textContent = done
      ? "The link is copied. It needs this file: send both, or put the page on the web."
      : "This browser lets no page copy: take the link from the address line.";
  },
  "save-text": () => save(textPicture(viewOf(active).list.spans,
    active.ids.map((id) => texts[id]), document.title), "text.png"),
  "save-map": () => {
    if (partOf(watched).kind !== "head") $("status").textContent = "Choose a head first.";
    else save(mapPicture(mapShown, windowText.tokens, `Where ${watched} looks`), "map.png");
  },
};
for (const [id, act] of Object.entries(acts)) {
  $(id).addEventListener("click", async () => {
    if ($(id).getAttribute("aria-disabled") === "true" || !await edited()) return;
    for (const { film } of views) film?.pause();
    await act();
  });
}
$("edit").addEventListener("click", () => ($("prompt").hidden ? edit() : edited()));
$("prompt").addEventListener("input", () => {
  clearTimeout(typed);
  const ids = typedIds();
  if (ids) typed = setTimeout(() => $("prompt").hidden || begin(ids), 250);
});
for (const id of KNOBS) {
  $(id).addEventListener("input", () => {
    showKnobs();
    showInside();
  });
  $(id).addEventListener("change", remember);
}
$("zero").addEventListener("change", () =>
  switchParts((side) => { side.zero = $("zero").checked; }));
$("slide").addEventListener("change", () => slideWindows($("slide").checked));
$("numbers").addEventListener("change", () =>
  $("sides").classList.toggle("numbers", $("numbers").checked));
$("map").addEventListener("pointermove", ({ offsetY }) => {
  const { edge, clientHeight } = $("map"), down = (offsetY / clientHeight - edge) / (1 - edge);
  const row = Math.floor(down * windowText.spans.length);
  if (positionOf(active)) peekAt(row + active.startOf(positionOf(active) - 1));
});
for (const box of [$("map"), $("window")]) {
  box.addEventListener("pointerleave", () => peekAt(null));
}
document.addEventListener("keydown", async (event) => {
  if (event.key === "Escape") {
    if (hush() || await endWalk()) return;
    $("card").hidden = true;
    watching.stop();
    if (!$("prompt").hidden) {
      if (!await edited()) giveUp();
      viewOf(active).list.selected.focus();
    } else {
      for (const { film } of views) film?.pause();
      if (sides.some((side) => side.writing)) stop();
      endTour();
    }
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && await edited()) again();
});
window.addEventListener("hashchange", restore);

content.examples.forEach((example, i) => {
  $("examples").children[i].addEventListener("click", async () => {
    giveUp();
    await begin(idsOf(example));
    await write(field("count"));
  });
});

$("sides").append(...views.map((view) => view.box));
$("top-k").max = texts.length; // first, for it bounds the value
$("top-k").value = texts.length;
showKnobs();

const RIVAL = .1; // a probability: who has more of it might well have come

/** Watch the head with the sharpest habit, unless the reader has chosen one. */
async function rest() {
  if (watched !== "head 1.1" || active.writing) return;
  watched = sharpest(active);
  await showInside();
}

/** A character with letters on both sides that is another one than the one before it, so that
 * one sees which goes in and which comes out; if there is such a one, where others might have
 * come as well and the model held it for the likeliest or the second. Of all these it is the one
 * for which a single head did most; or null. */
function midWord({ ids, reading: { after, heads } }) {
  const isLetter = (i) => /^\p{L}+$/u.test(texts[ids[i]] ?? "");
  const lower = (i) => texts[ids[i]].toLowerCase();
  let [found, most] = [null, [-1, -Infinity]];
  for (let i = ids.length - 2; i > 1; i--) {
    if (![i - 2, i - 1, i, i + 1].every(isLetter) || lower(i) === lower(i - 1)) continue;
    if (!after[i - 1]) continue;
    const { logits } = after[i - 1], probs = probabilities(logits, knobs());
    const contested = probs[ids[i]] > RIVAL && probs.filter((p) => p > RIVAL).length > 1;
    const fits = Number(contested && ranked(logits).indexOf(ids[i]) < 2);
    if (fits > most[0] || (fits === most[0] && heads[i] > most[1])) [found, most] = [i, [fits, heads[i]]];
  }
  return found;
}

/** On the first visit it writes by itself; an address says what else to do. */
async function open() {
  if (await restore()) return;
  await begin(idsOf(content.prompt));
  await write(field("count"));
  if (active.writing || active.chosen !== null || !$("prompt").hidden) return; // somebody acts
  await rest();
}
requestAnimationFrame(() => setTimeout(open)); // once the page is seen
