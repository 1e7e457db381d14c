"""The trained models that come along: each is what is written beside it."""

import re
from dataclasses import asdict

import pytest
import torch
from small import DATA, TOKENIZER, identical, small_gpt

from minigpt.course import ladder, pocket, record
from minigpt.course.experiments import stored_models
from minigpt.evaluation import evaluate
from minigpt.stored import FOLDER, load_stored
from minigpt.stored.rungs import BODIES

NAMES = sorted(path.stem for path in FOLDER.glob("*.pt"))
RUNGS = {name: name.replace(" ", "-") for name in ["bigram", *BODIES]}  # their files


def content(name):
    return torch.load(FOLDER / f"{name}.pt", weights_only=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_model_has_the_loss_that_is_written_beside_it(name, request):
    model, tokenizer = load_stored(name)
    if name.startswith("pocket"):
        learned = pocket.load().tokenizer
        val = pocket.load().ids[pocket.load().n :]
    else:
        learned = request.getfixturevalue("tokenizer")
        val = request.getfixturevalue("splits")[1]
    assert tokenizer.chars == learned.chars
    loss = content(name)["loss"]
    assert evaluate(model, val, model.block_size) == pytest.approx(loss, abs=1e-3)
    assert f"{loss:.4f}" in re.search(f"    {name} .*", stored_models.__doc__)[0]
    assert not model.training and next(model.parameters()).dtype == torch.float32


def test_each_of_them_can_be_made_anew():
    assert set(stored_models.MADE) == {"play", *NAMES}


def test_a_stored_rung_is_the_ladders_training_of_the_first_seed():
    """But for the rounding to 16 bits; the bigram is the table of counts."""
    runs = record.load("ladder") | {"bigram": record.load("01-longer")["counted"]}
    sizes = {rung.name: rung.parameters for rung in ladder.recorded()}
    for rung, name in RUNGS.items():
        recorded = runs[rung].runs[1337]["loss"]
        assert content(name)["loss"] == pytest.approx(recorded, abs=1e-3), name
        model, _ = load_stored(name)
        assert sum(p.numel() for p in model.parameters()) == sizes[rung], name


def test_the_stored_rungs_are_small():
    sizes = [(FOLDER / f"{name}.pt").stat().st_size for name in RUNGS.values()]
    assert sum(sizes) < 700_000  # bytes


@pytest.mark.parametrize("name", ["gpt", "one-head"])
def test_to_load_a_stored_model_draws_no_random_number(name):
    before = torch.get_rng_state()
    load_stored(name)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_training_is_stored_as_load_stored_reads_it(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_models, "FOLDER", tmp_path)
    monkeypatch.setattr("minigpt.stored.FOLDER", tmp_path)
    model, data, history = small_gpt(), DATA[:50], [(1, 2.0, 3.0, 4.0)]
    built = {"config": asdict(model.config)}
    stored_models.store("mine", model, history, TOKENIZER, data, built)
    kept = torch.load(tmp_path / "mine.pt", weights_only=True)
    rounded = evaluate(model, data, 8)  # of the rounded parameters
    assert identical(kept["loss"], rounded)
    assert kept["history"] == history
    again, tokenizer = load_stored("mine")
    assert tokenizer.chars == TOKENIZER.chars
    for a, b in zip(again.parameters(), model.parameters()):
        assert torch.equal(a, b)
