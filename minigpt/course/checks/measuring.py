"""What is measurably wrong with a result, where no mistake is known that gives it.

Each look takes one Difference and returns a Finding, or None. It is told only if it
says the same of all differences; UNSURE says that this one cannot tell.
"""

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.values import as_tensor, describe, plain, same


class Difference(NamedTuple):
    """A case, what the solution gives and what the answer gives."""

    inputs: tuple
    expected: Any
    got: Any


UNSURE = found(Kind.UNKNOWN)


def measured(differences: list[Difference], atol: float) -> Finding | None:
    """What all differences show."""
    looks = _another_kind, _not_numbers, _scaled, _out_of_place, _another_shape, _sums
    for look in looks:
        said = []
        for difference in differences:
            try:
                said.append(look(difference, atol))
            except Exception:  # a symptom that cannot be looked for is none
                said.append(None)
        said = [one for one in said if one is not UNSURE] or [None]
        first_says = look in (_another_kind, _not_numbers)
        if said[0] and (first_says or len({one and one.kind for one in said}) == 1):
            return said[0]
        if all(said) and look is _another_shape:
            return found(
                Kind.SHAPE, **{k: said[0].parts[k] for k in ("got", "expected")}
            )
    return None


def hopeless(differences: list[Difference]) -> bool:
    """Whether no slip need be looked for: nan or no numbers say more themselves."""
    got, expected = _numbers(differences[0])
    if expected is None:
        return False
    if got is None:
        return not isinstance(differences[0].got, (tuple, list, dict))
    every = [_numbers(d)[0] for d in differences]
    some = (n is None or n.isfinite().any() or not n.numel() for n in every)
    return bool(expected.isfinite().all()) and not any(some)


def _numbers(difference: Difference):
    return as_tensor(difference.got), as_tensor(difference.expected)


def _another_kind(difference, atol):
    """A pair for a tensor, a text for a number, a function for its value."""
    got, expected = difference.got, difference.expected
    kinds, name = (tuple, list), type(got).__name__
    if isinstance(got, kinds) and isinstance(expected, kinds):
        one, other = list(got), list(expected)
        for end, at in (("first", slice(1, None)), ("last", slice(-1))):
            if len(one) > 1 and same(one[at], other):
                return found(Kind.END_TOO_MANY, type=name, end=end)
            if len(other) > 1 and same(other[at], one):
                return found(Kind.END_MISSING, type=name, end=end)
        if len(got) != len(expected):
            return found(Kind.LENGTH, type=name, got=len(got), expected=len(expected))
    elif as_tensor(expected) is None or isinstance(got, str) or plain(got) is None:
        if not isinstance(got, type(expected)):
            wanted = describe(expected) if as_tensor(expected) is None else "numbers"
            return found(Kind.TYPE, got=describe(got), expected=wanted)
    elif plain(got).is_complex():
        return found(Kind.COMPLEX)


def _not_numbers(difference, atol):
    got, expected = _numbers(difference)
    if got.isnan().any() and not expected.isnan().any():
        return found(Kind.NAN, count=int(got.isnan().sum()), of=got.numel())
    if got.isinf().any() and not expected.isinf().any():
        return found(Kind.INFINITE)


def _another_shape(difference, atol):
    got, expected = _numbers(difference)
    if got.shape == expected.shape:
        return None
    shapes = {"got": tuple(got.shape), "expected": tuple(expected.shape)}
    if got.numel() == expected.numel():
        if torch.allclose(got.flatten(), expected.flatten(), atol=atol):
            return found(Kind.SHAPE_ALONE, **shapes)
    off = [
        i for i in range(got.dim()) if got.shape[i : i + 1] != expected.shape[i : i + 1]
    ]
    if got.dim() == expected.dim() and len(off) == 1:
        dim, more = off[0], got.shape[off[0]] - expected.shape[off[0]]
        longer, shorter = (got, expected) if more > 0 else (expected, got)
        parts = (longer.narrow(dim, at, shorter.shape[dim]) for at in (0, 1))
        if abs(more) == 1 and any(torch.allclose(p, shorter, atol=atol) for p in parts):
            kind = Kind.ENTRY_TOO_MANY if more > 0 else Kind.ENTRY_MISSING
            return found(kind, **shapes, dim=dim)
    return found(Kind.SHAPE, **shapes)


def _scaled(difference, atol):
    """Right but for a factor, or a function of each number."""
    got, expected = _numbers(difference)
    if got.shape != expected.shape or not expected.isfinite().all():
        return None
    if not got.isfinite().all():
        return None

    def is_right(numbers):
        return bool(numbers.isfinite().all()) and same(numbers, expected, atol)

    if is_right(-got):
        return found(Kind.MINUS)
    if is_right(1 - got) and expected.unique().tolist() == [0.0, 1.0]:
        return found(Kind.TURNED_MASK)
    if expected.unique().numel() == 1 and torch.equal(expected.round(), expected):
        return UNSURE  # 4 is the square of 2, and much else
    known = [
        (got * math.log(2), Kind.BITS),
        (got.exp(), Kind.LOGARITHM),
        (got**2, Kind.ROOT),
        (got.log(), Kind.EXPONENTIAL),
        (1 / got, Kind.UPSIDE_DOWN),
    ]
    for numbers, kind in known:
        if is_right(numbers):
            return found(kind)
    some = expected.abs() > 1e-3
    if got.numel() < 3 or expected[some].unique().numel() < 2:
        return None
    factor = (got[some] / expected[some]).median()
    if factor.abs() > 1e-6 and is_right(got / factor):
        which = (f", {n}" for n, s in _sizes(difference) if same(factor, s))
        return found(Kind.FACTOR, factor=factor.item(), size=next(which, ""))


def _sizes(difference) -> Iterator[tuple[str, float]]:
    """(how it is called, a number) for what a forgotten factor may be."""
    for x in difference.inputs:
        for dim, n in enumerate(x.shape if isinstance(x, torch.Tensor) else ()):
            for name, size in ((f"{n}", n), (f"√{n}", n**0.5)) if n > 1 else ():
                where = f"the size of dimension {dim} of the input"
                yield f"{name} ({where})", size
                yield f"1 / {name} ({where})", 1 / size


def _out_of_place(difference, atol):
    got, expected = _numbers(difference)
    if got.numel() == expected.numel() == 1:
        return UNSURE
    if got.numel() != expected.numel():
        return None
    for i, j in itertools.combinations(range(got.dim()), 2):
        if same(got.transpose(i, j), expected, atol):
            return found(Kind.EXCHANGED, i=i, j=j)
    for dim, n in enumerate(got.shape) if got.shape == expected.shape else ():
        for kind, parts, numbers in _along(got, expected, dim, n):
            if n > 1 and same(*numbers, atol):
                enough = len(numbers[1].unique()) > 2
                return found(kind, dim=dim, **parts) if enough else UNSURE
    flat = got.flatten().sort().values, expected.flatten().sort().values
    if got.shape == expected.shape and same(*flat, atol) and len(flat[1].unique()) > 2:
        return found(Kind.ANOTHER_ORDER)


def _along(got, expected, dim, n):
    """Yield (kind, parts, two tensors) for what may have happened along a dimension."""
    for by, ends in ((-1, ("first", "last")), (1, ("last", "first"))):
        parts = dict(zip(("end", "other"), ends))
        yield Kind.ROLLED, parts, (got.roll(by, dim), expected)
    late = got.narrow(dim, 1, n - 1), expected.narrow(dim, 0, n - 1)
    yield Kind.LATE, {}, late
    for a in (a for a in range(2, n // 2 + 1) if n % a == 0):
        dealt = got.unflatten(dim, (a, n // a)).transpose(dim, dim + 1)
        yield Kind.DEALT, {}, (dealt.flatten(dim, dim + 1), expected)
    count = torch.ones_like(got).cumsum(dim)
    yield Kind.RUNNING_MEAN, {}, (got, expected.cumsum(dim) / count)


def _sums(difference, atol):
    """Rows that should all have the same sum, and have not."""
    got, expected = (numbers.sum(-1).flatten() for numbers in _numbers(difference))
    if got.numel() > 1 and same(expected, torch.ones_like(expected), atol):
        if difference.expected.shape[-1] > 1 and not same(got, expected, 1e-3):
            off = (got - expected).abs().argmax()
            return found(Kind.ROWS_SUM, got=got[off].item(), expected=1.0)


# Experiments with an answer: what it depends on, and where it is wrong


def probed(
    got_of: Callable, right_of: Callable, wrong: list[Difference], names: list[str]
) -> Finding | None:
    """What a change of an input shows. got_of, right_of: functions of the inputs."""
    seen = []
    for difference in wrong[:3]:
        try:
            seen.append(_probed(got_of, right_of, difference, names))
        except Exception:  # an experiment that fails shows nothing
            seen.append(None)
    kinds = {one and (one.kind, one.parts["name"]) for one in seen}
    return seen[0] if len(kinds) == 1 else None


def _probed(got_of, right_of, difference, names):
    got, right = _numbers(difference)
    if got is None or right is None or got.shape != right.shape or not got.dim():
        return None
    for i, x in enumerate(difference.inputs):
        name = names[i] if i < len(names) else f"input {i}"
        for changed, dim, at in _nudged(x):
            inputs = list(copy.deepcopy(difference.inputs))
            inputs[i] = changed
            now_got, now_right = (
                as_tensor(got_of(*inputs)),
                as_tensor(right_of(*inputs)),
            )
            if now_got.shape != got.shape or now_right.shape != right.shape:
                continue
            if dim is None:
                if same(now_got, got, 1e-9) and not same(now_right, right, 1e-6):
                    return found(Kind.DOES_NOT_MOVE, name=name)
            elif dim < got.dim() and got.shape[dim] == x.shape[dim]:
                moved, may = _moved(now_got, got, dim), _moved(now_right, right, dim)
                if other := sorted(moved - may):
                    return found(Kind.MOVES, name=name, at=at, dim=dim, other=other[0])
    return None


def _nudged(x):
    """Yield (x with other numbers, the dimension and the place of them, or None)."""
    if isinstance(x, float):
        yield x + 0.37, None, 0
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return
    for dim in range(x.dim() if x.dim() > 1 else 0):
        if x.shape[dim] > 1:
            changed = x.clone()
            changed.select(dim, -1).mul_(1.5).add_(0.25)
            yield changed, dim, x.shape[dim] - 1
    yield x * 1.3 + 0.1 * torch.arange(x.numel()).reshape(x.shape), None, 0


def _moved(now, before, dim) -> set[int]:
    """The places along a dimension at which two tensors differ."""
    off = ~torch.isclose(now, before, atol=1e-6, rtol=1e-4, equal_nan=True)
    others = [d for d in range(off.dim()) if d != dim]
    off = off.any(dim=others) if others else off
    return set(off.nonzero().flatten().tolist())


def placed(wrong: list[Difference], atol: float) -> Finding | None:
    """Along which dimension of the first case only some places are wrong."""
    got, right = _numbers(wrong[0])
    if got is None or right is None or got.shape != right.shape:
        return None
    for i, x in enumerate(wrong[0].inputs):
        start = as_tensor(x)
        if isinstance(x, torch.Tensor) and start.shape == got.shape and not i:
            for dim in range(got.dim() if got.dim() > 1 else 0):
                mine, ours = _moved(got, start, dim), _moved(right, start, dim)
                if mine != ours and max(len(mine), len(ours)) < got.shape[dim]:
                    what = {"got": _list(mine), "expected": _list(ours)}
                    return found(Kind.CHANGED_PLACES, dim=dim, **what)
    for dim in reversed(range(got.dim())):
        off = _moved(got, right, dim)
        if got.shape[dim] > 2 and len(off) <= got.shape[dim] // 2:
            last = got.shape[dim] - 1
            return found(Kind.SOME_PLACES, dim=dim, wrong=_list(off), last=last)
    return None


def _list(places: set[int]) -> str:
    return "place " + ", ".join(map(str, sorted(places))) if places else "nothing"
