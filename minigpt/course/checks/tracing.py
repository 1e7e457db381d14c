"""Where the first nan, or the first infinite number, of a computation comes from."""

import contextlib
import linecache
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from minigpt.course.checks.running import in_time

SECONDS = 2  # for running an answer once more


class _Watch(TorchDispatchMode):
    """Looks at each operation's result. causes: kind -> what made the first one.

    of_inf: whether the first nan was made of infinite numbers.
    """

    def __init__(self):
        super().__init__()
        self.causes: dict[str, str] = {}
        self.of_inf = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.is_floating_point():
            some = [a for a in args if isinstance(a, torch.Tensor)]
            name = func.name().removeprefix("aten::").split(".")[0].strip("_")
            if "zero" not in self.causes and (says := _vanishes(name, some, out)):
                self.causes["zero"] = f"{says}{_line()}"
            for kind, has in (("nan", torch.isnan), ("inf", torch.isinf)):
                if kind not in self.causes and has(out).any():
                    if says := _cause(kind, name, some, args):
                        self.causes[kind] = f"{says}{_line()}"
                        if kind == "nan":
                            self.of_inf = any(t.isinf().any() for t in some)
        return out


def cause(run: Callable[[], Any], kind: str) -> str:
    """Why a computation has the first number of a kind, "nan" or "inf"; or ""."""
    watch = _Watch()

    def act() -> None:
        with contextlib.suppress(Exception), watch:
            run()

    in_time(act, SECONDS)
    says = watch.causes.get(kind, "")
    if kind == "nan" and watch.of_inf and "inf" in watch.causes:
        says += f"\n    The first inf: {watch.causes['inf']}"
    if says and "zero" in watch.causes:
        says += f"\n    Before it: {watch.causes['zero']}"
    return says


def _vanishes(name: str, some: list[torch.Tensor], out: torch.Tensor) -> str:
    """Which operation makes a 0 of what is none, for want of smaller floats; or ""."""
    x = some[0] if some else torch.zeros(0)
    if name == "exp" and ((out == 0) & x.isfinite()).any():
        return "e to the power of less than -104 is 0 for a float"
    if name == "prod" and (out == 0).any() and not (x == 0).any():
        return "a product of so many small numbers is 0 for a float"
    return ""


def _cause(kind: str, name: str, some: list[torch.Tensor], args: tuple) -> str:
    """What an operation does there; "" for none that can be named."""
    x = some[0] if some else torch.zeros(0)
    y = some[1] if len(some) > 1 else torch.zeros(0)
    if any(t.isnan().any() for t in some if t.is_floating_point()):
        return ""
    if kind == "inf":
        if name in ("log", "log2", "log10") and (x == 0).any():
            return "it is the logarithm of 0"
        if name in ("div", "reciprocal", "rsqrt", "pow"):
            low = x if name != "div" else y if y.numel() else torch.zeros(1)
            return "something is divided by 0" if (low == 0).any() else ""
        if all(t.isfinite().all() for t in some):
            if name in ("exp", "exp2"):
                return "e to the power of more than 88 is too large for a float"
            if name in ("mul", "mm", "bmm", "matmul", "square", "baddbmm", "addmm"):
                return "a product is too large for a float"
        return ""
    if name in ("softmax", "log_softmax"):
        dim = args[1] if len(args) > 1 and isinstance(args[1], int) else -1
        if (x == float("-inf")).all(dim).any():
            return "in a row of the softmax every score is -inf: all of it is hidden"
        if x.isinf().any():
            return "a score of the softmax is inf (its row: inf - inf)"
        return ""
    if name == "div":
        zero = not y.numel() or bool(((x == 0) & (y == 0)).any())
        return "0 is divided by 0" if zero else "inf / inf: both are inf"
    if name in ("log", "log2", "log10", "sqrt", "rsqrt", "pow"):
        word = "logarithm" if name[0] == "l" else "root"
        return f"it is the {word} of a negative number" if (x < 0).any() else ""
    if any(t.isinf().any() for t in some):
        if name in ("add", "sub", "sum"):
            return "an inf is taken from an inf"
        if name in ("mul", "mm", "bmm"):
            return "0 times an inf is nan"
    return "it is the mean of nothing" if name == "mean" and not x.numel() else ""


def _line() -> str:
    """The learner's line that is under way, or nothing."""
    frame: Any = sys._getframe()
    while frame and frame.f_globals.get("__name__", "__main__") != "__main__":
        frame = frame.f_back
    if not frame:
        return "."
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    text = text.split("  #")[0].strip()
    return f", in line {frame.f_lineno}: {text}" if text else "."
