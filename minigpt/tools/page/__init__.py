"""A trained model as one HTML file, which opens in any browser without a network.

    python -m minigpt page --checkpoint model.pt --out page.html

The file holds the weights, the vocabulary, and the forward pass as JavaScript:
`forward.js` and `generation.js` mirror the lessons' modules, `page.js` shows what
they compute. It asks for nothing from anywhere; its own security policy forbids it.
"""

import base64
import json
import re
from dataclasses import asdict
from html import escape
from pathlib import Path

import torch
import torch.nn as nn

from minigpt.fast.quantization import to_int8
from minigpt.gpt import GPT
from minigpt.modern.model import ModernConfig, ModernGPT
from minigpt.tools.files import replacing
from minigpt.tools.saving import load_or_stored

FOLDER = Path(__file__).resolve().parent
WEIGHTS = {name: getattr(torch, name) for name in "float32 float16 int16 int8".split()}
BEGINNING = "ROMEO:"  # in the prompt's field, where its characters are known
DOCTYPE = b"<!DOCTYPE html>"  # how a page begins; no other file is replaced
SLOT = re.compile(r"\{\{(\w+)\}\}")


def write_page(path, model, tokenizer, weights="int16", prompt=None):
    """Write a GPT or ModernGPT with its tokenizer as a page to `path` -> its bytes.

    weights: how the linear layers are kept, one of WEIGHTS; all else stays float32.
    "int16" and "int8" are whole numbers with a scale for each row, as in lesson 09;
    "float16" takes as many bytes as "int16" and rounds more coarsely, since it spends
    five bits on an exponent. prompt: what stands in its field when the page opens.
    Raises TypeError or ValueError for what a page cannot hold, OSError if nothing can
    be written there or `path` is a file of another kind.
    """
    if Path(path).exists():
        with open(path, "rb") as file:
            if file.read(len(DOCTYPE)) != DOCTYPE:
                raise FileExistsError(f"{path} is no page: give another name.")
    html = page(model, tokenizer, weights, prompt).encode("utf-8")
    with replacing(path) as unfinished:
        unfinished.write_bytes(html)
    return len(html)


def page(model, tokenizer, weights="int16", prompt=None):
    """The page as a string; arguments and errors as of write_page."""
    config = page_config(model)
    if not hasattr(tokenizer, "chars"):
        raise ValueError("A page reads characters: train a model without --tokens.")
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"The tokenizer has {tokenizer.vocab_size} characters and the model "
            f"{config.vocab_size}: give the tokenizer that it was trained with."
        )
    if prompt is None:
        known = set(BEGINNING) <= set(tokenizer.chars)
        prompt = BEGINNING if known else tokenizer.chars[0]
    tokenizer.encode(prompt)  # or this says which characters it does not know
    tensors, data = pack(model, weights)
    content = {
        "config": {**asdict(config), "n_kv_head": config.n_kv_head or config.n_head},
        "chars": list(tokenizer.chars),
        "prompt": prompt,
        "tensors": tensors,
    }
    c, count = config, sum(p.numel() for p in model.parameters())
    return fill(
        count=f"{count:,}",
        facts=f"{c.n_layer} layers of {c.n_head} heads, {c.n_embd} channels, a context "
        f"of {c.block_size} characters; the weights as {weights}",
        style=read("page.css"),
        forward=read("forward.js"),
        generation=read("generation.js"),
        page=read("page.js"),
        content=json.dumps(content).replace("<", r"\u003c"),  # no </script> in it
        weights=base64.b64encode(data).decode("ascii"),
    )


def page_config(model):
    """The ModernConfig of a GPT or ModernGPT: all switched off, it is lesson 06's.

    Raises TypeError for any other model, ValueError for one with parts of its own.
    """
    if type(model) not in (GPT, ModernGPT):
        raise TypeError(
            f"A {type(model).__name__} cannot become a page: its JavaScript knows the "
            "GPT of lesson 06 and the ModernGPT of lesson 08. Give one of these."
        )
    with torch.device("meta"):
        described = model.config.build()
    if made_of(model) != made_of(described):
        raise ValueError(
            "The model has other parts than its config describes, and a page would "
            "compute something else: give it as `train` wrote it; weights='int8' makes "
            "the page small."
        )
    if isinstance(model, ModernGPT):
        return model.config
    off = dict.fromkeys(("rms_norm", "rotary", "qk_norm", "zero_init"), False)
    shape = {**asdict(model.config), "dropout": 0.0}  # a page only reads and writes
    return ModernConfig(**shape, **off, activation="relu", bias=True)


def made_of(model):
    """What a model is made of: the kinds of its modules, the shapes of its tensors."""
    kinds = {name: type(part) for name, part in model.named_modules()}
    return kinds | {name: w.shape for name, w in model.state_dict().items()}


def pack(model, weights):
    """The model's tensors as bytes -> [{name, dtype, shape, at}], bytes.

    `at` is where a tensor begins, a multiple of 4. Whole numbers come with the scale
    of each row, under the layer's name and `scale`.
    """
    linear = {n for n, part in model.named_modules() if isinstance(part, nn.Linear)}
    dtype, parts = WEIGHTS[weights], {}
    for name, w in model.state_dict().items():
        owner, _, kind = name.rpartition(".")
        w = w.cpu().float()
        if kind != "weight" or owner not in linear:
            parts[name] = w
        elif dtype.is_floating_point:
            parts[name] = w.to(dtype)
        else:
            parts[name], scale = to_int8(w, dtype)
            parts[f"{owner}.scale"] = scale[:, 0]
    if not all(part.isfinite().all() for part in parts.values()):
        raise ValueError(
            f"Weights of this size do not fit into {weights}: choose 'int16', or train "
            "again if some are infinite or nan."
        )
    tensors, data = [], bytearray()
    for name, part in parts.items():
        kind = str(part.dtype).removeprefix("torch.")
        tensors.append(
            {"name": name, "dtype": kind, "shape": list(part.shape), "at": len(data)}
        )
        values = part.contiguous().numpy()
        data += values.astype(values.dtype.newbyteorder("<")).tobytes()
        data += bytes(-len(data) % 4)
    return tensors, bytes(data)


def fill(**parts):
    """page.html with the parts in its slots; what they contain is not looked at."""
    for name in ("count", "facts"):
        parts[name] = escape(parts[name])
    return SLOT.sub(lambda slot: parts[slot[1]], read("page.html"))


def read(name):
    """A file of this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def add_options(parser):
    """The options of the command, for argparse."""
    add = parser.add_argument
    add("--checkpoint", metavar="FILE", help="what `train` wrote (default: model.pt)")
    known = "the file to write, in place of an older page (default: %(default)s)"
    add("--out", metavar="FILE", default="page.html", help=known)
    known = "int8 halves the file, float32 doubles it (default: %(default)s)"
    add("--weights", choices=list(WEIGHTS), default="int16", help=known)
    add("--prompt", help=f"what stands in its field at first (default: {BEGINNING})")


def main(options):
    """The command: write the page of a checkpoint, say how large it is; returns 0."""
    model, tokenizer = load_or_stored(options.checkpoint)
    out = Path(options.out)
    size = write_page(out, model, tokenizer, options.weights, options.prompt)
    print(f"{out}: {size / 1000:,.0f} kB. Open it in a browser; it needs no network.")
    return 0
