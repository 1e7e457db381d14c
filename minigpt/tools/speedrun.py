"""The speed run: how low can the loss go in one minute of training on two cores?

    python -m minigpt speedrun --example > my_recipe.py      a recipe to begin with
    python -m minigpt speedrun my_recipe.py                  three seeds, then the mean

A recipe is a file with two functions. build(train_ids, vocab_size) returns an untrained
model, model(idx, targets=None) -> (logits, loss) with a block_size; tables of the text
are made there. train(model, train_ids, seed) trains it: its state_dict() remains.

Each seed is trained in a fresh process that has the training text alone. What counts is
its time by the clock from start to end, or its CPU time shared by two threads if that
is more (not on Windows): at most 60 s of the table's machine, by the speed of the demo
here. Then a process with the weights gets the validation text in windows of block_size,
at most 256 characters, one by one in random order; what it is late with counts as well.
A third process gets the beginnings of some windows: if its logits differ, the model
looked ahead, or learned while it was judged. The loss is exact and per character: a
model that reads tokens (lesson 13) must predict characters.

It is a race among honest people, with guard rails. Code on your machine can do what you
can: call C, which no guard hears, or bring texts and weights in a Python file.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from subprocess import Popen
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.gpt import GPTConfig
from minigpt.tools.corpus import Corpus, corpus
from minigpt.training import TrainConfig, train

SECONDS, THREADS, SEEDS = 60, 2, [1337, 1338, 1339]
REFERENCE = 35.3  # demo_speed() of the table's machine
WINDOW, CHECKS = 256, 64  # characters at most; windows whose beginnings are sent again
TOLERANCE = 1e-3  # in logits: rounding moves them by less, a leak by more
EXAMPLE = Path(__file__).with_name("my_recipe.py")


class BrokenRule(ValueError):
    """A recipe that fails, or that may not stand in the table."""


def run(path: Path | str, text: Corpus, seed: int, *names: str) -> dict[str, float]:
    """Train and judge the recipe in a file: {"loss", "seconds", "parameters", "demo
    steps per second"}. `names` (str) are further arguments of its build and train.

    Raises BrokenRule; the recipe's own words and traceback go to stderr.
    """
    speed = round(demo_speed(), 2)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, folder)
        torch.save(text.train.clone(), f"{folder}/train.pt")  # a view would save all
        of = folder, 2 * limit(speed), seed, text.vocab_size, Path(path).name, *names
        seconds = trained(*of)
        loss, late, n = judged(text, *of)
    found = {"loss": loss, "seconds": max(seconds, late), "parameters": n}
    return found | {"demo steps per second": speed}


def limit(speed: float) -> float:
    """The seconds of a training where the demo makes `speed` steps per second."""
    return SECONDS * (REFERENCE / speed)


@contextmanager
def racing(
    role: str, folder: str, patience: float, *arguments: object
) -> Generator[Popen]:
    """A process of `racing` in a folder, for so many seconds at most."""
    places = "HOME", "TMPDIR", "XDG_CACHE_HOME", "MINIGPT_DATA"
    path = os.pathsep.join([str(Path(__file__).resolve().parents[2]), *sys.path])
    environment = os.environ | dict.fromkeys(places, folder) | {"PYTHONPATH": path}
    environment |= {"OMP_NUM_THREADS": str(THREADS), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "minigpt.tools.racing", role, *map(str, arguments)]
    pipe = subprocess.PIPE
    with Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe) as child:
        timer = threading.Timer(patience, child.kill)
        timer.start()
        try:
            yield child
        except (EOFError, OSError):
            raise BrokenRule(
                f"The recipe failed ({role}) and said above why, or was stopped after "
                f"{patience:.0f} seconds."
            ) from None
        finally:
            timer.cancel()
            child.kill()


def ask(child: Any, ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """ids: (T,) -> the logits (T, vocab_size) of the model in another process."""
    os.write(child.stdin.fileno(), json.dumps(ids.tolist()).encode() + b"\n")
    size = 4 * len(ids) * vocab_size
    answer = child.stdout.read(size)
    if len(answer) < size:
        raise EOFError
    logits = torch.frombuffer(bytearray(answer), dtype=torch.float32)
    if not logits.isfinite().all():
        raise BrokenRule("Some logits are not finite: try a smaller learning rate.")
    return logits.view(-1, vocab_size)


def trained(*of: Any) -> float:
    """Let a recipe train, for `judged`; returns the seconds charged."""
    start, before = time.perf_counter(), sum(os.times()[2:4])  # CPU time of children
    with racing("train", *of) as child:
        if child.wait() != 0:
            raise EOFError
    return max(time.perf_counter() - start, (sum(os.times()[2:4]) - before) / THREADS)


def judged(text: Corpus, folder: str, *of: Any) -> tuple[float, float, int]:
    """(loss, late, parameters) of what `trained` left; late: the seconds until the
    judge is ready, and what it takes for answers beyond their usual time."""
    size, parameters, _ = torch.load(f"{folder}/weights.pt", weights_only=True)
    if not 1 <= size <= WINDOW:
        raise BrokenRule(f"block_size is {size!r}; give 1 to {WINDOW} characters.")
    windows = list(zip(text.val[:-1].split(size), text.val[1:].split(size)))
    random.shuffle(windows)
    marks, answers = [time.perf_counter()], []
    with tempfile.TemporaryDirectory() as copy:  # it leaves the next one no note
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        with racing("judge", copy, *of) as child:
            for x, y in windows:
                answers.append((x, y, ask(child, x, text.vocab_size)))
                marks.append(time.perf_counter())
    times = [end - start for start, end in zip(marks, marks[1:])]
    with racing("judge", folder, *of) as child:  # it has seen nothing of the text
        for x, _, logits in random.sample(answers, min(CHECKS, len(answers))):
            n = random.randint(1, len(x))
            moved = (ask(child, x[:n], text.vocab_size) - logits[:n]).abs().max()
            if moved > TOLERANCE:
                raise BrokenRule(
                    f"The logits of the first {n} characters of a window differ by "
                    f"{moved:.2g} from those that a fresh process makes of these alone:"
                    " the model looks ahead, or remembers earlier windows."
                )
    total = sum(F.cross_entropy(z, y, reduction="sum").item() for _, y, z in answers)
    late = sum(times) - len(times) * median(times)
    return total / (len(text.val) - 1), late, parameters


@dataclass
class DemoConfig(TrainConfig):
    """nanoGPT's schedule: along the cosine down to a tenth of the peak."""

    def learning_rate_at(self, step: int) -> float:
        rate = super().learning_rate_at(step)
        if step < min(self.warmup_steps, self.steps // 5):
            return rate
        return 0.1 * self.learning_rate + 0.9 * rate


def demo(vocab_size: int) -> tuple[GPTConfig, DemoConfig]:
    """nanoGPT's CPU demo, as its README gives it: (GPTConfig, DemoConfig)."""
    shape = GPTConfig(vocab_size, block_size=64, n_layer=4, n_head=4, n_embd=128)
    return shape, DemoConfig(2000, 12, 64, learning_rate=1e-3)


def demo_speed(steps: int = 120) -> float:
    """Steps of the demo per second on two threads, here and now: what the seconds of
    two machines can be compared by. The first 20 steps warm up."""
    torch.set_num_threads(THREADS)
    ids = torch.arange(10_000) % 65
    shape, plan = demo(vocab_size=65)
    plan = replace(plan, steps=steps, eval_every=20, eval_batches=1)
    with torch.random.fork_rng():
        first, *_, last = train(shape.build(), ids, ids, plan)
    return (last.step - first.step) / (last.seconds - first.seconds)


def add_options(parser: ArgumentParser) -> None:
    """The options of the command, for argparse."""
    add = parser.add_argument
    add("recipe", nargs="?", help="a file with build(...) and train(...) in it")
    add("--quick", action="store_true", help="one seed, to try: this is no entry")
    add("--example", action="store_true", help="print a recipe to begin with")


def main(options: Namespace) -> int:
    """The command: run a reader's recipe under the rules, say how low it came.

    Returns 1 if it took too long. Raises ValueError without a file, and BrokenRule.
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
    text, results, late = corpus(), [], False
    for seed in SEEDS[:1] if options.quick else SEEDS:
        results.append(run(path, text, seed))
        loss, seconds, parameters, speed = results[-1].values()
        late |= seconds > limit(speed)
        print(
            f"seed {seed}: loss {loss:.4f}, {seconds:.2f} of {limit(speed):.2f} s at "
            f"{speed} steps of nanoGPT's demo per second (the table's: {REFERENCE})",
            flush=True,
        )
    losses = [result["loss"] for result in results]
    print(
        f"\n{path.name}: loss {mean(losses):.4f}, spread "
        f"{max(losses) - min(losses):.4f} over {len(losses)} seeds; "
        f"{parameters:,} parameters."
    )
    if late:
        print("OVER THE TIME: it cannot stand in the table. Train fewer steps.")
        return 1
    compare = "The README leads to the table to compare it with."
    print("One seed is no entry: it takes three." if options.quick else compare)
    return 0
