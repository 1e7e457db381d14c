"""Lesson 08: the small parts of today's decoder: another norm, another activation, and
positions that rotate.

Two of them bring their own derivative, because torch's would store and read more
numbers. They only have a first derivative. There's no second one, and torch.func
doesn't work.
"""

from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class _RMSNorm(torch.autograd.Function):
    """With a derivative written by hand. On a CPU, it takes about half as long as
    torch's."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, eps: float) -> torch.Tensor:
        scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
        y = x * scale
        ctx.save_for_backward(y, scale)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        y, scale = ctx.saved_tensors
        along = (grad * y).mean(dim=-1, keepdim=True)  # what would change the length
        return torch.addcmul(grad, y, along, value=-1).mul_(scale), None


def rms_norm(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """x / sqrt(mean(x²) + eps) over the last dimension: LayerNorm without the mean.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization (2019).
    """
    return _RMSNorm.apply(x, eps)


class RMSNorm(nn.Module):
    """rms_norm with a learned gain: (..., n_embd) -> (..., n_embd)."""

    def __init__(self, n_embd: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n_embd))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, self.eps) * self.weight


class _ReLU2(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        r = F.relu(x)
        ctx.save_for_backward(r)
        return r * r

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (r,) = ctx.saved_tensors
        return (grad * r).mul_(2)


def relu2(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)². Source: So et al., Primer (2021)."""
    return _ReLU2.apply(x)


BENDS = {"relu": F.relu, "relu2": relu2, "swiglu": None}  # None: a gate


class ModernFeedForward(nn.Module):
    """Lesson 05's FeedForward with another activation: (..., n_embd) -> (..., n_embd).

    "swiglu" multiplies two projections, one of them after a SiLU. Inside, it's a third
    narrower, so the number of weights stays the same: Shazeer, GLU Variants (2020), eq.
    6.
    """

    def __init__(
        self, n_embd: int, activation: str = "relu2", bias: bool = False
    ) -> None:
        super().__init__()
        C, self.bend = n_embd, BENDS[activation]
        inner = 4 * C if self.bend else 8 * C // 3
        self.expand = nn.Linear(C, inner if self.bend else 2 * inner, bias=bias)
        self.proj = nn.Linear(inner, C, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.expand(x)
        if self.bend:
            return self.proj(self.bend(hidden))
        gate, hidden = hidden.chunk(2, dim=-1)
        return self.proj(F.silu(gate) * hidden)


class ShortConvolution(nn.Module):
    """Mixes each channel with its own `width - 1` earlier values: (B, T, C) -> same.

    It comes after the layer that makes queries, keys and values: So et al., Primer
    (2021), section 3. It starts as the identity.
    """

    def __init__(self, n_channel: int, width: int = 3) -> None:
        super().__init__()
        start = torch.zeros(width, 1, n_channel)
        start[-1] = 1.0
        self.weight = nn.Parameter(start)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T, width = x.shape[1], len(self.weight)
        past = F.pad(x, (0, 0, width - 1, 0))  # (B, width - 1 + T, C)
        return sum(w * past[:, i : i + T] for i, w in enumerate(self.weight))


def rotary_turns(
    positions: torch.Tensor,
    head_size: int,
    base: float = 10_000.0,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """e^(i·t·base^(-2j / head_size)): how position t turns pair j.

    positions: (T,) -> complex (T, head_size / 2), each two numbers of `dtype`, or of
    float32 if that's more exact. Source: Su et al., RoFormer (2021), section 3.2.2.
    """
    dtype = torch.promote_types(dtype, torch.float32)  # torch has no complex bf16
    pair = torch.arange(0, head_size, 2, dtype=dtype, device=positions.device)  # 2j
    angles = positions[:, None] * base ** (-pair / head_size)  # (T, head_size / 2)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Turn each pair (x[2j], x[2j + 1]) of x (B, T, n_head, head_size). As one complex
    number, you turn it by multiplying. turns: (T, head_size / 2)."""
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    pairs = torch.view_as_complex(exact.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns[:, None]).flatten(-2).type_as(x)
