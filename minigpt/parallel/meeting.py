"""Lesson 10: where processes meet to train as one.

    torchrun --nproc_per_node=2 -m minigpt train …

starts two. The environment tells each one its rank, how many there are, and where to
meet.
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
    """Inside this block, the processes that torchrun started, if any, are connected.

    If one of them fails in `first`, it says why, and the others leave with SystemExit.
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
        time.sleep(0.2)  # or gloo aborts at exit (issue 190489)


def own_device(device: torch.device) -> torch.device:
    """This worker's own GPU. A CPU stays as it is, and so does the device of a single
    process.

    Raises ValueError for Apple's GPU, because processes can't share it, and if there
    are fewer GPUs than processes.
    """
    if not dist.is_torchelastic_launched() or device.type == "cpu":
        return device
    if device.type == "mps":
        raise ValueError("Several processes can't share mps: add --device cpu.")
    local, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= gpus:
        raise ValueError(
            f"Process {local + 1} has no GPU of its own; torch sees {gpus}: start "
            "only as many processes as you have GPUs, or add --device cpu."
        )
    return torch.device("cuda", local)


def restarts() -> list[int]:
    """(how often this job was started before, how often torchrun may restart it)."""
    names = "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"
    return [int(os.environ.get(name, 0)) for name in names]
