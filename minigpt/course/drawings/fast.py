"""Drawings of notebook 09: what a cache keeps, and how a draft is checked."""

from functools import partial
from typing import Any

from minigpt.course.drawings import canvas
from minigpt.course.drawings.canvas import FILL, LIT, MIDDLE, arrow, cells, paper
from minigpt.course.plots import COLORS, Picture, Style

KEPT, NEW = FILL["tensor"], LIT
DRAFTED, ACCEPTED = "0.75", COLORS[4]
EMPTY: Style = {"ec": "0.7", "lw": 1.2, "ls": "--"}
square = partial(canvas.square, lw=1.4)


def work(T: int) -> Picture:
    """What T steps compute without a cache and with one. Each step has a row."""
    fig = Picture(figsize=(12, 0.42 * T + 1.6), layout="constrained")
    axes = fig.subplots(1, 2)
    totals = []
    for ax, cached in zip(axes, (False, True)):
        ax.set(xlim=(-1.9, T), ylim=(T - 0.3, -1.2), aspect="equal")
        ax.set_axis_off()
        for t in range(T):
            ax.text(-1.2, t, f"step {t}", fontsize=12, **MIDDLE)
            for position in range(t + 1):
                kept = cached and position < t
                square(ax, position, t, fc=KEPT if kept else NEW)
        computed = T if cached else T * (T + 1) // 2
        name = "with a cache" if cached else "without a cache"
        ax.text(T / 2 - 0.5, -0.95, f"{name}: {computed} computed", **MIDDLE)
        totals.append(computed)
    fig.alt = (
        f"Two staircases of {T} rows, a row for each step and a square for each "
        f"position that is read. Without a cache every square is computed, "
        f"{totals[0]} in all; with a cache only the last one of each row, {totals[1]} "
        "in all, and the others are kept."
    )
    return fig


def grown(text: Any) -> Picture:
    """A cache after each character of a text: what is new, what is kept, who asks."""
    T = len(text)
    fig = Picture(figsize=(3.3 * T, 3.9), layout="constrained")
    for t, ax in enumerate(fig.subplots(1, T)):
        ax.set(xlim=(-1.9, T - 0.4), ylim=(4.4, -1.1), aspect="equal")
        ax.set_axis_off()
        ax.text(T / 2 - 0.5, -0.85, f"step {t}", fontsize=14, weight="bold", **MIDDLE)
        for y, name in ((0, "text"), (1.1, "query"), (2.5, "keys"), (3.6, "values")):
            ax.text(-0.75, y, name, fontsize=13, ha="right", va="center")
        cells(ax, 0, 0, text[: t + 1], size=0.84)
        square(ax, t, 1.1, "q", fc=NEW, lw=2.2)
        for position in range(T):
            for y, letter in ((2.5, "k"), (3.6, "v")):
                if position > t:
                    square(ax, position, y, **EMPTY)
                else:
                    new: Style = (
                        {"fc": NEW, "lw": 2.2} if position == t else {"fc": KEPT}
                    )
                    square(ax, position, y, letter, **new)
            if position <= t:
                look: Style = {"mutation_scale": 12, "lw": 1.5, "color": COLORS[5]}
                arrow(ax, (t, 1.54), (position, 2.05), **look)
    fig.alt = (
        f"The cache in {T} steps, while {text!r} is read. In each step the newest "
        "character alone gets a query, a key and a value. Its key and its value join "
        "those that are kept from the steps before, and its query meets all the keys. "
        "No query is kept."
    )
    return fig


def checked(text: Any, drafted: Any, kept: Any, written: Any) -> Picture:
    """One round: a draft, the pass that checks it, and what the text is afterwards.

    text: what was there; drafted: the guess; kept: how much of it is accepted; written:
    the character that the model adds.
    """
    n, k = len(text), len(drafted)
    size = (0.62 * (n + k) + 4.6, 3.2)
    fig, ax = paper(size, (-6.6, n + k + 0.2), (4.6, -0.8), aspect="equal")
    for y, name in (
        (0, "the draft guesses"),
        (1.6, "one pass checks all"),
        (3.9, "the text is now"),
    ):
        ax.text(-0.8, y, name, fontsize=14, ha="right", va="center")
    for y in (0, 1.6):
        cells(ax, 0, y, text, KEPT)
        cells(ax, n, y, drafted, ls="--")
    for i in range(k):
        mark = "✓" if i < kept else "✗" if i == kept else "–"
        color = COLORS[2] if i < kept else COLORS[1] if i == kept else "0.4"
        look: Style = {"fontsize": 18, "weight": "bold", "color": color}
        ax.text(n + i, 2.6, mark, **MIDDLE, **look)
    cells(ax, 0, 3.9, text + drafted[:kept], KEPT)
    cells(ax, n + kept, 3.9, written, NEW, lw=2.2)
    fig.alt = (
        f"One round in three rows. After {text!r}, a draft guesses {drafted!r}. One "
        "pass "
        f"checks all of it: {kept} are accepted, the next one is refused, and the "
        f"rest is thrown away. Then the text is {text + drafted[:kept] + written!r}; "
        "its last "
        "character is the model's own."
    )
    return fig


def shared_out(p: Any, q: Any, names: Any) -> Picture:
    """How a draft's probabilities q become the model's p, (V,) each: what's accepted,
    and what refusals add."""
    accepted = [min(a, b) for a, b in zip(p, q)]
    lacking = [a - b for a, b in zip(p, accepted)]
    zeros = [0.0] * len(p)
    panels = (
        ("drafted: q", q, zeros, DRAFTED),
        ("accepted: min(p, q)", accepted, zeros, ACCEPTED),
        ("added after refusals", zeros, lacking, ACCEPTED),
        ("together: p", accepted, lacking, ACCEPTED),
    )
    fig = Picture(figsize=(12.5, 3.4), layout="constrained")
    for ax, panel in zip(fig.subplots(1, 4, sharey=True), panels):
        title, below, above, color = panel
        places = range(len(names))
        ax.bar(places, below, color=color, ec="black", width=0.6)
        look: Style = {"color": NEW, "ec": "black", "hatch": "//", "width": 0.6}
        ax.bar(places, above, bottom=below, **look)
        for x, height in enumerate(a + b for a, b in zip(below, above)):
            ax.text(x, height + 0.04, f"{height:.1f}", fontsize=13, **MIDDLE)
        ax.set(title=title, ylim=(0, 0.85), xticks=[*places])
        ax.set_xticklabels(names, family="monospace")
        ax.grid(False)

    def said(values):
        return ", ".join(f"{name} {x:.1f}" for name, x in zip(names, values))

    fig.alt = (
        f"Four panels of bars. Drafted: {said(q)}. Accepted: {said(accepted)}. Added "
        f"after refusals: {said(lacking)}. The last two on top of each other: "
        f"{said(p)}, the model's probabilities."
    )
    return fig
