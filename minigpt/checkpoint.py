"""Lesson 06: what a training run consists of, and how it is kept in a file."""

import os
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from minigpt.data import CharTokenizer
from minigpt.gpt import GPT, GPTConfig, at_least_one


@dataclass
class TrainConfig:
    """How to train. Decay applies to matrices only; see `train`.

    Raises ValueError if a number of steps, of batches or a size is below 1.
    """

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

    def __post_init__(self):
        at_least_one(self, "steps", "batch_size", "block_size")
        at_least_one(self, "eval_every", "eval_batches")


def preset(name, vocab_size):
    """The two sizes of the course: (GPTConfig, TrainConfig) for "cpu" or "gpu".

    Raises ValueError for any other name.
    """
    if name == "cpu":
        model = GPTConfig(vocab_size, block_size=64, n_layer=2, n_head=4, n_embd=128)
        return model, TrainConfig(2400, 16, model.block_size, 3e-3)
    if name == "gpu":
        model = GPTConfig(vocab_size, 256, 6, 6, 384, dropout=0.2)
        return model, TrainConfig(5000, 64, model.block_size, 1e-3, eval_every=250)
    raise ValueError(f"There is no preset {name!r}; choose 'cpu' or 'gpu'.")


def pick_device(name=None):
    """`name` if given, else the best of cuda, mps and cpu that is there.

    Raises ValueError if the one that is named is not there.
    """
    if name:
        device = torch.device(name)
        if device.type != "cpu" and not torch.get_device_module(device).is_available():
            raise ValueError(
                f"torch finds no {device.type} here: name cpu, or name none to get "
                "the best there is."
            )
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


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
        content = torch.load(path, map_location="cpu", weights_only=True)
        config = TrainConfig(**content["train_config"])
        model = GPT(GPTConfig(**content["model_config"]))
        model.load_state_dict(content["model"])
        checkpoint = Checkpoint(
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
    model.to(device)  # outside the try: a device that fails is not a damaged file
    return checkpoint


def random_state(device, batches):
    """The states of `batches` (a Generator), of torch and of its device."""
    state = {"batches": batches.get_state(), "cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_random_state(state, device, batches):
    """Go on with the random numbers where random_state() was called."""
    batches.set_state(state["batches"].cpu())
    torch.set_rng_state(state["cpu"].cpu())
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"].cpu(), device)
    if device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"].cpu())
