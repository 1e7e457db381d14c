"""python -m minigpt train | sample | page | speedrun | bench | doctor."""

import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from errno import EINVAL
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

from minigpt import benchmark, doctor, page, speedrun
from minigpt.checkpoint import checkpoint_file, load_checkpoint, saver
from minigpt.corpus import read_ids
from minigpt.data import check_window, train_val_split
from minigpt.device import pick_device
from minigpt.evaluation import evaluate
from minigpt.files import only_one
from minigpt.options import Parser, file_name, real_number, seed_number, whole_number
from minigpt.parallel import joined, place, restarts
from minigpt.reading import WINDOWS
from minigpt.texts import find
from minigpt.training import preset, train
from minigpt.writing import stream, write

MODEL_OPTIONS = ["block_size", "n_layer", "n_head", "n_embd", "dropout"]
TRAIN_OPTIONS = ["steps", "batch_size", "accumulate", "learning_rate", "seed"]
JUDGED = 2_000_000  # characters of the validation split at most: minutes, not hours


def parser():
    """The options of all commands."""
    top = Parser(
        prog="python -m minigpt",
        description="Train a small GPT, let it write, race it against the clock.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

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
        "--out",
        type=file_name,
        default="model.pt",
        help="checkpoint to write (default: %(default)s)",
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
    own.add_argument("--steps", type=whole_number, help="training steps")
    own.add_argument("--batch-size", type=whole_number, help="windows per step")
    own.add_argument(
        "--accumulate", type=whole_number, help="pieces of a batch, one after the other"
    )
    own.add_argument("--learning-rate", type=real_number, help="at its peak")
    own.add_argument("--seed", type=seed_number, help="of weights, batches and dropout")
    own.add_argument(
        "--block-size", type=whole_number, help="context length in characters"
    )
    own.add_argument("--n-layer", type=whole_number, help="number of blocks")
    own.add_argument("--n-head", type=whole_number, help="heads in each block")
    own.add_argument(
        "--n-embd", type=whole_number, help="width, a multiple of --n-head"
    )
    own.add_argument("--dropout", type=real_number, help="share of values dropped")

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
        type=whole_number,
        default=500,
        help="characters to write (default: %(default)s)",
    )
    s.add_argument(
        "--n",
        type=whole_number,
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
        type=real_number,
        default=0.8,
        help="0 always takes the likeliest (default: %(default)s)",
    )
    s.add_argument("--top-k", type=whole_number, help="draw among the k likeliest only")
    s.add_argument(
        "--top-p", type=real_number, help="among the likeliest that sum to p"
    )
    s.add_argument("--seed", type=seed_number, help="for the same text every time")
    s.add_argument("--device", help="cuda, mps or cpu (default: the best there is)")

    page.add_options(
        commands.add_parser("page", help="the model as one HTML file for any browser")
    )
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
        "page": page.main,
        "speedrun": speedrun.main,
        "bench": benchmark.main,
        "doctor": doctor.main,
    }
    try:
        return run[options.command](options)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except (OSError, ValueError, RuntimeError) as error:
        if nobody_reads_on(error):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"error: {error}", file=sys.stderr)
        return 2


def nobody_reads_on(error):
    """Was a pipe closed at its other end, as by `| head`? Windows says EINVAL then."""
    nameless = getattr(error, "errno", None) == EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and nameless)


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
    restart, allowed = workers.again, restarts()[1]
    if workers.sum(there) not in (0, workers.size):
        raise ValueError(
            f"Only some of the workers find {out}: put it where all machines see it."
        )
    if there and allowed and options.overwrite and not restart:
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
    device = place(options.device)
    workers.first(partial(find, options.data, substitute=False))  # one may download
    if there and (restart or not options.overwrite):
        if options.resume and not restart:
            _refuse(
                options,
                ["preset", "seed", *MODEL_OPTIONS],
                "--resume goes on with the run as it is",
            )
        run = load_checkpoint(out, device)
        try:
            tokenizer, ids = read_ids(options.data, run.tokenizer)
        except ValueError as error:  # characters, most likely, that it does not know
            raise ValueError(
                f"{error} --resume takes the text of the run in {out}; for another "
                "text give another --out."
            ) from None
        model, resume = run.model, run.state
        config = replace(run.config, **_given(options, TRAIN_OPTIONS))
    else:
        (tokenizer, ids), resume = read_ids(options.data), None
        model_config, config = preset(options.preset or "modern", tokenizer.vocab_size)
        model_config = replace(model_config, **_given(options, MODEL_OPTIONS))
        config = replace(
            config,
            block_size=model_config.block_size,
            **_given(options, TRAIN_OPTIONS),
        )
        torch.manual_seed(config.seed)
        model = model_config.build().to(device)
    train_data, val_data = train_val_split(ids)
    check_window(val_data, config.block_size)
    save = saver(out, model, tokenizer, config, workers)
    workers.first(workers.begin)

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
    judged = val_data[:JUDGED]
    loss = evaluate(model, judged, config.block_size, workers=workers)
    if workers.rank == 0:
        if start >= config.steps:
            print(
                f"The run in {out} is complete; --steps beyond {start} goes on with it."
            )
        part = "the whole split"
        if len(judged) < len(val_data):
            part = f"the first {len(judged):,} of {len(val_data):,} characters"
        count = f"{workers.size} workers on " if workers.size > 1 else ""
        print(
            f"Validation loss {loss:.4f} nats per character over {part}; "
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
    prompt = tokenizer.chars[0] if options.prompt is None else options.prompt
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
    for end in (sys.stdin, sys.stdout, sys.stderr):
        if not end.isatty():  # a file or a pipe is UTF-8, as every corpus
            end.reconfigure(encoding="utf-8")
    sys.exit(main())
