"""Lesson 01: the simplest language model, and the loss of every model here."""

import torch.nn as nn
import torch.nn.functional as F


def next_token_loss(logits, targets):
    """Mean cross-entropy in nats per token; None without targets.

    logits: (B, T, vocab_size), targets: (B, T). cross_entropy wants one row of
    logits for each target, so both are flattened to B * T rows.
    """
    if targets is None:
        return None
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class BigramLanguageModel(nn.Module):
    """A table: row i holds the logits of the token that follows token i.

    Source: Shannon, A Mathematical Theory of Communication (1948), section 3.
    """

    def __init__(self, vocab_size):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, vocab_size)

    def forward(self, idx, targets=None):
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None."""
        logits = self.token_embedding(idx)  # (B, T, vocab_size)
        return logits, next_token_loss(logits, targets)
