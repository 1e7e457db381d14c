"""Answers to notebook 05's exercises."""

import torch
import torch.nn as nn
from exercises import exercises_of

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


def layers(inside):
    return function("make_feed_forward(n_embd)", f"return nn.Sequential({inside})")


EXPAND, PROJ = "nn.Linear(n_embd, 4 * n_embd)", "nn.Linear(4 * n_embd, n_embd)"


def stops(line):
    parts = "block.attention, block.feed_forward, block.norm1, block.norm2"
    return function(
        "stops(x, block)", f"a, f, n1, n2 = {parts}", line, "return first, second"
    )


def dropout(line):
    return function(
        "dropout_by_hand(x, p, training)", "if not training: return x", line
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
        "No ReLU acts": layers(f"{EXPAND}, {PROJ}"),
        "Nothing negative ever comes out": [
            layers(f"{EXPAND}, {PROJ}, nn.ReLU()"),
            layers(f"{EXPAND}, nn.ReLU(), {PROJ}, nn.ReLU()"),
        ],
        "acts on the input": layers(f"nn.ReLU(), {EXPAND}, {PROJ}"),
        "the inner layer is 2 wide; 4 times would be 8": layers(
            "nn.Linear(n_embd, n_embd), nn.ReLU(), nn.Linear(n_embd, n_embd)"
        ),
        "the inner layer is 256 wide": layers(
            "nn.Linear(n_embd, 256), nn.ReLU(), nn.Linear(256, n_embd)"
        ),
        "your layers have sizes [64, 256]": layers(
            "nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)"
        ),
        "Two linear layers are wanted, but it has 1": layers(f"{EXPAND}, nn.ReLU()"),
        "a bias is missing": layers(f"{EXPAND}, nn.ReLU(), {PROJ[:-1]}, bias=False)"),
        "the bend is another one": layers(f"{EXPAND}, nn.GELU(), {PROJ}"),
        "An nn.Module should come out": (
            f"def make_feed_forward(n_embd): return [{EXPAND}, nn.ReLU(), {PROJ}]"
        ),
    },
    "05.2": {
        "a straight line": "W1, W2 = [[1, -1]], [[1], [-1]]",
        "to the left of 0 everything is zero": "W1, W2 = [[1, 1]], [[1], [0]]",
        "to the right of 0 everything is zero": "W1, W2 = [[-1, -2]], [[1], [0]]",
        "stands on its head": "W1, W2 = [[1, -1]], [[-1], [-1]]",
        "rise by 2 for each step": "W1, W2 = [[2, -2]], [[1], [1]]",
        "the left one rises by 3": "W1, W2 = [[1, -1]], [[1], [3]]",
        "Nothing comes through": "W1, W2 = [[0, 0]], [[1], [1]]",
        "W1 has shape (2, 1)": "W1, W2 = [[1], [-1]], [[1, 1]]",
        "W1 has shape (2,)": "W1, W2 = [1, -1], [1, 1]",
        "W1 is not a matrix": "W1, W2 = 'V', 'V'",
    },
    "05.3": {
        "The pathway carries normed numbers": [
            stops("x = n1(x); first = x + a(x); second = first + f(n2(first))"),
            stops("first = x + a(n1(x)); y = n2(first); second = y + f(y)"),
        ],
        "A plus sign is missing": [
            stops("first = a(n1(x)); second = f(n2(first))"),
            stops("first = x + a(n1(x)); second = f(n2(first))"),
        ],
        "what attention added is lost": stops(
            "first = x + a(n1(x)); second = x + f(n2(first))"
        ),
        "added a second time": stops(
            "first = x + a(n1(x)); second = x + first + f(n2(first))"
        ),
        "it does not hear attention": stops(
            "first = x + a(n1(x)); second = first + f(n2(x))"
        ),
        "norm2 has nothing to do": stops(
            "first = x + a(n1(x)); second = first + f(n1(first))"
        ),
        "That is post-norm": stops(
            "first = n1(x + a(x)); second = n2(first + f(first))"
        ),
        "No LayerNorm is used": stops("first = x + a(x); second = first + f(first)"),
        "turned round: you compute before you communicate": stops(
            "first = x + f(n1(x)); second = first + a(n2(first))"
        ),
        "the norms too": stops("first = x + f(n2(x)); second = first + a(n1(first))"),
        "+= has changed the first": stops(
            "x += a(n1(x)); first = x; x += f(n2(x)); second = x"
        ),
        "Two stops are wanted": "def stops(x, block): return block(x)",
    },
    "05.4": {
        "With training=False numbers still vanish": (
            "def dropout_by_hand(x, p, training):\n"
            "    return x * (torch.rand(x.shape) >= p) / (1 - p)"
        ),
        "The switch is the wrong way round": (
            "def dropout_by_hand(x, p, training):\n"
            "    return F.dropout(x, p, not training)"
        ),
        "The survivors are not rescaled": dropout(
            "return x * (torch.rand(x.shape) >= p)"
        ),
        "You keep with probability p": [
            dropout("return x * (torch.rand(x.shape) < p) / (1 - p)"),
            dropout("return x * (torch.rand(x.shape) < p) / p"),
        ],
        "You divide the survivors by p": dropout(
            "return x * (torch.rand(x.shape) >= p) / p"
        ),
        "You multiply the survivors by 1 - p": dropout(
            "return x * (torch.rand(x.shape) >= p) * (1 - p)"
        ),
        "In evaluation you multiply by 1 - p": (
            "def dropout_by_hand(x, p, training):\n"
            "    mask = torch.rand(x.shape) >= p\n"
            "    return x * mask if training else x * (1 - p)"
        ),
        "With training=False x should come back as it is": (
            "def dropout_by_hand(x, p, training):\n"
            "    x = x / (1 - p)\n"
            "    return x * (torch.rand(x.shape) >= p) if training else x"
        ),
        "Whole rows or columns vanish": [
            dropout("return x * (torch.rand(len(x), *[1] * (x.dim() - 1)) >= p)"),
            dropout("return x * (torch.rand(x.shape[-1]) >= p)"),
        ],
        "With p = 0.25, 51% of the numbers vanish": dropout(
            "return x * (torch.rand(x.shape) >= 0.5)"
        ),
        "Each call drops the same numbers": dropout(
            "torch.manual_seed(0); return F.dropout(x, p)"
        ),
        "Nothing vanishes in training": dropout("return x"),
        "x of shape (100, 50) goes in": dropout(
            "return x[torch.rand(x.shape) >= p] / (1 - p)"
        ),
    },
    "05.5": {
        "You add up the norms": loudness("sum(g.norm() for g in grads)"),
        "The root is missing": loudness("sum((g * g).sum() for g in grads)"),
        "the mean of the squares": loudness(
            "torch.cat([g.flatten() for g in grads]).square().mean().sqrt()"
        ),
        "the mean of the norms": loudness(
            "torch.stack([g.norm() for g in grads]).mean()"
        ),
        "the largest of the norms": loudness("max(g.norm() for g in grads)"),
        "length needs squares": loudness("sum(g.abs().sum() for g in grads)"),
        "Only the first tensor": loudness("grads[0].norm()"),
        "The vectors are left out": loudness(
            "sum(g.pow(2).sum() for g in grads if g.ndim > 1) ** 0.5"
        ),
        "One number for each tensor": loudness(
            "torch.stack([g.norm() for g in grads])"
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
        "Only attention is left out": (
            leave("[b if b is not body[i] else Half(b) for b in body]", BEST)
            + "\nclass Half(nn.Module):\n"
            "    def __init__(self, b): super().__init__(); self.b = b\n"
            "    def forward(self, x):\n"
            "        return x + self.b.feed_forward(self.b.norm2(x))"
        ),
        "there is one loss too many": leave(REST, BEST).replace(
            "len(body) - 1", "len(body)"
        ),
        "you name the block that is missed most": leave(
            REST, "losses, losses.index(max(losses))"
        ),
        "you count the blocks from 1": leave(
            REST, "losses, 1 + losses.index(min(losses))"
        ),
        "You give how much the loss rises": leave(
            REST,
            "[n - model(x, y)[1].item() for n in losses], losses.index(min(losses))",
        ),
        "Two things are wanted": [
            leave(REST, "losses"),
            leave(REST, "losses.index(min(losses)), losses"),
        ],
        "the model is left changed": leave(REST, BEST)
        .replace("m = copy.copy(model)", "m = model")
        .replace("m._modules = dict(model._modules)", ""),
    },
    "05.7": {
        "you average each channel over time": norm_over(1, 1, SCALED),
        "you average over dim=0": norm_over(0, 0, SCALED),
        "as in BatchNorm": norm_over((0, 1), (0, 1), SCALED),
        "the variance runs over": norm_over(-1, (1, 2), SCALED),
        "the mean runs over": norm_over((1, 2), -1, SCALED),
        "divided by n_embd - 1": norm(
            "self.gamma * (x - mean) / (x.var(-1, keepdim=True)"
            " + self.eps).sqrt() + self.beta"
        ),
        "epsilon stands outside": norm(
            "self.gamma * (x - mean) / (variance.sqrt() + self.eps) + self.beta"
        ),
        "the root is missing": norm(SCALED.replace(".sqrt()", "")),
        "but gamma is": norm(f"{NORMED} + self.beta"),
        "but beta is": norm(f"self.gamma * {NORMED}"),
        "gamma and beta are": norm(NORMED),
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
        "n_layer = 3 was asked for, but 2 blocks were built": stack(
            "nn.ModuleList(new() for _ in range(1, n_layer))", PASS
        ),
        "n_layer = 3 was asked for, but 6 blocks were built": stack(
            "nn.ModuleList(new() for _ in range(6))", PASS
        ),
        "The bug is still there": stack("nn.ModuleList(n_layer * [new()])", PASS),
        "only the last one counts": stack(
            NEW,
            "for block in self.blocks:",
            "    out = block(x)",
            "return self.norm(out)",
        ),
        "the last LayerNorm is not used": stack(
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
        "the package's": "make_feed_forward = FeedForward",
        "a class with matrices of its own": """
class make_feed_forward(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.W1 = nn.Parameter(torch.randn(n, 4 * n))
        self.b1 = nn.Parameter(torch.randn(4 * n))
        self.W2 = nn.Parameter(torch.randn(4 * n, n))
        self.b2 = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return (x @ self.W1 + self.b1).clamp(min=0) @ self.W2 + self.b2
""",
        "projection defined first": """
class make_feed_forward(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj, self.expand = nn.Linear(4 * n, n), nn.Linear(n, 4 * n)

    def forward(self, x):
        return self.proj(F.relu(self.expand(x)))
""",
    },
    "05.2": {
        "other order": "W1, W2 = [[-1, 1]], [[1], [1]]",
        "shared out": "W1, W2 = [[2.0, -4.0]], [[0.5], [0.25]]",
        "tensors": "W1, W2 = torch.tensor([[1, -1]]), torch.ones(2, 1).double()",
    },
    "05.3": {
        "one line each": stops("first = x + a(n1(x)); second = f(n2(first)) + first"),
        "from the end": stops("second = block(x); first = x + a(n1(x))"),
        "a list": (
            "def stops(x, b):\n"
            "    y = torch.add(x, b.attention(b.norm1(x)))\n"
            "    return [y, y + b.feed_forward(b.norm2(y))]"
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
