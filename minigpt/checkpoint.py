"""Lesson 06: a training run in a file."""

import os
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from minigpt.arguments import check_device, check_kind
from minigpt.data import CharTokenizer
from minigpt.files import check_writable, only_one
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.sealed import read_sealed, strange, write_sealed
from minigpt.training import Progress, TrainConfig, TrainState
from minigpt.workers import ALONE

ASTRAY = 100.0  # nats per token; guessing costs the log of the vocabulary, 4 to 11
FOLDER_FILE = "run.pt"  # of a checkpoint that is a folder: lesson 10's shards
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

    Raises OSError, before any training, if nothing can be written there or another
    process writes there, and ValueError for a model that its config does not build.
    The function itself raises OSError, saying what `path` still holds, if a write
    fails, and ValueError, with `path` as it was, if the run has diverged.
    """
    check_kind("path", path, (str, os.PathLike), PATH)
    if not hasattr(model, "config"):
        check_kind("model", model, GPT, "a GPT, which a checkpoint can hold")
    with only_one(path) if workers.rank == 0 else nullcontext():
        check_writable(Path(path) / FOLDER_FILE if workers.sharded else path)
    with torch.device("meta"):
        if type(model.config.build()) is not type(model):
            raise ValueError(
                f"A {type(model).__name__} cannot be kept in a checkpoint, which holds "
                "weights and config only: train it without save=, or save a GPT."
            )

    def save(state):
        losses = [loss for row in state.history[-1:] for loss in row[1:3]]
        if not _finite(model, workers) or not all(loss < ASTRAY for loss in losses):
            said = " and ".join(f"{loss:.3g}" for loss in losses)
            raise ValueError(
                f"The run diverged (losses {said} at step {state.step}): use a smaller "
                f"learning rate and {_remedy(path, state)}."
            )
        try:
            save_checkpoint(path, Checkpoint(model, tokenizer, config, state), workers)
        except BlockingIOError:  # another process is at it, and is named
            raise
        except OSError as error:
            raise OSError(
                f"Step {state.step} could not be written to {path} "
                f"({error.strerror or error}): make room there or move to another "
                f"folder, then {_remedy(path, state)}."
            ) from None

    return save


def save_checkpoint(path, checkpoint, workers=ALONE):
    """Write a Checkpoint; the file (or folder) appears whole or not at all."""
    check_kind("path", path, (str, os.PathLike), PATH)
    example = "Checkpoint(model, tokenizer, config, state)"
    check_kind("checkpoint", checkpoint, Checkpoint, example)
    if Path(path).is_dir() and not workers.sharded:
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
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


def load_checkpoint(path, device="cpu"):
    """Read a Checkpoint and build its model on `device`. Nothing is unpickled,
    and no random number is drawn.

    Raises FileNotFoundError, or ValueError that says what is wrong with the file.
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
        content = read_sealed(file)
    except OSError as error:
        raise OSError(
            f"{file} cannot be read ({error.strerror}): check your permission to read "
            "it, or give another file."
        ) from None
    if "tensors" in content:
        from minigpt import shards  # lesson 10: only if it is needed

        content = shards.read(path, content)
    checkpoint = _checkpoint(path, content)
    checkpoint.model.to(device)
    return checkpoint


def _checkpoint(path, content):
    """Put the parts together, or say which of them do not fit."""
    try:
        with torch.device("meta"):  # a model without memory: its weights come now
            model = _config(content["config"], content["model_config"]).build()
        tokenizer = CharTokenizer(content["chars"])
        config = TrainConfig(**content["train_config"])
        state = {name: content[name] for name in TrainState._fields}
        state["history"] = [Progress(*row) for row in content["history"]]
        weights = content["model"]
    except Exception:  # parts that are missing, or of another kind
        raise strange(path) from None
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"{path} has a vocabulary of {tokenizer.vocab_size} characters and a model "
            f"of {model.config.vocab_size}: they belong to two runs. Train again."
        )
    try:
        model.load_state_dict(weights, assign=True)
    except Exception:
        raise ValueError(
            f"{path} holds the weights of another model than its configuration "
            "describes. Train again, with the shape that you want."
        ) from None
    if not _finite(model):
        raise ValueError(
            f"{path} holds weights that are infinite or not a number: that run had "
            "diverged. Train again with a smaller learning rate."
        )
    return Checkpoint(model.eval(), tokenizer, config, TrainState(**state))


def _finite(model, workers=ALONE):
    """Are all weights numbers? Of shares, each worker looks at its own."""
    mine = [p.to_local() if hasattr(p, "to_local") else p for p in model.parameters()]
    lost = sum(not p.isfinite().all() for p in mine)
    return (workers.sum(lost) if workers.sharded else lost) == 0


def _remedy(path, state):
    """How to go on after a state that was not written, by what `path` holds."""
    try:
        kept = load_checkpoint(path).state
        if kept.history == state.history[: len(kept.history)]:  # the same run
            return f"go on with --resume from step {kept.step}, which {path} keeps"
    except (OSError, ValueError):
        pass
    return f"train again, for {path} is as it was before this run"


def checkpoint_file(path):
    """The file that is there if a checkpoint is: `path`, or a file in that folder."""
    path = Path(path)
    return path / FOLDER_FILE if path.is_dir() else path


def _config(kind, values):
    if kind == "GPTConfig":
        return GPTConfig(**values)
    from minigpt.modern import ModernConfig  # lesson 08: only if it is needed

    return {"ModernConfig": ModernConfig}[kind](**values)
