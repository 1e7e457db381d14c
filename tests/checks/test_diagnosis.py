"""What a check makes of an answer that nobody foresaw: slips, symptoms, the shell."""

import ast
import functools
import linecache
import threading
import time
from pathlib import Path
from string import Formatter

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course.checks import (
    core,
    question,
    reading,
    rules,
    running,
    search,
    telling,
    telling_slips,
)
from minigpt.course.checks.core import Problem, compare
from minigpt.course.checks.evidence import undoes
from minigpt.course.checks.findings import Kind
from minigpt.course.checks.mutations import mutants
from minigpt.course.checks.solutions import Mistake, Solution, texts
from minigpt.course.checks.values import same

NAMES = {"__name__": "__main__", "torch": torch, "nn": nn, "F": F}


class Taught(Solution):
    """A solution whose text is given here."""

    def __init__(self, text):
        super().__init__(text)


def function(text):
    """The function f of a text, as a notebook's cell defines it."""
    name = f"<cell {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = dict(NAMES)
    exec(compile(text, name, "exec"), space)
    return space["f"]


def said(text, wrong, cases, **how):
    """What compare says of a wrong program where the text is the solution."""
    with pytest.raises(Problem) as caught:
        compare(function(wrong), Taught(text), cases, **how)
    return telling.message(caught.value, tell=True).removeprefix("not yet. ")


def numbers(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


WEIGHTS = """def f(q, k):
    T = q.shape[1]
    past = torch.ones(T, T).tril()
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(past == 0, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights
"""
QK = [(numbers(2, 3, 4), numbers(2, 3, 4, 1)[..., 0]), (numbers(3, 5, 2),) * 2]
HEADS = """def f(x, n):
    B, T, C = x.shape
    return x.view(B, T, n, C // n).transpose(1, 2)
"""
HEADS_CASES = [(numbers(2, 3, 8), 4)]
MEANS = """def f(x, t):
    before = x[:, : t + 1]
    return before.mean(dim=1)
"""
MEANS_CASES = [(numbers(2, 5, 3), 3), (numbers(1, 4, 2), 1)]
SUM = """def f(numbers, least):
    total = 0.5
    for number in numbers:
        if number < least:
            continue
        total += number * 2
    return total
"""
LISTS = [([1.5, 2.25, 4.0], 2.25), ([3.5, 0.75, 9.125], 1.0)]
SLIPS = [  # solution, its cases, (what to change, into what), …
    (
        *(WEIGHTS, QK, ("dim=-1", "dim=1"), (" ** 0.5", "")),
        *((" / q.shape[-1] ** 0.5", ""), ("q.shape[-1]", "q.shape[1]")),
        *(("softmax(", "log_softmax("), ("q @ k.tr", "k @ q.tr")),
        ("    scores = scores.m", "    other = scores.m"),
    ),
    (HEADS, HEADS_CASES, (".transpose(1, 2)", ""), ("n, C // n", "C // n, n")),
    (MEANS, MEANS_CASES, ("t + 1", "t"), (".mean(", ".sum("), ("dim=1", "")),
    (SUM, LISTS, ("number < least", "number <= least"), ("number * 2", "number")),
]


@pytest.mark.parametrize(
    "text, cases, change",
    [(text, cases, change) for text, cases, *changes in SLIPS for change in changes],
)
def test_a_slip_that_nobody_listed_is_told_as_what_gives_the_same(
    text, cases, change, monkeypatch
):
    monkeypatch.setattr(search, "own_slip", lambda *_: None)
    assert text.count(change[0]) == 1
    wrong = ast.unparse(ast.parse(text.replace(*change))).splitlines()
    right = ast.unparse(ast.parse(text)).splitlines()
    answer = said(text, text.replace(*change), cases)
    assert "Your results are those of the solution with" in answer
    (line,) = set(right) - set(wrong)
    assert f"What belongs there: `{line.strip()}`" in answer


OWN = [  # what is wrong in the learner's own program, what is said of it
    (
        ("F.softmax(scores, dim=-1)", "F.softmax(scores,dim=-2)"),
        "`dim=-2` where `dim=-1`",
    ),
    (("F.softmax(scores, dim=-1)", "F.softmax(scores,dim=-2)"), "your line 6: weights"),
    ((" ** 0.5", ""), "`** 0.5` left out"),
    (
        ("    weights =", "    scores = scores.cos()\n    weights ="),
        "`scores.cos()` where `scores`",
    ),
]


@pytest.mark.parametrize("change, part", OWN)
def test_what_makes_an_answer_right_is_named_in_its_own_words(change, part):
    answer = said(WEIGHTS, WEIGHTS.replace(*change), QK)
    assert "Your answer is right but for " in answer and part in answer


def test_a_default_that_all_calls_share_is_named():
    wrong = "def f(numbers, least, total=[]):\n    total += numbers\n"
    answer = said(SUM, wrong + "    return sum(total)\n", LISTS)
    assert "`total=[]` is made once" in answer


def test_what_leaves_dead_code_is_no_mending():
    text = "def f(x):\n    y = x * 2\n    return y\n"
    dead = text.replace("    y", "    if len(x):\n        return x.cos()\n    y", 1)
    never = dead.replace("len(x)", "len(x) > 9")
    asked = question.Question(function(dead), Taught(text), [(numbers(3),)])
    for wrong, is_dead in ((never, True), (dead, False)):
        code = compile(wrong, "<mutant>", "exec")
        made = next(mutants(text))._replace(now="x", code=code)
        assert search._dead(asked, dead, made) == is_dead


def test_only_a_known_mistakes_own_edit_is_told_behind_it():
    assert undoes("dim=1", "dim=-1", [("x.sum(dim=-1)", "x.sum(dim=1)")])
    assert not undoes("dim=1", "dim=-1", [("x.sum()", "x.mean()")])
    assert not undoes("T", "t", [("mean()", "sum() / T")])


def test_a_line_that_is_the_solutions_is_not_blamed():
    text = "def f(x, W):\n    q, k = x @ W, x\n    return q @ k.mT\n"
    wrong = text.replace("q @ k.mT", "k @ q.transpose(1, 2)")
    answer = said(text, wrong, [(numbers(2, 3, 4), numbers(4, 4))])
    assert "your line 3: " in answer and "x @ W" not in answer.partition("your")[0]


def test_a_line_that_the_learner_never_wrote_is_called_ours():
    wrong = "def f(a, b):\n    rest = 0.0\n    for i in range(b + 1):\n"
    wrong += "        rest = rest + a[:, i]\n    return rest\n"
    answer = said(MEANS, wrong, MEANS_CASES)
    assert "of the solution with this line changed: " in answer


def test_a_human_sentence_wins_over_a_slip():
    root = Taught(WEIGHTS.replace(" ** 0.5", ""))
    answer = said(WEIGHTS, root.text, QK, known=[Mistake("The root!", program=root)])
    assert answer.startswith("The root!")


def test_the_first_wrong_value_of_several_is_named_and_explained():
    text = "def f(b, t):\n    return 2 * b * t, b * (t + 1) // 2\n"
    cases, parts = [(5, 7), (12, 9)], ("area", "half")
    wrong = text.replace("2 * b", "b").replace("t + 1", "t")
    assert said(text, wrong, cases, value_names=parts).startswith(
        "area: Your results are"
    )
    wrong = text.replace("t + 1", "t")
    assert said(text, wrong, cases, value_names=parts).startswith(
        "half: Your answer is right"
    )


@pytest.mark.parametrize("notebook", [f"{n:02}" for n in range(1, 15)])
def test_slips_can_be_made_of_every_solution_and_leave_it_as_it_was(notebook):
    for text in texts(notebook).values():
        first = [mutant._replace(code=None) for mutant in mutants(text)]
        assert len(first) > 2 and first == [
            m._replace(code=None) for m in mutants(text)
        ]


def test_a_candidate_that_hangs_is_stopped_and_costs_its_budget():
    def holds(candidate):
        while candidate == "hangs":
            pass
        return candidate == "right"

    start = time.monotonic()
    assert search.first(["wrong", "hangs", "right"], holds, 1000) == ["right"]
    assert search.first(["wrong", "hangs", "right"], holds, search.HANGS) == []
    assert time.monotonic() - start < 30


def test_only_so_many_candidates_are_tried():
    tried = []
    assert search.first(range(100), tried.append, 7) == [] and tried == list(range(7))


SYMPTOMS = [  # what is done to a right result, what is said
    (lambda y: y / 0.6931471805599453, "These are bits"),
    (lambda y: -y, "The sign is wrong"),
    (lambda y: y * 1.37, "up to a constant factor."),
    (lambda y: y * 5, "up to a constant factor, 5 (5 is the size of dimension 0"),
    (lambda y: y.flatten()[torch.randperm(y.numel())].view(y.shape), "another order"),
    (lambda y: y.mT.contiguous(), "transposed"),
    (lambda y: y.flatten(), "The numbers are right"),
    (lambda y: y[:, :-1], "One entry is missing in dimension 1"),
    (lambda y: y * float("nan"), "are nan, not a number"),
    (lambda y: y / 0, "infinite"),
    (lambda y: y.sum, "where numbers should be"),
    (lambda y: "text", "where numbers should be"),
    (lambda y: y - 0.25, "too small by 0.25"),
    (lambda y: y.index_fill(1, torch.tensor([3]), 0.0), "(0 to 4) only place 3 went"),
]


@pytest.mark.parametrize("change, part", SYMPTOMS)
def test_what_is_measurably_wrong_is_said(change, part):
    right = numbers(5, 5).abs() + 0.3
    with pytest.raises(Problem) as caught:
        compare(lambda x: change(right), lambda x: right, [(numbers(5, 7),)])
    assert part in telling.message(caught.value)


PIECES = [  # a right result that is no tensor, a wrong one, what is said
    ("abc", "a bc", "At place 1 of your result ' ' is too many"),
    ("abcd", "abd", "At place 2 of your result 'c' is missing"),
    (
        ["a", "bc", "d"],
        ["a", "b", "d"],
        "value 1: At place 1 of your result 'c' is missing",
    ),
    ({"a": 1, "b": 2}, {"a": 1, "b": 3}, "The entry 'b' has 3, where 2 belongs"),
]


@pytest.mark.parametrize("right, wrong, part", PIECES)
def test_where_texts_lists_and_dictionaries_differ_is_said(right, wrong, part):
    with pytest.raises(Problem) as caught:
        compare(lambda x: wrong, lambda x: right, [(1,)])
    assert part in telling.message(caught.value)


def test_a_factor_is_found_over_several_cases_of_one_number():
    cases = [(numbers(n).abs() + 1,) for n in (3, 4, 5, 6)]
    with pytest.raises(Problem) as caught:
        compare(lambda x: x.log2().sum(), lambda x: -x.log().sum(), cases)
    assert "-1 / ln 2: a minus, and bits" in telling.message(caught.value)


def test_a_wrong_shape_of_a_later_case_is_said_too():
    cases = [(numbers(4),), (numbers(2, 4),)]
    with pytest.raises(Problem) as caught:
        compare(lambda x: x.sin().sum(), lambda x: x.exp().sum(-1), cases)
    message = telling.message(caught.value)
    assert "a tensor of shape (2, 4)) your result has the shape ()" in message


LOOP = """def f(x, n):
    total = torch.zeros(())
    for i in range(n):
        part = x[: i + 1]
        total = total + part.sum() ** 2
    return total
"""
ELSEWHERE = [  # (what stands, where), what is said
    (("        part = x[: i + 1]\n", ""), "`part = x[:i + 1]` outside of its loop"),
    (("    total = torch.zeros(())\n", ""), "inside the loop, in each of its rounds"),
    (("part.sum() ** 2", "(part**2).sum()"), "`(part ** 2).sum()` where"),
]


@pytest.mark.parametrize("change, part", ELSEWHERE)
def test_a_step_at_the_wrong_place_is_named(change, part):
    wrong = LOOP.replace(*change)
    if "outside" in part:
        head = "    i = n - 1\n    part = x[:i + 1]\n    for"
        wrong = wrong.replace("    for", head, 1)
    if "inside" in part:
        wrong = wrong.replace(
            "n):\n        part", "n):\n        total = torch.zeros(())\n        part"
        )
    assert part in said(LOOP, wrong, [(numbers(6), 4), (numbers(5), 3)])


def test_two_known_mistakes_at_once_are_both_named():
    text = "def f(x, n):\n    mean = x.sum() / n\n    return mean.exp() + x\n"
    one = Mistake("It is divided.", [("x.sum() / n", "x.sum()")])
    other = Mistake("It is added.", [("+ x", "- x")])
    solution = Solution(text, one, other)
    wrong = "def f(x, n):\n    return torch.exp(torch.einsum('i->', x)) - x\n"
    with pytest.raises(Problem) as caught:
        compare(function(wrong), solution, [(numbers(3), 3), (numbers(5), 5)])
    message = telling.message(caught.value)
    assert (
        "two mistakes at once. It is divided.\n  And besides: It is added." in message
    )


ACCIDENTS = [  # a solution, a wrong answer, what mends it by accident
    (
        "def f(x, n):\n    return x.sum() / n ** 0.5\n",
        "def f(x, n):\n    return (x / len(x) ** 0.5).sum() / n ** 0.5\n",
        "left out",
    ),
]


@pytest.mark.parametrize("text, wrong, part", ACCIDENTS)
def test_what_mends_an_answer_by_accident_is_not_told(text, wrong, part):
    cases = [(numbers(4, 4), 4), (numbers(6, 6), 6)]
    assert part not in said(text, wrong, cases)


def test_a_nan_alone_does_not_show_a_known_mistake():
    text = "def f(x):\n    return x / x.norm().clamp(min=1)\n"
    cases = [(torch.zeros(3),), (torch.ones(3),)]
    known = [Mistake("All ones.", program=lambda x: torch.ones_like(x))]
    wrong = "def f(x):\n    return x / x.norm().clamp(min=1) * (x / x)\n"
    assert "All ones." not in said(text, wrong, cases, known=known)


def test_a_symptom_is_told_only_if_all_cases_have_the_same_one():
    turned = {4: lambda y: -y, 5: lambda y: y.roll(1, 0)}
    with pytest.raises(Problem) as caught:
        cases = [(numbers(4),), (numbers(5),)]
        compare(lambda x: turned[len(x)](x.exp()), torch.exp, cases)
    assert "sign" not in telling.message(caught.value)


SHELL = [  # a program for f(x, steps) -> x.sum() * steps, what is said
    ("    print(x.sum() * steps)", "returns nothing (None)"),
    ("    y = x\n    y *= steps\n    return y.sum()", "changes `x` in place"),
    ("    return data.sum() * steps", "`data` where `x` belongs"),
    ("    return float(x) * steps", "where one number is wanted"),
    ("    return (x, x).sum()", "a Python list or tuple"),
    ("    return x.sum() * stpes", "there is `steps`"),
    ("    raise SystemExit(3)", "It raised SystemExit: 3"),
    ("    return x.sum()\n    print(x)", "`print(x)` stands after `return`"),
    ("    y = x.sum()\n    y * steps\n    return y", "nobody keeps it"),
    ("    yield x", "where numbers should be"),
    ("    return f(x, steps)", "It raised RecursionError"),
    (
        "    s = (v * steps for v in x.flatten())\n    least = list(s)[0]\n"
        "    return sum(s) - least",
        "once: the",
    ),
    ("    return (x.cos() * x.sum(1)).sum()", "`x.sum(1)` takes a dimension"),
    ("    kept.append(x.sum())\n    return sum(kept) * steps", "kept between calls"),
    ("    return x.flatten()[steps * 9]", "has the places 0 to 5"),
    ("    return x.flatten()[1 + steps + 2]", "has the places 0 to 5"),
    ("    return x.flatten()[:0][0] * steps", "`x.flatten()[:0]` is empty here"),
    ("    return torch.cat([]) * steps", "The list of tensors is empty"),
    ("    import math\n    return math.log(x)", "`x.log()` does it for each entry"),
    ("    import math\n    return math.exp(-x)", "`(-x).exp()` does it for each"),
    ("    a, b, c = x.shape\n    return x.sum() * steps", "many as the tensor has"),
    ("    return x.max(dim=0) / steps", ".values and .indices"),
    ("    return b'\\xc3'.decode()", "may take several bytes"),
    ("    return x.sum(dim=2) * steps", "has fewer dimensions than that"),
    ("    import math\n    return math.exp(999 * steps)", "gets too large"),
    ("    while True:\n        try: x + x\n        except Exception: pass", "running"),
]


@pytest.mark.parametrize("body, part", SHELL)
def test_the_shell_around_an_answer_is_explained(body, part, monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 0.3)
    text = "def f(x, steps):\n    return x.sum() * steps\n"
    data = "kept = []\n" * ("kept" in body)
    data += "data = torch.arange(5.0)\n" * ("data" in body)
    wrong = f"{data}def f(x, steps):\n{body}\n"
    assert part in said(text, wrong, [(numbers(2, 3), 3), (numbers(4), 5)])


SPOILERS = {  # what an answer does to its surroundings, before it returns x
    "dtype": "torch.set_default_dtype(torch.float64)",
    "threads": "torch.set_num_threads(3)",
    "seed": "torch.manual_seed(3)",
    "gradients": "torch.set_grad_enabled(False)",
}


@pytest.mark.parametrize("body", SPOILERS.values(), ids=SPOILERS)
def test_whatever_an_answer_does_the_surroundings_stay(body, capfd):
    answer = function(f"def f(x):\n    {body}\n    return x\n")

    def surroundings():
        kinds = torch.get_default_dtype(), torch.is_grad_enabled()
        return *kinds, torch.get_num_threads(), threading.active_count()

    @core.exercise("99.9 Trial")
    def check(answer):
        """answer(x) -> 2 x."""
        compare(answer, Taught("def f(x):\n    return x * 2\n"), [(numbers(3),)])

    before, drawn = surroundings(), torch.get_rng_state()
    assert "`* 2` left out after `x`" in check(answer, tell=True).message
    assert surroundings() == before and torch.equal(torch.get_rng_state(), drawn)
    assert capfd.readouterr().err == ""
    del core._exercises["99.9 Trial"]


def test_a_difference_on_a_small_case_beats_an_error_on_a_larger_one():
    text = "def f(x):\n    return x.sum()\n"
    wrong = "def f(x):\n    assert len(x) < 3\n    return x.mean()\n"
    answer = said(text, wrong, [(numbers(2),), (numbers(3),)])
    assert "What belongs there: `return x.sum()`" in answer


def test_inputs_have_names_and_equal_prints_show_the_row_that_differs():
    text = "def f(x, steps):\n    return x * steps\n"
    wrong = "def f(x, steps):\n    y = x * steps\n    y[20, 1] += 0.125\n    return y\n"
    answer = said(text, wrong, [(numbers(30, 3), 7)])
    assert "input    steps = 7" in answer and "expected at [20, 0:6] [" in answer


def test_what_an_exercise_may_change_in_place_it_may():
    def doubled(x):
        x *= 2
        return x

    compare(doubled, lambda x: x * 2, [(numbers(3),)], changes=True)
    with pytest.raises(Problem) as caught:
        compare(doubled, lambda x: x * 2, [(numbers(3),)])
    assert "changes its input in place" in telling.message(caught.value)


def test_lists_arrays_and_numbers_are_as_good_as_tensors():
    right = torch.tensor([[1.0, 2.5], [3.0, 4.0]])
    for got in (right.tolist(), right.numpy(), [right[0], right[1]], right.double()):
        assert same(got, right)
    assert same(torch.tensor([2.5]), 2.5) and same(2.5, torch.tensor(2.5))
    assert not same(torch.tensor([2.5]), torch.tensor([2.5, 2.5]))


def test_a_check_returns_a_result_that_shows_the_share_that_is_right(capsys):
    @core.exercise("99.8 Trial")
    def check(answer):
        """answer(x) -> x + 1."""
        compare(answer, lambda x: x + 1, [(1.0,), (2.0,), (3.0,), (4.0,)])
        return "4 numbers"

    solved, half = check(lambda x: x + 1), check(lambda x: x + 1 if x < 3 else 0.0)
    assert solved and solved.share == 1.0 and repr(solved) == "1.0"
    assert not half and half.state == "tried" and repr(half) == "0.5"
    assert repr(check(...)) == "0.0" and check(...).state == "open"
    del core._exercises["99.8 Trial"]


def test_a_known_mistake_may_change_what_it_is_given():
    known = [Mistake("All is 0.", program=lambda x: x.zero_())]
    known.append(Mistake("Never.", sign=lambda *_: True))
    cases = [(numbers(3),), (numbers(4),)]
    with pytest.raises(Problem) as caught:
        compare(torch.zeros_like, torch.exp, cases, known)
    assert "All is 0." in telling.message(caught.value)
    assert cases[0][0].any()


MAKERS = """class f:
    def __init__(self):
        self.kept = 1


class f(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        y = x + 1
        ...
"""


def test_the_text_of_what_a_learner_wrote_is_found_under_all_wrappings():
    text = "@torch.no_grad()\ndef f(x):\n    return x\n"
    f = function(text)
    for wrapped in (f, functools.partial(f, 1), torch.no_grad()(f)):
        assert reading.source(wrapped) == text
    made = function("# Exercise\n" + MAKERS)
    assert reading.listing(made) == (MAKERS[MAKERS.index("class f(nn") :], 7)
    assert reading.source(made()) == reading.source(made)
    assert reading.source(len) == reading.source(3) == reading.source(int) == ""


def test_dots_in_a_method_are_a_skeleton_and_so_is_an_empty_body():
    made = function(MAKERS)
    assert reading.is_skeleton(made) and reading.is_skeleton(made())
    for empty in ("    pass\n", '    """Docs."""\n', "    y = ...\n    return y\n"):
        assert reading.is_skeleton(function("def f(x, y):\n" + empty))
    assert not reading.is_skeleton(function("def f(x, y):\n    x * y\n"))
    assert not reading.is_skeleton(lambda x: x[..., 0]) and not reading.is_skeleton(len)


def test_an_answer_that_goes_another_way_is_not_repaired_by_the_solution():
    wrong = "def f(q, k):\n    return (q @ k.mT).exp().tril().sin()\n"
    assert "right but for" not in said(WEIGHTS, wrong, QK)


def test_computing_is_counted_and_waiting_for_others_is_not(monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 0.3)
    with monkeypatch.context() as patch:  # others compute
        patch.setattr(time, "process_time", lambda: 0.0)
        assert running.call(lambda x: time.sleep(0.5) or x, 5) == 5
    with pytest.raises(Problem) as caught:
        running.call(lambda x: time.sleep(5), 5)
    assert "still running after 0.3 seconds" in telling.message(caught.value)


def test_a_slip_that_the_answer_does_not_show_is_not_told():
    text = "def f(q, k):\n    return q @ k.mT / q.shape[-1] ** 0.5\n"
    wrong = "def f(q, k):\n    root = q.size(-1) ** 0.5\n    q = q / root\n"
    wrong += "    k = k / root\n    return q @ k.mT\n"
    answer = said(text, wrong, QK)
    assert "what you get" not in answer and "constant factor" in answer


def test_of_two_words_that_read_alike_the_one_that_is_wrong_is_told():
    text = "def f(x, t):\n    return x[:, : t + 1].mean(dim=1)\n"
    wrong = "def f(x, t):\n    return x.cumsum(dim=1)[:, t] / t\n"
    assert "left out after the second `t`" in said(text, wrong, MEANS_CASES)


def test_names_that_a_line_binds_one_by_one_are_not_exchanged():
    text = "def f(q, k):\n    return q @ k.mT / q.shape[-1] ** 0.5\n"
    wrong = "def f(q, k):\n    T, d = k.shape[1], k.shape[2]\n"
    wrong += "    return q @ k.mT / T ** 0.5\n"
    assert "`(d, T)`" not in said(text, wrong, QK)


def test_a_minus_that_only_an_extreme_input_betrays_mends_nothing():
    text = "def f(x):\n    return torch.softmax(x, dim=-1).cumsum(dim=-1)\n"
    wrong = "def f(x):\n    w = x.exp() / x.exp().sum(dim=-1, keepdim=True)\n"
    wrong += "    return w.sum(dim=-1, keepdim=True) - w\n"
    assert "a sign is wrong" not in said(text, wrong, [(numbers(2, 3),)])


def test_of_dictionaries_the_tensor_that_is_wrong_is_explained():
    text = "def f(p):\n    return {n: x.T for n, x in p.items()}\n"
    wrong = "def f(p):\n    return {n: x.reshape(x.T.shape) for n, x in p.items()}\n"
    cases = [({"a": numbers(1, 2), "b": numbers(3, 2)},), ({"c": numbers(2, 3)},)]
    answer = said(text, wrong, cases)
    assert answer.startswith("b: The right numbers, but in another order.")


def said_of_line(arguments, right, wrong, *inputs):
    """What is said of a function of one line, beside the right line."""
    texts = (f"def f({arguments}):\n    return {line}\n" for line in (right, wrong))
    return said(*texts, [inputs])


RAISING = [  # an answer, what is said of its error
    ("q @ k.T", "`k.T` turns all dimensions round: (2, 3, 4) becomes (4, 3, 2)."),
    ("q @ k", "the shapes (2, 3, 4) and (2, 3, 4) do not fit together"),
    ("q[:, :, :, 0]", "`q` has the shape (2, 3, 4) here, and 4 indices."),
    ("q / (len(q) - 2 and 1) + 1 // (q.dim() - 3)", "ZeroDivisionError"),
    ("nn.Linear(5, 2)(q)", "A linear layer that takes 5 numbers for each position"),
]


@pytest.mark.parametrize("wrong, part", RAISING)
def test_what_an_error_says_is_read_off_the_values_of_its_line(wrong, part):
    q, k = numbers(2, 3, 4), numbers(2, 3, 4) + 1
    assert part in said_of_line("q, k", "q @ k.mT", wrong, q, k)


def test_what_divides_and_is_0_is_said_with_its_values_and_the_exercises_hint():
    text = "def f(b, n):\n    return [b / (1 - b**t) for t in range(1, n)]\n"
    wrong = "def f(b, n):\n    out = []\n    for t in range(n):\n"
    wrong += "        out.append(b / (1 - b ** t))\n    return out\n"
    answer = said(text, wrong, [(0.5, 3)], hint="t = 1 at first.")
    assert "`1 - b ** t` is 0 here, with b = 0.5, t = 0." in answer
    assert answer.endswith("Hint of the exercise: t = 1 at first.")


NAN = [  # an answer, where its first nan comes from
    ("x.sqrt()", "it is the root of a negative number, in line 2: return x.sqrt()"),
    ("(x - x) / (x - x)", "0 is divided by 0"),
    ("F.softmax(x * 0 + float('-inf'), dim=-1)", "every score is -inf"),
    ("F.softmax(x.exp().exp() * 1e38 * 1e38, dim=-1)", "a product is too large"),
    ("(x * 0 + 1e-9).repeat(1, 9).prod(-1).log() * 0", "so many small numbers is 0"),
    ("(x * 1e3).exp() - (x * 1e3).exp()", "an inf is taken from an inf"),
]


@pytest.mark.parametrize("wrong, cause", NAN)
def test_the_cause_of_the_first_nan_is_looked_for(wrong, cause):
    assert cause in said_of_line("x", "x.square() + 3", wrong, numbers(2, 3))


def test_one_place_that_came_out_right_by_chance_is_not_told():
    text = "def f(x):\n    return x.square().sum(dim=0).exp()\n"
    wrong = (
        "def f(x):\n    return torch.tensor([9.5, x.square().sum(dim=0).exp()[1], 7])\n"
    )
    assert "came out right" not in said(text, wrong, [(numbers(2, 3),)])


def test_a_changed_bug_hunt_with_its_old_symptom_hears_so():
    text = "def f(x):\n    return x[1:].square().sum().sin()\n"
    bug = Mistake("The bug.", [("x[1:]", "x[:]")], untouched=True)
    wrong = "def f(x):\n    y = x.square()[:5]\n    return (y.flip(0)).sum().sin()\n"
    with pytest.raises(Problem) as caught:
        cases = [(numbers(3),), (numbers(9) + 1,)]
        compare(function(wrong), Solution(text, bug), cases)
    assert "the symptom is still there" in telling.message(caught.value)


def test_every_kind_of_finding_and_of_change_has_its_words():
    made_there = {Kind.OWN_SLIP, Kind.LIKE_SLIP, Kind.INPUT_CHANGED}
    assert {*telling.SENTENCES} | made_there == {*Kind}
    assert not {*telling.SENTENCES} & made_there
    within = {*rules.RANKS} - {rules.Change.LINE}  # it has words of its own
    assert {*telling_slips.AT_FIRST} == within
    assert within | {*rules.MOVES, rules.Change.LINE} == {*rules.Change}
    assert {*telling_slips.MOVED} == {*rules.MOVES}


def findings_made():
    """(kind, names of its details) of all calls found(Kind.X, …) in the checks."""
    for path in Path(core.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "found":
                kind, *_ = node.args
                names = [keyword.arg for keyword in node.keywords]
                if isinstance(kind, ast.Attribute) and None not in names:
                    yield kind.attr, names


@pytest.mark.parametrize("kind, names", list(findings_made()))
def test_a_finding_has_the_details_that_its_sentence_needs(kind, names):
    texts = telling.SENTENCES.get(Kind[kind], ())
    needed = {name for text in texts for _, name, _, _ in Formatter().parse(text)}
    assert needed - {None} <= {*names}


def test_a_lambda_is_mended_too():
    space = dict(NAMES)
    text = "f = lambda x, t: x[:, :t].mean(dim=1)\n"
    linecache.cache["<cell lambda>"] = (len(text), None, [text], "<cell lambda>")
    exec(compile(text, "<cell lambda>", "exec"), space)
    right = "def f(x, t):\n    return x[:, : t + 1].mean(dim=1)\n"
    with pytest.raises(Problem) as caught:
        compare(space["f"], Taught(right), MEANS_CASES)
    assert "right but for `+ 1`" in telling.message(caught.value, tell=True)


def test_a_factor_of_single_numbers_is_the_same_size_in_all_cases():
    cases = [(numbers(n).abs() + 1,) for n in (4, 5, 6)]
    with pytest.raises(Problem) as caught:
        compare(lambda x: 4 * x.sum(), lambda x: x.sum(), cases)
    message = telling.message(caught.value)
    assert "constant factor" in message and "size of dimension" not in message


def test_who_prints_and_raises_at_a_later_call_is_heard_once(capsys):
    wrong = "seen = []\ndef f(x):\n    print('here')\n    seen.append(1)\n"
    wrong += "    assert len(seen) < 3\n    return x.sin()\n"
    said("def f(x):\n    return x.cos()\n", wrong, [(numbers(3),), (numbers(4),)])
    out, err = capsys.readouterr()
    assert out.count("here") == 2 and "Traceback" not in err


IN_PLACE = [  # what an answer does to its input ids, in place
    "ids.reverse()",
    "ids[0] = 9",
    "ids.sort(key=lambda x: -x)",
]


@pytest.mark.parametrize("line", IN_PLACE)
def test_a_list_that_is_changed_in_place_is_seen(line):
    wrong = f"def f(ids):\n    total = sum(ids)\n    {line}\n    return total\n"
    answer = said("def f(ids):\n    return sum(ids)\n", wrong, [([1, 2, 3],)])
    assert "changes `ids` in place" in answer


def test_a_return_behind_a_continue_is_not_blamed():
    text = "def f(ids, n):\n    for i in ids:\n        if i < n:\n"
    text += "            continue\n        return i\n    return -1\n"
    wrong = text.replace("<", "<=")
    answer = said(text, wrong, [([1, 2, 3], 2), ([4, 5, 6], 5)])
    assert "first round" not in answer and "`i <= n` where `i < n`" in answer


def test_what_is_no_tensor_is_compared_as_it_is():
    for one, other in ((b"ab", b"b"), ({1, 2}, {2}), (None, 0)):
        assert same(one, one) and not same(one, other) and not same(other, one)
    assert not same(torch.tensor(3.0), (1, 2))
