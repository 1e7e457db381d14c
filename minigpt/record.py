"""The record of experiments: what was measured, over several seeds, and on what.

records/NAME.json holds one experiment: its variants, and for each what every seed
measured. `python -m minigpt.experiments NAME` measures it anew; notebooks read it.
"""

import json
import math
import platform
from datetime import date
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import torch

from minigpt.arguments import check_kind
from minigpt.files import replacing

FOLDER = Path(__file__).with_name("records")


class Variant(NamedTuple):
    """One variant of an experiment; runs: {seed: {quantity: number}}.

    "loss" is the exact validation loss in nats per character, "seconds" are those
    of training; an experiment may record other quantities besides.
    """

    name: str
    runs: dict

    def values(self, of="loss"):
        """What the seeds measured, in their order."""
        return [run[of] for _, run in sorted(self.runs.items())]

    def mean(self, of="loss"):
        """Mean over the seeds."""
        return mean(self.values(of))

    def spread(self, of="loss"):
        """Largest minus smallest over the seeds."""
        return max(self.values(of)) - min(self.values(of))


class Difference(NamedTuple):
    """Paired over the seeds, first minus second: mean, and largest minus smallest."""

    mean: float
    spread: float

    @property
    def is_tie(self):
        """True if the difference is no larger than its own spread."""
        return abs(self.mean) <= self.spread


def difference(first, second, of="loss"):
    """first - second, seed by seed. Raises ValueError unless they share seeds."""
    seeds = sorted(first.runs.keys() & second.runs.keys())
    if not seeds:
        raise ValueError(
            f"{first.name!r} has the seeds {list(first.runs)}, {second.name!r} "
            f"{list(second.runs)}: measure both with the same ones."
        )
    each = [first.runs[s][of] - second.runs[s][of] for s in seeds]
    return Difference(mean(each), max(each) - min(each))


def load(experiment):
    """{name: Variant}, in the order of the experiment.

    Raises FileNotFoundError if it has not been measured.
    """
    path = FOLDER / f"{experiment}.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no record of {experiment!r}. Measure it: "
            f"python -m minigpt.experiments {experiment}"
        )
    variants = json.loads(path.read_text(encoding="utf-8"))["variants"]
    return {
        name: Variant(name, {int(seed): run for seed, run in runs.items()})
        for name, runs in variants.items()
    }


def save(experiment, variants):
    """Write a record: machine, torch and date beside {name: Variant}."""
    if not isinstance(experiment, str) or Path(experiment).name != experiment:
        raise ValueError(f"{experiment!r} names no record: give a name, no path.")
    for name, variant in variants.items():
        kind = "a Variant(name, {seed: {quantity: number}})"
        check_kind(f"The variant {name!r}", variant, Variant, kind)
        for seed, run in variant.runs.items():
            bad = [of for of, value in run.items() if not math.isfinite(value)]
            if bad:
                raise ValueError(
                    f"{name!r} has {bad[0]} {run[bad[0]]} for seed {seed}: measure "
                    "that seed again."
                )
    content = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "torch": torch.__version__.split("+")[0],
        "variants": {name: variant.runs for name, variant in variants.items()},
    }
    with replacing(FOLDER / f"{experiment}.json") as unfinished:
        unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def machine():
    """The processor and the number of threads, in a few words."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{name}, {torch.get_num_threads()} threads"


def table(variants, against=None, of="loss"):
    """Mean and spread of each Variant as lines of text, for print().

    against: the name of the one that the others are compared with, seed by seed.
    """
    if not variants:
        raise ValueError("The table is empty: give at least one Variant.")
    width = max(map(len, variants)) + 2
    head = f"{'':{width}}{of:>8}{'spread':>8}"
    lines = [head + (f"   against {against!r}" if against else "")]
    for name, variant in variants.items():
        line = f"{name:{width}}{variant.mean(of):8.3f}{variant.spread(of):8.3f}"
        if against and name != against:
            d = difference(variant, variants[against], of)
            line += f"   {d.mean:+.3f} ± {d.spread / 2:.3f}"
            line += "  a tie" if d.is_tie else ""
        lines.append(line)
    return "\n".join(lines)
