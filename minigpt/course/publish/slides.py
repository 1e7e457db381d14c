"""Each lesson as slides: one HTML file with everything inside, for any browser.

    python -m minigpt.course.publish.slides            writes build/slides/NN_name.html

Headings, formulas, questions, code and figures stand on the slides; the prose is for
the speaker's notes (press S).
"""

import json
import re

import nbformat

from minigpt.course.publish import npm, page

SCRIPTS = [
    page.MATHJAX,
    ("reveal.js", "dist/reveal.js"),
    ("reveal.js", "plugin/notes/notes.js"),
]
STYLES = [("reveal.js", "dist/reset.css"), ("reveal.js", "dist/reveal.css")]
WIDTH, HEIGHT = 1280, 720
FULL, TABLE = 16, 5  # lines of code on a slide; lines printed above a figure
OPENED = """## The model, opened

**[The GPT of this course](model.html)**, in a file beside these slides: it writes, and
a click switches off one of its parts."""
ASIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)?(?:evidence|exercises)/[^)]*\)")


def build(folder=page.BUILD / "slides", notebooks=page.NOTEBOOKS):
    """Write all decks into the folder, and the model that 06 and 11 open; list of the
    decks' paths."""
    paths = page.notebook_paths(notebooks)
    loaded = [page.read(path) for path in paths]
    used = page.characters(loaded)
    page.write_model(folder / "model.html")
    written = []
    for path, notebook in zip(paths, loaded):
        if path.stem[:2] in ("06", "11"):
            notebook.cells.append(nbformat.v4.new_markdown_cell(OPENED, id="opened"))
        target = folder / f"{path.stem}.html"
        page.write(target, deck(notebook, used))
        written.append(target)
    return written


def deck(notebook, used):
    """One notebook as a page of slides; `used`: the characters that fonts need."""
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":  # evidence and exercises: no slides
            cell.source = ASIDE.sub(r"\1", cell.source)
        else:
            cell.source = re.sub(r"\n{3,}", "\n\n", cell.source)  # slides are low
    body = page.to_html("slides", notebook, stacks=stacks(page.local_links(notebook)))
    return page.whole_page(
        "slides",
        title=page.title(notebook),
        body=body,
        fonts=page.fonts(used),
        styles=[npm.read(*source).decode("utf-8") for source in STYLES]
        + [page.template_file(f) for f in ("shared/code.css", "slides/deck.css")],
        scripts=[page.script(*source) for source in SCRIPTS],
        before=page.template_file("shared/mathjax.js"),
        after=page.template_file("slides/deck.js"),
        size=json.dumps({"width": WIDTH, "height": HEIGHT}),
    )


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


def stacks(notebook):
    """The slides as a list of stacks; a stack is a list of slides, one below the other.

    A section begins a stack, and so does each piece of code a slide below the first
    code; long code or a figure leaves no room for the other. A slide is a dict: cell
    (id of its first cell), kind (a class), running (the section's title, if the slide
    does not begin with it), parts (what, cell, fragment or not) and notes (cells).
    """
    found, section, lines, asked = [], "", 0, False  # lines: how full the slide is

    def put(what, cell, fragment=False):
        part = {"what": what, "cell": cell, "fragment": fragment}
        found[-1][-1]["parts"].append(part)

    def begin(cell, kind="", running=None):
        running = re.sub(r"[`*]", "", section) if running is None else running
        slide = {"cell": cell.id, "kind": kind, "running": running}
        found[-1].append(slide | {"parts": [], "notes": []})

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for kind, source in seen_and_said(cell.source):
                if heading := re.match(r"(##?) (.*)", source):
                    section, lines = heading[2], 0
                    found.append([])
                    begin(cell, "opening" if heading[1] == "#" else "", running="")
                text = nbformat.v4.new_markdown_cell(source)
                if kind == "said":
                    found[-1][-1]["notes"].append(text)
                else:
                    put("text", text)
                    lines += 2 * source.count("\n\n") + 2
                asked = "**Predict" in source or asked and kind == "said"
            continue
        long = cell.source.count("\n") + 1
        if long > 2 * FULL:  # no one could read it
            told = f"*{long} lines: see the notebook.*"
            put("text", nbformat.v4.new_markdown_cell(told))
            continue
        if lines + long > FULL:
            begin(cell)
            asked = False
        put("code", cell, asked)
        figures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        printed = sum(o.get("text", "").count("\n") for o in cell.outputs)
        alone = figures if printed > TABLE else []  # a table above it: no room for both
        beside = [o for o in cell.outputs if o not in alone]
        apart = bool(figures and not alone) or long + printed > FULL
        for outputs, own in ((beside, apart), (alone, True)):
            if outputs:
                if own:
                    begin(cell)
                shown = nbformat.from_dict(cell | {"outputs": outputs})
                put("output", shown, fragment=not own)
        lines, asked = FULL, False  # what comes next begins a slide
    return found


if __name__ == "__main__":
    page.build(build, "The slides", page.BUILD / "slides")
