"""Drawings that grow on a slide with key presses. Each function returns its pictures in
their order, all of one size; the numbers are computed as the lessons compute them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from minigpt.averaging import hide_future
from minigpt.course.drawings.canvas import FILL
from minigpt.course.plots import COLORS, Picture, Style

LIT, FOUND, GREY, SOFT = "#F5A623", "#BFE3C8", "#E8ECF0", "0.35"
LINE = "strong hat"  # the line of 03
CENTER: Style = {"ha": "center", "va": "center"}


def sheet(wide: float, high: float, columns: float, rows: float) -> tuple:
    """A picture of so many inches and its axes: x to the right, y downwards, no
    margins, so that all steps have one size."""
    fig = Picture(figsize=(wide, high))
    fig.set_layout_engine("none")
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, columns), ylim=(rows, 0))
    ax.set_axis_off()
    return fig, ax


def box(
    ax: Axes, x: float, y: float, word: str, fill: str = FILL["tensor"], size: int = 16
) -> None:
    """A square of one column and one row with a word in it."""
    ax.add_patch(Rectangle((x, y), 1, 1, fc=fill, ec="0.35", lw=1.4))
    ax.text(x + 0.5, y + 0.52, word, fontsize=size, **CENTER)


def arrow(ax: Axes, tail: tuple, head: tuple, color: str = COLORS[5]) -> None:
    """A straight arrow between two points."""
    look: Style = {"arrowstyle": "-|>", "mutation_scale": 20, "lw": 2, "color": color}
    ax.add_patch(FancyArrowPatch(tail, head, shrinkA=0, shrinkB=0, **look))


class Hand(NamedTuple):
    """03's line in numbers: its letters, all that is known of each position, and what
    the three matrices read of it."""

    letters: str
    x: torch.Tensor
    q: torch.Tensor
    k: torch.Tensor


def strong_hat() -> Hand:
    """As 03 fills them by hand."""
    T, letters = len(LINE), "".join(sorted(set(LINE)))
    letter = F.one_hot(torch.tensor([letters.index(c) for c in LINE]), len(letters))
    after_vowel = torch.tensor([0.0, *(float(c in "aeiou") for c in LINE[:-1])])
    rest = torch.stack([after_vowel, torch.arange(T).float(), torch.ones(T)], dim=-1)
    x = torch.cat([letter, rest], dim=-1)
    W_q, W_k = torch.zeros(12, 2), torch.zeros(12, 2)
    W_q[11] = 1.0
    W_k[9, 0], W_k[10, 1] = 20.0, 2.0
    return Hand(letters, x, x @ W_q, x @ W_k)


def shown(letter: str) -> str:
    """A letter, or a sign for a space."""
    return letter.replace(" ", "␣")


def strip(ax: Axes, x: float, y: float, at: int, lit: Sequence[int]) -> None:
    """All that is known of one position as a row of 12 cells; lit: the columns that
    stand out."""
    for column, value in enumerate(strong_hat().x[at].tolist()):
        on = FOUND if column < 9 else LIT
        box(ax, x + column, y, f"{value:.0f}", on if column in lit else GREY)


def known() -> list[Picture]:
    """The vectors of two letters of 03's line, cell by cell."""
    hand, pictures = strong_hat(), []
    for step in (1, 2):
        fig, ax = sheet(12, 4.4, 16, 5.9)
        for column, letter in enumerate(hand.letters):
            ax.text(column + 2.5, 1.6, shown(letter), fontsize=16, **CENTER)
        ax.text(6.5, 0.8, "its letter: one of nine", fontsize=16, **CENTER)
        for column, name in enumerate(("vowel\nbefore", "place", "always\n1"), 11):
            ax.text(column + 0.5, 1.25, name, fontsize=14, **CENTER)
        for row, at in enumerate((4, 5)[:step]):
            y = 2.1 + 1.7 * row
            letter = LINE[at]
            ax.text(1.4, y + 0.5, letter, fontsize=26, weight="bold", **CENTER)
            lit = [n for n, value in enumerate(hand.x[at].tolist()) if value]
            strip(ax, 2, y, at, lit)
        told = [
            f"{LINE[at]}: " + ", ".join(f"{value:.0f}" for value in hand.x[at])
            for at in (4, 5)[:step]
        ]
        fig.alt = (
            "Vectors of letters of 'strong hat', 12 cells each: nine for the letter, "
            f"then a vowel before it, its place, a 1. {'; '.join(told)}."
        )
        pictures.append(fig)
    return pictures


def read() -> list[Picture]:
    """What the three matrices read of two vectors: query, key and value."""
    hand, pictures = strong_hat(), []
    rows = (
        (5, "$W_q$", [11], f"query ({hand.q[5, 0]:.0f}, {hand.q[5, 1]:.0f})"),
        (
            4,
            "$W_k$",
            [9, 10],
            f"key (20·1, 2·4) = ({hand.k[4, 0]:.0f}, {hand.k[4, 1]:.0f})",
        ),
        (4, "$W_v$", list(range(9)), "value: the letter n"),
    )
    for step in range(1, 4):
        fig, ax = sheet(12.2, 4.2, 20.6, 5.6)
        told = []
        for row, (at, matrix, lit, result) in enumerate(rows[:step]):
            y = 0.4 + 1.75 * row
            ax.text(0.6, y + 0.5, LINE[at], fontsize=26, weight="bold", **CENTER)
            strip(ax, 1.2, y, at, lit)
            arrow(ax, (13.3, y + 0.5), (14.6, y + 0.5))
            ax.text(13.9, y + 0.05, matrix, fontsize=17, **CENTER)
            ax.text(14.8, y + 0.52, result, fontsize=16, va="center")
            told.append(f"of {LINE[at]} the {result}")
        fig.alt = f"Matrices read the lit cells of a vector: {'; '.join(told)}."
        pictures.append(fig)
    return pictures


def short(value: float) -> str:
    """A number in few letters."""
    if value in (-math.inf, 0):
        return "−∞" if value else "0"
    if abs(value) >= 1e5:
        power = math.floor(math.log10(value))
        return f"${value / 10**power:.0f} \\cdot 10^{power}$"
    return (
        f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"
    )


def by_hand(asker: str) -> list[Picture]:
    """Attention for one letter of 03's line (its first), a row of numbers for each
    step: product with each key, root, mask, exp, share, and what comes out."""
    hand, at = strong_hat(), LINE.index(asker)
    products = hand.q @ hand.k.T
    scores = products / math.sqrt(2)
    masked = hide_future(scores)[at]
    weights = F.softmax(masked, dim=-1).tolist()
    exp = masked.exp()
    keys = [f"{a:.0f}, {b:.0f}" for a, b in hand.k.tolist()]
    parts = [(w, c) for w, c in zip(weights, LINE) if w > 0.005]
    mixed = " + ".join(f"{w:.2f} · {shown(c)}" for w, c in reversed(parts))
    table = (
        ("keys", keys),
        (f"q · k, q of {asker}: 1, 1", [short(v) for v in products[at].tolist()]),
        ("divided by √2", [f"{v:.1f}" for v in scores[at].tolist()]),
        (
            "mask: no future",
            [f"{v:.1f}".replace("-inf", "−∞") for v in masked.tolist()],
        ),
        ("exp", [short(v) for v in exp.tolist()]),
        (
            f"divided by the sum, {short(exp.sum().item())}",
            [f"{w:.2f}" for w in weights],
        ),
        ("mixed values", []),
    )
    pictures = []
    for step in range(2, len(table) + 1):
        fig, ax = sheet(12.3, 5.1, 15.6, 8.2)
        for x, letter in enumerate(LINE):
            fill = LIT if x == at else "white"
            ax.add_patch(Rectangle((x + 5.15, 0.08), 0.9, 0.84, fc=fill, ec="none"))
            ax.text(x + 5.6, 0.5, shown(letter), fontsize=22, **CENTER)
        told = []
        for row, (name, words) in enumerate(table[:step]):
            y = 1 + row
            ax.text(4.9, y + 0.52, name, fontsize=15, ha="right", va="center")
            for x, word in enumerate(words):
                future = row > 2 and x > at
                share = row == 5 and weights[x] > 0.5
                fill = "white" if future else LIT if share else FILL["tensor"]
                fill = GREY if row == 0 else fill
                box(ax, x + 5.1, y, word, fill, 14)
            if not words:
                words = [f"{asker} gets {mixed}"]
                ax.text(
                    5.2, y + 0.62, words[0], fontsize=20, va="center", weight="bold"
                )
            told.append(f"{name}: {', '.join(words)}")
        fig.alt = f"Attention by hand for {asker} in '{LINE}'. {'. '.join(told)}."
        pictures.append(fig)
    return pictures


def leak() -> list[Picture]:
    """The softmax of 03's piece of three positions by rows and by columns, before and
    after the last position asks for something else; what has moved stands out."""
    before = torch.tensor([[1.0, 0, 0], [1, 1, 0], [2, 1, 1]])
    after = before.clone()
    after[2, 0] = 6
    names = (
        "after exp and mask",
        "right: each row / its sum",
        "wrong: each column / its sum",
    )

    def tables(exp: torch.Tensor) -> list[torch.Tensor]:
        return [exp, *(exp / exp.sum(dim=d, keepdim=True) for d in (1, 0))]

    first, second = tables(before), tables(after)
    shows = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]  # row and column of each
    pictures = []
    for step in range(1, 7):
        fig, ax = sheet(12.3, 5.2, 18.3, 7.9)
        told = []
        for row, column in shows[:step]:
            table, old = (first, second)[row][column], first[column]
            left, top = 1.6 + 5.7 * column, 1 + 3.5 * row
            if row == 0:
                ax.text(left + 1.5, 0.55, names[column], fontsize=16, **CENTER)
            for y in range(3):
                for x in range(y + 1):
                    value = table[y, x].item()
                    moved = not math.isclose(value, old[y, x].item())
                    word = f"{value:.3f}".rstrip("0").rstrip(".")
                    box(
                        ax,
                        left + x,
                        top + y,
                        word,
                        LIT if moved else FILL["tensor"],
                        14,
                    )
            words = "; ".join(
                ", ".join(f"{v:.4g}" for v in line) for line in table.tolist()
            )
            told.append(f"{names[column]}: {words}")
        for row, name in enumerate(
            ("before", "the last row\nasks anew")[: 1 + step // 4]
        ):
            ax.text(0.75, 2.5 + 3.5 * row, name, fontsize=15, rotation=90, **CENTER)
        fig.alt = f"Tables of three positions. {'. '.join(told)}."
        pictures.append(fig)
    return pictures


def opposite() -> list[Picture]:
    """05's feed-forward layer by hand, for an input and for its opposite."""
    W1 = torch.tensor([[1.0, 0.0, -1.0], [1.0, 1.0, 0.0]])
    W2 = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    rows = []
    for start in (torch.tensor([1.0, -2.0]), torch.tensor([-1.0, 2.0])):
        wide = start @ W1
        hidden = wide.relu()
        rows.append([t.tolist() for t in (start, wide, hidden, hidden @ W2)])
    names = ("x", "$x W_1$", "max(0, ·)", "$· W_2$")
    lefts, pictures = (0.4, 3.9, 8.4, 12.9), []
    for step in range(2, 9):
        fig, ax = sheet(12, 3.7, 15.4, 4.75)
        told = []
        for number in range(step if step < 5 else 4):
            wide = len(rows[0][number]) / 2
            ax.text(lefts[number] + wide, 0.5, names[number], fontsize=18, **CENTER)
        for place in range(step):
            row, number = divmod(place, 4)
            y, numbers = 1.1 + 1.9 * row, rows[row][number]
            if number:
                end = lefts[number - 1] + len(rows[row][number - 1])
                arrow(ax, (end + 0.2, y + 0.5), (lefts[number] - 0.2, y + 0.5))
            for n, value in enumerate(numbers):
                low = number == 2 and not value
                fill = GREY if low else LIT if number == 2 else FILL["tensor"]
                box(
                    ax, lefts[number] + n, y, f"{value:.0f}".replace("-", "−"), fill, 18
                )
            told.append(", ".join(f"{v:.0f}" for v in numbers))
        fig.alt = f"The feed-forward layer by hand, step by step: {' to '.join(told)}."
        pictures.append(fig)
    return pictures
