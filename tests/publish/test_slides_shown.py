"""What a lecturer puts in place of what a lesson prints, and what waits for a key."""

import base64
import io
import re

import nbformat
import pytest
from PIL import Image

from minigpt.course.publish import slides_layout, slides_shown, slides_talk

CLAIM = "What is claimed in nine words stands on the slide."


def made_of(*cells):
    """A notebook: a title and a section, then these cells."""
    new = nbformat.v4
    texts = ["# T", f"## One\n\n{CLAIM}"]
    return new.new_notebook(cells=[*map(new.new_markdown_cell, texts), *cells])


def code(id, source, text="row\n"):
    """A code cell that has printed."""
    cell = nbformat.v4.new_code_cell(source, id=id, execution_count=7)
    cell.outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
    return cell


def slides_of(talk, *cells):
    """The slides of a section with these cells."""
    return slides_layout.stacks(made_of(*cells), slides_talk.entries(talk))[1]


def codes(slides):
    """[source of each piece of code]"""
    return [
        part["cell"].source
        for slide in slides
        for part in slide["parts"]
        if part["what"] == "code"
    ]


def html_of(slide):
    """The HTML that a slide shows."""
    outputs = [o for part in slide["parts"] for o in part["cell"].get("outputs", [])]
    return "".join(o.data["text/html"] for o in outputs)


SOURCE = """C = 4


class Head(Layer):
    def __init__(self):
        self.size = C

    def forward(self, x):
        return x


@quick
def f(x):
    return x
"""


@pytest.mark.parametrize(
    "names, lines",
    [
        ("", []),
        ("f", ["@quick", "def f(x):", "    return x"]),
        ("Head.forward", ["class Head(Layer):", "    def forward(self, x):"]),
        ("Head", ["class Head(Layer):", "        self.size = C"]),
        ("yes", ["C = 4", "    return x"]),
    ],
)
def test_code_is_chosen_by_name(names, lines):
    found = slides_shown.listing(SOURCE, names).splitlines()
    assert all(line in found for line in lines)
    assert ("        self.size = C" in found) == (names in ("Head", "yes"))


def test_where_one_cell_is_chosen_the_others_show_their_results_alone():
    cells = code("a", "f()"), code("b", "g()"), code("c", "h()", "")
    slides = slides_of("## b\n\ncode: yes", *cells)
    assert codes(slides) == ["g()"]
    notes = [note.source for slide in slides for note in slide["notes"]]
    assert notes.count("The code stands in the notebook, cell [7].") == 2
    assert "f()" in codes(slides_of("", *cells))[0]


def test_a_figure_stands_before_its_code():
    cell = code("a", "y = f(x)\nshow(y)", "")
    cell.outputs = [slides_shown.drawn("toy").outputs[0]]
    first, second = slides_of("## a A claim\n\ncode: yes", cell)[-2:]
    assert [part["what"] for part in first["parts"]][-1] == "output"
    assert codes([second]) == ["y = f(x)\nshow(y)"]


def test_a_drawing_that_grows_is_pictures_of_one_size():
    (output,) = slides_shown.drawn("by_hand | g").outputs
    pngs = [output.data["image/png"], *(s["png"] for s in output.metadata.steps)]
    sizes = {Image.open(io.BytesIO(base64.b64decode(png))).size for png in pngs}
    assert len(pngs) == 6 and len(sizes) == 1
    assert output.metadata["image/png"]["alt"] != output.metadata.steps[-1]["alt"]


def test_a_table_keeps_its_last_column_back():
    talk = "## a A claim\n\ntable: what | loss // one `f` | 1.2 // two | 3\nreveal: yes"
    (slide,) = slides_of(talk, code("a", "f()"))[-1:]
    html = html_of(slide)
    assert "<th>loss</th>" in html and "<td>one <code>f</code></td>" in html
    waits = re.findall(r'<span class="fragment" data-fragment-index="0">(.*?)<', html)
    assert waits == ["1.2", "3"]
    assert not any(part["fragment"] for part in slide["parts"])


def test_dots_come_one_by_one_but_the_answer_to_a_question_comes_at_once():
    talk = "## a A claim\n\ndots: loss | one 1.2 | two 3.4\nreveal: yes"
    (slide,) = slides_of(talk, code("a", "f()"))[-1:]
    assert html_of(slide).count('<g class="fragment">') == 2
    assert "1.2" in html_of(slide) and "loss; axis from 1.2 to 3.4" in html_of(slide)
    ask = nbformat.v4.new_markdown_cell("**Predict:** what comes?", id="b")
    talk = talk.replace("## a A claim", "## b What comes?")
    (slide,) = slides_of(talk, ask, code("a", "f()"))[-1:]
    shown = [part for part in slide["parts"] if part["what"] == "output"]
    assert [part["fragment"] for part in shown] == [True]


def test_items_come_one_by_one():
    recap = nbformat.v4.new_markdown_cell("## Recap\n\n- One.\n- Two,\n  long.", id="r")
    stacks = slides_layout.stacks(
        made_of(recap), slides_talk.entries("## r\n\nreveal: yes")
    )
    parts = stacks[-1][0]["parts"]
    assert [part["cell"].source for part in parts[1:]] == ["- One.", "- Two,\n  long."]
    assert [part["fragment"] for part in parts] == [False, True, True]


def test_samples_stand_beside_each_other_with_their_lines():
    for printed in ("----- cold\nA b\nc\n----- hot\nD\n", "cold  ↵A b↵c\nhot   ↵↵D"):
        (output,) = slides_shown.cards(code("a", "f()", printed)).outputs
        html = output.data["text/html"]
        assert re.findall("<h3>(.*?)</h3>", html) == ["cold", "hot"]
        assert re.findall("<p>(.*?)</p>", html) == ["A b", "c", "D"]


def test_a_part_of_a_figure_is_covered_until_a_key_press():
    cell = slides_shown.drawn("toy")
    (output,) = slides_shown.covered(cell, "0-50x0-100").outputs
    first, last = (
        Image.open(io.BytesIO(base64.b64decode(png))).convert("L")
        for png in (output.data["image/png"], output.metadata.steps[0]["png"])
    )
    wide, high = first.size
    left, right = (0, 0, wide // 2, high), (wide // 2 + 2, 0, wide, high)
    assert first.crop(left).getextrema()[0] > 200 > last.crop(left).getextrema()[0]
    assert first.crop(right).getextrema() == last.crop(right).getextrema()


def test_the_second_lecture_shows_the_picture_of_the_first():
    cells = [code("p", "", ""), nbformat.v4.new_markdown_cell("## Two\n\nClaimed.")]
    cells[0].outputs = slides_shown.drawn("toy").outputs
    notebook = made_of(*cells)
    notebook.cells.insert(1, notebook.cells.pop(2))
    notebook.cells[-1].metadata["tags"] = ["second-lecture"]
    again = slides_layout.stacks(notebook)[2][0]
    assert [part["what"] for part in again["parts"]] == ["text", "output"]
    assert [note.source for note in again["notes"]][-1] == "- One"
