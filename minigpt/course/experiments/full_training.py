"""Experiments of notebook 06: the CPU preset, changed in one thing at a time.

All are quarter-length runs: 600 steps with a schedule of their own, where the preset
takes 2400.
"""

import copy
import math
from functools import partial

import torch
import torch.nn as nn

from minigpt.course.experiments.fit import as_it_is, corpus, fit, grid, preset_gpt
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.optimizer import learning_rate_at
from minigpt.training import TrainConfig

QUARTER = 600  # steps


class NoCosine(TrainConfig):
    """After the warm-up the rate stays."""

    def learning_rate_at(self, step):
        return self.learning_rate * min(1, (step + 1) / self.warmup_steps)


class DecayAll(TrainConfig):
    """The decay pulls biases and LayerNorm's scales towards 0, too."""

    def make_optimizer(self, model):
        rate, betas, decay = self.learning_rate, (0.9, self.beta2), self.weight_decay
        return torch.optim.AdamW(
            model.parameters(), rate, betas, weight_decay=decay, fused=True
        )


def start(seed, change=as_it_is, kind=TrainConfig, dropout=0.0, **recipe):
    """The preset's GPT, which change(model) makes another one, and its recipe for a
    quarter of the steps."""
    model, plan = preset_gpt(seed, dropout=dropout)
    return change(model), kind(**vars(plan) | {"steps": QUARTER} | recipe)


def quarter(seed, **changes):
    """A quarter-length run of the preset."""
    return fit(*start(seed, **changes), seed)


class Averages:
    """AdamW by hand, so that m and v can be filled, or emptied, each by itself."""

    def __init__(self, model, plan, seed):
        self.model, self.plan = model, plan
        self.batches = torch.Generator().manual_seed(seed)
        self.m = [torch.zeros_like(p) for p in model.parameters()]
        self.v = [torch.zeros_like(p) for p in model.parameters()]
        self.m_steps = self.v_steps = 0

    def step(self, rate):
        """One batch; the weights move at this rate, 0 for not at all."""
        model, plan = self.model, self.plan
        sizes = plan.batch_size, plan.block_size
        x, y = get_batch(corpus().train, *sizes, generator=self.batches)
        model.zero_grad()
        model(x, y)[1].backward()
        nn.utils.clip_grad_norm_(model.parameters(), plan.grad_clip)
        self.m_steps, self.v_steps = self.m_steps + 1, self.v_steps + 1
        m_part, v_part = 1 - 0.9**self.m_steps, 1 - plan.beta2**self.v_steps
        with torch.no_grad():
            for p, m, v in zip(model.parameters(), self.m, self.v):
                m.lerp_(p.grad, 0.1)
                v.lerp_(p.grad.square(), 1 - plan.beta2)
                p.mul_(1 - rate * plan.weight_decay * (p.dim() >= 2))
                p.sub_(rate * (m / m_part) / ((v / v_part).sqrt() + 1e-8))


def by_hand(seed, fill="", twin=False, ramp=False, change=as_it_is):
    """A run without warm-up. fill: averages ("m", "v" or both) that 100 batches fill
    first, at rate 0; or, with twin, as a copy has them after a warm-up of 100 steps.
    ramp: the rate times 1 - 0.9^t instead of the warm-up."""
    model, plan = start(seed, change, warmup_steps=0)
    run = Averages(model, plan, seed)
    first = Averages(copy.deepcopy(model), plan, seed + 1000)
    if fill:
        for step in range(100):
            first.step(plan.learning_rate * (step + 1) / 100 if twin else 0.0)
    if "m" in fill:
        run.m, run.m_steps = first.m, 100
    if "v" in fill:
        run.v, run.v_steps = first.v, 100
    for step in range(QUARTER):
        rate = learning_rate_at(step, plan)
        run.step(rate * (1 - 0.9 ** (step + 1) if ramp else 1))
    return {"loss": evaluate(model, corpus().val, plan.block_size)}


def torch_start(model):
    """The same layers, with the starting values that torch gives them."""
    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.Embedding, nn.LayerNorm)):
            layer.reset_parameters()
    return model


@torch.no_grad()
def equal_start(model):
    """`proj` starts as large as the other matrices, not smaller by √(2 n_layer)."""
    for block in model.body[:-1]:
        for proj in (block.attention.proj, block.feed_forward.proj):
            proj.weight.mul_(math.sqrt(2 * model.config.n_layer))
    return model


@torch.no_grad()
def large_head(model):
    """`lm_head` starts as large as the other matrices, not near zero."""
    model.lm_head.weight.mul_(0.02 * math.sqrt(768 / model.config.n_embd) / 0.01)
    return model


@torch.no_grad()
def without_positions(model):
    """Only the causal mask is left to tell the order of the characters."""
    model.position_embedding.weight.zero_().requires_grad_(False)
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
        attention = block.attention
        after = nn.Linear(attention.qkv.in_features, attention.qkv.out_features)
        after.weight = attention.qkv.weight
        nn.init.zeros_(after.bias)
        attention.qkv = after
    return model


WARM_UPS = {
    "warm-up of 100": quarter,
    "no warm-up": by_hand,
    "averages first": partial(by_hand, fill="mv"),
}
EXPERIMENTS = {
    "06-rate": grid("{learning_rate:g}", quarter, learning_rate=[1e-3, 3e-3, 1e-2]),
    "06-recipe": {
        "the recipe": quarter,
        "no warm-up": partial(quarter, warmup_steps=0),
        "no cosine": partial(quarter, kind=NoCosine),
        "no clipping": partial(quarter, grad_clip=math.inf),
        "no decay": partial(quarter, weight_decay=0.0),
        "decay on vectors too": partial(quarter, kind=DecayAll),
        "beta2 0.999": partial(quarter, beta2=0.999),
        "proj not smaller": partial(quarter, change=equal_start),
        "lm_head not smaller": partial(quarter, change=large_head),
        "torch's start": partial(quarter, change=torch_start),
    },
    "06-proj": {  # on six seeds
        "the recipe": quarter,
        "proj not smaller": partial(quarter, change=equal_start),
    },
    "06-warm-up": WARM_UPS,
    "06-warm-up-parts": {
        "m filled": partial(by_hand, fill="m"),
        "v filled": partial(by_hand, fill="v"),
        "v of a warmed-up twin": partial(by_hand, fill="v", twin=True),
        "rate x (1 - 0.9^t)": partial(by_hand, ramp=True),
    },
    "06-warm-up-slow": {
        "warm-up of 100": partial(quarter, learning_rate=1e-3),
        "no warm-up": partial(quarter, learning_rate=1e-3, warmup_steps=0),
    },
    "06-warm-up-head": {n: partial(f, change=large_head) for n, f in WARM_UPS.items()},
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
