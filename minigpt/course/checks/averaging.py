"""The exercises of lesson 02: means of the past, fading memories and two bugs."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.course.checks.exercise import exercise
from minigpt.course.checks.results import same
from minigpt.data import CharTokenizer

TOY = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])  # the notebook's, (1, T, C)
TWO = torch.tensor([[[1.0], [3.0]], [[5.0], [9.0]]])  # (B, T, C) = (2, 2, 1)


@exercise(
    "02.1 The present included",
    cases=[(TOY, 1), (TOY, 0), (TOY, 2), (TWO, 1)],
    fresh=lambda: [(torch.randn(2, 5, 3), 2), (torch.randn(3, 4, 6), 1)],
    hint="A slice a:b ends with b - 1. Which dimension of x (B, T, C) is time?",
)
def mean_so_far(x: torch.Tensor, t: int) -> torch.Tensor:
    """A function of x (B, T, C) and t that returns (B, C)."""
    return x[:, : t + 1].mean(dim=1)  # (B, t + 1, C) -> (B, C)


mean_so_far.mistakes("""
You divide by T, but there are only t + 1 positions so far.
    .mean(dim=1) -> .sum(dim=1) / x.shape[1]
""")
check_mean_so_far = mean_so_far.check


@exercise(
    "02.2 A memory that fades",
    cases=[(TOY, math.log(2)), (TOY, 0.0), (TWO, 1.0), (TOY, 0), (TOY, 50.0)],
    fresh=lambda: [
        (torch.randn(2, 5, 3), 0.5),
        (torch.randn(3, 4, 1), 2.0),
        (torch.randn(2, 1, 4), 1.0),
        (torch.randn(1, 4, 2), 50.0),  # e^150 is infinite
    ],
    hint="Hide the future before the softmax. A step back must lower the score.",
)
def fading_average(x: torch.Tensor, rate: float) -> torch.Tensor:
    """A function of x (B, T, C) and rate that returns (B, T, C)."""
    T = x.shape[1]
    time = torch.arange(T)
    scores = -rate * (time[:, None] - time).float()  # (T, T)
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = scores.masked_fill(~past, float("-inf"))
    return F.softmax(scores, dim=-1) @ x  # (T, T) @ (B, T, C)


fading_average.mistakes("""
Your weights don't sum to one: there is an exp, but nothing divides by the sum.
    F.softmax(scores, dim=-1) -> scores.exp()
You hide the future after the softmax. By then it has taken its share, so the rows no
longer sum to one.
    scores = scores.masked_fill(~past, float("-inf")) -> pass
    dim=-1) @ x -> dim=-1).tril() @ x
    or
    time).float() -> time).abs().float()
    scores = scores.masked_fill(~past, float("-inf")) -> pass
    dim=-1) @ x -> dim=-1).tril() @ x
Your weights fall from the beginning onward, so the first position weighs the most. They
should fall from the present backward.
    (time[:, None] - time) -> time.expand(T, T)
A hidden score of 0 isn't hidden: e⁰ is 1. Hide the future with -inf.
    past, float("-inf") -> past, 0.0
""")
check_fading_average = fading_average.check


def _with_or_without_first(nats_per_character: Callable, text: str) -> Any:
    """The loss; if it is right but for the first character, the one with it."""
    loss, right = nats_per_character(text), globals()["nats_per_character"]
    (shorter,) = right.made(right.edited("(probs.log(), ids)", SHIFTED))
    return right(text) if same(loss, shorter(text)) else loss


SHIFTED = "(probs[1:].log(), ids[1:])"


@exercise(
    "02.3 Better than luck",
    cases=[("ab",), ("aab",), ("noon",), ("aaaaaaab",), ("to be or not to be",)],
    fresh=lambda: [
        ("".join("abcde"[i] for i in torch.randint(5, (n,))),) for n in (9, 14)
    ],
    hint="The probabilities for character t may only count the characters 0 to t - 1.",
    work=_with_or_without_first,
)
def nats_per_character(text: str) -> float:
    """A function of a text that returns the mean loss, a number."""
    tokenizer = CharTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))  # (T,)
    one_hot = F.one_hot(ids, tokenizer.vocab_size).float()  # (T, V)
    past = torch.ones(len(ids), len(ids)).tril(diagonal=-1)
    counts = past @ one_hot + 1  # (T, V)
    probs = counts / counts.sum(dim=1, keepdim=True)
    return F.nll_loss(probs.log(), ids).item()


nats_per_character.mistakes("""
The bug is still there: even on letters drawn at random, which nobody can predict, this
program claims to beat guessing.
    torch.ones(len(ids), len(ids)).tril(diagonal=-1)
        -> torch.tril(torch.ones(len(ids), len(ids)))
    Hint: Try the text 'ab' on paper. What may you know when you guess the 'a'? And the
        'b'?
The + 1 wasn't the problem: each character still counts itself before it is guessed.
    torch.ones(len(ids), len(ids)).tril(diagonal=-1)
        -> torch.tril(torch.ones(len(ids), len(ids)))
    past @ one_hot + 1 -> past @ one_hot
The targets are shifted the wrong way: row t + 1 guesses character t.
    torch.ones(len(ids), len(ids)).tril(diagonal=-1)
        -> torch.tril(torch.ones(len(ids), len(ids)))
    (probs.log(), ids) -> (probs[1:].log(), ids[:-1])
""")
check_nats_per_character = nats_per_character.check

# A right mask doesn't look at the scores; these betray one that adds a number to them.
OFFSETS = [5000.0, 1000, 100, 10, 2, 1, 0.5] + [10.0**-n for n in range(1, 13)]
UNLUCKY = (
    torch.arange(19.0).reshape(1, 19, 1),
    torch.ones(1, 19, 1),
    -torch.tensor(OFFSETS).reshape(1, 19, 1),
)
ONE_HOT = torch.eye(4)[[1, 0, 1, 2, 0]].expand(2, 5, 4)
SILENT = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]])
KEYS = torch.tensor([[[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]])


@exercise(
    "02.4 The silent query",
    cases=[(TOY, SILENT, KEYS), (TOY, KEYS, KEYS), UNLUCKY],
    fresh=lambda: [
        (torch.randn(2, 5, 3), ONE_HOT, ONE_HOT * torch.arange(5.0)[:, None]),
        (torch.randn(3, 6, 2), *torch.randn(2, 3, 6, 4)),
    ],
    hint="The mask says which positions are in the future. Make it from ones (T, T).",
)
def attend(x: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """A function of x (B, T, C), q and k that returns (B, T, C)."""
    T = x.shape[1]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = scores.masked_fill(~past, float("-inf"))
    weights = F.softmax(scores, dim=-1)  # (B, T, T)
    return weights @ x  # (B, T, C)


attend.mistakes("""
The bug is still there: a silent query, all zeros, should get the plain mean, but it
gets nan.
    T = x.shape[1] -> pass
    ~past -> future
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
        -> future = torch.tril(scores) == 0
    Hint: Print what each line makes of a silent query. Where does the nan come from?
You've replaced the nan, but not its cause: the silent position gets zeros.
    ~past -> scores.tril() == 0
    weights @ x -> weights.nan_to_num() @ x
A future position whose score is 0 stays visible: your mask is made from the scores.
    ~past -> scores.triu(1) != 0
""")
check_attend = attend.check
