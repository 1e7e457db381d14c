"""The exercises of lesson 13: pairs, losses per character, merges and cut bytes."""

import math

import torch

from minigpt.course.checks.exercise import exercise


@exercise(
    "13.1 Pairs that overlap",
    cases=[
        *[
            ([1, 2, 3],),
            ([7, 7, 7],),
            ([7, 7, 7, 7],),
            ([7, 7, 5, 7, 7],),
            ([5],),
            ([],),
        ],
        *[
            ([7, 7, 5, 7, 7, 7],),
            ([1, 2, 1, 2, 1],),
            ([1, 23, 12, 3, 12, 3, 1, 2, 31],),
        ],
    ],
    fresh=lambda: [(torch.randint(1, 3, (20,)).tolist(),) for _ in range(3)],
    hint="Join the pairs of the case above on paper, from the left.",
)
def count_pairs(ids: list[int]) -> dict[tuple[int, int], int]:
    """A function of a list that returns {(left, right): how many can be joined}."""
    counts, last = {}, None
    for pair in zip(ids, ids[1:]):
        if pair == last:  # its first id is in the last pair
            last = None
            continue
        counts[pair] = counts.get(pair, 0) + 1
        last = pair
    return counts


count_pairs.mistakes("""
You count overlapping pairs. In 7 7 7, the 7 in the middle is in two pairs, but only one
of them can be joined.
    pair == last -> False
In a row of equal ids you count only the first pair. After a pair that was skipped, the
next one counts again.
    last = None
                continue -> continue
You only count pairs side by side, as in ab|cd. But bc could be joined as well.
    pair == last -> last
""")
check_count_pairs = count_pairs.check


@exercise(
    "13.2 Nats per what?",
    cases=[
        (torch.tensor([3.0, 6.0]), [b"ab", b"c"]),
        (torch.tensor([2.0, 4.0, 6.0]), [b"a", b"b\xc3", b"\xa9a"]),  # abéa
        (torch.tensor([1.0, 2.0, 4.0, 5.0]), [b"\xc3", b"\xa9t\xc3\xa9", b"s", b"t"]),
    ],
    fresh=lambda: [
        (torch.randn(4).abs(), [b"aaa", b"b\xe2\x82", b"\xac", b"\xc3\xa9"]),
        (torch.randn(3).abs(), [b"\xf0\x9f", b"\x8e\xad", b"t"]),
    ],
    values=("nats per character", "bits per byte"),
    hint="For each of the two numbers: what is divided by what?",
)
def per_character(
    nats: torch.Tensor, tokens: list[bytes]
) -> tuple[torch.Tensor, torch.Tensor]:
    """A function of nats (N,) and N tokens: (nats per character, bits per byte)."""
    text = b"".join(tokens)
    characters = len(text.decode())
    return nats.sum() / characters, nats.sum() / len(text) / math.log(2)


per_character.mistakes("""
This is the loss per token. A model with longer tokens pays more for each of them, and
may still be better.
    nats.sum() / characters, -> nats.mean(),
These are nats per byte. An é is one character, but two bytes.
    len(text.decode()) -> len(text)
You decode each token by itself, so a character that is cut in two is lost or counts
twice.
    len(text.decode()) -> sum(len(t.decode("utf-8", "replace")) for t in tokens)
    or
    len(text.decode()) -> sum(len(t.decode("utf-8", "ignore")) for t in tokens)
""")
check_per_character = per_character.check

MERGES = [("b", "c"), ("a", "b"), ("bc", "d"), ("ab", "a"), ("a", "a")]
MERGES += [("aa", "a"), ("a", "bcd")]


@exercise(
    "13.3 Merges in the wrong order",
    cases=[
        ("abc", MERGES[:2]),
        ("bcd", [("b", "c"), ("c", "d")]),
        ("abc", [("b", "c"), ("a", "b"), ("ab", "c")]),  # a, bc: no ab, so no abc
        ("abaa", MERGES),
        ("abcdab", MERGES),
        ("aaaaa", MERGES),
        ("caabbaabcd", MERGES),
    ],
    fresh=lambda: [
        ("".join("abcd"[i] for i in torch.randint(4, (n,))), MERGES)
        for n in (6, 12, 20)
    ],
    hint="Take the first merge and go through the whole word. Then take the second.",
)
def encode(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """A function of a text and a list of pairs that returns a list of texts."""
    parts = list(word)
    for left, right in merges:
        i = 0
        while i < len(parts) - 1:
            if (parts[i], parts[i + 1]) == (left, right):
                parts[i : i + 2] = [left + right]
            i += 1
    return parts


def _leftmost(word: str, merges: list[tuple[str, str]]) -> list[str]:
    parts, i = list(word), 0
    while i < len(parts) - 1:
        if (parts[i], parts[i + 1]) in merges:
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            i = max(i - 1, 0)
        else:
            i += 1
    return parts


encode.wrong(
    "The bug is still there: a pair that was learned later is joined first.",
    _leftmost,
    untouched=True,
    hint="Which pair of a word should come first: the leftmost one, or another one?",
)
encode.mistakes("""
You make each merge only once. Make it wherever its pair occurs.
    [left + right] -> [left + right]; break
""")
check_encode = encode.check


def _cut() -> list[tuple]:
    told, cuts = "Où est 🎭 à 5 €?".encode(), torch.randint(1, 20, (6,)).tolist()
    places = [0, *sorted(cuts), len(told)]
    return [([told[a:b] for a, b in zip(places, places[1:])],)]


@exercise(
    "13.4 Bytes cut in two",
    cases=[
        *[([b"a", b"bc"],), ([b"caf", b"\xc3", b"\xa9!"],)],
        *[([b"\xf0\x9f", b"\x8e\xad\xf0", b"\x9f\x90\x9d"],)],
        *[([b"a\xff", b"b"],), ([b"caf", b"\xc3"],)],  # no text, or only half of one
    ],
    fresh=_cut,
    hint="Which are always complete: the bytes of a token, or the bytes of the text?",
)
def written(tokens: list[bytes]) -> str:
    """A function of a list of bytes that returns a text."""
    return b"".join(tokens).decode("utf-8", "replace")


written.mistakes("""
The bug is still there: if the bytes of a character are in two tokens, it's lost.
    return b"".join(tokens).decode("utf-8", "replace")
        -> parts = [token.decode("utf-8", "replace") for token in tokens]
        return "".join(parts)
    Hint: Which are always complete: the bytes of a token, or the bytes of the text?
Bytes that aren't UTF-8 vanish without a trace. "replace" shows � instead.
    "replace" -> "ignore"
This turns each byte into a character, so an é becomes two of them.
    "utf-8" -> "latin-1"
You lose what's still waiting at the end. If a text ends in the middle of a character,
it should end with �.
    return b"".join(tokens).decode("utf-8", "replace") -> import codecs
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        return "".join(map(decode, tokens))
""")
check_written = written.check
