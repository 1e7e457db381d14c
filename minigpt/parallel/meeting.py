"""Lesson 10: where processes meet that are to train as one.

    torchrun --nproc_per_node=2 -m minigpt train …

starts two; the environment tells each its rank, how many there are, and where.
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from minigpt.parallel.workers import Elsewhere


@contextmanager
def joined() -> Generator[None]:
    """Inside, this process is one of those that torchrun started, if it started any.

    Where one of them fails in `first`, the others leave by SystemExit: it says why.
    """
    if not dist.is_torchelastic_launched():
        yield
        return
    local, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local < gpus:
        torch.cuda.set_device(local)
    store, rank, size = next(rendezvous("env://"))
    store = dist.PrefixStore(f"start {restarts()[0]}", store)  # torchrun keeps it
    backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    try:
        yield
    except Elsewhere:
        raise SystemExit(2) from None
    finally:
        dist.destroy_process_group()
        time.sleep(0.2)  # gloo lets go of tensors; at exit it aborts (issue 190489)


def own_device(device: torch.device) -> torch.device:
    """The GPU that is this worker's own; a CPU, and the device of one alone, as it is.

    Raises ValueError for Apple's GPU, which processes cannot share, and for fewer
    GPUs than processes.
    """
    if not dist.is_torchelastic_launched() or device.type == "cpu":
        return device
    if device.type == "mps":
        raise ValueError("Several processes cannot share mps: add --device cpu.")
    local, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= gpus:
        raise ValueError(
            f"Process {local + 1} here finds no GPU of its own; torch sees {gpus}: "
            "start as many processes as GPUs, or add --device cpu."
        )
    return torch.device("cuda", local)


def restarts() -> list[int]:
    """(starts of this job before this one, restarts that torchrun may make)."""
    names = "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"
    return [int(os.environ.get(name, 0)) for name in names]
