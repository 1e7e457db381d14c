"""Comparing an answer with its solution, case by case."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

from minigpt.course.checks.diagnosis import Miss, diagnosed, mended
from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.old_errors import Problem
from minigpt.course.checks.question import Question
from minigpt.course.checks.reading import second_name
from minigpt.course.checks.running import run
from minigpt.course.checks.solutions import Mistake
from minigpt.course.checks.values import Difference, same


def compare(
    answer: Any,
    solution: Any,
    cases: list[tuple],
    known: Iterable[Mistake] = (),
    atol: float = 1e-5,
    *,
    work: Callable | None = None,
    value_names: Iterable[str] = (),
    changes: bool = False,
    hint: str = "",
    complete: bool = True,
) -> None:
    """Raise a Problem unless the answer gives what the solution gives on all cases.

    answer: the learner's function or class. solution: a Solution, whose slips of the
    pen are then tried, or any right program, without slips. cases: list of tuples of
    inputs, the smallest first; each program gets copies. Results may be of any dtype.
    known: mistakes that are tried before the solution's own. work(program, *inputs):
    what to compare, in place of program(*inputs). value_names: those of a tuple's
    values; only the first wrong one is spoken of. changes: whether the answer may
    change its inputs in place. hint: the exercise's, where a mistake brings none.
    complete: False where the checker compares more behind this.
    """
    asked = Question(
        answer,
        solution,
        cases,
        work,
        atol,
        value_names=list(value_names),
        names=_names(work, solution),
        complete=complete,
    )
    wrong, right, changed = [], [], []
    for inputs in cases:
        expected = asked.expected(inputs)
        torch.default_generator.manual_seed(0)
        try:
            got, touched = run(answer, inputs, work, asked.names)
        except Problem as problem:
            if wrong:
                break  # the difference on a smaller case comes first
            problem.share, problem.hint = len(right) / len(cases), hint
            raise mended(problem, asked) from None
        pile = right if same(got, expected, atol) else wrong
        pile.append(Difference(inputs, expected, got))
        changed += touched
    note = None
    if changed and not changes:
        note = _changed_input(asked, changed[0], right_so_far=not wrong)
    if wrong:
        asked.wrong = wrong
        miss = Miss(asked, right, [*known, *asked.mistakes], note)
        raise diagnosed(miss, hint, share=len(right) / len(cases))
    if note:
        raise Problem(*filter(None, [note, second_name(answer)]), share=0.9)


def _names(work: Callable | None, solution: Any) -> list[str]:
    """What the inputs are called, by work or by the solution; [] where neither does."""
    if work is None:
        return getattr(solution, "arguments", [])
    names = inspect.signature(work).parameters.values()
    program, *inputs = [n.name for n in names if n.kind is n.POSITIONAL_OR_KEYWORD]
    return inputs


def _changed_input(asked: Question, which: int, right_so_far: bool) -> Finding:
    """That an answer has changed one of its inputs in place."""
    name = f"`{asked.names[which]}`" if which < len(asked.names) else "its input"
    hint = _how_to_copy(asked.cases[0][which])
    return found(Kind.INPUT_CHANGED, hint, name=name, right=right_so_far)


def _how_to_copy(x: Any) -> str:
    """How to leave an input as it is, by its type."""
    if isinstance(x, torch.nn.Module):
        return (
            "copy.deepcopy(…) gives a module of your own to work on; copy.copy and a "
            "second name share its layers."
        )
    if isinstance(x, (list, tuple, dict)):  # a copy would share what is inside
        return "copy.deepcopy(…) gives a copy of all of it to work on."
    copied = ".copy()" if hasattr(x, "copy") else ".clone()"
    return (
        "Make something new: `x = x * 2` does, `x *= 2` and `x[0] = …` do not; "
        f"{copied} gives a copy to work on."
    )
