"""The record of experiments, the ladder that is read from it, and measuring anew."""

import json
import math

import pytest
import torch
from small import DATA, TOKENIZER, V, identical

from minigpt.course import ladder, record
from minigpt.course.experiments import __main__ as measure
from minigpt.course.experiments import all_rungs, how_low, recording
from minigpt.course.experiments import fit as fitting
from minigpt.course.record import Variant, difference
from minigpt.tools.corpus import Corpus


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder in the place of the published records."""
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    return tmp_path


def variant(name, *losses, **other):
    return Variant(name, {s: {"loss": x, **other} for s, x in enumerate(losses, 1)})


# --- The record. ---


def test_a_record_comes_back_as_it_was_saved(folder):
    both = {"plain": variant("plain", 2.0, 2.2), "own": variant("own", 1.9, n=3)}
    recording.save("toy", both)
    assert record.load("toy") == both
    assert list(record.load("toy")) == ["plain", "own"]
    stored = json.loads((folder / "toy.json").read_text(encoding="utf-8"))
    assert stored["torch"] in torch.__version__
    assert f"{torch.get_num_threads()} threads" in stored["machine"]
    with pytest.raises(ValueError):
        recording.save("toy", {"failed": variant("failed", math.nan)})
    assert record.load("toy") == both and len(list(folder.iterdir())) == 1
    with pytest.raises(FileNotFoundError, match="course.experiments game"):
        record.load("game")


def test_a_variant_sums_up_its_seeds_in_their_order():
    v = Variant("v", {3: {"loss": 2.0}, 1: {"loss": 4.0}, 2: {"loss": 9.0}})
    assert v.values() == [4.0, 9.0, 2.0]
    assert (v.mean(), v.spread()) == pytest.approx((5.0, 7.0))


def test_differences_are_paired_by_seed():
    first = Variant("first", {1: {"loss": 1.0}, 2: {"loss": 5.0}, 9: {"loss": 0.0}})
    second = Variant("second", {2: {"loss": 4.5}, 1: {"loss": 0.6}, 8: {"loss": 99.0}})
    d = difference(first, second)
    assert d.each == pytest.approx([0.4, 0.5]) and d.mean == pytest.approx(0.45)
    assert str(d) == "+0.450 (+0.400 to +0.500, 2 of 2)"


def test_it_is_a_tie_unless_all_seeds_agree():
    def shown(*losses):
        zeros = variant("none", *[0] * len(losses))
        return str(difference(variant("one", *losses), zeros))

    assert shown(-0.1, 0.4, 0.3) == "+0.200 (-0.100 to +0.400, 2 of 3), a tie"
    assert shown(0.0, 0.2).endswith("1 of 2), a tie")
    assert shown(-0.3, -0.2) == "-0.250 (-0.300 to -0.200, 2 of 2)"


def test_a_table_against_a_name_that_is_not_there_says_which_are():
    both = {"plain": variant("plain", 2.0), "own": variant("own", 1.9)}
    with pytest.raises(
        ValueError, match="no variant 'plan'; there are: 'plain', 'own'"
    ):
        record.table(both, against="plan")


# --- The ladder. ---


LOSSES = [4.17, 3.35, 2.49, 2.40, 2.38, 2.20, 2.00, 1.95, 1.70]


@pytest.fixture
def published(folder, monkeypatch):
    """A published ladder: two seeds, 0.01 above and below LOSSES; `sizes` 0 to 800."""
    variants = {
        name: variant(name, x - 0.01, x + 0.01, parameters=i * 100, seconds=i)
        for i, (name, x) in enumerate(zip(ladder.NAMES, LOSSES))
    }
    recording.save("ladder", variants)
    monkeypatch.setattr(ladder, "load_text", lambda: "x" * 1_115_394)
    return ladder.recorded()


def test_the_recorded_ladder_falls_by_more_than_its_spreads():
    found = ladder.recorded()
    assert [rung.name for rung in found] == ladder.NAMES
    for high, low in zip(found, found[1:]):
        assert low.loss + max(low.spread, high.spread) < high.loss


def test_a_readers_own_result_stands_below_the_recorded_rungs(published):
    """Not averaged with what was recorded, which lends a single seed its spread."""
    assert [rung.loss for rung in published] == pytest.approx(LOSSES)
    shown = ladder.climb("GPT", {1: 9.0}, 800, 12.0)
    assert shown[:-1] == published[:-1]
    assert shown[-1] == ("GPT", 9.0, published[-1].spread, 800, 12.0)
    assert ladder.climb("GPT", {1: 9.0}, 801, 12.0)[-1].spread == 0
    assert ladder.climb("GPT", {5: 1.5, 6: 2.0}, 800, 12.0)[-1][1:3] == (1.75, 0.5)
    assert len(ladder.climb("one head", {1: 2.38}, 400, 1.0)) == 5
    with pytest.raises(ValueError, match="'two heads' is not in list"):
        ladder.climb("two heads", {1: 2.0}, 1, 1.0)


def test_a_climb_onto_another_keeps_what_was_measured_before(published):
    first = ladder.climb("one block", {1: 2.11}, 600, 10.0)
    both = ladder.climb("three blocks", {1: 1.99}, 700, 20.0, onto=first)
    assert both[:-1] == first and identical(both[-1].loss, 1.99)
    again = ladder.climb("one block", {1: 2.22}, 600, 10.0, onto=both)
    assert identical(again[-1].loss, 2.22) and len(again) == len(first)
    (other,) = ladder.climb("GPT", {1: 0.9}, 800, 1.0, comparable=False)  # text
    assert identical(other.loss, 0.9) and other.spread == 0


def test_results_on_another_text_never_stand_below_the_recorded(published, monkeypatch):
    monkeypatch.setattr(ladder, "load_text", lambda: "the built-in play")
    (first,) = rungs = ladder.climb("one block", {1: 0.5}, 600, 10.0)
    rungs = ladder.climb("three blocks", {1: 0.4}, 700, 20.0, onto=rungs)
    assert [rung.name for rung in rungs] == ["one block", "three blocks"]
    assert first.spread == 0


# --- Measuring. ---


def number(seed):
    return {"loss": seed / 10, "seconds": 1}


@pytest.fixture
def toys(folder, monkeypatch):
    """Two experiments."""
    known = {"toy": {"a": number, "b": number}, "game": {"c": number}}
    monkeypatch.setattr(measure, "experiments", lambda: known)


def test_measuring_keeps_each_result_beside_those_before(toys):
    measure.main(["toy", "--seeds", "1"])
    measure.main(["toy", "--seeds", "2"])
    for name, v in zip("ab", record.load("toy").values()):
        assert v == Variant(name, {1: number(1), 2: number(2)})


def test_only_what_is_missing_is_measured(toys, capsys):
    measure.main(["toy", "--seeds", "1"])
    capsys.readouterr()
    measure.main(["--missing", "--seeds", "1", "2"])
    lines = [line for line in capsys.readouterr().out.splitlines() if "seed" in line]
    assert [line.split(":")[0] for line in lines] == [
        *("toy · a · seed 2", "toy · b · seed 2"),
        *("game · c · seed 1", "game · c · seed 2"),
    ]
    measure.main(["--missing", "--seeds", "1", "2"])
    assert capsys.readouterr().out == ""


def test_runs_that_were_measured_before_keep_their_date_and_machine(
    toys, folder, monkeypatch
):
    def stored():
        content = json.loads((folder / "toy.json").read_text(encoding="utf-8"))
        return content["machine"], [
            (other["date"], other["machine"], other["runs"])
            for other in content.get("also", [])
        ]

    old = {"date": "2020-02-02", "machine": "an abacus", "torch": "1.0"}
    runs = {"a": {"1": number(1), "2": number(2)}, "b": {"1": number(1)}}
    text = json.dumps(old | {"variants": runs})  # as records without "also" are
    (folder / "toy.json").write_text(text, encoding="utf-8")
    here = recording.machine()
    measure.main(["toy", "--missing", "--seeds", "1", "2"])
    before = ("2020-02-02", "an abacus", {"a": [1, 2], "b": [1]})
    assert stored() == (here, [before])
    monkeypatch.setattr(recording, "machine", lambda: "a third one")
    measure.main(["toy", "--seeds", "1"])
    machine, ((*_, first), (_, second, runs)) = stored()
    assert (machine, first) == ("a third one", {"a": [2]})
    assert (second, runs) == (here, {"b": [2]})
    measure.main(["toy", "--seeds", "1", "2"])
    assert stored() == ("a third one", [])
    assert record.load("toy")["b"].values() == [0.1, 0.2]


def test_what_cannot_be_measured_is_said(toys, folder, capsys):
    with pytest.raises(SystemExit):
        measure.main(["toys"])
    assert "no experiment 'toys'; there are: toy, game" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


@pytest.fixture
def tiny(monkeypatch):
    """The corpus and the recipes of the experiments, small enough for a test."""
    text = Corpus(DATA[:-200], DATA[-200:], TOKENIZER)
    monkeypatch.setattr(fitting, "corpus", lambda: text)
    preset = fitting.preset

    def quick(name, vocab_size):
        model, recipe = preset(name, vocab_size)
        return model, recipe.__class__(2, 4, recipe.block_size, 1e-3)

    monkeypatch.setattr(fitting, "preset", quick)
    yield text
    torch.set_num_threads(1)  # the GPT takes all of them


@pytest.mark.parametrize("name", ["bigram", "one head", "GPT"])
def test_each_rung_measures_loss_parameters_and_seconds_from_its_seed(tiny, name):
    function = all_rungs.EXPERIMENTS["ladder"][name]
    if name == "bigram":
        function = all_rungs.partial(function, steps=2)
    if name == "one head":
        function = all_rungs.partial(function, steps=2, batch_size=4)
    first, again = function(1), function(1)
    assert first.keys() >= {"loss", "parameters", "seconds"}
    assert identical(first["loss"], again["loss"])
    assert not identical(first["loss"], function(2)["loss"])


def test_what_needs_no_training_is_exact(tiny):
    assert list(all_rungs.EXPERIMENTS["ladder"]) == ladder.NAMES
    guess, counts = (all_rungs.EXPERIMENTS["ladder"][n](1) for n in ladder.NAMES[:2])
    assert guess["loss"] == pytest.approx(math.log(V))
    p = tiny.train.bincount(minlength=V) / len(tiny.train)
    expected = -sum(math.log(p[c]) for c in tiny.val[1:]) / 199
    assert counts["loss"] == pytest.approx(expected, rel=1e-5)


# A notebook shows it as what it is: one seed, or a count without anything random.
SINGLE = {"07-wide", "nanogpt_demo", "13-lone-spaces"}


def test_every_experiment_is_recorded_over_three_seeds():
    for name, variants in measure.experiments().items():
        known = record.load(name)
        assert list(known) == list(variants), name
        for variant in known.values():
            wanted = 1 if {name, variant.name} & SINGLE else 3
            assert len(variant.runs) >= wanted, f"{name}: {variant.name}"
    published = {path.stem for path in record.FOLDER.glob("*.json")}
    assert published == measure.experiments().keys()


def test_counting_by_text_search_gives_the_recorded_kind_of_loss(tiny):
    text, n, strength = [*tiny.train.tolist(), *tiny.val.tolist()], len(tiny.train), 20
    total = 0.0
    for i in range(n + 1, len(text)):
        p = 1 / V
        for length in range(3):
            context = text[i - length : i]
            followers = [
                text[j] for j in range(length, n) if text[j - length : j] == context
            ]
            p = (followers.count(text[i]) + strength * p) / (len(followers) + strength)
        total -= math.log(p)
    measured = how_low.counted(seed=1, longest=2)
    assert measured["loss"] == pytest.approx(total / 199, rel=1e-2)
    one, six = (how_low.counted(seed=1, longest=k) for k in (1, 6))
    assert one["windows of 64"] == pytest.approx(one["loss"])  # one is always there
    assert six["windows of 64"] > six["loss"]
