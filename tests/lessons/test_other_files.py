"""Lesson 14: what other programs put into GPT-2's files, and into checkpoints."""

import io
import json
import struct

import pytest
import torch
from small import opinionated, seeded
from torch.testing import assert_close

from minigpt.bridge.folder import (
    config_of,
    load_gpt2,
    read_model,
    save_gpt2,
    tensors_of,
)
from minigpt.bridge.gpt2 import GPT2Config
from minigpt.bridge.nanogpt import load_nanogpt
from minigpt.bridge.tensors import write_tensors
from minigpt.bridge.tokenizer import GPT2Tokenizer, read_tokenizer, split
from minigpt.data import CharTokenizer
from minigpt.fast.writing import generate
from minigpt.stored import FOLDER
from minigpt.tokens.byte_pairs import learn
from minigpt.tools import corpus
from minigpt.tools.command_line import beginning, main
from minigpt.tools.saving import load_any

SHAPE = GPT2Config(30, 8, n_layer=2, n_head=2, n_embd=16)
IDX = torch.randint(30, (3, 8), generator=seeded())
LETTERS = CharTokenizer(map(chr, range(32, 62)))


@pytest.fixture
def model():
    return opinionated(SHAPE)


@pytest.fixture
def folder(tmp_path, model):
    """A folder of a tiny GPT2."""
    save_gpt2(model, LETTERS, tmp_path / "tiny")
    return tmp_path / "tiny"


def with_row(path, name, dtype, size):
    """Put a tensor of another type into a safetensors file: `size` bytes of ones."""
    data = path.read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    table, numbers = json.loads(data[8 : 8 + n]), data[8 + n :]
    place = [len(numbers), len(numbers) + size]
    table[name] = {
        "dtype": dtype,
        "shape": [place[1] - place[0]],
        "data_offsets": place,
    }
    head = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + numbers + b"\1" * size)


def changed(path, **settings):
    content = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(content | settings), encoding="utf-8")


# --- Tensors. ---


@pytest.mark.parametrize("dtype", ["BOOL", "U8", "I64"])
@pytest.mark.parametrize("name", ["h.0.attn.bias", "position_ids", "score.weight"])
def test_what_is_not_used_does_not_spoil_a_file(folder, model, dtype, name):
    with_row(folder / "model.safetensors", "transformer." + name, dtype, 8)
    assert_close(read_model(folder)(IDX)[0], model(IDX)[0])


def test_numbers_that_are_used_must_be_readable(folder, model):
    table = tensors_of(model)
    table.pop("transformer.ln_f.bias")
    write_tensors(folder / "model.safetensors", table)
    with_row(folder / "model.safetensors", "transformer.ln_f.bias", "I8", 16)
    with pytest.raises(ValueError, match="ln_f.bias in numbers of type 'I8'"):
        read_model(folder)


@pytest.mark.parametrize(
    "prefix",
    [
        "module.",
        "module._orig_mod.",
        "_forward_module.",
        "model.",
        "transformer.module.",
    ],
)
def test_prefixes_are_taken_off(folder, model, prefix):
    table = {prefix + name: t for name, t in tensors_of(model).items()}
    write_tensors(folder / "model.safetensors", table)
    assert_close(read_model(folder)(IDX)[0], model(IDX)[0])


def test_one_of_two_tied_tensors_is_enough(folder, model):
    table = tensors_of(model)
    table["lm_head.weight"] = table.pop("transformer.wte.weight")
    write_tensors(folder / "model.safetensors", table)
    assert_close(read_model(folder)(IDX)[0], model(IDX)[0])


def test_a_folder_in_several_files_is_read(folder, model):
    table, where = tensors_of(model), {}
    (folder / "model.safetensors").unlink()
    for n, names in enumerate([[*table][:5], [*table][5:]]):
        file = f"model-{n}.safetensors"
        write_tensors(folder / file, {name: table[name] for name in names})
        where |= dict.fromkeys(names, file)
    index = folder / "model.safetensors.index.json"
    changed(index, metadata={}, weight_map=where)
    assert_close(read_model(folder)(IDX)[0], model(IDX)[0])
    (folder / "model-1.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="has no model-1.safetensors"):
        read_model(folder)
    for wrong in ({"a": "../x"}, {}, ["a"]):
        changed(index, weight_map=wrong)
        with pytest.raises(ValueError, match="doesn't say which files"):
            read_model(folder)


def test_the_same_curve_by_another_name(folder):
    for theirs, ours in [("gelu_pytorch_tanh", "gelu_new"), ("gelu_python", "gelu")]:
        changed(folder / "config.json", activation_function=theirs)
        assert config_of(folder / "config.json").activation == ours


# --- The vocabulary. ---


def test_a_small_vocabulary_may_be_padded_to_more_than_twice_its_size(tmp_path):
    padded = opinionated(GPT2Config(64, 8, n_layer=1, n_head=2, n_embd=16))
    save_gpt2(padded, LETTERS, tmp_path / "out")  # 30 tokens
    assert_close(read_model(tmp_path / "out")(IDX)[0], padded(IDX)[0][..., :30])


def test_padding_is_told_left_out_and_never_drawn(tmp_path, capsys):
    padded = opinionated(GPT2Config(32, 8, n_layer=1, n_head=2, n_embd=16))
    with torch.no_grad():
        padded.lm_head.weight[30:] += 100.0  # the likeliest of all
    save_gpt2(padded, LETTERS, tmp_path / "out")
    assert capsys.readouterr().err.count("32 rows for 30 tokens") == 1
    save_gpt2(padded, CharTokenizer(map(chr, range(32, 64))), tmp_path / "whole")
    settings = json.loads((tmp_path / "out" / "vocab.json").read_text("utf-8"))
    (tmp_path / "whole" / "vocab.json").write_text(json.dumps(settings), "utf-8")
    model, tokenizer = load_gpt2(tmp_path / "whole")
    assert "the last 2 are padding" in capsys.readouterr().err
    assert tokenizer.vocab_size == model.config.vocab_size == 30
    assert_close(model(IDX)[0], padded(IDX)[0][..., :30])
    assert generate(model, IDX[:, :2], 5).max() < 30
    assert model.lm_head.weight is model.token_embedding.weight
    save_gpt2(model, tokenizer, tmp_path / "again")
    with pytest.raises(
        ValueError, match="knows 33 tokens, but the model has 32: they don't"
    ):
        save_gpt2(padded, CharTokenizer(map(chr, range(32, 65))), tmp_path / "no")


@pytest.fixture
def added(tmp_path):
    """(folder of 32 tokens, of which two were added, the model)."""
    model = opinionated(GPT2Config(32, 8, n_layer=1, n_head=2, n_embd=16))
    save_gpt2(model, CharTokenizer(map(chr, range(32, 64))), tmp_path / "more")
    vocabulary = json.loads((tmp_path / "more" / "vocab.json").read_text("utf-8"))
    kept = {name: i for name, i in vocabulary.items() if i < 30}
    (tmp_path / "more" / "vocab.json").write_text(json.dumps(kept), "utf-8")
    return tmp_path / "more"


def token(i, content, **changes):
    plain = dict.fromkeys(["lstrip", "rstrip", "single_word", "normalized"], False)
    return {"id": i, "content": content, "special": True, **plain, **changes}


ADDED = {"<a>": 30, "<ab>": 31}


@pytest.mark.parametrize("where", ["added_tokens", "tokenizer_config", "tokenizer"])
def test_added_tokens_are_read_wherever_they_are(added, where):
    rows = [token(i, name) for name, i in ADDED.items()]
    content = {
        "added_tokens": ADDED,
        "tokenizer_config": {"added_tokens_decoder": {r["id"]: r for r in rows}},
        "tokenizer": {"added_tokens": rows},
    }
    changed(added / f"{where}.json", **content[where])
    model, tokenizer = load_gpt2(added)
    assert tokenizer.encode("0<a>1<ab>") == [16, 30, 17, 31]
    assert model.config.vocab_size == tokenizer.vocab_size == 32


def test_of_tokens_that_begin_alike_the_longest_wins():
    alike = ["my_tok_1", "my_tok_12", "my"]
    for special in (alike, alike[::-1]):
        parts = split("a my_tok_12 my_tok_1 my", special)
        assert parts[1::2] == ["my_tok_12", "my_tok_1", "my"]
        tokenizer = GPT2Tokenizer([], [*b" a"], special=special)
        assert tokenizer.encode("my_tok_12") == [2 + special.index("my_tok_12")]


@pytest.mark.parametrize(
    "file, settings, said",
    [
        ("tokenizer_config", {"add_prefix_space": True}, "add_prefix_space = True"),
        ("tokenizer_config", {"add_bos_token": True}, "add_bos_token = True"),
        ("tokenizer", {"normalizer": {"type": "NFC"}}, "normalizer = 'NFC'"),
        ("tokenizer", {"pre_tokenizer": {"type": "Split"}}, "pre_tokenizer = 'Split'"),
        (
            "tokenizer",
            {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}},
            "add_prefix_space = True",
        ),
        ("tokenizer", {"model": {"dropout": 0.1}}, "dropout = 0.1"),
        (
            "tokenizer",
            {"post_processor": {"type": "TemplateProcessing"}},
            "post_processor = 'TemplateProcessing'",
        ),
        (
            "tokenizer",
            {"added_tokens": [token(30, "<a>", lstrip=True)]},
            "lstrip at the token '<a>'",
        ),
        ("added_tokens", {"!": 1, "<a>": 30}, "'!' was added, but merges make it"),
    ],
)
def test_what_a_tokenizer_asks_for_and_is_not_done_is_refused(
    added, file, settings, said
):
    changed(added / f"{file}.json", **settings)
    with pytest.raises(ValueError, match=said):
        read_tokenizer(added)


def test_what_changes_nothing_is_no_reason_to_refuse(folder):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    changed(
        folder / "tokenizer.json",
        normalizer=None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [byte_level]},
        post_processor={"type": "ByteLevel", "trim_offsets": False},
    )
    assert read_tokenizer(folder).vocab_size == 30
    template = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}]}
    changed(folder / "tokenizer.json", post_processor=template)  # of transformers 5
    assert read_tokenizer(folder).vocab_size == 30


# --- Checkpoints. ---


def nano(model, change=lambda table: table):
    """The content of nanoGPT's ckpt.pt with the parameters of a GPT2."""
    table = {
        name: t.T
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        else t
        for name, t in tensors_of(model).items()
    }
    table["lm_head.weight"] = table["transformer.wte.weight"]
    sizes = dict(n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=30)
    args = {**sizes, "bias": True, "dropout": 0.0}
    return {"model": change(table), "model_args": args, "iter_num": 3}


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "_orig_mod.module."])
@pytest.mark.parametrize("lost", ["lm_head.weight", "transformer.wte.weight", ""])
def test_a_checkpoint_with_prefixes_or_one_tied_tensor(tmp_path, prefix, lost):
    model = opinionated(GPT2Config(**{**vars(SHAPE), "activation": "gelu"}))

    def change(table):
        return {prefix + name: t for name, t in table.items() if name != lost}

    torch.save(nano(model, change), tmp_path / "ckpt.pt")
    assert_close(load_nanogpt(tmp_path / "ckpt.pt")(IDX)[0], model(IDX)[0])


def test_a_file_in_torchs_old_format_is_not_damaged(tmp_path):
    model = opinionated(GPT2Config(**{**vars(SHAPE), "activation": "gelu"}))
    path = tmp_path / "old.pt"
    torch.save(nano(model), path, _use_new_zipfile_serialization=False)
    assert_close(load_nanogpt(path)(IDX)[0], model(IDX)[0])
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match="old.pt"):
        load_nanogpt(path)


@pytest.mark.parametrize(
    "write, said",
    [
        (lambda path: torch.save({"a": "b"}, path), "holds a dictionary of 'a', which"),
        (lambda path: torch.save(torch.zeros(3), path), "holds a Tensor, which torch."),
        (
            lambda path: torch.save({"a": torch.zeros(3)}, path),
            "only holds weights, a state_dict: build the model",
        ),
        (
            lambda path: path.write_bytes((FOLDER / "gpt.pt").read_bytes()),
            "'s a stored model that comes with the course, without its training",
        ),
        (
            lambda path: torch.save(nano(opinionated(SHAPE)), path),
            "'s a nanoGPT checkpoint, and so a GPT-2",
        ),
        (
            lambda path: path.write_bytes((2).to_bytes(8, "little") + b"{}"),
            "'s a safetensors file, which only holds weights",
        ),
        (lambda path: path.write_text("Romeo"), "Use another file, or train again."),
    ],
)
def test_another_file_is_named_with_what_reads_it(tmp_path, write, said):
    write(tmp_path / "other.pt")
    with pytest.raises(ValueError, match=said) as error:
        load_any(tmp_path / "other.pt")
    assert "\n" not in str(error.value)


# --- Texts. ---


def test_a_byte_that_only_the_last_tenth_has_stops_nothing(tmp_path, capsys):
    text = "to be or not to be; " * 99 + "\nA copy costs $5.\n"
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    tokenizer, ids, n = corpus.read_tokens(tmp_path / "t.txt", 24)
    assert tokenizer.decode(ids.ids.tolist()) == text
    assert (
        tokenizer.merges
        == learn(text[: len(text) * 9 // 10], 24, alphabet=set(text.encode())).merges
    )
    assert capsys.readouterr().err == ""
    (tmp_path / "t.txt").write_text("tobeornot" * 2000, encoding="utf-8")
    corpus.read_tokens(tmp_path / "t.txt", 9)
    assert "16,200 characters in a row have no space" in capsys.readouterr().err


def test_learning_tokens_for_long_says_how_far_it_is(monkeypatch, capsys):
    seconds = iter(range(0, 999, 3))
    monkeypatch.setattr(corpus.time, "monotonic", lambda: next(seconds))
    learn("to be or not to be " * 9, 14, progress=corpus.shown)
    said = capsys.readouterr().err.splitlines()
    assert said == [f"Learned {n} of 14 tokens ..." for n in (8, 10, 12)]


def test_an_unknown_character_is_told_in_a_line():
    many = "".join(map(chr, range(0x4E00, 0x5E00)))
    for tokenizer in (CharTokenizer(many), learn("to be " * 9, 8)):
        with pytest.raises(
            ValueError, match="Not in the vocabulary: .*unknown in all"
        ) as error:
            tokenizer.encode(many[::-1] + "€éàüöäßñçøåæœ")
        assert len(str(error.value)) < 300


def test_a_text_begins_with_a_whole_token():
    assert beginning(CharTokenizer("b\na")) == "\n"
    halves = learn("éüé" * 9, 7)
    assert halves.decode([0]) == "\ufffd" and beginning(halves) in ("é", "ü", "éü")


def test_a_prompt_in_another_encoding_is_said_to_be_no_utf_8(monkeypatch, capsys):
    other = io.TextIOWrapper(io.BytesIO("café".encode("cp1252")), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", other)
    assert main(["sample", "--tokens", "3", "--prompt", "-"]) == 2
    assert "standard input isn't UTF-8 text: save it as" in capsys.readouterr().err


def test_a_prompt_from_another_system_is_read_like_a_file(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)  # no model.pt: the GPT that comes along
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffROMEO:\r\nO", newline=""))
    assert main(["sample", "--prompt", "-", "--tokens", "1", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.startswith("ROMEO:\nO")
