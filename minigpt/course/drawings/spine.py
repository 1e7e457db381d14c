"""Drawings of notebooks 00 to 06."""

from matplotlib.figure import Figure

from minigpt.course.drawings.canvas import FILL, Drawing
from minigpt.course.plots import COLORS


def way():
    """What a GPT does with a text, and the notebook in which each part is built."""
    drawing = Drawing(7, 3)
    row = [
        ("text", "text", "First Ci", "tensor", "01"),
        ("ids", "ids", "(B, T)", "tensor", "01"),
        ("vectors", "vectors", "(B, T, C)", "tensor", "03"),
        ("blocks", "blocks", "one after another", "layer", "06"),
        ("logits", "logits", "(B, T, V)", "tensor", "01"),
        ("next", "next character", "t", "tensor", "06"),
    ]
    inside = [
        ("averages", "averages", "of the past", "layer", "02"),
        ("head", "one head", "of attention", "layer", "03"),
        ("heads", "many heads", "side by side", "layer", "04"),
        ("block", "a block", "(B, T, C)", "layer", "05"),
    ]
    for y, boxes, below in ((0.4, row, -1), (1.6, inside, 1)):
        for i, (name, label, shape, kind, lesson) in enumerate(boxes):
            x = 1.21 * i
            drawing.box(name, x, y, label, shape, kind, width=1.02)
            look = {"color": COLORS[0], "fontsize": 13, "weight": "bold"}
            look |= {"ha": "center", "va": "center", "family": "monospace"}
            drawing.ax.text(x, y + below * 0.5, lesson, **look)
        for start, end in zip(boxes, boxes[1:]):
            drawing.arrow(start[0], end[0])
    drawing.arrow("block", "blocks")
    return drawing.fig


def attention(B, T, C, head_size):
    """One head, x -> q, k, v -> scores -> mask -> softmax -> weights · v: a figure.

    The sizes, numbers or letters, are written into the shapes.
    """
    drawing = Drawing(7, 3)
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
    drawing.box("out", 6.02, 2, label="weights · v", shape=narrow, width=1.15)
    steps = ["scores", "mask", "softmax", "weights", "out"]
    for start, end in [("q", "scores"), ("k", "scores"), *zip(steps, steps[1:])]:
        drawing.arrow(start, end)
    drawing.arrow("v", "out")
    return drawing.fig


def listeners(text):
    """The letters of a text, an arrow from each to all that it may see: a figure."""
    fig = Figure(figsize=(1.8 * len(text), 3.4), layout="constrained")
    ax = fig.subplots()
    style = {"arrowstyle": "->", "color": "0.35"}
    for t, letter in enumerate(text):
        for i in range(t):
            bend = f"arc3,rad={0.25 + 0.05 * (t - i)}"
            arrow = style | {"connectionstyle": bend}
            ax.annotate("", (i + 0.08, 0.03), (t - 0.08, 0.03), arrowprops=arrow)
        arrow = style | {"connectionstyle": "arc3,rad=2.2"}  # to itself
        ax.annotate("", (t + 0.09, -0.11), (t - 0.09, -0.11), arrowprops=arrow)
        circle = {"boxstyle": "circle", "fc": FILL["tensor"]}
        center = {"ha": "center", "va": "center", "family": "monospace"}
        ax.text(t, 0, letter, fontsize=22, bbox=circle, **center)
    ax.set(xlim=(-0.5, len(text) - 0.5), ylim=(-0.6, 1.1))
    ax.set_axis_off()
    return fig


def heads():
    """Four heads, side by side, projected: a figure. Each head is `attention`."""
    drawing, middle = Drawing(7, 4), 1.5
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
    return drawing.fig


def block():
    """The transformer block: its pathway a straight line, its parts on side roads."""
    end = 5.45  # the column in which x comes out
    drawing = Drawing(end, 2)
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
    return drawing.fig
