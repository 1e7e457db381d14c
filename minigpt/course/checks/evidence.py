"""What the text of an answer shows of a change: has it been made there, or undone?"""

import ast
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from minigpt.course.checks.solutions import bare


def undoes(was: str, now: str, edits: Sequence[tuple[str, str]]) -> bool:
    """Whether `now` in the place of `was` takes back one of some edits (old, new).

    dim=-1 in the place of dim=1 takes back ("x.sum(dim=-1)", "x.sum(dim=1)").
    """

    def words(text: str) -> str:
        return " ".join(["", *re.findall(r"\w+|[^\s\w]", text), ""])

    back, gone = words(now), words(was)
    return any(
        back in words(old)
        and gone in words(new)
        and (back not in words(new) or gone not in words(old))
        for old, new in edits
    )


def shows(text: str, right: str, edits: Sequence[tuple[str, str]]) -> bool:
    """Whether it can be read in an answer's text that it has made a mistake's edits.

    An edit shows if what it puts in stands in the text; or if all words and signs that
    it puts in stand there more often than in the right text; or if all that it takes
    away stand there less often.
    """
    try:
        mine, ours = map(symbols, map(_code, (text, right)))
    except SyntaxError:  # a lambda in the middle of something
        return False

    def shown(old: str, new: str) -> bool:
        if new and new in text and (old in new or old not in text):
            return True
        put_in, taken = symbols(new) - symbols(old), symbols(old) - symbols(new)
        put_in.pop("pass", None)
        if put_in and all(mine[word] > ours[word] for word in put_in):
            return True
        return bool(taken) and all(mine[word] < ours[word] for word in taken)

    return bool(text) and all(shown(*edit) for edit in edits)


def _code(text: str) -> str:
    """A program without comments and docstrings."""
    return "\n".join(bare(ast.unparse(node)) for node in ast.parse(text).body)


def symbols(text: str) -> Counter:
    """How often each name, number and operator stands in a text."""
    words = re.findall(r"\d+\.?\d*(?:e-?\d+)?|\w+|\*\*|//|[<>=!]=|[^\s\w]", text)
    return Counter(word for word in words if word not in "()[],.:")


def neighbours(text: str) -> set[tuple[str, str]]:
    """The pairs of neighbouring words and signs in a text."""
    return set(pairwise(re.findall(r"\w+|\S", text)))
