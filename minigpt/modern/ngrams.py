"""Lesson 08b: a GPT that reads each character together with the two before it."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.modern.model import ModernConfig, ModernGPT
from minigpt.modern.parts import ShortConvolution


class NgramEmbedding(nn.Module):
    """A row for the last two characters, and one for the last three, added up.

    idx: (B, T) -> (B, T, n_embd). All triples share `rows` rows: the remainder of its
    number says which. Both tables start as zeros. In training each is silent at half
    of the places; what that gains stands in the evidence of 08b. Source: Huang et al.,
    Over-Tokenized Transformer (2025), section 3.2.
    """

    def __init__(self, vocab_size: int, n_embd: int, rows: int = 32_768) -> None:
        super().__init__()
        self.silence = nn.Dropout1d(0.5)  # whole places of (B, T, n_embd)
        self.vocab_size = vocab_size
        self.pairs = nn.Embedding(vocab_size**2, n_embd)
        self.triples = nn.Embedding(rows, n_embd)
        nn.init.zeros_(self.pairs.weight)
        nn.init.zeros_(self.triples.weight)

    def forward(self, idx: torch.Tensor) -> torch.Tensor:
        T, V = idx.shape[1], self.vocab_size
        pair = idx + V * F.pad(idx, (1, 0))[:, :T]  # (B, T), each a number of its own
        triple = pair + V**2 * F.pad(idx, (2, 0))[:, :T]
        row = triple % self.triples.num_embeddings
        pairs, triples = self.pairs(pair), self.triples(row)
        return self.silence(pairs) + self.silence(triples)


@dataclass
class NgramConfig(ModernConfig):
    """The shape of an NgramGPT."""

    def build(self) -> "NgramGPT":
        """A model of this shape, with new weights."""
        return NgramGPT(self)


class NgramGPT(ModernGPT):
    """A ModernGPT with an NgramEmbedding beside that of characters, and a short
    convolution behind both: model(idx, targets=None) -> logits, loss or None."""

    def __init__(self, config: "NgramConfig") -> None:
        super().__init__(config)
        self.ngrams = NgramEmbedding(config.vocab_size, config.n_embd)
        self.convolution = ShortConvolution(config.n_embd)

    def embed(self, idx: torch.Tensor, start: int = 0) -> torch.Tensor:
        """idx: (B, T) -> (B, T - start, C). Raises ValueError if T > block_size.

        Pairs, triples and the convolution look back, so all is embedded, then cut.
        """
        return self.convolution(super().embed(idx) + self.ngrams(idx))[:, start:]
