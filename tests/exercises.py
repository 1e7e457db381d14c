"""Reads a notebook's exercises out of the notebook itself, and plays the learner.

An exercise is, in this order: a markdown cell with its heading (and cells that
prepare something for it), a code cell that begins with `# Exercise 02.1` (or
`# Bug hunt 02.6`) and holds the answer, a code cell that calls the check, perhaps
one that demonstrates the answer, a markdown cell with the hint, and a markdown cell
tagged `answer-key` whose python block is the solution.
"""

import contextlib
import io
import re
from typing import NamedTuple

import nbformat
import syllabus
from IPython.core.compilerop import CachingCompiler

NOTEBOOKS = syllabus.NOTEBOOKS / "exercises"


class Exercise(NamedTuple):
    """number "02.1", kind "Exercise" or "Bug hunt", and three pieces of code."""

    kind: str
    number: str
    skeleton: str  # what the answer cell holds
    check: str  # the call
    solution: str


def cells_of(name):
    (path,) = NOTEBOOKS.glob(f"{name}*.ipynb")
    return nbformat.read(path, as_version=4).cells


def exercises_of(name):
    """All exercises of the notebook whose file name begins with `name`, by number."""
    cells, found = cells_of(name), {}
    for place, cell in enumerate(cells):
        head = re.match(r"# (Exercise|Bug hunt) (\d\d\.\d+)", cell.source)
        if cell.cell_type != "code" or not head:
            continue
        check, *after = cells[place + 1 :]
        call = check.source.splitlines()[-1]  # below the line that imports it
        solution = solution_in(after)
        found[head[2]] = Exercise(*head.groups(), cell.source, call, solution)
    return found


def solution_in(cells):
    """The python block of the first of these cells that is tagged as an answer key."""
    key = next(c for c in cells if "answer-key" in c.metadata.get("tags", []))
    return re.search(r"```python\n(.*?)```", key.source, re.S)[1]


def headings_of(name):
    """{number: title} of the headings of a notebook's exercises, in their order."""
    texts = [cell.source for cell in cells_of(name) if cell.cell_type == "markdown"]
    heading = re.compile(r"^### (?:Exercise|Bug hunt) (\d\d\.\d+): (.*)$", re.M)
    return dict(heading.findall("\n".join(texts)))


def edited(program, *edits):
    """The program with each (old, new) replaced; old must stand in it once."""
    for old, new in edits:
        assert program.count(old) == 1, old
        program = program.replace(old, new)
    return program


def answered(exercise, names, code):
    """The notebook's names after the answer cell with `code` in place of its dots.

    The skeleton runs first, so `code` need only define what it changes.
    """
    names, compiler = dict(names), CachingCompiler()  # lines can be shown
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in (exercise.skeleton, code):
            exec(compile(cell, compiler.cache(cell), "exec"), names)
    return names


def play(exercise, names, code, tell=False):
    """What the check prints when `code` stands in for the skeleton."""
    names = answered(exercise, names, code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        check = exercise.check.rstrip()
        exec(check.removesuffix(")") + ", tell=True)" if tell else check, names)
    return printed.getvalue()
