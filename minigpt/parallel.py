"""Lesson 10: several processes that train as one, with torch's own engine.

    torchrun --nproc_per_node=2 -m minigpt train …

starts two; the environment tells each its rank and how many there are.
Sources: Li et al., PyTorch Distributed (2020), for DistributedDataParallel; Zhao et
al., PyTorch FSDP (2023), and Rajbhandari et al., ZeRO (2020), for shares of a model.
"""

import os
import signal
import time
import warnings
from contextlib import contextmanager, nullcontext, suppress
from functools import partial

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from minigpt.device import pick_device
from minigpt.workers import ALONE, Alone


class Workers(Alone):
    """One of several processes, each with the whole model (DistributedDataParallel).

    Alone says what each method is for.
    """

    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def wrap(self, model):
        return DistributedDataParallel(model, gradient_as_bucket_view=True)

    def averaging(self, model, last):
        return nullcontext() if last else model.no_sync()

    def share(self, items):
        return ((item, 1) for i, item in enumerate(items) if i % self.size == self.rank)

    def sum(self, value):
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total)  # on the CPU, so that no GPU has to be waited for
        return total.item()

    def first(self, do):
        failed = None
        try:
            done = do() if self.rank == 0 else None
        except Exception as error:
            failed = error
        if self.sum(failed is not None):
            raise failed or Elsewhere
        return done

    def part_ways(self, seed, step):
        if self.rank > 0:  # from here on, so that a resumed run draws the same
            torch.manual_seed(seed + 1_000_003 * self.rank + step)


class Shards(Workers):
    """One of several processes, each with a share of weights, gradients, averages.

    Before a block computes, its weights are gathered; after it, they are let go.
    Every forward pass needs all workers: they must do equally many.
    """

    sharded = True

    def wrap(self, model):
        from torch.distributed.fsdp import fully_shard  # takes a second to import

        # Of what is passed on from block to block, nothing is changed in place.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module")
        mesh = dist.init_device_mesh(next(model.parameters()).device.type, (self.size,))
        for block in list(model.body)[:-1]:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    def averaging(self, model, last):
        return nullcontext(model.set_requires_gradient_sync(last))

    def share(self, items):
        items = list(items)
        for start in range(0, len(items), self.size):
            i = start + self.rank
            yield items[min(i, len(items) - 1)], int(i < len(items))

    def spread(self, optimizer):
        from torch.distributed.tensor import DTensor, distribute_tensor

        for p, averages in optimizer.state.items():
            for name, whole in averages.items():
                if whole.shape == p.shape and not isinstance(whole, DTensor):
                    place = p.device_mesh, p.placements
                    averages[name] = distribute_tensor(whole, *place)


class Elsewhere(Exception):
    """Another worker failed, and says why."""


class Lost(RuntimeError):
    """A worker of this job has died, or torchrun was told to end them all."""

    def __init__(self):
        done, allowed = restarts()
        then = "start it again with --resume; --max-restarts=3 does so by itself."
        if done < allowed:
            then = f"torchrun starts all again (restart {done + 1} of {allowed})."
        super().__init__(
            "This job ends: a worker died, or torchrun was told to stop. What was "
            f"saved last is whole; to go on from there, {then}"
        )


@contextmanager
def joined(fsdp=False):
    """The Workers of this job, if torchrun started this process; else ALONE.

    fsdp: each holds a share of the model. The first that fails says why, the others
    leave by SystemExit. ValueError: nothing to join, or half of it. Lost: one died.
    """
    if not several():
        if fsdp:
            it = "--fsdp shares a model out over processes, and this is only one: "
            raise ValueError(f"{it}torchrun --nproc_per_node=2 -m minigpt train --fsdp")
        yield ALONE
        return
    if "LOCAL_RANK" not in os.environ:
        raise ValueError("RANK is set, LOCAL_RANK is not: use torchrun, or unset RANK.")
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    kept, rank, size = next(rendezvous("env://"))  # by torchrun, over all its starts
    again = kept.check(["begun"])
    store = dist.PrefixStore(f"start {restarts()[0]}", kept)
    before = signal.signal(signal.SIGTERM, _ended)  # torchrun sends it to who is left
    try:
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
        workers = Shards() if fsdp else Workers()
        workers.again, workers.begin = again, partial(kept.set, "begun", "")
        yield workers
    except Exception as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends, and is to say why
        error, first = Lost() if _is_loss(error) else error, False
        if not isinstance(error, Elsewhere):
            with suppress(RuntimeError):  # the store's keeper failed first, and told
                first = store.add("told", 1) == 1
        raise error if first else SystemExit(2) from None
    else:
        signal.signal(signal.SIGTERM, before)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
            time.sleep(0.2)  # gloo lets go of tensors; at exit it aborts (issue 190489)


def several():
    """Was this process started as one of several, as torchrun does?"""
    return {"RANK", "WORLD_SIZE"} <= set(os.environ)


def place(name=None):
    """pick_device(name) for this worker: with GPUs, each process has its own.

    Raises ValueError if there is none left, or for Apple's, which cannot share.
    """
    if not several():
        return pick_device(name)
    local, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local < there:
        torch.cuda.set_device(local)
    device = pick_device(name)
    if device.type == "mps":
        raise ValueError("Several processes cannot share mps: add --device cpu.")
    if device.type == "cuda" and local >= there:
        raise ValueError(
            f"Worker {local} finds no GPU of its own, there are {there}: start "
            f"--nproc_per_node={there}, or add --device cpu."
        )
    return torch.device("cuda", local) if device.type == "cuda" else device


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
