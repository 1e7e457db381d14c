"""Programs with one place changed, as learners change them by a slip of the pen.

Made in the solution, such a change is a wrong program: one that gives what an answer
gives says what its mistake is, though nobody listed it (mutation testing: DeMillo,
Lipton and Sayward, 1978, turned round). Made in an answer, it may mend it.

Here a change is made in a program's tree and taken back; what learners change is in
slips.py.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import CodeType
from typing import NamedTuple

from minigpt.course.checks.rules import Change
from minigpt.course.checks.slips import Slip, all_slips, head
from minigpt.course.checks.solutions import bare


class Mutant(NamedTuple):
    """A program with one place changed, or with all places that are alike.

    was, now: what was replaced, and by what; "" for nothing. inside: the expression
    that has it. stood, line: its line, before and as it now stands; at: that line's
    number. times: the number of places. put_in: whether `now` has what only the other
    program does. code: to exec.
    """

    change: Change
    was: str
    now: str
    inside: str
    stood: str
    line: str
    at: int
    times: int
    put_in: bool
    code: CodeType


def mutants(source: str, right: str = "") -> Iterator[Mutant]:
    """Yield a Mutant of a program's text for each slip, the likeliest first.

    The same slip wherever the same thing stands comes last. Slips that cannot be
    compiled are left out. right: the text of a program that this one should be. What
    brings it nearer comes first, and lines that stand there stay as they are.
    """
    tree, goal = ast.parse(source), ast.parse(right)
    slips = sorted(all_slips(tree, goal), key=lambda slip: slip.rank)
    statements = _statements(tree)
    groups = [*([slip] for slip in slips), *_alike(slips)]
    if right:
        groups = _nearer(groups, statements, goal)
    for group in groups:
        if mutant := _made(tree, group, statements):
            yield mutant


def _alike(slips: list[Slip]) -> list[list[Slip]]:
    """The groups of slips that put the same in the place of the same."""
    alike: dict[tuple, list[Slip]] = {}
    for slip in slips:
        for new in slip.new if isinstance(slip.new, list) else [slip.new]:
            ast.fix_missing_locations(new)
        if not slip.of_lines:
            alike.setdefault((slip.change, *slip.texts()), []).append(slip)
    return [
        group
        for group in alike.values()
        if len(group) == 2 or len(group) > 2 and not group[0].put_in
    ]


def _made(
    tree: ast.Module, group: list[Slip], statements: dict[int, ast.stmt]
) -> Mutant | None:
    """The Mutant that a group of slips makes; None for no program."""
    slip, undo = group[0], []
    was, now = slip.texts()
    stood = _line(slip, statements)
    inside = ast.unparse(slip.owner) if isinstance(slip.owner, ast.expr) else ""
    try:
        undo = [one.put() for one in group]
        code = compile(tree, "<mutant>", "exec")
        line = "" if group[1:] else _line(slip, statements)
    except (SyntaxError, ValueError, TypeError):
        return None
    finally:
        for one in reversed(undo):
            one.put()
    at = _number(slip, statements)
    some = stood, line, at, len(group), slip.put_in
    return Mutant(slip.change, was, now, inside, *some, code)


def undoes(mutant: Mutant, edits: Sequence[tuple[str, str]]) -> bool:
    """Whether a change takes back one of some edits, each a pair (old, new)."""

    def words(text: str) -> str:
        return " ".join(["", *re.findall(r"\w+|[^\s\w]", text), ""])

    return any(
        words(mutant.now) in words(old)
        and words(mutant.was) in words(new)
        and (words(mutant.now) not in words(new) or words(mutant.was) not in words(old))
        for old, new in edits
    )


def shows(text: str, right: str, edits: Sequence[tuple[str, str]]) -> bool:
    """Whether it can be read in an answer's text that it has made a mistake's edits.

    Of each edit, what it puts in stands there as it is, or each of its words and signs
    more often than in the right text; or those that it takes away, less often.
    """
    try:
        mine, ours = map(symbols, map(_code, (text, right)))
    except SyntaxError:  # a lambda in the middle of something
        return False

    def shown(old: str, new: str) -> bool:
        if new and new in text and (old in new or old not in text):
            return True
        come, gone = symbols(new) - symbols(old), symbols(old) - symbols(new)
        come.pop("pass", None)
        more = come and all(mine[word] > ours[word] for word in come)
        return bool(more or gone and all(mine[word] < ours[word] for word in gone))

    return bool(text) and all(shown(*edit) for edit in edits)


def _code(text: str) -> str:
    """A program without comments and docstrings."""
    return "\n".join(bare(ast.unparse(node)) for node in ast.parse(text).body)


def symbols(text: str) -> Counter:
    """How often each name, number and operator stands in a text."""
    found = re.findall(r"\d+\.?\d*(?:e-?\d+)?|\w+|\*\*|//|[<>=!]=|[^\s\w]", text)
    return Counter(word for word in found if word not in "()[],.:")


def pairs(text: str) -> set[tuple[str, str]]:
    """The pairs of neighbouring words and signs in a text."""
    return set(pairwise(re.findall(r"\w+|\S", text)))


def _statements(tree: ast.AST) -> dict[int, ast.stmt]:
    """id of a node -> the innermost statement that holds it."""
    found = {}
    for node in ast.walk(tree):  # from outside to inside
        if isinstance(node, ast.stmt):
            found |= {id(part): node for part in ast.walk(node)}
    return found


def _line(slip: Slip, statements: dict[int, ast.stmt]) -> str:
    """The line of a slip, as it now stands; "" for none, or more than a line."""
    held = slip.held
    if isinstance(held, list):
        return slip.now if slip.change is Change.LINE else slip.was
    line = held if isinstance(held, ast.stmt) else statements[id(slip.owner)]
    none = isinstance(line, (ast.FunctionDef, ast.ClassDef, ast.Pass))
    return "" if none else head(line)


def _number(slip: Slip, statements: dict[int, ast.stmt]) -> int:
    """The number of a slip's line; 0 for a line that is put in."""
    if slip.of_lines:  # that of the line that is moved, if any
        every = (part for new in slip.new for part in ast.walk(new))
        lines = (n for n in every if isinstance(n, ast.stmt) and head(n) == slip.was)
        return next((line.lineno for line in lines), 0)
    at = getattr(statements.get(id(slip.owner)), "lineno", 0)
    return getattr(slip.held, "lineno", at)


def _nearer(
    groups: list[list[Slip]], statements: dict[int, ast.stmt], goal: ast.AST
) -> list[list[Slip]]:
    """Those that are in no line of `goal`, sorted by how much liker they make it."""
    lines = {head(n) for n in ast.walk(goal) if isinstance(n, ast.stmt)}
    wanted = pairs(ast.unparse(goal))

    def likeness(group: list[Slip]) -> int:
        text = "\n".join(dict.fromkeys(_line(slip, statements) for slip in group))
        return sum(1 if pair in wanted else -1 for pair in pairs(text))

    def gain(group: list[Slip]) -> tuple[bool, int, int]:
        first = group[0]
        if first.of_lines:
            return True, -5, 3 if first.change is Change.LINE else 0
        before, undo = likeness(group), [slip.put() for slip in group]
        more = likeness(group) - before
        for slip in reversed(undo):
            slip.put()
        return more > 0 and first.rank < 10, -max(5, first.rank), more

    def right_already(group: list[Slip]) -> bool:
        return not group[0].of_lines and any(
            _line(slip, statements) in lines for slip in group
        )

    some = (group for group in groups if not right_already(group))
    return sorted(some, key=gain, reverse=True)
