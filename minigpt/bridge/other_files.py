"""Lesson 14: if a file isn't a checkpoint, say what it is and how to read it."""

from pathlib import Path

import torch

from minigpt.bridge.tensors import is_safetensors
from minigpt.checkpoint import is_checkpoint, read


def what_it_is(path: Path | str) -> str:
    """A sentence about a file that isn't a checkpoint, with the call that reads it, or
    "" if we don't know the file."""
    if is_safetensors(path):
        return (
            "It's a safetensors file, which only holds weights: "
            f"minigpt.bridge.folder.load_gpt2({str(Path(path).parent)!r}) reads a "
            "GPT-2 folder."
        )
    try:
        content = read(path)
    except ValueError:  # and the error that led here said so
        return ""
    if is_checkpoint(content):  # whose parts don't fit together
        return ""
    load = "torch.load(path, weights_only=True)"
    if not isinstance(content, dict):
        return f"It holds a {type(content).__name__}, which {load} reads."
    if {"model", "config", "chars"} <= set(content):
        return (
            "It's a stored model that comes with the course, without its training: "
            "minigpt.stored.load_stored(path) reads it."
        )
    if {"model", "model_args", "iter_num"} <= set(content):
        return (
            "It's a nanoGPT checkpoint, and so a GPT-2: "
            "minigpt.bridge.nanogpt.load_nanogpt(path) reads it."
        )
    if content and all(isinstance(part, torch.Tensor) for part in content.values()):
        return (
            "It only holds weights, a state_dict: build the model that they belong "
            f"to, then call model.load_state_dict({load})."
        )
    names = ", ".join(repr(name) for name in list(content)[:9])
    return f"It holds a dictionary of {names}, which {load} reads."
