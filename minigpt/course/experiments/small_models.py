"""Experiments of 02 to 04: the small model of these lessons around other bodies."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import averaging
from minigpt.attention import Head, attention_weights
from minigpt.course.experiments.fit import CONTEXT, WIDTH, grid, run, small
from minigpt.interfaces import Model
from minigpt.multi_head import CausalSelfAttention
from minigpt.stored.rungs import WeightedMean
from minigpt.training import TrainConfig

RATES = [2.5e-3, 5e-3, 1e-2, 2e-2, 4e-2, 8e-2]  # the recipe's is 1e-2
ROOT = WIDTH**0.5


class Residual(nn.Module):
    """x + body(x): what a position was goes on beside what it has heard."""

    def __init__(self, body: Callable) -> None:
        super().__init__()
        self.body = body()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


# 02: who sets the weights of a mean.
class Mean(nn.Module):
    """The plain mean of the past."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return averaging.average_matmul(x)


class Learned(nn.Module):
    """One table of scores for all texts, learned: the same weights whatever x is."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(CONTEXT, CONTEXT))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        scores = averaging.hide_future(self.scores[:T, :T])  # (T, T)
        return F.softmax(scores, dim=-1) @ x


AVERAGES = {
    "the present alone": {"body": nn.Identity},
    "mean": {"body": Mean},
    "present + mean": {"body": partial(Residual, Mean)},
    "learned table": {"body": Learned},
    "version 4": {"body": partial(WeightedMean, WIDTH)},
}


# 03: what the root does.
class Unscaled(Head):
    """The scores are not divided by √head_size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return attention_weights(self.query(x) * ROOT, self.key(x)) @ self.value(x)


class SlowQueries(TrainConfig):
    """A TrainConfig with which the query matrix learns √head_size times as slowly."""

    def make_optimizer(self, model: Model) -> Any:
        query, optimizer = model.body.query.weight, super().make_optimizer(model)
        for group in optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p is not query]
        decay = self.weight_decay * ROOT  # for the same share of the weight
        optimizer.add_param_group({"params": [query], "weight_decay": decay})

        def slow(optimizer, *_):  # `train` sets "lr" anew before each step
            optimizer.param_groups[-1]["lr"] /= ROOT

        optimizer.register_step_pre_hook(slow)
        return optimizer


@torch.no_grad()
def quiet(model: Model) -> None:
    """Make the first queries smaller by √head_size."""
    model.body.query.weight /= ROOT


# Without the root the gradient of the queries is longer: clipping would shorten all.
SLOW = {"kind": SlowQueries, "grad_clip": math.inf}
UNSCALED = {"body": partial(Unscaled, WIDTH, WIDTH)}
ROOTS = {
    "root": {"body": partial(Head, WIDTH, WIDTH)},
    "no root": UNSCALED,
    "no root, queries / 8": UNSCALED | {"change": quiet},
    "no root, queries' rate / 8": UNSCALED | SLOW,
    "no root, queries and their rate / 8": UNSCALED | SLOW | {"change": quiet},
}


# 04: several heads.
class Reshaped(CausalSelfAttention):
    """The trap: the heads are reshaped instead of transposed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        split = self.qkv(x).split(C, dim=-1)
        q, k, v = (z.reshape(B, self.n_head, T, self.head_size) for z in split)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(out.reshape(B, T, C))


one, four = (partial(CausalSelfAttention, WIDTH, n_head) for n_head in (1, 4))
HEADS = {
    "1 head": {"body": one},
    "4 heads": {"body": four},
    "1 head, x + attention": {"body": partial(Residual, one)},
    "4 heads, x + attention": {"body": partial(Residual, four)},
}
TRAP = {"4 heads, reshaped": {"body": partial(Reshaped, WIDTH, 4)}}


each = partial(run, base=small)
AT_RATE = "{variant}, rate {learning_rate:g}"
STEPS = "{variant}, {steps:,} steps, rate {learning_rate:g}"
LONG = {"steps": [2400], "learning_rate": [5e-3, 1e-2, 2e-2, 4e-2]}
SLOWLY = {"learning_rate": [1e-3, 2.5e-3]}
TWICE = LONG | {"learning_rate": [1e-2, 2e-2]}
ONE_HEAD = partial(each, **ROOTS["root"])  # with `--seeds 1337 … 1348`
LONG_HEADS = {name: ROOTS[name] for name in ("root", "no root")}
NO_ROOT = {"no root": ROOTS["no root"]}
LONG_SETS = {"4 heads": HEADS["4 heads"]} | TRAP
EXPERIMENTS = {
    "02-averages": grid(AT_RATE, each, variant=AVERAGES, learning_rate=RATES),
    "03-root": grid(AT_RATE, each, variant=ROOTS, learning_rate=RATES),
    "03-longer": grid(STEPS, each, variant=NO_ROOT, steps=[2400], **SLOWLY)
    | grid(STEPS, each, variant=LONG_HEADS, **LONG),
    "03-seeds": grid("{learning_rate:g}", ONE_HEAD, learning_rate=[5e-3, 1e-2]),
    "04-heads": grid(AT_RATE, each, variant=HEADS, learning_rate=RATES)
    | grid(AT_RATE, each, variant=TRAP, learning_rate=[5e-3, 1e-2, 2e-2]),
    "04-longer": grid(STEPS, each, variant=LONG_SETS, **TWICE),
}
