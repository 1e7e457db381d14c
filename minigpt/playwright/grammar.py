"""Lesson 07: what a playwright knows: a Lexicon of words, lines and habits.

A line is fixed words, with which it begins, and {slots}. A slot takes a word from the
list of that name in `words`, or it is one of
    {thou hast}, {thy}, ...  of `forms`: "thou" or "you", all speech long
    {oath} {insult} {deed}   of `phrases`, which the next speaker may throw back
    {said}                   that phrase, word for word (in replies)
    {name}                   somebody else on stage, who answers (openings, replies)
    {enter}                  somebody who comes on stage (entrances)
    {rhyme}                  of `rhymes`; in a second line, of the first one's group
`situations` says from which lists of lines the next line comes, each with its share.
A couplet, which closes the scene, is possible where nobody is named.
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
SITUATIONS = [  # and "after insult", say, for each kind of phrase
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
    """Names, words, lines and habits of a playwright; the top of this file explains.

    Raises ValueError, with the remedy, for what no play can be made of. Entries that
    clash are found where the playwright meets them.
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
                    f"{where!r} is {entries!r}: make it a tuple of one text or more, "
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
            f"{must} slots among {sorted(usable)}, and not {sorted(unknown)}.",
        )
        require(
            not strange,
            f"{must} Tiny Shakespeare's 65 characters, not {sorted(strange)}.",
        )
        require(
            not where.startswith("couplet") or slots.count("rhyme") == 1,
            f"{must} {{rhyme}} once.",
        )
        require(
            where != "entrance" or 2 <= n_enter <= len(self.names),
            f"{must} {{enter}} twice at least, at most once for {len(self.names)} "
            "names.",
        )

    def lists(self) -> dict[str, Sequence[str]]:
        """Every list of texts, by name."""
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
        """What may fill each slot before the action settles any."""
        rhymes = tuple(word for group in self.rhymes for word in group)
        return {**self.words, **self.forms, "enter": self.names, "rhyme": rhymes}
