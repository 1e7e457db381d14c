"""Drawings for the lectures, with letters that the last row can read.

Those that return a list grow, with a picture for each key press, all the same size.
Positions and sizes are in inches from the upper left corner.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from minigpt.attention import attention
from minigpt.averaging import hide_future
from minigpt.course.drawings import canvas
from minigpt.course.drawings.canvas import (
    FILL,
    FOUND,
    LIT,
    MIDDLE,
    SIGNS,
    circle,
    frame,
    pathway,
    square,
)
from minigpt.course.plots import COLORS, Picture, Style, heatmap

WIDE = 11.83  # inches between the margins of a slide
BLUE, GREY, WHITE = FILL["tensor"], "#E8ECF0", "white"
LINE = "strong hat"
arrow = partial(canvas.arrow, mutation_scale=20, lw=2)


def sheet(wide: float, high: float) -> tuple[Picture, Axes]:
    """An empty picture of this size, in inches, and its axes without margins."""
    fig = Picture(figsize=(wide, high))
    fig.set_layout_engine("none")
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, wide), ylim=(high, 0))
    ax.set_axis_off()
    return fig, ax


class Grid(NamedTuple):
    """A table of words in squares: its title, words above and to the left, and fills by
    (row, column). If a word is None, its square is left out."""

    rows: Sequence[Sequence[str | None]]
    title: str = ""
    top: Sequence[str] = ()
    left: Sequence[str] = ()
    fills: Mapping[tuple[int, int], str] = {}
    fill: str = BLUE

    def told(self) -> str:
        """The table in words."""
        rows = [", ".join(word or "-" for word in row) for row in self.rows]
        named = zip([*self.left, *[""] * len(rows)], rows)
        lines = "; ".join(f"{name}: {row}" if name else row for name, row in named)
        above = f" over {' '.join(self.top)}" if self.top else ""
        return f"{self.title or 'A table'}{above}: {lines}"


def grids(
    *parts: Grid | str, size: float = 0.7, letters: float = 17, gap: float = 0.3
) -> list[Picture]:
    """Tables side by side, with signs between them. Each picture shows one more.

    parts: tables, and the signs (such as "@" or "=") that come with the next table;
    size: a square's size in inches.
    """
    lefts, wides = [], []
    for part in parts:
        if isinstance(part, str):
            lefts.append(0.0)
            wides.append(0.035 * letters)
            continue
        named = 0.25 + 0.12 * max(map(len, part.left)) if part.left else 0.0
        beyond = max(0.0, 0.125 * len(part.title) - size * len(part.rows[0])) / 2
        lefts.append(max(named, beyond))
        wides.append(lefts[-1] + size * len(part.rows[0]) + beyond)
    tables = [part for part in parts if isinstance(part, Grid)]
    above = 0.42 * any(t.title for t in tables) + 0.42 * any(t.top for t in tables)
    high = above + 0.05 + size * max(len(t.rows) for t in tables)
    wide = max(sum(wides) + gap * (len(parts) - 1) + 0.05, 1)
    ends = [n + 1 for n, part in enumerate(parts) if isinstance(part, Grid)]
    ends[-1] = len(parts)
    pictures = []
    for end in ends:
        fig, ax = sheet(wide, high)
        x = 0.02
        for part, across, left in list(zip(parts, wides, lefts))[:end]:
            if isinstance(part, str):
                middle = above + (high - above) / 2
                ax.text(x + across / 2, middle, part, fontsize=letters + 5, **MIDDLE)
            else:
                squares(ax, x + left, above, part, size, letters)
            x += across + gap
        shown = [part.told() for part in parts[:end] if isinstance(part, Grid)]
        fig.alt = f"Tables of words. {'. '.join(shown)}."
        pictures.append(fig)
    return pictures


def squares(
    ax: Axes,
    x: float,
    y: float,
    grid: Grid,
    size: float,
    letters: float,
    high: float | None = None,
) -> None:
    """A table with the upper left corner of its squares at x, y; high: the height of a
    left-out square."""
    wide, high = size * len(grid.rows[0]), high or size
    if grid.title:
        up = 0.62 if grid.top else 0.2
        ax.text(x + wide / 2, y - up, grid.title, fontsize=16, **MIDDLE)
    for c, word in enumerate(grid.top):
        at = x + (c + 0.5) * size
        ax.text(at, y - 0.22, SIGNS.get(word, word), fontsize=letters + 2, **MIDDLE)
    for r, word in enumerate(grid.left):
        at = (x - 0.12, y + (r + 0.5) * high)
        ax.text(*at, SIGNS.get(word, word), fontsize=15, ha="right", va="center")
    for r, row in enumerate(grid.rows):
        for c, word in enumerate(row):
            if word is None:
                continue
            middle = (x + (c + 0.5) * size, y + (r + 0.5) * high)
            fill, style = grid.fills.get((r, c), grid.fill), {"fontsize": letters}
            square(ax, *middle, word, size, high, style, fc=fill)


def numbers(matrix: torch.Tensor, digits: int = 2) -> list[list[str]]:
    """A (R, C) tensor as words: few letters, no trailing zeros."""

    def word(value: float) -> str:
        if math.isinf(value):
            return "−∞"
        text = f"{value:.{digits}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text.replace("-", "−") if text != "-0" else "0"

    return [[word(value) for value in row] for row in matrix.tolist()]


def columns(
    panels: Mapping[str, Sequence[float]],
    names: Sequence[str] = (),
    below: Sequence[str] = (),
    digits: int = 2,
    high: float = 4.2,
    low: float = 0,
    top: float | None = None,
    colors: Sequence[str] = (COLORS[0],),
    written: bool = True,
) -> Picture:
    """Upright bars that start at 0, with a panel for each {title: numbers}.

    names: the labels below the bars; below: the labels below the panels; low, top: the
    ends of the axis, which all panels share.
    """
    fig = Picture(figsize=(WIDE, high), layout="constrained")
    axes = fig.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    most = top or 1.15 * max(max(values) for values in panels.values())
    told = []
    for n, (ax, (title, values)) in enumerate(zip(axes, panels.items())):
        ax.bar(range(len(values)), values, color=colors[n % len(colors)])
        ax.axhline(0, color="0.4", lw=1, ls="-")
        for x, value in enumerate(values if written else []):
            word = f"{value:.{digits}f}".replace("-", "−")
            up = 0.045 * (most - low) * (1 if value >= 0 else -1)
            ax.text(x, value + up, word, fontsize=16, **MIDDLE)
        ax.set_title(title, fontsize=18)
        ax.set(ylim=(low, most), yticks=[], xlim=(-0.6, len(values) - 0.4))
        ax.set_xticks(range(len(names)), names, fontsize=17)
        ax.tick_params(length=0)
        ax.spines["left"].set_visible(False)
        ax.grid(False)
        if below:
            color = colors[n % len(colors)]
            ax.set_xlabel(below[n], fontsize=18, color=color)
        of = f" for {', '.join(names)}" if names else ""
        shown = ", ".join(f"{value:.{digits}f}" for value in values)
        told.append(f"{title}{of}: {shown}" + (f"; {below[n]}" if below else ""))
    fig.alt = f"Bars. {'. '.join(told)}."
    return fig


def few_digits(y: float) -> str:
    """A number in a few digits, however small it is."""
    return f"{y:.2f}" if y == 0 or abs(y) >= 0.1 else f"{y:.2g}"


def lines(
    curves: Mapping[str, Mapping[float, float]],
    xlabel: str,
    ylabel: str,
    high: float = 4.6,
    log: bool = False,
    xticks: Sequence[float] = (),
    goal: tuple[float, str] | None = None,
    ylim: tuple[float, float] | None = None,
) -> Picture:
    """For each {name: {x: y}}, a line with its name at the end. log: the x axis; goal:
    a dotted line and its name."""
    fig = Picture(figsize=(WIDE, high), layout="constrained")
    ax = fig.subplots()
    told = []
    for n, (name, points) in enumerate(curves.items()):
        xs, ys = list(points), list(points.values())
        marker = "os^D"[n] if len(xs) < 12 else None
        style = ["-", "--", "-.", ":"][n]
        ax.plot(xs, ys, color=COLORS[n], lw=3.5, ls=style, marker=marker, ms=10)
        ax.text(xs[-1], ys[-1], f"  {name}", color=COLORS[n], fontsize=17, va="center")
        says = f"{name}: " if name else "It goes "
        if len(xs) < 8:
            says += ", ".join(f"{few_digits(y)} at {x:g}" for x, y in points.items())
        else:
            first, top, last = map(few_digits, (ys[0], max(ys), ys[-1]))
            peak = f"up to {top} at {xs[ys.index(max(ys))]:g} and down "
            rises = max(ys) > 1.5 * max(ys[0], ys[-1])
            says += f"from {first} {peak if rises else ''}to {last}"
        told.append(says)
    if log:
        ax.set_xscale("log")
    if goal:
        ax.axhline(goal[0], color="0.35", lw=2, ls=":")
        ax.text(
            0.99,
            goal[0],
            goal[1],
            fontsize=17,
            color="0.35",
            ha="right",
            va="bottom",
            transform=ax.get_yaxis_transform(),
        )
        told.append(f"dotted: {goal[1]}")
    if xticks:
        ax.set_xticks(xticks, [f"{x:g}" for x in xticks])
        ax.minorticks_off()
    if ylim:
        ax.set_ylim(*ylim)
    ax.margins(x=0.02)
    low, most = ax.get_xlim()
    room = 0.015 * max(len(name) for name in curves)
    ax.set_xlim(low, most * (most / low) ** room if log else most + (most - low) * room)
    ax.set_xlabel(xlabel, fontsize=17)
    ax.set_ylabel(ylabel, fontsize=17)
    ax.tick_params(labelsize=16)
    fig.alt = f"{ylabel} over {xlabel}. {'; '.join(told)}."
    return fig


def maps(
    texts: Mapping[str, tuple[str, torch.Tensor]], high: float = 5.3, rows: Any = None
) -> Picture:
    """Weights (T, T) of {title: (text, weights)}: a row looks, and a column is looked
    at. rows: if given, only these are shown."""
    each = min(high + 0.2, WIDE / len(texts))
    wide = min(WIDE, each * len(texts) + 0.9)
    fig = Picture(figsize=(wide, min(high, each + 0.4)), layout="constrained")
    axes = fig.subplots(1, len(texts), squeeze=False)[0]
    told = []
    for ax, (title, (text, weights)) in zip(axes, texts.items()):
        letters = [SIGNS.get(letter, letter) for letter in text]
        shown = weights.detach().clone()
        if rows is not None:
            shown[[n for n in range(len(text)) if n not in rows]] = 0
        image = heatmap(ax, shown, letters, letters, vmin=0, vmax=1)
        ax.tick_params(labelsize=14 if len(text) > 20 else 17, length=0)
        ax.set_title(title, fontsize=17)
        ax.set_xlabel("is looked at", fontsize=16)
        best = [f"{a} at {letters[w.argmax()]}" for a, w in zip(letters, weights)]
        picked = best if rows is None else [best[n] for n in rows]
        told.append(
            f"{title}: most of each letter's weight lies for {', '.join(picked)}"
        )
    axes[0].set_ylabel("looks", fontsize=16)
    bar = fig.colorbar(image, ax=axes, shrink=0.9)
    bar.set_label("weight", fontsize=16)
    bar.ax.tick_params(labelsize=14)
    fig.alt = f"Heat maps of attention weights. {'. '.join(told)}."
    return fig


def letters(
    rows: Mapping[str, str],
    fills: Mapping[tuple[int, int], str] = {},
    size: float = 0.7,
) -> Picture:
    """Lines of text, one below the other, with a letter in each square; {name:
    text}."""
    count = max(map(len, rows.values()))
    words = [[*text, *[None] * (count - len(text))] for text in rows.values()]
    named = list(rows) if any(name.strip() for name in rows) else []
    (fig,) = grids(Grid(words, left=named, fills=fills), size=size)
    return fig


def road(lit: str = "") -> Picture:
    """How a text goes through a GPT, with the parts of one lecture lit up.

    lit: "counting", "attention", "gpt", or "" for none.
    """
    parts = [  # name, lecture, left and upper edge, width, height
        ("text", "counting", 0.02, 1.3, 0.85, 0.8),
        ("ids", "counting", 1.22, 1.3, 0.75, 0.8),
        ("vectors", "attention", 2.32, 1.3, 1.15, 0.8),
        ("a stack of blocks", "gpt", 3.82, 0.02, 4.55, 3.1),
        ("many heads", "gpt", 4.02, 0.6, 2.55, 2.32),
        ("one head", "attention", 4.22, 1.15, 2.15, 1.57),
        ("mean of\nthe past", "attention", 4.42, 1.72, 1.75, 0.8),
        ("feed-\nforward", "gpt", 6.82, 0.6, 1.35, 2.32),
        ("logits", "counting", 8.72, 1.3, 0.95, 0.8),
        ("next\nletter", "counting", 10.02, 1.3, 1.0, 0.8),
    ]
    fig, ax = sheet(11.1, 3.2)
    for name, lecture, x, y, wide, high in parts:
        on = lecture == lit
        frame(ax, x, y, wide, high, 0.1, fc=LIT if on else BLUE, ec="0.3")
        holds = name in ("a stack of blocks", "many heads", "one head")
        at = y + 0.28 if holds else y + high / 2
        weight = "bold" if on else "normal"
        ax.text(x + wide / 2, at, name, fontsize=15, weight=weight, **MIDDLE)
    for tail, head in (
        (0.87, 1.22),
        (1.97, 2.32),
        (3.47, 3.82),
        (8.37, 8.72),
        (9.67, 10.02),
    ):
        arrow(ax, (tail, 1.7), (head, 1.7))
    on = ", ".join(
        name.replace("-\n", "-").replace("\n", " ")
        for name, lecture, *_ in parts
        if lecture == lit
    )
    fig.alt = (
        "How a text goes through a GPT: text, ids, vectors, a stack of blocks, logits, "
        "next letter. A block has many heads and a feed-forward layer. Each head takes "
        f"a mean of the past. Lit up: {on or 'none'}."
    )
    return fig


class Hand(NamedTuple):
    """`strong hat` in numbers: its letters, everything known about each position (T,
    12), and what two matrices read from that, (T, 2) each."""

    letters: str
    x: torch.Tensor
    q: torch.Tensor
    k: torch.Tensor


def strong_hat() -> Hand:
    """Filled by hand, as in lesson 03."""
    letters = "".join(sorted(set(LINE)))
    letter = F.one_hot(torch.tensor([letters.index(c) for c in LINE]), len(letters))
    after_vowel = torch.tensor([0.0, *(float(c in "aeiou") for c in LINE[:-1])])
    places = torch.arange(len(LINE)).float()
    rest = torch.stack([after_vowel, places, torch.ones(len(LINE))], dim=-1)
    x = torch.cat([letter, rest], dim=-1)
    W_q, W_k = torch.zeros(12, 2), torch.zeros(12, 2)
    W_q[11] = 1.0
    W_k[9, 0], W_k[10, 1] = 20.0, 2.0
    return Hand(letters, x, x @ W_q, x @ W_k)


def roles() -> Picture:
    """Which letter asks, how a letter is found, and what it hands over."""
    fig, ax = sheet(WIDE, 3.1)
    asker, found, left, size = 5, 4, 2.6, 0.62
    fills = {(0, asker): LIT, (0, found): FOUND}
    squares(ax, left, 1.25, Grid([list(LINE)], fills=fills), size, 18)
    at = [left + (n + 0.5) * size for n in range(len(LINE))]
    bend: Style = {"connectionstyle": "arc3,rad=0.9", "lw": 2.5}
    arrow(ax, (at[asker], 1.2), (at[found], 1.2), color=COLORS[1], **bend)
    arrow(ax, (at[found], 1.92), (at[asker], 1.92), color=COLORS[2], **bend)
    style: Style = {"fontsize": 17, "va": "center"}
    query = "query of g: a vowel before it, and late?"
    ax.text(at[asker] + 0.3, 0.45, query, color=COLORS[1], **style)
    key = "key of n: a vowel before me, place 4"
    ax.text(at[found] - 0.3, 0.45, key, ha="right", **style)
    value = "value of n: the letter n"
    ax.text(at[asker] + 0.3, 2.75, value, color=COLORS[2], **style)
    fig.alt = (
        "The line 'strong hat'. The g asks with its query: where is a letter with a "
        "vowel before it, and late? The key of the n answers, and its value, the "
        "letter n, goes to the g."
    )
    return fig


def known() -> list[Picture]:
    """Everything known about two positions of `strong hat`: 12 named numbers."""
    hand, pictures = strong_hat(), []
    top = [*hand.letters, "vowel\nbefore", "place", "always\n1"]
    for step in (1, 2):
        fig, ax = sheet(WIDE, 3.6)
        told = []
        for c, name in enumerate(top):
            ax.text(
                1.2 + (c + 0.5) * 0.86,
                0.85,
                SIGNS.get(name, name),
                fontsize=16,
                **MIDDLE,
            )
        ax.text(1.2 + 4.5 * 0.86, 0.3, "its letter: one of nine", fontsize=17, **MIDDLE)
        for row, at in enumerate((4, 5)[:step]):
            values = hand.x[at].tolist()
            fills = {(0, n): FOUND if n < 9 else LIT for n, v in enumerate(values) if v}
            y = 1.3 + 1.25 * row
            words = [[f"{v:.0f}" for v in values]]
            squares(ax, 1.2, y, Grid(words, fills=fills, fill=GREY), 0.86, 20)
            ax.text(0.5, y + 0.43, LINE[at], fontsize=28, weight="bold", **MIDDLE)
            told.append(f"{LINE[at]}: {', '.join(words[0])}")
        fig.alt = (
            "Two letters of 'strong hat' as 12 numbers: nine for the letter, then a "
            f"vowel before it, its place, always a 1. {'; '.join(told)}."
        )
        pictures.append(fig)
    return pictures


def read() -> list[Picture]:
    """What three matrices read from two of these vectors: query, key and value."""
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
        fig, ax = sheet(WIDE, 3.9)
        told = []
        for row, (at, matrix, reads, result) in enumerate(rows[:step]):
            y = 0.15 + 1.3 * row
            words = [[f"{v:.0f}" for v in hand.x[at].tolist()]]
            fills = {(0, n): FOUND if n < 9 else LIT for n in reads}
            squares(ax, 0.8, y, Grid(words, fills=fills, fill=GREY), 0.58, 18)
            ax.text(0.35, y + 0.3, LINE[at], fontsize=26, weight="bold", **MIDDLE)
            arrow(ax, (7.9, y + 0.3), (8.7, y + 0.3))
            ax.text(8.25, y - 0.02, matrix, fontsize=20, **MIDDLE)
            ax.text(8.8, y + 0.3, result, fontsize=17, va="center")
            told.append(f"of {LINE[at]} the {result}")
        fig.alt = f"Matrices read the lit cells of a vector: {'; '.join(told)}."
        pictures.append(fig)
    return pictures


def short(value: float) -> str:
    """A number in a few letters."""
    if value in (-math.inf, 0):
        return "−∞" if value else "0"
    if abs(value) >= 1e5:
        power = math.floor(math.log10(value))
        return f"${value / 10**power:.0f} \\cdot 10^{power}$"
    whole = abs(value) >= 100 or value == int(value)
    return f"{value:.0f}" if whole else f"{value:.1f}"


def by_hand(asker: str) -> list[Picture]:
    """Attention for the first such letter of `strong hat`: a row of numbers for each
    step, and finally what comes out."""
    hand, at = strong_hat(), LINE.index(asker)
    products = hand.q @ hand.k.T
    scores = products / math.sqrt(2)
    masked = hide_future(scores)[at]
    weights = F.softmax(masked, dim=-1).tolist()
    exp = masked.exp()
    parts = [(w, c) for w, c in zip(weights, LINE) if w > 0.005]
    mixed = " + ".join(f"{w:.2f} · {SIGNS.get(c, c)}" for w, c in reversed(parts))
    table = [
        ("keys", [f"{a:.0f}, {b:.0f}" for a, b in hand.k.tolist()]),
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
    ]
    fills = {(0, x): GREY for x in range(len(LINE))}
    fills |= {(r, x): WHITE for r in (3, 4, 5) for x in range(at + 1, len(LINE))}
    fills |= {(5, x): LIT for x, weight in enumerate(weights) if weight > 0.5}
    pictures = []
    for step in range(2, len(table) + 2):
        fig, ax = sheet(WIDE, 5.5)
        ax.add_patch(Rectangle((3.62 + 0.82 * at, 0.05), 0.82, 0.44, fc=LIT, ec="none"))
        names, rows = zip(*table[:step])
        grid = Grid(rows, top=LINE, left=names, fills=fills)
        squares(ax, 3.62, 0.5, grid, 0.82, 15, high=0.7)
        fig.alt = f"Attention by hand for {asker} in '{LINE}'. {grid.told()}."
        if step > len(table):
            told = f"{asker} gets {mixed}"
            ax.text(3.62, 5.15, told, fontsize=21, va="center", weight="bold")
            fig.alt += f" {told}."
        pictures.append(fig)
    return pictures


def variances() -> list[Picture]:
    """How the scores of random queries and keys spread. With more numbers, they spread
    wider. Then, what the root does to the widest."""
    pictures = []
    panels = [(f"{size} numbers", size, 1.0) for size in (4, 16, 64)]
    panels.append(("64, divided by 8", 64, 8.0))
    for shown in (3, 4):
        dice = torch.Generator().manual_seed(1337)
        fig = Picture(figsize=(WIDE, 4), layout="constrained")
        told = []
        for n, (ax, (title, size, root)) in enumerate(zip(fig.subplots(1, 4), panels)):
            if n >= shown:
                ax.set_axis_off()
                continue
            keys, queries = torch.randn(2, 400, 8, size, generator=dice)
            scores = (queries @ keys.transpose(-2, -1) / root).flatten()
            color = COLORS[n == 3]
            ax.hist(scores.tolist(), bins=torch.arange(-30, 31).tolist(), color=color)
            ax.set_title(title, fontsize=18)
            ax.set_xlabel(f"variance {scores.var():.0f}", fontsize=18, color=color)
            ax.set(xlim=(-30, 30), xticks=[-20, 0, 20], yticks=[])
            ax.tick_params(labelsize=16)
            ax.grid(False)
            told.append(f"{title}: variance {scores.var():.0f}")
        fig.alt = f"Histograms of scores of random queries and keys. {'; '.join(told)}."
        pictures.append(fig)
    return pictures


def shuffled() -> Picture:
    """What a head with a mask makes of a line, and of the same letters in another
    order. For the last letter, nothing changes."""
    dice = torch.Generator().manual_seed(1337)
    line, order = "strong", [2, 4, 0, 3, 1, 5]
    q, k, v = torch.randn(3, len(line), 4, generator=dice)
    fig = Picture(figsize=(WIDE, 3.6), layout="constrained")
    axes = fig.subplots(1, 2, gridspec_kw={"wspace": 0.12})
    outputs = []
    for ax, places in zip(axes, (list(range(len(line))), order)):
        out, _ = attention(q[places], k[places], v[places])
        outputs.append(out)
        ax.imshow(out.T.numpy(), cmap="cividis", vmin=-1.5, vmax=1.5, aspect="auto")
        ax.set_xticks(range(len(line)), [line[place] for place in places], fontsize=24)
        ax.xaxis.tick_top()
        ax.set(yticks=[])
        ax.set_xlabel("a column: what comes out at this letter", fontsize=17)
        ax.tick_params(length=0)
        ax.add_patch(Rectangle((4.5, -0.48), 0.98, 3.96, fill=False, ec=LIT, lw=5))
        ax.grid(False)
    torch.testing.assert_close(outputs[0][-1], outputs[1][-1])
    fig.alt = (
        "Outputs of a head without positions, a column of four shades for each letter: "
        "for 'strong', and with the letters before the g shuffled. The column of the g "
        "is the same in both."
    )
    return fig


def spelled(text: str, wide: int) -> Picture:
    """A toy text in squares. Capitals are orange. The letter after each ? is green if
    there was a capital before it."""
    rows: list[list[str | None]] = [
        [*text[n : n + wide]] for n in range(0, len(text), wide)
    ]
    rows[-1] += [None] * (wide - len(rows[-1]))
    fills = {}
    for n, letter in enumerate(text):
        if letter.isupper():
            fills[divmod(n, wide)] = LIT
        elif text[n - 1 : n] == "?" and any(c.isupper() for c in text[:n]):
            fills[divmod(n, wide)] = FOUND
    (fig,) = grids(Grid(rows, fills=fills), size=min(11.7 / wide, 0.9), letters=18)
    fig.alt = (
        f"A toy text in squares: {text}. Capitals are orange. Each letter after a "
        "question mark is green: it's the last capital, in lower case."
    )
    return fig


def leak() -> list[Picture]:
    """A softmax by rows and by columns, before and after the last position asks for
    something else. What changed is orange."""
    before = torch.tensor([[1.0, 0, 0], [1, 1, 0], [2, 1, 1]])
    after = before.clone()
    after[2, 0] = 6
    names = ("exp, masked", "right: each row / its sum", "wrong: each column / its sum")

    def tables(exp: torch.Tensor) -> list[torch.Tensor]:
        return [exp, *(exp / exp.sum(dim=d, keepdim=True) for d in (1, 0))]

    first, second = tables(before), tables(after)
    shows = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    pictures = []
    for step in range(1, 7):
        fig, ax = sheet(WIDE, 5.0)
        told = []
        for row, column in shows[:step]:
            now, old = (first, second)[row][column], first[column]
            rows: list[list[str | None]] = [
                [*words[: n + 1], *[None] * (2 - n)]
                for n, words in enumerate(numbers(now, 3))
            ]
            moved = (now != old).nonzero().tolist()
            fills = {(r, c): LIT for r, c in moved}
            title = names[column] if row == 0 else ""
            x, y = 1.3 + 3.7 * column, 0.45 + 2.35 * row
            squares(ax, x, y, Grid(rows, title, fills=fills), 0.72, 15)
            told.append(Grid(rows, names[column]).told())
        for row, name in enumerate(("before", "the last\nasks again")[: 1 + step // 4]):
            ax.text(0.02, 1.53 + 2.35 * row, name, fontsize=16, va="center")
        fig.alt = f"Tables of three positions. {'. '.join(told)}."
        pictures.append(fig)
    return pictures


def wirings() -> Picture:
    """Two layers without plus signs, and with them."""
    fig, ax = sheet(WIDE, 3.4)
    for left, adds in ((0, False), (6, True)):
        y = 1.3 if adds else 2.6
        title = "add: x + f(x)" if adds else "replace: f(x)"
        ax.text(left, 0.25, title, fontsize=20, weight="bold", va="center")
        for x, name in ((left + 1.8, "attention"), (left + 4.1, "feed-forward")):
            frame(ax, x - 0.78, y - 0.34, 1.56, 0.68, 0.12, fc=FILL["layer"])
            ax.text(x, y, name, fontsize=15, **MIDDLE)
        ax.text(left + 0.12, 2.6, "x", fontsize=22, **MIDDLE)
        if not adds:
            for tail, end in ((0.3, 1.02), (2.58, 3.32), (4.88, 5.5)):
                arrow(ax, (tail, 2.6), (end, 2.6))
            continue
        pathway(ax, left + 0.3, left + 5.5, 2.6)
        arrow(ax, (left + 0.3, 2.6), (left + 5.6, 2.6))
        for x in (left + 1.8, left + 4.1):
            ax.plot([x - 1.1, x - 1.1, x - 0.78], [2.6, 1.3, 1.3], "k-", lw=2)
            ax.plot([x + 0.78, x + 1.1], [1.3, 1.3], "k-", lw=2)
            arrow(ax, (x + 1.1, 1.3), (x + 1.1, 2.35))
            circle(ax, x + 1.1, 2.6)
    fig.alt = (
        "Two wirings of attention and feed-forward. Replace: x goes through one and "
        "then through the other. Add: x runs straight on, and what each of them makes "
        "of it on a side road is added to it."
    )
    return fig


def opposite() -> list[Picture]:
    """A feed-forward layer by hand, for an input and for its opposite."""
    W1 = torch.tensor([[1.0, 0.0, -1.0], [1.0, 1.0, 0.0]])
    W2 = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    rows = []
    for start in (torch.tensor([[1.0, -2.0]]), torch.tensor([[-1.0, 2.0]])):
        hidden = (start @ W1).relu()
        rows.append([start, start @ W1, hidden, hidden @ W2])
    names = ("x", "$x W_1$", "max(0, ·)", "$· W_2$")
    lefts, pictures = (0.02, 2.7, 6.2, 9.7), []
    for step in range(2, 9):
        fig, ax = sheet(WIDE, 3.4)
        told = []
        for place in range(step):
            row, n = divmod(place, 4)
            y, words = 0.65 + 1.5 * row, numbers(rows[row][n])
            title = names[n] if row == 0 else ""
            fills = {(0, c): LIT for c, w in enumerate(words[0]) if n == 2 and w != "0"}
            squares(ax, lefts[n], y, Grid(words, title, fills=fills), 0.8, 20)
            if n:
                end = lefts[n - 1] + 0.8 * len(rows[row][n - 1][0])
                arrow(ax, (end + 0.1, y + 0.4), (lefts[n] - 0.1, y + 0.4))
            told.append(", ".join(words[0]))
        chains = [" to ".join(told[:4]), " to ".join(told[4:])]
        by_hand = "; ".join(filter(None, chains))
        fig.alt = f"The feed-forward layer by hand, step by step: {by_hand}."
        pictures.append(fig)
    return pictures


def curve(
    of: Callable[[float], float], start: float, end: float, points: Mapping[float, str],
    xlabel: str, ylabel: str, high: float = 4.6,
) -> Picture:  # fmt: skip
    """A function from start to end, with points that have names."""
    fig = Picture(figsize=(WIDE, high), layout="constrained")
    ax = fig.subplots()
    xs = [start + (end - start) * n / 400 for n in range(401)]
    ax.plot(xs, [of(x) for x in xs], color=COLORS[0], lw=3.5)
    for x, name in points.items():
        ax.plot(x, of(x), "o", ms=13, color=COLORS[1])
        ax.annotate(name, (x, of(x)), (14, 8), fontsize=18, textcoords="offset points")
    ax.set_xlabel(xlabel, fontsize=17)
    ax.set_ylabel(ylabel, fontsize=17)
    ax.tick_params(labelsize=16)
    named = "; ".join(f"{name} at {x:.2g}" for x, name in points.items())
    fig.alt = f"A curve of {ylabel} over {xlabel}. {named or 'No point is marked'}."
    return fig
