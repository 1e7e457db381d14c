"""Each lesson as slides: one HTML file with everything inside, for any browser.

    python -m minigpt.course.publish.slides            writes build/slides/NN_name.html

Headings, what is said first below them, formulas, questions, code with the sentence
that leads to it, figures, what they show and the recap stand on the slides; the
prose is for the speaker's notes (press S). Code that draws, and a lesson's set-up, stay
in the notebook. `talks/NN_name.md` has a lecturer's titles and notes (`slides_talk`).
"""

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from PIL import Image

from minigpt.course.publish import npm, shared, slides_talk
from minigpt.course.publish.slides_layout import stacks
from minigpt.course.publish.slides_room import HEIGHT, WIDTH
from minigpt.course.publish.slides_words import without_asides

SCRIPTS = [
    shared.MATHJAX,
    ("reveal.js", "dist/reveal.js"),
    ("reveal.js", "plugin/notes/notes.js"),
]
STYLES = [("reveal.js", "dist/reset.css"), ("reveal.js", "dist/reveal.css")]
WITH_MODEL = ("06", "11")  # lessons whose deck opens the model's page before its recap
OPENED = """## The model, opened

**[The GPT of this course](model.html)** writes, and a click switches off a part."""
PICTURE = (
    "The GPT of the course as a page in a browser: arcs show at which letters its "
    "heads look, and ribbons lead to the next characters that it thinks likely."
)


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
            recap = [c.source.startswith("## Recap") for c in notebook.cells].index(
                True
            )
            notebook.cells[recap:recap] = opened()
        target = folder / f"{path.stem}.html"
        shared.write(target, deck(notebook, characters, slides_talk.read(path.stem)))
        written.append(target)
    return written


def opened() -> list[NotebookNode]:
    """Two cells for the slide that leads to the model's page: words and a picture."""
    image, buffer = Image.open(shared.ROOT / ".github" / "page.png"), io.BytesIO()
    image.thumbnail((1080, 675))
    image.save(buffer, "png")
    figure = nbformat.v4.new_output(
        "display_data",
        {
            "image/png": base64.b64encode(buffer.getvalue()).decode("ascii"),
            "text/plain": f"Figure: {PICTURE}",
        },
        metadata={"image/png": {"alt": PICTURE}},
    )
    return [
        nbformat.v4.new_markdown_cell(OPENED, id="opened"),
        nbformat.v4.new_code_cell("", id="opened-2", outputs=[figure]),
    ]


def deck(
    notebook: NotebookNode,
    characters: frozenset[str],
    talk: Sequence[slides_talk.Entry] = (),
) -> str:
    """One notebook as a page of slides; `characters`: those that fonts need; talk: what
    a lecturer wrote for them."""
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":  # evidence and exercises: no slides
            cell.source = without_asides(cell.source)
    found = stacks(shared.local_links(notebook), talk)
    body = shared.to_html("slides", notebook, stacks=found)
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


if __name__ == "__main__":
    shared.run_builder(build_slides, "The slides", shared.BUILD / "slides")
