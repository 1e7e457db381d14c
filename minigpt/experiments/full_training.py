"""Experiments of notebook 06: the CPU preset, changed in one thing at a time.

All are quarter-length runs: 600 steps with a schedule of their own, where the preset
takes 2400.
"""

import math
import time
from dataclasses import replace
from functools import partial

import torch
import torch.nn as nn

from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.experiments.fit import corpus, fit
from minigpt.gpt import GPT
from minigpt.optimizer import learning_rate_at, make_optimizer
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


def by_hand(seed, wait=0, decay=make_optimizer, change=None, **recipe):
    """The same run with a loop of its own, for what `train` cannot do.

    wait: so many steps at rate 0 come first: they fill AdamW's averages, and move
    no weight. decay(model, plan): makes the optimizer.
    """
    torch.set_num_threads(1)
    text = corpus()
    config, plan = preset("cpu", text.vocab_size)
    plan = replace(plan, steps=QUARTER, seed=seed, **recipe)
    torch.manual_seed(seed)
    model = GPT(config)
    if change is not None:
        model = change(model)
    optimizer = decay(model, plan)
    batches = torch.Generator().manual_seed(seed)
    others = torch.Generator().manual_seed(seed + 1000)  # to wait with
    start = time.perf_counter()
    for step in range(-wait, QUARTER):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, plan) if step >= 0 else 0.0
        rng = batches if step >= 0 else others
        x, y = get_batch(text.train, plan.batch_size, plan.block_size, generator=rng)
        loss = model(x, y)[1]
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), plan.grad_clip)
        optimizer.step()
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss": evaluate(model, text.val, plan.block_size),
    }


def decay_everything(model, plan):
    """AdamW whose decay pulls biases and LayerNorm's scales towards 0, too."""
    return torch.optim.AdamW(
        model.parameters(),
        plan.learning_rate,
        (0.9, plan.beta2),
        weight_decay=plan.weight_decay,
        fused=True,
    )


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


def large_head(model):
    """`lm_head` starts as large as the other matrices, not near zero."""
    with torch.no_grad():
        model.lm_head.weight.mul_(0.02 * math.sqrt(768 / model.config.n_embd) / 0.01)
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
        "decay on vectors too": partial(by_hand, decay=decay_everything),
        "beta2 0.999": partial(quarter, beta2=0.999),
        "proj not smaller": partial(quarter, change=equal_start),
        "lm_head not smaller": partial(quarter, change=large_head),
        "torch's start": partial(quarter, change=torch_start),
    },
    "06-warm-up": {
        "warm-up of 100": quarter,
        "no warm-up": partial(quarter, warmup_steps=0),
        "averages first": partial(by_hand, wait=100, warmup_steps=0),
    },
    "06-warm-up-slow": {
        "warm-up of 100": partial(quarter, learning_rate=1e-3),
        "no warm-up": partial(quarter, learning_rate=1e-3, warmup_steps=0),
    },
    "06-warm-up-head": {
        "warm-up of 100": partial(quarter, change=large_head),
        "no warm-up": partial(quarter, change=large_head, warmup_steps=0),
        "averages first": partial(by_hand, change=large_head, wait=100, warmup_steps=0),
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
