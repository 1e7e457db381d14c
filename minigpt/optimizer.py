"""Lesson 06: AdamW as a GPT wants it, and the schedule of its learning rate; and of
lesson 08, Muon for the matrices."""

import math

import torch

from minigpt.arguments import at_least_one, must, number
from minigpt.tensors import takes


def make_optimizer(model, config):
    """AdamW with decay on matrices only, or Muon for the matrices of the blocks.

    With config.optimizer "adamw", biases and gains are left without decay. With
    "muon", AdamW (without decay) moves only what is no matrix of a block: the
    embeddings, the head and all vectors; three steps of `orthogonalize` save time.
    Each group's "rate" is its share of config.learning_rate.
    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
    """
    betas = (0.9, config.beta2)
    if config.optimizer == "muon":
        inner = [p for p in model.body.parameters() if p.dim() == 2]
        ids = {id(p) for p in inner}
        outer = [p for p in model.parameters() if id(p) not in ids]
        muon = Muon(inner, config.muon_rate, config.weight_decay, ns_steps=3)
        adamw = torch.optim.AdamW(
            outer, config.learning_rate, betas, weight_decay=0.0, fused=True
        )
        muon.param_groups[0]["rate"] = config.muon_rate / config.learning_rate
        return Together([muon, adamw])
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, config.learning_rate, betas, fused=True)


def learning_rate_at(step, config):
    """Linear warm-up, then down to final_fraction of the peak, one of two ways.

    "cosine": along half a cosine (Loshchilov and Hutter, SGDR, 2017, section 3).
    "trapezoid": level, then in a straight line over the last cooldown_fraction of
    the steps (Zhai et al., Scaling Vision Transformers, 2022, section 3.5).
    """
    warmup = config.warmup_steps
    if warmup is None:
        warmup = min(100, config.steps // 5)
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    if config.schedule == "trapezoid":
        cooldown = config.cooldown_fraction * config.steps
        left = max(0, config.steps - step) / max(1, cooldown)
        shape = min(1.0, left)
    else:
        done = min(1.0, (step - warmup) / max(1, config.steps - warmup))
        shape = 0.5 * (1 + math.cos(math.pi * done))  # from 1 down to 0
    low = config.final_fraction
    return config.learning_rate * (low + (1 - low) * shape)


@takes(matrices="(..., m, n)")
def orthogonalize(matrices, steps=5):
    """Matrices with the same singular vectors and values of about 1: (..., m, n).

    Newton and Schulz's iteration: an odd polynomial of a matrix acts on its
    singular values alone. Divided by the length of the matrix, those above 0.002
    come to about 0.7 to 1.2 in five steps: Jordan et al., Muon (2024).
    """
    at_least_one(steps=steps)
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices  # the smaller product, x xᵀ
    shape = x.shape
    x = x.reshape(-1, *shape[-2:])  # baddbmm wants one dimension for the batch
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)  # no value above 1
    for _ in range(steps):
        xxt = x @ x.mT
        polynomial = torch.baddbmm(xxt, xxt, xxt, beta=b, alpha=c)  # b·xxᵀ + c·(xxᵀ)²
        x = torch.baddbmm(x, polynomial, x, beta=a)
    x = x.view(shape)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised: every direction of a matrix moves alike.

    params: matrices (m, n) only; ValueError for anything else. The step is scaled
    by sqrt(max(1, m / n)). Source: Jordan et al., Muon (2024).
    """

    def __init__(self, params, lr=0.02, weight_decay=0.0, momentum=0.95, ns_steps=5):
        for name, value in (("lr", lr), ("weight_decay", weight_decay)):
            fine = 0 <= number(value) < math.inf
            must(name, value, fine, "0 or more and finite")
        must("momentum", momentum, 0 <= number(momentum) < 1, "at least 0, below 1")
        at_least_one(ns_steps=ns_steps)
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "ns_steps": ns_steps,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        f"Muon moves matrices; a parameter has shape {tuple(p.shape)}. "
                        "Give it to AdamW."
                    )

    @torch.no_grad()
    def step(self):
        """One step for all matrices that have a gradient; same shapes at once."""
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                if p.grad is not None:
                    by_shape.setdefault(p.shape, []).append(p)
            for (m, n), params in by_shape.items():
                updates = []
                for p in params:
                    momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                    momentum.lerp_(p.grad, 1 - group["momentum"])
                    updates.append(p.grad.lerp(momentum, group["momentum"]))  # Nesterov
                updates = orthogonalize(torch.stack(updates), group["ns_steps"])
                rate = group["lr"] * math.sqrt(max(1, m / n))
                for p, update in zip(params, updates):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.sub_(update, alpha=rate)


class Together:
    """Several optimizers that step as one, for what `train` asks of an optimizer."""

    def __init__(self, optimizers):
        self.optimizers = optimizers

    @property
    def param_groups(self):
        return [group for o in self.optimizers for group in o.param_groups]

    @property
    def state(self):
        return {p: values for o in self.optimizers for p, values in o.state.items()}

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()

    def state_dict(self):
        parts = [o.state_dict() for o in self.optimizers]
        return {key: [part[key] for part in parts] for key in ("state", "param_groups")}

    def load_state_dict(self, content):
        for i, optimizer in enumerate(self.optimizers):
            optimizer.load_state_dict({key: content[key][i] for key in content})
