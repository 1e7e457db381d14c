"""Lesson 12: lesson 06's GPT on our own tensors, as functions of its weights."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minigpt.backward.layers import attention, cross_entropy, layer_norm, linear
from minigpt.backward.tensor import Tensor, relu, reshape, transpose
from minigpt.gpt import GPT, GPTConfig


def copied(gpt: GPT) -> dict[str, Tensor]:
    """{name: Tensor}: copies of the parameters of a torch GPT.

    Raises ValueError for a model with dropout.
    """
    if gpt.config.dropout:
        raise ValueError(f"dropout is {gpt.config.dropout}; this lesson has none.")
    named = gpt.named_parameters()
    return {name: Tensor(p.detach().numpy().copy()) for name, p in named}


def part(p: dict[str, Tensor], name: str) -> tuple[Tensor, Any]:
    """The weight and the bias (or None) of the part with this name."""
    return p[f"{name}.weight"], p.get(f"{name}.bias")


def heads(x: Tensor, p: dict[str, Tensor], name: str, n_head: int) -> Tensor:
    """What CausalSelfAttention of lesson 04 computes: (B, T, C) -> (B, T, C)."""
    B, T, C = x.data.shape
    qkv = linear(x, *part(p, f"{name}.qkv"))  # (B, T, 3 * C)
    qkv = reshape(qkv, (B, T, 3, n_head, C // n_head))
    qkv = transpose(qkv, (2, 0, 3, 1, 4))  # (3, B, n_head, T, head_size)
    out = attention(qkv[0], qkv[1], qkv[2])  # (B, n_head, T, head_size)
    out = reshape(transpose(out, (0, 2, 1, 3)), (B, T, C))
    return linear(out, *part(p, f"{name}.proj"))


def block(x: Tensor, p: dict[str, Tensor], name: str, n_head: int) -> Tensor:
    """What the Block from lesson 05 computes: (B, T, C) -> (B, T, C)."""
    normed = layer_norm(x, *part(p, f"{name}.norm1"))
    x = x + heads(normed, p, f"{name}.attention", n_head)
    normed = layer_norm(x, *part(p, f"{name}.norm2"))
    hidden = relu(linear(normed, *part(p, f"{name}.feed_forward.expand")))
    return x + linear(hidden, *part(p, f"{name}.feed_forward.proj"))


def forward(
    p: dict[str, Tensor],
    config: GPTConfig,
    idx: np.ndarray,
    targets: np.ndarray,
    block: Callable[..., Tensor] = block,
) -> tuple[Tensor, Tensor]:
    """What the GPT of lesson 06 computes: idx and targets, both arrays of ids (B, T)
    -> logits (B * T, vocab_size), loss.

    block: the function that computes a block, the one above or one like it.
    """
    B, T = idx.shape
    x = p["token_embedding.weight"][idx] + p["position_embedding.weight"][:T]
    for i in range(config.n_layer):
        x = block(x, p, f"body.{i}", config.n_head)  # (B, T, C)
    x = layer_norm(x, *part(p, f"body.{config.n_layer}"))
    logits = linear(reshape(x, (B * T, -1)), *part(p, "lm_head"))
    return logits, cross_entropy(logits, targets.reshape(-1))
