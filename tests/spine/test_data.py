"""Lesson 01: the corpus, the tokenizer, batches."""

import hashlib
import socket
import urllib.error

import pytest
import torch

from minigpt import data
from minigpt.data import CharTokenizer, get_batch, load_text, train_val_split


def test_tiny_shakespeare_has_the_numbers_of_the_course(text, tokenizer, splits):
    assert len(text) == 1_115_394
    assert text.startswith("First Citizen:\nBefore we proceed any further")
    assert tokenizer.vocab_size == 65
    assert [len(part) for part in splits] == [1_003_854, 111_540]


def test_encoding_gives_the_published_ids_and_decodes_back(text, tokenizer):
    hii = [46, 47, 47, 1, 58, 46, 43, 56, 43, 2]
    assert tokenizer.encode("hii there!") == hii
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(torch.tensor(ids[:99])) == text[:99]


def test_a_tokenizer_is_rebuilt_from_its_vocabulary(tokenizer):
    assert CharTokenizer(tokenizer.chars).chars == tokenizer.chars


def test_an_unknown_character_is_named_with_the_vocabulary():
    with pytest.raises(
        ValueError, match=r"\['é', '€'\] .* Its 3 characters end in 'abc'"
    ):
        CharTokenizer("abc").encode("cé€")


def test_the_seeded_batch_is_the_one_of_the_lecture(splits):
    torch.manual_seed(1337)
    x, y = get_batch(splits[0], 4, 8)
    assert x[0].tolist() == [24, 43, 58, 5, 57, 1, 46, 43]
    assert x.shape == y.shape == (4, 8)
    assert torch.equal(x[:, 1:], y[:, :-1])


def test_get_batch_draws_exactly_one_randint():
    torch.manual_seed(7)
    get_batch(torch.arange(99), 5, 16)
    after_batch = torch.rand(1)
    torch.manual_seed(7)
    torch.randint(99 - 16, (5,))
    assert torch.equal(torch.rand(1), after_batch)


def test_every_window_is_drawn_equally_often_and_none_beyond_the_end():
    x, y = get_batch(torch.arange(10), 8_000, 6)
    found = x[:, 0].bincount(minlength=4)
    assert len(found) == 4 and ((found - 2_000).abs() < 200).all()
    assert y.max() == 9


def test_a_generator_makes_batches_repeatable_and_spares_the_global_state():
    before = torch.get_rng_state()
    draws = [
        get_batch(torch.arange(99), 3, 8, generator=torch.Generator().manual_seed(5))[0]
        for _ in range(2)
    ]
    assert torch.equal(*draws)
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_go_to_the_device_that_is_named():
    for batch in get_batch(torch.arange(99), 2, 8, device="meta"):
        assert batch.device.type == "meta"


def test_data_shorter_than_a_window_says_both_lengths():
    with pytest.raises(ValueError, match=r"8 tokens.*block_size \+ 1 = 9"):
        get_batch(torch.arange(8), 4, 8)
    assert get_batch(torch.arange(9), 1, 8)[1][0].tolist() == list(range(1, 9))


def test_the_split_cuts_without_loss_where_it_is_told_to():
    ids = torch.arange(10)
    for fraction, n in [(0.9, 9), (0.5, 5), (0.25, 2)]:
        first, rest = train_val_split(ids, fraction)
        assert len(first) == n and torch.equal(torch.cat([first, rest]), ids)
    assert len(train_val_split(ids)[0]) == 9


# --- Where a text comes from (bad ones: test_bad_input). ---


def test_any_utf8_file_is_read_without_byte_order_mark_and_carriage_returns(tmp_path):
    path = tmp_path / "own.txt"
    path.write_bytes("\ufeffZeile eins\r\nÜber zwei\rdrei\n".encode())
    assert load_text(path) == load_text(str(path)) == "Zeile eins\nÜber zwei\ndrei\n"


@pytest.fixture
def stand_in(monkeypatch):
    """A text that passes for Tiny Shakespeare, which need not be on this machine."""
    text = "To be, or not to be: that's the question.\n" * 30
    monkeypatch.setattr(data, "SHA256", hashlib.sha256(text.encode()).hexdigest())
    return text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """$MINIGPT_DATA: an empty folder, beside an empty cache and no network."""

    def download(*args, **kwargs):
        raise urllib.error.URLError("no network")

    folder = tmp_path / "anywhere"
    folder.mkdir()
    monkeypatch.setenv("MINIGPT_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    return folder


@pytest.mark.parametrize("name", ["tinyshakespeare.txt", "input.txt"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_the_text_is_found_in_minigpt_data(folder, stand_in, name, line_end):
    (folder / name).write_bytes(stand_in.replace("\n", line_end).encode())
    assert load_text() == stand_in


def test_another_text_under_its_name_is_not_taken(folder, stand_in, capsys):
    (folder / "input.txt").write_text(stand_in + "x", encoding="utf-8")
    assert load_text() == load_text("playwright") != stand_in
    assert "could not be downloaded" in capsys.readouterr().err


def test_a_download_goes_to_the_cache_and_is_found_there_next_time(
    folder, monkeypatch, stand_in
):
    calls = []

    def download(url, dst, hash_prefix, progress):
        calls.append(url)
        assert socket.getdefaulttimeout() == 5
        assert hash_prefix == data.SHA256 and not progress
        with open(dst, "w", encoding="utf-8", newline="") as file:
            file.write(stand_in)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    socket.setdefaulttimeout(77)
    try:
        assert load_text() == load_text() == stand_in
        assert socket.getdefaulttimeout() == 77
    finally:
        socket.setdefaulttimeout(None)
    assert calls == [data.URL]


FAILURES = [urllib.error.URLError("no network"), RuntimeError("invalid hash value")]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda e: type(e).__name__)
def test_without_network_the_built_in_play_stands_in_and_says_so(
    folder, monkeypatch, capsys, failure
):
    def download(*args, **kwargs):
        raise failure

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    text = load_text()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    for part in ("anywhere and", data.URL, str(failure), "the course's own play"):
        assert part in said
    assert text == load_text("playwright") and len(text) == 1_100_000
    assert capsys.readouterr().err == ""  # asked for by name: nothing to explain


@pytest.mark.parametrize("ids", [[-1], [0, 3], torch.tensor([-3])], ids=str)
def test_an_id_that_is_none_is_not_decoded(ids):
    with pytest.raises(ValueError, match="There are no tokens"):
        CharTokenizer("abc").decode(ids)
