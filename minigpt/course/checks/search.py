"""The search for the mistake: wrong programs that give what the answer gives.

It is counted in candidates, so that a busy machine finds as much as an idle one.
"""

import ast
import contextlib
import os
import re
import sys
import warnings
from typing import Any, NamedTuple

from minigpt.course.checks.errors import Explained
from minigpt.course.checks.mutants import mutants
from minigpt.course.checks.reading import listing, surroundings
from minigpt.course.checks.repair import repairs
from minigpt.course.checks.running import in_time
from minigpt.course.checks.values import same

CANDIDATES = 600  # wrong programs that are tried; mended ones of each way
MENDED = 200
CALLS = 20_000  # an answer that calls more functions costs more
SOME = 4  # ways of mending that are compared
MANY = 12  # slips that agree tell nothing
HANGS = 40  # candidates' worth of patience that one costs which must be stopped


def first(candidates, holds, budget, most=1):
    """Up to `most` candidates for which holds(candidate) is true.

    Each is tried in a thread, so that one that hangs is stopped; it prints nothing.
    """
    found, tried = [], 0
    with _silence():
        for candidate in candidates:
            verdict = []

            def judge(candidate=candidate, verdict=verdict):
                with contextlib.suppress(BaseException):  # or it is wrong, and raises
                    verdict.append(holds(candidate))

            tried += 1 if in_time(judge, 0.5) else HANGS
            if any(verdict):
                found.append(candidate)
            if len(found) == most or tried >= budget:
                break
    return found


@contextlib.contextmanager
def _silence():
    """Let no wrong program print or warn."""
    with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield


def slip(asked, every, parts):
    """The likeliest Mutant of a Solution that gives all that the answer gave.

    every: what is known of all cases, as Differences, the wrong ones first. parts: how
    many values of a tuple must agree, None for all. None where many slips do, too.
    """

    def gives_the_same(mutant):
        program = asked.solution.made(mutant.program)
        for inputs, _, got in every:
            value = asked.given(program, inputs)
            if parts is not None:
                value, got = value[:parts], got[:parts]
            if not same(value, got, asked.atol):
                return False
        return True

    found = first(asked.solution.wrong(), gives_the_same, CANDIDATES, MANY)
    own = set(re.findall(r"\w+", listing(asked.answer)[0]))
    if len(found) < MANY:  # who wrote `tril` has not taken `triu` for it
        return next((m for m in found if not _contrary(m.says, own)), None)


def _contrary(says, own):
    """Whether a slip's two words are exchanged in an answer with these words."""
    pair = re.fullmatch(r"`(\w+)` where `(\w+)` belongs", says)
    return pair and pair[1] not in own and pair[2] in own and not pair[2].isdigit()


class Mending(NamedTuple):
    """A change of an answer's text: what to say, the code, its name, the line's number.

    near: whether that makes the line one of the solution's; put: what is only added;
    rank: 0 if it is a 1 too many, 1 for a sign, 2 for all else.
    """

    says: str
    code: Any
    name: str
    at: int
    near: bool = True
    put: str = ""
    rank: int = 2


def mended(asked, wrong=(), small=True, large=True, sure=True):
    """What of the answer's text must change, as a sentence; or None.

    wrong: a Difference, to be looked at first. small: whether to look for a change of
    a few words; large: for one of more, and for two. sure: whether to keep silent where
    changes of several lines mend it, and none makes a line the solution's.
    """
    text, judged = listing(asked.answer)[0], [d[:2] for d in wrong]
    if not text or not asked.slips:
        return None

    def is_right(candidate):
        names = {**asked.solution.space, **surroundings(asked.answer)}
        exec(candidate.code, names)

        def agrees(inputs, expected):
            got = asked.given(names[candidate.name], inputs)
            return same(got, expected, asked.atol)

        if not all(agrees(*pair) for pair in judged):
            return False
        if len(judged) <= len(wrong):
            judged.extend((inputs, asked.right(*inputs)) for inputs in asked.cases)
        return all(agrees(*pair) for pair in judged)

    with contextlib.suppress(SyntaxError, StopIteration, RuntimeError):
        for way in [_small] * small + [_large] * large:
            budget = MENDED // _price(asked, wrong) // (1 + (way is _large))
            found = first(way(asked), is_right, budget, SOME if way is _small else 1)
            if says := _likeliest(
                found,
                text,
                {x.strip() for x in asked.solution.given.splitlines()},
                sure,
            ):
                return f"Your answer is right but for {says}"


def _likeliest(found, text, given, sure):
    """What to say of some Mendings. given: the lines of a bug hunt's program."""
    lines = ["", *map(str.strip, text.splitlines())]
    own = [m for m in found if lines[m.at] not in given]  # what was right stays right
    found = sorted(own or found, key=lambda m: m.rank)
    if len({m.at for m in found}) > 1:
        if len({m.put for m in found}) == 1 and found[0].put:
            return f"`{found[0].put}` left out."
        found = [m for m in found if m.near] or found
        if other := [m.says for m in found if m.at != found[0].at]:
            return None if sure else f"{found[0].says}\n  Or else: {other[0]}"
    return found[0].says if found else None


def _price(asked, wrong):
    """How many candidates one counts for: 1, and more for an answer that calls much."""
    calls = 0

    def count(*event):
        nonlocal calls
        calls += 1

    def counted():  # in a thread of its own, like every call of an answer
        sys.setprofile(count)
        for inputs, *_ in wrong:
            asked.given(asked.answer, inputs)

    return 1 + calls // CALLS if in_time(counted, 1) else HANGS


def _large(asked, **size):
    """Mendings that the solution suggests."""
    found, solution = listing(asked.answer), asked.solution
    for says, code, at in repairs(found[0], solution.text, solution.name, **size):
        says = f"{', and '.join(says)}.{_line(*found, at)}"
        yield Mending(says, code, solution.name, at)


def _small(asked):
    """Mendings of few words, or by a slip of the answer's own, taken back."""
    yield from _large(asked, most=1, largest=7)
    text, start = listing(asked.answer)
    name, goal = ast.parse(text).body[0].name, ast.parse(asked.solution.text)
    lines = {line.strip() for line in ast.unparse(goal).splitlines()}
    for m in mutants(text, asked.solution.text):
        what = f"where `{m.now}` belongs" if m.now else "too many"
        often = re.search("(, each time|, both times)?$", m.says)[0]
        if len(m.was) < 8 and "" < m.inside != m.was and not often:
            what += f" in `{m.inside}`"
        says = f"`{m.was}` {what}{often}.{_line(text, start, m.at)}"
        bare = m.now.replace(f"({m.was})", m.was, 1)
        put = bare.removeprefix(m.was).strip() if bare != m.was else ""
        put *= bare.startswith(m.was)
        near = m.line in lines or m.was.startswith(f"{m.now} and ")
        terms = [sorted(re.split(r" [+-] ", text)) for text in (m.was, m.now)]
        sign = m.now in (f"-{m.was}", f"-({m.was})") or terms[0] == terms[1]
        one = re.fullmatch(r" [+-] 1", m.was.removeprefix(m.now))
        rank = 0 if one else 1 if sign else 2
        yield Mending(says, m.program, name, m.at, near, put, rank)


def _line(text, start, at):
    """A line of a cell that has a text from `start` on; "" for number 0."""
    line = text.splitlines()[at - 1].strip()
    return f"\n    your line {start + at - 1}: {line}" * bool(at)


def with_mending(problem, asked):
    """Explained for an error, with what must change where that is found."""
    says, hint = problem.args
    untouched = says.startswith("The bug is still there")
    if untouched or not (sentence := mended(asked)):
        return problem
    return Explained(f"{says}\n  {sentence}", hint, problem.share)
