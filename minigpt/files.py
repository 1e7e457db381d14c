"""Files that are complete at every moment: a new one appears all at once or not at
all."""

import io
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import torch


@contextmanager
def replacing(path: Path | str) -> Generator[Path]:
    """A path to write to. It takes the place of `path` if everything went well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        yield unfinished
        with open(unfinished, "rb+") as file:
            os.fsync(file.fileno())  # on the disk, before it takes the old one's place
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_whole(path: Path | str, content: str | bytes | memoryview) -> None:
    """Write a file of text (as UTF-8) or bytes, whole or not at all.

    Raises OSError if it cannot be written.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with replacing(path) as unfinished:
        unfinished.write_bytes(data)


def save_whole(path: Path | str, content: object) -> None:
    """torch.save(content, path), whole or not at all. Raises OSError on a full
    disk."""
    memory = io.BytesIO()  # on a full disk, torch.save itself hides the system's error
    torch.save(content, memory)
    write_whole(path, memory.getbuffer())
