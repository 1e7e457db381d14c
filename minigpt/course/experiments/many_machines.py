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
from minigpt.training import TrainConfig, preset

CONTEXT = 32  # characters in a window
TARGET = 0.5  # nats per character; the play's floor is at 0.14
BATCHES = [4, 8, 16, 32, 64, 128, 256]  # windows
FACTORS = [1.0, 0.5, 2.0]  # of the rate that the root of the batch suggests
WARMUP, MOST = 20, 6000  # steps
LOSSES = [2.0, 1.0, 0.5]  # where the noise of the gradients is looked at
NOISE_WINDOWS = 1024


def pocket():
    """The pocket play of 07: train and validation ids, size of the vocabulary."""
    p = how_low.pocket()
    return p.ids[: p.n], p.ids[p.n :], p.tokenizer.vocab_size


def small_gpt(seed):
    """A GPT of two layers and 64 channels for the pocket play."""
    torch.manual_seed(seed)
    return GPTConfig(pocket()[2], CONTEXT, n_layer=2, n_head=4, n_embd=64).build()


def rate_of(batch_size, factor=1.0):
    """The learning rate that is tried: it grows like the root of the batch."""
    return factor * 8e-3 * math.sqrt(batch_size / 128)


def losses_of(model, batch_size, rate, seed, most=MOST):
    """Train with a constant rate; yield (step, loss on 128 windows), ever rarer."""
    train_data, val_data, _ = pocket()
    plan = TrainConfig(most, batch_size, CONTEXT, rate, weight_decay=0.0)
    optimizer = make_optimizer(model, plan)
    drawn = torch.Generator().manual_seed(seed)
    same = torch.Generator().manual_seed(0)
    judge = get_batch(val_data, 128, CONTEXT, generator=same)
    look = 10
    for step in range(1, most + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, step / WARMUP)
        x, y = get_batch(train_data, batch_size, CONTEXT, generator=drawn)
        optimizer.zero_grad()
        model(x, y)[1].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan.grad_clip)
        optimizer.step()
        if step >= look:
            look = math.ceil(1.03 * step)
            with torch.no_grad():
                yield step, model(*judge)[1].item()


def steps_to(target, batch_size, rate, seed, most=MOST):
    """Steps until the loss has come down to `target`; `most` if it never does."""
    before = None
    for step, loss in losses_of(small_gpt(seed), batch_size, rate, seed, most):
        if loss <= target:
            if before is None:
                return float(step)
            share = (before[1] - target) / (before[1] - loss)
            return before[0] + share * (step - before[0])
        before = step, loss
    return float(most)


def batch(batch_size, seed):
    """Steps to TARGET with batches of this size, at the best of three rates."""
    start, steps = time.perf_counter(), {}
    for factor in FACTORS:  # no need to go on far beyond the best so far
        most = math.ceil(1.5 * min(steps.values(), default=MOST / 1.5))
        rate = rate_of(batch_size, factor)
        steps[factor] = steps_to(TARGET, batch_size, rate, seed, most)
    best, seconds = min(steps, key=steps.get), round(time.perf_counter() - start, 1)
    found = {"steps": steps[best], "factor": best, "rate": rate_of(batch_size, best)}
    return found | {"seconds": seconds}


def noise_scale(model, data, windows, seed):
    """The simple noise scale tr(S) / |G|^2, in windows, from single gradients.

    S is the covariance of the gradients of single windows, G their true mean;
    both squares are corrected for the luck of a finite number of windows.
    Source: McCandlish et al., An Empirical Model of Large-Batch Training (2018),
    section 2.2 and appendix A.1.
    """
    drawn = torch.Generator().manual_seed(seed)
    xs, ys = get_batch(data, windows, model.block_size, generator=drawn)
    total = [torch.zeros_like(p) for p in model.parameters()]
    square = 0.0  # of a single window's gradient, mean
    for x, y in zip(xs.split(1), ys.split(1)):
        model.zero_grad()
        model(x, y)[1].backward()
        for sum_, p in zip(total, model.parameters()):
            sum_ += p.grad / windows
            square += p.grad.square().sum().item() / windows
    model.zero_grad()
    of_mean = sum(g.square().sum().item() for g in total)
    variance = (square - of_mean) * windows / (windows - 1)
    return variance / (of_mean - variance / windows)


def noise(loss, seed):
    """The noise scale where a run with batches of 32 passes `loss`."""
    model = small_gpt(seed)
    for step, reached in losses_of(model, 32, rate_of(32), seed):  # noqa: B007
        if reached <= loss:
            break
    scale = noise_scale(model, pocket()[0], NOISE_WINDOWS, seed)
    return {"noise scale": scale, "step": step}


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

    def by_hand():  # the control: no DistributedDataParallel
        step(model, half)
        dist.all_reduce(flat)

    half = batch_size // 2
    parts = {
        "one": lambda: step(model, batch_size) if first else None,
        "half": lambda: step(model, half) if first else None,
        "half, both busy": lambda: step(model, half),
        "all_reduce": lambda: dist.all_reduce(flat),
        "by hand": by_hand,
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
        "measured by hand": one / found["by hand"],
        "measured": one / found["two"],
    }


EXPERIMENTS = {
    "10-batch": {f"{size} windows": partial(batch, size) for size in BATCHES},
    "10-noise": {f"at {loss} nats": partial(noise, loss) for loss in LOSSES},
    "10-speed-up": {shape: partial(speed_up, shape) for shape in SHAPES},
}
