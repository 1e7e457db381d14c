"""The search for a mistake that nobody listed, by programs with one place changed.

In the answer such a change may mend it; made in the solution, it may give what the
answer gives. Both pass by accident now and then, so each must hold for all cases and
for fresh ones, and go with what the answer's text says. It is counted in candidates, so
that a busy machine finds as much as an idle one.
"""

import ast
import contextlib
import itertools
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from types import CodeType, FrameType
from typing import Any

from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.measuring import Difference
from minigpt.course.checks.mutations import Mutant, mutants, pairs
from minigpt.course.checks.question import Question
from minigpt.course.checks.reading import listing, surroundings
from minigpt.course.checks.rules import Change, called
from minigpt.course.checks.running import in_time
from minigpt.course.checks.solutions import Mistake, bare
from minigpt.course.checks.values import same

CANDIDATES = 600  # wrong programs made of the solution that are tried
MENDED = 250  # programs made of the answer
CALLS = 20_000  # an answer that calls more functions costs more
SOME = 4  # ways of mending that are compared
MANY = 12  # slips that agree tell nothing
MOVES = Change.PLACE, Change.INTO_LOOP, Change.OUT_OF_LOOP  # where nothing else mends
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

            def judge(candidate: Any = candidate, verdict: list = verdict) -> None:
                with contextlib.suppress(BaseException):  # or it is wrong, and raises
                    verdict.append(holds(candidate))

            tried += 1 if in_time(judge, 0.5) else HANGS
            if any(verdict):
                good.append(candidate)
            if len(good) == most or tried >= budget:
                break
    return good


@contextlib.contextmanager
def _silence() -> Generator[None]:
    """Let no wrong program print or warn."""
    with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield


# In the answer


def own_slip(asked: Question, wrong: list[Difference]) -> Finding | None:
    """The one place of the answer whose change makes it right, as OWN_SLIP.

    wrong: looked at first. None where changes of several lines mend it, and none makes
    a line the solution's.
    """
    text, start = listing(asked.answer)
    if not text or not asked.slips:
        return None
    judged = [(d.inputs, d.expected) for d in wrong]
    numbers = {*re.findall(r"[\w.]+", asked.solution.text), "0", "1"}

    def is_right(mutant: Mutant) -> bool:
        if mutant.change is Change.NUMBER and re.fullmatch(r"-?[\d.]+", mutant.now):
            if mutant.now not in numbers:
                return False
        program = _made(asked, mutant.code)
        if not all(_agrees(asked, program, *pair) for pair in judged):
            return False
        if len(judged) <= len(wrong):
            judged.extend((inputs, asked.right(*inputs)) for inputs in asked.cases)
        every = [*judged, *asked.fresh]
        if not all(_agrees(asked, program, *pair) for pair in every):
            return False
        looks = _foreign, _takes_away, _overwrites, _renames, _invents, _doubles
        accident = any(look(mutant, text, asked.solution.text) for look in looks)
        return not accident and not _dead(asked, text, mutant)

    with contextlib.suppress(SyntaxError, StopIteration, RuntimeError):
        budget = MENDED // _price(asked, wrong)
        candidates = mutants(text, asked.solution.text)
        mutant = _only(first(candidates, is_right, budget, SOME), text, asked)
        if mutant is None:
            return None
        line = text.splitlines()[mutant.at - 1].strip() if mutant.at else ""
        at = start + mutant.at - 1 if mutant.at else 0
        how = {"line": at, "text": line, "whole": asked.complete}
        return found(Kind.OWN_SLIP, mutant=mutant, **how)
    return None


def _only(good: list[Mutant], text: str, asked: Question) -> Mutant | None:
    """Of some ways to mend an answer the one to tell; None where they contradict."""
    lines = ["", *map(str.strip, text.splitlines())]
    given = {line.strip() for line in asked.solution.given.splitlines()}
    own = [m for m in good if lines[m.at] not in given]  # what was right stays right
    ours = {line.strip() for line in asked.solution.text.splitlines()}
    good = [m for m in own or good if m.line not in given - ours]  # the bug itself
    good = [m for m in good if m.change not in MOVES] or good
    if len({m.at for m in good}) > 1:
        good = [m for m in good if m.line in ours]
    if len({m.at for m in good}) > 1:
        return None
    return min(good, key=_rank, default=None)


def _rank(mutant: Mutant) -> tuple[int, int]:
    """The number of places; 0 for a 1 too many, then the order, a sign, all else."""
    if re.fullmatch(r" [+-] 1", mutant.was.removeprefix(mutant.now)):
        return mutant.times, 0
    if mutant.change is Change.SIGN and not mutant.now.startswith("~"):
        return mutant.times, 2
    return mutant.times, 1 if mutant.change is Change.ORDER else 3


ALIKE = {"T": "transpose", "mT": "transpose", "permute": "transpose", "sqrt": "Pow"}
ALIKE |= {"pow": "Pow", "square": "Pow", "div": "Div", "mul": "Mult", "norm": "Pow"}


def _nodes(text: str) -> list[ast.AST]:
    """All nodes of a program; [] for a part of one that is none itself."""
    try:
        return list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return []


def _steps(text: str) -> Counter:
    """How often a program does what, by name: operations, but with a literal, calls."""
    names = []
    for node in _nodes(text):
        if isinstance(node, ast.BinOp) and not isinstance(node.right, ast.Constant):
            names.append(type(node.op).__name__)
        elif isinstance(node, ast.Call):
            names.append(called(node))
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            names.append(node.attr)
    return Counter(ALIKE.get(name, name) for name in names)


def _foreign(mutant: Mutant, text: str, right: str) -> bool:
    """Whether a part is put in that does what the answer does often enough already.

    So one factor cancels another, or a shape fits by accident.
    """
    if not mutant.put_in or mutant.change is not Change.PART:
        return False
    more = _steps(mutant.now) - _steps(mutant.was)
    own, ours = _steps(text), _steps(right)
    return any(own[step] >= ours[step] for step in more if ours[step])


def _takes_away(mutant: Mutant, text: str, right: str) -> bool:
    """Whether a name is replaced that the solution has as often as the answer."""
    if mutant.change not in (Change.FUNCTION, Change.NAME):
        return False
    own, ours = _words(text), _words(right)
    gone = _words(mutant.was) - _words(mutant.now)
    return any(own[word] <= ours[word] for word in gone)


def _words(text: str) -> Counter:
    """The names in a program, of values and of methods."""
    every = (getattr(n, "id", getattr(n, "attr", None)) for n in _nodes(text))
    return Counter(name for name in every if name)


def _renames(mutant: Mutant, *texts: str) -> bool:
    """Whether the names that take several values, one by one, change places."""
    if mutant.change is not Change.ORDER:
        return False
    before, after = (
        [(n.targets[0], n.value) for n in _nodes(line)[:2] if isinstance(n, ast.Assign)]
        for line in (mutant.stood, mutant.line)
    )
    if not (before and after):
        return False
    several = all(isinstance(part, (ast.Tuple, ast.List)) for part in before[0])
    return several and ast.dump(before[0][0]) != ast.dump(after[0][0])


def _invents(mutant: Mutant, text: str, right: str) -> bool:
    """Whether an operation is put for another one that the solution has nowhere."""
    if mutant.change is not Change.OPERATION:
        return False
    return not set(_steps(mutant.now) - _steps(mutant.was)) <= _signs(right)


def _signs(text: str) -> set[str]:
    """What a program does, literals or not."""
    some = {type(n.op).__name__ for n in _nodes(text) if isinstance(n, ast.BinOp)}
    return some | set(_steps(text)) | ({"Div"} if "mean" in text else set())


def _doubles(mutant: Mutant, text: str, right: str) -> bool:
    """Whether a change makes x + 1 + x, or x / x, which stands nowhere.

    It only makes up for what another line lacks.
    """
    ours = {ast.dump(node) for node in [*_nodes(text), *_nodes(right)]}
    sums = [n for n in _nodes(mutant.now) if isinstance(n, ast.BinOp)]
    parts = [_parts(n, type(n.op)) for n in sums if ast.dump(n) not in ours]
    return any(len(set(some)) < len(some) for some in parts)


def _parts(node: ast.expr, kind: type) -> list[str]:
    """What an operation of a kind joins, as a, b and c in a + b + c."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, kind):
        return [ast.dump(node)]
    return _parts(node.left, kind) + _parts(node.right, kind)


OVERWRITING = "scatter", "masked_scatter", "index_copy", "copy_", "fill_", "zero_"


def _overwrites(mutant: Mutant, *texts: str) -> bool:
    """Whether a change only writes something else over what the answer has."""
    more = mutant.now.removeprefix(mutant.was)
    added = mutant.was and more != mutant.now and re.match(r"\.(\w+)\(", more)
    made = re.search(r"zeros|ones|full|empty", mutant.was)
    return bool(added) and added[1] in OVERWRITING and not made


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
                asked.given(_made(asked, code), inputs)
    finally:
        sys.settrace(usual)
    return seen


def _made(asked: Question, code: CodeType) -> Callable:
    """The learner's function or class, as some code defines it, among its own names."""
    names = dict(surroundings(asked.answer) or asked.solution.space)
    known = set(names)
    exec(code, names)
    name = asked.own_name
    return names[name] if name in names else names[next(iter(set(names) - known))]


def _agrees(asked: Question, program: Callable, inputs: tuple, expected: Any) -> bool:
    return same(asked.given(program, inputs), expected, asked.atol)


def _price(asked: Question, wrong: list[Difference]) -> int:
    """How many candidates one counts for: 1, and more for an answer that calls much."""
    calls = 0

    def count(*event: Any) -> None:
        nonlocal calls
        calls += 1

    def counted() -> None:  # in a thread of its own, like every call of an answer
        sys.setprofile(count)
        for difference in wrong:
            asked.given(asked.answer, difference.inputs)

    return 1 + calls // CALLS if in_time(counted, 1) else HANGS


# In the solution


def like_slip(
    asked: Question, every: list[Difference], parts: int | None
) -> Finding | None:
    """The likeliest slip of the solution that gives all that the answer gave.

    every: what is known of all cases, the wrong ones first. parts: how many values of
    a tuple must agree, None for all. None where many slips do, too, and for a name
    where the answer has the right one there.
    """
    gives = _gives_what_the_answer_gives(asked, every, parts)
    good = first(
        mutants(asked.solution.text),
        lambda mutant: gives(asked.solution.made(mutant.code)),
        CANDIDATES,
        MANY,
    )
    if len(good) == MANY:
        return None
    text = listing(asked.answer)[0]
    own = pairs(re.sub(r"(?m)^ *(def|class) .*$", "", bare(text) if text else ""))
    some = [m for m in good if m.change is not Change.LINE or m.was not in text]
    some = [m for m in some if not (m.change is Change.NAME and _has_right(m, own))]
    mutant = max(some, key=lambda m: _evidence(m, own), default=None)
    return mutant and found(Kind.LIKE_SLIP, mutant=mutant)


def _gives_what_the_answer_gives(
    asked: Question, every: list[Difference], parts: int | None
) -> Callable[[Callable], bool]:
    """A function of a program: whether it gives that on all cases and on fresh ones."""

    def agrees(program: Callable, inputs: tuple, got: Any) -> bool:
        value = asked.given(program, inputs)
        if parts is not None:
            value, got = value[:parts], got[:parts]
        return same(value, got, asked.atol)

    def gives(program: Callable) -> bool:
        some = itertools.chain(every, asked.answered)  # on fresh cases, too
        return all(agrees(program, d.inputs, d.got) for d in some)

    return gives


def _has_right(mutant: Mutant, own: set[tuple[str, str]]) -> bool:
    """Whether an answer has all of the right line that a slip changes, and no slip."""
    before, after = pairs(mutant.stood), pairs(mutant.line)
    return before - after <= own and not (after - before) & own


def _evidence(mutant: Mutant, own: set[tuple[str, str]]) -> int:
    """How much liker the answer a slip's line is than the right one."""
    before, after = pairs(mutant.stood), pairs(mutant.line)
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
        some = itertools.chain(every, asked.answered)
        return all(_agrees(asked, program, d.inputs, d.got) for d in some)

    for one, other in first(itertools.permutations(made, 2), together, 100):
        return found(Kind.TWO_KNOWN, one.hint, says=one.says, other=other.says)
    return None
