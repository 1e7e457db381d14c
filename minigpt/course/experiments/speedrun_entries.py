"""The entries of the speed run's table: each changes one thing. The table itself is in
`minigpt.course.speed_table`.

build and train are those of a reader's file, with the entry's name as one argument
more: this file goes through the same door.
"""

from dataclasses import replace
from functools import partial

import torch.nn as nn

from minigpt import training
from minigpt.course.experiments import fit
from minigpt.evaluation import evaluate
from minigpt.modern import counting
from minigpt.modern.counts import ContextCounts, ContinuationCounts
from minigpt.modern.model import ModernConfig
from minigpt.modern.ngrams import NgramConfig
from minigpt.modern.parts import ShortConvolution
from minigpt.modern.recipe import counting_preset, ngram_preset
from minigpt.tools import speedrun
from minigpt.training import preset

ORDER, ALONE, FIT_STEPS = 8, 5, 100  # ALONE: the best of "speedrun-order"
STEPS = {  # what fits into the time on the machine of the record
    "GPT of 06": 2600,
    "+ Muon, trapezoid": 1650,
    "+ today's block": 1600,
    "+ short convolution": 1580,
    "+ pairs and triples": 1550,
    "one block, context 256": 2200,
    "a fifth of the time": 300,
    "counts alone": FIT_STEPS,
    "GPT alone": 1450,
    "+ counts": 1450,
    "+ counts, a sixth": 130,
}
CONVOLVED = ["+ short convolution", "GPT alone"]


def shape_and_plan(name, vocab_size):
    """What an entry trains, its model's config, and how, for its number of steps."""
    gpt, adamw = preset("cpu", vocab_size)
    ngrams, muon = ngram_preset(vocab_size)  # its optimizer, schedule and rates
    short = replace(muon, batch_size=16, block_size=64)
    sizes = vocab_size, 64, gpt.n_layer, gpt.n_head, gpt.n_embd
    shape, plan = {
        "GPT of 06": (gpt, adamw),
        "+ Muon, trapezoid": (gpt, short),
        "+ today's block": (ModernConfig(*sizes), short),
        "+ short convolution": (ModernConfig(*sizes), short),
        "+ pairs and triples": (NgramConfig(*sizes), short),
        "one block, context 256": (ngrams, muon),
        "a fifth of the time": (ngrams, muon),
    }.get(name, counting_preset(vocab_size))
    steps = STEPS[name]
    return shape, replace(plan, steps=steps, eval_every=steps, eval_batches=1)


def build(train_ids, vocab_size, name):
    """An entry's model, untrained, with the counts that it needs."""
    shape, plan = shape_and_plan(name, vocab_size)
    if "counts" not in name:
        model = shape.build()
        if name in CONVOLVED:  # NgramGPT and CountingGPT have their own
            convolution = ShortConvolution(shape.n_embd)
            model.token_embedding = nn.Sequential(model.token_embedding, convolution)
        return model
    counts = ContinuationCounts(train_ids, vocab_size, ORDER)
    if name == "counts alone":
        return counting.CountsAlone(counts, counting.Smoothing(ORDER), plan.block_size)
    return counting.CountingGPT(shape, counts, counting.Smoothing(ORDER))


def train(model, train_ids, seed, name):
    """Train an entry's model in place."""
    plan = replace(shape_and_plan(name, int(train_ids.max()) + 1)[1], seed=seed)
    if "counts" not in name:
        training.train(model, train_ids, train_ids, plan)
        return
    fitted = counting.fit_smoothing(model.counts, train_ids, plan, FIT_STEPS)
    model.smoothing.load_state_dict(fitted.state_dict())
    if name != "counts alone":
        draw = partial(counting.fold_batch, model)
        training.train(model, train_ids, train_ids, plan, draw=draw)


def entry(name, seed):
    """One seed of an entry: what speedrun.run measures, and the steps."""
    return speedrun.run(__file__, fit.corpus(), seed, name) | {"steps": STEPS[name]}


def development(order, seed):
    """Counts of contexts of `order` characters, judged on a piece cut from the end of
    the training text: the validation split has no say in what is chosen."""
    text = fit.corpus()
    n = len(text.train) - len(text.val)
    learn, judge = text.train[:n], text.train[n:]
    model = counted(ContextCounts(learn, text.vocab_size, order), learn, seed)
    return {"loss": evaluate(model, judge, model.block_size)}


def counted(counts, ids, seed):
    """A CountsAlone whose discounts are fitted to ids (N,)."""
    plan = replace(shape_and_plan("counts alone", counts.vocab_size)[1], seed=seed)
    smoothing = counting.fit_smoothing(counts, ids, plan, FIT_STEPS)
    return counting.CountsAlone(counts, smoothing, plan.block_size)


def in_windows(kind, order, seed):
    """Counts, judged in windows of 64, 128 and 256 characters."""
    text = fit.corpus()
    model = counted(kind(text.train, text.vocab_size, order), text.train, seed)
    return {f"windows of {T}": evaluate(model, text.val, T) for T in (64, 128, 256)}


COUNTED = {"taking": (ContextCounts, ALONE), "Kneser-Ney": (ContinuationCounts, ORDER)}
ORDERS = {f"{order} characters": partial(development, order) for order in range(3, 9)}
EXPERIMENTS = {
    "08-windows": {name: partial(in_windows, *how) for name, how in COUNTED.items()},
    "speedrun": {name: partial(entry, name) for name in STEPS},
    "speedrun-order": ORDERS,
}
