"""python -m minigpt export: save a trained model as a folder that transformers
reads."""

from argparse import ArgumentParser, Namespace

from minigpt.bridge.folder import save_gpt2
from minigpt.tools.options import FILE
from minigpt.tools.saving import load_or_stored


def add_options(parser: ArgumentParser) -> None:
    """The options of `export`."""
    add = parser.add_argument
    add("--checkpoint", **FILE, help="a file that `train` saved (default: model.pt)")
    known = "a new folder (default: %(default)s)"
    add("--out", metavar="FOLDER", default="my-gpt", help=known)
    known = "if the head's bias doesn't fit into GPT-2, save the nearest model"
    add("--nearest", action="store_true", help=known)


def main(options: Namespace) -> int:
    """Write the folder and print how to read it; returns the exit code."""
    model, tokenizer = load_or_stored(options.checkpoint)
    lost = save_gpt2(model, tokenizer, options.out, options.nearest)
    n = sum(p.numel() for p in model.parameters())
    print(
        f"{n:,} parameters, {tokenizer.vocab_size} tokens, written to {options.out}; "
        f"differences between logits are off by up to {lost:.1g}. In transformers:\n"
        f"GPT2LMHeadModel.from_pretrained({options.out!r})\n"
        f"GPT2Tokenizer.from_pretrained({options.out!r})"
    )
    return 0
