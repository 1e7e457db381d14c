"""What makes an answer right by an accident is told apart from what mends it."""

import pytest

from minigpt.course.checks import accidents
from minigpt.course.checks.mutations import mutants

CASES = [  # an answer's line, what it may become, the solution's line, what it is
    ("x * 3", "x * 6", "x.sum() * 2", "strange_number"),
    ("x * 3", "x * 2", "x.sum() * 2", ""),
    ("x / n.sqrt()", "x / n.sqrt() / n ** 0.5", "x / n ** 0.5", "done_twice"),
    ("x * n", "x / n ** 0.5 * n", "x / n ** 0.5", ""),
    ("x.mean() + n", "x.sum() + n", "x.mean()", "takes_away"),
    ("x.mean() + n", "x.sum() + n", "x.sum() + n", ""),
    ("x + n", "x.fill_(1) + n", "x.fill_(1) - n", "overwrites"),
    (
        *("torch.zeros(3) + n", "torch.zeros(3).fill_(1) + n"),
        *("torch.zeros(3).fill_(1) - n", ""),
    ),
    ("x * n", "x / n", "x.sum() + n", "invents"),
    ("x * n", "x / n", "x.sum() / n", ""),
    ("n + 1", "n + 1 + n", "3 * n + n", "doubles"),
    ("3 * (x + n)", "3 * x + n", "3 * x * n", "regroups"),
    ("3 * (x + n)", "3 * x + n", "2 * x + n", ""),
]


def mutant_of(before, after, right):
    """The Mutant of a program that has `before` and comes to have `after`."""
    text, goal = (f"def f(x, n):\n    return {line}\n" for line in (before, right))
    for other in (goal, ""):
        for mutant in mutants(text, other):
            if mutant.line == f"return {after}":
                return mutant, text, goal
    raise AssertionError(f"no mutant makes {after} of {before}")


@pytest.mark.parametrize("before, after, right, kind", CASES)
def test_an_accident_is_known_by_its_kind(before, after, right, kind):
    given = mutant_of(before, after, right)
    kinds = [look.__name__ for look in accidents.ACCIDENTS if look(*given)]
    assert kinds == [kind] * bool(kind)


def test_names_change_places_where_values_should():
    text = "def f(x):\n    T, d = len(x), x[0]\n    return x / d\n"
    found = [m for m in mutants(text) if m.line.startswith(("d, T =", "(d, T) ="))]
    assert found and all(accidents.renames(m, text, text) for m in found)
    assert not accidents.renames(next(mutants(text)), text, text)
