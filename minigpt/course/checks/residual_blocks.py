"""Checks for lesson 05: what a block computes, adds, normalises, drops and learns."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.block import Block
from minigpt.course.checks.core import Explained, compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import as_tensor, randn, same, tensor_of
from minigpt.language_model import LanguageModel


def _randomise(module: nn.Sequential, seed: int = 0) -> nn.Sequential:
    """Make every parameter random, gamma and beta too, so that no mistake hides."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(0.5 * randn(*p.shape, seed=seed + i))
    return module.eval()


def _blocks(n_layer: int, n_embd: int, n_head: int) -> nn.Sequential:
    return _randomise(nn.Sequential(*[Block(n_embd, n_head) for _ in range(n_layer)]))


TWO_WEIGHTS = Solution(
    """
W1 = [[1.0, -1.0]]
W2 = [[1.0], [1.0]]
""",
)


@exercise("05.1 A V out of straight lines", TWO_WEIGHTS)
def check_v(W1: Any, W2: Any) -> str:
    """W1: (1, 2) and W2: (2, 1), so that relu(x @ W1) @ W2 is |x|."""
    for name, given, shape in (("W1", W1, (1, 2)), ("W2", W2, (2, 1))):
        W = as_tensor(given)
        if W is None or W.shape != shape:
            has = "is not a matrix" if W is None else f"has shape {tuple(W.shape)}"
            hint = "W1 is one row, [[a, b]]; W2 is two rows, [[c], [d]]."
            raise Explained(f"{name} {has}, but should have shape {shape}.", hint)
    W1, W2 = tensor_of(W1), tensor_of(W2)
    right, what = 0, "Your weights do not give |x|:"
    for x in (-2.0, 3.0):
        y = round((F.relu(x * W1) @ W2).item(), 4)
        made, right = F.relu(x * W1)[0].tolist(), right + (y == abs(x))
        what += f"\n    x = {x:g}: relu gives {made}, and W2 makes {y:g} of it"
        what += _arm(x, made, W2.flatten().tolist()) * (y != abs(x))
    if right == 2:
        return "relu(x @ W1) @ W2 = |x|, to the left of 0 and to the right"
    hint = "relu(x) is the right arm. What is relu(-x), and what is their sum?"
    raise Explained(what, hint, share=right / 2)


def _arm(x: float, made: list[float], W2: list[float]) -> str:
    """Which weight is wrong, where relu gives made for x."""
    there = [i for i, number in enumerate(made) if number]
    sign = "negative" if x < 0 else "positive"
    if not there:
        return f": of W1 one number must be {sign}"
    if there[1:]:
        return f": both numbers of W1 are {sign}, so both count here"
    i = there[0]
    slope, wanted = made[i] / x * W2[i], math.copysign(1, x)
    return f": the slope, W1[{i}] * W2[{i}], is {slope:g} there and must be {wanted:g}"


TERMS = Solution(
    """
def terms(x, blocks):
    found = [x]
    for block in blocks:
        said = block.attention(block.norm1(x))
        found.append(said)
        x = x + said
        said = block.feed_forward(block.norm2(x))
        found.append(said)
        x = x + said
    return found
""",
    Mistake(
        "You use norm1 for both parts, so norm2 has nothing to do.",
        [("norm2", "norm1")],
    ),
    Mistake(
        "Both parts of a block read the same x: the second should hear what "
        "attention added.",
        [("norm2(x)", "norm2(x - found[-1])")],
    ),
    Mistake(
        "No LayerNorm is used: the parts read the pathway as it is.",
        [("block.norm1", ""), ("block.norm2", "")],
    ),
    Mistake(
        "Every part reads the start: each should hear what those before have added.",
        [
            ("found = [x]", "found, start = [x], x"),
            ("norm1(x)", "norm1(start)"),
            ("norm2(x)", "norm2(start)"),
        ],
    ),
    Mistake(
        "The pathway does not grow from block to block: each one begins with "
        "the first x.",
        [("x = x + said", "pass"), ("norm2(x)", "norm2(x + said)")],
    ),
    Mistake(
        "norm1 and norm2 have changed places: norm1 stands before "
        "attention, norm2 before the feed-forward part.",
        [
            ("norm1", "norm0"),
            ("norm2", "norm1"),
            ("norm0", "norm2"),
        ],
    ),
    Mistake(
        "All attention parts come first in your list, then all "
        "feed-forward parts; wanted is block after block.",
        [
            ("return found", "return [found[0], *found[1::2], *found[2::2]]"),
        ],
    ),
    Mistake(
        "The norm comes behind each part; in these blocks it stands "
        "before: part(norm(x)).",
        [
            ("block.attention(block.norm1(x))", "block.norm1(block.attention(x))"),
            (
                "block.feed_forward(block.norm2(x))",
                "block.norm2(block.feed_forward(x))",
            ),
        ],
    ),
    Mistake(
        "One entry stands for each block: what attention adds and what "
        "the feed-forward part adds are to stand apart.",
        [
            (
                "return found",
                (
                    "return [x * 0 + found[0], *(a + b for a, b in zip(found[1::2], "
                    "found[2::2]))]"
                ),
            ),
        ],
    ),
)


@exercise("05.2 The pathway is a sum", TERMS)
def check_terms(terms: Any, model: LanguageModel, x: torch.Tensor) -> str:
    """terms(x, blocks) -> list: x, then what each part adds to the pathway."""

    def work(terms: Callable, x: torch.Tensor, blocks: nn.Sequential) -> Any:
        found = terms(x, blocks)
        many = isinstance(found, (tuple, list)) or getattr(found, "dim", int)() == 4
        return tuple(found) if many else found

    with torch.no_grad():
        own = model.token_embedding(x) + model.position_embedding.weight[: x.shape[1]]
    cases = [(2 * randn(1, 2, 3), _blocks(1, 3, 1))]
    cases += [(randn(2, 5, 6), _blocks(2, 6, 3)), (own, model.body[:-1])]
    cases.append((randn(1, 3, 4), _blocks(5, 4, 2)))
    adds = product(range(9), ("attention", "the feed-forward part"))
    names = ["the start", *(f"what {part} of block {i} adds" for i, part in adds)]
    known = [
        Mistake(
            "The last entry is the pathway itself, not what the last part adds.",
            sign=lambda got, right, *_: same(got[-1], sum(right)),
        ),
        Mistake(
            "The first entry should be x, as it came in. Yours is what stands on the "
            "pathway at the end: += has changed it.",
            sign=lambda got, right, *_: same(got[0], sum(right)),
        ),
    ]
    hint = "Note down what a part says, then add it: x = x + said."
    how: dict[str, Any] = {"work": work, "value_names": names, "hint": hint}
    compare(terms, TERMS, cases, known, **how)
    return "4 stacks, one of them your own: the start, and what each part adds to it."


def _alike(gone: torch.Tensor, dim: int) -> bool:
    return bool((gone == gone.narrow(dim, 0, 1)).all())


def _dropout_problem(
    x: torch.Tensor, p: float, outs: torch.Tensor, quiet: torch.Tensor
) -> str | None:
    """What is wrong in training, or in evaluation; None if nothing is."""
    if not same(quiet, x):
        what = "With training=False x should come back as it is"
        factors = quiet / x
        if factors.max() - factors.min() < 1e-4:
            what += f"; yours is x times {factors.max():.4g}: only training may scale"
        elif (quiet == 0).any():
            what += "; in yours numbers vanish then, too"
            if same(outs, x.expand_as(outs)):
                what = "The switch is the wrong way round: with training=True x comes "
                what += "back as it is, and with training=False numbers vanish"
        return f"{what}."
    gone = outs == 0
    share, factors = gone.double().mean().item(), (outs / x)[~gone]
    if share and any(_alike(gone, d) for d in range(1, gone.dim())):
        return "Whole rows, columns or texts vanish together, not single numbers."
    if abs(share - p) > 0.03:
        more = ", as should survive" if abs(share - (1 - p)) < 0.03 else ""
        if abs(share - torch.distributions.Normal(0, 1).cdf(as_tensor(p))) < 0.03:
            more = ": so many numbers of randn are below p; those of rand are even"
        return f"With p = {p}, {share:.0%} of the numbers vanish{more}."
    if not same(factors, torch.full_like(factors, 1 / (1 - p))):
        has = f"x times {factors[0].item():.4g}"
        if factors.max() - factors.min() > 1e-4:
            has = "multiplied by different numbers"
        return f"With p = {p}, the survivors are {has}; they should be x / (1 - p)."
    if _alike(gone, 0):
        return "Each call drops the same numbers: a seed is set inside."
    if len({int(call.sum()) for call in gone}) == 1:
        return "Each call drops exactly as many: each number should have its own luck."


DROPOUT_BY_HAND = Solution(
    """
def dropout_by_hand(x, p, training):
    if not training:
        return x
    survives = torch.rand(x.shape) >= p
    return x * survives / (1 - p)
""",
)


@exercise("05.3 Dropout with a switch", DROPOUT_BY_HAND)
def check_dropout(dropout: Any) -> str:
    """dropout(x, p, training) -> like x, thinned out in training only."""

    def work(dropout: Callable, x: torch.Tensor, p: float) -> bool | None:
        torch.default_generator.manual_seed(1)
        outs = [dropout(x.clone(), p, mode) for mode in [True] * 5 + [False]]
        if any(out is None or out is ... for out in outs):
            return None
        for out in map(as_tensor, outs):
            if out is None or out.shape != x.shape:
                has = "no tensor" if out is None else tuple(out.shape)
                what = f"x of shape {tuple(x.shape)} goes in, but {has} comes out."
                raise Explained(what, "Multiply x by a mask of its own shape.")
        *outs, quiet = map(tensor_of, outs)
        if what := _dropout_problem(x.double(), p, torch.stack(outs), quiet):
            hint = "In training: mask = torch.rand(x.shape) >= p, division by 1 - p."
            if "training=False" in what:
                hint = "Begin with: if not training: return x"
            raise Explained(what, hint)
        dropout(x, p, True)  # is x changed?
        return True

    some = [(randn(100, 50), 0.25), (randn(20, 30, 8), 0.8)]
    cases = [(x + x.sign(), p) for x, p in some]  # no zeros of its own
    compare(dropout, DROPOUT_BY_HAND, cases, work=work)
    return "the share that vanishes, the mean, new zeros each call, quiet in evaluation"


HAND_NORM = Solution(
    """
class HandNorm(nn.Module):
    def __init__(self, n_embd, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(n_embd))
        self.beta = nn.Parameter(torch.zeros(n_embd))
        self.eps = eps

    def forward(self, x):  # (B, T, n_embd)
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.pow(2).mean(dim=-1, keepdim=True)
        normed = centred / (variance + self.eps).sqrt()
        return self.gamma * normed + self.beta
""",
    Mistake(
        "eps stands beside the root; it belongs under it, with the variance.",
        [
            (
                "centred / (variance + self.eps).sqrt()",
                "centred / (variance.sqrt() + self.eps)",
            )
        ],
    ),
    Mistake(
        "Your mean and variance run over the positions; they should run over one "
        "position's channels.",
        [
            ("x.mean(dim=-1,", "x.mean(dim=1,"),
            (
                "mean(dim=-1, keepdim=True)\n        normed",
                "mean(dim=1, keepdim=True)\n        normed",
            ),
        ],
    ),
    Mistake(
        "The bug is still there: change the last position, and those before it move.",
        [("dim=-1", "dim=(1, 2)")],
        hint="Over which dimensions does your mean run, and over which should it?",
        untouched=True,
    ),
    Mistake(
        "You take all positions so far together; each should be normed by itself.",
        [
            (
                "x.mean(dim=-1, keepdim=True)",
                "(means := [v.mean(-1, True).cumsum(1) / torch.arange(1, x.shape[1] + "
                "1)[:, None] for v in (x, x**2)])[0]",
            ),
            ("centred.pow(2).mean(dim=-1, keepdim=True)", "means[1] - means[0]**2"),
        ],
    ),
    Mistake(
        "gamma multiplies beta, too; beta is added behind it.",
        [("self.gamma * normed + self.beta", "self.gamma * (normed + self.beta)")],
    ),
    Mistake(
        "The future is hidden, but the variance is divided by n_embd - 1.",
        [("centred.pow(2).mean(", "x.var(")],
    ),
    Mistake(
        "You take all positions so far together; each should be normed by itself.",
        [
            (
                "x.mean(dim=-1, keepdim=True)",
                "x.mean(dim=-1, keepdim=True).cumsum(1) / torch.arange(1, "
                "x.shape[1] + 1)[:, None]",
            ),
            (
                "centred.pow(2).mean(dim=-1, keepdim=True)",
                "centred.pow(2).mean(dim=-1, keepdim=True).cumsum(1) / "
                "torch.arange(1, x.shape[1] + 1)[:, None]",
            ),
        ],
    ),
    Mistake(
        "One mean and one variance for the whole batch: every position "
        "of every text moves with all others. Each should have its own.",
        [
            ("dim=-1, keepdim=True", ""),
        ],
    ),
)


@exercise("05.4 The position that knew too much", HAND_NORM)
def check_norm(make_norm: Any) -> str:
    """make_norm(n_embd) -> a LayerNorm, (B, T, n_embd) -> (B, T, n_embd)."""

    def work(make_norm: Callable, x: torch.Tensor) -> Any:
        norm, C = make_norm(x.shape[-1]), x.shape[-1]
        starts = {tuple(p.tolist()) for p in norm.parameters()}
        if starts != {(1.0,) * C, (0.0,) * C}:
            what = "gamma (ones at first) and beta (zeros) should be as they were."
            raise Explained(what, "Mend forward.")
        for p in norm.parameters():
            p.data = randn(C, seed=1 if p[0] else 2)  # of gamma, and of beta
        return norm.eval()(x)

    cases = []
    for C in (3, 6, 8):
        x = randn(2, 4, C) + 1
        cases += [(some,) for some in (x[:1, :2], 1e-3 * x[:1, :2], x)]
    hint = "For one position: (its channels - their mean) / sqrt(variance + eps)."
    compare(make_norm, HAND_NORM, cases, work=work, hint=hint)
    return "3 shapes, large and tiny numbers, each position by itself, gamma and beta"
