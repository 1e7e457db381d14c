"""Lesson 11: how much of a text is its own: words that exist, and copies, letter by
letter, from the text that a model has read."""

import re

from minigpt.arguments import at_least_one, check_kind

WORD = re.compile(r"[A-Za-z']+")


def share_of_words(text, source):
    """The share of the words of `text` that occur as words in `source`, as written.

    Raises ValueError if the text has no word.
    """
    known, words = set(WORD.findall(source)), WORD.findall(text)
    if not words:
        raise ValueError("The text has no words: give a longer one.")
    return sum(word in known for word in words) / len(words)


def share_copied(text, source, n):
    """The share of the stretches of n characters of `text` that `source` has, too.

    Raises ValueError if the text is shorter than n.
    """
    at_least_one(n=n)
    check_kind("source", source, str, "the text that the model has read")
    if len(text) < n:
        raise ValueError(f"The text has {len(text)} characters: give {n} or more.")
    known = {source[i : i + n] for i in range(len(source) - n + 1)}
    starts = range(len(text) - n + 1)
    return sum(text[i : i + n] in known for i in starts) / len(starts)


def longest_copy(text, source):
    """The longest stretch of `text` that stands in `source`, letter by letter.

    The first one, if several are equally long; "" if they share no character.
    """
    best = ""
    for start in range(len(text)):
        longer = text[start : start + len(best) + 1]
        while len(longer) > len(best) and longer in source:
            best = longer
            longer = text[start : start + len(best) + 1]
    return best
