"""A text as ids, in the smallest integers that hold its vocabulary."""

import sys
import time
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch

from minigpt.data import CharTokenizer, read_text, tiny_shakespeare, train_val_split
from minigpt.tokens.byte_pairs import learn, pieces

PIECE = 2**20  # characters turned into ids at a time: their code points take memory


class Ids:
    """Ids (N,) in few bytes. A slice returns Ids; a tensor of places returns int64
    numbers."""

    def __init__(self, ids: torch.Tensor) -> None:
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, places: Any) -> Any:
        if isinstance(places, slice):
            return Ids(self.ids[places])
        return self.ids[places].long()

    def hash(self) -> str:
        """The SHA-256 of these ids, to recognize the text later."""
        return sha256(self.ids.numpy()).hexdigest()


class Corpus(NamedTuple):
    """A text as ids (N,), split in two, and its tokenizer."""

    train: torch.Tensor
    val: torch.Tensor
    tokenizer: CharTokenizer

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size


@cache
def corpus() -> Corpus:
    """Tiny Shakespeare as a Corpus. Raises FileNotFoundError if you can't get it. No
    other text takes its place."""
    tokenizer, ids = read_ids(tiny_shakespeare())
    return Corpus(*train_val_split(ids.ids.long()), tokenizer)


def read_ids(path: Path) -> tuple[CharTokenizer, Ids]:
    """(CharTokenizer(text), its Ids) of the text in a file, as load_text reads it."""
    text = read_text(path)
    tokenizer = CharTokenizer(text)
    V = tokenizer.vocab_size
    large = torch.int16 if V <= 2**15 else torch.int32
    id_of = torch.zeros(sys.maxunicode + 1, dtype=torch.uint8 if V <= 2**8 else large)
    id_of[[*map(ord, tokenizer.chars)]] = torch.arange(V).to(id_of.dtype)
    pieces = (text[i : i + PIECE] for i in range(0, len(text), PIECE))
    return tokenizer, Ids(torch.cat([id_of[codes(piece)] for piece in pieces]))


def read_tokens(path: Path, tokenizer: Any) -> tuple[Any, Ids, int]:
    """(a BytePairTokenizer, Ids, how many of them are the training text) of a file.

    tokenizer: a tokenizer, or a number of tokens. In that case, a new one learns its
    merges from the training text, the first nine tenths of the characters. Its alphabet
    has the bytes of the whole text. The whole text has to fit into memory.
    """
    text = read_text(path)
    learned, judged = train_val_split(text)
    if isinstance(tokenizer, int):
        longest = max(map(len, pieces(learned)), default=0)
        if longest >= 10_000:  # each merge goes through all of it
            say(f"{longest:,} characters in a row have no space: this takes a while.")
        alphabet = set(text.encode("utf-8"))
        tokenizer = learn(learned, tokenizer, alphabet=alphabet, progress=shown)
        if longest >= 10_000:
            say("The tokens are learned. Now the text is cut into them ...")
    ids = tokenizer.encode(learned)
    n = len(ids)
    ids += tokenizer.encode(judged)
    dtype = torch.int16 if tokenizer.vocab_size <= 2**15 else torch.int32
    return tokenizer, Ids(torch.tensor(ids, dtype=dtype)), n


def shown(tokens: range) -> Iterator[int]:
    """Yield the numbers of the tokens to learn, and every five seconds print the
    progress on stderr."""
    last = time.monotonic()
    for token in tokens:
        if time.monotonic() - last > 5:
            say(f"Learned {token:,} of {tokens.stop:,} tokens ...")
            last = time.monotonic()
        yield token


def say(words: str) -> None:
    """Tell whoever is waiting."""
    print(words, file=sys.stderr, flush=True)


def codes(text: str) -> torch.Tensor:
    """The code points of a text (N,), int32."""
    return torch.frombuffer(bytearray(text, "utf-32-le"), dtype=torch.int32)
