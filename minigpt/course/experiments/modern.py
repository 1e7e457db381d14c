"""Experiments of notebook 08: each change added to 06's GPT, and taken from today's.

They choose, so they never look at the validation split: they learn from the first
nine tenths of the training text and are judged on the last, the development piece.
"""

from dataclasses import asdict, replace
from functools import partial
from statistics import mean, median

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course import record
from minigpt.course.experiments.fit import corpus, development
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
from minigpt.modern.model import ModernConfig, ModernGPT
from minigpt.modern.recipe import MuonConfig, modern_preset
from minigpt.training import Run, TrainConfig, preset, train

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


def variant(table, name):
    """(ModernConfig, TrainConfig) of one variant of ADDED or REMOVED."""
    if table is ADDED:
        config, recipe = preset("cpu", corpus().vocab_size)
        config = ModernConfig(**asdict(config), **OFF)
    else:  # in half-size steps, for there are many runs
        config, recipe = modern_preset(corpus().vocab_size)
        config, recipe = replace(config, block_size=64), replace(recipe, block_size=64)
    recipe = replace(recipe, steps=STEPS, eval_every=25, eval_batches=4)
    change = table[name]
    if isinstance(change, dict):
        return replace(config, **change), recipe
    if change is AdamTrapezoid:
        recipe = replace(recipe, weight_decay=0.1, grad_clip=1.0)  # as 06 has it
    return config, change(**asdict(recipe))


def trained(config, recipe, seed, factor):
    """One training at `factor` times its rates: loss, and history."""
    torch.set_num_threads(1)
    learn, judge = development()
    torch.manual_seed(seed)
    model = ModernGPT(config)
    names = [n for n in ("learning_rate", "muon_rate") if hasattr(recipe, n)]
    rates = {name: factor * getattr(recipe, name) for name in names}
    history = train(model, learn, judge, replace(recipe, seed=seed, **rates))
    return evaluate(model, judge, recipe.block_size), history


def ablation(cost, target, table, name, seed):
    """A variant at the better of two rates, after equal steps and equal seconds.

    steps_to: how many steps of that run brought the loss, estimated on the
    development piece, down to `target`; STEPS if it never got there.
    """
    config, recipe = variant(table, name)
    runs = {f: trained(config, recipe, seed, f) for f in FACTORS}
    best = min(FACTORS, key=lambda f: runs[f][0])
    loss, history = runs[best]
    relative = record.load(cost)[name].mean("cost")
    later, steps = loss, round(STEPS / relative)
    if abs(relative - 1) >= 0.03:
        later = trained(config, replace(recipe, steps=steps), seed, best)[0]
    return {
        "loss": loss,
        "factor": best,
        "steps_to": reached(history, target),
        "cost": relative,
        "equal seconds": later,
    }


def reached(history, target):
    """The step at which a history, read as straight lines, comes down to target."""
    for before, after in zip(history, history[1:]):
        if after.val_loss <= target:
            fall = before.val_loss - after.val_loss
            share = (before.val_loss - target) / fall if fall > 0 else 0.0
            return before.step + max(0.0, share) * (after.step - before.step)
    return STEPS


def cost(table, name, seed):
    """Seconds of a step, as a share of the reference's: both alternate, 40 rounds."""
    torch.set_num_threads(1)
    steps = []
    for one in (next(iter(table)), name):
        config, recipe = variant(table, one)
        torch.manual_seed(seed)
        model, recipe = ModernGPT(config), replace(recipe, eval_batches=1)
        steps.append(partial(timed_step, model, Run(model, recipe), recipe))
    times = [[step() for step in steps] for _ in range(45)][5:]
    return {"cost": median(after / before for before, after in times)}


def timed_step(model, run, recipe):
    """Seconds of one more step of a run, all included."""
    before, (learn, judge) = run.seconds, development()
    train(model, learn, judge, recipe, run=run, on_step=lambda run: True)
    return run.seconds - before


class OneLess:
    """ContextCounts less the one occurrence that is to be predicted: targets (B, T)."""

    def __init__(self, counts):
        self.counts, self.order, self.targets = counts, counts.order, None

    def __call__(self, idx, without=None):
        counts = self.counts(idx)  # (B, T, order + 1, V)
        if self.targets is None:  # nothing was counted here
            return counts
        own = F.one_hot(self.targets, counts.shape[-1])[:, :, None]  # (B, T, 1, V)
        return (counts - own).clamp(min=0)


class LeaveOneOut(CountingGPT):
    """A CountingGPT beside OneLess; those know what it learns, if it learns."""

    def forward(self, idx, targets=None):
        self.counts.targets = targets if self.training else None
        return super().forward(idx, targets)


def counting(variant, seed):
    """A GPT beside counts, with less, or beside its own counts."""
    torch.set_num_threads(1)
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
    elif variant == "own place left out":
        model = LeaveOneOut(config, OneLess(counts), smoothing)
    else:
        model = CountingGPT(config, counts, smoothing)
    if variant in ("counts added", "counts added, weighed"):
        nn.init.zeros_(model.read.weight).requires_grad_(False)
    if variant in ("counts added", "counts added and read"):
        model.gate.requires_grad_(False)  # it stays: all for the longest order
    if variant in ("GPT alone", "own counts seen", "own place left out"):
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


COUNTING = [
    "all of it",
    "GPT alone",
    "counts alone, 5 characters",
    "counts alone, 8 characters",
    "counts added",
    "counts added and read",
    "counts added, weighed",
    "own counts seen",
    "own place left out",
]
EXPERIMENTS = {
    "08-counts": {name: partial(counting, name) for name in COUNTING},
    "08-added-cost": {name: partial(cost, ADDED, name) for name in ADDED},
    "08-removed-cost": {name: partial(cost, REMOVED, name) for name in REMOVED},
    "08-added": {n: partial(ablation, "08-added-cost", 2.3, ADDED, n) for n in ADDED},
    "08-removed": {
        n: partial(ablation, "08-removed-cost", 2.1, REMOVED, n) for n in REMOVED
    },
}
