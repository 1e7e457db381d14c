"""Lesson 01: from a text to batches of token ids."""

import hashlib
import lzma
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/"
    "data/tinyshakespeare/input.txt"
)
NAME = "tinyshakespeare.txt"
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
PLAY = Path(__file__).parent / "stored" / "play.txt.xz"  # lesson 07 writes it


def load_text(source: Path | str = "tinyshakespeare") -> str:
    """A text as one string. `source` is a known name, or the path of a UTF-8 file.

    If "tinyshakespeare" can't be downloaded, a line says so, and you get "playwright":
    a play of 1.1 million characters that lesson 07 explains.
    Raises FileNotFoundError if there's no such file, and ValueError if it isn't text.
    """
    try:
        path = find_text(source)
    except FileNotFoundError as error:
        if source != "tinyshakespeare":
            raise
        print(f"{error} You get the course's own play instead.", file=sys.stderr)
        path = PLAY
    return read_text(path)


def find_text(source: Path | str) -> Path:
    """The path of a text, given its name or path. You never get a different text.

    Raises FileNotFoundError if it isn't there and can't be downloaded.
    """
    if source == "tinyshakespeare":
        return tiny_shakespeare()
    if source == "playwright":
        return PLAY
    if not Path(source).is_file():
        raise FileNotFoundError(
            f"There is no file {str(source)!r}. Give the path of a UTF-8 text file, "
            "or one of the names 'tinyshakespeare', 'playwright'."
        )
    return Path(source)


def read_text(path: Path | str) -> str:
    """The text in a file. Raises ValueError if it's empty or isn't UTF-8."""
    opened = lzma.open if path == PLAY else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as file:
            text = file.read()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
    if not text:
        raise ValueError(f"{path} is empty. Give a file with some text in it.")
    return text


def tiny_shakespeare() -> Path:
    """The path of Tiny Shakespeare, in $MINIGPT_DATA or in the user's cache.

    If it's in neither, it's downloaded into the cache once, completely or not at all.
    Raises FileNotFoundError if that fails.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigpt"
    given = Path(os.environ.get("MINIGPT_DATA") or cache)
    for path in (given / NAME, given / "input.txt", cache / NAME):
        if path.is_file():
            content = path.read_bytes().replace(b"\r\n", b"\n")
            if hashlib.sha256(content).hexdigest() == SHA256:
                return path
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(5)  # seconds
    try:
        cache.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(URL, str(cache / NAME), SHA256, progress=False)
    except (OSError, RuntimeError) as error:  # no network, or another file
        raise FileNotFoundError(
            f"Tiny Shakespeare is not in {given} and could not be downloaded "
            f"({error}). Connect to the network, or put the file {URL} there."
        ) from None
    finally:
        socket.setdefaulttimeout(before)
    return cache / NAME


class CharTokenizer:
    """Gives each different character of `text` a number, in sorted order."""

    def __init__(self, text: Iterable[str]) -> None:
        self.chars = "".join(sorted(set(text)))
        self.vocab_size = len(self.chars)
        self.id_of = {char: i for i, char in enumerate(self.chars)}

    def encode(self, text: str) -> list[int]:
        """str -> list[int]. Raises ValueError that lists the unknown characters."""
        unknown = sorted(set(text) - set(self.chars))
        if unknown:
            some, n = unknown[:9], len(unknown)
            raise ValueError(
                f"Not in the vocabulary: {some} ({n} unknown in all). "
                f"Its {self.vocab_size} characters end in {self.chars[-9:]!r}."
            )
        return [self.id_of[char] for char in text]

    def decode(self, ids: Sequence[int] | torch.Tensor) -> str:
        """list[int] or tensor (N,) -> str. Raises ValueError for unknown ids."""
        unknown = {int(i) for i in ids} - set(range(self.vocab_size))
        if unknown:
            raise ValueError(f"There are no tokens {sorted(unknown)} here.")
        return "".join(self.chars[i] for i in ids)

    def state(self) -> dict[str, str]:
        """What a checkpoint keeps. CharTokenizer(**state) makes the same tokenizer."""
        return {"text": self.chars}


def train_val_split(ids: Any, train_fraction: float = 0.9) -> tuple[Any, Any]:
    """Cut ids (N,) in two: a part to learn from, and the rest to test on."""
    n = int(train_fraction * len(ids))
    return ids[:n], ids[n:]


def get_batch(
    data: Any,
    batch_size: int,
    block_size: int,
    device: torch.device | str = "cpu",
    generator: torch.Generator | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Take random windows of data (N,): x (B, T), and y, which is x shifted by one.

    B is batch_size and T is block_size. Calls torch.randint exactly once.
    Raises ValueError if the data is too short for one window.
    """
    if len(data) <= block_size:
        raise ValueError(
            f"The data has {len(data)} tokens, but one window and its targets take "
            f"block_size + 1 = {block_size + 1}: use more text or a smaller block_size."
        )
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)
    positions = starts[:, None] + torch.arange(block_size)  # (B, T)
    x, y = data[positions], data[positions + 1]  # each (B, T)
    return x.to(device), y.to(device)
