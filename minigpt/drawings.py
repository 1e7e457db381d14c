"""Drawings of how the pieces fit together, in one language: boxes, shapes, arrows.

A rounded box computes, a square one holds a tensor; the shape stands below its name.
"""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from minigpt.plots import COLORS

FILL = {"tensor": "#DCEBF5", "layer": "#FBE6CF", "plus": "white"}


class Drawing:
    """A figure with a grid of columns (x, to the right) and rows (y, downwards)."""

    def __init__(self, columns, rows, title=None):
        size = (1.75 * columns + 0.4, 1.15 * rows + 0.4)
        self.fig = Figure(figsize=size, layout="constrained")
        self.ax = self.fig.subplots()
        self.ax.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6))
        self.ax.set_axis_off()
        if title:
            self.ax.set_title(title, loc="left")
        self.places = {}

    def box(self, name, x, y, label=None, shape=None, kind="tensor", width=1.3):
        """A box at column x, row y; `name` is what arrows refer to."""
        height = 0.62
        style = "round,pad=0,rounding_size=0.18" if kind == "layer" else "square,pad=0"
        corner = (x - width / 2, y - height / 2)
        self.ax.add_patch(
            FancyBboxPatch(
                corner, width, height, boxstyle=style, fc=FILL[kind], ec="0.25", lw=1.5
            )
        )
        label = name if label is None else label
        shift = 0.12 if shape else 0
        center = {"ha": "center", "va": "center"}
        self.ax.text(x, y - shift, label, fontsize=13, **center)
        if shape:
            self.ax.text(x, y + 0.16, shape, fontsize=10.5, color="0.3", **center)
        self.places[name] = (x, y, width / 2, height / 2)

    def plus(self, name, x, y):
        """A small circle in which two arrows are added."""
        self.ax.text(
            x,
            y,
            "+",
            fontsize=18,
            ha="center",
            va="center",
            bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "0.25"},
        )
        self.places[name] = (x, y, 0.16, 0.2)

    def arrow(self, start, end, label=None, bend=0.0, color=COLORS[5]):
        """An arrow from box to box, along a straight line or an arc."""
        (x0, y0, w0, h0), (x1, y1, w1, h1) = self.places[start], self.places[end]
        sideways = abs(x1 - x0) - w0 - w1 > abs(y1 - y0) - h0 - h1
        if sideways:
            sign = 1 if x1 > x0 else -1
            tail, head = (x0 + sign * w0, y0), (x1 - sign * w1, y1)
        else:
            sign = 1 if y1 > y0 else -1
            tail, head = (x0, y0 + sign * h0), (x1, y1 - sign * h1)
        self.ax.add_patch(
            FancyArrowPatch(
                tail,
                head,
                arrowstyle="-|>",
                mutation_scale=16,
                lw=1.8,
                color=color,
                shrinkA=0,
                shrinkB=0,
                connectionstyle=f"arc3,rad={bend}",
            )
        )
        if label:
            x, y = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2
            self.ax.text(x, y - 0.1, label, fontsize=10.5, ha="center", va="bottom")


def block(post_norm=False):
    """The transformer block: its pathway a straight line, its parts on side roads.

    post_norm: as in 2017, with LayerNorm on the pathway itself; returns a figure.
    """
    # Columns: where the side road leaves, part, plus, norm; then where x comes out.
    stops = [(0.95, 2.15, 2.15, 0.95), (3.3, 4.5, 4.5, 3.3)]
    end = 5.45
    if post_norm:
        stops = [(0.65, 1.1, 1.55, 2.3), (3.1, 3.55, 4.0, 4.75)]
        end = 5.8
    drawing = Drawing(end, 2)
    drawing.ax.set(xlim=(-0.45, end + 0.45), ylim=(1.4, -0.4))
    drawing.ax.plot([0.4, end], [1, 1], color=COLORS[4], lw=8, zorder=0)  # pathway
    drawing.box("x", 0, 1, shape="(B, T, C)", width=0.8)
    road = ["x"]
    for i, name in enumerate(["attention", "feed-forward"]):
        fork, part, plus, norm = stops[i]
        on, above = [f"plus{i}"], [name]
        drawing.places["fork"] = (fork, 1, 0, 0)
        drawing.box(name, part, 0, kind="layer", width=1.25)
        drawing.plus(f"plus{i}", plus, 1)
        drawing.box(f"norm{i + 1}", norm, int(post_norm), kind="layer", width=0.8)
        (on if post_norm else above).append(f"norm{i + 1}")
        if not post_norm:
            drawing.arrow(f"norm{i + 1}", name)
        _upright(drawing, fork, "fork", above[-1])
        _upright(drawing, plus, name, f"plus{i}")
        road += on
    drawing.box("out", end, 1, label="x", shape="(B, T, C)", width=0.8)
    for start, stop in zip(road, [*road[1:], "out"]):
        drawing.arrow(start, stop)
    return drawing.fig


def _upright(drawing, x, start, end):
    """An arrow straight up or down in column x, from one box to another."""
    for name in (start, end):
        _, y, _, half_height = drawing.places[name]
        drawing.places[f"{name} at {x}"] = (x, y, 0, half_height)
    drawing.arrow(f"{start} at {x}", f"{end} at {x}")
