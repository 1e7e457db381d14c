"""A question: an answer, its solution and the cases on which they are compared.

It is what all steps of a diagnosis are given. A check is run once more, with other
random numbers, for cases that the answer was not judged by: they tell a mended answer
from one that passes by an accident.
"""

import contextlib
import functools
import io
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch

from minigpt.course.checks.measuring import Difference
from minigpt.course.checks.reading import written
from minigpt.course.checks.running import in_time
from minigpt.course.checks.values import is_finite, other_numbers


@dataclass
class Question:
    """What compare was asked; of(program): the function of inputs that it compares.

    answer: the learner's function or class. solution: a Solution, or any right program.
    atol: the tolerance. parts: names of the values of a tuple. names: of the inputs.
    complete: whether an answer that is right here is right. other_cases: makes the
    cases with other numbers. direct: whether what is compared is the answer's own
    result. wrong: the cases on which the answer is not right.
    """

    answer: Callable
    solution: Any
    cases: list[tuple]
    of: Callable
    atol: float = 1e-5
    parts: Sequence[str] = ()
    names: Sequence[str] = ()
    complete: bool = True
    other_cases: Callable[[], list[tuple]] = list
    direct: bool = True
    wrong: Sequence[Difference] = ()

    def __post_init__(self) -> None:
        for questions in _listening.get():
            questions.append(self)

    @property
    def program(self) -> Callable:
        """The solution's function or class."""
        return getattr(self.solution, "program", self.solution)

    def right(self, *inputs: Any) -> Any:
        """What the solution gives, with the same luck each time."""
        return self.given(self.program, inputs)

    def given(self, program: Callable, inputs: tuple) -> Any:
        """What a program gives that is a candidate or the solution."""
        torch.default_generator.manual_seed(0)
        return self.of(program)(*inputs)

    @property
    def slips(self) -> bool:
        """Whether wrong programs can be made of the solution."""
        return hasattr(self.solution, "text")

    @property
    def own_name(self) -> str:
        """What the learner calls the answer."""
        return getattr(written(self.answer), "__name__", "")

    @functools.cached_property
    def fresh(self) -> list[tuple[tuple, Any]]:
        """(inputs, what is right) of cases that the answer was not judged by."""
        cases, pairs = self.other_cases()[:4], []
        some = (cases or self.cases)[-2:]
        shuffled = [_shuffled(inputs, seed) for seed in range(3) for inputs in some]
        for inputs in [*cases, *shuffled]:
            with contextlib.suppress(Exception):  # no input for the solution
                pairs.append((inputs, self.right(*inputs)))
        for inputs in (_each(x, how) for x in some for how in EXTREMES):
            with contextlib.suppress(Exception):
                right = self.right(*inputs)
                if is_finite(right):
                    pairs.append((inputs, right))
        return pairs

    @functools.cached_property
    def answered(self) -> list[Difference]:
        """The same cases with what the answer gives, where it gives something.

        Two wrong programs that agree on the cases of a check may differ on these.
        """
        every: list[Difference] = []

        def run() -> None:
            for inputs, right in self.fresh:
                with contextlib.suppress(Exception):  # not made for such inputs
                    got = self.given(self.answer, inputs)
                    every.append(Difference(inputs, right, got))

        with contextlib.redirect_stdout(io.StringIO()):
            in_time(run, 2)
        return every


def _shuffled(inputs: tuple, seed: int) -> tuple:
    """Inputs of the same kind, their floats in another order along each dimension."""
    generator = torch.Generator().manual_seed(seed)

    def other(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x
        for dim in range(x.dim()):
            x = x.index_select(dim, torch.randperm(x.shape[dim], generator=generator))
        return x

    return tuple(map(other, inputs))


def _half_silent(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.arange(x.numel()).reshape(x.shape) < x.numel() // 2, 0, x)


EXTREMES = [lambda x: 100 * x, lambda x: -x, _half_silent]  # floats of both signs, as


def _each(x: Any, how: Callable) -> Any:
    """The same with how(tensor) for the tensors in it that may have any floats."""
    if isinstance(x, (tuple, list)):
        return type(x)(_each(part, how) for part in x)
    floats = isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel()
    return how(x) if floats and x.min() < 0 < x.max() else x


_listening: ContextVar[tuple[list[Question], ...]] = ContextVar("listening", default=())


@contextlib.contextmanager
def noted() -> Generator[list[Question]]:
    """A list of all questions that are put inside: to look at a check's cases."""
    questions: list[Question] = []
    token = _listening.set((*_listening.get(), questions))
    try:
        yield questions
    finally:
        _listening.reset(token)


# The same check with other numbers


@dataclass
class _Check:
    """A check under way. comparisons: how many it has come to; until: the one at which
    it stops to hand out the cases, None for a check that goes on to its end."""

    checker: Callable
    answers: tuple
    until: int | None = None
    comparisons: int = 0


class _Stopped(Exception):
    """Raised in place of a comparison, with its cases."""


_check: ContextVar[_Check | None] = ContextVar("check", default=None)


@contextlib.contextmanager
def under_way(
    checker: Callable, answers: tuple, until: int | None = None
) -> Generator[None]:
    """Let comparisons know which check they belong to."""
    token = _check.set(_Check(checker, answers, until))
    try:
        yield
    finally:
        _check.reset(token)


def comes_to(cases: list[tuple]) -> bool:
    """Whether the check that is under way makes its next comparison, or passes it by.

    Of a check that is run for a comparison's cases, that one ends it.
    """
    check = _check.get()
    if check is None:
        return True
    check.comparisons += 1
    if check.until == check.comparisons:
        raise _Stopped(cases)
    return check.until is None


def with_other_numbers() -> Callable[[], list[tuple]]:
    """What makes the cases of the comparison that is made now, with other numbers.

    They are [] where there are none, or where the answer does not get that far.
    """
    check = _check.get()
    if check is None:
        return list
    how = check.checker, check.answers, check.comparisons

    def cases() -> list[tuple]:
        try:
            with other_numbers(), contextlib.redirect_stdout(io.StringIO()):
                with under_way(*how):
                    check.checker(*check.answers)
        except _Stopped as stopped:
            return stopped.args[0]
        except Exception:  # an answer that does not get that far
            pass
        return []

    return cases
