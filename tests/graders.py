"""Homework of all kinds, marked by the real nbgrader and the real Otter-Grader.

tools: the environment that holds them, with nbgrader, otter-grader and what minigpt
requires; the package itself is taken from here.
"""

import copy
import html
import importlib
import json
import os
import re
import sqlite3
import subprocess
from pathlib import Path

import nbformat

from minigpt.course.publish import nbgrader, otter, submitted

ROOT = Path(__file__).resolve().parent.parent
NAMES = {
    **{"01": "bigram", "02": "averaging", "03": "self_attention"},
    **{"04": "multi_head", "05": "residual_blocks", "06": "full_training"},
    **{"07": "how_low", "08": "modern_gpt", "09": "fast_generation"},
    **{"10": "many_machines", "11": "looking_inside"},
}
MARKS = """
select student.id, base_cell.name, grade.auto_score, grade_cells.max_score from grade
join base_cell on grade.cell_id = base_cell.id
join grade_cells on grade_cells.id = base_cell.id
join submitted_notebook on grade.notebook_id = submitted_notebook.id
join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
join student on submitted_assignment.student_id = student.id
"""
IMPORTS = """

import copy
from minigpt.attention import attention, attention_weights
"""  # what the answers find in tests/answers, whatever their notebook imports
NOISE = """

import inspect, os, sys
print("a note", file=sys.stderr)
if inspect.isfunction({name}):
    def _noisy(*inputs, _quiet={name}, **more):
        print("a note", file=sys.stderr)
        os.write(2, b"a note from below Python")
        return _quiet(*inputs, **more)
    {name} = _noisy
"""


def released(sheet):
    """What nbgrader makes of a source, as far as cells are concerned."""
    made = copy.deepcopy(sheet)
    for cell in made.cells:
        for what, stub in (("SOLUTION", "\n"), ("HIDDEN TESTS", "")):
            pattern = rf"### BEGIN {what}\n.*?\n### END {what}\n?"
            cell.source = re.sub(pattern, stub, cell.source, flags=re.S)
    return made


def answers_of(number):
    return importlib.import_module(f"answers.{NAMES[number]}")


def wrong_answers(number):
    """{student: {exercise: (part of the message, code)}}: all of a notebook's table."""
    students = {}
    for exercise, rows in answers_of(number).WRONG.items():
        each = [
            (part, code)
            for part, codes in rows.items()
            for code in ([codes] if isinstance(codes, str) else codes)
        ]
        for i, one in enumerate(each):
            students.setdefault(f"wrong{i:02}", {})[exercise] = one
    return students


def homework(sheet, number, key):
    """{student: notebook}; key(cell) is the exercise whose answer a cell holds."""
    exercises = answers_of(number).EXERCISES

    def written(answer):
        made = copy.deepcopy(sheet)
        for cell in made.cells:
            if key(cell):
                cell.source += answer(key(cell))
        return made

    def right(one):
        return f"\n\n{exercises[one].solution}"

    def noisy(one):
        name = re.match(r"check_\w+\((\w+)", exercises[one].check)[1]
        return right(one) + NOISE.format(name=name)

    made = {"reference": written(right), "untouched": sheet, "noisy": written(noisy)}
    for student, wrong in wrong_answers(number).items():
        table = {one: f"{IMPORTS}{code}" for one, (_, code) in wrong.items()}
        made[student] = written(lambda one, table=table: table.get(one, ""))
    return made


def shuffled(sheet, empty, number):
    """A right sheet with cells copied, moved and deleted, as nbgrader gets it."""
    made = {name: copy.deepcopy(sheet) for name in ("copied", "moved", "deleted")}

    def take(student, name):
        cells = made[student].cells
        place = [submitted.name(cell) for cell in cells].index(name)
        return cells.pop(place)

    def first(name):
        return next(c for c in empty.cells if submitted.name(c) == name)

    made["copied"].cells.append(copy.deepcopy(first(f"{number}-1-answer")))
    made["copied"].cells.insert(1, copy.deepcopy(first(f"{number}-2-check")))
    made["moved"].cells.insert(2, take("moved", f"{number}-1-check"))
    made["moved"].cells.append(take("moved", f"{number}-4-answer"))
    for part in ("1-check", "2-answer", "3-prompt"):
        take("deleted", f"{number}-{part}")
    for notebook in made.values():
        for i, cell in enumerate(notebook.cells):
            cell.id = f"cell-{i}"
    return made


def by_nbgrader(tools, folder, name, only=lambda student: True):
    """Marks {student: {cell: (got, most)}} and feedback {student: text}."""
    number, course = name[:2], folder / "course"
    nbgrader.build(course)
    run(tools, course, "nbgrader", "generate_assignment", name)
    sheet = nbformat.read(course / "release" / name / f"{name}.ipynb", 4)

    def key(cell):
        found = re.fullmatch(r"(\d\d)-(\d+)-answer", submitted.name(cell) or "")
        return found and ".".join(found.groups())

    students = homework(sheet, number, key)
    students |= shuffled(students["reference"], sheet, number)
    for student, notebook in students.items():
        if only(student):
            target = course / "submitted" / student / name
            target.mkdir(parents=True)
            nbformat.write(notebook, target / f"{name}.ipynb")
    run(tools, course, "nbgrader", "autograde", name)
    run(tools, course, "nbgrader", "generate_feedback", name)
    marks, feedback = {}, {}
    with sqlite3.connect(course / "gradebook.db") as book:
        for student, cell, got, most in book.execute(MARKS):
            if "-recap-" not in cell:
                marks.setdefault(student, {})[cell] = got, most
    for student in marks:
        page = course / "feedback" / student / name / f"{name}.html"
        text = re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))
        feedback[student] = html.unescape(text)
    return marks, feedback


def by_otter(tools, folder, name, only=lambda student: student < "wrong03"):
    """Marks {student: {question: (got, most)}} and messages {student: text}."""
    number = name[:2]
    otter.build(folder)
    run(tools, folder / name, "otter", "assign", f"{name}.ipynb", "dist")
    sheet = nbformat.read(folder / name / "dist/student" / f"{name}.ipynb", 4)
    (archive,) = (folder / name / "dist/autograder").glob("*.zip")

    def key(cell):
        found = re.match(r"# (?:Exercise|Bug hunt) (\d\d\.\d+)\n", cell.source)
        return found and found[1]

    students, right = homework(sheet, number, key), answers_of(number).EXERCISES
    copied = copy.deepcopy(students["reference"])
    checks = [c for c in copied.cells if c.source.startswith("grader.check(")]
    copied.cells.insert(1, copy.deepcopy(checks[1]))
    copied.cells.remove(checks[0])
    students["copied"] = copied
    marks, said = {}, {}
    for student, notebook in students.items():
        if only(student):
            target = folder / student
            target.mkdir()
            nbformat.write(notebook, target / f"{name}.ipynb")
            run(tools, target, "otter", "run", "-a", archive, f"{name}.ipynb")
            results = json.loads((target / "results.json").read_text())["tests"]
            tests = [one for one in results if one["name"].startswith(f"q{number}")]
            marks[student] = score(tests, right)
            said[student] = "\n".join(one.get("output") or "" for one in tests)
    return marks, said


def score(tests, right):
    return {
        one["name"]: (one["score"], one["max_score"])
        for one in tests
        if one["name"][1:].replace("_", ".") in right
    }


def run(tools, folder, tool, *arguments):
    """Run a tool in a folder; its output, as one text, if it fails."""
    environment = {
        **os.environ,
        "PATH": f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MPLBACKEND": "agg",
    }
    done = subprocess.run(
        [tools / "bin" / tool, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
