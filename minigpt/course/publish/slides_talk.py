"""What a lecturer wrote for a lesson's slides: titles that claim something, words above
code and figures, and what to say.

`talks/NN_name.md` has an entry for each slide that needs one, in their order:

    ## c03-24 Without the root the softmax saturates

    above: The same five scores, times 1, 4 and 8:

    Point at the last column first.

The heading names the cell with which the slide begins, and the slide's title (none: it
keeps what it has). A cell with a title always begins a slide, unless a + stands behind
its id: that is a slide on which a cell goes on. The fields, all optional, a line each:

    above: replaces the words above code, figure or table; "above: -" takes them away
    below: the same for the words below; they wait for a click
    rows:  a | b | c: other labels for the rows of dots
    steps: yes: each row of dots is compared with the one before it
    skip:  yes: the slide is left out, and what stands on it is said
    code:  yes: the cell's code is shown, or only what is named: Head.forward Block
    draw:  a drawing of minigpt.course.drawings (lecture, lecture_steps or spine), which
           ends the slide; what it is told stands behind its name: rates | pre-norm
    first: such a drawing, below the title and above all else
    instead: such a drawing, in place of the slide's code and what it prints
    table: the same for a table, and in place of lists: a | b // c | d, the first row
           is its head
    dots:  the same for rows of dots: what is measured | one 1.2 | another 1.3
    cards: yes: printed samples stand beside each other
    reveal: yes: list items, rows of dots, a table's last column or the result come at
           key presses
    cover: 10-80x5-40: this part of a figure waits, too: from left to right and from top
           to bottom in hundredths

If one entry of a lesson has a field `code`, the cells that have none show their results
alone, and the notes say where their code stands. All else in an entry is what to say,
and comes first in the notes.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from minigpt.course.publish import slides_dots, slides_shown
from minigpt.course.publish.slides_parts import (
    asks,
    part_of,
    text_cell,
    text_part,
)

TALKS = Path(__file__).resolve().parent / "talks"
HEADING = re.compile(r"^## ([\w-]+)(\+?) ?(.*)$", re.M)
STAYS = re.compile(r"#|\$\$|- |\d+\. |\||```")  # headings, formulas, lists, tables
FIELDS = (
    "above below rows steps skip code draw first instead table dots cards reveal cover"
)
FIELD = re.compile(rf"^({FIELDS.replace(' ', '|')}): +(.+)\n?", re.M)


class Entry(NamedTuple):
    """What is written for one slide."""

    cell: str
    begins: bool  # does the cell begin a slide?
    title: str
    fields: dict[str, str]
    say: str


def read(name: str, folder: Path = TALKS) -> list[Entry]:
    """The entries for a notebook's slides; [] if nobody wrote any."""
    path = folder / f"{name}.md"
    return entries(path.read_text("utf-8")) if path.is_file() else []


def entries(text: str) -> list[Entry]:
    """The entries of such a file."""
    _, *found = HEADING.split(text)
    return [
        Entry(cell, bool(title) and not on, title, fields_of(body), said(body))
        for cell, on, title, body in zip(*(found[n::4] for n in range(4)))
    ]


def fields_of(body: str) -> dict[str, str]:
    """The fields in an entry's body."""
    return dict(FIELD.findall(body))


def said(body: str) -> str:
    """What is to say in an entry's body."""
    return FIELD.sub("", body).strip()


def tell(stacks: list[list[dict]], talk: Sequence[Entry]) -> list[Entry]:
    """Put each entry on its slide; the entries for which there is none."""
    left = list(talk)
    for stack, slide in [(one, slide) for one in stacks for slide in one]:
        entry = next((one for one in left if one.cell == slide["cell"]), None)
        if entry is None:
            continue
        left.remove(entry)
        if "skip" in entry.fields:
            leave_out(stack, slide)
            continue
        slide["say"] = entry.say
        if "above" in entry.fields:
            put_above(slide, entry.fields["above"])
        if entry.title:
            put_title(slide, entry.title)
        for part in slide["parts"] if entry.fields else []:
            if part["what"] == "output":
                part["cell"] = with_rows(part["cell"], entry.fields)
        show(slide, entry.fields)
        if "below" in entry.fields:
            put_below(slide, entry.fields["below"])
        if "cover" in entry.fields:
            slides_shown.cover(slide, entry.fields["cover"])
        if "reveal" in entry.fields:
            slides_shown.one_by_one(slide)
    return left


def show(slide: dict, fields: dict[str, str]) -> None:
    """Put what a lecturer shows on a slide."""
    waits = "reveal" in fields
    if "instead" in fields:
        slides_shown.put_in_place(slide, slides_shown.drawn(fields["instead"]))
    if "table" in fields:
        slides_shown.put_in_place(
            slide, slides_shown.table(fields["table"], waits), False
        )
    if "dots" in fields:
        slides_shown.put_in_place(slide, slides_shown.dots(fields["dots"], waits))
    if "cards" in fields:
        for part in slide["parts"]:
            if part["what"] == "output":
                part["cell"] = slides_shown.cards(part["cell"])
    if "first" in fields:
        slides_shown.put_first(slide, slides_shown.drawn(fields["first"]))
    if "draw" in fields:
        slide["parts"].append(part_of("output", slides_shown.drawn(fields["draw"])))


def leave_out(stack: list[dict], slide: dict) -> None:
    """Take a slide away; its words go into the notes of the one before."""
    before = stack[stack.index(slide) - 1]
    texts = [
        part["cell"]
        for part in slide["parts"]
        if part["what"] == "text" and part["cell"].source[-1] != ":"
    ]
    before["notes"] += [*texts, *slide["notes"]]
    stack.remove(slide)


def put_title(slide: dict, title: str) -> None:
    """A title for a slide; the section's goes to its foot."""
    heads = [p for p in slide["parts"] if p["cell"].source.startswith("#")]
    names = [re.sub(r"[`*]|^#+ ", "", p["cell"].source) for p in heads]
    slide["foot"] = " · ".join(filter(None, [slide["running"], *names]))
    slide["running"] = ""
    rest = [part for part in slide["parts"] if part not in heads]
    slide["parts"] = [text_part(f"## {title}"), *rest]


def put_above(slide: dict, source: str) -> None:
    """Other words above what a slide shows, but for headings, formulas, lists."""
    parts = slide["parts"]
    shown = [n for n, part in enumerate(parts) if part["what"] != "text" or asks(part)]
    end = shown[0] if shown else len(parts)
    stay = [p for p in parts[:end] if STAYS.match(p["cell"].source)]
    if source != "-":
        heads = [p for p in stay if p["cell"].source.startswith("#")]
        stay.insert(len(heads), text_part(source))
    slide["parts"] = stay + parts[end:]


def put_below(slide: dict, source: str) -> None:
    """Other words below the last code or result of a slide."""
    parts = slide["parts"]
    while parts[1:] and parts[-1]["what"] == "text" and parts[-1]["fragment"]:
        parts.pop()
    if source != "-":
        parts.append(text_part(source, fragment=True))


def with_rows(cell: NotebookNode, fields: dict[str, str]) -> NotebookNode:
    """A result whose dots have other labels, or are compared step by step."""
    labels = [label.strip() for label in fields.get("rows", "").split("|")]
    steps, waits = "steps" in fields, "reveal" in fields
    outputs = [
        slides_dots.again(one, labels if labels[0] else [], steps, waits)
        for one in cell.get("outputs", [])
    ]
    return nbformat.from_dict(cell | {"outputs": outputs})


def say(stacks: list[list[dict]]) -> None:
    """What is to say stands before all other notes; a table of links is none."""
    for slide in (slide for stack in stacks for slide in stack):
        slide["notes"] = [n for n in slide["notes"] if not n.source.startswith("| | |")]
        if slide.get("say"):
            slide["notes"].insert(0, text_cell(slide["say"]))
