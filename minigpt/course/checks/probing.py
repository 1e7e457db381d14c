"""Experiments with an answer: what its result depends on, and where it is wrong."""

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.measuring import numbers_of
from minigpt.course.checks.values import Difference, as_tensor, describe, same


def probed(
    got_of: Callable,
    right_of: Callable,
    wrong: list[Difference],
    names: Sequence[str],
    what: str = "your result",
) -> Finding | None:
    """What a change of an input shows. got_of, right_of: functions of the inputs.

    what: how that is called which they give.
    """
    seen = []
    for difference in wrong[:3]:
        try:
            seen.append(_probed(got_of, right_of, difference, names, what))
        except Exception:  # an experiment that fails shows nothing
            seen.append(None)
    kinds = {one and (one.kind, one.details["name"]) for one in seen}
    return seen[0] if len(kinds) == 1 else None


def _probed(
    got_of: Callable,
    right_of: Callable,
    difference: Difference,
    names: Sequence[str],
    what: str,
) -> Finding | None:
    got, right = numbers_of(difference)
    if got is None or right is None or got.shape != right.shape:
        return None
    for i, x in enumerate(difference.inputs):
        name = names[i] if i < len(names) else f"input {i}"
        for changed, dim, at in _nudged(x):
            inputs = list(copy.deepcopy(difference.inputs))
            inputs[i] = changed
            try:
                now_got: Any = as_tensor(got_of(*inputs))
                now_right: Any = as_tensor(right_of(*inputs))
            except Exception:  # not made for such an input
                continue
            if now_got is None or now_right is None:
                continue
            if now_got.shape != got.shape or now_right.shape != right.shape:
                continue
            if dim is None:
                if same(now_got, got, 1e-9) and not same(now_right, right, 1e-6):
                    return found(Kind.DOES_NOT_MOVE, name=name, what=what)
            elif dim < got.dim() and got.shape[dim] == x.shape[dim]:
                moved, may = _moved(now_got, got, dim), _moved(now_right, right, dim)
                if other := sorted(moved - may):
                    where = {"at": at, "dim": dim, "other": other[0]}
                    return found(Kind.MOVES, name=name, what=what, **where)
    return None


def _nudged(x: Any) -> Iterator[tuple[Any, int | None, int]]:
    """Yield (x with other numbers, the dimension and the place of them, or None)."""
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        yield x + 1, None, 0
    if isinstance(x, list) and x and as_tensor(x) is not None:
        yield [part + 1 for part in x], None, 0
    if type(x).__name__ == "ndarray":
        nudged = _nudged(torch.as_tensor(x))
        yield from ((changed.numpy(), dim, at) for changed, dim, at in nudged)
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return
    for dim in range(x.dim() if x.dim() > 1 else 0):
        if x.shape[dim] > 1:
            changed = x.clone()
            changed.select(dim, -1).mul_(1.5).add_(0.25)
            yield changed, dim, x.shape[dim] - 1
    yield x * 1.3 + 0.1 * torch.arange(x.numel()).reshape(x.shape), None, 0


def _moved(now: torch.Tensor, before: torch.Tensor, dim: int) -> set[int]:
    """The places along a dimension at which two tensors differ."""
    off = ~torch.isclose(now, before, atol=1e-6, rtol=1e-4, equal_nan=True)
    others = [d for d in range(off.dim()) if d != dim]
    off = off.any(dim=others) if others else off
    return set(off.nonzero().flatten().tolist())


def placed(wrong: list[Difference], atol: float) -> Finding | None:
    """Where the first case is wrong, if only a part of it is."""
    if pieces := _pieces(wrong[0].got, wrong[0].expected):
        return pieces
    got, right = numbers_of(wrong[0])
    if got is None or right is None or got.shape != right.shape:
        return None
    start: Any = as_tensor(wrong[0].inputs[0]) if wrong[0].inputs else None
    if start is not None and start.shape == got.shape:
        for dim in range(got.dim() if got.dim() > 1 else 0):
            mine, ours = _moved(got, start, dim), _moved(right, start, dim)
            if mine != ours and max(len(mine), len(ours)) < got.shape[dim]:
                what = {"got": _list(mine), "expected": _list(ours)}
                return found(Kind.CHANGED_PLACES, dim=dim, **what)
    listed = isinstance(wrong[0].got, (list, tuple)) and got.dim() == 1
    seen = [(dim, _some_places(wrong[0], dim)) for dim in reversed(range(got.dim()))]
    few_first = sorted(((d, p) for d, p in seen if p), key=lambda pair: pair[1].share)
    for dim, some in few_first:
        every = [_some_places(d, dim) for d in wrong]
        alike = [p for p in every if p and (p.few, p.how) == (some.few, some.how)]
        if some.how == "went wrong" or len(some.few) > 1 or len(alike) > 1:
            along = "Of the places" if listed else f"Along dimension {dim}"
            what = {"some": _list(some.few), "how": some.how}
            return found(Kind.SOME_PLACES, along=along, last=got.shape[dim] - 1, **what)
    return None


class _Places(NamedTuple):
    """The fewer places along a dimension, how they came out, the share of wrong."""

    few: set[int]
    how: str
    share: float


def _some_places(difference: Difference, dim: int) -> _Places | None:
    """Which places along a dimension are wrong; None where none or all of them are.

    Where an input stands at the beginning of the result, as a prompt does in a text,
    and all behind it is wrong, that counts as all.
    """
    got, right = numbers_of(difference)
    if got is None or got.shape != right.shape or dim >= got.dim():
        return None
    off, n = _moved(got, right, dim), got.shape[dim]
    if n < 3 or not 0 < len(off) < n:
        return None
    for x in filter(torch.is_tensor, difference.inputs):
        if x.dim() == right.dim() and x.shape[dim] < n:
            begin = right.narrow(dim, 0, x.shape[dim])
            if begin.shape == x.shape and same(begin, x):
                if off == {*range(x.shape[dim], n)}:
                    return None
    if len(off) <= n // 2:
        return _Places(off, "went wrong", len(off) / n)
    return _Places(set(range(n)) - off, "came out right", len(off) / n)


def _list(places: set[int]) -> str:
    word = "place" if len(places) == 1 else "places"
    return f"{word} {', '.join(map(str, sorted(places)))}" if places else "nothing"


def _entry(value: Any) -> Any:
    return describe(value) if isinstance(value, torch.Tensor) else value


def _pieces(got: Any, right: Any) -> Finding | None:
    """Where two texts, lists or dictionaries begin to differ."""
    if isinstance(got, dict) and isinstance(right, dict):
        for key in [*right, *(k for k in got if k not in right)]:
            one, other = got.get(key, "nothing"), right.get(key, "nothing")
            if not same(one, other):
                shown = {"got": _entry(one), "expected": _entry(other)}
                return found(Kind.ENTRY, key=repr(key), **shown)
    alike = type(got) is type(right) and isinstance(got, (str, bytes, list))
    if not alike or as_tensor(right) is not None:
        return None
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(got, right))
    at = len(list(pairs))
    if not at and got[-1:] != right[-1:]:
        return None  # two words, rather than one that has changed
    for more, one, other in ((True, got, right), (False, right, got)):
        longer = len(one) - len(other)
        if longer > 0 and one[:at] + one[at + longer :] == other:
            kind = Kind.PIECE_TOO_MANY if more else Kind.PIECE_MISSING
            return found(kind, at=at, piece=repr(one[at : at + longer]))
    one, other = got[at : at + 1], right[at : at + 1]
    return found(Kind.FIRST_WRONG, at=at, got=repr(one), expected=repr(other))


def later_shape(wrong: list[Difference]) -> Finding | None:
    """The first case with a wrong shape, where the smallest has only wrong numbers."""
    for d in wrong:
        got, right = numbers_of(d)
        if got is None or right is None:
            return None
        if got.shape != right.shape:
            shapes = {"got": tuple(got.shape), "expected": tuple(right.shape)}
            return found(Kind.LATER_SHAPE, inputs=describe(d.inputs[0]), **shapes)
    return None
