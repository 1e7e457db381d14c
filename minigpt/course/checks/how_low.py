"""The exercises of lesson 07: entropy, perplexity and smoothed counts."""

import math

import torch

from minigpt.course.checks.exercise import exercise

SURE = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
RARE = torch.tensor([0.9994] + [1e-4] * 6)  # unlikely, but not impossible


@exercise(
    "07.1 The entropy of anything",
    cases=[
        (torch.tensor([0.5, 0.25, 0.25]),),
        (torch.tensor([[0.5, 0.5], [0.75, 0.25]]),),
        (SURE,),
        (RARE,),
    ],
    fresh=lambda: [
        ((2 * torch.randn(2, 3)).softmax(-1),),
        ((2 * torch.randn(2, 4, 5)).softmax(-1),),
    ],
    hint="The surprise of an outcome is -ln p. How often does that outcome come up? An "
    "impossible one should add nothing, but 0 * ln 0 is nan.",
)
def entropy(p: torch.Tensor) -> torch.Tensor:
    """A function of p (..., V) that returns the entropies (...), in nats."""
    surprise = -p.clamp(min=1e-12).log()  # (..., V)
    return (p * surprise).sum(dim=-1)


entropy.mistakes("""
This is one number for all rows. Each row should get its own. (p[p > 0] forgets the
rows, too.)
    (dim=-1) -> ()
You count all surprises equally. The surprise of an outcome should count as often as
that outcome comes up, which is p.
    (p * surprise).sum(dim=-1) -> surprise.sum(dim=-1)
    or
    (p * surprise).sum(dim=-1) -> surprise.mean(dim=-1)
""")
check_entropy = entropy.check


@exercise(
    "07.2 How many sides does the die have?",
    cases=[
        ([1.0, 3.0], [6, 3]),
        ([1.5], [10]),
        ([0.5, 1.0, 2.0], [10, 1, 2]),
        ([2.5, 3.0], [1000, 4000]),  # e to the power of 14500 is too much
    ],
    fresh=lambda: [
        ((3 * torch.rand(n)).tolist(), torch.randint(1, 30, (n,)).tolist())
        for n in (2, 5)
    ],
    hint="Think of one long text. How much surprise does it hold, and how many "
    "characters?",
)
def perplexity(nats: list[float], sizes: list[int]) -> float:
    """A function of two lists of equal length that returns a number."""
    total = sum(loss * size for loss, size in zip(nats, sizes))
    return math.exp(total / sum(sizes))


perplexity.mistakes("""
You average the perplexities. Average the losses instead, and take the exponential last.
    loss * size -> math.exp(loss) * size
    math.exp(total / sum(sizes)) -> total / sum(sizes)
A short text counts as much as a long one. Every character should count the same.
    loss * size -> loss
    sum(sizes) -> len(sizes)
""")
check_perplexity = perplexity.check


@exercise(
    "07.3 Pretend observations",
    cases=[
        (
            torch.tensor([[9.0, 3.0, 0.0], [0.0, 0.0, 0.0]]),
            torch.tensor([0.5, 0.25, 0.25]),
            4.0,
        ),
        (
            torch.tensor([[1.0, 0.0, 2.0], [3.0, 5.0, 0.0]]),
            torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]),
            5.0,
        ),
    ],
    fresh=lambda: [
        (torch.randint(5, (4, 5)).float(), torch.randn(4, 5).softmax(-1), 2.0),
        (torch.randint(5, (3, 4)).float(), torch.randn(4).softmax(-1), 20.0),
    ],
    hint="How many observations does a row have now, real and pretend ones together?",
)
def smooth(counts: torch.Tensor, lower: torch.Tensor, strength: float) -> torch.Tensor:
    """A function of counts (R, V), lower (V,) or (R, V) and strength; (R, V)."""
    seen = counts.sum(dim=-1, keepdim=True)  # (R, 1)
    return (counts + strength * lower) / (seen + strength)


smooth.mistakes("""
A row that was never seen gives nan, because 0 / 0 is nan. There `lower` should decide
alone.
    (seen + strength) -> (seen + strength) * seen / seen
    Hint: Add the pretend observations before you divide.
""")
check_smooth = smooth.check
