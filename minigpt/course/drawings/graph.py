"""Drawings of notebook 12: how the gradient goes back, through a GPT and in a graph."""

from minigpt.course.drawings import spine
from minigpt.course.drawings.canvas import FILL, MIDDLE, arrow, frame, paper
from minigpt.course.plots import COLORS, Picture, Style

NODES = {  # name: what it is, its slope; depth, row
    "a": ("a = 2", "−24", 0, 0),
    "b": ("b = −3", "16", 0, 1.2),
    "c": ("c = 10", "8", 0, 2.4),
    "e": ("e = a · b = −6", "8", 1, 0.6),
    "d": ("d = e + c = 4", "4 + 4 = 8", 2, 1.5),
    "L": ("L = d · d = 16", "1", 3, 1.5),
}
EDGES = [  # result, parent, what the slope is multiplied by, where both ends attach
    ("L", "d", "× d (4)", -0.17, -0.17),
    ("L", "d", "× d (4)", 0.17, 0.17),
    ("d", "e", "× 1", -0.15, 0),
    ("d", "c", "× 1", 0.15, 0),
    ("e", "a", "× b (−3)", -0.15, 0),
    ("e", "b", "× a (2)", 0.15, 0),
]


def way_back() -> Picture:
    """How a text goes through a GPT, and below it how the gradient goes back."""
    fig = spine.way()
    ax = fig.axes[0]
    ax.set_ylim(3.7, 0)
    fig.set_figheight(3.7)
    look: Style = {"mutation_scale": 20, "lw": 3, "ls": "--", "color": COLORS[1]}
    for ends in [((11.9, 3.4), (3.5, 3.4)), ((3.5, 3.4), (3.5, 1.98))]:
        arrow(ax, *ends, **look)
    loss = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": COLORS[1], "lw": 2.5}
    ax.text(12.3, 3.4, "loss", fontsize=14, bbox=loss, **MIDDLE)
    label = "backward: how does each parameter change the loss?"
    over = {"boxstyle": "square,pad=0.2", "fc": "white", "ec": "none"}
    ax.text(7.4, 3.4, label, fontsize=14, color=COLORS[1], bbox=over, **MIDDLE)
    fig.alt += " New in 12: a dashed arrow leads from the loss back to the vectors."
    return fig


def walk_back() -> Picture:
    """L = (ab + c)²: the numbers from left to right, the slopes from right to left."""
    fig, ax = paper((13, 4.8), (-0.35, 3.35), (2.8, -0.75))
    half = 0.26  # of a box
    for depth in range(4):
        ax.text(depth, -0.6, f"depth {depth}", fontsize=12, color="0.35", **MIDDLE)
    for later, sooner, factor, at_later, at_sooner in EDGES:
        (x0, y0), (x1, y1) = (NODES[name][2:] for name in (later, sooner))
        right, left = (x0 - half, y0 + at_later), (x1 + half, y1 + at_sooner)
        outside = 0.06 if at_later > 0 else -0.06  # the way back is on the outside
        for (xa, ya), (xb, yb), shift, color, line in (
            (left, right, -outside, "0.6", "-"),
            (right, left, outside, COLORS[1], "--"),
        ):
            look: Style = {"mutation_scale": 15, "lw": 2, "color": color, "ls": line}
            arrow(ax, (xa, ya + shift), (xb, yb + shift), **look)
        x, y = (right[0] + left[0]) / 2, (right[1] + left[1]) / 2 + 4 * outside
        ax.text(x, y, factor, fontsize=14, color=COLORS[1], **MIDDLE)
    for label, slope, x, y in NODES.values():
        frame(ax, x - half, y - 0.32, 2 * half, 0.64, 0, fc=FILL["tensor"], lw=1)
        ax.text(x, y - 0.12, label, fontsize=14, **MIDDLE)
        style: Style = {"fontsize": 14, "color": COLORS[1], "weight": "bold"}
        ax.text(x, y + 0.15, slope, **MIDDLE, **style)
    fig.alt = (
        "A graph from left to right: a = 2 and b = -3 make e = -6; e and c = 10 make "
        "d = 4; d, used twice, makes L = 16. Dashed arrows lead back and multiply the "
        "slope: it's 1 at L; two arrows, each times 4, add up to 8 at d; times 1, "
        "it's 8 at e and c; times b, it's -24 at a; times a, it's 16 at b."
    )
    return fig
