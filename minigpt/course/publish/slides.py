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
    used = shared.characters(loaded)
    shared.write_model(folder / "model.html")
    written = []
    for path, notebook in zip(paths, loaded):
        if path.stem[:2] in ("06", "11"):
            notebook.cells.append(nbformat.v4.new_markdown_cell(OPENED, id="opened"))
        target = folder / f"{path.stem}.html"
        shared.write(target, deck(notebook, used))
        written.append(target)
    return written


def deck(notebook: NotebookNode, used: frozenset[str]) -> str:
    """One notebook as a page of slides; `used`: the characters that fonts need."""
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
        fonts=shared.fonts(used),
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
        further = about or further and not paragraph.startswith("**")
        seen = re.match(r"#|\$\$|```|\*\*Predict|> |\*\*(?!Further|Beside)", paragraph)
        recap = recap or paragraph.startswith(("## Recap", ASKS))
        if "**Predict" in paragraph and not seen:
            paragraph, _, asked = paragraph.partition("**Predict")
            found += [("said", paragraph), ("seen", "**Predict" + asked)]
        else:
            seen = seen or recap and not further
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
    found, section, asked, done = [], "", False, False  # done: code stands there
    titles = []  # of the sections of this lecture
    text_cell = nbformat.v4.new_markdown_cell

    def fits(what: str, cell: NotebookNode) -> bool:
        return used(found[-1][-1]) + height(what, cell) <= HIGH

    def put(what: str, cell: NotebookNode, fragment: bool = False) -> None:
        part = {"what": what, "cell": cell, "fragment": fragment}
        found[-1][-1]["parts"].append(part)

    def begin(cell: NotebookNode, kind: str = "", running: str | None = None) -> None:
        running = re.sub(r"[`*]", "", section) if running is None else running
        slide = {"cell": cell.id, "kind": kind, "running": running}
        found[-1].append(slide | {"parts": [], "notes": []})

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            if SECOND in cell.metadata.get("tags", []):
                found.append([])
                begin(cell, "opening", running="")
                put("text", text_cell(second_lecture(titles)))
                titles = titles[:1]
            for kind, source in seen_and_said(cell.source, section == "Recap"):
                text = text_cell(source)
                if heading := re.match(r"(#{1,3}) (.*)", source):
                    done = False
                    if len(heading[1]) < 3:
                        section = heading[2]
                        titles.append(section)
                        found.append([])
                        begin(cell, "opening" if heading[1] == "#" else "", "")
                    elif not only_heading(found):
                        begin(cell)
                elif kind == "seen" and (
                    source.startswith(ASKS)
                    or done
                    and re.match(r"\*\*(Predict|Think)", source)
                    or not fits("text", text)
                ):
                    begin(cell)
                    done = False
                if kind == "said":
                    found[-1][-1]["notes"].append(text)
                    if (claim := first_sentence(source)) and only_heading(found):
                        put("text", text_cell(claim))
                else:
                    put("text", text)
                asked = "**Predict" in source or asked and kind == "said"
            continue
        figures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        pieces = in_pieces(without_drawing(cell.source, bool(figures)))
        if found[-1][-1]["kind"] == "opening" and len(figures) == len(cell.outputs):
            pieces = []  # the set-up
        for piece in pieces:
            code = nbformat.from_dict(cell | {"source": piece})
            if done or not fits("code", code):
                begin(cell)
                asked = False
            put("code", code, asked)
            done = True
        for output in sorted(cell.outputs, key=figures.__contains__):  # print first
            shown = nbformat.from_dict(cell | {"outputs": [output]})
            own = done and not pieces or not fits("output", shown)
            if own and found[-1][-1]["parts"]:
                begin(cell)
            put("output", shown, fragment=bool(pieces or asked) and not own)
        done = done or bool(cell.outputs)  # what comes next begins a slide
        asked = False
    for stack in found:
        tell_more(stack[0])
    return found


def only_heading(found: list) -> bool:
    """Does nothing stand on the last slide but a heading of a section?"""
    parts = found[-1][-1]["parts"]
    return bool(parts) and all(re.match("###? ", p["cell"].source) for p in parts)


def tell_more(slide: dict) -> None:
    """Of a section that begins with words alone, show its first paragraph and its
    lists and tables in place of one sentence, as far as there is room."""
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
        if not (is_list or short and not prose):
            continue
        part = {"what": "text", "cell": note, "fragment": False}
        if used({**slide, "parts": [heading, *said, part, *rest[1:]]}) > HIGH:
            break
        said.append(part)
        prose = prose or not is_list
    if said and said[-1]["cell"].source.endswith(":"):  # its list does not follow
        source = re.sub(r"(?<=[.?!])\s[^.?!]*:$", "", said[-1]["cell"].source)
        said[-1]["cell"] = nbformat.v4.new_markdown_cell(source)
    if prose:
        slide["parts"] = [heading, *said, *rest[1:]]


def used(slide: dict) -> float:
    """About how many pixels of a slide are full."""
    parts = [height(part["what"], part["cell"]) for part in slide["parts"]]
    return 44 * bool(slide["running"]) + sum(parts)


def height(what: str, cell: NotebookNode) -> float:
    """About how many pixels a part takes, shrunk to SMALL, with the gap below it."""
    if what == "code":
        return SMALL * (44 + 30 * len(cell.source.splitlines()))
    if what == "output":
        return sum(map(output_height, cell.outputs))
    paragraphs = re.split(r"\n{2,}", cell.source)
    return sum(map(text_height, paragraphs))


def output_height(output: NotebookNode) -> float:
    """Of a figure seven tenths of its height, where it is no wider than a slide."""
    data = output.get("data", {})
    if "image/png" in data:
        head = base64.b64decode(data["image/png"][:64])[16:24]
        wide, high = struct.unpack(">II", head) if head else (WIDTH, HEIGHT)
        return 20 + min(0.7 * high * min(1, (WIDTH - 144) / wide), 560)
    printed = output.get("text") or data.get("text/plain", "")
    lines = sum(1 + len(line) // 85 for line in printed.strip("\n").split("\n"))
    return SMALL * (28 + 29 * lines)


def text_height(paragraph: str) -> float:
    """Of prose, with 85 characters in a line, a list, a table or a formula."""
    if heading := re.match("#+", paragraph):
        return 72 if heading[0] != "#" else 100
    if paragraph.startswith("$$"):
        return SMALL * 110
    if paragraph.startswith(("```", "|")):
        return SMALL * (20 + 46 * paragraph.count("\n"))
    items = re.split(r"\n(?=- |\d+\. )", paragraph)
    lines = sum(1 + len(item) // 85 for item in items)
    ask = 28 * paragraph.startswith(("**Predict", "**Think first"))
    return SMALL * (20 + 40 * lines + 10 * (len(items) - 1) + ask)


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
