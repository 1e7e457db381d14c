"""Lesson 01: how good a model is: an estimate while it learns, and the exact loss."""

from contextlib import contextmanager

import torch

from minigpt.arguments import at_least_one, device_of, must
from minigpt.data import get_batch
from minigpt.device import autocast
from minigpt.tensors import check_ids, vocabulary_of
from minigpt.workers import ALONE


@contextmanager
def judging(model):
    """Evaluation mode without gradients; the mode comes back, errors or not."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(was_training)


def estimate_loss(model, data, config, workers=ALONE):
    """Mean loss over eval_batches random batches, always the same ones: nats/token.

    They are drawn from another seed than the training's batches; several workers
    (lesson 10) share them out, and each gets the mean over all.
    Raises ValueError if the data is too short for one window.
    """
    device = device_of(model)
    fine = hasattr(config, "eval_batches")
    must("config", config, fine, "a TrainConfig, which has eval_batches")
    batches = torch.Generator().manual_seed(config.seed ^ 0x5EED)
    drawn = (
        get_batch(data, config.batch_size, config.block_size, device, batches)
        for _ in range(config.eval_batches)
    )
    total = 0.0
    with judging(model), autocast(device):
        for (x, y), counts in workers.share(drawn):
            total += counts * model(x, y)[1].item()
    return workers.sum(total) / config.eval_batches


def evaluate(model, data, block_size, batch_size=128, workers=ALONE):
    """The exact mean loss over a whole split, in nats per token.

    data: (N,), of any integer type. It is cut into consecutive windows of block_size
    tokens, the last one perhaps shorter; each of the N - 1 targets is predicted once.
    Several workers share the windows out.
    Raises ValueError if there is not one target, or if a size is below 1.
    """
    device = device_of(model)
    check_ids("data", data, 1, vocabulary_of(model))
    n = len(data) - 1
    if n < 1:
        raise ValueError(
            f"The data has {len(data)} tokens; evaluating takes 2 or more."
        )
    at_least_one(block_size=block_size, batch_size=batch_size)
    whole = n // block_size * block_size
    x = data[:whole].view(-1, block_size).split(batch_size)
    y = data[1 : whole + 1].view(-1, block_size).split(batch_size)
    pieces = list(zip(x, y)) if whole else []
    if whole < n:
        pieces.append((data[whole:-1][None], data[whole + 1 :][None]))
    total = 0.0
    with judging(model):
        for (x, y), counts in workers.share(pieces):
            loss = model(x.long().to(device), y.long().to(device))[1].item()
            total += counts * loss * y.numel()
    return workers.sum(total) / n
