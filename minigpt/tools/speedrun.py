"""The speed run: how low can the loss get in the time that nanoGPT's demo takes?

    python -m minigpt speedrun                     lists the course's recipes
    python -m minigpt speedrun my_recipe.py        trains one with three seeds

A recipe is a Python file. minigpt/tools/recipes explains what's in it. It's trained in
this process and gets only the training text. Then its logits are judged by the exact
loss on the validation text, in windows of block_size. The beginning of a window must
give the same logits as the whole window, so the model can't see the future. The race
runs on the honor system: nothing keeps a recipe from cheating on purpose.
"""

import runpy
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from statistics import mean

import torch
import torch.nn as nn

from minigpt.bigram import next_token_loss
from minigpt.evaluation import evaluate, evaluating
from minigpt.interfaces import Model
from minigpt.require import require
from minigpt.tools.corpus import Corpus, corpus

RECIPES = Path(__file__).with_name("recipes")
SEEDS = [1337, 1338, 1339]
LONGEST = 256  # characters in a window
TOLERANCE = 1e-3  # rounding moves logits by less, the future by more


def run(path: Path | str, text: Corpus, seed: int) -> dict[str, float]:
    """Train and judge the recipe in a file -> {"loss", "seconds", "parameters"}.

    The seconds are processor time, over all cores. Raises ValueError if the file isn't
    a recipe, or if its model sees the future.
    """
    path = Path(path)
    require(path.is_file(), f"There is no file {str(path)!r}.")
    recipe = runpy.run_path(str(path), run_name=path.stem)
    for name in ("build", "train"):
        require(name in recipe, f"{path} has no function {name}(...).")
    torch.manual_seed(seed)
    start = time.process_time()
    model = recipe["build"](text.train, text.vocab_size)
    recipe["train"](model, text.train, seed)
    seconds = time.process_time() - start
    size = model.block_size
    require(
        1 <= size <= LONGEST,
        f"block_size is {size!r}; give 1 to {LONGEST} characters.",
    )
    refuse_foresight(model, text.val)
    return {
        "loss": evaluate(ByLogits(model), text.val, size),
        "seconds": seconds,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


class ByLogits(nn.Module):
    """A model whose loss is computed from its logits, no matter what loss it
    reports."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, idx: torch.Tensor, targets: torch.Tensor) -> tuple:
        logits = self.model(idx)[0]
        return logits, next_token_loss(logits, targets)


@torch.no_grad()
def refuse_foresight(model: Model, ids: torch.Tensor, windows: int = 32) -> None:
    """Raise ValueError if later characters change the logits of earlier ones, or if the
    logits aren't finite. ids: (N,)."""
    T = min(model.block_size, len(ids))
    idx = ids.unfold(0, T, T)[:windows]  # (windows, T)
    with evaluating(model):
        logits = model(idx)[0]
        finite = bool(logits.isfinite().all())
        require(finite, "Some logits aren't finite: try a smaller learning rate.")
        for n in sorted({1, T // 3, T // 2, T - 1} - {0}):
            moved = (model(idx[:1, :n])[0] - logits[:1, :n]).abs().max()
            for begun, whole in zip(idx[:, :n].split(8), logits[:, :n].split(8)):
                moved = torch.maximum(moved, (model(begun)[0] - whole).abs().max())
            require(
                bool(moved <= TOLERANCE),
                f"The logits of a window's first {n} characters change by {moved:.2g} "
                "if the model reads nothing else: the model sees the future, or other "
                "windows.",
            )


def add_options(parser: ArgumentParser) -> None:
    """The options of the command, for argparse."""
    add = parser.add_argument
    add("recipe", nargs="?", help="a file with build(...) and train(...)")
    known = "one training run per seed (default: three seeds)"
    add("--seeds", type=int, nargs="+", default=SEEDS, metavar="N", help=known)


def main(options: Namespace) -> int:
    """The command: train a recipe with each seed, and print how low it got."""
    if options.recipe is None:
        print("Recipes to read, copy and change:")
        for path in sorted(RECIPES.glob("[a-z]*.py")):
            print(f"  {path}")
        return 0
    text, losses = corpus(), []
    for seed in options.seeds:
        found = run(options.recipe, text, seed)
        losses.append(found["loss"])
        print(
            f"seed {seed}: loss {found['loss']:.4f} after {found['seconds']:.0f} "
            f"processor seconds, {found['parameters']:,} parameters",
            flush=True,
        )
    if len(losses) > 1:
        spread = max(losses) - min(losses)
        print(f"mean {mean(losses):.4f}, spread {spread:.4f}")
    return 0
