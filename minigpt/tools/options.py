"""Options of the command line: those of `train` and `sample`."""

from argparse import ArgumentParser
from typing import Any

import torch

from minigpt.device import pick_device

TEXTS = 100  # that `sample` writes, at most
FILE: dict[str, Any] = {"metavar": "FILE"}
WHOLE: dict[str, Any] = {"type": int, "metavar": "N"}
NUMBER: dict[str, Any] = {"type": float, "metavar": "X"}


def add_train(parser: ArgumentParser) -> None:
    """The options of `train`."""
    add = parser.add_argument
    known = "a UTF-8 text file, 'tinyshakespeare' (the default) or 'playwright'"
    add("--data", metavar="TEXT", default="tinyshakespeare", help=known)
    known = "read pieces of words, a vocabulary of so many (lesson 13; else characters)"
    add("--tokens", **WHOLE, help=known)
    known = "go on from the model in a GPT-2 folder, with its tokens (lesson 14)"
    add("--from", dest="start", metavar="FOLDER", help=known)
    known = "size and schedule: modern (the default) of 08, cpu of 06, or gpu"
    add("--preset", choices=["cpu", "modern", "gpu"], help=known)
    add("--out", **FILE, default="model.pt", help="to write (default: %(default)s)")
    add("--resume", action="store_true", help="go on with the run in --out, if any")
    add("--overwrite", action="store_true", help="replace the run in --out")
    known = "keep the weights of these steps for `page`, as 0,100,400"
    add("--keep", type=steps, default=[], metavar="N,N", help=known)
    add("--device", help="cuda, mps or cpu (default: the best there is)")
    add("--accumulate", **WHOLE, default=1, help="read a batch in so many pieces")
    add = parser.add_argument_group("in place of the preset's values").add_argument
    add("--steps", **WHOLE, help="training steps")
    add("--batch-size", **WHOLE, help="windows per step")
    add("--learning-rate", **NUMBER, help="at its peak")
    add("--seed", **WHOLE, help="of weights, batches and dropout")
    add("--block-size", **WHOLE, help="context length in characters, or in tokens")
    add("--n-layer", **WHOLE, help="number of blocks")
    add("--n-head", **WHOLE, help="heads in each block")
    add("--n-embd", **WHOLE, help="width, a multiple of --n-head")
    add("--dropout", **NUMBER, help="share of values dropped")


def add_sample(parser: ArgumentParser) -> None:
    """The options of `sample`."""
    add = parser.add_argument
    add("--checkpoint", **FILE, help="to read, or a GPT-2 folder (default: model.pt)")
    add("--prompt", metavar="TEXT", help="text to go on from; - reads standard input")
    known = "of text to write (default: %(default)s)"
    add("--tokens", **WHOLE, default=500, help=known)
    add("--n", **WHOLE, default=1, help=f"texts to write, up to {TEXTS}")
    known = r"end before this text; \n is a line break; may be given several times"
    add("--stop", action="append", default=[], metavar="TEXT", help=known)
    known = "0 always takes the likeliest (default: %(default)s)"
    add("--temperature", **NUMBER, default=0.8, help=known)
    add("--top-k", **WHOLE, help="draw among the k likeliest only")
    add("--top-p", **NUMBER, help="among the likeliest that sum to p")
    add("--seed", **WHOLE, help="for the same text every time")
    add("--device", help="cuda, mps or cpu (default: the best there is)")


def steps(text: str) -> list[int]:
    """Steps of a training, from 0 on, for argparse."""
    return [int(step) for step in text.split(",")]


def device_named(name: str | None) -> torch.device:
    """pick_device(name). Raises ValueError if torch cannot compute there."""
    try:
        device = pick_device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError):  # the second, where torch has no CUDA
        raise ValueError(
            f"torch cannot compute on {name} here: give --device cpu, or leave it out."
        ) from None
    return device
