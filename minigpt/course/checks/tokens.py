"""Checks for notebook 13: pairs, losses per character, merges, and bytes."""

import codecs
import random

from minigpt.course.checks.core import Sign, compare, exercise
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import randn


@exercise("13.1 A letter is in one pair only")
def check_count_pairs(count_pairs):
    """count_pairs(ids): a list -> {(left, right): how many of them can be joined}."""
    cases = [([1, 2, 3],), ([7, 7, 7],), ([7, 7, 7, 7],), ([1, 2, 1, 2, 1],), ([5],)]
    cases += [(random.Random(n).choices([1, 2], k=20),) for n in range(3)]
    hint = "zip(ids, ids[1:]) has all neighbours. When is the first one used already?"
    compare(count_pairs, Solution("13.1"), cases, hint=hint)
    return "8 lists: rows of equal ids, pairs that come back, a single id."


@exercise("13.2 Nats per what?")
def check_per_character(per_character):
    """per_character(nats (N,), tokens) -> (nats per character, bits per byte)."""
    texts = [
        [b"a", b"b", b"cd"],
        ["é".encode(), b"t"],
        [b"\xc3", b"\xa9t\xc3\xa9", b"s"],
    ]
    cases = [
        (randn(len(tokens), seed=n).abs(), tokens) for n, tokens in enumerate(texts)
    ]
    hint = (
        "Add up all nats first. By what are they divided? b''.join(tokens) is the text."
    )
    parts = ("nats per character", "bits per byte")
    compare(per_character, Solution("13.2"), cases, parts=parts, hint=hint)
    return "3 texts: tokens of several letters, letters of several bytes, and both."


def _leftmost(word, merges):
    """Joins whatever can be joined first in the word."""
    parts, i = list(word), 0
    while i < len(parts) - 1:
        if (parts[i], parts[i + 1]) in merges:
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            i = max(i - 1, 0)
        else:
            i += 1
    return parts


def _longest(word, merges):
    """Takes the longest piece at each place, as WordPiece does."""
    known, parts = {left + right for left, right in merges}, []
    while word:
        n = max(k for k in range(1, len(word) + 1) if k == 1 or word[:k] in known)
        parts.append(word[:n])
        word = word[n:]
    return parts


@exercise("13.3 Merges in the wrong order")
def check_encode(encode):
    """encode(word, merges): a text, a list of pairs of texts -> a list of texts."""
    merges = [("b", "c"), ("a", "b"), ("bc", "d"), ("ab", "a"), ("a", "a")]
    merges += [("aa", "a"), ("a", "bcd")]
    words = ["abc", "bcd", "aba", "abaa", "aaaaa", "abcdab", "caabbaabcd"]
    known = {
        "The bug is still there: it joins the pair that stands first in the word.": (
            _leftmost,
            "Which pair of a word comes first: the leftmost, or the one learned first?",
        ),
        "At each place this takes the longest piece that it knows. That is another "
        "tokenizer (WordPiece): byte pairs join in the order of the merges.": _longest,
    }
    known[
        "The end of the word is lost: what is left when nothing more can be joined "
        "belongs to the list, too."
    ] = Sign(
        lambda got, _, word, *rest: (
            len("".join(got)) < len(word) and word.startswith("".join(got))
        )
    )
    hint = "Go through the merges in their order, and for each through the word."
    cases = [(word, merges) for word in words]
    compare(encode, Solution("13.3"), cases, known, hint=hint)
    return "7 words, in which several pairs could be first."


@exercise("13.4 Bytes cut in two")
def check_written(written):
    """written(tokens): a list of bytes -> a str."""
    cases = [([b"a", b"bc"],), ([b"caf", b"\xc3", b"\xa9!"],)]
    cases += [([b"\xf0\x9f", b"\x8e\xad\xf0", b"\x9f\x90\x9d"],), ([b"a\xff", b"b"],)]
    decoder = codecs.getincrementaldecoder("utf-8")
    known = {
        "A decoder made anew for each token has forgotten the half character that the "
        "token before it left.": lambda tokens: "".join(
            decoder("replace").decode(token) for token in tokens
        )
    }
    hint = "A character may begin in one token and end in the next: join first."
    compare(written, Solution("13.4"), cases, known, hint=hint)
    return "4 texts: whole characters, cut ones, and bytes that are none."
