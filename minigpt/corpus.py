"""Lesson 10: a text larger than the memory that Python would want for it.

A Python string takes one to four bytes for each character, a list of ids eight and
more, and a tensor of int64 eight again: 2 GB of text would fill 16 GB. Read in pieces,
into the smallest integers that hold its vocabulary, they take 2 GB.
"""

import sys

import torch

from minigpt.arguments import check_kind
from minigpt.data import CharTokenizer, built_in
from minigpt.texts import find, pieces

PIECE = 2**18  # characters read at a time


def read_ids(source="tinyshakespeare", tokenizer=None, substitute=False):
    """CharTokenizer(text) and its ids (N,) for text = load_text(source, substitute).

    The ids are uint8 for a vocabulary of at most 256 characters, else int16 or int32;
    get_batch and evaluate make int64 of what a model is to read. tokenizer: of a run
    that goes on; the text may then have no other characters.
    The file is read twice: for its vocabulary and length, then for the ids.
    Raises ValueError and OSError as load_text and encode.
    """
    path = find(source, substitute)
    text = built_in() if path is None else None
    there, n = torch.zeros(sys.maxunicode + 1, dtype=torch.bool), 0
    for codes in _codes(path, text):
        there[codes] = True
        n += len(codes)
    chars = "".join(map(chr, there.nonzero()[:, 0].tolist()))
    if tokenizer is None:
        tokenizer = CharTokenizer(chars)
    remedy = "a CharTokenizer, or None to make one"
    check_kind("tokenizer", tokenizer, CharTokenizer, remedy)
    dtype = smallest(tokenizer.vocab_size)
    id_of = torch.zeros(len(there), dtype=dtype)
    known = tokenizer.encode(chars)  # or this says which characters it does not know
    id_of[there] = torch.tensor(known, dtype=dtype)
    ids, start = torch.empty(n, dtype=dtype), 0
    for codes in _codes(path, text):
        ids[start : start + len(codes)] = id_of[codes]
        start += len(codes)
    return tokenizer, ids


def smallest(vocab_size):
    """The smallest of torch's integer types that holds the ids 0 to vocab_size - 1."""
    if vocab_size <= 2**8:
        return torch.uint8
    return torch.int16 if vocab_size <= 2**15 else torch.int32


def _codes(path, text):
    """The code points of a text, piece by piece: tensors of int32."""
    for piece in [text] if path is None else pieces(path, PIECE):
        yield torch.frombuffer(bytearray(piece, "utf-32-le"), dtype=torch.int32)
