"""Comparing results: are they the same, where do they differ, what are they like?"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from minigpt.course.checks import words


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


def aligned(lines: Sequence[tuple[str, str]]) -> str:
    """Names and texts in two columns."""
    width = max((len(name) for name, _ in lines), default=0)
    return "".join(f"\n    {name:{width}}  {text}" for name, text in lines)


def numbers(value: Any, digits: int = 4) -> str:
    """A value as a text: small tensors as nested lists, large ones briefly."""
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


# What a wrong result looks like, if nobody knows the cause


def symptom(got: Any, expected: Any) -> str:
    """What can be seen of one wrong result: another kind, shape or order; or ""."""
    several = isinstance(got, (tuple, list))
    if isinstance(expected, tuple) and not several:
        values = f"{len(expected)} values"
        return words.TYPE.format(got=describe(got), expected=values)
    if several and isinstance(expected, (tuple, list)) and len(got) != len(expected):
        return words.LENGTH.format(got=len(got), expected=len(expected))
    one, other = as_tensor(got), as_tensor(expected)
    if (one is None) != (other is None):
        wanted = describe(expected) if other is None else "numbers"
        return words.TYPE.format(got=describe(got), expected=wanted)
    if one is None or other is None:
        return ""
    if one.shape != other.shape:
        alike = one.numel() == other.numel() and same(one.flatten(), other.flatten())
        says = words.SHAPE_ALONE if alike else words.SHAPE
        return says.format(got=tuple(one.shape), expected=tuple(other.shape))
    if one.isnan().any() and not other.isnan().any():
        return words.NAN.format(count=int(one.isnan().sum()), of=one.numel())
    if other[other.abs() > 1e-3].unique().numel() > 2 and one.isfinite().all():
        if same(one.flatten().sort().values, other.flatten().sort().values):
            return words.ORDER
    return ""
