"""The exercises' checks: right answers pass, and each wrong one hears its mistake."""

import functools

import last_bits
import pytest
import torch
from every_exercise import (
    ANSWERS,
    EXERCISES,
    NOTEBOOKS,
    RIGHT,
    WRONG,
    check_of,
    checks_of,
    names,
)
from exercises import headings_of, play

from minigpt.course.checks import running

HUNTS = [k for k, exercise in EXERCISES.items() if exercise.kind == "Bug hunt"]


@pytest.fixture(scope="module", autouse=True)
def an_optimizer_was_made_before():
    """The first one of a process imports for seconds: nothing that is tested here."""
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])


def codes(answer):
    return [answer] if isinstance(answer, str) else answer


def each(table):
    """An exercise, a text and an answer for every answer of a table."""
    return [
        pytest.param(number, text, code, id=f"{number} {text}")
        for number, rows in table.items()
        for text, answer in rows.items()
        for code in codes(answer)
    ]


@functools.cache
def said(number, code, tell=False):
    """What the check of an answer prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "SECONDS", 0.5 if "while True" in code else 5)
        return play(EXERCISES[number], names(number[:2]), code, tell)


def test_the_notebooks_have_the_exercises_that_are_answered_here_without_gaps():
    assert list(EXERCISES) == list(WRONG) == list(RIGHT)
    for notebook, module in ANSWERS.items():
        places = range(1, len(module.EXERCISES) + 1)
        assert list(module.EXERCISES) == [f"{notebook}.{i}" for i in places]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_checks_title_is_that_of_its_heading_in_the_notebook(notebook):
    found = vars(checks_of(f"{notebook}.1")).values()
    titles = {c.number: c.title for c in found if hasattr(c, "solution")}
    headings = headings_of(notebook)
    assert headings and titles == {n: f"{n} {text}" for n, text in headings.items()}
    assert list(headings) == list(ANSWERS[notebook].EXERCISES)


@pytest.mark.parametrize("number", EXERCISES)
def test_an_untouched_cell_is_not_attempted_or_shows_its_symptom(number):
    answer = said(number, "")
    if number in HUNTS:
        assert answer.startswith(f"✗ {number}") and "The bug is still there" in answer
        assert "right but for" not in answer and "have changed" not in answer
    else:
        assert answer.startswith(f"○ {number}") and "not attempted yet" in answer
        assert answer.count("\n") == 1


@pytest.mark.parametrize("number", EXERCISES)
def test_the_folded_solution_is_right(number):
    answer = said(number, EXERCISES[number].solution)
    assert answer.startswith(f"✓ {number}") and "right! Verified: " in answer


@pytest.mark.parametrize("number, written, code", each(RIGHT))
def test_an_answer_written_otherwise_is_right(number, written, code):
    assert said(number, code).startswith(f"✓ {number}")


@pytest.mark.parametrize("number, part, code", each(WRONG))
def test_a_wrong_answer_hears_its_own_mistake(number, part, code):
    answer = said(number, code, tell=True)
    assert answer.startswith(f"✗ {number}") and "not yet. " in answer
    assert part in answer


def made(solution):
    """A solution's mistakes; with other last bits, without those that need all bits.

    A score of -1e-9, a product with 1, is the same on all processors: so an answer that
    adds 1e-9 to it makes a 0. The noise moves it.
    """
    for mistake in solution.mistakes:
        exact = any("scores + 1e-" in new for _, new in mistake.edits)
        if not (last_bits.SALT and exact):
            yield mistake


def listed():
    """Each mistake that stands behind a solution, and the answer that makes it."""
    for number in EXERCISES:
        solution = check_of(number).solution
        for mistake in made(solution):
            code = solution.shown
            for old, new in mistake.edits:
                code = code.replace(old, new)
            says = mistake.says
            yield pytest.param(number, says, code, id=f"{number} {says}")


@pytest.mark.parametrize("number, says, code", list(listed()))
def test_each_mistake_that_is_listed_is_told_to_who_makes_it(number, says, code):
    answer = said(number, code).replace("\n  Hint", " Hint")
    frame = "Your results are those of this mistake: "
    assert f"not yet. {says}" in answer.replace(frame, "")
