"""The exercises' checks: right answers pass, and each wrong one hears its mistake."""

import ast
import copy
import functools
import importlib
import math
import re
import threading
import time

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from exercises import answered, play
from IPython.core.compilerop import CachingCompiler
from IPython.core.formatters import DisplayFormatter

from minigpt.checks import core, running
from minigpt.multi_head import CausalSelfAttention, MultiHeadAttention

NOTEBOOKS = {
    "01": "bigram",
    "02": "averaging",
    "03": "self_attention",
    "04": "multi_head",
    "05": "residual_blocks",
    "06": "full_training",
    "07": "how_low",
    "08": "modern_gpt",
    "09": "fast_generation",
    "10": "many_machines",
    "11": "looking_inside",
}
ANSWERS = {n: importlib.import_module(f"answers.{m}") for n, m in NOTEBOOKS.items()}
EXERCISES = {k: e for module in ANSWERS.values() for k, e in module.EXERCISES.items()}
WRONG = {k: rows for module in ANSWERS.values() for k, rows in module.WRONG.items()}
RIGHT = {k: rows for module in ANSWERS.values() for k, rows in module.RIGHT.items()}
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


def checks_of(number):
    return importlib.import_module(f"minigpt.checks.{NOTEBOOKS[number[:2]]}")


@functools.cache
def names(notebook):
    """The names in which the cells of a notebook run."""
    checks = checks_of(notebook)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        found = ANSWERS[notebook].names()
    found |= {name: f for name, f in vars(checks).items() if name.startswith("check_")}
    return {
        "__name__": "__main__",
        **{"copy": copy, "math": math, "torch": torch, "nn": nn, "F": F},
        **found,
    }


@functools.cache
def heard(number, code):
    """What the check of an answer prints, and what it would say of known mistakes."""
    known, explain = set(), core.explain

    def listen(differences, mistakes, *more):
        known.update(mistake.says for mistake in mistakes)
        explain(differences, mistakes, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "SECONDS", 0.5 if "while True" in code else 5)
        patch.setattr(core, "THINKING", 8)  # so that a slow machine finds as much
        for module in core, checks_of(number):
            patch.setattr(module, "explain", listen, raising=False)
        return play(EXERCISES[number], names(number[:2]), code), known


def said(number, code):
    return heard(number, code)[0]


def solved(number):
    return answered(EXERCISES[number], names(number[:2]), EXERCISES[number].solution)


def test_the_notebooks_have_the_exercises_that_are_answered_here():
    assert list(EXERCISES) == list(WRONG) == list(RIGHT)
    kinds = [exercise.kind for exercise in EXERCISES.values()]
    assert (kinds.count("Exercise"), kinds.count("Bug hunt")) == (64, 29)


@pytest.mark.parametrize("number", EXERCISES)
def test_every_exercise_has_five_wrong_answers_and_two_right_ones(number):
    assert sum(len(codes(answer)) for answer in WRONG[number].values()) >= 5
    assert len(RIGHT[number]) >= 2


@pytest.mark.parametrize("number", EXERCISES)
def test_an_untouched_cell_is_not_attempted_or_shows_its_symptom(number):
    answer = said(number, "")
    if number in HUNTS:
        assert answer.startswith(f"✗ {number}") and "The bug is still there" in answer
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
    answer = said(number, code)
    assert answer.startswith(f"✗ {number}") and "not yet. " in answer
    assert part in answer
    for other in WRONG[number]:  # two parts may stand in one message, but not in two
        if other in answer and other not in part:
            assert part in said(number, codes(WRONG[number][other])[0])


@pytest.mark.parametrize("number", EXERCISES)
def test_every_mistake_that_a_check_knows_is_made_here(number):
    answers = [code for answer in WRONG[number].values() for code in codes(answer)]
    answers = [heard(number, code) for code in [*answers, ""]]
    printed = "".join(answer for answer, _ in answers)
    known = set().union(*(known for _, known in answers))
    assert [says for says in known if says not in printed] == []


@pytest.mark.parametrize("number", EXERCISES)
def test_a_check_is_quick_and_leaves_randomness_and_threads_alone(number, capsys):
    said(number, EXERCISES[number].solution)  # imports done, memory warm
    learner = solved(number)
    torch.manual_seed(5)
    threads = torch.get_num_threads(), threading.active_count()
    before, start = torch.get_rng_state(), time.process_time()
    exec(EXERCISES[number].check, learner)
    assert time.process_time() - start < 2
    assert torch.equal(torch.get_rng_state(), before)
    assert (torch.get_num_threads(), threading.active_count()) == threads


def test_an_answer_without_end_is_stopped_and_its_thread_ends(monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 0.2)
    before = threading.active_count()
    answer = play(EXERCISES["07.2"], names("07"), WRONG["07.2"]["still running"])
    assert "still running after 0.2 seconds" in answer
    for _ in range(100):
        time.sleep(0.05 * (threading.active_count() > before))
    assert threading.active_count() == before


# What single exercises promise.


def test_the_smallest_input_is_shown_with_expected_and_received_values():
    answer = said("02.1", WRONG["02.1"]["`2` where `1` belongs"])
    assert "[[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]]" in answer
    assert "expected [[4.0, 5.5]]" in answer
    assert "received [[4.6667, 5.3333]]" in answer


def test_the_learners_own_text_is_told_about():
    answer = said("02.3", EXERCISES["02.3"].solution + "\nmy_text = 'xyzzy!'")
    assert "After 6 characters of yours, 'y' leads with 33%" in answer


def test_a_module_is_as_good_as_a_function():
    scores = """
class Scores(nn.Module):
    def forward(self, x, W_query, W_key):
        q, k = x @ W_query, x @ W_key
        return q @ k.mT / q.shape[-1] ** 0.5
scaled_scores = Scores()
"""
    assert said("03.1", scores).startswith("✓")


@pytest.mark.parametrize("tolerance, causal", [("1e-4", True), ("1e-6", False)])
def test_the_search_for_leaks_acquits_a_float32_box_that_only_rounds(tolerance, causal):
    def total_less_the_future(x):
        future = x.flip(1).cumsum(dim=1).flip(1) - x
        count = torch.arange(1, x.shape[1] + 1)[:, None]
        return (x.sum(dim=1, keepdim=True) - future) / count

    code = EXERCISES["02.5"].solution.replace("1e-4", tolerance)
    who_hears_whom = answered(EXERCISES["02.5"], names("02"), code)["who_hears_whom"]
    torch.manual_seed(0)
    assert bool(who_hears_whom(total_less_the_future, 64)[1]) == causal


def test_the_gradient_by_hand_is_autograds():
    gradient = solved("01.6")["loss_gradient"]
    logits, y = torch.randn(3, 4, 5, requires_grad=True), torch.randint(5, (3, 4))
    F.cross_entropy(logits.view(-1, 5), y.view(-1)).backward()
    torch.testing.assert_close(gradient(logits.detach(), y), logits.grad)


@pytest.mark.parametrize("number", ["03.5", "03.6", "04.3", "04.5", "04.6", "05.6"])
def test_the_learners_own_model_is_unharmed(number):
    learner = solved(number)
    model = learner["my_model" if number == "05.6" else "model"]
    before = copy.deepcopy(model.state_dict())
    damage = ["", WRONG["03.6"]["changes its input in place"]][number == "03.6"]
    for code in (EXERCISES[number].solution, damage):
        play(EXERCISES[number], learner, code)
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_answer_to_multi_query_is_attention_with_repeated_keys():
    """The exercise says so: one key and value, shared, is a special case."""
    layer, x = CausalSelfAttention(12, 4), torch.randn(2, 5, 12)
    query, key, value = nn.Linear(12, 12, False), *[nn.Linear(12, 3, False)] * 2
    k, v = key.weight.repeat(4, 1), value.weight.repeat(4, 1)
    layer.qkv.weight.data = torch.cat([query.weight, k, v])
    got = solved("04.4")["multi_query"](x, query, key, value, layer.proj, 4)
    torch.testing.assert_close(got, layer(x))


def test_a_part_taken_out_of_the_model_works_as_a_head():
    learner = solved("04.3")
    layer, heads = learner["model"].body, MultiHeadAttention(12, 4)
    heads.proj.load_state_dict(layer.proj.state_dict())
    for h, head in enumerate(heads.heads):
        parts = learner["take_apart"](layer, h)
        for linear, weight in zip((head.query, head.key, head.value), parts):
            linear.weight.data = weight.data
    x = torch.randn(2, 8, 12)
    torch.testing.assert_close(heads(x), layer(x))


@pytest.mark.parametrize("code, hidden", [("skeleton", False), ("solution", True)])
def test_the_planted_bug_of_the_dice_shows_the_future(code, hidden):
    exercise = EXERCISES["04.8"]
    learner = answered(exercise, names("04"), getattr(exercise, code))
    layer, x = learner["DiceHeads"](24, 3), torch.randn(2, 8, 24)
    changed = x.clone()
    changed[:, 5:] = 0
    assert torch.equal(layer(x)[:, :5], layer(changed)[:, :5]) == hidden


@pytest.mark.parametrize("number", ["04.3", "04.5", "04.6"])
def test_a_model_of_another_kind_is_named(number):
    code = EXERCISES[number].solution + "\nmodel = nn.Linear(2, 2)"
    assert "Run the cells of section 5 again" in said(number, code)


def test_an_experiment_on_something_else_than_a_model_is_explained():
    code = "loudness, my_model = len, nn.Linear(2, 2)"
    assert "should be a LanguageModel" in said("05.5", code)


def test_ones_own_grammar_is_told_its_floor_and_which_way_to_go():
    answer = said("07.5", WRONG["07.5"]["too high"])
    assert "its floor is 0.5" in answer and "lists of words shorter" in answer
    answer = said("07.5", WRONG["07.5"]["too low"])
    assert "lists of words longer" in answer and "lines=LEXICON.lines" in answer


def test_an_entry_that_the_playwright_refuses_is_to_be_changed():
    answer = said("07.5", WRONG["07.5"]["which Tiny Shakespeare"])
    assert "The message names the value that is not accepted" in answer


def test_a_right_entropy_of_an_own_grammar_is_reported():
    answer = said("07.5", EXERCISES["07.5"].solution)
    assert "5 people of your own" in answer and "floor of 0." in answer


def test_progress_tells_what_is_open_tried_and_solved(monkeypatch, capsys):
    monkeypatch.setattr(core, "_exercises", {})

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


def test_a_check_returns_what_it_prints(monkeypatch, capsys):
    monkeypatch.setattr(core, "_exercises", {})

    @core.exercise("0 Doubled")
    def check(double):
        core.compare(double, lambda x: 2 * x, [(0,), (1,), (2,), (3,)])
        return "doubled."

    for answer, state, share in [
        (lambda x: x + x, "solved", 1.0),
        (lambda x: x * x, "tried", 0.5),
        (lambda x: 1, "tried", 0.0),
        (lambda x: x.missing, "tried", 0.0),
        (lambda x: None, "open", 0.0),
    ]:
        result = check(answer)
        assert (result.title, result.state, result.share) == ("0 Doubled", state, share)
        assert bool(result) == (state == "solved")
        assert capsys.readouterr().out == f"{result}\n"
        assert str(result)[2:] == f"0 Doubled: {result.message}"
        assert DisplayFormatter().format(result) == ({}, {})  # no second time


def test_a_list_that_belongs_to_the_learners_class_is_left_as_it_was():
    learner = answered(EXERCISES["09.8"], names("09"), EXERCISES["09.8"].skeleton)
    exec(EXERCISES["09.8"].check, learner)
    assert learner["Memory"].kept == []


@pytest.mark.parametrize("number", HUNTS)
def test_an_untouched_hunt_has_no_share_of_the_marks(number):
    learner = answered(EXERCISES[number], names(number[:2]), "")
    result = eval(EXERCISES[number].check, learner)
    assert (result.state, result.share) == ("untouched", 0.0) and not result


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
        "a number": 3,
        "nan": math.nan,
        "infinity": math.inf,
        "a number too large": 10**400,
        "a complex number": 1j,
        "a text": "text",
        "a dict": {"a": 1},
        "None in a pair": (None, None),
        "four odd things": (None, "text", 1j, math.nan),
        "a generator": (number for number in (1, 2)),
        "an empty tensor": torch.empty(0),
        "a complex tensor": torch.ones(2, 3) * 1j,
        "a bool tensor": torch.ones(3, 3, dtype=torch.bool),
        "a sparse tensor": torch.eye(3).to_sparse(),
        "a tensor without numbers": torch.ones(2, 3, device="meta"),
        "a tensor that wants a gradient": torch.ones(2, 3, requires_grad=True),
        "a class": nn.Linear,
        "a module": nn.Linear(2, 2),
        "a module without numbers": nn.Linear(2, 2, device="meta"),
        "a module without forward": nn.Module(),
        "a built-in function": len,
        "part of a function": functools.partial(torch.softmax, dim=-1),
        "a function without arguments": lambda: 0,
        "an error": ValueError("no answer"),
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
    monkeypatch.setattr(core, "matches", lambda *_: [])  # there is nothing to find
    check, answers = given(number)
    for what, odd in odd_answers(answers):
        try:
            check(*odd)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        lines = capsys.readouterr().out.splitlines()
        verdicts = [line for line in lines if line[:1] in "○✗✓"]
        assert len(verdicts) == 1 and verdicts == lines[:1], (what, lines)


@pytest.mark.parametrize(
    "number, lost", [("01.3", "train_data"), ("03.5", "val_data"), ("06.6", "spots")]
)
def test_a_name_that_was_lost_is_not_called_the_learners_error(number, lost):
    answer = said(number, f"{EXERCISES[number].solution}\n{lost} = 3")
    assert "This answer could not be compared: " in answer and "It raised" not in answer
    assert "run the cells above again" in answer


def test_an_error_in_the_checks_own_wrapping_is_not_the_learners():
    answer = said("03.6", "def knock_outs(*ignored):\n    return [1j, nn, 2, 'choice']")
    assert "This answer could not be compared: " in answer and "It raised" not in answer
    assert "Wanted: answer(model, idx, targets) -> three losses" in answer


@pytest.mark.parametrize("number", ["01.1", "01.7", "04.8", "05.6", "06.3"])
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
    assert core.same(torch.ones(2).as_subclass(OnApple), torch.ones(2))
    assert not core.same(torch.zeros(2).as_subclass(OnApple), torch.ones(2))


@pytest.mark.parametrize("value", ["0j", "1j"])
def test_complex_numbers_are_not_right_and_told_so(value):
    code = f"def entropy(p):\n    return torch.special.entr(p).sum(-1) + {value}"
    assert "its numbers are complex" in said("07.1", code)
