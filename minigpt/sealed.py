"""Lesson 06: a file that is whole or noticed to be not, and in which nothing runs."""

import io
import pickle
from hashlib import sha256

import torch

from minigpt.files import only_one, replacing

FORMAT = 1  # one more whenever an older minigpt could not read what is written
ZIP = b"PK\3\4"  # how a file of torch's begins
SEAL = 32  # bytes of SHA-256 behind what torch wrote, which notices no damage itself


def write_sealed(path, content):
    """Write a dict of text, numbers and tensors; the file appears whole or not at all.

    Raises OSError, with `path` as it was, if that fails or another process is at it.
    """
    data = io.BytesIO()
    torch.save({"format": FORMAT, **content}, data)
    data = data.getvalue()
    with only_one(path), replacing(path) as unfinished:
        unfinished.write_bytes(data + sha256(data).digest())


def read_sealed(path):
    """The dict in a file of write_sealed's, its tensors on the CPU; nothing is run.

    Raises ValueError, saying what is wrong, for any other file.
    """
    with open(path, "rb") as file:
        data = file.read(len(ZIP))
        if data != ZIP:  # the rest may be long
            raise ValueError(
                f"{path} is not a checkpoint but a file of another kind: name one that "
                "`train` wrote."
            )
        data += file.read()
    data, seal = data[:-SEAL], data[-SEAL:]
    if sha256(data).digest() != seal:
        raise ValueError(
            f"{path} is not a checkpoint as it was written: it is damaged or cut "
            "short, or another program's. Copy it again, or train again."
        )
    try:
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        newer = content.get("format", 1) > FORMAT
    except pickle.UnpicklingError:
        raise ValueError(
            f"{path} is not a checkpoint: it holds more than text, numbers and "
            "tensors, which might run as a program, and none of it was read. Use only "
            "files that `train` wrote."
        ) from None
    except Exception:  # whatever a stranger makes torch stumble over
        raise strange(path) from None
    if newer:
        raise ValueError(
            f"{path} was written by a newer minigpt (format {content['format']}; this "
            f"one reads up to {FORMAT}): update minigpt."
        )
    return content


def strange(path):
    """The ValueError for a whole file with the wrong things in it."""
    return ValueError(
        f"{path} is not a checkpoint of this version of minigpt: its parts are not "
        "those of one. Train again and write to a new file."
    )
