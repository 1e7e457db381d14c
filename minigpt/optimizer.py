"""Lesson 06: AdamW as a GPT wants it, and the schedule of its learning rate."""

import math

import torch


def make_optimizer(model, config):
    """AdamW with decay on matrices only: biases and LayerNorm are left alone.

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


def learning_rate_at(step, config):
    """Linear warm-up, then half a cosine down to final_fraction of the peak.

    Source: Loshchilov and Hutter, SGDR (2017), section 3.
    """
    warmup = config.warmup_steps
    if warmup is None:
        warmup = min(100, config.steps // 5)
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    done = min(1.0, (step - warmup) / max(1, config.steps - warmup))
    cosine = 0.5 * (1 + math.cos(math.pi * done))  # from 1 down to 0
    low = config.final_fraction
    return config.learning_rate * (low + (1 - low) * cosine)
