"""Lesson 01: from a text file to batches of token ids."""

import codecs
import hashlib
import os
import socket
import sys
from http.client import HTTPException
from pathlib import Path

import torch

URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/"
    "data/tinyshakespeare/input.txt"
)
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
TIMEOUT_SECONDS = 5


def load_text(source="tinyshakespeare", substitute=True):
    """The corpus as one string: a known name, or a path to any UTF-8 text file.

    "tinyshakespeare" is looked for in the folder $MINIGPT_DATA, then in the
    user's cache; if it is in neither, it is downloaded into the cache once. If
    that fails too, "playwright" stands in for it, with a line that says so:
    1.1 million characters of a play that minigpt.playwright writes. With
    substitute=False nothing stands in: FileNotFoundError.
    In files a byte order mark is dropped and every line ending becomes "\\n".

    Raises FileNotFoundError if there is no such file, ValueError if it is empty
    or not UTF-8.
    """
    if source == "tinyshakespeare":
        return _tiny_shakespeare(substitute)
    if source == "playwright":
        return _playwright()
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {str(path)!r} and no corpus of that name. Give the "
            "path of a UTF-8 text file, or one of: 'tinyshakespeare', 'playwright'."
        )
    return _read(path)


def cache_folder():
    """Where downloads are kept: $XDG_CACHE_HOME/minigpt or ~/.cache/minigpt."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "minigpt"


def _read(path):
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be read). "
            "Save it as UTF-8 in a text editor and try again."
        ) from None
    if not text:
        raise ValueError(f"{path} is empty. Give a file with some text in it.")
    return text


def _tiny_shakespeare(substitute):
    folders = [cache_folder()]
    if os.environ.get("MINIGPT_DATA"):
        folders.insert(0, Path(os.environ["MINIGPT_DATA"]))
    for folder in folders:
        for path in sorted(folder.glob("*")) if folder.is_dir() else []:
            if path.is_file() and _is_tiny_shakespeare(path):
                return _read(path)

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
        return _playwright()
    finally:
        socket.setdefaulttimeout(before)
    print(f"Downloaded Tiny Shakespeare to {target}.", file=sys.stderr)
    return _read(target)


def _is_tiny_shakespeare(path):
    # 1,115,394 bytes in 40,000 lines, whose ends may have become two bytes each,
    # behind a byte order mark: looking at the size spares reading other files.
    if not 1_115_394 <= path.stat().st_size <= 1_115_394 + 40_000 + 3:
        return False
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    content = content.replace(b"\r\n", b"\n")
    return hashlib.sha256(content).hexdigest() == SHA256


def _playwright():
    from minigpt.playwright import write_play  # lesson 07: only if it is needed

    return write_play(1_100_000).text


class CharTokenizer:
    """One integer for each distinct character of `text`, in sorted order.

    `chars` is the vocabulary, `vocab_size` its length. ValueError if it is empty.
    """

    def __init__(self, text):
        if not text:
            raise ValueError("The text is empty: it has no characters to number.")
        self.chars = "".join(sorted(set(text)))
        self.vocab_size = len(self.chars)
        self._id_of = {char: i for i, char in enumerate(self.chars)}

    def encode(self, text):
        """str -> list[int]. Raises ValueError that lists unknown characters."""
        unknown = sorted(set(text) - set(self.chars))
        if unknown:
            raise ValueError(
                f"The vocabulary has no {unknown}. Remove or replace them; the "
                f"{self.vocab_size} known characters are {self.chars!r}."
            )
        return [self._id_of[char] for char in text]

    def decode(self, ids):
        """list[int] or 1-D tensor -> str. Raises ValueError for an unknown id."""
        if isinstance(ids, torch.Tensor):
            if ids.dim() != 1:
                raise ValueError(
                    f"The ids have shape {tuple(ids.shape)}: decode one row of them, "
                    "for example ids[0]."
                )
            ids = ids.tolist()
        wrong = [i for i in ids if not 0 <= i < self.vocab_size]
        if wrong:
            raise ValueError(
                f"No character has the id {wrong[0]}: "
                f"ids run from 0 to {self.vocab_size - 1}."
            )
        return "".join(self.chars[i] for i in ids)

    def __repr__(self):
        return f"CharTokenizer(vocab_size={self.vocab_size}, chars={self.chars!r})"


def train_val_split(ids, train_fraction=0.9):
    """Cut ids (N,) in two: the first part to learn from, the rest to judge on.

    Raises ValueError unless train_fraction lies between 0 and 1.
    """
    if not 0 < train_fraction < 1:
        raise ValueError(
            f"train_fraction is {train_fraction}; it must lie between 0 and 1."
        )
    n = int(train_fraction * len(ids))
    return ids[:n], ids[n:]


def at_least_one(**sizes):
    """Raise ValueError unless each named size is a whole number, 1 or more."""
    for name, size in sizes.items():
        if type(size) is not int or size < 1:  # True is an int, but no size
            raise ValueError(f"{name} is {size!r}; give a whole number, at least 1.")


def get_batch(data, batch_size, block_size, device="cpu", generator=None, rows=...):
    """Draw random windows: x (B, T) and the same shifted by one, y (B, T).

    data: (N,) int64; B is batch_size, T is block_size. Draws exactly one
    torch.randint, from `generator` (a CPU one) or torch's global one, and gathers
    `rows` of the windows: all, or a slice of them, one worker's share (lesson 10).
    Raises ValueError if the data is too short for one window, or a size below 1.
    """
    at_least_one(batch_size=batch_size, block_size=block_size)
    if len(data) <= block_size:
        raise ValueError(
            f"The data has {len(data)} tokens, but one window and its targets "
            f"take block_size + 1 = {block_size + 1}. "
            "Use a longer text or a smaller block_size."
        )
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)
    positions = (starts[rows][:, None] + torch.arange(block_size)).to(data.device)
    return data[positions].to(device), data[positions + 1].to(device)
