"""Checks for notebook 13: pairs, losses per character, merges, and bytes."""

import codecs
import random
from typing import Any

from minigpt.course.checks.core import compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import randn

COUNT_PAIRS = Solution(
    """
def count_pairs(ids):
    counts, last = {}, None
    for pair in zip(ids, ids[1:]):
        if pair == last:  # its first letter is in the pair before
            last = None
            continue
        counts[pair] = counts.get(pair, 0) + 1
        last = pair
    return counts
""",
    Mistake(
        "Behind a pair of equal ids you skip two places, and the pair that begins "
        "with the second of them is lost.",
        [
            (
                "for pair in zip(ids, ids[1:]):",
                "skip = False\n    for pair in zip(ids, ids[1:]):",
            ),
            ("if pair == last:", "if skip:"),
            ("            last = None\n", "            skip = False\n"),
            ("last = pair", "skip = pair[0] == pair[1]"),
        ],
    ),
    Mistake(
        "The pairs are looked for in a text of all digits: 1, 23 and 12, 3 look "
        "alike there.",
        [
            (
                "return counts",
                "s = ''.join(map(str, ids))\n    return {(a, b): s.count(f'{a}{b}') "
                "for a, b in counts}",
            )
        ],
    ),
    Mistake(
        "Overlaps are counted: in `7 7 7` the one in the middle is in both "
        "pairs, and only one of them can be joined.",
        [("pair == last", "False")],
        hint="How many pairs can be joined in `7 7 7`, and how many in `7 7 7 7`?",
    ),
    Mistake(
        "Of a row of equal ids only the first pair is counted; after one that "
        "was skipped, forget what came before.",
        [("last = None", "pass")],
    ),
    Mistake(
        "Pairs of two equal ids are left out altogether; one of them can be joined.",
        [("pair == last", "pair[0] == pair[1]")],
    ),
    Mistake(
        "Only pairs side by side are counted, as in `ab|cd`: `bc` could be "
        "joined as well.",
        [("pair == last", "last")],
    ),
    Mistake(
        "You halve all pairs of a letter at once; each row of equal ids has its"
        " own half.",
        [
            ("pair == last", "False"),
            (
                "return counts",
                "return {p: (n + 1) // 2 if p[0] == p[1] else n for p, n in "
                "counts.items()}",
            ),
        ],
    ),
    Mistake(
        "Half of an odd number is rounded down: a single `7 7` can be "
        "joined once, and three 7s once, too.",
        [
            ("pair == last", "False"),
            (
                "return counts",
                "return {p: n // 2 if p[0] == p[1] else n for p, n in counts.items()}",
            ),
        ],
    ),
    Mistake(
        "The last pair is missing: does your loop end one too early?",
        [
            ("zip(ids, ids[1:])", "zip(ids[:-1], ids[1:-1])"),
        ],
    ),
    Mistake(
        "You count pairs at any distance; only neighbours can be joined.",
        [
            (
                "zip(ids, ids[1:])",
                "((a, b) for i, a in enumerate(ids) for b in ids[i + 1 :])",
            ),
            ("pair == last", "False"),
        ],
    ),
    Mistake(
        "Pairs are looked for among digits: `1, 2` stands in `31, 23`, "
        "too. Compare whole ids.",
        [
            (
                "return counts",
                (
                    "s = ', '.join(map(str, ids))\n"
                    "    return {(a, b): s.count(f'{a}, {b}') for a, b in counts}"
                ),
            ),
        ],
    ),
    Mistake(
        "The order in a pair is lost: (1, 2) and (2, 1) are two pairs.",
        [
            (
                "counts[pair] = counts.get(pair, 0) + 1",
                (
                    "key = tuple(sorted(pair))\n"
                    "        counts[key] = counts.get(key, 0) + 1"
                ),
            ),
        ],
    ),
    Mistake(
        "The last id makes a pair with the first one; a list is no circle.",
        [
            ("zip(ids, ids[1:])", "zip(ids, ids[1:] + ids[:1])"),
        ],
    ),
)


@exercise("13.1 Pairs that overlap", COUNT_PAIRS)
def check_count_pairs(count_pairs: Any) -> str:
    """count_pairs(ids): a list -> {(left, right): how many of them can be joined}."""
    cases = [([1, 2, 3],), ([7, 7, 7],), ([7, 7, 7, 7],), ([1, 2, 1, 2, 1],), ([5],)]
    cases += [(random.Random(n).choices([1, 2], k=20),) for n in range(3)]
    cases += [([1, 23, 12, 3, 12, 3, 1, 2, 31, 23],), ([],)]
    known = [
        Mistake(
            "The keys of your dictionary are no pairs; wanted are tuples, "
            "(left, right).",
            sign=lambda got, *_: (
                isinstance(got, dict)
                and any(not isinstance(key, tuple) or len(key) != 2 for key in got)
            ),
        ),
    ]
    hint = "Join the pair on paper, from the left: how many can be joined?"
    compare(count_pairs, COUNT_PAIRS, cases, known, hint=hint)
    return "10 lists: rows of equal ids, pairs that come back, a single id, none."


PER_CHARACTER = Solution(
    """
def per_character(nats, tokens):
    text = b"".join(tokens)
    characters = len(text.decode())
    return nats.sum() / characters, nats.sum() / len(text) / math.log(2)
""",
    Mistake(
        "Each token is decoded by itself: a character cut in two does not count at "
        "all.",
        [
            (
                "len(text.decode())",
                'sum(len(t.decode("utf-8", "ignore")) for t in tokens)',
            )
        ],
    ),
    Mistake(
        "This is the loss per token: who has longer tokens has a higher one, "
        "and may be better all the same.",
        [("nats.sum() / characters,", "nats.mean(),")],
    ),
    Mistake(
        "Each token is decoded by itself: a character cut in two counts twice.",
        [
            (
                "len(text.decode())",
                'sum(len(t.decode("utf-8", "replace")) for t in tokens)',
            )
        ],
    ),
    Mistake(
        "These are nats per byte: an é is one character, and two bytes.",
        [("len(text.decode())", "len(text)")],
    ),
    Mistake("These are nats; one bit is ln 2 of them.", [(" / math.log(2)", "")]),
    Mistake(
        "The wrong way round: a bit is less than a nat, so there are more of them.",
        [("/ math.log(2)", "* math.log(2)")],
    ),
    Mistake(
        "These are bits per character: the text has more bytes than characters.",
        [("nats.sum() / len(text)", "nats.sum() / characters")],
    ),
    Mistake(
        "These are bits per token: the loss that the field reports is per byte.",
        [("nats.sum() / len(text)", "nats.mean()")],
    ),
    Mistake(
        "You average the tokens' own rates: a short token would count as much "
        "as a long one.",
        [
            (
                "nats.sum() / len(text)",
                "(nats / nats.new_tensor([len(t) for t in tokens])).mean()",
            )
        ],
    ),
    Mistake(
        "You average the tokens' own rates: add up all nats, then divide once.",
        [
            (
                "nats.sum() / characters,",
                '(nats / nats.new_tensor([len(t.decode("utf-8", "ignore")) for t in '
                "tokens])).mean(),",
            )
        ],
    ),
    Mistake(
        "You take the logarithm of a number of nats. Nats are a "
        "logarithm already; one bit is ln 2 of them, so divide.",
        [
            ("nats.sum() / len(text) / math.log(2)", "nats.sum().log2() / len(text)"),
        ],
    ),
    Mistake(
        "You divide by the number of different characters; wanted is "
        "the length of the text.",
        [
            ("len(text.decode())", "len(set(text.decode()))"),
        ],
    ),
    Mistake(
        "That is e to the power of the loss, the perplexity; wanted are nats.",
        [
            ("nats.sum() / characters,", "(nats.sum() / characters).exp(),"),
        ],
    ),
    Mistake(
        "A byte has eight bits in memory, but these bits measure "
        "surprise: do not divide by 8.",
        [
            ("/ math.log(2)", "/ math.log(2) / 8"),
        ],
    ),
    Mistake(
        "The two results have changed places.",
        [
            (
                "return nats.sum() / characters, nats.sum() / len(text) / math.log(2)",
                "return nats.sum() / len(text) / math.log(2), nats.sum() / characters",
            ),
        ],
    ),
    Mistake(
        "The mean over the tokens is divided once more: on top belongs "
        "the sum of all nats.",
        [
            ("nats.sum()", "nats.mean()"),
        ],
    ),
    Mistake(
        "The mean over the tokens is divided by the number of "
        "characters; on top belongs the sum of all nats.",
        [
            ("nats.sum() / characters", "nats.mean() / characters"),
        ],
    ),
    Mistake(
        "These are bits per character, too; the first number should be in nats.",
        [
            ("nats.sum() / characters,", "nats.sum() / characters / math.log(2),"),
        ],
    ),
    Mistake(
        "You average the tokens' own rates: add up all nats, then divide once.",
        [
            (
                "nats.sum() / characters",
                (
                    "(nats / nats.new_tensor([len(t) for t in tokens])).mean() * "
                    "len(text) / characters"
                ),
            ),
            (
                "nats.sum() / len(text)",
                "(nats / nats.new_tensor([len(t) for t in tokens])).mean()",
            ),
        ],
    ),
    Mistake(
        "You average the tokens' own rates: add up all nats, then divide once.",
        [
            (
                "nats.sum() / characters",
                "(nats / nats.new_tensor([len(t) for t in tokens])).mean()",
            ),
            (
                "nats.sum() / len(text)",
                "(nats / nats.new_tensor([len(t) for t in tokens])).mean()",
            ),
        ],
    ),
    Mistake(
        "str of bytes is how Python prints them, with b'…' around; "
        ".decode() makes the text of them.",
        [
            ("len(text.decode())", "len(str(text))"),
        ],
    ),
)


@exercise("13.2 Nats per what?", PER_CHARACTER)
def check_per_character(per_character: Any) -> str:
    """per_character(nats (N,), tokens) -> (nats per character, bits per byte)."""
    texts = [
        [b"a", b"b", b"cd"],
        ["é".encode(), b"t"],
        [b"\xc3", b"\xa9t\xc3\xa9", b"s"],
        [b"aaa", b"b\xe2\x82", b"\xac"],
    ]
    cases = [
        (randn(len(tokens), seed=n).abs(), tokens) for n, tokens in enumerate(texts)
    ]
    hint = (
        "Add up all nats first. By what are they divided? b''.join(tokens) is the text."
    )
    value_names = ("nats per character", "bits per byte")
    compare(per_character, PER_CHARACTER, cases, value_names=value_names, hint=hint)
    return "4 texts: tokens of several letters, letters of several bytes, and both."


def _leftmost(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """Joins whatever can be joined first in the word."""
    parts, i = list(word), 0
    while i < len(parts) - 1:
        if (parts[i], parts[i + 1]) in merges:
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            i = max(i - 1, 0)
        else:
            i += 1
    return parts


def _longest(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """Takes the longest piece at each place, as WordPiece does."""
    known, parts = {left + right for left, right in merges}, []
    while word:
        n = max(k for k in range(1, len(word) + 1) if k == 1 or word[:k] in known)
        parts.append(word[:n])
        word = word[n:]
    return parts


def _spaced(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """Replaces in one text with marks between the pieces."""
    text = "\0".join(word)
    for left, right in merges:
        text = text.replace(f"{left}\0{right}", left + right)
    return text.split("\0")


ENCODE = Solution(
    """
def encode(word, merges):
    parts = list(word)
    for left, right in merges:
        i = 0
        while i < len(parts) - 1:
            if (parts[i], parts[i + 1]) == (left, right):
                parts[i : i + 2] = [left + right]
            i += 1
    return parts
""",
    Mistake(
        "The merges are made from the last to the first: longer pieces wait for"
        " shorter ones that are not there yet.",
        [("in merges", "in merges[::-1]")],
    ),
    Mistake(
        "Each merge is made once only; it should be made wherever its pair stands.",
        [("[left + right]", "[left + right]; break")],
    ),
    Mistake(
        "The merges are made in the order of their letters; wanted is the order in "
        "which they were learned.",
        [
            ("in merges", "in sorted(merges)"),
        ],
    ),
    Mistake(
        "Only one merge is made; go on as long as a pair of the list stands side "
        "by side.",
        [("= [left + right]", "= [left + right]; return parts")],
    ),
    Mistake(
        "Each merge is made from the right; where letters repeat, the "
        "tokenizer begins at the left.",
        [
            ("i = 0", "i = len(parts) - 2"),
            ("while i < len(parts) - 1:", "while i >= 0:"),
            ("if (parts[i]", "if i < len(parts) - 1 and (parts[i]"),
            ("i += 1", "i -= 1"),
        ],
    ),
    Mistake(
        "You join whatever adds up to the same letters, also from "
        "other pieces: compare the pair, not the text.",
        [
            (
                "(parts[i], parts[i + 1]) == (left, right)",
                "parts[i] + parts[i + 1] == left + right",
            ),
        ],
    ),
    Mistake(
        "The pieces come back joined, as the word itself; wanted is "
        "the list of pieces.",
        [
            ("return parts", 'return "".join(parts)'),
        ],
    ),
    Mistake(
        "Of all pairs that stand there, you make the one that was "
        "learned last; the one that was learned first comes first.",
        [
            (
                ("    for left, right in merges:\n        i = 0\n"),
                "    while True:\n"
                "        there = [merges.index(p) for p in zip(parts, "
                "parts[1:]) if p in merges]\n"
                "        if not there: return parts\n"
                "        left, right = merges[max(there)]\n"
                "        i = 0\n",
            ),
        ],
    ),
    Mistake(
        "The merges are made in the order of their lengths, the longest first; wanted "
        "is the order in which they were learned.",
        [
            ("in merges", "in sorted(merges, key=lambda m: -len(m[0] + m[1]))"),
        ],
    ),
    Mistake(
        "The merges are made in the order of their lengths, the shortest first; wanted "
        "is the order in which they were learned.",
        [
            ("in merges", "in sorted(merges, key=lambda m: len(m[0] + m[1]))"),
        ],
    ),
)


@exercise("13.3 Merges in the wrong order", ENCODE)
def check_encode(encode: Any) -> str:
    """encode(word, merges): a text, a list of pairs of texts -> a list of texts."""
    merges = [("b", "c"), ("a", "b"), ("bc", "d"), ("ab", "a"), ("a", "a")]
    merges += [("aa", "a"), ("a", "bcd")]
    words = ["abc", "bcd", "aba", "abaa", "aaaaa", "abcdab", "caabbaabcd"]
    known = [
        Mistake(
            "The bug is still there: a pair that was learned later is joined first. "
            "Neither its place in the word nor its length decides.",
            program=_leftmost,
            untouched=True,
            hint="Which pair of a word comes first: the leftmost, the longest, or the "
            "one learned first?",
        ),
        Mistake(
            "At each place this takes the longest piece that it knows. That is another "
            "tokenizer (WordPiece): byte pairs join in the order of the merges.",
            program=_longest,
        ),
        Mistake(
            "A piece is joined with a part of another one: in a text of all pieces, "
            "replace finds `a` and `b` also where the piece is `bc`.",
            program=_spaced,
            hint="Compare whole pieces: parts[i] with left, parts[i + 1] with right.",
        ),
    ]
    lost = Mistake(
        "The end of the word is lost: what is left when nothing more can be joined "
        "belongs to the list, too.",
        sign=lambda got, _, word, *rest: (
            len("".join(got)) < len(word) and word.startswith("".join(got))
        ),
    )
    hint = "Take the word's pieces on paper: which are there after each merge?"
    cases = [(word, merges) for word in words]
    cases.append(("bcd", [("b", "c"), ("c", "d")]))
    cases.append(("abc", [("b", "c"), ("a", "b"), ("ab", "c")]))  # a, bc: no ab, c
    compare(encode, ENCODE, cases, [*known, lost], hint=hint)
    return "9 words, in which several pairs could be first."


def _never_ended(tokens: list[bytes]) -> str:
    """Decodes by one decoder, which waits for more at the end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return "".join(decoder.decode(token) for token in tokens)


WRITTEN = Solution(
    """
def written(tokens):
    return b"".join(tokens).decode("utf-8", "replace")
""",
    Mistake(
        "A token that is no whole text becomes one sign; its bytes may be halves of "
        "characters.",
        [
            (
                'b"".join(tokens).decode("utf-8", "replace")',
                '"".join(t.decode() if t.decode("utf-8", "ignore").encode() == t else '
                '"?" for t in tokens)',
            )
        ],
    ),
    Mistake(
        "The bug is still there: a character whose bytes are in two tokens is lost.",
        [
            (
                'return b"".join(tokens).decode("utf-8", "replace")',
                'parts = [token.decode("utf-8", "replace") for token in tokens]\n'
                '    return "".join(parts)',
            )
        ],
        hint="Which is whole: the bytes of a token, or the bytes of the text?",
        untouched=True,
    ),
    Mistake(
        "Each token is still decoded by itself: the halves of a character now vanish.",
        [
            (
                'b"".join(tokens).decode("utf-8", "replace")',
                '"".join(t.decode("utf-8", "ignore") for t in tokens)',
            )
        ],
    ),
    Mistake(
        'Bytes that are no UTF-8 vanish without a trace. "replace" shows a � in'
        " their place.",
        [('"replace"', '"ignore"')],
    ),
    Mistake(
        "That gives each byte a character of its own: two of them for an é.",
        [('"utf-8"', '"latin-1"')],
    ),
    Mistake(
        "A cut character waits for one more token only; it may need two or three.",
        [
            (
                'return b"".join(tokens).decode("utf-8", "replace")',
                'out, held = "", b""\n'
                "    for token in tokens:\n"
                "        got = held + token\n"
                "        try:\n"
                '            out, held = out + got.decode(), b""\n'
                "        except UnicodeDecodeError:\n"
                '            out, held = (out + got.decode("utf-8", "replace"), b"") if'
                " held else (out, got)\n"
                '    return out + held.decode("utf-8", "replace")',
            )
        ],
    ),
    Mistake(
        "What was shown is shown again: empty the buffer once it could be decoded.",
        [
            (
                'return b"".join(tokens).decode("utf-8", "replace")',
                'out, held = "", b""\n'
                "    for token in tokens:\n"
                "        held += token\n"
                "        try:\n"
                "            out += held.decode()\n"
                "        except UnicodeDecodeError:\n"
                "            pass\n"
                "    return out",
            )
        ],
    ),
    Mistake(
        "Each byte is read by itself, as ASCII would: an é has two of them.",
        [
            (
                'b"".join(tokens).decode("utf-8", "replace")',
                '"".join(bytes([b]).decode("utf-8", "replace") for b in '
                'b"".join(tokens))',
            )
        ],
    ),
    Mistake(
        "Two tokens are decoded together; a character may be cut "
        "between any two tokens, and into more than two pieces.",
        [
            (
                'return b"".join(tokens).decode("utf-8", "replace")',
                'return "".join(b"".join(tokens[i : i + 2]).decode("utf-8", '
                '"replace") for i in range(0, len(tokens), 2))',
            ),
        ],
    ),
    Mistake(
        "What waits at the end is lost: a text that ends in the middle "
        "of a character ends with �.",
        [
            (
                'return b"".join(tokens).decode("utf-8", "replace")',
                'out, rest = "", b""\n'
                "    for token in tokens:\n"
                "        rest += token\n"
                '        try: out, rest = out + rest.decode(), b""\n'
                "        except UnicodeDecodeError: pass\n"
                "    return out",
            ),
        ],
    ),
)


@exercise("13.4 Bytes cut in two", WRITTEN)
def check_written(written: Any) -> str:
    """written(tokens): a list of bytes -> a str."""
    cases = [([b"a", b"bc"],), ([b"caf", b"\xc3", b"\xa9!"],)]
    cases += [([b"\xf0\x9f", b"\x8e\xad\xf0", b"\x9f\x90\x9d"],), ([b"a\xff", b"b"],)]
    cases.append(([b"caf", b"\xc3"],))  # it ends in the middle of a character
    decoder = codecs.getincrementaldecoder("utf-8")
    known = [
        Mistake(
            "A decoder made anew for each token has forgotten the half character "
            "that the "
            "token before it left.",
            program=lambda tokens: "".join(
                decoder("replace").decode(token) for token in tokens
            ),
        ),
        Mistake(
            "What waits at the end is lost: a text that ends in the middle of a "
            "character ends with �.",
            program=_never_ended,
            hint="A decoder must be told of the end: decode(b'', final=True).",
        ),
    ]
    hint = "A character may begin in one token and end in the next: join first."
    compare(written, WRITTEN, cases, known, hint=hint)
    return "5 texts: whole characters, cut ones, and bytes that are none."
