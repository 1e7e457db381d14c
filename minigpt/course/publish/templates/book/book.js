// The page's few movements: theme, contents on small screens, search, where you are.
const main = document.querySelector("main");
const $ = (selector) => document.querySelector(selector);

$("#theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("minigpt-theme", theme); } catch {}
});
dark.addEventListener("change", () => {
  if (!chosen) document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
});

function openMenu(open) {
  $("#contents").classList.toggle("open", open);
  $("#menu").setAttribute("aria-expanded", open);
}
$("#menu").addEventListener("click", () => {
  openMenu(!$("#contents").classList.contains("open"));
});
$("#contents").addEventListener("click", (event) => {
  if (event.target.closest("a")) openMenu(false);
});

// Search: a match may run over several text nodes (coloured code, bold words), so
// it is looked for in the text of a whole block and marked piece by piece.
const BLOCKS = "p, li, pre, td, th, h1, h2, h3, h4, summary";
const input = $("#search input");
const count = $("#search output");
let hits = [];
let current = -1;

function textNodes(block) {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT, (node) => {
    const parent = node.parentElement;
    if (parent.closest("mjx-container, svg")) return NodeFilter.FILTER_REJECT;
    return parent.closest(BLOCKS) === block
      ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
  });
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  return nodes;
}

function clear() {
  for (const mark of main.querySelectorAll("mark")) {
    const parent = mark.parentNode;
    mark.replaceWith(...mark.childNodes);
    parent.normalize();
  }
  hits = [];
  current = -1;
}

function search(words) {
  clear();
  const wanted = words.trim().toLowerCase();
  if (wanted.length > 1) main.querySelectorAll(BLOCKS).forEach((b) => markIn(b, wanted));
  count.value = wanted.length > 1 ? `${hits.length} found` : "";
}

function markIn(block, wanted) {
  const nodes = textNodes(block);
  const text = nodes.map((node) => node.data).join("").toLowerCase();
  const places = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
    places.push(at);
    hits.push([]);
  }
  let first = hits.length - places.length;
  let start = text.length;
  // From the end to the beginning, so that earlier positions stay valid.
  for (const node of nodes.reverse()) {
    start -= node.data.length;
    for (let n = places.length - 1; n >= 0; n--) {
      const from = Math.max(places[n] - start, 0);
      const to = Math.min(places[n] + wanted.length - start, node.data.length);
      if (from >= to) continue;
      const range = new Range();
      range.setStart(node, from);
      range.setEnd(node, to);
      const mark = document.createElement("mark");
      range.surroundContents(mark);
      hits[first + n].unshift(mark);
    }
  }
}

function go(step) {
  if (!hits.length) return;
  if (current >= 0) hits[current].forEach((mark) => mark.classList.remove("here"));
  current = (current + step + hits.length) % hits.length;
  for (const mark of hits[current]) {
    mark.classList.add("here");
    for (let fold = mark.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
  }
  hits[current][0].scrollIntoView({ block: "center" });
  count.value = `${current + 1} of ${hits.length}`;
}

// On the other pages: their text is fetched when somebody begins to search.
const elsewhere = $("#elsewhere");
const here = location.pathname.split("/").at(-1) || "index.html";
let everything = null;
function fetchEverything() {
  everything ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = "assets/search.js";
    script.onload = () => done(window.EVERYTHING);
    document.head.append(script);
  });
  return everything;
}

async function searchElsewhere(text) {
  const wanted = text.trim().toLowerCase();
  const { pages, found } = await fetchEverything();
  if (input.value !== text) return; // somebody has typed on
  const items = [];
  const taken = {}; // at most three places of each page, so that one does not fill the list
  if (wanted.length > 1) {
    for (const [page, anchor, heading, body] of found) {
      const [file, title] = pages[page];
      const at = `${heading}\n${body}`.toLowerCase().indexOf(wanted);
      if (at < 0 || file === here || taken[file] === 3) continue;
      taken[file] = (taken[file] ?? 0) + 1;
      const from = Math.max(at - heading.length - 41, 0);
      const item = document.createElement("li");
      const link = document.createElement("a");
      const around = document.createElement("small");
      link.href = `${file}?find=${encodeURIComponent(text.trim())}#${encodeURIComponent(anchor)}`;
      link.textContent = heading === title ? title : `${title}: ${heading}`;
      around.textContent = `… ${body.slice(from, from + 110)} …`;
      link.append(around);
      item.append(link);
      items.push(item);
      if (items.length === 60) break;
    }
  }
  elsewhere.replaceChildren(...items);
  elsewhere.hidden = !items.length;
}

input.addEventListener("input", () => {
  search(input.value);
  searchElsewhere(input.value);
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("#search")) elsewhere.hidden = true;
});
const find = new URLSearchParams(location.search).get("find");
if (find) { input.value = find; search(find); }
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { input.value = ""; search(""); elsewhere.hidden = true; input.blur(); }
  if (event.key === "Enter") { event.preventDefault(); go(event.shiftKey ? -1 : 1); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input")) {
    event.preventDefault();
    input.focus();
  }
});

// The section on screen, in the contents.
const links = new Map([...document.querySelectorAll("#contents .current ol a")].map(
  (link) => [decodeURIComponent(link.hash.slice(1)), link]));
const headings = [...main.querySelectorAll("h2, h3")].filter((h) => links.has(h.id));
function showPlace() {
  const above = headings.filter((h) => h.getBoundingClientRect().top < 120);
  links.forEach((link) => link.classList.remove("here"));
  if (above.length) links.get(above.at(-1).id).classList.add("here");
}
document.addEventListener("scroll", showPlace, { passive: true });
showPlace();

const typeset = window.MathJax?.startup?.promise ?? Promise.resolve();
typeset.then(() => { document.documentElement.dataset.ready = "yes"; });
