"""Lesson 08, in its evidence: a mixture of experts, small enough to understand."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MixtureOfExperts(nn.Module):
    """Several feed-forward layers. Each token goes through `top` of them. (B, T, C) ->
    same.

    An expert's output is multiplied by the router's probability, so the router learns:
    Fedus et al., Switch Transformers (2021), section 2.1. The bias only affects the
    choice. It rises for an expert that got less than its share: Wang et al.,
    Auxiliary-Loss-Free Load Balancing (2024), algorithm 1. At first, the experts are
    copies of one layer.
    """

    bias: torch.Tensor  # (n_expert,)

    def __init__(
        self,
        feed_forward: nn.Module,
        n_embd: int,
        n_expert: int = 4,
        top: int = 1,
        bias_rate: float = 0.01,
    ) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            copy.deepcopy(feed_forward) for _ in range(n_expert)
        )
        self.router = nn.Linear(n_embd, n_expert, bias=False)
        self.register_buffer("bias", torch.zeros(n_expert))
        self.top, self.bias_rate = top, bias_rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.flatten(0, -2)  # (N, C), N = B * T
        p = F.softmax(self.router(tokens), dim=-1)  # (N, n_expert)
        chosen = (p + self.bias).topk(self.top, dim=-1).indices  # (N, top)
        out, load = torch.zeros_like(tokens), []
        for i, expert in enumerate(self.experts):
            mine = (chosen == i).any(dim=-1).nonzero()[:, 0]  # tokens sent to each
            y = p[mine, i, None] * expert(tokens[mine])
            out = out.index_add(0, mine, y)
            load.append(len(mine))
        if self.training:
            load = torch.tensor(load).float()
            behind = torch.sign(load.mean() - load)
            self.bias += self.bias_rate * behind
        return out.view_as(x)
