"""The exercises of a notebook as an assignment: what nbgrader and Otter share.

An assignment is a list of parts: the code that its exercises need, then for each
exercise prompt, answer, check and demonstration, then the recap questions.
"""

import ast
import builtins
import re
import symtable
from typing import NamedTuple

import nbformat

from minigpt.publish import page, worksheets

TITLE = re.compile(r"^### (?:Exercise|Bug hunt) (\d\d)\.(\d+): ", re.M)
ANSWER = re.compile(r"# (?:Exercise|Bug hunt) (\d\d)\.(\d+)\n")
SOLUTION = re.compile(r"<summary>Solution.*?```python\n(.*?)```", re.S)
CHECKS = re.compile(r"^from minigpt\.checks\.(\w+) import", re.M)
LEFT_OUT = re.compile(r"^\*\*(Further reading|Can you answer)|^## Recap", re.M)
ITEM = re.compile(r"^\d+\. (.*\n(?:^ +.*\n)*)", re.M)

# Trainings, shortened: every check takes the model that it gets, trained well or
# not, and a class of 200 is graded before lunch. id of the cell: (old, new), ...
SHORTER = {
    "c01-044": [("range(10_000)", "range(1_000)")],
    "c03-058": [("steps=600", "steps=60")],
    "c04-038": [("steps=600", "steps=60")],
    "c06-025": [
        (
            "config, recipe = preset(PRESET, tokenizer.vocab_size)\n",
            "from dataclasses import replace\n\n"
            "config, recipe = preset(PRESET, tokenizer.vocab_size)\n"
            "recipe = replace(recipe, steps=20, eval_every=20)\n",
        ),
        ('checkpoint_path = cache_folder() / "notebook_06.pt"\n', ""),
        ("    save=saver(checkpoint_path, model, tokenizer, recipe),\n", ""),
    ],
}
WELCOME = """# {title}: exercises

First run the cells that prepare the exercises. (A model is trained for
fewer steps here than in the notebook; the checks do not mind.) Then
write in the answer cells only, and run the check below: it says what it
verified, or what your program does and where to look next, and gives
the points. A program that is right for some of the cases gets a part."""


class Part(NamedTuple):
    """One cell of an assignment.

    role: "text", "setup", "prompt", "answer", "check", "demonstration", "question"
    or "reply" (the answer to a question, marked by hand). An answer's source is the
    skeleton; `solution` is what the teacher's copy has in addition. A check has the
    module of its function, too.
    """

    role: str
    id: str
    source: str
    points: int = 0
    solution: str = ""
    module: str = ""


def parts(notebook, name):
    """The assignment of a notebook, a list of Part; [] if it has no exercises.

    Raises ValueError where an exercise lacks one of its cells.
    """
    cells = notebook.cells
    starts = [i for i, c in enumerate(cells) if c.source.startswith("## Exercises")]
    if not starts:
        return []
    worksheets.check_folds(notebook, name)
    before, after = cells[: starts[0]], cells[starts[0] :]
    made = [Part("text", "welcome", WELCOME.format(title=page.title(notebook)))]
    for cell in [*needed(before, after), *after]:
        if cell.cell_type == "code" and cell.source.strip() != "progress()":
            made.append(Part("setup", cell.id, cell.source))
        elif cell.cell_type == "markdown" and not LEFT_OUT.search(cell.source):
            text = worksheets.FOLD.sub(worksheets.hint_or_nothing, cell.source)
            made.append(Part("text", cell.id, text.strip()))
    made = [part for part in made if part.source]
    for place, cell in enumerate(after):
        if cell.cell_type == "code" and (head := ANSWER.match(cell.source)):
            exercise(made, head, *after[place : place + 2], after[place + 2 :], name)
    return made + questions(cells, name)


def exercise(made, head, answer, check, after, name):
    """Give the parts of one exercise their roles, in place."""
    number = "-".join(head.groups())
    where = {part.id: place for place, part in enumerate(made)}
    titles = [part for part in made if TITLE.search(part.source)]
    found = [p for p in titles if TITLE.search(p.source).groups() == head.groups()]
    text = next((cell.source for cell in after if cell.cell_type == "markdown"), "")
    solution = SOLUTION.search(text)
    called = re.match(r"check_\w+\(", check.source)
    if len(found) != 1 or not called or not solution:
        raise ValueError(
            f"{name}, cell {answer.id}: an exercise is a text with its title, this "
            "answer, a cell that calls the check, and a text with the folded solution."
        )
    (prompt,) = found
    stars = re.search(r"^★+", prompt.source, re.M)
    if not stars:
        raise ValueError(f"{name}, cell {prompt.id}: say with ★ how hard it is.")
    module = next(m[1] for part in made if (m := CHECKS.search(part.source)))
    points = len(stars[0])
    made[where[prompt.id]] = Part("prompt", f"{number}-prompt", prompt.source)
    made[where[answer.id]] = Part(
        "answer", f"{number}-answer", answer.source, solution=solution[1].rstrip()
    )
    made[where[check.id]] = Part(
        "check", f"{number}-check", check.source, points, module=module
    )
    if after[0].cell_type == "code" and after[0].id in where:
        place = where[after[0].id]
        made[place] = made[place]._replace(role="demonstration")


def questions(cells, name):
    """The recap questions and what to look for in the answers, for manual marks."""
    made = []
    for cell, after in zip(cells, cells[1:]):
        if "**Can you answer" not in cell.source:
            continue
        asked = ITEM.findall(cell.source + "\n")
        fold = worksheets.FOLD.search(after.source)
        answers = ITEM.findall(fold["text"] if fold else "")
        if len(asked) != len(answers) or not asked:
            raise ValueError(
                f"{name}, cell {cell.id}: {len(asked)} questions, but the next cell "
                f"has {len(answers)} answers in its fold."
            )
        made.append(Part("text", cell.id, "## Recap\n\nIn your own words."))
        for number, (question, answer) in enumerate(zip(asked, answers), 1):
            one, text = f"{name[:2]}-recap-{number}", f"**{number}.** {question}"
            made.append(Part("question", f"{one}-question", text.rstrip()))
            made.append(Part("reply", one, "", points=1, solution=answer.strip()))
    return made


def needed(before, after):
    """The code cells of `before` without which the code of `after` does not run.

    The first one, which imports and sets up, is always there; what later cells import
    stands in a cell behind it, since an answer may use anything of the notebook.
    """
    first, *rest = [c for c in before if c.cell_type == "code" and c.source[:2] != "%%"]
    imports = nbformat.v4.new_code_cell("\n".join(imported(rest)))
    imports.id = f"{first.id}-imports"
    wanted, known = set(), set(dir(builtins))
    for cell in after:
        code = cell.cell_type == "code"
        for source in [cell.source] if code else SOLUTION.findall(cell.source):
            used, made = names(source)
            wanted |= used - known
            known |= made if code else set()
    at_hand = names(first.source)[1] | names(imports.source)[1]
    kept = []
    for cell in reversed(rest):
        used, made = names(cell.source)
        if (made - at_hand) & wanted:
            wanted = (wanted - made) | (used - set(dir(builtins)))
            kept.insert(0, shorter(cell))
    return [first, imports, *kept]


def imported(cells):
    """The import statements at the top level of code cells, each once."""
    found = []
    for cell in cells:
        for node in ast.parse(cell.source).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                found.append(ast.get_source_segment(cell.source, node))
    return list(dict.fromkeys(found))


def names(source):
    """The names that code takes from elsewhere, and those that it defines: two sets."""
    table = symtable.symtable(source, "a cell", "exec")
    symbols = table.get_symbols()
    made = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    used = {s.get_name() for s in symbols if s.is_referenced()}
    scopes = table.get_children()
    while scopes:
        scope = scopes.pop()
        scopes.extend(scope.get_children())
        used |= {s.get_name() for s in scope.get_symbols() if s.is_global()}
    return used - made, made


def shorter(cell):
    """The cell, with a shorter training if it is one of those in SHORTER."""
    for old, new in SHORTER.get(cell.id, []):
        if cell.source.count(old) != 1:
            raise ValueError(
                f"cell {cell.id} trains too long for a class to be graded, and {old!r} "
                "is not in it any more: mend SHORTER in minigpt/publish/grading.py."
            )
        cell.source = cell.source.replace(old, new)
    return cell
