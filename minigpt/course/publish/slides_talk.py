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
    draw:  a function of minigpt.course.drawings.lecture, whose figure ends the slide
    instead: such a figure, in place of the slide's code and what it prints

All else is what to say, and comes first in the notes.
"""

import base64
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from minigpt.course.drawings import lecture
from minigpt.course.publish import slides_dots
from minigpt.course.publish.slides_parts import (
    asks,
    part_of,
    text_cell,
    text_part,
)

TALKS = Path(__file__).resolve().parent / "talks"
HEADING = re.compile(r"^## ([\w-]+)(\+?) ?(.*)$", re.M)
STAYS = re.compile(r"#|\$\$|- |\d+\. |\||```")  # headings, formulas, lists, tables
FIELD = re.compile(r"^(above|below|rows|steps|skip|draw|instead): +(.+)\n?", re.M)


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
        if "below" in entry.fields:
            put_below(slide, entry.fields["below"])
        if "instead" in entry.fields:
            put_instead(slide, entry.fields["instead"])
        if "draw" in entry.fields:
            slide["parts"].append(part_of("output", drawn(entry.fields["draw"])))
    return left


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


def put_instead(slide: dict, name: str) -> None:
    """A figure where code and results stood."""
    kinds = [part["what"] for part in slide["parts"]]
    place = kinds.index("code" if "code" in kinds else "output")
    slide["parts"] = [part for part in slide["parts"] if part["what"] == "text"]
    slide["parts"].insert(place, part_of("output", drawn(name)))


def with_rows(cell: NotebookNode, fields: dict[str, str]) -> NotebookNode:
    """A result whose dots have other labels, or are compared step by step."""
    labels = [label.strip() for label in fields.get("rows", "").split("|")]
    steps = "steps" in fields
    outputs = [
        slides_dots.again(one, labels if labels[0] else [], steps)
        for one in cell.get("outputs", [])
    ]
    return nbformat.from_dict(cell | {"outputs": outputs})


def drawn(name: str) -> NotebookNode:
    """The figure of a function of drawings.lecture, as a cell that shows it."""
    figure, buffer = getattr(lecture, name)(), io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    png = base64.b64encode(buffer.getvalue()).decode("ascii")
    output = nbformat.v4.new_output(
        "display_data",
        {"image/png": png, "text/plain": f"Figure: {figure.alt}"},
        metadata={"image/png": {"alt": figure.alt}},
    )
    return nbformat.v4.new_code_cell("", id=f"drawn-{name}", outputs=[output])


def say(stacks: list[list[dict]]) -> None:
    """What is to say stands before all other notes; a table of links is none."""
    for slide in (slide for stack in stacks for slide in stack):
        slide["notes"] = [n for n in slide["notes"] if not n.source.startswith("| | |")]
        if slide.get("say"):
            slide["notes"].insert(0, text_cell(slide["say"]))
