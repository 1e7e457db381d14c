"""Assignments for Otter-Grader.

    python -m minigpt.course.publish.otter
        build/otter/NN_name/NN_name.ipynb, with raw cells for Otter Assign
        build/otter/NN_name/minigpt/, the package, for the autograder

Then, in such a folder and with Otter-Grader 7 and minigpt installed in one
environment: `otter assign NN_name.ipynb dist`. Learners get `dist/student`, and
`otter run` or a grading service takes the autograder.zip of `dist/autograder`.

A question has three cases: half of the check's cases are right (half of the points),
all are (a quarter), and all are with other numbers, which learners do not see (the
last quarter, course/checks/grading.py). What a check says is the failure message.
"""

import ast
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from minigpt.course.publish import assignments, colab, shared
from minigpt.course.publish.assignments import Part

CONFIG = """# ASSIGNMENT CONFIG
name: {name}
requirements: requirements.txt
autograder_files:
    - minigpt
export_cell:
    pdf: false
show_question_points: true
tests:
    files: true
    ok_format: false"""
BEGIN = """# BEGIN QUESTION
name: {name}
points: {points}"""
LIMIT = """from minigpt.course.checks import grading

grading.limit_cells(get_ipython())  # stops a cell that computes for a minute"""
HIDE = "\n# BEGIN SOLUTION NO PROMPT\n{solution}\n# END SOLUTION"
TEST = '''""" # BEGIN TEST CONFIG
points: {points}
hidden: {hidden}
""" # END TEST CONFIG
def test_{case}({answers}):
    from minigpt.course.checks import grading
    check = grading.{look}("{module}", "{check}")
    result = check({answers})
    assert {right}, {message}'''


def build_otter(
    folder: Path = shared.BUILD / "otter", notebooks: Path = shared.NOTEBOOKS
) -> list[Path]:
    """Write a folder for each notebook with exercises; list of the paths."""
    written = assignments.write(folder, notebooks, "{}", cells)
    for path in written:
        if path.suffix == ".ipynb":
            carry(path.parent)
    return written


def carry(folder: Path) -> None:
    """Write the package and what it requires into an assignment's folder."""
    for source in colab.carried_files():
        target = folder / source.relative_to(shared.ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    required = [
        one for one in metadata.requires("minigpt") or [] if "extra ==" not in one
    ]
    shared.write(folder / "requirements.txt", "\n".join(required) + "\n")


def cells(parts: list[Part], name: str) -> list[NotebookNode]:
    """The cells of an assignment, with the raw cells that Otter Assign reads."""
    made = [raw("config", CONFIG.format(name=name))]
    parts = [parts[0], assignments.Part("setup", "limit", LIMIT), *parts[1:]]
    for part in parts:
        question = "q" + re.sub(r"-(prompt|check)$", "", part.id)
        question = question.replace("-", "_")
        if part.role == "prompt":
            points = next(p for p in parts if p.id == part.id[:-6] + "check").points
            begin = BEGIN.format(name=question, points=points)
            made.append(raw(f"{part.id}-begin", begin))
        if part.role == "answer":
            made.append(raw(f"{part.id}-solution", "# BEGIN SOLUTION"))
        if part.role == "check":
            made.append(raw(f"{part.id}-tests", "# BEGIN TESTS"))
            made.extend(tests(part))
            made.append(raw(f"{part.id}-tests-end", "# END TESTS"))
            made.append(raw(f"{part.id}-end", "# END QUESTION"))
        else:
            hidden = HIDE.format(solution=part.solution) if part.solution else ""
            made.append(part.cell(part.source + hidden))
        if part.role == "answer":
            made.append(raw(f"{part.id}-solution-end", "# END SOLUTION"))
    return made


def raw(name: str, source: str) -> NotebookNode:
    """A raw cell."""
    return nbformat.v4.new_raw_cell(source, id=name)


def tests(part: Part) -> list[NotebookNode]:
    """The three test cells of a question."""
    call: Any = ast.parse(part.source, mode="eval").body
    shared = {
        "module": part.module,
        "check": call.func.id,
        "answers": ", ".join(argument.id for argument in call.args),
    }
    diagnosis = {"right": "result", "message": "str(result)"}
    half = {"right": "result.share >= 0.5", "message": '"Not half of the cases yet."'}
    made = []
    for case, share, look, says in [
        ("all_cases", 0.25, "once", diagnosis),
        ("half_of_the_cases", 0.5, "again", half),
        ("other_numbers", 0.25, "twice", diagnosis),
    ]:
        own = {"case": case, "points": part.points * share, "look": look}
        hidden = str(look == "twice").lower()
        source = TEST.format(hidden=hidden, **own, **shared, **says)
        name = f"{part.id}-{len(made) + 1}"
        made.append(nbformat.v4.new_code_cell(source, id=name))
    return made


if __name__ == "__main__":
    shared.run_builder(build_otter, "The assignments for Otter", shared.BUILD / "otter")
