"""What is measurably wrong with a result, where no known mistake gives it.

Each symptom is a function of one Difference that returns what to say, or None. It is
told only if it holds for all differences.
"""

import copy
import inspect
import itertools
import math
import re
from collections.abc import Iterator

import torch

from minigpt.checks.values import as_tensor, describe, plain, same


def clear(differences, atol=1e-5, names=()):
    """(what to say, a hint) where the right numbers can be made of the answer's."""
    said = _first_of(CLEAR, differences, atol) or _safely(times, differences, atol)
    said = said or _safely(untouched, differences, names)
    return said or _first_of((another_shape,), differences, atol)


def _first_of(looks, differences, atol):
    """What the first of some looks says that says the same, numbers apart, of all."""
    for look in looks:
        said = [_safely(look, difference, atol) for difference in differences]
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


def symptom(differences, right=(), part=None, asked=None):
    """(what to say, a hint) for an answer's differences; a bare word at the last.

    right: the cases that it got right. part: not None if one of several values is
    spoken of. asked: a Question, whose answer is called again to see whether the future
    changes the past.
    """
    atol = asked.atol if asked else 1e-5
    said = (not right and _safely(constant, differences)) or None
    if said := said or _first_of(VAGUE, differences, atol):
        return said
    if asked and part is None:
        answer, reference = asked.of(asked.answer), asked.right
        for difference in differences[:3]:
            if _safely(_sees_future, difference.inputs, answer, reference, atol):
                return (
                    "The future changes the past: with other numbers at the last "
                    "position, earlier positions of your result change too.",
                    "Position t may use positions 0 to t only.",
                )
    if right:
        return _right_for_some(differences, right, asked)
    return "The result is not right yet.", ""


def _safely(look, *args):
    try:
        return look(*args)
    except Exception:  # a symptom that cannot be looked for is none
        return None


def _numbers(difference):
    return as_tensor(difference.got), as_tensor(difference.expected)


def unreadable(difference, atol):
    got = plain(difference.got)
    if got is None and isinstance(difference.got, torch.Tensor):
        what = "This answer could not be compared: its numbers cannot be read."
        return what, "Return an ordinary tensor, one that can be printed."
    if got is not None and got.is_complex():
        what = "This answer could not be compared: its numbers are complex."
        return what, "Return real numbers; .real drops the imaginary parts."


def another_kind(difference, atol):
    """A pair for a tensor, a text for a number, a function for its value."""
    got, expected = difference.got, difference.expected
    if inspect.iscoroutine(got):
        got.close()  # or Python warns that nobody awaited it
        return "It is an `async` function: its call computes nothing yet.", "def alone."
    if isinstance(got, Iterator) and not isinstance(expected, Iterator):
        return (
            f"It returns a {type(got).__name__}, which has computed nothing yet.",
            "Is there a `yield`, or round brackets around a `for`? list(...) makes a "
            "list of it.",
        )
    if callable(got) and not callable(expected):
        return (
            f"It returns {describe(got)}, not a value.",
            "Are the brackets of a call missing?",
        )
    if isinstance(got, str) != isinstance(expected, str):
        kind = "a text" if isinstance(expected, str) else "numbers"
        return f"It returns {describe(got)}, where {kind} should be.", ""
    several = isinstance(expected, tuple) and isinstance(got, (tuple, list))
    if several and len(got) != len(expected):
        return f"It returns {len(got)} values, where {len(expected)} should be.", ""
    if isinstance(expected, (tuple, list, dict)) and as_tensor(expected) is None:
        if not isinstance(got, type(expected)) and not isinstance(got, (tuple, list)):
            wanted = f"{type(expected).__name__} of {len(expected)}"
            return f"It returns {describe(got)}, where a {wanted} should be.", ""
        if len(got) != len(expected):
            return f"It returns {len(got)} values, where {len(expected)} should be.", ""
    if isinstance(got, (tuple, list)) and not isinstance(expected, (tuple, list)):
        for i, part in enumerate(got):
            if same(part, expected, atol):
                return (
                    f"It returns {len(got)} values; the one at place {i} is right.",
                    "Return that one.",
                )
    nothing_like = (str, list, tuple, torch.Tensor)
    if plain(got) is None and as_tensor(expected) is not None:
        if not isinstance(got, nothing_like):
            return f"It returns {describe(got)}, where numbers should be.", ""
    if isinstance(got, dict) and isinstance(expected, dict):
        if missing := expected.keys() - got.keys():
            return f"Keys are missing, such as {describe(sorted(missing)[0])}.", ""
        if more := got.keys() - expected.keys():
            return f"There are keys too many, such as {describe(sorted(more)[0])}.", ""


def another_shape(difference, atol):
    got, expected = _numbers(difference)
    if got is None or expected is None or got.shape == expected.shape:
        return None
    shapes = f"The shape is {tuple(got.shape)}, but should be {tuple(expected.shape)}"
    if got.numel() == expected.numel():
        if torch.allclose(got.flatten(), expected.flatten(), atol=atol):
            if got.squeeze().shape == expected.squeeze().shape:
                hint = "A dimension of size 1 is too many or missing: squeeze(), [0], "
                return f"{shapes}. The numbers are right.", hint + "keepdim."
            hint = "The numbers are right, in the right order: .view(...) or .reshape."
            return f"{shapes}. The numbers are right.", hint
    if got.dim() == expected.dim():
        off = [i for i in range(got.dim()) if got.shape[i] != expected.shape[i]]
        if len(off) == 1:
            by = got.shape[off[0]] - expected.shape[off[0]]
            longer, shorter = (got, expected) if by > 0 else (expected, got)
            n = shorter.shape[off[0]]
            parts = [longer.narrow(off[0], at, n) for at in (0, 1) if abs(by) == 1]
            if any(torch.allclose(part, shorter, atol=atol) for part in parts):
                word = "One entry too many" if by > 0 else "One entry is missing"
                return (
                    f"{shapes}. {word} in dimension {off[0]}.",
                    "The end of a slice, or of a range, is not part of it.",
                )
    if got.dim() == expected.dim() + 1:
        for i, size in enumerate(got.shape):
            rest = got.shape[:i] + got.shape[i + 1 :]
            if rest != expected.shape:
                continue
            for name in ("mean", "sum"):
                if torch.allclose(getattr(got, name)(dim=i), expected, atol=atol):
                    hint = f".{name}(dim={i}) would do it."
                    return f"{shapes}. The {name} over dimension {i} is missing.", hint
            for at in (0, size - 1):
                if torch.allclose(got.select(i, at), expected, atol=atol):
                    hint = f"Take entry {at if at == 0 else -1} of dimension {i}."
                    return f"{shapes}. Yours holds more than was asked for.", hint
    return f"{shapes}.", ""


def not_numbers(difference, atol):
    got, expected = _numbers(difference)
    if got is None or expected is None:
        return None
    if got.isnan().any() and not expected.isnan().any():
        return (
            f"{int(got.isnan().sum())} of {got.numel()} results are nan, not a number.",
            "0/0, inf - inf, the root or log of a negative number, or a softmax over "
            "-inf alone give nan.",
        )
    if got.isinf().any() and not expected.isinf().any():
        return (
            "Some results are infinite.",
            "Is something divided by 0, or is it the logarithm of 0?",
        )


def all_alike(difference, atol):
    got, expected = _numbers(difference)
    if got is None or got.numel() < 3 or expected.unique().numel() < 3:
        return None
    if got.unique().numel() == 1:
        value = got.flatten()[0].item()
        return f"All {got.numel()} results are {value:.4g}.", "Does the input matter?"


def rows(difference, atol):
    got, expected = _numbers(difference)
    if got is None or expected is None or got.shape != expected.shape or not got.dim():
        return None
    if (expected < 0).any() or torch.equal(expected.round(), expected):
        return None  # no probabilities
    for dim, name in ((-1, "rows"), (-2, "columns")):
        if got.dim() < -dim or got.shape[dim] < 2:
            continue
        if _sums_to_one(expected, dim) and not _sums_to_one(got, dim):
            sums = got.sum(dim).flatten()
            worst = sums[(sums - 1).abs().argmax()].item()
            more = ""
            if dim == -1 and got.dim() > 1 and _sums_to_one(got, -2):
                more = " The columns do: the sum runs over the wrong dimension."
            return (
                f"The {name} do not sum to one: one sums to {worst:.4g}.{more}",
                "They are probabilities: divide by their sum, or softmax over them.",
            )


def _sums_to_one(numbers, dim):
    return torch.allclose(
        numbers.sum(dim), torch.ones((), dtype=torch.double), atol=1e-4
    )


def future(difference, atol):
    got, expected = _numbers(difference)
    if got is None or got.shape != expected.shape or got.dim() < 2:
        return None
    if got.shape[-1] != got.shape[-2] or got.shape[-1] < 2:
        return None
    above = torch.ones(got.shape[-2:], dtype=torch.bool).triu(1)
    if expected[..., above].any() or not expected[..., above.mT].any():
        return None
    if got[..., above].abs().max() > atol:
        hint = "Hide the future before the softmax: masked_fill with -inf."
        return (
            "There is light above the diagonal: positions look at what comes later.",
            hint * _sums_to_one(expected, -1),
        )
    if not got.diagonal(0, -2, -1).any() and expected.diagonal(0, -2, -1).any():
        return "The diagonal is 0: a position does not see itself.", "tril() keeps it."


def scaled(difference, atol):
    """Right but for a factor, a shift, a function of each number."""
    got, expected = _numbers(difference)
    if got is None or got.shape != expected.shape or not expected.isfinite().all():
        return None
    if not got.isfinite().all():
        return None

    def is_right(numbers):
        return bool(numbers.isfinite().all()) and same(numbers, expected, atol)

    if is_right(-got):
        return "The sign is wrong: the numbers are right, with a minus.", ""
    if is_right(1 - got) and as_tensor(expected.unique()).tolist() == [0.0, 1.0]:
        return "True and False, or 1 and 0, are the wrong way round.", "~ turns a mask."
    if expected.unique().numel() == 1 and torch.equal(expected.round(), expected):
        return None  # 4 is the square of 2, and much else

    known = [
        (got * math.log(2), "These are bits: right, but in the unit of log2.", "Nats: "
         "the natural logarithm, torch.log or math.log."),
        (1 - got, "Yours is one minus what was asked for.", ""),
        (got.exp(), "Yours is the logarithm of what was asked for.", ".exp()."),
        (got.abs().log(), "Yours is e to the power of what was asked for.", ".log()."),
        ((-got).exp(), "Yours is minus the logarithm of what was asked for.", ""),
        (got.sqrt(), "Yours is the square of what was asked for.", "** 0.5"),
        (got**2, "Yours is the root of what was asked for.", "A square is missing."),
        (1 / got, "Yours is one over what was asked for: upside down.", ""),
        (got.softmax(-1) if got.dim() else got, "These are scores: the softmax over "
         "the last dimension is missing.", ""),
    ]  # fmt: skip
    if got.dim() and same(got, expected.softmax(-1), atol):
        return (
            "These are weights already: softmax was applied to what was asked for.",
            "",
        )
    for numbers, says, hint in known:
        if is_right(numbers):
            return says, hint
    if got.numel() < 3 or expected.unique().numel() < 2:
        return None
    some = expected.abs() > 1e-3
    ratios = got[some] / expected[some]
    if expected[some].unique().numel() > 1 and ratios.abs().min() > 1e-6:
        factor = ratios.median()
        if is_right(got / factor):
            return "The numbers are right up to a constant factor.", (
                f"In this case it is {factor.item():.4g}. Which size is that, or its "
                "root?"
            )
    if (shift := (got - expected).median()) and is_right(got - shift):
        return "The numbers are right up to a constant that is added.", (
            f"In this case it is {shift.item():.4g}."
        )


def cut(difference, atol):
    got, expected = _numbers(difference)
    if (
        got is None
        or got.shape != expected.shape
        or torch.equal(expected.round(), expected)
        or got.abs().max() < 2  # 0 and 1 are the floor and the ceiling of much
    ):
        return None
    for name in ("floor", "ceil", "round", "trunc"):
        if torch.equal(getattr(expected, name)(), got):
            return (
                "The decimals are gone.",
                "Is there a // for a /, an int() or a round?",
            )


def out_of_place(difference, atol):
    got, expected = _numbers(difference)
    if (
        got.numel() < 2
        or got.dim() != expected.dim()
        or got.numel() != expected.numel()
    ):
        return None

    def is_right(mine, right):
        return mine.shape == right.shape and torch.allclose(mine, right, atol=atol)

    for i, j in itertools.combinations(range(got.dim()), 2):
        if is_right(got.transpose(i, j), expected):
            word = "transposed"
            if got.dim() > 2:
                word = f"with dimensions {i}, {j} exchanged"
            return f"The numbers are right, but {word}.", f".transpose({i}, {j})"
    if got.shape != expected.shape:
        return None
    for dim in range(got.dim()):
        n = got.shape[dim]
        if n < 3 or expected.unique().numel() < 3:
            continue
        if is_right(got.flip(dim), expected):
            return f"The numbers are right, but in reverse order (dimension {dim}).", ""
        early = got.narrow(dim, 0, n - 1), expected.narrow(dim, 1, n - 1)
        late = got.narrow(dim, 1, n - 1), expected.narrow(dim, 0, n - 1)
        for pair, word in ((early, "early"), (late, "late")):
            if is_right(*pair) and pair[1].unique().numel() > 2:
                return f"Yours is one place too {word} along dimension {dim}.", ""
    flat = got.flatten().sort().values, expected.flatten().sort().values
    if is_right(*flat) and flat[1].unique().numel() > 2:
        return "The right numbers, but in another order.", (
            "reshape and view keep the order in memory; transpose and permute exchange "
            "dimensions."
        )


def times(differences, atol):
    """Single numbers that are right up to the same factor in all cases."""
    pairs = [_numbers(difference) for difference in differences]
    if len({expected.item() for _, expected in pairs}) < 2:
        return None
    factor = (pairs[0][0] / pairs[0][1]).item()
    common = {2, 3, 4, 8, 16, 100, 1000, 1024, 10**6, 2**20}
    by = factor if abs(factor) > 1 else 1 / factor
    if len(pairs) < 3 and round(by, 6) not in common:
        return None
    if all(same(got, factor * expected, atol) for got, expected in pairs):
        units = {8: "Bits or bytes?", 1000: "Is it another unit?"}
        units |= {1024: units[1000], 10**6: units[1000], 2**20: units[1000]}
        return (
            f"The numbers are right up to a constant factor: yours are {factor:.4g} "
            "times as large.",
            units.get(round(by, 6), ""),
        )


def untouched(differences, names):
    """One of the inputs as it was."""
    for at, name in enumerate(names):
        given = [d.inputs[at] for d in differences]
        if all(
            isinstance(value, torch.Tensor) and value.numel() > 1 for value in given
        ):
            if all(same(d.got, value) for d, value in zip(differences, given)):
                return f"Yours is the input `{name}`, unchanged.", ""


def constant(differences):
    """The same result for all cases, though they differ."""
    values = [_numbers(difference) for difference in differences]
    (got, expected), others = values[0], values[1:]
    if others and all(same(g, got) for g, _ in others) and got.numel() == 1:
        if not any(same(e, expected) for _, e in others):
            says = f"Your result is {got.item():.4g} for every input."
            return says, "Does it use its arguments?"


def nearly(difference, atol):
    got, expected = _numbers(difference)
    if got is None or got.shape != expected.shape:
        return None
    off, size = (got - expected).abs().max(), expected.abs()
    if ((got - expected).abs() <= 0.02 * size + atol).all() and size.max() > 0:
        if not torch.equal(expected.round(), expected):
            return f"Nearly right: the largest difference is {off.item():.2g}.", ""


def one_row(difference, atol):
    """Wrong at the first or last place of a dimension only, or in a single entry."""
    got, expected = _numbers(difference)
    if got is None or got.shape != expected.shape or got.dim() < 1:
        return None
    off = ~torch.isclose(got, expected, atol=atol, rtol=1e-4, equal_nan=True)
    for dim in range(got.dim()):
        if got.shape[dim] < 3:
            continue
        places = off.movedim(dim, 0).flatten(1).any(1).nonzero().flatten().tolist()
        for at, name in ((0, "first"), (got.shape[dim] - 1, "last")):
            if places == [at]:
                return f"Only the {name} place of dimension {dim} is wrong.", ""
    if expected.dtype == torch.double and ((got != 0) == (expected != 0)).all():
        if (expected == 0).any() and (expected != 0).any():
            return "The zeros are in the right places, the other numbers differ.", ""


FIRST = (unreadable, another_kind, not_numbers)  # if only the first one shows it
CLEAR = (unreadable, another_kind, not_numbers, scaled, out_of_place, cut)
VAGUE = (all_alike, another_shape, future, rows, one_row, nearly)


def _sees_future(inputs, answer, reference, atol):
    """Whether the last position of (B, T, …) inputs changes earlier outputs."""
    changed = copy.deepcopy(inputs)
    for value in changed:
        if isinstance(value, torch.Tensor) and value.dim() >= 2 and value.shape[1] > 1:
            if value.is_floating_point() and value.dim() == 3:
                value[:, -1] += 1.0
    right = [_drawn(reference, some) for some in (inputs, changed)]
    mine = [_drawn(answer, some) for some in (inputs, changed)]
    if not torch.equal(mine[0], _drawn(answer, inputs)):
        return False  # it draws other numbers each time
    if any(r is None or r.dim() < 2 for r in right + mine):
        return False
    still = torch.allclose(right[0][:, :-1], right[1][:, :-1], atol=atol)
    moves = not torch.allclose(right[0], right[1], atol=atol)
    return bool(
        still
        and moves
        and mine[0].shape == right[0].shape
        and not torch.allclose(mine[0][:, :-1], mine[1][:, :-1], atol=atol)
    )


def _drawn(program, inputs):
    torch.default_generator.manual_seed(0)
    return as_tensor(program(*copy.deepcopy(inputs)))


def _right_for_some(differences, right, asked=None):
    """What the cases have in common that are right, as far as it can be seen."""
    n, of = len(right), len(right) + len(differences)
    names = asked.names if asked else ()
    for at in range(len(right[0].inputs)):
        good, bad = ([d.inputs[at] for d in some] for some in (right, differences))
        plain = all(isinstance(value, (int, float, str)) for value in good + bad)
        if plain and set(good) in ({0}, {1}) and good[0] not in bad and at < len(names):
            says = f"It is right where `{names[at]}` is {good[0]}, and only there"
            return f"{says} ({n} of {of} inputs).", "What is special about that?"
        if not all(isinstance(x, torch.Tensor) and x.dim() > 1 for x in good + bad):
            continue
        batches = all(x.dim() > 2 or not x.is_floating_point() for x in good)
        ones = all(x.shape[0] == 1 for x in good)
        if batches and ones and all(x.shape[0] > 1 for x in bad):
            return (
                f"It is right for a batch of one only ({n} of {of} inputs).",
                "Does a reshape or an index leave the batch out, or mix its texts?",
            )
        break
    return (
        f"It is right for {n} of {of} inputs. The first wrong one:",
        "What is different about it: a size, a border, a sign, a value that occurs "
        "twice?",
    )
