"""Lesson 06: to write, you ask a model, draw a token, append it, and ask again."""

import math

import torch
import torch.nn.functional as F

from minigpt.evaluation import evaluating
from minigpt.interfaces import Model
from minigpt.require import require


@torch.no_grad()
def generate(
    model: Model,
    idx: torch.Tensor,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Append sampled tokens: idx (B, T) -> (B, T + max_new_tokens).

    temperature, top_k, top_p: see `probabilities`. generator: for the random numbers,
    on the model's device. The model reads the last block_size tokens.
    """
    with evaluating(model):
        for _ in range(max_new_tokens):
            logits, _ = model(idx[:, -model.block_size :])  # (B, T, vocab_size)
            probs = probabilities(logits[:, -1], temperature, top_k, top_p)
            next_idx = torch.multinomial(probs, 1, generator=generator)  # (B, 1)
            idx = torch.cat([idx, next_idx], dim=1)  # (B, T + 1)
    return idx


def probabilities(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    """The probability of each next token: logits (B, vocab_size) -> the same shape.

    temperature divides the logits; 0 gives all to the likeliest token. top_k and
    top_p: see `keep_top_k` and `keep_top_p`. Raises ValueError where `refuse_knobs`
    does.
    """
    refuse_knobs(temperature, top_k, top_p)
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    logits = logits / temperature
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    return F.softmax(logits, dim=-1)


def keep_top_k(logits: torch.Tensor, top_k: int) -> torch.Tensor:
    """The k likeliest tokens keep their logits, the others get minus infinity:
    (B, vocab_size) -> the same. Ties with the k-th stay."""
    k = min(top_k, logits.shape[-1])
    kth = logits.topk(k, dim=-1).values[:, -1:]  # (B, 1)
    return logits.masked_fill(logits < kth, float("-inf"))


def keep_top_p(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """The likeliest tokens whose probabilities sum to at least top_p keep their logits:
    (B, vocab_size) -> the same. Holtzman et al., The Curious Case of Neural Text
    Degeneration (2020), section 3.1."""
    probs, order = F.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    before = probs.cumsum(dim=-1) - probs  # what the likelier ones sum to
    drop = (before >= top_p) & (top_p < 1)  # (B, vocab_size), in sorted order
    drop = drop.scatter(-1, order, drop)  # back in the order of the ids
    return logits.masked_fill(drop, float("-inf"))


def refuse_knobs(
    temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> None:
    """Raise ValueError for a setting that no token can be drawn with."""
    require(
        temperature == 0 or 1e-6 <= temperature < math.inf,  # below, logits overflow
        f"temperature is {temperature}; give 0, or a finite number from 1e-6 up.",
    )
    require(top_k is None or top_k >= 1, f"top_k is {top_k}; give at least 1.")
    require(
        top_p is None or 0 < top_p <= 1,
        f"top_p is {top_p}; give more than 0 and at most 1.",
    )
