"""Experiments of notebook 08: each change added to 06's GPT, and taken from today's.

They choose, so they never look at the validation split: they learn from the first
nine tenths of the training text and are judged on the last, the development piece.
"""

import re
from dataclasses import asdict, replace
from functools import partial
from statistics import mean, median

import torch
import torch.nn as nn

from minigpt.course import record
from minigpt.course.experiments.fit import corpus, development, grid, step_times
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.modern.counting import (
    CountingGPT,
    CountsAlone,
    fit_smoothing,
    fold_batch,
    train_beside_counts,
)
from minigpt.modern.counts import ContextCounts
from minigpt.modern.experts import MixtureOfExperts
from minigpt.modern.model import ModernConfig, ModernGPT
from minigpt.modern.parts import ShortConvolution
from minigpt.modern.recipe import MuonConfig, modern_preset
from minigpt.training import TrainConfig, preset, train

STEPS = 300  # of every run, unless it is one of equal seconds
FACTORS = [1.0, 2.0]  # each variant runs at these multiples of its rates


class MuonCosine(MuonConfig):
    """Muon, but 06's schedule."""

    learning_rate_at = TrainConfig.learning_rate_at


class AdamTrapezoid(MuonConfig):
    """The trapezoid, but 06's optimizer."""

    make_optimizer = TrainConfig.make_optimizer


OFF = {  # what makes a ModernConfig the GPT of lesson 06
    "rms_norm": False,
    "rotary": False,
    "qk_norm": False,
    "activation": "relu",
    "bias": True,
    "zero_init": False,
}
EITHER = {  # what both begin without
    "+ grouped queries": {"n_kv_head": 2},
    "+ value residual": {"value_residual": True},
    "+ embedding mix": {"embedding_mix": True},
    "+ soft cap": {"softcap": 15.0},
}
ADDED = {  # fields of ModernConfig, or another recipe than AdamW and the cosine
    "06's GPT": {},
    "+ RMSNorm": {"rms_norm": True},
    "+ rotary": {"rotary": True},
    "+ query/key norm": {"qk_norm": True},
    "+ ReLU²": {"activation": "relu2"},
    "+ SwiGLU": {"activation": "swiglu"},
    "+ no biases": {"bias": False},
    "+ zero start": {"zero_init": True},
    **EITHER,
    "+ trapezoid": AdamTrapezoid,
    "+ Muon": MuonCosine,
}
REMOVED = {  # the same, or another recipe than Muon and the trapezoid
    "modern": {},
    "- RMSNorm": {"rms_norm": False},
    "- rotary": {"rotary": False},
    "- query/key norm": {"qk_norm": False},
    "- ReLU²": {"activation": "relu"},
    "ReLU² to SwiGLU": {"activation": "swiglu"},
    "- no biases": {"bias": True},
    "- zero start": {"zero_init": False},
    **EITHER,
    "- trapezoid": MuonCosine,
    "- Muon": AdamTrapezoid,
}


def variant(table, name, steps=STEPS, **shape):
    """(ModernConfig, TrainConfig) of one variant of ADDED or REMOVED."""
    if table is ADDED:
        config, recipe = preset("cpu", corpus().vocab_size)
        config = ModernConfig(**asdict(config), **OFF)
    else:  # in half-size steps, for there are many runs
        config, recipe = modern_preset(corpus().vocab_size)
        config, recipe = replace(config, block_size=64), replace(recipe, block_size=64)
    config = replace(config, **shape)
    recipe = replace(recipe, steps=steps, eval_every=steps, eval_batches=1)
    change = table[name]
    if isinstance(change, dict):
        return replace(config, **change), recipe
    if change is AdamTrapezoid:
        recipe = replace(recipe, weight_decay=0.1, grad_clip=1.0)  # as 06 has it
    return config, change(**asdict(recipe))


def trained(config, recipe, seed, factor, change=None):
    """The loss of one training at `factor` times its rates; change(model) first."""
    learn, judge = development()
    torch.manual_seed(seed)
    model = ModernGPT(config)
    if change is not None:
        change(model)
    names = [n for n in ("learning_rate", "muon_rate") if hasattr(recipe, n)]
    rates = {name: factor * getattr(recipe, name) for name in names}
    train(model, learn, judge, replace(recipe, seed=seed, **rates))
    return evaluate(model, judge, recipe.block_size)


def better(table, name, seed, change=None):
    """A variant at the better of two rates: {"loss", "factor"}."""
    made = variant(table, name)
    losses = {f: trained(*made, seed, f, change) for f in FACTORS}
    best = min(FACTORS, key=losses.get)
    return {"loss": losses[best], "factor": best}


def ablation(cost, table, name, seed, change=None, label=None):
    """A variant at the better of two rates, after equal steps and equal seconds."""
    found = better(table, name, seed, change)
    relative = record.load(cost)[label or name].mean("cost")
    later, steps = found["loss"], round(STEPS / relative)
    if abs(relative - 1) >= 0.03:
        config, recipe = variant(table, name)
        recipe = replace(recipe, steps=steps)
        later = trained(config, recipe, seed, found["factor"], change)
    return {**found, "cost": relative, "equal seconds": later}


def cost(table, name, seed, change=None):
    """Seconds of a step, as a share of the reference's: both alternate, 40 rounds."""
    trainings = []
    for one in (next(iter(table)), name):
        config, recipe = variant(table, one)
        torch.manual_seed(seed)
        model = ModernGPT(config)
        if trainings and change is not None:
            change(model)
        trainings.append((model, development()[0], recipe))
    times = step_times(trainings, 40)
    return {"cost": median(after / before for before, after in times)}


def convolved(model):
    """Behind each layer that makes queries, keys and values, a ShortConvolution."""
    for block in list(model.body)[:-1]:
        qkv = block.attention.qkv
        block.attention.qkv = nn.Sequential(qkv, ShortConvolution(qkv.out_features))


def mixed(model, fixed=False, **options):
    """Each feed-forward layer as a MixtureOfExperts; fixed: the router never learns."""
    for block in list(model.body)[:-1]:
        n_embd = model.config.n_embd
        block.feed_forward = MixtureOfExperts(block.feed_forward, n_embd, **options)
        block.feed_forward.router.requires_grad_(not fixed)


EXPERTS = {
    "one layer": None,
    "4 experts": mixed,
    "4, router fixed": partial(mixed, fixed=True),
    "all 4 together": partial(mixed, top=4),
}


def at_rate(table, seed, name, factor, change=None, **changes):
    """A variant at one multiple of its rates; change(model) first."""
    return {"loss": trained(*variant(table, name, **changes), seed, factor, change)}


def counting(variant, seed):
    """A GPT beside counts, with less, or beside its own counts."""
    learn, judge = development()
    config, recipe = modern_preset(corpus().vocab_size)
    config = replace(config, n_layer=2, n_head=3, n_embd=96)
    recipe = replace(recipe, learning_rate=4e-3, steps=STEPS, eval_every=STEPS)
    recipe = replace(recipe, seed=seed)
    counts = ContextCounts(learn, config.vocab_size, 5 if "5 char" in variant else 8)
    smoothing = fit_smoothing(counts, learn, recipe)
    if variant.startswith("counts alone"):
        alone = CountsAlone(counts, smoothing, config.block_size)
        return {"loss": evaluate(alone, judge, config.block_size)}
    torch.manual_seed(seed)
    if variant == "GPT alone":
        model = ModernGPT(config)
    else:
        model = CountingGPT(config, counts, smoothing)
    if variant in ("counts added", "counts added, weighed"):
        nn.init.zeros_(model.read.weight).requires_grad_(False)
    if variant in ("counts added", "counts added and read"):
        model.gate.requires_grad_(False)  # it stays: all for the longest order
    if variant in ("GPT alone", "own counts seen"):
        train(model, learn, judge, recipe)
        sizes = {"batch_size": recipe.batch_size, "block_size": recipe.block_size}
        draw = partial(get_batch, learn, **sizes)
    else:
        train_beside_counts(model, learn, recipe)
        draw = partial(fold_batch, model, learn, recipe)
    model.train()
    fresh = torch.Generator().manual_seed(seed + 1000)
    with torch.no_grad():
        seen = [model(*draw(generator=fresh))[1].item() for _ in range(50)]
    return {
        "loss": evaluate(model, judge, config.block_size),
        "in training": mean(seen),
    }


COUNTING = """all of it; GPT alone; counts alone, 5 characters
counts alone, 8 characters; counts added; counts added and read
counts added, weighed; own counts seen"""
EXPERIMENTS = {
    "08-counts": {n: partial(counting, n) for n in re.split("; |\n", COUNTING)},
    "08-added-cost": {name: partial(cost, ADDED, name) for name in ADDED},
    "08-removed-cost": {name: partial(cost, REMOVED, name) for name in REMOVED},
    "08-added": {n: partial(ablation, "08-added-cost", ADDED, n) for n in ADDED},
    "08-removed": {
        n: partial(ablation, "08-removed-cost", REMOVED, n) for n in REMOVED
    },
    "08-convolution": {
        label: partial(
            ablation, "08-more-cost", table, name, change=convolved, label=label
        )
        for table, name in ((ADDED, "06's GPT"), (REMOVED, "modern"))
        for label in [f"{name} + short convolution"]
    },
    "08-experts": grid(
        "{change}, rate {factor:g}",
        partial(at_rate, ADDED, name="06's GPT", steps=1000),
        change=EXPERTS,
        factor=[0.5, 1],
    ),
    "08-more-cost": grid(
        "{table} + {change}",
        lambda seed, table, change: cost(table, next(iter(table)), seed, change),
        table={"06's GPT": ADDED, "modern": REMOVED},
        change={"short convolution": convolved, "4 experts": mixed},
    ),
    "08-adamw": grid(
        "{name}, rate {factor:g}",
        partial(at_rate, REMOVED),
        name={"AdamW": "- Muon"},
        factor=[0.25, 0.5, 1, 2],
    ),
    "08-start": grid(
        "{name}, rate {factor:g}",
        partial(at_rate, ADDED, steps=1000),
        name={"drawn": "06's GPT", "zero": "+ zero start"},
        factor=[0.5, 1],
    ),
    "08-width": grid(
        "{name}, width {n_embd}, rate {factor:g}",
        partial(at_rate, REMOVED, steps=200),
        n_embd=[32, 128],
        name={"AdamW": "- Muon", "Muon": "modern"},
        factor=[0.25, 0.5, 1, 2, 4],
    ),
}
