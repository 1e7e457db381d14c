"""What an argument must be: numbers, shares, kinds; a sentence for what it is not."""

import math
import numbers

import torch
import torch.nn as nn


def shown(value):
    """A value for a sentence: as it is typed, or its kind if that is long."""
    text = repr(value)
    short = len(text) <= 60 and text.isprintable()
    return text if short else f"a {type(value).__name__}"


def at_least_one(**sizes):
    """Raise ValueError unless each named size is a whole number, 1 or more."""
    for name, size in sizes.items():
        if type(size) is not int or size < 1:  # True is an int, but no size
            raise ValueError(
                f"{name} is {shown(size)}; give a whole number, at least 1."
            )


def number(value):
    """The value if it is a real number; else nan, which lies in no range."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return value if real else math.nan


def must(name, value, fine, need):
    """Raise ValueError, saying what is needed, unless the value is fine."""
    if not fine:
        raise ValueError(f"{name} is {shown(value)}; it must be {need}.")


def whole(name, value):
    """Raise ValueError unless the value is a whole number, 0 or more."""
    fine = type(value) is int and value >= 0
    must(name, value, fine, "a whole number, 0 or more")


def check_dropout(dropout):
    """Raise ValueError unless dropout is a share of the values."""
    must("dropout", dropout, 0 <= number(dropout) < 1, "at least 0 and below 1")


def check_seed(seed):
    """Raise ValueError unless torch can begin its random numbers from this seed."""
    fine = type(seed) is int and -(2**63) <= seed < 2**63
    must("seed", seed, fine, "a whole number of at most 64 bits")


def check_kind(name, value, kind, example):
    """Raise TypeError, with an example of how to get one, for another kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {shown(value)}; give {example}.")


def check_model(model, name="model"):
    """Raise TypeError unless it is a model."""
    check_kind(
        name, model, nn.Module, "a model, for example load_checkpoint('model.pt').model"
    )


def device_of(model):
    """Where a model computes. Raises TypeError if it is no model, ValueError if it has
    no parameters."""
    check_model(model)
    for parameter in model.parameters():
        return parameter.device
    raise ValueError(
        f"model is {shown(model)} and has no parameters: give a model that has."
    )


def check_generator(generator):
    """Raise TypeError unless random numbers can be drawn from it."""
    example = "torch.Generator().manual_seed(1337), or None"
    check_kind("generator", generator, (torch.Generator, type(None)), example)


def check_device(device):
    """Raise ValueError unless torch finds the device."""
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError, TypeError):
        raise ValueError(
            f"device is {shown(device)}, which torch does not find here: give 'cpu', "
            "or what pick_device() returns."
        ) from None
