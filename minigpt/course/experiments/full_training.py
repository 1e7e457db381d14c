"""Experiments of notebook 06: the CPU preset, changed in one thing at a time, in 600
steps with a schedule of their own, where the preset takes 2400."""

import math
from functools import partial

import torch
import torch.nn as nn

from minigpt.course.experiments.fit import cpu, grid, run
from minigpt.training import TrainConfig


class NoCosine(TrainConfig):
    """After the warm-up the rate stays."""

    def learning_rate_at(self, step):
        return self.learning_rate * min(1, (step + 1) / self.warmup_steps)


def torch_start(model):
    """The same layers, with the starting values that torch gives them."""
    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.Embedding, nn.LayerNorm)):
            layer.reset_parameters()


@torch.no_grad()
def equal_start(model):
    """`proj` starts as large as the other matrices, not smaller by √(2 n_layer)."""
    for block in model.body[:-1]:
        for proj in (block.attention.proj, block.feed_forward.proj):
            proj.weight.mul_(math.sqrt(2 * model.config.n_layer))


@torch.no_grad()
def large_head(model):
    """`lm_head` starts as large as the other matrices, not near zero."""
    model.lm_head.weight.mul_(0.02 * math.sqrt(768 / model.config.n_embd) / 0.01)


def gelu(model):
    """GPT-2's nonlinearity in the feed-forward layers."""
    for block in model.body[:-1]:
        block.feed_forward.relu = nn.GELU(approximate="tanh")


def tied(model):
    """One matrix that reads characters in and out, as GPT-2 has it."""
    model.lm_head.weight = model.token_embedding.weight


RECIPE = {
    "the recipe": {},
    "rate 0.001": {"learning_rate": 1e-3},
    "rate 0.01": {"learning_rate": 1e-2},
    "no warm-up": {"warmup_steps": 0},
    "no cosine": {"kind": NoCosine},
    "no clipping": {"grad_clip": math.inf},
    "no decay": {"weight_decay": 0.0},
    "beta2 0.999": {"beta2": 0.999},
    "proj not smaller": {"change": equal_start},
    "lm_head not smaller": {"change": large_head},
    "torch's start": {"change": torch_start},
}
GPT2 = {
    "our GPT": {},
    "GELU": {"change": gelu},
    "tied embeddings": {"change": tied},
    "dropout 0.1": {"dropout": 0.1},
}
EXPERIMENTS = {
    name: grid("{variant}", partial(run, base=cpu, steps=600), variant=table)
    for name, table in (("06-recipe", RECIPE), ("06-gpt2", GPT2))
}
