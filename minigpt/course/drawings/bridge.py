"""Drawings of notebook 14: two tables of parameters, and where the numbers are."""

import re
from collections.abc import Iterable

import torch
import torch.nn as nn

from minigpt.course.drawings.canvas import LOOKS, MIDDLE, frame, paper
from minigpt.course.plots import COLORS, Picture, Style

PARTS = {  # what's in the names of their parameters
    "tokens": "token_embedding",
    "positions": "position_embedding",
    "attention": "attention",
    "feed-forward": "feed_forward",
    "norms": "norm",  # and the last one, named after its place
    "output layer": "lm_head",
}


def tables(
    ours: dict[str, torch.Tensor],
    theirs: dict[str, torch.Tensor],
    partner: dict[str, str],
    turned: Iterable[str] = (),
) -> Picture:
    """The tables of a GPT and of GPT-2 side by side, each with its first block only.
    Lines connect rows that hold the same thing.

    partner: {name in ours: name in theirs}. turned: the endings of their names whose
    matrices have rows and columns swapped. Those lines are dashed. Rows without a line
    stand out.
    """
    mine = {n: tuple(t.shape) for n, t in ours.items() if in_first_block(n)}
    other = {short(n): tuple(t.shape) for n, t in theirs.items() if in_first_block(n)}
    known = {a: short(b) for a, b in partner.items()}
    return side_by_side(("your GPT", mine), ("GPT-2", other), known, turned)


def short(name: str) -> str:
    """A name the way OpenAI's file has it."""
    return name.removeprefix("transformer.")


def in_first_block(name: str) -> bool:
    """Whether a row isn't from a block after the first."""
    found = re.match(r"(?:body|transformer\.h)\.(\d+)\.\w+\.", name)
    return found is None or found[1] == "0"


def side_by_side(
    ours: tuple[str, dict[str, tuple]],
    theirs: tuple[str, dict[str, tuple]],
    partner: dict[str, str],
    turned: Iterable[str],
) -> Picture:
    """`tables` of (title, {name: shape}) each."""
    n = max(len(ours[1]), len(theirs[1]))
    fig, ax = paper((13, 0.36 * n + 0.5), (0, 13), (n + 0.1, -1.05))
    lines = [(a, b) for a, b in partner.items() if a in ours[1] and b in theirs[1]]
    met = {name for pair in lines for name in pair}
    rows = [{name: i for i, name in enumerate(table)} for _, table in (ours, theirs)]
    for (title, table), left, width in ((ours, 0.1, 5.35), (theirs, 7.1, 5.8)):
        ax.text(left + width / 2, -0.6, title, fontsize=14, weight="bold", **MIDDLE)
        for i, (name, shape) in enumerate(table.items()):
            look, color, weight = LOOKS["built" if name in met else "new"]
            frame(ax, left, i + 0.06, width, 0.88, 0, **look)
            letters: Style = {"family": "monospace", "fontsize": 11.5, "va": "center"}
            letters |= {"color": color, "weight": weight}
            ax.text(left + 0.12, i + 0.5, name, **letters)
            sizes = " × ".join(f"{size:,}" for size in shape)
            right = left + width - 0.12
            ax.text(right, i + 0.5, sizes, ha="right", **letters)
    for a, b in lines:
        heights = [rows[0][a] + 0.5, rows[1][b] + 0.5]
        other = b.endswith(tuple(turned))
        style: Style = {"ls": "--", "color": COLORS[1]} if other else {"ls": "-"}
        style = {"color": COLORS[0], "lw": 2.2} | style
        ax.plot([5.5, 7.05], heights, solid_capstyle="round", **style)
    alone = [[n for n in table if n not in met] for _, table in (ours, theirs)]
    same = []
    for a, b in lines:
        same.append(f"{a} is {b}")
        if b.endswith(tuple(turned)):
            same[-1] += ", transposed"
    fig.alt = (
        f"Two tables of names and shapes, {ours[0]} and {theirs[0]}, with lines between"
        f" their rows: {'; '.join(same)}. Without a partner: {', '.join(alone[0])} on "
        f"the left, {', '.join(alone[1]) or 'none'} on the right."
    )
    return fig


def counts(model: nn.Module) -> dict[str, int]:
    """{part: its parameters}. Tied parameters count once, on the input side."""
    found = dict.fromkeys(PARTS, 0)
    for name, p in model.named_parameters():
        part = next((part for part, key in PARTS.items() if key in name), "norms")
        found[part] += p.numel()
    return found


def where(models: dict[str, nn.Module]) -> Picture:
    """Where models have their parameters: a panel for each model, a bar for each
    part."""
    rows = {title: counts(model) for title, model in models.items()}
    parts = list(PARTS)
    fig = Picture(figsize=(13, 0.62 * len(parts) + 0.9), layout="constrained")
    axes = fig.subplots(1, len(rows), sharey=True)
    told = []
    for ax, (title, row), color in zip(axes, rows.items(), (COLORS[0], COLORS[4])):
        total = sum(row.values())
        shares = [row[part] / total for part in parts]
        look: Style = {"color": color, "edgecolor": "black", "height": 0.62}
        ax.barh(range(len(parts)), shares, **look)
        for i, part in enumerate(parts):
            label = f"{row[part]:,}"
            ax.text(shares[i] + 0.012, i, label, fontsize=12, va="center")
        ax.set(title=f"{title}: {total:,}", xlim=(0, 1), xlabel="share of all numbers")
        ax.set_yticks(range(len(parts)), parts)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.grid(False, axis="y")
        said = ", ".join(f"{p} {s:.0%}" for p, s in zip(parts, shares))
        told.append(f"{title}, {total:,} in all: {said}")
    axes[0].invert_yaxis()
    fig.alt = f"Bars: where the parameters are. {'; '.join(told)}."
    return fig
