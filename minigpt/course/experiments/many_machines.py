"""Experiments of notebook 10: batches of every size, what two workers cost, and how far
three are from one."""

import math
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

from minigpt.course import pocket
from minigpt.course.experiments.fit import DTYPES, cpu, grid
from minigpt.course.experiments.full_training import NoCosine
from minigpt.data import get_batch, train_val_split
from minigpt.gpt import GPTConfig
from minigpt.parallel.workers import Worker
from minigpt.tools.corpus import corpus
from minigpt.training import TrainConfig, preset, train

CONTEXT = 32  # characters in a window
TARGET = 0.5  # nats per character; the play's floor is at 0.14
BATCHES = [4, 8, 16, 32, 64, 128, 256]  # windows
FACTORS = [1.0, 0.5, 2.0]  # of the rate that the root of the batch suggests
WARMUP, MOST = 20, 6000  # steps


def rate_of(batch_size: int, factor: float = 1.0) -> float:
    """The learning rate that is tried: it grows like the root of the batch."""
    return factor * 8e-3 * math.sqrt(batch_size / 128)


def steps_to(
    target: float, batch_size: int, rate: float, seed: int, most: int = MOST
) -> float:
    """Steps until the loss on 128 windows has come down to `target`; `most` if it never
    does."""
    train_data, val_data = train_val_split(pocket.load().ids)
    V = pocket.load().tokenizer.vocab_size
    torch.manual_seed(seed)
    model = GPTConfig(V, CONTEXT, n_layer=2, n_head=4, n_embd=64).build()
    same = torch.Generator().manual_seed(0)
    judge = get_batch(val_data, 128, CONTEXT, generator=same)
    plan = NoCosine(most, batch_size, CONTEXT, rate, WARMUP, 0.0, seed=seed)
    looked = []  # (step, loss), ever rarer

    def look(run):
        if run.step >= (math.ceil(1.03 * looked[-1][0]) if looked else 10):
            with torch.no_grad():
                looked.append((run.step, model(*judge)[1].item()))
            return looked[-1][1] <= target

    plan.eval_every = most
    train(model, train_data, val_data, plan, on_step=look)
    step, loss = looked[-1]
    if loss > target:
        return float(most)
    if len(looked) == 1:
        return float(step)
    before, higher = looked[-2]
    return before + (higher - target) / (higher - loss) * (step - before)


def batch(batch_size: int, seed: int) -> dict[str, float]:
    """Steps to TARGET with batches of this size, at the best of three rates."""
    steps = {}
    for factor in FACTORS:  # no need to go on far beyond the best so far
        most = math.ceil(1.5 * min(steps.values(), default=MOST / 1.5))
        rate = rate_of(batch_size, factor)
        steps[factor] = steps_to(TARGET, batch_size, rate, seed, most)
    best = min(steps, key=lambda factor: steps[factor])
    return {"steps": steps[best], "factor": best, "rate": rate_of(batch_size, best)}


# Two workers on this machine. Preset, batch of both together, rounds of measuring:
SHAPES = {
    "cpu, 2 windows": ("cpu", 2, 60),
    "cpu, 16 windows": ("cpu", 16, 40),
    "cpu, 128 windows": ("cpu", 128, 8),
    "gpu, 2 windows": ("gpu", 2, 4),
    "gpu, 4 windows": ("gpu", 4, 3),
}


def speed_up(shape: str, seed: int) -> dict[str, float]:
    """Two workers against one: what the terms predict, and what a clock says.

    Times in ms. "predicted": one / (half + all_reduce), from separate times.
    """
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (Path(folder), *SHAPES[shape], seed), nprocs=2)
        found = torch.load(Path(folder) / "found.pt")
    predicted = found["one"] / (found["half, both busy"] + found["all_reduce"])
    return found | {"predicted": predicted, "measured": found["one"] / found["two"]}


def worker(
    rank: int, folder: Path, name: str, batch_size: int, rounds: int, seed: int
) -> None:
    """One of two processes (gloo), which times the parts of a step and whole steps.

    In each round every part has its turn, and both begin it together; the best round
    counts, as other work can only slow one down.
    """
    torch.set_num_threads(1)
    meeting = (folder / "meeting").as_uri()
    dist.init_process_group("gloo", meeting, rank=rank, world_size=2)
    config, _ = preset(name, vocab_size=65)
    torch.manual_seed(seed)
    model = config.build()
    gradient = torch.ones(sum(p.numel() for p in model.parameters()))
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    plan = TrainConfig(100, batch_size, config.block_size, learning_rate=1e-5)
    optimizer = plan.make_optimizer(model)
    idx, half = torch.randint(65, (batch_size, config.block_size)), batch_size // 2

    def step(net: torch.nn.Module, windows: int) -> None:
        """What is timed; `train` would draw a batch and set a rate in between."""
        optimizer.zero_grad()
        net(idx[:windows], idx[:windows])[1].backward()
        optimizer.step()

    parts = {
        "one": lambda: step(model, batch_size) if rank == 0 else None,
        "half, both busy": lambda: step(model, half),
        "all_reduce": lambda: dist.all_reduce(gradient),
        "two": lambda: step(wrapped, half),
    }
    times = {part: [] for part in parts}
    for _ in range(rounds + 2):  # two rounds to warm up
        for part, function in parts.items():
            dist.barrier()
            start = time.perf_counter()
            function()
            times[part].append(1000 * (time.perf_counter() - start))
    dist.destroy_process_group()
    if rank == 0:
        found = {part: min(each[2:]) for part, each in times.items()}
        torch.save(found | {"megabytes": gradient.nbytes / 1e6}, folder / "found.pt")


def rounding(seed: int, activation: type, dtype: torch.dtype) -> dict[str, float]:
    """The largest difference, in 30 steps, between a loss of three workers and of one,
    and the one's last loss."""
    with tempfile.TemporaryDirectory() as folder:
        for n in (1, 3):
            settings = (n, Path(folder), seed, activation, dtype)
            mp.spawn(losses, settings, nprocs=n)
        one, three = (torch.load(Path(folder) / f"{n}.pt") for n in (1, 3))
    return {"apart": (three - one).abs().max().item(), "loss": one[-1].item()}


def losses(
    rank: int, n: int, folder: Path, seed: int, activation: type, dtype: torch.dtype
) -> None:
    """One of n processes that train together; the first writes down the losses."""
    torch.set_num_threads(1)
    torch.set_default_dtype(dtype)
    meeting = (folder / f"meeting of {n}").as_uri()
    dist.init_process_group("gloo", meeting, rank=rank, world_size=n)
    config, recipe = cpu()
    torch.manual_seed(seed)
    model = config.build()
    for block in model.body[:-1]:
        block.feed_forward.relu = activation()
    plan = replace(recipe, steps=30, eval_every=1, eval_batches=2, seed=seed)
    history = train(Worker(model), corpus().train, corpus().val, plan)
    dist.destroy_process_group()
    if rank == 0:
        found = [row.train_loss for row in history]
        torch.save(torch.tensor(found, dtype=torch.float64), folder / f"{n}.pt")


ACTIVATIONS = {a.__name__: {"activation": a} for a in (nn.ReLU, nn.GELU)}
EXPERIMENTS = {
    "10-batch": {f"{size} windows": partial(batch, size) for size in BATCHES},
    "10-speed-up": {shape: partial(speed_up, shape) for shape in SHAPES},
    "10-rounding": grid(
        "{activation}, {dtype}", rounding, activation=ACTIVATIONS, dtype=DTYPES
    ),
}
