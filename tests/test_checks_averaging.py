"""Notebook 02's exercises: what is right passes, and each mistake gets its own name."""

import functools
import math
import time

import pytest
import torch
import torch.nn.functional as F
from exercises import exercises_of, play

from minigpt import averaging
from minigpt.checks import averaging as checks
from minigpt.data import CharTokenizer, load_text

EXERCISES = {exercise.number: exercise for exercise in exercises_of("02")}
MISTAKES = {
    "02.1": checks.MEAN_MISTAKES,
    "02.2": checks.WINDOW_MISTAKES,
    "02.3": checks.SHARES_MISTAKES,
    "02.4": checks.FADING_MISTAKES,
    "02.5": checks.HEARD_MISTAKES,
    "02.6": checks.NATS_MISTAKES,
    "02.7": checks.ATTEND_MISTAKES,
}
NAMES = {
    "torch": torch,
    "math": math,
    "F": F,
    "averaging": averaging,
    "CharTokenizer": CharTokenizer,
    "load_text": load_text,
    **{name: getattr(checks, name) for name in dir(checks) if name[:6] == "check_"},
}


@functools.cache
def said(number, code):
    return play(EXERCISES[number], NAMES, code)


def edited(program, *edits):
    """The program with each (old, new) replaced; old must stand in it once."""
    for old, new in edits:
        assert program.count(old) == 1, old
        program = program.replace(old, new)
    return program


def mean(body):
    return f"def mean_so_far(x, t):\n    return {body}\n"


def window(body):
    """seen is the right band of zeros and ones."""
    seen = "torch.ones(T, T).tril().triu(1 - k)"
    return f"def window_weights(T, k):\n    seen = {seen}\n    return {body}\n"


def shares(body):
    """ids (T,), one_hot (T, V) and past (T, T) are right."""
    return (
        "def shares_so_far(text):\n"
        "    chars, T = sorted(set(text)), len(text)\n"
        "    ids = torch.tensor([chars.index(c) for c in text])\n"
        "    one_hot = torch.eye(len(chars))[ids]\n"
        "    past = torch.ones(T, T).tril()\n"
        f"    return {body}\n"
    )


def fading(*edits):
    return edited(EXERCISES["02.4"].solution, *edits)


def heard(*edits):
    return edited(EXERCISES["02.5"].solution, *edits)


def nats(*edits):
    return edited(EXERCISES["02.6"].skeleton, *edits)


def attend(*edits):
    return edited(EXERCISES["02.7"].skeleton.split("dice =")[0], *edits)


HIDE = ('scores = scores.masked_fill(~past, float("-inf"))', "")
TRUE_PAST = (
    "torch.tril(scores) == 0  # tril puts zeros there",
    "~torch.ones_like(scores).tril().bool()",
)
FILL = 'scores.masked_fill(future, float("-inf"))'

# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "02.1": {
        "the present left out": (
            mean("sum(x[:, i] for i in range(t)) / t if t else x[:, 0] * math.nan"),
            "present is not included",
        ),
        "the future let in": (mean("x[:, : t + 2].mean(dim=1)"), "includes t + 1"),
        "everything": (mean("x.mean(1)"), "average all T positions"),
        "batch cut": (mean("x[: t + 1].mean(dim=1)"), "cuts the batch"),
        "mean over the batch": (mean("x[:, : t + 1].mean(0)"), "mixes the rows"),
        "mean over channels": (mean("x[:, : t + 1].mean(2)"), "channels instead of"),
        "mean of all numbers": (mean("x[:, : t + 1].mean()"), "one number"),
        "sum": (mean("x.cumsum(1)[:, t]"), "not yet their mean"),
        "divided by T": (mean("x.cumsum(1)[:, t] / x.size(1)"), "divide by T"),
        "divided by t": (mean("x.cumsum(1)[:, t] / t"), "divide by t,"),
        "index": (mean("x[:, t]"), "an index, where a slice"),
        "batch forgotten": (mean("torch.stack([x[t], x[t]])"), "It raised IndexError"),
        "numbers learned by heart": (
            mean("torch.tensor([[4.0, 5.5]])"),
            "The shape is (1, 2), but should be (2, 3)",
        ),
    },
    "02.2": {
        "one too many": (
            window("(s := torch.ones(T, T).tril().triu(-k)) / s.sum(1, keepdim=True)"),
            "k + 1 positions",
        ),
        "one too few": (
            window("(s := seen.triu(2 - k)) / s.sum(1, keepdim=True)"),
            "k - 1 positions",
        ),
        "the present left out": (
            window(
                "(s := torch.ones(T, T).tril(-1).triu(-k)) / s.sum(1, keepdim=True)"
            ),
            "present is not included",
        ),
        "triu for tril": (
            window(
                "(s := torch.ones(T, T).triu().tril(k - 1)) / s.sum(1, keepdim=True)"
            ),
            "above the diagonal is the future",
        ),
        "no window": (
            window("(s := torch.ones(T, T).tril()) / s.sum(1, keepdim=True)"),
            "no far end",
        ),
        "the first k": (
            window(
                "torch.stack([(torch.arange(T) < min(k, t + 1)) / min(k, t + 1)"
                " for t in range(T)])"
            ),
            "first k positions",
        ),
        "softmax of zeros and ones": (window("seen.softmax(1)"), "0 hides nothing"),
        "columns": (window("seen / seen.sum(0)"), "Your columns sum to one"),
        "keepdim forgotten": (window("seen / seen.sum(1)"), "without keepdim"),
        "divided by k": (window("seen / k"), "fewer than k positions"),
        "not divided": (window("seen"), "nothing is divided"),
        "cut after dividing": (
            window("seen / torch.arange(1, T + 1)[:, None]"),
            "normalise first and cut",
        ),
        "a size learned by heart": (
            window("torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])"),
            "The shape is (3, 3), but should be (5, 5)",
        ),
    },
    "02.3": {
        "not averaged": (shares("one_hot"), "one-hot text itself"),
        "right for long texts only": (
            shares("averaging.average_loop(one_hot[None])[0] if T > 20 else one_hot"),
            "one-hot text itself",
        ),
        "counts": (shares("past @ one_hot"), "These are counts"),
        "divided by the length": (shares("past @ one_hot / T"), "length of the whole"),
        "whole text in every row": (
            shares("torch.stack([one_hot.mean(0)] * T)"),
            "it knows the future",
        ),
        "one row": (shares("one_hot.mean(0)"), "return only the last row"),
        "triu for tril": (
            shares("(past.T / past.T.sum(1, keepdim=True)) @ one_hot"),
            "from position t to the end",
        ),
        "keepdim forgotten": (
            shares("past / past.sum(1) @ one_hot"),
            "without keepdim",
        ),
        "order of appearance": (
            shares("averaging.average_loop(one_hot[None, :, ids.unique()])[0]").replace(
                "sorted(set(text))", "list(dict.fromkeys(text))"
            ),
            "first appear",
        ),
        "transposed": (shares("averaging.average_loop(one_hot[None])[0].T"), "(V, T)"),
        "the present left out, nan": (
            shares("(p := past.tril(-1)) / p.sum(1, keepdim=True) @ one_hot"),
            "present is not included",
        ),
        "the present left out, zeros": (
            shares("torch.stack([one_hot[:t].sum(0) / max(t, 1) for t in range(T)])"),
            "present is not included",
        ),
        "list of rows": (
            shares("[one_hot[: t + 1].mean(0) for t in range(T)]"),
            "torch.stack",
        ),
        "ids averaged": (
            shares("averaging.average_loop(ids.float()[None, :, None])[0, :, 0]"),
            "ids are only names",
        ),
        "foreign vocabulary": (
            shares("averaging.average_loop(one_hot[None])[0]").replace(
                "sorted(set(text))", "sorted(set(text) | set('abcdefgh'))"
            ),
            "more columns",
        ),
        "integers": (
            shares("averaging.average_matmul(one_hot.long()[None])[0]"),
            ".float()",
        ),
        "no text": (
            EXERCISES["02.3"].solution + "\nmy_text = ['to', 'be']",
            "my_text should be a text",
        ),
    },
    "02.4": {
        "no mask": (fading(HIDE), "Nothing is hidden"),
        "mask value 0": (fading(('float("-inf")', "0.0")), "exp(0) = 1"),
        "mask after softmax": (
            fading(HIDE, ("F.softmax(scores, dim=-1)", "F.softmax(scores, -1) * past")),
            "only after the softmax",
        ),
        "triu for tril": (fading(("~past", "~past.T")), "tril, not triu"),
        "tilde forgotten": (fading(("~past", "past")), "it needs ~past"),
        "the present hidden": (
            fading(("dtype=torch.bool))", "dtype=torch.bool), -1)")),
            "present is hidden too",
        ),
        "softmax over columns": (fading(("dim=-1", "dim=0")), "Your columns sum to"),
        "rate forgotten": (fading(("-rate *", "0 *")), "rate changes nothing"),
        "exp without division": (
            fading(("F.softmax(scores, dim=-1)", "scores.exp()")),
            "the division is not",
        ),
        "sign": (fading(("-rate", "rate")), "the older, the louder"),
        "weights returned": (fading((" @ x  #", "  #")), "You return the weights"),
        "0 times infinity": (
            fading(('.masked_fill(~past, float("-inf"))', " + ~past * -math.inf")),
            "0 times minus infinity",
        ),
        "integers": (
            "def fading_average(x, rate):\n"
            "    return F.softmax(torch.zeros(3, 3).long(), dim=-1) @ x",
            "not implemented for 'Long'",
        ),
    },
    "02.5": {
        "transposed": (heard(("return heard,", "return heard.T,")), "lies on its side"),
        "exact equality": (heard((".abs() > 1e-6", " != 0")), "exact equality"),
        "nan": (
            heard(
                ("+= 1.0", "= math.nan"),
                (
                    "(average(changed) - before).abs() > 1e-6",
                    "average(changed) != before",
                ),
            ),
            "0 * nan is nan",
        ),
        "changes pile up": (heard(("x.clone()", "x")), "changes pile up"),
        "several at once": (heard(("[:, i] +=", "[:, i:] +=")), "all inputs from i on"),
        "from zeros": (heard(("randn", "zeros")), "starts from zeros"),
        "one channel": (heard((".any(dim=-1)", "[..., 0]")), "one channel"),
        "the same twice": (
            heard(("x.clone()", "x"), ("before)", "average(changed))")),
            "Nothing ever moves",
        ),
        "the output as a whole": (
            heard((".any(dim=-1).any(dim=0)", ".any()")),
            "as a whole",
        ),
        "no map": (heard(("return heard, causal", "return causal")), "two things"),
        "map per channel": (
            heard(("return heard,", "return moved,")),
            "of shape (3, 3)",
        ),
        "sizes for truths": (
            heard(
                ("torch.zeros(T, T, dtype=torch.bool)", "torch.zeros(T, T)"),
                ("moved.any(dim=-1).any(dim=0)", "(average(changed) - x)[0, :, 0]"),
            ),
            "other numbers",
        ),
        "verdict per row": (heard((".any()\n", ".any(dim=-1)\n")), "It raised"),
        "verdicts": (
            heard(("causal = not heard.triu(1).any()", "causal = heard.any(1)")),
            "one True or False",
        ),
        "verdict turned round": (heard(("not heard", "heard")), "wrong way round"),
        "window accused": (
            heard(
                ("not heard.triu(1).any()", "heard.equal(heard.new_ones(T, T).tril())")
            ),
            "need not hear all",
        ),
        "all acquitted": (
            heard(("not heard.triu(1).any()", "True")),
            "'the mean of everything' you conclude causal = True",
        ),
    },
    "02.6": {
        "untouched": ("", "The bug is still there"),
        "renamed only": (nats(("past @", "past.clone() @")), "The bug is still there"),
        "two steps": (nats(("len(ids)))", "len(ids)), -2)")), "two steps behind: the"),
        "wrong direction": (nats(("len(ids)))", "len(ids)), 1)")), "next character"),
        "no triangle": (nats(("torch.tril(", "(")), "whole text"),
        "shifted the wrong way": (
            nats(("(probs.log(), ids)", "(probs[1:].log(), ids[:-1])")),
            "row t + 1 guesses character t",
        ),
        "mended twice": (
            nats(
                ("len(ids)))", "len(ids)), -1)"),
                ("(probs.log(), ids)", "(probs[:-1].log(), ids[1:])"),
            ),
            "Mended twice",
        ),
        "no chance for the new": (
            nats(
                ("@ one_hot + 1", "@ one_hot"),
                ("(probs.log(), ids)", "(probs[:-1].log(), ids[1:])"),
            ),
            "The loss is infinite",
        ),
        "symptom smoothed away": (
            nats(("one_hot + 1", "one_hot + 9")),
            "not right yet",
        ),
    },
    "02.7": {
        "untouched": ("", "The bug is still there"),
        "nan swept away": (
            attend(("F.softmax(scores, dim=-1)", "F.softmax(scores, -1).nan_to_num()")),
            "swept the nan away",
        ),
        "negative instead of zero": (
            attend(("torch.tril(scores) == 0", "torch.tril(scores) < 0")),
            "negative scores of the past are not",
        ),
        "no mask": (attend((FILL, "scores")), "not hidden at all"),
        "mask value 0": (attend(('float("-inf")', "0.0")), "exp(0) = 1"),
        "mask value 0, true mask": (
            attend(TRUE_PAST, ('float("-inf")', "0.0")),
            "exp(0) = 1",
        ),
        "mask after softmax": (
            attend((FILL, "scores"), ("return weights", "return weights.tril()")),
            "only after the softmax",
        ),
        "softmax over dim=1": (
            attend(TRUE_PAST, ("dim=-1", "dim=1")),
            "Your columns sum to one",
        ),
        "mask upside down": (attend(TRUE_PAST, (".tril()", ".triu()")), "upside down"),
        "the present hidden": (
            attend(TRUE_PAST, (".tril()", ".tril(-1)")),
            "present is hidden too",
        ),
        "weights returned": (
            attend(TRUE_PAST, ("return weights @ x", "return weights")),
            "You return the weights",
        ),
        "epsilon on the scores": (
            attend(("(-2, -1)  #", "(-2, -1) + 1e-9  #")),
            "The trap has only moved",
        ),
        "exp before the comparison": (
            attend(("torch.tril(scores) == 0", "torch.tril(scores.exp()) == 0")),
            "The trap has only moved",
        ),
        "epsilon on the queries": (
            attend(("= q @", "= (q + 1e-6) @")),
            "The result is not right yet",
        ),
    },
}

# Right answers written in other ways.
RIGHT = {
    "02.1": {
        "running sum": mean("x.cumsum(dim=1)[:, t] / (t + 1)"),
        "einsum in float64": mean(
            "torch.einsum('btc->bc', x[:, : t + 1].double()) / (t + 1)"
        ),
        "package, as lists": mean("averaging.average_matmul(x)[:, t].tolist()"),
        "transposed twice": mean("x.transpose(1, 2)[..., : t + 1].mean(-1)"),
        "loop": mean("sum(x[:, i] for i in range(t + 1)) / (t + 1)"),
    },
    "02.2": {
        "softmax of hidden scores": window("seen.log().softmax(dim=-1)"),
        "loop, as lists": window(
            "[[float(t - k < i <= t) / min(k, t + 1) for i in range(T)]"
            " for t in range(T)]"
        ),
        "normalize, in float64": window("F.normalize(seen.double(), p=1, dim=1)"),
        "not contiguous": window("(seen.T / seen.sum(1)).T"),
    },
    "02.3": {
        "running sum": shares("one_hot.cumsum(0) / torch.arange(1, T + 1)[:, None]"),
        "counted in lists": shares(
            "[[text[: t + 1].count(c) / (t + 1) for c in chars] for t in range(T)]"
        ),
        "softmax, other text": shares("averaging.average_softmax(one_hot[None])[0]")
        + "my_text = 'ß'",
        "short text": EXERCISES["02.3"].solution + "\nmy_text = 'to be or not to be'",
    },
    "02.4": {
        "factors": (
            "def fading_average(x, rate):\n"
            "    T = x.shape[1]\n"
            "    factors = [[math.exp(-rate * (t - i)) if i <= t else 0.0\n"
            "                for i in range(T)] for t in range(T)]\n"
            "    w = torch.tensor(factors).double()\n"
            "    return torch.einsum('ti,bic->btc', w / w.sum(1)[:, None], x.double())"
        ),
        "module with a cache": (
            "class Fading(torch.nn.Module):\n"
            "    def forward(self, x, rate):\n"
            "        out, total = [x[:, 0]], 1.0\n"
            "        keep = math.exp(-rate)\n"
            "        state = x[:, 0]\n"
            "        for t in range(1, x.shape[1]):\n"
            "            state = keep * state + x[:, t]\n"
            "            total = keep * total + 1\n"
            "            out.append(state / total)\n"
            "        return torch.stack(out, dim=1)\n"
            "fading_average = Fading()"
        ),
        "scores without the present's": fading(
            ("(time[:, None] - time)", "(0 - time)")
        ),
        "a large negative number": fading(('float("-inf")', "-1e9")),
    },
    "02.5": {
        "gradients": (
            "def who_hears_whom(average, T):\n"
            "    x = torch.randn(1, T, 2)\n"
            "    j = torch.autograd.functional.jacobian(average, x)\n"
            "    heard = j.abs().sum((0, 2, 3, 5)) > 1e-6\n"
            "    return heard, (heard == heard.tril()).all()"
        ),
        "loops and lists, large changes": (
            "def who_hears_whom(average, T):\n"
            "    heard = [[0] * T for _ in range(T)]\n"
            "    for t in range(T):\n"
            "        for i in range(T):\n"
            "            x = torch.randn(3, T, 1)\n"
            "            y = x.clone()\n"
            "            y[:, i] = 100.0\n"
            "            if not torch.allclose(average(x)[:, t], average(y)[:, t]):\n"
            "                heard[t][i] = 1\n"
            "    return heard, not any(heard[t][i] for t in range(T)\n"
            "                          for i in range(t + 1, T))"
        ),
        "one batch": (
            "def who_hears_whom(average, T):\n"
            "    x = torch.arange(T * 4.0).reshape(1, T, 4) / 5\n"
            "    changes = x + torch.eye(T)[:, :, None]  # row i changes input i\n"
            "    moved = ~torch.isclose(average(changes), average(x), atol=1e-5)\n"
            "    heard = moved.any(-1).T\n"
            "    return heard.int(), heard.triu(1).sum() == 0"
        ),
    },
    "02.6": {
        "targets shifted": nats(("(probs.log(), ids)", "(probs[:-1].log(), ids[1:])")),
        "the present subtracted": nats(("one_hot + 1 ", "one_hot - one_hot + 1 ")),
        "a loop": (
            "def nats_per_character(text):\n"
            "    v, nats = len(set(text)), []\n"
            "    for t, c in enumerate(text):\n"
            "        nats.append(-math.log((text[:t].count(c) + 1) / (t + v)))\n"
            "    return torch.tensor(nats).mean()"
        ),
    },
    "02.7": {
        "triangle of ones": attend(TRUE_PAST),
        "two-dimensional mask": attend(
            (TRUE_PAST[0], "torch.ones(x.shape[1], x.shape[1]).triu(1).bool()")
        ),
        "infinities added": attend(
            (FILL, "scores + torch.full(scores.shape[1:], -math.inf).triu(1)")
        ),
        "rows divided after all": (
            "def attend(x, q, k):\n"
            "    w = (q @ k.transpose(1, 2)).double().exp().tril()\n"
            "    return (w / w.sum(-1, keepdim=True)) @ x.double()"
        ),
        "torch's own": (
            "def attend(x, q, k):\n"
            "    return F.scaled_dot_product_attention(\n"
            "        q, k, x, is_causal=True, scale=1.0)"
        ),
    },
}


def table(answers):
    return [
        pytest.param(number, name, id=f"{number} {name}")
        for number, named in answers.items()
        for name in named
    ]


def test_the_notebook_has_five_exercises_and_two_bug_hunts():
    kinds = [exercise.kind for exercise in EXERCISES.values()]
    assert kinds == ["Exercise"] * 5 + ["Bug hunt"] * 2
    assert list(EXERCISES) == list(MISTAKES)


@pytest.mark.parametrize("number", EXERCISES)
def test_the_solution_in_the_notebook_is_right(number):
    assert said(number, EXERCISES[number].solution).startswith(f"✓ {number}")


@pytest.mark.parametrize("number", EXERCISES)
def test_the_untouched_cell_says_so_in_one_line_or_shows_the_symptom(number):
    answer = said(number, "")
    if EXERCISES[number].kind == "Bug hunt":
        assert answer.startswith(f"✗ {number}") and "The bug is still there" in answer
    else:
        assert answer.startswith(f"○ {number}") and "not attempted yet" in answer
        assert answer.count("\n") == 1


@pytest.mark.parametrize("number, name", table(WRONG))
def test_a_wrong_answer_is_told_its_own_mistake_and_a_hint(number, name):
    code, part = WRONG[number][name]
    answer = said(number, code)
    assert answer.startswith(f"✗ {number}")
    assert part in answer
    others = {other for _, other in WRONG[number].values()} - {part}
    assert not [other for other in others if other in answer]


@pytest.mark.parametrize("number, name", table(RIGHT))
def test_a_right_answer_written_otherwise_is_right(number, name):
    assert said(number, RIGHT[number][name]).startswith(f"✓ {number}")


@pytest.mark.parametrize("number", EXERCISES)
def test_every_mistake_that_the_check_knows_is_tried_here(number):
    answers = "".join(said(number, code) for code, _ in WRONG[number].values())
    assert [m.says for m in MISTAKES[number] if m.says not in answers] == []


@pytest.mark.parametrize("number", EXERCISES)
def test_a_check_is_quick_and_leaves_the_random_state_alone(number):
    said(number, EXERCISES[number].solution)  # imports done, memory warm
    torch.manual_seed(5)
    before, start = torch.get_rng_state(), time.process_time()
    play(EXERCISES[number], NAMES, EXERCISES[number].solution)
    assert time.process_time() - start < 2
    assert torch.equal(torch.get_rng_state(), before)


def test_the_smallest_input_is_shown_with_expected_and_received_values():
    code, _ = WRONG["02.1"]["the future let in"]
    answer = said("02.1", code)
    assert "[[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]]" in answer
    assert "expected [[4.0, 5.5]]" in answer
    assert "received [[4.6667, 5.3333]]" in answer


def test_the_learners_own_text_is_told_about():
    answer = said("02.3", EXERCISES["02.3"].solution + "\nmy_text = 'xyzzy!'")
    assert "After 6 characters of yours, 'y' leads with 33%" in answer
