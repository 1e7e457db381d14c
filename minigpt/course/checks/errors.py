"""What an exception means, and what the names in its line hold."""

import linecache
import re
import traceback
from typing import Any

from minigpt.course.checks import words
from minigpt.course.checks.results import describe


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


def is_learners(error: BaseException) -> bool:
    """Whether a line of the learner's is on the way to an error."""
    return any(
        _is_learners(frame) for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _is_learners(frame: Any) -> bool:
    return frame.f_globals.get("__name__", "__main__") == "__main__"  # the notebook


def _names(error: BaseException) -> list[tuple[str, str]]:
    """(a name or an expression in the learner's last line, what it is), up to six."""
    try:
        from stack_data import (
            FrameInfo,
            Options,
        )  # comes with IPython, but not on Colab
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
