"""Checks for notebook 02: means of the past, fading memories and two bugs."""

import math

import torch

from minigpt.course.checks.core import compare, exercise
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import randn, same

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


@exercise("02.3 Better than luck")
def check_nats_per_character(nats_per_character):
    """nats_per_character(text) -> float; the first character may be left out."""
    solution, texts = Solution("02.3"), ["ab", "aab", "noon", "to be or not to be"]
    shorter = solution.but(("(probs.log(), ids)", "(probs[1:].log(), ids[1:])"))

    def without_first(nats_per_character, text):
        """The loss; where it is right but for the first character, the one with it."""
        loss = nats_per_character(text)
        return solution(text) if same(loss, shorter(text)) else loss

    hint = "The probabilities for character t may count characters 0 to t - 1."
    cases = [(text,) for text in texts]
    compare(nats_per_character, solution, cases, work=without_first, hint=hint)
    return "4 texts; no character is counted before it has been guessed."


# A right mask does not look at the scores; these betray one that still does.
UNLUCKY = (
    torch.arange(10.0).reshape(1, 10, 1),
    torch.ones(1, 10, 1),
    -torch.tensor([200.0, 1.0] + [10.0**-n for n in range(5, 13)]).reshape(1, 10, 1),
)


@exercise("02.4 The silent query")
def check_attend(attend):
    """attend(x, q, k): (B, T, C) -> (B, T, C), equal to averaging.average_attention."""
    q = torch.tensor([[[1.0, 0], [0, 0], [1, 0]]])
    silent = (TOY, q, torch.tensor([[[1.0, 0], [2, 1], [3, 0]]]))
    one_hot = torch.eye(4)[[1, 0, 1, 2, 0]].expand(2, 5, 4)
    orthogonal = (randn(2, 5, 3), one_hot, one_hot * torch.arange(5.0)[:, None])
    usual = (randn(3, 6, 2), randn(3, 6, 4), randn(3, 6, 5)[..., :4])
    hint = "The mask says which positions are the future: make it from ones (T, T)."
    cases = [silent, orthogonal, usual, UNLUCKY]
    compare(attend, Solution("02.4"), cases, hint=hint)
    return "4 inputs, among them silent queries, scores of zero and tiny ones."
