"""Experiments of notebook 08: each change added to 06's GPT, and taken from today's.

They choose, so they never look at the validation split: they learn from the first
nine tenths of the training text and are judged on the last, the development piece.
"""

import statistics
import time
from dataclasses import asdict, replace
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import record
from minigpt.counting import ContextCounts, CountingGPT, CountsAlone, fit_smoothing
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.experiments.fit import corpus, development
from minigpt.modern import ModernConfig, ModernGPT
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.recipe import preset
from minigpt.training import train

STEPS = 300  # of every run, unless it is one of equal seconds
FACTORS = [1.0, 2.0]  # each variant runs at these multiples of its rates
OFF = {  # what makes a ModernConfig the GPT of lesson 06
    "rms_norm": False,
    "rotary": False,
    "qk_norm": False,
    "activation": "relu",
    "bias": True,
    "zero_init": False,
}
ADDED = {  # name: fields of ModernConfig, then of TrainConfig
    "06's GPT": ({}, {}),
    "+ RMSNorm": ({"rms_norm": True}, {}),
    "+ rotary": ({"rotary": True}, {}),
    "+ query/key norm": ({"qk_norm": True}, {}),
    "+ ReLU²": ({"activation": "relu2"}, {}),
    "+ SwiGLU": ({"activation": "swiglu"}, {}),
    "+ no biases": ({"bias": False}, {}),
    "+ zero start": ({"zero_init": True}, {}),
    "+ grouped queries": ({"n_kv_head": 2}, {}),
    "+ value residual": ({"value_residual": True}, {}),
    "+ embedding mix": ({"embedding_mix": True}, {}),
    "+ soft cap": ({"softcap": 15.0}, {}),
    "+ trapezoid": ({}, {"schedule": "trapezoid"}),
    "+ Muon": ({}, {"optimizer": "muon"}),
}
ADAMW = {"optimizer": "adamw", "weight_decay": 0.1, "grad_clip": 1.0}
REMOVED = {
    "modern": ({}, {}),
    "- RMSNorm": ({"rms_norm": False}, {}),
    "- rotary": ({"rotary": False}, {}),
    "- query/key norm": ({"qk_norm": False}, {}),
    "- ReLU²": ({"activation": "relu"}, {}),
    "ReLU² to SwiGLU": ({"activation": "swiglu"}, {}),
    "- no biases": ({"bias": True}, {}),
    "- zero start": ({"zero_init": False}, {}),
    "+ grouped queries": ({"n_kv_head": 2}, {}),
    "+ value residual": ({"value_residual": True}, {}),
    "+ embedding mix": ({"embedding_mix": True}, {}),
    "+ soft cap": ({"softcap": 15.0}, {}),
    "- trapezoid": ({}, {"schedule": "cosine"}),
    "- Muon": ({}, ADAMW),
}


def variant(table, name):
    """(ModernConfig, TrainConfig) of one variant of ADDED or REMOVED."""
    shape, plan = table[name]
    vocab_size = corpus().vocab_size
    if table is ADDED:
        config, recipe = preset("cpu", vocab_size)
        config = ModernConfig(**asdict(config), **OFF)
    else:  # in half-size steps, for there are many runs
        config, recipe = preset("modern", vocab_size)
        config = replace(config, block_size=64)
        recipe = replace(recipe, batch_size=8, block_size=64)
    recipe = replace(recipe, steps=STEPS, eval_every=25, eval_batches=4)
    return replace(config, **shape), replace(recipe, **plan)


def run(config, recipe, seed, factor):
    """One training: loss on the development piece, and its history."""
    torch.set_num_threads(1)
    learn, judge = development()
    torch.manual_seed(seed)
    model = ModernGPT(config)
    recipe = replace(
        recipe,
        seed=seed,
        learning_rate=factor * recipe.learning_rate,
        muon_rate=factor * recipe.muon_rate,
    )
    history = train(model, learn, judge, recipe)
    if history[-1].step < recipe.steps:
        raise KeyboardInterrupt  # half a training is no measurement
    return evaluate(model, judge, recipe.block_size), history


def ablation(cost, target, table, name, seed):
    """A variant at the better of two rates, after equal steps and equal seconds.

    steps_to: how many steps of that run brought the loss, estimated on the
    development piece, down to `target`; STEPS if it never got there.
    """
    config, recipe = variant(table, name)
    runs = {f: run(config, recipe, seed, f) for f in FACTORS}
    best = min(FACTORS, key=lambda f: runs[f][0])
    loss, history = runs[best]
    relative = record.load(cost)[name].mean("cost")
    steps = STEPS if abs(relative - 1) < 0.03 else round(STEPS / relative)
    later = run(config, replace(recipe, steps=steps), seed, best)[0]
    return {
        "loss": loss,
        "factor": best,
        "steps_to": reached(history, target),
        "cost": relative,
        "equal seconds": later if steps != STEPS else loss,
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
        model = ModernGPT(config)
        optimizer = make_optimizer(model, recipe)
        steps.append(partial(timed_step, model, optimizer, recipe))
    times = [[step() for step in steps] for _ in range(45)][5:]
    return {"cost": statistics.median(after / before for before, after in times)}


def timed_step(model, optimizer, recipe):
    """Seconds of one step of training, all included."""
    start = time.perf_counter()
    for group in optimizer.param_groups:
        group["lr"] = learning_rate_at(0, recipe) * group.get("rate", 1.0)
    learn, _ = development()
    x, y = get_batch(learn, recipe.batch_size, recipe.block_size)
    loss = model(x, y)[1]
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.grad_clip)
    optimizer.step()
    return time.perf_counter() - start


class LeaveOneOut:
    """ContextCounts less the one occurrence that is to be predicted.

    `targets` (B, T) must be set before each training batch; with None all counts
    are there.
    """

    def __init__(self, counts):
        self.counts, self.order, self.folds = counts, counts.order, counts.folds
        self.targets = None

    def __call__(self, idx, without=None):
        counts = self.counts(idx)  # (B, T, order + 1, V)
        if self.targets is None:
            return counts
        own = F.one_hot(self.targets, counts.shape[-1])[:, :, None]  # (B, T, 1, V)
        return (counts - own).clamp(min=0)


COUNTED = {"n_layer": 2, "n_head": 3, "n_embd": 96, "block_size": 128}


def counting(variant, seed):
    """A CountingGPT with less, or that learns beside its own counts."""
    torch.set_num_threads(1)
    learn, judge = development()
    config, recipe = preset("modern", corpus().vocab_size)
    config = replace(config, **COUNTED)
    recipe = replace(recipe, learning_rate=4e-3)
    sizes = {"batch_size": 8, "block_size": config.block_size}
    recipe = replace(recipe, **sizes, steps=STEPS, eval_every=STEPS, seed=seed)
    if variant == "GPT alone":
        torch.manual_seed(seed)
        model, draw = ModernGPT(config), None
    else:
        order = 5 if variant == "counts alone, 5 characters" else 8
        counts = ContextCounts(learn, config.vocab_size, order)
        smoothing = fit_smoothing(counts, learn, recipe)
        if variant.startswith("counts alone"):
            alone = CountsAlone(counts, smoothing, config.block_size)
            return {"loss": evaluate(alone, judge, config.block_size)}
        torch.manual_seed(seed)
        model = CountingGPT(config, counts, smoothing)
        draw = model.draw(learn, recipe)
        if variant in ("counts added", "counts added, weighed"):
            nn.init.zeros_(model.read.weight).requires_grad_(False)
        if variant in ("counts added", "counts added and read"):
            model.gate.requires_grad_(False)  # it stays: all for the longest order
        if variant == "own counts seen":
            draw = None
        if variant == "own place left out":
            model.counts = LeaveOneOut(counts)
            draw = partial(leave_one_out, model.counts, learn, recipe)
    if draw is None:
        sizes = {"batch_size": recipe.batch_size, "block_size": recipe.block_size}
        draw = partial(get_batch, learn, **sizes, device="cpu")
    history = train(
        model,
        learn,
        judge,
        recipe,
        draw=lambda generator, rows: draw(generator=generator),  # one worker: all
    )
    if history[-1].step < recipe.steps:
        raise KeyboardInterrupt  # half a training is no measurement
    model.train()
    fresh = torch.Generator().manual_seed(seed + 1000)
    with torch.no_grad():
        seen = [model(*draw(generator=fresh))[1].item() for _ in range(50)]
    if variant == "own place left out":
        model.counts.targets = None  # nothing is left out where nothing was counted
    return {
        "loss": evaluate(model, judge, config.block_size),
        "in training": statistics.mean(seen),
    }


def leave_one_out(counts, ids, recipe, generator):
    """A batch, of which `counts` know what must not be counted."""
    x, y = get_batch(ids, recipe.batch_size, recipe.block_size, generator=generator)
    counts.targets = y
    return x, y


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
    "08-added": {
        name: partial(ablation, "08-added-cost", 2.3, ADDED, name) for name in ADDED
    },
    "08-removed": {
        name: partial(ablation, "08-removed-cost", 2.1, REMOVED, name)
        for name in REMOVED
    },
}
