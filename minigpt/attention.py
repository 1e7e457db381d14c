"""Lesson 03: one head of attention, and the shell that every later model fills.

Source: Vaswani et al., Attention Is All You Need (2017), section 3.2.1.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import next_token_loss


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
        self.query = nn.Linear(d_in, d_out, bias=False)
        self.key = nn.Linear(d_in, d_out, bias=False)
        self.value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)  # (..., T, d_out)
        return attention(q, k, v, causal=False)[0]


def check_length(T, block_size):
    """Raise ValueError if T tokens are more than the model's context holds."""
    if T > block_size:
        raise ValueError(
            f"The input has T = {T} tokens, but block_size is {block_size}. "
            f"Pass the last {block_size} of them, idx[:, -{block_size}:], "
            "or build the model with a larger block_size."
        )


class Head(nn.Module):
    """One head of causal self-attention: (B, T, n_embd) -> (B, T, head_size).

    Raises ValueError if T > block_size.
    """

    def __init__(self, n_embd, head_size, block_size, dropout=0.0):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.block_size = block_size

    def forward(self, x):
        check_length(x.shape[1], self.block_size)
        k, q, v = self.key(x), self.query(x), self.value(x)  # (B, T, head_size)
        weights = attention_weights(q, k)  # (B, T, T)
        return self.dropout(weights) @ v  # (B, T, head_size)


class LanguageModel(nn.Module):
    """Embeddings, a body, a head: the body is all that the lessons change.

    body: any module (B, T, n_embd) -> (B, T, n_embd).
    """

    def __init__(self, vocab_size, block_size, n_embd, body):
        super().__init__()
        self.block_size = block_size
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.position_embedding = nn.Embedding(block_size, n_embd)
        self.body = body
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx, targets=None):
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None.

        Raises ValueError if T > block_size.
        """
        T = idx.shape[1]
        check_length(T, self.block_size)
        positions = torch.arange(T, device=idx.device)  # (T,)
        x = self.token_embedding(idx) + self.position_embedding(positions)
        logits = self.lm_head(self.body(x))  # (B, T, n_embd) -> (B, T, vocab_size)
        return logits, next_token_loss(logits, targets)
