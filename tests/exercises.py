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


def cells_of(name):
    (path,) = NOTEBOOKS.glob(f"{name}*.ipynb")
    return nbformat.read(path, as_version=4).cells


def cell(name, start):
    """The code of the one cell of a notebook that begins with `start`."""
    found = [cell.source for cell in cells_of(name) if cell.source.startswith(start)]
    (code,) = found
    return code


def exercises_of(name):
    """All exercises of the notebook whose file name begins with `name`, by number."""
    cells, found = cells_of(name), {}
    for cell, after in zip(cells, cells[1:]):
        head = re.match(r"# (Exercise|Bug hunt) (\d\d\.\d+)", cell.source)
        if cell.cell_type != "code" or not head:
            continue
        lines = cell.source.rstrip().splitlines()
        start = max(i for i, line in enumerate(lines) if line.startswith("check_"))
        fold = re.search(r"<summary>Solution.*?```python\n(.*?)```", after.source, re.S)
        assert fold, f"{head[0]} has no folded solution in the next cell"
        skeleton, check = "\n".join(lines[:start]), "\n".join(lines[start:])
        found[head[2]] = Exercise(*head.groups(), skeleton, check, fold[1])
    return found


def edited(program, *edits):
    """The program with each (old, new) replaced; old must stand in it once."""
    for old, new in edits:
        assert program.count(old) == 1, old
        program = program.replace(old, new)
    return program


def answered(exercise, names, code):
    """The notebook's names after the cell with `code` in place of its dots.

    The skeleton runs first, so `code` need only define what it changes.
    """
    names = dict(names)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(exercise.skeleton, names)
        exec(code, names)
    return names


def play(exercise, names, code):
    """What the check prints when `code` stands in for the skeleton."""
    names = answered(exercise, names, code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(exercise.check, names)
    return printed.getvalue()
