"""Lesson 14: a safetensors file: eight bytes, a table in JSON, and the numbers.

Source: the format's description at github.com/huggingface/safetensors. Nothing in such
a file can run. It's a table of names, shapes and places.
"""

import json
from collections.abc import Callable
from pathlib import Path

import torch

from minigpt.files import replacing
from minigpt.require import require

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def is_safetensors(path: Path | str) -> bool:
    """Whether a file begins like a safetensors file: the size of a table, then the
    table in JSON."""
    with open(path, "rb") as file:
        start = file.read(9)
    size = int.from_bytes(start[:8], "little")
    return start[8:] == b"{" and 8 + size <= Path(path).stat().st_size


def read_tensors(
    path: Path | str, wanted: Callable[[str], object] = lambda name: True
) -> dict[str, torch.Tensor]:
    """{name: tensor} from a safetensors file, as float32: all names, or only those
    wanted.

    Raises FileNotFoundError, and ValueError if it isn't a safetensors file or is
    damaged.
    """
    require(is_safetensors(path), f"{path} isn't a safetensors file, or it's damaged.")
    tensors = {}
    with open(path, "rb") as file:
        n = int.from_bytes(file.read(8), "little")
        table = json.loads(file.read(n))
        table.pop("__metadata__", None)
        for name in filter(wanted, table):
            row = table[name]
            require(
                row["dtype"] in DTYPES,
                f"{path} has {name} in numbers of type {row['dtype']!r}, but we only "
                f"read {[*DTYPES]}.",
            )
            start, end = row["data_offsets"]
            file.seek(8 + n + start)
            numbers = bytearray(file.read(end - start))
            try:
                flat = torch.frombuffer(numbers, dtype=DTYPES[row["dtype"]])
                tensors[name] = flat.view(row["shape"]).float()
            except (ValueError, RuntimeError):  # too few bytes, or too many
                raise ValueError(
                    f"{path} was cut off or changed: {name} doesn't have as many "
                    f"numbers as its shape {row['shape']} needs. Get the file again."
                ) from None
    return tensors


def write_tensors(path: Path | str, tensors: dict) -> None:
    """Write {name: tensor} as float32, whole or not at all.

    Raises OSError if it can't be written.
    """
    table: dict[str, dict] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + 4 * tensor.numel()
        row = {"dtype": "F32", "shape": [*tensor.shape], "data_offsets": [start, end]}
        table[name] = row
    head = json.dumps(table).encode("utf-8")
    head += b" " * (-len(head) % 8)  # the numbers have to begin at a multiple of eight
    with replacing(path) as unfinished, open(unfinished, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for tensor in tensors.values():
            file.write(tensor.detach().cpu().float().contiguous().numpy().tobytes())
