"""The command line: python -m minigpt train | sample | speedrun | bench | doctor."""

import argparse
import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

from minigpt import benchmark, doctor, speedrun
from minigpt.checkpoint import checkpoint_file, load_checkpoint, saver
from minigpt.data import CharTokenizer, load_text, train_val_split
from minigpt.device import pick_device
from minigpt.evaluation import evaluate
from minigpt.files import only_one
from minigpt.parallel import joined, place, restarts
from minigpt.reading import WINDOWS
from minigpt.training import preset, train
from minigpt.writing import stream, write

MODEL_OPTIONS = ["block_size", "n_layer", "n_head", "n_embd", "dropout"]
TRAIN_OPTIONS = ["steps", "batch_size", "accumulate", "learning_rate", "seed"]


def parser():
    """The options of all commands."""
    top = argparse.ArgumentParser(
        prog="python -m minigpt",
        description="Train a small GPT, let it write, race it against the clock.",
    )
    commands = top.add_subparsers(dest="command", required=True)

    t = commands.add_parser("train", help="train a GPT")
    t.add_argument(
        "--data",
        default="tinyshakespeare",
        help="corpus name, or path of a UTF-8 text (default: %(default)s)",
    )
    t.add_argument(
        "--preset",
        choices=["cpu", "modern", "gpu"],
        help="size and schedule: modern (the default), the cpu preset of 06, or gpu",
    )
    t.add_argument(
        "--out", default="model.pt", help="checkpoint to write (default: %(default)s)"
    )
    t.add_argument(
        "--resume",
        action="store_true",
        help="go on with the run in --out, if there is one",
    )
    t.add_argument(
        "--overwrite", action="store_true", help="replace --out if it exists"
    )
    t.add_argument("--device", help="cuda, mps or cpu (default: the best there is)")
    t.add_argument(
        "--compile",
        action="store_true",
        help="through torch.compile, if it works here (it takes up to a minute)",
    )
    t.add_argument(
        "--fsdp",
        action="store_true",
        help="under torchrun: each process holds a share of the model; --out is then "
        "a folder",
    )
    own = t.add_argument_group("in place of the preset's values")
    own.add_argument("--steps", type=int, help="training steps")
    own.add_argument("--batch-size", type=int, help="windows per step")
    own.add_argument(
        "--accumulate", type=int, help="pieces of a batch, one after the other"
    )
    own.add_argument("--learning-rate", type=float, help="at its peak")
    own.add_argument("--seed", type=int, help="of weights, batches and dropout")
    own.add_argument("--block-size", type=int, help="context length in characters")
    own.add_argument("--n-layer", type=int, help="number of blocks")
    own.add_argument("--n-head", type=int, help="heads in each block")
    own.add_argument("--n-embd", type=int, help="width, a multiple of --n-head")
    own.add_argument("--dropout", type=float, help="share of values dropped")

    s = commands.add_parser("sample", help="write text")
    s.add_argument(
        "--checkpoint",
        default="model.pt",
        help="what `train` wrote (default: %(default)s)",
    )
    s.add_argument(
        "--prompt",
        help="text to go on from; - reads it from standard input "
        "(default: a line break)",
    )
    s.add_argument(
        "--tokens",
        type=int,
        default=500,
        help="characters to write (default: %(default)s)",
    )
    s.add_argument(
        "--n",
        type=int,
        default=1,
        help="texts to write, all at once, printed in the end (default: %(default)s)",
    )
    s.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help=r"end before this text; \n is a line break; may be given several times",
    )
    s.add_argument(
        "--window",
        choices=WINDOWS,
        help="what is read once the text is longer than the context: half of it "
        "again each half context, all of it again for each character, or rolling, "
        "with rotary positions only (default: half)",
    )
    s.add_argument(
        "--temperature",
        type=float,
        default=0.8,
        help="0 always takes the likeliest (default: %(default)s)",
    )
    s.add_argument("--top-k", type=int, help="draw among the k likeliest only")
    s.add_argument("--top-p", type=float, help="among the likeliest that sum to p")
    s.add_argument("--seed", type=int, help="for the same text every time")
    s.add_argument("--device", help="cuda, mps or cpu (default: the best there is)")

    speedrun.add_options(
        commands.add_parser("speedrun", help="one minute of training: your recipe")
    )
    benchmark.add_options(
        commands.add_parser("bench", help="seconds, steps, memory of all presets")
    )
    doctor.add_options(
        commands.add_parser("doctor", help="does this device compute what it should?")
    )
    return top


def main(argv=None):
    """Run a command; returns the exit code: 0, 2 for bad input, 130 interrupted
    (1: a speed run was too long, or the doctor found a fault)."""
    options = parser().parse_args(argv)
    run = {
        "train": run_train,
        "sample": run_sample,
        "speedrun": speedrun.main,
        "bench": benchmark.main,
        "doctor": doctor.main,
    }
    try:
        return run[options.command](options)
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
    """Train from scratch or resume, showing a progress bar; write --out."""
    with joined(options.fsdp) as workers, ExitStack() as held:
        alone = partial(held.enter_context, only_one(options.out))
        workers.first(alone)  # from before --out is read to the last write
        return _train(options, workers)


def _train(options, workers):
    if options.resume and options.overwrite:
        raise ValueError("--resume goes on, --overwrite begins anew: leave one out.")
    out = Path(options.out)
    there = checkpoint_file(out).is_file()
    restart, allowed = restarts()
    if there and allowed and options.overwrite:
        raise ValueError(
            f"After a restart nobody could tell the old {out} from the new one: "
            "delete it yourself, or leave --overwrite or --max-restarts out."
        )
    if there and not (options.resume or options.overwrite or restart):
        raise ValueError(
            f"{out} exists. Pass --resume to go on with it, --overwrite to replace "
            "it, or another --out."
        )
    if there and out.is_dir() != options.fsdp:
        kind = (
            "a folder, as --fsdp writes" if out.is_dir() else "a file, without --fsdp"
        )
        raise ValueError(
            f"{out} is {kind}: train it in that way, or give another --out."
        )
    device = place(pick_device(options.device))

    def load():
        return load_text(options.data, substitute=False)

    text = workers.first(load) or load()  # at most one of them downloads
    if there and not options.overwrite:
        if options.resume:
            _refuse(
                options,
                ["preset", "seed", *MODEL_OPTIONS],
                "--resume goes on with the run as it is",
            )
        run = load_checkpoint(out, device)
        model, tokenizer, resume = run.model, run.tokenizer, run.state
        config = replace(run.config, **_given(options, TRAIN_OPTIONS))
        unknown = sorted(set(text) - set(tokenizer.chars))
        if unknown:
            raise ValueError(
                f"{options.data} has characters that the model in {out} does not know "
                f"({unknown[:5]}): --resume takes the text of its run; for this one "
                "give another --out."
            )
    else:
        tokenizer, resume = CharTokenizer(text), None
        model_config, config = preset(options.preset or "modern", tokenizer.vocab_size)
        model_config = replace(model_config, **_given(options, MODEL_OPTIONS))
        config = replace(
            config,
            block_size=model_config.block_size,
            **_given(options, TRAIN_OPTIONS),
        )
        torch.manual_seed(config.seed)
        model = model_config.build().to(device)
    train_data, val_data = train_val_split(torch.tensor(tokenizer.encode(text)))
    save = saver(out, model, tokenizer, config, workers)

    start = resume.step if resume else 0
    with tqdm(
        total=config.steps, initial=start, unit="step", disable=workers.rank > 0
    ) as bar:

        def on_step(step):
            bar.update(step - bar.n)

        def on_eval(history):
            last = history[-1]
            bar.set_postfix_str(
                f"train {last.train_loss:.3f}, validation {last.val_loss:.3f}"
            )

        history = train(
            model,
            train_data,
            val_data,
            config,
            resume=resume,
            save=save,
            on_step=on_step,
            on_eval=on_eval,
            workers=workers,
            compile=options.compile,
        )
    if not history or history[-1].step < config.steps:
        return 130  # interrupted: train() has saved the model and said so
    loss = evaluate(model, val_data, config.block_size, workers=workers)
    if workers.rank == 0:
        if start >= config.steps:
            print(
                f"The run in {out} is complete; --steps beyond {start} goes on with it."
            )
        count = f"{workers.size} workers on " if workers.size > 1 else ""
        print(
            f"Validation loss {loss:.4f} nats per character over the whole split; "
            f"{history[-1].seconds:.0f} s of training on {count}{device}; "
            f"written to {out}."
        )
    return 0


def run_sample(options):
    """Load a checkpoint and print the prompt with what the model makes of it: one
    text as it is written, several in the end with a line of dashes between them."""
    checkpoint = load_checkpoint(options.checkpoint, pick_device(options.device))
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    if options.seed is not None:
        torch.manual_seed(options.seed)
    if options.n < 1:
        raise ValueError(f"n is {options.n}; it must be 1 or more.")
    # The first character of a vocabulary is the line break, if the text has one.
    prompt = options.prompt or tokenizer.chars[0]
    if prompt == "-":
        prompt = sys.stdin.read()
    settings = {
        "stop": [text.replace(r"\n", "\n") for text in options.stop],
        "window": options.window,
        **{name: getattr(options, name) for name in ("temperature", "top_k", "top_p")},
    }
    if options.n > 1:
        prompts = [prompt] * options.n
        texts = write(model, tokenizer, prompts, options.tokens, **settings)
        print(f"\n{'-' * 20}\n".join(prompt + text for text in texts))
        return 0
    pieces = stream(model, tokenizer, prompt, options.tokens, **settings)
    piece = next(pieces, "")  # what is wrong shows before anything is printed
    try:
        print(prompt + piece, end="", flush=True)
        for piece in pieces:
            print(piece, end="", flush=True)
    finally:  # an interrupted text ends its line, too
        print(flush=True)
    return 0


def _given(options, names):
    return {n: getattr(options, n) for n in names if getattr(options, n) is not None}


def _refuse(options, names, why):
    given = _given(options, names)
    if given:
        flags = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ValueError(f"{why}: leave out {flags}.")


if __name__ == "__main__":
    sys.exit(main())
