"""Lesson 06: the training loop, for any model here."""

import copy
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from minigpt.arguments import check_kind, device_of
from minigpt.data import check_window, get_batch
from minigpt.device import autocast, compiled, random_state, set_random_state
from minigpt.evaluation import estimate_loss
from minigpt.interrupts import Interrupts
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.recipe import TrainConfig as TrainConfig
from minigpt.recipe import preset as preset
from minigpt.tensors import check_ids, vocabulary_of
from minigpt.workers import ALONE


class Progress(NamedTuple):
    """One row of a run's history: losses in nats per token, training seconds."""

    step: int
    train_loss: float
    val_loss: float
    seconds: float


class TrainState(NamedTuple):
    """A run after `step` steps: with model and config, all that going on needs."""

    step: int
    history: list
    optimizer: dict
    random_state: dict
    seed: int


def train(
    model,
    train_data,
    val_data,
    config,
    *,
    resume=None,
    save=None,
    on_eval=None,
    on_step=None,
    draw=None,
    workers=ALONE,
    compile=False,
):
    """Train `model` where it is, in place; return its history, a list of Progress.

    resume: the TrainState at which this model stopped, to go on from there.
    save(state), on_eval(history): called after each evaluation; on_step(step):
    after each step. draw(generator, rows) -> x, y: takes the place of get_batch
    from train_data. workers: who shares the work, as lesson 10 does; only worker 0
    saves and reports. compile: through torch.compile, if that works. An interrupt
    (Ctrl+C, the ■ of a notebook, SIGTERM) ends the run after the step that it falls
    into: judged, saved, usable and resumable; in the last step it changes nothing.
    Raises ValueError, before the first step, if a split is too short for one
    window, a batch too small for its pieces, or if the config has another seed
    than the run that it goes on with.
    """
    device = device_of(model)
    example = "a TrainConfig, for example preset('cpu', vocab_size)[1]"
    check_kind("config", config, TrainConfig, example)
    for name, data in (("train_data", train_data), ("val_data", val_data)):
        check_ids(name, data, 1, vocabulary_of(model))
        check_window(data, config.block_size)
    if resume is not None:
        check_kind("resume", resume, TrainState, "the TrainState of a checkpoint")
    functions = {"save": save, "on_eval": on_eval, "on_step": on_step, "draw": draw}
    for name, function in functions.items():
        if function is not None:
            example = "saver(path, ...)" if name == "save" else f"{name}=print"
            check_kind(name, function, Callable, f"a function, for example {example}")
    mine = workers.rows(config.batch_size)
    if config.accumulate > config.batch_size // workers.size:
        raise ValueError(
            f"accumulate is {config.accumulate}, but of a batch a worker has only "
            f"{config.batch_size // workers.size} windows: give at most that."
        )
    if compile and workers.sharded:
        raise ValueError("compile and fsdp do not go together: leave one of them out.")
    splits = train_data, val_data = train_data.to(device), val_data.to(device)
    if draw is None:
        draw = partial(
            get_batch, train_data, config.batch_size, config.block_size, device
        )
    model.train()
    wrapped = model
    if compile:
        windows = draw(generator=torch.Generator(), rows=mine)
        pieces = [each.tensor_split(config.accumulate)[0] for each in windows]
        wrapped = compiled(model, *pieces)  # as large as a step's, and no larger
    wrapped = workers.wrap(wrapped)
    optimizer = make_optimizer(model, config)
    batches = torch.Generator().manual_seed(config.seed)
    step, history, seconds = 0, [], 0.0
    if resume is None:
        torch.manual_seed(config.seed)  # for dropout
    else:
        if config.seed != resume.seed:
            raise ValueError(
                f"This run goes on with the random numbers of seed {resume.seed}, so "
                f"seed {config.seed} would have no effect: leave the seed as it was."
            )
        step, history = resume.step, list(resume.history)
        seconds = history[-1].seconds if history else 0.0
        averages = copy.deepcopy(resume.optimizer["state"])  # copied: not shared
        if isinstance(averages, list) != (config.optimizer == "muon"):
            raise ValueError(
                f"This run has another optimizer than {config.optimizer!r}, whose "
                "averages it lacks: leave the optimizer as it was."
            )
        settings = optimizer.state_dict()["param_groups"]  # the config's, maybe new
        optimizer.load_state_dict({"state": averages, "param_groups": settings})
        workers.spread(optimizer)
        set_random_state(resume.random_state, device, batches)
    workers.part_ways(config.seed, step)

    with Interrupts() as interrupts:
        stop = False
        while step < config.steps and not stop:
            start = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_at(step, config) * group.get("rate", 1.0)
            x, y = draw(generator=batches, rows=mine)
            optimizer.zero_grad()
            backward(wrapped, x, y, config, workers)
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
            optimizer.step()
            step += 1
            seconds += time.perf_counter() - start
            if on_step is not None and workers.rank == 0:
                on_step(step)
            stop = workers.sum(interrupts.asked) > 0
            if step % config.eval_every == 0 or step == config.steps or stop:
                losses = [estimate_loss(model, d, config, workers) for d in splits]
                history.append(Progress(step, *losses, seconds))
                if save is not None:
                    now = copy.deepcopy(optimizer.state_dict())  # it will change
                    numbers = random_state(device, batches)
                    state = TrainState(step, list(history), now, numbers, config.seed)
                    if workers.sharded:  # all write, each its share
                        save(state)
                    else:
                        workers.first(partial(save, state))
                    workers.part_ways(config.seed, step)
                if on_eval is not None and workers.rank == 0:
                    on_eval(history)
    if step < config.steps and workers.rank == 0:
        print(
            f"Interrupted after step {step} of {config.steps}: the model keeps what "
            "it has learned and can be used as it is."
        )
    model.eval()
    return history


def backward(model, x, y, config, workers=ALONE):
    """Add the gradients of a batch's mean loss to those of the parameters.

    x, y: this worker's windows of the batch, (B, T). They are read in
    config.accumulate pieces, so that the activations of one piece at a time take
    memory. Pieces and workers may differ in their number of windows: each counts
    as much as it has.
    """
    pieces = zip(x.tensor_split(config.accumulate), y.tensor_split(config.accumulate))
    for i, (x, y) in enumerate(pieces):
        share = len(x) * workers.size / config.batch_size  # workers take their mean
        with workers.averaging(model, last=i + 1 == config.accumulate):
            with autocast(x.device):
                loss = model(x, y)[1]
            (loss * share).backward()
