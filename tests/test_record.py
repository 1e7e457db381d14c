"""The record of experiments, the ladder that is read from it, and measuring anew."""

import json
import math
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from small import DATA, PLAN, V

from minigpt import ladder, plots, record
from minigpt.experiments import __main__ as command
from minigpt.experiments import fit as fitting
from minigpt.experiments import how_low, measure
from minigpt.experiments import ladder as rungs
from minigpt.gpt import GPT, GPTConfig
from minigpt.record import Variant, difference


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
    record.save("toy", both)
    assert record.load("toy") == both
    assert list(record.load("toy")) == ["plain", "own"]
    assert [path.name for path in folder.iterdir()] == ["toy.json"]
    stored = json.loads((folder / "toy.json").read_text(encoding="utf-8"))
    assert stored["torch"] in torch.__version__
    assert f"{torch.get_num_threads()} threads" in stored["machine"]


def test_what_was_not_measured_says_how_to_measure_it(folder):
    with pytest.raises(FileNotFoundError, match="python -m minigpt.experiments toy"):
        record.load("toy")


def test_a_variant_sums_up_its_seeds_in_their_order():
    v = Variant("v", {3: {"loss": 2.0}, 1: {"loss": 4.0}, 2: {"loss": 9.0}})
    assert v.values() == [4.0, 9.0, 2.0]
    assert (v.mean(), v.spread()) == (5.0, 7.0)


def test_differences_are_paired_by_seed():
    first = Variant("first", {1: {"loss": 1.0}, 2: {"loss": 5.0}, 9: {"loss": 0.0}})
    second = Variant("second", {2: {"loss": 4.5}, 1: {"loss": 0.6}, 8: {"loss": 99.0}})
    d = difference(first, second)
    assert d.mean == pytest.approx(0.45) and d.spread == pytest.approx(0.1)
    assert not d.is_tie
    back = difference(second, first)
    assert back.mean == -d.mean and not back.is_tie
    with pytest.raises(ValueError, match=r"'a' has the seeds \[1\], 'b' \[2\]"):
        difference(Variant("a", {1: {"loss": 1}}), Variant("b", {2: {"loss": 1}}))


def test_a_difference_within_its_spread_is_a_tie():
    def tie(*differences):
        return difference(
            variant("one", *differences), variant("none", *[0] * len(differences))
        ).is_tie

    assert tie(-0.1, 0.2) and tie(0.0, 0.0)
    assert not tie(0.2, 0.3) and not tie(-0.3, -0.2)


def test_a_table_shows_mean_spread_and_difference():
    both = {"plain": variant("plain", 2.0, 2.5), "own": variant("own", 1.0, 1.75)}
    head, plain, own = record.table(both, against="plain").splitlines()
    assert "loss" in head and head.endswith("against 'plain'")
    assert plain.split() == ["plain", "2.250", "0.500"]
    assert own.split() == ["own", "1.375", "0.750", "-0.875", "±", "0.125"]
    assert "a tie" in record.table(both | {"same": both["plain"]}, against="plain")
    assert "against" not in record.table(both)


# --- The ladder. ---


LOSSES = [4.17, 3.35, 2.49, 2.40, 2.28, 2.10, 1.95, 1.70]


@pytest.fixture
def published(folder):
    """A published ladder: two seeds, 0.01 above and below LOSSES; `sizes` 0 to 700."""
    record.save(
        "ladder",
        {
            name: variant(name, x - 0.01, x + 0.01, parameters=i * 100, seconds=i)
            for i, (name, x) in enumerate(zip(ladder.NAMES, LOSSES))
        },
    )
    return ladder.recorded()


def test_the_recorded_ladder_falls_rung_by_rung():
    found = ladder.recorded()
    assert [rung.name for rung in found] == ladder.NAMES
    assert ladder.falls(found)
    assert found[-1].loss < 1.75
    variants = record.load("ladder")
    for name in ladder.NAMES:
        assert len(variants[name].runs) >= 3, f"{name} has no spread of three"


def test_the_ladder_of_the_record_has_means_and_spreads(published):
    assert [rung.loss for rung in published] == pytest.approx(LOSSES)
    assert [rung.spread for rung in published] == pytest.approx([0.02] * 8)
    assert [rung.parameters for rung in published] == list(range(0, 800, 100))


def test_a_readers_own_result_is_shown_as_it_is(published):
    """Not averaged with what was recorded, which only lends its spread."""
    shown = ladder.climb("GPT", {1: 9.0}, 700, 12.0)
    assert shown[:-1] == published[:-1]
    assert shown[-1] == ("GPT", 9.0, published[-1].spread, 700, 12.0)


def test_two_seeds_of_ones_own_have_a_spread_of_their_own(published):
    mine = ladder.climb("GPT", {5: 1.5, 6: 2.0}, 700, 12.0)[-1]
    assert (mine.loss, mine.spread) == (1.75, 0.5)


def test_a_model_of_another_size_does_not_borrow_the_spread(published):
    assert ladder.climb("GPT", {1: 1.5}, 701, 12.0)[-1].spread == 0


def test_a_climb_shows_the_rungs_down_to_itself(published):
    shown = ladder.climb("one head", {1: 2.39}, 300, 1.0)
    assert [rung.name for rung in shown] == ladder.NAMES[:4]
    assert "one head" in ladder.table(shown)


def test_a_climb_onto_another_keeps_what_was_measured_before(published):
    first = ladder.climb("one block", {1: 2.11}, 500, 10.0)
    both = ladder.climb("three blocks", {1: 1.99}, 600, 20.0, onto=first)
    assert both[:-1] == first and both[-1].loss == 1.99
    again = ladder.climb("one block", {1: 2.22}, 500, 10.0, onto=both)
    assert again[-1].loss == 2.22 and len(again) == len(first)
    assert ladder.climb("GPT", {1: 1.8}, 700, 1.0)[:-1] == published[:-1]


def test_results_on_another_text_stand_alone(published):
    (mine,) = ladder.climb("GPT", {1: 0.9}, 700, 1.0, comparable=False)
    assert (mine.loss, mine.spread) == (0.9, 0)
    block = ladder.climb("one block", {1: 1.5}, 500, 1.0, comparable=False)
    both = ladder.climb("GPT", {1: 0.9}, 700, 1.0, comparable=False, onto=block)
    assert both == [*block, mine]


def test_climbing_writes_nothing(published, folder):
    before = (folder / "ladder.json").read_bytes()
    ladder.climb("GPT", {1: 0.9}, 700, 1.0)
    assert (folder / "ladder.json").read_bytes() == before
    assert len(list(folder.iterdir())) == 1


def test_an_unknown_rung_is_refused():
    with pytest.raises(ValueError, match="no rung 'two heads'"):
        ladder.climb("two heads", {1: 2.0}, 1, 1.0)


def test_a_ladder_falls_only_by_more_than_its_spread():
    def falls(low, spread):
        high = ladder.Rung("a", 2.0, 0.1, 1, 1.0)
        return ladder.falls([high, ladder.Rung("b", low, spread, 1, 1.0)])

    assert falls(1.85, 0.05) and not falls(1.95, 0.05)
    assert not falls(1.85, 0.2) and not falls(2.1, 0.0)


def test_the_table_tells_a_spread_from_one_run_and_from_an_exact_number(published):
    lines = ladder.table(ladder.climb("GPT", {1: 1.5}, 1234567, 12.34)).splitlines()
    assert lines[1].split()[-2:] == ["exact", "0"]
    assert lines[3].split() == ["bigram", "2.490", "0.020", "200"]
    assert lines[-1].split() == "GPT 1.500 one run 1,234,567".split()


# --- Measuring. ---


def number(seed):
    return {"loss": seed / 10, "seconds": 1}


@pytest.fixture
def toys(folder, monkeypatch):
    """Two experiments, measured without new processes; the list of what was run."""

    def run(*names):
        ran.append(names)
        return real(*names)

    ran, real = [], measure.run
    known = {"toy": {"a": number, "b": number}, "game": {"c": number}}
    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(measure, "experiments", lambda: known)
    monkeypatch.setattr(command, "experiments", lambda: known)
    monkeypatch.setattr(
        measure, "ProcessPoolExecutor", lambda jobs, context: ThreadPoolExecutor(jobs)
    )
    return ran


def test_measuring_keeps_each_result_beside_those_before(toys):
    command.main(["toy", "--seeds", "1", "--variant", "b"])
    assert record.load("toy") == {"b": Variant("b", {1: number(1)})}
    command.main(["toy", "--seeds", "1", "2"])
    assert list(record.load("toy")) == ["a", "b"]
    for name, v in record.load("toy").items():
        assert v == Variant(name, {1: number(1), 2: number(2)})


def test_only_what_is_missing_is_measured(toys):
    command.main(["toy", "--seeds", "1", "--variant", "a"])
    toys.clear()
    command.main(["--missing", "--seeds", "1", "2"])
    assert sorted(toys) == [
        ("game", "c", 1),
        ("game", "c", 2),
        ("toy", "a", 2),
        ("toy", "b", 1),
        ("toy", "b", 2),
    ]
    toys.clear()
    command.main(["--missing", "--seeds", "1", "2"])
    assert toys == []


def test_without_a_name_the_experiments_are_listed(toys, capsys):
    command.main([])
    assert capsys.readouterr().out.split() == ["toy", "game"] and not toys


def test_an_unknown_experiment_is_refused_with_the_known_ones(toys, capsys):
    with pytest.raises(SystemExit):
        command.main(["toys"])
    assert "no experiment 'toys'; there are: toy, game" in capsys.readouterr().err


def test_every_rung_of_the_ladder_can_be_measured(monkeypatch):
    assert list(measure.experiments()["ladder"]) == ladder.NAMES


@pytest.fixture
def tiny(monkeypatch):
    """The corpus and the recipes of the experiments, small enough for a test."""
    text = fitting.Corpus(DATA, DATA[:200], V)
    small = fitting.SMALL.__class__(2, 4, fitting.CONTEXT, 5e-3)
    for module in (fitting, rungs):
        monkeypatch.setattr(module, "corpus", lambda: text)
    monkeypatch.setattr(rungs, "SMALL", small)
    preset = rungs.preset

    def quick(name, vocab_size):
        model, recipe = preset(name, vocab_size)
        return model, recipe.__class__(2, 4, recipe.block_size, 1e-3)

    monkeypatch.setattr(rungs, "preset", quick)
    monkeypatch.setattr(rungs, "range", lambda n: [0, 1], raising=False)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ladder.NAMES)
def test_each_rung_measures_loss_parameters_and_seconds_from_its_seed(tiny, name):
    function = rungs.EXPERIMENTS["ladder"][name]
    first, again = function(1), function(1)
    assert first.keys() == {"loss", "parameters", "seconds"}
    assert first["loss"] == again["loss"] and 0 < first["loss"] < 6
    trained = name not in ladder.NAMES[:2]
    assert (function(2)["loss"] != first["loss"]) is trained


def test_half_a_training_is_no_measurement(tiny):
    def interrupt(module, inputs):
        signal.raise_signal(signal.SIGINT)  # once: the second would stop at once
        handle.remove()

    model = GPT(GPTConfig(V, 8, n_layer=1, n_head=1, n_embd=8))
    handle = model.register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitting.fit(model, PLAN, seed=1)
    assert model.training is False  # the run ended by itself, judged and usable


def test_what_needs_no_training_is_exact(tiny):
    guess, counts = (rungs.EXPERIMENTS["ladder"][n](1) for n in ladder.NAMES[:2])
    assert guess["loss"] == pytest.approx(math.log(V))
    p = DATA.bincount(minlength=V) / len(DATA)
    expected = -sum(math.log(p[c]) for c in DATA[1:200]) / 199
    assert counts["loss"] == pytest.approx(expected, rel=1e-5)


def test_every_experiment_is_recorded_over_three_seeds():
    for name, variants in measure.experiments().items():
        known = record.load(name)
        assert list(known) == list(variants), name
        for variant in known.values():
            assert len(variant.runs) >= 3, f"{name}: {variant.name}"


def test_counting_by_text_search_gives_the_recorded_kind_of_loss(monkeypatch):
    train, val = DATA[:400], DATA[400:700]
    monkeypatch.setattr(how_low, "corpus", lambda: fitting.Corpus(train, val, V))
    text, n, strength = DATA[:700].tolist(), 400, 20
    total = 0.0
    for i in range(n + 1, 700):
        p = 1 / V
        for length in range(3):
            context = text[i - length : i]
            followers = [
                text[j] for j in range(length, n) if text[j - length : j] == context
            ]
            p = (followers.count(text[i]) + strength * p) / (len(followers) + strength)
        total -= math.log(p)
    measured = how_low.counted(seed=1, longest=2)
    assert measured["loss"] == pytest.approx(total / 299, rel=1e-2)
    assert measured == how_low.counted(seed=2, longest=2)


def test_counts_in_windows_know_no_more_than_the_window_shows(monkeypatch):
    text = fitting.Corpus(DATA[:1500], DATA[1500:], V)
    monkeypatch.setattr(how_low, "corpus", lambda: text)
    one, six = (how_low.counted(seed=1, longest=k) for k in (1, 6))
    assert one["windows of 64"] == pytest.approx(one["loss"])  # one is always there
    assert six["windows of 64"] > six["loss"]


def test_what_is_no_rung_is_a_line_across_the_ladder():
    rungs = [ladder.Rung("a", 4.0, 0.0, 1, 0.0), ladder.Rung("b", 2.0, 0.1, 2, 1.0)]
    plain, lined = plots.ladder(rungs), plots.ladder(rungs, {"counting": 1.5})
    assert plain.axes[0].get_legend() is None
    (label,) = lined.axes[0].get_legend().get_texts()
    assert label.get_text() == "counting, 1.50"
    (line,) = (x for x in lined.axes[0].lines if list(x.get_xdata()) == [1.5, 1.5])
    assert line.get_linestyle() == "--"
