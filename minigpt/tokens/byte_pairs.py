r"""Lesson 13: byte-pair encoding: tokens that are pieces of words, learned from a text.

Sources: Gage, A New Algorithm for Data Compression (1994); for words: Sennrich et al.,
Neural Machine Translation of Rare Words with Subword Units (2016), section 3.2; the
bytes and the cut at spaces: Radford et al., Language Models are Unsupervised Multitask
Learners (2019), section 2.2.

Text is cut the way GPT-2 cuts it, except for 1,135 characters of Unicode 14: numbers
that aren't decimal digits (`²`, `½`, `①`, `Ⅷ`) count as letters in Python's re but as
digits in GPT-2's \p{N}, and Python's re counts four control characters (\x1c to \x1f)
as spaces. The package `regex` knows \p{N}, but without it, a text would get different
tokens.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

LARGEST = 4096  # tokens: models as small as the course's can't use more
CUT = re.compile(  # GPT-2's, but Python's re doesn't know its \p{L} for letters
    r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
)


def pieces(text: str, cut: bool = True) -> Iterator[str]:
    """Yield the pieces of a text. Tokens are only joined within a piece. A piece is a
    word with the space before it, the way GPT-2 cuts them, or the whole text."""
    return (found[0] for found in CUT.finditer(text)) if cut else iter([text])


def merge(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """A list of tokens in which each `pair` of neighbors has become the token `new`.

    It goes from left to right: in `aaa`, it joins the first two.
    """
    out, i = [], 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out


def spelled(merges: Iterable[tuple[int, int]], alphabet: Iterable[int]) -> list[bytes]:
    """The bytes of each token: first those in `alphabet`, then what each merge joins.

    Raises ValueError for a merge of ids that don't exist yet.
    """
    vocabulary = [bytes([byte]) for byte in alphabet]
    for left, right in merges:
        if not 0 <= min(left, right) <= max(left, right) < len(vocabulary):
            raise ValueError(f"There are no tokens {left}, {right} yet.")
        vocabulary.append(vocabulary[left] + vocabulary[right])
    return vocabulary


def join(tokens: list[int], joined: dict[tuple[int, int], int]) -> list[int]:
    """A list of tokens after all merges. joined says what each pair becomes.

    If there are several pairs to join, the one that was learned first goes first.
    """
    while here := joined.keys() & set(zip(tokens, tokens[1:])):
        first = min(here, key=lambda pair: joined[pair])
        tokens = merge(tokens, first, joined[first])
    return tokens


@dataclass
class BytePairTokenizer:
    """One id for each byte of `alphabet`, then one for each merge (left, right).

    alphabet: byte values in rising order. Raises ValueError for a merge of ids that
    don't exist yet.
    """

    merges: list
    alphabet: list
    cut: bool = True  # at spaces, before joining anything

    def __post_init__(self) -> None:
        self.vocabulary = spelled(self.merges, self.alphabet)
        self.vocab_size = len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """str -> list[int], piece by piece.

        Raises a ValueError that lists the characters whose bytes aren't in `alphabet`.
        """
        refuse_unknown(text, self.alphabet)
        id_of = {byte: i for i, byte in enumerate(self.alphabet)}
        joined = {tuple(pair): len(id_of) + i for i, pair in enumerate(self.merges)}
        known, ids = {}, []
        for piece in pieces(text, self.cut):
            if piece not in known:  # each distinct piece is encoded once
                row = [id_of[byte] for byte in piece.encode("utf-8")]
                known[piece] = join(row, joined)
            ids += known[piece]
        return ids

    def decode(self, ids: Sequence[int] | torch.Tensor) -> str:
        """list[int] or tensor (N,) -> str. Bytes that aren't UTF-8 become "\ufffd".

        Raises ValueError for an unknown id.
        """
        refuse_ids(ids, self.vocab_size)
        return b"".join(self.vocabulary[i] for i in ids).decode("utf-8", "replace")

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps. BytePairTokenizer(**state) makes the same
        tokenizer."""
        return asdict(self)


def refuse_unknown(text: str, alphabet: Iterable[int]) -> None:
    """Raise ValueError that lists the characters whose bytes are not in `alphabet`."""
    unknown = []
    for c in sorted(set(text)):
        half = "\ud800" <= c <= "\udfff"  # of a character that no bytes stand for
        if half or set(c.encode()) - set(alphabet):
            unknown.append(c)
    if unknown:
        raise ValueError(
            f"Not in the vocabulary: {unknown[:9]} ({len(unknown)} unknown in all). "
            "The text it learned from doesn't have them."
        )


def refuse_ids(ids: Sequence[int] | torch.Tensor, vocab_size: int) -> None:
    """Raise a ValueError that lists the ids that aren't tokens."""
    unknown = sorted(set(map(int, ids)) - set(range(vocab_size)))
    if unknown:
        raise ValueError(f"There are no tokens {unknown}: ids end at {vocab_size - 1}.")


def first_bytes(
    text: str, vocab_size: int, alphabet: Iterable[int] | None = None
) -> list[int]:
    """The byte values, in rising order, that a vocabulary of this size starts with.

    Raises ValueError if there are fewer tokens than bytes, or if the text has
    characters whose bytes aren't in `alphabet`.
    """
    refuse_unknown(text, range(256) if alphabet is None else alphabet)
    alphabet = sorted(set(text.encode("utf-8")) if alphabet is None else alphabet)
    if not len(alphabet) <= vocab_size <= LARGEST:
        raise ValueError(
            f"{vocab_size} tokens: give at least {len(alphabet)}, at most {LARGEST}."
        )
    return alphabet


class Pairs:
    """How often each pair of tokens is next to each other in the pieces of a text.

    A text has few different pieces, so we keep each one once, with how often it occurs.
    rows: the tokens of each piece. found: how often each pair occurs.
    where: which pieces it occurs in.
    """

    def __init__(self, text: str, alphabet: Iterable[int], cut: bool = True) -> None:
        id_of = {byte: i for i, byte in enumerate(alphabet)}
        self.times, self.rows = Counter(pieces(text, cut)), {}
        self.found, self.where = Counter(), defaultdict(set)
        for piece in self.times:
            self.rows[piece] = [id_of[byte] for byte in piece.encode("utf-8")]
            self.count(piece, 1)

    def count(self, piece: str, sign: int) -> None:
        """Add the pairs of a piece, or with sign -1, remove them."""
        for pair in zip(self.rows[piece], self.rows[piece][1:]):
            self.found[pair] += sign * self.times[piece]
            self.where[pair].add(piece)

    def join(self, pair: tuple[int, int], new: int) -> None:
        """Make each such pair the token `new`."""
        for piece in self.where[pair]:  # no other pieces change
            self.count(piece, -1)
            self.rows[piece] = merge(self.rows[piece], pair, new)
            self.count(piece, 1)


def learn(
    text: str,
    vocab_size: int,
    cut: bool = True,
    alphabet: Iterable[int] | None = None,
    progress: Callable[[range], Iterable[int]] = iter,
) -> BytePairTokenizer:
    """A BytePairTokenizer of this size, from the most frequent pairs in a text.

    alphabet: byte values, by default those in the text. With range(256) it can read any
    text. If two pairs are equally frequent, the one with smaller ids comes first.
    progress: wraps the loop over the new tokens, like tqdm, to show how far it is.
    Raises ValueError if there are fewer tokens than bytes, if too few pairs in the text
    occur twice, or if the text has characters whose bytes aren't in `alphabet`.
    """
    alphabet = first_bytes(text, vocab_size, alphabet)
    pairs, merges = Pairs(text, alphabet, cut), []
    found = pairs.found
    for new in progress(range(len(alphabet), vocab_size)):
        most = max(found.values(), default=0)
        if most < 2:
            raise ValueError(
                f"The text is too short for {vocab_size} tokens. Use more text, or ask "
                f"for only {new}."
            )
        best = min(pair for pair in found if found[pair] == most)
        merges.append(best)
        pairs.join(best, new)
    return BytePairTokenizer(merges, alphabet, cut)
