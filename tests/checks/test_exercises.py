"""Right answers pass, wrong ones are refused, and each hears what it has done."""

import ast
import contextlib
import functools
import io
import itertools
import threading
import time

import pytest
import torch
import torch.nn as nn
from exercises import headings_of, play
from IPython.core.interactiveshell import InteractiveShell
from the_exercises import (
    ANSWERS,
    EXERCISES,
    MODULES,
    exercise_of,
    given,
    names,
)

from minigpt.course.checks import diagnosis, run
from minigpt.course.checks import exercise as engine
from minigpt.course.checks.diagnosis import Attempt
from minigpt.course.checks.exercise import Exercise
from minigpt.course.checks.slips import CHANGES, RULES, Slip, is_odd, slips, table
from minigpt.course.checks.source import bare

HUNTS = [k for k, exercise in EXERCISES.items() if exercise.kind == "Bug hunt"]


@pytest.fixture(scope="module", autouse=True)
def an_optimizer_was_made_before():
    """The first one of a process imports for seconds: nothing that is tested here."""
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])


@functools.cache
def said(number, code, tell=False):
    """What the check of an answer prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SECONDS", 0.5 if "while True" in code else 3)
        patch.setattr(diagnosis, "SEARCH", 5.0)  # a busy machine finds as much
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


@pytest.mark.parametrize("number", EXERCISES)
def test_the_notebook_shows_the_solution_that_the_check_runs(number):
    asked = exercise_of(number)
    lines = ast.parse(asked.shown).body
    if asked.returns_answers:
        lines = lines[0].body[1:-1]
    assert bare(EXERCISES[number].solution) == bare(ast.unparse(lines))


@pytest.mark.parametrize("number", EXERCISES)
def test_an_untouched_cell_is_not_attempted_or_shows_its_symptom(number, monkeypatch):
    monkeypatch.setattr(engine, "states", dict.fromkeys(engine.states, "open"))
    said.cache_clear()
    answer = said(number, "")
    if number in HUNTS:
        assert engine.states[exercise_of(number).title] == "open"  # nobody tried
        assert answer.startswith(f"✗ {number}") and "The bug is still there" in answer
        assert "one change away" not in answer
    else:
        assert answer.startswith(f"○ {number}") and "not attempted yet" in answer
        assert answer.count("\n") == 1


@pytest.mark.parametrize("number", EXERCISES)
def test_the_solution_is_right(number):
    assert said(number, EXERCISES[number].solution).startswith(f"✓ {number}")


@pytest.mark.parametrize("number", EXERCISES)
def test_what_people_answered_is_right_or_hears_what_is_wrong(number):
    for answer in ANSWERS:
        if answer["exercise"] == number:
            told = said(number, answer["code"])
            if "says" in answer:
                assert told.startswith(f"✗ {number}") and answer["says"] in told
            else:
                assert told.startswith(f"✓ {number}"), answer["code"]


@pytest.mark.parametrize("number", EXERCISES)
def test_each_known_mistake_is_refused_and_hears_its_sentence(number):
    for mistake in exercise_of(number).known:
        if mistake.programs:
            answer = checked(number, mistake.programs)
            assert f"not yet. {mistake.says}" in answer


def of_all_kinds(found, count):
    """So many of the slips, each kind in its turn."""
    kinds = {}
    for slip in found:
        kinds.setdefault(slip.says, []).append(slip)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*kinds.values()))
    return list(itertools.islice(filter(None, turns), count))


@pytest.mark.parametrize("number", EXERCISES)
def test_a_mutant_of_the_solution_fails_or_is_right_with_other_numbers_too(number):
    """Another order of two factors changes nothing; all else would be a hole."""
    asked, (_, rest) = exercise_of(number), given(number)
    with run.settings_kept(), run.silence():
        attempt = Attempt(asked, tuple(asked.solution), tuple(rest))
        cases = [outcome[:2] for outcome in attempt.outcomes]
        for slip in of_all_kinds(slips(asked.shown, asked.shown), 8):
            try:
                mutant = asked.made(slip.program)
            except Exception:  # it doesn't run at all
                continue
            if attempt.are_right(mutant, cases):
                for seed in range(5, 9):
                    for case in asked.drawn(rest, seed):
                        right = asked.run(asked.solution, case)
                        got = asked.run(mutant, case)
                        change = f"{slip.before} -> {slip.after}"
                        assert right.agrees(got, asked.atol), change


# Answers that nobody expects


class Moody:
    def __getattr__(self, name):
        raise RuntimeError("moody")


def in_itself():
    found = [1]
    found += [found, found]
    return found


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
        "a list in itself": lambda *given: in_itself(),
        "an exit": lambda *given: exit(),
    }


@pytest.mark.parametrize("number", EXERCISES)
def test_a_check_survives_odd_answers(number, monkeypatch):
    """One of them; the next exercise gets the next one."""
    monkeypatch.setattr(diagnosis, "SEARCH", 0.02)
    odd, place = [*odd_values().items()], [*EXERCISES].index(number)
    what, value = odd[place % len(odd)]
    lines = checked(number, [value, *given(number)[0][1:]]).splitlines()
    verdicts = [line for line in lines if line[:1] in "○✗✓"]
    assert verdicts == lines[:1] and not lines[0].startswith("✓"), (what, lines)


# Rules, words, and what the shell knows


@pytest.mark.parametrize("says, before, after", [*table(CHANGES)])
def test_each_change_of_the_table_is_made(says, before, after):
    text = f"def f(A, B):\n    return x[{ast.unparse(before)}]\n"
    found = slips(text, "pass")
    whole = f"return x[{ast.unparse(after)}]"
    assert says in [slip.says for slip in found if slip.after == whole]


@pytest.mark.parametrize("rule, before, after", RULES)
def test_each_rule_makes_its_example(rule, before, after):
    text = f"def f(x, y, n):\n    {before}\n    return x\n"
    assert after in [slip.after for slip in slips(text, "x / n, 2")]


FIRST = "def mean_so_far(x, t):\n    return x[:, :t].mean(dim=1)\n"


def hears(code, tell=False):
    return play(EXERCISES["02.1"], names("02"), code, tell)


def test_a_first_miss_hears_where_and_with_tell_what_it_should_be():
    first = hears(FIRST)
    assert "line 2:  return x[:, :t].mean(dim=1)" in first and "t + 1" not in first
    assert "run check_mean_so_far(mean_so_far, tell=True)" in first
    assert "corrected:  return x[:, :t + 1].mean(dim=1)" in hears(FIRST, tell=True)


def test_a_right_answer_that_changes_its_input_is_shown_it_before_and_after():
    answer = hears(
        "def mean_so_far(x, t):\n"
        "    right = x[:, : t + 1].mean(dim=1)\n"
        "    x *= 2\n"
        "    return right\n"
    )
    assert "changes its input `x`" in answer and "expected" not in answer
    assert "x before  [[[2, 7], [6, 4], [6, 5]]]" in answer
    assert "x after   [[[4, 14], [12, 8], [12, 10]]]" in answer


def test_a_cell_that_is_no_python_is_said_to_be_none(monkeypatch):
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    shell.user_ns.update(names("02"))
    for cell in (EXERCISES["02.1"].solution, "# Exercise 02.1\ndef mean_so_far(x, t:"):
        shell.run_cell(cell, store_history=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        shell.run_cell("check_mean_so_far(mean_so_far)")
    assert "Python can't read your cell" in printed.getvalue()
    assert "line 2:  def mean_so_far(x, t:" in printed.getvalue()


def test_an_answer_without_end_is_stopped_and_its_thread_ends(monkeypatch):
    monkeypatch.setattr(run, "SECONDS", 0.2)
    before = threading.active_count()
    answer = hears("def mean_so_far(x, t):\n    while True:\n        pass\n")
    assert "It was still running after" in answer
    for _ in range(100):
        time.sleep(0.05 * (threading.active_count() > before))
    assert threading.active_count() == before


def test_a_check_leaves_torchs_settings_alone_and_works_in_float64():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        for number in ("02.1", "02.2", "02.4"):
            code = EXERCISES[number].solution
            assert play(EXERCISES[number], names("02"), code).startswith("✓")
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), before)


def test_other_cases_are_drawn_for_homework(monkeypatch):
    asked, (answers, rest) = exercise_of("02.1"), given("02.1")
    first = Attempt(asked, tuple(answers), tuple(rest)).outcomes[-1][0]
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    second = Attempt(asked, tuple(answers), tuple(rest)).outcomes[-1][0]
    assert first[0].shape == second[0].shape and not torch.equal(first[0], second[0])


def test_progress_tells_what_is_open_tried_and_solved(monkeypatch, capsys):
    monkeypatch.setattr(engine, "states", {})

    def double(x):
        return 2 * x

    first, second, third = (
        engine.Exercise(title, double, cases=[(1,), (3,)])
        for title in ("1 One", "2 Two", "3 Three")
    )
    first.check(double), first.check(abs), second.check(abs), second.check(...)
    third.check(None)
    capsys.readouterr()
    engine.progress()
    told = capsys.readouterr().out
    assert told.startswith("● solved  1 One\n◐ tried   2 Two\n○ open    3 Three\n")
    assert told.endswith("1 of 3 solved. Next: 2 Two\n")


def test_an_error_at_an_edge_does_not_hide_a_known_mistake():
    """Where there are no losses this divides by 0."""
    answer = play(
        EXERCISES["10.3"],
        names("10"),
        "def evaluate(rank, losses, group):\n"
        "    mean = sum(losses) / len(losses)\n"
        "    return group.all_reduce(mean) / group.size\n",
    )
    assert "not yet. This is the mean of the workers' means" in answer
    assert "your result  [3.75, 3.75]" in answer


def test_of_two_wrong_values_the_first_one_hears_its_known_mistake():
    answer = play(
        EXERCISES["13.2"],
        names("13"),
        "def per_character(nats, tokens):\n"
        "    size = sum(len(token) for token in tokens)\n"
        "    return nats.mean(), nats.sum() / size\n",
    )
    assert "not yet. This is the loss per token" in answer
    assert "your nats per character" in answer


def test_mistakes_are_read_from_a_text(monkeypatch):
    monkeypatch.setattr(engine, "states", {})

    def half(x):
        return x / 2

    asked = engine.Exercise("1 Half", half, cases=[(4,)])
    asked.mistakes("""
You double it, which
goes the wrong way.
    x / 2 -> x * 2
    or
    return x / 2 -> y = 2 * x
        return y
The bug is still there.
    x / 2
        -> x
    Hint: Try
        a four.
""")
    says = ["You double it, which goes the wrong way."] * 2 + [
        "The bug is still there."
    ]
    assert [mistake.says for mistake in asked.known] == says
    assert [mistake.programs[0](3) for mistake in asked.known] == [6, 6, 3]
    assert asked.known[-1].hint == "Try a four." and asked.known[-1].untouched


def test_an_edit_that_is_not_in_the_solution_is_refused_at_once():
    with pytest.raises(ValueError, match=r"'2\*x' is not in"):
        exercise_of("02.1").wrong("You square.", "2*x", "x*x")


def test_a_change_that_is_right_by_an_accident_is_odd():
    right = "def f(x, n):\n    return x.sum() / n\n"
    odd = [
        ("x.sum() / n", "x.sum() / n * (n / n)"),
        ("x.view(n)", "x.view(n).reshape(n)"),
    ]
    for before, after in odd:
        text, other = (f"def f(x, n):\n    return {e}\n" for e in (before, after))
        slip = Slip("", ast.parse(other), [], "", before, after, text, other, 2)
        assert slip.program == other.strip() and is_odd(slip, text, right)
