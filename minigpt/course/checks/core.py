"""The public face of the checks, and the way of an answer through the engine.

    check_mean_so_far(mean_so_far)                a check, decorated by exercise() here
              |
              v
    compare(answer, solution, cases)              comparing.py
              |
      run safely, on copies of the inputs         running.py; if it raises, errors.py
                                                    with what scene.py sees in the line
              |
      same values as the solution?  ── yes ──>    right! (if it left its inputs alone)
              | no
              v
      a line that does nothing                    reading.py
      a known mistake gives the same              solutions.py: written by hand; told
                                                    as a cause if the text shows it
      another result when called again            comparing.py
      what can be measured at once                measuring.py: a factor, a shape
      where the first nan comes from              tracing.py
        and, behind it,
      one place of the answer changed mends it    search.py, by the rules of
      one place of the solution changed             rules.py, put in by slips.py
        gives the same
      two known mistakes at once
      what looks suspicious in its text           reading.py
      which places are wrong, what they           measuring.py
        depend on
              |
              v
    Findings: kinds and places                    findings.py
              |
              v
    ✗ 02.1 The present included: not yet. ...     telling.py, in two steps: what is
                                                  wrong and where; then what belongs

The first step that accounts for all that is wrong is told. All steps ask the same
Question (question.py). To add an exercise, see the package's docstring.
"""

import contextlib
import functools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from minigpt.course.checks import search, telling
from minigpt.course.checks.comparing import compare
from minigpt.course.checks.errors import Explained, NotAttempted
from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.mutations import Mutant, undoes
from minigpt.course.checks.question import under_way
from minigpt.course.checks.reading import listing, unreadable_cell
from minigpt.course.checks.rules import Change
from minigpt.course.checks.running import attempted, call
from minigpt.course.checks.solutions import Mistake, Solution

__all__ = ["Explained", "Mistake", "NotAttempted", "Solution", "attempted", "call"]
__all__ += ["compare", "exercise", "progress"]
_exercises: dict[
    str, str
] = {}  # title -> "open", "tried" or "solved", in order of definition
_places: dict[str, tuple] = {}  # number -> (module, name) of its checker
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

    def points(self, most: float) -> float:
        """Of `most` points the share, in hundredths; all of them only when solved."""
        part = most if self else min(self.share * most, most - 0.01)
        return round(float(part), 2)

    def _ipython_display_(self) -> None:
        """Nothing: the check has printed its message already."""


def exercise(title: str, solution: Solution | None = None) -> Callable:
    """Decorate a checker: `@exercise("02.1 The present included", MEAN_SO_FAR)`.

    The checker returns what it verified, or raises Explained. The check prints one
    message and returns a Result; with tell=True, it says what belongs where. The
    learner's answer may be anything: no exception gets out of the check, and torch's
    state stays as it was. Raises ValueError if another checker has the number.
    """
    number = title.split()[0]

    def decorate(checker: Any) -> Callable:
        place = checker.__module__, checker.__qualname__
        if (taken := _places.setdefault(number, place)) != place:  # no reloaded one
            raise ValueError(
                f"{title!r}: {'.'.join(taken)} has number {number} already."
            )
        _exercises[title] = "open"

        @functools.wraps(checker)
        def check(*answers: Any, tell: bool = False) -> Result:
            result = _result(title, checker, answers, tell)
            if _exercises[title] != "solved" and result.state in ("tried", "solved"):
                _exercises[title] = result.state
            print(result)
            return result

        vars(check).update(number=number, title=title, solution=solution)
        return check

    return decorate


def _result(title: str, checker: Callable, answers: tuple, tell: bool) -> Result:
    """What the checker finds out about these answers."""
    try:
        message = f"right! Verified: {_verified(title, checker, answers)}"
    except NotAttempted:
        message = "not attempted yet: replace the `...`."
        return Result(title, "open", message, 0.0)
    except Explained as problem:
        message = _told(title, checker, answers, problem, tell)
        untouched = problem.findings[0].kind is Kind.UNTOUCHED
        state, share = ("untouched", 0.0) if untouched else ("tried", problem.share)
        return Result(title, state, message, share, tuple(problem.findings))
    _missed.pop(title, None)
    return Result(title, "solved", message, 1.0)


def _verified(title: str, checker: Callable, answers: tuple) -> str:
    """What the checker verified; raises Explained or NotAttempted."""
    if broken := unreadable_cell(title.split()[0]):
        raise Explained(broken)
    if not all(map(attempted, answers)):
        raise NotAttempted
    try:
        with _settings_kept(), under_way(checker, answers):
            torch.default_generator.manual_seed(0)
            return checker(*answers)
    except (Explained, NotAttempted):
        raise
    except Exception as error:  # the checker's, from what it was not made for
        what = {"wanted": (checker.__doc__ or "").splitlines()[0]}
        what["error"] = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".: ")
        raise Explained(found(Kind.NOT_COMPARED, **what)) from None


def _told(
    title: str, checker: Any, answers: tuple, problem: Explained, tell: bool
) -> str:
    """What is said of a miss: at first where, and when asked also what belongs there.

    A second, other miss at the same place counts as asking.
    """
    main = next((f for f in problem.findings if "mutant" in f.parts), None)
    text = listing(answers[0])[0] if answers else ""
    if main:
        place, before = _missed.get(title, ("", text))
        tell = tell or place == main.place and text != before
        _missed[title] = main.place, text
    elif tell and problem.asked:
        with _settings_kept(), under_way(checker, answers):
            more = search.own_slip(problem.asked, problem.asked.wrong[:1])
        ours = getattr(problem.asked.solution, "text", "").splitlines()
        right = [line.strip() for line in ours]
        if more and _tells_more(more.parts["mutant"], problem.findings, right):
            problem.findings.append(more)
    message = telling.message(problem, tell)
    if main and not tell:
        message += f"\n  What belongs there is told by {checker.__name__}"
        message += "(…, tell=True), or when it is wrong in another way."
    return message


def _tells_more(
    mutant: Mutant, findings: Sequence[Finding], right: Sequence[str]
) -> bool:
    """Whether a change that mends an answer belongs to what was found already.

    A number may fit by an accident; and where a known mistake has named the cause, only
    that mistake's own edit is told, or what makes a line one of the right ones.
    """
    if any(f.kind is Kind.TWO_KNOWN for f in findings):
        return False
    named = [f.parts["mistake"] for f in findings if "mistake" in f.parts]
    own = mutant.line in right or all(undoes(mutant, m.edits) for m in named)
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
    marks = {"open": "○ open", "tried": "◐ tried", "solved": "● solved"}
    for title, state in _exercises.items():
        print(f"{marks[state]:10}{title}")
    still_open = [title for title, state in _exercises.items() if state != "solved"]
    solved = len(_exercises) - len(still_open)
    print(f"{solved} of {len(_exercises)} solved.", end=" ")
    print(f"Next: {still_open[0]}" if still_open else "All done!")
