"""Experiments of 03: what the root does, what each part is worth, and two traps.

All of them train the small model of the lesson, one head of 64 channels.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F

from minigpt.attention import Head, attention_weights
from minigpt.averaging import hide_future
from minigpt.course.experiments.averaging import RATES, Learned
from minigpt.course.experiments.fit import (
    CONTEXT,
    SMALL,
    WIDTH,
    corpus,
    fit,
    grid,
    small,
)
from minigpt.course.experiments.full_training import without_positions
from minigpt.language_model import LanguageModel
from minigpt.training import TrainConfig

ROOT = WIDTH**0.5


class Changed(Head):
    """A head in which something else happens to q, k and v, each (B, T, head_size)."""

    def forward(self, x):
        return self.attend(self.query(x), self.key(x), self.value(x))


class Unscaled(Changed):
    """The scores are not divided by √head_size."""

    def attend(self, q, k, v):
        return attention_weights(q * ROOT, k) @ v  # undoes the division


class EvenHead(Changed):
    """It does not choose: the mean of the past, as in lesson 02."""

    def attend(self, q, k, v):
        return attention_weights(0 * q, k) @ v


class OthersOnly(Changed):
    """It sees only what came before, itself hidden; the first sees itself."""

    def attend(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / ROOT  # (B, T, T)
        seen = torch.ones_like(scores).tril(-1)
        seen[:, 0, 0] = 1
        return F.softmax(scores.masked_fill(seen == 0, float("-inf")), dim=-1) @ v


class WrongDimension(Changed):
    """Softmax over dim=1 of (B, T, T), the queries."""

    def attend(self, q, k, v):
        scores = hide_future(q @ k.transpose(-2, -1) / ROOT)  # (B, T, T)
        return F.softmax(scores, dim=1) @ v


class MaskedAfter(Changed):
    """The mask comes after the softmax."""

    def attend(self, q, k, v):
        weights = F.softmax(q @ k.transpose(-2, -1) / ROOT, dim=-1)  # (B, T, T)
        return weights.tril() @ v


class SlowedAdamW(torch.optim.AdamW):
    """AdamW in which a group may divide its learning rate."""

    def step(self, closure=None):
        for group in self.param_groups:  # `train` sets "lr" anew before each step
            group["lr"] /= group["slowed"]
        return super().step(closure)


@dataclass
class SlowQueries(TrainConfig):
    """A TrainConfig with which the query matrix learns √head_size times as slowly."""

    def make_optimizer(self, model):
        query = model.body.query.weight
        groups = []
        for group in super().make_optimizer(model).param_groups:
            rest = [p for p in group["params"] if p is not query]
            decay = {"weight_decay": group["weight_decay"]}
            groups.append({"params": rest, "slowed": 1.0} | decay)
        decay = self.weight_decay * ROOT  # for the same share of the weight
        groups.append({"params": [query], "slowed": ROOT, "weight_decay": decay})
        return SlowedAdamW(groups, self.learning_rate, (0.9, self.beta2), fused=True)


def model_with(head, seed, quiet=1.0):
    """The lesson's model with this class of head; its first queries are divided."""
    torch.manual_seed(seed)
    body = head(WIDTH, WIDTH)
    with torch.no_grad():
        body.query.weight /= quiet
    return LanguageModel(corpus().vocab_size, CONTEXT, WIDTH, body)


def trained(head, seed, quiet=1.0, recipe=SMALL, **changes):
    """Loss; variance of the scores at the start and trained; where the weight lies."""
    model = model_with(head, seed, quiet)
    start = attended(model)["variance"]
    result = fit(model, replace(recipe, **changes), seed)
    return result | {"variance at start": start} | attended(model)


@torch.no_grad()
def attended(model):
    """Over 100 windows of the validation text, without each window's first place:
    mean weight on the own place, the one before, and copies of the own character
    (itself among them), and the variance of the scores that are not hidden."""
    idx = corpus().val[: 100 * CONTEXT].view(-1, CONTEXT)
    x = model.token_embedding(idx) + model.position_embedding.weight
    q, k = model.body.query(x), model.body.key(x)
    if isinstance(model.body, Unscaled):
        q = q * ROOT
    scores = q @ k.transpose(-2, -1) / ROOT  # (100, T, T)
    weights = attention_weights(q, k)  # (100, T, T)
    copies = idx[:, :, None] == idx[:, None, :]  # (100, T, T)
    return {
        "itself": weights.diagonal(dim1=-2, dim2=-1)[:, 1:].mean().item(),
        "one back": weights.diagonal(-1, dim1=-2, dim2=-1).mean().item(),
        "copies": (weights * copies).sum(dim=-1)[:, 1:].mean().item(),
        "variance": scores[:, torch.ones_like(scores[0]).tril() == 1].var().item(),
    }


def trap(head, seed):
    """The loss over whole windows, and the one with nothing after the last token."""
    model = model_with(head, seed)
    result = fit(model, SMALL, seed)
    return result | {"writing": writing_loss(model, corpus().val, CONTEXT)}


@torch.no_grad()
def writing_loss(model, data, block_size):
    """Each token of the windows predicted with only its past as input, as in writing.

    data: (N,), its last window only if it is whole -> nats per token.
    """
    whole = (len(data) - 1) // block_size * block_size
    x, y = data[:whole].view(-1, block_size), data[1 : whole + 1].view(-1, block_size)
    total = 0.0
    for t in range(block_size):
        logits, _ = model(x[:, : t + 1])  # (N / T, t + 1, vocab_size)
        total += F.cross_entropy(logits[:, -1], y[:, t], reduction="sum").item()
    return total / whole


def part(head):
    """function(seed): the model with this class of head."""
    return partial(small, body=partial(head, WIDTH, WIDTH))


def at_rates(runs):
    """Each of the runs at each learning rate."""
    return grid("{run}, rate {learning_rate:g}", call, run=runs, learning_rate=RATES)


def call(seed, run, **changes):
    """The run itself, from one seed."""
    return run(seed=seed, **changes)


# Without the root the gradient of the queries is longer: clipping would shorten all.
SLOW = SlowQueries(**vars(SMALL) | {"grad_clip": math.inf})
ROOTS = {
    "root": partial(trained, Head),
    "no root": partial(trained, Unscaled),
    "no root, queries / 8": partial(trained, Unscaled, quiet=ROOT),
    "no root, queries and their rate / 8": partial(
        trained, Unscaled, quiet=ROOT, recipe=SLOW
    ),
}
one_head = part(Head)
PARTS = {
    "one head": one_head,
    "without positions": partial(one_head, change=without_positions),
    "without itself": part(OthersOnly),
    "fixed weights": partial(small, body=partial(Learned, values=True)),
    "even weights": part(EvenHead),
}
TRAPS = {
    "right": partial(trap, Head),
    "softmax over dim=1": partial(trap, WrongDimension),
    "mask after softmax": partial(trap, MaskedAfter),
}
EXPERIMENTS = {
    "03-root": at_rates(ROOTS),
    "03-parts": at_rates(PARTS),
    "03-traps": TRAPS,
}
