"""Drawings that stand on slides alone, as large as a lecture hall needs them."""

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from minigpt.course.drawings.canvas import FILL
from minigpt.course.drawings.spine import MIDDLE, cells
from minigpt.course.plots import COLORS, Picture, Style
from minigpt.generation import probabilities
from minigpt.optimizer import learning_rate_at
from minigpt.training import preset

LETTERS: Style = {"fontsize": 17}


def relu() -> Picture:
    """The bend between the two layers of a feed-forward layer."""
    fig = Picture(figsize=(9, 4.2), layout="constrained")
    ax = fig.subplots()
    ax.plot([-3, 0, 3], [0, 0, 3], color=COLORS[0], lw=4)
    ax.axhline(0, color="0.6", lw=1)
    ax.axvline(0, color="0.6", lw=1)
    ax.text(-2.9, 0.25, "negative: becomes 0", **LETTERS)
    ax.text(0.35, 2.5, "positive: stays", ha="left", **LETTERS)
    ax.set_xlabel("what comes in, x", **LETTERS)
    ax.set_ylabel("max(0, x)", **LETTERS)
    ax.tick_params(labelsize=15)
    ax.set(xlim=(-3, 3), ylim=(-0.4, 3.1))
    fig.alt = (
        "The ReLU: a line that is flat at 0 left of 0 and from there rises as fast as "
        "its input. Negative numbers become 0, positive ones stay."
    )
    return fig


def schedule() -> Picture:
    """The learning rate over the steps of preset `cpu`: warm-up, then half a cosine."""
    _, recipe = preset("cpu", vocab_size=65)
    steps = range(recipe.steps)
    fig = Picture(figsize=(11, 4.2), layout="constrained")
    ax = fig.subplots()
    rates = [learning_rate_at(step, recipe) for step in steps]
    ax.plot(steps, rates, color=COLORS[0], lw=4)
    ax.axvspan(0, recipe.warmup_steps, color=COLORS[1], alpha=0.18, lw=0)
    top = recipe.learning_rate
    near = (recipe.warmup_steps * 1.6, 0.12 * top)
    ax.text(*near, f"warm-up: {recipe.warmup_steps} steps", color=COLORS[1], **LETTERS)
    ax.text(0.52 * recipe.steps, 0.6 * top, "half a cosine", color=COLORS[0], **LETTERS)
    ax.set_xlabel("step", **LETTERS)
    ax.set_ylabel("learning rate", **LETTERS)
    ax.tick_params(labelsize=15)
    ax.set(xlim=(0, recipe.steps), ylim=(0, 1.08 * top))
    fig.alt = (
        f"The learning rate rises in a straight line to {top} over "
        f"{recipe.warmup_steps} steps, then falls along half a cosine to 0 at step "
        f"{recipe.steps}."
    )
    return fig


def roles() -> Picture:
    """Who asks, by what a letter is found, and what it hands over, in a line of 03."""
    line, asker, found = "strong hat", 5, 4
    fig = Picture(figsize=(12, 2.9), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(-3.6, len(line) + 6.4), ylim=(3.3, -1.6))
    ax.set_axis_off()
    cells(ax, 0, 0.9, line, FILL["tensor"], fontsize=18)
    cells(ax, asker, 0.9, line[asker], "#F5A623", fontsize=18)
    cells(ax, found, 0.9, line[found], "#BFE3C8", fontsize=18)
    look: dict = {"arrowstyle": "-|>", "lw": 2.5, "mutation_scale": 22}
    over = look | {"color": COLORS[1], "connectionstyle": "arc3,rad=0.9"}
    ax.annotate("", (found, 0.35), (asker, 0.35), arrowprops=over)
    under = look | {"color": COLORS[2], "connectionstyle": "arc3,rad=0.9"}
    ax.annotate("", (asker, 1.45), (found, 1.45), arrowprops=under)
    style: Style = {"fontsize": 15, "va": "center"}
    ax.text(asker + 0.6, -1.1, "query of g: a vowel before it, and late?", **style)
    ax.text(asker + 0.6, 2.7, "value of n: the letter n", **style)
    ax.text(
        found - 0.6, -1.1, "key of n: a vowel stands before me", ha="right", **style
    )
    fig.alt = (
        "The line 'strong hat'. The g asks with its query: where does a vowel stand "
        "before a letter, and late? The key of the n answers, and its value, the "
        "letter n, goes to the g."
    )
    return fig


def saturation() -> Picture:
    """The weights of 03's five scores times 1, 4 and 8, and how much the largest one
    reacts: its slopes, added up without their signs."""
    row = torch.tensor([0.3, -1.1, 1.0, -0.6, 1.5])
    fig = Picture(figsize=(12, 3.9), layout="constrained")
    axes = fig.subplots(1, 3, sharey=True)
    told = []
    for ax, factor in zip(axes, (1, 4, 8)):
        z = (row * factor).requires_grad_()
        weights = F.softmax(z, dim=-1)
        (slopes,) = torch.autograd.grad(weights[-1], z)
        total = slopes.abs().sum().item()
        shown = weights.tolist()
        ax.bar(range(5), shown, color=COLORS[0])
        for x, weight in enumerate(shown):
            ax.text(x, weight + 0.05, f"{weight:.2f}", fontsize=15, **MIDDLE)
        ax.set_title(f"times {factor}", fontsize=18)
        ax.set_xlabel(f"slopes {total:.2f}", fontsize=18, color=COLORS[1])
        ax.set(ylim=(0, 1.12), xticks=[], yticks=[])
        ax.grid(False)
        numbers = ", ".join(f"{weight:.2f}" for weight in shown)
        told.append(f"times {factor}: {numbers}; slopes {total:.2f}")
    fig.alt = f"Three panels of five weights, {'. '.join(told)}."
    return fig


def grid(ax: Axes, table: list[list[str]], lit: set[tuple[int, int]]) -> None:
    """A table of words as squares; lit: (row, column) of those that stand out."""
    ax.set(xlim=(-0.1, len(table[0]) + 0.1), ylim=(len(table) + 0.1, -0.1))
    ax.set_aspect("equal")
    ax.set_axis_off()
    for y, row in enumerate(table):
        for x, word in enumerate(row):
            fill = "#F5A623" if (y, x) in lit else FILL["tensor"] if word else "white"
            ax.add_patch(Rectangle((x, y), 1, 1, fc=fill, ec="0.35", lw=1.4))
            ax.text(x + 0.5, y + 0.5, word, fontsize=17, **MIDDLE)


def leak() -> Picture:
    """The softmax of 03's piece of three positions over the wrong dimension, before and
    after the last position asks for something else."""
    before = torch.tensor([[1.0, 0, 0], [1, 1, 0], [2, 1, 1]])
    after = before.clone()
    after[2, 0] = 6
    fig = Picture(figsize=(12, 4.1), layout="constrained")
    panels = (
        ("right: each row / its sum", before, 1, set()),
        ("wrong: each column / its sum", before, 0, set()),
        ("the last row asks anew", after, 0, {(0, 0), (1, 0), (2, 0)}),
    )
    told = []
    for ax, (title, exp, dim, lit) in zip(fig.subplots(1, 3), panels):
        table = exp / exp.sum(dim=dim, keepdim=True)
        words = [[f"{v:.3f}".rstrip("0").rstrip(".") for v in row] for row in table]
        seen = [
            [w if x <= y else "" for x, w in enumerate(r)] for y, r in enumerate(words)
        ]
        grid(ax, seen, lit)
        ax.set_title(title, fontsize=18)
        told.append(f"{title}: {'; '.join(', '.join(row) for row in words)}")
    fig.alt = f"Three tables of weights. {'. '.join(told)}."
    return fig


def masks() -> Picture:
    """Who may look at whom: with a mask, without one, and from one text at another."""
    fig = Picture(figsize=(12, 3.9), layout="constrained")
    line, other = "roma", "rome"
    panels = (
        ("ours: the past", line, line, lambda y, x: x <= y),
        ("encoder: all", line, line, lambda y, x: True),
        ("cross-attention: another text", line, other, lambda y, x: True),
    )
    for ax, (title, asks, asked, may) in zip(fig.subplots(1, 3), panels):
        rows = [[" " if may(y, x) else "" for x in range(len(asked))] for y in range(4)]
        grid(ax, rows, set())
        for y, letter in enumerate(asks):
            ax.text(-0.4, y + 0.5, letter, fontsize=18, family="monospace", **MIDDLE)
        for x, letter in enumerate(asked):
            ax.text(x + 0.5, -0.4, letter, fontsize=18, family="monospace", **MIDDLE)
        ax.set(xlim=(-0.8, len(asked) + 0.1), ylim=(4.1, -0.8))
        ax.set_title(title, fontsize=18)
    fig.alt = (
        "Three grids, a row for who looks and a column for who is looked at. Ours: the "
        "lower triangle is filled. Encoder: all cells are. Cross-attention: all cells, "
        "and the columns are the letters of another text."
    )
    return fig


def gradients() -> Picture:
    """The gradients of 06's three parameters over some steps: which should move how?"""
    fig = Picture(figsize=(12, 3.4), layout="constrained")
    series = (
        ("always 4", [4.0] * 16),
        ("always 0.04", [0.04] * 16),
        ("4 and −4 in turn", [4.0, -4.0] * 8),
    )
    for ax, (title, values) in zip(fig.subplots(1, 3, sharey=True), series):
        ax.bar(range(16), values, color=COLORS[0])
        ax.axhline(0, color="0.4", lw=1)
        ax.set_title(title, fontsize=18)
        ax.set_xlabel("step", fontsize=17)
        ax.set(ylim=(-5, 5), xticks=[], yticks=[-4, 0, 4])
        ax.tick_params(labelsize=16)
    fig.axes[0].set_ylabel("gradient", fontsize=17)
    fig.alt = (
        "The gradients of three parameters over 16 steps, as bars: always 4, always "
        "0.04, and 4 and −4 in turn."
    )
    return fig


def knobs() -> Picture:
    """What temperature and top-k make of 06's four logits."""
    logits = torch.tensor([[2.0, 1.0, 0.5, -1.0]])
    panels: tuple[tuple[str, dict], ...] = (
        ("as they are", {}),
        ("temperature 0.5", {"temperature": 0.5}),
        ("temperature 2", {"temperature": 2.0}),
        ("top-k 2", {"top_k": 2}),
    )
    fig = Picture(figsize=(12, 4), layout="constrained")
    told = []
    for ax, (title, knob) in zip(fig.subplots(1, 4, sharey=True), panels):
        shown = probabilities(logits, **knob)[0].tolist()
        ax.bar(range(4), shown, color=COLORS[0])
        for x, p in enumerate(shown):
            ax.text(x, p + 0.05, f"{p:.3f}", fontsize=15, **MIDDLE)
        ax.set_title(title, fontsize=18)
        ax.set(ylim=(0, 1), xlim=(-0.6, 3.6), yticks=[])
        ax.set_xticks(range(4), ["2", "1", "0.5", "−1"], fontsize=16)
        ax.grid(False)
        told.append(f"{title}: {', '.join(f'{p:.3f}' for p in shown)}")
    fig.supxlabel("logit", fontsize=17)
    fig.alt = f"Probabilities of four characters as bars. {'; '.join(told)}."
    return fig


def dropped() -> Picture:
    """What dropout makes of eight ones, in training and in evaluation, as in 05."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1337)
        training = F.dropout(torch.ones(8), 0.25).tolist()
    rows = [("training", training), ("evaluation", [1.0] * 8)]
    fig = Picture(figsize=(12, 2.9), layout="constrained")
    ax = fig.subplots()
    grid(
        ax,
        [
            [f"{v:.2f}" if v not in (0, 1) else f"{v:.0f}" for v in row]
            for _, row in rows
        ],
        {(0, x) for x, v in enumerate(training) if not v},
    )
    for y, (name, _) in enumerate(rows):
        ax.text(-0.2, y + 0.5, name, fontsize=18, ha="right", va="center")
    ax.set(xlim=(-1.9, 8.1))
    fig.alt = (
        "Eight ones behind dropout of a quarter. In training: "
        f"{', '.join(f'{v:.2f}' for v in training)}. In evaluation all stay 1."
    )
    return fig
