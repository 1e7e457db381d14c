// What is computed travels: a copy of a strip goes from where it comes from to where it is
// needed, and only then stands there. With reduced motion it stands there at once.
"use strict";

const WAY = 750; // milliseconds in which a strip comes from the drawing,
const NEAR = 500; // and from another strip
const AFTER = 250; // by how much the next one from the drawing starts later

/** A picture copied, as it is now. */
function copyOf(canvas) {
  const copy = element("canvas", { className: "ghost", "aria-hidden": true,
    width: canvas.width, height: canvas.height });
  copy.getContext("2d").drawImage(canvas, 0, 0);
  return copy;
}

/** Let a copy of `canvas` go from the place of one element to that of another. */
async function travel(canvas, from, to, milliseconds, delay = 0) {
  const [a, b] = [from, to].map((one) => one.getBoundingClientRect());
  if (still || !a.width || !b.width || !canvas.width) return;
  const ghost = copyOf(canvas), [start, end] = [a, b].map(({ left, top, width, height }) =>
    ({ left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` }));
  Object.assign(ghost.style, end);
  $("watch").append(ghost);
  const way = ghost.animate([{ ...start, opacity: 0 }, { opacity: 1, offset: .15 }, end],
  { duration: milliseconds / pace(), delay: delay / pace(), easing: "cubic-bezier(.45,.05,.3,1)",
    fill: "backwards" });
  await way.finished.catch(() => {});
  ghost.remove();
}

let landed = 0; // how often all was landed; what was on its way before does not go on

/** Away with all that is on its way. */
function land() {
  landed++;
  for (const ghost of document.querySelectorAll(".ghost")) {
    for (const way of ghost.getAnimations()) way.cancel();
    ghost.remove();
  }
  for (const box of document.querySelectorAll(".coming")) box.classList.remove("coming");
}

/** The place of a part in the drawing. */
function placeOf(name) {
  const light = drawing?.lights.get(name);
  return light?.querySelector(".square") ?? light?.querySelector(".glyph") ?? light;
}

/** Let strips come, each when those have come of which it is made. boxes: as showStrips gives
 * them; ways: [{box, from, to}], from: names of the drawing, or numbers of boxes; to: where in the
 * drawing a copy goes on. */
async function comeStrips(boxes, ways) {
  const before = landed, isOver = () => landed !== before;
  for (const { box } of ways) box.classList.add("coming");
  let waiting = 0;
  const near = ({ from }) => from.some((one) => typeof one === "number" || one === "input");
  const comes = async ({ box, from, to }, delay) => {
    const canvas = box.firstChild;
    await Promise.all(from.map((one) => {
      const source = boxes[one];
      return source ? travel(source.firstChild, source, box, NEAR)
        : placeOf(one) && travel(canvas, placeOf(one), box, WAY, delay);
    }));
    if (isOver()) return;
    box.classList.remove("coming");
    if (to && placeOf(to)) await travel(canvas, box, placeOf(to), WAY);
  };
  await Promise.all(ways.filter((way) => !near(way)).map((way) => comes(way, AFTER * waiting++)));
  for (const way of ways.filter(near)) {
    if (isOver()) return;
    await comes(way, 0);
  }
}
