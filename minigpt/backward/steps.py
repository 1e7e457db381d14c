"""Notebook 12: the losses of a training with torch's backward, and with ours."""

from dataclasses import replace

import torch

from minigpt.backward.layers import AdamW
from minigpt.backward.model import copied, forward
from minigpt.backward.tensor import backward
from minigpt.data import get_batch
from minigpt.training import train


def losses_of_torch(gpt, data, recipe):
    """The loss of each step of a GPT's training by `train` of lesson 06."""
    losses = []

    def keep(model, inputs, output):
        if model.training:  # not when it is judged
            losses.append(output[1].item())

    seldom = replace(recipe, eval_every=recipe.steps, eval_batches=1)
    with gpt.register_forward_hook(keep):
        train(gpt, data, data, seldom)
    return losses


def losses_of_ours(gpt, data, recipe):
    """The same on arrays of NumPy: the same start, batches and rates. The trained
    weights are written into `gpt` at the end."""
    p = copied(gpt, next(gpt.parameters()).detach().numpy().dtype)
    optimizer = AdamW(list(p.values()), recipe)
    batches = torch.Generator().manual_seed(recipe.seed)
    losses = []
    for step in range(recipe.steps):
        x, y = get_batch(data, recipe.batch_size, recipe.block_size, generator=batches)
        loss = forward(p, gpt.config, x.numpy(), y.numpy())[1]
        backward(loss)
        optimizer.step(recipe.learning_rate_at(step))
        losses.append(loss.data.item())
    with torch.no_grad():
        for name, weight in gpt.named_parameters():
            weight.copy_(torch.from_numpy(p[name].data))
    return losses
