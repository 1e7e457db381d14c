"""Lesson 01: from a text file to batches of token ids."""

from collections.abc import Sized

import torch

from minigpt.arguments import (
    at_least_one,
    check_device,
    check_generator,
    check_kind,
    must,
    number,
    shown,
)
from minigpt.tensors import INTEGERS, check_ids
from minigpt.texts import cache_folder as cache_folder
from minigpt.texts import find, pieces


def load_text(source="tinyshakespeare", substitute=True):
    """The corpus as one string: a known name, or a path to any UTF-8 text file.

    "tinyshakespeare" is looked for in the folder $MINIGPT_DATA, then in the
    user's cache; if it is in neither, it is downloaded into the cache once. If
    that fails too, "playwright" stands in for it, with a line that says so:
    1.1 million characters of a play that minigpt.playwright writes. With
    substitute=False nothing stands in: FileNotFoundError.
    In files a byte order mark is dropped and every line ending becomes "\\n".

    Raises FileNotFoundError if there is no such file, ValueError if it is empty
    or not UTF-8, OSError if it cannot be read.
    """
    path = find(source, substitute)
    return built_in() if path is None else "".join(pieces(path))


def built_in():
    """The text of "playwright"."""
    from minigpt.playwright import write_play  # lesson 07: only if it is needed

    return write_play(1_100_000).text


class CharTokenizer:
    """One integer for each distinct character of `text`, in sorted order.

    `chars` is the vocabulary, `vocab_size` its length. ValueError if it is empty.
    """

    def __init__(self, text):
        check_kind("The text", text, str, "a string")
        if not text:
            raise ValueError("The text is empty: it has no characters to number.")
        self.chars = "".join(sorted(set(text)))
        self.vocab_size = len(self.chars)
        self._id_of = {char: i for i, char in enumerate(self.chars)}

    def encode(self, text):
        """str -> list[int]. Raises ValueError that lists unknown characters."""
        check_kind("The text", text, str, "a string")
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
            if ids.is_meta:
                raise ValueError("The ids are on meta, without numbers: use the cpu.")
            if ids.dtype not in INTEGERS:
                raise TypeError(
                    f"The ids hold {ids.dtype}: ids are whole numbers, as encode gives "
                    "them."
                )
            if ids.dim() != 1:
                raise ValueError(
                    f"The ids have shape {tuple(ids.shape)}: decode one row of them, "
                    "for example ids[0]."
                )
            ids = ids.tolist()
        kinds = list, tuple, range
        check_kind("What to decode", ids, kinds, "a list of ids or a tensor of them")
        wrong = [i for i in ids if type(i) is not int]
        if wrong:
            raise TypeError(
                f"{shown(wrong[0])} is no id: ids are whole numbers, as encode gives "
                "them."
            )
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
    fine = 0 < number(train_fraction) < 1
    must("train_fraction", train_fraction, fine, "a number between 0 and 1")
    check_kind("ids", ids, Sized, "a tensor of ids (N,)")
    n = int(train_fraction * len(ids))
    return ids[:n], ids[n:]


def get_batch(data, batch_size, block_size, device="cpu", generator=None, rows=...):
    """Draw random windows: x (B, T) and the same shifted by one, y (B, T).

    data: (N,) of any integer type; B is batch_size, T is block_size. Draws exactly one
    torch.randint, from `generator` (a CPU one) or torch's global one, and gathers
    `rows` of the windows: all, or a slice of them, one worker's share (lesson 10).
    Raises ValueError if the data is too short for one window, or a size below 1.
    """
    at_least_one(batch_size=batch_size, block_size=block_size)
    check_window(data, block_size)
    try:
        starts = torch.randint(
            len(data) - block_size, (batch_size,), generator=generator
        )
        positions = (starts[rows][:, None] + torch.arange(block_size)).to(data.device)
        x, y = data[positions], data[positions + 1]  # (B, T), perhaps of fewer bytes
        return x.long().to(device), y.long().to(device)
    except (AssertionError, RuntimeError, TypeError):
        check_generator(generator)
        check_device(device)
        raise


def check_window(data, block_size):
    """Raise ValueError or TypeError unless data holds ids for one window, (N,)."""
    if not isinstance(data, torch.Tensor) or data.dim() != 1 or data.is_meta:
        check_ids("data", data, 1)
    if data.dtype not in INTEGERS:
        check_ids("data", data, 1)
    if len(data) <= block_size:
        raise ValueError(
            f"The data has {len(data)} tokens, but one window and its targets "
            f"take block_size + 1 = {block_size + 1}. "
            "Use a longer text or a smaller block_size."
        )
