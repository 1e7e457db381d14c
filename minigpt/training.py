"""Lesson 06: a training recipe, and the loop that trains any model here."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn as nn

from minigpt.data import get_batch
from minigpt.device import autocast
from minigpt.evaluation import estimate_loss
from minigpt.gpt import GPTConfig, check_sizes
from minigpt.interfaces import Model
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.require import require


@dataclass
class TrainConfig:
    """How to train. Raises ValueError for numbers that can't work."""

    steps: int
    batch_size: int
    block_size: int
    learning_rate: float  # at its peak
    warmup_steps: int = 100  # but at most a fifth of the steps
    weight_decay: float = 0.1  # of matrices
    beta2: float = 0.99
    grad_clip: float = 1.0  # math.inf for none
    eval_every: int = 100  # steps
    eval_batches: int = 20
    seed: int = 1337

    def __post_init__(self) -> None:
        check_sizes(self, "steps", "batch_size", "block_size")
        check_sizes(self, "eval_every", "eval_batches")
        require(
            type(self.warmup_steps) is int and self.warmup_steps >= 0,
            f"warmup_steps is {self.warmup_steps!r}; give a whole number, 0 or more.",
        )
        require(
            0 < self.learning_rate < math.inf,
            f"learning_rate is {self.learning_rate!r}; give a finite number above 0.",
        )
        require(
            0 <= self.weight_decay < math.inf,
            f"weight_decay is {self.weight_decay!r}; give a finite number, 0 or more.",
        )
        require(
            0 <= self.beta2 < 1,
            f"beta2 is {self.beta2!r}; give 0 or more, but less than 1.",
        )
        require(
            self.grad_clip > 0,
            f"grad_clip is {self.grad_clip!r}; give more than 0; math.inf clips "
            "nothing.",
        )
        check_seed(self.seed)

    def make_optimizer(self, model: Model) -> Any:
        return make_optimizer(model, self)

    def learning_rate_at(self, step: int) -> float:
        return learning_rate_at(step, self)


def preset(name: str, vocab_size: int) -> tuple[GPTConfig, TrainConfig]:
    """The sizes of the course, (GPTConfig, TrainConfig): "cpu" for two cores, "gpu"."""
    if name == "cpu":
        model = GPTConfig(vocab_size, 64, n_layer=2, n_head=4, n_embd=128)
        return model, TrainConfig(2400, 16, 64, learning_rate=3e-3)
    if name == "gpu":  # few steps: with more, it overfits
        model = GPTConfig(vocab_size, 256, n_layer=6, n_head=6, n_embd=384, dropout=0.2)
        return model, TrainConfig(2000, 64, 256, learning_rate=1e-3, eval_every=250)
    raise ValueError(f"There is no preset {name!r}; choose 'cpu' or 'gpu'.")


def check_seed(seed: object) -> None:
    """Raise ValueError for a seed that torch can't start its random numbers from."""
    require(
        type(seed) is int and -(2**63) <= seed < 2**64,
        f"seed is {seed!r}; give a whole number, from -2**63 to 2**64 - 1.",
    )


class Progress(NamedTuple):
    """One row of a run's history: losses in nats per token, training seconds."""

    step: int
    train_loss: float
    val_loss: float
    seconds: float


class Run:
    """How far training has come: everything besides the model that its steps change."""

    def __init__(self, model: Model, config: TrainConfig) -> None:
        self.step, self.seconds, self.history = 0, 0.0, []
        self.optimizer = config.make_optimizer(model)
        self.batches = torch.Generator().manual_seed(config.seed)
        torch.manual_seed(config.seed)  # for dropout


def take_step(
    model: Model, data: Any, config: TrainConfig, run: Run, draw: Callable = get_batch
) -> None:
    """One step of training, which `run` counts and times.

    draw: makes a batch x, y (B, T) from the data, and is called like get_batch.
    """
    start = time.perf_counter()
    device = next(model.parameters()).device
    model.train()
    for group in run.optimizer.param_groups:
        group["lr"] = config.learning_rate_at(run.step)
    x, y = draw(
        data, config.batch_size, config.block_size, device, run.batches
    )  # each (B, T)
    run.optimizer.zero_grad()
    with autocast(device):
        loss = model(x, y)[1]
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
    run.optimizer.step()
    run.step += 1
    run.seconds += time.perf_counter() - start


def train(
    model: Model,
    train_data: Any,
    val_data: Any,
    config: TrainConfig,
    run: Run | None = None,
    on_eval: Callable[[Run], object] | None = None,
    on_step: Callable[[Run], object] | None = None,
    draw: Callable = get_batch,
) -> list[Progress]:
    """Train `model` in place; return its history, a list of Progress.

    run: a Run to continue. on_eval(run) is called after each evaluation, and
    on_step(run) after each step. If that returns True, the run is evaluated and ends
    there. draw: see take_step.
    """
    run = run or Run(model, config)
    while run.step < config.steps:
        take_step(model, train_data, config, run, draw)
        asked = on_step is not None and on_step(run)
        ends = asked or run.step == config.steps
        if ends or run.step % config.eval_every == 0:
            sizes = config.block_size, config.batch_size, config.eval_batches
            losses = [estimate_loss(model, d, *sizes) for d in (train_data, val_data)]
            run.history.append(Progress(run.step, *losses, run.seconds))
            if on_eval is not None:
                on_eval(run)
        if ends:
            break
    model.eval()
    return run.history
