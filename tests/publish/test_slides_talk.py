"""What a lecturer wrote for the slides: each entry has its slide, and tells no other
numbers than the lesson; and tables of many numbers as shaded cells."""

import re
from xml.etree import ElementTree

import nbformat
import pytest

from minigpt.course.drawings import lecture, lecture_steps
from minigpt.course.publish import (
    shared,
    slides,
    slides_dots,
    slides_heat,
    slides_layout,
    slides_parts,
    slides_shown,
    slides_talk,
    slides_words,
)

SPOKEN = [path for path in shared.notebook_paths() if slides_talk.read(path.stem)]
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
each_deck = pytest.mark.parametrize("path", SPOKEN, ids=lambda path: path.stem)


def slides_of(path):
    """[slide] of a deck as it is built."""
    notebook = shared.read(path)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = slides_words.without_asides(cell.source)
    if path.stem[:2] in slides.WITH_MODEL:
        notebook.cells[-2:-2] = slides.opened()
    stacks = slides_layout.stacks(notebook, slides_talk.read(path.stem))
    return [slide for stack in stacks for slide in stack]


def first_words(slide):
    """The source of a slide's first part."""
    return slide["parts"][0]["cell"].source


def test_the_main_line_is_spoken():
    numbers = [f"0{n}_" for n in range(7)]
    assert [path.stem[:3] for path in SPOKEN] == numbers


@each_deck
def test_each_entry_has_its_slide(path):
    found = slides_of(path)
    titles = {first_words(slide) for slide in found}
    notes = {note.source for slide in found for note in slide["notes"]}
    for entry in slides_talk.read(path.stem):
        if "skip" not in entry.fields:
            assert not entry.title or f"## {entry.title}" in titles, entry.title
            assert not entry.say or entry.say in notes, entry.say


@each_deck
def test_each_slide_has_a_title_of_its_own_and_something_to_say(path):
    titles = []
    for slide in slides_of(path):
        texts = [p["cell"].source for p in slide["parts"] if p["what"] == "text"]
        question = any(slides_parts.is_question(text) for text in texts)
        ends = any(text.startswith("## Recap") for text in texts)
        opened = slide["cell"] == "opened"
        if slide["kind"] or question or ends or opened or slide["running"] == "Recap":
            continue
        titles.append(first_words(slide))
        assert slide["foot"] and slide["notes"], slide["cell"]
    assert len(titles) == len(set(titles))
    assert all(len(title) <= 66 for title in titles), "a title is one line"


@each_deck
def test_notes_are_sentences_and_no_code(path):
    for slide in slides_of(path):
        for note in slide["notes"]:
            assert "```" not in note.source and not note.source.startswith("| | |")


@each_deck
def test_what_a_talk_shows_has_the_numbers_of_its_lesson(path):
    notebook = shared.read(path)
    printed = [
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    ]
    told = " ".join([*printed, *(cell.source for cell in notebook.cells)])
    known = {number.replace(",", "") for number in NUMBER.findall(told)}
    known |= {f"{len(slides_dots.rows(text))}" for text in printed}
    for entry in slides_talk.read(path.stem):
        keys = ("above", "below", "rows", "table", "dots", "instead", "draw", "first")
        shown = [entry.fields.get(key, "") for key in keys]
        for number in NUMBER.findall(" ".join([entry.title, *shown])):
            assert number.replace(",", "") in known, (entry.cell, number)


def test_no_lecture_of_03_and_06_takes_much_more_than_the_other():
    for path in SPOKEN:
        lengths = [slide["length"] for slide in slides_of(path) if "length" in slide]
        if len(lengths) > 1:
            minutes = [int(n) for n in re.findall(r"\d\d", lengths[0])]
            assert max(minutes) <= 40, path.stem


TALK = """# What is said

## a One claim: $x$

above: Other words:
rows: one | two | three | four
steps: yes

Say this.

And that.

## b+
skip: yes

## c+ Where c goes on
draw: relu
"""


def test_a_talk_is_read():
    first, second, third = slides_talk.entries(TALK)
    assert first[:3] == ("a", True, "One claim: $x$")
    assert first.fields["above"] == "Other words:"
    assert first.say == "Say this.\n\nAnd that."
    assert second[:3] == ("b", False, "") and second.fields == {"skip": "yes"}
    assert third[:3] == ("c", False, "Where c goes on") and third.say == ""
    assert slides_talk.read("99_nothing") == []


def made_of(*cells):
    """A notebook: a title and a section, then these code cells."""
    new = nbformat.v4
    texts = ["# T", "## One\n\nWhat is claimed in nine words stands on the slide."]
    return new.new_notebook(cells=[*map(new.new_markdown_cell, texts), *cells])


def code(id, source, text="row\n"):
    """A code cell that has printed."""
    cell = nbformat.v4.new_code_cell(source, id=id)
    cell.outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
    return cell


def stack_of(notebook, talk):
    """The slides of its section."""
    return slides_layout.stacks(notebook, slides_talk.entries(talk))[1]


def shown(slide):
    """[source of each part]"""
    return [part["cell"].source for part in slide["parts"]]


def test_a_title_begins_a_slide_and_the_section_goes_to_its_foot():
    notebook = made_of(code("a", "f()"), code("b", "g()"))
    one, two = stack_of(notebook, "## b A claim\n\nabove: Now:\nbelow: So.\n\nSay it.")
    assert shown(two) == ["## A claim", "Now:", "g()", "g()", "So."]
    assert (two["foot"], two["running"]) == ("One", "")
    assert [note.source for note in two["notes"]][0] == "Say it."
    assert "foot" not in one and shown(one)[0] == "## One"
    assert [p["fragment"] for p in two["parts"]][-2:] == [True, True]


def test_a_slide_that_is_left_out_is_said_on_the_one_before():
    notebook = made_of(code("a", "f()\n" * 16, ""), code("b", "g()\n" * 16, ""))
    both = stack_of(notebook, "## b A claim\n\nabove: It is so.")
    assert len(both) == 2
    (one,) = stack_of(notebook, "## b+\n\nskip: yes")
    assert "g()" not in "".join(shown(one))


def test_a_figure_is_drawn_for_a_slide():
    (slide,) = stack_of(made_of(), "## a\n\n## b")
    assert len(slide["parts"]) == 2
    cell = slides_shown.drawn("schedule")
    assert slides_parts.is_figure({"what": "output", "cell": cell})
    (output,) = cell.outputs
    assert output.metadata["image/png"]["alt"] == lecture.schedule().alt
    assert "over 100 steps" in output.data["text/plain"]


def test_a_figure_stands_in_place_of_code_and_what_it_prints():
    notebook = made_of(code("a", "f()"))
    talk = "## a A claim\n\nabove: Look:\nbelow: So.\ninstead: toy"
    slide = stack_of(notebook, talk)[-1]
    assert [part["what"] for part in slide["parts"]] == [
        "text",
        "text",
        "output",
        "text",
    ]
    assert slides_parts.is_figure(slide["parts"][2])


@pytest.mark.parametrize(
    "field",
    "roles saturation masks gradients knobs dropped variances shuffled toy wirings "
    "whole normed known read leak opposite".split()
    + [
        "by_hand | g",
        "by_hand | o",
        "asked | 0.99 | 908",
        "rates | pre-norm | no norm",
    ],
)
def test_a_drawing_for_a_lecture_can_be_read_aloud(field):
    (output,) = slides_shown.drawn(field).outputs
    told = [output.metadata["image/png"], *output.metadata.get("steps", [])]
    assert all(len(one["alt"].split()) > 10 for one in told)
    assert len({one["alt"] for one in told}) == len(told)


def printed_in(name):
    """All that a lesson's cells print."""
    return " ".join(
        str(output.get("text"))
        for cell in shared.read(shared.NOTEBOOKS / f"{name}.ipynb").cells
        for output in cell.get("outputs", [])
    )


def test_drawings_for_a_lecture_have_the_numbers_of_their_lesson():
    printed = printed_in("03_self_attention")
    for factor in (1, 4, 8):
        told = re.search(
            rf"times {factor}: (.*?); slopes (0\.\d\d)", lecture.saturation().alt
        )
        line = re.search(rf"times {factor}: (.*?) +slopes (0\.\d+)", printed)
        assert told and line
        rounded = ", ".join(f"{float(number):.2f}" for number in line[1].split())
        assert (told[1], told[2]) == (rounded, f"{float(line[2]):.2f}")
    last = lecture_steps.leak()[-1].alt
    assert "0.125, 0, 0; 0.125, 0.5, 0; 0.75, 0.5, 1" in last
    assert "first column tensor([[0.1250, 0.1250, 0.7500]])" in printed
    line = re.search(r"([\d. ]+) {'top_k': 2}", printed_in("06_full_training"))
    numbers = [float(n) for n in line[1].split()]
    told = [float(n) for n in re.findall(r"\d\.\d\d+", lecture.knobs().alt)]
    assert told[-len(numbers) :] == pytest.approx(numbers, abs=0.004)


def test_what_is_computed_by_hand_is_what_the_lesson_prints():
    printed = printed_in("03_self_attention")
    assert "n [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 4.0, 1.0]" in printed
    assert "n: 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 4, 1;" in lecture_steps.known()[-1].alt
    assert "key of n [20.0, 8.0]" in printed
    assert "(20, 8)" in lecture_steps.read()[-1].alt
    assert "strong hat\nstronnnnnt" in printed
    for letter, gets in zip("strong hat", "stronnnnnt"):
        if "strong hat".index(letter) == "strong hat".rindex(letter):
            alt = lecture_steps.by_hand(letter)[-1].alt
            assert re.search(rf"gets [\d.]+ · {gets}", alt), alt
    assert lecture.toy().alt.split(": ")[1].split(".")[0] in printed
    assert lecture.asked("0.99", "908").alt.split(": ")[1][:24] in printed
    printed = printed_in("05_residual_blocks")
    for one in re.findall(r"\[([-\d., ]+)\]", printed)[:8]:
        told = ", ".join(f"{float(n):.0f}" for n in one.split(","))
        assert told in lecture_steps.opposite()[-1].alt
    assert "-1.07, -0.53, 0.00, 1.60" in lecture.normed().alt
    assert "tensor([-1.0690, -0.5345,  0.0000,  1.6036])" in printed


def test_the_dropout_of_a_lecture_keeps_the_mean():
    told = re.search(r"In training: (.*), mean 1", lecture.dropped().alt)
    numbers = [float(n) for n in told[1].split(", ")]
    assert 4 * numbers.count(0) == len(numbers)
    assert sum(numbers) / len(numbers) == pytest.approx(1, abs=0.01)


def test_the_rows_of_dots_get_other_labels_and_make_a_staircase():
    text = "a 4.0\nb 2.0\nc 1.0\nd 3.0\n"
    notebook = made_of(code("a", "print(record.load('x'))", text))
    notebook.cells[1].id = "one"
    talk = "## one A claim\n\nrows: w | x | y | z\nsteps: yes"
    (slide,) = stack_of(notebook, talk)
    (output,) = slide["parts"][-1]["cell"].outputs
    picture = ElementTree.fromstring(output.data["text/html"])
    assert [t.text for t in picture.iter("text")][:-1:2] == ["w", "x", "y", "z"]
    assert "a staircase from each row to the next" in picture.get("aria-label")
    at = [dot.get("cx") for dot in picture.iter("circle")]
    starts = [
        line.get("x1")
        for line in picture.iter("line")
        if line.get("stroke") == slides_dots.FAINT
    ]
    assert starts == [at[0], *at[:-1]]
    with pytest.raises(ValueError):  # as many labels as rows
        stack_of(notebook, "## one A claim\n\nrows: w | x")


GRID = """            1    2    3    4
first    0.50 0.10 0.20 0.30
second   1.50      0.00 0.70
fourth   0.10 0.10 0.20 0.30

            1    2
third    0.25 0.75
"""


def test_tables_of_many_numbers_are_shaded_on_one_scale():
    stream = nbformat.v4.new_output("stream", text=GRID)
    html = slides_heat.drawn(stream).data["text/html"]
    first, second = ElementTree.fromstring(f"<div>{html}</div>")
    heads = [[head.text for head in one.find("thead/tr")] for one in (first, second)]
    assert heads == [[None, "1", "2", "3", "4"], [None, "1", "2"]]
    rows = [[cell.text for cell in row] for row in first.find("tbody")]
    assert rows[1] == ["second", "1.50", None, "0.00", "0.70"]
    colors = {cell.text: cell.get("style") for cell in first.iter("td")}
    assert "rgb(255, 255, 255)" in colors["0.00"] and "color: #fff" in colors["1.50"]


def test_other_printed_lines_are_no_such_table():
    ranges = "a 1.0 (0.9 to 1.1) 2.0 (1.9 to 2.1)\n"
    for text in ("a 0.1 0.2\nb 0.3 0.4\n", "words\nmore words\n", ranges * 4):
        stream = nbformat.v4.new_output("stream", text=text)
        assert slides_heat.drawn(stream) is None
