"""Lesson 14: read a checkpoint of Karpathy's nanoGPT, which is a GPT-2 with other
names."""

from pathlib import Path

import torch

from minigpt.bridge.folder import filled, from_names
from minigpt.bridge.gpt2 import GPT2, GPT2Config
from minigpt.checkpoint import read
from minigpt.require import require

SIZES = ["vocab_size", "block_size", "n_layer", "n_head", "n_embd"]


def load_nanogpt(path: Path | str) -> GPT2:
    """The GPT2 in nanoGPT's ckpt.pt, in evaluation mode. Nothing is unpickled.

    The file has no tokenizer. For shakespeare_char, use CharTokenizer(text); nanoGPT
    keeps its own in a pickle. Raises FileNotFoundError, or ValueError that says what
    the file is instead.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    content = read(path)
    is_one = isinstance(content, dict) and {"model", "model_args"} <= set(content)
    require(is_one, f"{path} isn't a nanoGPT checkpoint: it has no 'model_args'.")
    given = content["model_args"]
    lacking = [name for name in SIZES if name not in given]
    require(not lacking, f"The model_args in {path} don't mention {lacking}.")
    config = GPT2Config(
        *(given[name] for name in SIZES),
        dropout=given.get("dropout", 0.0),
        activation="gelu",  # torch's own GELU, not the formula with tanh
    )
    state = from_names(content["model"], config, turned=())
    state = {name: tensor.float() for name, tensor in state.items()}
    with torch.device("meta"):
        table = config.build().state_dict()
    if not given.get("bias", True):  # a bias of zeros changes nothing
        for name in table:
            if name.endswith(".bias"):
                state.setdefault(name, torch.zeros(table[name].shape))
    try:
        return filled(config, state)
    except ValueError as error:
        raise ValueError(f"The parts of {path} don't fit together. {error}") from None
