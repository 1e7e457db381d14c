"""A text as ids of few bytes: the same ids, drawn and judged alike."""

import pytest
import torch
from small import CORPUS, DATA, identical, small_gpt

from minigpt.data import (
    PLAY,
    CharTokenizer,
    find_text,
    get_batch,
    load_text,
    train_val_split,
)
from minigpt.evaluation import estimate_loss
from minigpt.tools import corpus
from minigpt.tools.corpus import Ids, read_ids

TEXTS = {
    "ASCII": CORPUS.encode(),
    "accents": "Où est le café? Là-bas.\n".encode() * 7,
    "emoji": "🎭 to be 🐝 or not 🎭\n".encode() * 5,
    "mixed line ends": b"a\r\nb\rc\nd\r\r\n\n\r",
    "byte order mark": "\ufeffto be \ufeffor not".encode(),
    "one character": b"x",
}


@pytest.mark.parametrize("name", TEXTS)
def test_ids_made_in_pieces_are_those_of_the_tokenizer(tmp_path, monkeypatch, name):
    path = tmp_path / "text.txt"
    path.write_bytes(TEXTS[name])
    monkeypatch.setattr(corpus, "PIECE", 5)
    text = path.read_text(encoding="utf-8-sig")
    assert load_text(path) == text
    tokenizer, ids = read_ids(path)
    assert tokenizer.chars == CharTokenizer(text).chars
    assert ids.ids.tolist() == tokenizer.encode(text)
    assert ids.ids.dtype == torch.uint8


@pytest.mark.parametrize(
    ("n_chars", "dtype"),
    [(256, torch.uint8), (257, torch.int16), (2**15, torch.int16), (2**15 + 1, None)],
)
def test_the_ids_take_few_bytes_and_are_all_there(tmp_path, n_chars, dtype):
    path = tmp_path / "text.txt"
    text = "".join(chr(code) for code in range(0x4E00, 0x4E00 + n_chars))
    path.write_text(text, encoding="utf-8")
    tokenizer, ids = read_ids(path)
    assert ids.ids.dtype == (dtype or torch.int32)
    assert ids[torch.arange(n_chars)].tolist() == list(range(n_chars))


def test_the_built_in_play_has_a_name(tmp_path):
    assert find_text("playwright") == PLAY
    tokenizer, ids = read_ids(PLAY)
    text = load_text("playwright")
    assert tokenizer.decode(ids[torch.arange(99)]) == text[:99]
    assert len(ids) == len(text)


def test_ids_of_few_bytes_are_split_drawn_and_judged_as_others_are():
    model, small = small_gpt(), Ids(DATA.to(torch.uint8))
    parts = zip(train_val_split(small), train_val_split(DATA))
    assert all(torch.equal(mine.ids.long(), theirs) for mine, theirs in parts)
    assert identical(estimate_loss(model, small, 8), estimate_loss(model, DATA, 8))
    drawn = [
        get_batch(ids, 4, 8, generator=torch.Generator().manual_seed(1))
        for ids in (small, DATA)
    ]
    for mine, theirs in zip(*drawn):
        assert mine.dtype == torch.int64 and torch.equal(mine, theirs)
