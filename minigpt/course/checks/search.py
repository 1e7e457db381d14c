"""The search for the mistake: wrong programs that give what the answer gives.

It is counted in candidates, so that a busy machine finds as much as an idle one.
"""

import ast
import collections
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
MENDED = 250
CALLS = 20_000  # an answer that calls more functions costs more
SOME = 3  # lines of which a change alone would mend an answer: so many are looked for
FEW = 8  # words of a small change
MANY = 12  # slips that agree tell nothing
HANGS = 200  # candidates' worth of patience that one costs which must be stopped


def first(candidates, holds, budget, most=1, kind=id):
    """Up to `most` candidates for which holds(candidate) is true, one of each kind.

    Each is tried in a thread, so that one that hangs is stopped; it prints nothing.
    """
    found, tried = {}, 0
    with _silence():
        for candidate in candidates:
            if kind(candidate) in found:
                continue
            verdict = []

            def judge(candidate=candidate, verdict=verdict):
                with contextlib.suppress(BaseException):  # or it is wrong, and raises
                    verdict.append(holds(candidate))

            tried += 1 if in_time(judge, 1) else HANGS
            if any(verdict):
                found[kind(candidate)] = candidate
            if len(found) == most or tried >= budget:
                break
    return [*found.values()]


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
    if len(found) < MANY:
        text, right = listing(asked.answer)[0], asked.solution.text
        return next((m for m in found if _shows(m, text, right)), None)


def _shows(mutant, text, right):
    """Whether a text has less than a right one of what a Mutant takes, or what it puts.

    An answer that has all that a slip leaves out goes wrong in another way; so does one
    that exchanges other parts.
    """
    own, ours, was, now = map(_words, (text, right, mutant.was, mutant.now))
    gone, new = was - now, now - was
    if gone == new:
        return mutant.now.strip("()[]") in text
    return any(own[word] < ours[word] for word in gone) or any(new & own)


def _words(text):
    """How often each word and each sign stands in a program; `dim=` may be left out."""
    with contextlib.suppress(SyntaxError):
        text = ast.unparse(ast.parse(text))
    return collections.Counter(re.findall(r"\w+|\S", text.replace("dim=", "")))


class Mending(NamedTuple):
    """A change of an answer's text: what to say, the code, its name, the line's number.

    near: whether that makes the line one of the solution's; put: what is only added.
    """

    says: str
    code: Any
    name: str
    at: int
    near: bool = True
    put: str = ""


def mended(asked, wrong=()):
    """What of the answer's text must change, in a sentence or two; or None.

    wrong: a Difference, to be looked at first.
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
        budget = MENDED // _price(asked, wrong)
        for way in _small, _large:
            if found := first(way(asked), is_right, budget, SOME, lambda m: m.at):
                return _likeliest(found, text, asked.solution.given)


def _likeliest(found, text, given):
    """What to say of some Mendings. given: the lines of a bug hunt's program.

    Where changes of two lines would each mend it, nobody knows which one is wrong.
    """
    lines = ["", *map(str.strip, text.splitlines())]
    found = [m for m in found if lines[m.at] not in given] or found  # right it was
    if len(found) > 1 and len({m.put for m in found}) == 1 and found[0].put:
        return f"Your answer is right but for `{found[0].put}` left out."
    found = [m for m in found if m.near] or found
    says = "\n  Or, just as well, for ".join(m.says for m in found[:2])
    return f"Your answer is right but for {says}"


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


def _large(asked, least=FEW, most=99):
    """Mendings that the solution suggests, of so many words."""
    (text, start), solution = listing(asked.answer), asked.solution
    for size, says, code, at in repairs(text, solution.text, solution.name):
        if least <= size < most:
            says = f"{says}.{_line(text, start, at)}"
            yield Mending(says, code, solution.name, at)


def _small(asked):
    """Mendings of few words, or by a slip of the answer's own, taken back."""
    yield from _large(asked, 0, FEW)
    text, start = listing(asked.answer)
    name, lines = ast.parse(text).body[0].name, _lines(asked.solution.text)
    for m in mutants(text, asked.solution.text):
        what = f"where `{m.now}` belongs" if m.now else "too many"
        often = re.search("(, each time|, both times)?$", m.says)[0]
        if len(m.was) < 8 and "" < m.inside != m.was and not often:
            what += f" in `{m.inside}`"
        says = f"`{m.was}` {what}{often}.{_line(text, start, m.at)}"
        bare = m.now.replace(f"({m.was})", m.was, 1)
        put = bare.removeprefix(m.was).strip() if bare != m.was else ""
        put *= bare.startswith(m.was)
        yield Mending(says, m.program, name, m.at, m.line in lines, put)


def _lines(text):
    """The lines of a program, without comments."""
    return {line.strip() for line in ast.unparse(ast.parse(text)).splitlines()}


def fixed(asked, wrong):
    """A sentence about a number that fits some inputs only; or None.

    wrong: the Differences. It is such a number if each of them has one that fits.
    """
    text, _ = listing(asked.answer)
    with contextlib.suppress(SyntaxError):
        tree = ast.parse(text)
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Constant)]
        for node in (n for n in nodes if type(n.value) is int and n.value > 1):
            own, fits = node.value, []
            for inputs, expected, *_ in wrong:

                def is_right(number, node=node, pair=(inputs, expected)):
                    node.value = number
                    names = {**asked.solution.space, **surroundings(asked.answer)}
                    exec(compile(tree, "<fixed>", "exec"), names)
                    got = asked.given(names[tree.body[0].name], pair[0])
                    return same(got, pair[1], asked.atol)

                fits += first(range(1, 9), is_right, 8)
            node.value = own
            if len(fits) == len(wrong):
                line = text.splitlines()[node.lineno - 1].strip()
                says = f"The {own} in `{line}` fits some inputs only: here it should be"
                return f"{says} {fits[0]}."


def _line(text, start, at):
    """A line of a cell that has a text from `start` on; "" for number 0."""
    line = text.splitlines()[at - 1].strip()
    return f"\n    your line {start + at - 1}: {line}" * bool(at)


def with_mending(problem, asked, inputs, some):
    """Explained for an error, with what must change where that is found.

    inputs: those on which it is raised. some: whether others are right.
    """
    says, hint = problem.args
    untouched = says.startswith("The bug is still there")
    sentence = None if untouched else mended(asked)
    if some and not sentence and asked.slips and not untouched:
        sentence = fixed(asked, [(inputs, asked.right(*inputs))])
    if not sentence:
        return problem
    return Explained(f"{says}\n  {sentence}", hint, problem.share)
