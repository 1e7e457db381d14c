"""The exercises of notebook 05: right answers pass, each wrong one is named."""

import copy

import nbformat
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from exercises import NOTEBOOKS, exercises_of, play

from minigpt.block import Block, FeedForward
from minigpt.checks import residual_blocks
from minigpt.language_model import LanguageModel

EXERCISES = {exercise.number: exercise for exercise in exercises_of("05")}


@pytest.fixture(scope="module")
def learner():
    """The names that the notebook has defined by then, with a small model."""
    torch.manual_seed(3)
    body = nn.Sequential(*[Block(8, 2) for _ in range(3)], nn.LayerNorm(8))
    model = LanguageModel(11, 6, 8, body).eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    idx = torch.randint(11, (4, 7))
    names = dict(
        torch=torch, nn=nn, F=F, copy=copy, Block=Block, FeedForward=FeedForward
    )
    names |= dict(my_model=model, my_x=idx[:, :-1], my_y=idx[:, 1:])
    names |= dict(n_embd=8, n_head=2, block_size=6, count=lambda module: 0)
    names |= {k: v for k, v in vars(residual_blocks).items() if k.startswith("check_")}
    (path,) = NOTEBOOKS.glob("05*.ipynb")
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and cell.source.startswith("def who_moves"):
            exec(cell.source, names)
    return names


FEED_FORWARD = """
def make_feed_forward(n_embd):
    return nn.Sequential({})
"""
EXPAND, PROJ = "nn.Linear(n_embd, 4 * n_embd)", "nn.Linear(4 * n_embd, n_embd)"
STOPS = """
def stops(x, block):
    a, f, n1, n2 = block.attention, block.feed_forward, block.norm1, block.norm2
    {}
    return first, second
"""
DROPOUT = """
def dropout_by_hand(x, p, training):
    if not training:
        return x
    {}
"""
LOUDNESS = """
def loudness(grads):
    return {}
"""
LEAVE = """
@torch.no_grad()
def leave_one_out(model, x, y):
    body, losses = list(model.body), []
    for i in range(len(body) - 1):
        m = copy.copy(model)
        m._modules = dict(model._modules)
        m.body = nn.Sequential(*{})
        losses.append(m(x, y)[1].item())
    return {}
"""
REST, BEST = (
    "[b for b in body if b is not body[i]]",
    "losses, losses.index(min(losses))",
)
NORM = """
class HandNorm(nn.Module):
    def __init__(self, n_embd, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(n_embd))
        self.beta = nn.Parameter(torch.zeros(n_embd))
        self.eps = eps

    def forward(self, x):
        mean = x.mean({}, keepdim=True)
        variance = (x - mean).pow(2).mean({}, keepdim=True)
        return {}
"""
NORMED = "(x - mean) / (variance + self.eps).sqrt()"
SCALED = f"self.gamma * {NORMED} + self.beta"
STACK = """
class Stack(nn.Module):
    def __init__(self, n_layer, n_embd, n_head):
        super().__init__()
        new = lambda: Block(n_embd, n_head)
        self.blocks = {}
        self.norm = nn.LayerNorm(n_embd)

    def forward(self, x):
        {}
"""
NEW = "nn.ModuleList(new() for _ in range(n_layer))"
PASS = "return self.norm(nn.Sequential(*self.blocks)(x))"

WRONG = {
    "05.1": {
        "no relu": (FEED_FORWARD.format(f"{EXPAND}, {PROJ}"), "No ReLU acts"),
        "relu after the projection": (
            FEED_FORWARD.format(f"{EXPAND}, {PROJ}, nn.ReLU()"),
            "Nothing negative ever comes out",
        ),
        "relu twice": (
            FEED_FORWARD.format(f"{EXPAND}, nn.ReLU(), {PROJ}, nn.ReLU()"),
            "Nothing negative ever comes out",
        ),
        "relu first": (
            FEED_FORWARD.format(f"nn.ReLU(), {EXPAND}, {PROJ}"),
            "acts on the input",
        ),
        "not wider": (
            FEED_FORWARD.format(
                "nn.Linear(n_embd, n_embd), nn.ReLU(), nn.Linear(n_embd, n_embd)"
            ),
            "the inner layer is 2 wide; 4 times would be 8",
        ),
        "width fixed": (
            FEED_FORWARD.format(
                "nn.Linear(n_embd, 256), nn.ReLU(), nn.Linear(256, n_embd)"
            ),
            "the inner layer is 256 wide",
        ),
        "n_embd fixed": (
            FEED_FORWARD.format("nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)"),
            "your layers have sizes [64, 256]",
        ),
        "no way back": (
            FEED_FORWARD.format(f"{EXPAND}, nn.ReLU()"),
            "Two linear layers are wanted, but it has 1",
        ),
        "no bias": (
            FEED_FORWARD.format(f"{EXPAND}, nn.ReLU(), {PROJ[:-1]}, bias=False)"),
            "a bias is missing",
        ),
        "gelu": (
            FEED_FORWARD.format(f"{EXPAND}, nn.GELU(), {PROJ}"),
            "the bend is another one",
        ),
        "a list": (
            f"def make_feed_forward(n_embd): return [{EXPAND}, nn.ReLU(), {PROJ}]",
            "An nn.Module should come out",
        ),
    },
    "05.2": {
        "straight line": ("W1, W2 = [[1, -1]], [[1], [-1]]", "a straight line"),
        "right arm only": (
            "W1, W2 = [[1, 1]], [[1], [0]]",
            "to the left of 0 everything is zero",
        ),
        "left arm only": (
            "W1, W2 = [[-1, -2]], [[1], [0]]",
            "to the right of 0 everything is zero",
        ),
        "on its head": ("W1, W2 = [[1, -1]], [[-1], [-1]]", "stands on its head"),
        "too steep": ("W1, W2 = [[2, -2]], [[1], [1]]", "rise by 2 for each step"),
        "uneven": ("W1, W2 = [[1, -1]], [[1], [3]]", "the left one rises by 3"),
        "nothing": ("W1, W2 = [[0, 0]], [[1], [1]]", "Nothing comes through"),
        "turned": ("W1, W2 = [[1], [-1]], [[1, 1]]", "W1 has shape (2, 1)"),
        "flat": ("W1, W2 = [1, -1], [1, 1]", "W1 has shape (2,)"),
        "no numbers": ("W1, W2 = 'V', 'V'", "W1 is not a matrix"),
    },
    "05.3": {
        "normed input carried on": (
            STOPS.format("x = n1(x); first = x + a(x); second = first + f(n2(first))"),
            "The pathway carries normed numbers",
        ),
        "normed first stop carried on": (
            STOPS.format("first = x + a(n1(x)); y = n2(first); second = y + f(y)"),
            "The pathway carries normed numbers",
        ),
        "no residual": (
            STOPS.format("first = a(n1(x)); second = f(n2(first))"),
            "A plus sign is missing",
        ),
        "second residual missing": (
            STOPS.format("first = x + a(n1(x)); second = f(n2(first))"),
            "A plus sign is missing",
        ),
        "block's input instead": (
            STOPS.format("first = x + a(n1(x)); second = x + f(n2(first))"),
            "what attention added is lost",
        ),
        "block's input again": (
            STOPS.format("first = x + a(n1(x)); second = x + first + f(n2(first))"),
            "added a second time",
        ),
        "parallel": (
            STOPS.format("first = x + a(n1(x)); second = first + f(n2(x))"),
            "it does not hear attention",
        ),
        "norm1 twice": (
            STOPS.format("first = x + a(n1(x)); second = first + f(n1(first))"),
            "norm2 has nothing to do",
        ),
        "post-norm": (
            STOPS.format("first = n1(x + a(x)); second = n2(first + f(first))"),
            "That is post-norm",
        ),
        "no norm": (
            STOPS.format("first = x + a(x); second = first + f(first)"),
            "No LayerNorm is used",
        ),
        "feed-forward first": (
            STOPS.format("first = x + f(n1(x)); second = first + a(n2(first))"),
            "you compute before you communicate",
        ),
        "feed-forward first with its norm": (
            STOPS.format("first = x + f(n2(x)); second = first + a(n1(first))"),
            "the norms too",
        ),
        "changed in place": (
            STOPS.format("x += a(n1(x)); first = x; x += f(n2(x)); second = x"),
            "+= has changed the first",
        ),
        "only the end": (
            "def stops(x, block): return block(x)",
            "Two stops are wanted",
        ),
    },
    "05.4": {
        "no switch": (
            "def dropout_by_hand(x, p, training):\n"
            "    return x * (torch.rand(x.shape) >= p) / (1 - p)",
            "With training=False numbers still vanish",
        ),
        "wrong way round": (
            "def dropout_by_hand(x, p, training):\n"
            "    return F.dropout(x, p, not training)",
            "The switch is the wrong way round",
        ),
        "not rescaled": (
            DROPOUT.format("return x * (torch.rand(x.shape) >= p)"),
            "The survivors are not rescaled",
        ),
        "keeps with p": (
            DROPOUT.format("return x * (torch.rand(x.shape) < p) / (1 - p)"),
            "You keep with probability p",
        ),
        "keeps with p and divides by p": (
            DROPOUT.format("return x * (torch.rand(x.shape) < p) / p"),
            "You keep with probability p",
        ),
        "divided by p": (
            DROPOUT.format("return x * (torch.rand(x.shape) >= p) / p"),
            "You divide the survivors by p",
        ),
        "multiplied": (
            DROPOUT.format("return x * (torch.rand(x.shape) >= p) * (1 - p)"),
            "You multiply the survivors by 1 - p",
        ),
        "the way of 2014": (
            "def dropout_by_hand(x, p, training):\n"
            "    mask = torch.rand(x.shape) >= p\n"
            "    return x * mask if training else x * (1 - p)",
            "In evaluation you multiply by 1 - p",
        ),
        "rescaled in evaluation": (
            "def dropout_by_hand(x, p, training):\n"
            "    x = x / (1 - p)\n"
            "    return x * (torch.rand(x.shape) >= p) if training else x",
            "With training=False x should come back as it is",
        ),
        "whole rows": (
            DROPOUT.format(
                "return x * (torch.rand(len(x), *[1] * (x.dim() - 1)) >= p)"
            ),
            "Whole rows or columns vanish",
        ),
        "whole columns": (
            DROPOUT.format("return x * (torch.rand(x.shape[-1]) >= p)"),
            "Whole rows or columns vanish",
        ),
        "a half": (
            DROPOUT.format("return x * (torch.rand(x.shape) >= 0.5)"),
            "With p = 0.25, 51% of the numbers vanish",
        ),
        "seeded": (
            DROPOUT.format("torch.manual_seed(0); return F.dropout(x, p)"),
            "Each call drops the same numbers",
        ),
        "nothing": (DROPOUT.format("return x"), "Nothing vanishes in training"),
        "shorter": (
            DROPOUT.format("return x[torch.rand(x.shape) >= p] / (1 - p)"),
            "x of shape (100, 50) goes in",
        ),
    },
    "05.5": {
        "sum of norms": (
            LOUDNESS.format("sum(g.norm() for g in grads)"),
            "You add up the norms",
        ),
        "no root": (
            LOUDNESS.format("sum((g * g).sum() for g in grads)"),
            "The root is missing",
        ),
        "mean of squares": (
            LOUDNESS.format(
                "torch.cat([g.flatten() for g in grads]).square().mean().sqrt()"
            ),
            "the mean of the squares",
        ),
        "mean of norms": (
            LOUDNESS.format("torch.stack([g.norm() for g in grads]).mean()"),
            "the mean of the norms",
        ),
        "largest": (
            LOUDNESS.format("max(g.norm() for g in grads)"),
            "the largest of the norms",
        ),
        "absolute values": (
            LOUDNESS.format("sum(g.abs().sum() for g in grads)"),
            "length needs squares",
        ),
        "first only": (LOUDNESS.format("grads[0].norm()"), "Only the first tensor"),
        "matrices only": (
            LOUDNESS.format("sum(g.pow(2).sum() for g in grads if g.ndim > 1) ** 0.5"),
            "The vectors are left out",
        ),
        "list of norms": (
            LOUDNESS.format("torch.stack([g.norm() for g in grads])"),
            "One number for each tensor",
        ),
    },
    "05.6": {
        "zeros": (
            LEAVE.format("[b if b is not body[i] else Zero() for b in body]", BEST)
            + "\nclass Zero(nn.Module):\n    def forward(self, x): return 0 * x",
            "You put zeros in place of the block",
        ),
        "not put back": (
            LEAVE.format("body[i + 1:]", BEST),
            "each time one more is missing",
        ),
        "only this block": (
            LEAVE.format("[body[i], body[-1]]", BEST),
            "You keep only this block",
        ),
        "without the last norm": (
            LEAVE.format("[b for b in body[:-1] if b is not body[i]]", BEST),
            "The last LayerNorm is left out as well",
        ),
        "only attention left out": (
            LEAVE.format("[b if b is not body[i] else Half(b) for b in body]", BEST)
            + "\nclass Half(nn.Module):\n"
            "    def __init__(self, b): super().__init__(); self.b = b\n"
            "    def forward(self, x):\n"
            "        return x + self.b.feed_forward(self.b.norm2(x))",
            "Only attention is left out",
        ),
        "the norm counted": (
            LEAVE.format(REST, BEST).replace("len(body) - 1", "len(body)"),
            "there is one loss too many",
        ),
        "the dearest": (
            LEAVE.format(REST, "losses, losses.index(max(losses))"),
            "you name the block that is missed most",
        ),
        "from one": (
            LEAVE.format(REST, "losses, 1 + losses.index(min(losses))"),
            "you count the blocks from 1",
        ),
        "the rise": (
            LEAVE.format(
                REST,
                "[n - model(x, y)[1].item() for n in losses], "
                "losses.index(min(losses))",
            ),
            "You give how much the loss rises",
        ),
        "losses only": (LEAVE.format(REST, "losses"), "Two things are wanted"),
        "other order": (
            LEAVE.format(REST, "losses.index(min(losses)), losses"),
            "Two things are wanted",
        ),
        "model left changed": (
            LEAVE.format(REST, BEST)
            .replace("m = copy.copy(model)", "m = model")
            .replace("m._modules = dict(model._modules)", ""),
            "the model is left changed",
        ),
    },
    "05.7": {
        "over time": (NORM.format(1, 1, SCALED), "you average each channel over time"),
        "over the batch": (NORM.format(0, 0, SCALED), "you average over dim=0"),
        "batch norm": (NORM.format((0, 1), (0, 1), SCALED), "as in BatchNorm"),
        "mean only mended": (NORM.format(-1, (1, 2), SCALED), "the variance runs over"),
        "variance only mended": (NORM.format((1, 2), -1, SCALED), "the mean runs over"),
        "unbiased": (
            NORM.format(
                -1,
                -1,
                "self.gamma * (x - mean) / (x.var(-1, keepdim=True)"
                " + self.eps).sqrt() + self.beta",
            ),
            "divided by n_embd - 1",
        ),
        "eps outside": (
            NORM.format(
                -1,
                -1,
                "self.gamma * (x - mean) / (variance.sqrt() + self.eps) + self.beta",
            ),
            "epsilon stands outside",
        ),
        "no root": (
            NORM.format(-1, -1, SCALED.replace(".sqrt()", "")),
            "the root is missing",
        ),
        "no gamma": (NORM.format(-1, -1, f"{NORMED} + self.beta"), "but gamma is"),
        "no beta": (NORM.format(-1, -1, f"self.gamma * {NORMED}"), "but beta is"),
        "no gamma, no beta": (NORM.format(-1, -1, NORMED), "gamma and beta are"),
        "one number for all": (
            NORM.format(-1, -1, SCALED).replace("torch.ones(n_embd)", "torch.ones(1)"),
            "gamma (ones at first) and beta (zeros)",
        ),
        "made with T": (
            "def HandNorm(n_embd): return nn.LayerNorm((6, n_embd))",
            "gamma (ones at first) and beta (zeros)",
        ),
    },
    "05.8": {
        "a plain list": (
            STACK.format("[new() for _ in range(n_layer)]", PASS),
            "model.parameters() finds no block",
        ),
        "copies": (
            STACK.format(
                "nn.ModuleList(copy.deepcopy(b) for b in [new()] * n_layer)", PASS
            ),
            "they start as twins",
        ),
        "twins by seed": (
            STACK.format(
                "nn.ModuleList(torch.manual_seed(1) and new() for _ in range(n_layer))",
                PASS,
            ),
            "they start as twins",
        ),
        "one too few": (
            STACK.format("nn.ModuleList(new() for _ in range(1, n_layer))", PASS),
            "n_layer = 3 was asked for, but 2 blocks were built",
        ),
        "always six": (
            STACK.format("nn.ModuleList(new() for _ in range(6))", PASS),
            "n_layer = 3 was asked for, but 6 blocks were built",
        ),
        "still one": (
            STACK.format("nn.ModuleList(n_layer * [new()])", PASS),
            "The bug is still there",
        ),
        "only the last one counts": (
            STACK.format(
                NEW,
                "\n        ".join(
                    [
                        "for block in self.blocks:",
                        "    out = block(x)",
                        "return self.norm(out)",
                    ]
                ),
            ),
            "only the last one counts",
        ),
        "last norm unused": (
            STACK.format(NEW, "return nn.Sequential(*self.blocks)(x)"),
            "the last LayerNorm is not used",
        ),
        "added again": (
            STACK.format(
                NEW,
                "\n        ".join(
                    [
                        "for block in self.blocks:",
                        "    x = x + block(x)",
                        "return self.norm(x)",
                    ]
                ),
            ),
            "the block has added it",
        ),
        "norm in between": (
            STACK.format(
                NEW,
                "\n        ".join(
                    [
                        "for block in self.blocks:",
                        "    x = self.norm(block(x))",
                        "return x",
                    ]
                ),
            ),
            "acts after every block",
        ),
        "norm lost": (
            STACK.format(NEW, PASS).replace("nn.LayerNorm(n_embd)", "nn.Identity()"),
            "There are 0 LayerNorms",
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
        "one line each": STOPS.format(
            "first = x + a(n1(x)); second = f(n2(first)) + first"
        ),
        "from the end": STOPS.format("second = block(x); first = x + a(n1(x))"),
        "a list": "def stops(x, b):\n"
        "    y = torch.add(x, b.attention(b.norm1(x)))\n"
        "    return [y, y + b.feed_forward(b.norm2(y))]",
    },
    "05.4": {
        "torch's": "dropout_by_hand = F.dropout",
        "bernoulli": DROPOUT.format(
            "return x * torch.bernoulli(torch.full_like(x, 1 - p)) / (1 - p)"
        ),
        "masked_fill": DROPOUT.format(
            "return (x / (1 - p)).masked_fill(torch.rand_like(x) < p, 0)"
        ),
        "where": DROPOUT.format(
            "return torch.where(torch.rand(x.shape) > p, x, 0) * (1 / (1 - p))"
        ),
    },
    "05.5": {
        "laid end to end": LOUDNESS.format(
            "torch.cat([g.flatten() for g in grads]).norm().item()"
        ),
        "norm of norms": LOUDNESS.format(
            "torch.stack([g.norm() for g in grads]).norm()"
        ),
        "numbers": LOUDNESS.format(
            "sum(n * n for g in grads for n in g.double().flatten().tolist()) ** 0.5"
        ),
        "torch's": "loudness = torch.nn.utils.get_total_norm",
    },
    "05.6": {
        "a shallow copy": LEAVE.format(REST, BEST),
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
        "var": NORM.format(
            -1,
            -1,
            "(x - mean) * (x.var(-1, unbiased=False, keepdim=True) + self.eps).rsqrt()"
            " * self.gamma + self.beta",
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
        "sequential": STACK.format(
            "nn.Sequential(*[new() for _ in range(n_layer)])",
            "return self.norm(self.blocks(x))",
        ),
        "appended": STACK.format("nn.ModuleList()", PASS).replace(
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


def table(answers):
    return [
        pytest.param(number, answer, id=f"{number} {name}")
        for number, named in answers.items()
        for name, answer in named.items()
    ]


def test_the_notebook_has_the_exercises_that_are_tested_here():
    assert list(EXERCISES) == list(WRONG) == list(RIGHT)


@pytest.mark.parametrize("number", WRONG)
def test_the_untouched_cell_is_not_attempted_or_shows_its_bug(number, learner):
    exercise = EXERCISES[number]
    printed = play(exercise, learner, "")
    hunt = exercise.kind == "Bug hunt"
    assert ("The bug is still there" if hunt else "not attempted yet") in printed
    assert "expected" not in printed


@pytest.mark.parametrize("number", WRONG)
def test_the_solution_in_the_notebook_is_right(number, learner):
    exercise = EXERCISES[number]
    assert "right! Verified:" in play(exercise, learner, exercise.solution)


@pytest.mark.parametrize(("number", "answer"), table(RIGHT))
def test_an_answer_written_differently_is_right(number, answer, learner):
    assert "right! Verified:" in play(EXERCISES[number], learner, answer)


@pytest.mark.parametrize(("number", "answer"), table(WRONG))
def test_a_wrong_answer_is_told_its_mistake(number, answer, learner):
    code, message = answer
    printed = play(EXERCISES[number], learner, code)
    assert "not yet." in printed and "Hint:" in printed
    assert message in printed


@pytest.mark.parametrize("number", WRONG)
def test_a_check_leaves_the_random_numbers_alone(number, learner):
    exercise = EXERCISES[number]
    names = dict(learner)
    exec(exercise.skeleton, names)
    exec(exercise.solution, names)
    state = torch.get_rng_state()
    exec(exercise.check, names)
    assert torch.equal(torch.get_rng_state(), state)


def test_an_experiment_on_something_else_than_a_model_is_explained(learner, capsys):
    residual_blocks.check_loudness(len, nn.Linear(2, 2), 0, 0)
    assert "should be a LanguageModel" in capsys.readouterr().out
