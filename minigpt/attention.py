"""Lesson 03: one head of attention.

Source: Vaswani et al., Attention Is All You Need (2017), section 3.2.1.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def attention_weights(
    q: torch.Tensor, k: torch.Tensor, causal: bool = True
) -> torch.Tensor:
    """softmax(q kᵀ / √head_size): how much each query attends to each key.

    q: (..., T, head_size), k: (..., S, head_size) -> (..., T, S); rows sum to one.
    causal: no query sees a later key; pass False if q and k come from two texts.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    if causal:
        T = q.shape[-2]
        past = torch.tril(torch.ones(T, T, device=q.device)) == 1  # (T, T)
        scores = scores.masked_fill(~past, float("-inf"))
    return F.softmax(scores, dim=-1)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled dot-product attention for any leading dimensions.

    q: (..., T, head_size), k: (..., S, head_size), v: (..., S, d)
    -> out (..., T, d), weights (..., T, S).
    """
    weights = attention_weights(q, k, causal)  # (..., T, S)
    return weights @ v, weights  # (..., T, S) @ (..., S, d) -> (..., T, d)


class SelfAttention(nn.Module):
    """One head without a mask, every token sees every token: (..., T, d_in)
    -> (..., T, d_out)."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_in, d_out, bias=False)
        self.key = nn.Linear(d_in, d_out, bias=False)
        self.value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)  # (..., T, d_out)
        return attention(q, k, v, causal=False)[0]


class Head(nn.Module):
    """One head of causal self-attention: (B, T, n_embd) -> (B, T, head_size)."""

    def __init__(self, n_embd: int, head_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k, q, v = self.key(x), self.query(x), self.value(x)  # (B, T, head_size)
        weights = attention_weights(q, k)  # (B, T, T)
        return self.dropout(weights) @ v  # (B, T, head_size)
