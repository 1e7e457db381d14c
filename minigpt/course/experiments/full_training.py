"""Experiments of notebook 06: the CPU preset, changed in one thing at a time, in 600
steps with a schedule of their own where the preset takes 2400, and some in 2400; and
the way from 05's three blocks to it."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn as nn

from minigpt.course.experiments.fit import cpu, grid, run
from minigpt.course.experiments.small_models import AT_RATE, STEPS
from minigpt.gpt import GPTConfig
from minigpt.interfaces import Model
from minigpt.training import TrainConfig


class NoCosine(TrainConfig):
    """After the warm-up the rate stays."""

    def learning_rate_at(self, step: int) -> float:
        return self.learning_rate * min(1, (step + 1) / self.warmup_steps)


class Momentum(TrainConfig):
    """Adam's mean of the gradients without its division."""

    def make_optimizer(self, model: Model) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), self.learning_rate, momentum=0.9)


class Divided(TrainConfig):
    """Adam's division without its mean of the gradients."""

    def make_optimizer(self, model: Model) -> torch.optim.Optimizer:
        betas = 0.0, self.beta2
        return torch.optim.Adam(model.parameters(), self.learning_rate, betas)


def torch_start(model: Model) -> None:
    """Give the layers the starting values that torch gives them."""
    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.Embedding, nn.LayerNorm)):
            layer.reset_parameters()


@torch.no_grad()
def equal_start(model: Model) -> None:
    """`proj` starts as large as the other matrices, not smaller by √(2 n_layer)."""
    for block in model.body[:-1]:
        for proj in (block.attention.proj, block.feed_forward.proj):
            proj.weight.mul_(math.sqrt(2 * model.config.n_layer))


@torch.no_grad()
def large_head(model: Model) -> None:
    """`lm_head` starts as large as the other matrices, not near zero."""
    model.lm_head.weight.mul_(0.02 * math.sqrt(768 / model.config.n_embd) / 0.01)


def no_norm(model: Model) -> None:
    """No LayerNorm anywhere: not in the blocks, and none before `lm_head`."""
    for block in model.body[:-1]:
        block.norm1, block.norm2 = nn.Identity(), nn.Identity()
    model.body[-1] = nn.Identity()


def gelu(model: Model) -> None:
    """GPT-2's nonlinearity in the feed-forward layers."""
    for block in model.body[:-1]:
        block.feed_forward.relu = nn.GELU(approximate="tanh")


def tied(model: Model) -> None:
    """One matrix that reads characters in and out, as GPT-2 has it."""
    model.lm_head.weight = model.token_embedding.weight


RECIPE = {
    "the recipe": {},
    "rate 0.001": {"learning_rate": 1e-3},
    "rate 0.01": {"learning_rate": 1e-2},
    "no warm-up": {"warmup_steps": 0},
    "no cosine": {"kind": NoCosine},
    "no clipping": {"grad_clip": math.inf},
    "no decay": {"weight_decay": 0.0},
    "beta2 0.999": {"beta2": 0.999},
    "proj not smaller": {"change": equal_start},
    "lm_head not smaller": {"change": large_head},
    "torch's start": {"change": torch_start},
}
GPT2 = {
    "our GPT": {},
    "GELU": {"change": gelu},
    "tied embeddings": {"change": tied},
    "dropout 0.1": {"dropout": 0.1},
}


# From the last rung of 05 to the GPT, one change after another.
def between(
    seed: int,
    n_layer: int,
    n_embd: int,
    context: int,
    batch_size: int,
    steps: int,
    rate: float,
    start: Callable,
) -> dict[str, float]:
    """Train a GPT of this shape, with this recipe, from start."""

    def base():
        config = GPTConfig(65, context, n_layer, n_head=4, n_embd=n_embd)
        return config, TrainConfig(steps, batch_size, context, rate)

    return run(seed, base, change=start)


def our_start(model: Model) -> None:
    """Leave the starting values as `init_weights` made them."""


def way(*names: str) -> dict[str, Callable]:
    """{name: function(seed)}, each with all the changes up to its own."""
    now, found = dict(THREE_BLOCKS), {}
    for name in names:
        now |= CHANGES[name]
        found[", then ".join(names[: names.index(name) + 1])] = partial(between, **now)
    return found


THREE_BLOCKS: dict[str, Any] = {
    "n_layer": 3,
    "n_embd": 64,
    "context": 32,
    "batch_size": 32,
    "steps": 600,
    "rate": 1e-2,
    "start": torch_start,
}
CHANGES: dict[str, dict] = {
    "four times the steps": {"steps": 2400},
    "twice the context": {"context": 64, "batch_size": 16},  # as many characters
    "two wide blocks": {"n_layer": 2, "n_embd": 128},
    "rate 0.003": {"rate": 3e-3},
    "our start": {"start": our_start},
}
STEPS_FIRST = list(CHANGES)
STEPS_LAST = [*STEPS_FIRST[1:], STEPS_FIRST[0]]  # both ways end alike

short = partial(run, base=cpu, steps=600)
WARM, COLD = {"warm-up": {}}, {"no warm-up": {"warmup_steps": 0}}
NO_NORM = {"our start, no norm": {"change": no_norm}}
HEAD = {"lm_head not smaller": RECIPE["lm_head not smaller"]}
MEAN, DIVISION = (
    {"momentum alone": {"kind": Momentum}},
    {"division alone": {"kind": Divided}},
)
AT = {"learning_rate": [2e-3, 3e-3, 5e-3]}
EXPERIMENTS = {
    "06-recipe": grid("{variant}", short, variant=RECIPE),
    "06-gpt2": grid("{variant}", short, variant=GPT2),
    "06-warm-up": grid(STEPS, short, variant=WARM, steps=[600], **AT)
    | grid(STEPS, short, variant=COLD, steps=[600], learning_rate=[1e-3, 2e-3, 3e-3])
    | grid(STEPS, short, variant=WARM, steps=[2400], learning_rate=[3e-3, 5e-3])
    | grid(STEPS, short, variant=COLD, steps=[2400], learning_rate=[2e-3, 3e-3]),
    "06-start": grid(STEPS, short, variant=HEAD, steps=[600], **AT)
    | grid(STEPS, short, variant=HEAD, steps=[2400], learning_rate=[3e-3]),
    "06-adam-halves": grid(AT_RATE, short, variant=MEAN, learning_rate=[0.1, 0.3, 1.0])
    | grid(AT_RATE, short, variant=DIVISION, learning_rate=[2e-3, 3e-3, 5e-3]),
    "06-no-norm": grid(
        AT_RATE, short, variant=NO_NORM, learning_rate=[3e-3, 5e-3, 1e-2]
    ),
    "06-last-step": {"three blocks": partial(between, **THREE_BLOCKS)}
    | way(*STEPS_FIRST)
    | way(*STEPS_LAST[:-1]),
}
