"""Drawings of notebooks 00 to 06. Each returns a figure that knows its own alternative
text, `fig.alt`."""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from minigpt.course.drawings.canvas import (
    FILL,
    LIT,
    LOOKS,
    MIDDLE,
    SIGNS,
    Drawing,
    arrow,
    frame,
)
from minigpt.course.plots import COLORS, Picture, Style
from minigpt.course.toys import valley as height
from minigpt.course.toys import walk

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
    fig = Picture(figsize=(12, 0.95 * height), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(0, 13.35), ylim=(height, 0))
    ax.set_axis_off()
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


def cells(
    ax: Axes,
    x: float,
    y: float,
    text: str,
    fill: Any = "white",
    size: float = 0.9,
    fontsize: float = 15,
    **look: Any,
) -> None:
    """A row of squares, a character in each; x, y: the middle of the first."""
    for i, char in enumerate(text):
        corner = (x + i - size / 2, y - size / 2)
        style: Style = {"fc": fill, "ec": "0.35", "lw": 1.2} | look
        ax.add_patch(Rectangle(corner, size, size, **style))
        shown: Style = {"fontsize": fontsize, "family": "monospace"}
        ax.text(x + i, y, SIGNS.get(char, char), **shown, **MIDDLE)


def windows(text: str) -> Picture:
    """x and y of one window, and the examples in it: a figure."""
    T = len(text) - 1
    fig = Picture(figsize=(0.62 * T + 3.6, 0.5 * T + 2), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(-2.3, T + 3.4), ylim=(T + 3.1, -0.7), aspect="equal")
    ax.set_axis_off()
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


def downhill() -> Picture:
    """A loss over one parameter: its slope, and the step that follows from it."""
    fig = Picture(figsize=(8, 4), layout="constrained")
    ax = fig.subplots()
    w = [i / 50 for i in range(-75, 151)]
    ax.plot(w, [0.5 * (v - 1) ** 2 + 0.4 for v in w], color=COLORS[0])
    at, slope = 2.5, 1.5
    loss = 0.5 * (at - 1) ** 2 + 0.4
    ends = [at - 0.75, at + 0.45]
    ax.plot(ends, [loss + slope * (v - at) for v in ends], "--", color=COLORS[1])
    ax.plot(at, loss, "o", ms=11, color=COLORS[5])
    ax.annotate(
        "the slope here is the gradient:\nit goes up to the right",
        (at + 0.3, loss + slope * 0.3),
        (0.75, 2.35),
        fontsize=13,
        arrowprops={"arrowstyle": "-", "color": "0.5"},
    )
    arrow = {"arrowstyle": "-|>", "lw": 2.5, "color": COLORS[2], "mutation_scale": 22}
    ax.annotate("", (at - 0.85, 0.14), (at, 0.14), arrowprops=arrow)
    ax.text(at + 0.05, 0.14, "so the step goes left", fontsize=13, va="center")
    ax.plot([at, at], [0.14, loss], ":", color="0.6", lw=1.2)
    ax.set(xlabel="one parameter", ylabel="loss", ylim=(0, 2.7), xlim=(-0.9, 3.9))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(False)
    fig.alt = (
        "A curve, the loss over one parameter, shaped like a valley. The slope is "
        "drawn at a point on the right side. It rises to the right, so the step goes "
        "left."
    )
    return fig


def asks(
    text: str, t: int, scores: torch.Tensor, weights: torch.Tensor, found: str
) -> Picture:
    """How position t of a text asks all positions before it: a figure.

    scores, weights: numbers (t + 1,); found: a word for what comes out.
    """
    T = len(text)
    fig = Picture(figsize=(0.95 * T + 3.2, 3.9), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(-2.6, T + 1.2), ylim=(4.35, -1.35))
    ax.set_axis_off()
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
    drawing = Drawing(7, 3, small=12)
    narrow, square = f"({B}, {T}, {head_size})", f"({B}, {T}, {T})"
    drawing.box("x", -0.2, 1, shape=f"({B}, {T}, {C})", width=0.75)
    for y, (layer, tensor) in enumerate([("query", "q"), ("key", "k"), ("value", "v")]):
        drawing.box(layer, 0.8, y, kind="layer", width=0.65)
        drawing.box(tensor, 1.95, y, shape=narrow, width=1.15)
        drawing.arrow("x", layer, sideways=True)
        drawing.arrow(layer, tensor)
    root = r"q k$^\mathrm{T}$ / $\sqrt{\mathrm{head\_size}}$"
    drawing.box("scores", 3.37, 0.5, label=root, shape=f"scores {square}", width=1.2)
    drawing.box("mask", 4.42, 0.5, shape="future: −∞", kind="layer", width=0.7)
    drawing.box("softmax", 5.27, 0.5, shape="each row", kind="layer", width=0.7)
    drawing.box("weights", 6.02, 0.5, shape=square, width=0.65)
    drawing.box(
        "out", 6.02, 2, label="output", shape=f"weights · v {narrow}", width=1.15
    )
    steps = ["scores", "mask", "softmax", "weights", "out"]
    for start, end in [("q", "scores"), ("k", "scores"), *zip(steps, steps[1:])]:
        drawing.arrow(start, end)
    drawing.arrow("v", "out")
    drawing.fig.alt = (
        "A head: x goes through three layers to q, k and v. q and k make the scores, "
        "divided by the root of head_size; mask and softmax make the weights; weights "
        "times v is the output."
    )
    return drawing.fig


def shell() -> Picture:
    """The shell of all models: embeddings, a body, an output layer."""
    drawing = Drawing(6.6, 2.2, small=13)
    drawing.box("idx", -0.1, 0.6, "ids", "(B, T)", width=0.85)
    drawing.box(
        "tokens", 1.25, 0.05, "token_embedding", "a row per character", "layer", 1.5
    )
    places = "position_embedding"
    drawing.box("places", 1.25, 1.15, places, "a row per position", "layer", 1.5)
    drawing.plus("plus", 2.4, 0.6)
    drawing.box("x", 3.15, 0.6, "vectors", "(B, T, C)", width=0.9)
    drawing.box("body", 4.3, 0.6, "body", "what changes", "layer", 1.0)
    drawing.box("lm_head", 5.4, 0.6, "lm_head", "C → 65", "layer", 0.85)
    drawing.box("logits", 6.45, 0.6, "logits", "(B, T, 65)", width=0.85)
    drawing.arrow("idx", "tokens", sideways=True)
    drawing.arrow("idx", "places", sideways=True)
    drawing.arrow("tokens", "plus", sideways=True)
    drawing.arrow("places", "plus", sideways=True)
    for pair in [
        ("plus", "x"),
        ("x", "body"),
        ("body", "lm_head"),
        ("lm_head", "logits"),
    ]:
        drawing.arrow(*pair)
    drawing.ax.set(xlim=(-0.6, 6.95), ylim=(1.6, -0.4))
    drawing.fig.alt = (
        "The shell: ids go into a table of characters and a table of positions; the "
        "two vectors are added, go through the body, and lm_head turns them into "
        "logits."
    )
    return drawing.fig


def heads() -> Picture:
    """Four heads, side by side, projected: a figure. Each head is `attention`."""
    drawing, middle = Drawing(7, 4, small=13), 1.5
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
    drawing.arrow("together", "proj")
    drawing.arrow("proj", "y")
    drawing.fig.alt = (
        "Four heads side by side: x goes into each of them, their outputs are laid "
        "side by side and then mixed by the projection, as wide as x was."
    )
    return drawing.fig


def cut() -> Picture:
    """The queries of one position, cut into two heads; their outputs, side by side."""
    fig = Picture(figsize=(11.5, 3.6), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(-0.3, 12.4), ylim=(4.1, -0.75))
    ax.set_axis_off()
    colors = [*FILL.values()]

    def vector(x, y, first, count, heads, numbered=True):
        for i in range(count):
            fill = colors[heads[i]]
            ax.add_patch(Rectangle((x + 0.42 * i, y), 0.42, 0.55, fc=fill, ec="0.35"))
            number = f"{first + i}" if numbered else ""
            ax.text(x + 0.42 * i + 0.21, y + 0.28, number, fontsize=11, **MIDDLE)

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
    drawing = Drawing(end, 2, small=13)
    drawing.ax.set(xlim=(-0.45, end + 0.45), ylim=(1.4, -0.4))
    drawing.ax.plot([0.4, end], [1, 1], color=COLORS[4], lw=8, zorder=0)  # pathway
    drawing.box("x", 0, 1, shape="(B, T, C)", width=0.8)
    for i, part, fork, back in (
        (1, "attention", 0.95, 2.15),
        (2, "feed-forward", 3.3, 4.5),
    ):
        drawing.places["fork"] = (fork, 1, 0, 0)
        drawing.box(part, back, 0, kind="layer", width=1.25)
        drawing.plus(f"plus{i}", back, 1)
        drawing.box(f"norm{i}", fork, 0, kind="layer", width=0.8)
        drawing.arrow(f"norm{i}", part)
        drawing.arrow("fork", f"norm{i}", sideways=False)
        drawing.arrow(part, f"plus{i}", sideways=False)
    drawing.box("out", end, 1, label="x", shape="(B, T, C)", width=0.8)
    for start, stop in [("x", "plus1"), ("plus1", "plus2"), ("plus2", "out")]:
        drawing.arrow(start, stop)
    drawing.fig.alt = (
        "The block: x runs along a straight line. A side road leads through norm1 and "
        "attention and is added to it, then one through norm2 and feed-forward."
    )
    return drawing.fig


def gpt() -> Picture:
    """The whole GPT: each box with its shape and the notebook that builds it."""
    drawing = Drawing(9.35, 2.9, wide=1.28, small=12)
    ax = drawing.ax
    ax.set(xlim=(-0.65, 9.0), ylim=(2.15, -0.75))
    dashed: Style = {"fc": "#F4F4F4", "ec": "0.4", "lw": 1, "ls": "--", "zorder": 0}
    frame(ax, 1.32, -0.65, 4.95, 2.4, 0.15, **dashed)
    ax.text(3.8, 1.95, "a Block (05); a stack of them (06)", fontsize=13, **MIDDLE)
    ax.plot([1.2, 6.5], [1.3, 1.3], color=COLORS[4], lw=8, ls="-", zorder=0.5)

    def part(name, x, y, label, shape, lesson, width, kind="layer"):
        drawing.box(name, x, y, label, shape, kind, width)
        small: Style = {"fontsize": 11, "color": COLORS[0], "weight": "bold"}
        ax.text(x, y - 0.43, lesson, **MIDDLE, **small)

    part("ids", -0.22, 1.3, "ids", "(B, T)", "01", 0.72, "tensor")
    part("embeddings", 0.72, 1.3, "embeddings", "(B, T, C)", "03", 0.98)
    for i, fork, x, label, lesson in (
        (1, 1.75, 3.05, "attention", "03, 04"),
        (2, 4.26, 5.56, "feed-forward", "05"),
    ):
        drawing.places["fork"] = (fork, 1.3, 0, 0)
        part(f"norm{i}", fork, 0.1, "norm", "(B, T, C)", "05", 0.74)
        part(label, x, 0.1, label, "(B, T, C)", lesson, 1.14)
        drawing.plus(f"plus{i}", x, 1.3)
        drawing.arrow(f"norm{i}", label)
        drawing.arrow("fork", f"norm{i}", sideways=False)
        drawing.arrow(label, f"plus{i}", sideways=False)
    part("norm", 6.82, 1.3, "norm", "(B, T, C)", "05", 0.74)
    part("lm_head", 7.67, 1.3, "lm_head", "(B, T, 65)", "03", 0.74)
    part("logits", 8.55, 1.3, "logits", "(B, T, 65)", "01", 0.8, "tensor")
    line = ["ids", "embeddings", "plus1", "plus2", "norm", "lm_head", "logits"]
    for start, end in zip(line, line[1:]):
        drawing.arrow(start, end)
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
