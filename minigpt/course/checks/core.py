"""What all checkers share: run an answer safely, find the mistake, say it well.

A checker names an exercise, its solution and inputs from small to large (`cases`).
Where an answer differs, mistakes that need a human sentence are tried first; they are
listed by hand. Then the answer's own text is changed in one place after the other: what
makes it right was its mistake (repair.py, mutants.py). Then the solution is made wrong
until it gives the same. At the last, what is measurably wrong is said (symptoms.py).
"""

import contextlib
import copy
import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from minigpt.course.checks import search
from minigpt.course.checks.errors import Explained, NotAttempted
from minigpt.course.checks.reading import alias, listing, lost, unread
from minigpt.course.checks.running import attempted, call, run
from minigpt.course.checks.symptoms import clear, hopeless, vague
from minigpt.course.checks.values import as_tensor, same, show, without_nan

__all__ = ["Explained", "NotAttempted", "attempted", "call", "compare", "exercise"]
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


def exercise(title, solution=None):
    """Decorate a checker: `@exercise("02.1 The present included", MEAN_SO_FAR)`.

    The checker returns what it verified, or raises Explained. The check prints one
    message and returns a Result. The learner's answer may be anything: no exception
    gets out of the check, and torch's state stays as it was.
    """
    _exercises[title] = "open"

    def decorate(checker):
        @functools.wraps(checker)
        def check(*answers):
            result = Result(title, *_verdict(checker, answers))
            if _exercises[title] != "solved" and result.state in ("tried", "solved"):
                _exercises[title] = result.state
            print(result)
            return result

        check.number, check.solution = title.split()[0], solution
        return check

    return decorate


def _verdict(checker, answers):
    """The state that an exercise is in after these answers, what to say, the share."""
    share = 0.0
    try:
        if not all(map(attempted, answers)):
            raise NotAttempted
        with _settings_kept():
            torch.default_generator.manual_seed(0)
            return "solved", f"right! Verified: {checker(*answers)}", 1.0
    except NotAttempted:
        return "open", "not attempted yet: replace the `...`.", 0.0
    except Explained as problem:
        what, hint = problem.args
        share = problem.share
    except Exception:  # the checker's own, from an answer that it was not made for
        what = "This answer could not be compared: it, or what it returns or works on, "
        what += "is not of the kind that the check expects."
        hint = f"Wanted: {checker.__doc__.splitlines()[0]} If yours is that, run the "
        hint += "cells above again: a name may have changed its meaning."
    untouched = what.startswith("The bug is still there")
    state, share = ("untouched", 0.0) if untouched else ("tried", share)
    return state, f"not yet. {what}" + f"\n  Hint: {hint}" * bool(hint), share


@contextlib.contextmanager
def _settings_kept():
    """Afterwards torch's randomness, threads and kind of float are as they were."""
    threads, kind = torch.get_num_threads(), torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
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
    known=types.MappingProxyType({}),
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
    inputs in place. known: {what to say: a Sign, a program, or (that, a hint)}, before
    the solution's own mistakes. hint: the exercise's, where a mistake brings none.
    """

    def of(program):
        inner = work or (lambda program, *inputs: program(*inputs))
        return lambda *inputs: inner(program, *copy.deepcopy(inputs))

    names = _names(work, solution)
    asked = Question(answer, solution, cases, of, atol, parts, names)
    differences, right, changed = [], [], []
    for inputs in cases:
        expected = asked.right(*inputs)
        torch.default_generator.manual_seed(0)
        try:
            got, touched = run(answer, inputs, work)
        except Explained as problem:
            if not differences:
                problem.share = len(right) / len(cases)
                raise search.with_mending(problem, asked) from None
            break  # the difference on a smaller case comes first
        kind = right if same(got, expected, atol) else differences
        kind.append(Difference(inputs, expected, got))
        changed += touched
    if differences:
        if asked.slips:
            known = {**known, **solution.mistakes(work)}
        pairs = {k: v if type(v) is tuple else (v, "") for k, v in known.items()}
        some = [Mistake(says, own, program) for says, (program, own) in pairs.items()]
        says, own_hint = _explained(differences, some, right, asked)
        if own_hint is None and hint:  # nothing was found: it may point elsewhere
            own_hint = f"(of the exercise, it need not be your mistake) {hint}"
        raise Explained(says, own_hint or hint, len(right) / len(cases))
    if changed and not changes:
        which = f"`{names[changed[0]]}`" if changed[0] < len(names) else "its input"
        raise Explained(
            f"The result is right, but your function changes {which} in place: whoever "
            "called it finds other numbers in what is theirs.",
            "Make something new: `x = x * 2` does, `x *= 2` and `x[0] = …` do not; "
            ".clone() gives a copy to work on.",
            share=0.9,
        )


def _names(work, solution):
    """What the inputs are called, by work or by the solution; () where neither does."""
    if work is None:
        return getattr(solution, "arguments", ())
    names = inspect.signature(work).parameters.values()
    return [n.name for n in names if n.kind is n.POSITIONAL_OR_KEYWORD][1:]


def _explained(differences, known, right, asked):
    """(what accounts for all differences, a hint or nothing).

    known: a list of Mistake. right: the cases that are right, as Differences, too.
    """
    atol, every = asked.atol, [*differences, *right]
    part, lead, wrong = _first_wrong_part(differences, atol), "", differences
    if part is not None:
        some = [Difference(d.inputs, d.expected[part], d.got[part]) for d in wrong]
        wrong = [d for d in some if not same(d.got, d.expected, atol)]
        named = part < len(asked.parts)
        lead = f"{asked.parts[part] if named else f'value {part}'}: "
    shown = unread(asked.answer) + show(wrong[0], asked.names)
    whole = None if part is None or not asked.parts else part + 1  # that must agree

    def meant(loose):
        for mistake in known:
            if getattr(mistake.program, "vague", False) == loose:
                betrayed = isinstance(mistake.program, Sign)  # not by what is right
                where = differences if betrayed else every
                if all(_accounts(mistake, d, atol) for d in where):
                    return mistake

    if line := lost(asked.answer):
        return line + shown, ""
    if mistake := meant(loose=False):
        return mistake.says + _changed(mistake, asked) + shown, mistake.hint
    if not attempted(wrong[0].got):
        return f"Still missing: {lead[:-2] or 'its value'}.", ""
    says, hint = "", ""  # of an effect
    if mistake := meant(loose=True):
        says, hint = mistake.says, mistake.hint
    elif found := clear(wrong, atol):
        says, hint = lead + found[0], found[1]
    begun = says or lead.strip()
    how = {"small": True, "large": False, "sure": says}
    if sentence := search.mended(asked, differences[:1], **how):
        return f"{begun} {sentence}".strip() + shown, ""
    if asked.slips and not hopeless(wrong):
        if mutant := search.slip(asked, every, whole):
            line = f"\n    our version, with that mistake: {mutant.line}"
            line *= bool(mutant.line)
            slipped = f"Your result is what you get with {mutant.says}.{line}"
            return f"{begun} {slipped}".strip() + shown, ""
    if sentence := search.mended(asked, differences[:1], small=False):
        return f"{begun} {sentence}".strip() + shown, ""
    if says:
        return says + shown, hint
    return f"{lead}{vague(wrong, right, part is not None)}{shown}", None


def _changed(mistake, asked):
    """A sentence for who has changed a bug hunt's program, but left its bug there."""
    text = listing(asked.answer)[0]
    if (
        "still there" not in mistake.says
        or not text
        or asked.solution.is_untouched(text)
    ):
        return ""
    told = f"You have changed the program, but not what it gives.{alias(text)}"
    return "\n  " + (search.mended(asked, sure=False) or told)


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


def _accounts(mistake, difference, atol):
    d = difference
    try:
        if isinstance(mistake.program, Sign):
            return bool(mistake.program.holds(d.got, d.expected, *d.inputs))
        made = mistake.program(*copy.deepcopy(d.inputs))
        return same(without_nan(d.got, made), made, atol)
    except Exception:  # a mistake that does not even run here is not the one
        return False
