"""What is measurably wrong with a result, where no mistake is known that gives it.

A look takes one Difference and returns a Finding, or None; it raises CannotTell where
this one says nothing, as 4 does not tell whether it is 2 squared or 2 doubled. What a
look sees is told only if it sees that kind in all differences.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.values import Difference, as_tensor, describe, plain, same


class CannotTell(Exception):
    """Raised by a look at a difference that is like many others."""


def measured(
    differences: list[Difference], atol: float, names: Sequence[str] = ()
) -> Finding | None:
    """What all differences show; names: what the inputs are called."""
    for look in (_another_kind, _not_numbers):
        if seen := _seen(look, differences[:1], atol):
            return seen[0]
    if seen := _one_change(differences, atol, names):
        return seen
    for look in (_function_of_it, _out_of_place, _another_shape, _sums):
        seen = _seen(look, differences, atol)
        if one := _the_same(seen):
            return one
        every = [one for one in seen if one]
        if look is _another_shape and every and len(every) == len(seen):
            parts = every[0].details
            return found(Kind.SHAPE, got=parts["got"], expected=parts["expected"])
    return None


def _the_same(seen: list[Finding | None]) -> Finding | None:
    """What is seen in all differences, if it is of one kind."""
    kinds = {one and one.kind for one in seen}
    return seen[0] if len(kinds) == 1 else None


def _seen(
    look: Callable, differences: list[Difference], atol: float
) -> list[Finding | None]:
    """What a look sees in each difference that can tell; [] for nothing at all."""
    seen = []
    for difference in differences:
        try:
            seen.append(look(difference, atol))
        except CannotTell:
            continue
        except Exception:  # a symptom that cannot be looked for is none
            seen.append(None)
    return seen if any(seen) else []


def hopeless(differences: list[Difference]) -> bool:
    """Whether no slip need be looked for: nan or no numbers say more themselves."""
    got, expected = numbers_of(differences[0])
    if expected is None:
        return False
    if got is None:
        return not isinstance(differences[0].got, (tuple, list, dict))
    every = [numbers_of(d)[0] for d in differences]
    some = (n is None or n.isfinite().any() or not n.numel() for n in every)
    return bool(expected.isfinite().all()) and not any(some)


def numbers_of(difference: Difference) -> tuple[Any, Any]:
    """What was got and what is right, as tensors; None for no numbers."""
    return as_tensor(difference.got), as_tensor(difference.expected)


def _another_kind(difference: Difference, atol: float) -> Finding | None:
    """A pair for a tensor, a text for a number, a function for its value."""
    got, expected = difference.got, difference.expected
    kinds, numbers = (tuple, list), plain(got)
    if isinstance(got, kinds) and isinstance(expected, kinds):
        one, other = list(got), list(expected)
        for end, at in (("first", slice(1, None)), ("last", slice(-1))):
            if len(one) > 1 and same(one[at], other):
                return found(Kind.END_TOO_MANY, end=end)
            if len(other) > 1 and same(other[at], one):
                return found(Kind.END_MISSING, end=end)
        if len(got) != len(expected):
            return found(Kind.LENGTH, got=len(got), expected=len(expected))
    elif as_tensor(expected) is None or isinstance(got, str) or numbers is None:
        if not isinstance(got, type(expected)):
            wanted = describe(expected) if as_tensor(expected) is None else "numbers"
            return found(Kind.TYPE, got=describe(got), expected=wanted)
    elif numbers.is_complex():
        return found(Kind.COMPLEX)


def _not_numbers(difference: Difference, atol: float) -> Finding | None:
    got, expected = numbers_of(difference)
    if got.isnan().any() and not expected.isnan().any():
        count, where = int(got.isnan().sum()), ""
        rows = got.isnan().all(-1) if got.dim() > 1 else torch.tensor(True)
        if not rows.all() and int(rows.sum()) * got.shape[-1] == count:
            first = ", ".join(map(str, rows.nonzero()[0].tolist()))
            where = f": whole rows, the first is [{first}]"
        return found(Kind.NAN, count=count, of=got.numel(), where=where)
    if got.isinf().any() and not expected.isinf().any():
        return found(Kind.INFINITE)


def _another_shape(difference: Difference, atol: float) -> Finding | None:
    got, expected = numbers_of(difference)
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


def _function_of_it(difference: Difference, atol: float) -> Finding | None:
    """A function of each right number: its minus, or one over it."""
    got, expected = _finite(difference)

    def is_right(numbers: torch.Tensor) -> bool:
        return bool(numbers.isfinite().all()) and same(numbers, expected, atol)

    if is_right(-got):
        return found(Kind.MINUS)
    if is_right(1 - got) and expected.unique().tolist() == [0.0, 1.0]:
        return found(Kind.TURNED_MASK)
    if expected.unique().numel() == 1 and torch.equal(expected.round(), expected):
        raise CannotTell  # 4 is the square of 2, and much else
    known = [
        (got * math.log(2), Kind.BITS),
        (1 / got, Kind.UPSIDE_DOWN),
    ]
    return next((found(kind) for numbers, kind in known if is_right(numbers)), None)


def _finite(difference: Difference) -> tuple[torch.Tensor, torch.Tensor]:
    """What was got and what is right, where both can be divided entry by entry."""
    got, expected = numbers_of(difference)
    fits = got is not None and expected is not None and got.shape == expected.shape
    if not (fits and got.isfinite().all() and expected.isfinite().all()):
        raise ValueError("no finite numbers of one shape")
    return got, expected


FACTORS = {  # besides the sizes of inputs
    -1 / math.log(2): "-1 / ln 2: a minus, and bits in place of nats",
    -math.log(2): "-ln 2: a minus, and another base of the logarithm",
}


def _one_change(
    differences: list[Difference], atol: float, names: Sequence[str]
) -> Finding | None:
    """Right but for a number that is added, or for a factor, of all or of each case."""
    try:
        every = [_finite(d) for d in differences]
    except (ValueError, RuntimeError):
        return None
    mine, right = (torch.cat([t.flatten() for t in numbers]) for numbers in zip(*every))
    offset = (mine - right).median().item()
    if right.unique().numel() > 2 and same(right + offset, mine, atol):
        more = "large" if offset > 0 else "small"
        return found(Kind.OFFSET, more=more, offset=abs(offset))
    common = _factor(mine, right, atol)  # 3 * x in all cases
    if common is None:
        return _factor_of_each_case(differences, every, atol, names)
    if abs(common + 1) < 1e-4 or same(common, 1 / math.log(2)):
        return None  # a minus, or bits: they have sentences of their own
    texts = _what_factors_are([common] * len(every), differences, names)
    texts += [text for number, text in FACTORS.items() if same(common, number)]
    return found(Kind.FACTOR, factor=common, size=f", {texts[0]}" if texts else "")


def _factor_of_each_case(
    differences: list[Difference],
    every: list[tuple[torch.Tensor, torch.Tensor]],
    atol: float,
    names: Sequence[str],
) -> Finding | None:
    """A factor that is another one in each case, as a sum in place of a mean.

    A case of one number has a factor always, so one case at least must have several.
    """
    factors = [_factor(got, expected, atol, least=1) for got, expected in every]
    if None in factors or not any(_factor(*pair, atol) for pair in every):
        return None
    texts = _what_factors_are(factors, differences, names)
    size = f", {texts[0]}" if texts else ", another one in each case"
    return found(Kind.FACTOR, factor=factors[0], size=size)


def _what_factors_are(
    factors: list, differences: list[Difference], names: Sequence[str]
) -> list[str]:
    """What the factors of all cases are: "3 (3 is the size of dimension 0 of `x`)"."""
    sizes = [dict(_sizes(d, names)) for d in differences]
    return [
        text
        for label, (_, text) in sizes[0].items()
        if all(label in s and same(f, s[label][0]) for f, s in zip(factors, sizes))
    ]


def _factor(
    got: torch.Tensor, expected: torch.Tensor, atol: float, least: int = 3
) -> float | None:
    """The number that all of `expected` was multiplied by; None for no such one.

    least: of how many numbers; of fewer than 3 each is a multiple of the other.
    """
    some = expected.abs() > 1e-3
    if got.numel() < least or expected[some].unique().numel() < min(least, 2):
        return None
    factor = (got[some] / expected[some]).median()
    right = factor.abs() > 1e-6 and same(got / factor, expected, atol)
    return factor.item() if right else None


def _sizes(
    difference: Difference, names: Sequence[str]
) -> Iterator[tuple[tuple, tuple[float, str]]]:
    """(what it is, (a number, how it is called)) for what may be a forgotten factor."""
    for i, x in enumerate(difference.inputs):
        name = f"`{names[i]}`" if i < len(names) else "the input"
        for dim, n in enumerate(getattr(x, "shape", ())):
            where = f"{n} is the size of dimension {dim} of {name}"
            for root, text, size in ((0, f"{n}", n), (1, f"√{n}", n**0.5)):
                if n > 1:
                    yield (i, dim, root, 0), (size, f"{text} ({where})")
                    yield (i, dim, root, 1), (1 / size, f"1 / {text} ({where})")


def _out_of_place(difference: Difference, atol: float) -> Finding | None:
    got, expected = numbers_of(difference)
    if got.numel() == expected.numel() == 1:
        raise CannotTell
    if got.numel() != expected.numel():
        return None
    for i, j in itertools.combinations(range(got.dim()), 2):
        if same(got.transpose(i, j), expected, atol):
            return found(Kind.EXCHANGED, i=i, j=j)
    flat = got.flatten().sort().values, expected.flatten().sort().values
    if got.shape == expected.shape and same(*flat, atol) and len(flat[1].unique()) > 2:
        return found(Kind.ANOTHER_ORDER)


def _sums(difference: Difference, atol: float) -> Finding | None:
    """Rows that should all have the same sum, and have not."""
    got, expected = (numbers.sum(-1).flatten() for numbers in numbers_of(difference))
    if got.numel() > 1 and same(expected, torch.ones_like(expected), atol):
        if difference.expected.shape[-1] > 1 and not same(got, expected, 1e-3):
            off = (got - expected).abs()
            some = (off < 1e-3).any()
            rows = "Not all rows are right: one sums" if some else "Your rows sum"
            at = off.argmax()
            return found(Kind.ROWS_SUM, rows=rows, got=got[at].item(), expected=1.0)
