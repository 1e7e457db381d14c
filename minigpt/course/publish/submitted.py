"""A submitted notebook against the teacher's: copied, moved, deleted, changed cells?

nbgrader keeps one of several copies, gives a deleted check no marks, and runs cells
in the order in which they come: an answer below its check would count as wrong. Every
check differs from the teacher's by its hidden lines, of which it warns in every sheet.
"""

import copy
import re

import nbformat
from nbformat import NotebookNode

HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n.*?### END HIDDEN TESTS\n", re.S)
HEAD = "**The cells of this sheet were put in order before it was graded.**\n"


def mend(notebook: NotebookNode, source: NotebookNode) -> list[str]:
    """Put the cells of a submission into the source's order; the list of what was done.

    Both are nbgrader's notebooks, and what counts are the cells that have its id.
    Of copies the one before the check counts, or else the last. Deleted cells come
    back, but answers. A learner's own cells stay behind the cell that they follow.
    The sentences stand in a new first cell as well, so that the feedback has them.
    """
    originals = {name(cell): cell for cell in source.cells if name(cell)}
    done = keep_one_of_each(notebook, originals)
    found = [name(cell) for cell in notebook.cells if name(cell) in originals]
    if found != [one for one in originals if one in found]:
        done.append("Some cells stood in another order, and were moved back.")
    notebook.cells = in_order(notebook, originals)
    for one, original in originals.items():
        answer = original.metadata.nbgrader.solution
        if one not in found and answer:
            done.append(f"{one} was deleted: there is no answer to count.")
        elif one not in found:
            done.append(f"{one} was deleted, and was put back.")
        elif not answer:
            cell = next(cell for cell in notebook.cells if name(cell) == one)
            given = HIDDEN.sub("", original.source)
            if cell.source.strip() not in (given.strip(), original.source.strip()):
                done.append(f"{one} was changed, and was put back.")
            cell.source = original.source
    if done:
        report = "\n- ".join([HEAD, *done])
        report = nbformat.v4.new_markdown_cell(report, id="mended")
        notebook.cells.insert(0, report)
    return done


def name(cell: NotebookNode) -> str | None:
    """nbgrader's id of a cell, or None."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def keep_one_of_each(notebook: NotebookNode, originals: dict) -> list[str]:
    """Take the id from all copies of a cell but one; what was done."""
    done = []
    for one in originals:
        places = [i for i, cell in enumerate(notebook.cells) if name(cell) == one]
        if len(places) < 2:
            continue
        check = one.removesuffix("-answer") + "-check"
        checks = [i for i, cell in enumerate(notebook.cells) if name(cell) == check]
        before = [i for i in places if checks and i < checks[-1]]
        kept = (before or places)[-1]
        for place in places:
            if place != kept:
                del notebook.cells[place].metadata["nbgrader"]
        done.append(f"{one} was there {len(places)} times; one of them counts.")
    return done


def in_order(notebook: NotebookNode, originals: dict) -> list:
    """The cells in the order of the originals, with those that were deleted."""
    groups, at = {None: []}, None
    for cell in notebook.cells:
        if name(cell) in originals:
            at = name(cell)
        groups.setdefault(at, []).append(cell)
    cells = groups[None]
    for one, original in originals.items():
        if one in groups:
            cells = cells + groups[one]
        elif not original.metadata.nbgrader.solution:
            cells = cells + [copy.deepcopy(original)]
    return cells
