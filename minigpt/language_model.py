"""Lesson 03: the shell that every later model fills, and the loss of them all.

Source: Vaswani et al., Attention Is All You Need (2017), sections 3.4 and 3.5, for
the embeddings of tokens and positions (theirs are sums of sines, ours are learned).
"""

from collections.abc import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.arguments import at_least_one, check_kind
from minigpt.tensors import reads_ids, takes


def next_token_loss(logits, targets):
    """Mean cross-entropy in nats per token; None without targets.

    logits: (B, T, vocab_size), targets: (B, T). cross_entropy wants one row of
    logits for each target, so both are flattened to B * T rows.
    """
    if targets is None:
        return None
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def check_length(T, block_size):
    """Raise ValueError if T tokens are more than the table of positions holds."""
    if T > block_size:
        raise ValueError(
            f"The input has T = {T} tokens, but block_size is {block_size}. "
            f"Pass the last {block_size} of them, idx[:, -{block_size}:], "
            "or build the model with a larger block_size."
        )


class LanguageModel(nn.Module):
    """Embeddings, a body, a head: the body is all that the lessons change.

    body: any module (B, T, n_embd) -> (B, T, n_embd).
    """

    cache = None  # lesson 09 lends it one while it writes

    def __init__(self, vocab_size, block_size, n_embd, body):
        super().__init__()
        at_least_one(vocab_size=vocab_size, block_size=block_size, n_embd=n_embd)
        check_kind("body", body, Callable, "a module, nn.Identity() for none")
        self.block_size = block_size
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.position_embedding = nn.Embedding(block_size, n_embd)
        self.body = body
        self.lm_head = nn.Linear(n_embd, vocab_size)

    @reads_ids
    def hidden(self, idx):
        """What the head reads: idx (B, T) -> (B, T, n_embd).

        Raises ValueError if T > block_size.
        """
        T = idx.shape[1]
        if self.cache is None:
            check_length(T, self.block_size)
            positions = torch.arange(T, device=idx.device)  # (T,)
        else:  # these T come after what has been read before
            positions = self.cache.extend(T)
        x = self.token_embedding(idx)  # (B, T, n_embd)
        if self.position_embedding is not None:  # lesson 08 has models without
            x = x + self.position_embedding(positions)
        return self.body(x)

    @takes(hidden="(..., n_embd)")
    def logits(self, hidden):
        """(..., n_embd) -> (..., vocab_size)."""
        return self.lm_head(hidden)

    @reads_ids
    def forward(self, idx, targets=None):
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None.

        Raises ValueError if T > block_size.
        """
        logits = self.logits(self.hidden(idx))  # (B, T, vocab_size)
        return logits, next_token_loss(logits, targets)
