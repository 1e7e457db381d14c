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
from minigpt.course.experiments.fit import CONTEXT, SMALL, WIDTH, corpus, fit
from minigpt.language_model import LanguageModel
from minigpt.training import TrainConfig

ROOT = WIDTH**0.5


class Unscaled(Head):
    """A head whose scores are not divided by √head_size."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        return attention_weights(q * ROOT, k) @ v  # undoes the division


class EvenHead(Head):
    """A head that does not choose: the mean of the past, as in lesson 02."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        return attention_weights(0 * q, k) @ v


class OthersOnly(Head):
    """A head that sees only what came before, itself hidden; the first sees itself."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / ROOT  # (B, T, T)
        seen = torch.ones_like(scores).tril(-1)
        seen[:, 0, 0] = 1
        return F.softmax(scores.masked_fill(seen == 0, float("-inf")), dim=-1) @ v


class WrongDimension(Head):
    """Softmax over dim=1 of (B, T, T), the queries."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = hide_future(q @ k.transpose(-2, -1) / ROOT)  # (B, T, T)
        return F.softmax(scores, dim=1) @ v


class MaskedAfter(Head):
    """The mask comes after the softmax."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
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


def trained(head, seed, rate, quiet=1.0, recipe=SMALL):
    """Loss; variance of the scores at the start and trained; where the weight lies."""
    model = model_with(head, seed, quiet)
    start = attended(model)["variance"]
    result = fit(model, replace(recipe, learning_rate=rate), seed)
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


def without_positions(seed, rate):
    """The model whose position vectors are zero and stay it."""
    model = model_with(Head, seed)
    torch.nn.init.zeros_(model.position_embedding.weight)
    model.position_embedding.weight.requires_grad_(False)
    return fit(model, replace(SMALL, learning_rate=rate), seed)


def part(head, seed, rate):
    """The model with this class of head."""
    return fit(model_with(head, seed), replace(SMALL, learning_rate=rate), seed)


def fixed_weights(seed, rate):
    """The model whose weights are learned, but the same for every text."""
    torch.manual_seed(seed)
    body = Learned(values=True)
    model = LanguageModel(corpus().vocab_size, CONTEXT, WIDTH, body)
    return fit(model, replace(SMALL, learning_rate=rate), seed)


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


def at_rates(variants, rates=RATES):
    """Each variant at each learning rate: {"name, rate": function(seed)}."""
    return {
        f"{name}, rate {rate:g}": partial(function, rate=rate)
        for name, function in variants.items()
        for rate in rates
    }


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
PARTS = {
    "one head": partial(part, Head),
    "without positions": without_positions,
    "without itself": partial(part, OthersOnly),
    "fixed weights": fixed_weights,
    "even weights": partial(part, EvenHead),
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
