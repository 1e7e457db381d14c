"""Lesson 06: a training run in a file, whole or not at all."""

import contextlib
import copy
import os
import pickle
import zipfile
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from small import DATA, PLAN, TOKENIZER, Intruder, V, fit, plan, small_gpt, weights_of
from torch.testing import assert_close

from minigpt.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, saver
from minigpt.evaluation import evaluate
from minigpt.files import check_writable, replacing
from minigpt.training import TrainState

STATE = TrainState(0, [], {"state": {}}, {}, PLAN.seed)


def run(path, model, config=PLAN, **options):
    """Train and keep each state in `path`; returns the history."""
    return fit(model, config, save=saver(path, model, TOKENIZER, config), **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The file of a finished run."""
    path = tmp_path_factory.mktemp("finished") / "run.pt"
    run(path, small_gpt(dropout=0.2))
    return path


def equal(one, other):
    """True if two Checkpoints hold the same."""
    assert_close(one.state.optimizer, other.state.optimizer, rtol=0, atol=0)
    assert_close(one.state.random_state, other.state.random_state, rtol=0, atol=0)
    return (
        torch.equal(weights_of(one.model), weights_of(other.model))
        and one.tokenizer.chars == other.tokenizer.chars
        and (one.config, one.model.config) == (other.config, other.model.config)
        and one.state.step == other.state.step
        and one.state.history == other.state.history
        and one.state.seed == other.state.seed
    )


# --- There and back. ---


def test_a_run_goes_on_from_its_file_bit_for_bit(tmp_path):
    path = tmp_path / "a" / "new folder" / "run.pt"
    whole = small_gpt(dropout=0.2)
    history = fit(whole)
    cut = small_gpt(dropout=0.2)

    class PowerCut(Exception):
        pass

    def power_cut(step):
        if step == 15:
            raise PowerCut

    with contextlib.suppress(PowerCut):
        run(path, cut, on_step=power_cut)
    half = load_checkpoint(path)
    assert half.state.step == 10 and half.config == PLAN
    torch.manual_seed(999)  # another process, another state
    resumed = run(path, half.model, resume=half.state)
    assert torch.equal(weights_of(half.model), weights_of(whole))
    assert [row[:3] for row in resumed] == [row[:3] for row in history]
    done = load_checkpoint(path)
    assert torch.equal(weights_of(done.model), weights_of(whole))
    assert done.state.step == 20 and done.state.history == resumed
    assert list(path.parent.iterdir()) == [path]  # nothing unfinished is left


def test_a_checkpoint_holds_model_vocabulary_recipe_and_state(finished):
    model, states = small_gpt(dropout=0.2), []
    fit(model, save=states.append)
    loaded = load_checkpoint(finished)
    history = [row._replace(seconds=0) for row in states[-1].history]
    seconds = [row._replace(seconds=0) for row in loaded.state.history]
    assert history == seconds
    state = states[-1]._replace(history=loaded.state.history)
    assert equal(loaded, Checkpoint(model, TOKENIZER, PLAN, state))


def test_a_loaded_model_is_ready_to_be_used_and_to_be_trained(finished):
    model = load_checkpoint(str(finished)).model
    assert not model.training
    assert all(p.requires_grad and p.device.type == "cpu" for p in model.parameters())
    before = evaluate(model, DATA, 8)
    fit(model)
    assert evaluate(model, DATA, 8) < before


def test_loading_draws_no_random_number(finished):
    before = torch.get_rng_state()
    load_checkpoint(finished)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_loaded_lives_apart_from_the_file_and_from_itself(finished):
    before = finished.read_bytes()
    first, second = load_checkpoint(finished), load_checkpoint(finished)
    with torch.no_grad():
        for parameter in first.model.parameters():
            parameter.zero_()
    finished.write_bytes(bytes(len(before)))
    untouched = copy.deepcopy(second)
    finished.write_bytes(before)
    assert equal(second, untouched) and equal(second, load_checkpoint(finished))
    assert weights_of(second.model).any()


def test_a_model_is_built_on_the_device_that_is_named(finished):
    model = load_checkpoint(finished, torch.device("meta")).model
    assert {p.device.type for p in model.parameters()} == {"meta"}


def test_a_device_that_fails_is_not_a_damaged_file(finished):
    with pytest.raises(ValueError, match="nowhere.* does not find"):
        load_checkpoint(finished, "nowhere")


# --- Damage. ---


def test_a_missing_checkpoint_says_how_to_get_one(tmp_path):
    with pytest.raises(FileNotFoundError, match="minigpt train --out .*none.pt"):
        load_checkpoint(tmp_path / "none.pt")
    with pytest.raises(IsADirectoryError, match="folder without a checkpoint"):
        load_checkpoint(tmp_path)


def refused(path):
    """What load_checkpoint says of a file that it refuses, and where it is."""
    with pytest.raises(ValueError) as e:
        load_checkpoint(path)
    said = str(e.value)
    assert e.value.__suppress_context__ or e.value.__context__ is None
    assert said.startswith(f"{path} ") and "\n" not in said and said.endswith(".")
    return said


DAMAGED = "is damaged or cut short, or another program's. Copy it again"
ANOTHER_KIND = "is not a checkpoint but a file of another kind: name one"
MIGHT_RUN = "might run as a program, and none of it was read. Use only files"
STRANGE = "is not a checkpoint of this version of minigpt: its parts are not"


def test_a_checkpoint_cut_off_anywhere_is_refused(finished, tmp_path):
    whole, path = finished.read_bytes(), tmp_path / "cut.pt"
    for i in range(60):
        path.write_bytes(whole[: len(whole) * i // 60])
        assert (DAMAGED if i else ANOTHER_KIND) in refused(path)
    path.write_bytes(whole[:-1])
    assert DAMAGED in refused(path)


def test_a_flipped_bit_is_refused_wherever_it_is(finished, tmp_path):
    whole, path = finished.read_bytes(), tmp_path / "flipped.pt"
    for i in range(60):
        damaged = bytearray(whole)
        damaged[len(whole) * i // 60] ^= 1 << i % 8
        path.write_bytes(damaged)
        assert (DAMAGED if i else ANOTHER_KIND) in refused(path)
    damaged = bytearray(whole)
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    assert DAMAGED in refused(path)


def test_the_same_run_writes_the_same_file(tmp_path):
    for name in ("one.pt", "two.pt"):
        save_checkpoint(
            tmp_path / name, Checkpoint(small_gpt(), TOKENIZER, PLAN, STATE)
        )
    one, two = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert one == two


def test_torch_itself_can_read_the_file(finished):
    content = torch.load(finished, weights_only=True)
    assert content["step"] == 20 and content["chars"] == TOKENIZER.chars


def seal(path):
    """Make a file look undamaged: behind its bytes stands their SHA-256."""
    content = path.read_bytes()
    path.write_bytes(content + sha256(content).digest())


def write(path, content):
    torch.save(content, path)
    seal(path)


def zip_of_something_else(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("letter.txt", "Dear reader")


def pickled_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("run/data.pkl", pickle.dumps(Intruder(path.parent / "in")))
        archive.writestr("run/version", "3")


def intruder(path):
    return Intruder(path.parent / "in")


def pickle_of_torchs(path):
    torch.save({"format": 1, "model": intruder(path)}, path)


def old_format(path):
    torch.save({"model": {}}, path, _use_new_zipfile_serialization=False)


STRANGERS = {  # how each is written, and what is said of it when it has a seal
    "nothing": (lambda p: p.write_bytes(b""), ANOTHER_KIND),
    "a text": (lambda p: p.write_text("O Romeo!", encoding="utf-8"), ANOTHER_KIND),
    "noise": (lambda p: p.write_bytes(bytes(range(256)) * 9), ANOTHER_KIND),
    "a pickle": (lambda p: p.write_bytes(pickle.dumps(intruder(p))), ANOTHER_KIND),
    "torch's old format": (old_format, ANOTHER_KIND),
    "a zip of something else": (zip_of_something_else, STRANGE),
    "a pickle in a zip": (pickled_zip, MIGHT_RUN),
    "a pickle of torch's": (pickle_of_torchs, MIGHT_RUN),
    "something else of torch's": (lambda p: torch.save({"a": "b"}, p), STRANGE),
    "a tensor": (lambda p: torch.save(torch.zeros(3), p), STRANGE),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_file_of_another_kind_is_refused_and_nothing_in_it_is_executed(
    tmp_path, stranger
):
    path = tmp_path / "stranger.pt"
    write_it, said = STRANGERS[stranger]
    write_it(path)
    assert (ANOTHER_KIND if said == ANOTHER_KIND else DAMAGED) in refused(path)
    seal(path)
    assert said in refused(path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_intruder_would_have_come_in(tmp_path):
    pickle.loads(pickle.dumps(Intruder(tmp_path / "in")))
    assert (tmp_path / "in").is_dir()


SHAPE = asdict(small_gpt().config)
ANOTHER_MODEL = "holds the weights of another model than its configuration describes"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_config": None}, STRANGE),
        ({"model_config": SHAPE | {"n_embd": 32}}, ANOTHER_MODEL),
        ({"model_config": SHAPE | {"n_layer": 1}}, ANOTHER_MODEL),
        ({"model_config": SHAPE | {"bias": True}}, STRANGE),
        ({"model_config": SHAPE | {"n_embd": 15}}, STRANGE),
        ({"train_config": asdict(PLAN) | {"steps": 0}}, STRANGE),
        ({"chars": ""}, STRANGE),
        ({"chars": "abc"}, f"has a vocabulary of 3 characters and a model of {V}"),
        ({"history": [(1, 2)]}, STRANGE),
        ({"model": {}}, ANOTHER_MODEL),
        ({"model": None}, ANOTHER_MODEL),
        ({"format": 2}, "was written by a newer minigpt (format 2; this one reads up"),
        ({"format": "new"}, STRANGE),
    ],
    ids=str,
)
def test_a_checkpoint_whose_parts_do_not_fit_is_refused(
    finished, tmp_path, change, said
):
    content = torch.load(finished, weights_only=True)
    path = tmp_path / "odd.pt"
    write(path, content | change)
    assert said in refused(path)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_checkpoint_of_a_model_that_has_diverged_is_refused(
    finished, tmp_path, value
):
    content = torch.load(finished, weights_only=True)
    path = tmp_path / "odd.pt"
    next(reversed(content["model"].values())).view(-1)[-1] = value
    write(path, content)
    assert "infinite or not a number: that run had diverged. Train again with a" in (
        refused(path)
    )


def test_a_checkpoint_from_before_formats_had_numbers_is_read(finished, tmp_path):
    content = torch.load(finished, weights_only=True)
    assert content.pop("format") == 1
    path = tmp_path / "old.pt"
    write(path, content)
    assert equal(load_checkpoint(path), load_checkpoint(finished))


@pytest.mark.skipif(os.name == "nt", reason="there, what is empty takes room, too")
def test_a_large_file_of_another_kind_is_refused_unread(tmp_path):
    path = tmp_path / "large.txt"
    with open(path, "wb") as file:
        file.truncate(2**40)  # a terabyte of nothing, which takes no room
    assert ANOTHER_KIND in refused(path)


def test_a_checkpoint_without_one_of_its_parts_is_refused(finished, tmp_path):
    content = torch.load(finished, weights_only=True)
    path = tmp_path / "odd.pt"
    write(path, content)
    assert equal(load_checkpoint(path), load_checkpoint(finished))
    for name in set(content) - {"format"}:
        write(path, {n: part for n, part in content.items() if n != name})
        assert STRANGE in refused(path)


# --- Files. ---


def test_a_failed_write_leaves_the_old_checkpoint(finished, tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    path.write_bytes(finished.read_bytes())
    checkpoint = load_checkpoint(path)

    def full_disk(unfinished, content):
        with open(unfinished, "wb") as file:
            file.write(content[:99])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(path, checkpoint)
    assert path.read_bytes() == finished.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_replaced_only_when_all_went_well(tmp_path):
    path = tmp_path / "a" / "new folder" / "file.txt"
    for text in ("first", "second"):
        with replacing(str(path)) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
            assert not path.exists() or path.read_text(encoding="utf-8") == "first"
            assert unfinished.parent == path.parent  # moving there is one step
        assert path.read_text(encoding="utf-8") == text
    with pytest.raises(KeyboardInterrupt), replacing(path) as unfinished:
        unfinished.write_text("third", encoding="utf-8")
        raise KeyboardInterrupt
    assert path.read_text(encoding="utf-8") == "second"
    assert list(path.parent.iterdir()) == [path]


def nowhere(kind, tmp_path, monkeypatch):
    """A path to which nothing can be written, even by root."""
    (tmp_path / "file").write_text("here", encoding="utf-8")
    (tmp_path / "folder").mkdir()

    def forbidden(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    if kind == "forbidden":
        monkeypatch.setattr(Path, "touch", forbidden)
    return (
        tmp_path
        / {
            "below a file": "file/run.pt",
            "a folder": "folder",
            "forbidden": "run.pt",
            "too long a name": "x" * 300,
        }[kind]
    )


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("below a file", "Not a directory|File exists"),
        ("a folder", "is a folder: give the name of a file in it"),
        ("forbidden", r"Permission denied\): give another place"),
        ("too long a name", "too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_training(
    tmp_path, monkeypatch, kind, why
):
    path = nowhere(kind, tmp_path, monkeypatch)
    with pytest.raises(OSError, match=why) as error:
        saver(path, small_gpt(), TOKENIZER, PLAN)
    assert str(path) in str(error.value)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_look_at_a_place_leaves_it_as_it_was(tmp_path):
    path = tmp_path / "run.pt"
    for others in (["run.pt.probe"], ["run.pt", "run.pt.probe"]):
        for name in others:
            (tmp_path / name).write_text(name, encoding="utf-8")
        check_writable(str(path))
        assert sorted(p.name for p in tmp_path.iterdir()) == others
        assert all(p.read_text(encoding="utf-8") == p.name for p in tmp_path.iterdir())


def test_a_vocabulary_and_a_model_of_any_size_come_back(tmp_path):
    path = tmp_path / "run.pt"
    save_checkpoint(path, Checkpoint(small_gpt(), TOKENIZER, plan(steps=9), STATE))
    loaded = load_checkpoint(path)
    assert loaded.tokenizer.vocab_size == loaded.model.config.vocab_size == V
    assert loaded.state == STATE and loaded.config.steps == 9
