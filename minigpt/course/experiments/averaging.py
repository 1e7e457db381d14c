"""Experiments of 02: what a mean of the past is worth, and who sets its weights."""

from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import averaging
from minigpt.course.experiments.fit import CONTEXT, WIDTH, grid, small

RATES = [2.5e-3, 5e-3, 1e-2, 2e-2, 4e-2, 8e-2]  # the recipe's is 5e-3


class Mean(nn.Module):
    """The plain mean of the past as a body, alone or added to the present."""

    def __init__(self, present=False, matrix=False):
        super().__init__()
        self.present = present
        self.matrix = nn.Linear(WIDTH, WIDTH, bias=False) if matrix else nn.Identity()

    def forward(self, x):
        mean = self.matrix(averaging.average_matmul(x))
        return x + mean if self.present else mean


class Learned(nn.Module):
    """One table of scores for all texts, learned: the same weights whatever x is."""

    def __init__(self, values=False):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(CONTEXT, CONTEXT))
        self.value = nn.Linear(WIDTH, WIDTH, bias=False) if values else nn.Identity()

    def forward(self, x):
        T = x.shape[1]
        scores = averaging.hide_future(self.scores[:T, :T])  # (T, T)
        return F.softmax(scores, dim=-1) @ self.value(x)


class Chosen(nn.Module):
    """Version 4: learned queries and keys; x or values averaged, scaled or not."""

    def __init__(self, values=False, scale=True):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH, bias=False) if values else nn.Identity()
        self.factor = 1.0 if scale else WIDTH**0.5  # undoes the division

    def forward(self, x):
        q = self.query(x) * self.factor
        return averaging.average_attention(self.value(x), q, self.key(x))


BODIES = {
    "the present alone": nn.Identity,
    "mean": Mean,
    "present + mean": partial(Mean, present=True),
    "present + W mean": partial(Mean, present=True, matrix=True),
    "learned table": Learned,
    "version 4": Chosen,
    "version 4, no scale": partial(Chosen, scale=False),
    "version 4, values": partial(Chosen, values=True),
    "version 4, values, no scale": partial(Chosen, values=True, scale=False),
}
EXPERIMENTS = {
    "02-averages": {
        **grid(
            "{body}, rate {learning_rate:g}", small, body=BODIES, learning_rate=RATES
        ),
        "mean, 2400 steps, rate 0.02": partial(
            small, body=Mean, learning_rate=2e-2, steps=2400
        ),
    }
}
