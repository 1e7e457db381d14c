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
        "a straight line": "W1, W2 = [[1, -1]], [[1], [-1]]",
        "Both numbers of W1 have the same sign": "W1, W2 = [[1, 1]], [[1], [0]]",
        "your result  4": "W1, W2 = [[2, -2]], [[1], [1]]",
        "it should have the shape (2, 1)": "W1, W2 = [[1, -1]], [[1, 1]]",
    },
    "05.2": {
        "the whole pathway": terms(ATTEND, THINK.replace("append(f)", "append(x + f)")),
        "changes x itself": terms(
            ATTEND.replace("x = x + a", "x += a"), THINK.replace("x = x + f", "x += f")
        ),
        "hear what attention has added": terms(
            ATTEND.replace("; x = x + a", ""),
            THINK.replace("x = x + f", "x = x + a + f"),
        ),
        "changes its input `x`": terms(ATTEND, THINK)
        .replace("[x]", "[x.clone()]")
        .replace("x = x + a", "x += a")
        .replace("x = x + f", "x += f"),
    },
    "05.3": {
        "With training=False numbers vanish": (
            "def dropout_by_hand(x, p, training):\n"
            "    return x * (torch.rand(x.shape) >= p) / (1 - p)"
        ),
        "aren't rescaled": dropout("return x * (torch.rand(x.shape) >= p)"),
        "survives with probability p": dropout(
            "return x * torch.bernoulli(torch.full_like(x, p)) / (1 - p)"
        ),
        "You use randn": dropout("return x * (torch.randn(x.shape) >= p) / (1 - p)"),
        "exactly the same count": dropout(
            "order = torch.randperm(x.numel()).view(x.shape)",
            "return x * (order >= round(p * x.numel())) / (1 - p)",
        ),
    },
    "05.4": {
        "run over the positions": norm_over(1, 1, SCALED),
        "gamma should start as": norm(SCALED).replace(
            "torch.ones(n_embd)", "torch.ones(1)"
        ),
        "The result isn't right yet": norm_over(-1, -1, SCALED).replace(
            "        mean = x.mean(-1, keepdim=True)\n"
            "        variance = (x - mean).pow(2).mean(-1, keepdim=True)\n",
            "        n = x.shape[-1] * torch.arange(1, x.shape[1] + 1)[:, None]\n"
            "        mean = x.sum(-1, True).cumsum(1) / n\n"
            "        square = (x**2).sum(-1, True).cumsum(1) / n\n"
            "        variance = square - mean**2\n",
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
