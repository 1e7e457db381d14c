"""The speed run's table of records: each entry changes one thing (see CHANGES).

A recipe here is what a reader's file would hold, and runs under the same function.
"""

import re
from dataclasses import replace
from functools import partial

import torch
import torch.nn as nn

from minigpt.course import record
from minigpt.course.experiments.full_training import gelu, tied
from minigpt.evaluation import evaluate
from minigpt.modern.counting import (
    CountingGPT,
    CountsAlone,
    fit_smoothing,
    train_beside_counts,
)
from minigpt.modern.counts import ContextCounts, ContinuationCounts
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import counting_preset, modern_preset
from minigpt.tools import speedrun
from minigpt.training import preset, train

# ORDER: the longest context that is counted beside a GPT, whose gate weighs them all;
# ALONE, without one, is the best of "speedrun-order".
ORDER, ALONE, FIT_STEPS = 8, 5, 100
STEPS = {  # what fits into the time on the machine of the record
    "the demo's recipe, our GPT": 2000,
    "GPT of 06": 2900,
    "+ Muon, trapezoid": 2050,
    "+ today's block": 1950,
    "+ context 128, third block": 1150,
    "counts alone": FIT_STEPS,
    "+ counts": 1480,
    "+ counts, 10 seconds": 170,
}
# What an entry of the table changes: another one here, and else the one above it.
CHANGES = {"counts alone": None, "+ counts": "+ context 128, third block"}


def shape_and_plan(name, vocab_size):
    """What an entry trains, its model's config, and how, for its number of steps."""
    gpt, adamw = preset("cpu", vocab_size)
    modern, muon = modern_preset(vocab_size)  # its optimizer, schedule and rates
    short = replace(muon, batch_size=16, block_size=64)
    block = ModernConfig(vocab_size, 64, gpt.n_layer, gpt.n_head, gpt.n_embd)
    shape, plan = {
        "the demo's recipe, our GPT": speedrun.demo(vocab_size),
        "GPT of 06": (gpt, adamw),
        "+ Muon, trapezoid": (gpt, short),
        "+ today's block": (block, short),
        "+ context 128, third block": (modern, muon),
    }.get(name, counting_preset(vocab_size))
    steps = STEPS[name]
    return shape, replace(plan, steps=steps, eval_every=steps, eval_batches=1)


def recipe(name, train_ids, vocab_size, seed, order=None):
    """An entry as a reader's file would hold it: the model, trained."""
    shape, plan = shape_and_plan(name, vocab_size)
    plan = replace(plan, seed=seed)
    if "counts" in name:
        longest = order or (ALONE if name == "counts alone" else ORDER)
        counts = ContextCounts(train_ids, vocab_size, longest)
        smoothing = fit_smoothing(counts, train_ids, plan, FIT_STEPS)
        if name == "counts alone":
            return CountsAlone(counts, smoothing, plan.block_size)
    torch.manual_seed(seed)
    if "counts" in name:
        model = CountingGPT(shape, counts, smoothing)
        train_beside_counts(model, train_ids, plan)
    else:
        model = shape.build()
        train(model, train_ids, train_ids, plan)
    return model


def entry(name, source, seed):
    """One seed of an entry: what speedrun.run measures, the steps, the machine's
    speed at that time; and for the playwright's text the floor."""
    text = speedrun.open_text(source)
    speed = speedrun.demo_speed()
    found = speedrun.run(partial(recipe, name), text, seed)
    found |= {"steps": STEPS[name], "demo steps per second": round(speed, 2)}
    if text.floor is not None:
        found["floor"] = text.floor
    return found


def development(order, seed):
    """Counts of contexts of `order` characters, judged on a piece cut from the end of
    the training text: the validation split has no say in what is chosen."""
    text = speedrun.open_text()
    n = len(text.train) - len(text.val)
    model = recipe("counts alone", text.train[:n], text.vocab_size, seed, order)
    return {"loss": evaluate(model, text.train[n:], model.block_size)}


class Adding(nn.Module):
    """07's smoothing in the place of a Smoothing: 20 pretended observations."""

    def __init__(self):
        super().__init__()
        self.strength = nn.Parameter(torch.tensor(20.0))  # not learned here

    def forward(self, counts):
        p = torch.full_like(counts[..., 0, :], 1 / counts.shape[-1])
        for seen in counts.unbind(-2):
            p = (seen + self.strength * p) / (
                seen.sum(dim=-1, keepdim=True) + self.strength
            )
        return p.log()[..., None, :]


def in_windows(name, seed):
    """Counts, or a GPT without them, in windows of 64, 128 and 256 ("loss")."""
    torch.set_num_threads(1)
    text, steps = speedrun.open_text(), STEPS["+ counts"]
    V, (shape, plan) = text.vocab_size, counting_preset(text.vocab_size)
    plan = replace(plan, steps=steps, seed=seed, eval_every=steps, eval_batches=1)
    torch.manual_seed(seed)
    if name == "GPT alone":  # the GPT of "+ counts", for as many steps
        model = shape.build()
        train(model, text.train, text.train, plan)
    else:
        kind = ContinuationCounts if name == "Kneser-Ney" else ContextCounts
        counts = kind(text.train, V, WINDOWS[name])
        smoothing = Adding()
        if name != "adding":
            smoothing = fit_smoothing(counts, text.train, plan, FIT_STEPS)
        model = CountsAlone(counts, smoothing, 256)
    judged = {str(T): evaluate(model, text.val, T) for T in (64, 128)}
    return {"loss": evaluate(model, text.val, 256)} | judged


def demo(name, seed):
    """nanoGPT's CPU demo, with what makes our GPT its GPT."""
    torch.set_num_threads(1)
    text, steps = speedrun.open_text(), STEPS["the demo's recipe, our GPT"]
    shape, plan = speedrun.demo(text.vocab_size)
    torch.manual_seed(seed)
    model = shape.build()
    if "start" in name:  # GPT-2's, at any width
        for p in model.parameters():
            p.data.mul_((shape.n_embd / 768) ** 0.5 if p.dim() == 2 else 1)
        nn.init.normal_(model.lm_head.weight, std=0.02)
    model = gelu(model) if "GELU" in name else model
    model = tied(model) if "tied" in name else model
    plan = replace(plan, steps=steps, seed=seed, eval_every=steps, eval_batches=1)
    train(model, text.train, text.train, plan)
    return {"loss": evaluate(model, text.val, 64)}


def table():
    """The record as lines of text, for print(): what each entry gains."""
    variants, above = record.load("speedrun"), None
    lines = [f"{'':28}{'loss':>5}{'spread':>8}{'seconds':>9}{'steps':>7}  gain"]
    for name, v in variants.items():
        base, seconds = CHANGES.get(name, above), max(v.values("seconds"))
        gain = record.difference(variants[base], v) if base else ""
        line = f"{name:28}{v.mean():5.3f}{v.spread():8.3f}{seconds:9.1f}"
        lines.append(f"{line}{STEPS[name]:7,}  {gain}".rstrip())
        if name in CHANGES and base:
            lines.append(f"{'':57}  against {base!r}")
        above = name
    return "\n".join(lines)


FLOORED = ["counts alone", "+ counts"]  # on the text whose floor is known
# The longest context that is counted, for each.
WINDOWS = {"adding": 6, "taking": ALONE, "Kneser-Ney": ORDER, "GPT alone": None}
DEMO = """our GPT; our GPT, GELU; GPT-2's start; GPT-2's start, GELU
GPT-2's start, tied; GPT-2's start, GELU, tied"""
EXPERIMENTS = {
    "08-windows": {n: partial(in_windows, n) for n in WINDOWS},
    "08-demo": {n: partial(demo, n) for n in re.split("; |\n", DEMO)},
    "speedrun": {name: partial(entry, name, "tinyshakespeare") for name in STEPS},
    "speedrun-playwright": {
        name: partial(entry, name, "playwright")
        for name in ("counts alone", "+ counts")
    },
    "speedrun-order": {
        f"{order} characters": partial(development, order) for order in range(3, 9)
    },
}
