"""Lesson 08: smooth counts, and a GPT that only adds what counting cannot know."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.arguments import at_least_one, check_kind, must
from minigpt.counts import ContextCounts
from minigpt.data import get_batch
from minigpt.language_model import check_length, next_token_loss
from minigpt.modern import ModernGPT
from minigpt.tensors import reads_ids


class Smoothing(nn.Module):
    """Counts -> log-probabilities of every order, each resting on the one below.

    counts: (B, T, order + 1, V) -> (B, T, order + 1, V). Each count that was seen
    once, twice, or more often gives up a learned discount; the mass goes to the
    next shorter context, at the bottom to the uniform guess. Source: Chen and
    Goodman, An Empirical Study of Smoothing Techniques (1999), section 3, without
    Kneser and Ney's other counts for the shorter contexts.
    """

    def __init__(self, order):
        super().__init__()
        self.discount = nn.Parameter(torch.full((order + 1, 3), 1.0))

    def forward(self, counts):
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
    """What the longest order says, as a model: model(idx, targets=None)."""

    def __init__(self, counts, smoothing, block_size):
        super().__init__()
        at_least_one(block_size=block_size)
        check_kind("counts", counts, ContextCounts, "the ContextCounts of a text")
        self.counts, self.smoothing, self.block_size = counts, smoothing, block_size

    @reads_ids
    def forward(self, idx, targets=None):
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None."""
        check_length(idx.shape[1], self.block_size)
        logits = self.smoothing(self.counts(idx))[..., -1, :]
        return logits, next_token_loss(logits, targets)


class CountingGPT(ModernGPT):
    """A ModernGPT beside counts: it reads them, and adds to what they say.

    logits = ModernGPT's + a mixture of the log-probabilities of all orders, whose
    weights the model chooses at each position; at first, the longest order's alone.
    Before each training batch, set `without` to the fold that the batch comes from
    (see `draw`): a model that sees its own counts learns to trust them too far.
    """

    def __init__(self, config, counts, smoothing):
        super().__init__(config)
        check_kind("counts", counts, ContextCounts, "the ContextCounts of a text")
        V = counts.vocab_size
        need = f"the same as that of the counts, {V}"
        must("vocab_size", config.vocab_size, config.vocab_size == V, need)
        self.counts, self.without = counts, None
        self.smoothing = smoothing.requires_grad_(False)
        self.read = nn.Linear(config.vocab_size, config.n_embd, bias=False)
        nn.init.normal_(self.read.weight, std=0.02)
        self.gate = nn.Linear(config.n_embd, counts.order + 1)
        nn.init.zeros_(self.gate.weight)
        with torch.no_grad():
            self.gate.bias.zero_()[-1] = 1.0

    @reads_ids
    def forward(self, idx, targets=None):
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None."""
        check_length(idx.shape[1], self.block_size)
        with torch.no_grad():
            counts = self.counts(idx, self.without if self.training else None)
            logp = self.smoothing(counts)  # (B, T, order + 1, V)
        uniform = -math.log(logp.shape[-1])
        x = self.token_embedding(idx) + self.read(logp[..., -1, :] - uniform)
        if self.position_embedding is not None:  # a config without rotary positions
            x = x + self.position_embedding.weight[: idx.shape[1]]
        hidden = self.body(x)  # (B, T, C)
        gate = self.gate(hidden)[..., None, :]  # (B, T, 1, order + 1)
        logits = self.logits(hidden) + (gate @ logp)[..., 0, :]
        return logits, next_token_loss(logits, targets)

    def draw(self, ids, config):
        """The draw(generator, rows) for `train`: windows from one fold of ids (N,),
        whose counts are left out while the model learns from it."""

        def draw(generator, rows=...):
            self.without, windows = one_fold(ids, self.counts.folds, generator)
            sizes = config.batch_size, config.block_size
            return get_batch(windows, *sizes, generator=generator, rows=rows)

        return draw


def one_fold(ids, folds, generator):
    """Draw one of `folds` equal pieces of ids (N,): its number and its tokens."""
    fold = torch.randint(folds, (), generator=generator).item()
    n = len(ids) - 1  # as ContextCounts cuts: a pair belongs where its target lies
    start, end = -(-fold * n // folds), -(-(fold + 1) * n // folds)
    return fold, ids[start : end + 1]


def fit_smoothing(counts, ids, config, steps=100):
    """A Smoothing whose discounts predict each fold of ids (N,) best from the others.

    Draws steps batches as `config` says; the loss is that of the longest order.
    """
    smoothing = Smoothing(counts.order)
    optimizer = torch.optim.Adam(smoothing.parameters(), 0.05)
    generator = torch.Generator().manual_seed(config.seed)
    for _ in range(steps):
        fold, windows = one_fold(ids, counts.folds, generator)
        x, y = get_batch(
            windows, config.batch_size, config.block_size, generator=generator
        )
        longest = smoothing(counts(x, without=fold))[..., -1, :]  # (B, T, V)
        loss = next_token_loss(longest, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return smoothing
