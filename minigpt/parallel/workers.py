"""Lesson 10: several processes that train as one, with torch's own engine.

Source: Li et al., PyTorch Distributed (2020), for DistributedDataParallel.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from minigpt.interfaces import Model
from minigpt.require import require


class Worker(nn.Module):
    """A model that shares each batch with other workers: train(Worker(model), ...).

    All of them draw the same batches, from one seed. Each reads its own rows in
    `accumulate` pieces, so only one piece's activations take up memory at a time. In
    the end, all of them have the gradients of the whole batch.
    """

    def __init__(self, model: Model, accumulate: int = 1) -> None:
        super().__init__()
        self.model, self.accumulate = model, accumulate
        self.rank, self.size = standing()
        self.shared = model
        if self.size > 1:
            self.shared = DistributedDataParallel(model, gradient_as_bucket_view=True)

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor
    ) -> tuple[None, torch.Tensor]:
        """idx, targets: (B, T), the whole batch -> None, loss.

        In evaluation, that's the mean loss of the batch. In training, all pieces except
        the last have already left their gradients, and this loss will add the rest.
        """
        B, n = len(idx), self.accumulate
        require(
            not self.training or B >= self.size * n,
            f"batch_size is {B}; give {self.size * n} or more, because each of "
            f"{self.size} workers needs {n} windows.",
        )
        mine = slice(self.rank * B // self.size, (self.rank + 1) * B // self.size)
        windows = B  # how many all workers read together
        if B < self.size:  # too few to share: everyone reads all of them
            mine, windows = slice(B), B * self.size
        x, y = idx[mine], targets[mine]  # each (about B / size, T)
        if not self.training:
            loss = self.model(x, y)[1]
            return None, loss.new_tensor(total(loss.item() * len(x) / windows))
        *pieces, last = zip(x.tensor_split(n), y.tensor_split(n))
        with self.own_numbers(idx.device):
            for piece in pieces:
                with self.shared.no_sync() if self.size > 1 else nullcontext():
                    loss = self.part_of(windows, *piece)
                    with torch.autocast(idx.device.type, enabled=False):
                        loss.backward()
            return None, self.part_of(windows, *last)

    def part_of(self, windows: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss of some of the windows, with a weight, because the workers'
        gradients get averaged."""
        return self.shared(x, y)[1] * (len(x) * self.size / windows)

    @contextmanager
    def own_numbers(self, device: torch.device) -> Generator[None]:
        """Different random numbers for dropout on each worker, and afterwards the
        shared ones again.

        All of them advance together, so one saved state can resume them all.
        """
        if self.size == 1:
            yield
            return
        own = torch.randint(2**62, ()).item() + self.rank
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(own)
            yield


def standing() -> tuple[int, int]:
    """(rank, number of workers); (0, 1) for a single process."""
    if dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def total(value: float) -> float:
    """The sum of a number over all workers. All of them call this, and all get the
    sum."""
    if not dist.is_initialized():
        return value
    numbers = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(numbers)  # on the CPU, so we don't have to wait for a GPU
    return numbers.item()


def first(do: Callable[[], object]) -> None:
    """Worker 0 calls do() while the others wait. If it fails, all of them stop."""
    failed = None
    try:
        if standing()[0] == 0:
            do()
    except Exception as error:
        failed = error
    if total(failed is not None):
        raise failed or Elsewhere


class Elsewhere(Exception):
    """Raised if another worker failed. That one says why."""
