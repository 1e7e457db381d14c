"""Lesson 06: where to compute, and in which numbers."""

import contextlib
import functools
import sys
import warnings

import torch


def devices():
    """The kinds of device that are there, the best first: cuda, mps, cpu."""
    found = [torch.device("cuda")] if torch.cuda.is_available() else []
    if torch.backends.mps.is_available():
        found.append(torch.device("mps"))
    return [*found, torch.device("cpu")]


def named(name):
    """The device of this name. Raises ValueError if torch finds none here."""
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


def pick_device(name=None):
    """`name` if given, else the best of cuda, mps and cpu that computes rightly.

    A GPU is compared with the CPU first, once in a process (the small checks of
    minigpt.doctor, about a second). One that fails is passed over or, if it is named,
    used as asked; a line on stderr says so. Raises ValueError as `named`.
    """
    for device in [named(name)] if name else devices():
        fault = "" if device.type == "cpu" else _fault(device)
        if fault:
            then = "used because it is named" if name else "passed over"
            _say(
                f"{device} fails a check here ({fault}), so it is {then}; "
                f"python -m minigpt doctor --device {device} says what to do."
            )
        if name or not fault:
            return device


@functools.cache  # once in a process
def _fault(device):
    from minigpt import doctor  # beside the lessons: only if there is a GPU

    return doctor.fault(device)


@functools.cache  # the same line only once
def _say(line):
    print(line, file=sys.stderr)


def compiled(model, x, y):
    """torch.compile(model), if that works for windows x, y (B, T); else the model.

    It is tried with one forward and one backward pass, which takes a minute on a CPU;
    if they fail, or the loss is another one, a line on stderr says why. Both share
    their weights; the gradients are empty afterwards, the random numbers as before.
    """
    device, batches = x.device, torch.Generator()
    state = random_state(device, batches)
    try:
        faster, losses = torch.compile(model), []
        with warnings.catch_warnings():  # lesson 08's complex numbers stay as they are
            warnings.filterwarnings("ignore", "Torchinductor .* complex operators")
            for each in (faster, model):
                set_random_state(state, device, batches)
                with autocast(device):
                    losses.append(each(x, y)[1])
            losses[0].backward()
        # Dropout draws other numbers when it is compiled: the losses differ a little.
        if not torch.isclose(*losses, rtol=0.05):
            raise ValueError(f"it makes the loss {losses[0]:.4g}, not {losses[1]:.4g}")
        return faster
    except Exception as error:  # whatever the compiler of this machine may raise
        print(
            "torch.compile does not work here, so the model runs as it is: "
            f"{type(error).__name__}, {first_line(error)}",
            file=sys.stderr,
        )
        return model
    finally:
        model.zero_grad()
        set_random_state(state, device, batches)


def first_line(error):
    """What an error says, without what follows behind the first line."""
    return (str(error).strip().splitlines() or [""])[0]


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
