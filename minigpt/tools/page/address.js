// What one sees as an address: behind # are the text, the seed, the knobs, the position that is
// looked at, the part that is taken apart, and what is switched off. Nothing of it is ever sent
// to a server.
import { V } from "content";
import { $ } from "elements";
import { showField, typedIds } from "editing";
import { active, choose, field, knobs, onChange, partsOf, sides, watch } from "state";
import { idsOf, textOf } from "tokens";
import { goTo, setWalking, stepNumber, through, walking } from "walk";
import { LIMIT, begin, isWriting, write } from "writing";

export const KNOBS = ["temperature", "top-k", "top-p"];
let timer = null;

/** Put it behind #. A text that was written in several ways is given whole. */
export function remember() {
  clearTimeout(timer);
  if (!active.ids.length) return;
  const { ids, given, drawn, chosen } = active, now = JSON.stringify([knobs(), active.made()]);
  const same = active.seed === field("seed") && drawn.slice(given).every(({ settings, made }) =>
    JSON.stringify([settings, made]) === now);
  const told = same ? ids.slice(0, given) : ids, text = textOf(told);
  const state = { text, n: ids.length - told.length, seed: $("seed").value,
    ids: idsOf(text).join() === told.join() ? null : told.join(), // or reading gives others
    ...Object.fromEntries(KNOBS.map((id) => [id, $(id).value])),
    at: chosen, side: sides.indexOf(active), part: through, walk: stepNumber()[0], follow: walking ? 1 : null,
    zero: sides.some((side) => side.zero) ? 1 : null };
  const params = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== null));
  for (const side of sides) {
    params.append("off", [...side.off].join());
    if (side.snapshots.length > 1) params.append("step", side.snapshots[side.stage].step);
  }
  history.replaceState(null, "", `#${params}`);
}

/** Show what an address says -> whether it says anything. */
export async function restore() {
  const params = new URLSearchParams(location.hash.slice(1)), state = Object.fromEntries(params);
  if (!params.has("text")) return false;
  for (const id of [...KNOBS, "seed"]) if (state[id]) $(id).value = state[id];
  const [off, stages] = ["off", "step"].map((name) => params.getAll(name));
  sides.forEach((side, i) => {
    const stage = side.snapshots.findIndex((snapshot) => String(snapshot.step) === stages[i]);
    if (stage >= 0) side.stage = stage;
    const parts = partsOf(side);
    side.off = new Set(off[i]?.split(",").filter((name) => parts.includes(name)));
    side.zero = Boolean(state.zero);
  });
  $("prompt").value = state.text;
  const told = state.ids?.split(",").map(Number).filter((id) => id >= 0 && id < V);
  const ids = told?.length ? told.slice(0, LIMIT) : typedIds();
  if (!ids) {
    showField(true);
    return true;
  }
  await begin(ids);
  await write(Math.min(Number(state.n) || 0, LIMIT), Infinity);
  const side = sides[state.side] ?? active;
  choose(side, state.at === undefined ? Infinity : Number(state.at) || 0);
  if (partsOf(side).includes(state.part)) watch(state.part);
  goTo(Number(state.walk) || 1);
  setWalking(Boolean(state.follow));
  return true;
}

/** Put a text on the clipboard -> whether that was allowed. Works from a file, too. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

$("link").addEventListener("click", async () => {
  remember();
  $("status").textContent = await copied(location.href)
    ? "Link copied. It only works with this file: send both, or put the page on the web."
    : "This browser doesn’t let pages copy: take the link from the address bar.";
});
onChange(() => {
  clearTimeout(timer);
  if (!isWriting()) timer = setTimeout(remember, 100);
});
window.addEventListener("hashchange", restore);
