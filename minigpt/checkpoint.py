"""Lesson 06: what a training run consists of, and how it is kept in a file."""

import os
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from minigpt.data import CharTokenizer
from minigpt.gpt import GPT, GPTConfig


@dataclass
class TrainConfig:
    """How to train. Decay applies to matrices only; see `train`."""

    steps: int
    batch_size: int
    block_size: int
    learning_rate: float
    warmup_steps: int = 100
    final_fraction: float = 0.0  # of learning_rate, at the last step
    weight_decay: float = 0.1
    beta2: float = 0.99
    grad_clip: float = 1.0
    eval_every: int = 100
    eval_batches: int = 8
    seed: int = 1337


class Progress(NamedTuple):
    """One row of a run's history: losses in nats per token, training seconds."""

    step: int
    train_loss: float
    val_loss: float
    seconds: float


@dataclass
class Checkpoint:
    """A GPT's training run after `step` steps: all that going on needs."""

    model: GPT
    tokenizer: CharTokenizer
    config: TrainConfig
    step: int
    history: list
    optimizer: dict
    random_state: dict


def save_checkpoint(path, checkpoint):
    """Write a Checkpoint; the file appears whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    c = checkpoint
    content = {
        "model_config": asdict(c.model.config),
        "model": c.model.state_dict(),
        "chars": c.tokenizer.chars,
        "train_config": asdict(c.config),
        "step": c.step,
        "history": [tuple(row) for row in c.history],
        "optimizer": c.optimizer,
        "random_state": c.random_state,
    }
    unfinished = path.with_name(path.name + ".tmp")
    torch.save(content, unfinished)
    os.replace(unfinished, path)


def load_checkpoint(path, device="cpu"):
    """Read a Checkpoint and build its model on `device`. Nothing is unpickled.

    Raises FileNotFoundError, or ValueError if the file is not a checkpoint.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no checkpoint {str(path)!r}. Train one first: "
            f"python -m minigpt train --out {path}"
        )
    try:
        content = torch.load(path, map_location=device, weights_only=True)
        config = TrainConfig(**content["train_config"])
        model = GPT(GPTConfig(**content["model_config"])).to(device)
        model.load_state_dict(content["model"])
        return Checkpoint(
            model.eval(),
            CharTokenizer(content["chars"]),
            config,
            content["step"],
            [Progress(*row) for row in content["history"]],
            content["optimizer"],
            content["random_state"],
        )
    except (RuntimeError, EOFError, LookupError, TypeError, pickle.UnpicklingError):
        raise ValueError(
            f"{path} is not a checkpoint of this version of minigpt, or it is "
            "damaged. Train again and write to a new file."
        ) from None
