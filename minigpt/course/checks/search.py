"""The search for a mistake that nobody listed, by programs with one place changed.

In the answer such a change may mend it (own_slip); made in the solution, it may give
what the answer gives (like_slip). Both pass by accident now and then, so each must hold
for all cases and for fresh ones, and go with what the answer's text says.

The search is limited by counting candidates, so that a busy machine finds as much as an
idle one. Of 118 wrong answers 29 came so far: the median tried 170 candidates, at about
two thousandths of a second each. The limits keep a check below some seconds.
"""

import ast
import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from minigpt.course.checks.accidents import is_accident
from minigpt.course.checks.evidence import neighbours
from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.mutations import Mutant, mutants
from minigpt.course.checks.question import Question
from minigpt.course.checks.reading import listing, source, surroundings
from minigpt.course.checks.rules import MOVES, Change
from minigpt.course.checks.running import in_time, silence
from minigpt.course.checks.solutions import Mistake, bare
from minigpt.course.checks.values import Difference, same

CANDIDATES = 600  # programs made of the solution that are tried
MENDED = 250  # programs made of the answer that are tried
PAIRS = 400  # pairs of known mistakes that are tried
CALLS = 20_000  # so many calls of functions cost one candidate more
PATIENCE = 0.5  # seconds of computing, after which a candidate is stopped
HANGS = 80  # candidates that one costs which must be stopped
SOME = 4  # ways to mend an answer that are compared
MANY = 12  # slips that agree tell nothing


def first(
    candidates: Iterable, holds: Callable[[Any], bool], budget: int, most: int = 1
) -> list:
    """Up to `most` candidates for which holds(candidate) is true.

    Each is tried in a thread, so that one that hangs is stopped; it prints nothing.
    """
    good, tried = [], 0
    with silence():
        for candidate in candidates:
            verdict = []

            def judge(candidate: Any = candidate, verdict: list = verdict) -> None:
                with contextlib.suppress(BaseException):  # or it is wrong, and raises
                    verdict.append(holds(candidate))

            tried += 1 if in_time(judge, PATIENCE) else HANGS
            if any(verdict):
                good.append(candidate)
            if len(good) == most or tried >= budget:
                break
    return good


# In the answer


def own_slip(asked: Question) -> Finding | None:
    """The one place of the answer whose change makes it right, as OWN_SLIP.

    None where changes of several lines mend it, and none makes a line the solution's.
    """
    if asked.slip is ...:
        with silence():
            asked.slip = _search_own_slip(asked)
    return asked.slip


def _search_own_slip(asked: Question) -> Finding | None:
    text, start = listing(asked.answer)
    if not text or not asked.text:
        return None

    def mends(mutant: Mutant) -> bool:
        program = _program_of(asked, mutant.code)
        if not all(_agrees(asked, program, *pair) for pair in _tried(asked)):
            return False
        accident = is_accident(mutant, text, asked.text)
        return not accident and not _dead(asked, text, mutant)

    try:
        candidates = mutants(text, asked.text)
        good = first(candidates, mends, MENDED // _price(asked), SOME)
    except SyntaxError:  # a lambda in the middle of something
        return None
    mutant = _to_tell(good, text, asked)
    if mutant is None:
        return None
    line = text.splitlines()[mutant.at - 1].strip() if mutant.at else ""
    number = start + mutant.at - 1 if mutant.at else 0
    parts = {"line": number, "text": line, "whole": asked.complete}
    return found(Kind.OWN_SLIP, mutant=mutant, **parts)


def _tried(asked: Question) -> Iterator[tuple[tuple, Any]]:
    """(inputs, what is right): the first that the answer missed, then all and more."""
    yield from ((d.inputs, d.expected) for d in asked.wrong[:1])
    yield from asked.judged
    yield from asked.fresh


def _to_tell(good: list[Mutant], text: str, asked: Question) -> Mutant | None:
    """Of some ways to mend an answer the one to tell; None where they contradict."""
    buggy = {line.strip() for line in asked.solution.buggy.splitlines()} - {""}
    ours = {line.strip() for line in asked.text.splitlines()}
    lines = ["", *map(str.strip, text.splitlines())]
    # In a bug hunt the learner's own lines are looked at first, not those handed out,
    in_own_lines = [m for m in good if lines[m.at] not in buggy]
    # and what puts the bug back in is no mending.
    no_bugs = [m for m in in_own_lines or good if m.line not in buggy - ours]
    # `zero_grad()` may be moved in four ways; a changed sign says more.
    ways = [m for m in no_bugs if m.change not in MOVES] or no_bugs
    # `q @ k / n` and `k = k / n` contradict each other: the solution has the first.
    if len({m.at for m in ways}) > 1:
        ways = [m for m in ways if m.line in ours]
    if len({m.at for m in ways}) > 1:
        return None
    return min(ways, key=_preference, default=None)


def _preference(mutant: Mutant) -> tuple[int, int]:
    """Of ways to mend one line, the lowest is told.

    One place goes before several. Then comes a 1 too many (`t + 1` for `t`), then two
    things in the wrong order, then a sign, then all else.
    """
    if re.fullmatch(r" [+-] 1", mutant.was.removeprefix(mutant.now)):
        return mutant.times, 0
    if mutant.change is Change.ORDER:
        return mutant.times, 1
    if mutant.change is Change.SIGN and not mutant.now.startswith("~"):
        return mutant.times, 2
    return mutant.times, 3


def _dead(asked: Question, text: str, mutant: Mutant) -> bool:
    """Whether a line that the answer went through is never reached any more."""
    removed = mutant.change is Change.LINE and not mutant.now
    before = _reached(asked, compile(text, "<mutant>", "exec"))
    after = _reached(asked, mutant.code)
    lines, inside = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            lines.add(node.lineno)
            if removed and node.lineno == mutant.at:
                inside |= {*range(node.lineno, (node.end_lineno or 0) + 1)}
    return bool((before - after) & lines - inside)


def _reached(asked: Question, code: CodeType) -> set[int]:
    """The numbers of the lines that a version of the answer goes through."""
    seen, usual = set(), sys.gettrace()

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename == "<mutant>":
            seen.add(frame.f_lineno)
            return trace

    sys.settrace(trace)
    try:
        for inputs in asked.cases:
            with contextlib.suppress(Exception):  # the answer may raise one
                asked.outcome(_program_of(asked, code), inputs)
    finally:
        sys.settrace(usual)
    return seen


def _program_of(asked: Question, code: CodeType) -> Callable:
    """The learner's function or class, as some code defines it, among its own names."""
    before = dict(surroundings(asked.answer) or asked.solution.namespace)
    names = dict(before)
    exec(code, names)
    own = (n for n in names if n != "__builtins__")
    made = [n for n in own if before.get(n) is not names[n]]
    return names[asked.own_name if asked.own_name in made else made[-1]]


def _agrees(asked: Question, program: Callable, inputs: tuple, expected: Any) -> bool:
    return same(asked.outcome(program, inputs), expected, asked.atol)


def _price(asked: Question) -> int:
    """How many candidates one counts for: 1, and more for an answer that calls much."""
    calls = 0
    inputs = asked.wrong[0].inputs if asked.wrong else asked.cases[0]

    def count(*event: Any) -> None:
        nonlocal calls
        calls += 1

    def counted() -> None:  # in a thread of its own, like every call of an answer
        sys.setprofile(count)
        with contextlib.suppress(Exception):  # it may raise one: what counts are calls
            asked.outcome(asked.answer, inputs)

    ended = in_time(counted, 1)
    return 1 + calls // CALLS if ended else HANGS


# In the solution


def like_slip(
    asked: Question, every: list[Difference], values: int | None
) -> Finding | None:
    """The likeliest slip of the solution that gives all that the answer gave.

    every: what is known of all cases, the wrong ones first. values: how many values of
    a tuple must agree, None for all. None where many slips do, too, and for a name
    where the answer has the right one there.
    """

    def agrees(program: Callable, d: Difference) -> bool:
        value, got = asked.outcome(program, d.inputs), d.got
        if values is not None:
            value, got = value[:values], got[:values]
        return same(value, got, asked.atol)

    def gives(mutant: Mutant) -> bool:
        program = asked.solution.made(mutant.code)
        both = itertools.chain(every, _lazily(asked))
        return all(agrees(program, d) for d in both)

    good = first(mutants(asked.text), gives, CANDIDATES, MANY)
    if len(good) == MANY:
        return None
    text = source(asked.answer)
    own = neighbours(re.sub(r"(?m)^ *(def|class) .*$", "", bare(text) if text else ""))
    good = [m for m in good if m.change is not Change.LINE or m.was not in text]
    good = [m for m in good if not (m.change is Change.NAME and _has_right(m, own))]
    mutant = max(good, key=lambda m: _evidence(m, own), default=None)
    return mutant and found(Kind.LIKE_SLIP, mutant=mutant)


def _lazily(asked: Question) -> Iterator[Difference]:
    """What the answer gives on fresh cases; it is run only if somebody asks."""
    yield from asked.answered


def _has_right(mutant: Mutant, own: set[tuple[str, str]]) -> bool:
    """Whether an answer has all of the right line that a slip changes, and no slip."""
    before, after = neighbours(mutant.stood), neighbours(mutant.line)
    return before - after <= own and not (after - before) & own


def _evidence(mutant: Mutant, own: set[tuple[str, str]]) -> int:
    """How much liker the answer a slip's line is than the right one."""
    before, after = neighbours(mutant.stood), neighbours(mutant.line)
    if not mutant.line:
        return 0
    return sum(1 if (pair in after) == (pair in own) else -1 for pair in before ^ after)


# Two at once


def two_known(
    asked: Question, every: list[Difference], mistakes: list[Mistake]
) -> Finding | None:
    """Two of the known mistakes that together give what the answer gave."""
    made = [m for m in mistakes if m.edits and not m.untouched]

    def together(pair: tuple[Mistake, Mistake]) -> bool:
        program = asked.solution.but(*pair[0].edits, *pair[1].edits)
        both = itertools.chain(every, _lazily(asked))
        return all(_agrees(asked, program, d.inputs, d.got) for d in both)

    for one, other in first(itertools.permutations(made, 2), together, PAIRS):
        return found(Kind.TWO_KNOWN, one.hint, says=one.says, other=other.says)
    return None
