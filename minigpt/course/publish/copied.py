"""Whose numbers are these? A table of what a class wrote down, beside the key.

    python -m minigpt.course.publish.copied build/nbgrader/key/02_averaging.csv \\
        build/nbgrader/submitted/*/02_averaging/02_averaging.ipynb

Prints a table (CSV): a line for each notebook with the number that it claims, who
else claims it, and for each function "right", "of number 7", "wrong" or "not written".
Nothing of a notebook is run; what it assigns to `number` and `found` is read.
"""

import ast
import csv
import sys
from pathlib import Path

from minigpt.course.publish import page


def table(key, paths):
    """Rows of texts, the head first. key: the CSV that the assignment came with."""
    head, *rows = csv.reader(Path(key).read_text(encoding="utf-8").splitlines())
    wanted = {int(number): list(map(float, row)) for number, *row in rows}
    made = [["notebook", *head[:1], "claimed also by", *head[1:]]]
    claimed = {path: written(page.read(path)) for path in paths}
    for path, (number, found) in claimed.items():
        same = [str(o) for o, (n, _) in claimed.items() if n == number and o != path]
        others = "" if number is None else " ".join(same)
        found = found if isinstance(found, list) else []
        found = [*found, *[None] * len(head)][: len(head) - 1]
        whose = [verdict(one, i, number, wanted) for i, one in enumerate(found)]
        made.append([str(path), str(number or ""), others, *whose])
    return made


def written(notebook):
    """(number, found) as a notebook's cells assign them last; None for no literal."""
    values = {"number": None, "found": None}
    for cell in notebook.cells:
        try:
            lines = ast.parse(cell.source).body if cell.cell_type == "code" else []
        except SyntaxError:
            continue
        for line in lines:
            target = getattr(line, "targets", [None])[0]
            if getattr(target, "id", None) in values:
                values[target.id] = literal(line.value)
    return values["number"], values["found"]


def literal(node):
    """A number or a list of numbers, with None for what is not written as one."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [literal(part) for part in node.elts]
    try:
        value = ast.literal_eval(node)
    except (TypeError, ValueError):
        return None
    return value if type(value) in (int, float) else None


def verdict(found, place, number, wanted):
    """What a number that was written down is, by the key."""
    if not isinstance(found, (int, float)):
        return "not written"
    fits = [n for n, row in wanted.items() if abs(found - row[place]) < 2e-3]
    if number in fits:
        return "right"
    return f"of number {fits[0]}" if fits else "wrong"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("Name the key and the notebooks: copied KEY.csv NOTEBOOK.ipynb …")
    csv.writer(sys.stdout).writerows(table(*sys.argv[1:2], sys.argv[2:]))
