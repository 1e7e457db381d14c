"""Comparing results: are they the same, where do they differ, what are they like?"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from minigpt.course.checks import words


class Miss(NamedTuple):
    """A case, what was expected of it and what came out."""

    inputs: tuple
    expected: Any
    got: Any


def same(got: Any, expected: Any, atol: float = 1e-5) -> bool:
    """Equal up to rounding: tensors, arrays, numbers, texts, lists, dicts of them.

    Other dtypes, lists and arrays in place of tensors, and numbers in place of
    tensors of shape () or (1,) are accepted.
    """
    whole = str, bytes, set, frozenset, type(None)  # compared as they are
    if isinstance(expected, whole) or isinstance(got, whole):
        return isinstance(got, type(expected)) and got == expected
    if isinstance(expected, dict):
        alike = isinstance(got, dict) and got.keys() == expected.keys()
        return alike and all(same(got[key], expected[key], atol) for key in expected)
    several = isinstance(expected, tuple)  # of numbers, too: not one tensor
    if several or isinstance(expected, list) and as_tensor(expected) is None:
        kinds = (tuple, list, torch.Tensor) if several else (tuple, list)
        alike = isinstance(got, kinds) and getattr(got, "shape", (1,)) != ()
        alike = alike and len(got) == len(expected)
        return alike and all(same(g, e, atol) for g, e in zip(got, expected))
    got, expected = as_tensor(got), as_tensor(expected)
    if got is None or expected is None:
        return False
    if got.shape != expected.shape:
        if not (got.numel() == expected.numel() == 1 and expected.dim() == 0):
            return False
        got = got.reshape(())
    return torch.allclose(got, expected, atol=atol, rtol=1e-4, equal_nan=True)


def same_kind(got: Any, expected: Any) -> bool:
    """Whether whole numbers are whole numbers, floats floats, True and False bools."""
    if isinstance(expected, (tuple, list)):
        return all(map(same_kind, got, expected))
    one, other = plain(got), plain(expected)
    if one is None or other is None:
        return True
    return one.dtype == other.dtype or (
        one.is_floating_point() and other.is_floating_point()
    )


def as_tensor(value: Any) -> torch.Tensor | None:
    """A float64 tensor on the CPU of a tensor, number, array or nested list; else None.

    Complex numbers are not taken for real ones: they give None, too.
    """
    numbers = plain(value)
    return None if numbers is None or numbers.is_complex() else numbers.double()


def plain(value: Any) -> torch.Tensor | None:
    """Detached, dense and on the CPU: an Apple GPU, for one, has no float64."""
    try:
        if isinstance(value, (list, tuple)):
            if any(hasattr(part, "shape") for part in value):
                every = [part for part in map(plain, value) if part is not None]
                return torch.stack(every) if len(every) == len(value) else None
        return torch.as_tensor(value).detach().cpu().to_dense()
    except Exception:  # no numbers, or none that can be read
        return None


# What is shown of a miss


def describe(value: Any) -> str:
    """A few words for a value: its shape if it is a tensor, else type and value."""
    if isinstance(value, torch.Tensor) or type(value).__name__ == "ndarray":
        kind = "a tensor" if isinstance(value, torch.Tensor) else "an array"
        return f"{kind} of shape {tuple(value.shape)}"
    try:
        if callable(value):
            name = getattr(value, "__name__", "")
            return f"the {type(value).__name__} {name}".strip()
        text = " ".join(repr(value).split())
    except Exception:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def show(miss: Miss, names: Sequence[str] = (), part: str = "") -> str:
    """The inputs by name, what was expected, what came out, and where they differ.

    part: what the value is called, where it is one of several; a long name is left out.
    """
    named = names if len(names) >= len(miss.inputs) else [""] * len(miss.inputs)
    lines = [(n, numbers(x)) for n, x in zip(named, miss.inputs) if not callable(x)]
    of = f" {part}" if 0 < len(part) < 20 else ""
    digits = 4
    while digits < 10 and numbers(miss.expected, digits) == numbers(miss.got, digits):
        digits += 3
    lines.append((f"expected{of}", numbers(miss.expected, digits)))
    lines.append((f"your{of or ' result'}", numbers(miss.got, digits)))
    if where := place(miss.got, miss.expected):
        lines.append(("they differ", where))
    width = max(len(name) for name, _ in lines)
    return "".join(f"\n    {name:{width}}  {text}" for name, text in lines)


def show_change(name: str, before: Any, after: Any) -> str:
    """An input before and after; of several tensors the first that is different."""
    if isinstance(before, torch.nn.Module):
        before, after = before.state_dict(), after.state_dict()
    if isinstance(before, dict) and after.keys() == before.keys():
        key = next(k for k in before if not same(after[k], before[k], atol=0.0))
        return show_change(f"{name}, {key}", before[key], after[key])
    digits = 10 if numbers(before) == numbers(after) else 4
    lines = {"before": numbers(before, digits), "after": numbers(after, digits)}
    if lines["before"] == lines["after"]:  # too large to be shown
        lines = {"": place(after, before, ("before", "after"))}
    return "".join(
        f"\n    {f'{name} {when}':{len(name) + 7}}  {text}"
        for when, text in lines.items()
    )


def numbers(value: Any, digits: int = 4) -> str:
    """A value as a text: small tensors as nested lists, 2.0 as 2, large ones "
    "briefly."""
    if isinstance(value, torch.Tensor) or type(value).__name__ == "ndarray":
        tensor = plain(value)
        if tensor is None or tensor.numel() > 24:
            return describe(value)
        text = _short(tensor.tolist(), digits)
        return text if len(text) <= 160 else describe(value)
    if isinstance(value, dict) and value:
        parts = [f"{k!r}: {numbers(v, digits)}" for k, v in value.items()]
        text = "{" + ", ".join(parts) + "}"
        return text if len(text) <= 240 else describe(value)
    if isinstance(value, (tuple, list)) and value:
        text = ", ".join(numbers(part, digits) for part in value)
        text = f"({text})" if isinstance(value, tuple) else f"[{text}]"
        return text if len(text) <= 240 else describe(value)
    return _short(value, digits) if isinstance(value, float) else describe(value)


def _short(value: Any, digits: int) -> str:
    """Nested lists of numbers, rounded, whole ones without a point."""
    if isinstance(value, list):
        return "[" + ", ".join(_short(part, digits) for part in value) + "]"
    if isinstance(value, float) and math.isfinite(value):
        rounded = round(value, digits)
        return str(int(rounded)) if rounded == int(rounded) else str(rounded)
    return str(value)


def place(
    got: Any, expected: Any, called: tuple[str, str] = ("expected", "found")
) -> str:
    """Where two results first differ, as "at [0, 1]: 5.5 expected, 7 found"."""
    if isinstance(expected, (tuple, list)) and as_tensor(expected) is None:
        if isinstance(got, (tuple, list)) and len(got) == len(expected):
            for i, (g, e) in enumerate(zip(got, expected)):
                if not same(g, e):
                    return _at(f"[{i}]", g, e, called) if as_tensor(e) is None else ""
        return ""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key, right in expected.items():
            if key in got and not same(got[key], right):
                return _at(f"[{key!r}]", got[key], right, called)
        return ""
    one, other = as_tensor(got), as_tensor(expected)
    if one is None or other is None or one.shape != other.shape or not one.dim():
        return ""
    off = ~torch.isclose(one, other, atol=1e-5, rtol=1e-4, equal_nan=True)
    if not off.any():
        return ""
    at = tuple(off.nonzero()[0].tolist())
    text = _at(f"[{', '.join(map(str, at))}]", one[at].item(), other[at].item(), called)
    count = int(off.sum())
    if count == off.numel() > 1:
        return f"everywhere, first {text}"
    return f"{text} ({count} of {off.numel()} numbers)" if count > 1 else text


def _at(where: str, got: Any, expected: Any, called: tuple[str, str]) -> str:
    digits = 4 if numbers(got) != numbers(expected) else 9
    right, mine = numbers(expected, digits), numbers(got, digits)
    return f"at {where}: {right} {called[0]}, {mine} {called[1]}"


# What wrong results look like: symptoms, which say what is wrong and not why


def symptom(misses: list[Miss], names: Sequence[str], atol: float) -> str:
    """A sentence that is true of all misses; "" for none."""
    for look in LOOKS:
        seen = []
        for miss in misses:
            try:
                seen.append(look(miss, names, atol))
            except Exception:  # a look that cannot work with such a result
                seen.append("")
        told = [text for text in seen if text is not None]  # None: it can't tell
        if told and all(told):
            return told[0]
    try:
        return of_a_factor(misses, names, atol)
    except Exception:  # no tensors
        return ""


def _another_kind(miss: Miss, names: Sequence[str], atol: float) -> str:
    """A pair for a tensor, a text for a number, a function for its value."""
    got, expected, kinds = miss.got, miss.expected, (tuple, list)
    if isinstance(got, kinds) and isinstance(expected, kinds):
        if len(got) != len(expected):
            return words.LENGTH.format(got=len(got), expected=len(expected))
        return ""
    if isinstance(expected, tuple) and not isinstance(got, kinds):
        wanted = f"{len(expected)} values"
        return words.TYPE.format(got=describe(got), expected=wanted)
    numbers_wanted = as_tensor(expected) is not None
    if numbers_wanted and (tensor := plain(got)) is not None and tensor.is_complex():
        return words.COMPLEX
    if numbers_wanted == (as_tensor(got) is not None) or isinstance(
        got, type(expected)
    ):
        return ""
    wanted = "numbers" if numbers_wanted else describe(expected)
    return words.TYPE.format(got=describe(got), expected=wanted)


def _shape(miss: Miss, names: Sequence[str], atol: float) -> str:
    got, expected = _tensors(miss)
    if got.shape == expected.shape:
        return ""
    both = {"got": tuple(got.shape), "expected": tuple(expected.shape)}
    if got.numel() == expected.numel() and same(got.flatten(), expected.flatten()):
        return words.SHAPE_ALONE.format(**both)
    if got.dim() == 2 and same(got.T, expected, atol):
        return words.TRANSPOSED.format(i=0, j=1)
    return words.SHAPE.format(**both)


def _no_numbers(miss: Miss, names: Sequence[str], atol: float) -> str:
    got, expected = _tensors(miss)
    if got.isnan().any() and not expected.isnan().any():
        return words.NAN.format(count=int(got.isnan().sum()), of=got.numel())
    if got.isinf().any() and not expected.isinf().any():
        return words.INFINITE
    return ""


def _sign(miss: Miss, names: Sequence[str], atol: float) -> str | None:
    got, expected = _tensors(miss)
    if expected.unique().tolist() == [0.0, 1.0]:
        return words.INVERTED if same(1 - got, expected) else ""
    return words.MINUS if same(-got, expected, atol) and got.any() else ""


def of_a_factor(misses: list[Miss], names: Sequence[str], atol: float) -> str:
    """All are right but for a factor, which may be the size of an input, or ln 2."""
    factors, several = [], False
    for miss in misses:
        got, expected = _tensors(miss)
        some = expected.abs() > 1e-3
        if got.shape != expected.shape or not some.any() or not got.isfinite().all():
            return ""
        factor = (got[some] / expected[some]).median()
        if not same(got, factor * expected, atol) or factor.abs() < 1e-6:
            return ""
        several |= expected[some].unique().numel() > 2
        factors.append(factor.item())
    if not several:  # each number is a multiple of each other one
        return ""
    if all(same(factor, 1 / math.log(2)) for factor in factors):
        return words.BITS
    first = _short(factors[0], 4)
    for name in _sizes(misses[0], names):
        sizes = [_sizes(miss, names).get(name, 0.0) for miss in misses]
        if all(map(same, factors, sizes)):
            return words.FACTOR.format(factor=first, size=name)
        if all(same(f * s, 1.0) for f, s in zip(factors, sizes)):
            return words.FACTOR.format(factor=first, size=f"1 / {name}")
    return words.FACTOR_ALONE.format(factor=first)


def _sizes(miss: Miss, names: Sequence[str]) -> dict[str, float]:
    """{"x.shape[1]": 3.0} for the sizes of all inputs, and their roots."""
    found = {}
    for name, x in zip(names, miss.inputs):
        for dim, size in enumerate(getattr(x, "shape", ())):
            if size > 1:
                found[f"{name}.shape[{dim}]"] = float(size)
                found[f"the square root of {name}.shape[{dim}]"] = size**0.5
    return found


def _turned(miss: Miss, names: Sequence[str], atol: float) -> str | None:
    """The right numbers at other places."""
    got, expected = _tensors(miss)
    if got.numel() == 1 or got.numel() != expected.numel():
        return None if got.numel() == expected.numel() else ""
    for i, j in itertools.combinations(range(got.dim()), 2):
        if same(got.transpose(i, j), expected, atol):
            return words.TRANSPOSED.format(i=i, j=j)
    flat = got.flatten().sort().values, expected.flatten().sort().values
    return words.ORDER if same(*flat, atol) and len(flat[1].unique()) > 2 else ""


def _sums(miss: Miss, names: Sequence[str], atol: float) -> str | None:
    """Rows that should sum to one, and don't."""
    got, expected = (tensor.sum(-1).flatten() for tensor in _tensors(miss))
    if miss.expected.shape[-1] < 2 or not same(expected, torch.ones_like(expected)):
        return ""
    off = (got - expected).abs()
    if off.max() < 1e-3:
        return ""
    return words.ROWS_SUM.format(got=_short(got[off.argmax()].item(), 4))


def _tensors(miss: Miss) -> tuple[Any, Any]:
    return as_tensor(miss.got), as_tensor(miss.expected)


LOOKS: tuple[Callable[[Miss, Sequence[str], float], str | None], ...] = (
    _another_kind,
    _no_numbers,
    _shape,
    _sign,
    _turned,
    _sums,
)
