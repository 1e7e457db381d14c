"""The search for the mistake: wrong programs that give what the answer gives.

It is counted in candidates, so that a busy machine finds as much as an idle one.
"""

import ast
import contextlib
import os
import re
import warnings

from minigpt.course.checks.errors import Explained
from minigpt.course.checks.mutants import mutants
from minigpt.course.checks.reading import lines_with, listing, surroundings
from minigpt.course.checks.repair import repairs
from minigpt.course.checks.running import in_time
from minigpt.course.checks.values import as_tensor, plain, same

CANDIDATES = 1200  # wrong programs that are tried, and mended ones
MENDED = 400
HANGS = 200  # candidates' worth of patience that one costs which must be stopped


def first(candidates, holds, budget, most=1):
    """Up to `most` candidates for which holds(candidate) is true; "enough" ends it.

    Each is tried in a thread, so that one that hangs is stopped; it prints nothing.
    """
    found, tried = [], 0
    with _silence():
        for candidate in candidates:
            verdict = []

            def judge(candidate=candidate, verdict=verdict):
                with contextlib.suppress(BaseException):  # or it is wrong, and raises
                    verdict.append(holds(candidate))

            tried += 1 if in_time(judge, 1) else HANGS
            if any(verdict):
                found.append(candidate)
            if verdict == ["enough"] or len(found) == most or tried >= budget:
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
    many values of a tuple must agree, None for all.
    """
    whole = set()  # what the mutants say that give all values

    def gives_the_same(mutant):
        program, in_all = asked.solution.made(mutant.program), True
        for inputs, _, got in every:
            value = asked.given(program, inputs)
            in_all = in_all and same(value, got, asked.atol)
            if parts is not None:
                value, got = value[:parts], got[:parts]
            if not same(value, got, asked.atol):
                return False
        if in_all:
            whole.add(mutant.says)
        return "enough" if in_all and own_line(mutant, asked) else True

    found = first(asked.solution.wrong(), gives_the_same, CANDIDATES, 20)
    return _likeliest(found, asked, every, whole)


def _likeliest(mutants, asked, every=(), whole=()):
    """The mutant to tell of: one whose slip the learner's text has comes first.

    None where there are many, and small whole numbers alone speak for them.
    """
    mutants = [m for m in mutants if own_line(m, asked) or not _refuted(m, asked)]

    def doubts(mutant):
        return not own_line(mutant, asked), mutant.says not in whole

    if len(mutants) > 4 and not any(own_line(m, asked) for m in mutants):
        if not any(_tells(d.got) for d in every):
            return None
    return min(mutants, key=doubts, default=None)


def _refuted(mutant, asked):
    """Whether the learner has what a mutant calls missing, or not what it blames."""
    texts = listing(asked.answer)[0], asked.solution.text
    mine, right = (re.sub(r'(?s)""".*?"""|#[^\n]*|\s', "", text) for text in texts)
    if {*"+*/@"}.intersection(mutant.wrong) - {*mutant.was, *mine}:
        return True
    out = re.match(r"(.*?) ?`([^`]*)` left out(?: in `([^`]*)`)?", mutant.says)
    if out:
        parts = ["-" * ("minus" in out[1]) + out[2], *re.findall(r"^\.\w+\(", out[2])]
        if called := re.search(r"\.(\w+)\([^()]*\)$", out[3] or ""):
            bare, full = rf"\.{called[1]}\(\)", rf"(?<!torch)\.{called[1]}\([^)]"
            if re.search(full, mine) and not re.search(bare, mine):
                return True
    else:
        placed = re.search(r"where `([^`]*)` belongs(?: in `([^`]*)`)?", mutant.says)
        parts = [placed[2] or placed[1]] if placed else []
    parts = [re.sub(r"\s", "", part) for part in parts if re.search("[a-z]", part)]
    return any(mine.count(part) >= max(1, right.count(part)) for part in parts)


def _tells(value):
    """Whether numbers are in a value that are not small and whole."""
    if isinstance(value, (tuple, list)) and plain(value) is None:
        return any(map(_tells, value))
    numbers = as_tensor(value)
    if numbers is None:
        return False
    some = numbers[numbers.isfinite()]
    return bool(((some != some.round()) | (some.abs() > 9)).any())


def own_line(mutant, asked):
    """(number, text) of the learner's line that has a mutant's slip, or None.

    The number is that of the notebook's cell, as it shows it.
    """
    whole, wrong = (re.sub(r"\s", "", text) for text in (mutant.line, mutant.wrong))
    part = rf"(?<![\w.]){re.escape(wrong)}(?![\w+*/.(\[-])"
    found = len(wrong) > 1 and re.search("[a-z]", wrong)  # -2 alone is anywhere
    patterns = [rf"^{re.escape(whole)}$"] * bool(whole) + [part] * bool(found)
    for pattern in patterns:
        if not lines_with(pattern, asked.solution.text):
            for found in lines_with(pattern, *listing(asked.answer)):
                return found


def told(mutant, asked):
    """(what a mutant says, its line): the learner's own where it can be found."""
    if own := own_line(mutant, asked):
        return mutant.says, f"\n    your line {own[0]}: {own[1]}"
    if mutant.line:
        return mutant.says, f"\n    our version, with that mistake: {mutant.line}"
    names = re.findall(r"(?<![.\w])[a-z]\w*(?!\w*[(=])", " ".join(_code(mutant.says)))
    foreign = set(names) - set(re.findall(r"\w+", listing(asked.answer)[0]))
    return mutant.says + ", in our version of the program" * bool(foreign), ""


def _code(text):
    return re.findall(r"`([^`]*)`", text)


def mended(asked, most=2, largest=99):
    """The `most` places in the answer's text to mend, as a sentence; or None."""
    text, judged = listing(asked.answer)[0], []
    if not text or not asked.slips:
        return None

    def is_right(candidate):
        _, code, name = candidate
        names = {**asked.solution.space, **surroundings(asked.answer)}
        exec(code, names)
        if not judged:
            judged.extend((inputs, asked.right(*inputs)) for inputs in asked.cases)
        return all(
            same(asked.given(names[name], inputs), expected, asked.atol)
            for inputs, expected in judged
        )

    with contextlib.suppress(SyntaxError, StopIteration, RuntimeError):
        for says, *_ in first(_mendings(asked, most, largest), is_right, MENDED):
            if len(says) == 1:
                return f"Your answer is right but for {says[0]}"
            return f"Two changes make your answer right. The first: {says[0]}."


def _mendings(asked, most, largest):
    """Candidates (what to say, code, its function's name), the likeliest first.

    One change that the solution suggests, a slip of the answer's own taken back, then
    two changes.
    """
    (text, start), solution = listing(asked.answer), asked.solution
    found = list(repairs(text, solution.text, solution.name, most, largest))
    yield from (([f"{s[0]}."], c, solution.name) for s, c in found if not s[1:])
    name, lines = ast.parse(text).body[0].name, text.splitlines()
    for m in mutants(text):
        if re.search(", (each|both) times?$", m.says):
            break  # the same slip in several places comes last
        what = f"where `{m.wrong}` belongs" if m.wrong else "too many"
        line = f"\n    your line {start + m.at - 1}: {lines[m.at - 1].strip()}"
        yield [f"`{m.was}` {what}.{line}"], m.program, name
    yield from ((s, c, solution.name) for s, c in found if s[1:])


def with_mending(problem, asked):
    """Explained for an error, with what must change where that is found."""
    says, hint = problem.args
    untouched = says.startswith("The bug is still there")
    sentence = None if untouched else mended(asked)
    if not sentence:
        return problem
    return Explained(f"{says}\n  {sentence}", hint, problem.share)
