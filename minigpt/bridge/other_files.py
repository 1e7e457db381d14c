"""Lesson 14: what a file is that is no checkpoint, and what reads it."""

from pathlib import Path

import torch

from minigpt.bridge.tensors import is_safetensors
from minigpt.checkpoint import is_checkpoint, read


def what_it_is(path: Path | str) -> str:
    """A sentence on a file that is no checkpoint, with the call that reads it; "" for
    one that isn't known here."""
    if is_safetensors(path):
        return (
            "It is a safetensors file, which holds weights alone: "
            f"minigpt.bridge.folder.load_gpt2({str(Path(path).parent)!r}) reads a "
            "folder of GPT-2's."
        )
    try:
        content = read(path)
    except ValueError:  # and the error that led here has said so
        return ""
    if is_checkpoint(content):  # whose parts don't fit together
        return ""
    load = "torch.load(path, weights_only=True)"
    if not isinstance(content, dict):
        return f"It holds a {type(content).__name__}, which {load} reads."
    if {"model", "config", "chars"} <= set(content):
        return (
            "It is a stored model of the course, without its training: "
            "minigpt.stored.load_stored(path) reads it."
        )
    if {"model", "model_args", "iter_num"} <= set(content):
        return (
            "It is one of nanoGPT's, whose GPT is GPT-2's: "
            "minigpt.bridge.nanogpt.load_nanogpt(path) reads it."
        )
    if content and all(isinstance(part, torch.Tensor) for part in content.values()):
        return (
            "It holds weights alone, a state_dict: build the model that they belong "
            f"to, then model.load_state_dict({load})."
        )
    names = ", ".join(repr(name) for name in list(content)[:9])
    return f"It holds a dictionary of {names}, which {load} reads."
