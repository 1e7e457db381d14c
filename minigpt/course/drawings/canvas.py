"""The language of the drawings: colors, boxes, circles, arrows, and a grid for them.

A rounded box computes. A square one holds a tensor, with its shape below its name. An
arrow only says that numbers flow from one to the other.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from minigpt.course.plots import COLORS, Picture, Style

FILL = {"tensor": "#DCEBF5", "layer": "#FBE6CF"}
LIT, FOUND = "#F5A623", "#BFE3C8"  # what's new, and what we looked for
# How a part can be drawn: its fill, its border and its letters.
LOOKS: dict[str, tuple[Style, str, str]] = {
    "new": ({"fc": LIT, "ec": "black", "lw": 2.5}, "black", "bold"),
    "built": ({"fc": FILL["tensor"], "ec": "0.35", "lw": 1.4}, "black", "normal"),
    "to come": ({"fc": "white", "ec": "0.6", "lw": 1.2, "ls": "--"}, "0.4", "normal"),
}
MIDDLE: Style = {"ha": "center", "va": "center"}
SIGNS = {" ": "␣", "\n": "↵"}  # for characters you can't see


def paper(size: tuple, x: tuple, y: tuple, **more: Any) -> tuple[Picture, Axes]:
    """An empty picture of a size in inches, from x[0] to x[1] and from y[0], at the
    bottom, to y[1]."""
    fig = Picture(figsize=size, layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=x, ylim=y, **more)
    ax.set_axis_off()
    return fig, ax


def circle(ax: Axes, x: float, y: float, sign: str = "+") -> None:
    """A small circle that adds or multiplies what comes in."""
    look: Style = {"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "0.25"}
    ax.text(x, y, sign, fontsize=18, bbox=look, **MIDDLE)


def arrow(ax: Axes, tail: tuple, head: tuple, **look: Any) -> None:
    """An arrow from one place (x, y) to another."""
    plain: Style = {"arrowstyle": "-|>", "mutation_scale": 16, "lw": 1.8}
    plain |= {"color": "black", "shrinkA": 0, "shrinkB": 0}
    ax.add_patch(FancyArrowPatch(tail, head, **(plain | look)))


def frame(
    ax: Axes, x: float, y: float, wide: float, high: float, bend: float, **look: Any
) -> None:
    """A box with its upper left corner at x, y; bend: how round its corners are."""
    shape = f"round,pad=0,rounding_size={bend}" if bend else "square,pad=0"
    plain: Style = {"ec": "0.25", "lw": 1.5} | look
    ax.add_patch(FancyBboxPatch((x, y), wide, high, boxstyle=shape, **plain))


def square(
    ax: Axes,
    x: float,
    y: float,
    word: str = "",
    wide: float = 0.84,
    high: float = 0,
    letters: Mapping[str, Any] = {"fontsize": 13},
    **look: Any,
) -> None:
    """A square around x, y with a word in it, or a rectangle if `high` is given."""
    high = high or wide
    look = {"fc": "white", "ec": "0.35", "lw": 1.3} | look
    ax.add_patch(Rectangle((x - wide / 2, y - high / 2), wide, high, **look))
    ax.text(x, y, SIGNS.get(word, word), **letters, **MIDDLE)


def cells(
    ax: Axes,
    x: float,
    y: float,
    text: str,
    fill: Any = "white",
    size: float = 0.9,
    **look: Any,
) -> None:
    """A row of squares, a character in each; x, y: the middle of the first."""
    letters: Style = {"fontsize": 15, "family": "monospace"}
    look = {"fc": fill, "lw": 1.2} | look
    for i, char in enumerate(text):
        square(ax, x + i, y, char, size, letters=letters, **look)


def pathway(ax: Axes, start: float, end: float, y: float) -> None:
    """The thick, straight line on which x goes through a block."""
    ax.plot([start, end], [y, y], color=COLORS[4], lw=9, ls="-", zorder=0.5)


class Drawing:
    """A figure with a grid of columns (x, to the right) and rows (y, downwards)."""

    def __init__(
        self,
        columns: float,
        rows: float,
        wide: float = 1.75,
        large: float = 13,
        small: float = 10.5,
    ) -> None:
        """wide: a column's width in inches; large, small: the font sizes of names and
        of shapes, in points."""
        self.large, self.small = large, small
        size = (wide * columns + 0.4, 1.15 * rows + 0.4)
        self.fig, self.ax = paper(size, (-0.6, columns - 0.4), (rows - 0.4, -0.6))
        self.places = {}

    def box(
        self,
        name: str,
        x: float,
        y: float,
        label: str | None = None,
        shape: Any = None,
        kind: str = "tensor",
        width: float = 1.3,
        **look: Any,
    ) -> None:
        """A box at column x, row y; `name` is what arrows refer to."""
        height, bend = 0.62, 0.18 if kind == "layer" else 0
        corner = x - width / 2, y - height / 2
        frame(self.ax, *corner, width, height, bend, **({"fc": FILL[kind]} | look))
        label = name if label is None else label
        shift = 0.12 if shape else 0
        self.ax.text(x, y - shift, label, fontsize=self.large, **MIDDLE)
        if shape:
            color = "black" if look else "0.3"
            letters: Style = {"fontsize": self.small, "color": color}
            self.ax.text(x, y + 0.16, shape, **letters, **MIDDLE)
        self.places[name] = (x, y, width / 2, height / 2)

    def plus(self, name: str, x: float, y: float) -> None:
        """A small circle that adds two arrows."""
        circle(self.ax, x, y)
        self.places[name] = (x, y, 0.16, 0.2)

    def arrow(self, start: Any, end: Any, sideways: float | None = None) -> None:
        """A straight arrow from box to box.

        sideways: True from side to side, False from top or bottom, None: where
        there is more room.
        """
        (x0, y0, w0, h0), (x1, y1, w1, h1) = self.places[start], self.places[end]
        if sideways is None:
            sideways = abs(x1 - x0) - w0 - w1 > abs(y1 - y0) - h0 - h1
        if sideways:
            sign = 1 if x1 > x0 else -1
            tail, head = (x0 + sign * w0, y0), (x1 - sign * w1, y1)
        else:
            sign = 1 if y1 > y0 else -1
            tail, head = (x0, y0 + sign * h0), (x1, y1 - sign * h1)
        arrow(self.ax, tail, head, color=COLORS[5])

    def arrows(self, *names: str) -> None:
        """From the first box to the second, from there to the third, and so on."""
        for start, end in zip(names, names[1:]):
            self.arrow(start, end)

    def side_road(self, norm: str, part: str, y: float) -> None:
        """Arrows from the pathway at row y to the box of a norm, from there to the box
        of a part, and back to a plus sign on the pathway."""
        self.places["fork"] = (self.places[norm][0], y, 0, 0)
        self.plus(f"{part} +", self.places[part][0], y)
        self.arrow("fork", norm, sideways=False)
        self.arrow(norm, part)
        self.arrow(part, f"{part} +", sideways=False)
