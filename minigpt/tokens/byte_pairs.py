r"""Lesson 13: byte-pair encoding: tokens that are pieces of words, learned from a text.

Sources: Sennrich et al., Neural Machine Translation of Rare Words with Subword Units
(2016), section 3.2; bytes below and the cut at spaces: Radford et al., Language Models
are Unsupervised Multitask Learners (2019), section 2.2.

Text is cut as GPT-2 cuts it, but for 1,135 characters of Unicode 14: numbers that are
no decimal digits (`²`, `½`, `①`, `Ⅷ`) count as letters in Python's re and as digits in
GPT-2's \p{N}, and four control characters (\x1c to \x1f) as spaces. The package `regex`
knows \p{N}, but with it a text would have other tokens where that package is missing.
"""

import re
from collections import Counter
from dataclasses import asdict, dataclass

import numpy as np

LARGEST = 4096  # tokens: to learn them, all pairs of two are counted in a table
CUT = re.compile(  # GPT-2's, but its \p{L} for letters is unknown to Python's re
    r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
)


def pieces(text, cut=True):
    """Yield the parts of a text across which nothing is joined: words, each with the
    space before it, as GPT-2 cuts them; or the whole text as one."""
    return (found[0] for found in CUT.finditer(text)) if cut else iter([text])


def laid_out(parts, alphabet):
    """Texts side by side: their ids before any merge (N,), their bytes' places in
    `alphabet`; and the number of each one's text (N,)."""
    data = [part.encode("utf-8") for part in parts]
    place = np.repeat(np.arange(len(data)), [len(part) for part in data])
    return np.searchsorted(alphabet, np.frombuffer(b"".join(data), np.uint8)), place


def apart(starts):
    """Of the rising places (n,) at which pairs begin, those that do not overlap: from
    a row of neighbours, as in `aaa`, every second one."""
    i = np.arange(len(starts))
    row_begins = np.diff(starts, prepend=-2) > 1
    return starts[(i - np.maximum.accumulate(np.where(row_begins, i, 0))) % 2 == 0]


def count_pairs(ids, place, times, size):
    """How often each pair of ids below `size` can be joined: (size * size,).

    ids, place: (N,), as laid out; times: how often each of the texts occurs.
    """
    at = np.flatnonzero(place[1:] == place[:-1])
    twins = ids[at] == ids[at + 1]
    at = np.append(at[~twins], apart(at[twins]))
    pairs = ids[at] * size + ids[at + 1]
    return np.bincount(pairs, times[place[at]], minlength=size * size or 1)


def joined(ids, place, left, right, new):
    """ids and place (N,) after each pair left, right has become the one id `new`."""
    hits = (ids[1:] == right) & (ids[:-1] == left) & (place[1:] == place[:-1])
    at, ids = apart(np.flatnonzero(hits)), ids.copy()
    ids[at] = new
    return np.delete(ids, at + 1), np.delete(place, at + 1)


@dataclass
class BytePairTokenizer:
    """One integer for each byte of `alphabet`, then one for each merge (left, right).

    alphabet: rising byte values. Raises ValueError for a merge of ids that there are
    not yet.
    """

    merges: list
    alphabet: list
    cut: bool = True  # at spaces, before anything is joined

    def __post_init__(self):
        self.vocabulary = [bytes([byte]) for byte in self.alphabet]
        for left, right in self.merges:
            if not 0 <= min(left, right) <= max(left, right) < len(self.vocabulary):
                raise ValueError(f"No tokens {left}, {right} yet.")
            self.vocabulary.append(self.vocabulary[left] + self.vocabulary[right])
        self.vocab_size = len(self.vocabulary)

    def encode(self, text):
        """str -> list[int]. The merges are made in their order, each wherever it can
        be, as GPT-2 joins the pair of the lowest rank first.

        Raises ValueError that lists the characters whose bytes are not in `alphabet`.
        """
        refuse_unknown(text, self.alphabet)
        order = list(pieces(text, self.cut))
        parts = list(set(order))  # each distinct piece is encoded once
        ids, place = laid_out(parts, self.alphabet)
        for new, pair in enumerate(self.merges, len(self.alphabet)):
            ids, place = joined(ids, place, *pair, new)
        ends = np.searchsorted(place, range(1, len(parts)))
        found = {part: row.tolist() for part, row in zip(parts, np.split(ids, ends))}
        return [i for piece in order for i in found[piece]]

    def decode(self, ids):
        """list[int] or tensor (N,) -> str; bytes that are no UTF-8 become "\ufffd".

        Raises ValueError for an id that is none.
        """
        unknown = sorted(set(map(int, ids)) - set(range(self.vocab_size)))
        if unknown:
            raise ValueError(f"No tokens {unknown}: ids end at {self.vocab_size - 1}.")
        return b"".join(self.vocabulary[i] for i in ids).decode("utf-8", "replace")

    def state(self):
        """What a checkpoint keeps: BytePairTokenizer(**state) is this one again."""
        return asdict(self)


def refuse_unknown(text, alphabet):
    """Raise ValueError that lists the characters whose bytes are not in `alphabet`."""
    unknown = []
    for c in sorted(set(text)):
        half = "\ud800" <= c <= "\udfff"  # of a character: no bytes stand for it
        if half or set(c.encode()) - set(alphabet):
            unknown.append(c)
    if unknown:
        raise ValueError(f"The vocabulary has no {unknown}: its text had none.")


def learn(text, vocab_size, cut=True, alphabet=None):
    """A BytePairTokenizer of so many tokens, from the pairs that a text joins most.

    alphabet: byte values, by default those that the text has; range(256) reads any
    text. Of equally frequent pairs the one of smaller ids comes first.
    Raises ValueError if there are fewer tokens than bytes, or the text has not enough
    pairs that occur twice, or characters whose bytes are not in `alphabet`.
    """
    refuse_unknown(text, range(256) if alphabet is None else alphabet)
    alphabet = sorted(set(text.encode("utf-8")) if alphabet is None else alphabet)
    if not len(alphabet) <= vocab_size <= LARGEST:
        raise ValueError(
            f"{vocab_size} tokens: give at least {len(alphabet)}, at most {LARGEST}."
        )
    counts, merges = Counter(pieces(text, cut)), []
    times = np.array(list(counts.values()))
    ids, place = laid_out(counts, alphabet)
    for new in range(len(alphabet), vocab_size):
        found = count_pairs(ids, place, times, new)
        best = int(found.argmax())
        if found[best] < 2:
            raise ValueError(
                f"Too short for {vocab_size} tokens: use more text, or ask for {new}."
            )
        merges.append(divmod(best, new))
        ids, place = joined(ids, place, *merges[-1], new)
    return BytePairTokenizer(merges, alphabet, cut)
