"""Lesson 10: where processes meet that are to train as one.

    torchrun --nproc_per_node=2 -m minigpt train …

starts two; the environment tells each its rank, how many there are, and where.
"""

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.constants import default_pg_timeout
from torch.distributed.rendezvous import rendezvous

from minigpt.parallel.workers import Elsewhere

PATIENCE = 8  # seconds until whoever keeps the meeting point must have answered


class Lost(RuntimeError):
    """A worker of this job has died, or torchrun was told to end them all."""

    def __init__(self):
        super().__init__(
            "This job ends: a worker died, or torchrun was told to stop. What was "
            "saved last is whole; with --resume the next start goes on from there, "
            "and torchrun's --max-restarts=3 starts it again by itself."
        )


def several():
    """Was this process started as one of several, as torchrun does?"""
    return {"RANK", "WORLD_SIZE"} <= set(os.environ)


@contextmanager
def joined():
    """Inside, this process is one of those that torchrun started, if it started any.

    Of workers that fail, the first one says why and the others leave by SystemExit.
    Raises ValueError if there is nothing to join, Lost if another worker died.
    """
    if not several():
        yield
        return
    store, rank, size = meet()
    if int(os.environ["LOCAL_RANK"]) < torch.cuda.device_count():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    store = dist.PrefixStore(f"start {restarts()[0]}", store)  # torchrun keeps it
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    before = signal.signal(signal.SIGTERM, _ended)  # torchrun sends it to who is left
    try:
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
        yield
    except Exception as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends, and is to say why
        error, told = Lost() if _is_loss(error) else error, True
        if not isinstance(error, Elsewhere):
            with suppress(RuntimeError):  # the store went first, with its worker
                told = store.add("told", 1) > 1
        raise SystemExit(2) if told else error from None
    else:
        signal.signal(signal.SIGTERM, before)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
            time.sleep(0.2)  # gloo lets go of tensors; at exit it aborts (issue 190489)


def meet():
    """(store, rank, number of workers), where the workers leave each other notes.

    Raises ValueError within ten seconds if the others cannot be met.
    """
    found = []

    def ask():
        with suppress(dist.DistError, ValueError):
            wait = timedelta(seconds=PATIENCE)
            found.append(next(rendezvous("env://", timeout=wait)))

    asking = threading.Thread(target=ask, daemon=True)  # a stranger may never answer
    asking.start()
    asking.join(PATIENCE + 1)
    if not found:
        port = os.environ.get("MASTER_PORT")
        raise ValueError(
            "The other workers are not to be met: one is missing, or its port "
            f"({port}) belongs to another program: start all workers with torchrun, "
            "or unset RANK to be alone."
        )
    store, rank, size = found[0]
    store.set_timeout(default_pg_timeout)  # from here on, whoever is late is waited for
    return store, rank, size


def own_device(device):
    """The GPU that is this worker's own; a CPU, and the device of one alone, as it is.

    Raises ValueError if there is none left, or for Apple's, which cannot share.
    """
    if not several() or device.type == "cpu":
        return device
    if device.type == "mps":
        raise ValueError("Several processes cannot share mps: add --device cpu.")
    local, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= there:
        raise ValueError(
            f"Worker {local} finds no GPU of its own, there are {there}: start "
            f"--nproc_per_node={there}, or add --device cpu."
        )
    return torch.device("cuda", local)


def restarts():
    """(starts of this job before this one, restarts that torchrun may make)."""
    names = "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"
    return [int(os.environ.get(name, 0)) for name in names]


def _ended(number, frame):
    raise Lost


def _is_loss(error):
    """Does an error say that another worker cannot be reached any more?"""
    broken = isinstance(error, RuntimeError) and "gloo" in str(error)
    return broken or isinstance(error, (dist.DistNetworkError, dist.DistBackendError))
