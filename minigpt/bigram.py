"""Lesson 01: a language model that is one table."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class BigramLanguageModel(nn.Module):
    """A table. Row i has the logits of the token that comes after token i.

    Source: Shannon, A Mathematical Theory of Communication (1948), section 3.
    """

    block_size = 1  # it looks at one character

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, vocab_size)

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None."""
        logits = self.token_embedding(idx)  # (B, T, vocab_size)
        return logits, next_token_loss(logits, targets)


def next_token_loss(
    logits: torch.Tensor, targets: torch.Tensor | None
) -> torch.Tensor | None:
    """The average surprise in nats per token, or None if there are no targets.

    logits: (B, T, vocab_size), targets: (B, T). cross_entropy wants one row of
    logits per target, so there are B * T rows.
    """
    if targets is None:
        return None
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
