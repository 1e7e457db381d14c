"""Files that are whole at every moment, and that one run at a time may write."""

import os
import socket
from contextlib import ExitStack, contextmanager, suppress
from errno import EINVAL, ENOSYS, ENOTSUP
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

PATIENCE = 1.0  # seconds to wait for a run that is just ending


@contextmanager
def replacing(path):
    """A path to write to, which takes the place of `path` when all went well.

    Until then `path` stays as it was; after an error nothing unfinished is left.
    What was written is on the disk before it moves, and so is the move at the end:
    if the power fails, `path` is the old file or the new one.
    """
    path = Path(path)
    unfinished = _unfinished(path)
    with _folder_for(path):
        try:
            yield unfinished
            with open(unfinished, "r+b") as file:
                _flush(file.fileno())
            os.replace(unfinished, path)
            _flush_folder(path.parent)
        finally:
            with suppress(OSError):  # gone already, or the disk refuses even this
                unfinished.unlink()


def check_writable(path):
    """Raise OSError, naming the remedy, unless a file could be written to `path`."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    try:
        with _folder_for(path):
            _unfinished(path).touch()
            _unfinished(path).unlink()
    except OSError as error:
        raise _no_place(path, error) from None


@contextmanager
def only_one(path):
    """While this lasts, no other process can come here with the same `path`.

    Within one process it may be nested. The system gives the place free when a
    process ends, however it ends; unfinished files of killed ones are removed.
    Raises BlockingIOError if another process is at it, and OSError as
    `check_writable` does where no lock can be made.
    """
    path = Path(path)
    with ExitStack() as held:
        try:
            held.enter_context(_folder_for(path))
            hidden = path.parent.resolve() / f".{path.name}.lock"
            lock = FileLock(hidden, PATIENCE, thread_local=False, is_singleton=True)
            lock.acquire(poll_interval=0.05)
        except Timeout:
            raise BlockingIOError(
                f"{path} is being written by another run{_holder(hidden)}: wait until "
                "it has ended, or give another --out."
            ) from None
        except OSError as error:
            raise _no_place(path, error) from None
        held.callback(_let_go, lock, hidden)
        if lock.lock_counter == 1:
            if not isinstance(lock, SoftFileLock):  # which writes this itself
                with suppress(OSError):  # Windows lets nobody write into a lock
                    hidden.write_text(f"{os.getpid()}\n{socket.gethostname()}\n")
            _sweep(path)
        yield


def _let_go(lock, hidden):
    if lock.lock_counter == 1:  # before others may come: filelock sees it gone
        with suppress(OSError):  # Windows: it goes with the release
            hidden.unlink()
    lock.release()


@contextmanager
def _folder_for(path):
    """Make the folders that `path` needs; those that stay empty go in the end."""
    new = [folder for folder in path.parents if not os.path.exists(folder)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in new:  # the innermost first
            with suppress(OSError):  # it is in use, or was never made
                folder.rmdir()


def _unfinished(path):
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def _sweep(path):
    """Remove what killed runs left: nobody else is writing here now."""
    for old in path.parent.iterdir():
        number = old.name.removeprefix(f"{path.name}.").removesuffix(".tmp")
        if old.name == f"{path.name}.{number}.tmp" and number.isdecimal():
            with suppress(OSError):
                old.unlink()


def _flush(number):
    try:
        os.fsync(number)
    except OSError as error:  # a full or broken disk is told, a drive without this not
        if error.errno not in (EINVAL, ENOSYS, ENOTSUP):
            raise


def _flush_folder(folder):
    if os.name == "nt":  # where a folder cannot be opened
        return
    with suppress(OSError):  # some network drives do not know this
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _holder(hidden):
    """Who wrote the lock file, in words, if that can be read."""
    with suppress(OSError, ValueError):
        number, host, *_ = hidden.read_text().split("\n")
        return f" (process {int(number)} on {host})"
    return ""


def _no_place(path, error):
    return OSError(
        f"Nothing can be written to {path} ({error.strerror}): give another place."
    )
