"""Checks for notebook 02: means of the past, fading memories, leaks and two bugs."""

import math

import torch
import torch.nn.functional as F

from minigpt.averaging import average_attention, average_loop, average_matmul
from minigpt.course.checks.core import Explained, Sign, attempted, compare, exercise
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import as_tensor, describe, randn, same

TOY = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])  # the notebook's, (1, T, C)


@exercise("02.1 The present included")
def check_mean_so_far(mean_so_far):
    """mean_so_far(x, t): (B, T, C) -> (B, C)."""
    small = randn(2, 5, 3)
    cases = [(TOY, 1), (small, 2), (small, 0), (small, 4), (randn(3, 4, 6), 1)]
    hint = "A slice a:b ends with b - 1. Which dimension of x (B, T, C) is time?"
    compare(mean_so_far, Solution("02.1"), cases, hint=hint)
    return "3 shapes and 4 positions; the present is in, the future is out."


@exercise("02.2 A memory that fades")
def check_fading_average(fading_average):
    """fading_average(x, rate): (B, T, C) -> (B, T, C)."""
    cases = [(TOY, math.log(2)), (TOY, 0.0), (randn(2, 5, 3), 0.5)]
    cases += [(randn(3, 4, 1), 2.0), (randn(2, 1, 4), 1.0)]
    hint = "masked_fill before the softmax; a step back must lower the score."
    compare(fading_average, Solution("02.2", math=math), cases, hint=hint)
    return "4 shapes and 5 rates; the future is hidden, and rate 0 is the plain mean."


def _by(weights, x):
    return (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype) @ x


def _triangle(x, diagonal=0):
    return torch.ones(x.shape[1], x.shape[1]).tril(diagonal)


def _total_less_rest(x):
    """The plain mean, honest, but rounded: the future is added, then taken away."""
    x = x.double() / 7  # sevenths have no exact binary form
    rest = x.flip(1).cumsum(dim=1).flip(1) - x
    count = torch.arange(1, x.shape[1] + 1)[:, None]
    return 7 * (x.sum(dim=1, keepdim=True) - rest) / count


def _masked_late(x):
    """Leaks through the sum below the fraction; cos keeps all scores moderate."""
    scores = x.cos() @ x.cos().transpose(-2, -1) / x.shape[-1]
    return F.softmax(scores, dim=-1).tril() @ x


def _last_channel(x):
    leaky = x.mean(dim=1, keepdim=True).expand_as(x)
    return torch.cat([average_matmul(x)[..., :-1], leaky[..., -1:]], dim=-1)


WEAK = "a mask of -10, of which e^-10 passes"
NEXT = "a mean of each place and the next, of which autograd does not know"
HONEST = "the total less the future: honest, but it rounds"
SUSPECTS = {  # black boxes, the simplest first
    "a plain mean, by loops": average_loop,
    "a plain mean, by a product": average_matmul,
    "the mean of everything": lambda x: _by(torch.ones(x.shape[1], x.shape[1]), x),
    NEXT: lambda x: (x + x.roll(-1, 1).detach()) / 2,
    "a mean of the last two": lambda x: _by(_triangle(x).triu(-1), x),
    "attention": lambda x: average_attention(x, x.cos() / x.shape[-1], x.cos()),
    "attention, masked after the softmax": _masked_late,
    "a leak in the last channel only": _last_channel,
    WEAK: lambda x: _by(_triangle(x).clamp(min=math.exp(-10)), x),
    HONEST: _total_less_rest,
}


def _tried(who_hears_whom, average, T):
    torch.manual_seed(0)
    result = who_hears_whom(SUSPECTS[average], T)
    if result is ... or result is None:
        return result
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        what = f"Return two things, heard and causal; this is {describe(result)}."
        raise Explained(what, "return heard, causal")
    heard, causal = map(as_tensor, result)
    if heard is not None and not ((heard == 0) | (heard == 1)).all():
        raise Explained(
            "heard should hold True or False, but yours holds other numbers.",
            "How far must an output move to count? Compare with that.",
        )
    if attempted(result[1]) and (causal is None or causal.numel() != 1):
        raise Explained(
            f"causal should be one True or False; it is {describe(result[1])}.",
            "One conclusion from the whole map: .any() or .all(), without a dim.",
        )
    return tuple(result)


@exercise("02.3 Who hears whom?")
def check_who_hears_whom(who_hears_whom):
    """who_hears_whom(average, T) -> heard (T, T), causal; tried on ten black boxes."""

    def blind(suspect):
        return Sign(lambda got, e, box, T: box == suspect and not same(got[0], e[0]))

    known = {
        "This honest box adds the future and takes it away again: its past moves by "
        "rounding errors, about 1e-15, and you call that hearing.": (
            blind(HONEST),
            "Which change would you tolerate? What is heard moves by far more.",
        ),
        "This box hears the next place in a way unknown to autograd: a gradient "
        "does not tell who hears whom.": (
            blind(NEXT),
            "Change an input, and look whether an output moves.",
        ),
        "All maps are right, but the conclusion is not: causal means no True above the "
        "diagonal; below it, anything goes.": Sign(
            lambda got, e, *_: same(got[0], e[0]), vague=True
        ),
    }
    cases = [(name, 3 + i % 2) for i, name in enumerate(SUSPECTS)]
    hint = "Change input i of a fresh copy: any channel of any row may move."
    how = {"work": _tried, "parts": ("heard", "causal"), "hint": hint}
    compare(who_hears_whom, Solution("02.3"), cases, known, **how)
    return "10 black boxes; two leaks found, and the honest one that rounds acquitted."


@exercise("02.4 Better than luck")
def check_nats_per_character(nats_per_character):
    """nats_per_character(text) -> float; the first character may be left out."""
    solution, texts = Solution("02.4"), ["ab", "aab", "noon", "to be or not to be"]
    shorter = solution.but(("(probs.log(), ids)", "(probs[1:].log(), ids[1:])"))

    def without_first(nats_per_character, text):
        """The loss; where it is right but for the first character, the one with it."""
        loss = nats_per_character(text)
        return solution(text) if same(loss, shorter(text)) else loss

    known = {
        "The loss is infinite: a character that was never seen has probability 0.": (
            Sign(lambda got, *_: as_tensor(got).isinf().all()),
            "Keep the + 1: it gives every character a chance before it has come.",
        ),
    }
    hint = "The probabilities for character t may count characters 0 to t - 1."
    cases = [(text,) for text in texts]
    compare(nats_per_character, solution, cases, known, work=without_first, hint=hint)
    return "4 texts; no character is counted before it has been guessed."


# A right mask does not look at the scores; these betray one that still does.
UNLUCKY = (
    torch.arange(10.0).reshape(1, 10, 1),
    torch.ones(1, 10, 1),
    -torch.tensor([200.0, 1.0] + [10.0**-n for n in range(5, 13)]).reshape(1, 10, 1),
)


@exercise("02.5 The silent query")
def check_attend(attend):
    """attend(x, q, k): (B, T, C) -> (B, T, C), equal to averaging.average_attention."""
    q = torch.tensor([[[1.0, 0], [0, 0], [1, 0]]])
    silent = (TOY, q, torch.tensor([[[1.0, 0], [2, 1], [3, 0]]]))
    one_hot = torch.eye(4)[[1, 0, 1, 2, 0]].expand(2, 5, 4)
    orthogonal = (randn(2, 5, 3), one_hot, one_hot * torch.arange(5.0)[:, None])
    usual = (randn(3, 6, 2), randn(3, 6, 4), randn(3, 6, 5)[..., :4])
    known = {
        "Right on the usual scores, wrong on unlucky ones (here from -200 to -1e-12): "
        "either your mask still depends on the scores, or what you put in the place "
        "of the future is not low enough.": (
            Sign(lambda got, expected, x, *_: x.shape == UNLUCKY[0].shape, vague=True),
            "Make the mask without looking at the scores; fill in -inf.",
        ),
    }
    hint = "The mask says which positions are the future: make it from ones (T, T)."
    cases = [silent, orthogonal, usual, UNLUCKY]
    compare(attend, Solution("02.5"), cases, known, hint=hint)
    return "4 inputs, among them silent queries, scores of zero and tiny ones."
