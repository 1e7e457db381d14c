"""Reads a notebook's exercises out of the notebook itself, and plays the learner.

An exercise is a code cell that begins with `# Exercise 02.1` (or `# Bug hunt
02.6`) and ends with its `check_...(...)` call; the next markdown cell holds the
hint and, in a fold called Solution, a python block that mends the cell.
"""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import NamedTuple

import nbformat

HERE = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = Path(os.environ.get("MINIGPT_NOTEBOOKS", HERE))


class Exercise(NamedTuple):
    """number "02.1", kind "Exercise" or "Bug hunt", and three pieces of code."""

    kind: str
    number: str
    skeleton: str  # without the check
    check: str  # the line that calls the check
    solution: str


def exercises_of(name):
    """All exercises of the notebook whose file name begins with `name`."""
    (path,) = NOTEBOOKS.glob(f"{name}*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    found = []
    for cell, after in zip(cells, cells[1:]):
        head = re.match(r"# (Exercise|Bug hunt) (\d\d\.\d+)", cell.source)
        if cell.cell_type != "code" or not head:
            continue
        lines = cell.source.rstrip().splitlines()
        start = max(i for i, line in enumerate(lines) if line.startswith("check_"))
        fold = re.search(r"<summary>Solution.*?```python\n(.*?)```", after.source, re.S)
        assert fold, f"{head[0]} has no folded solution in the next cell"
        found.append(
            Exercise(
                *head.groups(),
                "\n".join(lines[:start]),
                "\n".join(lines[start:]),
                fold[1],
            )
        )
    return found


def play(exercise, namespace, code):
    """What the check prints when `code` stands in for the skeleton.

    The skeleton runs first, so `code` need only define what it changes.
    """
    namespace = dict(namespace)
    printed = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(exercise.skeleton, namespace)
        exec(code, namespace)
    with contextlib.redirect_stdout(printed):
        exec(exercise.check, namespace)
    return printed.getvalue()
