"""The search for a mistake that nobody listed, by programs with one place changed.

It is counted in candidates, so that a busy machine finds as much as an idle one.
"""

import ast
import contextlib
import functools
import itertools
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.measuring import Difference
from minigpt.course.checks.mutations import Change, Mutant, mutants
from minigpt.course.checks.reading import listing, surroundings
from minigpt.course.checks.running import in_time
from minigpt.course.checks.values import same

CANDIDATES = 600  # wrong programs made of the solution that are tried
MENDED = 250  # programs made of the answer
CALLS = 20_000  # an answer that calls more functions costs more
SOME = 4  # ways of mending that are compared
MANY = 12  # slips that agree tell nothing
HANGS = 40  # candidates' worth of patience that one costs which must be stopped


def first(
    candidates: Iterable, holds: Callable[[Any], bool], budget: int, most: int = 1
) -> list:
    """Up to `most` candidates for which holds(candidate) is true.

    Each is tried in a thread, so that one that hangs is stopped; it prints nothing.
    """
    good, tried = [], 0
    with _silence():
        for candidate in candidates:
            verdict = []

            def judge(candidate=candidate, verdict=verdict):
                with contextlib.suppress(BaseException):  # or it is wrong, and raises
                    verdict.append(holds(candidate))

            tried += 1 if in_time(judge, 0.5) else HANGS
            if any(verdict):
                good.append(candidate)
            if len(good) == most or tried >= budget:
                break
    return good


@contextlib.contextmanager
def _silence():
    """Let no wrong program print or warn."""
    with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield


# In the answer


def own_slip(asked, wrong: list[Difference], sure: bool = True) -> Finding | None:
    """The one place of the answer whose change makes it right, as OWN_SLIP.

    It must be right on fresh inputs, too. wrong: looked at first. sure: whether to keep
    silent where changes of several lines mend it, and none makes a line the solution's.
    """
    text, start = listing(asked.answer)
    if not text or not asked.slips:
        return None
    judged = [(d.inputs, d.expected) for d in wrong]

    ours = set(re.findall(r"[\w.]+", asked.solution.text)) | {"0", "1"}

    def is_right(mutant):
        number = mutant.change is Change.NUMBER and re.fullmatch(
            r"-?[\d.]+", mutant.now
        )
        if number and mutant.now not in ours:
            return False  # it would pass by an accident
        program = _made(asked, mutant.code)
        if not all(_agrees(asked, program, *pair) for pair in judged):
            return False
        if len(judged) <= len(wrong):
            judged.extend((inputs, asked.right(*inputs)) for inputs in asked.cases)
        every = [*judged, *asked.fresh]
        if not all(_agrees(asked, program, *pair) for pair in every):
            return False
        return not _overwrites(mutant) and not _dead(asked, text, mutant)

    with contextlib.suppress(SyntaxError, StopIteration, RuntimeError):
        budget = MENDED // _price(asked, wrong)
        candidates = mutants(text, asked.solution.text)
        good = first(candidates, is_right, budget, SOME)
        return _told(_likeliest(good, text, asked, sure), text, start, asked)


def _told(mutant: Mutant | None, text: str, start: int, asked) -> Finding | None:
    if mutant is None:
        return None
    line = text.splitlines()[mutant.at - 1].strip() if mutant.at else ""
    at = start + mutant.at - 1 if mutant.at else 0
    whole = asked.complete
    return found(Kind.OWN_SLIP, mutant=mutant, line=at, text=line, whole=whole)


OVERWRITING = "scatter", "masked_scatter", "index_copy", "copy_", "fill_", "zero_"


def _overwrites(mutant: Mutant) -> bool:
    """Whether a change only writes something else over what the answer has."""
    more = mutant.now.removeprefix(mutant.was)
    added = mutant.was and more != mutant.now and re.match(r"\.(\w+)\(", more)
    made = re.search(r"zeros|ones|full|empty", mutant.was)
    return bool(added) and added[1] in OVERWRITING and not made


def _dead(asked, text: str, mutant: Mutant) -> bool:
    """Whether a line that the answer went through is never reached any more."""
    removed = mutant.change is Change.LINE and not mutant.now
    before = _reached(asked, compile(text, "<mutant>", "exec"))
    after = _reached(asked, mutant.code)
    lines, inside = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            lines.add(node.lineno)
            if removed and node.lineno == mutant.at:
                inside |= {*range(node.lineno, node.end_lineno + 1)}
    return bool((before - after) & lines - inside)


def _reached(asked, code: CodeType) -> set[int]:
    """The numbers of the lines that a version of the answer goes through."""
    seen, usual = set(), sys.gettrace()

    def trace(frame, event, arg):
        if frame.f_code.co_filename == "<mutant>":
            seen.add(frame.f_lineno)
            return trace

    sys.settrace(trace)
    try:
        for inputs in asked.cases:
            with contextlib.suppress(Exception):  # the answer may raise one
                asked.given(_made(asked, code), inputs)
    finally:
        sys.settrace(usual)
    return seen


def _made(asked, code: CodeType) -> Callable:
    """The learner's function or class, as some code defines it, among its own names."""
    names = {**asked.solution.space, **surroundings(asked.answer)}
    known = set(names)
    exec(code, names)
    name = asked.own_name
    return names[name] if name in names else names[next(iter(set(names) - known))]


def _agrees(asked, program: Callable, inputs: tuple, expected: Any) -> bool:
    return same(asked.given(program, inputs), expected, asked.atol)


def _likeliest(good: list[Mutant], text: str, asked, sure: bool) -> Mutant | None:
    """Of some ways to mend an answer the one to tell; None where they contradict."""
    lines = ["", *map(str.strip, text.splitlines())]
    given = {line.strip() for line in asked.solution.given.splitlines()}
    own = [m for m in good if lines[m.at] not in given]  # what was right stays right
    ours = {line.strip() for line in asked.solution.text.splitlines()}
    good = [m for m in own or good if m.line not in given - ours]  # the bug itself
    good.sort(key=_rank)
    if len({m.at for m in good}) > 1:
        good = [m for m in good if m.line in ours] or good
        if sure and len({m.at for m in good}) > 1:
            return None
    return good[0] if good else None


def _rank(mutant: Mutant) -> tuple[int, int]:
    """The number of places; 0 for a 1 too many, then the order, a sign, all else."""
    if re.fullmatch(r" [+-] 1", mutant.was.removeprefix(mutant.now)):
        return mutant.times, 0
    if mutant.change is Change.SIGN and not mutant.now.startswith("~"):
        return mutant.times, 2
    return mutant.times, 1 if mutant.change is Change.ORDER else 3


def _price(asked, wrong: list[Difference]) -> int:
    """How many candidates one counts for: 1, and more for an answer that calls much."""
    calls = 0

    def count(*event):
        nonlocal calls
        calls += 1

    def counted():  # in a thread of its own, like every call of an answer
        sys.setprofile(count)
        for difference in wrong:
            asked.given(asked.answer, difference.inputs)

    return 1 + calls // CALLS if in_time(counted, 1) else HANGS


# In the solution


def like_slip(asked, every: list[Difference], parts: int | None) -> Finding | None:
    """The likeliest slip of the solution that gives all that the answer gave.

    every: what is known of all cases, the wrong ones first. parts: how many values of
    a tuple must agree, None for all. None where many slips do, too.
    """
    got = [(d.inputs, d.got) for d in every]

    @functools.cache
    def afresh():
        pairs = []
        for inputs, _ in asked.fresh:
            with contextlib.suppress(Exception):  # not made for such inputs
                pairs.append((inputs, asked.given(asked.answer, inputs)))
        return pairs

    def gives_the_same(mutant):
        program = asked.solution.made(mutant.code)
        if not all(_alike(asked, program, *pair, parts) for pair in got):
            return False
        return all(_alike(asked, program, *pair, parts) for pair in afresh())

    good = first(mutants(asked.solution.text), gives_the_same, CANDIDATES, MANY)
    text = listing(asked.answer)[0]
    if len(good) < MANY:
        likely = (m for m in good if not _contrary(m, text))
        mutant = next(likely, None)
        return mutant and found(Kind.LIKE_SLIP, mutant=mutant)


def _alike(asked, program: Callable, inputs: tuple, got: Any, parts: int | None):
    value = asked.given(program, inputs)
    if parts is not None:
        value, got = value[:parts], got[:parts]
    return same(value, got, asked.atol)


def _contrary(mutant: Mutant, text: str) -> bool:
    """Whether a line that is called left out stands in the answer's text; or whether
    the wrong word does not, and the right one does: who wrote `tril` has not taken
    `triu` for it."""
    if mutant.change is Change.LINE:
        return mutant.was in text
    own = set(re.findall(r"\w+", text))
    if mutant.change not in (Change.FUNCTION, Change.NAME):
        return False
    wrong, right = (
        set(re.findall(r"[A-Za-z_]\w*", t)) for t in (mutant.now, mutant.was)
    )
    return bool(right - wrong) and right - wrong <= own and not (wrong - right) & own


# Two at once


def two_known(asked, every: list[Difference], mistakes: list) -> Finding | None:
    """Two of the known mistakes that give, together, what the answer gave."""
    made = [m for m in mistakes if m.edits and not m.untouched]

    def together(pair):
        text = asked.solution.text
        for old, new in (*pair[0].edits, *pair[1].edits):
            if old not in text:
                return False
            text = text.replace(old, new)
        program = asked.solution.made(compile(text, "<two>", "exec"))
        return all(_alike(asked, program, d.inputs, d.got, None) for d in every)

    pairs = itertools.permutations(made, 2)
    for one, other in first(pairs, together, 100):
        return found(Kind.TWO_KNOWN, one.hint, says=one.says, other=other.says)
