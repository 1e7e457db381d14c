"""Texts as files: found by name or path, downloaded if need be, read in pieces."""

import codecs
import hashlib
import os
import socket
import sys
from http.client import HTTPException
from pathlib import Path

import torch

from minigpt.arguments import check_kind

URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/"
    "data/tinyshakespeare/input.txt"
)
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
TIMEOUT_SECONDS = 5


def find(source, substitute=True):
    """The Path of a text; None stands for the built-in play. As `load_text` says.

    Raises OSError, or TypeError for what is no name.
    """
    remedy = "the path of a UTF-8 text file, or one of: 'tinyshakespeare', 'playwright'"
    check_kind("The source of a text", source, (str, os.PathLike), remedy)
    if source == "tinyshakespeare":
        return _tiny_shakespeare(substitute)
    if source == "playwright":
        return None
    path = Path(source)
    if str(source) and path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {str(source)!r} and no corpus of that name. Give "
            f"{remedy}."
        )
    return path


def pieces(path, size=-1):
    """A text file, `size` characters at a time (-1: at once), without a byte order
    mark and with every line ending as "\\n".

    Raises ValueError if it is empty or not UTF-8, OSError if it cannot be read.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            piece = _read(file, size)
            if not piece:
                raise ValueError(f"{path} is empty. Give a file with some text in it.")
            while piece:
                yield piece
                piece = _read(file, size)
    except OSError as error:
        raise OSError(
            f"{path} cannot be read ({error.strerror}): check your permission to read "
            "it, or give another file."
        ) from None


def _read(file, size):
    try:
        return file.read(size)
    except UnicodeDecodeError as error:
        byte = file.buffer.tell() - len(error.object) + error.start
        raise ValueError(
            f"{file.name} is not UTF-8 text (byte {byte} cannot be read). "
            "Save it as UTF-8 in a text editor and try again."
        ) from None


def cache_folder():
    """Where downloads are kept: $XDG_CACHE_HOME/minigpt or ~/.cache/minigpt."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "minigpt"


def _tiny_shakespeare(substitute):
    folders = [cache_folder()]
    if os.environ.get("MINIGPT_DATA"):
        folders.insert(0, Path(os.environ["MINIGPT_DATA"]))
    for folder in folders:
        for path in sorted(folder.glob("*")) if folder.is_dir() else []:
            if path.is_file() and _is_tiny_shakespeare(path):
                return path

    target = cache_folder() / "tinyshakespeare.txt"
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_SECONDS)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(URL, str(target), SHA256, progress=False)
    except (OSError, RuntimeError, HTTPException) as error:
        looked = " and ".join(str(folder) for folder in folders)
        missing = (
            f"Tiny Shakespeare is not in {looked} and could not be downloaded ({error})"
        )
        remedy = f"connect to the network, or put the file {URL} into {cache_folder()}"
        if not substitute:
            raise FileNotFoundError(
                f"{missing}: {remedy}, or name another text; 'playwright' is built in."
            ) from None
        print(
            f"{missing}, so you get the built-in play instead. For the real one, "
            f"{remedy}.",
            file=sys.stderr,
        )
        return None
    finally:
        socket.setdefaulttimeout(before)
    print(f"Downloaded Tiny Shakespeare to {target}.", file=sys.stderr)
    return target


def _is_tiny_shakespeare(path):
    # 1,115,394 bytes in 40,000 lines, whose ends may have become two bytes each,
    # behind a byte order mark: looking at the size spares reading other files.
    if not 1_115_394 <= path.stat().st_size <= 1_115_394 + 40_000 + 3:
        return False
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    content = content.replace(b"\r\n", b"\n")
    return hashlib.sha256(content).hexdigest() == SHA256
