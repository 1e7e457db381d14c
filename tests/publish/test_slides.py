"""The lectures as slides: one file each, seen in a browser without a network."""

import re
import subprocess
import sys
from importlib.util import find_spec

import chromium
import nbformat
import pytest
from syllabus import NOTEBOOKS, ROOT

LECTURES = sorted((NOTEBOOKS / "lectures").glob("*.ipynb"))
NAMES = [path.stem for path in LECTURES]
KINDS = {"slide", "subslide", "fragment", "skip", "notes", "-"}
WORDS, ASKED, LOOKED, LINE, STEP = 130, 2, 0.5, 0.15, 0.2  # the guide's rule of minutes
READY = "document.documentElement.dataset.ready === 'yes'"
needs_tools = pytest.mark.skipif(
    chromium.PROGRAM is None or find_spec("sphinx_revealjs") is None,
    reason="needs Chromium, and what `make slides` installs",
)

# Goes through all slides with all fragments shown; what is wrong with each.
WALK = """Reveal.getSlides().map((slide) => {
  const {h, v} = Reveal.getIndices(slide);
  Reveal.slide(h, v, 99);
  const shown = [...slide.querySelectorAll("*")].filter(
    (e) => !e.closest("aside, mjx-assistive-mml, svg") && e.getClientRects().length);
  const name = (e) => `${e.tagName} ${e.textContent.trim().slice(0, 40)}`;
  const left = parseFloat(getComputedStyle(slide).paddingLeft);
  const inside = (e) => {
    const box = e.getBoundingClientRect(), cut = e.scrollWidth > e.clientWidth + 1;
    return box.left >= left - 1 && box.right <= 1280 - left + 1 && box.top >= 0
      && box.bottom <= 712 && !(cut && /^(PRE|TABLE)$/.test(e.tagName));
  };
  const words = shown.filter((e) => [...e.childNodes].some(
    (n) => n.nodeType === 3 && n.data.trim()));
  const heading = slide.querySelector("h1, h2");
  return {
    title: heading ? heading.textContent : "",
    edge: heading ? heading.getBoundingClientRect().left : 0,
    beyond: shown.filter((e) => !inside(e)).map(name),
    small: words.filter((e) => parseFloat(getComputedStyle(e).fontSize) < 18).map(name),
    raw: words.filter((e) => !e.closest("pre, code"))
      .filter((e) => /\\$|\\\\[a-z]/.test(e.innerText)).map(name)
      .concat([...slide.querySelectorAll("mjx-merror")].map(name)),
    bare: [...slide.querySelectorAll("img")].filter((i) => i.alt.length < 30).length,
    notes: (slide.querySelector("aside.notes")?.textContent || "").length,
  };
})"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """{lecture: what a browser sees of it}, converted as `make slides` does it."""
    folder, found = tmp_path_factory.mktemp("slides"), {}
    command = [sys.executable, "-m", "nbconvert", "--to", "slides", "--output-dir"]
    config = ["--config", ".jupyter/slides/config.py"]
    subprocess.run([*command, folder, *config, *LECTURES], cwd=ROOT, check=True)
    browser = chromium.Chromium(1280, 720)
    for name in NAMES:
        browser.open((folder / f"{name}.slides.html").as_uri(), READY)
        slides = browser.evaluate(WALK)
        asked = [url for url in browser.requests if not url.startswith("data:")]
        found[name] = {"slides": slides, "asked": asked, "errors": browser.errors}
    browser.close()
    return found


@needs_tools
@pytest.mark.parametrize("name", NAMES)
def test_a_lecture_is_one_file_that_asks_nobody_for_anything(seen, name):
    assert len(seen[name]["asked"]) == 1 and not seen[name]["errors"]
    assert len(seen[name]["slides"]) > 15


@needs_tools
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", ["beyond", "small", "raw", "bare"])
def test_every_slide_fits_and_can_be_read_from_the_last_row(seen, name, fault):
    faults = {each["title"]: each[fault] for each in seen[name]["slides"]}
    assert not {title: fault for title, fault in faults.items() if fault}


@needs_tools
@pytest.mark.parametrize("name", NAMES)
def test_every_slide_has_a_title_at_the_same_edge_and_something_to_say(seen, name):
    for each in seen[name]["slides"]:
        assert each["title"] and each["edge"] == 72, each["title"]
        assert each["notes"] > 100, each["title"]


def parts(path):
    """The cells of a lecture, a list for each slide."""
    slides = []
    for cell in nbformat.read(path, as_version=4).cells:
        kind = cell.metadata.slideshow.slide_type
        assert kind in KINDS, cell.id
        if kind in ("slide", "subslide"):
            slides.append([])
        slides[-1].append(cell)
    return slides


@pytest.mark.parametrize("path", LECTURES, ids=NAMES)
def test_notes_follow_the_first_cell_of_each_slide(path):
    """Behind a fragment they would belong to it, and before a slide to none."""
    for first, notes, *rest in parts(path):
        assert first.source.startswith("#"), first.id
        assert notes.metadata.slideshow.slide_type == "notes", notes.id
        assert all(c.metadata.slideshow.slide_type != "notes" for c in rest), first.id


@pytest.mark.parametrize("path", LECTURES, ids=NAMES)
def test_what_only_draws_hides_its_code_in_jupyterlab_and_on_the_slide(path):
    for cell in (cell for slide in parts(path) for cell in slide):
        hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        assert hidden == ("remove-input" in cell.metadata.get("tags", [])), cell.id


def minutes(path):
    """How long a lecture takes by the rule that the guide states."""
    total = 0.0
    for slide in parts(path):
        for cell in slide:
            kind = cell.metadata.slideshow.slide_type
            if kind == "notes":
                total += len(cell.source.split()) / WORDS
                total += ASKED * bool(re.search(r"^> ", cell.source, re.M))
            elif cell.cell_type == "code" and kind != "skip":
                html = "".join(
                    output.get("data", {}).get("text/html", "")
                    for output in cell.outputs
                )
                total += LOOKED * bool(cell.outputs)
                total += STEP * html.count('class="fragment"')
                if "remove-input" not in cell.metadata.get("tags", []):
                    total += LINE * len(cell.source.splitlines())
    return total


def test_the_guide_promises_the_minutes_of_its_rule():
    guide = (NOTEBOOKS / "lectures" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[.*?\]\((\w+)\.ipynb\) \| (\d+) minutes", guide, re.M)
    assert [name for name, _ in rows] == NAMES
    for path, (_, promised) in zip(LECTURES, rows):
        assert abs(minutes(path) - int(promised)) < 5, (path.stem, minutes(path))
