"""Experiments of notebook 03: what the root buys, what each part is worth, two traps.

All of them train the small model of the lesson, one head of 64 channels.
"""

from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F

from minigpt.attention import Head, attention, attention_weights
from minigpt.evaluation import judging
from minigpt.experiments.fit import CONTEXT, SMALL, WIDTH, corpus, fit
from minigpt.language_model import LanguageModel


class Unscaled(Head):
    """A head whose scores are not divided by √head_size."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        q = q * q.shape[-1] ** 0.5  # undoes the division
        return attention(q, k, v)[0]


class EvenHead(Head):
    """A head that does not choose: the mean of the past, as in lesson 02."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        return attention(0 * q, k, v)[0]


class OthersOnly(Head):
    """A head that sees only what came before, itself hidden; the first sees itself."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, T, T)
        seen = triangle(scores, -1)
        seen[0, 0] = True
        return F.softmax(scores.masked_fill(~seen, float("-inf")), dim=-1) @ v


class WrongDimension(Head):
    """Trap 4: softmax over dim=1 of (B, T, T), the queries."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, T, T)
        scores = scores.masked_fill(~triangle(scores), float("-inf"))
        return F.softmax(scores, dim=1) @ v


class MaskedAfter(Head):
    """Trap 5: the mask comes after the softmax."""

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, T, T)
        weights = F.softmax(scores, dim=-1).masked_fill(~triangle(scores), 0.0)
        return weights @ v


def triangle(scores, diagonal=0):
    """True for the places (T, T) that a position may see."""
    return torch.ones_like(scores[0], dtype=torch.bool).tril(diagonal)


def model_with(head, seed, loudness=1.0):
    """The lesson's model with this class of head; its first queries are scaled."""
    torch.manual_seed(seed)
    body = head(WIDTH, WIDTH)
    with torch.no_grad():
        body.query.weight *= loudness
    return LanguageModel(corpus().vocab_size, CONTEXT, WIDTH, body)


def trained(head, seed, loudness=1.0, rate=SMALL.learning_rate, steps=SMALL.steps):
    """Loss, and the mean weight that a position gives to itself."""
    model = model_with(head, seed, loudness)
    result = fit(model, replace(SMALL, learning_rate=rate, steps=steps), seed)
    return result | {"itself": weight_on_itself(model)}


@torch.no_grad()
def weight_on_itself(model):
    """Mean weight on the own position, over 100 windows of the validation text."""
    idx = corpus().val[: 100 * CONTEXT].view(-1, CONTEXT)
    x = model.token_embedding(idx) + model.position_embedding.weight
    q, k = model.body.query(x), model.body.key(x)
    if isinstance(model.body, Unscaled):
        q = q * WIDTH**0.5
    weights = attention_weights(q, k)  # (100, T, T)
    return weights.diagonal(dim1=-2, dim2=-1)[:, 1:].mean().item()


def without_positions(seed, rate):
    """The model whose position vectors are zero and stay it."""
    model = model_with(Head, seed)
    torch.nn.init.zeros_(model.position_embedding.weight)
    model.position_embedding.weight.requires_grad_(False)
    return fit(model, replace(SMALL, learning_rate=rate), seed)


def part(head, seed, rate):
    """The model with this class of head."""
    return fit(model_with(head, seed), replace(SMALL, learning_rate=rate), seed)


def trap(head, seed):
    """The loss over whole windows, and the one with nothing after the last token."""
    model = model_with(head, seed)
    result = fit(model, SMALL, seed)
    return result | {"writing": writing_loss(model, corpus().val, CONTEXT)}


def writing_loss(model, data, block_size):
    """Each token of the windows predicted with only its past as input, as in writing.

    data: (N,), its last window only if it is whole -> nats per token.
    """
    whole = (len(data) - 1) // block_size * block_size
    x, y = data[:whole].view(-1, block_size), data[1 : whole + 1].view(-1, block_size)
    total = 0.0
    with judging(model):
        for t in range(block_size):
            logits, _ = model(x[:, : t + 1])  # (N / T, t + 1, vocab_size)
            total += F.cross_entropy(logits[:, -1], y[:, t], reduction="sum").item()
    return total / whole


def at_rates(variants, rates):
    """Each variant at each learning rate: {"name, rate": function(seed)}."""
    return {
        f"{name}, rate {rate:g}": partial(function, rate=rate)
        for name, function in variants.items()
        for rate in rates
    }


ROOTS = {
    "root": partial(trained, Head),
    "no root": partial(trained, Unscaled),
    "no root, queries / 8": partial(trained, Unscaled, loudness=1 / 8),
    "root, queries * 8": partial(trained, Head, loudness=8),
}
PARTS = {
    "one head": partial(part, Head),
    "without positions": without_positions,
    "without itself": partial(part, OthersOnly),
    "without choice": partial(part, EvenHead),
}
TRAPS = {
    "right": partial(trap, Head),
    "softmax over dim=1": partial(trap, WrongDimension),
    "mask after softmax": partial(trap, MaskedAfter),
}
LONGER = {name: partial(f, steps=4 * SMALL.steps) for name, f in ROOTS.items()}
EXPERIMENTS = {  # the recipe's learning rate is 5e-3
    "03-root": at_rates(ROOTS, [2.5e-3, 5e-3, 1e-2, 2e-2, 4e-2]),
    "03-root-longer": at_rates(LONGER, [2.5e-3, 5e-3, 4e-2]),
    "03-parts": at_rates(PARTS, [5e-3, 1e-2, 2e-2]),
    "03-traps": TRAPS,
}
