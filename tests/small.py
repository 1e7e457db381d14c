"""A text, a plan and a GPT so small that a whole training takes a blink."""

import os
import sys
from dataclasses import replace

import torch
import torch.nn as nn

from minigpt.data import CharTokenizer
from minigpt.gpt import GPT, GPTConfig
from minigpt.training import TrainConfig, train

CORPUS = "the quick brown fox jumps over the lazy dog; " * 40
TOKENIZER = CharTokenizer(CORPUS)
DATA = torch.tensor(TOKENIZER.encode(CORPUS))
V = TOKENIZER.vocab_size
PLAN = TrainConfig(
    steps=20,
    batch_size=4,
    block_size=8,
    learning_rate=1e-2,
    warmup_steps=5,
    eval_every=10,
    eval_batches=2,
)
# How a test begins another process: a fork needn't import torch again. It's safe on
# Linux only, and only where no GPU has threads that a fork would lack.
LIKE_US = sys.platform == "linux" and not torch.cuda.is_available()
START = "fork" if LIKE_US else "spawn"
TRAIN_SMALL = (
    "--preset cpu --steps 12 --batch-size 4 --block-size 8 --n-layer 1 --n-head 2 "
    "--n-embd 16 --learning-rate 0.01 --dropout 0.1 --device cpu"
).split()


def identical(*values):
    """Whether all are equal to the last bit: for the same call again, or a restart."""
    return all(value == values[0] for value in values)


def plan(**changes):
    return replace(PLAN, **changes)


def small_gpt(dropout=0.0):
    torch.manual_seed(0)
    return GPT(GPTConfig(V, 8, n_layer=2, n_head=2, n_embd=16, dropout=dropout))


def fit(model, config=PLAN, data=DATA, **options):
    """Train on `data` and be judged on DATA; returns the history."""
    return train(model, data, DATA, config, **options)


def weights_of(model):
    """A copy of all weights as one vector."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def opinionated(config, seed=0):
    """A model of random weights that is far from uniform, in evaluation mode."""
    torch.manual_seed(seed)
    model = config.build().eval().requires_grad_(False)
    for p in model.parameters():
        p.add_(torch.randn_like(p) * 0.3)
    return model


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


class Recorder(nn.Module):
    """One weight, and a loss of weight ** 2 plus the mean id; keeps what it saw."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, 1))
        self.learned, self.judged = [], []  # batches (B, T)

    def forward(self, idx, targets):
        (self.learned if self.training else self.judged).append(idx)
        return None, self.weight.square().sum() + idx.float().mean()


class Intruder:
    """Unpickling this makes a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)
