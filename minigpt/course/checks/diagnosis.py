"""Why is an answer wrong? An Attempt runs it, and `diagnosed` says what is the matter.

ORDER lists what is looked for, one after the other; the first that holds is said. The
smallest failing case is always shown below it.
"""

import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from minigpt.course.checks import run, words
from minigpt.course.checks.results import (
    aligned,
    numbers,
    place,
    plain,
    same,
    same_kind,
    symptom,
)
from minigpt.course.checks.run import Endless, Outcome, Wrong, explained, silence
from minigpt.course.checks.slips import Slip, is_odd, slips
from minigpt.course.checks.source import (
    bare,
    idle_line,
    is_skeleton,
    listing,
    surroundings,
    unread_argument,
    written,
)

CANDIDATES = 300  # changed programs that a search for a slip tries, at most
SEARCH = 2.0  # seconds of computing, after which a check searches no longer
PATIENCE = 0.5  # seconds of computing, at most, after which a change is stopped


class NotAttempted(Exception):
    """Raised where the answer is still a skeleton."""


class Attempt:
    """An answer that was run on all cases.

    outcomes: (inputs, the solution's Outcome, the answer's). wrong: those of them that
    are wrong, the smallest first. drawn: how many cases were drawn.
    """

    def __init__(self, exercise: Any, answers: tuple, rest: tuple):
        self.exercise, self.answers, self.rest = exercise, answers, rest
        self.until = time.process_time() + SEARCH
        self.seed = 1_000_000 if os.environ.get("NBGRADER_EXECUTION") else 0
        cases: Any = exercise.cases
        every = [*(cases(*rest) if callable(cases) else cases)]
        fresh = exercise.drawn(rest, self.seed)
        self.drawn, self.outcomes, self.seconds = len(fresh), [], 0.0
        for inputs in [*every, *fresh]:
            expected = self.expected(inputs)
            since = time.process_time()
            got = exercise.run(answers, inputs)
            self.seconds = max(self.seconds, time.process_time() - since)
            if gives_dots(answers, got):
                raise NotAttempted
            self.outcomes.append((inputs, expected, got))
            if isinstance(got.error, Endless):
                break
        self.wrong = [o for o in self.outcomes if not self.is_right(o[1], o[2])]
        self.share = 1 - len(self.wrong) / len(self.outcomes)
        if isinstance(self.outcomes[-1][2].error, Endless):
            self.share *= len(self.outcomes) / (len(every) + len(fresh))
        self.until = max(self.until, time.process_time() + 0.25 * SEARCH)
        self.patience = min(PATIENCE, max(0.2, 10 * self.seconds))

    def expected(self, inputs: tuple) -> Outcome:
        outcome = self.exercise.run(self.exercise.solution, inputs)
        if outcome.error:
            raise outcome.error
        return outcome

    @functools.cached_property
    def more(self) -> list[tuple[tuple, Outcome]]:
        """Other cases, on which a correction has to be right, too."""
        drawn = self.exercise.drawn(self.rest, self.seed + 1)
        return [(inputs, self.expected(inputs)) for inputs in drawn]

    @property
    def is_late(self) -> bool:
        """Whether the time for searching is over."""
        return time.process_time() > self.until

    def is_right(self, expected: Outcome, got: Outcome) -> bool:
        if not expected.agrees(got, self.exercise.atol):
            return False
        if self.exercise.exact and not same_kind(got.value, expected.value):
            return False
        return not self.touched(expected, got)

    def touched(self, expected: Outcome, got: Outcome) -> list[int]:
        """Which inputs the answer changes, though it shouldn't."""
        if self.exercise.changes:
            return []
        return [i for i in got.changed if i not in expected.changed]

    def gives(self, programs: tuple, seconds: float = 0.0, part: int = -1) -> float:
        """How surely some programs give what the answer gives, or one part of it.

        1 if they always do, errors included. Where only one of the two raises an error
        nothing can be compared: 0.5 if they agree more often than that, and on a wrong
        result. 0 if they give something else.
        """
        atol, agreed, raised, told = self.exercise.atol, 0, 0, False
        for inputs, expected, got in self.outcomes:
            made = self.exercise.run(programs, inputs, seconds)
            right = self.is_right(expected, got)
            if part >= 0:
                made, expected, got = (o.part(part) for o in (made, expected, got))
                right = expected.agrees(got, atol)
            if made.agrees(got, atol):
                agreed += 1
                told |= not got.error and not right
            elif made.error or got.error:
                raised += 1
            else:
                return 0
        if not raised and (part < 0 or told):
            return 1
        return 0.5 if told and agreed > raised else 0

    def is_corrected_by(self, programs: tuple) -> bool:
        """Whether some programs give what is right, on all cases and on more."""
        every = [o[:2] for o in (*self.wrong[:1], *self.outcomes)]
        return self.are_right(programs, every) and self.are_right(programs, self.more)

    def are_right(self, programs: tuple, cases: Sequence[tuple]) -> bool:
        return all(
            self.is_right(right, self.exercise.run(programs, inputs, self.patience))
            for inputs, right in cases
        )

    @functools.cached_property
    def part(self) -> int:
        """Of several values the number of the first wrong one; -1 for a single one."""
        count, atol = len(self.exercise.values), self.exercise.atol
        for i in range(count):
            for _, right, got in self.wrong:
                if isinstance(got.value, (tuple, list)) and len(got.value) == count:
                    if not same(got.value[i], right.value[i], atol):
                        return i
        return -1

    @property
    def misses(self) -> list[tuple[tuple, Any, Any]]:
        """(inputs, expected, got) of the wrong results, or of the part that's wrong."""
        wrong = [outcome for outcome in self.wrong if not outcome[2].error]
        if self.part >= 0:
            pairs = [(i, e.part(self.part), g.part(self.part)) for i, e, g in wrong]
            atol = self.exercise.atol
            wrong = [o for o in pairs if not o[2].error and not o[1].agrees(o[2], atol)]
        return [(inputs, right.value, got.value) for inputs, right, got in wrong]

    @functools.cached_property
    def slip(self) -> Slip | None:
        """The one change of the answer that makes it right, if there is one."""
        if isinstance(self.wrong[0][2].error, Endless | Wrong) and self.seconds > 1:
            return None
        for i, answer in enumerate(self.answers):
            text = listing(answer)[0]
            if text and written(answer) is not type(answer):
                found = list(corrections(self, i, text))
                if slip := chosen(found, self.exercise.text):
                    return slip
        return None


def gives_dots(answers: tuple, got: Outcome) -> bool:
    """Whether answers that still have their dots gave nothing else."""
    value, error = got.value, got.error
    if isinstance(error, NotImplementedError):
        return not str(error)
    parts = value if isinstance(value, (tuple, list)) and value else [value]
    if not error and value is not None:
        return all(part is ... for part in parts)
    if error and "ellipsis" not in str(error) and "NoneType" not in str(error):
        return False
    return any(map(is_skeleton, answers))


# Why is it wrong?


class Finding(NamedTuple):
    """What is said of a cause, with its hint.

    enough: whether one slip is not looked for, unless the learner asks to be told.
    untouched: whether it's the bug of a bug hunt, as it was.
    """

    says: str
    hint: str = ""
    enough: bool = False
    untouched: bool = False


def diagnosed(attempt: Attempt, tell: bool) -> tuple[str, str, float]:
    """(what is said of an attempt that is wrong, the state, the share)."""
    asked, slip = attempt.exercise, None
    with silence():
        found = next(filter(None, (look(attempt, tell) for look in ORDER)))
        if not found.untouched and (tell or not found.enough):
            slip = attempt.slip
    says, case = found.says, shown(attempt)
    if slip:
        says += ("\n  " if says else "") + of_slip(attempt, slip, tell)
        if not tell:
            case += f"\n  {words.TELL.format(call=f'{asked.call[:-1]}, tell=True)')}"
    says += case + (f"\n  Hint: {found.hint}" if found.hint else "")
    return says, "untouched" if found.untouched else "tried", attempt.share


def an_idle_line(attempt: Attempt, tell: bool) -> Finding | None:
    line = idle_line(listing(attempt.answers[0])[0])
    return Finding(words.IDLE.format(line=line), enough=True) if line else None


def a_known_mistake(attempt: Attempt, tell: bool) -> Finding | None:
    """The known mistake that accounts best for what the answer gave, the first of them.

    If there is none, one that accounts for a value, of several for the first wrong one.
    """
    if all(outcome[2].error for outcome in attempt.outcomes):
        return None
    for part in sorted({-1, attempt.part}):
        best, surest = None, 0.0
        for mistake in attempt.exercise.known:
            if surest < 1 and (sure := how_surely(attempt, mistake, part)) > surest:
                best, surest = mistake, sure
        if best:
            # a result says more than an error
            attempt.wrong.sort(key=lambda outcome: bool(outcome[2].error))
            text = listing(attempt.answers[0])[0]
            as_it_was = not text or bare(text) == bare(best.text)
            untouched = best.untouched and as_it_was
            return Finding(best.says, best.hint, not best.untouched, untouched)
    return None


def how_surely(attempt: Attempt, mistake: Any, part: int) -> float:
    """How surely a known mistake accounts for an attempt: 0, 0.5 or 1."""
    if mistake.programs:
        return attempt.gives(mistake.programs, part=part)
    atol = attempt.exercise.atol
    results = [
        o for o in attempt.wrong if not o[2].error and not o[1].agrees(o[2], atol)
    ]
    if part >= 0 or 2 * len(results) <= len(attempt.wrong):
        return 0
    try:
        return all(mistake.sign(got.value, e.value, *i) for i, e, got in results)
    except Exception:  # a sign that can't be read is none
        return 0


def an_error(attempt: Attempt, tell: bool) -> Finding | None:
    """What the exercise says itself, or what an exception probably means."""
    error = attempt.wrong[0][2].error
    if isinstance(error, Wrong):
        return Finding(error.says, error.hint, untouched=error.untouched)
    if isinstance(error, Endless):
        return Finding(words.ENDLESS.format(seconds=run.SECONDS))
    return Finding(explained(error)) if error else None


def an_unread_argument(attempt: Attempt, tell: bool) -> Finding | None:
    text = listing(attempt.answers[0])[0]
    name = unread_argument(text, attempt.exercise.text)
    return Finding(words.UNREAD.format(name=name), enough=True) if name else None


def a_changed_input(attempt: Attempt, tell: bool) -> Finding | None:
    inputs, expected, got = attempt.wrong[0]
    if not (which := attempt.touched(expected, got)):
        return None
    value, name = inputs[which[0]], name_of(attempt, which[0])
    how = words.COPY_TENSOR if isinstance(value, torch.Tensor) else words.COPY
    return Finding(words.CHANGED.format(name=name, how=how))


def nothing_returned(attempt: Attempt, tell: bool) -> Finding | None:
    if attempt.wrong[0][2].value is None:
        return Finding(words.NOTHING_RETURNED)
    value = attempt.misses[0][2]
    if attempt.part >= 0 and (value is ... or value is None):
        part = attempt.exercise.values[attempt.part]
        return Finding(words.MISSING_PART.format(part=part))
    return None


def one_slip(attempt: Attempt, tell: bool) -> Finding | None:
    return Finding("") if attempt.slip else None


def a_slip_of_the_solution(attempt: Attempt, tell: bool) -> Finding | None:
    """A change of the solution that gives all that the answer gives."""
    asked = attempt.exercise
    if asked.returns_answers:
        return None
    found = slips(asked.shown, asked.shown)[:CANDIDATES]
    for slip in sorted(found, key=lambda slip: "too much" not in slip.says):
        if attempt.is_late:
            return None
        if not slip.after or slip.after.isidentifier() or slip.now[:1] == "~":
            continue
        try:
            made = asked.made(slip.program)
        except Exception:  # it doesn't even run
            continue
        if attempt.gives(made, attempt.patience, attempt.part):
            says = words.LIKE.format(line=slip.after, what=slip.said_of_the_new())
            says += words.LIKE_TOLD.format(line=slip.before) if tell else ""
            return Finding(of_part(attempt, says), enough=True)
    return None


def what_it_looks_like(attempt: Attempt, tell: bool) -> Finding:
    """What can be seen of a result whose cause nobody knows."""
    asked, (_, expected, got) = attempt.exercise, attempt.wrong[0]
    one, other = plain(got.value), plain(expected.value)
    if one is not None and other is not None and same(one, other, asked.atol):
        says = words.DTYPE.format(got=one.dtype, expected=other.dtype)
    else:
        seen = [symptom(got, right) for _, right, got in attempt.misses]
        right = len(attempt.outcomes) - len(attempt.wrong)
        says = words.SOME_RIGHT.format(right=right, of=len(attempt.outcomes))
        says = seen[0] if all(seen) else says if right else words.RESULT
    return Finding(of_part(attempt, says), asked.hint, enough=True)


ORDER: Sequence[Callable[[Attempt, bool], Finding | None]] = (
    an_idle_line,
    a_known_mistake,
    an_error,
    an_unread_argument,
    a_changed_input,
    nothing_returned,
    one_slip,
    a_slip_of_the_solution,
    what_it_looks_like,
)


# The smallest failing case


def name_of(attempt: Attempt, which: int) -> str:
    names = attempt.exercise.inputs
    return names[which] if which < len(names) else f"number {which}"


def of_part(attempt: Attempt, says: str) -> str:
    """What is said, of the value that is meant."""
    if attempt.part < 0:
        return says
    return words.SEVERAL.format(part=attempt.exercise.values[attempt.part], says=says)


def shown(attempt: Attempt) -> str:
    """The inputs by name, what was expected, what came out, and where they differ."""
    asked, (inputs, expected, got) = attempt.exercise, attempt.wrong[0]
    which = attempt.touched(expected, got)
    if which and same(got.value, expected.value, asked.atol):  # only an input is wrong
        name = name_of(attempt, which[0])
        return aligned(shown_change(name, inputs[which[0]], got.inputs[which[0]]))
    if not got.error:
        inputs, right, mine = attempt.misses[0]
    named = [(name_of(attempt, i), x) for i, x in enumerate(inputs)]
    lines = [(name, numbers(x)) for name, x in named if not callable(x)]
    if got.error:
        return aligned(lines)
    part = asked.values[attempt.part] if attempt.part >= 0 else ""
    of, digits = f" {part}" if 0 < len(part) < 20 else "", 4
    while digits < 10 and numbers(right, digits) == numbers(mine, digits):
        digits += 3
    lines.append((f"expected{of}", numbers(right, digits)))
    lines.append((f"your{of or ' result'}", numbers(mine, digits)))
    if where := place(mine, right):
        lines.append(("they differ", where))
    return aligned(lines)


def shown_change(name: str, before: Any, after: Any) -> list[tuple[str, str]]:
    """An input before and after; of several tensors the first that is different."""
    if isinstance(before, torch.nn.Module):
        before, after = before.state_dict(), after.state_dict()
    if isinstance(before, dict) and after.keys() == before.keys():
        key = next(k for k in before if not same(after[k], before[k], atol=0.0))
        return shown_change(f"{name}, {key}", before[key], after[key])
    digits = 10 if numbers(before) == numbers(after) else 4
    texts = numbers(before, digits), numbers(after, digits)
    if texts[0] == texts[1]:  # too large to be shown
        return [(name, place(after, before, ("before", "after")))]
    return [(f"{name} before", texts[0]), (f"{name} after", texts[1])]


# One slip in the answer


def corrections(attempt: Attempt, which: int, text: str) -> Iterator[Slip]:
    """The changes of one of the answers that make it right, up to six of them."""
    goal, found, last = bare(attempt.exercise.shown), 0, CANDIDATES
    for i, slip in enumerate(slips(text, goal)):
        if i > last or found == 6 or attempt.is_late:
            return
        programs = list(attempt.answers)
        try:
            programs[which] = defined(attempt.answers[which], slip)
        except Exception:  # it doesn't even run
            continue
        if attempt.is_corrected_by(tuple(programs)) and not is_odd(slip, text, goal):
            found, last = found + 1, min(last, 2 * i + 20)  # what's as likely, too
            yield slip


def defined(answer: Any, slip: Slip) -> Any:
    """The learner's function or class with a change, among its own names."""
    before = surroundings(answer)
    space = dict(before)
    exec(compile(slip.program, "<slip>", "exec"), space)
    name = written(answer).__name__
    made = [n for n in space if n != "__builtins__" and before.get(n) is not space[n]]
    return space[name if name in made else made[-1]]


def chosen(found: list[Slip], right: str) -> Slip | None:
    """Of some ways to correct an answer the one to tell; None if they contradict."""
    if len({slip.at for slip in found}) > 1:  # then only what the solution says, too
        ours = {line.strip() for line in bare(right).splitlines()}
        found = [slip for slip in found if slip.after in ours]
    if len({slip.at for slip in found}) > 1:
        return None

    def effort(slip: Slip) -> tuple[int, bool]:  # a change rather than an addition
        return len(slip.changes), len(slip.after) > len(slip.before) + 4

    return min(found, key=effort, default=None)


def of_slip(attempt: Attempt, slip: Slip, tell: bool) -> str:
    """What is said of a slip: where it is, and with tell the correction."""
    texts = map(listing, attempt.answers)
    text, start = next(t for t in texts if slip.at <= t[0].count("\n") + 1)
    line = text.splitlines()[slip.at - 1].strip()
    says = words.SLIP.format(what=slip.said(), line=start + slip.at - 1, text=line)
    if tell and slip.after and len(slip.changes) == 1:
        says += words.CORRECTED.format(text=slip.after)
    elif tell:
        lines = bare(slip.program).splitlines()
        says += words.CORRECTED_ALL + "".join(f"\n    {line}" for line in lines)
    return says
