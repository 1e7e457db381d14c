"""Lesson 05: communication, then computation, on a residual pathway.

Sources: Vaswani et al. (2017), sections 3.1 and 3.3; He et al., Deep Residual
Learning (2015), sections 3.1 and 3.2; Xiong et al., On Layer Normalization in the
Transformer Architecture (2020), section 3, for the LayerNorm before each part.
"""

import torch
import torch.nn as nn

from minigpt.multi_head import CausalSelfAttention


class FeedForward(nn.Module):
    """What each position computes on its own: (..., n_embd) -> (..., n_embd)."""

    def __init__(self, n_embd: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = nn.Linear(n_embd, 4 * n_embd)
        self.relu = nn.ReLU()
        self.proj = nn.Linear(4 * n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.relu(self.expand(x))  # (..., 4 * n_embd)
        return self.dropout(self.proj(hidden))  # (..., n_embd)


class Block(nn.Module):
    """One transformer block, LayerNorm first: (B, T, n_embd) -> (B, T, n_embd)."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(n_embd)
        self.attention = CausalSelfAttention(n_embd, n_head, dropout)
        self.norm2 = nn.LayerNorm(n_embd)
        self.feed_forward = FeedForward(n_embd, dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))
