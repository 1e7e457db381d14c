"""Lesson 06: how to train, and the training loop, for any model here."""

import copy
import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import torch

from minigpt.data import at_least_one, get_batch
from minigpt.device import autocast, random_state, set_random_state
from minigpt.evaluation import estimate_loss
from minigpt.gpt import GPTConfig
from minigpt.interrupts import Interrupts
from minigpt.optimizer import learning_rate_at, make_optimizer


@dataclass
class TrainConfig:
    """How to train. Decay applies to matrices only; see `make_optimizer`.

    Raises ValueError for a value with which no training makes sense.
    """

    steps: int
    batch_size: int
    block_size: int
    learning_rate: float
    warmup_steps: int | None = None  # None: 100, or a fifth of a run below 500
    final_fraction: float = 0.0  # of learning_rate, at the last step
    weight_decay: float = 0.1
    beta2: float = 0.99
    grad_clip: float = 1.0  # math.inf for none
    eval_every: int = 100
    eval_batches: int = 8
    seed: int = 1337

    def __post_init__(self):
        sizes = "steps batch_size block_size eval_every eval_batches".split()
        at_least_one(**{name: getattr(self, name) for name in sizes})
        warmup = 0 if self.warmup_steps is None else self.warmup_steps
        rules = {  # written so that nan, which is in no range, breaks them all
            "learning_rate": (0 < self.learning_rate < math.inf, "above 0 and finite"),
            "warmup_steps": (0 <= warmup <= self.steps, f"in 0 to {self.steps} steps"),
            "final_fraction": (0 <= self.final_fraction <= 1, "from 0 to 1"),
            "weight_decay": (0 <= self.weight_decay < math.inf, "0 or more and finite"),
            "beta2": (0 <= self.beta2 < 1, "at least 0 and below 1"),
            "grad_clip": (self.grad_clip > 0, "above 0; math.inf clips nothing"),
            "seed": (type(self.seed) is int, "a whole number"),
        }
        for name, (fine, need) in rules.items():
            if not fine:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be {need}.")


def preset(name, vocab_size):
    """The two sizes of the course: (GPTConfig, TrainConfig) for "cpu" or "gpu".

    Raises ValueError for any other name.
    """
    if name == "cpu":
        model = GPTConfig(vocab_size, block_size=64, n_layer=2, n_head=4, n_embd=128)
        plan = TrainConfig(steps=2400, batch_size=16, block_size=64, learning_rate=3e-3)
        return model, plan
    if name == "gpu":
        model = GPTConfig(
            vocab_size, block_size=256, n_layer=6, n_head=6, n_embd=384, dropout=0.2
        )
        plan = TrainConfig(
            steps=5000,
            batch_size=64,
            block_size=256,
            learning_rate=1e-3,
            eval_every=250,
        )
        return model, plan
    raise ValueError(f"There is no preset {name!r}; choose 'cpu' or 'gpu'.")


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
):
    """Train `model` where it is, in place; return its history, a list of Progress.

    resume: the TrainState at which this model stopped, to go on from there.
    save(state), on_eval(history): called after each evaluation; on_step(step):
    after each step. An interrupt (Ctrl+C, or the ■ of a notebook) ends the run
    after the step that it falls into: judged, saved, usable and resumable; one
    that falls into the last step changes nothing.
    Raises ValueError, before the first step, if a split is too short for one
    window, or if the config has another seed than the run that it goes on with.
    """
    device = next(model.parameters()).device
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
        settings = optimizer.state_dict()["param_groups"]  # the config's, maybe new
        optimizer.load_state_dict({"state": averages, "param_groups": settings})
        set_random_state(resume.random_state, device, batches)

    splits = train_data, val_data = train_data.to(device), val_data.to(device)
    for data in splits:  # too short? Say so now, not later
        get_batch(data, 1, config.block_size, generator=torch.Generator())
    model.train()
    with Interrupts() as interrupts:
        stop = False
        while step < config.steps and not stop:
            start = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_at(step, config)
            x, y = get_batch(
                train_data, config.batch_size, config.block_size, device, batches
            )
            with autocast(device):
                loss = model(x, y)[1]
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
            optimizer.step()
            step += 1
            seconds += time.perf_counter() - start
            if on_step is not None:
                on_step(step)
            stop = interrupts.asked
            if step % config.eval_every == 0 or step == config.steps or stop:
                losses = [estimate_loss(model, data, config) for data in splits]
                history.append(Progress(step, *losses, seconds))
                if save is not None:
                    now = copy.deepcopy(optimizer.state_dict())  # it will change
                    numbers = random_state(device, batches)
                    save(TrainState(step, list(history), now, numbers, config.seed))
                if on_eval is not None:
                    on_eval(history)
    if step < config.steps:
        print(
            f"Interrupted after step {step} of {config.steps}: the model keeps what "
            "it has learned and can be used as it is."
        )
    model.eval()
    return history
