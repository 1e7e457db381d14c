"""The exercises' checks: right answers pass, and each wrong one hears its mistake."""

import ast
import contextlib
import copy
import functools
import io
import itertools
import math
import re
import threading
import time

import last_bits
import pytest
import torch
import torch.nn as nn
from every_exercise import (
    ANSWERS,
    EXERCISES,
    NOTEBOOKS,
    RIGHT,
    WRONG,
    check_of,
    checks_of,
    names,
    solved,
)
from exercises import headings_of, play
from IPython.core.compilerop import CachingCompiler
from IPython.core.interactiveshell import InteractiveShell

from minigpt.course.checks import comparing, core, running, search
from minigpt.course.checks.mutations import mutants
from minigpt.course.checks.question import Question
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.trees import replaced
from minigpt.course.checks.values import other_numbers, same

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


@pytest.mark.parametrize("number", EXERCISES)
def test_a_right_answer_is_searched_for_nothing_and_leaves_all_else_alone(
    number, monkeypatch, capsys
):
    """Counted in candidates: seconds would be those of a busy machine."""
    said(number, EXERCISES[number].solution)  # imports done, memory warm
    learner = solved(number)
    torch.manual_seed(5)
    threads = torch.get_num_threads(), threading.active_count()
    before, tried = torch.get_rng_state(), []
    monkeypatch.setattr(search, "first", lambda *given: tried.append(given) or [])
    exec(EXERCISES[number].check, learner)
    assert tried == []
    assert torch.equal(torch.get_rng_state(), before)
    assert (torch.get_num_threads(), threading.active_count()) == threads


def test_of_a_wrong_answer_no_more_is_tried_than_the_budget_allows():
    tried = []
    assert search.first(range(10_000), tried.append, search.CANDIDATES) == []
    assert len(tried) == search.CANDIDATES


def test_an_answer_without_end_is_stopped_and_its_thread_ends(monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 0.2)
    before = threading.active_count()
    code = "def entropy(p):\n    while True:\n        pass\n"
    answer = play(EXERCISES["07.1"], names("07"), code)
    assert "still running after 0.2 seconds" in answer
    for _ in range(100):
        time.sleep(0.05 * (threading.active_count() > before))
    assert threading.active_count() == before


# What single exercises promise.


def test_who_changed_a_hunt_but_not_its_bug_hears_where_it_is():
    code = EXERCISES["12.4"].skeleton.replace("g,)", "g * (y >= 0),)")
    answer = said("12.4", code, tell=True)
    assert "The bug is still there" in answer and "`y >= 0` where `y > 0`" in answer


def test_a_second_name_that_the_exercise_gave_is_not_blamed():
    code = EXERCISES["14.1"].skeleton.replace(
        "tensor.shape !=", "False or tensor.shape !=", 1
    )
    answer = said("14.1", code)
    assert "not what it gives" in answer and "second name" not in answer


def test_of_a_row_without_nan_none_is_said_to_be_there():
    code = """
def smooth(counts, lower, strength):
    lower = lower.flip(0) if lower.dim() == 2 else lower
    return (counts + strength * lower) / (counts.sum(-1, keepdim=True) + strength)
"""
    answer = said("07.3", code)
    assert "not yet" in answer and "nan" not in answer


def test_a_module_is_as_good_as_a_function():
    scores = """
class Scores(nn.Module):
    def forward(self, x, W_query, W_key):
        q, k = x @ W_query, x @ W_key
        return q @ k.mT / q.shape[-1] ** 0.5
scaled_scores = Scores()
"""
    assert said("03.1", scores).startswith("✓")


@pytest.mark.parametrize("number", ["03.3", "04.2"])
def test_the_learners_own_model_is_unharmed(number):
    learner = solved(number)
    model = learner["model"]
    before = copy.deepcopy(model.state_dict())
    right = EXERCISES[number].solution
    for code in (right, right.replace("deepcopy(model)", "model")):
        play(EXERCISES[number], learner, code)
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_progress_tells_what_is_open_tried_and_solved(monkeypatch, capsys):
    monkeypatch.setattr(core, "_exercises", {})
    monkeypatch.setattr(core, "_checkers", {})

    def check_positive(answer):
        if answer < 0:
            raise core.Explained("Too small.")
        return "it is positive."

    first, second, third = [
        core.exercise(title)(check_positive) for title in ("1 One", "2 Two", "3 Three")
    ]
    first(1), first(-1), second(-1), second(...), third(None)
    capsys.readouterr()
    core.progress()
    told = capsys.readouterr().out
    assert told.startswith("● solved  1 One\n◐ tried   2 Two\n○ open    3 Three\n")
    assert told.endswith("1 of 3 solved. Next: 2 Two\n")
    second(2), third(3), core.progress()
    assert capsys.readouterr().out.endswith("3 of 3 solved. All done!\n")


def test_a_number_is_given_once(monkeypatch):
    monkeypatch.setattr(core, "_exercises", {})
    monkeypatch.setattr(core, "_checkers", {})

    def check_one(answer):
        return "it is one."

    def check_two(answer):
        return "it is two."

    core.exercise("1.1 One")(check_one)
    core.exercise("1.1 One")(check_one)  # its module was loaded again
    with pytest.raises(ValueError, match="1.1 Two.*check_one has number 1.1 already"):
        core.exercise("1.1 Two")(check_two)
    core.exercise("1.2 Two")(check_two)
    assert list(core._exercises) == ["1.1 One", "1.2 Two"]


def test_a_mistake_whose_edit_is_not_in_the_solution_is_refused_at_once():
    text = "def double(x):\n    return 2 * x\n"
    Solution(text, Mistake("You square.", [("2 * x", "x * x")]))
    with pytest.raises(ValueError, match=r"'You square\.': '2\*x' is not in the sol"):
        Solution(text, Mistake("You square.", [("2*x", "x*x")]))


# Help comes in steps.

WITHOUT_THE_PRESENT = "def mean_so_far(x, t):\n    return x[:, :t].mean(dim=1)\n"


def hears(code, tell=False):
    return play(EXERCISES["02.1"], names("02"), code, tell)


def test_a_first_miss_hears_where_and_what_kind_and_not_what_belongs_there():
    hears(EXERCISES["02.1"].solution)  # whatever was missed before
    first = hears(WITHOUT_THE_PRESENT)
    assert "an index is off by one" in first and "your line 2: return x" in first
    assert "+ 1" not in first and "check_mean_so_far(…, tell=True)" in first
    assert hears(WITHOUT_THE_PRESENT) == first  # the same again is no second try


def test_tell_and_a_second_miss_at_the_same_place_say_what_belongs_there():
    hears(EXERCISES["02.1"].solution)
    assert "`+ 1` left out" in hears(WITHOUT_THE_PRESENT, tell=True)
    hears(EXERCISES["02.1"].solution)
    hears(WITHOUT_THE_PRESENT)
    second = hears(WITHOUT_THE_PRESENT.replace(":t]", ": t + 2]"))
    assert "`t + 2` where `t + 1` belongs" in second or "`2` where `1`" in second


def test_a_cell_that_is_no_python_is_said_to_be_none(monkeypatch):
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    shell.user_ns.update(names("02"))
    for cell in (EXERCISES["02.1"].solution, "# Exercise 02.1\ndef mean_so_far(x, t:"):
        shell.run_cell(cell, store_history=True, silent=False)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(EXERCISES["02.1"].check, shell.user_ns)
    assert "✗ 02.1" in printed.getvalue() and "SyntaxError" in printed.getvalue()
    shell.run_cell(f"# Exercise 02.1\n{EXERCISES['02.1'].solution}", store_history=True)
    with contextlib.redirect_stdout(printed):
        exec(EXERCISES["02.1"].check, shell.user_ns)
    assert printed.getvalue().rstrip().splitlines()[-1].startswith("✓ 02.1")


# Whatever is answered, a check ends in one verdict.


class Moody:
    """An answer that does not let itself be looked at."""

    def refuse(self, *ignored, **also):
        raise RuntimeError("not with me")

    __eq__ = __bool__ = __len__ = __iter__ = __float__ = __index__ = refuse
    __call__ = __repr__ = __getitem__ = __getattr__ = __hash__ = __array__ = refuse


def odd_values():
    """What nobody expects as an answer, fresh each time: some are used up."""
    return {
        "a number too large": 10**400,
        "a text": "text",
        "four odd things": (None, "text", 1j, math.nan),
        "a generator": (number for number in (1, 2)),
        "an empty tensor": torch.empty(0),
        "a complex tensor": torch.ones(2, 3) * 1j,
        "a tensor without numbers": torch.ones(2, 3, device="meta"),
        "a class": nn.Linear,
        "a module without forward": nn.Module(),
        "a built-in function": len,
        "something moody": Moody(),
    }


def given(number):
    """The check of an exercise, and what its solution gives to it."""
    learner = solved(number)
    call = ast.parse(EXERCISES[number].check).body[0].value
    check, *answers = [eval(ast.unparse(n), learner) for n in (call.func, *call.args)]
    return check, answers


def returning(value):
    return lambda *ignored, **also: value


def odd_answers(answers):
    """The answers of a solution with something odd in the place of one of them."""
    for what, value in odd_values().items():
        yield what, [value, *answers[1:]]
    for what, value in odd_values().items():
        yield what, [returning(value), *answers[1:]]
    for place in range(1, len(answers)):
        yield "a name that was lost", [*answers[:place], Moody(), *answers[place + 1 :]]


@pytest.mark.parametrize("number", EXERCISES)
def test_a_check_survives_every_odd_answer(number, capsys, monkeypatch):
    monkeypatch.setattr(search, "first", lambda *_: [])  # there is nothing to find
    check, answers = given(number)
    for what, odd in odd_answers(answers):
        try:
            check(*odd)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        lines = capsys.readouterr().out.splitlines()
        verdicts = [line for line in lines if line[:1] in "○✗✓"]
        assert len(verdicts) == 1 and verdicts == lines[:1], (what, lines)


@pytest.mark.parametrize("number, lost", [("01.3", "train_data"), ("03.3", "val_data")])
def test_a_name_that_was_lost_is_not_called_the_learners_error(number, lost):
    answer = said(number, f"{EXERCISES[number].solution}\n{lost} = 3")
    assert "This answer could not be compared: " in answer and "It raised" not in answer
    assert "run the cells above again" in answer


def test_an_error_in_the_checks_own_wrapping_is_not_the_learners():
    code = EXERCISES["04.3"].solution.replace("self.proj", "self.mix")
    answer = said("04.3", code)
    assert "This answer could not be compared: " in answer and "It raised" not in answer
    assert "Wanted: A class Heads(n_embd, n_head) whose copies" in answer


@pytest.mark.parametrize("number", ["01.1", "01.5", "04.4", "05.4", "06.2"])
def test_what_cannot_be_called_should_be_a_function(number):
    name = re.match(r"check_\w+\((\w+)", EXERCISES[number].check)[1]
    assert "This should be a function (or a module), " in said(number, f"{name} = 3")


def test_an_error_names_the_last_line_of_the_learners_cell(capsys):
    cell = """# Exercise 01.1
def surprise(p):
    log_p = p.log()
    return F.nll_loss(log_p, 3)
"""
    learner, compiler = dict(names("01")), CachingCompiler()  # as in a notebook
    exec(compile(cell, compiler.cache(cell), "exec"), learner)
    exec(EXERCISES["01.1"].check, learner)
    line = "    in surprise, line 4: return F.nll_loss(log_p, 3)\n"
    assert line in capsys.readouterr().out


def test_an_error_names_the_number_of_a_line_whose_text_is_gone(capsys):
    learner = dict(names("01"))
    exec("\ndef surprise(p):\n    return p.ln()", learner)  # in no file, no cell
    exec(EXERCISES["01.1"].check, learner)
    assert "    in surprise, line 3\n" in capsys.readouterr().out


class OnApple(torch.Tensor):
    """A tensor on a device that has no float64."""

    def double(self):
        raise TypeError("the MPS framework doesn't support float64")

    def cpu(self):
        return self.as_subclass(torch.Tensor)


def test_a_tensor_on_a_device_without_float64_is_compared():
    assert same(torch.ones(2).as_subclass(OnApple), torch.ones(2))
    assert not same(torch.zeros(2).as_subclass(OnApple), torch.ones(2))


@pytest.mark.parametrize("value", ["0j", "1j"])
def test_complex_numbers_are_not_right_and_told_so(value):
    code = f"def entropy(p):\n    return torch.special.entr(p).sum(-1) + {value}"
    assert "its numbers are complex" in said("07.1", code)


def test_a_tree_is_copied_without_what_a_traceback_hung_on_its_shared_nodes():
    tree, other = ast.parse("x = [y[0], -z]"), ast.parse("z")
    shared = other.body[0].value.ctx  # the Load() of all trees
    shared.parent = other
    try:
        twin = replaced(tree)
        assert ast.dump(twin, include_attributes=True) == ast.dump(
            tree, include_attributes=True
        )
        nodes = set(map(id, ast.walk(tree))) & set(map(id, ast.walk(twin)))
        assert not nodes and not any(hasattr(n, "parent") for n in ast.walk(twin))
    finally:
        del shared.parent


# The cases tell a solution from all that a small change makes of it: who gave what it
# gives on all cases would be called right.

MUTANTS = 60  # of each solution, the likeliest first


def questions(number, context=contextlib.nullcontext):
    """All comparisons that the check of an exercise makes, of a right answer."""
    check, answers = given(number)
    asked = []

    class Noted(Question):
        def __init__(self, *how, **named):
            super().__init__(*how, **named)
            asked.append(self)

    with pytest.MonkeyPatch.context() as patch, context():
        patch.setattr(comparing, "Question", Noted)
        with contextlib.redirect_stdout(io.StringIO()):
            assert check(*answers)
    return [one for one in asked if one.text]


def passes(program, asked, cases):
    """Whether a program gives what the solution gives on some cases."""

    def agrees(asked):
        pairs = ((asked.outcome(program, case), asked.expected(case)) for case in cases)
        return all(same(*pair, asked.atol) for pair in pairs)

    return bool(search.first([asked], agrees, 1))


@pytest.mark.parametrize("number", EXERCISES)
def test_no_known_mistake_passes(number):
    every = [asked for asked in questions(number) if asked.mistakes]
    for mistake in made(check_of(number).solution):
        program = check_of(number).solution.but(*mistake.edits)
        assert not all(passes(program, one, one.cases) for one in every), mistake.says


@pytest.mark.parametrize("number", EXERCISES)
def test_a_mutant_that_passes_is_right_with_other_numbers_too(number):
    """Another order of two factors changes nothing; all else would be a hole."""
    every = questions(number)
    text = every[0].solution.shown if every else ""
    fresh = [one.cases for one in questions(number, other_numbers)]
    for mutant in itertools.islice(mutants(text), MUTANTS):
        programs = []
        with contextlib.suppress(Exception):
            programs = [one.solution.made(mutant.code) for one in every]
        three = list(zip(programs, every, fresh))
        if three and all(passes(p, one, one.cases) for p, one, _ in three):
            changed = f"`{mutant.now}` where `{mutant.was}` belongs"
            assert all(passes(p, one, cases) for p, one, cases in three), changed
