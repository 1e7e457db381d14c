"""Lesson 12: what a GPT is made of. Each part has a backward pass of its own.

Sources: Ba et al., Layer Normalization (2016); Chen et al., Training Deep Nets with
Sublinear Memory Cost (2016), for `checkpoint`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minigpt.backward.tensor import Tensor, backward, reshape, transpose


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., n), weight (m, n), bias (m,) -> (..., m), all rows in one product."""
    rows = reshape(x, (-1, x.data.shape[-1]))
    out = rows @ transpose(weight, (1, 0))
    out = out if bias is None else out + bias
    return reshape(out, (*x.data.shape[:-1], -1))


def cross_entropy(logits: Tensor, targets: np.ndarray) -> Tensor:
    """Mean surprise in nats. logits: (N, V), targets: ids (N,)."""
    z = logits.data - logits.data.max(axis=-1, keepdims=True)
    p = np.exp(z)
    sums = p.sum(axis=-1, keepdims=True)
    p /= sums
    rows = np.arange(len(targets))
    loss = (np.log(sums[:, 0]) - z[rows, targets]).mean()

    def back(g):
        grad = p.copy()
        grad[rows, targets] -= 1  # p - onehot
        return (grad * (g / len(targets)),)

    return Tensor(loss, (logits,), back)


def standardize(x: Tensor, eps: float = 1e-5) -> Tensor:
    """Each row with mean 0 and variance 1: a LayerNorm without gain and shift."""
    centered = x.data - x.data.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    root = np.sqrt(variance + eps)
    y = centered / root

    def back(g):
        along_ones = g.mean(axis=-1, keepdims=True)
        along_y = (g * y).mean(axis=-1, keepdims=True)
        return ((g - along_ones - y * along_y) / root,)

    return Tensor(y, (x,), back)


def layer_norm(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """LayerNorm: x (..., C), gain and shift (C,) -> (..., C)."""
    return standardize(x) * gain + shift


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention: q, k, v (..., T, head_size) -> the same shape."""
    T, head_size = q.data.shape[-2:]
    scale = float(head_size) ** -0.5
    w = q.data @ k.data.swapaxes(-1, -2) * scale
    w[..., np.triu(np.ones((T, T), bool), 1)] = -np.inf
    w -= w.max(axis=-1, keepdims=True)
    np.exp(w, out=w)
    w /= w.sum(axis=-1, keepdims=True)

    def back(g):
        dv = w.swapaxes(-1, -2) @ g
        dw = g @ v.data.swapaxes(-1, -2)
        ds = w * (dw - (dw * w).sum(axis=-1, keepdims=True)) * scale
        return ds @ k.data, ds.swapaxes(-1, -2) @ q.data, dv

    return Tensor(w @ v.data, (q, k, v), back)


def checkpoint(f: Callable[..., Tensor], x: Tensor, *rest: Any) -> Tensor:
    """f(x, *rest), but nothing inside is kept: the backward pass computes it again."""
    y = f(Tensor(x.data), *rest).data  # the graph behind it is dropped here

    def back(g):
        once_more = Tensor(x.data)
        backward(f(once_more, *rest), g)
        return (once_more.grad,)

    return Tensor(y, (x,), back)
