"""Lesson 14: GPT-2's tokenizer: lesson 13's, plus its files and its special tokens.

Sources: Radford et al. (2019), section 2.2; for the files, OpenAI's encoder.py.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import groupby
from pathlib import Path
from typing import Any

from minigpt.data import CharTokenizer
from minigpt.files import write_whole
from minigpt.require import require
from minigpt.tokens.byte_pairs import BytePairTokenizer, refuse_unknown

SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]  # these are printable
HIDDEN = [byte for byte in range(256) if byte not in SHOWN]
LETTER = {byte: chr(byte) for byte in SHOWN}  # how GPT-2's files write a byte
LETTER |= {byte: chr(256 + n) for n, byte in enumerate(HIDDEN)}
BYTE = {letter: byte for byte, letter in LETTER.items()}
SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
PLAIN = {  # what a tokenizer's file may ask for, and which values change nothing
    **dict.fromkeys(["normalizer", "pre_tokenizer", "post_processor"], (None,)),
    **dict.fromkeys(["add_prefix_space", "add_bos_token"], (None, False)),
    **dict.fromkeys(["add_eos_token", "do_lower_case"], (None, False)),
    **dict.fromkeys(["byte_fallback", "ignore_merges"], (None, False)),
    **dict.fromkeys(["continuing_subword_prefix", "end_of_word_suffix"], (None, "")),
    "dropout": (None, 0),
    "use_regex": (None, True),
}
KEPT = 100_000  # how many pieces we remember the tokens of


@dataclass
class GPT2Tokenizer(BytePairTokenizer):
    """A BytePairTokenizer that's fast, cuts text exactly like GPT-2, and has special
    tokens after all the others.

    special: texts like "<|endoftext|>". Each is one token wherever it appears.
    """

    special: list = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        start = len(self.alphabet)
        self.id_of = {byte: i for i, byte in enumerate(self.alphabet)}
        self.joined = {tuple(pair): start + i for i, pair in enumerate(self.merges)}
        self.known = {}  # {piece: its ids}
        self.special_id = {t: self.vocab_size + i for i, t in enumerate(self.special)}
        self.vocabulary += [text.encode("utf-8") for text in self.special]
        self.vocab_size = len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Like BytePairTokenizer: str -> list[int], and it raises the same
        ValueError."""
        ids = []
        for i, part in enumerate(split(text, self.special)):
            if i % 2:
                ids.append(self.special_id[part])
                continue
            refuse_unknown(part, self.alphabet)
            for piece in gpt2_cut().findall(part) if self.cut else [part]:
                if piece not in self.known:
                    if len(self.known) >= KEPT:
                        self.known.clear()
                    row = [self.id_of[byte] for byte in piece.encode("utf-8")]
                    self.known[piece] = join(row, self.joined)
                ids += self.known[piece]
        return ids


def split(text: str, special: Sequence[str]) -> list[str]:
    """The parts of a text and the special tokens between them. Every second one is a
    special token."""
    if not special:
        return [text]
    longest = sorted(special, key=len, reverse=True)  # if two begin the same way
    return re.split("(" + "|".join(map(re.escape, longest)) + ")", text)


def join(row: list, joined: dict) -> list[int]:
    """A list of tokens after all merges, smaller ids first. It equals a loop over
    lesson 13's `merge`, but takes n log n steps instead of n².

    joined: {(left, right): their token}. Pairs that may be joined wait in a heap. If a
    pair's neighbors have changed in the meantime, it's skipped.
    """
    row, n = list(row), len(row)
    before, after = list(range(-1, n - 1)), list(range(1, n + 1))  # the neighbors
    pairs = enumerate(zip(row, row[1:]))
    waiting = [(joined[pair], i) for i, pair in pairs if pair in joined]
    heapify(waiting)
    while waiting:
        new, i = heappop(waiting)
        j = after[i]
        if row[i] is None or j == n or joined.get((row[i], row[j])) != new:
            continue
        row[i], row[j] = new, None
        after[i] = after[j]
        if after[i] < n:
            before[after[i]] = i
        for left, right in (before[i], i), (i, after[i]):
            pair = (row[left], row[right]) if left >= 0 and right < n else None
            if pair in joined:
                heappush(waiting, (joined[pair], left))
    return [token for token in row if token is not None]


@cache
def gpt2_cut() -> re.Pattern[str]:
    r"""GPT-2's regular expression, compiled. Python's re doesn't know \p{L} and \p{N},
    so we write out the characters that Unicode puts there."""
    characters = map(chr, range(sys.maxunicode + 1))
    ranges = {"L": "", "N": ""}
    for kind, group in groupby(characters, lambda c: unicodedata.category(c)[0]):
        if kind in ranges:
            first, *rest = group
            ranges[kind] += f"{first}-{rest[-1]}" if rest else first
    letters, numbers = ranges.values()
    return re.compile(
        f"'(?:[sdmt]|ll|ve|re)| ?[{letters}]+| ?[{numbers}]+"
        f"| ?[^{SPACES}{letters}{numbers}]+|[{SPACES}]+(?![^{SPACES}])|[{SPACES}]+"
    )


def as_gpt2_tokenizer(tokenizer: Any) -> GPT2Tokenizer:
    """One of the course's tokenizers as a GPT2Tokenizer with the same ids.

    Raises ValueError for one that GPT-2's files can't describe.
    """
    if isinstance(tokenizer, GPT2Tokenizer):
        return tokenizer
    if isinstance(tokenizer, CharTokenizer):
        long = [char for char in tokenizer.chars if char > "\x7f"]
        require(
            not long,
            f"The characters {long[:9]} are two bytes or more, but GPT-2's vocabulary "
            "begins with single bytes: train with --tokens.",
        )
        return GPT2Tokenizer([], [ord(char) for char in tokenizer.chars])
    require(
        tokenizer.cut,
        "The tokenizer joins across spaces (cut=False), but GPT-2's doesn't.",
    )
    return GPT2Tokenizer(tokenizer.merges, tokenizer.alphabet)


def written(token: bytes) -> str:
    """The bytes of a token in the letters that GPT-2's files use: b" a" is "Ġa"."""
    return "".join(LETTER[byte] for byte in token)


def write_tokenizer(tokenizer: Any, folder: Path | str) -> None:
    """Write vocab.json, merges.txt and tokenizer_config.json of a GPT2Tokenizer.

    Raises ValueError if two of its tokens have the same bytes, because the files
    couldn't tell them apart.
    """
    t = tokenizer
    plain = t.vocab_size - len(t.special)
    names = [written(token) for token in t.vocabulary[:plain]] + t.special
    vocabulary = {name: i for i, name in enumerate(names)}
    twice = [name for i, name in enumerate(names) if vocabulary[name] != i]
    require(
        not twice,
        f"The tokens {twice[:9]} are in the vocabulary twice, made by two merges, but "
        "GPT-2's files can name each only once: train with a different --tokens.",
    )
    lines = [f"{names[left]} {names[right]}" for left, right in t.merges]
    end = t.special[0] if t.special else None
    settings = {
        "tokenizer_class": "GPT2Tokenizer",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        **dict.fromkeys(["bos_token", "eos_token", "unk_token"], end),
    }
    write_whole(Path(folder) / "vocab.json", json.dumps(vocabulary, ensure_ascii=False))
    write_whole(Path(folder) / "merges.txt", "\n".join(["#version: 0.2", *lines, ""]))
    write_whole(Path(folder) / "tokenizer_config.json", json.dumps(settings, indent=2))


def read_json(path: Path) -> Any:
    """The dict in a JSON file. Raises ValueError if it doesn't hold one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # also for bytes that aren't UTF-8
        content = None
    require(isinstance(content, dict), f"{path} is damaged: it isn't a table in JSON.")
    return content


def read_tokenizer(folder: Path | str) -> GPT2Tokenizer:
    """The GPT2Tokenizer in a folder, with the tokens that were added later. It's read
    from vocab.json and merges.txt, or from the tokenizer.json that newer versions of
    transformers write instead.

    Raises FileNotFoundError, or a ValueError that says what's different from GPT-2's.
    """
    folder = Path(folder)
    path, newer = folder / "vocab.json", folder / "tokenizer.json"
    settings, added = folder / "tokenizer_config.json", folder / "added_tokens.json"
    settings = read_json(settings) if settings.is_file() else {}
    content = read_json(newer) if newer.is_file() else {}
    for where, asked in ((newer, asked_of(content)), (folder, settings)):
        for name, values in PLAIN.items():
            value = asked.get(name)
            require(
                value in values,
                f"The tokenizer in {where} asks for {name} = {value!r}, which minigpt "
                "doesn't support.",
            )
    if path.is_file():
        vocabulary = read_json(path)
        pairs = need(folder, "merges.txt").read_bytes().decode("utf-8", "replace")
        pairs = [
            line for line in pairs.splitlines() if line[:9] not in ("", "#version:")
        ]
    else:
        path = need(folder, "tokenizer.json", "vocab.json")
        model = content.get("model")
        model = model if isinstance(model, dict) else {}
        kind = model.get("type")
        require(
            kind == "BPE",
            f"{path} is a tokenizer of type {kind!r}, but we only read BPE.",
        )
        vocabulary, pairs = model.get("vocab"), model.get("merges")
    try:
        later = {token["content"]: token for token in content.get("added_tokens", [])}
        for i, token in settings.get("added_tokens_decoder", {}).items():
            later[token["content"]] = {**token, "id": int(i)}
        ids = {name: token["id"] for name, token in later.items()}
        ids |= read_json(added) if added.is_file() else {}
        for name, token in later.items():
            for field in ("lstrip", "rstrip", "single_word"):
                if token.get(field):
                    raise Unusual(
                        f"The tokenizer in {folder} asks for {field} at the token "
                        f"{name!r}, which minigpt doesn't support."
                    )
        return made_of(vocabulary, pairs, ids)
    except Unusual as error:
        raise ValueError(str(error)) from None
    except (AttributeError, KeyError, TypeError, ValueError):  # whatever is in there
        raise ValueError(
            f"{path} doesn't number its tokens like GPT-2: bytes, then merges, then "
            "special tokens."
        ) from None


class Unusual(Exception):
    """A tokenizer asks for something we don't do."""


def asked_of(content: dict) -> dict:
    """What a tokenizer.json asks for besides its vocabulary and merges: {name:
    value}."""
    found = {}
    for name in ("normalizer", "pre_tokenizer", "post_processor"):
        part = content.get(name)
        parts = [part] if isinstance(part, dict) else []
        while parts:
            each = parts.pop()
            inner = ("pretokenizers", "processors", "normalizers")
            listed = [x for key in inner for x in each.get(key) or []]
            if each.get("type") == "Sequence":
                parts += listed
            elif each.get("type") == "TemplateProcessing":
                row = each.get("single") or []  # what's added around a text
                if [*map(list, row)] != [["Sequence"]]:
                    found[name] = "TemplateProcessing"
            elif each.get("type") != "ByteLevel" or name == "normalizer":
                found[name] = each.get("type")
            elif name == "pre_tokenizer":
                found["add_prefix_space"] = each.get("add_prefix_space", False)
                found["use_regex"] = each.get("use_regex", True)
    model = content.get("model")
    model = model if isinstance(model, dict) else {}
    wanted = ("dropout", "continuing_subword_prefix", "end_of_word_suffix")
    for name in (*wanted, "byte_fallback", "ignore_merges"):
        found[name] = model.get(name)
    return found


def made_of(vocabulary: Any, pairs: Any, added: dict) -> GPT2Tokenizer:
    """The GPT2Tokenizer of {name: id}, pairs of names, or "left right", and {added
    token: id}. Raises an error if that isn't like GPT-2's."""
    vocabulary = vocabulary | added
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in pairs]
    names = sorted(vocabulary, key=lambda name: vocabulary[name])
    require([vocabulary[name] for name in names] == [*range(len(names))], "other ids")
    known = [name for name in names[: len(names) - len(pairs)] if name in BYTE]
    special = names[len(known) + len(pairs) :]
    merges = [(vocabulary[left], vocabulary[right]) for left, right in pairs]
    tokenizer = GPT2Tokenizer(merges, [BYTE[name] for name in known], special=special)
    for name in added:
        if name not in special:
            raise Unusual(f"The token {name!r} was added, but merges make it, too.")
    plain = tokenizer.vocabulary[: len(names) - len(special)]
    require([*map(written, plain), *special] == names, "other merges")
    return tokenizer


def need(folder: Path | str, name: str, asked: str | None = None) -> Path:
    """The path of a file in a folder. Raises a FileNotFoundError that says which one is
    missing."""
    path = Path(folder) / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {asked or name}. A GPT-2 folder holds config.json, "
            "model.safetensors, vocab.json and merges.txt."
        )
    return path
