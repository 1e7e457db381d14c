"""What a slide is made of: parts, and what kind of a part one is."""

import re

import nbformat
from nbformat import NotebookNode

from minigpt.course.publish.slides_room import height
from minigpt.course.publish.slides_words import ASKS, findings, seen_and_said

FINDING = "finding-"  # a tag: with the numbers of the sentences that are one, or 0
QUESTION = re.compile(r"\*\*(Predict|Think)")


def text_cell(source: str) -> NotebookNode:
    """A new markdown cell."""
    return nbformat.v4.new_markdown_cell(source)


def part_of(what: str, cell: NotebookNode, fragment: bool = False) -> dict:
    """A part of a slide."""
    return {"what": what, "cell": cell, "fragment": fragment}


def text_part(source: str, fragment: bool = False) -> dict:
    """A part that is a text."""
    return part_of("text", text_cell(source), fragment)


def asks(part: dict) -> bool:
    """Is a part a question to the audience?"""
    return part["what"] == "text" and bool(QUESTION.match(part["cell"].source))


def has_output(slide: dict) -> bool:
    """Does a result stand on a slide?"""
    return any(part["what"] == "output" for part in slide["parts"])


def plain(source: str) -> str:
    """A text with single spaces, so that it is found again wherever its lines end."""
    return " ".join(source.split())


def is_question(source: str) -> bool:
    """Is a text a question to the audience?"""
    return bool(re.search(r"\*\*(Predict|Think)|^" + re.escape(ASKS), source))


def is_figure(part: dict) -> bool:
    """Is a part of a slide a picture?"""
    outputs = part["cell"].get("outputs", []) if part["what"] == "output" else []
    return any("image/png" in output.get("data", {}) for output in outputs)


def chosen_finding(cell: NotebookNode) -> tuple[int, ...] | None:
    """Which sentences of a text say what the result above it shows: the numbers that a
    tag gives, 0 for none; None where no tag does."""
    tags = cell.metadata.get("tags", [])
    numbers = [t.removeprefix(FINDING) for t in tags if t.startswith(FINDING)]
    return tuple(map(int, numbers[0].split("-"))) if numbers else None


def finding_height(cell: NotebookNode | None) -> float:
    """About how many pixels it takes to say what the result above a text shows; 0
    if the text does not."""
    if cell is None or cell.cell_type != "markdown":
        return 0
    kind, first = seen_and_said(cell.source)[0]
    found = findings(first, chosen_finding(cell))
    return height("text", text_cell(found[0])) if kind == "said" and found else 0


def only_claim(slide: dict) -> bool:
    """Does nothing stand on a slide but a heading of a section and what it says?"""
    texts = [part["cell"].source for part in slide["parts"]]
    return (
        all(part["what"] == "text" for part in slide["parts"])
        and "".join(texts[:1]).startswith("##")
        and not any(re.match(r"\$|\*\*|#", text) for text in texts[1:])
    )


def leads_on(source: str, slide: dict) -> bool:
    """Does a paragraph belong to what follows it, and not to the slide's code?"""
    if re.search(r"\*\*(Predict|Think)", source):
        return True
    explains = any(part["what"] == "output" for part in slide["parts"])
    leads = source.endswith((":", "?")) or not explains
    return leads and bool(re.match(r"\*\*(?!Next)", source))
