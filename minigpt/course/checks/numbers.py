"""Inputs of one's own: an answer is right for everybody, what it gives on them is not.

A class list numbers the learners. The cases of up to three checks of a lesson, drawn
with other random numbers for each learner, are their own inputs, and all results on
them become one number, to be written down. Copied, it is right for somebody else.
"""

import functools
import importlib
import itertools
import math

from minigpt.course.checks import core
from minigpt.course.checks.errors import Explained, NotAttempted
from minigpt.course.checks.grading import other_numbers
from minigpt.course.checks.running import attempted, run
from minigpt.course.checks.values import as_tensor, same


@functools.cache
def questions(lesson):
    """The checks of a module, three at most, that differ from learner to learner."""
    module = importlib.import_module(f"minigpt.course.checks.{lesson}")
    checks = [one for name, one in vars(module).items() if name.startswith("check_")]
    return list(itertools.islice((c for c in checks if right(c, 1) != right(c, 2)), 3))


def asked(check, number):
    """What a check compares with a learner's inputs; None where it wants a model."""
    with other_numbers(1000 * number):
        try:
            check.__wrapped__(core.ASKING)
        except core.Asked as found:
            return found.args[0]
        except (TypeError, Explained):
            return None


def right(check, number):
    """What a learner has to find, a float with three decimals."""
    question = asked(check, number)
    return question and one_number([question.right(*case) for case in question.cases])


def key(lesson, number):
    """What a learner has to find for each of the questions."""
    return [right(check, number) for check in questions(lesson)]


def one_number(results):
    """All numbers in some results, the one at place i times the cosine of i, added."""
    numbers = (x for x in _flat(results) if math.isfinite(x))
    return round(sum(x * math.cos(i) for i, x in enumerate(numbers)), 3)


def _flat(value):
    if isinstance(value, (tuple, list)):
        return [number for part in value for number in _flat(part)]
    numbers = as_tensor(value)
    return [] if numbers is None else numbers.flatten().tolist()


def show_numbers(lesson, number, *answers):
    """Print what a learner's functions give on the inputs of this number."""
    if type(number) is not int:
        return print("First write your number in place of the `...`.")
    for check, answer in zip(questions(lesson), answers):
        question = asked(check, number)

        def work(answer, question=question):
            results = [question.given(answer, case) for case in question.cases]
            return one_number(results) if all(map(attempted, results)) else ...

        try:
            found = run(answer, (), work)[0]
        except NotAttempted:
            found = "not attempted yet"
        except Exception as problem:  # the learner's code may raise anything
            found = problem.args[0] if isinstance(problem, Explained) else repr(problem)
        print(f"{check.__name__.removeprefix('check_'):24}{found}")


def check_numbers(lesson, number, found):
    """Whether the numbers that a learner found are theirs; prints and returns a Result.

    number: int, theirs on the class list. found: list of numbers, three decimals.
    """
    names = [check.__name__.removeprefix("check_") for check in questions(lesson)]
    given = type(number) is int and isinstance(found, (list, tuple))
    pairs = zip(names, found, key(lesson, number)) if given else []
    good = [name for name, one, wanted in pairs if same(one, wanted, atol=2e-3)]
    state = "open" if number is ... else "solved" if good == names else "tried"
    message = {
        "open": "not attempted yet: replace the `...`.",
        "solved": f"right! Verified: {len(good)} results on inputs of your own.",
        "tried": f"not yet. With the number {number!r} something else comes out of "
        f"{', '.join(name for name in names if name not in good)}.\n"
        "  Hint: `show_numbers` prints what belongs into `found`, if `number` is yours "
        "on the class list and the checks of the functions say ✓.",
    }[state]
    result = core.Result("Your numbers", state, message, len(good) / len(names))
    print(result)
    return result
