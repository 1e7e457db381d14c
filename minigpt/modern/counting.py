"""Lesson 08: smooth counts, and a GPT that learns how far to trust each of them."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import next_token_loss
from minigpt.data import get_batch
from minigpt.hints import Model
from minigpt.modern.counts import ContextCounts, window_counts
from minigpt.modern.model import ModernGPT
from minigpt.modern.parts import ShortConvolution
from minigpt.training import TrainConfig, train

RECENT = 4  # the longest context that is counted within the window


class Smoothing(nn.Module):
    """Counts -> log-probabilities of every order, each resting on the one below.

    counts: (B, T, order + 1, V) -> (B, T, order + 1, V). Each count that was seen
    once, twice, or more often gives up a learned discount; the mass goes to the
    next shorter context, at the bottom to the uniform guess. Source: Chen and
    Goodman, An Empirical Study of Smoothing Techniques (1999), section 3; with
    ContinuationCounts it is their modified Kneser-Ney.
    """

    def __init__(self, order: int) -> None:
        super().__init__()
        self.discount = nn.Parameter(torch.full((order + 1, 3), 1.0))

    def forward(self, counts: torch.Tensor) -> torch.Tensor:
        kind = counts.clamp(max=3).long()  # 0, 1, 2, 3 or more
        most = torch.tensor([1.0, 2.0, 3.0], device=counts.device)
        table = F.pad(torch.sigmoid(self.discount) * most, (1, 0))  # (order + 1, 4)
        level = torch.arange(counts.shape[-2], device=counts.device)[:, None]
        taken = table[level, kind]  # (B, T, order + 1, V)
        total = counts.sum(dim=-1, keepdim=True)  # (B, T, order + 1, 1)
        unseen = total == 0
        total = total.masked_fill(unseen, 1.0)
        kept = (counts - taken) / total
        free = taken.sum(dim=-1, keepdim=True) / total + unseen.float()
        p = torch.full_like(counts[..., 0, :], 1 / counts.shape[-1])
        levels = []
        for n in range(counts.shape[-2]):
            p = kept[..., n, :] + free[..., n, :] * p
            levels.append(p)
        return torch.stack(levels, dim=-2).log()


class CountsAlone(nn.Module):
    """A model that says what the counts of the longest order say.

    without: the fold whose counts it leaves out, or None.
    """

    def __init__(
        self, counts: ContextCounts, smoothing: Smoothing, block_size: int
    ) -> None:
        super().__init__()
        self.counts, self.smoothing, self.block_size = counts, smoothing, block_size
        self.without = None

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None."""
        logits = self.smoothing(self.counts(idx, self.without))[..., -1, :]
        return logits, next_token_loss(logits, targets)


@torch.no_grad()
def known(
    counts: ContextCounts,
    smoothing: Smoothing,
    idx: torch.Tensor,
    start: int = 0,
    without: int | None = None,
) -> torch.Tensor:
    """What the counts say at each position: idx (B, T) -> (B, T - start, rows, V).

    order + 1 rows are log-probabilities, RECENT rows log(1 + counts) of the window.
    start: positions before it are not asked; without: a fold that is left out.
    """
    begin = max(start - counts.order, 0)
    logp = smoothing(counts(idx[:, begin:], without))[:, start - begin :]
    recent = window_counts(idx, logp.shape[-1], RECENT, start).log1p()
    return torch.cat([logp, recent], dim=-2)


class CountingGPT(ModernGPT):
    """A ModernGPT beside counts: it reads them, and adds to what they say.

    logits = ModernGPT's + a mixture of the log-probabilities of all orders and of the
    logarithms of the counts within the window, whose weights the model chooses at
    each position; at first, the longest order's alone.
    Train it with draw=partial(fold_batch, model): a model that sees its own text in the
    counts learns to trust them too far.
    """

    def __init__(
        self, config: Any, counts: ContextCounts, smoothing: Smoothing
    ) -> None:
        super().__init__(config)
        self.counts, self.without = counts, None
        self.smoothing = smoothing.requires_grad_(False)
        self.read = nn.Linear(config.vocab_size, config.n_embd, bias=False)
        nn.init.normal_(self.read.weight, std=0.02)
        self.convolution = ShortConvolution(config.n_embd)
        self.gate = nn.Linear(config.n_embd, counts.order + 1 + RECENT)
        nn.init.zeros_(self.gate.weight)
        with torch.no_grad():
            self.gate.bias.zero_()[counts.order] = 1.0

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None, cache: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None.

        cache: as that of a ModernGPT. The convolution looks back, before what is new.
        """
        start = 0 if cache is None else cache.length
        begin = max(start - len(self.convolution.weight) + 1, 0)
        x = self.embed(idx, begin)  # (B, T, C)
        without = self.without if self.training else None
        rows = known(self.counts, self.smoothing, idx, begin, without)
        longest = rows[..., self.counts.order, :]  # (B, T, V)
        uniform = -math.log(longest.shape[-1])
        x = self.convolution(x + self.read(longest - uniform))
        hidden = self.body(x[:, start - begin :], cache)
        gate = self.gate(hidden)[..., None, :]  # (B, T, 1, order + 1 + RECENT)
        rows = rows[:, start - begin :]
        logits = self.logits(hidden) + (gate @ rows)[..., 0, :]
        return logits, next_token_loss(logits, targets)


def fold_batch(
    model: Model,
    ids: torch.Tensor,
    batch_size: int,
    block_size: int,
    device: torch.device | str = "cpu",
    generator: torch.Generator | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch as get_batch draws it, but from one fold of ids (N,): the one whose
    counts `model` leaves out from now on while it trains."""
    folds = model.counts.folds
    fold = torch.randint(folds, (), generator=generator).item()
    model.without = fold
    n = len(ids) - 1  # as ContextCounts cuts: a pair belongs where its target lies
    start, end = (-(-f * n // folds) for f in (fold, fold + 1))  # n * f / folds, up
    return get_batch(ids[start : end + 1], batch_size, block_size, device, generator)


@dataclass
class PlainAdam(TrainConfig):
    """Adam at one rate, from the first step to the last."""

    def make_optimizer(self, model: Model) -> torch.optim.Optimizer:
        return torch.optim.Adam(model.parameters(), self.learning_rate)

    def learning_rate_at(self, step: int) -> float:
        return self.learning_rate


def fit_smoothing(
    counts: ContextCounts, ids: torch.Tensor, config: TrainConfig, steps: int = 100
) -> Smoothing:
    """A Smoothing whose discounts predict each fold of ids (N,) best from the others.

    Draws steps batches as `config` says; the loss is that of the longest order.
    """
    model = CountsAlone(counts, Smoothing(counts.order), config.block_size)
    plan = PlainAdam(
        steps,
        config.batch_size,
        config.block_size,
        learning_rate=0.05,
        grad_clip=math.inf,
        eval_every=steps,
        eval_batches=1,
        seed=config.seed,
    )
    with torch.random.fork_rng():  # a Run sets the seed of all random numbers
        train(model, ids, ids, plan, draw=partial(fold_batch, model))
    return model.smoothing
