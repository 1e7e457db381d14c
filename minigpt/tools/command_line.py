"""python -m minigpt train | sample | page | speedrun | bench | doctor."""

import os
import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch
from tqdm import tqdm

from minigpt.checkpoint import Checkpoint
from minigpt.data import CharTokenizer, train_val_split
from minigpt.device import set_random_state
from minigpt.evaluation import evaluate
from minigpt.fast.writing import stream
from minigpt.modern.recipe import minute_preset
from minigpt.parallel.meeting import joined, own_device, restarts
from minigpt.parallel.workers import Worker, first, standing, total
from minigpt.tools import benchmark, doctor, page, speedrun
from minigpt.tools.corpus import find, read_ids, read_tokens
from minigpt.tools.files import only_one
from minigpt.tools.interrupts import Interrupts
from minigpt.tools.options import TEXTS, add_sample, add_train, device_named
from minigpt.tools.saving import keep, load_any, load_or_stored, saver, snapshots_of
from minigpt.training import Run, preset, train

SHAPE = ["block_size", "n_layer", "n_head", "n_embd", "dropout"]
RECIPE = ["steps", "batch_size", "learning_rate", "seed"]
JUDGED = 2_000_000  # characters of the validation split at most: minutes, not hours


def parser():
    """The options of all commands."""
    told = "Train a small GPT, let it write, race it against the clock."
    top = ArgumentParser(prog="python -m minigpt", description=told)
    commands = top.add_subparsers(required=True, metavar="command")
    for name, add_options, run, help in (
        ("train", add_train, run_train, "train a GPT"),
        ("sample", add_sample, run_sample, "write text"),
        ("page", page.add_options, page.main, "the model as one HTML file"),
        ("speedrun", speedrun.add_options, speedrun.main, "one minute: your recipe"),
        ("bench", benchmark.add_options, benchmark.main, "a race with nanoGPT's demo"),
        ("doctor", doctor.add_options, doctor.main, "does this device compute right?"),
    ):
        command = commands.add_parser(name, help=help)
        add_options(command)
        command.set_defaults(run=run)
    return top


def main(argv=None):
    """Run a command; returns the exit code: 0, 2 for bad input, 130 interrupted
    (1: a speed run was too long, or the doctor found a fault)."""
    options = parser().parse_args(argv)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # nobody reads on, as behind `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run_train(options):
    """Train from scratch or go on, with a progress bar; write --out."""
    refuse(options)
    with joined(), ExitStack() as held:
        first(lambda: find(options.data))  # one may download it, for all
        first(lambda: held.enter_context(only_one(options.out)))
        path, device = find(options.data), own_device(device_named(options.device))
        old = run_at(options, device)
        tokenizer, ids, n = read(options, old, path)
        if options.resume and old:
            checkpoint = resumed(options, old, tokenizer, ids)
            set_random_state(old.random, device)
        else:
            checkpoint = begun(options, tokenizer, ids, device)
            first(lambda: snapshots_of(options.out).unlink(missing_ok=True))
        train_data, val_data = ids[:n], ids[n:]
        if len(val_data) <= checkpoint.config.block_size:
            raise ValueError(
                f"The last tenth of {path} has {len(val_data)} {unit(tokenizer)}, but "
                f"one window takes {checkpoint.config.block_size + 1}: use a longer "
                "text or a smaller --block-size."
            )
        return trained(options, checkpoint, train_data, val_data)


def refuse(options):
    """Raise ValueError for options that do not go together, or not here."""
    o = options
    if o.resume and o.overwrite:
        raise ValueError("--resume goes on, --overwrite begins anew: leave one out.")
    if o.accumulate < 1:
        raise ValueError(f"accumulate is {o.accumulate}; give 1 or more pieces.")
    if restarts()[1] and not o.resume:
        raise ValueError("--max-restarts starts this command again: add --resume.")


def run_at(options, device):
    """The Checkpoint in --out, None if there is no such file. Raises ValueError for a
    file that is not to be written over."""
    out = Path(options.out)
    if total(out.exists()) not in (0, total(1)):
        raise ValueError(f"Only some workers see {out}: put it where all machines do.")
    if not out.exists():
        return None
    try:
        old = load_any(out, device)
    except ValueError as error:
        raise ValueError(f"{error} It is left as it is: give another --out.") from None
    if not (options.resume or options.overwrite):
        raise ValueError(
            f"{out} exists. Pass --resume to go on with it, --overwrite to replace "
            "it, or another --out."
        )
    return old


def read(options, old, path):
    """(tokenizer, its Ids of a text, how many of them are the training text); a run
    that goes on keeps its own tokens."""
    tokens = old.tokenizer if options.resume and old else options.tokens
    if tokens is None or isinstance(tokens, CharTokenizer):
        tokenizer, ids = read_ids(path)
        return tokenizer, ids, len(train_val_split(ids)[0])
    return read_tokens(path, tokens)


def unit(tokenizer):
    """What a tokenizer has an id for, in a word."""
    return "characters" if isinstance(tokenizer, CharTokenizer) else "tokens"


def begun(options, tokenizer, ids, device):
    """The Checkpoint of a new run."""
    if options.preset in ("cpu", "gpu"):
        shape, config = preset(options.preset, tokenizer.vocab_size)
    else:
        shape, config = minute_preset(tokenizer.vocab_size)
    shape = replace(shape, **given(options, SHAPE))
    config = replace(config, block_size=shape.block_size, **given(options, RECIPE))
    torch.manual_seed(config.seed)
    model = shape.build().to(device)
    run = Run(model, config)
    return Checkpoint(model, tokenizer, config, run, text=ids.hash())


def resumed(options, old, tokenizer, ids):
    """The Checkpoint of a run that goes on, with the same text."""
    fixed = given(options, ["preset", "seed", "tokens", *SHAPE])
    if fixed and not restarts()[0]:  # else they began this very run
        flags = ", ".join("--" + name.replace("_", "-") for name in fixed)
        raise ValueError(f"--resume goes on with the run as it is: leave out {flags}.")
    if vars(tokenizer) != vars(old.tokenizer) or old.text not in (None, ids.hash()):
        raise ValueError(
            f"The run in {options.out} learned from another text: give that one as "
            "--data, or another --out to begin a new run."
        )
    config = replace(old.config, **given(options, RECIPE))
    return replace(old, config=config, text=ids.hash())


def trained(options, checkpoint, train_data, val_data):
    """Train, saving at each evaluation, and judge; returns the exit code."""
    c, start = checkpoint, checkpoint.run.step
    device = next(c.model.parameters()).device
    model = Worker(c.model, options.accumulate)

    n, quiet = c.config.steps, model.rank > 0
    bar = tqdm(total=n, initial=start, unit="step", disable=quiet)
    with Interrupts() as interrupts, bar:

        def on_keep(run):
            if run.step in options.keep:
                first(lambda: keep(options.out, c))

        def on_step(run):
            bar.update()
            on_keep(run)
            return total(interrupts.asked) > 0

        def on_eval(run):
            row = run.history[-1]
            losses = f"train {row.train_loss:.3f}, validation {row.val_loss:.3f}"
            bar.set_postfix_str(losses)
            first(lambda: saver(options.out, c)(run))

        on_keep(c.run)
        train(model, train_data, val_data, c.config, c.run, on_eval, on_step)

    if c.run.step < c.config.steps:
        done = f"Interrupted after step {c.run.step} of {c.config.steps}"
        say(f"{done}: {options.out} keeps it; --resume goes on.")
        return 130
    if start >= c.config.steps:
        say(f"The run in {options.out} is complete; --steps beyond {start} goes on.")
    judged = val_data[:JUDGED].ids.long()
    part = "the whole split"
    if len(judged) < len(val_data):
        part = f"the first {len(judged):,} of {len(val_data):,} {unit(c.tokenizer)}"
    loss = evaluate(model, judged, c.config.block_size)  # nats per token
    said = c.tokenizer.decode(judged[1:].tolist())
    told = "" if len(said) == len(judged) - 1 else f" ({loss:.4f} per token)"
    loss *= (len(judged) - 1) / len(said)
    where = f"{model.size} workers on {device}" if model.size > 1 else device
    say(
        f"Validation loss {loss:.4f} nats per character{told} over {part}; "
        f"{c.run.seconds:.0f} s of training on {where}; written to {options.out}."
    )
    return 0


def say(text):
    """Print it, once for all workers."""
    if standing()[0] == 0:
        print(text)


def run_sample(options):
    """Print the prompt with what a model makes of it, as it is written; several such
    texts with a line of dashes between them."""
    check_knobs(options)
    model, tokenizer = load_or_stored(options.checkpoint, device_named(options.device))
    if options.seed is not None:
        torch.manual_seed(options.seed)
    # The first token of a vocabulary is the line break, if the text has one.
    prompt = tokenizer.decode([0]) if options.prompt is None else options.prompt
    if prompt == "-":
        prompt = sys.stdin.read()
    if not prompt:
        raise ValueError("The prompt is empty: give at least one character.")
    knobs = "temperature top_k top_p window".split()
    settings = {name: getattr(options, name) for name in knobs}
    settings["stop"] = [text.replace(r"\n", "\n") for text in options.stop]
    for text in range(options.n):
        pieces = stream(model, tokenizer, prompt, options.tokens, **settings)
        piece = next(pieces, "")  # what is wrong shows before anything is printed
        dashes = "-" * 20 + "\n" if text else ""
        try:
            print(dashes + prompt + piece, end="", flush=True)
            for piece in pieces:
                print(piece, end="", flush=True)
        finally:  # an interrupted text ends its line, too
            print(flush=True)
    return 0


def check_knobs(options):
    """Raise ValueError for a number with which no text can be written."""
    o, t, inf = options, options.temperature, float("inf")
    for name, fine, need in (
        ("n", 1 <= o.n <= TEXTS, f"1 to {TEXTS}"),
        ("tokens", o.tokens >= 0, "0 or more"),
        ("temperature", t == 0 or 1e-6 <= t < inf, "0, or a finite one from 1e-6 on"),
        ("top_k", o.top_k is None or o.top_k >= 1, "at least 1"),
        ("top_p", o.top_p is None or 0 < o.top_p <= 1, "above 0, at most 1"),
        ("stop", all(o.stop), "at least one character each time"),
    ):
        if not fine:
            raise ValueError(f"{name} is {getattr(o, name)}; give {need}.")


def given(options, names):
    """Those of the options that were given: {name: value}."""
    return {n: getattr(options, n) for n in names if getattr(options, n) is not None}
