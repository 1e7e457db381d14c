"""Measure experiments over several seeds and write the record.

python -m minigpt.course.experiments              lists them
python -m minigpt.course.experiments ladder       measures one (or several, by name)
python -m minigpt.course.experiments --missing    measures what the record does not have
python -m minigpt.course.experiments --all        measures everything anew
"""

import argparse
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from minigpt.course import record
from minigpt.course.experiments import (
    averaging,
    backward,
    fast_generation,
    full_training,
    how_low,
    ladder,
    looking_inside,
    many_machines,
    modern,
    multi_head,
    residual_blocks,
    self_attention,
    speedrun,
)

MODULES = [ladder, averaging, self_attention, multi_head, residual_blocks]
MODULES += [full_training, how_low, modern, speedrun, fast_generation, many_machines]
MODULES += [looking_inside, backward]
SEEDS = [1337, 1338, 1339]


def experiments():
    """{experiment: {variant: function(seed) -> {quantity: number}}}, of all modules."""
    return {n: v for module in MODULES for n, v in module.EXPERIMENTS.items()}


def recorded(name):
    """{variant: {seed: what it measured}}, as far as the record has it."""
    try:
        return {v.name: v.runs for v in record.load(name).values()}
    except FileNotFoundError:
        return {}


def run(name, variant, seed):
    """One measurement; the arguments are names, so that a process can be told."""
    return experiments()[name][variant](seed)


def measure(name, pairs, jobs=1):
    """Measure the (variant, seed) pairs, `jobs` at a time, and keep each result."""
    known = recorded(name)
    runs = {variant: known.get(variant, {}) for variant in experiments()[name]}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(run, name, *pair): pair for pair in pairs}
        try:
            for future in as_completed(futures):
                variant, seed = futures[future]
                runs[variant][seed] = result = future.result()
                done = {v: record.Variant(v, runs[v]) for v in runs if runs[v]}
                record.save(name, done)
                numbers = ", ".join(f"{k} {v:.4g}" for k, v in result.items())
                print(f"{name} · {variant} · seed {seed}: {numbers}", flush=True)
        except BaseException:  # what is measured is kept, what waits is dropped
            pool.shutdown(cancel_futures=True)
            raise
    of = "loss" if "loss" in result else next(iter(result))
    print(record.table(done, of=of))


def main(argv=None):
    """The command line; see above."""
    parser = argparse.ArgumentParser(prog="python -m minigpt.course.experiments")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="an experiment")
    add("--missing", action="store_true", help="only what the record does not have")
    add("--all", action="store_true", help="all of them, anew")
    add("--variant", action="append", help="only this one (repeatable)")
    add("--seeds", type=int, nargs="+", default=SEEDS)
    add("--jobs", type=int, default=1, help="trainings at once; seconds need 1")
    options = parser.parse_args(argv)
    known = experiments()
    names = options.names or list(known) * (options.missing or options.all)
    for name in names:
        if name not in known:
            parser.error(f"no experiment {name!r}; there are: {', '.join(known)}")
    variants = [variant for name in names for variant in known[name]]
    for variant in options.variant or ():
        if variant not in variants:
            parser.error(f"no variant {variant!r}; there are: {', '.join(variants)}")
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}; give 1 or more")
    if not names:
        print("\n".join(known))
    for name in names:
        done = recorded(name) if options.missing else {}
        pairs = [
            (variant, seed)
            for variant in options.variant or known[name]
            for seed in options.seeds
            if variant in known[name] and seed not in done.get(variant, {})
        ]
        if pairs:
            measure(name, pairs, options.jobs)
