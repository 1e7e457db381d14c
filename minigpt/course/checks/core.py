"""The way of an answer, from a learner's cell to a sentence.

    check_mean_so_far(mean_so_far)                an exercise's check, decorated here
              |
              v
    compare(answer, solution, cases)
              |
      run safely, on copies of the inputs         running.py: errors, endless loops
              |
      same values as the solution?  ── yes ──>    right! (inputs unchanged? dtype?)
              | no
              v
      what can be read off its text               reading.py: `x.clone` without brackets
      a known mistake gives the same              solutions.py: written by hand
      another result when called again            running.py
      one place of the answer changed mends it    search.py, by the changes
      one place of the solution changed ...       of mutations.py
      two known mistakes, or one and a change
      what can be measured                        measuring.py: shape, factor, futures
              |
              v
    Findings: kinds and places                    findings.py
              |
              v
    ✗ 02.1 The present included: not yet. ...     telling.py, in two steps: what is
                                                  wrong and where; then what belongs

What a step finds is told, and the steps behind it are not gone. To add an exercise, see
the package's docstring.
"""

import contextlib
import copy
import functools
import inspect
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch

from minigpt.course.checks import measuring, search, telling
from minigpt.course.checks.errors import Explained, NotAttempted
from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.measuring import Difference
from minigpt.course.checks.mutations import Change, Mutant, undoes
from minigpt.course.checks.reading import (
    alias,
    listing,
    lost,
    second_name,
    shared_default,
    suspicious,
    unread_line,
    unreadable_cell,
    written,
)
from minigpt.course.checks.running import attempted, call, run
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import (
    as_tensor,
    other_numbers,
    same,
    show,
    without_nan,
)

__all__ = ["Explained", "Mistake", "NotAttempted", "Solution", "attempted", "call"]
__all__ += ["compare", "exercise", "progress"]
_exercises = {}  # title -> "open", "tried" or "solved", in order of definition
_places = {}  # number -> (module, name) of its checker
_missed = {}  # title -> (place, text of the answer) of the last miss


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

    def _ipython_display_(self):
        """Nothing: the check has printed its message already."""


def exercise(title: str, solution: Solution | None = None) -> Callable:
    """Decorate a checker: `@exercise("02.1 The present included", MEAN_SO_FAR)`.

    The checker returns what it verified, or raises Explained. The check prints one
    message and returns a Result; with tell=True, it says what belongs where. The
    learner's answer may be anything: no exception gets out of the check, and torch's
    state stays as it was. Raises ValueError if another checker has the number.
    """
    number = title.split()[0]

    def decorate(checker: Callable) -> Callable:
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

        check.number, check.title, check.solution = number, title, solution
        return check

    return decorate


def _result(title: str, checker: Callable, answers: tuple, tell: bool) -> Result:
    """What the checker finds out about these answers."""
    try:
        if broken := unreadable_cell(title.split()[0]):
            raise Explained(broken)
        if not all(map(attempted, answers)):
            raise NotAttempted
        with _settings_kept(), _asking(checker, answers):
            torch.default_generator.manual_seed(0)
            message = f"right! Verified: {checker(*answers)}"
            _missed.pop(title, None)
            return Result(title, "solved", message, 1.0)
    except NotAttempted:
        message = "not attempted yet: replace the `...`."
        return Result(title, "open", message, 0.0)
    except Explained as one:
        problem = one
    except Exception:  # the checker's own, from an answer that it was not made for
        wanted = checker.__doc__.splitlines()[0]
        problem = Explained(found(Kind.NOT_COMPARED, wanted=wanted))
    main = next((f for f in problem.findings if "mutant" in f.parts), None)
    text = listing(answers[0])[0] if answers else ""
    if main:  # a second, other miss at the same place is told what belongs there
        place, before = _missed.get(title, ("", text))
        tell = tell or place == main.place and text != before
        _missed[title] = main.place, text
    if tell and not main and problem.asked:
        with _settings_kept(), _asking(checker, answers):
            more = search.own_slip(problem.asked, problem.asked.wrong[:1])
            ours = getattr(problem.asked.solution, "text", "").splitlines()
            right = [line.strip() for line in ours]
            if more and _tells_more(more.parts["mutant"], problem.findings, right):
                problem.findings.append(more)
    message = telling.message(problem, tell)
    if main and not tell:
        message += f"\n  What belongs there is told by {checker.__name__}"
        message += "(…, tell=True), or when it is wrong in another way."
    untouched = problem.findings[0].kind is Kind.UNTOUCHED
    state, share = ("untouched", 0.0) if untouched else ("tried", problem.share)
    return Result(title, state, message, share, tuple(problem.findings))


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
def _settings_kept() -> Iterator[None]:
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


# The same check with other numbers


class _Asked(Exception):
    """The cases that a checker would compare; raised in place of a comparison."""


_current = ContextVar(
    "_current", default=None
)  # (checker, answers, [number of compare])
_probing = ContextVar("_probing", default=None)  # the number of the compare to stop at


@contextlib.contextmanager
def _asking(checker: Callable, answers: tuple) -> Iterator[None]:
    """Let comparisons know which check they belong to."""
    token = _current.set((checker, answers, [0]))
    try:
        yield
    finally:
        _current.reset(token)


def _fresh_cases(current: tuple | None) -> list[tuple]:
    """The same comparison's cases with other numbers; [] where there are none."""
    if current is None:
        return []
    checker, answers, (number,) = current
    stop = _probing.set(number)
    try:
        with other_numbers(), contextlib.redirect_stdout(io.StringIO()):
            with _asking(checker, answers):
                checker(*answers)
    except _Asked as asked:
        return asked.args[0]
    except Exception:  # an answer that does not get that far
        pass
    finally:
        _probing.reset(stop)
    return []


# Comparing


@dataclass
class Question:
    """What compare was asked; of(program): the function of inputs that it compares.

    complete: whether an answer that is right here is right. wrong: the cases on which
    this one is not.
    """

    answer: Callable
    solution: Any
    cases: list[tuple]
    of: Callable
    atol: float
    parts: Sequence[str]
    names: list[str]
    complete: bool
    current: tuple | None
    wrong: Sequence[Difference] = ()

    def right(self, *inputs: Any) -> Any:
        """What the solution gives, with the same luck each time."""
        return self.given(getattr(self.solution, "program", self.solution), inputs)

    def given(self, program: Callable, inputs: tuple) -> Any:
        """What a program gives that is a candidate or the solution."""
        torch.default_generator.manual_seed(0)
        return self.of(program)(*inputs)

    @property
    def slips(self) -> bool:
        """Whether wrong programs can be made of the solution."""
        return hasattr(self.solution, "text")

    @property
    def own_name(self) -> str:
        """What the learner calls the answer."""
        return getattr(written(self.answer), "__name__", "")

    @functools.cached_property
    def fresh(self) -> list[tuple[tuple, Any]]:
        """(inputs, what is right) of cases that the answer was not judged by.

        They tell a mended answer from one that passes by an accident of the cases.
        """
        cases = _fresh_cases(self.current)[:4]
        pairs = []
        some = (cases or self.cases)[-2:]
        shuffled = [_shuffled(inputs, seed) for seed in range(3) for inputs in some]
        for inputs in [*cases, *shuffled]:
            with contextlib.suppress(Exception):  # no input for the solution
                pairs.append((inputs, self.right(*inputs)))
        return pairs


def _shuffled(inputs: tuple, seed: int) -> tuple:
    """Inputs of the same kind, their floats in another order along each dimension."""
    generator = torch.Generator().manual_seed(seed)

    def other(x):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x
        for dim in range(x.dim()):
            x = x.index_select(dim, torch.randperm(x.shape[dim], generator=generator))
        return x

    return tuple(map(other, inputs))


def compare(
    answer: Any,
    solution: Callable,
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

    def of(program):
        inner = work or (lambda program, *inputs: program(*inputs))
        return lambda *inputs: inner(program, *copy.deepcopy(inputs))

    current = _current.get()
    if current is not None:
        current[2][0] += 1
        if _probing.get() is not None:
            if current[2][0] >= _probing.get():
                raise _Asked(cases)
            return
        current = *current[:2], (current[2][0],)
    names = _names(work, solution)
    asked = Question(answer, solution, cases, of, atol, parts, names, complete, current)
    differences, right, changed = [], [], []
    for inputs in cases:
        expected = asked.right(*inputs)
        torch.default_generator.manual_seed(0)
        try:
            got, touched = run(answer, inputs, work)
        except Explained as problem:
            if not differences:
                problem.share = len(right) / len(cases)
                raise _with_mending(problem, asked) from None
            break  # the difference on a smaller case comes first
        kind = right if same(got, expected, atol) else differences
        kind.append(Difference(inputs, expected, got))
        changed += touched
    touched = found(
        Kind.INPUT_CHANGED,
        _copying(cases[0][changed[0]] if changed else None),
        name=_input_name(changed, names),
        right=not differences,
    )
    touched = touched if changed and not changes else None
    if differences:
        asked.wrong = differences
        known = [*known, *getattr(solution, "listed", ())]
        problem = _explained(asked, differences, right, known, touched)
        problem.share, problem.asked = len(right) / len(cases), asked
        if any("mutant" in f.parts or f.kind is Kind.KNOWN for f in problem.findings):
            problem.hint = hint
        else:
            problem.general = hint
        raise problem
    if touched:
        name = second_name(answer)
        raise Explained(*filter(None, [touched, name]), share=0.9)


def _names(work: Callable | None, solution: Callable) -> list[str]:
    """What the inputs are called, by work or by the solution; () where neither does."""
    if work is None:
        return getattr(solution, "arguments", ())
    names = inspect.signature(work).parameters.values()
    return [n.name for n in names if n.kind is n.POSITIONAL_OR_KEYWORD][1:]


def _copying(x: Any) -> str:
    """How to leave an input as it is, by its type."""
    if isinstance(x, torch.nn.Module):
        return (
            "copy.deepcopy(…) gives a module of your own to work on; copy.copy and a "
            "second name share its layers."
        )
    copied = ".copy()" if hasattr(x, "copy") else ".clone()"
    return (
        "Make something new: `x = x * 2` does, `x *= 2` and `x[0] = …` do not; "
        f"{copied} gives a copy to work on."
    )


def _input_name(changed: list[int], names: list[str]) -> str:
    named = changed and changed[0] < len(names)
    return f"`{names[changed[0]]}`" if named else "its input"


def _explained(
    asked: Question,
    differences: list[Difference],
    right: list[Difference],
    known: list[Mistake],
    touched: Finding | None,
) -> Explained:
    """What accounts for all differences; the steps of this module's picture."""
    atol, every = asked.atol, [*differences, *right]
    part, wrong = _first_wrong_part(differences, atol), differences
    lead = ""
    if part is not None:
        some = [Difference(d.inputs, d.expected[part], d.got[part]) for d in wrong]
        wrong = [d for d in some if not same(d.got, d.expected, atol)]
        named = part < len(asked.parts)
        lead = asked.parts[part] if named else f"value {part}"
    whole = None if part is None or not asked.parts else part + 1  # that must agree
    shown = show(wrong[0], asked.names)
    notes = [touched, unread_line(asked.answer)]

    def told(*findings, of_part=True):
        some = [*filter(None, [*findings, *notes])]
        return Explained(*some, part=lead * of_part, shown=shown)

    if line := lost(asked.answer):
        return told(line, of_part=False)
    if mistake := _meant(asked, known, differences, every, vague=False):
        return told(*_known(mistake, asked), of_part=False)
    if not attempted(wrong[0].got):
        return Explained(found(Kind.MISSING_PART, part=lead or "its value"))
    if _keeps(asked, differences[0].inputs):
        default = shared_default(asked.answer)
        kind = Kind.KEPT_IN_DEFAULT if default else Kind.KEPT
        return told(found(kind, text=default), of_part=False)
    effect = None
    if mistake := _meant(asked, known, differences, every, vague=True):
        effect = found(Kind.KNOWN, mistake.hint, says=mistake.says)
    effect = effect or measuring.measured(wrong, atol)
    if slip := search.own_slip(asked, differences[:1], sure=not effect):
        return told(effect, slip)
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

    def value(program):
        def given(*inputs):
            value = asked.given(program, inputs)
            return value if part is None else value[part]

        return given

    ours = getattr(asked.solution, "program", asked.solution)
    seen = measuring.probed(value(asked.answer), value(ours), wrong, asked.names)
    if seen := seen or measuring.placed(wrong, atol):
        return told(seen)
    if right and part is None:
        return told(found(Kind.SOME_RIGHT, right=len(right), of=len(every)))
    return told(found(Kind.UNKNOWN))


def _keeps(asked: Question, inputs: tuple) -> bool:
    """Whether an answer gives something else when it is called once more."""

    def again():
        torch.default_generator.manual_seed(0)
        return copy.deepcopy(run(asked.of(asked.answer), inputs)[0])

    try:
        first = again()
        comparable = same(first, copy.deepcopy(first), asked.atol)
        return comparable and not same(again(), first, asked.atol)
    except Exception:  # no copy of it can be made, or it fails the second time
        return False


def _program(mistake: Mistake, asked: Question) -> Callable | None:
    """The function of inputs that makes a mistake; None where there is a sign."""
    if mistake.sign:
        return None
    if mistake.program:
        return mistake.program
    program = asked.solution.but(*mistake.edits)
    return lambda *inputs: asked.given(program, inputs)


def _meant(
    asked: Question,
    known: list[Mistake],
    differences: list[Difference],
    every: list[Difference],
    vague: bool,
) -> Mistake | None:
    """The first known mistake that accounts for all that the answer gave."""
    for mistake in known:
        if mistake.vague == vague:
            where = differences if mistake.sign else every
            program = _program(mistake, asked)
            if all(_accounts(mistake, program, d, asked.atol) for d in where):
                return mistake
    return None


def _accounts(
    mistake: Mistake, program: Callable | None, d: Difference, atol: float
) -> bool:
    try:
        if mistake.sign:
            return bool(mistake.sign(d.got, d.expected, *d.inputs))
        made = program(*copy.deepcopy(d.inputs))
        return same(without_nan(d.got, made), made, atol)
    except Exception:  # a mistake that does not even run here is not the one
        return False


def _known(mistake: Mistake, asked: Question) -> Iterator[Finding]:
    """The Finding of a known mistake; more, for who has changed a bug hunt's program,
    but left its bug there."""
    kind = Kind.UNTOUCHED if mistake.untouched else Kind.KNOWN
    yield found(kind, mistake.hint, says=mistake.says, mistake=mistake)
    text = listing(asked.answer)[0]
    if mistake.untouched and text and not asked.solution.is_untouched(text):
        slip = search.own_slip(asked, sure=False, wrong=asked.wrong[:1])
        yield slip or found(Kind.CHANGED_IN_VAIN)
        if not slip and (second := alias(asked.answer)):
            yield second


def _with_mending(problem: Explained, asked: Question) -> Explained:
    """Explained for an error, with the place that must change, where it is found."""
    problem.asked = asked
    if problem.findings[0].kind is not Kind.UNTOUCHED:
        if slip := search.own_slip(asked, []):
            problem.findings.append(slip)
    return problem


def _first_wrong_part(differences: list[Difference], atol: float) -> int | None:
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
