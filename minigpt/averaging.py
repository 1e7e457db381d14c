"""Lesson 02: four ways to average the past. Each is a special case of the next one.

All return (B, T, C). At position t you get a weighted average of x[:, 0], ..., x[:, t].
Source of the fourth: Vaswani et al., Attention Is All You Need (2017), section 3.2.1.
"""

import math

import torch
import torch.nn.functional as F


def average_loop(x: torch.Tensor) -> torch.Tensor:
    """x: (B, T, C) -> (B, T, C), the plain average, with two loops."""
    B, T, C = x.shape
    out = torch.zeros_like(x)
    for b in range(B):
        for t in range(T):
            past = x[b, : t + 1]  # (t + 1, C)
            out[b, t] = past.mean(dim=0)  # (C,)
    return out


def average_matmul(x: torch.Tensor) -> torch.Tensor:
    """x: (B, T, C) -> (B, T, C), the plain average, as one matrix product."""
    T = x.shape[1]
    weights = torch.tril(torch.ones(T, T, device=x.device))
    weights = weights / weights.sum(dim=1, keepdim=True)  # rows sum to 1
    return weights @ x  # (T, T) @ (B, T, C) -> (B, T, C)


def average_softmax(x: torch.Tensor) -> torch.Tensor:
    """x: (B, T, C) -> (B, T, C), the plain average, as softmax of equal scores."""
    T = x.shape[1]
    scores = torch.zeros(T, T, device=x.device)
    weights = F.softmax(hide_future(scores), dim=-1)  # rows sum to 1
    return weights @ x  # (T, T) @ (B, T, C) -> (B, T, C)


def average_attention(
    x: torch.Tensor, q: torch.Tensor, k: torch.Tensor
) -> torch.Tensor:
    """x: (B, T, C) -> (B, T, C), an average whose weights depend on the text.

    q, k: (B, T, head_size). If q is 0, all scores are equal, as in average_softmax(x).
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)
    weights = F.softmax(hide_future(scores), dim=-1)  # rows sum to 1
    return weights @ x  # (B, T, T) @ (B, T, C) -> (B, T, C)


def hide_future(scores: torch.Tensor) -> torch.Tensor:
    """scores (..., T, T) with -inf wherever the column is later than the row."""
    past = torch.tril(torch.ones_like(scores)) == 1
    return scores.masked_fill(~past, float("-inf"))
