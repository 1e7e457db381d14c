"""Answers to notebook 05's exercises."""

import torch
import torch.nn as nn
from exercises import exercises_of

from minigpt.block import Block
from minigpt.language_model import LanguageModel

EXERCISES = exercises_of("05")


def names():
    body = nn.Sequential(*[Block(8, 2) for _ in range(3)], nn.LayerNorm(8))
    model = LanguageModel(11, 6, 8, body).eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    return {"my_model": model, "my_x": torch.randint(11, (4, 6))}


def function(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def terms(*lines):
    return function(
        "terms(x, blocks)",
        "found = [x]",
        "for b in blocks:",
        *["    " + line for line in lines],
        "return found",
    )


ATTEND = "a = b.attention(b.norm1(x)); found.append(a); x = x + a"
THINK = "f = b.feed_forward(b.norm2(x)); found.append(f); x = x + f"


def dropout(*lines):
    return function(
        "dropout_by_hand(x, p, training)", "if not training: return x", *lines
    )


def norm_over(mean_dim, variance_dim, out):
    return f"""
class HandNorm(nn.Module):
    def __init__(self, n_embd, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(n_embd))
        self.beta = nn.Parameter(torch.zeros(n_embd))
        self.eps = eps

    def forward(self, x):
        mean = x.mean({mean_dim}, keepdim=True)
        variance = (x - mean).pow(2).mean({variance_dim}, keepdim=True)
        return {out}
"""


def norm(out):
    return norm_over(-1, -1, out)


NORMED = "(x - mean) / (variance + self.eps).sqrt()"
SCALED = f"self.gamma * {NORMED} + self.beta"


WRONG = {
    "05.1": {
        "relu gives [0.0, 2.0], and W2 makes -2": "W1, W2 = [[1, -1]], [[1], [-1]]",
        "x = -2: relu gives [0.0, 0.0]": "W1, W2 = [[1, 1]], [[1], [0]]",
    },
    "05.2": {
        "the pathway itself": terms(
            ATTEND, THINK.replace("append(f)", "append(x + f)")
        ),
        "+= has changed it": terms(
            ATTEND.replace("x = x + a", "x += a"), THINK.replace("x = x + f", "x += f")
        ),
        "What belongs there: `x = x + said`": terms(
            ATTEND.replace("; x = x + a", ""), THINK
        ),
        "changes `x` in place": terms(ATTEND, THINK)
        .replace("[x]", "[x.clone()]")
        .replace("x = x + a", "x += a")
        .replace("x = x + f", "x += f"),
    },
    "05.3": {
        "With training=False x should c": (
            "def dropout_by_hand(x, p, training):\n"
            "    return x * (torch.rand(x.shape) >= p) / (1 - p)"
        ),
        "With p = ": dropout("return x * (torch.rand(x.shape) >= p)"),
        "75% of the numbers vanish, as should survive": dropout(
            "return x * (torch.rand(x.shape) < p) / (1 - p)"
        ),
        "drops exactly as many": dropout(
            "order = torch.randperm(x.numel()).view(x.shape)\n"
            "    return x * (order >= round(p * x.numel())) / (1 - p)"
        ),
    },
    "05.4": {
        "should run over one position's": norm_over(1, 1, SCALED),
        "gamma (ones at first)": norm(SCALED).replace(
            "torch.ones(n_embd)", "torch.ones(1)"
        ),
    },
}

RIGHT = {
    "05.1": {
        "other order": "W1, W2 = [[-1, 1]], [[1], [1]]",
        "shared out": "W1, W2 = [[2.0, -4.0]], [[0.5], [0.25]]",
    },
    "05.2": {
        "step by step": terms(ATTEND, THINK),
        "one tensor": terms(ATTEND, THINK).replace("found\n", "torch.stack(found)\n"),
    },
    "05.3": {
        "torch's": "dropout_by_hand = F.dropout",
        "bernoulli": dropout(
            "return x * torch.bernoulli(torch.full_like(x, 1 - p)) / (1 - p)"
        ),
    },
    "05.4": {
        "torch's": "HandNorm = nn.LayerNorm",
        "var": norm(
            "(x - mean) * (x.var(-1, unbiased=False, keepdim=True) + self.eps).rsqrt()"
            " * self.gamma + self.beta"
        ),
    },
}
