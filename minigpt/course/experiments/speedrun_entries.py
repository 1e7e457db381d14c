"""The entries of the speed run's table: each changes one thing. The table itself is in
minigpt/course/SPEED.md.

build and train are those of a reader's file, with the entry's name as one argument
more: this file goes through the same door.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn as nn

from minigpt import training
from minigpt.course.experiments import fit
from minigpt.evaluation import evaluate
from minigpt.hints import Model
from minigpt.modern import counting
from minigpt.modern.counts import ContextCounts, ContinuationCounts
from minigpt.modern.model import ModernConfig
from minigpt.modern.ngrams import NgramConfig
from minigpt.modern.parts import ShortConvolution
from minigpt.modern.recipe import counting_preset, ngram_preset
from minigpt.tools import speedrun
from minigpt.training import TrainConfig, preset

ORDER, ALONE, FIT_STEPS = 8, 5, 100  # ALONE: the best of "speedrun-order"


def old_shape(vocab_size: int) -> tuple[Any, TrainConfig]:
    """06's GPT and its recipe."""
    return preset("cpu", vocab_size)


def short_plan(vocab_size: int) -> TrainConfig:
    """Muon and the trapezoid, in batches of as many characters as 06's."""
    return replace(ngram_preset(vocab_size)[1], batch_size=16, block_size=64)


def old_with_muon(vocab_size: int) -> tuple[Any, TrainConfig]:
    """06's GPT, with today's optimizer and schedule."""
    return old_shape(vocab_size)[0], short_plan(vocab_size)


def of_old_size(kind: Callable, vocab_size: int) -> tuple[Any, TrainConfig]:
    """A config of `kind` as large as 06's GPT, and the same recipe."""
    gpt, _ = old_shape(vocab_size)
    shape = kind(vocab_size, 64, gpt.n_layer, gpt.n_head, gpt.n_embd)
    return shape, short_plan(vocab_size)


class Entry(NamedTuple):
    """A row of the table.

    steps: what fits into the time on the machine of the record. preset: vocab_size ->
    (config of the model, recipe). convolution: a ShortConvolution behind the embedding
    (NgramGPT and CountingGPT have their own). counts, gpt: which of them it has.
    """

    steps: int
    preset: Callable
    convolution: bool = False
    counts: bool = False
    gpt: bool = True


today = partial(of_old_size, ModernConfig)
ENTRIES = {
    "GPT of 06": Entry(2600, old_shape),
    "+ Muon, trapezoid": Entry(1650, old_with_muon),
    "+ today's block": Entry(1600, today),
    "+ short convolution": Entry(1580, today, convolution=True),
    "+ pairs and triples": Entry(1550, partial(of_old_size, NgramConfig)),
    "one block, context 256": Entry(2200, ngram_preset),
    "a fifth of the time": Entry(300, ngram_preset),
    "counts alone": Entry(FIT_STEPS, counting_preset, counts=True, gpt=False),
    "GPT alone": Entry(1450, counting_preset, convolution=True),
    "+ counts": Entry(1450, counting_preset, counts=True),
    "+ counts, a sixth": Entry(130, counting_preset, counts=True),
}


def shape_and_plan(name: str, vocab_size: int) -> tuple[Any, TrainConfig]:
    """What an entry trains, its model's config, and how, for its number of steps."""
    entry = ENTRIES[name]
    shape, plan = entry.preset(vocab_size)
    plan = replace(plan, steps=entry.steps, eval_every=entry.steps, eval_batches=1)
    return shape, plan


def build(train_ids: torch.Tensor, vocab_size: int, name: str) -> Model:
    """An entry's model, untrained, with the counts that it needs."""
    entry, (shape, plan) = ENTRIES[name], shape_and_plan(name, vocab_size)
    if not entry.counts:
        model = shape.build()
        if entry.convolution:
            convolution = ShortConvolution(shape.n_embd)
            model.token_embedding = nn.Sequential(model.token_embedding, convolution)
        return model
    counts = ContinuationCounts(train_ids, vocab_size, ORDER)
    if not entry.gpt:
        return counting.CountsAlone(counts, counting.Smoothing(ORDER), plan.block_size)
    return counting.CountingGPT(shape, counts, counting.Smoothing(ORDER))


def train(model: Model, train_ids: torch.Tensor, seed: int, name: str) -> None:
    """Train an entry's model in place."""
    entry, vocab_size = ENTRIES[name], int(train_ids.max()) + 1
    plan = replace(shape_and_plan(name, vocab_size)[1], seed=seed)
    if not entry.counts:
        training.train(model, train_ids, train_ids, plan)
        return
    fitted = counting.fit_smoothing(model.counts, train_ids, plan, FIT_STEPS)
    model.smoothing.load_state_dict(fitted.state_dict())
    if entry.gpt:
        draw = partial(counting.fold_batch, model)
        training.train(model, train_ids, train_ids, plan, draw=draw)


def measured(name: str, seed: int) -> dict[str, float]:
    """One seed of an entry: what speedrun.run measures, and the steps."""
    found = speedrun.run(__file__, fit.corpus(), seed, name)
    return found | {"steps": ENTRIES[name].steps}


def development(order: int, seed: int) -> dict[str, float]:
    """Counts of contexts of `order` characters, judged on a piece cut from the end of
    the training text: the validation split has no say in what is chosen."""
    text = fit.corpus()
    n = len(text.train) - len(text.val)
    learn, judge = text.train[:n], text.train[n:]
    model = counted(ContextCounts(learn, text.vocab_size, order), learn, seed)
    return {"loss": evaluate(model, judge, model.block_size)}


def counted(
    counts: ContextCounts, ids: torch.Tensor, seed: int
) -> counting.CountsAlone:
    """A CountsAlone whose discounts are fitted to ids (N,)."""
    plan = replace(shape_and_plan("counts alone", counts.vocab_size)[1], seed=seed)
    smoothing = counting.fit_smoothing(counts, ids, plan, FIT_STEPS)
    return counting.CountsAlone(counts, smoothing, plan.block_size)


def in_windows(kind: Callable, order: int, seed: int) -> dict[str, float]:
    """Counts, judged in windows of 64, 128 and 256 characters."""
    text = fit.corpus()
    model = counted(kind(text.train, text.vocab_size, order), text.train, seed)
    return {f"windows of {T}": evaluate(model, text.val, T) for T in (64, 128, 256)}


COUNTED = {"taking": (ContextCounts, ALONE), "Kneser-Ney": (ContinuationCounts, ORDER)}
ORDERS = {f"{order} characters": partial(development, order) for order in range(3, 9)}
EXPERIMENTS = {
    "08-windows": {name: partial(in_windows, *how) for name, how in COUNTED.items()},
    "speedrun": {name: partial(measured, name) for name in ENTRIES},
    "speedrun-order": ORDERS,
}
