"""Files that one run at a time may write."""

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def only_one(path: Path | str) -> Generator[None]:
    """While this lasts, no other process can come here with the same `path`.

    The system gives the place free when a process ends, however it ends; unfinished
    files of killed ones are removed. Raises BlockingIOError if another is at it.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    hidden = path.parent.resolve() / f".{path.name}.lock"
    lock = FileLock(hidden)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=1, poll_interval=0.05)  # one may be ending right now
    except Timeout:
        raise BlockingIOError(
            f"{path} is being written by another run: wait until it has ended, or give "
            "another --out."
        ) from None
    except OSError as error:
        raise OSError(
            f"Nothing can be written to {path} ({error.strerror}): give another --out."
        ) from None
    try:
        for old in path.parent.iterdir():
            if re.fullmatch(rf"{re.escape(path.name)}\.\d+\.tmp", old.name):
                old.unlink(missing_ok=True)
        yield
    finally:
        with suppress(OSError):  # Windows: it goes with the release
            hidden.unlink()  # before another may come, who would lose it
        lock.release()
