"""Lesson 03: the shell that every later model fills.

Source: Vaswani et al., Attention Is All You Need (2017), sections 3.4 and 3.5; their
positions are sums of sines, ours are learned.
"""

import torch
import torch.nn as nn

from minigpt.bigram import next_token_loss
from minigpt.interfaces import Body


class LanguageModel(nn.Module):
    """Embeddings, a body, a head: the body is all that the lessons change.

    body: any module (B, T, n_embd) -> (B, T, n_embd).
    """

    def __init__(
        self, vocab_size: int, block_size: int, n_embd: int, body: Body
    ) -> None:
        super().__init__()
        self.block_size = block_size
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.position_embedding = nn.Embedding(block_size, n_embd)
        self.body = body
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None.

        Raises ValueError if T > block_size.
        """
        T = idx.shape[1]
        if T > self.block_size:
            raise ValueError(
                f"idx has T = {T} tokens, but block_size is {self.block_size}: "
                f"pass the last ones, idx[:, -{self.block_size}:]."
            )
        positions = torch.arange(T, device=idx.device)  # (T,)
        x = self.token_embedding(idx)  # (B, T, n_embd)
        x = x + self.position_embedding(positions)  # the same for each piece
        logits = self.lm_head(self.body(x))  # (B, T, vocab_size)
        return logits, next_token_loss(logits, targets)
