"""The speed run: how low can the loss go in one minute of training on two cores?

    python -m minigpt speedrun --example > my_recipe.py      a recipe to begin with
    python -m minigpt speedrun my_recipe.py                  three seeds, then the mean

The rules. A file defines recipe(train_ids, vocab_size, seed), which returns a model:
model(idx, targets=None) -> (logits, loss), with a block_size. It learns from the
training split alone, nothing of the other may be learned or counted, and the call
takes at most 60 seconds on two threads, tables included. The loss is exact: all of
the validation split, in windows of block_size characters; the mean of three seeds.
"""

import functools
import math
import runpy
import sys
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import torch
import torch.nn as nn

from minigpt.bigram import next_token_loss
from minigpt.data import CharTokenizer, load_text, tiny_shakespeare, train_val_split
from minigpt.evaluation import evaluate
from minigpt.gpt import GPTConfig
from minigpt.playwright.play import write_play
from minigpt.tools import options as known_options
from minigpt.training import TrainConfig, train

SECONDS, THREADS, SEEDS = 60, 2, [1337, 1338, 1339]
TOLERANCE = 1e-3  # in logits: rounding moves them by less, a leak by more
EXAMPLE = '''\
"""My recipe for the speed run: python -m minigpt speedrun my_recipe.py"""

from dataclasses import replace

import torch

from minigpt.modern.recipe import modern_preset
from minigpt.training import train

STEPS = 700  # as many as fit into a minute; a first try with 20 says how long one takes


def recipe(train_ids, vocab_size, seed):
    """train_ids: (N,), the training split -> a trained model."""
    shape, plan = modern_preset(vocab_size)
    plan = replace(plan, steps=STEPS, seed=seed, eval_every=STEPS, eval_batches=1)
    torch.manual_seed(seed)
    model = shape.build()
    # train() wants a second split to report on. Yours is the training split again:
    # to choose between two recipes, cut a piece off its end and judge on that.
    train(model, train_ids, train_ids, plan)
    return model
'''


class BrokenRule(ValueError):
    """What a recipe returned cannot be judged, or may not stand in the table."""


class Text(NamedTuple):
    """A text split in two (N,), its vocabulary, and the floor under the loss on the
    validation split in nats per character (None: nobody knows)."""

    train: torch.Tensor
    val: torch.Tensor
    vocab_size: int
    floor: float | None = None


@functools.cache
def open_text(source="tinyshakespeare"):
    """The Text of a name or a path; "playwright" has a floor. Errors as load_text, and
    FileNotFoundError where Tiny Shakespeare cannot be had: nothing stands in for it."""
    play = write_play(1_100_000) if source == "playwright" else None  # takes seconds
    source = tiny_shakespeare() if source == "tinyshakespeare" else source
    text = play.text if play else load_text(source)
    tokenizer = CharTokenizer(text)
    train, val = train_val_split(torch.tensor(tokenizer.encode(text)))
    floor = play.nats(len(train) + 1) if play else None  # val[0] is never predicted
    return Text(train, val, tokenizer.vocab_size, floor)


@contextmanager
def at_threads(n):
    """Torch computes with n threads, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run(recipe, text, seed):
    """One training under the rules: {"loss", "seconds", "parameters"}.

    Raises BrokenRule if what comes back is no causal model with a block_size.
    """
    with at_threads(THREADS):
        torch.manual_seed(seed)
        mine = text.train.clone()  # what the recipe does to it, it does to a copy
        start = time.perf_counter()
        model = recipe(mine, text.vocab_size, seed)
        seconds = time.perf_counter() - start
        check_model(model)
        judged = FromLogits(model).eval()
        T = min(model.block_size, len(text.train))
        windows = text.train[: len(text.train) // T * T].view(-1, T)[:4]  # (B, T)
        check_causal(judged, windows, text.vocab_size)
        loss = evaluate(judged, text.val, model.block_size)
    size = sum(p.numel() for p in model.parameters())
    return {"loss": loss, "seconds": round(seconds, 1), "parameters": size}


class FromLogits(nn.Module):
    """A model judged by its logits: it is not shown the targets, nor asked its loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    @torch.no_grad()
    def forward(self, idx, targets=None):
        logits = self.model(idx)[0].clone()
        return logits, next_token_loss(logits, targets)


def check_model(model):
    """Raise BrokenRule unless it is a model on the CPU, with a block_size."""
    size, devices = getattr(model, "block_size", None), set()
    if isinstance(model, nn.Module):
        devices = {p.device.type for p in model.parameters()}
    if devices != {"cpu"} or type(size) is not int or size < 1:
        raise BrokenRule(
            f"recipe(...) returned a {type(model).__name__} with the block_size "
            f"{size!r}. Return an nn.Module whose parameters are on the CPU, with "
            "model(idx, targets=None) -> (logits, loss), and with model.block_size, "
            "the number of characters in a window that it was trained on."
        )


def check_causal(judged, windows, vocab_size):
    """Raise BrokenRule unless the logits for windows (B, T) are finite and causal.

    In the first window all characters behind some position are changed, and all
    other windows: no logits of the first may move at that position or before.
    """
    (B, T), before = windows.shape, judged(windows)[0]
    if before.shape != (B, T, vocab_size) or not before.isfinite().all():
        raise BrokenRule(
            f"For idx {B, T} the logits are {tuple(before.shape)}, the largest "
            f"{before.max():.3g}; they must be {B, T, vocab_size} and finite. If a "
            "training diverges, try a smaller learning rate."
        )
    for last in sorted({0, T // 4, T // 2, 3 * T // 4, T - 1}):
        changed = (windows + 1) % vocab_size  # every character another one
        changed[0, : last + 1] = windows[0, : last + 1]
        moved = (judged(changed)[0] - before)[0, : last + 1].abs().max()
        if moved > TOLERANCE:
            raise BrokenRule(
                f"The model is not causal: characters after position {last} were "
                f"changed, and the other windows of the batch; logits at {last} or "
                f"before moved by {moved:.2g}. They may read what is before, no more."
            )


@dataclass
class DemoConfig(TrainConfig):
    """nanoGPT's schedule: along the cosine down to a tenth of the peak."""

    def learning_rate_at(self, step):
        rate = super().learning_rate_at(step)
        if step < min(self.warmup_steps, self.steps // 5):
            return rate
        return 0.1 * self.learning_rate + 0.9 * rate


def demo(vocab_size):
    """nanoGPT's CPU demo, as its README gives it: (GPTConfig, DemoConfig)."""
    shape = GPTConfig(vocab_size, block_size=64, n_layer=4, n_head=4, n_embd=128)
    return shape, DemoConfig(2000, 12, 64, learning_rate=1e-3)


def demo_speed(seconds=3.0):
    """Steps of the demo per second on two threads, here and now, after three to warm
    up: what the seconds of two machines can be compared by."""
    ids, at = torch.arange(10_000) % 65, []

    def on_step(run):
        at.append(run.seconds)
        return len(at) > 3 and at[-1] - at[2] >= seconds

    with at_threads(THREADS), torch.random.fork_rng():
        shape, plan = demo(vocab_size=65)
        train(shape.build(), ids, ids, replace(plan, eval_batches=1), on_step=on_step)
    return (len(at) - 3) / (at[-1] - at[2])


def load_recipe(path):
    """The function recipe of a reader's file, which may import what lies beside it.

    Raises ValueError if there is no such file, if it has no recipe, or if it cannot
    be run, with the reader's own traceback.
    """
    if not path.is_file():
        raise ValueError(
            f"There is no file {str(path)!r}. This writes one to begin with: "
            "python -m minigpt speedrun --example > my_recipe.py"
        )
    sys.path.insert(0, str(path.parent))
    with in_readers_words(path):
        recipe = runpy.run_path(str(path), run_name=path.stem).get("recipe")
    if not callable(recipe):
        raise ValueError(
            f"{path.name} has no function recipe(train_ids, vocab_size, seed); see "
            "python -m minigpt speedrun --example"
        )
    return recipe


@contextmanager
def in_readers_words(path):
    """A reader's error becomes a ValueError that holds its traceback."""
    try:
        yield
    except BrokenRule:
        raise
    except Exception:
        raise ValueError(f"{path.name} raised:\n{traceback.format_exc()}") from None


def add_options(parser):
    """The options of the command, for argparse."""
    add = parser.add_argument
    add("recipe", nargs="?", help="a file with recipe(...) in it")
    known = "tinyshakespeare, playwright or the path of a text (default: %(default)s)"
    add("--data", default="tinyshakespeare", help=known)
    one_each = "one training each (default: 1337 1338 1339)"
    add("--seeds", type=known_options.seed, nargs="+", default=SEEDS, help=one_each)
    most = "of training at most (default: %(default)s)"
    add("--seconds", type=float, default=SECONDS, help=most)
    add("--example", action="store_true", help="print a recipe to begin with")


def main(options):
    """The command: run a reader's recipe under the rules, say how low it came.

    Returns 0, or 1 if it took too long. Raises ValueError as load_recipe and run.
    """
    if options.example:
        print(EXAMPLE, end="")
        return 0
    if not 0 < options.seconds < math.inf:
        raise ValueError(f"--seconds is {options.seconds}; it must be above 0.")
    path = Path(options.recipe or "my_recipe.py").resolve()
    recipe, text = load_recipe(path), open_text(options.data)
    print(
        f"{len(text.train):,} characters to learn from, {len(text.val):,} to be judged "
        f"on; at most {options.seconds:g} s on {THREADS} threads.\nThis machine makes "
        f"{demo_speed():.1f} steps of nanoGPT's demo per second.",
        flush=True,
    )
    results = []
    for number in options.seeds:
        with in_readers_words(path):
            result = run(recipe, text, number)
        results.append(result)
        over = " - OVER THE TIME" * (result["seconds"] > options.seconds)
        loss, seconds = result["loss"], result["seconds"]
        print(f"seed {number}: loss {loss:.4f}, {seconds:.1f} s{over}", flush=True)
    losses = [result["loss"] for result in results]
    print(
        f"\n{path.name}: loss {mean(losses):.4f}, spread "
        f"{max(losses) - min(losses):.4f} over {len(losses)} seeds; "
        f"{result['parameters']:,} parameters."
    )
    if text.floor is not None:
        print(f"The floor, for one who knows the whole past, is {text.floor:.4f}.")
    if max(result["seconds"] for result in results) > options.seconds:
        print("OVER THE TIME: it cannot stand in the table. Train fewer steps.")
        return 1
    print("Notebook 08 has the table of the course to compare it with.")
    return 0
