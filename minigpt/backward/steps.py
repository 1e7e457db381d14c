"""Lesson 12: the same training, once with torch's gradients and once with ours."""

from collections.abc import Callable

import torch
import torch.nn as nn

from minigpt.backward.model import copied, forward
from minigpt.data import get_batch
from minigpt.gpt import GPT
from minigpt.training import TrainConfig


def torchs(gpt: GPT, x: torch.Tensor, y: torch.Tensor) -> float:
    """Set each parameter's gradient, using torch's backward. Returns the loss of the
    batch."""
    gpt.zero_grad()
    loss = gpt(x, y)[1]
    loss.backward()
    return loss.item()


def ours(gpt: GPT, x: torch.Tensor, y: torch.Tensor) -> float:
    """Set each parameter's gradient, using our own backward on NumPy arrays. Returns
    the loss of the batch."""
    p = copied(gpt)
    loss = forward(p, gpt.config, x.numpy(), y.numpy())[1]
    loss.backward()
    for name, parameter in gpt.named_parameters():  # in memory row by row, as torch's
        parameter.grad = torch.from_numpy(p[name].grad).contiguous()
    return loss.data.item()


def losses_of(
    gradients: Callable[..., float], gpt: GPT, data: torch.Tensor, recipe: TrainConfig
) -> list[float]:
    """The loss of each training step, with gradients from gradients(gpt, x, y) on
    batches of data.

    The steps are the same as in lesson 06's `train`. We can't call that here, because
    it has torch's backward inside, and that's the part we exchange.
    """
    batches = torch.Generator().manual_seed(recipe.seed)
    optimizer, losses = recipe.make_optimizer(gpt), []
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate_at(step)
        x, y = get_batch(data, recipe.batch_size, recipe.block_size, generator=batches)
        losses.append(gradients(gpt, x, y))
        nn.utils.clip_grad_norm_(gpt.parameters(), recipe.grad_clip)
        optimizer.step()
    return losses
