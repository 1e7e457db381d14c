"""Lesson 08: Muon, an optimizer for matrices, and two optimizers that step as one.

Source: Jordan et al., Muon (2024).
"""

import math

import torch


def orthogonalize(matrices, steps=5):
    """Matrices with the same singular vectors and values of about 1: (..., m, n).

    Newton and Schulz's iteration: an odd polynomial of a matrix acts on its
    singular values alone. Divided by the length of the matrix, those above 0.002
    come to about 0.7 to 1.2 in five steps.
    """
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
    """Momentum, orthogonalised: every direction of a matrix moves about alike.

    params: matrices (m, n). The step is lr * scale, times sqrt(max(1, m / n)). The
    scale lets one learning rate, set for several optimizers, mean for this one more.
    """

    def __init__(
        self, params, lr=0.02, weight_decay=0.0, momentum=0.95, ns_steps=5, scale=1.0
    ):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, scale=scale))
        self.momentum, self.ns_steps = momentum, ns_steps

    @torch.no_grad()
    def step(self):
        """One step for all matrices that have a gradient; same shapes at once."""
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                if p.grad is not None:
                    by_shape.setdefault(p.shape, []).append(p)
            lr = group["lr"] * group["scale"]
            for (m, n), params in by_shape.items():
                updates = []
                for p in params:
                    momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                    momentum.lerp_(p.grad, 1 - self.momentum)
                    updates.append(p.grad.lerp(momentum, self.momentum))  # Nesterov
                updates = orthogonalize(torch.stack(updates), self.ns_steps)
                for p, update in zip(params, updates):
                    p.mul_(1 - lr * group["weight_decay"])
                    p.sub_(update, alpha=lr * math.sqrt(max(1, m / n)))


class Together:
    """Several optimizers that step as one, for what a training asks of an optimizer."""

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
        return {str(i): o.state_dict() for i, o in enumerate(self.optimizers)}

    def load_state_dict(self, content):
        for i, optimizer in enumerate(self.optimizers):
            optimizer.load_state_dict(content[str(i)])
