"""Lesson 06: where to compute, and in which numbers."""

import contextlib

import torch


def pick_device(name=None):
    """`name` if given, else the best of cuda, mps and cpu that is there.

    Raises ValueError if the one that is named is not there.
    """
    if not name:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        there = device.type == "cpu" or torch.get_device_module(device).is_available()
    except (RuntimeError, TypeError):  # torch knows no device of this name
        there = False
    if not there:
        raise ValueError(
            f"torch finds no {name} here: name cpu, or name none to get the best "
            "there is."
        )
    return device


def autocast(device):
    """A context in which a CUDA device that can computes in 16-bit numbers (bf16)."""
    if device.type == "cuda" and torch.cuda.is_bf16_supported(
        including_emulation=False
    ):
        return torch.autocast("cuda", torch.bfloat16)
    return contextlib.nullcontext()


def random_state(device, batches):
    """The states of `batches` (a Generator), of torch and of its device."""
    state = {"batches": batches.get_state(), "cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_random_state(state, device, batches):
    """Go on with the random numbers where random_state() was called."""
    batches.set_state(state["batches"].cpu())
    torch.set_rng_state(state["cpu"].cpu())
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"].cpu(), device)
    if device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"].cpu())
