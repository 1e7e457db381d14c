"""Drawing of notebook 13: a text as a row of boxes, one for each token."""

from typing import Any

from minigpt.course.drawings.canvas import LOOKS, MIDDLE, SIGNS, frame, paper
from minigpt.course.plots import Picture, Style


def boxes(rows: Any) -> Picture:
    """The same text in several rows, cut in different ways, with equal letters aligned.

    rows: (label, list of tokens, which ones stand out).
    """
    letters = sum(map(len, rows[0][1]))
    room = max(len(label) for label, *_ in rows) * letters / 95  # left, for labels
    size = (13, 0.75 * len(rows) + 0.2)
    fig, ax = paper(size, (-room - 0.4, letters), (len(rows), 0))
    said = []
    for y, (label, tokens, lit) in enumerate(rows):
        ax.text(-0.4, y + 0.5, label, fontsize=13, ha="right", va="center")
        x, size = 0, min(17, 500 / letters)
        for token in tokens:
            look, color, weight = LOOKS["new" if token in lit else "built"]
            n = len(token)
            frame(ax, x + 0.06, y + 0.14, n - 0.12, 0.72, 0.12, **look)
            for i, letter in enumerate(token):
                shown = SIGNS.get(letter, letter)
                font: Style = {"fontsize": size, "family": "monospace"}
                font |= {"color": color, "weight": weight}
                ax.text(x + i + 0.5, y + 0.5, shown, **MIDDLE, **font)
            x += n
        said.append(f"{label}: {' | '.join(tokens)}".replace("\n", "line break"))
    fig.alt = f"A text in boxes, one for each token. {'; '.join(said)}."
    return fig
