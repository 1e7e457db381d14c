"""Cases that no check has, made of those that it has.

An answer with one place changed may pass a check's cases by an accident, and two wrong
programs may agree on them. On fresh ones they rarely do.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from minigpt.course.checks.values import is_finite


def fresh_cases(cases: list[tuple], right: Callable) -> list[tuple[tuple, Any]]:
    """Pairs (inputs, right(inputs)), made of the last two cases.

    Those come first whose numbers have changed places, then those with extreme ones:
    large, of the other sign, half of them 0. Inputs that `right` cannot work with are
    left out.
    """
    pairs, some = [], cases[-2:]
    for inputs in [_shuffled(case, seed) for seed in range(3) for case in some]:
        with contextlib.suppress(Exception):
            pairs.append((inputs, right(inputs)))
    for inputs in [_each(extreme, case) for case in some for extreme in EXTREMES]:
        with contextlib.suppress(Exception):
            if is_finite(value := right(inputs)):
                pairs.append((inputs, value))
    return pairs


def _shuffled(inputs: Any, seed: int) -> Any:
    """The same with each tensor in another order along each of its dimensions."""
    generator = torch.Generator().manual_seed(seed)

    def other(x: torch.Tensor) -> torch.Tensor:
        for dim in range(x.dim()):
            x = x.index_select(dim, torch.randperm(x.shape[dim], generator=generator))
        return x

    return _each(other, inputs)


def _half_silent(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.arange(x.numel()).reshape(x.shape) < x.numel() // 2, 0, x)


def _of_any_floats(change: Callable) -> Callable:
    """The same change, only of tensors that may have any floats: they have both signs.

    A probability or a mask would be none any more.
    """

    def changed(x: torch.Tensor) -> torch.Tensor:
        free = x.is_floating_point() and x.numel() and x.min() < 0 < x.max()
        return change(x) if free else x

    return changed


EXTREMES = [
    _of_any_floats(lambda x: 100 * x),
    _of_any_floats(lambda x: -x),
    _of_any_floats(_half_silent),
]


def _each(change: Callable, value: Any) -> Any:
    """A value with change(x) for each tensor x in it."""
    if isinstance(value, dict):
        return {name: _each(change, part) for name, part in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_each(change, part) for part in value)
    return change(value) if isinstance(value, torch.Tensor) else value
