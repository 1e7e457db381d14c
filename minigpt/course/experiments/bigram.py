"""Experiments of notebook 01."""

from functools import partial

import torch
import torch.nn.functional as F

from minigpt.bigram import BigramLanguageModel
from minigpt.course.experiments.fit import corpus, grid, small
from minigpt.course.experiments.ladder import blocks
from minigpt.data import get_batch
from minigpt.evaluation import evaluate


def counts():
    """How often each pair occurs in the training text: (V, V)."""
    text = corpus()
    V = text.vocab_size
    pairs = text.train[:-1] * V + text.train[1:]  # (N - 1,)
    return torch.bincount(pairs, minlength=V * V).view(V, V)


def smooth():
    """The counted table with one added to each count."""
    return (counts() + 1) / (counts() + 1).sum(dim=1, keepdim=True)


def trained(steps, rate, seed, falling=False):
    """The table of section 7; falling: the rate sinks evenly to zero.

    "apart" is the share of probability that lies elsewhere than in the counted
    table: over the rows as they are used, and over the rarest ones.
    """
    torch.set_num_threads(1)
    text = corpus()
    torch.manual_seed(seed)
    model = BigramLanguageModel(text.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(steps):
        if falling:
            optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        _, loss = model(*get_batch(text.train, 32, 8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    learned = F.softmax(model.token_embedding.weight.detach(), dim=1)
    apart = (learned - smooth()).abs().sum(dim=1) / 2  # (V,), from 0 to 1
    used = counts().sum(dim=1) / counts().sum()  # (V,)
    return {
        "train loss": evaluate(model, text.train, 8),
        "loss": evaluate(model, text.val, 8),
        "apart": (used * apart).sum().item(),
        "apart, rare rows": apart[used < 1e-4].mean().item(),
    }


def counted(seed):
    """The counted table, smoothed; no seed changes it."""
    text, table = corpus(), smooth()

    def loss(data):
        return -table[data[:-1], data[1:]].log().mean().item()

    nothing = {"apart": 0.0, "apart, rare rows": 0.0}
    return {"train loss": loss(text.train), "loss": loss(text.val)} | nothing


one_block = partial(small, body=partial(blocks, 1))  # 05's rung, at other rates
RATES = [0.005, 0.01, 0.02, 0.04]
EXPERIMENTS = {
    "01-longer": {
        "counted": counted,
        "10,000 steps": partial(trained, 10_000, 1e-3),
        "40,000 steps": partial(trained, 40_000, 1e-3),
    },
    "01-rates": {
        "counted": counted,
        "rate 0.001": partial(trained, 10_000, 1e-3),
        "rate 0.003": partial(trained, 10_000, 3e-3),
        "rate 0.01": partial(trained, 10_000, 1e-2),
        "rate 0.03": partial(trained, 10_000, 3e-2),
        "0.01, falling to 0": partial(trained, 10_000, 1e-2, falling=True),
    },
    "01-block": grid("one block, rate {learning_rate}", one_block, learning_rate=RATES),
}
