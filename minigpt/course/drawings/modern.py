"""Drawings of notebook 08: what is new in a block, and what each new part does."""

import math
from typing import Any

import torch
from matplotlib.patches import Arc

from minigpt.course.drawings.canvas import (
    LOOKS,
    MIDDLE,
    Drawing,
    arrow,
    circle,
    pathway,
)
from minigpt.course.plots import COLORS, Picture, Style

AROUND = torch.linspace(0, 2 * math.pi, 200)
CIRCLE = torch.stack([AROUND.cos(), AROUND.sin()])  # (2, 200)


def block() -> Picture:
    """The block of 05 with the parts that have changed since GPT-2 standing out."""
    drawing = Drawing(7.4, 2.4)
    ax = drawing.ax
    ax.set(xlim=(-0.55, 6.95), ylim=(1.85, -0.8))
    pathway(ax, 0.35, 6.05, 1)
    new = LOOKS["new"][0]
    drawing.box("x", 0, 1, shape="(B, T, C)", width=0.8)
    for norm, fork, part, back, below in (
        ("norm1", 0.95, "attention", 2.4, "q and k turn with t"),
        ("norm2", 3.75, "feed-forward", 5.2, "with a gate"),
    ):
        drawing.box(norm, fork, 0, "norm", "no mean", "layer", 0.85, **new)
        drawing.box(part, back, 0, part, below, "layer", 1.55, **new)
        drawing.side_road(norm, part, 1)
    drawing.box("out", 6.4, 1, label="x", shape="(B, T, C)", width=0.8)
    drawing.arrows("x", "attention +", "feed-forward +", "out")
    ax.text(0.95, -0.6, "section 2", fontsize=12, **MIDDLE)
    ax.text(2.4, -0.6, "section 3", fontsize=12, **MIDDLE)
    ax.text(5.2, -0.6, "section 4", fontsize=12, **MIDDLE)
    below = "section 5: the optimizer, one step for a whole matrix"
    ax.text(3.2, 1.62, below, fontsize=12, **MIDDLE)
    drawing.fig.alt = (
        "The block from 05, with new parts highlighted: both norms, without a mean; "
        "attention, whose queries and keys are turned by their position; and the "
        "feed-forward layer, with a gate. The plus signs and the pathway haven't "
        "changed. Below is an optimizer that takes a step for a whole matrix at once."
    )
    return drawing.fig


def norms(rows: Any) -> Picture:
    """Rows of numbers as bars, one panel for each. rows: {title: (n,)}."""
    fig = Picture(figsize=(3.6 * len(rows), 3), layout="constrained")
    axes = fig.subplots(1, len(rows), sharey=True)
    for ax, (title, row) in zip(axes, rows.items()):
        row = row.tolist()
        ax.bar(range(len(row)), row, color=COLORS[0], width=0.6)
        for i, value in enumerate(row):
            shift = 0.3 if value >= 0 else -0.3
            ax.text(i, value + shift, f"{value:.2f}", fontsize=12, **MIDDLE)
        ax.axhline(0, color="black", lw=1, ls="-")
        ax.set(title=title, xticks=[], ylim=(min(-1.6, *row), 5.8))
        ax.grid(False)
    numbers = "; ".join(
        f"{title}: " + ", ".join(f"{v:.2f}" for v in row.tolist())
        for title, row in rows.items()
    )
    fig.alt = f"Four numbers as bars in {len(rows)} panels. {numbers}."
    return fig


def turned(panels: Any, theta: float) -> Picture:
    """A query and a key as arrows, each turned by theta times its position.

    panels: list of (position of the query, position of the key).
    """
    fig = Picture(figsize=(4.6 * len(panels), 3.5), layout="constrained")
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    for ax, (m, n) in zip(axes, panels):
        ax.set(xlim=(-1.75, 1.75), ylim=(-1.25, 1.25), aspect="equal")
        ax.set_axis_off()
        ax.plot(*CIRCLE.tolist(), color="0.8", lw=1.2, ls="-")
        for name, t, color, style in (
            ("query", m, COLORS[0], "-"),
            ("key", n, COLORS[1], "--"),
        ):
            x, y = math.cos(t * theta), math.sin(t * theta)
            look: Style = {"mutation_scale": 20, "lw": 3, "ls": style, "color": color}
            arrow(ax, (0, 0), (x, y), **look)
            at: Style = {"fontsize": 13, "color": color, "va": "center"}
            at["ha"] = "center" if abs(x) < 0.3 else "left" if x > 0 else "right"
            ax.text(1.06 * x, 1.12 * y, f"{name} at {t}", **at)
        start, end = sorted((math.degrees(m * theta), math.degrees(n * theta)))
        ax.add_patch(Arc((0, 0), 0.7, 0.7, theta1=start, theta2=end, lw=2))
        middle = math.radians((start + end) / 2)
        angle = f"{end - start:.0f}°"
        ax.text(0.52 * math.cos(middle), 0.52 * math.sin(middle), angle, **MIDDLE)
    told = "; ".join(
        f"the query at position {m} and the key at position {n} are "
        f"{abs(math.degrees((m - n) * theta)):.0f} degrees apart"
        for m, n in panels
    )
    each = math.degrees(theta)
    fig.alt = f"Arrows on a circle, turned by {each:.0f} degrees per position: {told}."
    return fig


def gate() -> Picture:
    """The feed-forward layer of 05, and below it the one with a gate."""
    drawing = Drawing(7.3, 3)
    drawing.ax.set(xlim=(-0.6, 6.75), ylim=(2.5, -0.75))
    drawing.ax.text(-0.5, -0.5, "05", fontsize=13, weight="bold")
    drawing.ax.text(-0.5, 0.95, "with a gate", fontsize=13, weight="bold")

    def row(boxes, y):
        for name, x, label, shape, kind, width in boxes:
            drawing.box(name, x, y, label, shape, kind, width)

    row([("x1", 0, "x", "C", "tensor", 0.7)], 0)
    row([("e1", 1.35, "expand", "C → 4 C", "layer", 1.1)], 0)
    row([("r1", 2.75, "ReLU", "bends", "layer", 0.9)], 0)
    row([("p1", 5.1, "proj", "4 C → C", "layer", 1.1)], 0)
    row([("o1", 6.35, "out", "C", "tensor", 0.7)], 0)
    drawing.arrows("x1", "e1", "r1", "p1", "o1")
    row([("x2", 0, "x", "C", "tensor", 0.7)], 1.65)
    row([("g2", 1.35, "gate", "C → 8/3 C", "layer", 1.1)], 1.25)
    row([("s2", 2.75, "SiLU", "bends", "layer", 0.9)], 1.25)
    row([("e2", 1.35, "expand", "C → 8/3 C", "layer", 1.1)], 2.1)
    row([("p2", 5.1, "proj", "8/3 C → C", "layer", 1.1)], 1.65)
    row([("o2", 6.35, "out", "C", "tensor", 0.7)], 1.65)
    circle(drawing.ax, 3.95, 1.65, "×")
    drawing.places["times"] = (3.95, 1.65, 0.16, 0.2)
    pairs = [("x2", "g2"), ("x2", "e2"), ("g2", "s2"), ("s2", "times"), ("e2", "times")]
    for start, end in [*pairs, ("times", "p2"), ("p2", "o2")]:
        drawing.arrow(start, end, sideways=True)
    drawing.fig.alt = (
        "Above, the feed-forward layer of 05: x, expand, ReLU, proj, out. Below, the "
        "one with a gate: x goes through two layers side by side; one of the results "
        "passes a SiLU, the two are multiplied number by number, then proj, out."
    )
    return drawing.fig


def circles(panels: dict[str, torch.Tensor], axes: torch.Tensor) -> Picture:
    """What 2×2 matrices do to a circle of arrows.

    panels: {title: (2, 2)}; axes: (2, 2), a column for each direction of the ellipses.
    """
    fig = Picture(figsize=(3.9 * len(panels), 4.1), layout="constrained")
    drawn = fig.subplots(1, len(panels), sharex=True, sharey=True)
    told = []
    for ax, (title, matrix) in zip(drawn, panels.items()):
        x, y = (matrix @ CIRCLE).tolist()
        ax.fill(x, y, color=COLORS[4], alpha=0.25)
        ax.plot(x, y, color=COLORS[0], lw=2, ls="-")
        S = (matrix.T @ axes).norm(dim=0)  # the length of each half axis
        for axis, size, style in zip(axes.T, S, ("-", "--")):
            tip = (size * axis).tolist()
            look: Style = {"mutation_scale": 18, "lw": 2.5, "ls": style}
            arrow(ax, (0, 0), tip, color=COLORS[1], **look)
        sizes = ", ".join(f"{size:.2f}" for size in S.tolist())
        ax.set(title=f"{title}\n{sizes}", aspect="equal")
        ax.set(xlim=(-1.7, 1.7), ylim=(-1.7, 1.7))
        told.append(f"{title}: an ellipse whose half axes are {sizes} long")
    fig.alt = "What a matrix does to a circle. " + "; ".join(told) + "."
    return fig
