"""What a page stores: a model's parameters as bytes, what its parts give on average,
the loss of each stage of its training, and the page's modules as an import map."""

import base64
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn as nn

from minigpt.fast.quantization import to_int8
from minigpt.gpt import GPT
from minigpt.inside.looking import hooked
from minigpt.interfaces import Model
from minigpt.modern.model import AS_IN_06, ModernConfig, ModernGPT

WEIGHTS = {"float32": torch.float32, "int16": torch.int16, "int8": torch.int8}
WINDOWS = 200  # of a text, to take a part's mean and a stage's loss over


class Text(NamedTuple):
    """What models learned from, and what they're judged on: ids (N,) each."""

    train: torch.Tensor
    val: torch.Tensor


def page_config(model: Model) -> ModernConfig:
    """The ModernConfig of a GPT or ModernGPT. With everything off, it's lesson 06's
    GPT.

    Raises TypeError for any other model.
    """
    if type(model) not in (GPT, ModernGPT):
        raise TypeError(
            f"A {type(model).__name__} can't become a page: its JavaScript knows the "
            "GPT of lesson 06 and the ModernGPT of lesson 08. Give one of these."
        )
    if isinstance(model, ModernGPT):
        return model.config
    shape: dict = {
        **asdict(model.config),
        "dropout": 0.0,
    }  # a page doesn't train
    return ModernConfig(**shape, **AS_IN_06)


def windows(text: torch.Tensor, length: int) -> torch.Tensor:
    """Windows spread over a text (N,): at most (WINDOWS, length)."""
    starts = torch.linspace(0, len(text) - length, WINDOWS).long().unique()
    return text[starts[:, None] + torch.arange(length)]


@torch.no_grad()
def judged(model: Model, text: torch.Tensor) -> float:
    """The loss, in nats per token, over windows of a text (N,)."""
    ids = windows(text, min(len(text), model.block_size + 1))
    return model(ids[:, :-1], ids[:, 1:])[1].item()


@torch.no_grad()
def means(model: Model, text: torch.Tensor) -> dict[str, torch.Tensor]:
    """What each part gives on average over windows of text (N,). The page puts that in
    its place when the part is off. {name: (C,)}, with a layer's heads side by side,
    before proj."""
    sums = {}

    def heads(proj: Any, inputs: Any, output: Any) -> None:
        sums[proj] = inputs[0].mean(dim=(0, 1))

    def whole(part: str, inputs: Any, output: Any) -> None:
        sums[part] = output.mean(dim=(0, 1))

    hooks = []
    for block in list(model.body)[:-1]:
        hooks += [(block.attention.proj, heads), (block.feed_forward, whole)]
    with hooked(hooks):
        model(windows(text, min(len(text), model.block_size)))
    names = {part: name.removesuffix(".proj") for name, part in model.named_modules()}
    return {f"{names[part]}.mean": mean for part, mean in sums.items()}


def pack(
    model: Model, weights: str, text: Text | None = None
) -> tuple[list[dict], bytes]:
    """The model's tensors as bytes -> [{name, dtype, shape, at}], bytes.

    `at` is where a tensor begins, a multiple of 4. Whole numbers come with a scale for
    each row, under the layer's name and `scale`. The `means` over a Text are added,
    too.
    """
    linear = {n for n, part in model.named_modules() if isinstance(part, nn.Linear)}
    dtype: torch.dtype = WEIGHTS[weights]
    parts = {} if text is None else means(model, text.train)
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


def import_map(folder: Path) -> dict[str, dict[str, str]]:
    """The page's import map: each JavaScript file in a folder as a `data:` URL, under
    the name that the others import it by. That way they need no server."""
    found = {}
    for file in sorted(folder.glob("*.js")):
        name = f"\n//# sourceURL={file.name}\n"  # its name in a browser's debugger
        code = base64.b64encode(file.read_bytes() + name.encode("utf-8"))
        found[file.stem] = f"data:text/javascript;base64,{code.decode('ascii')}"
    return {"imports": found}
