"""Notebook 12: the steps of a training with torch's backward, and with ours."""

import torch
import torch.nn as nn

from minigpt.backward.layers import AdamW
from minigpt.backward.model import copied, forward
from minigpt.backward.tensor import backward
from minigpt.data import get_batch


def steps_of_torch(gpt, recipe):
    """A function (x, y, rate) that makes one step of training and returns its loss."""
    optimizer = recipe.make_optimizer(gpt)

    def step(x, y, rate):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = gpt(x, y)[1]
        loss.backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), recipe.grad_clip)
        optimizer.step()
        return loss.item()

    return step


def steps_of_ours(gpt, recipe):
    """The same on arrays of NumPy; each step writes the new weights into `gpt`."""
    p = copied(gpt, next(gpt.parameters()).detach().numpy().dtype)
    optimizer = AdamW(list(p.values()), recipe)

    def step(x, y, rate):
        loss = forward(p, gpt.config, x.numpy(), y.numpy())[1]
        backward(loss)
        optimizer.step(rate)
        with torch.no_grad():
            for name, weight in gpt.named_parameters():
                weight.copy_(torch.from_numpy(p[name].data))
        return loss.data.item()

    return step


def losses_of(make_step, gpt, data, recipe):
    """The loss of each step of a training on batches of data."""
    batches = torch.Generator().manual_seed(recipe.seed)
    step, losses = make_step(gpt, recipe), []
    for i in range(recipe.steps):
        x, y = get_batch(data, recipe.batch_size, recipe.block_size, generator=batches)
        losses.append(step(x, y, recipe.learning_rate_at(i)))
    return losses
