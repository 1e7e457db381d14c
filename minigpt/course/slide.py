"""What the cells of a lecture show: pictures that grow, bars, tables and samples.

    from minigpt.course import slide

All of it is HTML with words in it, for JupyterLab and for slides alike. What waits for
a key press in the lecture hall carries reveal.js's class `fragment`.
"""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from IPython.display import display
from matplotlib.figure import Figure
from matplotlib.text import Text

from minigpt.course.plots import COLORS, Picture

PIXELS = 96  # of the slide, which has 1280 x 720, for an inch of a picture
WIDEST, TALLEST = 11.84, 5.9  # inches: what the margins and the title leave
SMALLEST = 13.5  # points, so 18 of the slide's 720 lines


def show(*steps: Picture) -> None:
    """A picture, or the steps of one that grows with each key press.

    Raises ValueError for a picture without `alt`, for one that doesn't fit between the
    margins, and for letters that the last row can't read.
    """
    images = []
    for n, fig in enumerate(steps):
        wide, high = fig.get_size_inches()
        if not fig.alt:
            raise ValueError("Describe the picture in fig.alt.")
        if wide > WIDEST or high > TALLEST:
            raise ValueError(
                f"The picture is {wide:.2f} x {high:.2f} inches; a slide has room for "
                f"{WIDEST} x {TALLEST}."
            )
        buffer = io.BytesIO()
        fig.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
        plt.close(fig)
        _check_letters(fig)
        png = base64.b64encode(buffer.getvalue()).decode("ascii")
        images.append(
            f'<img alt="{html.escape(fig.alt)}" src="data:image/png;base64,{png}" '
            f'style="width: {wide * PIXELS:.0f}px"{_later(n > 0)}>'
        )
    _display(f'<div class="r-stack">{"".join(images)}</div>', f"Figure: {fig.alt}")


def bars(
    rows: Mapping[str, float],
    unit: str,
    digits: int = 2,
    waits: Sequence[str] = (),
    lit: Sequence[str] = (),
) -> None:
    """Bars that begin at 0. unit: what they measure; waits: the rows that come at key
    presses; lit: those in another color."""
    longest, told = max(rows.values()), [f"{unit}:"]
    lines = []
    for name, value in rows.items():
        number = f"{value:,.{digits}f}"
        color = COLORS[name in lit]
        look = f"width: {100 * value / longest:.1f}%; background: {color}"
        lines.append(
            f"<tr{_later(name in waits)}><th>{html.escape(name)}</th>"
            f'<td style="width: 620px"><div style="height: 30px; {look}"></div></td>'
            f"<td>{number}</td></tr>"
        )
        told.append(f"{name}: {number}")
    below = f'<tr><td></td><td colspan="2">{html.escape(unit)}</td></tr>'
    source = f'<table class="bars"><tbody>{"".join(lines)}</tbody>'
    source += f"<tfoot>{below}</tfoot></table>"
    _display(source, "\n".join(told))


def table(
    head: Sequence[str], *rows: Sequence[object], waits: int | None = None
) -> None:
    """Rows of words and numbers. waits: the column that comes at a key press."""

    def cells(row: Sequence[object], tag: str) -> str:
        found = []
        for n, cell in enumerate(row):
            word = html.escape(str(cell))
            if tag == "td" and n == waits:
                word = f'<span class="fragment" data-fragment-index="0">{word}</span>'
            found.append(f"<{tag}>{word}</{tag}>")
        return f"<tr>{''.join(found)}</tr>"

    body = "".join(cells(row, "td") for row in rows)
    source = f"<table><thead>{cells(head, 'th')}</thead><tbody>{body}</tbody></table>"
    _display(source, "\n".join("  ".join(map(str, row)) for row in (head, *rows)))


def samples(texts: Mapping[str, str]) -> None:
    """Texts beside each other, each below its name, with their lines."""
    cards = []
    for name, text in texts.items():
        lines = [f"<p>{html.escape(line)}</p>" for line in text.split("\n") if line]
        cards.append(f"<div><h3>{html.escape(name)}</h3>{''.join(lines)}</div>")
    told = "\n\n".join(f"{name}:\n{text}" for name, text in texts.items())
    _display(f'<div class="cards">{"".join(cards)}</div>', told)


def beside(*words: str) -> None:
    """Words to the right of the picture that the cell has shown."""
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in words)
    _display(f'<div class="beside">{lines}</div>', "\n".join(words))


def picture(path: Path, alt: str, wide: float = WIDEST) -> None:
    """A PNG file, so many inches wide."""
    png = base64.b64encode(path.read_bytes()).decode("ascii")
    _display(
        f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{png}" '
        f'style="width: {wide * PIXELS:.0f}px">',
        f"Figure: {alt}",
    )


def _check_letters(fig: Figure) -> None:
    for text in fig.findobj(Text):
        if isinstance(text, Text) and text.get_text() and text.get_visible():
            if float(text.get_fontsize()) < SMALLEST:
                raise ValueError(
                    f"The letters of {text.get_text()!r} are {text.get_fontsize():g} "
                    f"points; the last row needs at least {SMALLEST}."
                )


def _later(waits: bool) -> str:
    return ' class="fragment"' if waits else ""


def _display(source: str, told: str) -> None:
    display({"text/html": source, "text/plain": told}, raw=True)
