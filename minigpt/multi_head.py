"""Lesson 04: several heads, first side by side, then as one batched operation.

Source: Vaswani et al., Attention Is All You Need (2017), section 3.2.2.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.attention import Head


def head_width(n_embd: int, n_head: int) -> int:
    """head_size = n_embd / n_head. Raises ValueError if that isn't a whole number."""
    if n_embd % n_head:
        raise ValueError(f"n_head = {n_head} must divide n_embd = {n_embd}.")
    return n_embd // n_head


class MultiHeadAttention(nn.Module):
    """n_head narrow heads, concatenated and mixed: (B, T, C) -> (B, T, C)."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0) -> None:
        super().__init__()
        head_size = head_width(n_embd, n_head)
        self.heads = nn.ModuleList(
            Head(n_embd, head_size, dropout) for _ in range(n_head)
        )
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side_by_side = [head(x) for head in self.heads]  # each (B, T, head_size)
        out = torch.cat(side_by_side, dim=-1)  # (B, T, C)
        return self.dropout(self.proj(out))


def split_heads(x: torch.Tensor, n_head: int) -> torch.Tensor:
    """The channels cut into heads: (B, T, C) -> (B, n_head, T, head_size)."""
    B, T, C = x.shape
    heads = x.view(B, T, n_head, C // n_head)
    return heads.transpose(1, 2)  # attention takes the last two dimensions


class CausalSelfAttention(nn.Module):
    """MultiHeadAttention, all heads in one operation: (B, T, C) -> (B, T, C).

    The rows of `qkv` hold the queries of all heads, then the keys, then the values.
    torch's fused kernel scales, masks and normalizes, and (without dropout) never
    stores the (T, T) weights: Dao et al., FlashAttention (2022), section 3.1.
    """

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.n_head = n_head
        self.head_size = head_width(n_embd, n_head)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=-1)  # (B, T, C) each
        q = split_heads(q, self.n_head)  # (B, n_head, T, head_size)
        k = split_heads(k, self.n_head)
        v = split_heads(v, self.n_head)
        p = self.dropout.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        out = out.transpose(1, 2).reshape(B, T, C)  # heads side by side again
        return self.dropout(self.proj(out))
