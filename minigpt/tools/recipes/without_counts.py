"""The best entry without counts: one block that reads 256 characters.

It reads each character together with the one before it and with the two before it:
every pair of characters has a row, and so does every triple. Muon trains the matrices
(lesson 08).
"""

import math
from dataclasses import replace

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import training
from minigpt.interfaces import Model
from minigpt.modern.model import ModernConfig, ModernGPT
from minigpt.modern.parts import ShortConvolution
from minigpt.modern.recipe import MuonConfig

STEPS = 2200
ROWS = 32_768  # for 65³ triples: about eight of them share each row


class PairsAndTriples(nn.Module):
    """One row for the last two characters plus one for the last three.

    idx: (B, T) -> (B, T, n_embd). The remainder of a triple's number says which row it
    gets. Both tables start as zeros. In training, each one is off at half of the
    positions.
    Source: Huang et al., Over-Tokenized Transformer (2025), section 3.2.
    """

    def __init__(self, vocab_size: int, n_embd: int) -> None:
        super().__init__()
        self.silence = nn.Dropout1d(0.5)  # whole positions of (B, T, n_embd)
        self.vocab_size = vocab_size
        self.pairs = nn.Embedding(vocab_size**2, n_embd)
        self.triples = nn.Embedding(ROWS, n_embd)
        nn.init.zeros_(self.pairs.weight)
        nn.init.zeros_(self.triples.weight)

    def forward(self, idx: torch.Tensor) -> torch.Tensor:
        T, V = idx.shape[1], self.vocab_size
        pair = idx + V * F.pad(idx, (1, 0))[:, :T]  # (B, T), one number for each pair
        triple = pair + V**2 * F.pad(idx, (2, 0))[:, :T]
        pairs, triples = self.pairs(pair), self.triples(triple % ROWS)
        return self.silence(pairs) + self.silence(triples)


class NgramGPT(ModernGPT):
    """The GPT of lesson 08 with PairsAndTriples next to the embedding of characters,
    and a short convolution after both."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__(config)
        self.ngrams = PairsAndTriples(config.vocab_size, config.n_embd)
        self.convolution = ShortConvolution(config.n_embd)

    def embed(self, idx: torch.Tensor, start: int = 0) -> torch.Tensor:
        """idx: (B, T) -> (B, T - start, C)."""
        return self.convolution(super().embed(idx) + self.ngrams(idx))[:, start:]


def build(train_ids: torch.Tensor, vocab_size: int) -> Model:
    """An untrained model for the text train_ids (N,)."""
    return NgramGPT(ModernConfig(vocab_size, 256, n_layer=1, n_head=4, n_embd=128))


def train(model: Model, train_ids: torch.Tensor, seed: int) -> None:
    """Train the model in place."""
    plan = MuonConfig(STEPS, 4, 256, 8e-3, weight_decay=0.0, grad_clip=math.inf)
    plan = replace(plan, seed=seed, eval_every=STEPS, eval_batches=1)
    training.train(model, train_ids, train_ids, plan)
