"""Lesson 15: prompts, judges, and what a reward costs.

A prompt is what stands before the first speech of a scene: its last BEFORE characters,
which end with who enters. A model goes on for NEW characters, as many as fit into the
context of the stored pocket models.
"""

import re
from collections import Counter
from collections.abc import Callable
from math import log

import torch

from minigpt.fast.writing import generate
from minigpt.interfaces import Model, Tokenizer
from minigpt.playwright.play import POCKET
from minigpt.reward.checker import RULES, Checker
from minigpt.reward.step import log_probs

BEFORE, NEW = 50, 142
CAST = re.compile(", | and ")


def entrances(text: str, after: int = 0) -> list[tuple[str, frozenset[str]]]:
    """(prompt, cast) of the scenes in a pocket play. after: so many of the author's own
    characters follow each prompt."""
    return [
        (text[e.end() - BEFORE : e.end() + after], frozenset(CAST.split(e[1])))
        for e in re.finditer(r"Chorus:\n.* Enter (.*)\.\n", text)
        if BEFORE <= e.end() <= len(text) - after
    ]


def held_out(cast: frozenset[str], turn: int) -> bool:
    """Whether a cast is one of the three of ten that turn 0, 1 or 2 keeps out of a
    training: three people without one, and two pairs in which everybody is."""
    names = POCKET.names
    if len(cast) == 3:
        return names[turn] not in cast
    return (names[turn] in cast) == (names[3] in cast)


def scene(text: str) -> str:
    """A prompt and what follows it, without what stands before the scene."""
    return text[text.rindex("Chorus:\n", 0, BEFORE) :]


def judged_by(
    tokenizer: Tokenizer, judge: Callable[[str], float]
) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function of texts (N, T) as ids -> judge(scene) of each, (N,)."""

    def rewards(idx):
        return torch.tensor([float(judge(scene(tokenizer.decode(i)))) for i in idx])

    return rewards


def coins(q: float, p: float) -> float:
    """KL(q || p) between two coins: the least that a share of q costs who had p."""
    pairs = ((q, p), (1 - q, 1 - p))
    return sum(to * log(to / start) for to, start in pairs if to > 0)


@torch.no_grad()
def price(
    model: Model,
    reference: Model,
    tokenizer: Tokenizer,
    prompts: torch.Tensor,
    generator: torch.Generator | None = None,
) -> dict[str, float]:
    """What a model writes after each of prompts (N, BEFORE): the share that keeps all
    rules, or breaks each one first; KL from the reference and entropy, exact at each
    character and summed over a text, in nats; the share of texts that differ; and who
    is the first to speak."""
    idx = generate(model, prompts, NEW, generator=generator)  # (N, BEFORE + NEW)
    kl = entropy = 0.0
    for part in idx.split(128):
        logp, ref = (log_probs(m, part, NEW) for m in (model, reference))
        kl += (logp.exp() * (logp - ref)).sum().item() / len(idx)
        entropy -= (logp.exp() * logp).sum().item() / len(idx)
    checker, texts = Checker(), [tokenizer.decode(i) for i in idx]
    broken = Counter(checker.check(scene(text)).broken for text in texts)
    speakers = Counter(first_speaker(text[BEFORE:]) for text in texts)
    return {
        "kept": broken[""] / len(texts),
        **{f"breaks {rule}": broken[rule] / len(texts) for rule in RULES},
        "KL": kl,
        "entropy": entropy,
        "differ": len(set(texts)) / len(texts),
        **{f"{name} first": speakers[name] / len(texts) for name in POCKET.names},
    }


def first_speaker(text: str) -> str:
    """Whoever speaks first after the Chorus: "" for nobody."""
    found = re.search(r"^(.+):$", text, re.MULTILINE)
    return found[1] if found else ""
