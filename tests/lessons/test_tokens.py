"""Lesson 13: byte pairs against loops and the libraries, and losses per character."""

import random
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from small import CORPUS, TRAIN_SMALL, small_gpt
from strange_texts import ALIKE, PLAIN, STRANGE, drawn, tokenizer_of
from torch.testing import assert_close

from minigpt.data import CharTokenizer
from minigpt.evaluation import evaluate
from minigpt.fast.writing import decoder
from minigpt.gpt import GPT, GPTConfig
from minigpt.tokens.byte_pairs import BytePairTokenizer, learn, merge, pieces
from minigpt.tokens.judging import judge, next_bytes, token_nats
from minigpt.tools.command_line import main
from minigpt.tools.saving import load_any


@pytest.fixture(scope="module", params=[True, False], ids=["cut", "whole"])
def tokenizer(request):
    return tokenizer_of(request.param)


# --- Merging, by loops. ---


def encode(tokenizer, text):
    """By the definition: all merges in their order, in each piece."""
    out = []
    for piece in pieces(text, tokenizer.cut):
        ids = [tokenizer.alphabet.index(byte) for byte in piece.encode()]
        for new, pair in enumerate(tokenizer.merges, len(tokenizer.alphabet)):
            ids = merge(ids, tuple(pair), new)
        out += ids
    return out


def test_every_text_comes_back_and_is_encoded_as_by_loops(tokenizer):
    rng = random.Random(1)
    for text in ["", *(drawn(rng) for _ in range(60)), STRANGE]:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == tokenizer.decode(torch.tensor(ids)) == text
        assert ids == encode(tokenizer, text)
        assert tokenizer.encode(tokenizer.decode(ids)) == ids


def test_any_bytes_have_tokens_and_any_tokens_have_a_text(tokenizer):
    rng = random.Random(2)
    for _ in range(100):
        ids = rng.choices(range(tokenizer.vocab_size), k=rng.randrange(9))
        said = b"".join(tokenizer.vocabulary[i] for i in ids)
        assert tokenizer.decode(ids) == said.decode("utf-8", "replace")


@pytest.mark.parametrize("seed", range(20))
def test_the_pairs_are_those_that_are_seen_most(seed):
    rng = random.Random(seed)
    text = drawn(rng, ["a", "b", "aa", " ", "é"], 200) + "ab ab"
    cut = bool(seed % 2)
    tokenizer = learn(text, len(set(text.encode())) + 3, cut)
    alphabet = tokenizer.alphabet
    parts = [[alphabet.index(b) for b in p.encode()] for p in pieces(text, cut)]
    for new, pair in enumerate(map(tuple, tokenizer.merges), len(alphabet)):
        times = Counter(p for ids in parts for p in zip(ids, ids[1:]))
        assert pair == min(times, key=lambda p: (-times[p], p))
        parts = [merge(ids, pair, new) for ids in parts]


def test_a_letter_is_in_one_token_only():
    for n in range(2, 12):
        ids = merge([0] * n, (0, 0), 1)
        assert ids == [1] * (n // 2) + [0] * (n % 2)


def test_a_smaller_vocabulary_is_the_beginning_of_a_larger_one():
    small, large = learn(PLAIN * 9, 40), learn(PLAIN * 9, 50)
    assert large.merges[: len(small.merges)] == small.merges
    assert large.vocabulary[:40] == small.vocabulary


def test_nothing_is_joined_across_the_cut():
    tokenizer = tokenizer_of(True)
    for token in tokenizer.vocabulary:
        text = token.decode("utf-8", "ignore")
        assert not re.search(r"\S\s", text), token
    whole = tokenizer_of(False)
    assert any(re.search(rb"\S\s", token) for token in whole.vocabulary)
    assert len(whole.encode(PLAIN)) < len(tokenizer.encode(PLAIN))


# --- The libraries, where they are installed. ---


GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def test_the_cut_is_that_of_gpt2():
    regex = pytest.importorskip("regex")
    rng = random.Random(3)
    for _ in range(200):
        text = drawn(rng, ALIKE)
        assert list(pieces(text)) == regex.findall(GPT2, text)


def test_the_tokens_are_those_of_tiktoken():
    tiktoken = pytest.importorskip("tiktoken")
    ours, rng = tokenizer_of(True), random.Random(4)
    ranks = {token: i for i, token in enumerate(ours.vocabulary)}
    theirs = tiktoken.Encoding(
        "ours", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={}
    )
    for _ in range(100):
        text = drawn(rng, ALIKE)
        assert ours.encode(text) == theirs.encode(text)


def test_the_tokens_are_those_of_tokenizers():
    library = pytest.importorskip("tokenizers")
    ours, rng = tokenizer_of(True), random.Random(5)
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    shown = {byte: chr(byte) for byte in printable}  # a letter for each byte
    shown |= {byte: chr(256 + n) for n, byte in enumerate(others)}
    names = ["".join(shown[byte] for byte in token) for token in ours.vocabulary]
    merges = [(names[left], names[right]) for left, right in ours.merges]
    vocabulary = {name: i for i, name in enumerate(names)}
    theirs = library.Tokenizer(library.models.BPE(vocabulary, merges))
    cut = library.pre_tokenizers.ByteLevel(add_prefix_space=False)  # as GPT-2 cuts
    theirs.pre_tokenizer = cut
    for _ in range(100):
        text = drawn(rng, ALIKE)
        assert ours.encode(text) == theirs.encode(text).ids


def test_of_all_characters_only_few_are_cut_otherwise_than_by_gpt2():
    regex = pytest.importorskip("regex")
    of_gpt2, other = regex.compile(GPT2), []
    for char in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(char) not in ("Cs", "Cn"):  # half ones, and not yet any
            text = f"a{char}1{char} {char}?{char}"
            if list(pieces(text)) != of_gpt2.findall(text):
                other.append(char)
    numbers = {c for c in other if unicodedata.category(c) in ("No", "Nl")}
    assert {"²", "½", "Ⅷ"} < numbers
    assert set(other) - numbers == set("\x1c\x1d\x1e\x1f")


# --- Bad input. ---


def test_bad_input_is_told_in_a_sentence():
    few = learn("the cat and the hat", 11)
    for call, message in {
        lambda: learn("ab ab", 2): "2 tokens: give at least 3",
        lambda: learn("ab ab", 5000): "at most 4096",
        lambda: learn(
            "ab ab", 6
        ): "The text is too short for 6 tokens. Use more text, or ask for only 4.",
        lambda: few.encode("the €"): "Not in the vocabulary: ['€']",
        lambda: few.decode([0, 11, -1]): "There are no tokens [-1, 11]: ids end at 10",
        lambda: BytePairTokenizer([[0, 2]], [97, 98]): "There are no tokens 0, 2 yet",
    }.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            call()


# --- Losses. ---


def small_model(tokenizer):
    torch.manual_seed(0)
    return GPT(GPTConfig(tokenizer.vocab_size, 8, n_layer=1, n_head=2, n_embd=16))


@pytest.mark.parametrize("window", [3, 8])
def test_the_loss_of_characters_is_that_of_evaluate(window):
    model, text = small_gpt(), CORPUS[:99]
    tokenizer = CharTokenizer(CORPUS)
    ids = torch.tensor(tokenizer.encode(text))
    loss = judge(model, tokenizer, text, window)
    expected = evaluate(model, ids, window)
    assert_close(loss.per_token, expected, atol=1e-5, rtol=0)
    assert_close(loss.per_character, loss.per_token)
    assert_close(loss.bits_per_byte, loss.per_token / np.log(2).item())
    assert_close(token_nats(model, ids)[:3].mean().item(), evaluate(model, ids[:4], 8))


def test_a_loss_is_per_character_and_per_byte_whatever_the_tokens():
    text = "ab" + "éa" * 50  # 102 characters, 152 bytes
    tokenizer = learn(text, 6, cut=False)
    model = small_model(tokenizer)
    torch.nn.init.zeros_(model.lm_head.weight)
    loss, n = judge(model, tokenizer, text), len(tokenizer.encode(text)) - 1
    first = len(tokenizer.decode(tokenizer.encode(text)[:1]))
    assert_close(loss.per_token, np.log(6).item(), atol=1e-6, rtol=0)
    assert_close(loss.per_character, n * loss.per_token / (102 - first))
    bits = n * np.log2(6).item() / (152 - first)  # its first token is a letter
    assert_close(loss.bits_per_byte, bits, rtol=1e-5, atol=0)


def test_healing_takes_the_last_token_back():
    tokenizer = learn("the hat the cat that hat " * 9, 14)
    model = small_model(tokenizer)
    text = "the cat "
    ids = tokenizer.encode(text)
    logits = model(torch.tensor([ids[:-1]]))[0][0, -1]
    p = dict(zip(tokenizer.vocabulary, logits.softmax(-1).tolist()))
    plain = next_bytes(model, tokenizer, text, heal=False).tolist()
    begins = {t: q for t, q in p.items() if t.startswith(b" ")}
    begun = sum(begins.values())
    h = sum(q for t, q in begins.items() if t[1:2] == b"h") + p[b" "] * plain[ord("h")]
    healed = next_bytes(model, tokenizer, text)
    assert_close(healed.sum().item(), 1.0, atol=1e-5, rtol=0)
    space = p[b" "] * plain[ord(" ")]
    healed_of_both = healed[[ord("h"), ord(" ")]].tolist()
    assert healed_of_both == pytest.approx([h / begun, space / begun], rel=1e-5)


@pytest.mark.parametrize("alphabet", [None, range(256)])
def test_half_a_character_is_refused(alphabet):
    with pytest.raises(ValueError, match=r"Not in the vocabulary: \['\\ud800'\]"):
        learn("ab\ud800ab", 260, alphabet=alphabet)


# --- The command line. ---


TRAIN = ["train", "--data", "corpus.txt", "--out", "tokens.pt", *TRAIN_SMALL]


@pytest.fixture
def tokens(folder):
    """A folder in which tokens.pt has read tokens of corpus.txt."""
    assert main([*TRAIN, "--tokens", "14"]) == 0
    return folder


def test_a_run_on_tokens_is_told_per_character_and_goes_on(folder, capsys):
    assert main([*TRAIN, "--tokens", "14"]) == 0
    run, text = load_any("tokens.pt"), (folder / "corpus.txt").read_text("utf-8")
    n = int(0.9 * len(text))
    assert vars(run.tokenizer) == vars(learn(text[:n], 14))
    loss = judge(run.model, run.tokenizer, text[n:])
    told = f"loss {loss.per_character:.4f} nats per character ({loss.per_token:.4f} per"
    assert told in capsys.readouterr().out
    assert (
        main("train --data corpus.txt --out tokens.pt --resume --steps 14".split()) == 0
    )
    again = load_any("tokens.pt")
    assert again.run.step == 14 and vars(again.tokenizer) == vars(run.tokenizer)


def test_a_model_of_tokens_writes(tokens, capsys):
    line = "sample --checkpoint tokens.pt --tokens 9 --seed 1 --prompt"
    for more in ([], ["--n", "3"], ["--stop", "be"]):
        assert main([*line.split(), "to be ", *more]) == 0
        assert capsys.readouterr().out.startswith("to be ")
    assert main(line.split()[:-1]) == 0  # its own prompt


@pytest.mark.parametrize(
    "line, says",
    {
        "train --data corpus.txt --out new.pt --tokens 3": "give at least 8",
        "train --data corpus.txt --out tokens.pt --resume --tokens 9": "out --tokens",
        "train --data other.txt --out tokens.pt --resume": "another text",
        "train --data empty.txt --out new.pt --tokens 9": "empty.txt is empty",
        "sample --checkpoint damaged.pt": "is a checkpoint whose parts don't fit",
        "train --data corpus.txt --out damaged.pt --resume": "It stays as it is",
    }.items(),
)
def test_what_does_not_go_with_tokens_is_a_sentence(tokens, capsys, line, says):
    (tokens / "other.txt").write_text("be not; to be or " * 120, encoding="utf-8")
    content = torch.load("tokens.pt", weights_only=True)
    content["tokenizer"][2]["merges"][0] = (0, 99)
    torch.save(content, "damaged.pt")
    Path("empty.txt").touch()
    before = {path.name: path.read_bytes() for path in tokens.iterdir()}
    assert main(line.split()) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: ") and says in last
    assert {path.name: path.read_bytes() for path in tokens.iterdir()} == before


def test_a_character_in_several_tokens_is_written_once_it_is_whole():
    tokenizer = BytePairTokenizer([], range(256))
    decode = decoder(tokenizer)
    ids = torch.tensor(tokenizer.encode("é🎭a") + [0x9F])
    assert [decode(i[None]) for i in ids] == ["", "é", "", "", "", "🎭", "a", ""]
