"""What the experiments share: the corpus, the small models, variants in a grid, and
one training judged exactly."""

import time
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import NamedTuple

import torch

from minigpt.data import CharTokenizer, load_text, tiny_shakespeare, train_val_split
from minigpt.evaluation import evaluate
from minigpt.language_model import LanguageModel
from minigpt.training import Run, TrainConfig, preset, train

# The recipe and the sizes of the small models in 03, 04 and 05.
WIDTH, CONTEXT = 64, 32
SMALL = TrainConfig(steps=600, batch_size=32, block_size=CONTEXT, learning_rate=5e-3)


class Corpus(NamedTuple):
    """Tiny Shakespeare as ids (N,), split, and the characters that they stand for."""

    train: torch.Tensor
    val: torch.Tensor
    tokenizer: CharTokenizer

    @property
    def vocab_size(self):
        return self.tokenizer.vocab_size


@cache
def corpus():
    """The Corpus; FileNotFoundError, not a substitute, if it is not there."""
    text = load_text(tiny_shakespeare())
    tokenizer = CharTokenizer(text)
    return Corpus(*train_val_split(torch.tensor(tokenizer.encode(text))), tokenizer)


def development():
    """The training text cut again: nine tenths to learn from, one to choose by."""
    return train_val_split(corpus().train)


def fit(model, recipe, seed):
    """Train `model`, and judge it: {"loss", "parameters", "seconds"}.

    Call torch.manual_seed(seed) before you make the model: paired variants then
    start from the same numbers where that is possible, and see the same batches.
    """
    text = corpus()
    history = train(model, text.train, text.val, replace(recipe, seed=seed))
    return {
        "loss": evaluate(model, text.val, recipe.block_size),
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(history[-1].seconds, 1),
    }


def step_times(trainings, rounds, clock=time.perf_counter):
    """Seconds of a step, its batch included: a list for each round, in which every
    (model, data, recipe) has its turn; five rounds before these are not told."""
    runs = [(*each, Run(each[0], each[2])) for each in trainings]

    def step(model, data, recipe, run):
        start, spent = clock(), []

        def end(run):
            spent.append(clock() - start)
            return True

        train(model, data, data, recipe, run, on_step=end)
        return spent[0]

    return [[step(*run) for run in runs] for _ in range(5 + rounds)][5:]


def as_it_is(model):
    """The model without any change."""
    return model


def preset_gpt(seed, **shape):
    """The GPT of the preset "cpu", of the usual shape or another, and its recipe."""
    config, recipe = preset("cpu", corpus().vocab_size)
    torch.manual_seed(seed)
    return replace(config, **shape).build(), recipe


def small(seed, body, recipe=SMALL, n_embd=WIDTH, change=as_it_is, **changes):
    """Train the shell of lesson 03 around body() with a recipe, or what changes it;
    change(model) first."""
    torch.manual_seed(seed)
    plan, made = replace(recipe, **changes), body()
    model = LanguageModel(corpus().vocab_size, plan.block_size, n_embd, made)
    return fit(change(model), plan, seed)


def grid(name, function, /, **axes):
    """{name: function(seed)} for every combination, the first axis the slowest.

    An axis is a list of values or a dictionary {label: value}; `name` has a place for
    the labels, as in "{body}, rate {learning_rate:g}".
    """
    axes = {k: a if isinstance(a, dict) else dict(zip(a, a)) for k, a in axes.items()}
    found = {}
    for point in product(*(axis.items() for axis in axes.values())):
        labels, values = zip(*point)
        variant = name.format(**dict(zip(axes, labels)))
        found[variant] = partial(function, **dict(zip(axes, values)))
    return found
