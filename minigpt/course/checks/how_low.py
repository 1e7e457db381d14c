"""Checks for notebook 07: entropy, perplexity, smoothing, a grammar."""

import copy
import math
from dataclasses import fields
from functools import partial

import torch
import torch.nn.functional as F

from minigpt.course.checks.core import Explained, Sign, call, compare, exercise
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import describe, randint, randn, same
from minigpt.playwright.lexicon import LEXICON, Lexicon
from minigpt.playwright.play import write_play

DIE = torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 8])
SURE = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])


def _beliefs(*shape):
    return F.softmax(2 * randn(*shape), dim=-1)


@exercise("07.1 The entropy of anything")
def check_entropy(entropy):
    """entropy(p): (..., V) -> (...), in nats; 0 * ln 0 counts as 0."""
    cases = [(DIE,), (_beliefs(2, 3),), (_beliefs(2, 4, 5),), (SURE,)]
    known = {
        "Where p is 0, you compute 0 * ln 0: that is nan here, and counts as 0.": (
            Sign(lambda got, right, p: got.isnan().any()),
            "p.clamp(min=1e-12) lets ln see another number than 0.",
        ),
        "Each surprise counts the same here; it should count p times.": Sign(
            lambda got, expected, p: (
                (got > 1).all() if 0 in p else same(got, -p.log().mean(-1))
            )
        ),
    }
    hint = "-ln p, weighted by p, and summed. Which number should ln see where p is 0?"
    compare(entropy, Solution("07.1"), cases, known, hint=hint)
    return "4 shapes, impossible outcomes included; nobody gets below 0 or above ln V."


@exercise("07.2 How many sides has the die?")
def check_perplexity(perplexity):
    """perplexity(nats, sizes): two lists of equal length -> float."""
    cases = [([math.log(2), math.log(8)], [3, 1]), ([1.5], [10])]
    cases.append(([0.5, 1.0, 2.0], [10, 1, 2]))
    hint = "Total surprise divided by total characters; exp comes last."
    compare(perplexity, Solution("07.2"), cases, hint=hint)
    return "3 collections of texts; cutting a text in two changes nothing."


@exercise("07.3 Pretended observations")
def check_smooth(smooth):
    """smooth(counts, lower, strength): (R, V), (V,) or (R, V) -> (R, V)."""
    counts, even = randint(5, 4, 5).float(), torch.full((4,), 0.25)
    few = torch.tensor([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    cases = [(few, torch.tensor([0.5, 0.25, 0.25]), 4.0)]
    cases += [(counts, _beliefs(4, 5), 2.0), (counts, _beliefs(4, 5), 20.0)]
    cases.append((counts[:, :4] + 1, even, 4.0))
    hint = "How many observations has a row now, real and pretended? Who gets them?"
    compare(smooth, Solution("07.3"), cases, hint=hint)
    return "4 tables, one with a row never seen; all rows sum to one."


GOAL, TOLERANCE = 0.40, 0.02
OURS = {f.name: copy.deepcopy(getattr(LEXICON, f.name)) for f in fields(LEXICON)}


def _restored():
    """The parts of LEXICON that were changed, after putting them right."""
    changed = [name for name, then in OURS.items() if vars(LEXICON).get(name) != then]
    vars(LEXICON).update({name: copy.deepcopy(OURS[name]) for name in changed})
    vars(LEXICON).pop("fillers", None)  # made of the parts, and kept
    return changed


@exercise("07.4 Your own playwright")
def check_my_lexicon(my_lexicon):
    """my_lexicon() -> a Lexicon with another cast, and a floor of 0.40 nats."""
    try:
        mine = call(my_lexicon)
    finally:
        changed = _restored()
    if changed:
        raise Explained(
            f"The course's own LEXICON was changed, its {changed[0]}: for "
            "all who use it. (It is put right again.)",
            "Make a new one: dataclasses.replace(LEXICON, ...), and for a part of the "
            'words words={**LEXICON.words, "adj": ("fat", "damp")}.',
        )
    if not isinstance(mine, Lexicon):
        raise Explained(
            f"Return a whole Lexicon; this is {describe(mine)}.",
            "dataclasses.replace(LEXICON, names=(...), ...) makes one.",
        )
    if shared := sorted(set(mine.names) & set(OURS["names"])):
        raise Explained(
            f"The cast is not all your own yet: {shared[0]!r} is one of ours.",
            'names=("Ada", "Alan", ...) replaces all of them.',
        )
    floor = call(partial(write_play, 60_000, lexicon=mine)).nats()
    if abs(floor - GOAL) > TOLERANCE:
        side, way = ("high", "shorter") if floor > GOAL else ("low", "longer")
        unit = ": 0.40 bits" * (abs(floor - GOAL * math.log(2)) < TOLERANCE)
        more = "" if floor > GOAL else ", or take all lines, lines=LEXICON.lines"
        raise Explained(
            f"Your grammar works, but its floor is {floor:.2f} nats per character"
            f"{unit}, too {side}, between 0.38 and 0.42 is wanted.",
            "The choices of words cost the nats, the names hardly. Make lists of words "
            f"{way}: "
            "{slot: words[:k] for slot, words in LEXICON.words.items()}" + more,
        )
    return f"{len(mine.names)} people of your own, and a floor of {floor:.3f} nats."
