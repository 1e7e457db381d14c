"""Why is an answer wrong? An Attempt runs it, and `diagnosed` says what is the matter.

The order is: an exception, a known mistake, an argument that is never read, an input
that is changed, one slip in the answer, what the results look like. The smallest
failing case is always shown.
"""

import ast
import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from minigpt.course.checks import run, words
from minigpt.course.checks.results import (
    Miss,
    numbers,
    plain,
    same,
    same_kind,
    show,
    show_change,
    symptom,
)
from minigpt.course.checks.run import Endless, Outcome, Wrong, explained, silence
from minigpt.course.checks.slips import Slip, is_odd, slips
from minigpt.course.checks.source import (
    bare,
    is_skeleton,
    listing,
    surroundings,
    unread_argument,
    written,
)

CANDIDATES = 250  # changed programs that a search for a slip tries, at most
SEARCH = 2.0  # seconds of computing, at most, after which a search is given up
WAYS = 4  # ways to correct an answer that are compared
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
        return not self.touched(expected, got)

    def touched(self, expected: Outcome, got: Outcome) -> list[int]:
        """Which inputs the answer changes, though it shouldn't."""
        if self.exercise.changes:
            return []
        return [i for i in got.changed if i not in expected.changed]

    @property
    def patience(self) -> float:
        """Seconds after which a changed program surely hangs."""
        return min(PATIENCE, max(0.2, 10 * self.seconds))

    def gives(self, programs: tuple, seconds: float = 0.0, part: int = -1) -> float:
        """How surely some programs give what the answer gives, or one part of it.

        1 if they always do, errors included. Where only one of the two raises an error
        nothing can be compared: 0.5 if they agree more often than that, and on a wrong
        result. 0 if they give something else.
        """
        atol, agreed, raised, told = self.exercise.atol, 0, 0, False
        for inputs, expected, got in self.outcomes:
            made = self.exercise.run(programs, inputs, seconds)
            if part >= 0:
                made, expected, got = (o.part(part) for o in (made, expected, got))
            if made.agrees(got, atol):
                agreed += 1
                right = (
                    expected.agrees(got, atol)
                    if part >= 0
                    else (self.is_right(expected, got))
                )
                told |= not got.error and not right
            elif made.error or got.error:
                raised += 1
            else:
                return 0
        if not raised and (part < 0 or told):
            return 1
        return 0.5 if told and agreed > raised else 0

    def is_corrected_by(self, programs: tuple, more: Sequence[tuple]) -> bool:
        """Whether some programs give what is right, on all cases and on more."""
        every = [(o[0], o[1]) for o in (self.wrong[0], *self.outcomes)]
        for inputs, expected in every:
            if not self.is_right(
                expected, self.exercise.run(programs, inputs, self.patience)
            ):
                return False
        for inputs in more:
            expected = self.exercise.run(self.exercise.solution, inputs)
            if not self.is_right(
                expected, self.exercise.run(programs, inputs, self.patience)
            ):
                return False
        return True


# Why is it wrong?


def diagnosed(attempt: Attempt, tell: bool) -> tuple[str, str, float]:
    """(what is said of an attempt that is wrong, the state, the share)."""
    asked, text = attempt.exercise, listing(attempt.answers[0])[0]
    state, hint, slip = "tried", "", None
    with silence():
        mistake = known(attempt)
        if mistake:  # then a result says more than an error
            attempt.wrong.sort(key=lambda outcome: bool(outcome[2].error))
        inputs, expected, got = attempt.wrong[0]
        case = shown(attempt)
        if mistake and mistake.untouched and is_handed_out(text, mistake.text):
            state = "untouched"
        elif isinstance(got.error, Wrong) and got.error.untouched:
            state = "untouched"
        elif not mistake or mistake.untouched or tell:
            slip = own_slip(attempt)
    if mistake:
        says, hint = mistake.says, mistake.hint
    elif got.error:
        says, hint = of_error(got.error)
    elif name := unread_argument(text, asked.text):
        says, slip = words.UNREAD.format(name=name), slip if tell else None
    elif which := attempt.touched(expected, got):
        says = changed(asked, inputs, which[0])
    elif slip:
        says = ""
    else:
        with silence():
            says, like = looks_like(attempt), like_slip(attempt)
        if like:
            part = part_of(attempt)[0][1]
            says = of_like(like, tell)
            says = words.SEVERAL.format(part=part, says=says) if part else says
        hint = "" if like else asked.hint
    if slip:
        says += ("\n  " if says else "") + of_slip(attempt, slip, tell)
        case += "" if tell else f"\n  {words.TELL.format(call=with_tell(asked.call))}"
    lines = says + case + (f"\n  Hint: {hint}" if hint else "")
    return lines, state, attempt.share


def is_handed_out(text: str, program: str) -> bool:
    """Whether an answer is the program that a bug hunt hands out, as it was."""
    return not text or bare(text) == bare(program)


def with_tell(call: str) -> str:
    return f"{call[:-1]}, tell=True)"


def known(attempt: Attempt) -> Any:
    """The known mistake that accounts best for what the answer gave, the first of them.

    If there is none, one that accounts for a value, of several for the first wrong one.
    """
    if all(outcome[2].error for outcome in attempt.outcomes):
        return None
    atol = attempt.exercise.atol
    results = [
        o for o in attempt.wrong if not o[2].error and not o[1].agrees(o[2], atol)
    ]
    for part in sorted({-1, wrong_part(attempt)}):
        best, surest = None, 0.0
        for mistake in attempt.exercise.known:
            sure = 0.0
            if mistake.sign and part < 0 and 2 * len(results) > len(attempt.wrong):
                sure = float(all(has_sign(mistake.sign, *o) for o in results))
            elif mistake.programs:
                sure = attempt.gives(mistake.programs, part=part)
            if sure == 1:
                return mistake
            if sure > surest:
                best, surest = mistake, sure
        if best:
            return best
    return None


def has_sign(sign: Callable, inputs: tuple, expected: Outcome, got: Outcome) -> bool:
    try:
        return bool(sign(got.value, expected.value, *inputs))
    except Exception:  # a sign that can't be read is none
        return False


def of_error(error: BaseException) -> tuple[str, str]:
    """What is said of an error, and a hint."""
    if isinstance(error, Wrong):
        return error.says, error.hint
    if isinstance(error, Endless):
        return words.ENDLESS.format(seconds=run.SECONDS), ""
    return explained(error), ""


def name_of(asked: Any, which: int) -> str:
    return asked.inputs[which] if which < len(asked.inputs) else f"number {which}"


def changed(asked: Any, inputs: tuple, which: int) -> str:
    """That an answer changes one of its inputs."""
    name = name_of(asked, which)
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
    which, atol = attempt.touched(expected, got), attempt.exercise.atol
    if which and same(got.value, expected.value, atol):  # only an input is wrong
        name = name_of(attempt.exercise, which[0])
        return show_change(name, inputs[which[0]], got.inputs[which[0]])
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


def wrong_part(attempt: Attempt) -> int:
    """Of several values the number of the first wrong one; -1 if there is one value."""
    if all(outcome[2].error for outcome in attempt.wrong):
        return -1
    name = part_of(attempt)[0][1]
    return attempt.exercise.values.index(name) if name else -1


def looks_like(attempt: Attempt) -> str:
    """What can be seen of results whose cause nobody knows."""
    inputs, expected, got = attempt.wrong[0]
    asked, parts = attempt.exercise, part_of(attempt)
    if got.value is None:
        return words.NOTHING_RETURNED
    if parts[0][0].got is ... or parts[0][0].got is None and parts[0][1]:
        return words.MISSING_PART.format(part=parts[0][1] or "a value")
    again = attempt.exercise.run(attempt.answers, inputs)
    if got.agrees(got, asked.atol) and not again.agrees(got, asked.atol):
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
        found = list(corrections(attempt, place, text))
        if slip := chosen(found, attempt.exercise.text):
            return slip
    return None


def like_slip(attempt: Attempt) -> Slip | None:
    """A change of the solution that gives all that the answer gives."""
    asked, part = attempt.exercise, wrong_part(attempt)
    if asked.returns_answers or attempt.wrong[0][2].value is None:
        return None
    found = list(itertools.islice(slips(asked.shown, asked.shown), CANDIDATES))
    since = time.process_time()
    for slip in sorted(found, key=lambda slip: LIKELY.get(slip.kind, 1)):
        if time.process_time() - since > SEARCH:
            return None
        try:
            condition = re.search(r"[=<>]=|[<>]|\b(not|if|in)\b", slip.inside)
            odd = slip.now[:1] == "~" or slip.kind == "name" and condition
            if odd or not slip.before:
                continue
            made = asked.made(ast.unparse(slip.tree))
            if attempt.gives(made, attempt.patience, part):
                return slip
        except Exception:  # it doesn't even run
            continue
    return None


LIKELY = {"too much": 0, "line too many": 0, "number": 2, "name": 3}


def corrections(attempt: Attempt, place: int, text: str) -> Iterator[Slip]:
    """The changes of one of the answers that make it right, up to WAYS of them."""
    asked, found = attempt.exercise, 0
    goal = bare(asked.shown)
    more = asked.drawn(attempt.rest, attempt.seed + 1)
    since = time.process_time()
    for slip in itertools.islice(slips(text, goal), CANDIDATES):
        if time.process_time() - since > SEARCH or found == WAYS:
            return
        programs = list(attempt.answers)
        try:
            programs[place] = defined(attempt.answers[place], slip)
        except Exception:  # it doesn't even run
            continue
        if attempt.is_corrected_by(tuple(programs), more) and not is_odd(
            slip, text, goal
        ):
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


def of_slip(attempt: Attempt, slip: Slip, tell: bool) -> str:
    """What is said of a slip: where it is, and with tell the correction."""
    text, start = next(
        listing(a) for a in attempt.answers if slip.at <= listing(a)[0].count("\n") + 1
    )
    inside = slip.inside if len(slip.inside) < 60 or not slip.was else slip.was
    inside = slip.before if inside == slip.was else inside
    mine, right = (slip.was, slip.now) if slip.before else ("", slip.after)
    what = difference(slip.kind, mine, right, inside or slip.was)
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


def of_like(slip: Slip, tell: bool) -> str:
    """What is said of a slip of the solution that gives what the answer gives."""
    kind = OTHER_WAY.get(slip.kind, slip.kind)
    if not slip.after:
        says = words.WITHOUT.format(what=difference(kind, "", slip.before, ""))
        return says + (words.WITHOUT_TOLD.format(line=slip.before) if tell else "")
    inside = slip.inside.replace(slip.was, slip.now) if slip.was else slip.now
    what = difference(kind, slip.now, slip.was, inside)
    says = words.LIKE.format(line=slip.after, what=what)
    return says + (words.LIKE_TOLD.format(line=slip.before) if tell else "")


OTHER_WAY = {"too much": "missing", "missing": "too much"}
OTHER_WAY |= {"line too many": "line missing", "line missing": "line too many"}


def difference(kind: str, mine: str, right: str, inside: str) -> str:
    """What is wrong with a part of a program that should be another one."""
    other = mine not in right and right not in mine
    if kind in ("missing", "too much") and other and "dim=" in f"{mine}{right}":
        kind = "missing dimension"
    short, long = (right, mine) if kind == "too much" else (mine, right)
    more = long.replace(short, "…", 1) if short else long
    if more == long and short:  # what is between the beginning and the end of both
        start = os.path.commonprefix([long, short])
        end = os.path.commonprefix([long[len(start) :][::-1], short[::-1]])[::-1]
        more = long[len(start) : len(long) - len(end)].strip(", ") or long
    how = {"mine": mine, "inside": inside, "more": f"`{more}`"}
    if kind in ("missing", "line missing"):
        for pattern, says in words.LACKS:
            if re.search(pattern, more):
                if not mine:
                    return says.replace("`{mine}`", "something")
                where = "" if "{mine}" in says else " at `{mine}`"
                return (says + where).format(mine=mine)
    every = words.DIFFERENCES[kind]
    both = f"{mine} => {right}"
    return next(says for p, says in every if re.search(p, both)).format(**how)
