"""Lesson 02: four ways to average the past, each the next one's special case.

All return (B, T, C): at time t a weighted mean of x[:, 0], ..., x[:, t].
Source of the last: Vaswani et al., Attention Is All You Need (2017), section
3.2.1, still without the scale.
"""

import torch
import torch.nn.functional as F

from minigpt.tensors import takes


@takes(x="(B, T, C)")
def average_loop(x):
    """x: (B, T, C) -> (B, T, C), the plain mean, as one would say it."""
    B, T, C = x.shape
    out = torch.zeros_like(x)
    for b in range(B):
        for t in range(T):
            past = x[b, : t + 1]  # (t + 1, C)
            out[b, t] = past.mean(dim=0)  # (C,)
    return out


@takes(x="(B, T, C)")
def average_matmul(x):
    """x: (B, T, C) -> (B, T, C), the plain mean, as one matrix product."""
    T = x.shape[1]
    weights = torch.tril(torch.ones(T, T, dtype=x.dtype, device=x.device))
    weights = weights / weights.sum(dim=1, keepdim=True)  # rows sum to 1
    return weights @ x  # (T, T) @ (B, T, C) -> (B, T, C)


@takes(x="(B, T, C)")
def average_softmax(x):
    """x: (B, T, C) -> (B, T, C), the plain mean, as softmax of equal scores."""
    T = x.shape[1]
    scores = torch.zeros(T, T, dtype=x.dtype, device=x.device)
    return F.softmax(_hide_future(scores), dim=-1) @ x  # (B, T, C)


@takes(x="(B, T, C)", q="(B, T, head_size)", k="(B, T, head_size)")
def average_attention(x, q, k):
    """The same with weights that depend on the data: unscaled self-attention.

    x: (B, T, C); q, k: (B, T, head_size) -> (B, T, C). With q = 0 all scores
    are equal and this is average_softmax(x).
    """
    scores = q @ k.transpose(-2, -1)  # (B, T, T)
    return F.softmax(_hide_future(scores), dim=-1) @ x  # (B, T, C)


def _hide_future(scores):
    past = torch.tril(torch.ones_like(scores, dtype=torch.bool))
    return scores.masked_fill(~past, float("-inf"))
