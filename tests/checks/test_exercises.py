"""Right answers pass, wrong ones are refused, and each hears what it has done."""

import contextlib
import functools
import io
import itertools

import pytest
import torch
import torch.nn as nn
from exercises import headings_of, play
from the_exercises import (
    ANSWERS,
    EXERCISES,
    MODULES,
    RIGHT,
    WRONG,
    exercise_of,
    given,
    names,
)

from minigpt.course.checks import exercise as engine
from minigpt.course.checks import run
from minigpt.course.checks.exercise import Exercise
from minigpt.course.checks.slips import slips

HUNTS = [k for k, exercise in EXERCISES.items() if exercise.kind == "Bug hunt"]


@pytest.fixture(scope="module", autouse=True)
def an_optimizer_was_made_before():
    """The first one of a process imports for seconds: nothing that is tested here."""
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])


def each(table):
    """An exercise, a text and an answer for every answer of a table."""
    return [
        pytest.param(number, text, code, id=f"{number} {text}")
        for number, rows in table.items()
        for text, answer in rows.items()
        for code in ([answer] if isinstance(answer, str) else answer)
    ]


@functools.cache
def said(number, code, tell=False):
    """What the check of an answer prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SECONDS", 0.5 if "while True" in code else 3)
        return play(EXERCISES[number], names(number[:2]), code, tell)


def checked(number, answers):
    """What the check prints of answers that are functions already."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exercise_of(number).check(*answers, *given(number)[1])
    return printed.getvalue()


@pytest.mark.parametrize("notebook", MODULES)
def test_a_notebook_has_the_exercises_of_its_module_without_gaps(notebook):
    found = [e for e in vars(MODULES[notebook]).values() if isinstance(e, Exercise)]
    headings = headings_of(notebook)
    titles = {e.number: e.title for e in found}
    assert titles == {n: f"{n} {text}" for n, text in headings.items()}
    assert list(headings) == [f"{notebook}.{i + 1}" for i in range(len(headings))]
    assert list(headings) == list(ANSWERS[notebook].WRONG)
    assert list(headings) == list(ANSWERS[notebook].RIGHT)


@pytest.mark.parametrize("number", EXERCISES)
def test_the_notebook_shows_the_solution_that_the_check_runs(number):
    assert EXERCISES[number].solution.strip() == exercise_of(number).displayed.strip()


@pytest.mark.parametrize("number", EXERCISES)
def test_an_untouched_cell_is_not_attempted_or_shows_its_symptom(number):
    answer = said(number, "")
    if number in HUNTS:
        assert answer.startswith(f"✗ {number}") and "The bug is still there" in answer
        assert "one change away" not in answer
    else:
        assert answer.startswith(f"○ {number}") and "not attempted yet" in answer
        assert answer.count("\n") == 1


@pytest.mark.parametrize("number", EXERCISES)
def test_the_solution_is_right(number):
    assert said(number, EXERCISES[number].solution).startswith(f"✓ {number}")


@pytest.mark.parametrize("number, written, code", each(RIGHT))
def test_an_answer_written_in_another_way_is_right(number, written, code):
    assert said(number, code).startswith(f"✓ {number}")


@pytest.mark.parametrize("number, part, code", each(WRONG))
def test_a_wrong_answer_hears_what_is_wrong(number, part, code):
    answer = said(number, code, tell=True)
    assert answer.startswith(f"✗ {number}") and "not yet. " in answer
    assert part in answer


@pytest.mark.parametrize("number", EXERCISES)
def test_each_known_mistake_is_refused_and_hears_its_sentence(number):
    for mistake in exercise_of(number).mistakes:
        if mistake.programs:
            answer = checked(number, mistake.programs)
            assert f"not yet. {mistake.says}" in answer


@pytest.mark.parametrize("number", EXERCISES)
def test_a_mutant_of_the_solution_fails_or_is_right_with_other_numbers_too(number):
    """Another order of two factors changes nothing; all else would be a hole."""
    asked, (_, rest) = exercise_of(number), given(number)
    with run.settings_kept(), run.silence():
        for slip in itertools.islice(slips(asked.shown, asked.shown), 60):
            try:
                mutant = asked.made(engine.ast.unparse(slip.tree))
                attempt = engine.Attempt(asked, mutant, tuple(rest))
            except Exception:  # it doesn't run at all
                continue
            if not attempt.wrong:
                more = [
                    case for seed in range(5, 9) for case in asked.drawn(rest, seed)
                ]
                for case in more:
                    right = asked.run(asked.solution, case)
                    got = asked.run(mutant, case)
                    assert right.agrees(got, asked.atol), (
                        f"{slip.before} -> {slip.after}"
                    )


# Answers that nobody expects


class Moody:
    def __getattr__(self, name):
        raise RuntimeError("moody")


def odd_values():
    return {
        "a number": 3,
        "a text": "x",
        "a class": nn.Linear,
        "a module without forward": nn.Module(),
        "a built-in function": len,
        "something moody": Moody(),
        "a lambda": lambda *given: given,
        "nothing": lambda *given: None,
        "an empty tensor": lambda *given: torch.empty(0),
        "a complex tensor": lambda *given: torch.ones(2, 3) * 1j,
        "a tensor without numbers": lambda *given: torch.ones(2, device="meta"),
        "a pair": lambda *given: (torch.ones(2), "x"),
        "an exit": lambda *given: exit(),
    }


@pytest.mark.parametrize("number", EXERCISES)
def test_a_check_survives_every_odd_answer(number):
    answers = given(number)[0]
    for what, value in odd_values().items():
        lines = checked(number, [value, *answers[1:]]).splitlines()
        verdicts = [line for line in lines if line[:1] in "○✗✓"]
        assert verdicts == lines[:1] and not lines[0].startswith("✓"), (what, lines)
