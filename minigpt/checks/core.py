"""What all checkers share: run an answer safely, find the mistake, say it well.

A checker names an exercise, its correct answer (`reference`), inputs from small
to large (`cases`) and the mistakes that people make. A mistake is a program:
if an answer gives what the mistaken program gives, that was the mistake.
"""

import copy
import ctypes
import linecache
import re
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

SECONDS = 5  # an answer that takes longer than this hangs
_exercises = {}  # title -> "open", "tried" or "solved", in order of definition


class Mistake(NamedTuple):
    """A known mistake: what to say, a hint, and the wrong program or a Sign of it."""

    says: str
    hint: str
    program: Callable


class Sign(NamedTuple):
    """What betrays a mistake in place of a program: holds(got, expected, *inputs)."""

    holds: Callable


class Difference(NamedTuple):
    """The first case on which an answer is wrong."""

    inputs: tuple
    expected: Any
    got: Any


@dataclass(frozen=True)
class Result:
    """What a check found, printed by the check and returned: true if solved.

    state: "open" (not attempted), "untouched" (a hunt's bug is still there), "tried"
    or "solved". share: of the cases, how many are right, 0.0 to 1.0.
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
        """Nothing: at the end of a cell, the check has printed it already."""


class Explained(Exception):
    """Raised inside a checker that knows what is wrong: message, then hint."""

    share = 0.0  # of the cases, how many are right


class NotAttempted(Exception):
    """Raised inside a checker that finds what a skeleton leaves."""


def mistakes(hint, programs):
    """A list of Mistake from {what to say: program}, with a hint in common.

    A program is called like the reference, or is a Sign; (program, hint) has a
    hint of its own.
    """
    found = []
    for says, program in programs.items():
        pair = isinstance(program, tuple) and not isinstance(program, Sign)
        found.append(Mistake(says, *(reversed(program) if pair else (hint, program))))
    return found


def exercise(title):
    """Decorate a checker: `@exercise("02.1 The present included")`.

    The checker returns what it verified, or raises Explained; the check made of it
    prints a Result and returns it. The learner's answer may be anything: no exception
    gets out of the check, and torch's random state stays as it was.
    """
    _exercises[title] = "open"

    def decorate(checker):
        def check(*answers):
            result = Result(title, *_verdict(checker, answers))
            if _exercises[title] != "solved" and result.state in ("tried", "solved"):
                _exercises[title] = result.state
            print(result)
            return result

        check.__name__, check.__doc__ = checker.__name__, checker.__doc__
        return check

    return decorate


def _verdict(checker, answers):
    """State, message and share of an exercise's Result after these answers."""
    share = 0.0
    try:
        if not all(map(attempted, answers)):
            raise NotAttempted
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            return "solved", f"right! Verified: {checker(*answers)}", 1.0
    except NotAttempted:
        return "open", "not attempted yet: replace the `...`.", share
    except Explained as problem:
        what, hint = (*problem.args, "")[:2]
        share = problem.share
    except Exception:  # the checker's own, from an answer that it was not made for
        what = (
            "This answer could not be compared: it, or what it returns or works on, "
            "is not of the kind that the check expects."
        )
        wanted = checker.__doc__.splitlines()[0]
        hint = (
            f"Wanted: {wanted} If yours is that, run the cells above again: a name "
            "may have changed its meaning."
        )
    message = f"not yet. {what}" + (f"\n  Hint: {hint}" if hint else "")
    if what.startswith("The bug is still there"):
        return "untouched", message, 0.0
    return "tried", message, share


def progress():
    """Print what has been solved since the kernel started, and what comes next."""
    marks = {"open": "○ open", "tried": "◐ tried", "solved": "● solved"}
    for title, state in _exercises.items():
        print(f"{marks[state]:10}{title}")
    still_open = [title for title, state in _exercises.items() if state != "solved"]
    solved = len(_exercises) - len(still_open)
    print(f"{solved} of {len(_exercises)} solved.", end=" ")
    print(f"Next: {still_open[0]}" if still_open else "All done!")


def attempted(answer):
    """False for what a skeleton leaves: `...` or None."""
    return answer is not ... and answer is not None


def compare(answer, reference, cases, known=(), atol=1e-5):
    """Raise Explained unless answer(*inputs) equals reference(*inputs) on all cases.

    cases: list of tuples of inputs, the smallest first. The answer gets copies and
    may change them; the reference and the programs in known, a list of Mistake, must
    not. Raises NotAttempted if the answer returns what a skeleton does.
    """
    differences = []
    for inputs in cases:
        expected = reference(*inputs)
        got = call(answer, *inputs)
        if not same(got, expected, atol):
            differences.append(Difference(inputs, expected, got))
    if differences:
        try:
            explain(differences, known, atol)
        except Explained as problem:
            problem.share = 1 - len(differences) / len(cases)
            raise


def explain(differences, known, atol=1e-5):
    """Raise Explained with the mistake that accounts for all differences."""
    first = differences[0]
    for mistake in known:
        if all(_accounts(mistake, d, atol) for d in differences):
            raise Explained(mistake.says + show(first), mistake.hint)
    what, hint = _at_first_sight(first)
    raise Explained(what + show(first), hint)


def call(answer, *inputs):
    """answer(*inputs), on copies; errors and endless loops become Explained."""
    if not callable(answer):
        raise _no_function(describe(answer))
    inputs, outcome = copy.deepcopy(inputs), {}

    def work():
        try:
            outcome["value"] = answer(*inputs)
        except BaseException as error:  # the learner's code may raise anything
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        stop = ctypes.py_object(TimeoutError)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), stop)
        raise Explained(
            f"It was still running after {SECONDS} seconds and was stopped.",
            "Look for a loop that never ends, or whose end moves away.",
        )
    if "error" in outcome:
        raise _blamed(outcome["error"], inputs)
    if not attempted(outcome["value"]):
        raise NotAttempted
    return outcome["value"]


def _no_function(what):
    return Explained(
        f"This should be a function (or a module), but it is {what}.",
        "Give the function itself to the check, without calling it.",
    )


def _blamed(error, inputs):
    """What to raise for an error: the learner's is explained, the check's own is not.

    A check wraps some answers in a function of its own. An error under such a
    wrapper is the learner's if a line of the learner's is on the way to it.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = [frame.f_globals.get("__name__", "__main__") for frame in frames]
    wrapped = any(name.startswith("minigpt.checks.") for name in modules[1:])
    if isinstance(error, (Explained, NotAttempted)):
        return error
    if wrapped and "__main__" not in modules:
        if no_function := re.match(r"'(\w+)' object is not callable", str(error)):
            return _no_function(f"of type {no_function[1]}")
        if not re.search(r"\(\) (takes|missing|got)", str(error)):  # its arguments
            return error
    # A skeleton may raise it; so does torch: softmax "not implemented for 'Long'".
    if isinstance(error, NotImplementedError) and modules[-1] == "__main__":
        if not re.search("not implemented for|Could not run|meta", str(error)):
            return NotAttempted()
    return explain_error(error, inputs)


def _where(error):
    """The learner's last line on the way to an error, or nothing."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "__main__") == "__main__":  # the notebook
            text = linecache.getline(frame.f_code.co_filename, line).strip()
            place = f"\n    in {frame.f_code.co_name}, line {line}"
            return f"{place}: {text}" if text else place
    return ""


def explain_error(error, inputs=()):
    """Explained for what an answer raised; shape mismatches in particular."""
    text = (str(error).splitlines() or [""])[0]
    name, line = type(error).__name__, _where(error)
    shapes = _two_shapes(text)
    given = f" (inputs: {', '.join(map(describe, inputs))})" if inputs else ""
    if shapes:
        said = (
            f"The shapes {shapes[0]} and {shapes[1]} do not fit together{given}. "
            f"It raised {name}: {text}{line}"
        )
        if "must match" in text:
            hint = (
                "Entry by entry, sizes are compared from the last dimension on and "
                "must be equal or 1. Is a keepdim=True missing, or a transpose?"
            )
        else:
            hint = (
                "In a product (…, a, b) @ (…, b, c) the inner sizes must agree. If "
                "they would after exchanging the last two dimensions of the second "
                "one, a .transpose(-2, -1) belongs there."
            )
        return Explained(said, hint)
    if isinstance(error, NameError):
        hint = "Use the function's own arguments, and import what you need."
    elif isinstance(error, IndexError):
        hint = "An index runs past the end: is the last one size - 1?"
    elif isinstance(error, TypeError):
        hint = "Check the number of arguments and what each of them is."
    elif any(word in text for word in ("dtype", "scalar type", "'Long'")):
        hint = "Integers and floats do not mix here: .float() makes floats of integers."
    elif isinstance(error, ValueError):
        hint = "The message names the value that is not accepted: change that one."
    else:
        hint = "Try your code on one small input in a cell of its own."
    return Explained(f"It raised {name}: {text}{given}{line}", hint)


def same(got, expected, atol=1e-5):
    """Equal up to rounding: tensors, numbers, strings, lists and tuples of them.

    Other dtypes, lists in place of tensors and 0-dim tensors are accepted.
    """
    if isinstance(expected, str) or isinstance(got, str):
        return isinstance(got, str) and got == expected
    if isinstance(expected, tuple):
        return (
            isinstance(got, (tuple, list))
            and len(got) == len(expected)
            and all(same(g, e, atol) for g, e in zip(got, expected))
        )
    got, expected = as_tensor(got), as_tensor(expected)
    if got is None or expected is None or got.shape != expected.shape:
        return False
    return torch.allclose(got, expected, atol=atol, rtol=1e-4, equal_nan=True)


def as_tensor(value):
    """A float64 tensor on the CPU of a tensor, number or nested list; else None.

    Complex numbers are not taken for real ones: they give None, too.
    """
    numbers = _plain(value)
    return None if numbers is None or numbers.is_complex() else numbers.double()


def _plain(value):
    """Detached, dense and on the CPU: an Apple GPU, for one, has no float64."""
    try:
        return torch.as_tensor(value).detach().cpu().to_dense()
    except Exception:  # no numbers, or none that can be read
        return None


def describe(value):
    """A few words for a value: its shape if it is a tensor, else type and value."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    try:
        if callable(value):
            name = getattr(value, "__name__", "")
            return f"the {type(value).__name__} {name}".strip()
        text = repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def show(difference):
    """Input, expected and received values, shortened to what can be read."""
    lines = [f"input    {_values(x)}" for x in difference.inputs if not callable(x)]
    lines.append(f"expected {_values(difference.expected)}")
    lines.append(f"received {_values(difference.got)}")
    return "".join("\n    " + line for line in lines)


def _values(value):
    if isinstance(value, torch.Tensor) and value.numel() <= 16:
        numbers = _plain(value)
        if numbers is None:
            return describe(value)
        if numbers.is_floating_point():  # float32 would print 0.6930999755859375
            numbers = (numbers.double() * 1e4).round() / 1e4
        return str(numbers.tolist())
    if isinstance(value, float):
        return str(round(value, 4))
    if isinstance(value, tuple) and any(isinstance(v, torch.Tensor) for v in value):
        return f"({', '.join(map(_values, value))})"
    return describe(value)


def _accounts(mistake, difference, atol):
    d = difference
    try:
        if isinstance(mistake.program, Sign):
            return bool(mistake.program.holds(d.got, d.expected, *d.inputs))
        return same(d.got, mistake.program(*d.inputs), atol)
    except Exception:  # a mistake that does not even run here is not the one
        return False


def _at_first_sight(difference):
    """What to say and a hint where no known mistake accounts for a difference."""
    got, expected = _plain(difference.got), as_tensor(difference.expected)
    if got is None and isinstance(difference.got, torch.Tensor):
        what = "This answer could not be compared: its numbers cannot be read."
        return what, "Return an ordinary tensor, one that can be printed."
    if got is not None and got.is_complex():
        what = "This answer could not be compared: its numbers are complex."
        return what, "Return real numbers; .real drops the imaginary parts."
    if got is not None and expected is not None and got.shape != expected.shape:
        shapes = tuple(got.shape), tuple(expected.shape)
        return f"The shape is {shapes[0]}, but should be {shapes[1]}.", ""
    return "The result is not right yet.", ""


def _two_shapes(text):
    """The two shapes or sizes named in an error of torch, or None."""
    patterns = [
        r"\((\d+x\d+) and (\d+x\d+)\)",
        r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
        r"to be: (\[[\d, ]+\]) but got: (\[[\d, ]+\])",
        r"shape '(\[[-\d, ]+\])' is invalid for input of size (\d+)",
    ]
    for pattern in patterns:
        found = re.search(pattern, text)
        if found:
            return found.groups()
    return None
