"""Running a learner's code: whatever it does, the check goes on and says it."""

import contextlib
import copy
import ctypes
import os
import re
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any

import torch
import torch.nn as nn

from minigpt.course.checks.findings import Kind, found
from minigpt.course.checks.old_errors import (
    NotAttempted,
    Problem,
    no_function,
    to_raise,
)
from minigpt.course.checks.reading import is_skeleton
from minigpt.course.checks.values import as_tensor, describe, same

SECONDS = 5  # an answer that takes longer than this hangs


def attempted(answer: Any) -> bool:
    """False for what a skeleton leaves: `...` or None."""
    return answer is not ... and answer is not None


def call(answer: Any, *inputs: Any) -> Any:
    """answer(*inputs), on copies; errors and endless loops become a Problem.

    Raises NotAttempted where the answer is still a skeleton.
    """
    return run(answer, inputs)[0]


def run(
    answer: Any,
    inputs: tuple,
    work: Callable | None = None,
    names: Sequence[str] = (),
) -> tuple[Any, list[int]]:
    """(what answer(*inputs) returns, the numbers of the inputs that it changed).

    work(answer, *inputs): what to do with the answer in place of calling it. names:
    what the inputs are called.
    """
    if not callable(answer):
        raise no_function(describe(answer))
    given = copy.deepcopy(inputs)
    outcome: dict[str, Any] = {}

    def act() -> None:
        try:
            value = work(answer, *given) if work else answer(*given)
            outcome["value"] = value
        except BaseException as error:  # the learner's code may raise anything
            outcome["error"] = error

    if not in_time(act, SECONDS):
        raise Problem(found(Kind.ENDLESS, seconds=SECONDS))
    if error := outcome.get("error"):
        if is_skeleton(answer) and re.search("ellipsis|NoneType", str(error)):
            raise NotAttempted
        problem = to_raise(error, inputs, names)
        raise problem from (None if problem is error else error)
    value = outcome["value"]
    own = getattr(answer, "__module__", "") or ""  # a check's own wrapping says None
    dots = own.startswith("minigpt.course.checks.") or is_skeleton(answer)
    several = value if isinstance(value, (tuple, list)) and value else [value]
    if all(part is ... for part in several) or (value is None and dots):
        raise NotAttempted
    if value is None:
        raise Problem(found(Kind.NOTHING_RETURNED))
    pairs = zip(given, inputs)
    return value, [i for i, (now, then) in enumerate(pairs) if _changed(now, then)]


def in_time(act: Callable[[], object], seconds: float) -> bool:
    """Run act() in a thread; False if it had to be stopped.

    It gets so many seconds of computing, so that a busy machine does not count against
    it, but at most four times as many by the clock. Importing modules is for nothing:
    the first optimizer of a process imports for seconds.
    """
    thread = threading.Thread(target=act, daemon=True)
    since, busy, modules = time.monotonic(), time.process_time(), len(sys.modules)
    thread.start()
    try:
        while thread.is_alive():
            if len(sys.modules) != modules:
                modules = len(sys.modules)
                since, busy = time.monotonic(), time.process_time()
            thread.join(min(0.05, seconds / 4))
            waited, computed = time.monotonic() - since, time.process_time() - busy
            if min(computed, waited) > seconds or waited > 4 * seconds:
                break
        return not thread.is_alive()
    finally:
        for _ in range(5):  # an `except:` of the learner's may catch one or two
            if thread.is_alive():
                interrupt(thread)
                thread.join(0.1)


def interrupt(thread: threading.Thread) -> None:
    """Raise SystemExit in another thread, as soon as it runs Python again.

    It is the one exception that ends a thread without a word, wherever it strikes.
    """
    end = ctypes.py_object(SystemExit)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), end)


def _changed(now: Any, then: Any) -> bool:
    """Whether an input, or what is in it, has other numbers than before."""
    if isinstance(then, nn.Module):
        return _changed(now.state_dict(), then.state_dict())
    if isinstance(then, dict):
        return now.keys() != then.keys() or any(_changed(now[k], then[k]) for k in then)
    if isinstance(then, (list, tuple)):
        return len(now) != len(then) or any(map(_changed, now, then))
    if isinstance(then, torch.Tensor) or type(then).__name__ == "ndarray":
        return as_tensor(then) is not None and not same(now, then, atol=0.0)
    plain = isinstance(then, (bool, int, float, str, bytes))  # in a list, say
    return plain and now is not then and now != then


@contextlib.contextmanager
def silence() -> Generator[None]:
    """Inside, nothing is printed and nobody is warned: a program is run once more."""
    with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield


STRICT = False  # set by the tests


def pass_over(error: BaseException) -> None:
    """Leave out what an answer has broken; with STRICT, raise the engine's own slips.

    An answer may be anything, so that a step which looks at it may fail with anything.
    But a wrong name of ours should not be taken for that.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = frames[-1].f_globals.get("__name__", "").startswith("minigpt.course.checks.")
    if STRICT and ours and isinstance(error, (NameError, AttributeError, KeyError)):
        raise error
