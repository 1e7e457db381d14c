"""A printed table of one measured column as a plot of dots, for a slide.

Each row keeps its label and its number; the dot shows how far the rows lie apart, and a
line through it the spread of the seeds, where the table has one. The scale does not
begin at 0. If its label is one word or phrase, the first row is what the others are
compared with: it is a ring on a dashed line.
"""

import html
import re

import nbformat
from nbformat import NotebookNode

ROW = re.compile(
    r"(?P<label>\S.*?)[\s:]+(?P<value>-?\d[\d,]*\.\d+)"
    r"(?: \(spread (?P<spread>[\d.]+)\))?"
)
ROWS = 4  # at least, or a glance at the numbers is as quick
WIDTH, HIGH = 1136, 46  # pixels of a slide, and of a row
MANY, LOW = 7, 35  # rows that are many, and how high each is then
BELOW = 42  # pixels for the axis and what it measures
LETTER = 11.5  # pixels of a label's letter, of 24 pixels
NUMBER = 110  # pixels for a number, right of its dot
INK, SOFT, FAINT, BLUE = "#16202e", "#5b6778", "#d5dde6", "#0072B2"


def rows(printed: str) -> list[tuple[str, str, float]]:
    """[(label, number as printed, spread or 0)] of a table; [] for another text."""
    found = [ROW.fullmatch(line.strip()) for line in printed.strip("\n").split("\n")]
    told = [
        (re.sub(r"\s{2,}", ", ", row["label"]), row["value"], float(row["spread"] or 0))
        for row in found
        if row
    ]
    differ = len({value for _, value, _ in told}) > ROWS // 2
    return told if len(told) == len(found) >= ROWS and differ else []


def quantity(source: str) -> str:
    """What code prints that takes the mean of recorded runs: a `Variant`'s mean is that
    of the validation loss, if it names nothing else. "" where it is not known."""
    known = "record.load(" in source and ".mean()" in source
    return "validation loss, nats per character; lower is better" if known else ""


def drawn(output: NotebookNode, of: str = "") -> NotebookNode | None:
    """A printed table as an output that shows it as dots; None for another output. of:
    what was measured."""
    told = rows(output.get("text", ""))
    if not told:
        return None
    high = HIGH if len(told) < MANY else LOW
    return nbformat.v4.new_output(
        "display_data",
        {"text/html": svg(told, high, of), "text/plain": output.text},
        metadata={"high": high * len(told) + BELOW},
    )


def svg(told: list[tuple[str, str, float]], row: int, of: str = "") -> str:
    """The rows, each so many pixels high, as a picture with its description; below them
    what was measured, and the ends of the axis."""
    high = row * len(told)
    values = [float(value.replace(",", "")) for _, value, _ in told]
    lowest = min(v - s / 2 for v, (_, _, s) in zip(values, told))
    highest = max(v + s / 2 for v, (_, _, s) in zip(values, told))
    left = LETTER * max(len(label) for label, _, _ in told) + 40
    places = max(len(number.partition(".")[2]) for _, number, _ in told)
    scale = (WIDTH - NUMBER - left) / (highest - lowest)

    def x(value: float) -> float:
        return round(left + (value - lowest) * scale, 1)

    parts = []
    if compares(told):
        parts = [
            f'<line x1="{x(values[0])}" x2="{x(values[0])}" y1="{row / 2}" '
            f'y2="{high}" stroke="{SOFT}" stroke-width="2" stroke-dasharray="6 6"/>'
        ]
    for n, ((label, number, spread), value) in enumerate(zip(told, values)):
        at, y = x(value), row * (n + 0.5)
        side = at + max(14, spread / 2 * scale + 8)
        parts += [
            f'<text x="0" y="{y + 8}">{html.escape(label)}</text>',
            f'<line x1="{x(values[0]) if compares(told) else at}" x2="{at}" y1="{y}" '
            f'y2="{y}" stroke="{FAINT}" stroke-width="2"/>',
            f'<line x1="{x(value - spread / 2)}" x2="{x(value + spread / 2)}" y1="{y}" '
            f'y2="{y}" stroke="{BLUE}" stroke-width="5"/>',
            f'<circle cx="{at}" cy="{y}" r="9" stroke="{BLUE}" stroke-width="4" '
            f'fill="{BLUE if n or not compares(told) else "#fff"}"/>',
            f'<text x="{side}" y="{y + 8}" stroke="#fff" stroke-width="6" '
            f'paint-order="stroke" font-weight="600">{number}</text>',
        ]
    ends = [f"{end:.{places}f}" for end in (lowest, highest)]
    line = [of] if of else []
    line += ["bar: spread of the seeds"] if any(s for _, _, s in told) else []
    line += [f"axis from {ends[0]} to {ends[1]}"]
    parts += [
        f'<line x1="{x(end)}" x2="{x(end)}" y1="{high}" y2="{high + 10}" '
        f'stroke="{SOFT}" stroke-width="2"/>'
        for end in (lowest, highest)
    ]
    parts += [
        f'<line x1="{x(lowest)}" x2="{x(highest)}" y1="{high}" y2="{high}" '
        f'stroke="{SOFT}" stroke-width="2"/>',
        f'<text class="axis" x="{WIDTH}" y="{high + 34}" text-anchor="end" '
        f'font-size="20" fill="{SOFT}">{"; ".join(line)}</text>',
    ]
    high += BELOW
    return (
        f'<svg role="img" aria-label="{html.escape(description(told, of))}" '
        f'viewBox="0 0 {WIDTH} {high}" width="{WIDTH}" height="{high}" '
        f'font-size="24" fill="{INK}">{"".join(parts)}</svg>'
    )


def compares(told: list[tuple[str, str, float]]) -> bool:
    """Are all rows compared with the first? Not where labels have several parts."""
    return "," not in told[0][0]


def description(told: list[tuple[str, str, float]], of: str = "") -> str:
    """What those hear who do not see the dots: all rows of the table."""
    spread = any(spread for _, _, spread in told)
    each = [
        f"{label}: {number}" + (f", spread {spread:g}" if spread else "")
        for label, number, spread in told
    ]
    line = ", a line through each for the spread" if spread else ""
    line += ", and a dashed line at the first row" if compares(told) else ""
    of = f" Measured: {of}." if of else ""
    return f"One dot a row{line}.{of} {'; '.join(each)}."
