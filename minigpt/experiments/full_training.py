"""Experiments of notebook 06: the CPU preset, changed in one thing at a time.

All are quarter-length runs: 600 steps with a schedule of their own, where the preset
takes 2400.
"""

import math
from dataclasses import replace
from functools import partial

import torch
import torch.nn as nn

from minigpt.experiments.fit import corpus, fit
from minigpt.gpt import GPT
from minigpt.training import preset

QUARTER = 600  # steps


def quarter(seed, change=None, dropout=0.0, **recipe):
    """A quarter-length run of the preset; change(model) makes it another one."""
    config, plan = preset("cpu", corpus().vocab_size)
    torch.manual_seed(seed)
    model = GPT(replace(config, dropout=dropout))
    if change is not None:
        model = change(model)
    return fit(model, replace(plan, steps=QUARTER, **recipe), seed)


def torch_start(model):
    """The same layers, with the starting values that torch gives them."""
    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.Embedding, nn.LayerNorm)):
            layer.reset_parameters()
    return model


def equal_start(model):
    """`proj` starts as large as the other matrices, not smaller by √(2 n_layer)."""
    scale = math.sqrt(2 * model.config.n_layer)
    with torch.no_grad():
        for block in model.body[:-1]:
            block.attention.proj.weight.mul_(scale)
            block.feed_forward.proj.weight.mul_(scale)
    return model


class Nowhere(nn.Module):
    """Stands where the position embeddings stood, and adds nothing."""

    def forward(self, positions):
        return 0.0


def without_positions(model):
    """Only the causal mask is left to tell the order of the characters."""
    model.position_embedding = Nowhere()
    return model


def gelu(model):
    """GPT-2's nonlinearity in the feed-forward layers."""
    for block in model.body[:-1]:
        block.feed_forward.relu = nn.GELU(approximate="tanh")
    return model


def tied(model):
    """One matrix that reads characters in and out, as GPT-2 has it."""
    model.lm_head.weight = model.token_embedding.weight
    return model


def qkv_bias(model):
    """Queries, keys and values with biases, which start at zero."""
    for block in model.body[:-1]:
        before = block.attention.qkv
        after = nn.Linear(before.in_features, before.out_features)
        after.weight = before.weight
        nn.init.zeros_(after.bias)
        block.attention.qkv = after
    return model


EXPERIMENTS = {
    "06-rate": {
        "0.001": partial(quarter, learning_rate=1e-3),
        "0.003": quarter,
        "0.01": partial(quarter, learning_rate=1e-2),
    },
    "06-recipe": {
        "the recipe": quarter,
        "no warm-up": partial(quarter, warmup_steps=0),
        "no cosine": partial(quarter, final_fraction=1.0),
        "no clipping": partial(quarter, grad_clip=math.inf),
        "no decay": partial(quarter, weight_decay=0.0),
        "beta2 0.999": partial(quarter, beta2=0.999),
        "proj not smaller": partial(quarter, change=equal_start),
        "torch's start": partial(quarter, change=torch_start),
    },
    "06-fast": {
        "the recipe": partial(quarter, learning_rate=1e-2),
        "no warm-up": partial(quarter, learning_rate=1e-2, warmup_steps=0),
        "no clipping": partial(quarter, learning_rate=1e-2, grad_clip=math.inf),
    },
    "06-positions": {
        "with positions": quarter,
        "trained without": partial(quarter, change=without_positions),
    },
    "06-gpt2": {
        "our GPT": quarter,
        "GELU": partial(quarter, change=gelu),
        "tied embeddings": partial(quarter, change=tied),
        "biases in qkv": partial(quarter, change=qkv_bias),
        "dropout 0.1": partial(quarter, dropout=0.1),
    },
}
