"""A printed table of one measured column as a plot of dots, for a slide.

Each row keeps its label and its number; the dot shows how far the rows lie apart, and a
line through it the spread of the seeds, where the table has one. The scale does not
begin at 0. If its label is one word or phrase, the first row is what the others are
compared with: it is a ring on a dashed line. In steps, each row is compared with the
one above it, and the dots are a staircase.
"""

import html
import re
from collections.abc import Sequence

import nbformat
from nbformat import NotebookNode

ROW = re.compile(
    r"(?P<label>\S.*?)[\s:]+(?P<value>-?\d[\d,]*\.\d+)"
    r"(?: \(spread (?P<spread>[\d.]+)\))?"
)
ROWS = 4  # at least, or a glance at the numbers is as quick
WIDTH = 1136  # pixels of a slide
TALL, HIGH, LOWEST = 330, 76, 35  # pixels of all rows, about; of one at most, at least
BELOW = 42  # pixels for the axis and what it measures
SIZE, LETTER = 28, 13.4  # pixels of a label's type, and of a letter
NUMBER = 130  # pixels for a number, right of its dot
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


def drawn(
    output: NotebookNode,
    of: str = "",
    labels: Sequence[str] = (),
    steps: bool = False,
    waits: bool = False,
) -> NotebookNode | None:
    """A printed table as an output that shows it as dots; None for another output. of:
    what was measured; labels: of the rows, where others than the printed are clearer;
    waits: the dots come at key presses.
    """
    printed = output.get("text", "")
    told = rows(printed)
    if not told:
        return None
    if labels:
        told = [(label, *row[1:]) for label, row in zip(labels, told, strict=True)]
    high = max(LOWEST, min(HIGH, TALL // len(told)))
    return nbformat.v4.new_output(
        "display_data",
        {"text/html": svg(told, high, of, steps, waits), "text/plain": printed},
        metadata={"high": high * len(told) + BELOW, "of": of},
    )


def again(
    output: NotebookNode, labels: Sequence[str], steps: bool, waits: bool = False
) -> NotebookNode:
    """Dots drawn once more, with other labels, in steps, or so that they wait for key
    presses; another output as it is."""
    if "of" not in output.get("metadata", {}):
        return output
    stream = nbformat.v4.new_output("stream", text=output.data["text/plain"])
    return drawn(stream, output.metadata.of, labels, steps, waits) or output


def svg(
    told: list[tuple[str, str, float]],
    row: int,
    of: str = "",
    steps: bool = False,
    waits: bool = False,
    alike: bool = True,
) -> str:
    """The rows, each so many pixels high, as a picture with its description; below them
    what was measured, and the ends of the axis. waits: each dot but one with which
    others are compared comes at a key press. alike: may all be compared with the
    first?"""
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
    first = alike and compares(told)
    one = first or steps
    starts = [values[0], *values[:-1]] if steps else [values[0] if one else None]

    def dashed(at: float, top: float, end: float) -> str:
        """A line down from a dot to another row, or to the axis."""
        return (
            f'<line x1="{at}" x2="{at}" y1="{top}" y2="{end}" stroke="{SOFT}" '
            'stroke-width="2" stroke-dasharray="6 6"/>'
        )

    if first and not steps:
        parts.append(dashed(x(values[0]), row / 2, high))
    for n, ((label, number, spread), value) in enumerate(zip(told, values)):
        at, y = x(value), row * (n + 0.5)
        start = starts[min(n, len(starts) - 1)]
        start = at if start is None else x(start)
        side = at + max(14, spread / 2 * scale + 8)
        group = ' class="fragment"' if waits and (n or not one) else ""
        parts += [
            f'<text x="0" y="{y + 8}">{html.escape(label)}</text>',
            f"<g{group}>",
            dashed(start, y - row + 11, y) if steps and n else "",
            f'<line x1="{start}" x2="{at}" y1="{y}" '
            f'y2="{y}" stroke="{FAINT}" stroke-width="2"/>',
            f'<line x1="{x(value - spread / 2)}" x2="{x(value + spread / 2)}" y1="{y}" '
            f'y2="{y}" stroke="{BLUE}" stroke-width="5"/>',
            f'<circle cx="{at}" cy="{y}" r="9" stroke="{BLUE}" stroke-width="4" '
            f'fill="{BLUE if n or not one else "#fff"}"/>',
            f'<text x="{side}" y="{y + 8}" stroke="#fff" stroke-width="6" '
            f'paint-order="stroke" font-weight="600">{number}</text></g>',
        ]
    ends = [f"{end:,.{places}f}" for end in (lowest, highest)]
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
        f'<svg role="img" aria-label="{html.escape(description(told, of, steps))}" '
        f'viewBox="0 0 {WIDTH} {high}" width="{WIDTH}" height="{high}" '
        f'font-size="{SIZE}" fill="{INK}">{"".join(parts)}</svg>'
    )


def compares(told: list[tuple[str, str, float]]) -> bool:
    """Are all rows compared with the first? Not where labels have several parts."""
    return "," not in told[0][0]


def description(
    told: list[tuple[str, str, float]], of: str = "", steps: bool = False
) -> str:
    """What those hear who do not see the dots: all rows of the table."""
    spread = any(spread for _, _, spread in told)
    each = [
        f"{label}: {number}" + (f", spread {spread:g}" if spread else "")
        for label, number, spread in told
    ]
    line = ", a line through each for the spread" if spread else ""
    if steps:
        line += ", and a staircase from each row to the next"
    elif compares(told):
        line += ", and a dashed line at the first row"
    of = f" Measured: {of}." if of else ""
    return f"One dot a row{line}.{of} {'; '.join(each)}."
