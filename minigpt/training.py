"""Lesson 06: the training loop and exact evaluation, for any model here."""

import copy
import time

import torch

from minigpt.checkpoint import (
    Checkpoint,
    Progress,
    TrainConfig,
    load_checkpoint,
    pick_device,
    preset,
    random_state,
    save_checkpoint,
    set_random_state,
)
from minigpt.data import get_batch
from minigpt.optimizer import learning_rate_at, make_optimizer

__all__ = [
    "TrainConfig",
    "Progress",
    "Checkpoint",
    "save_checkpoint",
    "load_checkpoint",
    "preset",
    "pick_device",
    "make_optimizer",
    "learning_rate_at",
    "train",
    "estimate_loss",
    "evaluate",
]


def train(
    model,
    train_data,
    val_data,
    config,
    *,
    resume=None,
    checkpoint_path=None,
    tokenizer=None,
    on_eval=None,
    on_step=None,
):
    """Train `model` where it is, in place; return its history, a list of Progress.

    resume: a Checkpoint whose model this is, to go on where it stopped.
    checkpoint_path: written at every evaluation (needs `tokenizer`).
    on_eval(history), on_step(step): called after each evaluation and step.
    An interrupt (KeyboardInterrupt) ends training early with a usable model.
    Raises ValueError if a split is too short for one window, or if the
    checkpoint would have no vocabulary; both before the first step.
    """
    if checkpoint_path is not None and tokenizer is None:
        raise ValueError("A checkpoint stores the vocabulary: pass tokenizer=... too.")
    for data in (train_data, val_data):
        get_batch(data, 1, config.block_size)  # too short? Say so now, not later
    device = next(model.parameters()).device
    optimizer = make_optimizer(model, config)
    batches = torch.Generator().manual_seed(config.seed)
    step, history = 0, []
    if resume is None:
        torch.manual_seed(config.seed)  # for dropout
    else:
        step, history = resume.step, list(resume.history)
        optimizer.load_state_dict(copy.deepcopy(resume.optimizer))  # not shared
        set_random_state(resume.random_state, device, batches)
    seconds = history[-1].seconds if history else 0.0

    bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(
        including_emulation=False
    )

    def judge():
        splits = train_data, val_data
        losses = [estimate_loss(model, data, config) for data in splits]
        history.append(Progress(step, *losses, seconds))

    def save():
        if checkpoint_path is not None:
            state = optimizer.state_dict(), random_state(device, batches)
            now = Checkpoint(model, tokenizer, config, step, history, *state)
            save_checkpoint(checkpoint_path, now)

    model.train()
    try:
        while step < config.steps:
            start = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_at(step, config)
            x, y = get_batch(
                train_data, config.batch_size, config.block_size, device, batches
            )
            with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
                loss = model(x, y)[1]
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
            optimizer.step()
            step += 1
            seconds += time.perf_counter() - start
            if on_step is not None:
                on_step(step)
            if step % config.eval_every == 0 or step == config.steps:
                judge()
                save()
                if on_eval is not None:
                    on_eval(history)
    except KeyboardInterrupt:
        if step > (history[-1].step if history else 0):
            judge()
        save()
        print(
            f"Interrupted after step {step} of {config.steps}: the model keeps what "
            "it has learned and can be used as it is."
        )
    model.eval()
    return history


@torch.no_grad()
def estimate_loss(model, data, config):
    """Mean loss over eval_batches random batches, always the same ones: nats/token.

    Raises ValueError if the data is too short for one window.
    """
    device = next(model.parameters()).device
    batches = torch.Generator().manual_seed(config.seed)
    was_training = model.training
    model.eval()
    total = 0.0
    for _ in range(config.eval_batches):
        x, y = get_batch(data, config.batch_size, config.block_size, device, batches)
        total += model(x, y)[1].item()
    model.train(was_training)
    return total / config.eval_batches


@torch.no_grad()
def evaluate(model, data, block_size, batch_size=128):
    """The exact mean loss over a whole split, in nats per token.

    data: (N,). It is cut into consecutive windows of block_size tokens, the
    last one perhaps shorter; each of the N - 1 targets is predicted once.
    Raises ValueError if there is not one target, or if block_size is below 1.
    """
    n = len(data) - 1
    if n < 1:
        raise ValueError(
            f"The data has {len(data)} tokens; evaluating takes 2 or more."
        )
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}; give at least 1.")
    device = next(model.parameters()).device
    whole = n // block_size * block_size
    x = data[:whole].view(-1, block_size).split(batch_size)
    y = data[1 : whole + 1].view(-1, block_size).split(batch_size)
    pieces = list(zip(x, y)) if whole else []
    if whole < n:
        pieces.append((data[whole:-1][None], data[whole + 1 :][None]))
    was_training = model.training
    model.eval()
    total = 0.0
    for x, y in pieces:
        total += model(x.to(device), y.to(device))[1].item() * y.numel()
    model.train(was_training)
    return total / n
