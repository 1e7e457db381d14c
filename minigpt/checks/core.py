"""What all checkers share: run an answer safely, find the mistake, say it well.

A checker names an exercise, its solution and inputs from small to large (`cases`).
Where an answer differs, the solution is made wrong in one place after the other: a
wrong program that gives what the answer gives shows what the mistake is (mutants.py).
A mistake that needs a human sentence is listed by hand and comes first. Where nothing
gives the same, what is measurably wrong is said (symptoms.py).
"""

import contextlib
import copy
import inspect
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from typing import Any, NamedTuple

import torch

from minigpt.checks.repair import repairs
from minigpt.checks.running import (
    Explained,
    NotAttempted,
    attempted,
    borrowed,
    call,
    interrupt,
    listing,
    run,
    started,
    stop,
    surroundings,
    without_self,
)
from minigpt.checks.symptoms import clear, hopeless, symptom
from minigpt.checks.values import as_tensor, describe, plain, same, show

__all__ = [
    "Explained",
    "NotAttempted",
    "as_tensor",
    "attempted",
    "call",
    "compare",
    "describe",
    "exercise",
    "explain",
    "mistakes",
    "same",
]
THINKING = 2.5  # seconds of computing in which a mistake is looked for
_exercises = {}  # title -> "open", "tried" or "solved", in order of definition


class Mistake(NamedTuple):
    """A known mistake: what to say, a hint, and the wrong program or a Sign of it."""

    says: str
    hint: str
    program: Callable


class Sign(NamedTuple):
    """What betrays a mistake in place of a program: holds(got, expected, *inputs).

    vague: many mistakes have this effect; a cause that can be named comes first.
    """

    holds: Callable
    vague: bool = False


class Difference(NamedTuple):
    """A case on which an answer is wrong."""

    inputs: tuple
    expected: Any
    got: Any


@dataclass(frozen=True)
class Result:
    """What a check returns; true when the exercise is solved.

    state: "open", "tried", "untouched" (a bug that is still there) or "solved".
    share: of the cases, those that are right, 0.0 to 1.0; 1.0 only when solved.
    """

    title: str
    state: str
    message: str
    share: float

    def __bool__(self):
        return self.state == "solved"

    def __str__(self):
        mark = {"open": "○", "solved": "✓"}.get(self.state, "✗")
        return f"{mark} {self.title}: {self.message}"

    def points(self, most):
        """Of `most` points the share, in hundredths; all of them only when solved."""
        part = most if self else min(self.share * most, most - 0.01)
        return round(float(part), 2)

    def _ipython_display_(self):
        """Nothing: the check has printed its message already."""


def mistakes(hint, programs):
    """A list of Mistake from {what to say: program}, with a hint in common.

    A program is called like the solution, or is a Sign; (program, hint) has a hint
    of its own.
    """
    found = []
    for says, program in programs.items():
        pair = isinstance(program, tuple) and not isinstance(program, Sign)
        found.append(Mistake(says, *(reversed(program) if pair else (hint, program))))
    return found


def exercise(title):
    """Decorate a checker: `@exercise("02.1 The present included")`.

    The checker returns what it verified, or raises Explained. The check prints one
    message and returns a Result. The learner's answer may be anything: no exception
    gets out of the check, and torch's state stays as it was.
    """
    _exercises[title] = "open"

    def decorate(checker):
        def check(*answers):
            result = Result(title, *_verdict(checker, answers))
            if _exercises[title] != "solved" and result.state in ("tried", "solved"):
                _exercises[title] = result.state
            print(result)
            return result

        check.__name__, check.__doc__ = checker.__name__, checker.__doc__
        return check

    return decorate


def _verdict(checker, answers):
    """The state that an exercise is in after these answers, what to say, the share."""
    share = 0.0
    try:
        if not all(map(attempted, answers)):
            raise NotAttempted
        with _settings_kept(answers):
            torch.default_generator.manual_seed(0)
            return "solved", f"right! Verified: {checker(*answers)}", 1.0
    except NotAttempted:
        return "open", "not attempted yet: replace the `...`.", 0.0
    except Explained as problem:
        what, hint = problem.args
        share = problem.share
    except Exception:  # the checker's own, from an answer that it was not made for
        what = (
            "This answer could not be compared: it, or what it returns or works on, "
            "is not of the kind that the check expects."
        )
        wanted = checker.__doc__.splitlines()[0]
        hint = (
            f"Wanted: {wanted} If yours is that, run the cells above again: a name "
            "may have changed its meaning."
        )
    untouched = what.startswith("The bug is still there")
    state, share = ("untouched", 0.0) if untouched else ("tried", share)
    return state, f"not yet. {what}" + f"\n  Hint: {hint}" * bool(hint), share


@contextlib.contextmanager
def _settings_kept(answers):
    """Afterwards torch's randomness, threads and kind of float are as they were.

    So are the lists that belong to a class among the answers, not to its objects.
    """
    threads, kind = torch.get_num_threads(), torch.get_default_dtype()
    shared = [
        (answer, name, copy.copy(value))
        for answer in answers
        if isinstance(answer, type)
        for name, value in vars(answer).items()
        if isinstance(value, (list, dict, set))
    ]
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            for place in shared:
                setattr(*place)
            torch.set_default_dtype(kind)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)


def progress():
    """Print what has been solved since the kernel started, and what comes next."""
    marks = {"open": "○ open", "tried": "◐ tried", "solved": "● solved"}
    for title, state in _exercises.items():
        print(f"{marks[state]:10}{title}")
    still_open = [title for title, state in _exercises.items() if state != "solved"]
    solved = len(_exercises) - len(still_open)
    print(f"{solved} of {len(_exercises)} solved.", end=" ")
    print(f"Next: {still_open[0]}" if still_open else "All done!")


@dataclass(frozen=True)
class Question:
    """What compare was asked; of(program): the function of inputs that it compares."""

    answer: Callable
    solution: Any
    cases: list
    of: Callable
    atol: float
    parts: tuple
    names: list
    hint: str

    def right(self, *inputs):
        """What the solution gives, with the same luck each time."""
        return self.given(getattr(self.solution, "program", self.solution), inputs)

    def given(self, program, inputs):
        """What a program gives that is a candidate or the solution."""
        torch.default_generator.manual_seed(0)
        return self.of(program)(*inputs)

    @property
    def slips(self):
        """Whether wrong programs can be made of the solution."""
        return hasattr(self.solution, "wrong")


def compare(
    answer,
    solution,
    cases,
    known=(),
    atol=1e-5,
    *,
    work=None,
    parts=(),
    changes=False,
    hint="",
):
    """Raise Explained unless the answer gives what the solution gives on all cases.

    answer: the learner's function or class. solution: a Solution, whose slips of the
    pen are then tried, or any right program, without slips. cases: list of tuples of
    inputs, the smallest first; each program gets copies. work(program, *inputs): what
    to compare, in place of program(*inputs). parts: names of the values of a tuple;
    only the first wrong one is spoken of. changes: whether the answer may change its
    inputs in place. known: a list of Mistake, called with a case's inputs, or a dict
    as for Solution.mistakes. hint: the exercise's own, where the mistake brings none.
    """

    def of(program):
        inner = work or (lambda program, *inputs: program(*inputs))
        return lambda *inputs: inner(program, *copy.deepcopy(inputs))

    names = _names(work, solution)
    asked = Question(answer, solution, cases, of, atol, parts, names, hint)
    differences, right, changed = [], [], []
    for inputs in cases:
        expected = asked.right(*inputs)
        torch.default_generator.manual_seed(0)
        try:
            got, touched = run(answer, inputs, work)
        except Explained as problem:
            if not differences:
                problem.share = len(right) / len(cases)
                raise _with_slip(problem, asked, inputs, right) from None
            break  # the difference on a smaller case comes first
        kind = right if same(got, expected, atol) else differences
        kind.append(Difference(inputs, expected, got))
        changed += touched
    try:
        if differences:
            if isinstance(known, dict):
                made = asked.slips and partial(solution.mistakes, work=work)
                known = (made or mistakes)(hint, known)
            explain(differences, known, right, asked)
    except Explained as problem:
        problem.share = len(right) / len(cases)
        raise
    if changed and not changes:
        which = f"`{names[changed[0]]}`" if changed[0] < len(names) else "its input"
        raise Explained(
            f"The result is right, but your function changes {which} in place: whoever "
            "called it finds other numbers in what is theirs.",
            "Make something new: `x = x * 2` does, `x *= 2` and `x[0] = …` do not; "
            ".clone() gives a copy to work on.",
            share=0.9,
        )


def explain(differences, known, right, asked):
    """Raise Explained with what accounts for all differences.

    known: a list of Mistake. right: the cases that are right, as Differences, too.
    asked: a Question.
    """
    answer, solution, atol, hint = asked.answer, asked.solution, asked.atol, asked.hint
    part, every, lead = _first_wrong_part(differences, atol), [*differences, *right], ""
    wrong = differences
    if part is not None:
        wrong = [_of_part(d, part) for d in differences]
        wrong = [d for d in wrong if not same(d.got, d.expected, atol)]
        named = part < len(asked.parts)
        lead = f"{asked.parts[part] if named else f'value {part}'}: "
    shown = show(wrong[0], asked.names)

    def meant(vague):
        for mistake in known:
            if getattr(mistake.program, "vague", False) == vague:
                betrayed = isinstance(mistake.program, Sign)  # not by what is right
                where = differences if betrayed else every
                if all(_accounts(mistake, d, atol) for d in where):
                    return mistake

    if mistake := meant(vague=False):
        raise Explained(
            mistake.says + without_self(answer) + shown, mistake.hint or hint
        )
    if not attempted(wrong[0].got):
        raise Explained(f"Still missing: {lead[:-2] or 'its value'}.")
    end, moves = time.monotonic() + THINKING, {}
    whole = None if part is None or not asked.parts else part + 1  # that must agree

    def slip(pairs):
        if asked.slips and not hopeless(wrong):
            return _slip(asked, every, whole, pairs, end, moves)

    def told(mutant):
        says = f"{lead}Your result is what you get with {mutant.says}."
        raise Explained(says + _line_said(mutant, answer, solution) + shown, hint)

    mutant = slip(pairs=False)
    if mutant and _line_of(mutant, answer, solution):
        told(mutant)
    says, own_hint = "", ""  # of an effect
    if not mutant and _chance(asked, wrong):
        says = f"{lead}The same input gives another result each time: it is drawn."
    elif mistake := meant(vague=True):
        says, own_hint = mistake.says, mistake.hint
    elif found := clear(wrong, atol, asked.names):
        says, own_hint = lead + found[0], found[1]
    if mended := _repair(asked, *((1, 7) if mutant else (4,))):
        says = f"{says or lead.strip()} {mended}{_unused(asked)}".strip()
        raise Explained(says + shown, own_hint or hint)
    if mutant:
        told(mutant)
    if says:
        raise Explained(says + shown, own_hint or hint)
    if sum(_telling(d.got) for d in wrong) >= 4:  # fewer: by chance
        if mutant := slip(pairs=True):
            told(mutant)
    what, own_hint = symptom(wrong, right, None if part is None else [], asked)
    raise Explained(f"{lead}{what}{_unused(asked)}{shown}", own_hint or hint)


def _chance(asked, wrong):
    """Whether the answer draws numbers, not an order, where the solution does not."""
    solution, drawn = getattr(asked.solution, "program", asked.solution), []
    for program in (asked.answer, solution):
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            with _silence(), contextlib.suppress(Exception):
                numbers = as_tensor(asked.of(program)(*wrong[0].inputs))
                drawn.append(numbers.flatten().sort().values)
    return len(drawn) == 4 and same(*drawn[2:]) and not same(*drawn[:2])


def _unused(asked):
    """A sentence about an argument that the answer never uses, or nothing."""
    program = getattr(asked.solution, "program", asked.solution)
    if not callable(asked.answer) or not callable(program):
        return ""
    if said := without_self(asked.answer):
        return said
    pairs = zip(borrowed(asked.answer), borrowed(program))
    unused, outside = ([x for x in mine if x not in own] for mine, own in pairs)
    if not unused:
        return ""
    said = f" Your function never uses its argument `{unused[0]}`"
    if not outside:
        return f"{said}."
    return f"{said}; it uses the notebook's `{outside[0]}`, which is always the same."


def _names(work, solution):
    """What the inputs are called, by work or by the solution; () where neither does."""
    if work is None:
        return getattr(solution, "arguments", ())
    names = inspect.signature(work).parameters.values()
    return [n.name for n in names if n.kind is n.POSITIONAL_OR_KEYWORD][1:]


def _first_wrong_part(differences, atol):
    """Of several values (a tuple, or a list that is no tensor), the first wrong one."""
    for d in differences:
        several = isinstance(d.expected, list) and as_tensor(d.expected) is None
        if not isinstance(d.expected, tuple) and not several:
            return None
        if not isinstance(d.got, (tuple, list)) or len(d.got) != len(d.expected):
            return None
    for i in range(min(len(d.expected) for d in differences)):
        if not all(same(d.got[i], d.expected[i], atol) for d in differences):
            return i
    return None


def _of_part(difference, part):
    d = difference
    return Difference(d.inputs, d.expected[part], d.got[part])


def _accounts(mistake, difference, atol):
    d = difference
    try:
        if isinstance(mistake.program, Sign):
            return bool(mistake.program.holds(d.got, d.expected, *d.inputs))
        return same(d.got, mistake.program(*copy.deepcopy(d.inputs)), atol)
    except Exception:  # a mistake that does not even run here is not the one
        return False


def _line_said(mutant, answer, solution):
    """The line that has a mutant's slip, the learner's own if it can be found."""
    if own := _line_of(mutant, answer, solution):
        return f"\n    your line {own[0]}: {own[1]}"
    return f"\n    {mutant.line}" if mutant.line else ""


def _slip(asked, every, parts, pairs, end, moves):
    """The likeliest Mutant of a Solution that gives all that the answer gave.

    every: what is known of all cases, as Differences, the wrong ones first. parts: how
    many values of a tuple must agree, None for all. end: when to stop looking. moves:
    gets, for what each slip says, whether it changes anything and still runs; no pair
    has one that does not.
    """
    answer, solution, atol = asked.answer, asked.solution, asked.atol

    def cut(value):
        return value if parts is None else value[:parts]

    whole = set()  # ids of the mutants that give all values

    def gives_the_same(candidate):
        mutant, program = candidate
        alike, in_all, changes = True, True, moves.setdefault(mutant.says, False)
        for inputs, expected, got in every:
            value = asked.given(program, inputs)
            in_all = in_all and same(value, got, atol)
            alike = alike and same(cut(value), cut(got), atol)
            changes = changes or not same(cut(value), cut(expected), atol)
            moves[mutant.says] = changes
            if changes and not alike:
                return False
        if alike and in_all:
            whole.add(id(mutant))
            if _line_of(mutant, answer, solution):
                raise Enough
        return alike

    without = [says for says, some in moves.items() if not some] if pairs else ()
    candidates, most = solution.wrong(pairs, without), 1 if pairs else 20
    seconds = max(0.5, end - time.monotonic())
    found = matches(candidates, gives_the_same, seconds, most)
    return _likeliest([m for m, _ in found], answer, solution, every, whole)


def _likeliest(mutants, answer, solution, every=(), whole=()):
    """The mutant to tell of: one whose slip the learner's text has comes first.

    None where there are many, and small whole numbers alone speak for them.
    """
    written = re.sub(r"\s", "", listing(answer)[0])

    def doubts(mutant):
        left_out = re.match(
            r"the (?:line|index|minus before)? ?`(.*)` left", mutant.says
        )
        sign = "-" * mutant.says.startswith("the minus")
        is_there = left_out and sign + re.sub(r"\s", "", left_out[1]) in written
        shown = _line_of(mutant, answer, solution)
        return bool(is_there), not shown, id(mutant) not in whole

    if len(mutants) > 4 and not any(_line_of(m, answer, solution) for m in mutants):
        if not any(_telling(d.got) for d in every):
            return None
    return min(mutants, key=doubts, default=None)


def _repair(asked, most=4, largest=99):
    """The `most` places in the answer's text to mend; None if they do not do."""
    text, solution, judged = listing(asked.answer)[0], asked.solution, []
    if not text or not asked.slips:
        return None

    def is_right(candidate):
        names = {**solution.space, **surroundings(asked.answer)}
        exec(candidate[1], names)
        if not judged:
            judged.extend((inputs, asked.right(*inputs)) for inputs in asked.cases)
        return all(
            same(asked.given(names[solution.name], inputs), expected, asked.atol)
            for inputs, expected in judged
        )

    candidates = repairs(text, solution.text, solution.name, most, largest)
    for says, _ in matches(candidates, is_right, THINKING / 2):
        return f"Your answer is right but for {says}."


def _with_slip(problem, asked, inputs, right):
    """Explained for an error, with what must change, or the slip that raises it."""
    error, solution = problem.__cause__, asked.solution
    says, hint = problem.args
    if says.startswith("The bug is still there"):
        return problem
    if mended := _repair(asked):
        return Explained(f"{says}\n  {mended}", hint, problem.share)
    telling = (RuntimeError, IndexError, ValueError, ZeroDivisionError, KeyError)
    if not isinstance(error, telling) or not asked.slips:
        return problem

    def raises_the_same(candidate):
        for d in right:
            if not same(asked.given(candidate[1], d.inputs), d.expected, asked.atol):
                return False
        try:
            asked.given(candidate[1], inputs)
        except type(error) as own:
            return str(own) == str(error)

    found = matches(solution.wrong(), raises_the_same, THINKING / 2, 20)
    slip = _likeliest([m for m, _ in found], asked.answer, solution)
    if not slip or not (len(found) == 1 or _line_of(slip, asked.answer, solution)):
        return problem
    line = _line_said(slip, asked.answer, solution)
    says = f"{says}\n  The same comes of {slip.says}.{line}"
    return Explained(says, hint, problem.share)


def _line_of(mutant, answer, solution):
    """(number, text) of the learner's line that has a mutant's slip, or None.

    The number is that of the notebook's cell, as it shows it.
    """
    whole, wrong = (re.sub(r"\s", "", text) for text in (mutant.line, mutant.wrong))
    part = rf"(?<![\w.]){re.escape(wrong)}(?![\w+*/.(\[-])"
    text, first = listing(answer)
    for pattern, is_telling in (
        (rf"^{re.escape(whole)}$", whole),
        (part, len(wrong) > 1),
    ):
        if is_telling and not _lines_with(pattern, solution.text):
            for found in _lines_with(pattern, text, first):
                return found


def _lines_with(pattern, text, first=1):
    """(number, text) of the lines in which, without spaces, a pattern is found."""
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), first)]
    return [at for at in lines if re.search(pattern, re.sub(r"\s|#.*", "", at[1]))]


def _telling(value):
    """How many different numbers are in a value that are not small and whole."""
    if isinstance(value, (tuple, list)):
        numbers = plain(value)
        if numbers is None:
            return sum(map(_telling, value))
    numbers = as_tensor(value)
    if numbers is None:
        return 0
    some = numbers[numbers.isfinite()]
    some = some[(some != some.round()) | (some.abs() > 9)]
    return some.unique().numel()


class Enough(Exception):
    """Raised by what judges a candidate: this one, and no more need be tried."""


def matches(candidates, holds, seconds, most=1):
    """The first candidates for which holds(candidate), found in so many seconds.

    The seconds are those that the candidates compute, so that a busy machine finds as
    much; but at most twice as many go by. Each candidate is tried in a thread, so that
    one that hangs is stopped, and prints nothing.
    """
    found, busy_since = [], [time.monotonic()]
    end = time.monotonic() + 2 * seconds

    clock, caller = getattr(time, "thread_time", time.monotonic), get_ident()

    def watch(frame, event, argument):
        if time.monotonic() - busy_since[0] > 1:
            raise TimeoutError
        return watch

    def look():
        remaining, start, alone = iter(candidates), clock(), get_ident() == caller
        while clock() - start < seconds and len(found) < most:
            if time.monotonic() > end:
                break
            busy_since[0] = time.monotonic()
            if alone:  # no thread can stop it
                sys.settrace(watch)
            try:
                candidate = next(remaining, None)
                if candidate is None:
                    break
                if holds(candidate):
                    found.append(candidate)
            except Enough:
                found.append(candidate)
                break
            except BaseException:  # a wrong program may raise anything, or be stopped
                continue

    tracing, thread = sys.gettrace(), None
    with _silence():
        try:
            thread = started(look)
            while thread and thread.is_alive() and time.monotonic() < end + 0.5:
                thread.join(0.02)
                if time.monotonic() - busy_since[0] > 1:
                    interrupt(thread)
                    busy_since[0] = time.monotonic()
        finally:
            end = 0.0
            sys.settrace(tracing)
            if thread:
                stop(thread)
    return found


@contextlib.contextmanager
def _silence():
    """Let no wrong program print or warn."""
    with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield
