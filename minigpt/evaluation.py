"""Lesson 01: how good a model is: an estimate while it learns, and the exact loss."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from minigpt.data import get_batch
from minigpt.interfaces import Model


@contextmanager
def evaluating(model: Model) -> Generator[None]:
    """Puts a model into evaluation mode, then back to how it was, even after an
    error."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


@torch.no_grad()
def estimate_loss(
    model: Model, data: Any, block_size: int, batch_size: int = 32, n_batches: int = 20
) -> float:
    """Mean loss over random batches, the same ones in each call, in nats per token."""
    device = next(model.parameters()).device
    batches = torch.Generator().manual_seed(0)
    total = 0.0
    with evaluating(model):
        for _ in range(n_batches):
            x, y = get_batch(data, batch_size, block_size, device, batches)
            total += model(x, y)[1].item()
    return total / n_batches


@torch.no_grad()
def evaluate(
    model: Model, data: torch.Tensor, block_size: int, batch_size: int = 128
) -> float:
    """The exact mean loss over a whole split, in nats per token.

    data: (N,). It's cut into windows of block_size tokens, and the last one may be
    shorter. Each token except the first is predicted once. Raises ValueError for fewer
    than two tokens, because then there's nothing to predict.
    """
    if len(data) < 2:
        raise ValueError(
            f"The data has {len(data)} tokens, but we need one to read and one to "
            "predict: use more text."
        )
    device = next(model.parameters()).device
    n = len(data) - 1
    rows = n // block_size
    whole = rows * block_size
    inputs = data[:whole].view(rows, block_size).split(batch_size)
    targets = data[1 : whole + 1].view(rows, block_size).split(batch_size)
    rest = data[whole:-1][None], data[whole + 1 :][None]  # (1, n - whole)
    total = 0.0
    with evaluating(model):
        for x, y in [*zip(inputs, targets), rest]:
            if y.numel() > 0:
                loss = model(x.to(device), y.to(device))[1].item()
                total += loss * y.numel()
    return total / n
