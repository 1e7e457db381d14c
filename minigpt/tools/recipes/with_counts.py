"""The best entry: a small GPT together with counts of the training text.

Counts say how often each character followed the last 0, 1, ... 8 characters. The GPT
reads what the counts expect, weighs them at each position, and adds what they can't
know.
Weighing contexts of several lengths goes back to PPM: Cleary and Witten, Data
Compression Using Adaptive Coding and Partial String Matching (1984).

- `Counts` counts the training text the way Kneser and Ney did (1995).
- `Smoothing` turns the counts into probabilities: Chen and Goodman, An Empirical Study
  of Smoothing Techniques (1999).
- `counts_in_window` counts what the model is reading right now: Kuhn and De Mori, A
  Cache-Based Natural Language Model (1990).
- `CountingGPT` puts them together, and `own_piece` keeps it from its own counts: a
  model that trains on text the counts have already seen learns to trust them too much.
"""

import math
from dataclasses import replace
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import training
from minigpt.bigram import next_token_loss
from minigpt.data import get_batch
from minigpt.interfaces import Model
from minigpt.modern.model import ModernConfig, ModernGPT
from minigpt.modern.parts import ShortConvolution
from minigpt.modern.recipe import MuonConfig

STEPS, FIT_STEPS = 1450, 100
ORDER = 8  # characters in the longest context of the training text
RECENT = 4  # and the same within the window
PIECES = 10  # of the training text


class Counts:
    """What followed each context of 0 to `order` characters in ids (N,).

    One sorted list has a number for each (context, next character) that occurs. For the
    longest context, the count says how *often* the character followed. For every
    shorter one, it says after how many *different* characters the pair was seen. The
    text is cut into PIECES of equal length, and you can ask for the counts without one
    of them.
    """

    def __init__(self, ids: torch.Tensor, vocab_size: int, order: int = ORDER) -> None:
        if vocab_size ** (order + 1) * (order + 1) >= 2**63:
            raise ValueError(
                f"Contexts of {order} characters out of {vocab_size} don't fit into "
                "64-bit numbers: choose a smaller order."
            )
        self.vocab_size, self.order, V = vocab_size, order, vocab_size
        N = len(ids)
        piece_of = torch.arange(N - 1) * PIECES // (N - 1)  # (N - 1,)
        contexts = self.numbers(ids[None, :-1])[0]  # (N - 1, order + 1)
        pairs, often = [], []
        for n in range(order + 1):
            there = contexts[:, n] >= 0  # the text goes back that far
            pair = (contexts[:, n] * V + ids[1:])[there]
            distinct, place = torch.unique(pair, return_inverse=True)  # sorted
            cell = place * PIECES + piece_of[there]  # of a table (distinct, PIECES)
            table = torch.bincount(cell, minlength=len(distinct) * PIECES)
            pairs.append(distinct)
            often.append(table.view(-1, PIECES).float())
        # The whole list is sorted, too, because longer contexts have larger numbers.
        self.pairs = torch.cat(pairs)  # (M,)
        pieces = torch.cat(often).T.contiguous()  # (PIECES, M)
        self.often = torch.cat([pieces, pieces.sum(dim=0, keepdim=True)])
        # The pairs of one context are side by side: where they begin, and how many.
        context_of = self.pairs // V
        self.contexts, self.length = context_of.unique_consecutive(return_counts=True)
        self.first = self.length.cumsum(0) - self.length
        self.different = self.continuations()

    def numbers(self, idx: torch.Tensor) -> torch.Tensor:
        """The last n characters at each position as one number, for n = 0 ... order, or
        -1 where the text doesn't go back that far: (B, T) -> (B, T, order + 1)."""
        B, T = idx.shape
        V, order = self.vocab_size, self.order
        found = torch.zeros(B, T, order + 1, dtype=torch.long)
        for n in range(1, min(order, T) + 1):  # one character further back
            further = idx[:, : T - n + 1] * V ** (n - 1)
            found[:, n - 1 :, n] = found[:, n - 1 :, n - 1] + further
        found += V**order * torch.arange(order + 1)  # so that no two lengths collide
        for n in range(2, order + 1):
            found[:, : n - 1, n] = -1
        return found

    def continuations(self) -> torch.Tensor:
        """After how many different characters each pair was seen. Like `often`, it has
        one row per piece for what only this piece has, then the total: (11, M)."""
        V, base = self.vocab_size, self.vocab_size**self.order
        context, last = self.pairs // V, self.pairs % V  # (M,) each
        n, code = context // base, context % base  # its length, and its characters
        # Each pair adds one to the pair without the first character of its context,
        # that is, without the highest digit of its code.
        longer = n > 0
        shorter = (n - 1) * base + code % V ** (n - 1).clamp(min=0)
        place = torch.searchsorted(self.pairs, (shorter * V + last)[longer])
        only = (self.often == self.often[-1])[:, longer].float()  # the total: always
        none = torch.zeros_like(self.often)
        return none.index_add(1, place, only)

    def __call__(self, idx: torch.Tensor, without: int | None = None) -> torch.Tensor:
        """Counts of what followed each position's contexts, (B, T, order + 1, V).

        without: the number of the piece whose counts are left out.
        """
        (B, T), V, levels = idx.shape, self.vocab_size, self.order + 1
        asked = self.numbers(idx).flatten()  # (R,), R questions
        place = torch.searchsorted(self.contexts, asked)
        place = place.clamp(max=len(self.contexts) - 1)
        known = self.contexts[place] == asked
        length = self.length[place] * known  # answers to each question
        row = torch.repeat_interleave(length)  # (A,): the question it answers
        begin = length.cumsum(0) - length  # (R,): where each question's answers begin
        shift = self.first[place] - begin  # from there to their places in the list
        entry = torch.arange(len(row)) + shift[row]
        n, t = row % levels, row // levels % T
        longest = n == (t + 1).clamp(max=self.order)  # that the window has
        often, different = self.often[-1], self.different[-1]
        values = torch.where(longest, often[entry], different[entry])  # (A,)
        if without is not None:
            often, different = self.often[without], self.different[without]
            values = values - torch.where(longest, often[entry], different[entry])
        out = torch.zeros(len(asked) * V)
        out[row * V + self.pairs[entry] % V] = values
        return out.view(B, T, levels, V)


class Smoothing(nn.Module):
    """Counts -> log-probabilities for every order, each built on the next shorter one.

    counts: (B, T, order + 1, V) -> the same. Each count of 1, of 2, and of 3 or more
    gives up a learned discount. What's collected goes to the next shorter context, and
    at the bottom to the uniform guess.
    """

    def __init__(self, order: int = ORDER) -> None:
        super().__init__()
        self.discount = nn.Parameter(torch.full((order + 1, 3), 1.0))

    def forward(self, counts: torch.Tensor) -> torch.Tensor:
        kind = counts.clamp(max=3).long()  # 0, 1, 2, 3 or more
        most = torch.tensor([1.0, 2.0, 3.0])
        table = F.pad(torch.sigmoid(self.discount) * most, (1, 0))  # (order + 1, 4)
        taken = table[torch.arange(len(table))[:, None], kind]  # (B, T, order + 1, V)
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


def counts_in_window(idx: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """How often each character has followed the last 1 ... RECENT characters within
    this window, so far: idx (B, T) -> (B, T, RECENT, V)."""
    follows = F.one_hot(idx[:, 1:], vocab_size).float()  # (B, T - 1, V)
    same = idx[:, :, None] == idx[:, None, :-1]  # (B, T, T - 1)
    same = alike = torch.tril(same, -1)  # only earlier ones
    levels = []
    for _ in range(RECENT):
        levels.append(alike.float() @ follows)
        alike = same & F.pad(alike[:, :-1, :-1], (1, 0, 1, 0))  # one more character
    return torch.stack(levels, dim=-2)


class CountingGPT(nn.Module):
    """The GPT of lesson 08 together with counts.

    logits = the GPT's + a mixture of what every order and the window say. The GPT
    chooses the weights at each position. At first it trusts only the longest order.
    """

    def __init__(self, config: ModernConfig, counts: Counts) -> None:
        super().__init__()
        self.gpt = ModernGPT(config)
        self.body, self.block_size = self.gpt.body, config.block_size
        self.counts, self.without = counts, None
        self.smoothing = Smoothing(counts.order).requires_grad_(False)
        self.read = nn.Linear(config.vocab_size, config.n_embd, bias=False)
        nn.init.normal_(self.read.weight, std=0.02)
        self.convolution = ShortConvolution(config.n_embd)
        self.gate = nn.Linear(config.n_embd, counts.order + 1 + RECENT)
        nn.init.zeros_(self.gate.weight)
        with torch.no_grad():
            self.gate.bias.zero_()[counts.order] = 1.0

    @torch.no_grad()
    def known(self, idx: torch.Tensor) -> torch.Tensor:
        """What the counts say at each position: (B, T) -> (B, T, rows, V).

        order + 1 rows are log-probabilities from the training text, RECENT rows are
        log(1 + counts) of the window.
        """
        without = self.without if self.training else None
        rows = self.smoothing(self.counts(idx, without))
        recent = counts_in_window(idx, rows.shape[-1]).log1p()
        return torch.cat([rows, recent], dim=-2)

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None."""
        rows = self.known(idx)
        longest = rows[..., self.counts.order, :]  # (B, T, V)
        uniform = -math.log(longest.shape[-1])
        x = self.gpt.embed(idx) + self.read(longest - uniform)
        hidden = self.body(self.convolution(x))  # (B, T, C)
        gate = self.gate(hidden)[..., None, :]  # (B, T, 1, order + 1 + RECENT)
        logits = self.gpt.logits(hidden) + (gate @ rows)[..., 0, :]
        return logits, next_token_loss(logits, targets)


def own_piece(
    model: Model,
    ids: torch.Tensor,
    batch_size: int,
    block_size: int,
    device: torch.device | str = "cpu",
    generator: torch.Generator | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch like get_batch's, but from one piece of ids (N,). While it trains, the
    model leaves that piece's counts out from now on."""
    piece = torch.randint(PIECES, (), generator=generator).item()
    model.without = piece
    n = len(ids) - 1  # cut the way Counts does: a pair belongs where its target is
    start, end = (-(-p * n // PIECES) for p in (piece, piece + 1))  # rounded up
    return get_batch(ids[start : end + 1], batch_size, block_size, device, generator)


def fit_smoothing(model: Model, ids: torch.Tensor, plan: MuonConfig) -> None:
    """Learn the discounts that let the other pieces of ids (N,) predict each piece
    best."""
    smoothing = model.smoothing.requires_grad_(True)
    optimizer = torch.optim.Adam(smoothing.parameters(), lr=0.05)
    batches = torch.Generator().manual_seed(plan.seed)
    for _ in range(FIT_STEPS):
        sizes = plan.batch_size, plan.block_size
        x, y = own_piece(model, ids, *sizes, generator=batches)  # (B, T)
        said = smoothing(model.counts(x, model.without))[..., -1, :]
        optimizer.zero_grad()
        F.cross_entropy(said.flatten(0, 1), y.flatten()).backward()
        optimizer.step()
    smoothing.requires_grad_(False)
    model.without = None


def build(train_ids: torch.Tensor, vocab_size: int) -> Model:
    """An untrained model together with the counts of train_ids (N,)."""
    config = ModernConfig(vocab_size, 256, n_layer=2, n_head=3, n_embd=96)
    return CountingGPT(config, Counts(train_ids, vocab_size))


def plan_of(seed: int) -> MuonConfig:
    """How to train it: with Muon, at half of lesson 08's learning rate."""
    plan = MuonConfig(STEPS, 4, 256, 4e-3, weight_decay=0.0, grad_clip=math.inf)
    return replace(plan, seed=seed, eval_every=STEPS, eval_batches=1)


def train(model: Model, train_ids: torch.Tensor, seed: int) -> None:
    """Fit the discounts, then train the model in place."""
    plan, draw = plan_of(seed), partial(own_piece, model)
    fit_smoothing(model, train_ids, plan)
    training.train(model, train_ids, train_ids, plan, draw=draw)
