"""Lesson 03: one head of attention.

Source: Vaswani et al., Attention Is All You Need (2017), section 3.2.1.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.arguments import at_least_one, check_dropout
from minigpt.tensors import takes


@takes(q="(..., T, head_size)", k="(..., S, head_size)")
def attention_weights(q, k, causal=True):
    """softmax(q kᵀ / √head_size): how much each query attends to each key.

    q: (..., T, head_size), k: (..., S, head_size) -> (..., T, S); rows sum to
    one. With causal=True, the T queries belong to the last T of the S keys and
    none sees a later key. Raises ValueError if there are fewer keys than that.
    """
    if causal and q.shape[-2] > k.shape[-2]:
        raise ValueError(
            f"There are {q.shape[-2]} queries but only {k.shape[-2]} keys: pass "
            "causal=False for cross-attention."
        )
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    if causal:
        T, S = scores.shape[-2:]
        past = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
        scores = scores.masked_fill(~past, float("-inf"))
    return F.softmax(scores, dim=-1)


@takes(q="(..., T, head_size)", k="(..., S, head_size)", v="(..., S, d)")
def attention(q, k, v, causal=True):
    """Scaled dot-product attention for any leading dimensions.

    q: (..., T, head_size), k: (..., S, head_size), v: (..., S, d)
    -> out (..., T, d), weights (..., T, S).
    Raises ValueError as attention_weights.
    """
    weights = attention_weights(q, k, causal)  # (..., T, S)
    return weights @ v, weights  # (..., T, S) @ (..., S, d) -> (..., T, d)


class SelfAttention(nn.Module):
    """One head without a mask: every token sees every token.

    x: (..., T, d_in) -> (..., T, d_out).
    """

    def __init__(self, d_in, d_out):
        super().__init__()
        at_least_one(d_in=d_in, d_out=d_out)
        self.query = nn.Linear(d_in, d_out, bias=False)
        self.key = nn.Linear(d_in, d_out, bias=False)
        self.value = nn.Linear(d_in, d_out, bias=False)

    @takes(x="(..., n_embd)")
    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)  # (..., T, d_out)
        return attention(q, k, v, causal=False)[0]


class Head(nn.Module):
    """One head of causal self-attention: (B, T, n_embd) -> (B, T, head_size).

    T may be anything: attention itself has no limit of length.
    """

    def __init__(self, n_embd, head_size, dropout=0.0):
        super().__init__()
        at_least_one(n_embd=n_embd, head_size=head_size)
        check_dropout(dropout)
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.dropout = nn.Dropout(dropout)

    @takes(x="(..., n_embd)")
    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)  # (B, T, head_size)
        weights = attention_weights(q, k)  # (B, T, T)
        return self.dropout(weights) @ v  # (B, T, head_size)
