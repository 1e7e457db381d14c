"""What is measurably wrong with a result, where no mistake is known that gives it.

Each look takes one Difference and returns (what to say, a hint), or None. It is told
only if it says the same of all differences; () says that this one cannot tell.
"""

import itertools
import re

import torch

from minigpt.course.checks.values import as_tensor, describe, plain, same


def vague(differences, right, part):
    """What to say where no cause is seen: which inputs are right, which numbers not."""
    says = "The result is not right yet."
    if right and not part:
        n, of = len(right), len(right) + len(differences)
        says = f"It is right for {n} of {of} inputs. Below is the first wrong one."
    return says + _where(*_numbers(differences[0]))


def _where(got, expected):
    """Where in a dimension two tensors differ, in words; "" for everywhere."""
    if got is None or expected is None or got.shape != expected.shape:
        return ""
    off = ~torch.isclose(got, expected, atol=1e-5, rtol=1e-4, equal_nan=True)
    for dim, n in enumerate(off.shape):
        places = [i for i in range(n) if off.select(dim, i).any()]
        if 0 < len(places) < n:
            return f" Along dimension {dim} it is wrong at {places} only."
    return ""


def clear(differences, atol):
    """(what to say, a hint) where the right numbers can be made of the answer's."""
    looks = another_kind, not_numbers, scaled, out_of_place, another_shape
    for look in looks:
        said = []
        for difference in differences:
            try:
                said.append(look(difference, atol))
            except Exception:  # a symptom that cannot be looked for is none
                said.append(None)
        said = [one for one in said if one != ()] or [None]
        kinds = {re.sub(r"\W?\d\S*", "", one[0]) if one else None for one in said}
        if said[0] and (len(kinds) == 1 or look in FIRST):
            return said[0]
        if all(said) and look is another_shape:
            return said[0][0].split(". ")[0].rstrip(".") + ".", ""


def hopeless(differences):
    """Whether no slip need be looked for: nan or no numbers say more themselves."""
    got, expected = _numbers(differences[0])
    if expected is None:
        return False
    if got is None:
        return not isinstance(differences[0].got, (tuple, list, dict))
    every = [_numbers(d)[0] for d in differences]
    some = (n is None or n.isfinite().any() or not n.numel() for n in every)
    return bool(expected.isfinite().all()) and not any(some)


def _numbers(difference):
    return as_tensor(difference.got), as_tensor(difference.expected)


def another_kind(difference, atol):
    """A pair for a tensor, a text for a number, a function for its value."""
    got, expected = difference.got, difference.expected
    kinds = (tuple, list)
    if isinstance(got, kinds) and isinstance(expected, kinds):
        if len(got) != len(expected):
            what = f"The {type(got).__name__} has the length {len(got)}"
            return f"{what}, where {len(expected)} should be.", ""
    elif as_tensor(expected) is None or isinstance(got, str) or plain(got) is None:
        if not isinstance(got, type(expected)):
            hint = "Call what is a function; list(...) makes a list of a generator."
            wanted = describe(expected) if as_tensor(expected) is None else "numbers"
            return f"It returns {describe(got)}, where {wanted} should be.", hint
    elif plain(got).is_complex():
        what = "This answer could not be compared: its numbers are complex."
        return what, "Return real numbers."


def not_numbers(difference, atol):
    got, expected = _numbers(difference)
    if got.isnan().any() and not expected.isnan().any():
        return (
            f"{int(got.isnan().sum())} of {got.numel()} results are nan, not a number.",
            "0/0, inf - inf, the root or log of a negative number, or a softmax over "
            "-inf alone give nan.",
        )
    if got.isinf().any() and not expected.isinf().any():
        hint = "Is something divided by 0, or is it the logarithm of 0?"
        return "Some results are infinite.", hint


def another_shape(difference, atol):
    got, expected = _numbers(difference)
    if got.shape == expected.shape:
        return None
    shapes = f"The shape is {tuple(got.shape)}, but should be {tuple(expected.shape)}."
    if got.numel() == expected.numel():
        if torch.allclose(got.flatten(), expected.flatten(), atol=atol):
            return f"{shapes} The numbers are right.", "squeeze, [0], keepdim or view."
    return shapes, ""


def scaled(difference, atol):
    """Right but for a factor, or a function of each number."""
    got, expected = _numbers(difference)
    if got.shape != expected.shape or not expected.isfinite().all():
        return None

    def is_right(numbers):
        return bool(numbers.isfinite().all()) and same(numbers, expected, atol)

    if is_right(1 - got) and expected.unique().tolist() == [0.0, 1.0]:
        return "True and False, or 1 and 0, are the wrong way round.", "~ turns a mask."
    if expected.unique().numel() == 1 and torch.equal(expected.round(), expected):
        return ()  # 4 is the square of 2, and much else
    if is_right(1 / got):
        return "Yours is one over what was asked for: upside down.", ""
    if is_right(got.exp()):
        return "Yours is the logarithm of what was asked for.", ""
    some = expected.abs() > 1e-3
    if got.numel() > 2 and expected[some].unique().numel() > 1:
        factor = (got[some] / expected[some]).median()
        if factor.abs() > 1e-6 and is_right(got / factor):
            if same(factor, -1.0):
                return "The sign is wrong: the numbers are right, with a minus.", ""
            what = "The numbers are right up to a constant factor."
            return what, f"In this case it is {factor:.4g}."


def out_of_place(difference, atol):
    got, expected = _numbers(difference)
    if got.numel() == expected.numel() == 1:
        return ()
    if got.numel() != expected.numel():
        return None
    for i, j in itertools.combinations(range(got.dim()), 2):
        if same(turned := got.transpose(i, j), expected, atol):
            word = f"with dimensions {i}, {j} exchanged" * (turned.dim() > 2)
            word = word or "transposed"
            return f"The numbers are right, but {word}.", f".transpose({i}, {j})"
    for dim, n in enumerate(got.shape) if got.shape == expected.shape else ():
        for says, numbers in _along(got, expected, dim, n):
            if n > 1 and same(*numbers, atol):
                return f"Along dimension {dim} {says}", ""
    flat = got.flatten().sort().values, expected.flatten().sort().values
    if got.shape == expected.shape and same(*flat, atol) and len(flat[1].unique()) > 2:
        return "The right numbers, but in another order.", ""


def _along(got, expected, dim, n):
    """Yield (what to say, two tensors) for what may have happened along a dimension."""
    for by, ends in ((-1, ("first", "last")), (1, ("last", "first"))):
        says = "what stands {} should stand {}.".format(*ends)
        yield says, (got.roll(by, dim), expected)
    late = got.narrow(dim, 1, n - 1), expected.narrow(dim, 0, n - 1)
    yield "all comes one place too late: the last is missing.", late
    says = "the parts alternate that should stand one behind the other, or the reverse."
    for a in (a for a in range(2, n // 2 + 1) if n % a == 0):
        dealt = got.unflatten(dim, (a, n // a)).transpose(dim, dim + 1)
        yield says, (dealt.flatten(dim, dim + 1), expected)
    count = torch.ones_like(got).cumsum(dim)
    yield "yours is the mean of all up to there.", (got, expected.cumsum(dim) / count)


FIRST = (another_kind, not_numbers)  # if only the first one shows it
