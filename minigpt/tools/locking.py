"""Files that only one run at a time may write."""

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def only_one(path: Path | str) -> Generator[None]:
    """Inside this block, no other process can get here with the same `path`.

    The system releases the lock when a process ends, however it ends. Unfinished files
    that killed processes left are removed. Raises BlockingIOError if another process
    holds the lock.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    hidden = path.parent.resolve() / f".{path.name}.lock"
    lock = FileLock(hidden)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=1, poll_interval=0.05)  # one may be about to end
    except Timeout:
        raise BlockingIOError(
            f"Another run is writing {path}: wait until it's done, or give another "
            "--out."
        ) from None
    except OSError as error:
        raise OSError(
            f"Can't write to {path} ({error.strerror}): give another --out."
        ) from None
    try:
        for old in path.parent.iterdir():
            if re.fullmatch(rf"{re.escape(path.name)}\.\d+\.tmp", old.name):
                old.unlink(missing_ok=True)
        yield
    finally:
        with suppress(OSError):  # Windows: the release removes it
            hidden.unlink()  # before another one comes, which would lose it
        lock.release()
