"""Measure experiments over several seeds and write the record.

python -m minigpt.course.experiments              lists them
python -m minigpt.course.experiments ladder       measures one (or several, by name)
python -m minigpt.course.experiments --missing    measures what the record does not have
python -m minigpt.course.experiments --all        measures everything again
"""

import argparse
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import product
from pathlib import Path

import torch

from minigpt.course import record
from minigpt.course.experiments import recording

SEEDS = [1337, 1338, 1339]


def experiments() -> dict[str, dict[str, Callable]]:
    """{experiment: {variant: function(seed) -> {quantity: number}}}, of all modules
    here that have a table EXPERIMENTS."""
    found = {}
    for path in Path(__file__).parent.glob("[a-z]*.py"):
        module = import_module(f"{__package__}.{path.stem}")
        found |= getattr(module, "EXPERIMENTS", {})
    return dict(sorted(found.items()))


def recorded(name: str) -> dict[str, dict]:
    """{variant: {seed: what it measured}}, as far as the record has it."""
    try:
        return {v.name: v.runs for v in record.load(name).values()}
    except FileNotFoundError:
        return {}


def measure(name: str, pairs: Iterable[tuple[str, int]]) -> None:
    """Measure the (variant, seed) pairs and keep each result."""
    variants, known = experiments()[name], recorded(name)
    runs = {variant: known.get(variant, {}) for variant in variants}
    for variant, seed in pairs:
        torch.set_num_threads(1)  # small models are quicker on one
        runs[variant][seed] = result = variants[variant](seed)
        done = {v: record.Variant(v, runs[v]) for v in runs if runs[v]}
        recording.save(name, done, measured={(variant, seed)})
        numbers = ", ".join(f"{k} {v:.4g}" for k, v in result.items())
        print(f"{name} · {variant} · seed {seed}: {numbers}", flush=True)


def main(argv: list[str] | None = None) -> None:
    """The command line; see above."""
    parser = argparse.ArgumentParser(prog="python -m minigpt.course.experiments")
    add, known = parser.add_argument, experiments()
    add("names", nargs="*", metavar="NAME", help="an experiment")
    add("--missing", action="store_true", help="only what the record does not have")
    add("--all", action="store_true", help="measure all of them again")
    add("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args(argv)
    names = options.names
    if not names and (options.missing or options.all):
        names = list(known)
    if unknown := set(names) - known.keys():
        parser.error(f"no experiment {unknown.pop()!r}; there are: {', '.join(known)}")
    if not names:
        print("\n".join(known))
    for name in names:
        done = recorded(name) if options.missing else {}
        pairs = product(known[name], options.seeds)
        measure(name, [(v, seed) for v, seed in pairs if seed not in done.get(v, {})])


if __name__ == "__main__":
    main()
