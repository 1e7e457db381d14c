"""The command line's checkpoints, for every kind of model. A bad run never gets
saved."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from minigpt.bridge.folder import load_gpt2
from minigpt.bridge.gpt2 import GPT2Config
from minigpt.bridge.other_files import what_it_is
from minigpt.bridge.tokenizer import GPT2Tokenizer
from minigpt.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from minigpt.files import save_whole
from minigpt.interfaces import Model
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import MuonConfig
from minigpt.stored import FOLDER, load_stored
from minigpt.tokens.byte_pairs import BytePairTokenizer
from minigpt.training import Run

LATER = [  # than lesson 06
    ModernConfig,
    MuonConfig,
    BytePairTokenizer,
    GPT2Config,
    GPT2Tokenizer,
]
ASTRAY = 100  # nats per token; guessing costs the log of the vocabulary, 4 to 11


def load_any(path: Path | str, device: torch.device | str = "cpu") -> Checkpoint:
    """load_checkpoint for the models of lessons 06, 08 and 14 and their tokenizers, so
    for everything that `train` writes."""
    try:
        return load_checkpoint(path, device, LATER)
    except ValueError as error:
        other = what_it_is(path)
        raise ValueError(f"{error} {other}" if other else str(error)) from None


def load_or_stored(
    path: Path | str | None, device: torch.device | str = "cpu"
) -> tuple[Model, Any]:
    """(model, tokenizer) of a checkpoint, a GPT-2 folder, or one of the course's stored
    models. None means model.pt. If there isn't one yet, you get the course's GPT, and a
    line on stderr says so."""
    if path is None and not Path("model.pt").exists():
        print(
            "There's no model.pt yet, so this is the GPT that comes with the course. "
            "To make your own: python -m minigpt train",
            file=sys.stderr,
        )
        path = FOLDER / "gpt.pt"
    path = Path(path or "model.pt")
    if path.is_dir():
        model, tokenizer = load_gpt2(path)
        return model.to(device), tokenizer
    if path.resolve().parent == FOLDER.resolve() and path.exists():
        model, tokenizer = load_stored(path)
        return model.to(device), tokenizer
    checkpoint = load_any(path, device)
    return checkpoint.model, checkpoint.tokenizer


def snapshots_of(path: Path | str) -> Path:
    """The file beside a checkpoint that keeps the weights of earlier steps."""
    return Path(f"{path}.kept")


def keep(path: Path | str, checkpoint: Checkpoint) -> None:
    """Add the current weights, in float16, to the file beside `path`."""
    file = snapshots_of(path)
    kept = torch.load(file, weights_only=True) if file.exists() else {}
    weights = checkpoint.model.state_dict()
    kept[checkpoint.run.step] = {name: w.cpu().half() for name, w in weights.items()}
    save_whole(file, kept)


def load_snapshots(path: Path | str, config: Any) -> dict[int, Model]:
    """{step: model} from the file beside the checkpoint `path`, or {}."""
    models, file = {}, snapshots_of(path)
    if Path(path).exists() and file.exists():
        for step, weights in sorted(torch.load(file, weights_only=True).items()):
            models[step] = config.build().eval()
            models[step].load_state_dict(weights)
    return models


def saver(path: Path | str, checkpoint: Checkpoint) -> Callable[[Run], None]:
    """An on_eval that saves this Checkpoint to `path`.

    on_eval(run) raises OSError if a write fails and ValueError if the run has diverged.
    In both cases, `path` stays as it was.
    """

    def save(run: Run) -> None:
        row, weights = run.history[-1], checkpoint.model.parameters()
        fine = row.train_loss < ASTRAY and row.val_loss < ASTRAY  # False for nan
        if not (fine and all(w.isfinite().all() for w in weights)):
            raise ValueError(
                f"The run diverged (losses {row.train_loss:.3g} and {row.val_loss:.3g} "
                f"at step {run.step}): use a smaller learning rate. {path} hasn't "
                "changed."
            )
        try:
            save_checkpoint(path, checkpoint)
        except OSError as error:
            raise OSError(
                f"Step {run.step} couldn't be written to {path} ({error.strerror}): "
                f"make room there or use another folder. {path} hasn't changed."
            ) from None

    return save
