"""Lesson 14: GPT-2's files, read and written, against a format told anew and, where it
is installed, against transformers."""

import hashlib
import json
import math
import random
import shutil
import struct
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from small import CORPUS, Intruder, opinionated, seeded
from torch.testing import assert_close

from minigpt.bridge import by_name
from minigpt.bridge.fetching import FILES, fetch_gpt2
from minigpt.bridge.folder import as_gpt2, config_of, load_gpt2, read_model, save_gpt2
from minigpt.bridge.gpt2 import GPT2, GPT2Config
from minigpt.bridge.nanogpt import load_nanogpt
from minigpt.bridge.tensors import read_tensors, write_tensors
from minigpt.bridge.tokenizer import GPT2Tokenizer, as_gpt2_tokenizer, gpt2_cut, join
from minigpt.data import CharTokenizer
from minigpt.fast.reader import Reader, can_cache
from minigpt.generation import generate
from minigpt.gpt import GPTConfig
from minigpt.inside.looking import capture, logit_shares
from minigpt.modern.model import ModernConfig
from minigpt.tokens.byte_pairs import BytePairTokenizer, learn, merge
from minigpt.tools.command_line import main
from minigpt.tools.saving import load_any

TINY = GPT2Config(30, 8, n_layer=2, n_head=2, n_embd=16)
AS_IN_06 = dict(activation="relu", qkv_bias=False, tied=False, head_bias=True)
IDX = torch.randint(30, (3, 8), generator=seeded())
CLOSE = dict(atol=1e-5, rtol=1e-5)


def gpt2(**changes):
    return opinionated(replace(TINY, **changes))


def gpt(V, C=16):
    return opinionated(GPTConfig(V, 8, n_layer=2, n_head=2, n_embd=C))


def tokens(n):
    """A tokenizer of so many characters."""
    return CharTokenizer(map(chr, range(32, 32 + n)))


@pytest.fixture
def folder(tmp_path):
    """A folder of a tiny GPT2, in which a test may spoil something."""
    save_gpt2(gpt2(), tokens(30), tmp_path / "tiny")
    return tmp_path / "tiny"


# --- The model. ---


def reference(table, idx, n_layer, n_head, bend):
    """GPT-2 by its file's names, with nothing of the course: idx (B, T) -> logits."""
    p = {name.removeprefix("transformer."): t for name, t in table.items()}
    B, T = idx.shape

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])

    def conv1d(x, name):
        return x @ p[name + ".weight"] + p[name + ".bias"]

    x = p["wte.weight"][idx] + p["wpe.weight"][:T]
    for i in range(n_layer):
        h = f"h.{i}."
        q, k, v = conv1d(norm(x, h + "ln_1"), h + "attn.c_attn").chunk(3, dim=-1)
        q, k, v = (t.view(B, T, n_head, -1).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        future = torch.ones(T, T).triu(1) == 1
        weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        x = x + conv1d((weights @ v).transpose(1, 2).flatten(2), h + "attn.c_proj")
        hidden = bend(conv1d(norm(x, h + "ln_2"), h + "mlp.c_fc"))
        x = x + conv1d(hidden, h + "mlp.c_proj")
    return norm(x, "ln_f") @ p.get("lm_head.weight", p["wte.weight"]).T


def gelu_new(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner))


def by_hand(path):
    """A safetensors file, read as its description says, without the package."""
    data = Path(path).read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    table, tensors = json.loads(data[8 : 8 + n]), {}
    for name, row in table.items():
        if name != "__metadata__":
            first, last = row["data_offsets"]
            numbers = data[8 + n + first : 8 + n + last]
            flat = struct.unpack(f"<{len(numbers) // 4}f", numbers)
            tensors[name] = torch.tensor(flat).reshape(row["shape"])
    return tensors


@pytest.mark.parametrize("tied", [True, False])
def test_the_written_table_is_gpt2_computed_from_its_names(tmp_path, tied):
    model = gpt2(tied=tied)
    save_gpt2(model, tokens(30), tmp_path / "out")
    table = by_hand(tmp_path / "out" / "model.safetensors")
    assert ("lm_head.weight" in table) == (not tied)
    assert table["transformer.h.1.attn.c_attn.weight"].shape == (16, 48)
    assert_close(reference(table, IDX, 2, 2, gelu_new), model(IDX)[0], **CLOSE)


def test_a_program_that_knows_the_names_alone_computes_the_model(folder):
    table = by_hand(folder / "model.safetensors")
    p = {name.removeprefix("transformer."): t for name, t in table.items()}
    logits = by_name.gpt2(p, IDX, 2, gelu_new)
    assert_close(logits, read_model(folder)(IDX)[0], **CLOSE)


def test_with_all_differences_off_it_is_the_gpt_of_lesson_06():
    model, other = gpt(30), GPT2(replace(TINY, **AS_IN_06)).eval()
    other.load_state_dict(model.state_dict())
    assert_close(other(IDX)[0], model(IDX)[0])


@pytest.mark.parametrize("field", AS_IN_06)
def test_each_difference_changes_the_table_or_the_logits(field):
    plain, changed = gpt2(), gpt2(**{field: AS_IN_06[field]})
    same_names = plain.state_dict().keys() == changed.state_dict().keys()
    assert not same_names or not torch.allclose(plain(IDX)[0], changed(IDX)[0])


def test_a_tied_head_is_one_matrix_in_training_and_after_loading(folder):
    for model in (GPT2(TINY), read_model(folder)):
        assert model.lm_head.weight is model.token_embedding.weight
        n = sum(p.numel() for p in model.parameters())
        assert n == 30 * 16 + 8 * 16 + 2 * (12 * 16**2 + 13 * 16) + 2 * 16


def test_no_two_blocks_share_what_bends(folder):
    bends = [block.feed_forward.relu for block in GPT2(TINY).body[:-1]]
    assert bends[0] is not bends[1]


def test_the_cache_and_the_lens_take_it():
    model = gpt2()
    assert can_cache(model)
    read = Reader(model)
    rows = [read(IDX[:, : t + 1]) for t in range(8)]
    assert_close(torch.cat(rows, dim=1), model(IDX)[0], **CLOSE)
    flow = capture(model, IDX)
    assert_close(sum(logit_shares(model, flow).values()), model(IDX)[0], **CLOSE)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"activation": "swish"}, "activation is 'swish'; give one of"),
        ({"norm_eps": 0}, "norm_eps is 0; give a finite number above 0"),
        ({"n_head": 3}, "n_head = 3 must divide"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        replace(TINY, **wrong)


# --- Out and in again. ---


SHAPES = [
    dict(n_layer=1, n_head=1, n_embd=16),
    dict(n_layer=3, n_head=4, n_embd=32),
    dict(n_layer=2, n_head=2, n_embd=64, activation="gelu", norm_eps=1e-3),
    dict(activation="relu", tied=False, n_embd=32),
    dict(qkv_bias=False, head_bias=True, tied=False, n_embd=32),
]


@pytest.mark.parametrize("changes", SHAPES)
def test_what_is_written_is_read_back(tmp_path, changes):
    model = gpt2(**changes)
    lost = save_gpt2(model, tokens(30), tmp_path / "out")
    again, tokenizer = load_gpt2(tmp_path / "out")
    assert_close(again(IDX)[0], model(IDX)[0], atol=1e-4, rtol=1e-4)
    assert lost < 1e-5 and not again.training
    assert tokenizer.encode("$!*") == tokens(30).encode("$!*")


@pytest.mark.parametrize("V", [5, 16])
def test_the_bias_of_a_head_folds_where_there_are_channels_enough(V):
    model = gpt(V)
    idx = IDX % V
    folded, lost = as_gpt2(model)
    assert model.lm_head.bias.abs().min() > 1e-3 and folded.lm_head.bias is None
    assert_close(folded(idx)[0], model(idx)[0], atol=1e-4, rtol=1e-4)
    assert lost < 1e-5


def apart(a, b):
    """How far the differences of two logits of a are from those of b."""
    off = a - b
    return (off.amax(dim=-1) - off.amin(dim=-1)).max().item()


@pytest.mark.parametrize("V, C", [(17, 16), (65, 64)])
def test_with_one_token_more_than_channels_all_probabilities_are_the_same(V, C):
    model, idx = gpt(V, C), IDX % V
    folded, lost = as_gpt2(model)
    logits, others = model(idx)[0], folded(idx)[0]
    same = dict(atol=1e-4, rtol=1e-4)
    assert_close(others.log_softmax(dim=-1), logits.log_softmax(dim=-1), **same)
    assert lost < 1e-5
    constant = (others - logits).mean()  # is added to every logit
    assert constant.abs() > 1e-3
    assert_close(others - constant, logits, **same)


@pytest.mark.parametrize("V", [18, 30])
def test_where_it_does_not_fold_the_loss_is_told_and_is_the_largest(V):
    model, idx = gpt(V), IDX % V
    with pytest.raises(ValueError, match=f"{V} tokens on 16 channels, doesn't fit"):
        as_gpt2(model)
    folded, lost = as_gpt2(model, nearest=True)
    logits, others = model(idx)[0], folded(idx)[0]
    assert apart(others, logits) == pytest.approx(lost, abs=1e-4) and lost > 1e-3
    off = others.log_softmax(dim=-1) - logits.log_softmax(dim=-1)
    assert off.abs().max().item() <= lost + 1e-4


@pytest.mark.parametrize("V, n_head, advice", [(18, 2, 18), (30, 4, 32), (34, 3, 33)])
def test_the_width_that_a_refusal_advises_can_be_trained_and_exported(
    V, n_head, advice
):
    sizes = {"n_layer": 1, "n_head": n_head}
    with pytest.raises(ValueError, match=f"Train with --n-embd {advice}, or"):
        as_gpt2(opinionated(GPTConfig(V, 8, n_embd=4 * n_head, **sizes)))
    as_gpt2(opinionated(GPTConfig(V, 8, n_embd=advice, **sizes)))


def test_exporting_leaves_the_model_as_it_was():
    model = gpt(16).train()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    as_gpt2(model)
    after = model.state_dict()
    assert model.training and all(torch.equal(after[n], t) for n, t in before.items())


def test_another_model_and_a_changed_one_are_refused():
    modern = ModernConfig(16, 8, n_layer=1, n_head=2, n_embd=16).build()
    with pytest.raises(
        ValueError, match="A ModernGPT has parts that GPT-2 doesn't have"
    ):
        as_gpt2(modern)
    model = gpt(16)
    model.body[0].extra = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="but a GPT-2 doesn't"):
        as_gpt2(model)


def test_a_folder_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(*args):
        raise OSError("no space left")

    with monkeypatch.context() as m:
        m.setattr("minigpt.bridge.folder.write_tokenizer", full)
        with pytest.raises(OSError, match="no space"):
            save_gpt2(gpt2(), tokens(30), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").mkdir()  # empty: it is filled
    save_gpt2(gpt2(), tokens(30), tmp_path / "out")
    with pytest.raises(FileExistsError, match="give the name of a new folder"):
        save_gpt2(gpt2(), tokens(30), tmp_path / "out")


def test_the_tokenizer_must_be_the_models(tmp_path):
    with pytest.raises(ValueError, match="knows 29 tokens, but the model has 30"):
        save_gpt2(gpt2(), tokens(29), tmp_path / "out")


# --- Files of other hands. ---


def test_names_without_a_prefix_and_masks_are_read_too(folder):
    path = folder / "model.safetensors"
    before, table = read_model(folder)(IDX)[0], by_hand(path)
    table = {name.removeprefix("transformer."): t for name, t in table.items()}
    table["h.0.attn.bias"] = torch.ones(1, 1, 8, 8)
    write_tensors(path, table)
    assert_close(read_model(folder)(IDX)[0], before)


@pytest.mark.parametrize("kind, dtype", [("F16", torch.float16), ("F32", None)])
def test_a_file_written_by_hand_is_read(tmp_path, kind, dtype):
    numbers = torch.tensor([[1.0, -2.5, 0.25]])
    data = numbers.to(dtype).numpy().tobytes()
    row = {"dtype": kind, "shape": [1, 3], "data_offsets": [0, len(data)]}
    head = json.dumps({"a": row}).encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(head)) + head + data)
    assert torch.equal(read_tensors(tmp_path / "x")["a"], numbers)


def test_tensors_of_every_shape_come_back(tmp_path):
    table = {"a": torch.randn(2, 3).T, "b": torch.tensor(1.5)}
    write_tensors(tmp_path / "x", table)
    for name, tensor in {**read_tensors(tmp_path / "x")}.items():
        assert torch.equal(tensor, table[name]) and tensor.dtype == torch.float32
    assert by_hand(tmp_path / "x").keys() == table.keys()


def nano(bias=True):
    """(the content of a ckpt.pt as nanoGPT writes it, a GPT2 of the same numbers)."""
    model = gpt2(activation="gelu")
    if not bias:
        for name, p in model.named_parameters():
            if name.endswith("bias"):
                p.zero_()
    table = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in {
            "token_embedding": "transformer.wte",
            "position_embedding": "transformer.wpe",
            "body.2.": "transformer.ln_f.",
            "body": "transformer.h",
            "norm": "ln_",
            "attention.qkv": "attn.c_attn",
            "attention.proj": "attn.c_proj",
            "feed_forward.expand": "mlp.c_fc",
            "feed_forward.proj": "mlp.c_proj",
        }.items():
            name = name.replace(ours, theirs)
        if bias or not name.endswith("bias"):
            table["_orig_mod." + name] = tensor
    table["_orig_mod.transformer.h.0.attn.bias"] = torch.ones(1, 1, 8, 8)
    sizes = dict(n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=30)
    args = {**sizes, "bias": bias, "dropout": 0.1}
    known = {"optimizer": {}, "best_val_loss": torch.tensor(1.0), "config": {}}
    return {"model": table, "model_args": args, "iter_num": 3, **known}, model


@pytest.mark.parametrize("bias", [True, False])
def test_a_checkpoint_of_nanogpts_is_read(tmp_path, bias):
    content, model = nano(bias)
    torch.save(content, tmp_path / "ckpt.pt")
    read = load_nanogpt(tmp_path / "ckpt.pt")
    assert_close(read(IDX)[0], model(IDX)[0])
    assert read.config.dropout == 0.1 and not read.training


def spoilt_nano(change):
    content, _ = nano()
    change(content)
    return content


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda c: c.pop("model_args"), "isn't a nanoGPT checkpoint"),
        (lambda c: c["model_args"].pop("n_head"), r"don't mention \['n_head'\]"),
        (
            lambda c: c["model"].pop("_orig_mod.transformer.ln_f.weight"),
            r"lacks \['transformer.ln_f",
        ),
        (lambda c: c.update(bad=Intruder("never")), "holds Python objects"),
    ],
)
def test_another_checkpoint_is_refused(tmp_path, change, said):
    torch.save(spoilt_nano(change), tmp_path / "ckpt.pt")
    with pytest.raises(ValueError, match=said):
        load_nanogpt(tmp_path / "ckpt.pt")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        load_nanogpt(tmp_path / "none.pt")


# --- Bad input. ---


def changed_config(**changes):
    def spoil(folder):
        path = folder / "config.json"
        content = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({k: v for k, v in content.items() if v != "gone"}))

    return spoil


def changed_table(change):
    def spoil(folder):
        table = by_hand(folder / "model.safetensors")
        change(table)
        write_tensors(folder / "model.safetensors", table)

    return spoil


def cut_off(n):
    def spoil(folder):
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:n])

    return spoil


def written(name, content):
    return lambda folder: (folder / name).write_text(content, encoding="utf-8")


def without(name):
    return lambda folder: (folder / name).unlink()


def as_pickle(folder):
    (folder / "model.safetensors").unlink()
    torch.save(Intruder(folder / "in"), folder / "pytorch_model.bin")


def renamed_pickle(folder):
    torch.save(Intruder(folder / "in"), folder / "model.safetensors")


QKV = "transformer.h.1.attn.c_attn.weight"
SPOILT = {
    "no folder": (shutil.rmtree, "There is no folder"),
    "no config": (without("config.json"), "has no config.json. A GPT-2 folder holds"),
    "no numbers": (without("model.safetensors"), "has no model.safetensors"),
    "no vocabulary": (without("vocab.json"), "has no vocab.json"),
    "no merges": (without("merges.txt"), "has no merges.txt"),
    "another model": (changed_config(model_type="llama"), "of type 'llama'"),
    "no width": (changed_config(n_embd="gone"), r"say anything about \['n_embd'\]"),
    "another bend": (
        changed_config(activation_function="silu"),
        "= 'silu', but we only read",
    ),
    "another scale": (changed_config(scale_attn_weights=False), "= False; GPT-2 has"),
    "a wide layer": (changed_config(n_inner=99), "n_inner = 99; GPT-2 has None"),
    "a size in words": (
        changed_config(n_head="two"),
        "n_head = 'two', not a whole number",
    ),
    "no number": (
        changed_config(layer_norm_epsilon=[]),
        r"epsilon = \[\], not a number",
    ),
    "a bend of bends": (
        changed_config(activation_function=[]),
        r"= \[\], but we only read",
    ),
    "no JSON": (written("config.json", "{"), "it isn't a table in JSON"),
    "a list": (written("config.json", "[]"), "it isn't a table in JSON"),
    "a shape": (
        changed_table(lambda t: t.update({QKV: torch.zeros(16, 47)})),
        r"c_attn.weight has the shape \[16, 47\], but the config asks for \[16, 48\]",
    ),
    "a transposed one": (
        changed_table(lambda t: t.update({QKV: t[QKV].T})),
        r"c_attn.weight has the shape \[48, 16\], but the config asks for \[16, 48\]",
    ),
    "a lack": (changed_table(lambda t: t.pop(QKV)), "c_attn.weight'] \\(1 in all"),
    "one block more": (
        changed_table(lambda t: t.update({QKV.replace("1", "2"): t[QKV]})),
        "but a GPT-2 doesn't",
    ),
    "half a file": (cut_off(5000), "was cut off or changed"),
    "half a table": (cut_off(50), "isn't a safetensors file, or it's damaged"),
    "an empty file": (cut_off(0), "isn't a safetensors file, or it's damaged"),
    "a pickle": (as_pickle, "pytorch_model.bin, which is a pickle. It could run code"),
    "a pickle by name": (renamed_pickle, "isn't a safetensors file, or it's damaged"),
    "other ids": (written("vocab.json", '{"a": 1}'), "doesn't number its tokens like"),
    "ids that are none": (
        written("vocab.json", '{"a": "b", "c": 1}'),
        "doesn't number its",
    ),
    "merges of bytes": (
        lambda folder: (folder / "merges.txt").write_bytes(b"\xff \xfe\n"),
        "doesn't number its tokens like",
    ),
    "other merges": (written("merges.txt", "a b\n"), "doesn't number its tokens like"),
    "few tokens": (written("vocab.json", '{"a": 0}'), "1 tokens, but the model has 30"),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_folder_that_is_not_gpt2s_is_refused_in_a_sentence(folder, kind, capsys):
    spoil, said = SPOILT[kind]
    spoil(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        load_gpt2(folder)
    assert not (folder / "in").exists()
    if folder.exists():
        assert main(["sample", "--checkpoint", str(folder), "--tokens", "1"]) == 2
        assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    "content, said",
    [
        (
            {"model": {"type": "WordPiece"}},
            "a tokenizer of type 'WordPiece', but we only read BPE",
        ),
        ({"model": 1}, "of type None, but we only read BPE"),
        ({"model": {"type": "BPE"}}, "doesn't number its tokens like GPT-2"),
        (
            {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}
            | {"added_tokens": [None]},
            "doesn't number its tokens like GPT-2",
        ),
    ],
)
def test_another_tokenizer_json_is_refused(folder, content, said):
    (folder / "vocab.json").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=said):
        load_gpt2(folder)


def row(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    "table, said",
    [
        ({"a": row("I64", offsets=(0, 8))}, "a in numbers of type 'I64'"),
        ({"a": row(shape=(3,))}, r"changed: a doesn't have .* its shape \[3\]"),
        ({"a": row(offsets=(8, 16))}, "cut off or changed"),
        ([], "isn't a safetensors file, or it's damaged"),
    ],
)
def test_a_table_that_lies_is_refused(tmp_path, table, said):
    head = json.dumps(table).encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(head)) + head + b"\0" * 8)
    with pytest.raises(ValueError, match=said):
        read_tensors(tmp_path / "x")


# --- Fetching. ---


@pytest.fixture
def served(folder):
    """(address, {name: SHA-256}) of a folder, as files that can be fetched."""
    files = {}
    for name in FILES:
        files[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return folder.as_uri() + "/", files


def test_what_is_fetched_is_whole_and_is_fetched_once(folder, served, tmp_path, capsys):
    new = fetch_gpt2(tmp_path / "new", *served)
    assert sorted(path.name for path in new.iterdir()) == sorted(FILES)
    assert_close(load_gpt2(new)[0](IDX)[0], load_gpt2(folder)[0](IDX)[0])
    shutil.rmtree(folder)
    assert fetch_gpt2(new, *served) == new  # nothing is missing


def test_what_cannot_be_fetched_is_said_and_leaves_no_half_file(served, tmp_path):
    address, files = served
    with pytest.raises(FileNotFoundError, match="couldn't be downloaded .* network"):
        fetch_gpt2(tmp_path / "new", address + "nowhere/", files)
    other = files | {"vocab.json": "0" * 64}
    with pytest.raises(FileNotFoundError, match="invalid hash"):
        fetch_gpt2(tmp_path / "new", address, other)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["config.json"]


# --- The tokenizer. ---


STRANGE = "Hob's wig, 12 geese\n\n\tWe'll see_it: aaaaaa. "
STRANGE += "Où 🎭 ½ Ⅷ ٣ e\u0301 \x85\x1c\u2028 "


def learned(special=()):
    byte_pairs = learn(STRANGE * 40 + CORPUS, 330, alphabet=range(256))
    return GPT2Tokenizer(byte_pairs.merges, byte_pairs.alphabet, special=[*special])


def drawn(rng, n=40):
    return "".join(rng.choices([*STRANGE, "the", "  ", "aaa"], k=rng.randrange(n)))


def test_the_heap_joins_as_the_loop_of_lesson_13():
    ours, rng = learned(), random.Random(1)
    slow = BytePairTokenizer(ours.merges, ours.alphabet, cut=False)
    quick = GPT2Tokenizer(ours.merges, ours.alphabet, cut=False)
    for _ in range(200):
        text = drawn(rng)
        assert quick.encode(text) == slow.encode(text)
    assert join([0] * 5, {(0, 0): 1, (1, 1): 2}) == merge([1, 1, 0], (1, 1), 2)


def test_a_text_comes_back_with_its_special_tokens():
    tokenizer, rng = learned(["<|endoftext|>", "<|x|>"]), random.Random(2)
    end, x = tokenizer.vocab_size - 2, tokenizer.vocab_size - 1
    for _ in range(50):
        parts = [drawn(rng), "<|endoftext|>", drawn(rng), "<|x|>", "<|x|>"]
        ids = tokenizer.encode("".join(parts))
        assert tokenizer.decode(ids) == "".join(parts)
        assert [i for i in ids if i >= end] == [end, x, x]
    assert max(tokenizer.encode("<|endoftext")) < end
    assert type(tokenizer)(**tokenizer.state()) == tokenizer


def test_the_cut_knows_every_character_by_its_kind_in_unicode():
    for char in map(chr, range(0x30000)):
        kind = unicodedata.category(char)[0]
        kind = " " if char.isspace() and char not in "\x1c\x1d\x1e\x1f" else kind
        alone = gpt2_cut().findall(f"a{char}1!")
        expected = {
            "L": [f"a{char}", "1", "!"],
            "N": ["a", f"{char}1", "!"],
            " ": ["a", " 1", "!"] if char == " " else ["a", char, "1", "!"],
        }
        assert alone == expected.get(kind, ["a", char, "1", "!"]), hex(ord(char))


def test_a_long_word_takes_no_square_of_its_length():
    tokenizer = learned()
    assert tokenizer.decode(tokenizer.encode("a" * 100_000)) == "a" * 100_000


@pytest.mark.parametrize("special", [[], ["<|endoftext|>"]])
def test_the_files_of_a_tokenizer_are_read_back(tmp_path, special):
    tokenizer = learned(special)
    config = replace(TINY, vocab_size=tokenizer.vocab_size)
    save_gpt2(opinionated(config), tokenizer, tmp_path / "out")
    assert load_gpt2(tmp_path / "out")[1] == tokenizer
    vocabulary = json.loads((tmp_path / "out" / "vocab.json").read_text("utf-8"))
    assert vocabulary["Ġ"] == tokenizer.encode(" ")[0]
    newer = {"type": "BPE", "vocab": vocabulary}
    lines = (tmp_path / "out" / "merges.txt").read_text("utf-8").splitlines()[1:]
    newer["merges"] = [line.split() for line in lines]
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / "out" / name).unlink()
    written("tokenizer.json", json.dumps({"model": newer}))(tmp_path / "out")
    assert load_gpt2(tmp_path / "out")[1] == tokenizer


def test_a_tokenizer_that_the_files_cannot_say_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\['é'\] are two bytes or more"):
        as_gpt2_tokenizer(CharTokenizer("café"))
    with pytest.raises(ValueError, match="joins across spaces"):
        as_gpt2_tokenizer(learn(CORPUS, 40, cut=False))
    twice = GPT2Tokenizer([(0, 0), (0, 1), (1, 0)], [97])
    model = opinionated(replace(TINY, vocab_size=4))
    with pytest.raises(ValueError, match=r"\['aaa'\] are in the vocabulary twice"):
        save_gpt2(model, twice, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# --- The command line. ---


def run(*options):
    return main([str(option) for option in options])


@pytest.fixture
def exported(tmp_path, monkeypatch):
    """A folder in which `my-gpt` was exported of the model of 16 channels."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("to be or not to be; " * 100)
    shape = "--preset cpu --n-layer 1 --n-head 2 --n-embd 16 --block-size 8".split()
    assert run("train", "--data", "text", *shape, "--steps", "5") == 0
    assert run("export", "--out", "my-gpt") == 0
    return tmp_path


def test_an_exported_model_writes_the_same_text(exported, capsys):
    capsys.readouterr()
    greedy = "--device cpu --temperature 0 --tokens 30 --prompt to".split()
    assert run("sample", *greedy) == run("sample", *greedy, "--checkpoint", "my-gpt")
    first, second = capsys.readouterr().out.splitlines()
    assert first == second and len(first) == 32


def test_training_goes_on_from_a_folder(exported, capsys):
    new = "train --data text --from my-gpt --out new.pt".split()
    before = read_model("my-gpt").state_dict()
    assert run(*new, "--steps", "1", "--learning-rate", "1e-9") == 0
    begun = load_any("new.pt")
    assert type(begun.model) is GPT2
    for name, tensor in begun.model.state_dict().items():
        assert_close(tensor, before[name], atol=1e-6, rtol=0)
    assert run(*new[:-4], "--out", "new.pt", "--resume", "--steps", "40") == 0
    assert load_any("new.pt").run.step == 40
    assert run("export", "--checkpoint", "new.pt", "--out", "again") == 0
    model, tokenizer = load_gpt2("again")
    idx = torch.tensor([tokenizer.encode("to be ")])
    said = generate(load_any("new.pt").model, idx, 9, temperature=0)
    assert torch.equal(generate(model, idx, 9, temperature=0), said)


@pytest.mark.parametrize(
    "options, said",
    [
        ("--from my-gpt --n-layer 2 --preset cpu", "leave out --preset, --n-layer"),
        ("--from my-gpt --block-size 9", "--block-size is 9, but the model of --from"),
        ("--from nowhere", "There is no folder 'nowhere'"),
        ("--from my-gpt --data other", "Not in the vocabulary: ['é']"),
    ],
)
def test_what_training_from_a_folder_cannot_do(exported, capsys, options, said):
    (exported / "other").write_text("to be é" * 99, encoding="utf-8")
    assert run("train", "--data", "text", "--out", "x.pt", *options.split()) == 2
    assert said in capsys.readouterr().err and not (exported / "x.pt").exists()


def test_what_cannot_be_exported_is_refused(exported, capsys):
    assert run("export", "--out", "my-gpt") == 2
    assert "my-gpt exists" in capsys.readouterr().err
    small = "--n-layer 1 --n-head 2 --n-embd 16 --block-size 8 --steps 2".split()
    assert run("train", "--data", "text", "--out", "m.pt", *small) == 0
    assert run("export", "--checkpoint", "m.pt", "--out", "m") == 2
    assert "A ModernGPT has parts that GPT-2 doesn't have" in capsys.readouterr().err
    narrow = "--preset cpu --n-layer 1 --n-head 2 --n-embd 4 --steps 30".split()
    narrow += ["--block-size", "8"]
    assert run("train", "--data", "text", "--out", "n.pt", *narrow) == 0
    assert run("export", "--checkpoint", "n.pt", "--out", "n") == 2
    assert "doesn't fit into the last norm" in capsys.readouterr().err
    assert run("export", "--checkpoint", "n.pt", "--out", "n", "--nearest") == 0
    assert run("page", "--checkpoint", "my-gpt", "--out", "x.html") == 2


# --- The libraries, where they are installed. ---


@pytest.fixture
def transformers():
    library = pytest.importorskip("transformers")
    library.logging.set_verbosity_error()
    return library


@pytest.mark.parametrize("changes", SHAPES)
def test_transformers_reads_what_we_write(tmp_path, transformers, changes):
    model = gpt2(**changes)
    save_gpt2(model, tokens(30), tmp_path / "out")
    theirs = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "out")
    assert_close(theirs(IDX).logits, model(IDX)[0], atol=1e-4, rtol=1e-4)
    start = IDX[:1, :3]
    knobs = {"do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    knobs["attention_mask"] = torch.ones_like(start)  # or a 0 would be a gap
    greedy = theirs.generate(start, max_new_tokens=5, **knobs)
    assert torch.equal(greedy, generate(model, start, 5, temperature=0))


@pytest.mark.parametrize("seed", range(6))
def test_we_read_what_transformers_writes(tmp_path, transformers, seed):
    rng = random.Random(seed)
    n_head = rng.choice([1, 2, 3])
    shape = transformers.GPT2Config(
        vocab_size=rng.choice([7, 40]),
        n_positions=8,
        n_embd=8 * n_head,
        n_layer=rng.choice([1, 2, 3]),
        n_head=n_head,
        tie_word_embeddings=rng.random() < 0.7,
        activation_function=rng.choice(["gelu_new", "gelu", "relu"]),
        bos_token_id=0,
        eos_token_id=0,
    )
    theirs = transformers.GPT2LMHeadModel(shape).eval()
    for p in theirs.parameters():
        p.data += torch.randn_like(p) * 0.2
    theirs.save_pretrained(tmp_path)
    idx = IDX % shape.vocab_size
    ours = read_model(tmp_path)
    assert_close(ours(idx)[0], theirs(idx).logits, atol=1e-4, rtol=1e-4)


def test_transformers_cuts_and_joins_as_we_do(tmp_path, transformers):
    tokenizer, rng = learned(["<|endoftext|>"]), random.Random(3)
    config = replace(TINY, vocab_size=tokenizer.vocab_size)
    save_gpt2(opinionated(config), tokenizer, tmp_path / "out")
    theirs = transformers.GPT2Tokenizer.from_pretrained(tmp_path / "out")
    for _ in range(100):
        text = drawn(rng) + "<|endoftext|>" + drawn(rng)
        assert tokenizer.encode(text) == theirs(text).input_ids
    theirs.save_pretrained(tmp_path / "again")
    shutil.copy(tmp_path / "out" / "config.json", tmp_path / "again")
    shutil.copy(tmp_path / "out" / "model.safetensors", tmp_path / "again")
    assert load_gpt2(tmp_path / "again")[1] == tokenizer


def test_the_library_reads_our_tensors_and_we_read_its(tmp_path):
    library = pytest.importorskip("safetensors.torch")
    table = {"a": torch.randn(2, 3), "b": torch.randn(5).half(), "c": torch.ones(())}
    write_tensors(tmp_path / "ours", table)
    library.save_file(table, tmp_path / "theirs")
    theirs, ours = (
        library.load_file(tmp_path / "ours"),
        read_tensors(tmp_path / "theirs"),
    )
    for name, tensor in table.items():
        assert torch.equal(theirs[name], tensor.float())
        assert torch.equal(ours[name], tensor.float())


def test_the_cut_is_that_of_the_package_regex():
    regex = pytest.importorskip("regex")
    expression = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
    compiled, rng = regex.compile(expression + r"|\s+(?!\S)|\s+"), random.Random(4)
    known = [c for c in map(chr, range(sys.maxunicode + 1)) if known_character(c)]
    for _ in range(300):
        text = drawn(rng) + "".join(rng.choices(known, k=30)) + drawn(rng)
        assert gpt2_cut().findall(text) == compiled.findall(text)


def known_character(char):
    """Whether this Python's Unicode has it: the package's may be newer."""
    return unicodedata.category(char) not in ("Cn", "Cs")


@pytest.mark.weekly
def test_at_gpt2s_real_size_both_directions_agree(tmp_path, transformers):
    """With random numbers, 498 MB: what is written there, here and there again."""
    shape = transformers.GPT2Config()
    theirs = transformers.GPT2LMHeadModel(shape).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    ours, idx = read_model(tmp_path / "theirs"), torch.randint(50257, (1, 64))
    assert sum(p.numel() for p in ours.parameters()) == 124_439_808
    assert config_of(tmp_path / "theirs" / "config.json") == ours.config
    with torch.no_grad():
        expected = theirs(idx).logits
        assert_close(ours(idx)[0], expected, atol=1e-4, rtol=1e-4)
        assert_close(Reader(ours)(idx, last=64), expected, atol=1e-4, rtol=1e-4)
    merges = [(i // 256, i % 256) for i in range(50257 - 256)]  # of two bytes each
    tokenizer = GPT2Tokenizer(merges, [*range(256)])
    save_gpt2(ours, tokenizer, tmp_path / "ours")
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        assert_close(again(idx).logits, expected, atol=1e-4, rtol=1e-4)
    assert load_gpt2(tmp_path / "ours")[1] == tokenizer
