"""Lesson 14: a safetensors file: eight bytes, a table in JSON, and the numbers.

Source: the format's description at github.com/huggingface/safetensors. Nothing in such
a file can run: it is a table of names, shapes and places, checked before it is used.
"""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import torch

from minigpt.files import replacing
from minigpt.require import require

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
LARGEST = 100_000_000  # bytes of a table, as in the format's own library


def read_table(file: BinaryIO, path: Path | str) -> tuple[dict[str, list], int]:
    """({name: [type, shape, first byte, last byte + 1]}, where the numbers begin).

    file: `path`, opened in binary. Raises ValueError if it is no whole safetensors.
    """
    size = os.fstat(file.fileno()).st_size
    start = int.from_bytes(file.read(8), "little") + 8
    no_table = f"{path} is no safetensors file, or a damaged one: it has no table."
    require(8 < start <= min(size, LARGEST), no_table)
    try:
        table = json.loads(file.read(start - 8).decode("utf-8"))
        table.pop("__metadata__", None)
        rows = {
            name: [row["dtype"], row["shape"], *row["data_offsets"]]
            for name, row in table.items()
        }
        wrong = [name for name, row in rows.items() if not fits(*row)]
    except Exception:  # whatever strange bytes make json and Python raise
        raise ValueError(no_table) from None
    require(not wrong, f"{path} is damaged: its table says two sizes for {wrong[:3]}.")
    end = start + max((row[3] for row in rows.values()), default=0)
    require(
        size == end,
        f"{path} has {size:,} bytes where its table tells of {end:,}: it was cut off "
        "or changed. Fetch it again.",
    )
    return rows, start


def fits(dtype: str, shape: list[int], first: int, last: int) -> bool:
    """Whether a row of a table takes as many bytes as it has numbers."""
    whole = all(type(n) is int and n >= 0 for n in [*shape, first, last])
    each = DTYPES[dtype].itemsize if dtype in DTYPES else 0
    return whole and (not each or last - first == math.prod(shape) * each)


def read_tensors(
    path: Path | str, wanted: Callable[[str], object] | None = None
) -> dict[str, torch.Tensor]:
    """{name: tensor} of a safetensors file, as float32, of all names or those wanted.

    Raises ValueError that says what is wrong with the file, FileNotFoundError.
    """
    tensors = {}
    with open(path, "rb") as file:
        rows, start = read_table(file, path)
        for name, (dtype, shape, first, last) in rows.items():
            if wanted is not None and not wanted(name):
                continue
            require(
                dtype in DTYPES,
                f"{path} has {name} in numbers of type {dtype!r}; {[*DTYPES]} are "
                "read.",
            )
            file.seek(start + first)
            data = bytearray(file.read(last - first))
            flat = torch.frombuffer(data, dtype=DTYPES[dtype]) if data else []
            tensors[name] = torch.as_tensor(flat).reshape(shape).float()
    return tensors


def write_tensors(path: Path | str, tensors: dict) -> None:
    """Write {name: tensor} as float32, whole or not at all.

    Raises OSError if it cannot be written.
    """
    table: dict[str, dict] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        first, end = end, end + 4 * tensor.numel()
        row = {"dtype": "F32", "shape": [*tensor.shape], "data_offsets": [first, end]}
        table[name] = row
    head = json.dumps(table).encode("utf-8")
    head += b" " * (-len(head) % 8)  # the numbers begin at a multiple of eight
    with replacing(path) as unfinished, open(unfinished, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for tensor in tensors.values():
            file.write(number_bytes(tensor))


def number_bytes(tensor: torch.Tensor) -> bytes:
    """The numbers of a tensor as float32, in a row, as bytes."""
    flat = tensor.detach().cpu().float().contiguous().flatten()
    return flat.numpy().tobytes()
