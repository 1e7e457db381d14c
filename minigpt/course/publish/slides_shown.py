"""What a lecturer puts on a slide in place of what a lesson prints: drawings, small
tables, dots, cards; chosen lines of code; and what waits for a key press."""

import ast
import base64
import html
import io
import re
from collections.abc import Sequence

import nbformat
from matplotlib.text import Text
from nbformat import NotebookNode
from PIL import Image, ImageDraw

from minigpt.course.drawings import lecture, lecture_steps, spine
from minigpt.course.plots import Picture
from minigpt.course.publish import slides_dots
from minigpt.course.publish.slides_parts import asks, is_figure, part_of, text_part

LETTERS = 13.5  # points of a drawing's letters, at least
LINE = 52  # pixels of a table's row
COLUMNS = 3  # of cards
CARD, TALL_CARD = (
    170,
    380,
)  # pixels of one of several rows of cards, and of the only one
VEIL = (255, 255, 255, 255)  # what covers a part of a figure
ITEM = re.compile(r"\n(?=- |\d+\. )")
LIST = re.compile(r"- |\d+\. ")
CODE = re.compile(r"`([^`]+)`")


def words_of(field: str) -> list[str]:
    """The words between the bars of a field."""
    return [word.strip() for word in field.split("|")]


def drawn(field: str) -> NotebookNode:
    """The figure of a drawing for lectures, as a cell that shows it: its name, and what
    it is told, between bars. Several pictures follow each other at key presses."""
    name, *told = words_of(field)
    (made,) = [
        vars(one)[name]
        for one in (lecture, lecture_steps, spine)
        if name in vars(one) and vars(one)[name].__module__ == one.__name__
    ]
    pictures = made(*told)
    if isinstance(pictures, Picture):
        enlarge(pictures)
        return figure(f"drawn-{name}", [(png_of(pictures, "tight"), pictures.alt)])
    return figure(f"drawn-{name}", [(png_of(one), one.alt) for one in pictures])


def enlarge(picture: Picture) -> None:
    """Let no letters of a picture be smaller than a lecture hall needs them."""
    for text in picture.findobj(Text):
        if isinstance(text, Text) and float(text.get_fontsize()) < LETTERS:
            text.set_fontsize(LETTERS)


def png_of(picture: Picture, box: str | None = None) -> str:
    """A picture as text; box: "tight" cuts its margins."""
    buffer = io.BytesIO()
    picture.savefig(buffer, format="png", bbox_inches=box)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def figure(id: str, pictures: Sequence[tuple[str, str]]) -> NotebookNode:
    """A cell that shows pictures, each with its description, one over the other."""
    (png, alt), *steps = pictures
    metadata: dict = {"image/png": {"alt": alt}}
    if steps:
        metadata["steps"] = [{"png": one, "alt": told} for one, told in steps]
    data = {"image/png": png, "text/plain": f"Figure: {pictures[-1][1]}"}
    output = nbformat.v4.new_output("display_data", data, metadata=metadata)
    return nbformat.v4.new_code_cell("", id=id, outputs=[output])


def written(id: str, source: str, told: str, high: float) -> NotebookNode:
    """A cell that shows HTML, so many pixels high; told: the same in plain words."""
    data = {"text/html": source, "text/plain": told}
    output = nbformat.v4.new_output("display_data", data, metadata={"high": high})
    return nbformat.v4.new_code_cell("", id=id, outputs=[output])


def table(field: str, waits: bool = False) -> NotebookNode:
    """Rows between //, cells between bars, the first row in the head; waits: the last
    column comes at a key press."""
    rows = [words_of(row) for row in field.split("//")]

    def cell(tag: str, words: str, last: bool) -> str:
        words = CODE.sub(r"<code>\1</code>", html.escape(words))
        if last and tag == "td" and waits:
            words = f'<span class="fragment" data-fragment-index="0">{words}</span>'
        return f"<{tag}>{words}</{tag}>"

    lines = []
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        cells = [cell(tag, word, n == len(row) - 1) for n, word in enumerate(row)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    head = f"<thead>{lines[0]}</thead>" if any(rows[0]) else ""
    source = f'<table class="facts">{head}<tbody>{"".join(lines[1:])}</tbody></table>'
    told = "\n".join("  ".join(row) for row in rows)
    return written("table", source, told, LINE * len(rows))


def dots(field: str, waits: bool = False) -> NotebookNode:
    """What was measured, and rows that end in a number, as dots; waits: they come at
    key presses."""
    of, *rows = words_of(field)
    told = [(row.rpartition(" ")[0], row.rpartition(" ")[2], 0.0) for row in rows]
    high = min(slides_dots.HIGH, slides_dots.TALL // len(told))
    source = slides_dots.svg(told, high, of, waits=waits, alike=False)
    return written("dots", source, field, high * len(told) + slides_dots.BELOW)


def cards(cell: NotebookNode) -> NotebookNode:
    """Printed samples beside each other, with their lines: each below a line of dashes
    with its name, or a line each with its name and arrows for the ends of lines."""
    printed = "".join(output.get("text", "") for output in cell.get("outputs", []))
    found = re.findall(r"^-{3,} (.*)\n((?:(?!---).*\n?)*)", printed, re.M)
    if not found:
        lines = [line.partition("↵") for line in printed.strip().splitlines()]
        found = [(name, text.replace("↵", "\n")) for name, _, text in lines]
    made = []
    for name, text in found:
        lines = [f"<p>{html.escape(line)}</p>" for line in text.split("\n") if line]
        made.append(f"<div><h3>{html.escape(name.strip())}</h3>{''.join(lines)}</div>")
    few = " few" if len(made) <= COLUMNS else ""
    source = f'<div class="cards{few}">{"".join(made)}</div>'
    high = TALL_CARD if few else CARD * -(-len(made) // COLUMNS)
    return written("cards", source, printed, high)


def covered(cell: NotebookNode, bands: str) -> NotebookNode:
    """A figure on which rectangles, from left to right and from top to bottom in
    hundredths of its size such as 10-80x5-40, are covered until a key press."""
    output = cell.outputs[0]
    png, alt = output.data["image/png"], output.metadata["image/png"]["alt"]
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
    veil = Image.new("RGBA", image.size)
    for corners in re.findall(r"(\d+)-(\d+)x(\d+)-(\d+)", bands):
        left, right, top, low = (int(n) / 100 for n in corners)
        (wide, high), draw = image.size, ImageDraw.Draw(veil)
        draw.rectangle((left * wide, top * high, right * wide, low * high), fill=VEIL)
    buffer = io.BytesIO()
    Image.alpha_composite(image, veil).convert("RGB").save(buffer, "png")
    first = base64.b64encode(buffer.getvalue()).decode("ascii")
    return figure(
        cell.id, [(first, f"{alt} A part of it is still covered."), (png, alt)]
    )


def one_by_one(slide: dict) -> None:
    """Let what a slide shows wait for key presses: each item of a list, each row of
    dots, any other result, or one that answers a question, as a whole."""
    parts: list[dict] = []
    for part in slide["parts"]:
        if is_list(part):
            items = ITEM.split(part["cell"].source)
            parts += [text_part(one, fragment=True) for one in items]
            continue
        answers = any(map(asks, parts))
        if part["what"] == "output" and (answers or not shows_later(part)):
            part["fragment"] = True
        parts.append(part)
    slide["parts"] = parts


def is_list(part: dict) -> bool:
    """Is a part a list?"""
    return part["what"] == "text" and bool(LIST.match(part["cell"].source))


def shows_later(part: dict) -> bool:
    """Does a result hold back some of what it shows?"""
    return any(
        "steps" in output.get("metadata", {})
        or 'class="fragment"' in output.get("data", {}).get("text/html", "")
        for output in part["cell"].get("outputs", [])
    )


def listing(source: str, names: str) -> str:
    """Of a cell's code the functions, classes and methods of these names, such as
    "Head.forward"; all of it for "yes", nothing for ""."""
    if not names or names == "yes":
        return source if names else ""
    lines, found = source.splitlines(), []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            wanted = [n for n in names.split() if n.split(".")[0] == node.name]
            if node.name in wanted:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                found.append("\n".join(lines[first - 1 : node.end_lineno]))
            elif wanted and isinstance(node, ast.ClassDef):
                kept = [lines[node.lineno - 1]]
                for one in node.body:
                    if isinstance(one, ast.FunctionDef):
                        if f"{node.name}.{one.name}" in wanted:
                            kept += lines[one.lineno - 1 : one.end_lineno]
                found.append("\n".join(kept))
    return "\n\n".join(found)


def put_in_place(slide: dict, cell: NotebookNode, lists: bool = True) -> None:
    """A result of a lecturer's where code and results stood, or behind the words.
    lists: do the slide's lists stay?"""
    if not lists:
        slide["parts"] = [p for p in slide["parts"] if not is_list(p)]
    kinds = [part["what"] for part in slide["parts"]]
    shown = [n for n, kind in enumerate(kinds) if kind != "text"]
    place = shown[0] if shown else len(kinds)
    slide["parts"] = [part for part in slide["parts"] if part["what"] == "text"]
    slide["parts"].insert(place, part_of("output", cell))


def put_first(slide: dict, cell: NotebookNode) -> None:
    """A figure below a slide's title, above all else."""
    place = int(slide["parts"][0]["cell"].source.startswith("#"))
    slide["parts"].insert(place, part_of("output", cell))


def cover(slide: dict, bands: str) -> None:
    """Cover bands of the figure of a slide."""
    for part in slide["parts"]:
        if is_figure(part):
            part["cell"] = covered(part["cell"], bands)
