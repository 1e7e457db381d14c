"""Lesson 07: what a playwright knows, a Lexicon of words, lines and habits.

A line begins with fixed words, and then has {slots}. A slot takes a word from the list
with its name in `words`, or it's one of
    {thou hast}, {thy}, ...  of `forms`: "thou" or "you", for the whole speech
    {oath} {insult} {deed}   of `phrases`, which the next speaker may repeat
    {said}                   that phrase, word for word (in replies)
    {name}                   somebody else on stage, who answers (openings, replies)
    {enter}                  somebody who enters (entrances)
    {rhyme}                  from `rhymes`; a second line uses the first one's group
`situations` says which lists the next line can come from, and how often. A couplet
closes the scene. It's possible where nobody is named.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from minigpt.require import require

ALPHABET = set("\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
# The slots that the action fills, and the lists of lines that may use them.
ACTION_SLOTS = {
    "name": ("opening", "reply"),
    "said": ("reply",),
    "enter": ("entrance",),
    "rhyme": ("couplet",),
}
SITUATIONS = [  # and, for example, "after insult" for each kind of phrase
    *("scene", "couplet first", "couplet second", "somebody named", "nobody named"),
    *("after scene", "after nothing"),
]


@cache
def parse(template: str) -> tuple[str, tuple]:
    """'a {x} b {y}.' -> ('a ', (('x', ' b '), ('y', '.'))): each slot with its tail."""
    head, *rest = re.split(r"\{(.*?)\}", template)
    return head, tuple(zip(rest[::2], rest[1::2]))


@dataclass(frozen=True)
class Lexicon:
    """A playwright's names, words, lines and habits. The top of this file explains
    them.

    Raises ValueError for anything that can't make a play, and says how to fix it.
    Entries that clash are only found when the playwright gets to them.
    """

    names: tuple[str, ...]
    words: dict[str, tuple[str, ...]]
    forms: dict[str, tuple[str, ...]]  # two each
    phrases: dict[str, str]
    rhymes: tuple[tuple[str, ...], ...]
    lines: dict[str, tuple[str, ...]]
    situations: dict[str, dict[str, float]]
    announcer: str = "Chorus"

    def __post_init__(self) -> None:
        for where, entries in self.lists().items():
            if not entries or isinstance(entries, str):
                raise ValueError(
                    f"{where!r} is {entries!r}: make it a tuple of at least one text, "
                    "such as ('Ada', 'Alan', 'Grace')"
                )
            for entry in entries:
                self.check_entry(where, entry)
        for group in self.rhymes:
            if len(group) < 2:
                raise ValueError(f"rhyme group {group!r} has one word: add another")
        needed = SITUATIONS + [f"after {kind}" for kind in self.phrases]
        for where in [*needed, *self.situations]:
            shares = self.situations.get(where)
            if not shares or shares.keys() - self.lines or min(shares.values()) <= 0:
                raise ValueError(
                    f"situation {where!r} is {shares}: give shares above 0 to lists "
                    f"among {sorted(self.lines)}"
                )

    def check_entry(self, where: str, entry: str) -> None:
        slots = [slot for slot, _ in parse(entry)[1]]
        usable = {*self.words, *self.forms}
        usable |= set() if where == "phrases" else {*self.phrases}
        usable |= {s for s, users in ACTION_SLOTS.items() if where.startswith(users)}
        unknown, n_enter = {*slots} - usable, slots.count("enter")
        strange = {*re.sub(r"\{.*?\}", "", entry)} - ALPHABET
        must = f"{entry!r} in {where!r} must have"
        require(
            not unknown,
            f"{must} slots from {sorted(usable)}, not {sorted(unknown)}.",
        )
        require(
            not strange,
            f"{must} Tiny Shakespeare's 65 characters, not {sorted(strange)}.",
        )
        require(
            not where.startswith("couplet") or slots.count("rhyme") == 1,
            f"{must} {{rhyme}} exactly once.",
        )
        require(
            where != "entrance" or 2 <= n_enter <= len(self.names),
            f"{must} {{enter}} at least twice and at most {len(self.names)} times, "
            "because there are that many names.",
        )

    def lists(self) -> dict[str, Sequence[str]]:
        """All lists of texts, by name."""
        return {
            "names": self.names,
            "rhymes": self.fillers["rhyme"],
            "announcer": (self.announcer,),
            "phrases": tuple(self.phrases.values()),
            **self.words,
            **self.forms,
            **self.lines,
        }

    @cached_property
    def fillers(self) -> dict[str, Sequence[str]]:
        """What may fill each slot before anything has happened."""
        rhymes = tuple(word for group in self.rhymes for word in group)
        return {**self.words, **self.forms, "enter": self.names, "rhyme": rhymes}
