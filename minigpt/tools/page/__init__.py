"""A trained model as one HTML file, which opens in any browser without a network.

    python -m minigpt page --checkpoint model.pt --out page.html

The file holds the weights, the vocabulary, and the forward pass as JavaScript:
`forward.js` and `generation.js` mirror the lessons' modules, the other scripts show
what they compute. It asks for nothing from anywhere; its own security policy forbids
it.
"""

import base64
import json
import re
from dataclasses import asdict
from pathlib import Path

import torch
import torch.nn as nn

from minigpt.data import CharTokenizer, find_text, train_val_split
from minigpt.fast.quantization import to_int8
from minigpt.files import replacing
from minigpt.gpt import GPT
from minigpt.inside.looking import hooked
from minigpt.modern.model import AS_IN_06, ModernConfig, ModernGPT
from minigpt.require import require
from minigpt.tools.corpus import read_ids, read_tokens
from minigpt.tools.saving import load_or_stored, load_snapshots

FOLDER = Path(__file__).resolve().parent
SCRIPTS = """forward generation side characters drawing maps picture address state
tokens text writing editing inside page""".split()
WEIGHTS = {name: getattr(torch, name) for name in "float32 int16 int8".split()}
EXAMPLES = ["ROMEO:", "To be, or not to be", "Once upon a time"]  # to begin with
WINDOWS = 200  # of the training text, over which a part's mean is taken
DOCTYPE = b"<!DOCTYPE html>"  # how a page begins; no other file is replaced
SLOT = re.compile(r"\{\{(\w+)\}\}")


def write_page(path, models, tokenizer, **options):
    """Write a `page` to `path` -> its bytes. Raises also OSError if nothing can be
    written there or `path` is a file of another kind."""
    if Path(path).exists():
        with open(path, "rb") as file:
            if file.read(len(DOCTYPE)) != DOCTYPE:
                raise FileExistsError(f"{path} is no page: give another name.")
    html = page(models, tokenizer, **options).encode("utf-8")
    with replacing(path) as unfinished:
        unfinished.write_bytes(html)
    return len(html)


def page(models, tokenizer, weights="int16", prompt=None, text=None):
    """The page as a string.

    models: a GPT or ModernGPT; or {name: {step: model}} for several side by side, each
    with the stages of its training, the last of which, "end", is the finished model.
    weights: how its linear layers are kept, one of WEIGHTS: as numbers or as whole
    numbers with a scale for each row, as in lesson 09; earlier stages are int8, and all
    else is float32. prompt: what it goes on from at first. text: ids (N,) that the
    models learned from, for the means of their parts; without it a part that is
    switched off says zeros.
    Raises TypeError for other models, ValueError for a prompt of other characters.
    """
    if isinstance(models, nn.Module):
        models = {"": {"end": models}}
    examples = [begin for begin in EXAMPLES if knows(tokenizer, begin)]
    begins = [*EXAMPLES, *(tokenizer.decode([i]) for i in range(tokenizer.vocab_size))]
    prompt = prompt or next((b for b in begins if knows(tokenizer, b)), begins[0])
    tokenizer.encode(prompt)  # or this says which characters it does not know
    described, lines = [], []
    for name, stages in models.items():
        *_, finished = stages.values()
        config = page_config(finished)
        snapshots = []
        for step, model in stages.items():
            tensors, data = pack(model, weights if model is finished else "int8", text)
            snapshots.append({"step": step, "tensors": tensors})
            lines.append(base64.b64encode(data).decode("ascii"))
        shape = {**asdict(config), "n_kv_head": config.n_kv_head or config.n_head}
        described.append({"name": name, "config": shape, "snapshots": snapshots})
    content = {
        **vocabulary(tokenizer),
        "prompt": prompt,
        "examples": list(dict.fromkeys([prompt, *examples])),
        "models": described,
    }
    parts = {
        "unit": content["unit"],
        "style": read("page.css"),
        "script": "\n</script>\n<script>\n".join(read(f"{n}.js") for n in SCRIPTS),
        "content": json.dumps(content).replace("<", r"\u003c"),  # no </script> in it
        "weights": "\n".join(lines),
    }
    return SLOT.sub(lambda slot: parts[slot[1]], read("page.html"))


def vocabulary(tokenizer):
    """What tokens.js reads and writes with: the name of a token, each one's bytes as
    Latin-1, the merges of lesson 13, and whether a text is cut before them."""
    if isinstance(tokenizer, CharTokenizer):
        known = {"unit": "character", "merges": [], "cut": False}
        tokens = [char.encode("utf-8") for char in tokenizer.chars]
    else:
        known = {"unit": "token", "merges": tokenizer.merges, "cut": tokenizer.cut}
        tokens = tokenizer.vocabulary
    return known | {"tokens": [token.decode("latin-1") for token in tokens]}


def knows(tokenizer, text):
    """Whether a tokenizer has all characters of a text."""
    try:
        tokenizer.encode(text)
    except ValueError:
        return False
    return True


def page_config(model):
    """The ModernConfig of a GPT or ModernGPT: all switched off, it is lesson 06's.

    Raises TypeError for any other model, ValueError for a norm_eps that the page's
    JavaScript does not know.
    """
    if type(model) not in (GPT, ModernGPT):
        raise TypeError(
            f"A {type(model).__name__} cannot become a page: its JavaScript knows the "
            "GPT of lesson 06 and the ModernGPT of lesson 08. Give one of these."
        )
    if isinstance(model, ModernGPT):
        eps, known = model.config.norm_eps, ModernConfig.norm_eps
        require(
            eps == known,
            f"norm_eps is {eps!r}; a page's JavaScript knows {known!r} alone.",
        )
        return model.config
    shape = {**asdict(model.config), "dropout": 0.0}  # a page only reads and writes
    return ModernConfig(**shape, **AS_IN_06)


@torch.no_grad()
def means(model, text):
    """What each part says on average over windows of text (N,), by which the page
    replaces it: {name: (C,)}, the heads of a layer side by side, before proj."""
    T, sums = model.block_size, {}
    starts = torch.linspace(0, len(text) - T, WINDOWS).long()

    def heads(proj, inputs, output):
        sums[proj] = inputs[0].mean(dim=(0, 1))

    def whole(part, inputs, output):
        sums[part] = output.mean(dim=(0, 1))

    hooks = []
    for block in list(model.body)[:-1]:
        hooks += [(block.attention.proj, heads), (block.feed_forward, whole)]
    with hooked(hooks):
        model(text[starts[:, None] + torch.arange(T)])
    names = {part: name.removesuffix(".proj") for name, part in model.named_modules()}
    return {f"{names[part]}.mean": mean for part, mean in sums.items()}


def pack(model, weights, text=None):
    """The model's tensors as bytes -> [{name, dtype, shape, at}], bytes.

    `at` is where a tensor begins, a multiple of 4. Whole numbers come with the scale
    of each row, under the layer's name and `scale`; the `means` over text come, too.
    """
    linear = {n for n, part in model.named_modules() if isinstance(part, nn.Linear)}
    dtype, parts = WEIGHTS[weights], {} if text is None else means(model, text)
    for name, w in model.state_dict().items():
        owner, _, kind = name.rpartition(".")
        w = w.cpu().float()
        if kind != "weight" or owner not in linear or dtype.is_floating_point:
            parts[name] = w
        else:
            parts[name], scale = to_int8(w, dtype)
            parts[f"{owner}.scale"] = scale[:, 0]
    tensors, data = [], bytearray()
    for name, part in parts.items():
        kind = str(part.dtype).removeprefix("torch.")
        place = {"shape": list(part.shape), "at": len(data)}
        tensors.append({"name": name, "dtype": kind, **place})
        values = part.contiguous().numpy()
        data += values.astype(values.dtype.newbyteorder("<")).tobytes()
        data += bytes(-len(data) % 4)
    return tensors, bytes(data)


def read(name):
    """A file of this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def training_text(source, tokenizer):
    """The ids of a text that a model learned from; None if it is not to be had, or has
    other characters or bytes. source: as --data of `train`."""
    try:
        path = find_text(source)
    except FileNotFoundError:
        return None
    known, ids = read_ids(path)
    if isinstance(tokenizer, CharTokenizer):
        return train_val_split(ids)[0] if known.chars == tokenizer.chars else None
    if set(known.chars.encode("utf-8")) != set(tokenizer.alphabet):
        return None
    _, ids, n = read_tokens(path, tokenizer)
    return ids[:n]


def add_options(parser):
    """The options of the command, for argparse."""
    add = parser.add_argument
    known = "what `train` wrote (default: model.pt); twice, to see two side by side"
    add("--checkpoint", metavar="FILE", action="append", help=known)
    known = "the file to write, in place of an older page (default: %(default)s)"
    add("--out", metavar="FILE", default="page.html", help=known)
    known = "int8 halves the file, float32 doubles it (default: %(default)s)"
    add("--weights", choices=list(WEIGHTS), default="int16", help=known)
    add("--prompt", help=f"what it goes on from at first (default: {EXAMPLES[0]})")
    known = "what it learned from, for the means of its parts (default: %(default)s)"
    add("--data", metavar="TEXT", default="tinyshakespeare", help=known)


def main(options):
    """The command: write the page of a checkpoint or two, say how large it is."""
    models, known = {}, {}
    for path in options.checkpoint or [None]:
        model, tokenizer = load_or_stored(path)
        known[json.dumps(vocabulary(tokenizer))] = tokenizer
        stages = load_snapshots(path or "model.pt", model.config)
        models[path or ""] = {**stages, "end": model}
    if len(known) > 1:
        raise ValueError("The models know other tokens: give two of the same text.")
    text = training_text(options.data, tokenizer)
    kind = {"weights": options.weights, "prompt": options.prompt, "text": text}
    size = write_page(options.out, models, tokenizer, **kind)
    print(f"{options.out}: {size / 1000:,.0f} kB, for any browser, without a network.")
    if text is None:
        print(f"{options.data} is not its text: a part that is off can only say zeros.")
    return 0
