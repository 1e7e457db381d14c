"""Lesson 06: a training run in a file."""

import io
import os
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from minigpt.data import CharTokenizer
from minigpt.device import random_state, set_random_state
from minigpt.gpt import GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.training import Progress, Run, TrainConfig


@dataclass
class Checkpoint:
    """A model, its vocabulary, its recipe, and where its training stands.

    Raises ValueError for a model that its config does not build, or with another
    vocabulary than the tokenizer's.
    """

    model: LanguageModel
    tokenizer: CharTokenizer  # or a dataclass: lesson 13's
    config: TrainConfig
    run: Run
    random: dict | None = None  # as saved: set_random_state goes on from there
    text: str | None = None  # the hash of what it learns from, if it is known

    def __post_init__(self):
        shape, known = self.model.config, self.tokenizer.vocab_size
        if known != shape.vocab_size:
            raise ValueError(
                f"The tokenizer knows {known} tokens, the model "
                f"{shape.vocab_size}: give the tokenizer of the model's own text."
            )
        with torch.device("meta"):  # without memory, and without random numbers
            weights = shape.build().state_dict()
        if weights.keys() != self.model.state_dict().keys():
            raise ValueError(
                f"This {type(self.model).__name__} has other weights than its config "
                "describes: a checkpoint holds a model as config.build() makes it."
            )


def save_checkpoint(path, checkpoint):
    """Write a Checkpoint; the file appears whole or not at all."""
    c = checkpoint
    content = {
        "model": c.model.state_dict(),
        "model_config": [type(c.model.config).__name__, asdict(c.model.config)],
        "train_config": [type(c.config).__name__, asdict(c.config)],
        "chars": getattr(c.tokenizer, "chars", None) or asdict(c.tokenizer),
        "text": c.text,
        "step": c.run.step,
        "seconds": c.run.seconds,
        "history": [tuple(row) for row in c.run.history],
        "optimizer": c.run.optimizer.state_dict(),
        "batches": c.run.batches.get_state(),
        "random": random_state(next(c.model.parameters()).device),
    }
    torch.save(content, data := io.BytesIO())
    unfinished = Path(f"{path}.{os.getpid()}.tmp")
    try:
        with open(unfinished, "wb") as file:
            file.write(data.getbuffer())
            os.fsync(file.fileno())  # on the disk, before it takes the old one's place
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def load_checkpoint(path, device="cpu", kinds=(GPTConfig, TrainConfig)):
    """Read a Checkpoint and build its model on `device`; nothing is unpickled.

    kinds: the classes that it may hold: of configurations, and lesson 13's tokenizer.
    Raises FileNotFoundError, or ValueError for a file that is no checkpoint.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"There is no checkpoint {str(path)!r}. Train one first: "
            f"python -m minigpt train --out {path}"
        )
    device = torch.empty(0, device=device).device  # one that fails is no damage
    before = random_state(device)  # to build a model draws random numbers
    try:
        with zipfile.ZipFile(path) as file:
            if file.testzip():  # torch itself would read a flipped bit
                raise ValueError("a part of it has changed")
        content = torch.load(path, map_location="cpu", weights_only=True)
        return from_content(content, device, kinds)
    except Exception as error:  # whatever a strange file makes torch raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(
            f"{path} is damaged, or no readable checkpoint ({reason[:99]}). "
            "Give another file, or train again."
        ) from None
    finally:
        set_random_state(before, device)


def from_content(content, device, kinds):
    """The Checkpoint that save_checkpoint took apart."""
    kinds = {kind.__name__: kind for kind in kinds}
    parts = [content[name] for name in ("model_config", "train_config")]
    shape, config = [kinds[kind](**values) for kind, values in parts]
    model = shape.build().to(device)
    model.load_state_dict(content["model"])
    run = Run(model, config)
    run.step, run.seconds = content["step"], content["seconds"]
    run.history = [Progress(*row) for row in content["history"]]
    run.optimizer.load_state_dict(content["optimizer"])
    run.batches.set_state(content["batches"])
    random, text = content["random"], content["text"]
    chars, pairs = content["chars"], kinds.get("BytePairTokenizer", CharTokenizer)
    tokenizer = pairs(**chars) if isinstance(chars, dict) else CharTokenizer(chars)
    return Checkpoint(model.eval(), tokenizer, config, run, random, text)
