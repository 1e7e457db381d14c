"""How long a function takes and how much memory it needs, on the CPU."""

import statistics
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def seconds(function: Callable, *inputs: Any) -> float:
    """Median wall time of function(*inputs), repeated for 0.1 s after a first call."""
    function(*inputs)
    times, end = [], time.perf_counter() + 0.1
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        function(*inputs)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peak_bytes(function: Callable, *inputs: Any) -> int:
    """Largest sum of bytes of the tensors alive at once that the call made.

    Inputs do not count, nor does scratch space inside one torch operation.
    """
    with _Meter(inputs) as meter:
        function(*inputs)
    return meter.peak


class _Meter(TorchDispatchMode):
    """Sees every tensor that an operation returns, and when it is freed."""

    def __init__(self, inputs: Any) -> None:
        super().__init__()
        self.live = self.peak = 0
        self.known = {x.untyped_storage().data_ptr() for x in inputs}

    def __torch_dispatch__(  # ty: ignore
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        for tensor in tree_leaves((args, kwargs)):  # what was there before the call
            if isinstance(tensor, torch.Tensor):
                self.known.add(tensor.untyped_storage().data_ptr())
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: Any) -> None:
        address, size = storage.data_ptr(), storage.nbytes()
        if address in self.known:  # a view of something counted before
            return
        self.known.add(address)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, address, size)

    def _free(self, address: int, size: int) -> None:
        self.known.discard(address)
        self.live -= size
