"""A course folder for nbgrader.

    python -m minigpt.course.publish.nbgrader
        build/nbgrader/nbgrader_config.py
        build/nbgrader/source/NN_name/NN_name.ipynb, one assignment per notebook

Then, in that folder, with nbgrader 0.9 and minigpt installed in one environment:
`nbgrader generate_assignment 03_self_attention_exercises`, `nbgrader autograde …`,
`nbgrader generate_feedback …`.

The teacher's answer cell holds the notebook's skeleton and, between BEGIN SOLUTION
and END SOLUTION, the solution, which redefines what the skeleton defines; learners
get the skeleton. A check cell ends with a number, from which nbgrader takes partial
credit, and its message stands in the feedback. The hidden lines put a check in its
place that looks twice (minigpt/course/checks/grading.py).
"""

from pathlib import Path

from nbformat import NotebookNode

from minigpt.course.publish import assignments, shared
from minigpt.course.publish.assignments import Part

HIDDEN = """### BEGIN HIDDEN TESTS
import minigpt.course.checks.grading
{check} = minigpt.course.checks.grading.twice("{module}", "{check}")
### END HIDDEN TESTS
"""
HIDE = "### BEGIN SOLUTION\n{solution}\n### END SOLUTION"


def build_nbgrader(
    folder: Path = shared.BUILD / "nbgrader", notebooks: Path = shared.NOTEBOOKS
) -> list[Path]:
    """Write the course folder; list of the paths."""
    config = folder / "nbgrader_config.py"
    shared.write(config, shared.template_file("nbgrader_config.py.txt"))
    every = assignments.write(folder, notebooks, "source/{}", cells)
    return [config, *every]


def cells(parts: list[Part], name: str) -> list[NotebookNode]:
    """The cells of an assignment."""
    return [cell(part) for part in parts]


def cell(part: Part) -> NotebookNode:
    """The cell of a part, with nbgrader's metadata, schema 3."""
    source, kind = part.source, {}
    if part.role in ("setup", "prompt"):
        kind = {"locked": True}
    elif part.role == "answer":
        source += "\n" + HIDE.format(solution=part.solution)
        kind = {"solution": True}
    elif part.role == "check":
        check = source.partition("(")[0]
        hidden = HIDDEN.format(check=check, module=part.module)
        source = f"{hidden}{source}.points({part.points})"
        kind = {"grade": True, "locked": True, "points": part.points}
    made = part.cell(source)
    if kind:
        no = {"grade": False, "locked": False, "solution": False, "task": False}
        data = {"grade_id": part.id, "schema_version": 3, "cell_type": made.cell_type}
        made.metadata["nbgrader"] = no | kind | data
    return made


if __name__ == "__main__":
    shared.run_builder(
        build_nbgrader, "The course folder for nbgrader", shared.BUILD / "nbgrader"
    )
