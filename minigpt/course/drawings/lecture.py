"""Drawings that stand on slides alone, as large as a lecture hall needs them."""

from minigpt.course.plots import COLORS, Picture, Style
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
