"""Lesson 06: a training run in a file.

It keeps what a configuration and a tokenizer were made from, and the names of their
classes. When you read the file, `kinds` says which classes it may name.
"""

import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from minigpt.data import CharTokenizer
from minigpt.device import random_state, set_random_state
from minigpt.files import save_whole
from minigpt.gpt import GPTConfig
from minigpt.interfaces import Model, Tokenizer
from minigpt.require import require
from minigpt.training import Progress, Run, TrainConfig

KINDS = (GPTConfig, TrainConfig, CharTokenizer)  # in lesson 06's checkpoints
MADE = ["model_config", "train_config", "tokenizer"]  # kept with their class
PARTS = [*MADE, "model", "optimizer", "step", "seconds", "history"]
PARTS += ["batches", "random", "text"]

OLD = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # how files started before torch 1.6


@dataclass
class Checkpoint:
    """A model, its vocabulary, its recipe, and how far its training has come.

    tokenizer: has encode, decode, vocab_size, and state(). Its class can rebuild it
    from that state. Raises ValueError if the config doesn't build this model, or if the
    model's vocabulary isn't the tokenizer's.
    """

    model: Model
    tokenizer: Tokenizer
    config: TrainConfig
    run: Run
    random: Any = None  # as saved: set_random_state goes on from there
    text: str | None = None  # the hash of what it learns from, if it is known

    def __post_init__(self) -> None:
        shape, known = self.model.config, self.tokenizer.vocab_size
        require(
            known == shape.vocab_size,
            f"The tokenizer knows {known} tokens, but the model has "
            f"{shape.vocab_size}. Use the tokenizer that the model was trained with.",
        )
        with torch.device("meta"):  # needs no memory and draws no random numbers
            weights = shape.build().state_dict()
        require(
            weights.keys() == self.model.state_dict().keys(),
            f"This {type(self.model).__name__} doesn't have the weights that its "
            "config describes. A checkpoint holds a model that config.build() makes.",
        )


def save_checkpoint(path: Path | str, checkpoint: Checkpoint) -> None:
    """Write a Checkpoint; the file appears whole or not at all.

    Raises OSError if it cannot be written.
    """
    c = checkpoint
    content = {
        "model_config": with_class(c.model.config, asdict(c.model.config)),
        "train_config": with_class(c.config, asdict(c.config)),
        "tokenizer": with_class(c.tokenizer, c.tokenizer.state()),
        "model": c.model.state_dict(),
        "optimizer": c.run.optimizer.state_dict(),
        "step": c.run.step,
        "seconds": c.run.seconds,
        "history": [tuple(row) for row in c.run.history],
        "batches": c.run.batches.get_state(),
        "random": random_state(next(c.model.parameters()).device),
        "text": c.text,
    }
    save_whole(path, content)


def with_class(thing: object, state: dict) -> list:
    """[module, name of its class, state]: `load_checkpoint` rebuilds it from these."""
    return [type(thing).__module__, type(thing).__name__, state]


def load_checkpoint(
    path: Path | str, device: torch.device | str = "cpu", kinds: Sequence[type] = ()
) -> Checkpoint:
    """Read a Checkpoint and build its model on `device`; nothing is unpickled.

    kinds: classes of configurations and tokenizers that it may name, besides KINDS.
    Raises FileNotFoundError, or a ValueError that says what's wrong with the file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"There is no checkpoint {str(path)!r}. Train one first: "
            f"python -m minigpt train --out {path}"
        )
    # A missing device fails here. Further down, it would look like a damaged file.
    device = torch.empty(0, device=device).device
    content = read(path)
    require(is_checkpoint(content), f"{path} isn't a checkpoint from `train`.")
    lacking = [name for name in PARTS if name not in content]
    another_version = "it was changed, or written by another version of minigpt."
    require(not lacking, f"{path} is a checkpoint without {lacking}: {another_version}")
    known = {kind.__name__: kind for kind in (*KINDS, *kinds)}
    before = random_state(device)  # building a model draws random numbers
    try:
        kept = [content[name][:2] for name in MADE]  # [module, class] each
        others = [[module, name] for module, name in kept if name not in known]
        if not others:
            return from_content(content, device, known)
    except Exception as error:  # whatever Python and torch raise for strange parts
        raise ValueError(
            f"{path} is a checkpoint whose parts don't fit together "
            f"({reason(error)}): {another_version}"
        ) from None
    finally:
        set_random_state(before, device)
    raise ValueError(
        f"{path} is a checkpoint from another kind of run. {call(path, others)}"
    )


def call(path: Path | str, others: list) -> str:
    """The call that reads a checkpoint with these other classes, each [module,
    name]."""
    imports = "; ".join(f"from {module} import {name}" for module, name in others)
    names = ", ".join(name for _, name in others)
    return f"To read it: {imports}; load_checkpoint({str(path)!r}, kinds=[{names}])."


def read(path: Path | str) -> Any:
    """What torch.save wrote to a file, if that's numbers, texts, lists and dicts.

    Raises a ValueError that says what the file is instead.
    """
    with open(path, "rb") as file:
        old = file.read(len(OLD)) == OLD
    try:
        if not old:
            with zipfile.ZipFile(path) as file:
                # torch itself wouldn't notice a bit that has changed
                require(file.testzip() is None, "a part of it has changed")
        return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:
        raise ValueError(
            f"{path} holds Python objects. They could run code when they're read, so "
            "minigpt doesn't unpickle them. Save a state_dict() instead, and read that."
        ) from None
    except Exception as error:  # whatever zipfile and torch raise
        raise ValueError(
            f"{path} is damaged or isn't a checkpoint ({reason(error)}). "
            "Use another file, or train again."
        ) from None


def is_checkpoint(content: object) -> bool:
    """Whether save_checkpoint wrote this, in this version or another."""
    known = {"model_config", "train_config"}
    return isinstance(content, dict) and not known.isdisjoint(content)


def reason(error: Exception) -> str:
    """An error in a few words."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:99]


def from_content(
    content: dict, device: torch.device, kinds: dict[str, type]
) -> Checkpoint:
    """The Checkpoint that save_checkpoint took apart; kinds: {name: class}."""
    made = []
    for part in MADE:
        _, name, state = content[part]
        made.append(kinds[name](**state))
    shape, config, tokenizer = made
    model = shape.build().to(device)
    model.load_state_dict(content["model"])
    run = Run(model, config)
    run.step, run.seconds = content["step"], content["seconds"]
    run.history = [Progress(*row) for row in content["history"]]
    run.optimizer.load_state_dict(content["optimizer"])
    run.batches.set_state(content["batches"])
    random, text = content["random"], content["text"]
    return Checkpoint(model.eval(), tokenizer, config, run, random, text)
