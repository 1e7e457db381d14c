"""What a check makes of an answer that nobody foresaw: slips, symptoms, the shell."""

import functools
import itertools
import linecache
import sys
import threading
import time

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.checks import core, running
from minigpt.checks.core import Explained, Sign, compare, matches, mistakes
from minigpt.checks.mutants import mutants
from minigpt.checks.solutions import Solution, texts

NAMES = {"__name__": "__main__", "torch": torch, "nn": nn, "F": F}


@pytest.fixture(autouse=True)
def at_leisure(monkeypatch):
    """What is found must not depend on how busy the machine is."""
    monkeypatch.setattr(core, "THINKING", 60)


@pytest.fixture
def slips_alone(monkeypatch):
    """No repair is told in place of a slip."""
    monkeypatch.setattr(core, "_repair", lambda *_, **__: None)


class Taught(Solution):
    """A solution whose text is given here."""

    def __init__(self, text):
        self.text, self.space, self.name = text, dict(NAMES), "f"
        self.program = self._made(compile(text, "<taught>", "exec"))


def function(text):
    """The function f of a text, as a notebook's cell defines it."""
    name = f"<cell {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = dict(NAMES)
    exec(compile(text, name, "exec"), space)
    return space["f"]


def said(text, wrong, cases, **how):
    """What compare says of a wrong program where the text is the solution."""
    with pytest.raises(Explained) as caught:
        compare(function(wrong), Taught(text), cases, **how)
    return " ".join(caught.value.args)


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
QK = [
    (numbers(2, 3, 4), numbers(2, 3, 4, 1)[..., 0]),
    (numbers(3, 5, 2), numbers(3, 5, 2)),
]
SPLIT = """def f(x, n):
    B, T, C = x.shape
    return x.view(B, T, n, C // n).transpose(1, 2)
"""
SHARES = """def f(x):
    return x / x.sum(dim=1, keepdim=True)
"""
MEANS = """def f(x, t):
    before = x[:, : t + 1]
    return before.mean(dim=1)
"""
SUM = """def f(numbers, least):
    total = 0.5
    for number in numbers:
        if number < least:
            continue
        total += number * 2
    return total
"""
LISTS = [([1.5, 2.25, 4.0], 2.25), ([3.5, 0.75, 9.125], 1.0), ([], 1.0)]
LOG = """def f(x):
    return -(x.log() / 3).mean() * torch.pi
"""
TWO_NORMS = """def f(x, block):
    first = x + block.down(block.norm1(x))
    second = first + block.up(block.norm2(first))
    return second
"""
LENGTH = """def f(grads):
    return sum(g.pow(2).sum() for g in grads).sqrt()
"""
JOINED = """def f(prompts):
    most = max(len(p) for p in prompts)
    return [[0] * (most - len(p)) + p for p in prompts]
"""
SEEN = """def f(x, n):
    mask = torch.ones(len(x), n + len(x)).tril(n).bool()
    mean = x.mean(dim=0, keepdim=True)
    return x.masked_fill(mask[:, :1], 0.5) - x.var(dim=0, keepdim=True) * mean
"""
LATEST = """def f(losses, where):
    return [losses[0], where], losses.index(min(losses)), 2.5 * min(losses)
"""
SLIPS = [  # solution, (what to change, into what), the cases, what is to be said
    (WEIGHTS, ("dim=-1", "dim=1"), QK, "`dim=1` where `dim=-1` belongs"),
    (WEIGHTS, (" ** 0.5", ""), QK, "the root left out"),
    (WEIGHTS, (" / q.shape[-1] ** 0.5", ""), QK, "`/ q.shape[-1] ** 0.5` left out"),
    (WEIGHTS, ("q.shape[-1]", "q.shape[1]"), QK, "the index `1` where `-1` belongs"),
    (WEIGHTS, (".tril()", ".tril(-1)"), QK, "diagonal=-1"),
    (
        WEIGHTS,
        ("softmax(", "log_softmax("),
        QK,
        "`log_softmax` where `softmax` belongs",
    ),
    (WEIGHTS, ("q @ k.tr", "k @ q.tr"), QK, "`q` and `k` exchanged"),
    (
        WEIGHTS,
        ("    scores = scores.m", "    other = scores.m"),
        QK,
        "line `scores = sc",
    ),
    (
        SPLIT,
        ("n, C // n).transpose(1, 2)", "n, C // n)"),
        [(numbers(2, 3, 8), 4)],
        "tran",
    ),
    (
        SPLIT,
        ("T, n, C // n).transpose(1, 2)", "n, T, C // n)"),
        [(numbers(2, 3, 8), 4)],
        "memory order",
    ),
    (SPLIT, ("n, C // n", "C // n, n"), [(numbers(2, 3, 8), 4)], "exchanged"),
    (
        SHARES,
        (", keepdim=True", ""),
        [(numbers(4, 4) ** 2,)],
        "`keepdim=True` left out",
    ),
    (SHARES, ("dim=1, keepdim=True", ""), [(numbers(4, 3) ** 2,)], "left out"),
    (
        MEANS,
        ("t + 1", "t"),
        [(numbers(2, 5, 3), 3), (numbers(1, 4, 2), 1)],
        "`+ 1` left out",
    ),
    (MEANS, (".mean(", ".sum("), [(numbers(2, 5, 3), 2)], "`sum` where `mean` belongs"),
    (MEANS, ("dim=1", ""), [(numbers(2, 5, 3), 2)], "`dim=1` left out"),
    (SUM, ("number < least", "number <= least"), LISTS, "`number <= least` where"),
    (SUM, ("+=", "="), LISTS, "needs its operator"),
    (SUM, ("number * 2", "number"), LISTS, "`* 2` left out"),
    (SUM, ("0.5", "0.0"), LISTS, "`0.0` where `0.5` belongs"),
    (SUM, ("    return total", "        return total"), LISTS[:2], "inside the loop"),
    (LOG, ("-(", "("), [(numbers(7) ** 2,)], "the minus before"),
    (LOG, (" * torch.pi", ""), [(numbers(7) ** 2,)], "`* torch.pi` left out"),
    (
        "def f(x):\n    return -x.log().mean()\n",
        ("x.log().mean()", "x.mean().log()"),
        [(numbers(7) ** 2,)],
        "`mean` before `log`",
    ),
    (
        "def f(x):\n    return (x - 3).clamp(min=0)\n",
        (".clamp(min=0)", ""),
        [(numbers(7),)],
        "`.clamp(min=0)` left out",
    ),
    (
        "def f(x):\n    return x.exp() * 3\n",
        ("x.exp()", "2 ** x"),
        [(numbers(7),)],
        "`2 ** x` where",
    ),
    (
        "def f(x):\n    low, high = 0.5, 10.0\n    return x * low + high\n",
        ("10.0", "1.0"),
        [(numbers(7),)],
        "with `1.0` where `10.0` belongs",
    ),
    (
        "def f(x, kept):\n    y = x * kept\n    return y.sum(dim=0)\n",
        ("return y.sum(dim=0)", "return kept"),
        [(numbers(3, 4), 0.625), (numbers(3, 4), 2.0)],
        "`return kept` where",
    ),
    (
        "def f(x):\n"
        "    return x - x.mean(dim=1, keepdim=True) + x.var(dim=1, keepdim=True)\n",
        (
            "mean(dim=1, keepdim=True) + x.var(dim=1,",
            "mean(dim=0, keepdim=True) + x.var(dim=0,",
        ),
        [(numbers(4, 3),)],
        "`dim=0` where `dim=1` belongs, both times",
    ),
    (
        LENGTH,
        (".sum() for g in grads).sqrt()", ".sum().sqrt() for g in grads)"),
        [([numbers(2, 3), numbers(4)],)],
        "`sum((g.pow(2).sum().sqrt() for g in grads))` where",
    ),
    (
        JOINED,
        ("[0] * (most - len(p)) + p", "p + [0] * (most - len(p))"),
        [([[1, 2, 13], [4]],)],
        "the two sides of `+` exchanged",
    ),
    (SEEN, (".tril(n)", ".tril(n + 1)"), [(numbers(3, 2), -1)], "tril(n + 1)`"),
    (SEEN, (".bool()", ".bool().logical_not()"), [(numbers(3, 2), 0)], "wrong way"),
    (
        LATEST,
        ("losses)),", "losses)) + 1,"),
        [([3.5, 1.25, 2.5], 7)],
        "+ 1` where",
    ),
    (
        "def f(x):\n    return 1.5 * x - 0.25 * x.square()\n",
        ("1.5 * x - 0.25", "0.25 * x - 1.5"),
        [(numbers(7),)],
        "`0.25` and `1.5` exchanged",
    ),
    (
        "def f(x):\n    return x.sum() * (len(x) - 1) / 3.5\n",
        (" * (len(x) - 1)", ""),
        [(numbers(7),)],
        "`* (len(x) - 1)` left out",
    ),
    (
        "def f(numbers):\n"
        "    shift = 0.5\n    kept = []\n"
        "    for number in numbers:\n        shift = shift * 0.5\n"
        "        kept.append(number + shift)\n    return kept\n",
        (
            "    for number in numbers:\n",
            "    for number in numbers:\n        shift=0.5\n",
        ),
        [([1.5, 2.25, 4.0],)],
        "`shift = 0.5` inside the loop in place of before it",
    ),
    (
        "def f(numbers):\n    kept = []\n    for number in numbers:\n"
        "        kept.append(number * 2)\n    return kept\n",
        ("append(", "insert(0, "),
        [([1.5, 2.25, 4.0],)],
        "`kept.insert(0, number * 2)` where",
    ),
    (
        "def f(x, y):\n    return F.cross_entropy(x, y)\n",
        ("(x, y)\n", "(x.softmax(-1), y)\n"),
        [(numbers(4, 3), torch.tensor([0, 2, 1, 1]))],
        "softmax twice",
    ),
    (
        "def f(x, n):\n    return x[n] * 1.5\n",
        ("x[n]", "x[n + 1]"),
        [(numbers(5), 2)],
        "`n + 1` where `n` belongs",
    ),
    (
        "def f(x):\n    return x / x.norm()\n",
        ("norm()", "norm(dim=-1, keepdim=True)"),
        [(numbers(5, 2),)],
        "`x.norm(dim=-1, keepdim=True)` where",
    ),
    (MEANS, (": t + 1", "1 : t + 1"), [(numbers(2, 5, 3), 3)], "`[1:t + 1]` where"),
    (
        "def f(x, i):\n    y = x.clone()\n    y[:, i] += 1.5\n    return y\n",
        ("[:, i]", "[:, i:]"),
        [(numbers(2, 5), 2)],
        "`[i:]` where `[i]` belongs",
    ),
    (
        "def f(x):\n    return (x - 1.5)[:, None]\n",
        ("[:, None]", ""),
        [(numbers(4, 2),)],
        "the index `[:, None]` left out",
    ),
    (LATEST, ("losses[0], where", "where, losses[0]"), [([3.5, 1.25], 7)], "exchanged"),
]


@pytest.mark.parametrize("text, change, cases, part", SLIPS)
def test_a_slip_that_nobody_listed_is_named(slips_alone, text, change, cases, part):
    assert text.count(change[0]) == 1
    wrong = text.replace(*change)
    answer = said(text, wrong, cases)
    assert "Your result is what you get with " in answer and part in answer


def test_one_attribute_of_an_object_for_another_and_a_call_left_out_are_named():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("down", "up", "norm1", "norm2"):
                self.add_module(name, nn.Linear(3, 3))

    cases = [(numbers(2, 3), Block())]
    wrong = TWO_NORMS.replace("block.norm2", "block.norm1")
    assert "`block.norm1` where `block.norm2` belongs" in said(TWO_NORMS, wrong, cases)
    wrong = TWO_NORMS.replace("block.norm2(first)", "first")
    assert "without `block.norm2`" in said(TWO_NORMS, wrong, cases)


def test_two_slips_are_named_together(slips_alone):
    wrong = WEIGHTS.replace(" ** 0.5", "").replace("dim=-1", "dim=-2")
    answer = said(WEIGHTS, wrong, QK)
    assert "the root left out" in answer and "and `dim=1` where" in answer


def test_the_learners_own_line_is_shown_where_it_has_the_slip():
    wrong = WEIGHTS.replace("F.softmax(scores, dim=-1)", "F.softmax(scores,dim=-2)")
    answer = said(WEIGHTS, wrong, QK)
    assert "your line 6: weights = F.softmax(scores,dim=-2)" in answer


def test_a_human_sentence_wins_over_a_slip():
    known = mistakes(
        "", {"The root!": lambda q, k: Taught(WEIGHTS.replace(" ** 0.5", ""))(q, k)}
    )
    assert said(WEIGHTS, WEIGHTS.replace(" ** 0.5", ""), QK, known=known).startswith(
        "The root!"
    )


def test_the_first_wrong_value_of_several_is_named_and_explained():
    text = "def f(b, t):\n    return 2 * b * t, b * (t + 1) // 2\n"
    wrong = text.replace("2 * b", "b").replace("t + 1", "t")
    cases = [(5, 7), (12, 9)]
    answer = said(text, wrong, cases, parts=("area", "half"))
    assert answer.startswith("area: Your result is what you get with `2 *` left out")
    wrong = text.replace("t + 1", "t")
    assert said(text, wrong, cases, parts=("area", "half")).startswith("half: Your")


def test_every_slip_of_a_solution_compiles_and_most_change_what_it_gives():
    right, other, all_of_them = Taught(WEIGHTS)(*QK[1]), 0, 0
    for _, program in Taught(WEIGHTS).wrong():
        all_of_them += 1
        try:
            other += not core.same(program(*QK[1]), right)
        except Exception:
            other += 1
    assert all_of_them > 100 and other > 0.8 * all_of_them


@pytest.mark.parametrize("notebook", [f"{n:02}" for n in range(1, 12)])
def test_slips_can_be_made_of_every_solution_alone_and_in_pairs(notebook):
    for number, text in texts(notebook).items():
        if number:
            alone = [mutant.says for mutant in mutants(text)]
            pairs = [
                mutant.says for mutant in itertools.islice(mutants(text, True), 50)
            ]
            assert len(alone) > 3 and all(", and " in says for says in pairs)


def test_making_wrong_programs_leaves_the_solution_as_it_was():
    first = [mutant.says for mutant in mutants(WEIGHTS)]
    assert first == [mutant.says for mutant in mutants(WEIGHTS)] and len(first) > 100


def test_a_candidate_that_hangs_is_stopped_and_the_next_one_tried():
    def holds(candidate):
        while candidate == "hangs":
            pass
        return candidate == "right"

    start = time.monotonic()
    assert matches(["wrong", "hangs", "right"], holds, 30) == ["right"]
    assert time.monotonic() - start < 20


def test_without_threads_a_candidate_that_hangs_is_stopped_too(monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    def turns(candidate):
        while candidate == "hangs":
            pass
        return candidate == "right"

    monkeypatch.setattr(threading.Thread, "start", refused)
    tracing = sys.gettrace()
    found = matches(["hangs", "wrong", "right"], lambda c: turns(c), 30)
    assert found == ["right"] and sys.gettrace() is tracing


SYMPTOMS = [  # what is done to a right result, what is said
    (lambda y: y / 0.6931471805599453, "These are bits"),
    (lambda y: -y, "The sign is wrong"),
    (lambda y: y * 1.37, "up to a constant factor"),
    (lambda y: y + 4.25, "up to a constant that is added"),
    (lambda y: y**2, "the square of what was asked for"),
    (lambda y: y.flip(0), "reverse order"),
    (lambda y: y.flatten()[torch.randperm(y.numel())].view(y.shape), "another order"),
    (lambda y: y.mT.contiguous(), "transposed"),
    (lambda y: y[None], "A dimension of size 1 is too many or missing"),
    (lambda y: y.flatten(), "The numbers are right, in the right order"),
    (lambda y: y[:, :-1], "One entry is missing in dimension 1"),
    (lambda y: y * float("nan"), "are nan, not a number"),
    (lambda y: y / 0, "infinite"),
    (lambda y: torch.zeros_like(y), "All 25 results are 0"),
    (lambda y: torch.stack([y, y + 1]), "Yours holds more than was asked for"),
    (lambda y: (y, y.sum()), "the one at place 0 is right"),
    (lambda y: y.sum, "not a value"),
    (lambda y: "text", "where numbers should be"),
    (lambda y: y.roll(1, 0), "one place too late along dimension 0"),
]


@pytest.mark.parametrize("change, part", SYMPTOMS)
def test_what_is_measurably_wrong_is_said(change, part):
    right = numbers(5, 5).abs() + 0.3
    with pytest.raises(Explained) as caught:
        compare(lambda x: change(right), lambda x: right, [(torch.ones(3),)])
    assert part in " ".join(caught.value.args)


def test_rows_that_do_not_sum_to_one_and_light_above_the_diagonal_are_seen():
    scores = numbers(4, 4)
    past = torch.ones(4, 4).tril() == 0
    right = scores.masked_fill(past, float("-inf")).softmax(-1)
    lower = torch.rand(4, 4).tril() + torch.eye(4)
    answers = {
        "The rows do not sum to one: ": torch.rand(4, 4).tril(),
        "light above the diagonal": torch.rand(4, 4).softmax(-1),
        "the sum runs over the wrong dimension": lower / lower.sum(0),
    }
    for part, got in answers.items():
        with pytest.raises(Explained) as caught:
            compare(lambda x, got=got: got, lambda x: right, [(scores,)])
        assert part in " ".join(caught.value.args)


def test_a_future_that_changes_the_past_is_seen():
    def averages(x):
        return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]

    def peeks(x):
        return averages(x) * 0.7 + 0.1 * x.max(dim=1, keepdim=True).values.sin()

    with pytest.raises(Explained, match="The future changes the past"):
        compare(peeks, averages, [(numbers(2, 5, 3),), (numbers(1, 4, 2),)])


def test_right_for_a_batch_of_one_only_is_said():
    def mean(x):
        return x.mean(dim=1)

    def of_first(x):
        return x[:1].mean(dim=1).expand(len(x), -1)

    cases = [(numbers(1, 3, 2),), (numbers(4, 3, 2),)]
    with pytest.raises(Explained, match="right for a batch of one only") as caught:
        compare(of_first, mean, cases)
    assert caught.value.share == 0.5


SHELL = [  # a program for f(x, steps) -> x.sum() * steps, what is said
    ("    print(x.sum() * steps)", "returns nothing (None)"),
    ("    y = x\n    y *= steps\n    return y.sum()", "changes `x` in place"),
    ("    return data.sum() * steps", "uses the notebook's `data`"),
    ("    return float(x) * steps", "reduce it first"),
    ("    return x.sum().item().backward()", "A Python number has none of"),
    ("    return (x, x).sum()", "That is a list or a tuple"),
    ("    return x.sum(dim=7) * steps", "There is no such dimension"),
    ("    return nn.Sequential(F.relu)(x).sum() * steps", "nn.ReLU()"),
    ("    return x.sum() * stpes", "own arguments"),
]


@pytest.mark.parametrize("body, part", SHELL)
def test_the_shell_around_an_answer_is_explained(body, part, capsys):
    text = "def f(x, steps):\n    return x.sum() * steps\n"
    wrong = (
        "data = torch.arange(5.0)\n" * ("data" in body) + f"def f(x, steps):\n{body}\n"
    )
    answer = said(text, wrong, [(numbers(2, 3), 3), (numbers(4), 5)])
    assert part in answer


def test_a_difference_on_a_small_case_beats_an_error_on_a_larger_one():
    text = "def f(x):\n    return x.sum()\n"
    wrong = "def f(x):\n    assert len(x) < 3\n    return x.mean()\n"
    answer = said(text, wrong, [(numbers(2),), (numbers(3),)])
    assert "`mean` where `sum` belongs" in answer


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
    with pytest.raises(Explained, match="changes its input in place"):
        compare(doubled, lambda x: x * 2, [(numbers(3),)])


def test_lists_arrays_and_numbers_are_as_good_as_tensors():
    right = torch.tensor([[1.0, 2.5], [3.0, 4.0]])
    for got in (right.tolist(), right.numpy(), [right[0], right[1]], right.double()):
        assert core.same(got, right)
    assert core.same(torch.tensor([2.5]), 2.5) and core.same(2.5, torch.tensor(2.5))
    assert not core.same(torch.tensor([2.5]), torch.tensor([2.5, 2.5]))


def test_a_check_returns_a_result_with_points(capsys):
    @core.exercise("99.9 Trial")
    def check(answer):
        """answer(x) -> x + 1."""
        compare(answer, lambda x: x + 1, [(1.0,), (2.0,), (3.0,), (4.0,)])
        return "4 numbers"

    solved, half = check(lambda x: x + 1), check(lambda x: x + 1 if x < 3 else 0.0)
    assert solved and solved.share == 1.0 and solved.points(3) == 3
    assert not half and half.state == "tried" and half.points(3) == 1.5
    assert check(...).points(3) == 0 and check(...).state == "open"
    del core._exercises["99.9 Trial"]


def test_a_known_mistake_may_change_what_it_is_given():
    def spoils(x):
        x.zero_()
        return x

    known = mistakes("", {"All is 0.": spoils, "Never.": Sign(lambda *_: True)})
    cases = [(numbers(3),), (numbers(4),)]
    with pytest.raises(Explained, match="All is 0."):
        compare(torch.zeros_like, torch.exp, cases, known)
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
        assert running.source(wrapped) == text
    made = function("# Exercise\n" + MAKERS)
    assert running.listing(made) == (MAKERS[MAKERS.index("class f(nn") :], 7)
    assert running.source(made()) == running.source(made)
    assert running.source(len) == running.source(3) == running.source(int) == ""


def test_dots_in_a_method_are_a_skeleton_and_a_forgotten_return_is_none():
    made = function(MAKERS)
    assert running.is_skeleton(made) and running.is_skeleton(made())
    for empty in (
        "    pass\n",
        '    """What f does."""\n',
        "    y = ...\n    return y.sum()\n",
    ):
        assert running.is_skeleton(function("def f(x, y):\n" + empty))
    assert not running.is_skeleton(function("def f(x, y):\n    x * y\n"))
    assert not running.is_skeleton(lambda x: x[..., 0]) and not running.is_skeleton(len)
    with pytest.raises(running.NotAttempted):
        compare(made, nn.ReLU, [(numbers(2),)], work=lambda f, x: f()(x).sum())


def test_an_argument_that_is_used_with_a_second_name_or_inside_is_not_called_unused():
    text = """def f(a, b, c, d):
    x, y = a, b
    def inner():
        return c + limit
    return [d * i for i in range(x)] + [y, inner()]
"""
    f = function("limit = 3\nLIMIT = 4\n" + text)
    assert running.borrowed(f) == ([], ["limit"])
    assert running.borrowed(
        function("data = 3\ndef f(x, n):\n    return data * n\n")
    ) == (
        ["x"],
        ["data"],
    )


SPOILERS = {  # what an answer does to its surroundings, before it returns x
    "exits": ("raise SystemExit(3)", "It raised SystemExit: 3"),
    "interrupts": ("raise KeyboardInterrupt", "It raised KeyboardInterrupt"),
    "dtype": ("torch.set_default_dtype(torch.float64)", "`* 2` left out"),
    "threads": ("torch.set_num_threads(3)", "`* 2` left out"),
    "seed": ("torch.manual_seed(3)", "`* 2` left out"),
    "gradients": ("torch.set_grad_enabled(False)", "`* 2` left out"),
    "generator": ("yield x", "generator, which has computed nothing yet"),
    "map": ("return map(abs, x)", "map, which has computed nothing yet"),
    "set": ("return {1.5}", "It returns {1.5}, where numbers should be"),
    "itself": ("return f(x)", "It raised RecursionError"),
    "stubborn": (
        "while True:\n        try:\n            x + x\n        except Exception: pass",
        "still running after 0.2 seconds",
    ),
}


@pytest.mark.parametrize("body, part", SPOILERS.values(), ids=SPOILERS)
def test_whatever_an_answer_does_the_surroundings_stay(body, part, monkeypatch, capfd):
    monkeypatch.setattr(running, "SECONDS", 0.2)
    answer = function(f"def f(x):\n    {body}\n    return x\n")

    def surroundings():
        kinds = torch.get_default_dtype(), torch.is_grad_enabled()
        return *kinds, torch.get_num_threads(), threading.active_count()

    @core.exercise("99.9 Trial")
    def check(answer):
        """answer(x) -> 2 x."""
        compare(answer, Taught("def f(x):\n    return x * 2\n"), [(numbers(3),)])

    before, drawn = surroundings(), torch.get_rng_state()
    assert part in check(answer).message
    for _ in range(100):
        time.sleep(0.05 * (surroundings() != before))
    assert surroundings() == before and torch.equal(torch.get_rng_state(), drawn)
    assert capfd.readouterr().err == ""
    del core._exercises["99.9 Trial"]


def test_an_async_answer_is_explained_without_a_warning(recwarn):
    async def answer(x):
        return x

    with pytest.raises(Explained, match="`async` function"):
        compare(answer, torch.exp, [(numbers(2),), (numbers(3),)])
    assert not len(recwarn)


def test_wrong_programs_print_and_warn_in_silence(capfd, recwarn):
    text = """def f(x, n):
    while n > 0:
        print(x)
        n = n - 1
    return torch.tensor(x) * 2.5
"""
    answer = said(text, text.replace("2.5", "1.5"), [(numbers(3), 2)])
    assert "The numbers are right up to a constant factor" in answer
    printed = capfd.readouterr()
    assert printed.out.count("tensor") == 4 and "arn" not in printed.err
    assert len(recwarn) <= 2  # of the solution, and of the answer


BY_CHANCE = [  # got, expected, what must not be said of them
    (4.0, 2.0, "square"),
    (0.0, 1.0, "logarithm"),
    (0.0, 0.3, "decimals"),
    (torch.tensor([0, 0, 2]), torch.tensor([0, 0, 1]), "factor"),
    (torch.tensor([1, 0, 0]), torch.tensor([0, 0, 1]), "reverse"),
    (torch.tensor([0.0, 0.0, 0.0]), torch.tensor([0.2, 0.3, 0.5]), "decimals"),
    (torch.ones(3, 3), torch.eye(3), "light above"),
    (torch.ones(3, 3), torch.eye(3), "probabilities"),
]


@pytest.mark.parametrize("got, expected, part", BY_CHANCE)
def test_what_may_hold_by_chance_is_not_said(got, expected, part):
    with pytest.raises(Explained) as caught:
        compare(lambda x: got, lambda x: expected, [(numbers(2),)])
    assert part not in " ".join(caught.value.args)


def test_a_symptom_is_told_only_if_all_cases_have_the_same_one():
    turned = {4: lambda y: y.flip(0), 5: lambda y: y.roll(1, 0)}
    with pytest.raises(Explained) as caught:
        compare(
            lambda x: turned[len(x)](x.exp()), torch.exp, [(numbers(4),), (numbers(5),)]
        )
    assert "reverse" not in caught.value.args[0]


def test_single_numbers_right_up_to_a_factor_in_all_cases_are_seen():
    cases = [(3.5, 7), (1.25, 11), (5.0, 2)]
    with pytest.raises(Explained, match="yours are 8 times as large") as caught:
        compare(lambda x, n: 8 * x * n, lambda x, n: x * n, cases)
    assert "Bits" in caught.value.args[1]


def test_nearly_right_is_said_with_the_largest_difference():
    with pytest.raises(Explained, match="Nearly right: the largest difference is 0.0"):
        compare(lambda x: x.exp() + 0.01 * x.sin(), torch.exp, [(numbers(9).abs(),)])


def test_a_slip_must_give_what_is_right_in_the_cases_that_are_right():
    text = "def f(x, on):\n    if not on:\n        return x\n    return x * 2\n"
    wrong = "def f(x, on):\n    return x\n"
    cases = [(numbers(3), False), (numbers(3), True)]
    answer = said(text, wrong, cases)  # without the `not`, the first would be wrong
    assert "no condition where `if not on:` belongs" in answer


def test_a_tuple_too_short_is_counted_though_it_could_be_stacked():
    right = (numbers(2, 3), numbers(2, 3) + 1, numbers(2, 3) + 2)
    with pytest.raises(Explained, match="It returns 2 values, where 3 should be"):
        compare(lambda x: right[:2], lambda x: right, [(numbers(2),)])


def test_an_error_is_traced_to_the_slip_that_raises_the_same(slips_alone):
    wrong = WEIGHTS.replace("k.transpose(-2, -1)", "k.transpose(-1, -1)")
    answer = said(WEIGHTS, wrong, QK[:1])
    assert "It raised RuntimeError" in answer or "do not fit together" in answer
    assert "The same comes of `-1` where `-2` belongs" in answer
    assert "your line 4: scores = q @ k.transpose(-1, -1)" in answer


def test_a_line_that_the_learner_has_is_not_called_left_out():
    text = """def f(x):
    total = 1.25
    total = total * x
    total = total + 0.5
    return total
"""
    wrong = text.replace("    total = total * x\n", "").replace(
        "    total = 1.25\n",
        "    total = 1.25\n    total = total * x\n    total = 1.25\n",
    )
    answer = said(text, wrong, [(numbers(4),), (numbers(3),)])
    assert "`total = total * x` left out" not in answer


def test_values_before_the_first_wrong_one_must_be_right_in_a_slip_too():
    text = "def f(x):\n    a, b = x[:-1], x[1:]\n    return a, b\n"
    wrong = "def f(x):\n    return x[:-1], x[:-1]\n"
    answer = said(text, wrong, [(numbers(6),)], parts=("x", "y"))
    assert answer.startswith("y: ") and "`b, a`" not in answer


def test_the_same_result_for_every_input_and_an_unused_argument_are_said():
    text = "def f(x, by):\n    return (x.exp() * by).sum()\n"
    cases = [(numbers(5), 2.5), (numbers(4), 1.5)]
    wrong = "def f(x, by):\n    return 1.3863\n"
    assert "Your result is 1.386 for every input" in said(text, wrong, cases)
    wrong = "def f(x, by):\n    return x.sin().cos().sum() * x.max().sin()\n"
    assert "never uses its argument `by`." in said(text, wrong, cases)


def test_transposed_is_seen_in_square_and_other_cases_alike():
    with pytest.raises(Explained, match="The numbers are right, but transposed"):
        compare(lambda x: x.exp().mT, torch.exp, [(numbers(3, 3),), (numbers(2, 4),)])


def test_one_entry_too_many_is_said_only_where_the_others_are_right():
    for got, part in ((lambda x: x, "One entry too many"), (torch.exp, "The shape is")):
        with pytest.raises(Explained) as caught:
            compare(got, lambda x: x[1:], [(numbers(5),), (numbers(4),)])
        assert part in caught.value.args[0]
    assert "One entry" not in caught.value.args[0]


def test_inputs_have_the_names_of_the_work_that_gets_them():
    def work(f, numbers, unused=3):
        return f(torch.tensor(numbers)) * unused

    with pytest.raises(Explained, match=r"input    numbers = \[1.5, 2.5\]"):
        compare(torch.exp, torch.sin, [([1.5, 2.5],)], work=work)


def test_known_mistakes_may_be_a_dict_and_take_the_exercises_hint():
    with pytest.raises(Explained, match="That is the cosine") as caught:
        known = {"That is the cosine.": torch.cos}
        compare(torch.cos, torch.sin, [(numbers(4),)], known, hint="Look up.")
    assert caught.value.args[1] == "Look up."


def test_in_a_list_of_several_tensors_the_first_wrong_one_is_spoken_of():
    right = [numbers(2, 3), numbers(4), numbers(5)]
    wrong = [right[0], -right[1], right[2]]
    with pytest.raises(Explained, match="value 1: The sign is wrong"):
        compare(lambda x: wrong, lambda x: right, [(numbers(2),)])


def test_for_nan_alone_no_slip_is_named():
    text = "def f(x):\n    return (x - x.min()).sqrt() + 1.5\n"
    answer = said(text, "def f(x):\n    return 0 * x / 0\n", [(numbers(5),)])
    assert answer.startswith("5 of 5 results are nan")


REPAIRS = [  # a slip of another kind than any rule knows, what is said
    (("k.transpose(-2, -1)", "k.mT * 2.0"), "`q @ k.mT * 2.0` where `q @ k.trans"),
    (("F.softmax(scores, dim=-1)", "scores.exp().tanh()"), "`scores.exp().tanh()` wh"),
    (("    weights =", "    scores = scores.cos()\n    weights ="), "cos()` too many"),
    (
        (" ** 0.5", " ** 1.5"),
        ("weights\n", "weights.log1p()\n"),
        "`1.5` where `0.5` belongs",
    ),
]


@pytest.mark.parametrize("change", REPAIRS)
def test_what_makes_an_answer_right_is_named_whatever_it_is(change):
    wrong = WEIGHTS.replace("scores", "logits")  # names are the answer's own
    *edits, part = change
    for old, new in edits:
        wrong = wrong.replace(old.replace("scores", "logits"), new)
    answer = said(WEIGHTS, wrong.replace("scores", "logits"), QK)
    assert "Your answer is right but for " in answer
    assert part.replace("scores", "logits") in answer


def test_an_answer_that_goes_another_way_is_not_repaired_by_the_solution():
    wrong = "def f(q, k):\n    return (q @ k.mT).exp().tril().sin()\n"
    assert "right but for" not in said(WEIGHTS, wrong, QK)


def test_a_repair_beats_a_slip_elsewhere_that_happens_to_give_the_same():
    text = "def f(n, size):\n    part = size / n\n    return 2 * (n - 1) * part\n"
    wrong = text.replace("size / n", "size / (n - 1)")
    answer = said(text, wrong, [(2, 8), (4, 1000), (8, 2.0)])
    assert "right but for `n - 1` where `n` belongs in `size / (n - 1)`" in answer


def test_what_all_right_cases_have_in_common_is_said():
    text = "def f(x, n):\n    return (x.exp().sum() / n).sin()\n"
    wrong = (
        "def f(x, n):\n    y = [e for e in x]\n    return sum(y) * 0 + x.exp().sum()"
    )
    wrong += ".sin() * n.real ** 3\n"
    cases = [(numbers(k), n) for k, n in ((3, 2), (4, 1), (5, 3))]
    assert "It is right where `n` is 1, and only there" in said(text, wrong, cases)


def test_an_answer_that_draws_hears_that_it_does():
    wrong = "def f(q, k):\n    return torch.rand(len(q), 3, 3).sin()\n"
    assert "gives another result each time" in said(WEIGHTS, wrong, QK[:1])


def test_an_input_that_comes_back_unchanged_is_named():
    def f(x, y):
        return x.exp() + y, x

    def work(program, x, y):
        return program(x, y)

    with pytest.raises(Explained, match="value 0: Yours is the input `y`, unchanged"):
        compare(lambda x, y: (y, x), f, [(numbers(3), numbers(3) + 2)], work=work)


def test_a_name_without_self_that_nobody_reads_is_told():
    class Memory:
        def __init__(self):
            self.length = 3

        def clear(self):
            length = 0  # noqa: F841

    assert "Nobody reads the `length` of clear" in running.without_self(Memory)


def test_time_is_counted_in_computing_and_importing_is_free(monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 0.3)
    grown = []

    def imports(x):  # for longer than the limit
        for i in range(12):
            end = time.process_time() + 0.05
            while time.process_time() < end:
                pass
            grown.append(f"tests.imported_{i}")
            sys.modules[grown[-1]] = sys
        return x

    try:
        assert running.call(imports, 5) == 5
    finally:
        for name in grown:
            del sys.modules[name]
    with monkeypatch.context() as patch:  # others compute
        patch.setattr(time, "process_time", lambda: 0.0)
        assert running.call(lambda x: time.sleep(0.5) or x, 5) == 5
    with pytest.raises(Explained, match="still running after 0.3 seconds"):
        running.call(lambda x: time.sleep(5), 5)
