"""In which line of somebody's code a symptom first shows.

Every operation of torch passes a Tape. The model runs twice, on inputs that differ
only where they mustn't matter: the first result that differs anyway is the place.
"""

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

TORCH, HERE = str(Path(torch.__file__).parent), str(Path(__file__).parent)


class Step(NamedTuple):
    """An operation: its name, the line that called it, its result and arguments."""

    name: str
    line: str
    out: torch.Tensor
    args: tuple
    kwargs: dict


def outside(path: str) -> bool:
    """Whether a file is neither torch's nor the clinic's."""
    return not path.startswith((TORCH, HERE, "<frozen"))


def line_of(frame: Any) -> str:
    """The innermost line outside torch, as "line 84 of gpt.py, `x = x + y`"."""
    while frame is not None:
        path = frame.f_code.co_filename
        if outside(path):
            return spoken(path, frame.f_lineno)
        frame = frame.f_back
    return ""


def spoken(path: str, number: int) -> str:
    """How a page names a line of a file or of a notebook's cell."""
    code = linecache.getline(path, number).strip()
    file = "the cell" if "ipykernel" in path or path[:1] == "<" else Path(path).name
    return f"line {number} of {file}" + (f", `{code}`" if code else "")


class Tape(TorchFunctionMode):
    """Records what torch computes while a model runs, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for out in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(out, torch.Tensor) and out.is_floating_point() and out.dim():
                line, name = line_of(sys._getframe(1)), getattr(func, "__name__", "")
                copy = out.detach().clone()
                self.steps.append(Step(name, line, copy, args, kwargs or {}))
        return result


def first(one: list[Step], two: list[Step], differs: Callable) -> Step | None:
    """The first step whose results differ(s): differs(result, result) -> bool."""
    for a, b in zip(one, two):
        if a.name != b.name or a.out.shape != b.out.shape:
            return None
        if differs(a.out, b.out):
            return b
    return None


def apart(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors differ by more than rounding."""
    if a.numel() == 0:
        return False
    gap = (a - b).abs().nan_to_num(0, 0)  # inf - inf: the same mask
    size = a[a.isfinite()].abs()
    return gap.max().item() > 2e-5 * (size.max().item() if len(size) else 1) + 1e-9


def earlier(cut: int, T: int) -> Callable:
    """differs() for positions before `cut` only, along every dimension of T."""

    def differs(a: torch.Tensor, b: torch.Tensor) -> bool:
        if T not in a.shape and a.shape[0] % T == 0 and a.dim() == 2:
            a, b = (x.view(-1, T, x.shape[1]) for x in (a, b))  # (B * T, C)
        if T not in a.shape:
            return False
        for dim, size in enumerate(a.shape):
            if size == T:
                a, b = a.narrow(dim, 0, cut), b.narrow(dim, 0, cut)
        return apart(a, b)

    return differs


def alone(row: int, B: int) -> Callable:
    """differs() for one row of the batch."""

    def differs(a: torch.Tensor, b: torch.Tensor) -> bool:
        if a.shape[0] % B or a.dim() < 2:
            return False
        n = a.shape[0] // B
        return apart(a[row * n :][:n], b[row * n :][:n])

    return differs


def dims_of(step: Step, default: Any = None) -> Any:
    """The dimension that an operation like softmax or mean was given."""
    if "dim" in step.kwargs:
        return step.kwargs["dim"]
    return step.args[1] if len(step.args) > 1 else default
