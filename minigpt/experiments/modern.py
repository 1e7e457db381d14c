"""Experiments of notebook 08: each change added to 06's GPT, and taken from today's.

They choose, so they never look at the validation split: they learn from the first
nine tenths of the training text and are judged on the last, the development piece.
"""

import statistics
import time
from dataclasses import asdict, replace
from functools import partial

import torch

from minigpt import record
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.experiments.fit import corpus, development
from minigpt.modern import ModernConfig, ModernGPT
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.recipe import preset
from minigpt.training import train

STEPS = 300  # of every run, unless it is one of equal seconds
FACTORS = [0.5, 1.0, 2.0]  # each variant runs at these multiples of its rates
OFF = {  # what makes a ModernConfig the GPT of lesson 06
    "rms_norm": False,
    "rotary": False,
    "qk_norm": False,
    "activation": "relu",
    "bias": True,
    "zero_init": False,
    "value_residual": False,
    "embedding_mix": False,
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
    "- value residual": ({"value_residual": False}, {}),
    "- embedding mix": ({"embedding_mix": False}, {}),
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
    """A variant at the best of three rates, after equal steps and equal seconds.

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


EXPERIMENTS = {
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
