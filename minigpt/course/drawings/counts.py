"""Drawings of notebook 08b: where counting ends, and how counts stand beside a GPT."""

from collections.abc import Sequence

import torch
from matplotlib.patches import Rectangle

from minigpt.course.drawings.canvas import FILL, Drawing
from minigpt.course.drawings.spine import MIDDLE, cells
from minigpt.course.plots import COLORS, Picture, Style

LIT = "#F5A623"
SHOWN = {" ": "␣", "\n": "↵"}


def staircase(text: str, seen: torch.Tensor, chars: Sequence[str]) -> Picture:
    """The last 0, 1, 2, … characters of a text, a row each: how often each was seen in
    the training text, and what followed it most often.

    seen: counts of what followed, (order + 1, V); chars: the V characters.
    """
    order = len(seen) - 1
    fig = Picture(figsize=(13, 0.48 * order + 1.3), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(-0.8, order + 11.4), ylim=(order + 0.75, -1.6))
    ax.set_axis_off()
    for x, head in [
        (order / 2 - 0.5, "the last characters"),
        (order + 2.2, "seen"),
        (order + 7.5, "what followed most often"),
    ]:
        ax.text(x, -1.15, head, fontsize=13, color="0.3", **MIDDLE)
    said = []
    for n in range(order + 1):
        total = seen[n].sum().item()
        known = total > 0
        look: Style = {"fill": FILL["tensor"]} if known else {"ls": "--"}
        last = text[len(text) - n :]
        cells(ax, order - n, n, last, size=0.84, fontsize=14, **look)
        if n == 0:
            ax.text(order - 0.6, 0, "nothing", fontsize=13, ha="right", va="center")
        color = "black" if known else "0.45"
        often = "never"
        if known:
            often = "1 time" if total == 1 else f"{total:,.0f} times"
        style: Style = {"fontsize": 13, "color": color, "ha": "right", "va": "center"}
        ax.text(order + 3.4, n, often, **style)
        if known:
            best = int(seen[n].argmax())
            share = seen[n, best].item() / total
            x = order + 4.6
            ax.add_patch(Rectangle((x, n - 0.3), 5 * share, 0.6, fc=COLORS[0]))
            char = chars[best]
            ax.text(
                x + 5 * share + 0.2,
                n,
                f"{SHOWN.get(char, char)}   {share:.0%}",
                fontsize=13,
                family="monospace",
                va="center",
            )
            often += f", then {char!r} with {share:.0%}"
        said.append(f"{last!r} {often}")
    fig.alt = (
        "Contexts of a text, from none to the last "
        f"{order} characters, how often each was seen and what followed most often: "
        + "; ".join(said)
        + "."
    )
    return fig


def reaches(text: str, order: int, longest: int) -> Picture:
    """What each of three readers takes of a window: the counts of the training text its
    last `order` characters, the window's counts the last ones, up to `longest`, and
    where they stood before, the GPT all of it."""
    back = longest
    while back and text.rfind(text[-back:], 0, len(text) - 1) < 0:
        back -= 1
    before = text.rfind(text[len(text) - back :], 0, len(text) - 1)
    earlier, after = range(before, before + back), before + back
    lines = text.splitlines(keepends=True)
    lines = [line for line in lines if line != "\n"]
    width, rows = max(map(len, lines)), len(lines)
    fig = Picture(figsize=(13, 0.42 * rows + 2.3), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(-1.2, width + 2.4), ylim=(rows + 3.6, -1))
    ax.set_axis_off()
    frame: Style = {"fc": "#F4F4F4", "ec": "0.4", "lw": 1.5, "ls": "--", "zorder": 0}
    ax.add_patch(Rectangle((-0.9, -0.75), width + 2.9, rows + 0.55, **frame))
    start = 0
    for y, line in enumerate(lines):
        start = text.index(line, start)
        for x, char in enumerate(line):
            i, look = start + x, {"fill": "white", "lw": 0.8, "ec": "0.7"}
            if i >= len(text) - order:
                look: Style = {"fill": FILL["tensor"]}
            if i in earlier or i >= len(text) - back:
                look |= {"ec": COLORS[1], "lw": 2.5, "zorder": 2}
            if i == after and back:
                look = {"fill": LIT, "ec": "black", "lw": 2.5, "zorder": 3}
            cells(ax, x, y, char, size=0.84, fontsize=12, **look)
        start += len(line)
    question: Style = {"fill": "white", "ls": "--", "lw": 1.5}
    cells(ax, len(lines[-1]), rows - 1, "?", size=0.84, fontsize=13, **question)
    last, found = text[-order:], text[len(text) - back :]
    legend: list[tuple[Style, str]] = [
        (
            {"fc": FILL["tensor"], "ec": "0.35", "lw": 1.2},
            f"the counts of the training text read the last {order} characters",
        ),
        (
            {"fc": "white", "ec": COLORS[1], "lw": 2.5},
            f"the window's counts look where the last {longest} stood before, and "
            "what came next",
        ),
        (frame | {"zorder": 1}, "the GPT reads the whole window"),
    ]
    for i, (look, words) in enumerate(legend):
        y = rows + 0.75 + i
        ax.add_patch(Rectangle((-0.9, y - 0.35), 1.6, 0.7, **look))
        ax.text(1.3, y, words, fontsize=13, va="center")
    fig.alt = (
        f"A window of text. Its last {order} characters, {last!r}, are marked: the "
        f"counts of the training text read them. Its last {back}, {found!r}, stood "
        f"earlier in the window, and {text[after] if back else 'nothing'!r} came next: "
        "the window's counts find that. A frame around all is what the GPT reads."
    )
    return fig


def beside() -> Picture:
    """How the counts and the GPT make logits together."""
    drawing = Drawing(7.6, 3.4)
    ax = drawing.ax
    ax.set(xlim=(-0.6, 7.25), ylim=(3.05, -0.5))
    drawing.box("ids", -0.1, 1.55, shape="(B, T)", width=0.75)
    drawing.box("train", 1.35, 0, "training text's", "counts, smoothed", "layer", 1.4)
    drawing.box("window", 1.35, 1, "window's", "log(1 + counts)", "layer", 1.4)
    drawing.box("known", 3.1, 0.5, "known", "(B, T, 13, V)", width=1.2)
    drawing.box("embed", 1.35, 2.6, "embedding", "+ read", "layer", 1.1)
    drawing.box("conv", 2.65, 2.6, "convolution", "3 wide", "layer", 1.15)
    drawing.box("blocks", 3.9, 2.6, "blocks", "of 08", "layer", 0.9)
    drawing.box("lm_head", 5.1, 2.6, "lm_head", "C → V", "layer", 0.9)
    drawing.box("gate", 3.9, 1.55, "gate", "C → 13", "layer", 0.9)
    circle = {"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "0.25"}
    ax.text(4.7, 0.5, "×", fontsize=18, bbox=circle, **MIDDLE)
    drawing.places["times"] = (4.7, 0.5, 0.17, 0.2)
    drawing.plus("plus", 5.75, 1.55)
    drawing.box("logits", 6.7, 1.55, shape="(B, T, V)", width=0.85)
    for start, end in [("ids", "train"), ("ids", "window"), ("ids", "embed")]:
        drawing.arrow(start, end, sideways=True)
    for start, end in [
        ("train", "known"),
        ("window", "known"),
        ("known", "times"),
        ("gate", "times"),
        ("times", "plus"),
        ("plus", "logits"),
        ("embed", "conv"),
        ("conv", "blocks"),
        ("blocks", "lm_head"),
    ]:
        drawing.arrow(start, end, sideways=True)
    for start, end in [("blocks", "gate"), ("lm_head", "plus")]:
        drawing.arrow(start, end, sideways=False)
    read = {"arrowstyle": "-|>", "lw": 1.8, "ls": "--", "color": COLORS[5]}
    ax.annotate("", (1.75, 2.29), (2.75, 0.81), arrowprops=read)
    small: Style = {"fontsize": 11, "color": "0.3"}
    ax.text(2.75, 1.75, "the longest\ncontext's row", **small, **MIDDLE)
    drawing.fig.alt = (
        "ids go three ways: into the counts of the training text and into those of the "
        "window, which together are what is known, 13 rows of V numbers; and into the "
        "embedding, to which the longest context's row is added, then through a "
        "convolution, blocks and lm_head. The blocks also make a gate, 13 numbers that "
        "weigh the rows. The weighed rows and what lm_head says are added: the logits."
    )
    return drawing.fig
