"""Drawings of notebooks 00 to 06 and of the lectures. Each returns a figure that knows
its own alternative text, `fig.alt`."""

from typing import Any

import torch
from matplotlib.patches import Rectangle

from minigpt.course.drawings.canvas import (
    FILL,
    LIT,
    LOOKS,
    MIDDLE,
    Drawing,
    arrow,
    cells,
    frame,
    paper,
    pathway,
    square,
)
from minigpt.course.plots import COLORS, Picture, Style
from minigpt.course.toys import valley as height
from minigpt.course.toys import walk

SLIDE: Style = {"large": 15, "small": 13.5}  # letters for the last row, in points

WAY = [  # name, second line, notebook; left edge, upper edge, width, height
    ("text", "First Ci", "01", 0.1, 1.15, 1.25, 0.8),
    ("ids", "18 47 56 …", "01", 1.65, 1.15, 1.25, 0.8),
    ("vectors", "C numbers", "03", 3.2, 1.15, 1.25, 0.8),
    ("a stack of blocks", None, "06", 4.75, 0.1, 4.75, 2.9),
    ("a block: read, then compute", None, "05", 4.9, 0.55, 4.45, 2.3),
    ("many heads", None, "04", 5.05, 1.0, 2.75, 1.7),
    ("one head", None, "03", 5.2, 1.42, 2.45, 1.13),
    ("mean of the past", "", "02", 5.35, 1.84, 2.15, 0.58),
    ("feed-\nforward", "", "05", 7.95, 1.0, 1.25, 1.7),
    ("logits", "65 scores", "01", 9.8, 1.15, 1.25, 0.8),
    ("next character", "t", "01", 11.35, 1.15, 1.9, 0.8),
]


def way(lit: Any = None, about: Any = (), writes: bool = False) -> Picture:
    """How a text goes through a GPT. Next to each part is the notebook that builds it.

    lit: a notebook's number. What it builds stands out, and what comes later is dashed.
    about: the names of the parts that a notebook after 06 is about. They stand out,
    too. writes: also draw the way back, from the next character to the text.
    """
    height = 3.65 if writes else 3.1
    fig, ax = paper((12, 0.95 * height), (0, 13.35), (height, 0))
    for name, below, notebook, x, y, width, tall in WAY:
        kind = "built"
        if lit is not None and notebook >= lit:
            kind = "new" if notebook == lit else "to come"
        kind = "new" if name in about else kind
        look, color, weight = LOOKS[kind]
        frame(ax, x, y, width, tall, 0.12, **look)
        letters: Style = {"color": color, "weight": weight}
        low = 0.07 if below == "" else -0.1  # clear of the number in the corner
        at = y + 0.24 if below is None else y + tall / 2 + low
        ax.text(x + width / 2, at, name, fontsize=13, **MIDDLE, **letters)
        small: Style = {"fontsize": 12, "family": "monospace", "color": color}
        ax.text(x + width / 2, at + 0.3, below or "", **MIDDLE, **small)
        ax.text(x + 0.08, y + 0.13, notebook, fontsize=10.5, va="center", **letters)
    for tail, head in [
        (1.35, 1.65),
        (2.9, 3.2),
        (4.45, 4.75),
        (9.5, 9.8),
        (11.05, 11.35),
    ]:
        arrow(ax, (tail, 1.55), (head, 1.55))
    fig.alt = (
        "How a text goes through a GPT: text, ids, vectors, a stack of blocks, "
        "logits, next "
        "character. A block has many heads and a feed-forward layer. Each head takes "
        "a mean of the past. Each part names its notebook."
    )
    if writes:
        ax.plot([12.3, 12.3, 0.72], [1.95, 3.3, 3.3], color="black", lw=1.8)
        arrow(ax, (0.72, 3.3), (0.72, 1.95))
        told = "to write: append it to the text, and ask again"
        ax.text(6.5, 3.45, told, fontsize=13, ha="center", va="center")
        fig.alt += " To write, we append the next character and ask the model again."
    if lit is not None:
        new = ", ".join(part[0].replace("-\n", "-") for part in WAY if part[2] == lit)
        fig.alt += f" New in {lit}: {new}."
    if about:
        fig.alt += f" This one is about: {', '.join(about)}."
    return fig


def windows(text: str) -> Picture:
    """x and y of one window, and the examples in it: a figure."""
    T = len(text) - 1
    size = (0.62 * T + 3.6, 0.5 * T + 2)
    fig, ax = paper(size, (-2.3, T + 3.4), (T + 3.1, -0.7), aspect="equal")
    blue = FILL["tensor"]
    for y, name, row, fill in ((0, "x", text[:-1], blue), (1, "y", text[1:], LIT)):
        ax.text(-1.3, y, name, fontsize=15, family="monospace", **MIDDLE)
        cells(ax, 0, y, row, fill)
    for t in range(T):
        y = t + 2.6
        ax.text(-1.3, y, f"t = {t}", fontsize=13, **MIDDLE)
        cells(ax, 0, y, text[: t + 1], blue)
        ax.text(t + 1, y, "→", fontsize=15, **MIDDLE)
        cells(ax, t + 2, y, text[t + 1], LIT)
    fig.alt = (
        f"The window {text[:-1]!r} over the same text shifted by one, and below it "
        f"{T} examples: after the first character comes the second, after the first "
        "two the third, and so on."
    )
    return fig


def downhill() -> list[Picture]:
    """A loss over one parameter: a point, its slope, and the step that follows."""
    pictures = []
    at, slope = 2.5, 1.5
    loss = 0.5 * (at - 1) ** 2 + 0.4
    w = [i / 50 for i in range(-75, 151)]
    for step in range(3):
        fig = Picture(figsize=(11.8, 4.4), layout="constrained")
        ax = fig.subplots()
        ax.plot(w, [0.5 * (v - 1) ** 2 + 0.4 for v in w], color=COLORS[0], lw=3.5)
        ax.plot(at, loss, "o", ms=14, color="black", zorder=3)
        fig.alt = (
            "A curve, the loss over one parameter, shaped like a valley, and a point "
            "on its right side."
        )
        if step:
            ends = [at - 0.75, at + 0.45]
            tangent = [loss + slope * (v - at) for v in ends]
            ax.plot(ends, tangent, "--", color=COLORS[1])
            told = "the slope here is the gradient:\nit goes up to the right"
            ax.text(2.3, 2.2, told, fontsize=18, color=COLORS[1], ha="right")
            fig.alt += " The slope there, the gradient, rises to the right."
        if step > 1:
            look: Style = {"color": COLORS[2], "lw": 3, "mutation_scale": 26}
            arrow(ax, (at, 0.14), (at - 0.85, 0.14), **look)
            ax.plot([at, at], [0.14, loss], ":", color="0.6", lw=1.2)
            ax.text(at + 0.08, 0.14, "so the step goes left", fontsize=18, va="center")
            fig.alt += " So the step goes left."
        ax.set(ylim=(0, 2.7), xlim=(-0.9, 3.9), xticks=[], yticks=[])
        ax.set_xlabel("one parameter", fontsize=17)
        ax.set_ylabel("loss", fontsize=17)
        ax.grid(False)
        pictures.append(fig)
    return pictures


def asks(
    text: str, t: int, scores: torch.Tensor, weights: torch.Tensor, found: str
) -> Picture:
    """How position t of a text asks all positions before it: a figure.

    scores, weights: numbers (t + 1,); found: a word for what comes out.
    """
    T = len(text)
    fig, ax = paper((0.95 * T + 3.2, 3.9), (-2.6, T + 1.2), (4.35, -1.35))
    names = [(0, "text"), (1.05, "scores"), (2.5, "weights"), (3.75, "output")]
    for y, name in names:
        ax.text(-0.8, y, name, fontsize=13, ha="right", va="center")
    cells(ax, 0, 0, text[:t], FILL["tensor"], size=0.8)
    cells(ax, t, 0, text[t], LIT, size=0.8)
    cells(ax, t + 1, 0, text[t + 1 :], "white", size=0.8, ls="--")
    ax.text(t, -0.85, "asks", fontsize=13, **MIDDLE)
    for i in range(T):
        score = f"{scores[i]:.1f}" if i <= t else "−∞"
        ax.text(
            i, 1.05, score, fontsize=13, color="black" if i <= t else "0.5", **MIDDLE
        )
        weight = float(weights[i]) if i <= t else 0.0
        ax.add_patch(Rectangle((i - 0.3, 2.9), 0.6, -1.1 * weight, fc=COLORS[0]))
        ax.plot([i - 0.4, i + 0.4], [2.9, 2.9], color="0.4", lw=1, ls="-")
        ax.text(i, 3.13, f"{weight:.2f}", fontsize=11, **MIDDLE)
    ax.text(-0.5, 3.78, found, fontsize=13, va="center")
    first = max(range(t + 1), key=lambda i: float(weights[i]))
    fig.alt = (
        f"The character {text[t]!r} in {text!r} asks all before it, and itself. Below "
        "each are its score and, as a bar, its weight. The largest weight, "
        f"{float(weights[first]):.2f}, belongs to {text[first]!r} at position {first}."
    )
    return fig


def attention(B: int, T: int, C: int, head_size: int) -> Picture:
    """One head, x -> q, k, v -> scores -> mask -> softmax -> weights · v: a figure.

    The sizes, numbers or letters, are written into the shapes.
    """
    drawing = Drawing(7, 3, 1.63, **SLIDE)
    narrow, square = f"({B}, {T}, {head_size})", f"({B}, {T}, {T})"
    drawing.box("x", -0.2, 1, shape=f"({B}, {T}, {C})", width=0.75)
    for y, (layer, tensor) in enumerate([("query", "q"), ("key", "k"), ("value", "v")]):
        drawing.box(layer, 0.8, y, kind="layer", width=0.65)
        drawing.box(tensor, 1.85, y, shape=narrow, width=0.9)
        drawing.arrow("x", layer, sideways=True)
        drawing.arrow(layer, tensor)
    root = r"q k$^\mathrm{T}$ / $\sqrt{\mathrm{head\_size}}$"
    drawing.box("scores", 3.23, 0.5, label=root, shape=f"scores {square}", width=1.25)
    drawing.box("mask", 4.37, 0.5, shape="future: −∞", kind="layer", width=0.78)
    drawing.box("softmax", 5.27, 0.5, shape="each row", kind="layer", width=0.72)
    drawing.box("weights", 6.1, 0.5, shape=square, width=0.68)
    drawing.box("out", 6.1, 2, label="weights · v", shape=narrow, width=0.9)
    drawing.arrow("q", "scores")
    drawing.arrow("v", "out")
    drawing.arrows("k", "scores", "mask", "softmax", "weights", "out")
    drawing.fig.alt = (
        "A head: x goes through three layers to q, k and v. q and k make the scores, "
        "divided by the root of head_size; mask and softmax make the weights; weights "
        "times v is the output. Below each name is its shape: "
        f"scores and weights {square}, the output {narrow}."
    )
    return drawing.fig


def shell() -> Picture:
    """The shell of all models: embeddings, a body, an output layer."""
    drawing = Drawing(6.6, 2.2, 1.72, **SLIDE)
    drawing.box("idx", -0.1, 0.6, "ids", "(B, T)", width=0.85)
    drawing.box(
        "tokens", 1.25, 0.05, "token_embedding", "a row per character", "layer", 1.5
    )
    places = "position_embedding"
    drawing.box("places", 1.25, 1.15, places, "a row per position", "layer", 1.6)
    drawing.plus("plus", 2.4, 0.6)
    drawing.box("x", 3.15, 0.6, "vectors", "(B, T, C)", width=0.9)
    drawing.box("body", 4.3, 0.6, "body", "what changes", "layer", 1.0, fc=LIT)
    drawing.box("lm_head", 5.4, 0.6, "lm_head", "C → 65", "layer", 0.85)
    drawing.box("logits", 6.45, 0.6, "logits", "(B, T, 65)", width=0.85)
    drawing.arrow("idx", "tokens", sideways=True)
    drawing.arrow("idx", "places", sideways=True)
    drawing.arrow("tokens", "plus", sideways=True)
    drawing.arrow("places", "plus", sideways=True)
    drawing.arrows("plus", "x", "body", "lm_head", "logits")
    drawing.ax.set(xlim=(-0.6, 6.95), ylim=(1.6, -0.4))
    drawing.fig.alt = (
        "The shell: ids go into a table of characters and a table of positions; the "
        "two vectors are added, go through the body, and lm_head turns them into "
        "logits."
    )
    return drawing.fig


def heads() -> Picture:
    """Four heads, side by side, projected: a figure. Each head is `attention`."""
    drawing, middle = Drawing(7, 4, 1.63, **SLIDE), 1.5
    wide, narrow = "(B, T, 64)", "(B, T, 16)"
    drawing.box("x", -0.1, middle, shape=wide, width=0.9)
    drawing.box("together", 4.0, middle, "side by side", shape=wide)
    for h in range(4):
        head, out = f"head {h}", f"out {h}"
        drawing.box(head, 1.25, h, shape="attention", kind="layer", width=1)
        drawing.box(out, 2.55, h, "weights · v", shape=narrow, width=1)
        drawing.arrow("x", head, sideways=True)
        drawing.arrow(head, out)
        drawing.arrow(out, "together", sideways=True)
    drawing.box("proj", 5.2, middle, shape="mixes", kind="layer", width=0.7)
    drawing.box("y", 6.12, middle, "out", shape=wide, width=0.8)
    drawing.arrows("together", "proj", "y")
    drawing.fig.alt = (
        "Four heads side by side: x, 64 wide, goes into each of them; their outputs, "
        "16 wide each, are laid side by side and then mixed by the projection, as wide "
        "as x was."
    )
    return drawing.fig


def cut() -> Picture:
    """The queries of one position, cut into two heads; their outputs, side by side."""
    fig, ax = paper((11.5, 3.6), (-0.3, 12.4), (4.1, -0.75))
    colors = [*FILL.values()]

    def vector(x, y, first, count, heads, numbered=True):
        for i in range(count):
            number, fill = f"{first + i}" if numbered else "", colors[heads[i]]
            middle = (x + 0.42 * i + 0.21, y + 0.275)
            square(ax, *middle, number, 0.42, 0.55, {"fontsize": 11}, fc=fill, lw=1)

    vector(0, 1.4, 0, 8, [0] * 4 + [1] * 4)
    ax.text(1.68, 1.05, "the queries of one position, C = 8", fontsize=13, **MIDDLE)
    for head, y in ((0, 0.3), (1, 2.5)):
        vector(4.2, y, 4 * head, 4, [head] * 4)
        ax.text(5.04, y - 0.32, f"head {head}, head_size 4", fontsize=13, **MIDDLE)
        arrow(ax, (3.4, 1.67), (4.15, y + 0.28))
        frame(ax, 6.5, y - 0.05, 1.5, 0.65, 0.12, fc="white", lw=1)
        ax.text(7.25, y + 0.28, "attention", fontsize=13, **MIDDLE)
        arrow(ax, (5.9, y + 0.28), (6.5, y + 0.28))
        arrow(ax, (8.0, y + 0.28), (8.75, 1.67))
    vector(8.8, 1.4, 0, 8, [0] * 4 + [1] * 4, numbered=False)
    ax.text(10.48, 1.05, "their outputs, side by side", fontsize=13, **MIDDLE)
    ax.text(
        6.1,
        3.75,
        "(B, T, C)  →  (B, n_head, T, head_size)  →  (B, T, C)",
        fontsize=13,
        family="monospace",
        **MIDDLE,
    )
    fig.alt = (
        "The eight numbers of one position's queries are cut in two: 0 to 3 go to head "
        "0, 4 to 7 to head 1. Each head attends, and their outputs are laid side by "
        "side."
    )
    return fig


def block() -> Picture:
    """The transformer block. Its pathway is a straight line, with its parts on side
    roads."""
    end = 5.45  # the column in which x comes out
    drawing = Drawing(end, 2, 2.08, **SLIDE)
    drawing.ax.set(xlim=(-0.45, end + 0.45), ylim=(1.4, -0.4))
    pathway(drawing.ax, 0.4, end, 1)
    drawing.box("x", 0, 1, shape="(B, T, C)", width=0.8)
    for norm, fork, part, back in (
        ("norm1", 0.95, "attention", 2.15),
        ("norm2", 3.3, "feed-forward", 4.5),
    ):
        drawing.box(norm, fork, 0, kind="layer", width=0.8)
        drawing.box(part, back, 0, kind="layer", width=1.25)
        drawing.side_road(norm, part, 1)
    drawing.box("out", end, 1, label="x", shape="(B, T, C)", width=0.8)
    drawing.arrows("x", "attention +", "feed-forward +", "out")
    drawing.fig.alt = (
        "The block: x runs along a straight line. A side road leads through norm1 and "
        "attention and is added to it, then one through norm2 and feed-forward."
    )
    return drawing.fig


def gpt() -> Picture:
    """The whole GPT: each box with its shape and the notebook that builds it."""
    drawing = Drawing(11.4, 3, 1, **SLIDE)
    ax = drawing.ax
    ax.set(xlim=(0, 11.77), ylim=(2.2, -0.75))
    dashed: Style = {"fc": "#F4F4F4", "ec": "0.4", "lw": 1, "ls": "--", "zorder": 0}
    frame(ax, 2.64, -0.65, 5.42, 2.4, 0.15, **dashed)
    ax.text(5.3, 1.98, "a Block (05); a stack of them (06)", fontsize=15, **MIDDLE)
    pathway(ax, 2.4, 8.2, 1.3)
    for name, x, y, shape, lesson, width, kind in (
        ("ids", 0.46, 1.3, "(B, T)", "01", 0.85, "tensor"),
        ("embeddings", 1.83, 1.3, "(B, T, C)", "03", 1.46, "layer"),
        ("norm1", 3.22, 0.1, "(B, T, C)", "05", 0.92, "layer"),
        ("attention", 4.49, 0.1, "(B, T, C)", "03, 04", 1.1, "layer"),
        ("norm2", 5.76, 0.1, "(B, T, C)", "05", 0.92, "layer"),
        ("feed-forward", 7.2, 0.1, "(B, T, C)", "05", 1.5, "layer"),
        ("norm", 8.64, 1.3, "(B, T, C)", "05", 0.92, "layer"),
        ("lm_head", 9.91, 1.3, "(B, T, 65)", "03", 1.08, "layer"),
        ("logits", 11.2, 1.3, "(B, T, 65)", "01", 1.08, "tensor"),
    ):
        drawing.box(name, x, y, name.rstrip("12"), shape, kind, width)
        small: Style = {"fontsize": 13.5, "color": COLORS[0], "weight": "bold"}
        ax.text(x, y - 0.45, lesson, **MIDDLE, **small)
    drawing.side_road("norm1", "attention", 1.3)
    drawing.side_road("norm2", "feed-forward", 1.3)
    stack = "attention +", "feed-forward +"
    drawing.arrows("ids", "embeddings", *stack, "norm", "lm_head", "logits")
    drawing.fig.alt = (
        "The whole GPT in a row: ids, embeddings, then blocks, each with a norm and "
        "attention and a norm and the feed-forward layer on side roads that are added "
        "to the straight line, then a last norm, lm_head, logits. Each part's "
        "notebook is next to it."
    )
    return drawing.fig


# the best for twelve steps: evidence of 06
RATES = {"SGD": 0.035, "momentum": 0.022, "Adam": 0.35}


def valley() -> Picture:
    """Twelve plain steps, twelve with momentum, and twelve of Adam's, in a valley."""
    fig = Picture(figsize=(14, 4), layout="constrained")
    axes = fig.subplots(1, 3, sharey=True)
    flat = torch.linspace(-4.7, 1.7, 200)
    steep = torch.linspace(-1.25, 1.25, 100)
    losses = height(flat, steep[:, None])  # (100, 200)
    ends = []
    names = ["SGD", "momentum", "Adam"], ["plain steps", "momentum", "Adam"]
    looks = (COLORS[1], COLORS[2], COLORS[0]), "o^s"
    for ax, name, title, color, marker in zip(axes, *names, *looks):
        places, loss = walk(name, RATES[name])
        look: Style = {"levels": [0.2, 1, 3, 6, 12, 20, 30], "colors": "0.75"}
        ax.contour(flat, steep, losses, linewidths=1.2, **look)
        ax.plot(*zip(*places), "-", marker=marker, ms=6, lw=1.8, color=color)
        ax.plot(0, 0, "x", ms=13, mew=3, color="black")
        ax.text(-3.85, 1.02, "start", fontsize=14)
        ax.set_title(f"{title}: loss {loss:.2f} at the end", fontsize=16)
        ax.set_xlabel("flat: small gradients", fontsize=15)
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        ends.append(f"{loss:.2f}")
    axes[0].set_ylabel("steep: large gradients", fontsize=15)
    fig.alt = (
        "A long, narrow valley from above, and three walks of twelve steps in it. The "
        "plain steps jump from wall to wall and get down only a third of the valley, "
        f"to a loss of {ends[0]}. With momentum, the steps get longer along the valley "
        f"and end next to the lowest point, at {ends[1]}. Adam's end there, too, at "
        f"{ends[2]}."
    )
    return fig
