"""Lesson 10: a text read in pieces is the text read at once, in little memory."""

import subprocess
import sys

import pytest
import torch
from small import CORPUS, DATA, PLAN, TOKENIZER, small_gpt

import minigpt.__main__ as cli
from minigpt import corpus
from minigpt.checkpoint import load_checkpoint
from minigpt.corpus import read_ids, smallest
from minigpt.data import CharTokenizer, get_batch, load_text, train_val_split
from minigpt.evaluation import estimate_loss, evaluate

TEXTS = {
    "ASCII": CORPUS.encode(),
    "accents": "Où est le café? Là-bas.\n".encode() * 7,
    "emoji": "🎭 to be 🐝 or not 🎭\n".encode() * 5,
    "three bytes each": "長い物語 ".encode() * 9,
    "Windows": b"to be\r\nor not\r\n\r\nto be\r\n" * 5,
    "old Macintosh": b"to be\ror not\r\r",
    "mixed line ends": b"a\r\nb\rc\nd\r\r\n\n\r",
    "byte order mark": "\ufeffto be \ufeffor not".encode(),
    "one character": b"x",
}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 2**20])
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_in_pieces_is_the_text_at_once(tmp_path, monkeypatch, name, size):
    path = tmp_path / "text.txt"
    path.write_bytes(TEXTS[name])
    monkeypatch.setattr(corpus, "PIECE", size)
    text = load_text(path)
    tokenizer, ids = read_ids(path)
    assert tokenizer.chars == CharTokenizer(text).chars
    assert ids.tolist() == tokenizer.encode(text)
    assert ids.dtype == torch.uint8


@pytest.mark.parametrize("name", ["tinyshakespeare", "playwright"])
def test_the_texts_with_a_name_can_be_read_too(name, monkeypatch, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(CORPUS, encoding="utf-8")
    monkeypatch.setattr(corpus, "find", lambda source, substitute: None)
    monkeypatch.setattr(corpus, "built_in", lambda: CORPUS)
    if name == "tinyshakespeare":
        monkeypatch.setattr(corpus, "find", lambda source, substitute: path)
    assert torch.equal(read_ids(name)[1].long(), DATA)


def test_a_run_that_goes_on_keeps_its_vocabulary(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("to be", encoding="utf-8")
    tokenizer, ids = read_ids(path, TOKENIZER)
    assert tokenizer is TOKENIZER and ids.tolist() == TOKENIZER.encode("to be")
    path.write_text("to be? 5 €", encoding="utf-8")
    with pytest.raises(ValueError) as said:
        TOKENIZER.encode("to be? 5 €")
    with pytest.raises(ValueError) as mine:
        read_ids(path, TOKENIZER)
    assert str(mine.value) == str(said.value)


def test_the_byte_that_cannot_be_read_is_counted_from_the_start(tmp_path, monkeypatch):
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbf" + b"to be\r\n" * 20_000 + b"caf\xe9 noir")
    monkeypatch.setattr(corpus, "PIECE", 1000)
    for read in (load_text, read_ids):
        with pytest.raises(ValueError, match=rf"byte {3 + 140_000 + 3} cannot"):
            read(path)


@pytest.mark.parametrize("vocab_size", [1, 256, 257, 32_768, 32_769, 1_114_112])
def test_the_smallest_type_holds_every_id(vocab_size):
    dtype = smallest(vocab_size)
    assert torch.iinfo(dtype).max >= vocab_size - 1
    smaller = [t for t in (torch.uint8, torch.int16) if t.itemsize < dtype.itemsize]
    assert all(torch.iinfo(t).max < vocab_size - 1 for t in smaller)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_ids_of_fewer_bytes_are_judged_and_drawn_alike(dtype):
    model, small = small_gpt(), DATA.to(dtype)
    assert evaluate(model, small, 8) == evaluate(model, DATA, 8)
    assert estimate_loss(model, small, PLAN) == estimate_loss(model, DATA, PLAN)
    drawn = [
        get_batch(ids, 4, 8, generator=torch.Generator().manual_seed(1))
        for ids in (small, DATA)
    ]
    for mine, theirs in zip(*drawn):
        assert mine.dtype == torch.int64 and torch.equal(mine, theirs)


def test_a_large_text_takes_about_a_byte_a_character(tmp_path):
    """Ids of one byte, and pieces: the string alone would take another byte, a list
    of its ids eight, their tensor eight again."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc, which tells a process how much memory it took")
    path, n = tmp_path / "large.txt", 30_000_000
    path.write_text((CORPUS * (n // len(CORPUS) + 1))[:n], encoding="utf-8")
    code = """
import re, sys
from pathlib import Path
from minigpt.corpus import read_ids

def memory(name):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(name + r":\\s+(\\d+) kB", status)[1])

read_ids(sys.argv[1])  # a small text: what reading takes at any size
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
ids = read_ids(sys.argv[2])[1]
print((memory("VmHWM") - before) / len(ids))
"""
    small = tmp_path / "small.txt"
    small.write_text(CORPUS * 1000, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code, small, path],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert 0.9 < float(done.stdout) < 1.5


def test_of_a_large_text_a_part_is_judged_and_the_answer_says_so(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "JUDGED", 100)
    (tmp_path / "text.txt").write_text(CORPUS, encoding="utf-8")
    small = "--preset cpu --n-embd 16 --n-layer 1 --block-size 8 --device cpu"
    command = f"train --data text.txt --steps 2 --out m.pt {small}"
    assert cli.main(command.split()) == 0
    loss = evaluate(load_checkpoint("m.pt").model, train_val_split(DATA)[1][:100], 8)
    said = capsys.readouterr().out
    assert f"loss {loss:.4f} nats per character over the first 100 of 180 char" in said
