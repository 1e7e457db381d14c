"""A process of the speed run's own, in which a recipe is trained, or answers its judge.

`speedrun` starts it in a folder with the file and train.pt. "train" leaves weights.pt
there; "judge" answers each line of ids (T,) with logits (T, vocab_size), float32.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import torch

READABLE = (".py", ".pyc", ".ini", "METADATA", "entry_points.txt")  # by imports
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
REFUSED = ("socket.", "subprocess.", "pty.", "os.link", "os.symlink", "os.rename")
REFUSED += ("os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system")


def guard(folder: str) -> None:
    """From here on this process opens no file outside `folder` but Python's modules,
    no socket, and no other process: PermissionError. It cannot be taken back."""

    def hook(event: str, arguments: tuple) -> None:
        if event.startswith(REFUSED):
            raise PermissionError(f"The rules of the speed run forbid {event}.")
        if event == "open" and not isinstance(arguments[0], int):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            imported = path.endswith(READABLE) and not arguments[2] & WRITING
            if not imported and not path.startswith(folder + os.sep):
                raise PermissionError(f"The rules of the speed run forbid {path!r}.")

    sys.addaudithook(hook)
    modules: dict[str, Any] = sys.modules
    modules["_posixsubprocess"] = None  # it starts processes unheard


def main(role: str, seed: str, vocab_size: str, file: str, *names: str) -> None:
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a recipe prints is no answer
    ids, V = torch.load("train.pt", weights_only=True), int(vocab_size)
    torch.manual_seed(int(seed))
    guard(os.path.realpath("."))
    recipe = runpy.run_path(file, run_name=Path(file).stem)
    model = recipe["build"](ids.clone(), V, *names)
    if role == "train":
        size = model.block_size  # what is missing is told before the training
        recipe["train"](model, ids, int(seed), *names)
        parameters = sum(p.numel() for p in model.parameters())
        torch.save([size, parameters, model.state_dict()], "weights.pt")
        return
    model.load_state_dict(torch.load("weights.pt", weights_only=True)[2])
    model.eval()
    for line in asked:
        idx = torch.tensor([json.loads(line)])  # (1, T)
        with torch.no_grad():
            logits = model(idx)[0].reshape(idx.shape[1], V)
        answers.write(logits.float().numpy().tobytes())
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
