"""Files that are whole at every moment: written beside, then moved into place."""

import os
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path):
    """A path to write to, which takes the place of `path` when all went well.

    Until then `path` stays as it was; after an error nothing unfinished is left.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _unfinished(path)
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def check_writable(path):
    """Raise OSError, naming the remedy, unless a file could be written to `path`."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _unfinished(path).touch()
        _unfinished(path).unlink()
    except OSError as error:
        raise OSError(
            f"Nothing can be written to {path} ({error.strerror}): give another place."
        ) from None


def _unfinished(path):
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")
