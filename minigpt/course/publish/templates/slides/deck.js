// Typeset the math, make every slide fit its frame, then start reveal.js.
const SMALLEST = 0.7; // of the normal size; below that the slide holds too much
const LARGEST = 1.2; // where neither a figure nor an opening keeps it from growing
const STEP = 0.02;
const TWO_COLUMNS = 0.88; // long printed text goes into columns before it gets smaller
const WIDE = 1232; // of 1280 pixels: a figure reaches into the margins
const FIGURE = 0.75; // a figure may shrink to this share of its natural size
const TALLEST = 560; // and never needs more than this
const SQUARE = 1.45; // a figure that is less wide than this stands beside its words

async function start() {
  await MathJax.startup.promise;
  await document.fonts.ready;
  await Promise.allSettled([...document.images].map((image) => image.decode()));
  // The presenter's window has no style for MathJax's second, hidden form of it.
  document.querySelectorAll(".notes mjx-assistive-mml").forEach((m) => m.remove());
  document.body.classList.add("measuring");
  document.querySelectorAll(".sheet").forEach(fit);
  document.body.classList.remove("measuring");
  await Reveal.initialize({
    ...SIZE,
    margin: 0,
    center: false,
    display: "flex",
    hash: true,
    slideNumber: "c/t",
    controls: false,
    scrollActivationWidth: null, // slides stay slides on a telephone
    transition: "none",
    backgroundTransition: "none",
    pdfSeparateFragments: false,
    plugins: [RevealNotes],
  });
  document.documentElement.dataset.ready = "yes";
}

function fit(slide) {
  standBeside(slide);
  slide.querySelectorAll("figure:has(img)").forEach((figure) => reserve(figure, slide));
  const printed = [...slide.querySelectorAll("pre.output")].map((e) => e.textContent);
  const long = printed.some((text) => text.split("\n").length > 16);
  if (shrink(slide) < TWO_COLUMNS && long) {
    slide.classList.add("columns");
    shrink(slide);
  }
}

// A figure that is nearly square leaves room beside it: words alone go there.
function standBeside(slide) {
  const figure = [...slide.children].find((part) => part.querySelector("img"));
  const image = figure?.querySelector("img");
  const words = [...slide.children].filter(
    (part) => part !== figure && part.matches(".text, .fragment") && !part.querySelector("h1, h2, h3"));
  const other = slide.querySelector(".code, .output, .ask, .text table, img ~ img:not(.fragment)");
  if (!image || other || !words.length || slide.matches(".opening")) return;
  if (image.naturalWidth > SQUARE * image.naturalHeight) return;
  const pair = Object.assign(document.createElement("div"), { className: "pair" });
  const column = Object.assign(document.createElement("div"), { className: "words" });
  figure.before(pair);
  column.append(...words);
  pair.append(column, figure);
}

function shrink(slide) {
  const fixed = slide.matches(".opening") || slide.querySelector("figure, .output svg");
  let scale = fixed ? 1 : LARGEST;
  slide.style.setProperty("--scale", scale);
  slide.classList.toggle("grown", scale > 1);
  while (scale > SMALLEST && overflows(slide)) {
    scale -= STEP;
    slide.style.setProperty("--scale", scale.toFixed(2));
    slide.classList.toggle("grown", scale > 1); // then no printed line is broken
  }
  return scale;
}

function reserve(figure, slide) {
  const image = figure.querySelector("img");
  const shrunk = Math.min(1, WIDE / image.naturalWidth);
  const height = Math.min(FIGURE * shrunk * image.naturalHeight, TALLEST);
  figure.style.minHeight = `${height}px`;
  figure.style.maxHeight = `${1.6 * shrunk * image.naturalHeight}px`;
}

function overflows(slide) {
  const wide = [...slide.querySelectorAll("pre, table, mjx-container")];
  return (
    slide.scrollHeight > slide.clientHeight ||
    wide.some((part) => part.scrollWidth > part.clientWidth + 1)
  );
}

start();
