"""Lesson 01: the simplest language model."""

import torch.nn as nn
import torch.nn.functional as F

from minigpt.arguments import at_least_one
from minigpt.tensors import reads_ids


class BigramLanguageModel(nn.Module):
    """A table: row i holds the logits of the token that follows token i.

    Source: Shannon, A Mathematical Theory of Communication (1948), section 3.
    """

    def __init__(self, vocab_size):
        super().__init__()
        at_least_one(vocab_size=vocab_size)
        self.token_embedding = nn.Embedding(vocab_size, vocab_size)

    @reads_ids
    def forward(self, idx, targets=None):
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None."""
        logits = self.token_embedding(idx)  # (B, T, vocab_size)
        if targets is None:
            return logits, None
        # cross_entropy wants one row of logits for each target: B * T rows.
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
