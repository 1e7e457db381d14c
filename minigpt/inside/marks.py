"""Lesson 11: what a head might look for. We mark places and compare them with
attention.

Each of MARKS: idx (B, T) -> marks (B, T, T), True where query t looks for key s. None
of them marks a later place. Source: Olsson et al., In-context Learning and Induction
Heads (2022), for prefix matching.
"""

from functools import partial

import torch


def previous(idx: torch.Tensor, n: int = 1) -> torch.Tensor:
    """The character just before, or the one n places before: s = t - n."""
    T = idx.shape[1]
    back = torch.ones(T, T, dtype=torch.bool).tril(-n).triu(-n)
    return back.expand(len(idx), T, T)


def same(idx: torch.Tensor) -> torch.Tensor:
    """Earlier places with the same character: idx[s] = idx[t], s < t."""
    return (idx[:, :, None] == idx[:, None, :]).tril(-1)


def prefix(idx: torch.Tensor, n: int = 3) -> torch.Tensor:
    """What came after the same n characters earlier: prefix matching.

    idx[s - n : s] = idx[t - n + 1 : t + 1], s <= t.
    """
    equal = idx[:, :, None] == idx[:, None, :]  # (B, T, T)
    match = equal.clone()
    for back in range(1, n):  # and also `back` characters earlier
        match[:, back:, back:] &= equal[:, :-back, :-back]
        match[:, :back] = match[:, :, :back] = False
    marks = torch.zeros_like(match)
    marks[:, :, 1:] = match.tril(-1)[:, :, :-1]  # the next character
    return marks


MARKS = {
    "previous": previous,
    "two back": partial(previous, n=2),
    "three back": partial(previous, n=3),
    "same": same,
    "prefix": prefix,
}


def score(weights: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
    """How much a head attends to the marked places: (B, n_head, T, T) -> (n_head,).

    marks: (B, T, T) bool, True where query t looks for key s. For each query, we add up
    the attention on its marks. Then we take the mean over the queries that have any.
    """
    asked = marks.any(dim=-1)  # (B, T)
    if not asked.any():
        raise ValueError("No query has a mark: give windows with at least one.")
    found = (weights * marks[:, None]).sum(dim=-1)  # (B, n_head, T)
    return (found * asked[:, None]).sum(dim=(0, 2)) / asked.sum()


def by_chance(marks: torch.Tensor) -> float:
    """The score of a head that attends equally to everything it can see: a number."""
    T = marks.shape[-1]
    even = torch.ones(T, T).tril()
    even = even / even.sum(dim=-1, keepdim=True)  # (T, T), rows sum to one
    return score(even.expand(len(marks), 1, T, T), marks).item()
