"""Answers to notebook 05's exercises."""

import torch
import torch.nn as nn
from exercises import edited, exercises_of

from minigpt.block import Block, FeedForward
from minigpt.language_model import LanguageModel

EXERCISES = exercises_of("05")


def names():
    body = nn.Sequential(*[Block(8, 2) for _ in range(3)], nn.LayerNorm(8))
    model = LanguageModel(11, 6, 8, body).eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    idx = torch.randint(11, (4, 7))
    return {
        "Block": Block,
        "FeedForward": FeedForward,
        "my_model": model,
        "my_x": idx[:, :-1],
        "my_y": idx[:, 1:],
    }


def function(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def through(*lines):
    return function("through(x, block, plus, think, norm)", *lines)


TWO = """def through(x, block, plus, think, norm):
    a, f, n1, n2 = block.attention, block.feed_forward, block.norm1, block.norm2
    y = a(n1(x) if norm else x)
    x = x + y if plus else y
    if think:
        y = f(n2(x) if norm else x)
        x = x + y if plus else y
    return x
"""


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


def leave(body, out):
    return "@torch.no_grad()\n" + function(
        "leave_one_out(model, x, y)",
        "body, losses = list(model.body), []",
        "for i in range(len(body) - 1):",
        "    m = copy.copy(model)",
        "    m._modules = dict(model._modules)",
        f"    m.body = nn.Sequential(*{body})",
        "    losses.append(m(x, y)[1].item())",
        f"return {out}",
    )


REST = "[b for b in body if b is not body[i]]"
BEST = "losses, losses.index(min(losses))"


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


def stack(blocks, *lines):
    body = "\n        ".join(lines)
    return f"""
class Stack(nn.Module):
    def __init__(self, n_layer, n_embd, n_head):
        super().__init__()
        new = lambda: Block(n_embd, n_head)
        self.blocks = {blocks}
        self.norm = nn.LayerNorm(n_embd)

    def forward(self, x):
        {body}
"""


NEW = "nn.ModuleList(new() for _ in range(n_layer))"
PASS = "return self.norm(nn.Sequential(*self.blocks)(x))"

WRONG = {
    "05.1": {
        "where `block.norm2(x) if norm else x` belongs": edited(
            TWO, ("f(n2(x) if norm else x)", "f(n2(x))")
        ),
        "where `x + said if plus else said` belongs": edited(
            TWO, ("        x = x + y if plus else y", "        x = x + y")
        ),
        "It returns nothing": edited(TWO, ("    return x\n", "")),
    },
    "05.2": {
        "a straight line": "W1, W2 = [[1, -1]], [[1], [-1]]",
        "To the left of 0 everything is zero": "W1, W2 = [[1, 1]], [[1], [0]]",
        "To the right of 0 everything is zero": "W1, W2 = [[-1, -2]], [[1], [0]]",
        "With your weights x = -2 gives": "W1, W2 = [[1, -1]], [[-1], [-1]]",
    },
    "05.3": {
        "the pathway itself": terms(
            ATTEND, THINK.replace("append(f)", "append(x + f)")
        ),
        "+= has changed it": terms(
            ATTEND.replace("x = x + a", "x += a"), THINK.replace("x = x + f", "x += f")
        ),
        "but for `x = x + a` left out": terms(ATTEND.replace("; x = x + a", ""), THINK),
        "changes `x` in place": terms(ATTEND, THINK)
        .replace("[x]", "[x.clone()]")
        .replace("x = x + a", "x += a")
        .replace("x = x + f", "x += f"),
    },
    "05.4": {
        "With training=False x should c": (
            "def dropout_by_hand(x, p, training):\n"
            "    return x * (torch.rand(x.shape) >= p) / (1 - p)"
        ),
        "With training=False x should come back a": (
            "def dropout_by_hand(x, p, training):\n"
            "    return F.dropout(x, p, not training)"
        ),
        "With p = ": dropout("return x * (torch.rand(x.shape) >= p)"),
        "75% of the numbers vanish, as should survive": dropout(
            "return x * (torch.rand(x.shape) < p) / (1 - p)"
        ),
    },
    "05.5": {
        "`- 1` left out": leave(REST, BEST).replace("len(body) - 1", "len(body)"),
        "`max` where `min` belongs": leave(REST, "losses, losses.index(max(losses))"),
        "the model is left changed": leave(REST, BEST)
        .replace("m = copy.copy(model)", "m = model")
        .replace("m._modules = dict(model._modules)", ""),
    },
    "05.6": {
        "`dim=1` where `dim=-1` belongs, both": norm_over(1, 1, SCALED),
        "`dim=0` where `dim=-1` belongs, both": norm_over(0, 0, SCALED),
        "gamma (ones at first) and beta (zeros)": norm(SCALED).replace(
            "torch.ones(n_embd)", "torch.ones(1)"
        ),
    },
    "05.7": {
        "model.parameters() finds no block": stack(
            "[new() for _ in range(n_layer)]", PASS
        ),
        "they start as twins": stack(
            "nn.ModuleList(copy.deepcopy(b) for b in [new()] * n_layer)", PASS
        ),
        "`x` itself, without `self.norm`, where `self.norm(x)`": stack(
            NEW, "return nn.Sequential(*self.blocks)(x)"
        ),
    },
}

RIGHT = {
    "05.1": {
        "step by step": TWO,
        "times one or nothing": through(
            "x = plus * x + block.attention(block.norm1(x) if norm else x)",
            "if not think: return x",
            "return plus * x + block.feed_forward(block.norm2(x) if norm else x)",
        ),
    },
    "05.2": {
        "other order": "W1, W2 = [[-1, 1]], [[1], [1]]",
        "shared out": "W1, W2 = [[2.0, -4.0]], [[0.5], [0.25]]",
    },
    "05.3": {
        "step by step": terms(ATTEND, THINK),
        "one tensor": terms(ATTEND, THINK).replace("found\n", "torch.stack(found)\n"),
    },
    "05.4": {
        "torch's": "dropout_by_hand = F.dropout",
        "bernoulli": dropout(
            "return x * torch.bernoulli(torch.full_like(x, 1 - p)) / (1 - p)"
        ),
    },
    "05.5": {
        "a shallow copy": leave(REST, BEST),
        "identity": """
def leave_one_out(model, x, y):
    losses = []
    for i in range(len(model.body) - 1):
        trial = copy.deepcopy(model)
        trial.body[i] = nn.Identity()
        losses.append(trial(x, y)[1].detach())
    losses = torch.stack(losses)
    return losses, losses.argmin()
""",
    },
    "05.6": {
        "torch's": "HandNorm = nn.LayerNorm",
        "var": norm(
            "(x - mean) * (x.var(-1, unbiased=False, keepdim=True) + self.eps).rsqrt()"
            " * self.gamma + self.beta"
        ),
    },
    "05.7": {
        "sequential": stack(
            "nn.Sequential(*[new() for _ in range(n_layer)])",
            "return self.norm(self.blocks(x))",
        ),
        "appended": stack("nn.ModuleList()", PASS).replace(
            "        self.norm",
            "        for _ in range(n_layer):\n"
            "            self.blocks.append(new())\n"
            "        self.norm",
        ),
    },
}
