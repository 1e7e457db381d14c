"""python -m minigpt clinic their_model.py: the clinic for a file."""

import inspect
import runpy
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import torch

from minigpt.clinic.examination import examine
from minigpt.data import CharTokenizer
from minigpt.require import require


def add_options(parser: ArgumentParser) -> None:
    """The options of the command, for argparse."""
    add = parser.add_argument
    known = "a Python file with build(vocab_size), or with a model in it"
    add("file", metavar="FILE", help=known)
    add("--vocab-size", type=int, metavar="N", help="number of ids (default: 65)")
    add("--block-size", type=int, metavar="N", help="how many ids it reads at once")
    known = "a text it wasn't trained on; its characters, sorted, are the ids"
    add("--text", metavar="FILE", help=known)
    known = "seconds for learning one batch, at most (default: %(default)s)"
    add("--seconds", type=float, default=20, metavar="X", help=known)


def main(options: Namespace) -> int:
    """The command: print the page; 0 if nothing is wrong, else 1."""
    V, ids, file = options.vocab_size, None, Path(options.file)
    require(file.is_file(), f"There is no file {file}: give the path of a Python file.")
    if options.text:
        text = Path(options.text).read_text(encoding="utf-8")
        tokenizer = CharTokenizer(text)
        V, ids = V or tokenizer.vocab_size, torch.tensor(tokenizer.encode(text))
    V = V or 65
    sys.path.insert(0, str(file.resolve().parent))  # what lies beside it
    try:
        model, V = model_in(runpy.run_path(str(file)), V, options)
    finally:
        sys.path.pop(0)
    page = examine(
        model, V, ids, block_size=options.block_size, seconds=options.seconds
    )
    print(page)
    return int(page.bad())


def model_in(found: dict[str, Any], V: int, options: Namespace) -> tuple[Any, int]:
    """The model of a file: what build() makes, or the one that lies in it."""
    if callable(found.get("build")):
        takes = inspect.signature(found["build"]).parameters
        return (found["build"](V) if takes else found["build"]()), V
    models = {n: m for n, m in found.items() if isinstance(m, torch.nn.Module)}
    require(
        models,
        f"{options.file} has neither build(vocab_size) nor a model: add\n"
        "    def build(vocab_size):\n        return YourModel(vocab_size)",
    )
    model = models.get("model") or next(iter(models.values()))
    own = found.get("vocab_size")
    if options.vocab_size is None and not options.text and isinstance(own, int):
        V = own
    return model, V
