"""Experiments of notebook 02."""

from dataclasses import replace
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import averaging
from minigpt.experiments.fit import CONTEXT, SMALL, WIDTH, corpus, fit
from minigpt.language_model import LanguageModel


class Mean(nn.Module):
    """The plain mean of the past as a body, alone or added to the present."""

    def __init__(self, present=False):
        super().__init__()
        self.present = present

    def forward(self, x):
        """x: (B, T, C) -> (B, T, C)."""
        mean = averaging.average_matmul(x)
        return x + mean if self.present else mean


class Learned(nn.Module):
    """One table of scores for all texts, learned: the same weights whatever x is."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(CONTEXT, CONTEXT))

    def forward(self, x):
        """x: (B, T, C) -> (B, T, C)."""
        T = x.shape[1]
        past = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        scores = self.scores[:T, :T].masked_fill(~past, float("-inf"))  # (T, T)
        return F.softmax(scores, dim=-1) @ x


class Chosen(nn.Module):
    """Version 4: learned queries and keys from x, unscaled; x or values averaged."""

    def __init__(self, values=False):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH, bias=False) if values else nn.Identity()

    def forward(self, x):
        """x: (B, T, C) -> (B, T, C)."""
        return averaging.average_attention(self.value(x), self.query(x), self.key(x))


def shell(make_body, seed, **changes):
    """The shell around a body, with the small recipe or what changes it."""
    torch.manual_seed(seed)
    body = make_body()
    model = LanguageModel(corpus().vocab_size, CONTEXT, WIDTH, body)
    return fit(model, replace(SMALL, **changes), seed)


BODIES = {
    "the present alone": nn.Identity,
    "mean of the past": Mean,
    "present + mean": partial(Mean, present=True),
    "one learned table": Learned,
    "version 4": Chosen,
    "version 4, values": partial(Chosen, values=True),
}
RATES = [SMALL.learning_rate * factor for factor in (1 / 3, 3, 9)]
CONTROLS = {
    f"{name}, rate {rate:.2g}": partial(shell, body, learning_rate=rate)
    for name, body in BODIES.items()
    for rate in RATES
}
CONTROLS["mean of the past, 2400 steps"] = partial(shell, Mean, steps=2400)
EXPERIMENTS = {
    "02-averages": {name: partial(shell, body) for name, body in BODIES.items()},
    "02-averages-controls": CONTROLS,
}
