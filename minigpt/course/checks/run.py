"""Running a learner's code: whatever it does, the check goes on and says it."""

import contextlib
import copy
import ctypes
import json
import linecache
import os
import re
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator
from typing import Any

import torch
import torch.nn as nn

from minigpt.course.checks import words
from minigpt.course.checks.results import as_tensor, describe, same

SECONDS = 2.5  # an answer that computes longer than this hangs


class Wrong(Exception):
    """Raised by an exercise's `work` that can say itself what is wrong.

    untouched: whether the bug of a bug hunt is as it was.
    """

    def __init__(self, says: str, hint: str = "", untouched: bool = False):
        super().__init__(says)
        self.says, self.hint, self.untouched = says, hint, untouched


class Endless(Exception):
    """Stands for what an answer raises that had to be stopped."""


class Outcome:
    """What a program made of some inputs: a value, or an error.

    changed: which inputs it changed. inputs: the inputs as they are afterwards.
    """

    def __init__(self, value: Any = None, error: Any = None):
        self.value, self.error = value, error
        self.changed: list[int] = []
        self.inputs: tuple = ()

    def agrees(self, other: "Outcome", atol: float) -> bool:
        """Whether both gave the same, or raised the same."""
        if self.error or other.error:
            alike = type(self.error) is type(other.error)
            return alike and str(self.error) == str(other.error)
        return same(self.value, other.value, atol)

    def part(self, place: int) -> "Outcome":
        """One of several values."""
        several = isinstance(self.value, (tuple, list)) and len(self.value) > place
        value = self.value[place] if several else None
        return Outcome(value, self.error if several else self.error or "no such part")


def run(call: Callable, inputs: tuple, seconds: float = 0.0) -> Outcome:
    """call(*inputs) on copies of the inputs, in time (SECONDS), with the same luck."""
    given = copy.deepcopy(inputs)
    found: list[Outcome] = []

    def act() -> None:
        torch.default_generator.manual_seed(0)
        torch.set_default_dtype(torch.float32)
        try:
            value = call(*given)
            # an error for a list that contains itself: nothing could compare it
            json.dumps(value, skipkeys=True, default=id)
            found.append(Outcome(value))
        except BaseException as error:  # the learner's code may raise anything
            found.append(Outcome(error=error))

    if not in_time(act, seconds or SECONDS) or not found:
        return Outcome(error=Endless())
    pairs = enumerate(zip(given, inputs))
    found[0].inputs = given
    found[0].changed = [i for i, (now, then) in pairs if _changed(now, then)]
    return found[0]


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
            waited = time.monotonic() - since
            if waited > seconds and time.process_time() - busy > seconds:
                break
            if waited > 4 * seconds:
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
        if not isinstance(now, dict) or now.keys() != then.keys():
            return True
        return any(_changed(now[k], then[k]) for k in then)
    if isinstance(then, (list, tuple)):
        if not isinstance(now, (list, tuple)) or len(now) != len(then):
            return True
        return any(map(_changed, now, then))
    if isinstance(then, torch.Tensor) or type(then).__name__ == "ndarray":
        return as_tensor(then) is not None and not same(now, then, atol=0.0)
    plain = isinstance(then, (bool, int, float, str, bytes))  # in a list, say
    return plain and (type(now) is not type(then) or now != then)


@contextlib.contextmanager
def settings_kept() -> Generator[None]:
    """Inside floats are float32; afterwards torch's settings are as they were.

    Its randomness, its threads and its usual kind of float are.
    """
    threads, kind = torch.get_num_threads(), torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        try:
            torch.set_default_dtype(torch.float32)
            yield
        finally:
            torch.set_default_dtype(kind)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)


def in_float32(value: Any) -> Any:
    """A copy of a learner's model or tensor that was made in another kind of float."""
    if isinstance(value, nn.Module):
        return copy.deepcopy(value).float()
    floats = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.float() if floats else value


@contextlib.contextmanager
def silence() -> Generator[None]:
    """Inside, nothing is printed and nobody is warned: a program is run once more."""
    with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield


# What an exception means


def explained(error: BaseException) -> str:
    """What an answer raised, in which line, what is in it, and what that means."""
    text, name = (str(error).splitlines() or [""])[0], type(error).__name__
    whole = f"{name}: {text}" if text else name
    says = words.RAISED.format(error=whole[:240])
    frames = [f for f in traceback.walk_tb(error.__traceback__) if _is_learners(f[0])]
    if frames:
        frame, number = frames[-1]
        line = linecache.getline(frame.f_code.co_filename, number).strip()
        says += f"\n    {frame.f_code.co_name}, line {number}" + (line and f":  {line}")
        says += "".join(f"\n    {name} is {value}" for name, value in _names(error))
    means = next((m for p, m in words.MEANINGS.items() if re.search(p, whole)), "")
    return says + (means and f"\n  {means}")


def _is_learners(frame: Any) -> bool:
    return frame.f_globals.get("__name__", "__main__") == "__main__"  # the notebook


def _names(error: BaseException) -> list[tuple[str, str]]:
    """(a name or an expression in the learner's last line, what it is), up to six."""
    try:
        from stack_data import FrameInfo, Options  # IPython has it; Colab doesn't
    except ImportError:
        return []
    try:
        trace: Any = error.__traceback__
        infos: Any = FrameInfo.stack_data(
            trace, Options(), collapse_repeated_frames=False
        )
        mine = [info for info in infos if _is_learners(info.frame)][-1]
        found = {
            variable.name: describe(variable.value)
            for variable in mine.variables_in_executing_piece
            if not callable(variable.value)
            and type(variable.value).__name__ != "module"
        }
        return list(found.items())[:6]
    except Exception:  # its text is gone, or a name holds something that can't be read
        return []
