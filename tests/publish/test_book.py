"""The book, built as `make book` builds it: it warns of nothing, no link in it is dead,
and its pages ask the network for nothing.

At each push it's built from four notebooks, because they show all that a notebook can
show, and from the headings of the others; once a week from all that is there.
"""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from syllabus import ROOT

for name in ("sphinx", "myst_nb", "furo"):
    pytest.importorskip(name, reason='type: python -m pip install -e ".[publish]"')

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
PICTURE += "WjR9awAAAABJRU5ErkJggg=="


WHOLE = "00_start_here 03_self_attention 02_averaging_evidence 02_averaging_exercises"


# What none of ours has: a pasted picture, and a link out of the notebooks' folder.
PASTED = "![a dot](attachment:dot.png) [how](../minigpt/course/SPEED.md#one)"


def shortened(folder):
    """A copy of the notebooks in which most have nothing but their headings; 01 has a
    pasted picture."""
    shutil.copytree(ROOT / "notebooks", folder)
    for path in folder.rglob("*.ipynb"):
        if path.stem not in WHOLE.split():
            notebook = nbformat.read(path, as_version=4)
            cells = [c.source for c in notebook.cells if c.cell_type == "markdown"]
            text = re.sub(r"```.*?```", "", "\n".join(cells), flags=re.S)
            headings = "\n".join(re.findall(r"^#+ .*", text, re.M))
            notebook.cells = [nbformat.v4.new_markdown_cell(headings)]
            if path.stem == "01_bigram":
                cell = nbformat.v4.new_markdown_cell(PASTED)
                cell.attachments = {"dot.png": {"image/png": PICTURE}}
                notebook.cells.append(cell)
            nbformat.write(notebook, path)
    return folder


@pytest.fixture(
    scope="module", params=["four", pytest.param("all", marks=pytest.mark.weekly)]
)
def built(request, tmp_path_factory):
    """The folder of the book, and what Sphinx had to say."""
    if not shutil.which("make"):
        pytest.skip("Windows has no make")
    folder, notebooks = tmp_path_factory.mktemp("build"), ROOT / "notebooks"
    told = {**os.environ, "GITHUB_REPOSITORY": ""}  # no address, also on GitHub
    if request.param == "four":
        notebooks = shortened(folder / "notebooks")
        told["GITHUB_REPOSITORY"] = "owner/name"
    there = Path(sys.executable).parent
    command = ["make", "-s", "-o", ".venv/publish", "book", f"BIN={there}"]
    done = subprocess.run(
        [*command, f"BUILD={folder}", f"NOTEBOOKS={notebooks}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=told,
    )
    assert done.returncode == 0, done.stderr
    return folder / "book", done.stderr


@pytest.fixture(scope="module")
def site(built):
    return built[0]


class Page(HTMLParser):
    """What a page refers to, and the anchors that others may refer to."""

    def __init__(self, path):
        super().__init__()
        self.refers, self.ids = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and not value.startswith("data:"):
                self.refers.append((tag, value))
            elif name == "id":
                self.ids.add(value)


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_notebook_has_a_page_and_sphinx_warns_of_nothing(built):
    site, said = built
    assert "WARNING" not in said and "ERROR" not in said, said
    for path in (ROOT / "notebooks").rglob("[0-9]*.ipynb"):
        page = site / path.relative_to(ROOT / "notebooks").with_suffix(".html")
        assert page.is_file() == ("lectures" not in path.parts), page


def test_no_link_inside_the_book_is_dead(pages):
    dead = []
    for path, page in pages.items():
        for _, refers in page.refers:
            parts = urlsplit(refers)
            if parts.scheme:
                continue
            file = (path.parent / unquote(parts.path)) if parts.path else path
            found = pages.get(Path(os.path.normpath(file)))
            anchor = unquote(parts.fragment)
            if not file.is_file() or (found and anchor and anchor not in found.ids):
                dead.append(f"{path.name}: {refers}")
    assert dead == []
    assert sum(len(page.refers) for page in pages.values()) > 1000


def test_no_page_names_a_script_a_style_or_a_picture_of_another_machine(pages):
    for path, page in pages.items():
        far = [one for tag, one in page.refers if tag != "a" and urlsplit(one).scheme]
        assert far == [], path


def test_the_first_page_shows_the_model_and_leads_to_all_lessons(site, pages):
    first = [refers for _, refers in pages[site / "index.html"].refers]
    assert first.count("model.html") == 2  # inside the page, and on its own
    lessons = (ROOT / "notebooks").glob("[0-9]*.ipynb")
    assert {f"{path.stem}.html" for path in lessons} <= set(first)


LOOK = """({
  wide: document.documentElement.scrollWidth - innerWidth,
  wrong: document.querySelectorAll("mjx-merror").length,
  math: document.querySelectorAll("mjx-container svg").length,
  folded: document.querySelectorAll("details .highlight span").length,
  bare: [...document.images].filter((i) => !i.naturalWidth || !i.alt).length,
})"""


def test_pages_are_typeset_on_this_machine_alone(site, browser):
    seen = {}
    for name in ("index", "03_self_attention", "exercises/02_averaging_exercises"):
        page = (site / f"{name}.html").as_uri()
        browser.open(page, "!window.MathJax || MathJax.startup?.promise")
        browser.evaluate("window.MathJax?.startup.promise.then(() => true)")
        seen[name] = browser.evaluate(LOOK)
        assert browser.errors == [], name
        files = [one for one in browser.requests if not one.startswith("data:")]
        assert files and all(one.startswith(site.as_uri()) for one in files)
        assert seen[name]["wrong"] == seen[name]["bare"] == 0, seen
        assert seen[name]["wide"] <= 0, seen
    assert seen["03_self_attention"]["math"] > 5
    assert seen["exercises/02_averaging_exercises"]["folded"] > 5


def test_the_search_works_from_a_disk(site, browser):
    page = (site / "search.html").as_uri() + "?q=softmax"
    browser.open(page, "document.querySelectorAll('#search-results li a').length")
    found = "[...document.querySelectorAll('#search-results li a')].map((a) => a.href)"
    assert any("02_averaging" in one for one in browser.evaluate(found))
    assert browser.errors == []


@pytest.mark.parametrize("built", ["four"], indirect=True)
def test_a_pasted_picture_is_shown_and_other_files_are_on_github(site, pages):
    path = site / "01_bigram.html"
    assert f'src="data:image/png;base64,{PICTURE}"' in path.read_text("utf-8")
    links = [one for tag, one in pages[path].refers if tag == "a"]
    colab = "https://colab.research.google.com/github/owner/name/blob/colab/"
    github = "https://github.com/owner/name/blob/HEAD/minigpt/course/SPEED.md#one"
    assert f"{colab}01_bigram.ipynb" in links and github in links
