"""What all checkers share: run an answer safely, find the mistake, say it well.

A checker names an exercise, its correct answer (`reference`), inputs from small
to large (`cases`) and the mistakes that people make. A mistake is a program:
if an answer gives what the mistaken program gives, that was the mistake.
"""

import copy
import ctypes
import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

SECONDS = 5  # an answer that takes longer than this hangs
_exercises = {}  # title -> "open", "tried" or "solved", in order of definition


class Mistake(NamedTuple):
    """A known mistake: what the wrong program returns, what to say, and a hint.

    program: called like the reference. A mistake may instead be recognised by
    `sign(got, expected, *inputs) -> bool`.
    """

    says: str
    hint: str
    program: Callable | None = None
    sign: Callable | None = None


class Difference(NamedTuple):
    """The first case on which an answer is wrong."""

    inputs: tuple
    expected: Any
    got: Any


class Explained(Exception):
    """Raised inside a checker that knows what is wrong: message, then hint."""


def exercise(title):
    """Decorate a checker: `@exercise("02.1 The present included")`.

    The checker returns what it verified, or raises Explained. The learner's
    answer may raise, hang or be missing: none of that gets out of the check.
    """
    _exercises[title] = "open"

    def decorate(checker):
        def check(*answers):
            if not all(attempted(answer) for answer in answers):
                return _say(title, "open", "not attempted yet: replace the `...`.")
            try:
                verified = checker(*answers)
            except NotImplementedError:
                return _say(title, "open", "not attempted yet: replace the `...`.")
            except Explained as problem:
                what, hint = (*problem.args, "")[:2]
                hint = f"\n  Hint: {hint}" if hint else ""
                untouched = what.startswith("The bug is still there")
                state = "open" if untouched else "tried"
                return _say(title, state, f"not yet. {what}{hint}", mark="✗")
            return _say(title, "solved", f"right! Verified: {verified}")

        check.__name__, check.__doc__ = checker.__name__, checker.__doc__
        check.title = title
        return check

    return decorate


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


def compare(answer, reference, cases, mistakes=(), atol=1e-5):
    """Raise Explained unless answer(*inputs) equals reference(*inputs) on all cases.

    cases: list of tuples of inputs, the smallest first. Inputs are copied, so an
    answer may change its own. Raises NotImplementedError if the answer is still
    a skeleton (returns None or `...`).
    """
    differences = []
    for inputs in cases:
        expected = reference(*copy.deepcopy(inputs))
        got = call(answer, *inputs)
        if not same(got, expected, atol):
            differences.append(Difference(inputs, expected, got))
    if differences:
        explain(differences, mistakes, atol)


def explain(differences, mistakes, atol=1e-5):
    """Raise Explained with the mistake that accounts for all differences."""
    first = differences[0]
    for mistake in mistakes:
        if all(_accounts(mistake, d, atol) for d in differences):
            raise Explained(mistake.says + show(first), mistake.hint)
    raise Explained(_by_shape(first) + show(first))


def call(answer, *inputs):
    """answer(*inputs), on copies; errors and endless loops become Explained."""
    outcome = {}

    def work():
        try:
            outcome["value"] = answer(*copy.deepcopy(inputs))
        except BaseException as error:  # the learner's code may raise anything
            outcome["error"] = error

    if not callable(answer):
        raise Explained(
            f"This should be a function (or a module), but it is {describe(answer)}.",
            "Give the function itself to the check, without calling it.",
        )
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
        # A skeleton may raise it; so does torch: softmax "not implemented for 'Long'".
        unwritten = isinstance(outcome["error"], NotImplementedError)
        if unwritten and "not implemented for" not in str(outcome["error"]):
            raise outcome["error"]
        raise explain_error(outcome["error"], inputs)
    if not attempted(outcome["value"]):
        raise NotImplementedError
    return outcome["value"]


def explain_error(error, inputs=()):
    """Explained for what an answer raised; shape mismatches in particular."""
    text = str(error).splitlines()[0] if str(error) else ""
    name = type(error).__name__
    shapes = _two_shapes(text)
    given = f" (inputs: {', '.join(map(describe, inputs))})" if inputs else ""
    if shapes:
        said = (
            f"The shapes {shapes[0]} and {shapes[1]} do not fit together{given}. "
            f"It raised {name}: {text}"
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
    return Explained(f"It raised {name}: {text}{given}", hint)


def same(got, expected, atol=1e-5):
    """Equal up to rounding: tensors, numbers, strings, lists and tuples of them.

    Other dtypes, lists in place of tensors and 0-dim tensors are accepted.
    """
    if isinstance(expected, str) or isinstance(got, str):
        return got == expected
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
    """A detached float64 tensor of a tensor, number or nested list; else None."""
    try:
        return torch.as_tensor(value).detach().double()
    except (TypeError, ValueError, RuntimeError):
        return None


def describe(value):
    """A few words for a value: its shape if it is a tensor, else type and value."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if callable(value):
        return f"the {type(value).__name__} {getattr(value, '__name__', '')}".strip()
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def show(difference):
    """Input, expected and received values, shortened to what can be read."""
    lines = [f"input    {_values(x)}" for x in difference.inputs if not callable(x)]
    lines.append(f"expected {_values(difference.expected)}")
    lines.append(f"received {_values(difference.got)}")
    return "".join("\n    " + line for line in lines)


def _values(value):
    if isinstance(value, torch.Tensor) and value.numel() <= 16:
        numbers = value.detach().cpu()
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
        if mistake.sign is not None:
            return bool(mistake.sign(d.got, d.expected, *d.inputs))
        return same(d.got, mistake.program(*copy.deepcopy(d.inputs)), atol)
    except Exception:  # a mistake that does not even run here is not the one
        return False


def _by_shape(difference):
    got, expected = as_tensor(difference.got), as_tensor(difference.expected)
    if got is not None and expected is not None and got.shape != expected.shape:
        return (
            f"The shape is {tuple(got.shape)}, but should be {tuple(expected.shape)}."
        )
    return "The result is not right yet."


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


def _say(title, state, message, mark=None):
    if _exercises[title] != "solved" or state == "solved":
        _exercises[title] = state if state != "open" else _exercises[title]
    mark = mark or {"open": "○", "tried": "✗", "solved": "✓"}[state]
    print(f"{mark} {title}: {message}")
