"""Each lesson as slides: one HTML file with everything inside, for any browser.

    python -m minigpt.course.publish.slides            writes build/slides/NN_name.html

Of a notebook that says nothing of slides, headings, formulas, questions, code and
figures stand on them, and the prose goes to the speaker's notes (press S): `laid_out`.
Else it is said in the cells' metadata, under `slideshow` (in JupyterLab: Property
Inspector, Slide Type):

    slide_type  slide      a new slide, to the right of the last one
                subslide   a new slide below the last one
                fragment   comes at the next key press; of a code cell first the
                           code, then its output
                notes      for the speaker only (press S)
                skip       not on the slides
                -          stays with the cell before it
    code        skip       show a code cell's output only
    output      fragment   the output comes at the next key press
                subslide   the output gets a slide of its own
                skip       the output is left out
"""

import json
import re
from functools import partial

import nbformat

from minigpt.course.publish import npm, page

SLIDE_TYPES = {"slide", "subslide", "fragment", "notes", "skip", "-"}
SCRIPTS = [
    page.MATHJAX,
    ("reveal.js", "dist/reveal.js"),
    ("reveal.js", "plugin/notes/notes.js"),
]
STYLES = [("reveal.js", "dist/reset.css"), ("reveal.js", "dist/reveal.css")]
WIDTH, HEIGHT = 1280, 720
FULL, TABLE = 16, 5  # lines of code on a slide; lines printed above a figure
ASIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)?(?:evidence|exercises)/[^)]*\)")


def build(folder=page.BUILD / "slides", notebooks=page.NOTEBOOKS):
    """Write all decks into the folder; list of their paths."""
    paths = page.notebook_paths(notebooks)
    loaded = [page.read(path) for path in paths]
    used = page.characters(loaded)
    written = []
    for path, notebook in zip(paths, loaded):
        target = folder / f"{path.stem}.html"
        page.write(target, deck(notebook, path.name, used))
        written.append(target)
    return written


def deck(notebook, name, used=None):
    """One notebook as a page of slides; `used`: the characters that fonts need."""
    without_shelves = partial(ASIDE.sub, r"\1")  # evidence and exercises: no slides
    notebook = laid_out(rewritten(notebook, "markdown", without_shelves))
    close_up = partial(re.sub, r"\n{3,}", "\n\n")  # code: slides are low
    close = rewritten(notebook, "code", close_up)
    body = page.to_html("slides", close, stacks=stacks(notebook, name))
    return page.whole_page(
        "slides",
        title=page.title(notebook),
        body=body,
        fonts=page.fonts(used or page.characters([notebook])),
        styles=[npm.read(*source).decode("utf-8") for source in STYLES]
        + [page.template_file(f) for f in ("shared/code.css", "slides/deck.css")],
        scripts=[page.script(*source) for source in SCRIPTS],
        before=page.template_file("shared/mathjax.js"),
        after=page.template_file("slides/deck.js"),
        size=json.dumps({"width": WIDTH, "height": HEIGHT}),
    )


def rewritten(notebook, cell_type, change):
    """The notebook with change(source) in the cells of a type."""
    changed = nbformat.from_dict(notebook)
    for cell in changed.cells:
        if cell.cell_type == cell_type:
            cell.source = change(cell.source)
    return changed


def text_cell(source, name, slide_type):
    """A cell of text with its slide type."""
    wish = {"slideshow": {"slide_type": slide_type}}
    return nbformat.v4.new_markdown_cell(source, id=name, metadata=wish)


def laid_out(notebook):
    """The notebook with `slideshow` metadata, if it has none.

    A section begins a slide, and so does each piece of code below the first of a
    slide; long code or a figure leaves no room for the other.
    """
    if any("slideshow" in cell.metadata for cell in notebook.cells):
        return notebook
    cells, lines, asked = [], 0, False  # lines: how full the present slide is
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for kind, source in seen_and_said(cell.source):
                begins = kind == "seen" and re.match(r"##? ", source)
                slide = "slide" if begins else "-" if kind == "seen" else "notes"
                cells.append(text_cell(source, f"{cell.id}-{len(cells)}", slide))
                lines = 0 if begins else lines
                lines += 2 * source.count("\n\n") + 2 if kind == "seen" else 0
                asked = "**Predict" in source or asked and kind == "said"
            continue
        long = cell.source.count("\n") + 1
        if long > 2 * FULL:  # no one could read it
            told = f"*{long} lines: see the notebook.*"
            cells.append(text_cell(told, f"{cell.id}-{len(cells)}", "-"))
            continue
        outputs = cell.get("outputs", [])
        figures = [o for o in outputs if "image/png" in o.get("data", {})]
        printed = sum(o.get("text", "").count("\n") for o in outputs)
        alone = figures if printed > TABLE else []  # a table above it: no room for both
        outputs = [o for o in outputs if o not in alone]
        kind = "subslide" if lines + long > FULL else "fragment" if asked else "-"
        wish, asked = {"slide_type": kind}, False
        if outputs:
            full = figures and not alone or long + printed > FULL
            wish["output"] = "subslide" if full else "fragment"
        told = {"outputs": outputs, "metadata": {"slideshow": wish}}
        cells.append(nbformat.from_dict(cell | told))
        if alone:
            wish = {"slide_type": "subslide", "code": "skip"}
            told = {"outputs": alone, "metadata": {"slideshow": wish}}
            cells.append(nbformat.from_dict(cell | told | {"id": f"{cell.id}-figure"}))
        lines = FULL  # what comes next begins a slide
    return nbformat.from_dict(notebook | {"cells": cells})


def seen_and_said(source):
    """The paragraphs of a text in their order, in pieces: ("seen", ...) for headings,
    formulas, drawings in code, the promise and questions; ("said", ...) for prose."""
    found = []
    for paragraph in re.split(r"\n{2,}", source):
        seen = re.match(
            r"#|\$\$|```|\*\*Predict|> |\*\*(?!Further|Beside|Can you)", paragraph
        )
        if "**Predict" in paragraph and not seen:
            paragraph, _, asked = paragraph.partition("**Predict")
            found += [("said", paragraph), ("seen", "**Predict" + asked)]
        else:
            found.append(("seen" if seen else "said", paragraph))
    return [(kind, text) for kind, text in found if text.strip()]


def stacks(notebook, name="the notebook"):
    """The slides as a list of stacks; a stack is a list of slides, one below the other.

    A slide is a dict: cell (id of its first cell), kind (a class), running (the
    section's title, if the slide does not begin with a heading), parts (what,
    index of the cell, fragment or not) and notes (indices of cells).
    """
    found, section = [], page.title(notebook)
    for index, cell in enumerate(notebook.cells):
        wish = cell.metadata.get("slideshow", {})
        kind = wish.get("slide_type", "-")
        if kind not in SLIDE_TYPES:
            raise ValueError(
                f"{name}, cell {cell.id}: slide_type is {kind!r}; "
                f"choose one of {', '.join(sorted(SLIDE_TYPES))}."
            )
        if kind == "skip":
            continue
        if kind == "slide" or not found:
            found.append([])
        if kind in ("slide", "subslide") or not found[-1]:
            found[-1].append(new_slide(cell, section))
        if heading := re.match(r"## (.*)", cell.source):
            section = heading[1]
        if kind == "notes":
            found[-1][-1]["notes"].append(index)
            continue
        for part, fresh in parts(cell, index, kind == "fragment", wish):
            if fresh:
                found[-1].append(new_slide(cell, section))
            found[-1][-1]["parts"].append(part)
    return found


def new_slide(cell, section):
    """An empty slide that begins with this cell."""
    heading = cell.cell_type == "markdown" and re.match(r"(#+) ", cell.source)
    level = len(heading[1]) if heading else None
    return {
        "cell": cell.id,
        "kind": "opening" if level == 1 else "",
        "running": "" if level in (1, 2) else re.sub(r"[`*]", "", section),
        "parts": [],
        "notes": [],
    }


def parts(cell, index, fragment, wish):
    """The visible pieces of a cell, each with: does it begin a slide of its own?"""
    if cell.cell_type == "markdown":
        yield {"what": "text", "index": index, "fragment": fragment}, False
    shows_code = cell.cell_type == "code" and wish.get("code") != "skip"
    if shows_code:
        yield {"what": "code", "index": index, "fragment": fragment}, False
    output = wish.get("output")
    if cell.get("outputs") and output != "skip":
        alone = output == "subslide" and shows_code
        later = not alone and (fragment or output == "fragment")
        yield {"what": "output", "index": index, "fragment": later}, alone


if __name__ == "__main__":
    page.build(build, "The slides", page.BUILD / "slides")
