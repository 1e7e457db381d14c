"""Whose numbers are these? A table of what a class wrote down, beside the key.

    python -m minigpt.course.publish.copied KEY.csv SUBMITTED.ipynb ...

Prints a table (CSV): for each notebook the number that it claims, who else claims it,
and for each function "right", "of number 7", "wrong" or "not written". Nothing of a
notebook is run; `number = …` and `found = […]` are read.
"""

import csv
import re
import sys
from pathlib import Path

from minigpt.course.publish import shared

NUMBER = re.compile(r"^number *= *(\d+)", re.M)
FOUND = re.compile(r"^found *= *\[([^\]]*)\]", re.M)


def whose_numbers(key, paths):
    """Rows of texts, the head first. key: the CSV that the assignment came with."""
    text = Path(key).read_text(encoding="utf-8")
    (_, *functions), *rows = csv.reader(text.splitlines())
    rows = {number: list(map(float, values)) for number, *values in rows}
    claims = {path: written(shared.read(path)) for path in paths}
    made = [["notebook", "number", "claimed also by", *functions]]
    for path, (number, found) in claims.items():
        others = [str(o) for o in claims if o != path and number == claims[o][0] != ""]
        found = [*found, *[""] * len(functions)][: len(functions)]
        whose = [verdict(one, i, number, rows) for i, one in enumerate(found)]
        made.append([str(path), number, " ".join(others), *whose])
    return made


def written(notebook):
    """The number that a notebook claims and what it found, as texts; the last count."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    found = (FOUND.findall(code) or [""])[-1].split(",")
    return (NUMBER.findall(code) or [""])[-1], [one.strip() for one in found]


def verdict(found, place, number, rows):
    """What a text in some place of `found` is, by the key."""
    if not re.fullmatch(r"-?\d+(\.\d*)?", found):
        return "not written"
    fits = [n for n, row in rows.items() if abs(float(found) - row[place]) < 2e-3]
    if number in fits:
        return "right"
    return f"of number {fits[0]}" if fits else "wrong"


if __name__ == "__main__":
    key, *paths = sys.argv[1:]
    csv.writer(sys.stdout).writerows(whose_numbers(key, paths))
