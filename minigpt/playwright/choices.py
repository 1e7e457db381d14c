"""Lesson 07: choices with known probabilities. A play is a chain of them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum, log
from operator import itemgetter
from typing import NamedTuple


class Options:
    """The texts of one choice; mass[beginning] is the probability of all that begin
    that way.

    Raises ValueError if one text is the beginning of another, because a reader couldn't
    tell them apart.
    """

    def __init__(self, texts: Sequence[str], weights: Sequence[float]) -> None:
        ordered = sorted(texts)
        for text, longer in zip(ordered, ordered[1:]):
            if longer.startswith(text):
                raise ValueError(
                    f"{text!r} and {longer!r} can stand in the same place, and one "
                    "begins the other: reword or remove one of them"
                )
        total = fsum(weights)  # not sum, which rounds differently since Python 3.12
        probabilities = [weight / total for weight in weights]
        self.texts, self.cumulative = texts, list(accumulate(probabilities))
        self.mass = {}
        for text, probability in zip(texts, probabilities):
            for end in range(len(text) + 1):
                self.mass[text[:end]] = self.mass.get(text[:end], 0) + probability
        self.surprises = []  # -ln p of each character, for each text
        for text in texts:
            masses = [self.mass[text[:end]] for end in range(len(text) + 1)]
            steps = zip(masses, masses[1:])
            self.surprises.append([log(before / after) for before, after in steps])


class Span(NamedTuple):
    """text[start:stop] depends on what came earlier. `kind` says how."""

    start: int
    stop: int
    kind: str


@dataclass(frozen=True, repr=False)
class Play:
    """A text, and how much it surprises somebody who knows the playwright.

    surprise[i] is -ln p(text[i] | text[:i]), in nats. `choices` says where each choice
    begins, and holds its Options. The end of the text may cut the last one short.
    """

    text: str
    surprise: list[float]
    spans: list[Span]
    choices: list[tuple[int, Options]]

    def nats(self, start: int = 0, stop: int | None = None) -> float:
        """Exact nats per character of text[start:stop]."""
        surprise = self.surprise[start:stop]
        return fsum(surprise) / len(surprise)

    def next_char_probs(self, position: int) -> dict[str, float]:
        """{character: its probability} for each one that may follow text[:position]."""
        at = bisect_right(self.choices, position, key=itemgetter(0)) - 1
        start, options = self.choices[at]
        begun = self.text[start:position]
        chars = {text[len(begun)] for text in options.texts if text.startswith(begun)}
        return {c: options.mass[begun + c] / options.mass[begun] for c in sorted(chars)}

    def __repr__(self) -> str:
        size = len(self.text)
        return f"Play({size:,} characters, {self.nats():.4f} nats per character)"
