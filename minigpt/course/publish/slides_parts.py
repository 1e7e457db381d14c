"""What a slide is made of: parts, and what kind of a part one is."""

import re

import nbformat
from nbformat import NotebookNode

from minigpt.course.publish.slides_words import ASKS

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
