"""The command-line options of `train` and `sample`."""

from argparse import ArgumentParser
from typing import Any

import torch

from minigpt.device import pick_device

TEXTS = 100  # the most that `sample` writes
FILE: dict[str, Any] = {"metavar": "FILE"}
WHOLE: dict[str, Any] = {"type": int, "metavar": "N"}
NUMBER: dict[str, Any] = {"type": float, "metavar": "X"}


def add_train(parser: ArgumentParser) -> None:
    """The options of `train`."""
    add = parser.add_argument
    known = "a text file in UTF-8, 'tinyshakespeare' (the default) or 'playwright'"
    add("--data", metavar="TEXT", default="tinyshakespeare", help=known)
    known = "use N different pieces of words instead of characters (lesson 13)"
    add("--tokens", **WHOLE, help=known)
    known = "start from the model in a GPT-2 folder and use its tokens (lesson 14)"
    add("--from", dest="start", metavar="FOLDER", help=known)
    known = "size and schedule: 'modern' (the default, lesson 08), 'cpu' (06) or 'gpu'"
    add("--preset", choices=["cpu", "modern", "gpu"], help=known)
    add(
        "--out",
        **FILE,
        default="model.pt",
        help="where to save it (default: %(default)s)",
    )
    known = "continue the run in --out, if there is one"
    add("--resume", action="store_true", help=known)
    add("--overwrite", action="store_true", help="replace the file in --out")
    known = "also keep the weights of these steps for `page`, such as 0,100,400"
    add("--keep", type=steps, default=[], metavar="N,N", help=known)
    add("--device", help="cuda, mps or cpu (default: the fastest you have)")
    known = "split each batch into N pieces, to save memory"
    add("--accumulate", **WHOLE, default=1, help=known)
    add = parser.add_argument_group("instead of the preset's values").add_argument
    add("--steps", **WHOLE, help="number of training steps")
    add("--batch-size", **WHOLE, help="windows of text per step")
    add("--learning-rate", **NUMBER, help="the schedule's highest rate")
    add("--seed", **WHOLE, help="seed for the weights, the batches and dropout")
    add("--block-size", **WHOLE, help="context length in characters, or in tokens")
    add("--n-layer", **WHOLE, help="number of blocks")
    add("--n-head", **WHOLE, help="heads in each block")
    add("--n-embd", **WHOLE, help="width, a multiple of --n-head")
    add("--dropout", **NUMBER, help="fraction of the numbers that dropout sets to 0")


def add_sample(parser: ArgumentParser) -> None:
    """The options of `sample`."""
    add = parser.add_argument
    add(
        "--checkpoint",
        **FILE,
        help="a model file or a GPT-2 folder (default: model.pt)",
    )
    known = "the text to continue; - reads it from standard input"
    add("--prompt", metavar="TEXT", help=known)
    known = "number of tokens to write (default: %(default)s)"
    add("--tokens", **WHOLE, default=500, help=known)
    add("--n", **WHOLE, default=1, help=f"number of texts to write, up to {TEXTS}")
    known = r"stop before this text (\n is a line break); you can give several"
    add("--stop", action="append", default=[], metavar="TEXT", help=known)
    known = (
        "lower is safer, higher is wilder, 0 picks the likeliest (default: %(default)s)"
    )
    add("--temperature", **NUMBER, default=0.8, help=known)
    add("--top-k", **WHOLE, help="draw only from the N likeliest")
    add("--top-p", **NUMBER, help="draw from the likeliest that add up to X")
    add("--seed", **WHOLE, help="the same seed writes the same text")
    add("--device", help="cuda, mps or cpu (default: the fastest you have)")


def steps(text: str) -> list[int]:
    """The steps of a training run, counted from 0, for argparse."""
    return [int(step) for step in text.split(",")]


def device_named(name: str | None) -> torch.device:
    """pick_device(name). Raises ValueError if torch can't compute there."""
    try:
        device = pick_device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError):  # the second, where torch has no CUDA
        raise ValueError(
            f"torch can't compute on {name} here: use --device cpu, or leave it out."
        ) from None
    return device
