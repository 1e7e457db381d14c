"""Figures in one house style: readable on a projector, and without color vision."""

import base64
import html
import io
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from minigpt.course.ladder import Rung
from minigpt.training import Run

Style = dict[str, Any]  # matplotlib's arguments for how something looks

# Okabe and Ito's colors. Markers and dashes tell them apart, too.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000"]
STYLES = ["-", "--", "-.", ":", "-", "--"]
plt.rcParams.update(
    {
        "axes.prop_cycle": cycler(color=COLORS) + cycler(linestyle=STYLES),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "figure.figsize": (8, 4.5),
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "font.size": 14,
        "lines.linewidth": 2.5,
    }
)


class Picture(Figure):
    """A figure that knows its own alternative text."""

    alt = ""


def show(fig: Figure, alt: str | None = None) -> None:
    """Display `fig` with its alternative text, then close it.

    A Picture, like all figures in this package, knows its own.
    """
    if alt is None and isinstance(fig, Picture):
        alt = fig.alt
    _display(fig, alt)


def _display(fig: Figure, alt: str | None, handle: Any = None) -> Any:
    """Display, or replace the picture of `handle` in place; returns the handle."""
    from IPython.display import display  # only notebooks need IPython

    if not alt:
        raise ValueError("Describe the figure in `alt`, for readers who cannot see it.")
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", bbox_inches="tight", metadata={"Software": None})
    plt.close(fig)
    png = base64.b64encode(buffer.getvalue()).decode("ascii")
    content = {"image/png": png, "text/html": image(png, alt)}
    content["text/plain"] = f"Figure: {alt}"  # what tests compare
    metadata = {"image/png": {"alt": alt}}
    if handle is None:
        return display(content, metadata=metadata, raw=True, display_id=True)
    handle.update(content, metadata=metadata, raw=True)
    return handle


def image(png: str, alt: str) -> str:
    """The HTML of a picture (base64) and its alternative text.

    JupyterLab and Colab show the HTML if there is any. Neither reads a PNG's metadata
    aloud.
    """
    return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{png}">'


def heatmap(
    ax: Axes,
    matrix: torch.Tensor,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    digits: int | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    label: str | None = None,
) -> Any:
    """Draw a (R, C) tensor, light where little happens; returns the image.

    rows, columns: labels; digits writes each value into its cell; label names the
    color bar (None: no bar, for panels that share one that the caller draws).
    """
    matrix = matrix.detach().cpu()
    image = ax.imshow(matrix, cmap="YlGnBu", vmin=vmin, vmax=vmax, aspect="auto")
    ax.grid(False)
    if rows is not None:
        ax.set_yticks(range(len(rows)), rows, family="monospace")
    if columns is not None:
        ax.set_xticks(range(len(columns)), columns, family="monospace")
    if digits is not None:
        low, high = image.get_clim()
        for r, row in enumerate(matrix.tolist()):
            for c, value in enumerate(row):
                color = "white" if value > low + 0.6 * (high - low) else "black"
                text = f"{value:.{digits}f}"
                ax.text(c, r, text, ha="center", va="center", color=color, fontsize=11)
    if label is not None:
        ax.figure.colorbar(image, ax=ax, label=label)
    return image


def attention_maps(text: Sequence, panels: dict, alt: str) -> Picture:
    """Heatmaps of attention, the text (or positions) on both axes; four are 2 by 2.

    panels: {title: weights (T, T)}, a row of weights for the character that looks, a
    column for the one that is looked at.
    """
    columns = 2 if len(panels) == 4 else len(panels)
    rows = len(panels) // columns
    height = 5.4 if rows == 1 else 3.6
    fig = Picture(figsize=(5.6 * columns + 1.2, height * rows), layout="constrained")
    grid = fig.subplots(rows, columns, squeeze=False)
    axes = grid.flatten()
    letters = [{" ": "␣", "\n": "↵"}.get(char, char) for char in text]
    for ax, (title, weights) in zip(axes, panels.items()):
        image = heatmap(ax, weights, letters, letters, vmin=0, vmax=1)
        ax.set(title=title, xlabel="looked at")
    for ax in grid[:, 0]:
        ax.set_ylabel("looks")
    fig.colorbar(image, ax=axes, label="weight")
    fig.alt = alt
    return fig


def training_curve(
    losses: Sequence[float],
    goal: float | None = None,
    goal_label: str | None = None,
    mean_of: int = 100,
) -> Picture:
    """The loss of each batch in gray, and the mean of every `mean_of` of them in black.

    losses: one number per step, in nats per character; goal: a dotted line at this
    loss.
    """
    fig = Picture(figsize=(8, 4.2), layout="constrained")
    ax = fig.subplots()
    ax.plot(losses, lw=0.5, color="0.7", linestyle="-", label="each batch")
    whole = len(losses) // mean_of * mean_of
    means = np.array(losses[:whole]).reshape(-1, mean_of).mean(axis=1)
    middles = np.arange(mean_of // 2, whole, mean_of)
    label = f"mean of {mean_of} batches"
    ax.plot(middles, means, color="black", linestyle="-", label=label)
    if goal is not None:
        ax.axhline(goal, color=COLORS[1], linestyle=":", label=goal_label)
    ax.set(xlabel="step", ylabel="loss (nats per character)")
    ax.legend()
    end = "" if goal is None else f" just above the dotted line, {goal_label}"
    fig.alt = f"The loss falls steeply at first, then flattens{end}; single batches "
    fig.alt += "scatter around the mean."
    return fig


def lines(
    curves: dict, xs: Iterable, xlabel: str, ylabel: str, log: bool = False
) -> Picture:
    """A line for each of {name: numbers over xs}; log: a logarithmic y axis."""
    fig = Picture(figsize=(8, 4.2), layout="constrained")
    ax = fig.subplots()
    for (name, ys), marker in zip(curves.items(), "os^Dv"):
        many = len(ys) > 50  # points so dense that their markers would be a thick line
        ax.plot(list(xs), ys, marker=None if many else marker, label=name)
    if log:
        ax.set_yscale("log")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend()
    ends = [f"{name} from {ys[0]:.2g} to {ys[-1]:.2g}" for name, ys in curves.items()]
    fig.alt = f"{ylabel}, over {xlabel}: {'; '.join(ends)}."
    return fig


def laid_over(curves: dict, ylabel: str) -> Picture:
    """Two runs over their steps: the first broad and pale, the second thin on top."""
    fig = Picture(figsize=(8, 4.2), layout="constrained")
    ax = fig.subplots()
    looks: list[Style] = [
        {"lw": 7, "alpha": 0.4},
        {"lw": 1.5, "color": "black", "linestyle": "-"},
    ]
    for (name, ys), look in zip(curves.items(), looks):
        ax.plot(range(1, len(ys) + 1), ys, label=name, **look)
    ax.set(xlabel="step", ylabel=ylabel)
    ax.legend()
    broad, thin = curves
    start, end = (curves[broad][i] for i in (0, -1))
    fig.alt = f"{ylabel}, from {start:.2f} to {end:.2f} over the steps: {broad}, a "
    fig.alt += f"thick line, and {thin}, a thin line on top of it."
    return fig


def tables(panels: dict, characters: str) -> Picture:
    """Heatmaps of tables side by side, a row for each character seen.

    panels: {title: ln of the probabilities (V, V)}; characters: the V of them.
    """
    letters = [{" ": "␣", "\n": "↵"}.get(char, char) for char in characters]
    fig = Picture(figsize=(7 * len(panels), 7), layout="constrained")
    axes = fig.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (title, table) in zip(axes, panels.items()):
        image = heatmap(ax, table, letters, letters, vmin=-8, vmax=0)
        ax.set(title=title, xlabel="next character")
    axes[0].set_ylabel("character seen")
    fig.colorbar(image, ax=axes, label="ln probability")
    fig.alt = (
        f"Heatmaps of {len(characters)} by {len(characters)} characters, one for each "
        f"table: {', '.join(panels)}. A row is the character seen, a column the next."
    )
    return fig


class LiveCurve:
    """The loss curve of a running training, redrawn in place: on_eval=curve.update."""

    def __init__(
        self, alt: str, goal: float | None = None, goal_label: str | None = None
    ) -> None:
        self.alt, self.goal, self.goal_label = alt, goal, goal_label
        self.handle = None

    def update(self, run: Run) -> None:
        """run: the Run of the training, evaluated at least once."""
        fig, ax = plt.subplots()
        steps = [row.step for row in run.history]
        train_loss = [row.train_loss for row in run.history]
        val_loss = [row.val_loss for row in run.history]
        ax.plot(steps, train_loss, label="train", marker="o")
        ax.plot(steps, val_loss, label="validation", marker="s")
        ax.set(xlabel="step", ylabel="loss (nats per character)")
        if self.goal is not None:
            ax.axhline(self.goal, color="0.4", linestyle=":", label=self.goal_label)
            ax.margins(y=0.1)  # keep the goal off the frame
        ax.legend()
        self.handle = _display(fig, self.alt, self.handle)


IN_WORDS = {  # the rungs, for somebody who hasn't started
    "uniform guess": "a blind guess",
    "unigram counts": "common letters only",
    "bigram": "01: the last character",
    "weighted mean": "02: a weighted mean",
    "one head": "03: one head",
    "four heads": "04: four heads",
    "one block": "05: one block",
    "three blocks": "05: three blocks",
    "GPT": "06: the GPT",
}


def ladder(rungs: list[Rung], in_words: bool = False) -> Picture:
    """The loss ladder as a figure, best at the bottom. rungs: list of ladder.Rung."""
    fig = Picture(figsize=(8, 0.5 * len(rungs) + 1), layout="constrained")
    ax = fig.subplots()
    names = [IN_WORDS[rung.name] if in_words else rung.name for rung in rungs]
    losses = [rung.loss for rung in rungs]
    spreads = [rung.spread / 2 or float("nan") for rung in rungs]  # no bar if exact
    colors = [COLORS[0]] * (len(rungs) - 1) + [COLORS[1]]
    bars = ax.barh(range(len(rungs)), losses, xerr=spreads, color=colors, capsize=4)
    bars[-1].set_hatch("//")
    for y, loss in enumerate(losses):
        ax.text(loss + 0.06, y, f"{loss:.2f}", va="center")
    ax.set_yticks(range(len(rungs)), names)
    ax.invert_yaxis()
    measure = "average surprise" if in_words else "validation loss"
    ax.set(xlim=(0, 4.6), xlabel=f"{measure} (nats per character)")
    ax.grid(axis="y", visible=False)
    fig.alt = "The loss ladder, with shorter and shorter bars: " + ", ".join(
        f"{name} {loss:.2f}" for name, loss in zip(names, losses)
    )
    return fig


def speech(text: str, panels: dict, vmax: float) -> Figure:
    """A text with each character on a patch as dark as its number is large.

    panels: {title: nats of surprise for each character}, drawn one below the other on
    one scale, up to vmax.
    """
    lines = text.split("\n")
    width, height = max(map(len, lines)) + 1, len(lines)
    size = (0.17 * width + 1.2, (0.34 * height + 0.5) * len(panels))
    fig = Picture(figsize=size, layout="constrained")
    axes = fig.subplots(len(panels), squeeze=False)[:, 0]
    for ax, (title, nats) in zip(axes, panels.items()):
        patches = np.full((height, width), np.nan)
        row = column = 0
        for char, value in zip(text, map(float, nats)):
            patches[row, column] = value
            color = "white" if value > 0.6 * vmax else "black"
            shown = "↵" if char == "\n" else char
            style: Style = {"ha": "center", "va": "center", "family": "monospace"}
            ax.text(column, row, shown, color=color, fontsize=13, **style)
            row, column = (row + 1, 0) if char == "\n" else (row, column + 1)
        image = ax.imshow(patches, cmap="YlGnBu", vmin=0, vmax=vmax, aspect="auto")
        ax.set_title(title, loc="left")
        ax.set_axis_off()
    fig.colorbar(image, ax=list(axes), label="surprise (nats)", shrink=0.8)
    return fig


def all_heads(weights: list[torch.Tensor]) -> Figure:
    """The attention of every head at a glance: a row for each layer.

    weights: a list of (n_head, T, T), one for each layer.
    """
    n_layer, n_head = len(weights), len(weights[0])
    size = (2.6 * n_head, 2.8 * n_layer)
    fig = Picture(figsize=size, layout="constrained")
    axes = fig.subplots(n_layer, n_head, squeeze=False, sharex=True, sharey=True)
    for layer, each in enumerate(weights, 1):
        for head, one in enumerate(each, 1):
            ax = axes[layer - 1][head - 1]
            image = heatmap(ax, one, vmin=0, vmax=1)
            ax.set_aspect("equal")
            ax.set_title(f"head {layer}.{head}", fontsize=13)
    for ax in axes[-1]:
        ax.set_xlabel("looks at", fontsize=12)
    for ax in axes[:, 0]:
        ax.set_ylabel("from", fontsize=12)
    fig.colorbar(image, ax=axes, label="attention", shrink=0.8)
    return fig


def reading(text: str, weights: Iterable[float] | torch.Tensor, alt: str) -> None:
    """Display a text shaded by the attention of one reader, as HTML.

    weights: a number for each character, from 0 to 1. For readers who can't see the
    shades, characters with at least a tenth of the attention are bold, and those with
    at least a quarter are also underlined. `alt` is below the text, for everybody,
    because JupyterLab removes labels for screen readers from a notebook that hasn't
    been run yet.
    """
    from IPython.display import display  # only notebooks need IPython

    shown = ""
    for char, weight in zip(text, map(float, weights), strict=True):
        glyph = "↵" if char == "\n" else html.escape(char)
        if weight >= 0.1:
            glyph = f"<strong>{glyph}</strong>"
        if weight >= 0.25:
            glyph = f"<ins>{glyph}</ins>"
        if weight >= 0.01:
            shade = f"background-color: rgba(0, 114, 178, {min(weight, 1) * 0.7:.2f})"
            glyph = f'<span style="{shade}">{glyph}</span>'
        shown += glyph
        if char == "\n":
            shown += char
    told = f"<figcaption>{html.escape(alt)}</figcaption>"
    page = f"<figure><pre>{shown}</pre>{told}</figure>"
    display({"text/html": page, "text/plain": f"Text: {alt}"}, raw=True)
