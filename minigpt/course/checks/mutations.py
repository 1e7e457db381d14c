"""Programs with one place changed, as learners change them by a slip of the pen.

Made in an answer, such a change may mend it; made in the solution, it is a wrong
program (mutation testing: DeMillo, Lipton and Sayward, 1978, turned round). What
learners change is in slips.py; here the slips are put in order, and programs are made
of them.
"""

import ast
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from minigpt.course.checks.evidence import neighbours
from minigpt.course.checks.old_slips import Slip, all_slips
from minigpt.course.checks.rules import EQUAL, REPLACED, Change
from minigpt.course.checks.trees import head, replaced


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
    groups = [*([slip] for slip in slips), *_alike(slips)]
    if right:
        groups = _nearer(groups, goal)
    for group in groups:
        if mutant := _mutant(tree, group):
            yield mutant


def _alike(slips: list[Slip]) -> list[list[Slip]]:
    """The groups of slips that put the same in the place of the same.

    What is put in at three places or more would be another program.
    """
    alike: dict[tuple, list[Slip]] = {}
    for slip in slips:
        if not slip.of_whole_line:
            alike.setdefault((slip.change, slip.was, slip.now), []).append(slip)
    several = (group for group in alike.values() if len(group) > 1)
    return [group for group in several if len(group) == 2 or not group[0].put_in]


def _swaps(group: list[Slip]) -> dict[int, ast.AST]:
    return {id(slip.old): slip.new for slip in group}


def _mutant(tree: ast.Module, group: list[Slip]) -> Mutant | None:
    """The Mutant that a group of slips makes; None for no program."""
    slip, swaps = group[0], _swaps(group)
    try:
        changed = ast.fix_missing_locations(replaced(tree, swaps))
        code = compile(changed, "<mutant>", "exec")
        line = "" if group[1:] else slip.line_after(swaps)
    except (SyntaxError, ValueError, TypeError):
        return None
    return Mutant(
        change=slip.change,
        was=slip.was,
        now=slip.now,
        inside=slip.inside,
        stood=slip.line_after(),
        line=line,
        at=slip.at,
        times=len(group),
        put_in=slip.put_in,
        code=code,
    )


def _nearer(groups: list[list[Slip]], goal: ast.Module) -> list[list[Slip]]:
    """Those that are in no line of `goal`, sorted by how much liker they make it.

    How like: of the pairs of neighbouring words in the lines that change, those that
    `goal` has, too, count 1 and the others -1.
    """
    right = {head(n) for n in ast.walk(goal) if isinstance(n, ast.stmt)}
    wanted = neighbours(ast.unparse(goal))

    def likeness(lines: list[str]) -> int:
        words = neighbours("\n".join(dict.fromkeys(lines)))
        return sum(1 if pair in wanted else -1 for pair in words)

    def gain(group: list[Slip]) -> tuple[bool, int, int]:
        """What brings it nearer, then the likelier ranks, then how much nearer."""
        first, swaps = group[0], _swaps(group)
        if first.of_whole_line:  # one put in is as good as three pairs, moved as none
            return True, -EQUAL, 3 if first.change is Change.LINE else 0
        before = likeness([slip.line_after() for slip in group])
        after = likeness([slip.line_after(swaps) for slip in group])
        nearer = after > before and first.rank < REPLACED
        return nearer, -max(EQUAL, first.rank), after - before

    def right_already(group: list[Slip]) -> bool:
        lines = (slip.line_after() for slip in group if not slip.of_whole_line)
        return any(line in right for line in lines)

    left = (group for group in groups if not right_already(group))
    return sorted(left, key=gain, reverse=True)
