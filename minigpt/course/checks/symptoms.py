"""What is measurably wrong with a result, where no mistake is known that gives it.

Each look takes one Difference and returns (what to say, a hint), or None. It is told
only if it says the same of all differences; () says that this one cannot tell.
"""

import itertools
import math
import re

import torch

from minigpt.course.checks.values import as_tensor, describe, plain, same


def vague(differences, right, part):
    """What to say where less can be seen; at the last a bare word."""
    if right and not part:
        n, of = len(right), len(right) + len(differences)
        return f"It is right for {n} of {of} inputs. The first wrong one:"
    return "The result is not right yet."


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
        one, other = list(got), list(expected)
        for end, at in (("first", 0), ("last", -1)):
            for more, less, word in ((one, other, "too many"), (other, one, "missing")):
                if len(more) > 1 and same(more[1:] if at == 0 else more[:-1], less):
                    return f"Of the {type(got).__name__}, the {end} is {word}.", ""
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
            "0/0, inf - inf, 0 * inf, the root or log of a negative number, or a "
            "softmax over -inf alone give nan.",
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
    if got.dim() == expected.dim():
        off = [i for i in range(got.dim()) if got.shape[i] != expected.shape[i]]
        if len(off) == 1 and abs(got.shape[off[0]] - expected.shape[off[0]]) == 1:
            longer, shorter = sorted((got, expected), key=torch.numel, reverse=True)
            parts = (longer.narrow(off[0], at, shorter.shape[off[0]]) for at in (0, 1))
            if any(torch.allclose(part, shorter, atol=atol) for part in parts):
                word = "is missing" if longer is expected else "too many"
                return f"{shapes} One entry {word} in dimension {off[0]}.", ""
    return shapes, ""


def scaled(difference, atol):
    """Right but for a factor, or a function of each number."""
    got, expected = _numbers(difference)
    if got.shape != expected.shape or not expected.isfinite().all():
        return None
    if not got.isfinite().all():
        return None

    def is_right(numbers):
        return bool(numbers.isfinite().all()) and same(numbers, expected, atol)

    if is_right(-got):
        return "The sign is wrong: the numbers are right, with a minus.", ""
    if is_right(1 - got) and expected.unique().tolist() == [0.0, 1.0]:
        return "True and False, or 1 and 0, are the wrong way round.", "~ turns a mask."
    if expected.unique().numel() == 1 and torch.equal(expected.round(), expected):
        return ()  # 4 is the square of 2, and much else
    known = [
        (got * math.log(2), "These are bits: right, but in the unit of log2."),
        (got.exp(), "Yours is the logarithm of what was asked for."),
        (got**2, "Yours is the root of what was asked for."),
        (got.log(), "Yours is e to the power of what was asked for."),
        (1 / got, "Yours is one over what was asked for: upside down."),
    ]
    for numbers, says in known:
        if is_right(numbers):
            return says, ""
    some = expected.abs() > 1e-3
    if got.numel() < 3 or expected[some].unique().numel() < 2:
        return None
    factor = (got[some] / expected[some]).median()
    if factor.abs() > 1e-6 and is_right(got / factor):
        which = next((f", {n}" for n, s in _sizes(difference) if same(factor, s)), "")
        what = f"The numbers are right up to a constant factor{which}."
        return what, f"In this case it is {factor.item():.4g}."


def _sizes(difference):
    """(how it is called, a number) for what a forgotten factor may be."""
    for x in difference.inputs:
        for dim, n in enumerate(x.shape if isinstance(x, torch.Tensor) else ()):
            for name, size in ((f"{n}", n), (f"√{n}", n**0.5)) if n > 1 else ():
                where = f"the size of dimension {dim} of the input"
                yield f"{name} ({where})", size
                yield f"1 / {name} ({where})", 1 / size


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
                enough = len(numbers[1].unique()) > 2
                return (f"Along dimension {dim} {says}", "") if enough else ()
    flat = got.flatten().sort().values, expected.flatten().sort().values
    if got.shape == expected.shape and same(*flat, atol) and len(flat[1].unique()) > 2:
        return "The right numbers, but in another order.", (
            "reshape and view keep the order in memory; transpose and permute exchange "
            "dimensions."
        )


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
