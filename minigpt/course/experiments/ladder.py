"""The loss ladder of notebooks 01 to 06, every rung over all seeds, and 01's table
longer and at other rates."""

import math
import time
from functools import partial

import torch
import torch.nn.functional as F

from minigpt.attention import Head
from minigpt.bigram import BigramLanguageModel
from minigpt.block import Block
from minigpt.course.experiments.fit import (
    CONTEXT,
    WIDTH,
    corpus,
    fit,
    grid,
    preset_gpt,
    small,
)
from minigpt.course.experiments.residual_blocks import stack
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.multi_head import CausalSelfAttention

THREADS = torch.get_num_threads()  # as many as there are cores


def uniform(seed):
    """01: every character as likely as any other."""
    return {"loss": math.log(corpus().vocab_size), "parameters": 0, "seconds": 0}


def unigram(seed):
    """01: the frequencies of the characters in the training text."""
    text = corpus()
    counts = torch.bincount(text.train, minlength=text.vocab_size)
    log_frequency = (counts / counts.sum()).log()
    loss = -log_frequency[text.val[1:]].mean().item()
    return {"loss": loss, "parameters": text.vocab_size, "seconds": 0}


def table(steps, rate, seed, block_size=8, falling=False):
    """01's table, trained without a schedule; falling: the rate sinks evenly to 0."""
    text = corpus()
    torch.manual_seed(seed)
    model = BigramLanguageModel(text.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - falling * step / steps)
        _, loss = model(*get_batch(text.train, 32, block_size))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def bigram(seed, steps=2_000):
    """01: the table, trained with windows of 32."""
    start = time.perf_counter()
    model = table(steps, 1e-2, seed, CONTEXT)
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "parameters": corpus().vocab_size ** 2,
        "loss": evaluate(model, corpus().val, CONTEXT),
    }


def gpt(seed):
    """06: the CPU preset, on all the cores there are."""
    torch.set_num_threads(THREADS)
    return fit(*preset_gpt(seed), seed)


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
    """01's table, judged.

    "apart" is the share of probability that lies elsewhere than in the counted
    table: over the rows as they are used, and over the rarest ones.
    """
    text, model = corpus(), table(steps, rate, seed, falling=falling)
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
    text, p = corpus(), smooth()

    def loss(data):
        return -p[data[:-1], data[1:]].log().mean().item()

    nothing = {"apart": 0.0, "apart, rare rows": 0.0}
    return {"train loss": loss(text.train), "loss": loss(text.val)} | nothing


block = partial(Block, WIDTH, 4)
BODIES = {
    "one head": partial(Head, WIDTH, WIDTH),
    "four heads": partial(CausalSelfAttention, WIDTH, 4),
    "one block": partial(stack, block, 1, last=True),
    "three blocks": partial(stack, block, 3, last=True),
}
EXPERIMENTS = {
    "ladder": {
        "uniform guess": uniform,
        "unigram counts": unigram,
        "bigram": bigram,
        **{name: partial(small, body=body) for name, body in BODIES.items()},
        "GPT": gpt,
    },
    "01-longer": {"counted": counted}
    | grid("{steps:,} steps", trained, steps=[10_000, 40_000], rate=[1e-3]),
    "01-rates": {"counted": counted}
    | grid("rate {rate}", trained, steps=[10_000], rate=[1e-3, 3e-3, 1e-2, 3e-2])
    | {"0.01, falling to 0": partial(trained, 10_000, 1e-2, falling=True)},
    "01-block": grid(  # 05's rung, at other rates
        "one block, rate {learning_rate}",
        partial(small, body=BODIES["one block"]),
        learning_rate=[0.005, 0.01, 0.02, 0.04],
    ),
}
