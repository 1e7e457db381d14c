"""Lesson 06: AdamW the way a GPT needs it, and its learning-rate schedule."""

import math
from typing import Any

import torch

from minigpt.interfaces import Model


def make_optimizer(model: Model, config: Any) -> torch.optim.Optimizer:
    """AdamW with weight decay for matrices only, not for biases and gains.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
    """
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    betas = (0.9, config.beta2)
    return torch.optim.AdamW(groups, config.learning_rate, betas, fused=True)


def learning_rate_at(step: int, config: Any) -> float:
    """Up in a straight line, then down along half a cosine, to almost nothing.

    The warm-up takes config.warmup_steps, but at most a fifth of all steps.
    Source: Loshchilov and Hutter, SGDR (2017), section 3.
    """
    warmup = min(config.warmup_steps, config.steps // 5)
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    done = (step - warmup) / (config.steps - warmup)  # from 0 to 1
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
