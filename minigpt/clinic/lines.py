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

    def dim(self) -> Any:
        """The dimension that an operation like softmax or mean was given."""
        return self.kwargs.get("dim", self.args[1] if len(self.args) > 1 else None)


def outside(path: str) -> bool:
    """Whether a file is neither torch's nor the clinic's."""
    return not path.startswith((TORCH, HERE, "<frozen"))


def line_of(frame: Any) -> str:
    """The innermost line outside torch, as "line 84 of gpt.py, `x = x + y`"."""
    while frame is not None and not outside(frame.f_code.co_filename):
        frame = frame.f_back
    return spoken(frame.f_code.co_filename, frame.f_lineno) if frame is not None else ""


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


def first(runs: list[list[Step]], part: Callable) -> Step | None:
    """The first step of two runs whose results differ in a part that mustn't differ:
    part(result), or None if the result has no such part."""
    for a, b in zip(*runs):
        if a.name != b.name or a.out.shape != b.out.shape:
            return None
        one, two = part(a.out), part(b.out)
        if one is not None and apart(one, two):
            return b
    return None


def apart(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors differ by more than rounding."""
    if a.numel() == 0:
        return False
    gap = (a - b).abs().nan_to_num(0, 0)  # inf - inf: the same mask
    size = a[a.isfinite()].abs()
    return gap.max().item() > 2e-5 * (size.max().item() if len(size) else 1) + 1e-9


def before(cut: int, T: int) -> Callable:
    """The part of a result that belongs to positions before `cut`."""

    def part(x: torch.Tensor) -> torch.Tensor | None:
        if T not in x.shape and x.shape[0] % T == 0 and x.dim() == 2:
            x = x.view(-1, T, x.shape[1])  # (B * T, C)
        dims = [dim for dim, size in enumerate(x.shape) if size == T]
        for dim in dims:
            x = x.narrow(dim, 0, cut)
        return x if dims else None

    return part


def alone(row: int, B: int) -> Callable:
    """The part of a result that belongs to one row of the batch."""

    def part(x: torch.Tensor) -> torch.Tensor | None:
        n = x.shape[0] // B
        return x[row * n :][:n] if x.shape[0] % B == 0 and x.dim() > 1 else None

    return part
