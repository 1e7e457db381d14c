"""The exercises of lesson 05: a V, the pathway's terms, dropout, and a bug."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.block import Block
from minigpt.course.checks.exercise import Wrong, exercise


def _relu_between(W1: Any, W2: Any, x: float) -> float:
    """relu(x @ W1) @ W2 for one number."""
    first, second = torch.as_tensor(W1).double(), torch.as_tensor(W2).double()
    if first.shape != (1, 2) or second.shape != (2, 1):
        raise Wrong(
            "W1 should have the shape (1, 2) and W2 the shape (2, 1). Yours have "
            f"{tuple(first.shape)} and {tuple(second.shape)}.",
            "W1 is one row, [[a, b]]. W2 is two rows, [[c], [d]].",
        )
    if first.prod() > 0:
        raise Wrong(
            "Both numbers of W1 have the same sign. For every x of the other sign, "
            "both hidden numbers are 0, and so is the result."
        )
    return (F.relu(x * first) @ second).item()


@exercise(
    "05.1 A V out of straight lines",
    cases=[(-2.0,), (3.0,), (0.0,), (10.0,), (-0.5,)],
    work=_relu_between,
    returns_answers=True,
    call="check_v(W1, W2)",
    hint="Which of the two hidden numbers isn't 0 for this x? What does W2 make of it?",
)
def v() -> tuple:
    """Two lists, W1 and W2."""
    W1 = [[1.0, -1.0]]
    W2 = [[1.0], [1.0]]
    return W1, W2


v.mistakes("""
This is x itself, a straight line: relu(x) - relu(-x). What do you get for a negative x?
    W2 = [[1.0], [1.0]] -> W2 = [[1.0], [-1.0]]
""")
check_v = v.check


class _Plain(nn.Module):
    """A block whose parts anybody can calculate."""

    norm1 = staticmethod(lambda x: x + 1)
    attention = staticmethod(lambda x: 2 * x)
    norm2 = staticmethod(lambda x: x - 1)
    feed_forward = staticmethod(lambda x: 3 * x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


PLAIN = "norm1: + 1, attention: * 2, norm2: - 1, feed_forward: * 3"


@exercise(
    "05.2 The pathway is a sum",
    cases=[
        (PLAIN, torch.tensor([[[1.0, 2.0]]]), nn.Sequential(_Plain())),
        (PLAIN, torch.tensor([[[1.0]]]), nn.Sequential(_Plain(), _Plain())),
    ],
    fresh=lambda: [
        ("random", torch.randn(2, 5, 6), nn.Sequential(Block(6, 3), Block(6, 2))),
        ("random", torch.randn(1, 3, 4), nn.Sequential(*[Block(4, 2)] * 5)),
    ],
    work=lambda terms, parts, x, blocks: terms(x, blocks),
    hint="Go through the blocks as the model does. Keep what each part says before you "
    "add it to the pathway.",
)
def terms(x: torch.Tensor, blocks: list[Block]) -> list:
    """A function of x and blocks that returns a list of tensors like x."""
    found = [x]
    for block in blocks:
        said = block.attention(block.norm1(x))
        found.append(said)
        x = x + said
        said = block.feed_forward(block.norm2(x))
        found.append(said)
        x = x + said
    return found


terms.mistakes("""
Both parts of a block read the same x. The second one should hear what attention has
added.
    norm2(x) -> norm2(x - found[-1])
The LayerNorms are missing: each part reads norm(x), not x.
    block.norm1 ->
    block.norm2 ->
You list the pathway after each part. The exercise asks for what each part adds.
    found.append(said)
            x = x + said -> x = x + said
            found.append(x)
The first entry should be x as it came in. Yours is what's on the pathway at the end:
`x += ...` changes x itself.
    x = x + said -> x += said
Every part reads the start. Each one should hear what all parts before it have added.
    x = x + said -> pass
""")
check_terms = terms.check


def _thinned(dropout: Callable, x: torch.Tensor, p: float, training: bool) -> Any:
    """In training what happens to many numbers in four calls, rounded."""
    if not training:
        return dropout(x, p, training)
    outs = torch.stack([dropout(x, p, training) for _ in range(4)])
    gone, kept = (outs == 0).double(), (outs / x)[outs != 0]
    counts = {int(call.sum()) for call in gone}
    return {
        "share that vanishes": round(gone.mean().item(), 1),
        "in two rows at once": round((gone[:, 1:] * gone[:, :-1]).mean().item(), 1),
        "in two columns": round((gone[..., 1:] * gone[..., :-1]).mean().item(), 1),
        "in two calls": round((gone[1:] * gone[:-1]).mean().item(), 1),
        "equally many in each call": len(counts) == 1,
        "survivors multiplied by": (kept.min().item(), kept.max().item()),
    }


FEW = torch.tensor([[2.0, -4.0], [6.0, 8.0]])
MANY = torch.arange(1.0, 2001.0).view(50, 40)


@exercise(
    "05.3 Dropout with a switch",
    cases=[(FEW, 0.5, False), (MANY, 0.3, True), (MANY, 0.7, True), (MANY, 0.0, True)],
    work=_thinned,
    hint="What should happen in training, and what should happen otherwise? If a share "
    "p vanishes, what keeps the mean as it was?",
)
def dropout_by_hand(x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """A function of x, p and training that returns a tensor like x."""
    if not training:
        return x
    survives = torch.rand(x.shape) >= p
    return x * survives / (1 - p)


dropout_by_hand.mistakes("""
A number survives with probability p in your code. It should vanish with probability p.
    torch.rand(x.shape) >= p -> torch.rand(x.shape) < p
Whole rows or columns vanish together, not single numbers.
    torch.rand(x.shape) -> torch.rand(x.shape[:-1])[:, None]
    or
    torch.rand(x.shape) -> torch.rand(x.shape[-1])
Every call drops the same numbers. Is there a seed inside, or do you write into x?
    survives = -> torch.manual_seed(1)
        survives =
Every call drops exactly the same share of the numbers. Each number should vanish or
survive on its own, whatever happens to the others.
    torch.rand(x.shape) -> torch.randperm(x.numel()).view(x.shape) / x.numel()
""")
check_dropout = dropout_by_hand.check


def _normed(
    HandNorm: Callable, x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor
) -> tuple:
    """x through a new norm, and through one with these numbers."""
    norm = HandNorm(x.shape[-1])
    as_made = norm(x)
    for p in norm.parameters():
        p.data.copy_(gamma if p.any() else beta)
    return as_made, norm(x)


ROWS = torch.tensor([[[0.0, 0.0, 4.0, 4.0], [3.0, 9.0, 3.0, 9.0]]])  # (1, 2, 4)
ONES, ZEROS = torch.ones(4), torch.zeros(4)


@exercise(
    "05.4 The position that knew too much",
    cases=[
        (ROWS, ONES, ZEROS),
        (ROWS, torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.0, 5.0, 0.0, 7.0])),
        (ROWS / 1000, ONES, ZEROS),
        (torch.cat([ROWS, 5 * ROWS]), ONES, ZEROS),
    ],
    fresh=lambda: [
        (torch.randn(2, 4, C) + 1, torch.randn(C), torch.randn(C)) for C in (3, 6)
    ],
    work=_normed,
    values=("as made", "with gamma and beta"),
    call="check_norm(HandNorm)",
    hint="Take the first position by itself: what are the mean and the variance of its "
    "channels?",
)
class HandNorm(nn.Module):
    """A class like nn.LayerNorm, made with n_embd."""

    def __init__(self, n_embd: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(n_embd))
        self.beta = nn.Parameter(torch.zeros(n_embd))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)  # (B, T, n_embd)
        variance = centred.pow(2).mean(dim=-1, keepdim=True)
        normed = centred / (variance + self.eps).sqrt()
        return self.gamma * normed + self.beta


HandNorm.mistakes("""
The bug is still there: change the last position, and the ones before it move.
    dim=-1 -> dim=(1, 2)
    Hint: Print the shape of the mean. How many means should there be?
Only the mean was corrected: the variance is still taken over all positions.
    pow(2).mean(dim=-1 -> pow(2).mean(dim=(1, 2)
The future is hidden now, but this variance divides by n_embd - 1. LayerNorm divides by
n_embd.
    centred.pow(2).mean( -> x.var(
""")
check_norm = HandNorm.check
