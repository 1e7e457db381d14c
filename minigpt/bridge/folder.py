"""Lesson 14: read and write GPT-2's folder.

A trained model is a table of names, shapes and numbers; `names` is the dictionary from
the course's table to the one in GPT-2's files, the way the library transformers writes
them.
"""

import json
import os
import re
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from minigpt.bridge.gpt2 import BENDS, GPT2, SAME, GPT2Config
from minigpt.bridge.tensors import read_tensors, write_tensors
from minigpt.bridge.tokenizer import (
    as_gpt2_tokenizer,
    need,
    read_json,
    read_tokenizer,
    write_tokenizer,
)
from minigpt.files import write_whole
from minigpt.gpt import GPT
from minigpt.interfaces import Model
from minigpt.require import require

IN_BLOCK = {
    "norm1": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.proj": "attn.c_proj",
    "norm2": "ln_2",
    "feed_forward.expand": "mlp.c_fc",
    "feed_forward.proj": "mlp.c_proj",
}
MATRICES = "c_attn.weight", "c_proj.weight", "c_fc.weight"  # transposed in GPT-2
ASKED = {  # fields of config.json, and the values that our GPT2 can handle
    "n_inner": (None,),
    "scale_attn_weights": (None, True),
    "scale_attn_by_inverse_layer_idx": (None, False),
    "add_cross_attention": (None, False),
}
LOST = 1e-5  # logits this close count as the same


def names(config: Any) -> dict[str, str]:
    """{name of a parameter in the course: name in GPT-2's files}."""
    table = {
        "token_embedding.weight": "transformer.wte.weight",
        "position_embedding.weight": "transformer.wpe.weight",
    }
    for i in range(config.n_layer):
        for ours, theirs in IN_BLOCK.items():
            for part in ("weight", "bias"):
                table[f"body.{i}.{ours}.{part}"] = f"transformer.h.{i}.{theirs}.{part}"
    for part in ("weight", "bias"):
        table[f"body.{config.n_layer}.{part}"] = f"transformer.ln_f.{part}"
    return table | {"lm_head.weight": "lm_head.weight"}


def as_gpt2(model: Model, nearest: bool = False) -> tuple[GPT2, float]:
    """(a GPT2 that fits into GPT-2's files, how far it's off).

    model: a GPT or a GPT2. GPT-2's head has no bias b, so W(norm + shift') has to
    replace W(norm + shift) + b. If the rows of W are independent, there's such a shift'
    for every b. That takes vocab_size <= n_embd. With one more token, every logit may
    move by the same constant, which softmax doesn't see. "How far it's off" is for the
    difference between two logits, and no log-probability is off by more. Raises
    ValueError for any other model, and if it's off by more than 1e-5, unless `nearest`
    asks for the best there is.
    """
    require(
        type(model) in (GPT, GPT2),
        f"A {type(model).__name__} has parts that GPT-2 doesn't have. Export a GPT of "
        "lesson 06: python -m minigpt train --preset cpu.",
    )
    state = {name: t.detach().cpu() for name, t in model.state_dict().items()}
    shape: dict[str, Any] = asdict(model.config)
    if type(model) is GPT:
        shape |= {"activation": "relu", "tied": False}
    shape |= {"qkv_bias": True, "head_bias": False}
    config = GPT2Config(**shape)
    for i in range(config.n_layer):
        bias = torch.zeros(3 * config.n_embd)
        state.setdefault(f"body.{i}.attention.qkv.bias", bias)
    bias, lost = state.pop("lm_head.bias", None), 0.0
    if bias is not None:
        W, last = state["lm_head.weight"], f"body.{config.n_layer}.bias"
        state[last], lost = folded(W, bias, state[last])
        enough = max(len(bias) - 1, config.n_embd + 1)
        enough += -enough % config.n_head  # n_head must divide it
        require(
            lost <= LOST or nearest,
            f"GPT-2's output layer has no bias. This model's bias, for {len(bias)} "
            f"tokens on {config.n_embd} channels, doesn't fit into the last norm: "
            f"differences between logits would be off by up to {lost:.2g}. Train with "
            f"--n-embd {enough}, or pass --nearest to write the nearest model.",
        )
    return filled(config, state), lost


def folded(
    W: torch.Tensor, b: torch.Tensor, shift: torch.Tensor
) -> tuple[torch.Tensor, float]:
    """(shift' (C,), which does the work of b; how far off differences between logits
    are).

    W: (V, C), b: (V,), shift: (C,). W shift' is W shift + b. If that's impossible, it's
    as near as it gets, up to a constant added to all logits, which softmax doesn't see.
    """
    W, wanted = W.double(), W.double() @ shift.double() + b.double()  # (V,)
    for unknowns in (W, torch.cat([W, torch.ones(len(W), 1)], dim=1)):
        more = torch.linalg.lstsq(unknowns, b.double()[:, None], driver="gelsd")
        moved = (shift.double() + more.solution[: len(shift), 0]).float()
        off = W @ moved.double() - wanted
        if off.abs().max() <= LOST:
            break
    return moved, (off.max() - off.min()).item()


def filled(
    config: Any, state: dict[str, torch.Tensor], turned: tuple[str, ...] = ()
) -> GPT2:
    """The GPT2 with these parameters, in evaluation mode. Raises ValueError for a
    missing name, an extra name, or a shape that isn't the config's.

    turned: the endings of the names whose matrices the file stores transposed. Messages
    show their shapes as in the file.
    """
    with torch.device("meta"):  # needs no memory and draws no random numbers
        model = config.build()
    table, theirs = model.state_dict(), names(config)
    lacking = [theirs[name] for name in table if name not in state]
    require(not lacking, f"The file lacks {lacking[:1]} ({len(lacking)} in all).")
    others = [name for name in state if name not in table]
    require(not others, f"The file has {others[:3]}, but a GPT-2 doesn't.")
    for name, tensor in state.items():
        given, asked = [*tensor.shape], [*table[name].shape]
        if theirs[name].endswith(turned):
            given, asked = given[::-1], asked[::-1]
        require(
            given == asked,
            f"{theirs[name]} has the shape {given}, but the config asks for {asked}.",
        )
    model.load_state_dict(state, assign=True)
    model.tie()
    return model.eval()


def save_gpt2(
    model: Model, tokenizer: Any, folder: Path | str, nearest: bool = False
) -> float:
    """Write a model as a folder that transformers reads: config.json,
    model.safetensors, vocab.json, merges.txt. You get all of it or nothing.

    Returns how far off a difference between two logits is, or 0.0 if nothing was
    folded. Raises ValueError like `as_gpt2` and `as_gpt2_tokenizer`, FileExistsError if
    the folder has files in it, and OSError if it can't be written.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists: give the name of a new folder.")
    model, lost = as_gpt2(without_padding(model, tokenizer), nearest)
    tokenizer = as_gpt2_tokenizer(tokenizer)
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    try:
        unfinished.mkdir(parents=True)
        settings = json.dumps(settings_of(model.config, tokenizer), indent=2)
        write_whole(unfinished / "config.json", settings)
        write_tensors(unfinished / "model.safetensors", tensors_of(model))
        write_tokenizer(tokenizer, unfinished)
        if folder.exists():  # it's empty
            folder.rmdir()
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return lost


def tensors_of(model: Model) -> dict[str, torch.Tensor]:
    """A GPT2 as {name in GPT-2's files: tensor}."""
    state, table = model.state_dict(), {}
    for ours, theirs in names(model.config).items():
        if theirs != "lm_head.weight" or not model.config.tied:
            tensor = state[ours]
            table[theirs] = tensor.T if theirs.endswith(MATRICES) else tensor
    return table


def settings_of(config: Any, tokenizer: Any) -> dict[str, Any]:
    """The content of config.json."""
    c = config
    end = tokenizer.special_id[tokenizer.special[0]] if tokenizer.special else None
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": c.vocab_size,
        "n_positions": c.block_size,
        "n_ctx": c.block_size,
        "n_embd": c.n_embd,
        "n_layer": c.n_layer,
        "n_head": c.n_head,
        "n_inner": None,
        "activation_function": c.activation,
        "layer_norm_epsilon": c.norm_eps,
        "tie_word_embeddings": c.tied,
        "resid_pdrop": c.dropout,
        "attn_pdrop": c.dropout,
        "embd_pdrop": 0.0,
        "bos_token_id": end,
        "eos_token_id": end,
        "dtype": "float32",
        "torch_dtype": "float32",  # what it was called before transformers 5
    }


def load_gpt2(folder: Path | str) -> tuple:
    """(GPT2 in evaluation mode, GPT2Tokenizer) from a folder that transformers wrote.

    Raises FileNotFoundError if a file is missing, and a ValueError that says which part
    of a file isn't like GPT-2's. Nothing is unpickled.
    """
    model, tokenizer = read_model(folder), read_tokenizer(folder)
    return without_padding(model, tokenizer), tokenizer


def without_padding(model: Model, tokenizer: Any) -> Model:
    """The model without the rows that have no token. Some programs pad the vocabulary
    to a multiple of 8, 64 or 128. A line on stderr says so.

    Raises ValueError if the tokenizer belongs to another model.
    """
    known, rows = tokenizer.vocab_size, model.config.vocab_size
    if known == rows:
        return model
    multiples = [-(-known // m) * m for m in (8, 16, 32, 64, 128, 256, 512, 1024)]
    few = rows < 2 * known or rows - known < 128
    require(
        isinstance(model, GPT2) and rows in multiples and few,
        f"The tokenizer knows {known} tokens, but the model has {rows}: they don't "
        "belong together. Use the tokenizer that the model was trained with.",
    )
    print(
        f"The model has {rows:,} rows for {known:,} tokens: the last {rows - known:,} "
        "are padding, so we leave them out.",
        file=sys.stderr,
    )
    state = dict(model.state_dict())
    for name in ("token_embedding.weight", "lm_head.weight", "lm_head.bias"):
        if name in state:
            state[name] = state[name][:known].clone()
    return filled(replace(model.config, vocab_size=known), state)


def read_model(folder: Path | str) -> GPT2:
    """The GPT2 of a folder's config.json and model.safetensors, in evaluation mode."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    config = config_of(need(folder, "config.json"))
    path, parts = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if not path.is_file() and parts.is_file():
        paths = shards(parts)
    else:
        paths = [path]
    require(
        paths[0].is_file() or not (folder / "pytorch_model.bin").is_file(),
        f"{folder} has its parameters in pytorch_model.bin, which is a pickle. It "
        "could run code when it's read, so minigpt doesn't unpickle it. In "
        "transformers, model.save_pretrained(folder) writes model.safetensors instead.",
    )
    tensors = {}
    for each in paths:
        tensors |= read_tensors(need(folder, each.name), of_the_model)
    state = from_names(tensors, config)
    try:
        return filled(config, state, MATRICES)
    except ValueError as error:
        raise ValueError(f"{path} and config.json don't match. {error}") from None


def shards(index: Path) -> list[Path]:
    """The files of a model that's stored in several files, from its index."""
    table = read_json(index).get("weight_map")
    files = sorted({*table.values()} if isinstance(table, dict) else [], key=str)
    plain = all(isinstance(name, str) and name == Path(name).name for name in files)
    require(
        files and plain,
        f"{index} is damaged: it doesn't say which files the model is in.",
    )
    return [index.with_name(name) for name in files]


WRAPPERS = [  # of torch.compile, DataParallel, DeepSpeed, FSDP, checkpointing
    "_orig_mod",
    "module",
    "_forward_module",
    "_fsdp_wrapped_module",
    "_checkpoint_wrapped_module",
]


def plain(name: str) -> str:
    """A tensor's name the way GPT-2's files have it. That's without what torch adds
    when a model is compiled or runs on several devices, and without "transformer." or
    any other name that a program gives to the whole model."""
    name = re.sub(rf"(?<![^.])(?:{'|'.join(WRAPPERS)})\.", "", name)
    return re.sub(r"^(?:\w+\.)*?(?=(?:wte|wpe|ln_f|lm_head|h\.\d+)\.)", "", name)


def of_the_model(name: str) -> bool:
    """Whether a tensor is a parameter of GPT-2, and not a mask or another head."""
    known = re.match(r"(?:wte|wpe|ln_f|lm_head|h\.\d+)\.", plain(name))
    return bool(known) and not name.endswith((".attn.bias", ".attn.masked_bias"))


def config_of(path: Path) -> GPT2Config:
    """The GPT2Config in a config.json. Raises ValueError for any other architecture."""
    content = read_json(path)
    kind = content.get("model_type")
    require(
        kind == "gpt2",
        f"{path} describes a model of type {kind!r}, but we only read 'gpt2'.",
    )
    wanted = ["vocab_size", "n_positions", "n_layer", "n_head", "n_embd"]
    lacking = [name for name in wanted if name not in content]
    require(not lacking, f"{path} doesn't say anything about {lacking}.")
    for name in wanted:
        size = content[name]
        require(type(size) is int, f"{path} has {name} = {size!r}, not a whole number.")
    for name, values in ASKED.items():
        value = content.get(name)
        if name == "n_inner" and value == 4 * content["n_embd"]:
            value = None
        require(
            value in values,
            f"{path} has {name} = {value!r}; GPT-2 has {values[-1]!r}.",
        )
    activation = content.get("activation_function", "gelu_new")
    require(
        activation in [*BENDS, *SAME],
        f"{path} has activation_function = {activation!r}, but we only read "
        f"{[*BENDS, *SAME]}.",
    )
    activation = SAME.get(activation, activation)
    others = {"resid_pdrop": 0.1, "layer_norm_epsilon": 1e-5}
    dropout, norm_eps = (content.get(name, value) for name, value in others.items())
    for name, value in zip(others, (dropout, norm_eps)):
        require(
            type(value) in (int, float), f"{path} has {name} = {value!r}, not a number."
        )
    return GPT2Config(
        *(content[name] for name in wanted),
        dropout=dropout,
        activation=activation,
        tied=content.get("tie_word_embeddings", True),
        norm_eps=norm_eps,
    )


def from_names(
    tensors: dict, config: Any, turned: tuple[str, ...] = MATRICES
) -> dict[str, torch.Tensor]:
    """{name in the course: tensor} from GPT-2's names, no matter what comes before
    them.

    turned: the endings of the names whose matrices the file stores transposed. If two
    tensors are tied, one is enough.
    """
    ours = {plain(theirs): name for name, theirs in names(config).items()}
    state = {}
    for name, tensor in tensors.items():
        if of_the_model(name):
            tensor = tensor.T.contiguous() if name.endswith(turned) else tensor
            state[ours.get(plain(name), name)] = tensor
    tied = "token_embedding.weight", "lm_head.weight"
    one = next((state[name] for name in tied if name in state), None)
    if config.tied and one is not None:
        state |= dict.fromkeys(tied, one)
    return state
