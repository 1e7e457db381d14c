"""The public face of the checks, and the way of an answer through the engine.

For exercise 02.1 a learner runs

    def mean_so_far(x, t):                    # the answer
        return x[:, :t].mean(dim=1)           # its slip: `:t + 1` belongs there

    check_mean_so_far(mean_so_far)            # a checker, decorated by exercise()

1. core (here): is the cell Python, and anything attempted? Then the checker calls
2. comparing: compare(answer, solution, cases). It runs the answer on copies of each
   case's inputs (running). Of the case (TOY, 1) the solution makes [[4.0, 5.5]], the
   answer [[2.0, 7.0]]: a Difference. With none, the answer is right, if it has left its
   inputs alone. An answer that raises something hears what stood in its line (errors,
   scene) and what would mend it (step 4), and goes no further; if it is wrong on a
   smaller case already, that comes first.
3. diagnosis: STEPS look at the Miss, one after another, until one finds something.
   line_without_effect (reading) does not; nor does known_mistake, as no Mistake of the
   solution (solutions) makes [[2.0, 7.0]]. The first that does is
   one_place_of_the_answer; it asks
4. search: own_slip() runs the likeliest 250 Mutants of the answer. What may be changed
   within a line is in rules; slips goes through a tree with them, and puts lines in or
   moves them; mutations puts the likeliest first and makes programs. The one with
   `:t + 1` gives what the solution gives, on all cases and on others (fresh_cases), not
   by an accident (accidents), and leaves no line dead. Where several lines could be
   changed, the solution must have one of them. What comes of it is
       Finding(Kind.OWN_SLIP, {"mutant": Mutant(was=":t", now=":t + 1", ...),
               "line": 2, "text": "return x[:, :t].mean(dim=1)...", "whole": True})
   Where nothing mends an answer, later steps look for an input that it changes, for a
   slip of the solution that gives the same, for two known mistakes at once, for what
   often goes wrong, and at last for what can be measured (measuring, probing, tracing).
5. telling (with telling_slips) makes one text of the Findings. At first it says where:
       ✗ 02.1 The present included: not yet. Your answer is right but for one place:
         an index is off by one in `x[:, :t]`. ...
   With tell=True, or after another miss at that place, also what belongs there; core
   remembers the last miss, and with tell=True searches behind a known mistake, too.

A checker may also raise Explained, with a sentence of its own.

Words: a *case* is a tuple of inputs. A *known mistake* is one that a person has
thought of, with a sentence; evidence tells whether an answer's text shows it. A *slip*
is one change of a program that nobody has listed; a *mutant* is the program with it, or
with all of the kind. A *symptom* says what wrong results look like, and not why. A
*Finding* is a Kind with its details. To add an exercise, see .github/CONTRIBUTING.md.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from minigpt.course.checks import search, telling
from minigpt.course.checks.comparing import compare
from minigpt.course.checks.evidence import undoes
from minigpt.course.checks.exercise import states as _exercises
from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.mutations import Mutant
from minigpt.course.checks.old_errors import Explained, NotAttempted, Problem
from minigpt.course.checks.reading import source, unreadable_cell
from minigpt.course.checks.rules import Change
from minigpt.course.checks.running import attempted, call
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import other_numbers

__all__ = ["Explained", "Problem", "call", "compare", "exercise", "progress"]
_checkers: dict[str, tuple] = {}  # number -> (module, name) of its checker
_missed: dict[str, tuple] = {}  # title -> (place, text of the answer) of the last miss


@dataclass(frozen=True)
class Result:
    """What a check returns; true when the exercise is solved.

    state: "open", "tried", "untouched" (a bug that is still there) or "solved".
    share: of the cases, those that are right, 0.0 to 1.0; 1.0 only when solved.
    findings: what is wrong.
    """

    title: str
    state: str
    message: str
    share: float
    findings: Sequence[Finding] = ()

    def __bool__(self) -> bool:
        return self.state == "solved"

    def __str__(self) -> str:
        mark = {"open": "○", "solved": "✓"}.get(self.state, "✗")
        return f"{mark} {self.title}: {self.message}"

    def __repr__(self) -> str:
        """The share in hundredths, which nbgrader reads; 1.0 only when solved."""
        return str(1.0 if self else round(min(float(self.share), 0.99), 2))

    def _ipython_display_(self) -> None:
        """Nothing, since the check has printed its message; nbgrader gets the share."""
        if _is_graded():
            raise NotImplementedError  # then IPython shows the repr


def exercise(title: str, solution: Solution | None = None) -> Callable:
    """Decorate a checker: `@exercise("02.1 The present included", MEAN_SO_FAR)`.

    The checker returns what it verified, or raises Explained. The check prints one
    message and returns a Result; with tell=True, it says what belongs where. When
    nbgrader runs it, a right answer is tried once more, with other numbers. The
    learner's answer may be anything: no exception gets out of the check, and torch's
    state stays as it was. Raises ValueError if another checker has the number.
    """
    number = title.split()[0]

    def decorate(checker: Any) -> Callable:
        place = checker.__module__, checker.__qualname__
        if (taken := _checkers.setdefault(number, place)) != place:  # no reloaded one
            raise ValueError(
                f"{title!r}: {'.'.join(taken)} has number {number} already."
            )
        _exercises[title] = "open"

        @functools.wraps(checker)
        def check(*answers: Any, tell: bool = False) -> Result:
            result = _result(title, checker, answers, tell or _is_graded())
            if result and _is_graded():
                with other_numbers():  # not those that an answer may have by heart
                    result = _result(title, checker, answers, tell=True)
            if _exercises[title] != "solved" and result.state in ("tried", "solved"):
                _exercises[title] = result.state
            print(result)
            return result

        vars(check).update(number=number, title=title, solution=solution)
        return check

    return decorate


def _is_graded() -> bool:
    """Whether nbgrader runs the notebook, and not a learner."""
    return "NBGRADER_EXECUTION" in os.environ


def _result(title: str, checker: Callable, answers: tuple, tell: bool) -> Result:
    """What the checker finds out about these answers."""
    try:
        message = f"right! Verified: {_verified(title, checker, answers)}"
    except NotAttempted:
        message = "not attempted yet: replace the `...`."
        return Result(title, "open", message, 0.0)
    except Problem as problem:
        message = _told(title, checker, answers, problem, tell)
        untouched = problem.findings[0].kind is Kind.UNTOUCHED
        state, share = ("untouched", 0.0) if untouched else ("tried", problem.share)
        return Result(title, state, message, share, tuple(problem.findings))
    _missed.pop(title, None)
    return Result(title, "solved", message, 1.0)


def _verified(title: str, checker: Callable, answers: tuple) -> str:
    """What the checker verified; raises a Problem or NotAttempted."""
    if broken := unreadable_cell(title.split()[0]):
        raise Problem(broken)
    if not all(map(attempted, answers)):
        raise NotAttempted
    try:
        with _settings_kept():
            torch.default_generator.manual_seed(0)
            return checker(*answers)
    except (Problem, NotAttempted):
        raise
    except Exception as error:  # the checker's, from what it was not made for
        what = {"wanted": (checker.__doc__ or "").partition("\n")[0]}
        what["error"] = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".: ")
        raise Problem(found(Kind.NOT_COMPARED, **what)) from None


def _told(
    title: str, checker: Any, answers: tuple, problem: Problem, tell: bool
) -> str:
    """What is said of a miss: at first where, and when asked also what belongs there.

    A second, other miss at the same place counts as asking.
    """
    main = next((f for f in problem.findings if "mutant" in f.details), None)
    text = source(answers[0]) if answers else ""
    if main:
        place, before = _missed.get(title, ("", text))
        tell = tell or place == main.place and text != before
        _missed[title] = main.place, text
    elif tell and problem.asked:
        with _settings_kept(), contextlib.suppress(Exception):
            more = search.own_slip(problem.asked)
            if more and _tells_more(more.details["mutant"], problem):
                problem.findings.append(more)
    message = telling.message(problem, tell)
    if main and not tell:
        message += f"\n  What belongs there is told by {checker.__name__}"
        message += "(…, tell=True), or when it is wrong in another way."
    return message


def _tells_more(mutant: Mutant, problem: Problem) -> bool:
    """Whether a change that mends an answer belongs to what was found already.

    A number may fit by an accident; and where a known mistake has named the cause, only
    that mistake's own edit is told, or what makes a line one of the right ones.
    """
    if any(f.kind is Kind.TWO_KNOWN for f in problem.findings):
        return False
    named = [f.details["mistake"] for f in problem.findings if "mistake" in f.details]
    lines = [line.strip() for line in problem.asked.text.splitlines()]
    change = mutant.was, mutant.now
    own = mutant.line in lines or all(undoes(*change, m.edits) for m in named)
    return own and mutant.change is not Change.NUMBER


@contextlib.contextmanager
def _settings_kept() -> Generator[None]:
    """Afterwards torch's randomness, threads and kind of float are as they were."""
    threads, kind = torch.get_num_threads(), torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            torch.set_default_dtype(kind)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)


def progress() -> None:
    """Print what has been solved since the kernel started, and what comes next."""
    if not _exercises:
        return print("Nothing has been checked yet: run the first check.")
    marks = {"open": "○ open", "tried": "◐ tried", "solved": "● solved"}
    for title, state in _exercises.items():
        print(f"{marks[state]:10}{title}")
    still_open = [title for title, state in _exercises.items() if state != "solved"]
    solved = len(_exercises) - len(still_open)
    print(f"{solved} of {len(_exercises)} solved.", end=" ")
    print(f"Next: {still_open[0]}" if still_open else "All done!")
