"""The exercises of a notebook as an assignment: what nbgrader and Otter share.

An assignment is a list of parts: what its notebook of exercises sets up, then for each
exercise prompt, answer, check and demonstration.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from minigpt.course.checks.solutions import texts
from minigpt.course.publish import shared, worksheets

TITLE = re.compile(r"^### (?:Exercise|Bug hunt) (\d\d\.\d+): ", re.M)
ANSWER = re.compile(r"# (?:Exercise|Bug hunt) ")
CHECKS = re.compile(r"^from minigpt\.course\.checks\.(\w+) import", re.M)

WELCOME = """# {title}

First run the cell that prepares the exercises. Then
write in the answer cells only, and run the check below: it says what it
verified, or what your program does and where to look next, and gives
the points. A program that is right for some of the cases gets a part."""


class Part(NamedTuple):
    """One cell of an assignment.

    role: "text", "setup", "prompt", "answer", "check" or "demonstration". An answer's
    source is the skeleton; `solution` is what the teacher's copy has in addition. A
    check has the module of its function, too.
    """

    role: str
    id: str
    source: str
    points: int = 0
    solution: str = ""
    module: str = ""

    def cell(self, source: str) -> NotebookNode:
        """A notebook's cell for this part, with this source in its place."""
        new = nbformat.v4.new_code_cell
        if self.role in ("text", "prompt"):
            new = nbformat.v4.new_markdown_cell
        return new(source, id=self.id)


def parts(notebook: NotebookNode, name: str) -> list[Part]:
    """The assignment of a notebook of exercises, a list of Part."""
    worksheets.check_folds(notebook, name)
    made = [Part("text", "welcome", WELCOME.format(title=shared.title(notebook)))]
    solved = texts(name[:2])
    for cell in notebook.cells[1:]:  # the first has the title and links
        source = cell.source
        if cell.cell_type == "markdown":
            source = worksheets.FOLD.sub(worksheets.hint_or_nothing, source).strip()
            source = shared.handed_out(source, shared.repository())
            if title := TITLE.search(source):
                number, points = title[1], len(re.findall("^★+", source, re.M)[0])
                one = number.replace(".", "-")
                made.append(Part("prompt", f"{one}-prompt", source))
            elif source:
                made.append(Part("text", cell.id, source))
        elif cell.source.startswith("progress("):
            continue
        elif ANSWER.match(source):
            solution = solved[number].rstrip()
            made.append(Part("answer", f"{one}-answer", source, solution=solution))
        elif re.match(r"check_\w+\(", source):
            module = next(m[1] for part in made if (m := CHECKS.search(part.source)))
            check = Part("check", f"{one}-check", source, points, module=module)
            made.append(check)
        else:
            role = "demonstration" if made[-1].role == "check" else "setup"
            made.append(Part(role, cell.id, source))
    return made


def write(folder: Path, notebooks: Path, place: str, cells: Callable) -> list[Path]:
    """Write the assignments of all notebooks with exercises; list of their paths.

    place: the folder of one by its name; cells: function(parts, name) -> its cells.
    """
    written = []
    for path in shared.notebook_paths(notebooks, "exercises"):
        notebook, name = shared.read(path), path.stem
        made = nbformat.v4.new_notebook(metadata=notebook.metadata)
        made.cells = cells(parts(notebook, path.name), name)
        nbformat.validate(made)
        written.append(folder / place.format(name) / path.name)
        shared.write(written[-1], nbformat.writes(made) + "\n")
    return written
