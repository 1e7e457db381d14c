"""The speed run: how low can the loss go in one minute of training on two cores?

    python -m minigpt speedrun --example > my_recipe.py      a recipe to begin with
    python -m minigpt speedrun my_recipe.py                  three seeds, then the table

The rules. A file defines recipe(train_ids, vocab_size, seed), which returns a model:
model(idx, targets=None) -> (logits, loss), with a block_size. It learns from the
training split alone, nothing of the other may be learned or counted, and the call
takes at most 60 seconds on two threads, tables included. The loss is exact: all of
the validation split, in windows of block_size characters; the mean of three seeds.
"""

import functools
import math
import sys
import time
import traceback
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import torch
import torch.nn as nn

from minigpt import record
from minigpt.data import CharTokenizer, get_batch, load_text, train_val_split
from minigpt.evaluation import evaluate, judging
from minigpt.gpt import GPTConfig
from minigpt.language_model import next_token_loss
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.options import real_number, seed_number
from minigpt.training import TrainConfig

SECONDS, THREADS, SEEDS = 60, 2, [1337, 1338, 1339]
# What an entry of the table changes: another one here, and else the one above it.
CHANGES = {"counts alone": None, "+ counts": "+ context 128, third block"}
EXAMPLE = '''\
"""My recipe for the speed run: python -m minigpt speedrun my_recipe.py"""

from dataclasses import replace

import torch

from minigpt.training import preset, train

STEPS = 700  # as many as fit into a minute; a first try with 20 says how long one takes


def recipe(train_ids, vocab_size, seed):
    """train_ids: (N,), the training split -> a trained model."""
    shape, plan = preset("modern", vocab_size)
    plan = replace(plan, steps=STEPS, seed=seed, eval_every=STEPS, eval_batches=1)
    torch.manual_seed(seed)
    model = shape.build()
    # train() wants a second split to report on. Yours is the training split again:
    # to choose between two recipes, cut a piece off its end and judge on that.
    history = train(model, train_ids, train_ids, plan)
    if history[-1].step < STEPS:  # you pressed Ctrl+C: then leave out the other seeds
        raise KeyboardInterrupt
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
    """The Text of a name or a path; "playwright" has a floor. Nothing stands in:
    FileNotFoundError. Errors as load_text."""
    if source == "playwright":
        from minigpt.playwright import write_play  # takes seconds: only if asked for

        play = write_play(1_100_000)
        text, surprise = play.text, play.surprise
    else:
        text, surprise = load_text(source, substitute=False), None
    tokenizer = CharTokenizer(text)
    train, val = train_val_split(torch.tensor(tokenizer.encode(text)))
    floor = None
    if surprise is not None:  # the first character of a split is never predicted
        floor = play.nats(len(train) + 1)
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

    text: a Text. The loss is worked out from the logits; the model is not shown the
    targets. Whether the time was kept is for the caller to say.
    Raises BrokenRule if what comes back is no causal model with a block_size.
    """
    with at_threads(THREADS):
        torch.manual_seed(seed)
        mine = text.train.clone()  # what the recipe does to it, it does to a copy
        start = time.perf_counter()
        model = recipe(mine, text.vocab_size, seed)
        seconds = time.perf_counter() - start
        if torch.get_num_threads() > THREADS:
            raise BrokenRule(
                f"The recipe computes with {torch.get_num_threads()} threads; the "
                f"rules allow {THREADS}: take torch.set_num_threads out of it."
            )
        check_model(model)
        probe = _windows(text.train, model.block_size)
        before = check_causal(model, probe, text.vocab_size)
        loss = evaluate(_FromLogits(model), text.val, model.block_size)
        if (_logits(model, probe) - before).abs().max() > TOLERANCE:
            raise BrokenRule(
                "The model is another one after it was judged than before: it may not "
                "learn or count while it reads the validation split."
            )
    parameters = sum(p.numel() for p in model.parameters())
    return {"loss": loss, "seconds": round(seconds, 1), "parameters": parameters}


class _FromLogits(nn.Module):
    """A model judged by its logits: whatever it calls its loss, all get the same."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, idx, targets):
        logits = self.model(idx)[0]
        return logits, next_token_loss(logits, targets)


# --- What a recipe returned: can it be judged? ---

TOLERANCE = 1e-3  # in logits: rounding moves them by less, a leak by more


def check_model(model):
    """Raise BrokenRule, naming the remedy, unless it is a model with a block_size."""
    if model is None:
        raise BrokenRule("recipe(...) returned None: end it with `return model`.")
    if not isinstance(model, nn.Module):
        raise BrokenRule(
            f"recipe(...) returned a {type(model).__name__}; return the model, an "
            "nn.Module with model(idx, targets=None) -> (logits, loss)."
        )
    size = getattr(model, "block_size", None)
    if type(size) is not int or size < 1:
        raise BrokenRule(
            f"The model's block_size is {size!r}; set model.block_size to the number "
            "of characters in a window that it was trained on."
        )
    devices = {p.device.type for p in model.parameters()}
    if devices != {"cpu"}:
        raise BrokenRule(
            "The model has no parameter: register one, even if it is never trained."
            if not devices
            else f"The model is on {devices}: this is a race on the CPU."
        )


def check_causal(model, windows, vocab_size):
    """Its logits (B, T, vocab_size) for windows (B, T), if they are causal.

    All characters behind some position are changed, then another window in the
    batch: no logits may move at that position or before, or in the first window.
    Raises BrokenRule with the position, or if the logits have another shape.
    """
    (B, T), before = windows.shape, _logits(model, windows)
    if before.shape != (B, T, vocab_size):
        raise BrokenRule(
            f"model(idx) with idx {B, T} gave logits of shape {tuple(before.shape)}; "
            f"they must be {B, T, vocab_size}: one row for each position."
        )
    if not before.isfinite().all():
        raise BrokenRule(
            "The logits are not finite: the training diverged. Try a smaller learning "
            "rate, or a longer warm-up."
        )
    others = (windows + 1) % vocab_size  # every character another one
    for last in sorted({0, T // 4, T // 2, 3 * T // 4, T - 2} & set(range(T - 1))):
        changed = windows.clone()
        changed[:, last + 1 :] = others[:, last + 1 :]
        moved = (_logits(model, changed) - before).abs().amax(dim=(0, 2))  # (T,)
        worst = moved[: last + 1].argmax().item()
        if not moved[worst] <= TOLERANCE:
            raise BrokenRule(
                f"The model is not causal: the characters after position {last} were "
                f"changed, and the logits at position {worst} moved by "
                f"{moved[worst]:.2g}. A position may read itself and what is before."
            )
    changed = torch.cat([windows[:1], others[1:]])
    moved = (_logits(model, changed) - before)[0].abs().max().item()
    if not moved <= TOLERANCE:
        raise BrokenRule(
            f"The windows of a batch read one another: the others were changed, and "
            f"the logits of the first moved by {moved:.2g}. In the validation split "
            "the next window begins with this one's answer."
        )
    return before


def _windows(ids, block_size, n=4):
    """The first n windows of a text (N,), or what there is of them: (B, T)."""
    T = min(block_size, len(ids))
    return ids[: len(ids) // T * T].view(-1, T)[:n]


def _logits(model, idx):
    with judging(model):
        out = model(idx)
    if not isinstance(out, tuple) or not isinstance(out[0], torch.Tensor):
        raise BrokenRule(
            f"model(idx) returned a {type(out).__name__}; it must return a pair, "
            "(logits, loss), with None for the loss if there are no targets."
        )
    return out[0].clone()


# --- How fast is this machine? ---


def demo(vocab_size):
    """nanoGPT's CPU demo, as its README gives it: (GPTConfig, TrainConfig)."""
    shape = GPTConfig(vocab_size, block_size=64, n_layer=4, n_head=4, n_embd=128)
    plan = TrainConfig(
        steps=2000,
        batch_size=12,
        block_size=64,
        learning_rate=1e-3,
        warmup_steps=100,
        final_fraction=0.1,
    )
    return shape, plan


def demo_speed(seconds=3.0):
    """Steps of the demo per second on two threads, here and now, after three to warm
    up: what the seconds of two machines can be compared by."""
    shape, plan = demo(vocab_size=65)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(65, (10_000,), generator=generator)
    state = torch.get_rng_state()  # whoever asks for the speed draws as before
    model = shape.build()
    torch.set_rng_state(state)
    optimizer = make_optimizer(model, plan)
    with at_threads(THREADS):
        step, start = -3, time.perf_counter()
        while step < 1 or time.perf_counter() - start < seconds:
            if step == 0:
                start = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_at(0, plan)
            x, y = get_batch(ids, plan.batch_size, plan.block_size, generator=generator)
            loss = model(x, y)[1]
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), plan.grad_clip)
            optimizer.step()
            step += 1
        return step / (time.perf_counter() - start)


# --- The table of records. ---


class Row(NamedTuple):
    """An entry: mean loss and spread, the paired Difference by which it is better than
    the entry that it changes (None for a beginning), the longest seed's seconds."""

    name: str
    loss: float
    spread: float
    gain: record.Difference | None
    seconds: float
    steps: int
    parameters: int


def rows(variants=None):
    """The table of records as Rows, in its order. variants: as record.load gives.

    Raises FileNotFoundError if nothing has been measured.
    """
    variants = record.load("speedrun") if variants is None else variants
    found, above = [], None
    for name, v in variants.items():
        base = variants.get(CHANGES.get(name, above))
        gain = record.difference(base, v) if base else None
        steps, parameters = v.values("steps")[0], v.values("parameters")[0]
        seconds = max(v.values("seconds"))
        found.append(Row(name, v.mean(), v.spread(), gain, seconds, steps, parameters))
        above = name
    return found


def table(variants=None):
    """rows() as lines of text, for print(); the gain is half its spread uncertain."""
    found = rows(variants)
    width = max(len(row.name) for row in found) + 2
    lines = [
        f"{'':{width}}{'loss':>6}{'spread':>8}{'seconds':>9}{'steps':>7}"
        f"{'parameters':>12}   gain"
    ]
    for r in found:
        line = (
            f"{r.name:{width}}{r.loss:6.3f}{r.spread:8.3f}{r.seconds:9.1f}"
            f"{r.steps:7,}{r.parameters:12,}"
        )
        if r.gain is not None:
            line += f"   {r.gain.mean:+.3f} ± {r.gain.spread / 2:.3f}"
            line += "  a tie" if r.gain.is_tie else ""
            if r.name in CHANGES:
                line += f"  against {CHANGES[r.name]!r}"
        lines.append(line)
    return "\n".join(lines)


def standing(mine, limit, variants):
    """Where a Variant stands among those that took at most `limit` seconds: a text."""
    rivals = [v for v in variants.values() if max(v.values("seconds")) <= limit]
    if not rivals:
        return f"The table has no entry of at most {limit:g} s to compare with."
    rivals.sort(key=record.Variant.mean)
    lower = [v for v in rivals if v.mean() < mine.mean()]
    text = f"Place {len(lower) + 1} of {len(rivals) + 1}"
    beside = lower[-1:] + rivals[len(lower) : len(lower) + 1]
    for v in beside:
        text += f"; {mine.mean() - v.mean():+.3f} against {v.name!r} ({v.mean():.3f})"
        paired = mine.runs.keys() & v.runs.keys()
        if len(paired) > 1 and record.difference(mine, v).is_tie:
            text += ", a tie"
    return text + "."


# --- A reader's recipe. ---


def load_recipe(path):
    """The function recipe of a reader's file.

    Raises ValueError if there is no such file, if it has no recipe, or if it cannot
    be run, with the reader's own traceback.
    """
    path = Path(path).resolve()
    if not path.is_file():
        raise ValueError(
            f"There is no file {str(path)!r}. This writes one to begin with: "
            "python -m minigpt speedrun --example > my_recipe.py"
        )
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules.setdefault(path.stem, module)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # it may import what lies beside it
    try:
        source = path.read_bytes()
    except OSError as error:
        raise OSError(
            f"{path} cannot be read ({error.strerror}): check your permission to read "
            "it, or give another file."
        ) from None
    with in_readers_words(path):
        exec(compile(source, str(path), "exec"), module.__dict__)
    recipe = getattr(module, "recipe", None)
    if not callable(recipe):
        raise ValueError(
            f"{path.name} has no function recipe(train_ids, vocab_size, seed): define "
            "one. An example: python -m minigpt speedrun --example"
        )
    return recipe


@contextmanager
def in_readers_words(path):
    """An error inside becomes a ValueError that holds the traceback from the reader's
    file on, without the frames that led there. A BrokenRule stays as it is."""
    try:
        yield
    except BrokenRule:
        raise
    except (Exception, SystemExit) as error:
        frames = error.__traceback__
        while frames and frames.tb_frame.f_code.co_filename != str(path):
            frames = frames.tb_next
        lines = traceback.format_exception(type(error), error, frames)
        raise ValueError(f"{path.name} raised:\n{''.join(lines).rstrip()}") from None


def add_options(parser):
    """The options of the command, for argparse."""
    parser.add_argument("recipe", nargs="?", help="a file with recipe(...) in it")
    parser.add_argument(
        "--data",
        default="tinyshakespeare",
        help="tinyshakespeare, playwright or the path of a text (default: %(default)s)",
    )
    parser.add_argument(
        "--seeds",
        type=seed_number,
        nargs="+",
        default=SEEDS,
        help="one training each (default: 1337 1338 1339)",
    )
    parser.add_argument(
        "--seconds",
        type=real_number,
        default=SECONDS,
        help="of training at most (default: %(default)s)",
    )
    parser.add_argument(
        "--example", action="store_true", help="print a recipe to begin with"
    )


def main(options):
    """The command: run a reader's recipe under the rules, say where it stands.

    Returns 0, or 1 if it took too long. Raises ValueError as load_recipe and run.
    """
    if options.example:
        print(EXAMPLE, end="")
        return 0
    if options.recipe is None:
        raise ValueError(
            "Name the file of your recipe. This writes one to begin with: "
            "python -m minigpt speedrun --example > my_recipe.py"
        )
    if not 0 < options.seconds < math.inf:
        raise ValueError(f"--seconds is {options.seconds}; it must be above 0.")
    path, recipe = Path(options.recipe).resolve(), load_recipe(options.recipe)
    text = open_text(options.data)
    try:
        records = record.load("speedrun")
    except FileNotFoundError:
        records = {}
    print(
        f"{len(text.train):,} characters to learn from, {len(text.val):,} to be judged "
        f"on; at most {options.seconds:g} s on {THREADS} threads."
    )
    print(_speed_here(demo_speed(), records), flush=True)
    mine = record.Variant(path.name, {})
    for seed in options.seeds:
        with in_readers_words(path):
            result = mine.runs[seed] = run(recipe, text, seed)
        late = result["seconds"] > options.seconds
        print(
            f"seed {seed}: loss {result['loss']:.4f}, {result['seconds']:.1f} s"
            + " - OVER THE TIME" * late,
            flush=True,
        )
    return _report(mine, text, options, records)


def _speed_here(speed, records):
    line = f"This machine makes {speed:.1f} steps of nanoGPT's demo per second"
    runs = [run for v in records.values() for run in v.runs.values()]
    known = sorted(r["demo steps per second"] for r in runs)
    if not known:
        return line + "; there is no table of records to compare with."
    middle = known[len(known) // 2]
    return (
        f"{line}, the machine of the records {middle:.1f}: 60 s here are as good as "
        f"{60 * speed / middle:.0f} s there."
    )


def _report(mine, text, options, records):
    seconds = max(mine.values("seconds"))
    n = len(mine.runs)
    print(
        f"\n{mine.name}: loss {mine.mean():.4f}, spread {mine.spread():.4f} over {n} "
        f"seed{'s' * (n > 1)}; {seconds:.1f} s at most; "
        f"{mine.values('parameters')[0]:,} parameters."
    )
    if text.floor is not None:
        uniform = math.log(text.vocab_size)
        share = (uniform - mine.mean()) / (uniform - text.floor)
        print(
            f"The floor is {text.floor:.4f}, for one who knows the whole past; the "
            f"uniform guess {uniform:.4f}. This is {share:.1%} of the way down."
        )
    if seconds > options.seconds:
        print(
            f"OVER THE TIME by {seconds - options.seconds:.1f} s: it cannot stand in "
            "the table. Train fewer steps."
        )
        return 1
    if options.data != "tinyshakespeare" or not records:
        return 0
    print("\n" + table(records) + "\n\n" + standing(mine, options.seconds, records))
    if n < len(SEEDS):
        print(f"An entry of the table takes {len(SEEDS)} seeds.")
    return 0
