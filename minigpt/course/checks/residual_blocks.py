"""The exercises of lesson 05: a V, the pathway's terms, dropout, and a bug."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.block import Block
from minigpt.course.checks.exercise import Wrong, exercise
from minigpt.course.checks.results import as_tensor, same
from minigpt.language_model import LanguageModel


def _relu_between(W1: Any, W2: Any, x: float) -> float:
    """relu(x @ W1) @ W2 for one number."""
    for name, given, shape in (("W1", W1, (1, 2)), ("W2", W2, (2, 1))):
        if (W := as_tensor(given)) is None or W.shape != shape:
            has = "is no matrix" if W is None else f"has the shape {tuple(W.shape)}"
            raise Wrong(
                f"{name} {has}, but it should have the shape {shape}.",
                "W1 is one row, [[a, b]]. W2 is two rows, [[c], [d]].",
            )
    first, second = torch.as_tensor(W1).double(), torch.as_tensor(W2).double()
    for sign, other in ((1, "negative"), (-1, "positive")):
        if (sign * first > 0).all():
            raise Wrong(
                f"Both numbers of W1 have the same sign, so for every {other} x both "
                f"hidden numbers are 0, and so is the result."
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
Your V is upside down.
    W2 = [[1.0], [1.0]] -> W2 = [[-1.0], [-1.0]]
""")
check_v = v.check


class _Plain(nn.Module):
    """A block whose parts anybody can calculate."""

    def norm1(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    def norm2(self, x: torch.Tensor) -> torch.Tensor:
        return x - 1

    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3 * x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


def _blocks(n_layer: int, n_embd: int, n_head: int) -> nn.Sequential:
    blocks = nn.Sequential(*[Block(n_embd, n_head) for _ in range(n_layer)])
    for p in blocks.parameters():
        nn.init.normal_(p, std=0.5)  # gamma and beta, too
    return blocks.eval()


def _stacks(model: LanguageModel, idx: torch.Tensor) -> list[tuple]:
    plain = "norm1: + 1, attention: * 2, norm2: - 1, feed_forward: * 3"
    with torch.no_grad():
        own = (
            model.token_embedding(idx) + model.position_embedding.weight[: idx.shape[1]]
        )
    one, two = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.0]]])
    return [
        (plain, one, nn.Sequential(_Plain())),
        (plain, two, nn.Sequential(_Plain(), _Plain())),
        ("those of your model", own, model.body[:-1]),
    ]


def _terms(terms: Callable, parts: str, x: torch.Tensor, blocks: nn.Sequential) -> Any:
    return terms(x, blocks)


@exercise(
    "05.2 The pathway is a sum",
    cases=_stacks,
    fresh=lambda model, idx: [
        ("random", torch.randn(2, 5, 6), _blocks(2, 6, 3)),
        ("random", torch.randn(1, 3, 4), _blocks(5, 4, 2)),
    ],
    work=_terms,
    call="check_terms(terms, my_model, my_x)",
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
What attention says never gets onto the pathway, so no later part hears it.
    x = x + said
            said = block.feed_forward -> said = block.feed_forward
The LayerNorms are missing: each part reads norm(x), not x.
    block.norm1 ->
    block.norm2 ->
norm1 and norm2 are swapped: norm1 belongs to attention, norm2 to the feed-forward part.
    norm1 -> norm0
    norm2 -> norm1
    norm0 -> norm2
Your list has all attention parts first, and then all feed-forward parts. The exercise
asks for block after block.
    return found -> return [found[0], *found[1::2], *found[2::2]]
The norm comes after each part here. In these blocks it comes before: part(norm(x)).
    attention(block.norm1(x)) -> norm1(block.attention(x))
    feed_forward(block.norm2(x)) -> norm2(block.feed_forward(x))
You have one entry per block. Attention and the feed-forward part each get their own.
    return found
        -> return [found[0], *(a + b for a, b in zip(found[1::2], found[2::2]))]
You list the pathway after each part. The exercise asks for what each part adds.
    found.append(said)
            x = x + said -> x = x + said
            found.append(x)
Every part reads the start. Each one should hear what all parts before it have added.
    x = x + said -> pass
""")
terms.wrong(
    "The last entry is the whole pathway, not what the last part adds.",
    sign=lambda got, right, *_: same(got[-1], sum(right)),
)
terms.wrong(
    "The first entry should be x as it came in. Yours is what's on the pathway at the "
    "end: `x += ...` changes x itself.",
    sign=lambda got, right, *_: same(got[0], sum(right)),
)
check_terms = terms.check


def _thinned(dropout: Callable, x: torch.Tensor, p: float, training: bool) -> Any:
    """In training the share that vanishes, and what happens to the others."""
    if not training:
        return dropout(x, p, training)
    outs = [dropout(x, p, training) for _ in range(5)]
    if any(out is None or out is ... for out in outs):
        return outs[0]
    for out in map(as_tensor, outs):
        if out is None or out.shape != x.shape:
            has = "no tensor" if out is None else f"the shape {tuple(out.shape)}"
            raise Wrong(f"x has the shape {tuple(x.shape)}, but your result has {has}.")
    gone = torch.stack([torch.as_tensor(out) == 0 for out in outs])
    share = gone.double().mean().item()
    if 0 < share < 1:
        if any((gone == gone.narrow(d, 0, 1)).all() for d in range(1, gone.dim())):
            raise Wrong("Whole rows or columns vanish together, not single numbers.")
        if (gone == gone[0]).all():
            raise Wrong("Every call drops the same numbers. Is there a seed inside?")
        if len({int(call.sum()) for call in gone}) == 1:
            raise Wrong(
                "Every call drops exactly the same count of numbers. Each number "
                "should vanish or survive on its own, whatever happens to the others."
            )
    factors = (torch.stack([torch.as_tensor(out) for out in outs]) / x)[~gone]
    if len(factors) and factors.max() - factors.min() > 1e-4:
        raise Wrong("The survivors aren't all multiplied by the same number.")
    likely = p, 1 - p, torch.distributions.Normal(0, 1).cdf(as_tensor(p)).item()
    share = next((s for s in likely if abs(share - s) < 0.02), round(share, 2))
    factor = factors.double().mean().item() if len(factors) else None
    return {"share that vanishes": share, "survivors multiplied by": factor}


FEW = torch.tensor([[2.0, -4.0], [6.0, 8.0]])
MANY = torch.arange(1.0, 5001.0).view(100, 50)


@exercise(
    "05.3 Dropout with a switch",
    cases=[
        (FEW, 0.5, False),
        (MANY, 0.25, True),
        (MANY.view(20, 50, 5), 0.6, True),
        (MANY, 0.0, True),
    ],
    work=_thinned,
    hint="What should happen in training, and what otherwise? If a share p vanishes, "
    "what keeps the mean as it was?",
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
The survivors aren't rescaled, so the mean shrinks when numbers vanish.
    / (1 - p) ->
You divide the survivors by p. A share of 1 - p survives: what keeps the mean?
    / (1 - p) -> / (p or 1)
""")
dropout_by_hand.wrong(
    "With training=False numbers vanish, too. They should all come back as they are.",
    sign=lambda got, _, x, p, training: not training and (got == 0).any(),
)
dropout_by_hand.wrong(
    "The switch is the wrong way round: with training=True x comes back as it is, and "
    "with training=False numbers vanish.",
    sign=lambda got, right, x, p, training: (
        got == {"share that vanishes": 0.0, "survivors multiplied by": 1.0}
        if training
        else not same(got, right)
    ),
)
dropout_by_hand.wrong(
    "You use randn: so many of its numbers are below p. Those of rand are spread "
    "evenly between 0 and 1.",
    sign=lambda got, right, x, p, training: (
        got["share that vanishes"] not in (p, 1 - p)
        and abs(_normal(p) - got["share that vanishes"]) < 0.02
    ),
)
check_dropout = dropout_by_hand.check


def _normal(p: float) -> float:
    """How likely a number of randn is below p."""
    return torch.distributions.Normal(0, 1).cdf(torch.tensor(p)).item()


def _normed(
    HandNorm: Callable, x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor
) -> Any:
    """x through a norm with these numbers."""
    norm, C = HandNorm(x.shape[-1]), x.shape[-1]
    starts = sorted(tuple(p.tolist()) for p in norm.parameters())
    if starts != [(0.0,) * C, (1.0,) * C]:
        raise Wrong(
            "gamma should start as n_embd ones and beta as n_embd zeros, as before.",
            "The bug is in forward.",
        )
    for p in norm.parameters():
        p.data = gamma if p[0] else beta
    return norm.eval()(x)


ROWS = torch.tensor([[[0.0, 0.0, 4.0, 4.0], [3.0, 9.0, 3.0, 9.0]]])  # (1, 2, 4)
ONES, ZEROS = torch.ones(4), torch.zeros(4)


def _rows() -> list[tuple]:
    numbers = [torch.randn(2, 4, C) + 1 for C in (3, 6)]
    drawn = [(x, torch.randn(x.shape[-1]), torch.randn(x.shape[-1])) for x in numbers]
    return [*drawn, (numbers[0] * 1e-3, *drawn[0][1:])]


@exercise(
    "05.4 The position that knew too much",
    cases=[
        (ROWS, ONES, ZEROS),
        (ROWS, torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.0, 5.0, 0.0, 7.0])),
        (ROWS / 1000, ONES, ZEROS),
        (torch.cat([ROWS, 5 * ROWS]), ONES, ZEROS),
    ],
    fresh=_rows,
    work=_normed,
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
eps is added to the root. It belongs under the root, with the variance.
    (variance + self.eps).sqrt() -> (variance.sqrt() + self.eps)
Your mean and variance run over the positions. They should run over the channels of one
position.
    dim=-1 -> dim=1
Only the mean was corrected: the variance is still taken over all positions.
    pow(2).mean(dim=-1 -> pow(2).mean(dim=(1, 2)
Only the variance was corrected: the mean is still taken over all positions.
    x.mean(dim=-1 -> x.mean(dim=(1, 2)
gamma multiplies beta, too. Add beta afterwards.
    self.gamma * normed + self.beta -> self.gamma * (normed + self.beta)
The future is hidden now, but this variance divides by n_embd - 1. LayerNorm divides by
n_embd.
    centred.pow(2).mean( -> x.var(
""")
check_norm = HandNorm.check
