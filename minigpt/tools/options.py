"""Options of the command line: those of `train` and `sample`."""

import argparse

import torch

from minigpt.device import pick_device
from minigpt.fast.reading import WINDOWS

TEXTS = 100  # that `sample` writes at once, at most


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors say where the options are explained."""

    def error(self, message):
        super().error(f"{message} ({self.prog} --help explains the options)")


def add_train(parser):
    """The options of `train`."""
    add = parser.add_argument
    add(
        "--data",
        metavar="TEXT",
        default="tinyshakespeare",
        help="a UTF-8 text file, 'tinyshakespeare' (the default) or 'playwright'",
    )
    add(
        "--preset",
        choices=["cpu", "modern", "gpu"],
        help="size and schedule: modern (the default) of 08, cpu of 06, or gpu",
    )
    add(
        "--out",
        metavar="FILE",
        default="model.pt",
        help="file to write (default: %(default)s)",
    )
    add("--resume", action="store_true", help="go on with the run in --out, if any")
    add("--overwrite", action="store_true", help="replace the run in --out")
    add("--device", help="cuda, mps or cpu (default: the best there is)")
    add("--compile", action="store_true", help="faster, after up to a minute")
    add("--accumulate", type=int, default=1, help="read a batch in so many pieces")
    add("--fsdp", action="store_true", help="with torchrun: share out the model, too")
    add = parser.add_argument_group("in place of the preset's values").add_argument
    add("--steps", type=int, metavar="N", help="training steps")
    add("--batch-size", type=int, metavar="N", help="windows per step")
    add("--learning-rate", type=float, metavar="X", help="at its peak")
    add("--seed", type=seed, metavar="N", help="of weights, batches and dropout")
    add("--block-size", type=int, metavar="N", help="context length in characters")
    add("--n-layer", type=int, metavar="N", help="number of blocks")
    add("--n-head", type=int, metavar="N", help="heads in each block")
    add("--n-embd", type=int, metavar="N", help="width, a multiple of --n-head")
    add("--dropout", type=float, metavar="X", help="share of values dropped")


def add_sample(parser):
    """The options of `sample`."""
    add = parser.add_argument
    add("--checkpoint", metavar="FILE", help="what `train` wrote (default: model.pt)")
    add("--prompt", metavar="TEXT", help="text to go on from; - reads standard input")
    add(
        "--tokens",
        type=int,
        metavar="N",
        default=500,
        help="characters (default: %(default)s)",
    )
    add(
        "--n",
        type=int,
        metavar="N",
        default=1,
        help=f"texts to write at once, up to {TEXTS}",
    )
    add(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help=r"end before this text; \n is a line break; may be given several times",
    )
    add(
        "--window",
        choices=WINDOWS,
        help="what is read of a text beyond the context: lesson 09 (default: half)",
    )
    add(
        "--temperature",
        type=float,
        metavar="X",
        default=0.8,
        help="0 always takes the likeliest (default: %(default)s)",
    )
    add("--top-k", type=int, metavar="N", help="draw among the k likeliest only")
    add("--top-p", type=float, metavar="X", help="among the likeliest that sum to p")
    add("--seed", type=seed, metavar="N", help="for the same text every time")
    add("--device", help="cuda, mps or cpu (default: the best there is)")


def seed(text):
    """A seed of random numbers, for argparse."""
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text} is no whole number of 64 bits")
    return value


def device_named(name):
    """pick_device(name). Raises ValueError if torch cannot compute there."""
    try:
        device = pick_device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError):  # the second, where torch has no CUDA
        raise ValueError(
            f"torch cannot compute on {name} here: give --device cpu, or leave it out."
        ) from None
    return device
