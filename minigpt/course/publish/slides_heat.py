"""A printed table of many numbers as shaded cells, for a slide: the darker, the larger.

A line of names, and below it rows with a label and right-aligned numbers, are a table;
several may follow each other with an empty line between. Every number is still read.
"""

import html
import re

import nbformat
from nbformat import NotebookNode

NUMBER = re.compile(r"-?\d+\.\d+")
BETWEEN_NUMBERS = re.compile(r"[ |]*")
ROWS, COLUMNS = 3, 4  # of the largest table at least, or the numbers are as quick
HIGH, BETWEEN = 46, 26  # pixels of a row, and between two tables
BLUE, WHITE, INK = (0, 114, 178), (255, 255, 255), "#16202e"
DARK = 0.6  # from this share on, letters are white


def drawn(output: NotebookNode) -> NotebookNode | None:
    """Printed tables as an output that shades their cells; None for another output."""
    blocks = output.get("text", "").strip("\n").split("\n\n")
    tables = [table(block) for block in blocks]
    known = [one for one in tables if one]
    if len(known) < len(tables) or not any(
        len(heads) > COLUMNS and len(rows) >= ROWS for heads, rows in known
    ):
        return None
    rows = sum(1 + len(rows) for _, rows in known)
    return nbformat.v4.new_output(
        "display_data",
        {"text/html": shaded(known), "text/plain": output.text},
        metadata={"high": HIGH * rows + BETWEEN * (len(known) - 1)},
    )


def table(block: str) -> tuple[list[str], list[list[str]]] | None:
    """([what stands above the labels, and above each column], [[label, number or "", …]
    of each row]) of printed lines; None if they are something else."""
    first, *lines = block.split("\n")
    found = [list(NUMBER.finditer(line)) for line in lines]
    if not lines or not all(found):
        return None
    for line, row in zip(lines, found):
        after = [*(number.start() for number in row[1:]), len(line)]
        gaps = [line[a.end() : b] for a, b in zip(row, after)]
        if not all(map(BETWEEN_NUMBERS.fullmatch, gaps)):
            return None
    ends = sorted({number.end() for row in found for number in row})
    start = min(row[0].start() for row in found)
    cuts = [start, *ends]
    heads = [first[a:b].strip() or "␣" for a, b in zip(cuts, ends[:-1])]
    heads.append(first[cuts[-2] :].strip(" |"))  # which may be longer than its numbers
    rows = []
    for line, row in zip(lines, found):
        at = {number.end(): number[0] for number in row}
        rows.append([line[:start].strip(), *(at.get(end, "") for end in ends)])
    return [first[:start].strip(), *heads], rows


def shaded(tables: list[tuple[list[str], list[list[str]]]]) -> str:
    """Tables as HTML, on one scale from the least number of all to the largest."""
    values = [float(n) for _, rows in tables for row in rows for n in row[1:] if n]
    low, high = min(values), max(values)

    def cell(number: str) -> str:
        if not number:
            return "<td></td>"
        share = 0.85 * (float(number) - low) / (high - low or 1)
        mixed = [round(w + share * (b - w)) for w, b in zip(WHITE, BLUE)]
        color = "#fff" if share > DARK else INK
        return (
            f'<td style="background: rgb{tuple(mixed)}; color: {color}">{number}</td>'
        )

    written = []
    for heads, rows in tables:
        head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
        body = "".join(
            f"<tr><th>{html.escape(label)}</th>{''.join(map(cell, numbers))}</tr>"
            for label, *numbers in rows
        )
        written.append(
            f'<table class="heat"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )
    return "".join(written)
