"""The speed run: how low can the loss go in one minute of training on two cores?

    python -m minigpt speedrun --example > my_recipe.py      a recipe to begin with
    python -m minigpt speedrun my_recipe.py                  three seeds, then the mean

The rules. A file defines recipe(train_ids, vocab_size, seed), which returns a model:
model(idx, targets=None) -> (logits, loss), with a block_size. It learns from the
training split alone, nothing of the other may be learned or counted, and the call
takes at most 60 seconds on two threads, tables included. The loss is exact: all of
the validation split, in windows of block_size characters; the mean of three seeds.
It is per character: a model that reads tokens (lesson 13) must predict characters.
"""

import functools
import runpy
import sys
import time
import traceback
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
from minigpt.training import TrainConfig, train

SECONDS, THREADS, SEEDS = 60, 2, [1337, 1338, 1339]
TOLERANCE = 1e-3  # in logits: rounding moves them by less, a leak by more
EXAMPLE = Path(__file__).with_name("my_recipe.py")


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
    """The Text of "tinyshakespeare" (FileNotFoundError if it cannot be had: nothing
    stands in for it) or of "playwright", which has a floor."""
    play = write_play(1_100_000) if source == "playwright" else None  # takes seconds
    text = play.text if play else load_text(tiny_shakespeare())
    tokenizer = CharTokenizer(text)
    train, val = train_val_split(torch.tensor(tokenizer.encode(text)))
    floor = play.nats(len(train) + 1) if play else None  # val[0] is never predicted
    return Text(train, val, tokenizer.vocab_size, floor)


def run(recipe, text, seed):
    """One training under the rules: {"loss", "seconds", "parameters"}. Raises
    BrokenRule if what comes back is no causal model with a block_size."""
    torch.set_num_threads(THREADS)
    torch.manual_seed(seed)
    start = time.perf_counter()
    model = recipe(text.train.clone(), text.vocab_size, seed)  # it harms no other
    seconds = time.perf_counter() - start
    if not isinstance(model, nn.Module) or not hasattr(model, "block_size"):
        raise BrokenRule(
            f"recipe(...) returned a {type(model).__name__}. Return an nn.Module with "
            "model(idx, targets=None) -> (logits, loss) and with model.block_size, the "
            "number of characters in a window that it was trained on."
        )
    judged = FromLogits(model).eval()
    T = min(model.block_size, len(text.train))
    windows = text.train[: len(text.train) // T * T].view(-1, T)[:4]  # (B, T)
    check_causal(judged, windows, text.vocab_size)
    loss = evaluate(judged, text.val, model.block_size)
    n = sum(p.numel() for p in model.parameters())
    return {"loss": loss, "seconds": round(seconds, 1), "parameters": n}


class FromLogits(nn.Module):
    """A model judged by its logits: it is not shown the targets, nor asked its loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    @torch.no_grad()
    def forward(self, idx, targets=None):
        logits = self.model(idx)[0].clone()
        return logits, next_token_loss(logits, targets)


def check_causal(judged, windows, vocab_size):
    """Raise BrokenRule unless the logits for windows (B, T) are finite and causal.

    In the first window all characters behind some position are changed, and all
    other windows: no logits of the first may move at that position or before.
    """
    T, before = windows.shape[1], judged(windows)[0]  # (B, T, vocab_size)
    if before.shape[-1] != vocab_size:
        raise BrokenRule(
            f"The model has logits of {before.shape[-1]} tokens. It is judged per "
            f"character: return one with logits of the {vocab_size} characters."
        )
    if not before.isfinite().all():
        raise BrokenRule("Some logits are not finite: try a smaller learning rate.")
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


def demo_speed(steps=120):
    """Steps of the demo per second on two threads, here and now: what the seconds of
    two machines can be compared by. The first 20 steps warm up."""
    torch.set_num_threads(THREADS)
    ids = torch.arange(10_000) % 65
    shape, plan = demo(vocab_size=65)
    plan = replace(plan, steps=steps, eval_every=20, eval_batches=1)
    with torch.random.fork_rng():
        first, *_, last = train(shape.build(), ids, ids, plan)
    return (last.step - first.step) / (last.seconds - first.seconds)


def add_options(parser):
    """The options of the command, for argparse."""
    add = parser.add_argument
    add("recipe", nargs="?", help="a file with recipe(...) in it")
    add("--seeds", type=int, nargs="+", default=SEEDS, help="one training each")
    add("--example", action="store_true", help="print a recipe to begin with")


def main(options):
    """The command: run a reader's recipe under the rules, say how low it came.

    Returns 1 if it took too long; a ValueError holds the recipe's own traceback.
    """
    if options.example:
        print(EXAMPLE.read_text(encoding="utf-8"), end="")
        return 0
    path = Path(options.recipe or "my_recipe.py").resolve()
    if not path.is_file():
        raise ValueError(
            f"There is no file {str(path)!r}. This writes one to begin with: "
            "python -m minigpt speedrun --example > my_recipe.py"
        )
    text, results = open_text(), []
    print(
        f"At most {SECONDS} s on {THREADS} threads. This machine makes "
        f"{demo_speed():.1f} steps of nanoGPT's demo per second.",
        flush=True,
    )
    try:
        sys.path.insert(0, str(path.parent))  # it may import what lies beside it
        recipe = runpy.run_path(str(path), run_name=path.stem)["recipe"]
        for number in options.seeds:
            result = run(recipe, text, number)
            results.append(result)
            told = f"loss {result['loss']:.4f}, {result['seconds']:.1f} s"
            print(f"seed {number}: {told}", flush=True)
    except BrokenRule:
        raise
    except Exception:
        raise ValueError(f"{path.name} raised:\n{traceback.format_exc()}") from None
    losses = [result["loss"] for result in results]
    print(
        f"\n{path.name}: loss {mean(losses):.4f}, spread "
        f"{max(losses) - min(losses):.4f} over {len(losses)} seeds; "
        f"{result['parameters']:,} parameters."
    )
    if max(result["seconds"] for result in results) > SECONDS:
        print("OVER THE TIME: it cannot stand in the table. Train fewer steps.")
        return 1
    print("Notebook 08 has the table of the course to compare it with.")
    return 0
