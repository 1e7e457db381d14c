"""Lesson 01: the corpus, the tokenizer, batches."""

import hashlib
import http.client
import socket
import urllib.error
from pathlib import Path

import pytest
import torch

from minigpt import playwright, texts
from minigpt.data import CharTokenizer, get_batch, load_text, train_val_split
from minigpt.playwright import Play


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


def test_a_tokenizer_needs_a_text():
    with pytest.raises(ValueError, match="no characters to number"):
        CharTokenizer("")


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


def test_batches_go_to_the_device_that_is_named():
    for batch in get_batch(torch.arange(99), 2, 8, device="meta"):
        assert batch.device.type == "meta"
    for batch in get_batch(torch.arange(99), 2, 8):
        assert batch.device.type == "cpu"


def test_data_shorter_than_a_window_says_both_lengths():
    with pytest.raises(ValueError, match=r"8 tokens.*block_size \+ 1 = 9"):
        get_batch(torch.arange(8), 4, 8)


@pytest.mark.parametrize("size", ["batch_size", "block_size"])
def test_batches_or_windows_of_none_are_refused(size):
    with pytest.raises(ValueError, match=f"{size} is 0; give a whole number"):
        get_batch(torch.arange(99), **{"batch_size": 2, "block_size": 8, size: 0})


def test_every_window_is_drawn_and_equally_often():
    x, _ = get_batch(torch.arange(10), 8_000, 6)
    found = x[:, 0].bincount(minlength=4)
    assert len(found) == 4 and ((found - 2_000).abs() < 200).all()


def test_the_split_cuts_without_loss_where_it_is_told_to():
    ids = torch.arange(10)
    for fraction, n in [(0.9, 9), (0.5, 5), (0.25, 2)]:
        first, rest = train_val_split(ids, fraction)
        assert len(first) == n and torch.equal(torch.cat([first, rest]), ids)
    assert len(train_val_split(ids)[0]) == 9


def test_the_split_refuses_fractions_that_leave_a_part_empty():
    for fraction in (0, 1, 1.5, -0.1, float("nan")):
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
def stand_in(monkeypatch):
    """A text that passes for Tiny Shakespeare, which need not be on this machine."""
    text = ("To be, or not to be: that's the question.\n" * 30_000)[:1_115_394]
    digest = hashlib.sha256(text.encode()).hexdigest()
    monkeypatch.setattr(texts, "SHA256", digest)
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


@pytest.fixture
def built_in(monkeypatch):
    """The built-in play, without the seconds that it takes to write it."""
    play = "Chorus:\nEnter Hob and Nan.\n" * 50_000
    monkeypatch.setattr(playwright, "write_play", lambda n: Play(play[:n], [], [], []))
    return play[:1_100_000]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["no mark", "byte order mark"])
def test_the_folder_in_minigpt_data_is_searched_by_content(
    folder, stand_in, line_end, mark
):
    (folder / "a folder").mkdir()
    (folder / "decoy.txt").write_text("x" * 1_115_394, encoding="utf-8")
    content = (mark + stand_in).replace("\n", line_end).encode()
    (folder / "whatever.dat").write_bytes(content)
    assert load_text(substitute=False) == stand_in


def test_a_file_far_too_long_or_too_short_is_not_even_read(
    folder, monkeypatch, stand_in
):
    (folder / "short.txt").write_text(stand_in[:-1], encoding="utf-8")
    (folder / "long.txt").write_bytes(bytes(1_155_398))
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(str(path)))
    with pytest.raises(FileNotFoundError):
        load_text(substitute=False)


def test_the_cache_is_searched_where_there_is_no_minigpt_data(
    folder, monkeypatch, stand_in
):
    monkeypatch.delenv("MINIGPT_DATA")
    texts.cache_folder().mkdir(parents=True)
    (texts.cache_folder() / "any.txt").write_text(
        stand_in, encoding="utf-8", newline=""
    )
    assert load_text(substitute=False) == stand_in
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert texts.cache_folder() == Path.home() / ".cache" / "minigpt"


def test_a_download_goes_to_the_cache_and_is_found_there_next_time(
    folder, monkeypatch, stand_in, capsys
):
    calls = []

    def download(url, dst, hash_prefix, progress):
        calls.append(url)
        assert socket.getdefaulttimeout() == texts.TIMEOUT_SECONDS
        assert hash_prefix == texts.SHA256 and not progress
        with open(dst, "w", encoding="utf-8", newline="") as file:
            file.write(stand_in)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    socket.setdefaulttimeout(77)
    try:
        assert load_text() == stand_in
        assert socket.getdefaulttimeout() == 77
    finally:
        socket.setdefaulttimeout(None)
    assert "Downloaded Tiny Shakespeare to" in capsys.readouterr().err
    assert load_text() == stand_in
    assert capsys.readouterr().err == ""
    assert calls == [texts.URL]


FAILURES = [
    urllib.error.URLError("no network"),
    RuntimeError("invalid hash value"),
    TimeoutError("timed out"),
    http.client.IncompleteRead(b"half"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda e: type(e).__name__)
def test_without_network_the_built_in_play_stands_in_and_says_so(
    folder, built_in, monkeypatch, capsys, failure
):
    def download(*args, **kwargs):
        raise failure

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    text = load_text()
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    for part in ("anywhere and ", "cache", texts.URL, str(failure)):
        assert part in said
    assert text == built_in == load_text("playwright")
    assert capsys.readouterr().err == ""  # asked for by name: nothing to explain


def test_whoever_wants_no_substitute_gets_the_remedy_instead(folder, capsys):
    with pytest.raises(FileNotFoundError, match="no network") as error:
        load_text(substitute=False)
    for part in ("connect to the network", texts.URL, "'playwright' is built in"):
        assert part in str(error.value)
    assert capsys.readouterr().err == ""
