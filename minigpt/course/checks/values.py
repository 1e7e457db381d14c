"""Comparing and showing values: tensors, numbers, texts, lists of them."""

import contextlib
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import torch

GENERATOR = torch.Generator  # kept, as other_numbers() puts another one there


class Difference(NamedTuple):
    """A case, what the solution gives and what the answer gives."""

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


def without_nan(got: Any, other: Any) -> Any:
    """What was got, with the other's numbers in place of some that are nan."""
    numbers, others = plain(got), plain(other)
    if numbers is None or others is None or numbers.shape != others.shape:
        return got
    some = numbers.isnan() & ~others.isnan()
    return torch.where(some, others, numbers) if some.any() and not some.all() else got


def is_finite(value: Any) -> bool:
    """Whether no number in a value is nan or infinite."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return all(map(is_finite, value))
    numbers = plain(value)
    return numbers is None or bool(numbers.isfinite().all())


def as_tensor(value: Any) -> torch.Tensor | None:
    """A float64 tensor on the CPU of a tensor, number, array or nested list; else None.

    Complex numbers are not taken for real ones: they give None, too.
    """
    numbers = plain(value)
    return None if numbers is None or numbers.is_complex() else numbers.double()


def tensor_of(value: Any) -> torch.Tensor:
    """as_tensor of what must hold real numbers; raises TypeError if it does not."""
    if (found := as_tensor(value)) is None:
        raise TypeError(f"{describe(value)} is no tensor of real numbers")
    return found


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


def describe(value: Any) -> str:
    """A few words for a value: its shape if it is a tensor, else type and value."""
    if isinstance(value, torch.Tensor) or type(value).__name__ == "ndarray":
        kind = "a tensor" if isinstance(value, torch.Tensor) else "an array"
        return f"{kind} of shape {tuple(value.shape)}"
    try:
        if callable(value):
            name = getattr(value, "__name__", "")
            return f"the {type(value).__name__} {name}".strip()
        text = repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def show(difference: Difference, names: Sequence[str] = ()) -> str:
    """Input, expected and received values, shortened to what can be read.

    Inputs have the names of the solution's arguments. Where expected and received
    would read alike, or are long, the first row that differs is shown.
    """
    d = difference
    named = names if len(names) >= len(d.inputs) else [""] * len(d.inputs)
    lines = [
        f"input    {f'{name} = ' if name else ''}{_values(x)}"
        for name, x in zip(named, d.inputs)
        if not callable(x)
    ]
    expected, received = _values(d.expected), _values(d.got)
    if expected == received or max(len(expected), len(received)) > 120:
        expected, received = _apart(d.expected, d.got) or (expected, received)
    lines += [f"expected {expected}", f"received {received}"]
    return "".join(f"\n    {line}" for line in lines)


def _values(value: Any) -> str:
    if isinstance(value, torch.Tensor) or type(value).__name__ == "ndarray":
        numbers = plain(value)
        if numbers is None or numbers.numel() > 16:
            return describe(value)
        if numbers.is_floating_point():  # float32 would print 0.6930999755859375
            numbers = (numbers.double() * 1e4).round() / 1e4
        text = str(numbers.tolist())
        return text if len(text) <= 120 else describe(value)
    if isinstance(value, float):
        return str(round(value, 4))
    shown = (torch.Tensor, float)
    if isinstance(value, (tuple, list)) and any(isinstance(v, shown) for v in value):
        text = ", ".join(map(_values, value))
        text = f"({text})" if isinstance(value, tuple) else f"[{text}]"
        return text if len(text) <= 200 else describe(value)
    return describe(value)


def _apart(expected: Any, got: Any) -> tuple[str, str] | None:
    """The first row of two tensors that differs, as two texts, or None."""
    if isinstance(expected, (tuple, list)) and isinstance(got, (tuple, list)):
        for i, (e, g) in enumerate(zip(expected, got)):
            if not same(g, e):
                pair = _apart(e, g) or (_values(e), _values(g))
                right, wrong = pair
                return f"value {i}: {right}", f"value {i}: {wrong}"
        return None
    right, wrong = as_tensor(expected), as_tensor(got)
    if right is None or wrong is None or right.shape != wrong.shape or not right.dim():
        return None
    off = ~torch.isclose(wrong, right, atol=1e-5, rtol=1e-4, equal_nan=True)
    if not off.any():
        return None
    place = off.nonzero()[0].tolist()
    row, first = tuple(place[:-1]), max(0, place[-1] - 2)
    where = ", ".join([*map(str, row), f"{first}:{first + 6}"])
    digits = 9 if (wrong - right)[tuple(place)].abs() < 1e-3 else 4

    def part(numbers: torch.Tensor) -> str:
        some = numbers[row][first : first + 6].tolist()
        return f"at [{where}] {[round(x, digits) for x in some]}"

    return part(right), part(wrong)


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    """Standard normal numbers from a generator of their own."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def randint(high: int, *shape: int, seed: int = 0) -> torch.Tensor:
    """Whole numbers below `high` from a generator of their own."""
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


@contextlib.contextmanager
def other_numbers(shift: int = 1_000_000) -> Generator[None]:
    """Inside, every new torch.Generator gets another seed than it asks for.

    So one check has two sets of cases, and none has to be written twice. Of one within
    the other the inner one counts.
    """

    class Shifted(GENERATOR):
        def manual_seed(self, seed: int) -> torch.Generator:
            return super().manual_seed(seed + shift)

    usual = torch.Generator
    torch.Generator = Shifted  # ty: ignore[invalid-assignment]
    try:
        yield
    finally:
        torch.Generator = usual
