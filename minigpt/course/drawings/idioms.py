"""Drawings of notebook 00b: what happens to the numbers of a tensor. Each returns a
figure that knows its own alternative text, `fig.alt`."""

from typing import Any

from matplotlib.axes import Axes

from minigpt.course.drawings.canvas import MIDDLE, paper, square
from minigpt.course.plots import Picture, Style

# A color for each row of the first tensor, light enough for black letters.
ROWS = ["#A8D1EE", "#F8CE7E", "#B5E0C4"]


def broadcast() -> Picture:
    """A column (3, 1) plus a row (4,): both are repeated until they are (3, 4)."""
    fig, ax = board(width=15.6, height=4.2)
    column, row = [0, 10, 20], [0, 1, 2, 3]
    left = [[c for _ in row] for c in column]
    below = [row for _ in column]
    total = [[c + r for r in row] for c in column]
    grid(ax, 0, left, color=lambda r, c: ROWS[r], real=lambda r, c: c == 0)
    grid(ax, 5.6, below, color=lambda r, c: "#DDDDDD", real=lambda r, c: r == 0)
    grid(ax, 11.2, total, color=lambda r, c: ROWS[r])
    words(ax, {2: "column  (3, 1)", 7.6: "row  (4,)", 13.2: "column + row  (3, 4)"})
    words(ax, {4.8: "+", 10.4: "="}, y=1.5, fontsize=22)
    fig.alt = (
        "Three grids of 3 by 4. Left: the column 0, 10, 20, and pale copies of it to "
        "its right. Middle: the row 0, 1, 2, 3, and pale copies below it. Right: "
        "their sums, 0 to 3, 10 to 13 and 20 to 23."
    )
    return fig


def view() -> Picture:
    """Six numbers in a row, and the same in two rows of three."""
    fig, ax = board(width=11.6, height=3.1)
    one = [list(range(6))]
    two = [[0, 1, 2], [3, 4, 5]]
    grid(ax, 0, one, color=lambda r, c: ROWS[c // 3], top=0.5)
    grid(ax, 8.2, two, color=lambda r, c: ROWS[r])
    words(ax, {3: "x  (6,)", 9.7: "x.view(2, 3)"})
    words(ax, {7.1: "→"}, y=1.0, fontsize=22)
    fig.alt = (
        "Left: the numbers 0 to 5 in one row. Right: the same numbers in the same "
        "order in two rows, 0 1 2 above 3 4 5."
    )
    return fig


def transpose() -> Picture:
    """A matrix (2, 3), transposed, and viewed as (3, 2): the same shape, other rows."""
    fig, ax = board(width=13.2, height=4.2)
    two = [[0, 1, 2], [3, 4, 5]]
    turned = [[0, 3], [1, 4], [2, 5]]
    viewed = [[0, 1], [2, 3], [4, 5]]
    grid(ax, 0, two, color=lambda r, c: ROWS[r], top=0.5)
    grid(ax, 5.4, turned, color=lambda r, c: ROWS[c])
    grid(ax, 10.4, viewed, color=lambda r, c: ROWS[viewed[r][c] // 3])
    turn, cut = "m.transpose(0, 1)  (3, 2)", "m.view(3, 2)  (3, 2)"
    words(ax, {1.5: "m  (2, 3)", 6.4: turn, 11.4: cut})
    words(ax, {4.2: "→"}, y=1.5, fontsize=22)
    words(ax, {9.0: "but"}, y=1.5, fontsize=15)
    fig.alt = (
        "Left: rows 0 1 2 and 3 4 5. Middle, transposed: rows 0 3, 1 4 and 2 5, so "
        "each row has become a column. Right, viewed with the same shape: rows 0 1, "
        "2 3 and 4 5, the numbers in their old order."
    )
    return fig


def product() -> Picture:
    """A product (2, 2) @ (2, 3), with the row and the column of one cell lit up."""
    fig, ax = board(width=12.6, height=3.8)
    left, right = [[1, 2], [3, 0]], [[10, 0, 1], [0, 10, 1]]
    made = [[10, 20, 3], [30, 0, 3]]
    grid(ax, 0, left, color=lambda r, c: ROWS[0] if r == 0 else "white")
    grid(ax, 3.6, right, color=lambda r, c: ROWS[1] if c == 2 else "white")
    grid(ax, 8.2, made, color=lambda r, c: ROWS[2] if (r, c) == (0, 2) else "white")
    words(ax, {1: "a  (2, 2)", 5.1: "b  (2, 3)", 9.7: "a @ b  (2, 3)"})
    words(ax, {2.8: "@"}, y=1, fontsize=20)
    words(ax, {7.4: "="}, y=1, fontsize=22)
    words(ax, {6: "row 0 and column 2:   1·1 + 2·1 = 3"}, y=2.5, fontsize=15)
    fig.alt = (
        "Three grids. Left: rows 1 2 and 3 0, the top row lit up. Middle: rows 10 0 1 "
        "and 0 10 1, the last column lit up. Right: their product, rows 10 20 3 and "
        "30 0 3; the cell where that row and that column cross, 3, is lit up. Below: "
        "row 0 and column 2, 1 times 1 plus 2 times 1 is 3."
    )
    return fig


def board(width: float, height: float) -> tuple[Picture, Axes]:
    """A figure with an empty space, one unit for a cell, its top at -0.8."""
    size = (0.62 * width, 0.62 * height)
    return paper(size, (-0.6, width), (height - 0.9, -0.8), aspect="equal")


def words(
    ax: Axes, at: dict[float, str], y: float = -0.45, fontsize: float = 14
) -> None:
    """Words in one line; at: {their middle: a word}."""
    for x, word in at.items():
        ax.text(x, y, word, fontsize=fontsize, **MIDDLE)


def grid(
    ax: Axes,
    x: float,
    numbers: list[list[int]],
    color: Any,
    real: Any = lambda r, c: True,
    top: float = 0,
) -> None:
    """Numbers in cells. color, real: functions of row and column. If real says no, the
    cell is a pale copy of another one."""
    for r, row in enumerate(numbers):
        for c, number in enumerate(row):
            pale = not real(r, c)
            fill, shade = ("white", "0.55") if pale else (color(r, c), "black")
            look: Style = {"fc": fill, "ls": "--" if pale else "-"}
            letters: Style = {"fontsize": 15, "color": shade}
            at = (x + c + 0.5, top + r + 0.5)
            square(ax, *at, str(number), 1, letters=letters, **look)
