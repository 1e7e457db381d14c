"""Runs experiments over seeds, in processes of their own, and keeps each result."""

import importlib
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from minigpt import record

MODULES = [
    "ladder",
    "bigram",
    "averaging",
    "self_attention",
    "multi_head",
    "residual_blocks",
    "full_training",
    "how_low",
    "modern",
    "speedrun",
    "many_machines",
    "looking_inside",
]


def experiments():
    """{experiment: {variant: function(seed) -> {quantity: number}}}, of all modules."""
    found = {}
    for name in MODULES:
        found |= importlib.import_module(f"minigpt.experiments.{name}").EXPERIMENTS
    return found


def missing(name, variants, seeds):
    """The (variant, seed) pairs of an experiment that the record does not have."""
    try:
        known = record.load(name)
    except FileNotFoundError:
        known = {}
    return [
        (variant, seed)
        for variant in variants
        for seed in seeds
        if variant not in known or seed not in known[variant].runs
    ]


def run(name, variant, seed):
    """One measurement; the arguments are names, so that a process can be told."""
    return experiments()[name][variant](seed)


def measure(name, pairs, jobs):
    """Measure the (variant, seed) pairs, `jobs` at a time, and keep each result."""
    try:
        known = record.load(name)
    except FileNotFoundError:
        known = {}
    variants = {
        variant: record.Variant(
            variant, dict(known[variant].runs if variant in known else {})
        )
        for variant in experiments()[name]
    }
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(run, name, *pair): pair for pair in pairs}
        try:
            for future in as_completed(futures):
                variant, seed = futures[future]
                result = future.result()
                variants[variant].runs[seed] = result
                done = {n: v for n, v in variants.items() if v.runs}
                record.save(name, done)
                numbers = ", ".join(f"{k} {v:.4g}" for k, v in result.items())
                print(f"{name} · {variant} · seed {seed}: {numbers}", flush=True)
        except KeyboardInterrupt:  # what is measured is kept, what waits is dropped
            pool.shutdown(cancel_futures=True)
            raise
    of = "loss" if "loss" in result else next(iter(result))
    print(record.table(done, of=of))
