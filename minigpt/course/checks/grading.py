"""A check for marks: what a grader runs where a learner's sheet has the plain check."""

import _thread
import contextlib
import functools
import importlib
import io
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from minigpt.course.checks.core import Result
from minigpt.course.checks.values import other_numbers

_latest = {}  # name of a check -> the answers that it saw last, and its Result


def once(module: str, name: str, reuse: bool = False) -> Callable[..., Result]:
    """The check `name` of a module here, whatever a cell made of that name.

    reuse: what it said last will do where it is asked about the same objects; Otter
    asks three times, and to find a mistake may take seconds. What an answer writes to
    stderr goes to stdout: nbgrader takes a line on stderr for a failure.
    """
    check = getattr(importlib.import_module(f"minigpt.course.checks.{module}"), name)

    def graded(*answers: Any) -> Result:
        before, result = _latest.get(name, ((), None))
        if not reuse or [*map(id, before)] != [*map(id, answers)]:
            with contextlib.redirect_stderr(sys.stdout):
                result = check(*answers, tell=True)
            _latest[name] = answers, result
        return result

    return graded


again = functools.partial(once, reuse=True)


def twice(module: str, name: str) -> Callable[..., Result]:
    """Like `again`, but when all is right it looks once more, with other numbers.

    That finds an answer which has the check's random cases by heart; a check whose
    cases are all chosen by hand sees the same ones again. The second look prints only
    what it has to object to, and then its Result is the one that counts.
    """

    def graded(*answers: Any) -> Result:
        result = again(module, name)(*answers)
        if not result:
            return result
        heard = io.StringIO()
        with other_numbers(), contextlib.redirect_stdout(heard):
            second = once(module, name)(*answers)
        if not second:
            print(f"But with other numbers:\n{heard.getvalue()}", end="")
        return second

    return graded


def limit_cells(shell: Any, seconds: float = 60) -> None:
    """From now on interrupt a cell that computes longer, or waits four times as long.

    shell: what get_ipython() gives. Otter has no limit of its own: one endless loop in
    one sheet would keep the whole class waiting. Otter's own cells take their time.
    """
    done = threading.Event()

    def watch(done: threading.Event) -> None:
        since, busy = time.monotonic(), time.process_time()
        while not done.wait(0.5):
            waited, computed = time.monotonic() - since, time.process_time() - busy
            if min(waited, computed) > seconds or waited > 4 * seconds:
                _thread.interrupt_main()  # again and again: an `except:` may catch it

    def start(cell: Any) -> None:
        nonlocal done
        done.set()
        done = threading.Event()
        if not re.search(r"\bcheck_\w+\(", cell.raw_cell):  # checks have limits
            threading.Thread(target=watch, args=(done,), daemon=True).start()

    shell.events.register("pre_run_cell", start)
    shell.events.register("post_run_cell", lambda result: done.set())
