"""Drawings of notebook 11: an exchange, and what six of them find beside a cut."""

from typing import Any

from minigpt.course.drawings.canvas import LOOKS, Drawing, arrow
from minigpt.course.plots import COLORS, Picture, Style


def exchange() -> Picture:
    """One head's output moves from one text to its twin. Everything else stays."""
    drawing = Drawing(6.6, 2.6)
    drawing.ax.set(xlim=(-0.9, 6.1), ylim=(1.95, -0.5))
    for row, name, says in ((0, "Nan", "Nan"), (1.5, "Hob", "Hob, or now Nan?")):
        text, first, head, rest, out = (f"{part} {row}" for part in "tfhro")
        drawing.box(text, -0.1, row, "a text", f"… Hear me, {name}: …", width=1.45)
        drawing.box(first, 1.55, row, "block 1", kind="layer", width=1.0)
        look: Style = LOOKS["new"][0] if row else {}
        drawing.box(head, 2.95, row, "one head", "of block 2", "layer", 1.1, **look)
        drawing.box(rest, 4.25, row, "the rest", kind="layer", width=0.95)
        drawing.box(out, 5.5, row, "who answers?", says, width=1.1)
        drawing.arrows(text, first, head, rest, out)
    look = {"mutation_scale": 22, "lw": 3, "color": COLORS[1]}
    arrow(drawing.ax, (2.95, 0.33), (2.95, 1.17), **look)
    label = "its output\nfor the last position"
    drawing.ax.text(3.1, 0.75, label, fontsize=12, va="center", color=COLORS[1])
    drawing.fig.alt = (
        "Two texts in which Nan and Hob are named go through block 1, the heads of "
        "block 2 and the rest. An arrow leads from one head in the first text to the "
        "same head in the second: its output for the last position takes the place of "
        "the second's. Who must answer now?"
    )
    return drawing.fig


def pairs(shares: Any, cuts: Any, heads: Any) -> Picture:
    """Above, how much of the lead each head brings over, with a row for each pair of
    names. Below, what it costs to cut the head.

    shares: {model: {pair: [share of each head]}}, cuts: {model: [nats]}.
    """
    fig = Picture(figsize=(13, 4.6), layout="constrained")
    axes = fig.subplots(2, len(shares), height_ratios=[6, 1.1], squeeze=False)
    said = []
    for (model, rows), above, below in zip(shares.items(), *axes):
        panels = (
            (above, list(rows.values()), 1, "Blues", "{:.2f}"),
            (below, [cuts[model]], 6, "Oranges", "{:.1f}"),
        )
        for ax, table, most, colours, form in panels:
            ax.imshow(table, cmap=colours, vmin=0, vmax=most, aspect="auto")
            for y, row in enumerate(table):
                for x, value in enumerate(row):
                    if value >= 0.05 * most**0.5:
                        color = "white" if value > 0.6 * most else "black"
                        words = form.format(value)
                        look: Style = {"fontsize": 10, "ha": "center", "va": "center"}
                        ax.text(x, y, words, color=color, **look)
            ax.set_xticks(range(len(heads)), heads, fontsize=11)
            ax.set_yticks([])
            ax.grid(False)
        above.set_title(model)
        below.set_xlabel("head")
        best = [max(range(len(heads)), key=row.__getitem__) for row in rows.values()]
        found = ", ".join(f"{heads[i]} in {best.count(i)}" for i in sorted({*best}))
        dear = heads[max(range(len(heads)), key=cuts[model].__getitem__)]
        cut = f"the most expensive cut is {dear}"
        told = f"the head that brings over the most is {found} of the pairs"
        said.append(f"{model}: {told}; {cut}")
    first = next(iter(shares.values()))
    names = [f"{one} for {other}" for one, other in first]
    axes[0][0].set_yticks(range(len(names)), names, fontsize=11)
    axes[1][0].set_yticks([0], ["cost of a cut (nats)"], fontsize=11)
    fig.alt = (
        f"Heatmaps, a row for each of {len(names)} pairs of names and a column for "
        "each head: the share of the lead that it brings over. Below, what its cut "
        f"costs. {'. '.join(said)}."
    )
    return fig
