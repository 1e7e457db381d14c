"""Lesson 06: a training run in a file, whole or not at all."""

import os
import pickle
import zipfile
from dataclasses import asdict

import pytest
import torch
from small import PLAN, TOKENIZER, Intruder, V, fit, plan, small_gpt, weights_of
from torch.testing import assert_close

from minigpt.checkpoint import (
    Checkpoint,
    load_checkpoint,
    save_checkpoint,
    with_class,
)
from minigpt.data import CharTokenizer
from minigpt.device import set_random_state
from minigpt.files import replacing, write_whole
from minigpt.modern.model import ModernConfig
from minigpt.training import Run


def begun(model=None, config=PLAN):
    """The Checkpoint of a run that begins."""
    model = model or small_gpt(dropout=0.2)
    return Checkpoint(model, TOKENIZER, config, Run(model, config), text="its hash")


def kept(path, checkpoint, **options):
    """Train a Checkpoint's model, keep it in `path` at each evaluation; its history."""
    c = checkpoint
    options["on_eval"] = lambda run: save_checkpoint(path, c)
    return fit(c.model, c.config, run=c.run, **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The file of a finished run."""
    path = tmp_path_factory.mktemp("finished") / "run.pt"
    kept(path, begun())
    return path


def assert_equal(one, other):
    """Two Checkpoints hold the same, but for the random numbers of now."""
    assert torch.equal(weights_of(one.model), weights_of(other.model))
    assert one.tokenizer.chars == other.tokenizer.chars
    assert (one.config, one.model.config) == (other.config, other.model.config)
    assert one.run.step == other.run.step and one.run.seconds == other.run.seconds
    assert one.run.history == other.run.history and one.text == other.text
    states = [c.run.optimizer.state_dict() for c in (one, other)]
    assert_close(*states, rtol=0, atol=0)
    assert torch.equal(one.run.batches.get_state(), other.run.batches.get_state())


# --- There and back. ---


def test_a_run_goes_on_from_its_file_bit_for_bit(tmp_path):
    path = tmp_path / "run.pt"
    whole = small_gpt(dropout=0.2)
    history = fit(whole)

    def power_cut(run):
        if run.step == 15:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        kept(path, begun(), on_step=power_cut)
    half = load_checkpoint(path)
    assert half.run.step == 10 and half.config == PLAN
    torch.manual_seed(999)  # another process, another state
    set_random_state(half.random, torch.device("cpu"))
    resumed = kept(path, half)
    assert torch.equal(weights_of(half.model), weights_of(whole))
    assert [row[:3] for row in resumed] == [row[:3] for row in history]
    assert_equal(load_checkpoint(path), half)
    assert os.listdir(tmp_path) == ["run.pt"]  # nothing unfinished is left


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "text.txt"
    write_whole(path, "old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as unfinished:
        unfinished.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["text.txt"]
    assert path.read_text(encoding="utf-8") == "old"


def test_a_checkpoint_holds_model_vocabulary_recipe_and_run(tmp_path):
    path, checkpoint = tmp_path / "run.pt", begun(config=plan(steps=9, seed=3))
    kept(path, checkpoint)
    before = torch.get_rng_state()
    loaded = load_checkpoint(str(path))
    assert torch.equal(torch.get_rng_state(), before)  # it draws no random number
    assert_equal(loaded, checkpoint)
    assert torch.equal(loaded.random["cpu"], before)
    assert not loaded.model.training
    assert all(p.requires_grad for p in loaded.model.parameters())


def test_a_model_of_another_lesson_is_read_where_its_kind_is_allowed(tmp_path):
    path = tmp_path / "run.pt"
    model = ModernConfig(V, 8, n_layer=1, n_head=2, n_embd=16).build()
    save_checkpoint(path, begun(model))
    with pytest.raises(ValueError, match="ModernConfig"):
        load_checkpoint(path)
    loaded = load_checkpoint(path, kinds=(ModernConfig, type(PLAN)))
    assert_equal(loaded, begun(model))


# --- What does not belong together is refused before the first step. ---


def test_a_tokenizer_of_another_text_is_refused_before_training():
    model = small_gpt()
    with pytest.raises(ValueError, match=f"knows 3 tokens, but the model has {V}"):
        Checkpoint(model, CharTokenizer("abc"), PLAN, Run(model, PLAN))


def test_a_model_that_its_config_does_not_build_is_refused_before_training():
    model = small_gpt()
    model.extra = torch.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="have the weights that its config"):
        Checkpoint(model, TOKENIZER, PLAN, Run(model, PLAN))


# --- Damage. ---


DAMAGED = "is damaged or isn't a checkpoint ("
NANOGPT = "model optimizer model_args iter_num best_val_loss config"


def refused(path, how=DAMAGED):
    """What load_checkpoint says of a file that it refuses."""
    with pytest.raises(ValueError) as e:
        load_checkpoint(path)
    assert str(e.value).startswith(f"{path} {how}")
    assert ("train again" in str(e.value)) == how.startswith("is damaged")
    assert "\n" not in str(e.value)
    assert e.value.__context__ is None or e.value.__suppress_context__
    return str(e.value)


def test_a_missing_checkpoint_says_how_to_get_one(tmp_path):
    for path in (tmp_path / "none.pt", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"minigpt train --out {path}"):
            load_checkpoint(path)


def test_a_device_that_fails_is_not_a_damaged_file(finished):
    with pytest.raises(RuntimeError, match="nowhere"):
        load_checkpoint(finished, "nowhere")


def test_a_checkpoint_cut_off_anywhere_is_refused(finished, tmp_path):
    whole, path = finished.read_bytes(), tmp_path / "cut.pt"
    for n in [*range(0, len(whole), len(whole) // 20), len(whole) - 1]:
        path.write_bytes(whole[:n])
        refused(path)


def test_a_flipped_bit_is_refused_unless_nothing_is_kept_there(finished, tmp_path):
    whole, path = finished.read_bytes(), tmp_path / "flipped.pt"
    good, n_refused = load_checkpoint(finished), 0
    for i in range(60):
        damaged = bytearray(whole)
        damaged[len(whole) * i // 60] ^= 1 << i % 8
        path.write_bytes(damaged)
        try:
            assert_equal(load_checkpoint(path), good)  # torch leaves gaps
        except ValueError:
            n_refused += 1
    assert n_refused > 40


def pickled_zip(path, intruder):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("run/data.pkl", pickle.dumps(intruder))
        archive.writestr("run/version", "3")


OTHER = "isn't a checkpoint from `train`."  # a healthy file that holds something else
OBJECTS = "holds Python objects. They could run code"
STRANGERS = {  # what writes it, and how it is refused
    "a text": (lambda path, _: path.write_text("Romeo", encoding="utf-8"), DAMAGED),
    "a pickle": (lambda path, it: path.write_bytes(pickle.dumps(it)), DAMAGED),
    "a pickle in a zip": (pickled_zip, OBJECTS),
    "a pickle of torch's": (lambda path, it: torch.save({"model": it}, path), OBJECTS),
    "another file of torch's": (lambda path, _: torch.save({"a": "b"}, path), OTHER),
    "a tensor": (lambda path, _: torch.save(torch.zeros(3), path), OTHER),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_file_of_another_kind_is_named_and_not_executed(tmp_path, stranger):
    path, intruder = tmp_path / "stranger.pt", Intruder(tmp_path / "in")
    write, said = STRANGERS[stranger]
    write(path, intruder)
    refused(path, said)
    assert os.listdir(tmp_path) == ["stranger.pt"]
    pickle.loads(pickle.dumps(intruder))  # it would have come in
    assert (tmp_path / "in").is_dir()


CONFIG = small_gpt().config
SHAPE = asdict(CONFIG)


@pytest.mark.parametrize(
    "change",
    [
        {"model_config": with_class(CONFIG, SHAPE | {"n_embd": 32})},
        {"model_config": with_class(CONFIG, SHAPE | {"n_embd": 15})},
        {"model_config": with_class(CONFIG, SHAPE | {"bias": True})},
        {"train_config": with_class(PLAN, asdict(PLAN) | {"steps": 0})},
        {"tokenizer": with_class(TOKENIZER, {"chars": "abc"})},
        {"history": [(1, 2)]},
        {"model": {}},
    ],
    ids=str,
)
def test_a_checkpoint_whose_parts_do_not_fit_is_refused(finished, tmp_path, change):
    path, content = tmp_path / "odd.pt", torch.load(finished, weights_only=True)
    torch.save(content | change, path)
    refused(path, "is a checkpoint whose parts don't fit together (")


def test_a_checkpoint_without_one_of_its_parts_is_refused(finished, tmp_path):
    path, content = tmp_path / "odd.pt", torch.load(finished, weights_only=True)
    for name in content:
        torch.save({n: part for n, part in content.items() if n != name}, path)
        assert name in refused(path, "is a checkpoint without [")


# --- Writing. ---


def test_what_is_written_is_on_the_disk_before_it_moves(tmp_path, monkeypatch):
    done = []
    sync, move = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda n: (done.append("sync"), sync(n)))
    monkeypatch.setattr(os, "replace", lambda *p: (done.append("move"), move(*p)))
    save_checkpoint(tmp_path / "run.pt", begun())
    assert done == ["sync", "move"]
