"""Lesson 01: the corpus, the tokenizer, batches."""

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
    assert tokenizer.decode(hii) == "hii there!"
    first = [18, 47, 56, 57, 58, 1, 15, 47, 58, 47, 64, 43, 52, 10, 0]
    assert tokenizer.encode(text[:15]) == first
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_decode_takes_a_list_or_a_tensor(tokenizer):
    ids = tokenizer.encode("Good night")
    assert tokenizer.decode(torch.tensor(ids)) == tokenizer.decode(ids) == "Good night"


def test_decoding_a_batch_says_to_take_one_row(tokenizer):
    with pytest.raises(ValueError, match=r"shape \(1, 3\): decode one row"):
        tokenizer.decode(torch.zeros(1, 3, dtype=torch.long))


def test_a_tokenizer_is_rebuilt_from_its_vocabulary(tokenizer):
    assert CharTokenizer(tokenizer.chars).chars == tokenizer.chars


def test_an_unknown_character_is_named_with_the_vocabulary(tokenizer):
    with pytest.raises(ValueError, match=r"'é', '€'.*65 known characters"):
        tokenizer.encode("Café 5€")


def test_an_unknown_id_is_named_with_the_range(tokenizer):
    for wrong in (65, -1):
        with pytest.raises(ValueError, match=f"id {wrong}: ids run from 0 to 64"):
            tokenizer.decode([1, wrong])


def test_the_seeded_batch_is_the_one_of_the_lecture(splits):
    torch.manual_seed(1337)
    x, y = get_batch(splits[0], 4, 8)
    assert x[0].tolist() == [24, 43, 58, 5, 57, 1, 46, 43]
    assert x.shape == y.shape == (4, 8)
    assert torch.equal(x[:, 1:], y[:, :-1])


def test_get_batch_draws_exactly_one_randint(splits):
    torch.manual_seed(7)
    get_batch(splits[0], 5, 16)
    after_batch = torch.rand(1)
    torch.manual_seed(7)
    torch.randint(len(splits[0]) - 16, (5,))
    assert torch.equal(torch.rand(1), after_batch)


def test_get_batch_reaches_the_last_token_and_never_beyond():
    tokens = torch.arange(10)
    seen = [get_batch(tokens, 64, 8)[1].max().item() for _ in range(5)]
    assert max(seen) == 9


def test_a_generator_makes_batches_repeatable_and_spares_the_global_state(splits):
    before = torch.get_rng_state()
    draws = [
        get_batch(splits[0], 3, 8, generator=torch.Generator().manual_seed(5))[0]
        for _ in range(2)
    ]
    assert torch.equal(*draws)
    assert torch.equal(torch.get_rng_state(), before)


def test_data_shorter_than_a_window_says_both_lengths():
    with pytest.raises(ValueError, match=r"8 tokens.*block_size \+ 1 = 9"):
        get_batch(torch.arange(8), 4, 8)


def test_the_split_refuses_fractions_that_leave_a_part_empty():
    for fraction in (0, 1, 1.5):
        with pytest.raises(ValueError, match="between 0 and 1"):
            train_val_split([1, 2, 3], fraction)


def test_any_utf8_file_is_read_without_byte_order_mark_and_carriage_returns(tmp_path):
    path = tmp_path / "own.txt"
    path.write_bytes("\ufeffZeile eins\r\nÜber zwei\rdrei\n".encode())
    assert load_text(path) == "Zeile eins\nÜber zwei\ndrei\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"caf\xe9", "not UTF-8 text .byte 3")],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, content, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_text(path)


def test_a_missing_file_names_the_corpora():
    with pytest.raises(FileNotFoundError, match="'tinyshakespeare', 'playwright'"):
        load_text("no/such/file.txt")


@pytest.fixture
def empty_machine(tmp_path, monkeypatch):
    """No MINIGPT_DATA, an empty cache, and a record of attempted downloads."""
    monkeypatch.delenv("MINIGPT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_the_folder_in_minigpt_data_is_searched_by_content(
    empty_machine, monkeypatch, text
):
    folder = empty_machine / "anywhere"
    folder.mkdir()
    (folder / "decoy.txt").write_text("x" * 1_115_394, encoding="utf-8")
    (folder / "whatever.dat").write_text(text, encoding="utf-8", newline="")
    monkeypatch.setenv("MINIGPT_DATA", str(folder))
    assert load_text() == text


def test_a_download_goes_to_the_cache_and_is_found_there_next_time(
    empty_machine, monkeypatch, text, capsys
):
    calls = []

    def download(url, dst, hash_prefix, progress):
        calls.append(url)
        assert hash_prefix == data.SHA256
        with open(dst, "w", encoding="utf-8", newline="") as file:
            file.write(text)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    assert load_text() == text
    assert "Downloaded Tiny Shakespeare to" in capsys.readouterr().err
    assert load_text() == text
    assert capsys.readouterr().err == ""
    assert calls == [data.URL]


@pytest.mark.parametrize(
    "failure",
    [
        urllib.error.URLError("no network"),
        RuntimeError("invalid hash value"),
        TimeoutError("timed out"),
    ],
)
def test_without_network_the_built_in_play_stands_in_and_says_so(
    empty_machine, monkeypatch, capsys, failure
):
    def download(*args, **kwargs):
        raise failure

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    monkeypatch.setenv("MINIGPT_DATA", str(empty_machine / "gone"))
    text = load_text()
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    for part in ("gone", "cache", data.URL, str(failure.args[0])):
        assert part in said
    assert text == load_text("playwright")
    assert capsys.readouterr().err == ""  # asked for by name: nothing to explain
    assert len(text) == 1_100_000
