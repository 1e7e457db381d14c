"""Notebook 07's exercises: what is right passes, and each mistake gets its own name."""

import dataclasses
import functools
import math
import time

import pytest
import torch
import torch.nn.functional as F
from exercises import exercises_of, play

from minigpt.checks import how_low as checks
from minigpt.playwright_lexicon import LEXICON

EXERCISES = {exercise.number: exercise for exercise in exercises_of("07")}
MISTAKES = {
    "07.1": checks.ENTROPY_MISTAKES,
    "07.2": checks.TEMPERATURE_MISTAKES,
    "07.3": checks.PERPLEXITY_MISTAKES,
    "07.4": checks.SMOOTH_MISTAKES,
    "07.5": [],
    "07.6": checks.MEAN_MISTAKES,
    "07.7": checks.WINDOW_MISTAKES,
}


def first(k, lists):
    return {name: entries[:k] for name, entries in lists.items()}


NAMES = {
    "torch": torch,
    "math": math,
    "F": F,
    "dataclasses": dataclasses,
    "LEXICON": LEXICON,
    "first": first,
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


def entropy(body):
    return f"def entropy(p):\n    s = torch.special.entr(p)\n    return {body}\n"


def temperature(*edits):
    return edited(EXERCISES["07.2"].solution, *edits)


def perplexity(body):
    return (
        "def perplexity(nats, sizes):\n"
        "    x, n = torch.tensor(nats), torch.tensor(sizes)\n"
        f"    return {body}\n"
    )


def smooth(body):
    return (
        "def smooth(counts, lower, strength):\n"
        "    seen = counts.sum(-1, keepdim=True)\n"
        f"    return {body}\n"
    )


CAST = 'names=("Ada", "Alan", "Grace", "Kurt")'


def lexicon(*changes):
    inside = ", ".join((CAST, *changes))
    return f"def my_lexicon():\n    return dataclasses.replace(LEXICON, {inside})\n"


def surprise(body):
    return (
        "def mean_surprise(probs, ids):\n"
        "    given = probs.gather(1, ids[:, None])[:, 0]\n"
        f"    return {body}\n"
    )


def windows(body):
    return (
        "def loss_in_windows(nats, window):\n"
        "    pieces = nats.split(window)\n"
        f"    return {body}\n"
    )


# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "07.1": {
        "zero forgotten": (entropy("-(p * p.log()).sum(-1)"), "zero gives nan"),
        "bits": (entropy("s.sum(-1) / math.log(2)"), "These are bits"),
        "sign": (entropy("-s.sum(-1)"), "The sign is wrong"),
        "mean": (entropy("s.mean(-1)"), "mean over the faces"),
        "terms": (entropy("s"), "not yet their sum"),
        "sum of all": (entropy("s.sum()"), "sum over everything"),
        "wrong dimension": (entropy("s.sum(0)"), "wrong dimension"),
        "not weighted": (
            entropy("-p.clamp(min=1e-9).log().mean(-1)"),
            "should count p times",
        ),
        "not weighted, infinite": (
            entropy("-p.log().mean(-1)"),
            "also the infinite one",
        ),
        "a large epsilon": (
            entropy("-(p * (p + 1e-3).log()).sum(-1)"),
            "so large that it shows",
        ),
        "one die learned by heart": (
            entropy("torch.tensor(1.2130)"),
            "The shape is () , but".replace(" ,", ","),
        ),
    },
    "07.2": {
        "multiplied": (
            temperature(("logits / middle", "logits * middle"), ("low = m", "HIGH = m"))
            .replace("high = m", "low = m")
            .replace("HIGH = m", "high = m"),
            "one over the temperature",
        ),
        "bits": (
            temperature((".sum() < nats", ".sum() / math.log(2) < nats")),
            "a number of bits",
        ),
        "entropy returned": (
            temperature(("return middle", "return nats")),
            "the entropy that you reached",
        ),
        "ends at 1": (temperature(("100.0", "1.0")), "search ends at 1"),
        "ends at 2": (temperature(("100.0", "2.0")), "search ends at 2"),
        "too coarse": (temperature(("range(40)", "range(7)")), "search finer"),
        "wrong way": (temperature((".sum() < nats", ".sum() > nats")), "wrong way"),
        "never ends": (
            "def temperature_for(logits, nats):\n    while True:\n        pass",
            "still running",
        ),
    },
    "07.3": {
        "perplexities averaged": (
            perplexity("(x.exp() * n).sum() / n.sum()"),
            "perplexities do not",
        ),
        "averaged, unweighted": (perplexity("x.exp().mean()"), "and a short text"),
        "unweighted": (perplexity("x.mean().exp()"), "A short text counts as much"),
        "no exp": (perplexity("(x * n).sum() / n.sum()"), "exp is still missing"),
        "base 2": (perplexity("2 ** ((x * n).sum() / n.sum())"), "2 belongs to bits"),
        "sign": (perplexity("(-(x * n).sum() / n.sum()).exp()"), "one over it"),
        "not divided": (perplexity("(x * n).sum().exp()"), "without dividing"),
    },
    "07.4": {
        "only real ones counted": (
            smooth("(counts + strength * lower) / seen"),
            "only the real observations",
        ),
        "not divided": (smooth("counts + strength * lower"), "nothing is divided"),
        "brackets": (
            smooth("counts + strength * lower / (seen + strength)"),
            "needs its brackets",
        ),
        "whole table": (
            smooth("(c := counts + strength * lower) / c.sum()"),
            "whole table",
        ),
        "seen in the whole table": (
            smooth("(counts + strength * lower) / (counts.sum() + strength)"),
            "added up over all rows",
        ),
        "strength for each": (
            smooth("(counts + strength * lower) / (seen + strength * counts.shape[1])"),
            "it is the total",
        ),
        "strength below only": (
            smooth("(counts + lower) / (seen + strength)"),
            "only one of them is shared out",
        ),
        "shares first": (
            smooth("(counts / seen + strength * lower) / (1 + strength)"),
            "evidence has lost its weight",
        ),
        "half and half, nan": (
            smooth("counts / seen / 2 + lower / 2"),
            "a row never seen is nan",
        ),
        "something else": (
            smooth("(counts + 2 * strength * lower) / (seen + strength)"),
            "Your rows do not sum to one",
        ),
        "columns": (
            smooth("(c := counts + strength * lower) / c.sum(0)"),
            "columns sum to one",
        ),
        "lower ignored": (
            smooth("(c := counts + strength) / c.sum(-1, keepdim=True)"),
            "shorter context is ignored",
        ),
        "evenly": (
            smooth("(counts + strength / counts.shape[1]) / (seen + strength)"),
            "spread the strength evenly",
        ),
        "one": (smooth("(counts + lower) / (seen + 1)"), "exactly one observation"),
        "not smoothed": (smooth("counts / seen"), "Nothing is smoothed"),
        "lower returned": (
            smooth("lower + 0 * counts"),
            "counts change nothing",
        ),
        "half and half": (
            smooth("(counts / seen).nan_to_num() / 2 + lower / 2"),
            "Always half and half",
        ),
        "keepdim forgotten": (
            smooth("(counts + strength * lower) / (counts.sum(-1) + strength)"),
            "do not fit together",
        ),
    },
    "07.5": {
        "unchanged": (
            "def my_lexicon():\n    return LEXICON",
            "not all your own yet: 'Duke Bun'",
        ),
        "one of ours left": (
            lexicon().replace('"Kurt"', '"Nan"'),
            "not all your own yet: 'Nan'",
        ),
        "names only": (lexicon(), "too high"),
        "too small": (lexicon("words=first(2, LEXICON.words)"), "too low"),
        "words alone": (
            "def my_lexicon():\n    return first(20, LEXICON.words)",
            "only a part of a lexicon",
        ),
        "a play": (
            "from minigpt.playwright import write_play\n"
            "def my_lexicon():\n    return write_play(100)",
            "This is a play already",
        ),
        "the class": (
            "def my_lexicon():\n    return type(LEXICON)",
            "Return a Lexicon",
        ),
        "too few names": (
            lexicon().replace('"Grace", "Kurt"', ""),
            "bring two or more, and give at least as many names",
        ),
        "strange letters": (
            lexicon().replace("Kurt", "Erdős"),
            "which Tiny Shakespeare",
        ),
        "clash": (
            lexicon().replace("Kurt", "Ada, too"),
            "one begins the other",
        ),
        "not a function": (
            f"my_lexicon = dataclasses.replace(LEXICON, {CAST})",
            "should be a function",
        ),
    },
    "07.6": {
        "untouched": (surprise("-given.mean().log()"), "The bug is still there"),
        "sign": (surprise("given.log().mean()"), "never negative"),
        "sum": (surprise("-given.log().sum()"), "the whole surprise"),
        "entropy": (
            surprise("torch.special.entr(probs).sum(1).mean()"),
            "does not look at what happened",
        ),
        "bits": (surprise("-given.log2().mean()"), "These are bits"),
        "median": (surprise("-given.log().median()"), "A median hides"),
        "largest": (surprise("-probs.max(1)[0].log().mean()"), "largest probability"),
        "averaged beliefs": (
            surprise("-probs.mean(0)[ids].log().mean()"),
            "averaged per outcome",
        ),
    },
    "07.7": {
        "untouched": (
            windows("torch.stack([p.mean() for p in pieces]).mean()"),
            "The bug is still there",
        ),
        "short one dropped": (
            windows("nats[: len(nats) // window * window].mean()"),
            "not judged at all",
        ),
        "last one dropped": (
            windows("nats[: (len(nats) - 1) // window * window].mean()"),
            "even where it is a whole one",
        ),
        "short one dropped, one by one": (
            windows(
                "torch.stack([p.mean() for p in pieces if len(p) == window]).mean()"
            ),
            "not judged at all",
        ),
        "short one weighs as much": (
            windows("sum(p.mean() * window for p in pieces) / len(nats)"),
            "weigh it by its length",
        ),
        "padded": (
            windows("nats.sum() / (len(pieces) * window)"),
            "more characters than",
        ),
        "divided by windows": (
            windows("nats.sum() / len(pieces)"),
            "number of windows",
        ),
        "not divided": (windows("nats.sum()"), "a mean is wanted"),
        "first only": (windows("pieces[0].mean()"), "Only the first window"),
    },
}

# Right answers written in other ways.
RIGHT = {
    "07.1": {
        "entr": entropy("s.sum(-1)"),
        "where, in float64": entropy(
            "-torch.where(p > 0, p.double() * p.log(), 0.0).sum(-1)"
        ),
        "torch's distribution": entropy(
            "torch.distributions.Categorical(probs=p).entropy()"
        ),
        "nan swept": entropy("-(p * p.log()).nan_to_num().sum(-1).float()"),
    },
    "07.2": {
        "arithmetic middle": temperature(
            ("(low * high) ** 0.5", "(low + high) / 2"), ("100.0", "50.0")
        ),
        "a fine grid": (
            "def temperature_for(logits, nats):\n"
            "    grid = torch.logspace(-2, 2, 40_000)\n"
            "    p = F.softmax(logits / grid[:, None], dim=-1)\n"
            "    gap = (torch.special.entr(p).sum(-1) - nats).abs()\n"
            "    return grid[gap.argmin()]"
        ),
        "in steps, as a tensor": (
            "def temperature_for(logits, nats):\n"
            "    t, step = torch.tensor(1.0), 1.0\n"
            "    for _ in range(60):\n"
            "        p = F.softmax(logits / t.exp(), dim=-1)\n"
            "        low = torch.special.entr(p).sum() < nats\n"
            "        t = t + step if low else t - step\n"
            "        step *= 0.8\n"
            "    return t.exp()"
        ),
    },
    "07.3": {
        "tensors": perplexity("((x * n).sum() / n.sum()).exp()"),
        "product of powers": perplexity("(x.exp() ** (n / n.sum())).prod()"),
        "written out": perplexity("torch.repeat_interleave(x, n).mean().exp().item()"),
    },
    "07.4": {
        "sum of the row": smooth(
            "(c := counts + strength * lower) / c.sum(-1, keepdim=True)"
        ),
        "a mixture whose weight knows": smooth(
            "(counts / seen).nan_to_num() * seen / (seen + strength)"
            " + lower * strength / (seen + strength)"
        ),
        "rows, in float64": smooth(
            "torch.stack([(c.double() + strength * p) / (c.sum() + strength)"
            " for c, p in zip(counts, lower.expand_as(counts))])"
        ),
    },
    "07.5": {
        "other words": lexicon("words=first(18, LEXICON.words)"),
        "fewer lines, more words": lexicon(
            "words=first(25, LEXICON.words)", "lines=first(5, LEXICON.lines)"
        ),
    },
    "07.6": {
        "nll_loss": surprise("F.nll_loss(probs.log(), ids)"),
        "a loop": surprise("sum(-math.log(g) for g in given.tolist()) / len(ids)"),
        "product": surprise("-given.double().prod().log() / len(given)"),
    },
    "07.7": {
        "no windows": windows("nats.mean()"),
        "joined again": windows("torch.cat(pieces).double().mean()"),
        "weighted": windows("sum(p.mean() * len(p) for p in pieces) / len(nats)"),
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
    torch.manual_seed(5)
    before, start = torch.get_rng_state(), time.perf_counter()
    play(EXERCISES[number], NAMES, EXERCISES[number].solution)
    assert time.perf_counter() - start < 2
    assert torch.equal(torch.get_rng_state(), before)


def test_ones_own_grammar_is_told_its_floor_and_which_way_to_go():
    answer = said("07.5", lexicon())
    assert "its floor is 0.5" in answer and "lists of words shorter" in answer
    answer = said("07.5", lexicon("words=first(2, LEXICON.words)"))
    assert "lists of words longer" in answer and "lines=LEXICON.lines" in answer


def test_an_entry_that_the_playwright_refuses_is_to_be_changed():
    answer = said("07.5", lexicon().replace("Kurt", "Erdős"))
    assert "The message names the value that is not accepted" in answer


def test_a_right_entropy_of_an_own_grammar_is_reported():
    answer = said("07.5", EXERCISES["07.5"].solution)
    assert "5 people of your own" in answer and "floor of 0." in answer
