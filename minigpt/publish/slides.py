"""Every notebook as slides: one HTML file with everything inside, for any browser.

    python -m minigpt.publish.slides            writes build/slides/NN_name.html

What stands on which slide is said in the cells' metadata, under `slideshow`
(in JupyterLab: Property Inspector, Slide Type):

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

import nbformat

from minigpt.publish import npm, page

SLIDE_TYPES = {"slide", "subslide", "fragment", "notes", "skip", "-"}
SCRIPTS = [
    page.MATHJAX,
    ("reveal.js", "dist/reveal.js"),
    ("reveal.js", "plugin/notes/notes.js"),
]
STYLES = [("reveal.js", "dist/reset.css"), ("reveal.js", "dist/reveal.css")]
WIDTH, HEIGHT = 1280, 720


def build(folder=page.BUILD / "slides", notebooks=page.NOTEBOOKS, model=page.MODEL):
    """Write all decks into the folder; list of their paths.

    model: the page of a trained model, which the slides link if it is there.
    """
    paths = page.notebook_paths(notebooks)
    loaded, models = page.link_model([page.read(p) for p in paths], folder, model)
    used = page.characters(loaded)
    written = []
    for path, notebook in zip(paths, loaded):
        target = folder / f"{path.stem}.html"
        page.write(target, deck(notebook, path.name, used))
        written.append(target)
    return written + models


def deck(notebook, name, used=None):
    """One notebook as a page of slides; `used`: the characters that fonts need."""
    body = page.to_html("slides", close_up(notebook), stacks=stacks(notebook, name))
    return page.whole_page(
        "slides",
        title=page.title(notebook),
        body=body,
        fonts=page.fonts(used or page.characters([notebook])),
        styles=[npm.read(*source).decode("utf-8") for source in STYLES]
        + [
            page.template_file("shared/code.css"),
            page.template_file("slides/deck.css"),
        ],
        scripts=[page.script(*source) for source in SCRIPTS],
        before=page.template_file("shared/mathjax.js"),
        after=page.template_file("slides/deck.js"),
        size=json.dumps({"width": WIDTH, "height": HEIGHT}),
    )


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
    running = "" if level in (1, 2) else plain(section)
    kind = "opening" if level == 1 else ""
    return {
        "cell": cell.id,
        "kind": kind,
        "running": running,
        "parts": [],
        "notes": [],
    }


def parts(cell, index, fragment, wish):
    """The visible pieces of a cell, each with: does it begin a slide of its own?"""
    if cell.cell_type == "markdown":
        yield {"what": "text", "index": index, "fragment": fragment}, False
        return
    shows_code = wish.get("code") != "skip"
    if shows_code:
        yield {"what": "code", "index": index, "fragment": fragment}, False
    output = wish.get("output")
    if cell.get("outputs") and output != "skip":
        alone = output == "subslide" and shows_code
        later = not alone and (fragment or output == "fragment")
        yield {"what": "output", "index": index, "fragment": later}, alone


def close_up(notebook):
    """The notebook with one blank line in code where there are two: slides are low."""
    changed = nbformat.from_dict(notebook)
    for cell in changed.cells:
        if cell.cell_type == "code":
            cell.source = re.sub(r"\n{3,}", "\n\n", cell.source)
    return changed


def plain(heading):
    """A heading's text without markdown's signs."""
    return re.sub(r"[`*]", "", heading)


if __name__ == "__main__":
    page.build(build, "The slides", page.BUILD / "slides")
