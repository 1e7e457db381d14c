"""The language of the experiments. A variant is a dictionary of changes to a config (of
a GPT, or of the shell of 03) and to its recipe; `grid` makes functions of them, and
`run` trains and judges one."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import torch
import torch.nn as nn

from minigpt.data import train_val_split
from minigpt.evaluation import evaluate
from minigpt.gpt import GPTConfig
from minigpt.interfaces import Model
from minigpt.language_model import LanguageModel
from minigpt.stored.rungs import CONTEXT, WIDTH
from minigpt.tools.corpus import corpus
from minigpt.training import Run, TrainConfig, preset, train

SMALL = TrainConfig(steps=600, batch_size=32, block_size=CONTEXT, learning_rate=1e-2)
DTYPES = {"float32": {"dtype": torch.float32}, "float64": {"dtype": torch.float64}}


def development() -> tuple[torch.Tensor, torch.Tensor]:
    """The training text cut again: nine tenths to learn from, one to choose by."""
    return train_val_split(corpus().train)


@dataclass
class Shell:
    """The config of a small model: the shell of lesson 03 around body()."""

    body: Callable = nn.Identity
    n_embd: int = WIDTH
    vocab_size: int = 65  # Tiny Shakespeare's

    def build(self) -> LanguageModel:
        """A model with new weights."""
        return LanguageModel(self.vocab_size, CONTEXT, self.n_embd, self.body())


def small() -> tuple[Shell, TrainConfig]:
    """The shell of 03 and the recipe of 02 to 05."""
    return Shell(), SMALL


def cpu() -> tuple[GPTConfig, TrainConfig]:
    """The preset "cpu"."""
    return preset("cpu", corpus().vocab_size)


def made(
    seed: int,
    base: Callable,
    change: Callable | None = None,
    kind: type | None = None,
    factor: float = 1.0,
    **changes: Any,
) -> tuple[Model, TrainConfig]:
    """(model, recipe) of base() -> (config, recipe), with changes of their fields.

    change(model) comes last; kind: another class for the recipe; factor: of all its
    rates. Variants of one seed start from the same numbers where that is possible, and
    see the same batches.
    """
    config, recipe = base()
    own = {f.name for f in fields(config)} & changes.keys()
    config = replace(config, **{name: changes.pop(name) for name in own})
    recipe = (kind or type(recipe))(**vars(recipe) | changes | {"seed": seed})
    rates = {n: factor * v for n, v in vars(recipe).items() if n.endswith("_rate")}
    torch.manual_seed(seed)
    model = config.build()
    if change is not None:
        change(model)
    return model, replace(recipe, **rates)


def run(
    seed: int, base: Callable, data: Callable | None = None, **changes: Any
) -> dict[str, float]:
    """Train one variant (see made) on the first part of data(), the corpus if it is
    None, and judge it by the second: {"loss", "lowest" estimate, "parameters",
    "seconds"}."""
    return fit(*made(seed, base, **changes), data)


def fit(model: Model, recipe: Any, data: Callable | None = None) -> dict[str, float]:
    """Train a model on the first part of data(), and judge it by the second: what `run`
    returns."""
    learned, judged = (data or corpus)()[:2]
    history = train(model, learned, judged, recipe)
    return {
        "loss": evaluate(model, judged, recipe.block_size),
        "lowest": min(row.val_loss for row in history),
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(history[-1].seconds, 1),
    }


def step_cost(first: tuple, second: tuple, rounds: int) -> float:
    """Seconds of a step, its batch included, of the second (model, data, recipe) as a
    share of the first's: the median of so many rounds in which each has its turn."""
    runs = [(*each, Run(each[0], each[2])) for each in (first, second)]

    def seconds(model, data, recipe, run):
        before = run.seconds
        train(model, data, data, recipe, run, on_step=lambda run: True)  # a single one
        return run.seconds - before

    times = [[seconds(*each) for each in runs] for _ in range(5 + rounds)]
    return median(later / sooner for sooner, later in times[5:])


def grid(name: str, function: Callable, /, **axes: Any) -> dict[str, Callable]:
    """{name: function(seed)} for every combination, the first axis the slowest.

    An axis is a list of values of the argument after which it is named, or a dictionary
    {label: changes}; `name` has a place for the labels, as in "{body}, rate {rate:g}".
    """
    points = [
        axis.items() if isinstance(axis, dict) else [(v, {argument: v}) for v in axis]
        for argument, axis in axes.items()
    ]
    found = {}
    for point in product(*points):
        variant = name.format(**{a: label for a, (label, _) in zip(axes, point)})
        changes = {k: v for _, each in point for k, v in each.items()}
        found[variant] = partial(function, **changes)
    return found
