"""Lesson 06: a training run in a file."""

import io
import os
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import torch

from minigpt.arguments import check_device, check_kind
from minigpt.data import CharTokenizer
from minigpt.files import check_writable, replacing
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.training import Progress, TrainConfig, TrainState
from minigpt.workers import ALONE

FOLDER_FILE = "run.pt"  # of a checkpoint that is a folder: lesson 10's shards
SEAL = 32  # bytes of SHA-256 behind what torch wrote: a damaged file is noticed
PATH = "the path of a file, such as model.pt"


@dataclass
class Checkpoint:
    """A GPT or ModernGPT, its vocabulary, its recipe, and where its training stands."""

    model: LanguageModel
    tokenizer: CharTokenizer
    config: TrainConfig
    state: TrainState


def saver(path, model, tokenizer, config, workers=ALONE):
    """A function for train(..., save=...) that writes each state to `path`: a file,
    or a folder if each of several workers holds only a share of the model.

    Raises OSError, before any training, if nothing can be written there, and
    ValueError for a model that its config does not build.
    """
    check_kind("path", path, (str, os.PathLike), PATH)
    if not hasattr(model, "config"):
        check_kind("model", model, GPT, "a GPT, which a checkpoint can hold")
    check_writable(Path(path) / FOLDER_FILE if workers.sharded else path)
    with torch.device("meta"):
        if type(model.config.build()) is not type(model):
            raise ValueError(
                f"A {type(model).__name__} cannot be kept in a checkpoint, which holds "
                "weights and config only: train it without save=, or save a GPT."
            )

    def save(state):
        save_checkpoint(path, Checkpoint(model, tokenizer, config, state), workers)

    return save


def save_checkpoint(path, checkpoint, workers=ALONE):
    """Write a Checkpoint; the file (or folder) appears whole or not at all."""
    check_kind("path", path, (str, os.PathLike), PATH)
    example = "Checkpoint(model, tokenizer, config, state)"
    check_kind("checkpoint", checkpoint, Checkpoint, example)
    if not workers.sharded:
        check_writable(path)
    c = checkpoint
    content = {
        "model": c.model.state_dict(),
        "config": type(c.model.config).__name__,
        "model_config": asdict(c.model.config),
        "chars": c.tokenizer.chars,
        "train_config": asdict(c.config),
        **c.state._asdict(),
        "history": [tuple(row) for row in c.state.history],
    }
    if workers.sharded:
        from minigpt import shards  # lesson 10: only if it is needed

        shards.write(Path(path), content, workers)
    else:
        write_sealed(path, content)


def write_sealed(path, content):
    """torch.save(content, path), with a seal behind it, whole or not at all."""
    data = io.BytesIO()
    torch.save(content, data)
    data = data.getvalue()
    with replacing(path) as unfinished:
        unfinished.write_bytes(data + sha256(data).digest())


def load_checkpoint(path, device="cpu"):
    """Read a Checkpoint and build its model on `device`. Nothing is unpickled,
    and no random number is drawn.

    Raises FileNotFoundError, or ValueError if the file is not a checkpoint.
    """
    check_kind("path", path, (str, os.PathLike), PATH)
    check_device(device)
    path = Path(path)
    file = checkpoint_file(path)
    if path.is_dir() and not file.is_file():
        raise IsADirectoryError(
            f"{path} is a folder without a checkpoint: give the name of a file in it."
        )
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no checkpoint {str(path)!r}. Train one first: "
            f"python -m minigpt train --out {path}"
        )
    try:
        data = file.read_bytes()  # what fails below is the content's fault
    except OSError as error:
        raise OSError(
            f"{file} cannot be read ({error.strerror}): check your permission to read "
            "it, or give another file."
        ) from None
    try:
        data, seal = io.BytesIO(data[:-SEAL]), data[-SEAL:]
        if sha256(data.getbuffer()).digest() != seal:  # torch would not notice
            raise ValueError("damaged")
        content = torch.load(data, map_location="cpu", weights_only=True)
        if "tensors" in content:
            from minigpt import shards  # lesson 10: only if it is needed

            content = shards.read(path, content)
        with torch.device("meta"):  # a model without memory: its weights come now
            kind = content["config"]
            model = _config(kind, content["model_config"]).build()
        model.load_state_dict(content["model"], assign=True)
        state = {name: content[name] for name in TrainState._fields}
        state["history"] = [Progress(*row) for row in content["history"]]
        checkpoint = Checkpoint(
            model.eval(),
            CharTokenizer(content["chars"]),
            TrainConfig(**content["train_config"]),
            TrainState(**state),
        )
    except Exception:  # damage shows in many ways, and all mean the same
        raise ValueError(
            f"{path} is not a checkpoint of this version of minigpt, or it is "
            "damaged. Train again and write to a new file."
        ) from None
    model.to(device)  # outside the try: a device that fails is not a damaged file
    return checkpoint


def checkpoint_file(path):
    """The file that is there if a checkpoint is: `path`, or a file in that folder."""
    path = Path(path)
    return path / FOLDER_FILE if path.is_dir() else path


def _config(kind, values):
    if kind == "GPTConfig":
        return GPTConfig(**values)
    from minigpt.modern import ModernConfig  # lesson 08: only if it is needed

    return {"ModernConfig": ModernConfig}[kind](**values)
