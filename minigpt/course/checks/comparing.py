"""Comparing an answer with its solution, and finding out what is wrong with it.

compare() runs both on all cases. If they differ, the steps of _explained() follow one
another, from what can be known to what can only be measured; the first that accounts
for all the differences is told.
"""

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from minigpt.course.checks import measuring, search, tracing
from minigpt.course.checks.errors import Explained
from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.measuring import Difference
from minigpt.course.checks.mutations import shows
from minigpt.course.checks.question import Question, comes_to, with_other_numbers
from minigpt.course.checks.reading import (
    listing,
    lost,
    second_name,
    shared_default,
    suspicious,
    unread_line,
)
from minigpt.course.checks.running import attempted, run
from minigpt.course.checks.solutions import Mistake
from minigpt.course.checks.values import as_tensor, same, show, without_nan


def compare(
    answer: Any,
    solution: Any,
    cases: list[tuple],
    known: Iterable[Mistake] = (),
    atol: float = 1e-5,
    *,
    work: Callable | None = None,
    parts: Sequence[str] = (),
    changes: bool = False,
    hint: str = "",
    complete: bool = True,
) -> None:
    """Raise Explained unless the answer gives what the solution gives on all cases.

    answer: the learner's function or class. solution: a Solution, whose slips of the
    pen are then tried, or any right program, without slips. cases: list of tuples of
    inputs, the smallest first; each program gets copies. known: mistakes that are
    tried before the solution's own. work(program, *inputs): what to compare, in place
    of program(*inputs). parts: names of the values of a tuple; only the first wrong one
    is spoken of. changes: whether the answer may change its inputs in place. hint: the
    exercise's, where a mistake brings none. complete: False where the checker compares
    more behind this.
    """
    if not comes_to(cases):
        return

    def of(program: Callable) -> Callable:
        inner = work or (lambda program, *inputs: program(*inputs))
        return lambda *inputs: inner(program, *copy.deepcopy(inputs))

    names, others = _names(work, solution), with_other_numbers()
    how = atol, parts, names, complete, others, work is None
    asked = Question(answer, solution, cases, of, *how)
    differences, right, changed = [], [], []
    for inputs in cases:
        expected = asked.right(*inputs)
        torch.default_generator.manual_seed(0)
        try:
            got, touched = run(answer, inputs, work, names)
        except Explained as problem:
            if not differences:
                problem.share, problem.general = len(right) / len(cases), hint
                raise _with_mending(problem, asked) from None
            break  # the difference on a smaller case comes first
        kind = right if same(got, expected, atol) else differences
        kind.append(Difference(inputs, expected, got))
        changed += touched
    note = None
    if changed and not changes:
        first = changed[0]
        name = f"`{names[first]}`" if first < len(names) else "its input"
        copied, right_so_far = _copying(cases[0][first]), not differences
        note = found(Kind.INPUT_CHANGED, copied, name=name, right=right_so_far)
    if differences:
        asked.wrong = differences
        known = [*known, *getattr(solution, "listed", ())]
        problem = _explained(asked, right, known, note)
        problem.share, problem.asked = len(right) / len(cases), asked
        if any(f.kind is Kind.KNOWN for f in problem.findings):
            problem.hint = hint
        elif not any("mutant" in f.parts for f in problem.findings):
            problem.general = hint  # what was found goes without it
        raise problem
    if note:
        name = second_name(answer)
        raise Explained(*filter(None, [note, name]), share=0.9)


def _names(work: Callable | None, solution: Any) -> list[str]:
    """What the inputs are called, by work or by the solution; [] where neither does."""
    if work is None:
        return getattr(solution, "arguments", [])
    names = inspect.signature(work).parameters.values()
    return [n.name for n in names if n.kind is n.POSITIONAL_OR_KEYWORD][1:]


def _copying(x: Any) -> str:
    """How to leave an input as it is, by its type."""
    if isinstance(x, torch.nn.Module):
        return (
            "copy.deepcopy(…) gives a module of your own to work on; copy.copy and a "
            "second name share its layers."
        )
    if isinstance(x, (list, tuple, dict)):  # a copy would share what is inside
        return "copy.deepcopy(…) gives a copy of all of it to work on."
    copied = ".copy()" if hasattr(x, "copy") else ".clone()"
    return (
        "Make something new: `x = x * 2` does, `x *= 2` and `x[0] = …` do not; "
        f"{copied} gives a copy to work on."
    )


def _explained(
    asked: Question,
    right: list[Difference],
    known: list[Mistake],
    changed: Finding | None,
) -> Explained:
    """What accounts for all differences; changed: that an input was changed."""
    differences, atol = list(asked.wrong), asked.atol
    every = [*differences, *right]
    part, wrong = _first_wrong_part(differences, atol), differences
    lead = ""
    if part is not None:
        have = [d for d in wrong if not isinstance(part, str) or part in d.got]
        some = [Difference(d.inputs, d.expected[part], d.got[part]) for d in have]
        wrong = [d for d in some if not same(d.got, d.expected, atol)]
        lead = part if isinstance(part, str) else f"value {part}"
        if isinstance(part, int) and part < len(asked.parts):
            lead = asked.parts[part]
    whole = None  # how many values must agree
    if isinstance(part, int) and asked.parts:
        whole = part + 1
    shown = show(wrong[0], asked.names)
    notes = [changed, unread_line(asked.answer)]

    def told(*findings: Finding | None, of_part: bool = True) -> Explained:
        some = [*filter(None, [*findings, *notes])]
        return Explained(*some, part=lead if of_part else "", shown=shown)

    if line := lost(asked.answer):
        return told(line, of_part=False)
    if mistake := _meant(asked, known, every, vague=False):
        return told(*_known(mistake, asked), of_part=False)
    if not attempted(wrong[0].got):
        return Explained(found(Kind.MISSING_PART, part=lead or "its value"))
    if _keeps(asked, differences[0].inputs):
        default = shared_default(asked.answer)
        kind = Kind.KEPT_IN_DEFAULT if default else Kind.KEPT
        return told(found(kind, text=default), of_part=False)
    effect = None
    if mistake := _meant(asked, known, every, vague=True):
        effect = next(_known(mistake, asked))
    effect = effect or measuring.measured(wrong, atol, asked.names)
    if effect and effect.kind in (Kind.NAN, Kind.INFINITE):
        kind = "nan" if effect.kind is Kind.NAN else "inf"
        seen = tracing.cause(lambda: asked.of(asked.answer)(*wrong[0].inputs), kind)
        says = f"The first {kind}: {seen}" if seen else ""
        effect = dataclasses.replace(effect, hint=says)
    if slip := search.own_slip(asked, differences[:1]):
        return told(effect, slip)
    if changed:  # every line after that one reads other numbers
        notes.remove(changed)
        parts = {**changed.parts, "first": True}
        return told(dataclasses.replace(changed, parts=parts), effect)
    if asked.slips and not measuring.hopeless(wrong):
        if slip := search.like_slip(asked, every, whole):
            return told(effect, slip)
        if two := search.two_known(asked, every, known):
            return told(two, of_part=False)
    if seen := suspicious(asked.answer, getattr(asked.solution, "text", "")):
        return told(seen, effect)
    if effect:
        return told(effect)
    if any(notes):
        return told()

    def value(program: Callable) -> Callable:
        def given(*inputs: Any) -> Any:
            value = asked.given(program, inputs)
            return value if part is None else value[part]

        return given

    both = value(asked.answer), value(asked.program)
    what = lead or "your result"
    if not (lead or asked.direct):
        what = "what the check computes with your answer"
    seen = measuring.probed(*both, wrong, asked.names, what)
    seen = seen or measuring.placed(wrong, atol) or _as_before(asked)
    if not seen and right and part is None:
        seen = found(Kind.SOME_RIGHT, right=len(right), of=len(every))
    return told(seen or found(Kind.UNKNOWN), measuring.later_shape(wrong))


def _as_before(asked: Question) -> Finding | None:
    """That a bug hunt's program does of the first case what it did when given."""
    d = asked.wrong[0]
    for mistake in getattr(asked.solution, "listed", ()):
        if mistake.untouched and _accounts(
            d, mistake, _program(mistake, asked), asked.atol
        ):
            return found(Kind.AS_BEFORE)
    return None


def _first_wrong_part(differences: list[Difference], atol: float) -> int | str | None:
    """Of several values (a tuple, or a list that is no tensor), the first wrong one.

    Of dictionaries of tensors, the name of the first wrong one.
    """
    for d in differences:
        if isinstance(d.expected, dict):
            return _first_wrong_name(differences, atol)
        several = isinstance(d.expected, list) and as_tensor(d.expected) is None
        if not isinstance(d.expected, tuple) and not several:
            return None
        if not isinstance(d.got, (tuple, list)) or len(d.got) != len(d.expected):
            return None
    for i in range(min(len(d.expected) for d in differences)):
        if not all(same(d.got[i], d.expected[i], atol) for d in differences):
            return i
    return None


def _first_wrong_name(differences: list[Difference], atol: float) -> str | None:
    for d in differences:
        if not isinstance(d.got, dict) or d.got.keys() != d.expected.keys():
            return None
        pairs = d.expected.items()
        if not all(isinstance(n, str) and torch.is_tensor(x) for n, x in pairs):
            return None
    first = differences[0]
    for name, right in first.expected.items():
        if not same(first.got[name], right, atol):
            return name
    return None


def _meant(
    asked: Question, known: list[Mistake], every: list[Difference], vague: bool
) -> Mistake | None:
    """The first known mistake that accounts for all that the answer gave."""
    for mistake in known:
        if mistake.vague == vague:
            where = asked.wrong if mistake.sign else every
            program = _program(mistake, asked)
            how = mistake, program, asked.atol
            if all(_accounts(d, *how) for d in where):
                if any(_accounts(d, *how, nan=False) for d in asked.wrong):
                    if mistake.sign or _shown(mistake, asked):
                        return mistake
                    if all(_accounts(d, *how) for d in asked.answered):
                        return mistake  # on cases of no check, too
    return None


def _shown(mistake: Mistake, asked: Question) -> bool:
    """Whether it can be read in the answer that it has made a mistake."""
    text = listing(asked.answer)[0]
    if mistake.untouched:
        return asked.solution.is_untouched(text)
    return bool(mistake.edits) and shows(text, asked.solution.text, mistake.edits)


def _program(mistake: Mistake, asked: Question) -> Callable | None:
    """The function of inputs that makes a mistake; None where there is a sign."""
    if mistake.sign:
        return None
    if mistake.program:
        return mistake.program
    program = asked.solution.but(*mistake.edits)
    return lambda *inputs: asked.given(program, inputs)


def _accounts(
    d: Difference,
    mistake: Mistake,
    program: Callable | None,
    atol: float,
    nan: bool = True,
) -> bool:
    """Whether a mistake gives what was got; nan: whether some nan besides will do."""
    try:
        if program is None:
            return bool(mistake.sign and mistake.sign(d.got, d.expected, *d.inputs))
        made = program(*copy.deepcopy(d.inputs))
        return same(without_nan(d.got, made) if nan else d.got, made, atol)
    except Exception:  # a mistake that does not even run here is not the one
        return False


def _known(mistake: Mistake, asked: Question) -> Iterator[Finding]:
    """The Finding of a known mistake; more, for who has changed a bug hunt's program,
    but left its bug there.

    That results agree proves no cause: one is named only where the text shows it.
    """
    text = listing(asked.answer)[0]
    kind = Kind.KNOWN
    if mistake.untouched:
        kind = Kind.UNTOUCHED
    elif mistake.edits and not _shown(mistake, asked):
        kind = Kind.AS_KNOWN
    yield found(kind, mistake.hint, says=mistake.says, mistake=mistake)
    if mistake.untouched and text and not asked.solution.is_untouched(text):
        slip = search.own_slip(asked, wrong=list(asked.wrong[:1]))
        yield slip or found(Kind.CHANGED_IN_VAIN)


def _keeps(asked: Question, inputs: tuple) -> bool:
    """Whether an answer gives something else when it is called once more."""

    def again() -> Any:
        torch.default_generator.manual_seed(0)
        return copy.deepcopy(run(asked.of(asked.answer), inputs)[0])

    try:
        first = again()
        comparable = same(first, copy.deepcopy(first), asked.atol)
        return comparable and not same(again(), first, asked.atol)
    except Exception:  # no copy of it can be made, or it fails the second time
        return False


def _with_mending(problem: Explained, asked: Question) -> Explained:
    """Explained for an error, with the place that must change, where it is found."""
    problem.asked = asked
    if problem.findings[0].kind is not Kind.UNTOUCHED:
        if slip := search.own_slip(asked, []):
            problem.findings.append(slip)
    return problem
