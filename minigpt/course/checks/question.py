"""A question: an answer, its solution and the cases on which they are compared."""

import contextlib
import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from minigpt.course.checks.fresh_cases import fresh_cases
from minigpt.course.checks.reading import written
from minigpt.course.checks.running import in_time
from minigpt.course.checks.solutions import Mistake
from minigpt.course.checks.values import Difference


@dataclass
class Question:
    """What compare() was asked.

    answer: the learner's function or class. solution: a Solution, or any right program.
    work(program, *inputs): what is compared, in place of program(*inputs). atol: the
    tolerance. value_names: of the values of a tuple. names: of the inputs. complete:
    whether an answer that is right here is right. wrong: the cases on which the answer
    is not right, once that is known. slip: what search.own_slip() has found, once it
    has searched.
    """

    answer: Any
    solution: Any
    cases: list[tuple]
    work: Callable | None = None
    atol: float = 1e-5
    value_names: Sequence[str] = ()
    names: Sequence[str] = ()
    complete: bool = True
    wrong: Sequence[Difference] = ()
    slip: Any = ...

    @property
    def program(self) -> Callable:
        """The solution's function or class."""
        return getattr(self.solution, "program", self.solution)

    @property
    def text(self) -> str:
        """The solution's text; "" where it has none, and no slips can be made in it."""
        return getattr(self.solution, "text", "")

    @property
    def mistakes(self) -> Sequence[Mistake]:
        """The solution's own known mistakes."""
        return getattr(self.solution, "mistakes", ())

    @property
    def own_name(self) -> str:
        """What the learner calls the answer."""
        return getattr(written(self.answer), "__name__", "")

    def outcome(self, program: Callable, inputs: tuple) -> Any:
        """What a program gives, on copies of the inputs, with the same luck each time.

        Raises whatever the program raises.
        """
        torch.default_generator.manual_seed(0)
        inputs = copy.deepcopy(inputs)
        return self.work(program, *inputs) if self.work else program(*inputs)

    def expected(self, inputs: tuple) -> Any:
        """What the solution gives."""
        return self.outcome(self.program, inputs)

    @functools.cached_property
    def judged(self) -> list[tuple[tuple, Any]]:
        """(inputs, what is right) of all cases."""
        return [(inputs, self.expected(inputs)) for inputs in self.cases]

    @functools.cached_property
    def fresh(self) -> list[tuple[tuple, Any]]:
        """(inputs, what is right) of cases that the answer was not judged by."""
        return fresh_cases(self.cases, self.expected)

    @functools.cached_property
    def answered(self) -> list[Difference]:
        """The fresh cases with what the answer gives, where it gives something.

        Two wrong programs that agree on the cases of a check may differ on these.
        """
        differences: list[Difference] = []

        def run() -> None:
            for inputs, right in self.fresh:
                with contextlib.suppress(Exception):  # not made for such inputs
                    got = self.outcome(self.answer, inputs)
                    differences.append(Difference(inputs, right, got))

        in_time(run, 2)
        return differences
