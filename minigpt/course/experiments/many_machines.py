"""Experiments of notebook 10: batches of every size, and what two workers cost."""

import math
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from minigpt.course.experiments import how_low
from minigpt.data import get_batch
from minigpt.gpt import GPTConfig
from minigpt.optimizer import make_optimizer
from minigpt.training import TrainConfig, preset, train

CONTEXT = 32  # characters in a window
TARGET = 0.5  # nats per character; the play's floor is at 0.14
BATCHES = [4, 8, 16, 32, 64, 128, 256]  # windows
FACTORS = [1.0, 0.5, 2.0]  # of the rate that the root of the batch suggests
WARMUP, MOST = 20, 6000  # steps


def pocket():
    """The pocket play of 07: train and validation ids, size of the vocabulary."""
    p = how_low.pocket()
    return p.ids[: p.n], p.ids[p.n :], p.tokenizer.vocab_size


def rate_of(batch_size, factor=1.0):
    """The learning rate that is tried: it grows like the root of the batch."""
    return factor * 8e-3 * math.sqrt(batch_size / 128)


class Level(TrainConfig):
    """After a short warm-up the rate stays."""

    def learning_rate_at(self, step):
        return self.learning_rate * min(1.0, (step + 1) / WARMUP)


def steps_to(target, batch_size, rate, seed, most=MOST):
    """Steps until the loss on 128 windows has come down to `target`; `most` if it never
    does."""
    train_data, val_data, V = pocket()
    torch.manual_seed(seed)
    model = GPTConfig(V, CONTEXT, n_layer=2, n_head=4, n_embd=64).build()
    same = torch.Generator().manual_seed(0)
    judge = get_batch(val_data, 128, CONTEXT, generator=same)
    plan = Level(most, batch_size, CONTEXT, rate, weight_decay=0.0, seed=seed)
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


def batch(batch_size, seed):
    """Steps to TARGET with batches of this size, at the best of three rates."""
    steps = {}
    for factor in FACTORS:  # no need to go on far beyond the best so far
        most = math.ceil(1.5 * min(steps.values(), default=MOST / 1.5))
        rate = rate_of(batch_size, factor)
        steps[factor] = steps_to(TARGET, batch_size, rate, seed, most)
    best = min(steps, key=steps.get)
    return {"steps": steps[best], "factor": best, "rate": rate_of(batch_size, best)}


# Two workers on this machine.


def together(function, *arguments, workers=2):
    """What function(*arguments) returns in rank 0 of `workers` processes (gloo)."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_worker, (workers, folder, function, arguments), workers)
        return torch.load(Path(folder) / "result.pt")


def _worker(rank, workers, folder, function, arguments):
    torch.set_num_threads(1)
    meeting = (Path(folder) / "meeting").as_uri()
    dist.init_process_group("gloo", meeting, rank=rank, world_size=workers)
    result = function(*arguments)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        torch.save(result, Path(folder) / "result.pt")


def quickest(functions, rounds):
    """{name: seconds}: in each round every function has its turn, and all workers
    begin it together; of the best round, as other work can only slow one down."""
    times = {name: [] for name in functions}
    for number in range(rounds + 2):  # two rounds to warm up
        for name, function in functions.items():
            dist.barrier()
            start = time.perf_counter()
            function()
            if number >= 2:
                times[name].append(time.perf_counter() - start)
    return {name: min(each) for name, each in times.items()}


SHAPES = {  # name: preset, batch of all workers together, rounds of measuring
    "cpu, 2 windows": ("cpu", 2, 60),
    "cpu, 16 windows": ("cpu", 16, 40),
    "cpu, 128 windows": ("cpu", 128, 8),
    "gpu, 2 windows": ("gpu", 2, 4),
    "gpu, 4 windows": ("gpu", 4, 3),
}


def steps_of_both(name, batch_size, rounds, seed):
    """Seconds of a step's parts, and of whole steps, on one and two; and "bytes"."""
    config, _ = preset(name, vocab_size=65)
    torch.manual_seed(seed)
    model = config.build()
    flat = torch.ones(sum(p.numel() for p in model.parameters()))
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    plan = TrainConfig(100, batch_size, config.block_size, 1e-5)
    optimizer = make_optimizer(model, plan)
    first = dist.get_rank() == 0
    idx = torch.randint(65, (batch_size, config.block_size))

    def step(net, windows):
        optimizer.zero_grad()
        net(idx[:windows], idx[:windows])[1].backward()
        optimizer.step()

    half = batch_size // 2
    parts = {
        "one": lambda: step(model, batch_size) if first else None,
        "half, both busy": lambda: step(model, half),
        "all_reduce": lambda: dist.all_reduce(flat),
        "two": lambda: step(wrapped, half),
    }
    return quickest(parts, rounds) | {"bytes": flat.nbytes}


def speed_up(shape, seed):
    """Two workers against one: what the terms predict, and what a clock says.

    Times in ms. "predicted": one / (half + all_reduce), from separate times.
    """
    found = together(steps_of_both, *SHAPES[shape], seed)
    bytes_ = found.pop("bytes")
    one, half = found["one"], found["half, both busy"]
    return {
        **{key: 1000 * seconds for key, seconds in found.items()},
        "megabytes": bytes_ / 1e6,
        "predicted": one / (half + found["all_reduce"]),
        "measured": one / found["two"],
    }


EXPERIMENTS = {
    "10-batch": {f"{size} windows": partial(batch, size) for size in BATCHES},
    "10-speed-up": {shape: partial(speed_up, shape) for shape in SHAPES},
}
