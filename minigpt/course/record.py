"""The record of experiments: what was measured, over several seeds, and on what.

records/NAME.json holds one experiment: its variants, and for each what every seed
measured; date, machine and torch of the runs, and under "also" those of runs that were
measured on another day or machine. Notebooks read it here; `python -m
minigpt.course.experiments NAME` measures and writes it anew (experiments/recording.py).
"""

import json
from pathlib import Path
from statistics import mean
from typing import NamedTuple

FOLDER = Path(__file__).with_name("records")


class Variant(NamedTuple):
    """One variant of an experiment; runs: {seed: {quantity: number}}.

    "loss" is the exact validation loss in nats per character, "seconds" are those
    of training; an experiment may record other quantities besides.
    """

    name: str
    runs: dict

    def values(self, of: str = "loss") -> list[float]:
        """What the seeds measured, in their order."""
        return [run[of] for _, run in sorted(self.runs.items())]

    def mean(self, of: str = "loss") -> float:
        """Mean over the seeds."""
        return mean(self.values(of))

    def spread(self, of: str = "loss") -> float:
        """Largest minus smallest over the seeds."""
        return max(self.values(of)) - min(self.values(of))


class PairedDifference(NamedTuple):
    """Paired over the seeds, first minus second: one number for each seed.

    It is a tie unless all seeds agree in sign. Three agree by chance one time in
    four: so the range is always shown with the mean.
    """

    each: list

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return mean(self.each)

    @property
    def is_tie(self) -> bool:
        """True unless every seed has the same sign."""
        return min(self.each) <= 0 <= max(self.each)

    def __str__(self) -> str:
        """In words, such as "+0.200 (+0.071 to +0.328, 3 of 3)", or with "a tie"."""
        agree = sum(value * self.mean > 0 for value in self.each)
        low, high = min(self.each), max(self.each)
        seeds = f"{agree} of {len(self.each)}"
        text = f"{self.mean:+.3f} ({low:+.3f} to {high:+.3f}, {seeds})"
        return f"{text}, a tie" if self.is_tie else text


def difference(first: Variant, second: Variant, of: str = "loss") -> PairedDifference:
    """first - second, over the seeds that both have."""
    seeds = sorted(first.runs.keys() & second.runs.keys())
    return PairedDifference([first.runs[s][of] - second.runs[s][of] for s in seeds])


def load(experiment: str) -> dict[str, Variant]:
    """{name: Variant}, in the order of the experiment.

    Raises FileNotFoundError if it has not been measured.
    """
    path = FOLDER / f"{experiment}.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no record of {experiment!r}. Measure it: "
            f"python -m minigpt.course.experiments {experiment}"
        )
    variants = json.loads(path.read_text(encoding="utf-8"))["variants"]
    return {
        name: Variant(name, {int(seed): run for seed, run in runs.items()})
        for name, runs in variants.items()
    }


def table(
    variants: dict[str, Variant], against: str | None = None, of: str = "loss"
) -> str:
    """Mean and spread of each Variant as lines of text, for print().

    against: the name of the one that the others are compared with, seed by seed.
    Raises ValueError if there is none of that name.
    """
    if against and against not in variants:
        names = ", ".join(map(repr, variants))
        raise ValueError(f"There is no variant {against!r}; there are: {names}.")
    width = max(map(len, variants)) + 2
    head = f"{'':{width}}{of:>8}{'spread':>8}"
    lines = [head + (f"   against {against!r}" if against else "")]
    for name, variant in variants.items():
        line = f"{name:{width}}{variant.mean(of):8.3f}{variant.spread(of):8.3f}"
        if against and name != against:
            line += f"   {difference(variant, variants[against], of)}"
        lines.append(line)
    return "\n".join(lines)


def at_best(variants: dict[str, Variant]) -> dict[str, Variant]:
    """{NAME: the Variant of the lowest mean loss} of variants named "NAME, rate R"."""
    best = {}
    for label, variant in variants.items():
        name = label.rpartition(", rate ")[0]
        if name not in best or variant.mean() < best[name].mean():
            best[name] = variant
    return best


def grid(variants: dict[str, Variant], of: str = "loss") -> str:
    """The means of variants named "NAME, rate R" as text, a column for each rate."""
    rows = {}
    for label, variant in variants.items():
        name, _, rate = label.rpartition(", rate ")
        rows.setdefault(name, {})[rate] = f"{variant.mean(of):.3f}"
    rates = sorted({rate for row in rows.values() for rate in row}, key=float)
    width = max(map(len, [*rows, "learning rate"])) + 2
    lines = [f"{'learning rate':{width}}" + "".join(f"{r:>8}" for r in rates)]
    for name, means in rows.items():
        cells = "".join(f"{means.get(rate, ''):>8}" for rate in rates)
        lines.append(f"{name:{width}}{cells}")
    return "\n".join(lines)
