"""Experiments of 02 to 04: the small model of these lessons around other bodies."""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import averaging
from minigpt.attention import Head, attention_weights
from minigpt.course.experiments import fit
from minigpt.course.experiments.fit import CONTEXT, WIDTH, grid, made, run, small
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.generation import generate
from minigpt.interfaces import Model
from minigpt.multi_head import CausalSelfAttention, split_heads
from minigpt.stored.rungs import WeightedMean
from minigpt.training import TrainConfig, train

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


# 03 and 04: what heads look at.
BACK = torch.arange(CONTEXT)[:, None] - torch.arange(CONTEXT)  # how far back


@torch.no_grad()
def looks(model: Model) -> torch.Tensor:
    """The weights of all heads over 300 windows of new text: (300, n_head, T, T)."""
    idx = fit.corpus().val[: 300 * CONTEXT].view(300, CONTEXT)
    x = model.token_embedding(idx) + model.position_embedding.weight
    body = getattr(model.body, "body", model.body)  # of a Residual
    if isinstance(body, CausalSelfAttention):
        q, k, _ = body.qkv(x).split(WIDTH, dim=-1)
        return attention_weights(
            split_heads(q, body.n_head), split_heads(k, body.n_head)
        )
    root = ROOT if isinstance(body, Unscaled) else 1.0
    return attention_weights(root * body.query(x), body.key(x))[:, None]


def watch(seed: int, **changes: Any) -> dict[str, float]:
    """What a single head looks at while it's trained: the share of its weight on its
    own character ("own at 50"), and on other positions than at first ("moved by 50").
    "gradient" is the norm of its queries' gradient at the start."""
    model, recipe = made(seed, small, **changes)
    text, start, found = fit.corpus(), looks(model), {}
    generator = torch.Generator().manual_seed(0)
    model(*get_batch(text.train, 32, CONTEXT, generator=generator))[1].backward()
    body = getattr(model.body, "body", model.body)
    found["gradient"] = body.query.weight.grad.norm().item()

    def on_step(run):
        if run.step in (50, 100, 200, 600):
            now = looks(model)
            own = (now * (BACK == 0)).sum(dim=-1).mean()
            moved = (now - start).abs().sum(dim=-1).mean() / 2
            found[f"own at {run.step}"] = own.item()
            found[f"moved by {run.step}"] = moved.item()

    train(model, text.train, text.val, recipe, on_step=on_step)
    return found | {"loss": evaluate(model, text.val, CONTEXT)}


def jobs(seed: int, **changes: Any) -> dict[str, float]:
    """`run`, and how much weight each head gives to "itself", to "one back", and to
    what's "further than four" back: {"itself, head 1": share, ...}."""
    model, recipe = made(seed, small, **changes)
    found, weights = fit.fit(model, recipe), looks(model)
    places = {"itself": BACK == 0, "one back": BACK == 1, "further than four": BACK > 4}
    for name, there in places.items():
        shares = (weights * there).sum(dim=-1).mean(dim=(0, 2))  # (n_head,)
        found |= {f"{name}, head {h}": s for h, s in enumerate(shares.tolist(), 1)}
    return found


# 03: a leak from the future.
class WrongDimension(Head):
    """The softmax goes over the queries, not over the keys."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / ROOT
        return F.softmax(averaging.hide_future(scores), dim=1) @ self.value(x)


@torch.no_grad()
def writing_loss(model: Model) -> float:
    """The validation loss, with nothing in sight after the position that predicts."""
    val = fit.corpus().val
    whole = (len(val) - 1) // CONTEXT * CONTEXT
    x, y = val[:whole].view(-1, CONTEXT), val[1 : whole + 1].view(-1, CONTEXT)
    losses = [
        F.cross_entropy(model(x[:, : t + 1])[0][:, -1], y[:, t]) for t in range(CONTEXT)
    ]
    return torch.stack(losses).mean().item()


def leak(seed: int, **changes: Any) -> dict[str, float]:
    """`run`, and the "training" and "writing" losses; "words": the share of the words
    in 40 samples that the training text has."""
    (model, recipe), text = made(seed, small, **changes), fit.corpus()
    found = fit.fit(model, recipe)
    found["training"] = evaluate(model, text.train, CONTEXT)
    found["writing"] = writing_loss(model)
    start = torch.tensor([text.tokenizer.encode("ROMEO:")] * 40)
    dice = torch.Generator().manual_seed(seed)
    written = generate(model, start, 150, generator=dice)[:, start.shape[1] :]
    known, *samples = (
        re.findall("[A-Za-z]+", text.tokenizer.decode(ids))
        for ids in (text.train, *written)
    )
    words, known = sum(samples, []), set(known)
    return found | {"words": sum(word in known for word in words) / len(words)}


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
LOOKS = LONG_HEADS | {"x + head": {"body": partial(Residual, ROOTS["root"]["body"])}}
LEAKS = {
    "right": ROOTS["root"],
    "leaky": {"body": partial(WrongDimension, WIDTH, WIDTH)},
}
LONG_SETS = {"4 heads": HEADS["4 heads"]} | TRAP
EXPERIMENTS = {
    "02-averages": grid(AT_RATE, each, variant=AVERAGES, learning_rate=RATES),
    "03-root": grid(AT_RATE, each, variant=ROOTS, learning_rate=RATES),
    "03-longer": grid(STEPS, each, variant=NO_ROOT, steps=[2400], **SLOWLY)
    | grid(STEPS, each, variant=LONG_HEADS, **LONG),
    "03-seeds": grid("{learning_rate:g}", ONE_HEAD, learning_rate=[5e-3, 1e-2]),
    "03-looks": grid("{variant}", watch, variant=LOOKS),
    "03-leak": grid("{variant}", leak, variant=LEAKS),
    "04-jobs": {"4 heads": partial(jobs, **HEADS["4 heads"])},
    "04-heads": grid(AT_RATE, each, variant=HEADS, learning_rate=RATES)
    | grid(AT_RATE, each, variant=TRAP, learning_rate=[5e-3, 1e-2, 2e-2]),
    "04-longer": grid(STEPS, each, variant=LONG_SETS, **TWICE),
}
