"""The exercises of a notebook as an assignment: what nbgrader and Otter share.

An assignment is a list of parts: what its notebook of exercises sets up, then for each
exercise prompt, answer, check and demonstration. With variants there is one question
more: what come out on a learner's own inputs (minigpt/course/checks/numbers.py).
"""

import argparse
import re
from typing import NamedTuple

import nbformat

from minigpt.course.checks import numbers
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

OWN_SETUP = """from minigpt.course.checks.numbers import check_numbers, show_numbers

lesson = "{lesson}\""""
OWN_PROMPT = """### Your numbers

★ · 3 minutes

Here are inputs that nobody else in your class has. Write your number on the class
list in place of the first `...` and run the cell: it runs functions of yours on these
inputs and makes one number of all that comes out of each. Write what it prints into
`found`, as numbers, not as a formula, and run the cell again."""
OWN_ANSWER = """# Your numbers
number = {number}  # yours on the class list: 1 to {variants}
found = [{found}]  # what the next line prints
show_numbers(lesson, number, {functions})"""


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

    def cell(self, source):
        """A notebook's cell for this part, with this source in its place."""
        new = nbformat.v4.new_code_cell
        if self.role in ("text", "prompt"):
            new = nbformat.v4.new_markdown_cell
        return new(source, id=self.id)


def parts(notebook, name, variants=0):
    """The assignment of a notebook of exercises, a list of Part.

    variants: how many learners get inputs of their own; 0: nobody.
    """
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
    return made + (own_numbers(made, name[:2], variants) if variants else [])


def own_numbers(made, notebook, variants):
    """The question about a learner's own inputs; [] where no exercise has any."""
    lesson = next(part.module for part in made if part.module)
    checks = [check.__name__ for check in numbers.questions(lesson)]
    calls = dict(re.findall(r"^(\w+)\((\w+)", p.source)[0] for p in made if p.module)
    fill = {"variants": variants, "functions": ", ".join(calls[one] for one in checks)}
    dots = ", ".join(["..."] * len(checks))
    empty = OWN_ANSWER.format(number="...", found=dots, **fill)
    found = ", ".join(map(str, numbers.key(lesson, 1)))
    solution = OWN_ANSWER.format(number=1, found=found, **fill)
    check, one = "check_numbers(lesson, number, found)", f"{notebook}-numbers"
    return bool(checks) * [
        Part("setup", f"{one}-setup", OWN_SETUP.format(lesson=lesson)),
        Part("prompt", f"{one}-prompt", OWN_PROMPT),
        Part("answer", f"{one}-answer", empty, solution=solution),
        Part("check", f"{one}-check", check, 1, module="numbers"),
    ]


def write(folder, notebooks, variants, place, cells):
    """Write the assignments of all notebooks with exercises; list of their paths.

    place: the folder of one by its name; cells: function(parts, name) -> its cells.
    What each learner has to find, of `variants`, stands in key/NAME.csv.
    """
    written = []
    for path in shared.notebook_paths(notebooks, "exercises"):
        notebook, name = shared.read(path), path.stem
        made = nbformat.v4.new_notebook(metadata=notebook.metadata)
        of_it = parts(notebook, path.name, variants)
        made.cells = cells(of_it, name)
        nbformat.validate(made)
        written.append(folder / place.format(name) / path.name)
        shared.write(written[-1], nbformat.writes(made) + "\n")
        if of_it[-1].module == "numbers":
            lesson = next(part.module for part in of_it if part.module)
            names = [check.__name__[6:] for check in numbers.questions(lesson)]
            rows = [[n, *numbers.key(lesson, n)] for n in range(1, variants + 1)]
            rows = [["number", *names], *rows]
            written.append(folder / "key" / f"{name}.csv")
            lines = [",".join(map(str, row)) + "\n" for row in rows]
            shared.write(written[-1], "".join(lines))
    return written


def main(builder, what, folder):
    """Build from the command line, with --variants N."""
    parser = argparse.ArgumentParser(description=f"{what}.")
    told = "how many learners get inputs of their own"
    parser.add_argument("--variants", type=int, default=0, metavar="N", help=told)
    variants = parser.parse_args().variants
    shared.run_builder(lambda folder: builder(folder, variants=variants), what, folder)
