"""Lesson 08: Muon, an optimizer for matrices, and two optimizers that step as one.

Source: Jordan et al., Muon (2024).
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch


def orthogonalize(matrix: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """A matrix (m, n) with the same singular vectors and values of about 1.

    This is Newton and Schulz's iteration: an odd polynomial of a matrix only changes
    its singular values. We first divide the matrix by its length. Then singular values
    above 0.002 reach about 0.7 to 1.2 in five steps.
    """
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix  # the smaller product, x xᵀ
    x = x / (x.norm() + 1e-7)  # no singular value is above 1
    for _ in range(steps):
        xxt = x @ x.T
        x = 3.4445 * x + (-4.7750 * xxt + 2.0315 * xxt @ xxt) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalized, so all directions of a matrix move by more similar
    amounts.

    params: matrices (m, n). The step is lr * scale, times sqrt(max(1, m / n)). The
    scale lets several optimizers share one learning rate and still take larger steps in
    this one. Raises ValueError for anything that isn't a matrix.
    """

    def __init__(
        self,
        params: Iterable[torch.Tensor],
        lr: float = 0.02,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        ns_steps: int = 5,
        scale: float = 1.0,
    ) -> None:
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, scale=scale))
        self.momentum, self.ns_steps = momentum, ns_steps
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        f"A parameter has the shape {tuple(p.shape)}: Muon only moves "
                        "matrices; give the others to AdamW."
                    )

    @torch.no_grad()
    def step(self, closure: Callable | None = None) -> Any:
        """One step. closure: as in torch, it recomputes the loss and its gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr = group["lr"] * group["scale"]
            decay = group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                average = self.state[p].setdefault("momentum", torch.zeros_like(p))
                average.lerp_(p.grad, 1 - self.momentum)
                ahead = p.grad.lerp(average, self.momentum)  # Nesterov
                update = orthogonalize(ahead, self.ns_steps)
                m, n = p.shape
                p.mul_(1 - lr * decay)
                p.sub_(update, alpha=lr * math.sqrt(max(1, m / n)))
        return loss


class Together:
    """Several optimizers that step as one. It has what a training loop needs from an
    optimizer."""

    def __init__(self, optimizers: list[torch.optim.Optimizer]) -> None:
        self.optimizers = optimizers

    @property
    def param_groups(self) -> list[dict]:
        return [group for o in self.optimizers for group in o.param_groups]

    def zero_grad(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()

    def state_dict(self) -> dict:
        return {str(i): o.state_dict() for i, o in enumerate(self.optimizers)}

    def load_state_dict(self, content: Any) -> None:
        for i, optimizer in enumerate(self.optimizers):
            optimizer.load_state_dict(content[str(i)])
