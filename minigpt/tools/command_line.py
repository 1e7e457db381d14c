"""python -m minigpt train | sample | export | page | speedrun | doctor | clinic."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from minigpt.bridge.folder import load_gpt2
from minigpt.bridge.recipe import finetuning
from minigpt.checkpoint import Checkpoint
from minigpt.clinic import command as clinic
from minigpt.data import CharTokenizer, find_text, train_val_split
from minigpt.device import set_random_state
from minigpt.evaluation import evaluate
from minigpt.fast.writing import stream
from minigpt.generation import refuse_knobs
from minigpt.interfaces import Model, Tokenizer
from minigpt.modern.recipe import minute_preset
from minigpt.parallel.meeting import joined, own_device, restarts
from minigpt.parallel.workers import Worker, first, standing, total
from minigpt.require import require
from minigpt.tools import doctor, export, page, speedrun
from minigpt.tools.corpus import Ids, read_ids, read_tokens
from minigpt.tools.interrupts import Interrupts
from minigpt.tools.locking import only_one
from minigpt.tools.options import TEXTS, add_sample, add_train, device_named
from minigpt.tools.saving import keep, load_any, load_or_stored, saver, snapshots_of
from minigpt.training import Run, check_seed, preset, train

SHAPE = ["block_size", "n_layer", "n_head", "n_embd", "dropout"]
RECIPE = ["steps", "batch_size", "learning_rate", "seed"]
JUDGED = 2_000_000  # characters of the validation split at most: minutes, not hours


def parser() -> ArgumentParser:
    """The options of all commands."""
    about = "Train a small GPT, let it write, and look inside it."
    top = ArgumentParser(prog="python -m minigpt", description=about)
    commands = top.add_subparsers(required=True, metavar="command")
    for name, add_options, run, does in (
        ("train", add_train, run_train, "train a GPT"),
        ("sample", add_sample, run_sample, "write text"),
        ("export", export.add_options, export.main, "save a model as a GPT-2 folder"),
        (
            "page",
            page.add_options,
            page.main,
            "turn a model into an HTML page that shows it at work",
        ),
        (
            "speedrun",
            speedrun.add_options,
            speedrun.main,
            "measure a training recipe of your own",
        ),
        ("doctor", doctor.add_options, doctor.main, "check your setup and your device"),
        (
            "clinic",
            clinic.add_options,
            clinic.main,
            "find out what's wrong with a GPT you wrote",
        ),
    ):
        command = commands.add_parser(name, help=does)
        add_options(command)
        command.set_defaults(run=run)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit code: 0 if all went well, 2 for bad input, 130 if
    it was interrupted, 1 if the doctor or the clinic found something wrong."""
    options = parser().parse_args(argv)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # nobody reads the rest, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run_train(options: Namespace) -> int:
    """Train from scratch or continue, with a progress bar, and write --out."""
    refuse(options)
    with joined(), ExitStack() as held:
        first(lambda: find_text(options.data))  # one may download it for all
        first(lambda: held.enter_context(only_one(options.out)))
        path, device = find_text(options.data), own_device(device_named(options.device))
        old = run_at(options, device)
        kept = old if options.resume else None
        start = started(options) if options.start and kept is None else None
        tokenizer, ids, n = read(options, kept, path, start)
        if kept is not None:
            checkpoint = resumed(options, kept, tokenizer, ids)
            set_random_state(kept.random, device)
        else:
            checkpoint = begun(options, tokenizer, ids, device, start)
            first(lambda: snapshots_of(options.out).unlink(missing_ok=True))
        train_data, val_data = ids[:n], ids[n:]
        window = checkpoint.config.block_size + 1
        require(
            len(val_data) >= window,
            f"The last tenth of {path} has {len(val_data)} {unit(tokenizer)}, but one "
            f"window takes {window}: use a longer text or a smaller --block-size.",
        )
        return trained(options, checkpoint, train_data, val_data)


def refuse(options: Namespace) -> None:
    """Raise ValueError for options that don't go together, or don't work here."""
    o = options
    require(
        not (o.resume and o.overwrite),
        "--resume continues, --overwrite starts over: leave one of them out.",
    )
    require(
        o.accumulate >= 1,
        f"accumulate is {o.accumulate}; give 1 or more.",
    )
    require(
        o.resume or not restarts()[1],
        "--max-restarts runs this command again: add --resume.",
    )


def run_at(options: Namespace, device: torch.device) -> Checkpoint | None:
    """The Checkpoint in --out, or None if there's no such file. Raises ValueError for a
    file that mustn't be overwritten."""
    out = Path(options.out)
    require(
        total(out.exists()) in (0, total(1)),
        f"Only some workers can see {out}: put it where all of them can.",
    )
    if not out.exists():
        return None
    try:
        old = load_any(out, device)
    except ValueError as error:
        raise ValueError(f"{error} It stays as it is: give another --out.") from None
    require(
        options.resume or options.overwrite,
        f"{out} exists. Pass --resume to continue it, --overwrite to replace it, or "
        "another --out.",
    )
    return old


def started(options: Namespace) -> tuple:
    """(GPT2, its tokenizer) of the folder in --from. Raises ValueError for options that
    would turn it into a different model."""
    flags = told(options, ["preset", "tokens", *SHAPE[1:]])
    require(
        not flags,
        f"--from keeps the model's shape and its tokens: leave out {flags}.",
    )
    return load_gpt2(options.start)


def told(options: Namespace, names: Iterable[str]) -> str:
    """Which of these options were given, the way you type them: "--steps"."""
    return ", ".join("--" + name.replace("_", "-") for name in given(options, names))


def read(
    options: Namespace, kept: Checkpoint | None, path: Path, start: tuple | None = None
) -> tuple[Any, Ids, int]:
    """(tokenizer, its Ids of a text, how many of them are the training text).

    kept: a run to continue, which has its tokens already. start: (model, tokenizer) of
    --from.
    """
    tokens = options.tokens if start is None else start[1]
    if kept is not None:
        tokens = kept.tokenizer
    if tokens is None or isinstance(tokens, CharTokenizer):
        tokenizer, ids = read_ids(path)
        return tokenizer, ids, len(train_val_split(ids)[0])
    return read_tokens(path, tokens)


def unit(tokenizer: Tokenizer) -> str:
    """What a tokenizer's ids stand for, in a word."""
    return "characters" if isinstance(tokenizer, CharTokenizer) else "tokens"


def begun(
    options: Namespace,
    tokenizer: Tokenizer,
    ids: Ids,
    device: torch.device,
    start: tuple | None = None,
) -> Checkpoint:
    """The Checkpoint of a new run. start: (model, tokenizer) of --from."""
    if start is not None:
        return begun_from(options, *start, ids, device)
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


def begun_from(
    options: Namespace,
    model: Model,
    tokenizer: Tokenizer,
    ids: Ids,
    device: torch.device,
) -> Checkpoint:
    """The Checkpoint of a run that starts from a model's parameters."""
    known = given(options, ["block_size", *RECIPE])
    require(
        known.get("block_size", 1) <= model.block_size,
        f"--block-size is {known.get('block_size')}, but the model of --from reads "
        f"{model.block_size} tokens: give that many or fewer.",
    )
    config = replace(finetuning(model), **known)
    model = model.to(device)
    model.tie()  # some devices copy what's shared
    return Checkpoint(model, tokenizer, config, Run(model, config), text=ids.hash())


def resumed(
    options: Namespace, old: Checkpoint, tokenizer: Tokenizer, ids: Ids
) -> Checkpoint:
    """The Checkpoint of a run to continue with the same text."""
    flags = told(options, ["start", "preset", "seed", "tokens", *SHAPE])
    flags = flags.replace("--start", "--from")
    require(
        not flags or restarts()[0],  # after a restart, it started with them
        f"--resume continues the run as it is: leave out {flags}.",
    )
    same = tokenizer.state() == old.tokenizer.state()
    require(
        same and old.text in (None, ids.hash()),
        f"The run in {options.out} learned from another text: give that one as --data, "
        "or start a new run with another --out.",
    )
    config = replace(old.config, **given(options, RECIPE))
    return replace(old, config=config, text=ids.hash())


def trained(
    options: Namespace, checkpoint: Checkpoint, train_data: Ids, val_data: Ids
) -> int:
    """Train, saving at each evaluation, and judge; returns the exit code."""
    c, before = checkpoint, checkpoint.run.step
    model, save = Worker(c.model, options.accumulate), saver(options.out, checkpoint)
    steps, silent = c.config.steps, model.rank > 0  # one bar for all
    bar = tqdm(total=steps, initial=before, unit="step", disable=silent)
    with Interrupts() as interrupts, bar:

        def on_keep(run: Run) -> None:
            if run.step in options.keep:
                first(lambda: keep(options.out, c))

        def on_step(run: Run) -> bool:
            bar.update()
            on_keep(run)
            return total(interrupts.asked) > 0

        def on_eval(run: Run) -> None:
            row = run.history[-1]
            losses = f"train {row.train_loss:.3f}, validation {row.val_loss:.3f}"
            bar.set_postfix_str(losses)
            first(lambda: save(run))

        on_keep(c.run)
        train(model, train_data, val_data, c.config, c.run, on_eval, on_step)

    if c.run.step < steps:
        done = f"Interrupted after step {c.run.step} of {steps}"
        say(f"{done}: it's saved in {options.out}, and --resume continues.")
        return 130
    if before >= steps:
        say(
            f"The run in {options.out} is complete; to continue it, ask for more than "
            f"{before} --steps."
        )
    say(f"{judged(c, model, val_data)}; written to {options.out}.")
    return 0


def judged(checkpoint: Checkpoint, model: Model, val_data: Ids) -> str:
    """The exact loss, and how long it took to get there, in words."""
    c = checkpoint
    ids = val_data[:JUDGED].ids.long()
    part = "the whole split"
    if len(ids) < len(val_data):
        part = f"the first {len(ids):,} of {len(val_data):,} {unit(c.tokenizer)}"
    per_token = evaluate(model, ids, c.config.block_size)  # nats
    tokens, characters = len(ids) - 1, len(c.tokenizer.decode(ids[1:].tolist()))
    per_character = per_token * tokens / characters
    also = "" if tokens == characters else f" ({per_token:.4f} per token)"
    where = next(c.model.parameters()).device
    if model.size > 1:
        where = f"{model.size} workers on {where}"
    return (
        f"Validation loss {per_character:.4f} nats per character{also} over {part}; "
        f"{c.run.seconds:.0f} s of training on {where}"
    )


def say(text: str) -> None:
    """Print it once, not once per worker."""
    if standing()[0] == 0:
        print(text)


def run_sample(options: Namespace) -> int:
    """Print the prompt and how a model continues it, as it's written. Between several
    texts there's a line of dashes."""
    check_sample(options)
    model, tokenizer = load_or_stored(options.checkpoint, device_named(options.device))
    if options.seed is not None:
        torch.manual_seed(options.seed)
    prompt = beginning(tokenizer) if options.prompt is None else options.prompt
    if prompt == "-":  # read it the way read_text reads a file
        try:
            prompt = sys.stdin.read().removeprefix("\ufeff")
        except UnicodeDecodeError:
            raise ValueError(
                "The prompt on standard input isn't UTF-8 text: save it as UTF-8."
            ) from None
        prompt = prompt.replace("\r\n", "\n").replace("\r", "\n")
    require(prompt, "The prompt is empty: give at least one character.")
    for i in range(options.n):
        pieces = stream(
            model,
            tokenizer,
            prompt,
            options.tokens,
            stop=[text.replace(r"\n", "\n") for text in options.stop],
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
        )
        begun = next(pieces, "")  # errors come before anything is printed
        if i > 0:
            print("-" * 20)
        try:
            print(prompt + begun, end="", flush=True)
            for piece in pieces:
                print(piece, end="", flush=True)
        finally:  # end the line even if the text was interrupted
            print(flush=True)
    return 0


def beginning(tokenizer: Tokenizer) -> str:
    """The first token that is valid text on its own, since a token may be only a part
    of a character. In a vocabulary of characters it's the line break, if the text had
    one."""
    texts = (tokenizer.decode([i]) for i in range(tokenizer.vocab_size))
    return next((text for text in texts if "\ufffd" not in text), "")


def check_sample(options: Namespace) -> None:
    """Raise ValueError for settings that no text can be written with."""
    o = options
    require(1 <= o.n <= TEXTS, f"n is {o.n}; give 1 to {TEXTS}.")
    require(o.tokens >= 0, f"tokens is {o.tokens}; give 0 or more.")
    require(all(o.stop), f"stop is {o.stop}; give at least one character for each.")
    refuse_knobs(o.temperature, o.top_k, o.top_p)
    if o.seed is not None:
        check_seed(o.seed)


def given(options: Namespace, names: Iterable[str]) -> dict[str, Any]:
    """{name: value} for each of these options that was given."""
    return {n: getattr(options, n) for n in names if getattr(options, n) is not None}
