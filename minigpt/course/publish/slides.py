"""Each lesson as slides: one HTML file with everything inside, for any browser.

    python -m minigpt.course.publish.slides            writes build/slides/NN_name.html

Headings, the first sentence below them, formulas, questions, code, figures and the
recap stand on the slides; the prose is for the speaker's notes (press S). Code that
draws, and a lesson's set-up, stay in the notebook; code that is longer than a slide
goes on on the next.
"""

import ast
import base64
import json
import re
import struct
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from minigpt.course.publish import npm, shared

SCRIPTS = [
    shared.MATHJAX,
    ("reveal.js", "dist/reveal.js"),
    ("reveal.js", "plugin/notes/notes.js"),
]
STYLES = [("reveal.js", "dist/reset.css"), ("reveal.js", "dist/reveal.css")]
WIDTH, HEIGHT = 1280, 720
HIGH = 660  # pixels between the margins, and a little
SMALL = 0.88  # a slide's type is shrunk to this share at most: code is 20 pixels then
MOST = 20  # lines of code that a slide holds
WORDS = 70  # of a paragraph that is shown as a whole
ASKS = "**Can you answer"  # the questions at a lesson's end
SECOND = "second-lecture"  # a tag: from this cell on the deck is for another hour
WITH_MODEL = ("06", "11")  # lessons whose deck opens the model's page at its end
DRAWS = re.compile(r"\b(plt|figs?|ax|axes|drawings)\b|\bplots\.(?!LiveCurve)")
OPENED = """## The model, opened

**[The GPT of this course](model.html)**, in a file beside these slides: it writes, and
a click switches off one of its parts."""
FOLD = re.compile(r"<details.*?</details>", re.S)
ASIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)?(?:evidence|exercises)/[^)]*\)")


def build_slides(
    folder: Path = shared.BUILD / "slides", notebooks: Path = shared.NOTEBOOKS
) -> list[Path]:
    """Write all decks into the folder, and the model that 06 and 11 open; list of the
    decks' paths."""
    paths = shared.notebook_paths(notebooks)
    loaded = [shared.read(path) for path in paths]
    characters = shared.characters(loaded)
    shared.write_model(folder / "model.html")
    written = []
    for path, notebook in zip(paths, loaded):
        if path.stem[:2] in WITH_MODEL:
            notebook.cells.append(nbformat.v4.new_markdown_cell(OPENED, id="opened"))
        target = folder / f"{path.stem}.html"
        shared.write(target, deck(notebook, characters))
        written.append(target)
    return written


def deck(notebook: NotebookNode, characters: frozenset[str]) -> str:
    """One notebook as a page of slides; `characters`: those that fonts need."""
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":  # evidence and exercises: no slides
            cell.source = ASIDE.sub(r"\1", cell.source)
    body = shared.to_html(
        "slides", notebook, stacks=stacks(shared.local_links(notebook))
    )
    return shared.whole_page(
        "slides",
        title=shared.title(notebook),
        body=body,
        fonts=shared.fonts(characters),
        styles=[npm.read(*source).decode("utf-8") for source in STYLES]
        + [shared.template_file(f) for f in ("shared/code.css", "slides/deck.css")],
        scripts=[shared.script(*source) for source in SCRIPTS],
        before=shared.template_file("shared/mathjax.js"),
        after=shared.template_file("slides/deck.js"),
        size=json.dumps({"width": WIDTH, "height": HEIGHT}),
    )


def seen_and_said(source: str, recap: bool = False) -> list[tuple[str, str]]:
    """The paragraphs of a text in their order, in pieces: ("seen", ...) for headings,
    formulas, drawings in code, the promise and questions; ("said", ...) for prose.

    Of a recap, and of the questions at the end, all is seen but the answers and what
    to read further.
    """
    found, further = [], False
    for paragraph in re.split(r"\n{2,}", FOLD.sub(_in_one_piece, source)):
        if paragraph.startswith("<details"):
            found.append(("said", paragraph.replace("\0", "\n\n")))
            continue
        about = paragraph.startswith(("**Further", "**Beside"))
        further = about or (further and not paragraph.startswith("**"))
        seen = re.match(r"#|\$\$|```|\*\*Predict|> |\*\*(?!Further|Beside)", paragraph)
        recap = recap or paragraph.startswith(("## Recap", ASKS))
        if "**Predict" in paragraph and not seen:
            paragraph, _, asked = paragraph.partition("**Predict")
            found += [("said", paragraph), ("seen", "**Predict" + asked)]
        else:
            seen = seen or (recap and not further)
            found.append(("seen" if seen else "said", paragraph))
    return [(kind, text) for kind, text in found if text.strip()]


def _in_one_piece(fold: re.Match[str]) -> str:
    return re.sub(r"\n{2,}", "\0", fold[0])


def stacks(notebook: NotebookNode) -> list:
    """The slides as a list of stacks; a stack is a list of slides, one below the other.

    A section begins a stack, and so does each piece of code a slide below the first
    code; what leaves too little room goes on on another. A slide is a dict: cell (id
    of its first cell), kind (a class), running (the section's title, if the slide does
    not begin with it), parts (what, cell, fragment or not) and notes (cells).
    """
    layout = Layout()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            layout.add_text(cell)
        else:
            layout.add_code(cell)
    for stack in layout.stacks:
        tell_more(stack[0])
    return layout.stacks


class Layout:
    """Puts the cells of a lesson on slides, one after the other."""

    def __init__(self) -> None:
        self.stacks: list[list[dict]] = []
        self.titles: list[str] = []  # of the sections of this lecture
        self.section = ""  # the last of them
        self.full = False  # code or a result stands there: what comes begins a slide
        self.asked = False  # a question was the last: what comes waits for a click

    @property
    def slide(self) -> dict:
        """The slide on which things are put."""
        return self.stacks[-1][-1]

    def begin(self, cell: NotebookNode, kind: str = "", running: str = "") -> None:
        """A new slide in the last stack; running: what stands small at its top."""
        slide = {"cell": cell.id, "kind": kind, "running": running}
        self.stacks[-1].append({**slide, "parts": [], "notes": []})

    def go_on(self, cell: NotebookNode) -> None:
        """A new slide, which says to which section it belongs."""
        self.begin(cell, running=re.sub(r"[`*]", "", self.section))

    def fits(self, what: str, cell: NotebookNode) -> bool:
        """Whether there is room for one part more."""
        return filled(self.slide) + height(what, cell) <= HIGH

    def put(self, what: str, cell: NotebookNode, fragment: bool = False) -> None:
        """One part more on the slide; fragment: it appears at a click."""
        part = {"what": what, "cell": cell, "fragment": fragment}
        self.slide["parts"].append(part)

    def only_heading(self) -> bool:
        """Does nothing stand on the slide but a heading of a section?"""
        parts = self.slide["parts"]
        return bool(parts) and all(re.match("###? ", p["cell"].source) for p in parts)

    def add_text(self, cell: NotebookNode) -> None:
        """A markdown cell: what is seen goes on slides, what is said into notes."""
        if SECOND in cell.metadata.get("tags", []):
            self.stacks.append([])
            self.begin(cell, "opening")
            self.put("text", text_cell(second_lecture(self.titles)))
            self.titles = self.titles[:1]
        for kind, source in seen_and_said(cell.source, self.section == "Recap"):
            text = text_cell(source)
            heading = re.match(r"(#{1,3}) (.*)", source)
            if heading:
                self.begin_section(cell, depth=len(heading[1]), title=heading[2])
            elif kind == "seen" and self.wants_a_slide(source, text):
                self.go_on(cell)
                self.full = False
            if kind == "seen":
                self.put("text", text)
            else:
                self.slide["notes"].append(text)
                claim = first_sentence(source)
                if claim and self.only_heading():
                    self.put("text", text_cell(claim))
            self.asked = "**Predict" in source or (self.asked and kind == "said")

    def begin_section(self, cell: NotebookNode, depth: int, title: str) -> None:
        """What a heading begins: a stack, or below ### a slide."""
        self.full = False
        if depth < 3:
            self.section = title
            self.titles.append(title)
            self.stacks.append([])
            self.begin(cell, "opening" if depth == 1 else "")
        elif not self.only_heading():
            self.go_on(cell)

    def wants_a_slide(self, source: str, text: NotebookNode) -> bool:
        """Whether a paragraph begins a slide: questions do, and what has no room."""
        if source.startswith(ASKS) or not self.fits("text", text):
            return True
        return self.full and bool(re.match(r"\*\*(Predict|Think)", source))

    def add_code(self, cell: NotebookNode) -> None:
        """A code cell: its pieces, then what it printed, then its figures."""
        figures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        printed = [o for o in cell.outputs if "image/png" not in o.get("data", {})]
        pieces = in_pieces(without_drawing(cell.source, bool(figures)))
        if self.slide["kind"] == "opening" and not printed:
            pieces = []  # the set-up
        for piece in pieces:
            code = nbformat.from_dict(cell | {"source": piece})
            if self.full or not self.fits("code", code):
                self.go_on(cell)
                self.asked = False
            self.put("code", code, self.asked)
            self.full = True
        for output in [*printed, *figures]:
            shown = nbformat.from_dict(cell | {"outputs": [output]})
            alone = (self.full and not pieces) or not self.fits("output", shown)
            if alone and self.slide["parts"]:
                self.go_on(cell)
            waits = bool(pieces) or self.asked
            self.put("output", shown, fragment=waits and not alone)
        self.full = self.full or bool(cell.outputs)
        self.asked = False


def text_cell(source: str) -> NotebookNode:
    """A new markdown cell."""
    return nbformat.v4.new_markdown_cell(source)


def tell_more(slide: dict) -> None:
    """Show more of a section that begins with words alone: its first paragraph, lists
    and tables in place of one sentence, as far as there is room."""
    heading, *rest = slide["parts"]
    if not re.match("## (?!Recap)", heading["cell"].source) or not slide["notes"]:
        return
    if any(
        p["what"] != "text" or re.match(r"\$|\*\*(?!Next)", p["cell"].source)
        for p in rest
    ):
        return
    said, prose = [], False
    for note in slide["notes"]:
        is_list = re.match(r"[-|] ?|\d+\. ", note.source)
        short = len(note.source.split()) <= WORDS and not note.source.startswith("<")
        if not is_list and (prose or not short):
            continue
        part = {"what": "text", "cell": note, "fragment": False}
        if filled({**slide, "parts": [heading, *said, part, *rest[1:]]}) > HIGH:
            break
        said.append(part)
        prose = prose or not is_list
    if said and said[-1]["cell"].source.endswith(":"):  # its list does not follow
        source = re.sub(r"(?<=[.?!])\s[^.?!]*:$", "", said[-1]["cell"].source)
        said[-1]["cell"] = text_cell(source)
    if prose:
        slide["parts"] = [heading, *said, *rest[1:]]


def filled(slide: dict) -> float:
    """About how many pixels of a slide are full."""
    top = 44 if slide["running"] else 0
    return top + sum(height(part["what"], part["cell"]) for part in slide["parts"])


def height(what: str, cell: NotebookNode) -> float:
    """About how many pixels a part takes, shrunk to SMALL, with the gap below it."""
    if what == "code":
        return SMALL * (44 + 30 * len(cell.source.splitlines()))
    if what == "output":
        return sum(map(output_height, cell.outputs))
    paragraphs = re.split(r"\n{2,}", cell.source)
    return sum(map(text_height, paragraphs))


def output_height(output: NotebookNode) -> float:
    """About how many pixels a result takes: seven tenths of a figure's height, where
    it is no wider than a slide; as many lines as were printed."""
    data = output.get("data", {})
    if "image/png" in data:
        head = base64.b64decode(data["image/png"][:64])[16:24]
        wide, high = struct.unpack(">II", head) if head else (WIDTH, HEIGHT)
        return 20 + min(0.7 * high * min(1, (WIDTH - 144) / wide), 560)
    printed = output.get("text") or data.get("text/plain", "")
    lines = sum(1 + len(line) // 85 for line in printed.strip("\n").split("\n"))
    return SMALL * (28 + 29 * lines)


def text_height(paragraph: str) -> float:
    """About how many pixels a paragraph takes, with 85 characters in a line."""
    if paragraph.startswith("#"):
        return 100 if paragraph.startswith("# ") else 72
    if paragraph.startswith("$$"):
        return SMALL * 110
    if paragraph.startswith(("```", "|")):
        return SMALL * (20 + 46 * paragraph.count("\n"))
    items = re.split(r"\n(?=- |\d+\. )", paragraph)
    lines = sum(1 + len(item) // 85 for item in items)
    gaps = 10 * (len(items) - 1)
    if paragraph.startswith(("**Predict", "**Think first")):
        gaps += 28
    return SMALL * (20 + 40 * lines + gaps)


def first_sentence(source: str) -> str:
    """What a paragraph says first; "" for a list, a table or a fold."""
    sentence = re.match(r"(?![-|<]|\d+\. )(.+?(?:[.?!]|:$))(?=\s|$)", source, re.S)
    return sentence[1] if sentence else ""


def second_lecture(titles: list[str]) -> str:
    """What stands on the slide with which the second lecture begins."""
    before = "\n".join(f"- {one}" for one in titles[1:])
    return f"# {titles[0]}\n\n**The second lecture.** In the first:\n\n{before}"


def without_drawing(source: str, figure: bool) -> str:
    """Python source, without the statements that draw if a figure follows; "" if only
    imports are left."""
    source = re.sub(r"\n{3,}", "\n\n", source)  # slides are low
    kept, lines, start = [], source.splitlines(), 0
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a magic command of IPython
        return source
    for node in statements:
        text, start = "\n".join(lines[start : node.end_lineno]), node.end_lineno
        if not (figure and DRAWS.search(text)):
            kept.append((node, text))
    if all(isinstance(node, (ast.Import, ast.ImportFrom)) for node, _ in kept):
        return ""
    return "\n".join(text for _, text in kept).strip("\n")


def in_pieces(source: str) -> list[str]:
    """Python source in pieces that fit a slide, cut where a block ends."""
    lines = source.strip("\n").splitlines()
    if len(lines) <= MOST:
        return ["\n".join(lines)] if lines else []
    indents = [len(line) - len(line.lstrip()) for line in lines]
    middle = len(lines) / 2
    cuts = sorted(
        range(1, len(lines)),
        key=lambda n: (indents[n] > 4 or bool(lines[n - 1].strip()), abs(n - middle)),
    )
    cut = next((n for n in cuts if max(n, len(lines) - n) <= MOST), cuts[0])
    halves = lines[:cut], lines[cut:]
    return [piece for half in halves for piece in in_pieces("\n".join(half))]


if __name__ == "__main__":
    shared.run_builder(build_slides, "The slides", shared.BUILD / "slides")
