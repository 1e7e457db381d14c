'''An exercise: a real function, its cases and known mistakes; and what a check says.

    @exercise("02.1 The present included", cases=[(TOY, 1), (TOY, 0)], hint="...")
    def mean_so_far(x: torch.Tensor, t: int) -> torch.Tensor:
        return x[:, : t + 1].mean(dim=1)

    mean_so_far.mistakes("""
    You divide by T, but there are only t + 1 positions so far.
        .mean(dim=1) -> .sum(dim=1) / x.shape[1]
    """)
    check_mean_so_far = mean_so_far.check

A learner's answer runs beside the solution on the cases, and on others that are drawn
(run.py). Where they differ, diagnosis.py looks for the cause, with the help of slips.py
(one change in the answer). All that is said is in words.py, but for single exercises
and slips.
'''

import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from minigpt.course.checks import words
from minigpt.course.checks.diagnosis import Attempt, NotAttempted, diagnosed
from minigpt.course.checks.results import describe
from minigpt.course.checks.run import Outcome, Wrong, in_float32, run, settings_kept
from minigpt.course.checks.source import broken_cell, surroundings, undecorated

__all__ = ["Wrong", "exercise", "progress"]
states: dict[str, str] = {}  # title -> "open", "tried" or "solved", in their order


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
        if os.environ.get("NBGRADER_EXECUTION"):
            raise NotImplementedError  # then IPython shows the repr


class Mistake(NamedTuple):
    """A known mistake: what is said of it, and a program or a sign that shows it."""

    says: str
    programs: tuple | None
    text: str
    sign: Callable | None
    hint: str
    untouched: bool


def exercise(title: str, **how: Any) -> Callable[[Any], "Exercise"]:
    """Decorate a solution; see Exercise for what may be said of it."""
    return lambda program: Exercise(title, program, **how)


class Exercise:
    """A solution with its cases and known mistakes; called, it is the solution.

    title: as in the notebook, "02.1 The present included".
    cases: tuples of inputs, tiny ones in whole numbers first. A function, if they need
        what else the learner hands to the check: cases(model, data).
    fresh: a function that draws more cases with torch's random numbers, from the same
        arguments; other numbers are drawn for homework.
    hint: shown where no cause is found.
    work: work(answer, *inputs) is compared, in place of answer(*inputs). It may raise
        Wrong with a sentence.
    values: the names of the values, where several are returned as a tuple.
    also: other functions that the learner writes and hands to the check.
    call: how the learner calls the check, if not check_name(name).
    returns_answers: whether the learner hands in what the function returns.
    changes: whether an answer may change its inputs. exact: whether whole numbers must
        be whole numbers, floats floats. atol: the tolerance.
    """

    def __init__(
        self,
        title: str,
        program: Any,
        *,
        cases: Sequence[tuple] | Callable[..., Sequence[tuple]],
        fresh: Callable[..., Sequence[tuple]] | None = None,
        hint: str = "",
        work: Callable | None = None,
        values: Sequence[str] = (),
        also: Sequence[Any] = (),
        call: str = "",
        returns_answers: bool = False,
        changes: bool = False,
        exact: bool = False,
        atol: float = 1e-5,
    ):
        self.title, self.number, self.program = title, title.split()[0], program
        self.cases, self.fresh, self.hint, self.work = cases, fresh, hint, work
        self.values, self.also, self.atol = values, also, atol
        self.returns_answers, self.changes, self.exact = returns_answers, changes, exact
        self.name, self.text = program.__name__, undecorated(program)
        self.shown = "\n\n\n".join([self.text.strip(), *map(undecorated, also)])
        self.call = call or f"check_{self.name}({self.name})"
        self.known: list[Mistake] = []
        states[title] = "open"
        self.check = self._checker()

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self.program(*inputs, **named)

    def wrong(
        self,
        says: str,
        *edits: Any,
        sign: Callable | None = None,
        hint: str = "",
        untouched: bool = False,
    ) -> None:
        """Add a known mistake: the sentence for whoever makes it, and how it is made.

        edits: pairs old, new that make it in the solution's text; or a wrong function.
        sign: sign(got, expected, *inputs), where no program can stand for all that make
        it; true of all results that are wrong. untouched: it is the program that a bug
        hunt hands out. Raises ValueError if an edit is not in the solution.
        """
        programs, text = None, ""
        if edits and callable(edits[0]):
            programs = (edits[0], *self.solution[1:])
            if untouched:
                text = undecorated(edits[0]).replace(edits[0].__name__, self.name)
        elif edits:
            text = self.edited(*edits)
            programs = self.made(text)
        self.known.append(Mistake(says, programs, text, sign, hint, untouched))

    def mistakes(self, table: str) -> None:
        """Add known mistakes from a text: sentences, with their edits indented below.

            You divide by T, but there are only t + 1 positions so far.
                .mean(dim=1) -> .sum(dim=1) / x.shape[1]

        All edits below a sentence make the mistake together; those below a line that
        says "or" make it in another way. What is indented further goes on with the
        edit, as it would in the solution. A line that begins with "Hint:" is the
        mistake's own hint. The program that a bug hunt hands out is the one of which
        it's said that "The bug is still there".
        """
        for block in re.findall(r"((?:\S.*\n)+)((?: {4}.*\n?)+)", table):
            says, hint, programs = block[0].replace("\n", " ").strip(), "", [[]]
            for line in re.split(r"\n {4}(?! )", "\n" + block[1].rstrip())[1:]:
                old, _, new = line.replace("\n    ", "\n").partition("->")
                if line.startswith("Hint: "):
                    hint = " ".join(line.split()[1:])
                elif line == "or":
                    programs.append([])
                else:
                    programs[-1] += [old.rstrip(), new.strip()]
            for program in programs:
                untouched = says.startswith("The bug is still there")
                self.wrong(says, *program, hint=hint, untouched=untouched)

    def edited(self, *edits: str) -> str:
        """The solution's text with old, new, old, new, ... replaced."""
        text = self.shown
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            if old not in text:
                raise ValueError(f"{self.title}: {old!r} is not in\n{text}")
            text = text.replace(old, new)
        return text

    def made(self, text: str) -> tuple:
        """The programs that a text like the solution's defines."""
        space = dict(surroundings(self.program))
        exec(compile(text, f"<{self.number}>", "exec"), space)
        if self.returns_answers:
            return space[self.name]()
        return tuple(space[p.__name__] for p in (self.program, *self.also))

    @property
    def solution(self) -> tuple:
        """What a learner would hand in."""
        return self.program() if self.returns_answers else (self.program, *self.also)

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs."""
        called = self.work or self.program
        if inspect.isclass(called):
            return []
        names = list(inspect.signature(called).parameters)
        return names[len(self.solution) if self.work else 0 :]

    def run(self, programs: tuple, inputs: tuple, seconds: float = 0.0) -> Outcome:
        """What some programs make of some inputs."""
        work, first = self.work, programs[0]
        call = (lambda *given: work(*programs, *given)) if work else first
        return run(call, inputs, seconds)

    def drawn(self, given: tuple, seed: int) -> list[tuple]:
        """Fresh cases, drawn with this seed."""
        torch.default_generator.manual_seed(seed)
        return list(self.fresh(*given)) if self.fresh else []

    def _checker(self) -> Callable[..., Result]:
        def check(*given: Any, tell: bool = False) -> Result:
            with settings_kept():
                result = self._result(given, tell)
            if states[self.title] != "solved" and result.state in ("tried", "solved"):
                states[self.title] = result.state
            print(result)
            return result

        check.__name__ = self.call.partition("(")[0]
        check.__doc__ = inspect.getdoc(self.program)
        vars(check).update(exercise=self, number=self.number, title=self.title)
        return check

    def _result(self, given: tuple, tell: bool) -> Result:
        try:
            says, state, share = self._judged(given, tell)
        except NotAttempted:
            return Result(self.title, "open", words.NOT_ATTEMPTED, 0.0)
        except Exception as error:  # from an answer that the check was not made for
            what = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".: ")
            wanted = (inspect.getdoc(self.program) or self.name).splitlines()[0]
            says = words.NOT_COMPARED.format(error=what, wanted=wanted.rstrip("."))
            state, share = "tried", 0.0
        if state == "solved":
            return Result(self.title, state, says, share)
        return Result(self.title, state, words.NOT_YET.format(says=says), share)

    def _judged(self, given: tuple, tell: bool) -> tuple[str, str, float]:
        """(what is said, the state, the share)."""
        if error := broken_cell(self.number):
            text = (error.text or "").strip()
            how = {"error": error.msg, "line": error.lineno or 0, "text": text}
            return words.SYNTAX.format(**how), "tried", 0.0
        count = len(self.solution)
        answers, rest = given[:count], tuple(map(in_float32, given[count:]))
        if len(answers) < count or any(a is ... or a is None for a in answers):
            raise NotAttempted
        if not callable(answers[0]) and not self.returns_answers:
            what = describe(answers[0])
            return words.NO_FUNCTION.format(what=what), "tried", 0.0
        attempt = Attempt(self, answers, rest)
        if not attempt.wrong:
            drawn = words.DRAWN.format(count=attempt.drawn) if attempt.drawn else ""
            count = len(attempt.outcomes)
            says = words.RIGHT.format(count=count, drawn=drawn)
            return says, "solved", 1.0
        return diagnosed(attempt, tell)


def progress() -> None:
    """Print what has been solved since the kernel started, and what comes next."""
    marks = {"open": "○ open", "tried": "◐ tried", "solved": "● solved"}
    for title, state in states.items():
        print(f"{marks[state]:10}{title}")
    still_open = [title for title, state in states.items() if state != "solved"]
    solved = len(states) - len(still_open)
    print(f"{solved} of {len(states)} solved.", end=" ")
    print(f"Next: {still_open[0]}" if still_open else "All done!")
