"""Lesson 06: where to compute, and in which numbers."""

import contextlib
from contextlib import AbstractContextManager

import torch


def pick_device(name: str | None = None) -> torch.device:
    """The device with this name. Without a name, the best one that torch finds here."""
    if name is None:
        name = "cpu"
        if torch.backends.mps.is_available():
            name = "mps"
        if torch.cuda.is_available():
            name = "cuda"
    return torch.device(name)


def autocast(device: torch.device) -> AbstractContextManager:
    """A context in which a CUDA device multiplies in 16-bit numbers (bf16)."""
    if device.type == "cuda" and torch.cuda.is_bf16_supported():
        return torch.autocast("cuda", torch.bfloat16)
    return contextlib.nullcontext()


def random_state(device: torch.device) -> dict[str, torch.Tensor]:
    """A dict with the states of torch's random numbers and the device's."""
    state = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        state[device.type] = torch.get_device_module(device).get_rng_state()
    return state


def set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    """Continue the random numbers from where random_state() was called."""
    torch.set_rng_state(state["cpu"].cpu())
    if device.type in state and device.type != "cpu":
        torch.get_device_module(device).set_rng_state(state[device.type].cpu())
