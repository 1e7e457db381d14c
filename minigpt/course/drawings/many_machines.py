"""Drawings of notebook 10: workers that average, a ring in steps, who holds what."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.patches import Circle, Rectangle

from minigpt.course.drawings.canvas import FILL, FOUND, MIDDLE, Drawing, arrow
from minigpt.course.plots import COLORS, Picture, Style


def averaging(
    reads: Sequence[float], gradients: Sequence[float], before: float, after: float
) -> Picture:
    """Workers side by side: each reads its own rows, all average, all take one step.

    reads, gradients: a number for each worker; before, after: the parameter.
    """
    n, mean = len(reads), sum(gradients) / len(gradients)
    drawing = Drawing(n + 1.2, 3.6)
    ax = drawing.ax
    ax.set(xlim=(-1.55, n - 0.25), ylim=(3.55, -0.75))
    for y, label in enumerate(["reads", "its gradient", "together", "its step"]):
        ax.text(-0.8, 0.95 * y, label, fontsize=13, ha="right", va="center")
    wide = n - 0.1
    drawing.box("mean", (n - 1) / 2, 1.9, f"the mean: {mean:g}", None, "layer", wide)
    x_mean, y_mean, _, half = drawing.places["mean"]
    for i, (read, gradient) in enumerate(zip(reads, gradients)):
        ax.text(i, -0.6, f"worker {i}", fontsize=13, weight="bold", **MIDDLE)
        drawing.box(f"x{i}", i, 0, f"{read:g}", width=0.75)
        drawing.box(f"g{i}", i, 0.95, f"{gradient:g}", width=0.75)
        drawing.box(f"w{i}", i, 2.85, f"w: {before:g} → {after:g}", width=0.9)
        drawing.places["here"] = (i, y_mean, 0, half)
        drawing.arrow(f"x{i}", f"g{i}", sideways=False)
        drawing.arrow(f"g{i}", "here", sideways=False)
        drawing.arrow("here", f"w{i}", sideways=False)
    drawing.fig.alt = (
        f"{n} workers side by side read {', '.join(f'{v:g}' for v in reads)} and find "
        f"the gradients {', '.join(f'{v:g}' for v in gradients)}. The mean of all, "
        f"{mean:g}, goes back to each, and each moves w from {before:g} to {after:g}."
    )
    return drawing.fig


def ring(states: Any) -> Picture:
    """An all-reduce in a ring, step by step, and the ring itself.

    states: (title, data, arrived) for each step; data: a row of chunks for each worker;
    arrived: the (worker, chunk) pairs that have just come in.
    """
    n = len(states[0][1])
    whole = [sum(column) for column in zip(*states[0][1])]
    columns = math.ceil((len(states) + 1) / 2)
    fig = Picture(figsize=(13.2, 0.44 * 2 * n + 2.4), layout="constrained")
    axes = fig.subplots(2, columns).flatten()
    for ax in axes:
        ax.set(xlim=(-0.75, n + 0.05), ylim=(n + 0.05, -0.1), aspect="auto")
        ax.set_axis_off()
    for ax, (title, data, arrived) in zip(axes[1:], states):
        ax.set_title(title, fontsize=13)
        for worker, row in enumerate(data):
            small: Style = {"fontsize": 12, "color": "0.3"}
            ax.text(-0.35, worker + 0.5, f"{worker}", **small, **MIDDLE)
            for chunk, value in enumerate(row):
                fill = FOUND if value == whole[chunk] else "white"
                look: Style = {"ec": "0.4", "lw": 1}
                if (worker, chunk) in arrived:
                    look = {"ec": COLORS[1], "lw": 3, "zorder": 2}
                corner = (chunk + 0.04, worker + 0.06)
                ax.add_patch(Rectangle(corner, 0.92, 0.88, fc=fill, **look))
                at = (chunk + 0.5, worker + 0.5)
                ax.text(*at, f"{value}", fontsize=11.5, zorder=3, **MIDDLE)
    ax = axes[0]
    ax.set(xlim=(-1.6, 1.6), ylim=(-1.45, 1.45), aspect="equal")
    ax.set_title("each worker sends to the next", fontsize=13)
    places = [
        (math.sin(2 * math.pi * i / n), math.cos(2 * math.pi * i / n)) for i in range(n)
    ]
    for i, start in enumerate(places):
        end = places[(i + 1) % n]
        look: Style = {"mutation_scale": 18, "lw": 2.2, "color": COLORS[1]}
        look |= {"shrinkA": 19, "shrinkB": 19, "connectionstyle": "arc3,rad=-0.25"}
        arrow(ax, start, end, **look)
        ax.add_patch(Circle(start, 0.3, fc=FILL["tensor"], ec="0.25", lw=1.5))
        ax.text(*start, f"{i}", fontsize=13, **MIDDLE)
    for ax in axes[len(states) + 1 :]:
        ax.remove()
    first, last = states[0][1], states[-1][1]
    fig.alt = (
        f"{n} workers in a ring; each sends to the next. Beside it, the numbers "
        f"that each holds, step by step, from {first} to {last}; what has just arrived "
        "has a thick border, and finished sums are colored: "
        + "; ".join(
            f"{title}: {sum(v == w for row in data for v, w in zip(row, whole))} "
            f"of {n * n} finished"
            for title, data, _ in states
        )
        + "."
    )
    return fig


# Bytes per parameter:
HELD = [("parameters", 4), ("gradients", 4), ("AdamW's averages", 8)]


def memory(n: int) -> Picture:
    """What each of n workers holds with DDP and with FSDP, in bytes per parameter."""
    fig = Picture(figsize=(12, 3.9), layout="constrained")
    axes = fig.subplots(1, 2, sharey=True)
    for ax, name, share in ((axes[0], "DDP", 1), (axes[1], "FSDP", 1 / n)):
        for worker in range(n):
            bottom = 0
            for (label, size), color, hatch in zip(HELD, COLORS, ("", "//", "..")):
                look: Style = {"color": color, "edgecolor": "white", "hatch": hatch}
                shown = label if worker == 0 and share == 1 else None
                held = size * share
                ax.bar(worker, held, 0.7, bottom, label=shown, **look)
                bottom += held
            ax.text(worker, bottom + 0.5, f"{bottom:g}", fontsize=13, ha="center")
        names = [f"worker {i}" for i in range(n)]
        ax.set(title=name, ylim=(0, 19), xticks=range(n), xticklabels=names)
        ax.grid(False)
    axes[0].set(ylabel="bytes per parameter")
    fig.legend(loc="outside right center", fontsize=12, reverse=True)
    total = sum(size for _, size in HELD)
    fig.alt = (
        f"Bars for {n} workers, in bytes per parameter. With DDP each holds {total}: "
        + ", ".join(f"{label} {size}" for label, size in HELD)
        + f". With FSDP each holds a part of each, {total / n:g} together."
    )
    return fig
