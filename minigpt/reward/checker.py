"""Lesson 15: the playwright of lesson 07 reads a text instead of writing one.

He makes the same choices in the same order, but takes each one from the text. So he
knows the probability of what he reads, and which rule it breaks first:

    agreement, answer, on stage, rhyme, repeat    the rules of lesson 07
    wording                                       words or a line he never writes there
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from minigpt.playwright.choices import Options
from minigpt.playwright.grammar import Lexicon
from minigpt.playwright.play import POCKET, Playwright

RULES = ["agreement", "answer", "on stage", "rhyme", "repeat", "wording"]


class Verdict(NamedTuple):
    """The first rule that a text breaks ("" if none), and -ln p of each character that
    comes before, in nats. A text that breaks a rule has probability 0."""

    broken: str
    surprise: list[float]


class Stop(Exception):
    """The text ends, or breaks the rule that is the exception's text."""


class Checker(Playwright):
    """Checker(lexicon).check(text) -> Verdict. The text begins where a scene does; it
    may end anywhere, also in the middle of a word."""

    def __init__(self, lexicon: Lexicon = POCKET) -> None:
        super().__init__(lexicon, Random())
        names = dict.fromkeys(("speaker", "name"), lexicon.names)
        self.anywhere = {**lexicon.fillers, **names}  # what may fill a slot, some time

    def check(self, text: str) -> Verdict:
        self.texts, self.surprise, self.spans, self.choices = [], [], [], []
        self.text, self.position, broken = text, 0, ""
        try:
            while self.position < len(text):
                self.scene(len(text))
        except Stop as stop:
            broken = str(stop)
        return Verdict(broken, self.surprise)

    def fill(self, slot: str, tail: str) -> None:
        self.excluded = [word + tail for word in self.anywhere.get(slot, ())]
        super().fill(slot, tail)

    def choose(self, options: Options, why: str | None = "", tail: str = "") -> int:
        """The choice that the text has made here, or Stop."""
        rest = self.text[self.position :]
        if not rest:
            raise Stop
        index = find(rest, options.texts)
        if index is None:
            rule = why or "on stage"  # those who are there can't enter
            known = find(rest, self.excluded) is not None or why == "repeat"
            raise Stop(rule if known else "wording")
        text, self.excluded = options.texts[index], []
        self.surprise += options.surprises[index][: len(rest)]
        self.position += len(text)
        self.texts.append(text)
        return index


def find(rest: str, texts: Sequence[str]) -> int | None:
    """Which of some texts `rest` begins with, or is the beginning of."""
    fits = (i for i, text in enumerate(texts) if text.startswith(rest[: len(text)]))
    return next(fits, None)
