"""An exercise: a real function, its cases and known mistakes; and what a check says.

    @exercise("02.1 The present included", cases=[(TOY, 1), (TOY, 0)], hint="...")
    def mean_so_far(x: torch.Tensor, t: int) -> torch.Tensor:
        return x[:, : t + 1].mean(dim=1)

    mean_so_far.wrong("You divide by T, but there are fewer positions so far.",
                      ".mean(dim=1)", ".sum(dim=1) / x.shape[1]")

    check_mean_so_far = mean_so_far.check

A learner's answer runs beside the solution on the cases, and on others that are drawn.
Where they differ, `diagnosed` looks for the cause. Its order is: an exception, a known
mistake, an argument that is never read, an input that is changed, one slip in the
answer (slips.py), what the results look like (results.py); and the smallest failing
case is always shown.
"""

import ast
import inspect
import os
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from minigpt.course.checks import words
from minigpt.course.checks.errors import explained
from minigpt.course.checks.results import (
    Miss,
    describe,
    numbers,
    plain,
    same,
    same_kind,
    show,
    symptom,
)
from minigpt.course.checks.run import (
    SECONDS,
    Endless,
    Outcome,
    Wrong,
    in_float32,
    run,
    settings_kept,
    silence,
)
from minigpt.course.checks.slips import Slip, is_odd, slips
from minigpt.course.checks.source import (
    bare,
    broken_cell,
    displayed,
    is_skeleton,
    listing,
    surroundings,
    undecorated,
    unread_argument,
    written,
)

__all__ = ["Wrong", "exercise", "progress"]
states: dict[str, str] = {}  # title -> "open", "tried" or "solved", in their order
missed: dict[str, tuple] = {}  # title -> (place, text of the answer) of the last miss
CANDIDATES = 250  # changed programs that the search for a slip tries, at most
WAYS = 4  # ways to correct an answer that are compared
PATIENCE = 0.5  # seconds of computing, after which a changed program is stopped


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


class NotAttempted(Exception):
    """Raised where the answer is still a skeleton."""


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
    reward: a function of the same arguments that makes a sentence for a right answer.
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
        reward: Callable[..., str] | None = None,
        changes: bool = False,
        exact: bool = False,
        atol: float = 1e-5,
    ):
        self.title, self.number, self.program = title, title.split()[0], program
        self.cases, self.fresh, self.hint, self.work = cases, fresh, hint, work
        self.values, self.also, self.atol = values, also, atol
        self.returns_answers, self.reward = returns_answers, reward
        self.changes, self.exact = changes, exact
        self.name, self.text = program.__name__, undecorated(program)
        self.shown = "\n\n\n".join([self.text.strip(), *map(undecorated, also)])
        self.call = call or f"check_{self.name}({self.name})"
        self.mistakes: list[Mistake] = []
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
        elif edits:
            text = self.edited(*edits)
            programs = self.made(text)
        self.mistakes.append(Mistake(says, programs, text, sign, hint, untouched))

    @property
    def displayed(self) -> str:
        """The solution as the notebook shows it; a body where it returns the "
        "answers."""
        text = displayed(self.shown)
        if self.returns_answers:
            lines = text.splitlines()[1:-1]
            text = textwrap.dedent("\n".join(lines))
        return text

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

    def run(self, programs: tuple, inputs: tuple, seconds: float = SECONDS) -> Outcome:
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
            missed.pop(self.title, None)
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
            says += f" {self.reward(*rest)}" if self.reward else ""
            return says, "solved", 1.0
        return diagnosed(attempt, tell)


class Attempt:
    """An answer that was run on all cases.

    outcomes: (inputs, the solution's Outcome, the answer's). wrong: those of them that
    are wrong, the smallest first. drawn: how many cases were drawn.
    """

    def __init__(self, exercise: Exercise, answers: tuple, rest: tuple):
        self.exercise, self.answers, self.rest = exercise, answers, rest
        self.seed = 1_000_000 if os.environ.get("NBGRADER_EXECUTION") else 0
        cases: Any = exercise.cases
        every = [*(cases(*rest) if callable(cases) else cases)]
        fresh = exercise.drawn(rest, self.seed)
        self.drawn, self.outcomes, self.seconds = len(fresh), [], 0.0
        for inputs in [*every, *fresh]:
            expected = exercise.run(exercise.solution, inputs)
            if expected.error:
                raise expected.error
            since = time.process_time()
            got = exercise.run(answers, inputs)
            self.seconds = max(self.seconds, time.process_time() - since)
            self._refuse_skeletons(got)
            self.outcomes.append((inputs, expected, got))
            if isinstance(got.error, Endless):
                break
        self.wrong = [o for o in self.outcomes if not self.is_right(o[1], o[2])]
        self.share = 1 - len(self.wrong) / len(self.outcomes)
        if isinstance(self.outcomes[-1][2].error, Endless):
            self.share *= len(self.outcomes) / (len(every) + len(fresh))

    def _refuse_skeletons(self, got: Outcome) -> None:
        """Raise NotAttempted where an answer gives back its dots."""
        value, error = got.value, got.error
        several = value if isinstance(value, (tuple, list)) and value else [value]
        if (
            error is None
            and value is not None
            and not any(part is ... for part in several)
        ):
            return
        dots = any(map(is_skeleton, self.answers))
        if error and dots and ("ellipsis" in str(error) or "NoneType" in str(error)):
            raise NotAttempted
        if isinstance(error, NotImplementedError) and not str(error):
            raise NotAttempted
        if not error and (all(v is ... for v in several) or value is None and dots):
            raise NotAttempted

    def is_right(self, expected: Outcome, got: Outcome) -> bool:
        if not expected.agrees(got, self.exercise.atol):
            return False
        if self.exercise.exact and not same_kind(got.value, expected.value):
            return False
        return self.exercise.changes or not set(got.changed) - set(expected.changed)

    def gives(self, programs: tuple) -> bool:
        """Whether some programs give all that the answer gives."""
        made = (self.exercise.run(programs, inputs) for inputs, _, _ in self.outcomes)
        return all(
            m.agrees(o[2], self.exercise.atol) for m, o in zip(made, self.outcomes)
        )

    def is_mended_by(self, programs: tuple, more: Sequence[tuple]) -> bool:
        """Whether some programs give what is right, on all cases and on more."""
        every = [(o[0], o[1]) for o in (self.wrong[0], *self.outcomes)]
        for inputs, expected in every:
            if not self.is_right(
                expected, self.exercise.run(programs, inputs, PATIENCE)
            ):
                return False
        for inputs in more:
            expected = self.exercise.run(self.exercise.solution, inputs)
            if not self.is_right(
                expected, self.exercise.run(programs, inputs, PATIENCE)
            ):
                return False
        return True


# Why is it wrong?


def diagnosed(attempt: Attempt, tell: bool) -> tuple[str, str, float]:
    """(what is said of an attempt that is wrong, the state, the share)."""
    asked, text = attempt.exercise, listing(attempt.answers[0])[0]
    inputs, expected, got = attempt.wrong[0]
    case, state, hint = shown(attempt), "tried", ""
    with silence():
        mistake = known(attempt)
        slip = None
        if mistake and mistake.untouched and is_handed_out(text, mistake.text):
            state = "untouched"
        elif not mistake or mistake.untouched or tell:
            slip = own_slip(attempt)
    if mistake:
        says, hint = mistake.says, mistake.hint
    elif got.error:
        says, hint = of_error(got.error)
    elif name := unread_argument(text, asked.text):
        says, slip = words.UNREAD.format(name=name), slip if tell else None
    elif got.changed and not asked.changes:
        says = changed(asked, inputs, got.changed[0])
    elif slip:
        says = ""
    else:
        with silence():
            says = looks_like(attempt)
        hint = asked.hint
    if slip:
        says, tell = says + ("\n  " if says else ""), tell or told_before(attempt, slip)
        says += of_slip(attempt, slip, tell)
        case += "" if tell else f"\n  {words.TELL.format(call=with_tell(asked.call))}"
    lines = says + case + (f"\n  Hint: {hint}" if hint else "")
    return lines, state, attempt.share


def is_handed_out(text: str, program: str) -> bool:
    """Whether an answer is the program that a bug hunt hands out, as it was."""
    return not text or bare(text) == bare(program)


def with_tell(call: str) -> str:
    return f"{call[:-1]}, tell=True)"


def known(attempt: Attempt) -> Mistake | None:
    """The first known mistake that accounts for all that the answer gave."""
    for mistake in attempt.exercise.mistakes:
        if mistake.sign:
            if all(has_sign(mistake.sign, *outcome) for outcome in attempt.wrong):
                return mistake
        elif mistake.programs and not all(o[2].error for o in attempt.outcomes):
            if attempt.gives(mistake.programs):
                return mistake
    return None


def has_sign(sign: Callable, inputs: tuple, expected: Outcome, got: Outcome) -> bool:
    if got.error:
        return False
    try:
        return bool(sign(got.value, expected.value, *inputs))
    except Exception:  # a sign that can't be read is none
        return False


def of_error(error: BaseException) -> tuple[str, str]:
    """What is said of an error, and a hint."""
    if isinstance(error, Wrong):
        return error.says, error.hint
    if isinstance(error, Endless):
        return words.ENDLESS.format(seconds=SECONDS), ""
    return explained(error), ""


def changed(asked: Exercise, inputs: tuple, which: int) -> str:
    """That an answer changes one of its inputs."""
    name = asked.inputs[which] if which < len(asked.inputs) else f"number {which}"
    kind = "several" if isinstance(inputs[which], (list, tuple, dict)) else "tensor"
    if isinstance(inputs[which], torch.nn.Module):
        kind = "module"
    return words.CHANGED.format(name=name, how=words.HOW_TO_COPY[kind])


def shown(attempt: Attempt) -> str:
    """The smallest failing case."""
    inputs, expected, got = attempt.wrong[0]
    names = attempt.exercise.inputs
    if got.error:
        visible = [(n, x) for n, x in zip(names, inputs) if not callable(x)]
        return show_inputs(visible)
    miss, part = part_of(attempt)[0]
    return show(miss, names, part)


def show_inputs(named: Sequence[tuple[str, Any]]) -> str:
    return "".join(f"\n    {name} = {numbers(x)}" for name, x in named)


def part_of(attempt: Attempt) -> list[tuple[Miss, str]]:
    """Of the wrong results, of several values the first that is wrong, and its name."""
    misses = [Miss(i, e.value, g.value) for i, e, g in attempt.wrong if not g.error]
    first, values = misses[0], attempt.exercise.values
    if not values or not isinstance(first.got, (tuple, list)):
        return [(miss, "") for miss in misses]
    for place, name in enumerate(values):
        found = [
            (Miss(m.inputs, m.expected[place], m.got[place]), name)
            for m in misses
            if isinstance(m.got, (tuple, list)) and len(m.got) == len(values)
            if not same(m.got[place], m.expected[place], attempt.exercise.atol)
        ]
        if found:
            return found
    return [(miss, "") for miss in misses]


def looks_like(attempt: Attempt) -> str:
    """What can be seen of results whose cause nobody knows."""
    inputs, expected, got = attempt.wrong[0]
    asked, parts = attempt.exercise, part_of(attempt)
    if got.value is None:
        return words.NOTHING_RETURNED
    if parts[0][0].got is ... or parts[0][0].got is None and parts[0][1]:
        return words.MISSING_PART.format(part=parts[0][1] or "a value")
    if not attempt.exercise.run(attempt.answers, inputs).agrees(got, asked.atol):
        return words.KEPT
    if same(got.value, expected.value, asked.atol):
        one, other = plain(got.value), plain(expected.value)
        if one is not None and other is not None:
            return words.DTYPE.format(got=one.dtype, expected=other.dtype)
    says = symptom([miss for miss, _ in parts], asked.inputs, asked.atol)
    if not says:
        right = len(attempt.outcomes) - len(attempt.wrong)
        of = {"right": right, "of": len(attempt.outcomes)}
        says = words.SOME_RIGHT.format(**of) if right else words.RESULT
    return words.SEVERAL.format(part=parts[0][1], says=says) if parts[0][1] else says


# One slip in the answer


def own_slip(attempt: Attempt) -> Slip | None:
    """The one change of an answer that makes it right; None if there is no such one."""
    if isinstance(attempt.wrong[0][2].error, Endless | Wrong) and attempt.seconds > 1:
        return None
    for place, answer in enumerate(attempt.answers):
        text = listing(answer)[0]
        if not text or written(answer) is type(answer):
            continue
        found = list(mending(attempt, place, text))
        if slip := chosen(found, attempt.exercise.text):
            return slip
    return None


def mending(attempt: Attempt, place: int, text: str) -> Iterator[Slip]:
    """The changes of one of the answers that make it right, up to WAYS of them."""
    asked, found = attempt.exercise, 0
    goal = bare(asked.shown)
    more = asked.drawn(attempt.rest, attempt.seed + 1)
    budget = min(CANDIDATES, max(20, int(1.5 / max(attempt.seconds, 1e-6))))
    for tried, slip in enumerate(slips(text, goal)):
        if tried >= budget or found == WAYS:
            return
        programs = list(attempt.answers)
        try:
            programs[place] = defined(attempt.answers[place], slip)
        except Exception:  # it doesn't even run
            continue
        if attempt.is_mended_by(tuple(programs), more) and not is_odd(slip, text, goal):
            found += 1
            yield slip


def defined(answer: Any, slip: Slip) -> Any:
    """The learner's function or class with a change, among its own names."""
    before = surroundings(answer)
    space = dict(before)
    exec(compile(slip.tree, "<slip>", "exec"), space)
    name = written(answer).__name__
    made = [n for n in space if n != "__builtins__" and before.get(n) is not space[n]]
    return space[name if name in made else made[-1]]


def chosen(found: list[Slip], right: str) -> Slip | None:
    """Of some ways to correct an answer the one to tell; None if they contradict."""
    ours = {line.strip() for line in bare(right).splitlines()}
    found = [slip for slip in found if slip.at] or found  # in a line, if that will do
    if len({slip.at for slip in found}) > 1:
        found = [slip for slip in found if slip.after in ours]
    if len({slip.at for slip in found}) > 1:
        return None
    return min(found, key=lambda slip: len(slip.pairs), default=None)


def told_before(attempt: Attempt, slip: Slip) -> bool:
    """Whether the learner has missed at this place before, with another answer."""
    title, text = attempt.exercise.title, listing(attempt.answers[0])[0]
    here = slip.before or slip.kind
    place, before = missed.get(title, ("", text))
    missed[title] = here, text
    return place == here and text != before


def of_slip(attempt: Attempt, slip: Slip, tell: bool) -> str:
    """What is said of a slip: where it is, and with tell the correction."""
    text, start = next(
        listing(a) for a in attempt.answers if slip.at <= listing(a)[0].count("\n") + 1
    )
    inside = slip.inside if len(slip.inside) < 60 or slip.before == "" else slip.was
    what = words.SLIPS[slip.kind].format(was=slip.was, inside=inside or slip.was)
    says = words.SLIP.format(what=what)
    if slip.at and slip.before:
        line = text.splitlines()[slip.at - 1].strip()
        says += words.SLIP_LINE.format(line=start + slip.at - 1, text=line)
    if tell and slip.before and slip.after and len(slip.pairs) == 1:
        says += words.CORRECTED.format(text=slip.after)
    elif tell:
        program = "\n".join(
            f"    {line}" for line in bare(ast.unparse(slip.tree)).splitlines()
        )
        says += words.CORRECTED_ALL.format(text=program)
    return says


def progress() -> None:
    """Print what has been solved since the kernel started, and what comes next."""
    marks = {"open": "○ open", "tried": "◐ tried", "solved": "● solved"}
    for title, state in states.items():
        print(f"{marks[state]:10}{title}")
    still_open = [title for title, state in states.items() if state != "solved"]
    solved = len(states) - len(still_open)
    print(f"{solved} of {len(states)} solved.", end=" ")
    print(f"Next: {still_open[0]}" if still_open else "All done!")
