"""What is wrong with an answer that misses: steps, the surest first.

Each step looks at the Miss and gives what it has found, or []. The first one that has
found something is told, and no step after it is taken. STEPS, below, is their order.
"""

import copy
import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from minigpt.course.checks import measuring, probing, search, tracing
from minigpt.course.checks.evidence import shows
from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.old_errors import Problem
from minigpt.course.checks.question import Question
from minigpt.course.checks.reading import (
    lost,
    shared_default,
    source,
    suspicious,
    unread_line,
)
from minigpt.course.checks.running import attempted, pass_over, run, silence
from minigpt.course.checks.solutions import Mistake
from minigpt.course.checks.values import Difference, as_tensor, same, show, without_nan


@dataclass
class Miss:
    """An answer that is wrong on some cases: what all steps look at.

    asked: the Question; asked.wrong: what the answer gave where it is wrong.
    right_cases: the same where it is right. mistakes: those that somebody has thought
    of. changed: that it changes an input in place, if so.
    """

    asked: Question
    right_cases: list[Difference]
    mistakes: list[Mistake]
    changed: Finding | None = None

    @property
    def wrong(self) -> list[Difference]:
        return list(self.asked.wrong)

    @property
    def every(self) -> list[Difference]:
        return [*self.wrong, *self.right_cases]

    @functools.cached_property
    def value_key(self) -> int | str | None:
        """The first value that is wrong, of several; None where there is one alone."""
        return _first_wrong_value(self.wrong, self.asked.atol)

    @property
    def value_name(self) -> str:
        """What that value is called; "" where there is one alone."""
        if self.value_key is None or isinstance(self.value_key, str):
            return self.value_key or ""
        names = self.asked.value_names
        return (
            names[self.value_key]
            if self.value_key < len(names)
            else f"value {self.value_key}"
        )

    @functools.cached_property
    def of_value(self) -> list[Difference]:
        """Where the answer is wrong, with that value alone."""
        key = self.value_key
        if key is None:
            return self.wrong
        have = [d for d in self.wrong if not isinstance(key, str) or key in d.got]
        some = [Difference(d.inputs, d.expected[key], d.got[key]) for d in have]
        return [d for d in some if not same(d.got, d.expected, self.asked.atol)]

    @functools.cached_property
    def symptom(self) -> Finding | None:
        """What the results look like: they say what is wrong, and not why."""
        if mistake := _known_mistake_of(self, vague=True):
            return _known(self, mistake)[0]
        seen = measuring.measured(self.of_value, self.asked.atol, self.asked.names)
        if seen and seen.kind in (Kind.NAN, Kind.INFINITE):
            return dataclasses.replace(seen, hint=self._origin(seen.kind))
        return seen

    def _origin(self, kind: Kind) -> str:
        """Where the first number that is none comes from."""
        name = "nan" if kind is Kind.NAN else "inf"
        asked, inputs = self.asked, self.of_value[0].inputs
        seen = tracing.cause(lambda: asked.outcome(asked.answer, inputs), name)
        return f"The first {name}: {seen}" if seen else ""


def diagnosed(miss: Miss, hint: str, share: float) -> Problem:
    """The Problem with an answer. hint: the exercise's. share: of the cases, right."""
    findings = next(filter(None, (_taken(step, miss) for step in STEPS)))
    kinds = [finding.kind for finding in findings]
    if kinds == [Kind.MISSING_PART]:
        return Problem(*findings, share=share)
    notes = [miss.changed, unread_line(miss.asked.answer)]
    findings += [note for note in notes if note and note.kind not in kinds]
    name = "" if findings[0].kind in OF_THE_WHOLE else miss.value_name
    shown = show(miss.of_value[0], miss.asked.names)
    problem = Problem(*findings, hint=hint, value_name=name, shown=shown, share=share)
    problem.asked = miss.asked
    return problem


def _taken(step: Callable[[Miss], list[Finding]], miss: Miss) -> list[Finding]:
    """What a step finds; nothing, if it cannot work with what the answer gave.

    A step may run the answer again, which has printed what it prints.
    """
    try:
        with silence():
            return step(miss)
    except Exception as error:
        pass_over(error)
        return [found(Kind.UNKNOWN)] if step is STEPS[-1] else []


def mended(problem: Problem, asked: Question) -> Problem:
    """The Problem of an error, with the place that must change, where it is found."""
    problem.asked = asked
    if problem.findings[0].kind is not Kind.UNTOUCHED:
        if slip := search.own_slip(asked):
            problem.findings.append(slip)
    return problem


# The steps, in their order: see STEPS


def line_without_effect(miss: Miss) -> list[Finding]:
    """A line that does nothing: no call, or behind a `return`."""
    return _some(lost(miss.asked.answer))


def known_mistake(miss: Miss) -> list[Finding]:
    """A mistake that somebody has thought of gives what the answer gives."""
    mistake = _known_mistake_of(miss, vague=False)
    return _known(miss, mistake) if mistake else []


def missing_part(miss: Miss) -> list[Finding]:
    """One of several values is what the skeleton had there."""
    part = miss.value_name or "its value"
    missing = not attempted(miss.of_value[0].got)
    return [found(Kind.MISSING_PART, part=part)] if missing else []


def another_result_when_called_again(miss: Miss) -> list[Finding]:
    asked, inputs = miss.asked, miss.wrong[0].inputs

    def once() -> Any:
        torch.default_generator.manual_seed(0)
        return copy.deepcopy(run(asked.answer, inputs, asked.work)[0])

    try:
        first, second = once(), once()
    except Exception:  # no copy of it can be made, or it fails the second time
        return []
    comparable = same(first, copy.deepcopy(first), asked.atol)
    kept = comparable and not same(second, first, asked.atol)
    default = shared_default(asked.answer)
    kind = Kind.KEPT_IN_DEFAULT if default else Kind.KEPT
    return [found(kind, text=default)] if kept else []


def one_place_of_the_answer(miss: Miss) -> list[Finding]:
    """One change of the answer's text makes it right."""
    slip = search.own_slip(miss.asked)
    return _some(miss.symptom, slip) if slip else []


def changed_input(miss: Miss) -> list[Finding]:
    """It changes an input in place: every line after that reads other numbers."""
    if miss.changed is None:
        return []
    details = {**miss.changed.details, "first": True}
    return _some(dataclasses.replace(miss.changed, details=details), miss.symptom)


def one_place_of_the_solution(miss: Miss) -> list[Finding]:
    """One change of the solution's text makes it give what the answer gives."""
    whole = isinstance(miss.value_key, int) and miss.asked.value_names
    values = miss.value_key + 1 if whole else None  # how many of them must agree
    slip = None
    if miss.asked.text and not measuring.hopeless(miss.of_value):
        slip = search.like_slip(miss.asked, miss.every, values)
    return _some(miss.symptom, slip) if slip else []


def two_known_mistakes(miss: Miss) -> list[Finding]:
    """Two of the known mistakes together give what the answer gives."""
    if not miss.asked.text or measuring.hopeless(miss.of_value):
        return []
    return _some(search.two_known(miss.asked, miss.every, miss.mistakes))


def suspicious_text(miss: Miss) -> list[Finding]:
    """Something that often goes wrong stands in the answer's text."""
    seen = suspicious(miss.asked.answer, miss.asked.text)
    return _some(seen, miss.symptom) if seen else []


def symptom_alone(miss: Miss) -> list[Finding]:
    """What can be measured: a factor, a shape, a sign."""
    return _some(miss.symptom)


def unread(miss: Miss) -> list[Finding]:
    """A name that a line makes, and that nothing reads."""
    return _some(unread_line(miss.asked.answer))


def what_it_depends_on(miss: Miss) -> list[Finding]:
    """Some input moves what it should not move, or does not move what it should."""

    def value(program: Callable) -> Callable:
        def given(*inputs: Any) -> Any:
            value = miss.asked.outcome(program, inputs)
            return value if miss.value_key is None else value[miss.value_key]

        return given

    both = value(miss.asked.answer), value(miss.asked.program)
    what = miss.value_name or "your result"
    if not miss.value_name and miss.asked.work:
        what = "what the check computes with your answer"
    seen = probing.probed(*both, miss.of_value, miss.asked.names, what)
    return _some(seen, probing.later_shape(miss.of_value)) if seen else []


def which_places(miss: Miss) -> list[Finding]:
    """Only some places of the result are wrong."""
    seen = probing.placed(miss.of_value, miss.asked.atol)
    return _some(seen, probing.later_shape(miss.of_value)) if seen else []


def as_before(miss: Miss) -> list[Finding]:
    """Of the smallest case a bug hunt's program gives what it gave at first."""
    for mistake in miss.mistakes:
        if mistake.untouched and _gives(miss.asked, mistake)(miss.wrong[0]):
            return [found(Kind.AS_BEFORE)]
    return []


def how_many_are_right(miss: Miss) -> list[Finding]:
    """At the end: the count of the cases, or that nothing is known."""
    seen = found(Kind.UNKNOWN)
    if miss.right_cases and miss.value_key is None:
        seen = found(Kind.SOME_RIGHT, right=len(miss.right_cases), of=len(miss.every))
    return _some(seen, probing.later_shape(miss.of_value))


STEPS = (  # what is true of a whole answer: see OF_THE_WHOLE, too
    line_without_effect,
    known_mistake,
    missing_part,
    another_result_when_called_again,
    one_place_of_the_answer,
    changed_input,
    one_place_of_the_solution,
    two_known_mistakes,
    suspicious_text,
    symptom_alone,
    unread,
    what_it_depends_on,
    which_places,
    as_before,
    how_many_are_right,
)


OF_THE_WHOLE = (  # kinds that are true of an answer, not of one of its values
    Kind.BEHIND_RETURN,
    Kind.NOT_CALLED,
    Kind.NOT_KEPT,
    Kind.ALWAYS_TRUE,
    Kind.RETURN_IN_LOOP,
    Kind.KEPT,
    Kind.KEPT_IN_DEFAULT,
    Kind.INPUT_CHANGED,
    Kind.KNOWN,
    Kind.AS_KNOWN,
    Kind.TWO_KNOWN,
    Kind.UNTOUCHED,
)


def _some(*findings: Finding | None) -> list[Finding]:
    """Those that are something."""
    return [finding for finding in findings if finding]


# Known mistakes


def _known_mistake_of(miss: Miss, vague: bool) -> Mistake | None:
    """The first known mistake that accounts for all that the answer gave.

    One by whose program the results agree must also show in the answer's text, or give
    what the answer gives on fresh cases, too.
    """
    for mistake in (one for one in miss.mistakes if one.vague == vague):
        gives = _gives(miss.asked, mistake)
        where = miss.wrong if mistake.sign else miss.every
        if not all(map(gives, where)):
            continue
        exactly = _gives(miss.asked, mistake, nan=False)
        if any(map(exactly, miss.wrong)):  # one at least agrees in all its numbers
            seen = mistake.sign or _shown(mistake, miss.asked)
            if seen or all(map(gives, miss.asked.answered)):
                return mistake
    return None


def _gives(
    asked: Question, mistake: Mistake, nan: bool = True
) -> Callable[[Difference], bool]:
    """Of a Difference: whether a mistake gives what was got. nan: some may be nan."""
    sign, program = mistake.sign, mistake.program
    edited: Any = None if sign or program else asked.solution.but(*mistake.edits)

    def made(inputs: tuple) -> Any:
        if not program:
            return asked.outcome(edited, inputs)
        torch.default_generator.manual_seed(0)
        return program(*copy.deepcopy(inputs))

    def gives(d: Difference) -> bool:
        try:
            if sign:
                return bool(sign(d.got, d.expected, *d.inputs))
            value = made(d.inputs)
            got = without_nan(d.got, value) if nan else d.got
            return same(got, value, asked.atol)
        except Exception:  # a mistake that does not even run here is not the one
            return False

    return gives


def _shown(mistake: Mistake, asked: Question) -> bool:
    """Whether it can be read in the answer that it has made a mistake."""
    text = source(asked.answer)
    if mistake.untouched:
        return not text or asked.solution.is_untouched(text)
    return bool(mistake.edits) and shows(text, asked.text, mistake.edits)


def _known(miss: Miss, mistake: Mistake) -> list[Finding]:
    """What is said of a known mistake: a cause only where the answer's text shows it.

    Who has changed a bug hunt's program, and left its bug there, hears more.
    """
    asked, text = miss.asked, source(miss.asked.answer)
    kind = Kind.KNOWN
    if mistake.untouched:
        kind = Kind.UNTOUCHED
    elif mistake.edits and not _shown(mistake, asked):
        kind = Kind.AS_KNOWN
    findings = [found(kind, mistake.hint, says=mistake.says, mistake=mistake)]
    if mistake.untouched and text and not asked.solution.is_untouched(text):
        findings.append(search.own_slip(asked) or found(Kind.CHANGED_IN_VAIN))
    return findings


# Of several values the first wrong one


def _first_wrong_value(wrong: list[Difference], atol: float) -> int | str | None:
    """Of several values (a tuple, or a list that is no tensor), the first wrong one.

    Of dictionaries of tensors, the name of the first wrong one.
    """
    for d in wrong:
        if isinstance(d.expected, dict):
            return _first_wrong_name(wrong, atol)
        several = isinstance(d.expected, list) and as_tensor(d.expected) is None
        if not isinstance(d.expected, tuple) and not several:
            return None
        if not isinstance(d.got, (tuple, list)) or len(d.got) != len(d.expected):
            return None
    for i in range(min(len(d.expected) for d in wrong)):
        if not all(same(d.got[i], d.expected[i], atol) for d in wrong):
            return i
    return None


def _first_wrong_name(wrong: list[Difference], atol: float) -> str | None:
    for d in wrong:
        if not isinstance(d.got, dict) or d.got.keys() != d.expected.keys():
            return None
        pairs = d.expected.items()
        if not all(isinstance(n, str) and torch.is_tensor(x) for n, x in pairs):
            return None
    first = wrong[0]
    for name, right in first.expected.items():
        if not same(first.got[name], right, atol):
            return name
    return None
