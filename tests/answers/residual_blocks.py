"""Answers to notebook 05's exercises."""

import torch
import torch.nn as nn
from exercises import edited, exercises_of

from minigpt.block import Block, FeedForward
from minigpt.checks.residual_blocks import LENGTHS
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


def loudness(expression):
    return function("loudness(grads)", f"return {expression}")


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
        "whatever the switches say": through("return block(x)"),
        "That is post-norm": """def through(x, block, plus, think, norm):
    for n, part in ((block.norm1, block.attention), (block.norm2, block.feed_forward)):
        if think or part is block.attention:
            x = x + part(x) if plus else part(x)
            x = n(x) if norm else x
    return x
""",
        "where `block.norm2(x) if norm else x` belongs": edited(
            TWO, ("f(n2(x) if norm else x)", "f(n2(x))")
        ),
        "where `x + said if plus else said` belongs": edited(
            TWO, ("        x = x + y if plus else y", "        x = x + y")
        ),
        "You use norm1 for both": edited(TWO, ("n2(x) if", "n1(x) if")),
        "no condition where `if think:` belongs": edited(
            TWO, ("    if think:", "    if True:")
        ),
        "`x = x + said if plus else said` left out": edited(
            TWO, ("    x = x + y if plus else y\n    if", "    if")
        ),
        "The pathway carries normed": TWO.replace(
            "y = a(n1(x) if norm else x)", "x = n1(x) if norm else x; y = a(x)"
        ).replace("y = f(n2(x) if norm else x)", "x = n2(x) if norm else x; y = f(x)"),
        "where `block.norm1(x) if norm else x` belongs": edited(
            TWO, ("y = a(n1(x) if norm else x)", "y = a(n1(x))")
        ),
        "It returns nothing": edited(TWO, ("    return x\n", "")),
    },
    "05.2": {
        "a straight line": "W1, W2 = [[1, -1]], [[1], [-1]]",
        "To the left of 0 everything is zero": "W1, W2 = [[1, 1]], [[1], [0]]",
        "To the right of 0 everything is zero": "W1, W2 = [[-1, -2]], [[1], [0]]",
        "stands on its head": "W1, W2 = [[1, -1]], [[-1], [-1]]",
        "rise by 2 for each step": "W1, W2 = [[2, -2]], [[1], [1]]",
        "the left rises by 3": "W1, W2 = [[1, -1]], [[1], [3]]",
        "Nothing comes through": "W1, W2 = [[0, 0]], [[1], [1]]",
        "W1 has shape (2, 1)": "W1, W2 = [[1], [-1]], [[1, 1]]",
        "W1 has shape (2,)": "W1, W2 = [1, -1], [1, 1]",
        "W1 is not a matrix": "W1, W2 = 'V', 'V'",
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
        "norm2 has nothing to do": terms(ATTEND, THINK.replace("norm2", "norm1")),
        "what attention of block 1 adds: Your result is": terms(
            ATTEND, THINK.replace("; x = x + f", "")
        ),
        "The order is turned round": terms(THINK, ATTEND),
        "No LayerNorm is used": terms(
            ATTEND.replace("b.norm1(x)", "x"), THINK.replace("b.norm2(x)", "x")
        ),
        "x itself, the first entry, is missing": terms(ATTEND, THINK).replace(
            "[x]", "[]"
        ),
        "but for `sum(found)` where": terms(ATTEND, THINK).replace(
            "return found", "return sum(found)"
        ),
    },
    "05.4": {
        "With training=False numbers still vanish": (
            "def dropout_by_hand(x, p, training):\n"
            "    return x * (torch.rand(x.shape) >= p) / (1 - p)"
        ),
        "With training=False numbers": (
            "def dropout_by_hand(x, p, training):\n"
            "    return F.dropout(x, p, not training)"
        ),
        "the survivors are x times 1; x / (1 - p)": dropout(
            "return x * (torch.rand(x.shape) >= p)"
        ),
        "75% of the numbers vanish, as should survive": [
            dropout("return x * (torch.rand(x.shape) < p) / (1 - p)"),
            dropout("return x * (torch.rand(x.shape) < p) / p"),
        ],
        "the survivors are x times 4;": dropout(
            "return x * (torch.rand(x.shape) >= p) / p"
        ),
        "the survivors are x times 0.75;": dropout(
            "return x * (torch.rand(x.shape) >= p) * (1 - p)"
        ),
        "With training=False you multiply by 1 - p": (
            "def dropout_by_hand(x, p, training):\n"
            "    mask = torch.rand(x.shape) >= p\n"
            "    return x * mask if training else x * (1 - p)"
        ),
        "With training=False x should come back as it is": (
            "def dropout_by_hand(x, p, training):\n"
            "    x = x / (1 - p)\n"
            "    return x * (torch.rand(x.shape) >= p) if training else x"
        ),
        "Whole rows, columns or texts vanish": [
            dropout("return x * (torch.rand(len(x), *[1] * (x.dim() - 1)) >= p)"),
            dropout("return x * (torch.rand(x.shape[-1]) >= p)"),
        ],
        "With p = 0.25, 50% of the numbers vanish": dropout(
            "return x * (torch.rand(x.shape) >= 0.5)"
        ),
        "Each call drops the same numbers": dropout(
            "torch.manual_seed(0); return F.dropout(x, p)"
        ),
        "exactly as many numbers": dropout(
            "n = int(p * x.numel()); gone = torch.randperm(x.numel())[:n]",
            "mask = torch.ones(x.numel()).index_fill(0, gone, 0).view(x.shape)",
            "return x * mask / (1 - p)",
        ),
        "changes `x` in place": dropout(
            "x *= torch.rand(x.shape) >= p", "x /= 1 - p", "return x"
        ),
        "Nothing vanishes in training": dropout("return x"),
        "x of shape (100, 50) goes in": dropout(
            "return x[torch.rand(x.shape) >= p] / (1 - p)"
        ),
    },
    "05.5": {
        **{says: loudness(body) for says, body in LENGTHS.items()},
        "changes `grads` in place": loudness(
            "sum(g.pow_(2).sum() for g in grads) ** 0.5"
        ),
    },
    "05.6": {
        "You put zeros in place of the block": (
            leave("[b if b is not body[i] else Zero() for b in body]", BEST)
            + "\nclass Zero(nn.Module):\n    def forward(self, x): return 0 * x"
        ),
        "each time one more is missing": leave("body[i + 1:]", BEST),
        "You keep only this block": leave("[body[i], body[-1]]", BEST),
        "The last LayerNorm is left out as well": leave(
            "[b for b in body[:-1] if b is not body[i]]", BEST
        ),
        "`- 1` left out": leave(REST, BEST).replace("len(body) - 1", "len(body)"),
        "`max` where `min` belongs": leave(REST, "losses, losses.index(max(losses))"),
        "you count the blocks from 1": leave(
            REST, "losses, 1 + losses.index(min(losses))"
        ),
        "You give how much the loss rises": leave(
            REST,
            "[n - model(x, y)[1].item() for n in losses], losses.index(min(losses))",
        ),
        "only `losses` returned": leave(REST, "losses"),
        "two values exchanged": leave(REST, "losses.index(min(losses)), losses"),
        "the model is left changed": leave(REST, BEST)
        .replace("m = copy.copy(model)", "m = model")
        .replace("m._modules = dict(model._modules)", ""),
    },
    "05.7": {
        "`dim=1` where `dim=-1` belongs, both": norm_over(1, 1, SCALED),
        "`dim=0` where `dim=-1` belongs, both": norm_over(0, 0, SCALED),
        "as in BatchNorm": norm_over((0, 1), (0, 1), SCALED),
        "`dim=(-2, -1)` where `dim=-1` belongs.": norm_over(-1, (1, 2), SCALED),
        "divided by n_embd - 1": norm(
            "self.gamma * (x - mean) / (x.var(-1, keepdim=True)"
            " + self.eps).sqrt() + self.beta"
        ),
        "epsilon stands outside": norm(
            "self.gamma * (x - mean) / (variance.sqrt() + self.eps) + self.beta"
        ),
        ".sqrt()` left out": norm(SCALED.replace(".sqrt()", "")),
        "`self.gamma *` left out": norm(f"{NORMED} + self.beta"),
        "`+ self.beta` left out": norm(f"self.gamma * {NORMED}"),
        "`return normed` where": norm(NORMED),
        "gamma (ones at first) and beta (zeros)": [
            norm(SCALED).replace("torch.ones(n_embd)", "torch.ones(1)"),
            "def HandNorm(n_embd): return nn.LayerNorm((6, n_embd))",
        ],
    },
    "05.8": {
        "model.parameters() finds no block": stack(
            "[new() for _ in range(n_layer)]", PASS
        ),
        "they start as twins": [
            stack("nn.ModuleList(copy.deepcopy(b) for b in [new()] * n_layer)", PASS),
            stack(
                "nn.ModuleList(torch.manual_seed(1) and new() for _ in range(n_layer))",
                PASS,
            ),
        ],
        "n_layer = 3 was asked for, but it has 2 blocks": stack(
            "nn.ModuleList(new() for _ in range(1, n_layer))", PASS
        ),
        "n_layer = 3 was asked for, but it has 6 blocks": stack(
            "nn.ModuleList(new() for _ in range(6))", PASS
        ),
        "The bug is still there": stack("nn.ModuleList(n_layer * [new()])", PASS),
        "only the last one counts": stack(
            NEW,
            "for block in self.blocks:",
            "    out = block(x)",
            "return self.norm(out)",
        ),
        "`x` itself, without `self.norm`, where `self.norm(x)`": stack(
            NEW, "return nn.Sequential(*self.blocks)(x)"
        ),
        "the block has added it": stack(
            NEW,
            "for block in self.blocks:",
            "    x = x + block(x)",
            "return self.norm(x)",
        ),
        "acts after every block": stack(
            NEW, "for block in self.blocks:", "    x = self.norm(block(x))", "return x"
        ),
        "There are 0 LayerNorms": stack(NEW, PASS).replace(
            "nn.LayerNorm(n_embd)", "nn.Identity()"
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
        "tensors": "W1, W2 = torch.tensor([[1, -1]]), torch.ones(2, 1).double()",
    },
    "05.3": {
        "step by step": terms(ATTEND, THINK),
        "one tensor": terms(ATTEND, THINK).replace("found\n", "torch.stack(found)\n"),
        "differences": terms(
            "y = x + b.attention(b.norm1(x)); z = b(x)",
            "found += [y - x, z - y]; x = z",
        ),
    },
    "05.4": {
        "torch's": "dropout_by_hand = F.dropout",
        "bernoulli": dropout(
            "return x * torch.bernoulli(torch.full_like(x, 1 - p)) / (1 - p)"
        ),
        "masked_fill": dropout(
            "return (x / (1 - p)).masked_fill(torch.rand_like(x) < p, 0)"
        ),
        "where": dropout(
            "return torch.where(torch.rand(x.shape) > p, x, 0) * (1 / (1 - p))"
        ),
    },
    "05.5": {
        "laid end to end": loudness(
            "torch.cat([g.flatten() for g in grads]).norm().item()"
        ),
        "norm of norms": loudness("torch.stack([g.norm() for g in grads]).norm()"),
        "numbers": loudness(
            "sum(n * n for g in grads for n in g.double().flatten().tolist()) ** 0.5"
        ),
        "torch's": "loudness = torch.nn.utils.get_total_norm",
    },
    "05.6": {
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
        "a hook": """
def leave_one_out(model, x, y):
    losses = []
    for block in model.body[:-1]:
        hook = block.register_forward_hook(lambda m, inputs, out: inputs[0])
        losses.append(float(model(x, y)[1].detach()))
        hook.remove()
    return losses, min(range(len(losses)), key=losses.__getitem__)
""",
    },
    "05.7": {
        "torch's": "HandNorm = nn.LayerNorm",
        "var": norm(
            "(x - mean) * (x.var(-1, unbiased=False, keepdim=True) + self.eps).rsqrt()"
            " * self.gamma + self.beta"
        ),
        "functional, beta first": """
class HandNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.beta = nn.Parameter(torch.zeros(n))
        self.gamma = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta)
""",
    },
    "05.8": {
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
        "a function": """
def Stack(n_layer, *sizes):
    blocks = [Block(sizes[0], *sizes[1:]) for _ in range(n_layer)]
    return nn.Sequential(*blocks, nn.LayerNorm(sizes[0]))
""",
    },
}
