"""The benchmark for the README: it measures, writes records/bench.json and draws
.github/bench.png.

    python -m minigpt.course.experiments.bench_record
"""

import json
from datetime import date
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from minigpt.course import record
from minigpt.course.experiments import recording
from minigpt.course.plots import COLORS, STYLES
from minigpt.files import replacing, write_whole
from minigpt.tools.benchmark import GOAL, bench, bench_table, contenders
from minigpt.tools.corpus import corpus

FIGURE = Path(__file__).resolve().parents[3] / ".github" / "bench.png"


def figure(result: dict) -> Figure:
    """The curves as a matplotlib Figure."""
    fig = Figure(figsize=(9, 5), layout="constrained")
    ax = fig.subplots()
    colors = [*COLORS, "0.5"]
    for i, (name, curve) in enumerate(result["curves"].items()):
        color = colors[i % len(colors)]
        style: Any = {"linestyle": STYLES[i % len(STYLES)], "marker": "os^DvPX"[i % 7]}
        ax.plot(*zip(*curve), label=name, color=color, **style)
    goal = f"nanoGPT's own demo, {GOAL}"
    ax.axhline(GOAL, color="0.4", linestyle=":", label=goal)
    lowest = min(curve[-1][1] for curve in result["curves"].values())
    ax.set(ylim=(lowest - 0.1, 2.6), xlabel="seconds of training (two cores)")
    ax.set_ylabel("validation loss (nats per character)")
    ax.legend(fontsize=10)
    return fig


def publish(result: dict, path: Path, image: Path) -> None:
    """Write the record (JSON) and the figure (PNG), each whole or not at all."""
    write_whole(path, json.dumps(result, indent=1) + "\n")
    with replacing(image) as unfinished:
        plain = {"Software": None}
        figure(result).savefig(unfinished, format="png", dpi=100, metadata=plain)


if __name__ == "__main__":
    text = corpus()
    about: dict[str, Any] = {
        "date": date.today().isoformat(),
        "torch": torch.__version__.split("+")[0],
    }
    result = about | {"machine": recording.machine()}
    result |= bench(text, contenders(text.vocab_size), demo_steps=2000, rounds=20)
    publish(result, record.FOLDER / "bench.json", FIGURE)
    print(bench_table(result))
