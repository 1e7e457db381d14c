"""The benchmark: who trains as what, what is timed, and what is written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small import DATA, PLAN, V, plan, weights_of

import minigpt.__main__ as cli
from minigpt import benchmark, record
from minigpt.benchmark import Contender, Reconstructed, Training
from minigpt.counting import ContextCounts, CountingGPT, fit_smoothing
from minigpt.data import get_batch
from minigpt.gpt import GPTConfig
from minigpt.modern import ModernConfig
from minigpt.optimizer import learning_rate_at
from minigpt.speedrun import Text, demo
from minigpt.training import train

TEXT = Text(DATA[:1500], DATA[1500:], V)
GPT = GPTConfig(V, 8, n_layer=1, n_head=2, n_embd=16)
MODERN = ModernConfig(V, 8, n_layer=1, n_head=2, n_embd=16)
MUON = plan(optimizer="muon", schedule="trapezoid", warmup_steps=None)
KNOWN = {
    benchmark.DEMO: Contender(GPT, PLAN),
    benchmark.RECONSTRUCTED: Contender(Reconstructed(GPT), PLAN, share=0),
    "modern": Contender(MODERN, MUON),
    "counts": Contender(MODERN, MUON, order=3),
    "short": Contender(MODERN, MUON, share=1 / 6),
}


def quiet(line):
    pass


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tensors so small only wait for a second one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "THREADS", 1)
        yield


@pytest.fixture(scope="module")
def result(one_thread):
    """A whole benchmark of small contenders."""
    return benchmark.bench(TEXT, KNOWN, 24, rounds=2, tokens=3, large=False, say=quiet)


# --- Who trains as what. ---


@pytest.mark.parametrize("settings", [PLAN, MUON], ids=["adamw", "muon"])
def test_a_timed_training_is_the_training_of_the_course(settings):
    timed = Training(Contender(GPT, settings), TEXT)
    timed.advance(settings.steps)
    torch.manual_seed(settings.seed)
    model = GPT.build()
    train(model, TEXT.train, TEXT.val, settings)
    torch.testing.assert_close(weights_of(timed.model), weights_of(model))


def test_a_counting_model_trains_as_in_the_course_too():
    contender = KNOWN["counts"]
    tables = benchmark.count_tables(contender, TEXT, fit_steps=2)
    timed = Training(contender, TEXT, tables=tables)
    assert timed.seconds == tables[2] > 0
    timed.advance(MUON.steps)
    counts = ContextCounts(TEXT.train, V, order=3)
    smoothing = fit_smoothing(counts, TEXT.train, MUON, steps=2)
    torch.manual_seed(MUON.seed)
    model = CountingGPT(MODERN, counts, smoothing)
    train(model, TEXT.train, TEXT.val, MUON, draw=model.draw(TEXT.train, MUON))
    torch.testing.assert_close(weights_of(timed.model), weights_of(model))


def test_nanogpts_windows_are_those_of_the_course_cut_another_way():
    ours = get_batch(DATA, 4, 8, generator=torch.Generator().manual_seed(3))
    draw = benchmark.window_by_window(DATA, PLAN)
    for own, theirs in zip(ours, draw(torch.Generator().manual_seed(3))):
        torch.testing.assert_close(theirs, own)


def test_the_reconstruction_has_as_many_parameters_as_nanogpt_says():
    """Its demo prints 0.80M, without the table of positions."""
    shape, _ = demo(65)
    model = Reconstructed(shape).build()
    counted = sum(p.numel() for p in model.parameters())
    assert round((counted - model.positions.weight.numel()) / 1e6, 2) == 0.80
    assert model.head.weight is model.tokens.weight
    names = [name for name, _ in model.named_parameters()]
    assert not [name for name in names if name.endswith("bias")]


def test_the_reconstruction_does_not_read_ahead():
    model, x = Reconstructed(GPT).build(), DATA[None, :8]
    changed = torch.cat([x[:, :5], (x[:, 5:] + 1) % V], dim=1)
    before, after = (model(idx, x)[0] for idx in (x, changed))
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert (before[:, 5:] - after[:, 5:]).abs().max() > 1e-4


def test_the_reconstruction_learns():
    timed = Training(KNOWN[benchmark.RECONSTRUCTED], TEXT)
    x, y = get_batch(DATA, 32, 8)
    before = timed.model(x, y)[1]
    timed.advance(30)
    assert timed.model(x, y)[1] < before - 0.3


def test_the_demo_is_trained_as_its_readme_says():
    shape, settings = demo(65)
    assert (shape.n_layer, shape.n_head, shape.n_embd) == (4, 4, 128)
    assert (shape.block_size, settings.batch_size, settings.steps) == (64, 12, 2000)
    assert learning_rate_at(99, settings) == 1e-3
    assert learning_rate_at(2000, settings) == pytest.approx(1e-4)
    assert settings.beta2 == 0.99 and settings.weight_decay == 0.1


# --- What is timed. ---


def test_the_parts_of_a_step_are_all_of_it():
    timed = Training(KNOWN["modern"], TEXT)
    timed.advance(3)
    assert len(timed.parts) == 3 and len(timed.parts[0]) == len(benchmark.PARTS)
    assert sum(map(sum, timed.parts)) == pytest.approx(timed.seconds)


def test_judging_is_outside_the_clock():
    timed = Training(KNOWN["modern"], TEXT)
    timed.advance(1)
    before = timed.seconds
    timed.judge(TEXT.val)
    assert timed.seconds == before and timed.curve[0][0] == before


def test_trainings_take_turns():
    order = []

    class Turn:
        def __init__(self, name):
            self.name, self.parts = name, []

        def advance(self, steps):
            order.append(self.name)
            slow = 1 if self.parts else 100  # the first turn warms up
            self.parts += [[slow * ms / 1000 for ms in (1, 2, 3, 4)]] * steps

    found = benchmark.step_times({"a": Turn("a"), "b": Turn("b")}, rounds=1)
    assert order == ["a", "b"] * 2
    assert found["a"] == {
        "drawing": 1,
        "forward": 2,
        "backward": 3,
        "optimizer": 4,
        "step": 10,
    }


def test_all_learn_to_the_end_of_their_plans_however_many_steps_they_have():
    trainings = {n: Training(c, TEXT) for n, c in KNOWN.items() if c.order is None}
    for i, t in enumerate(trainings.values()):
        t.plan = replace(t.plan, steps=5 + 3 * i, warmup_steps=1)
    benchmark.learn(
        {n: t for n, t in trainings.items() if n != benchmark.RECONSTRUCTED},
        TEXT.val,
        turns=4,
    )
    for name, t in trainings.items():
        if name != benchmark.RECONSTRUCTED:
            assert t.step == t.plan.steps
            assert t.curve[0][0] == 0 and t.curve[-1][0] == t.seconds


def test_the_others_get_the_time_of_the_demo_or_their_share_of_it(monkeypatch):
    def times(trainings, rounds):
        parts = {n: dict.fromkeys([*benchmark.PARTS, "step"], 1.0) for n in trainings}
        parts[benchmark.DEMO]["step"] = 3.0
        return parts

    def tables(contender, text):
        counts = ContextCounts(text.train, text.vocab_size, contender.order)
        return counts, fit_smoothing(counts, text.train, MUON, 1), 0.02

    monkeypatch.setattr(benchmark, "step_times", times)
    monkeypatch.setattr(benchmark, "count_tables", tables)
    found = benchmark.bench(TEXT, KNOWN, 20, 1, tokens=1, large=False, say=quiet)
    assert found["steps"] == {
        benchmark.DEMO: 20,
        "modern": 60,  # 20 steps of 3 ms
        "counts": 40,  # less 20 ms for its tables
        "short": 10,
    }


@pytest.mark.parametrize(
    "curve, loss, seconds",
    [
        ([(0, 4.0), (10, 2.0), (20, 1.0)], 1.5, 15),
        ([(0, 4.0), (10, 2.0), (20, 1.0)], 2.0, 10),
        ([(0, 4.0), (10, 2.0), (20, 1.0)], 0.9, None),
        ([(3, 1.7), (10, 1.5)], 1.9, 3),  # counts know it from the start
        ([(0, 4.0), (10, 2.0), (20, 2.2), (30, 1.8)], 2.0, 10),
    ],
)
def test_a_loss_is_reached_where_the_curve_first_falls_to_it(curve, loss, seconds):
    assert benchmark.seconds_to(curve, loss) == seconds


def test_the_loss_after_some_seconds_lies_on_the_curve():
    curve = [(2, 4.0), (10, 2.0), (20, 1.0)]
    found = [benchmark.loss_after(curve, s) for s in (1, 2, 6, 15, 99)]
    assert found == [None, 4.0, 3.0, 1.5, 1.0]


def test_tokens_per_second_count_those_of_all_texts(monkeypatch):
    now = [0.0]

    def write(model, idx, tokens, generator):
        assert idx.shape[1] == model.block_size
        now[0] += 2.0

    monkeypatch.setattr(benchmark, "WAYS", {"uncached": write, "cached": write})
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: now[0])
    found = benchmark.writing_speed({"m": GPT.build()}, TEXT, tokens=10, rounds=3)
    assert found == dict.fromkeys(["uncached", "cached"], {"m": {"1": 5.0, "16": 80.0}})


# --- What is shown and written. ---


def test_a_benchmark_measures_every_contender(result):
    assert list(result["milliseconds"]) == [n for n in KNOWN if n != "short"]
    assert list(result["curves"]) == [n for n in KNOWN if KNOWN[n].share]
    assert all(mb > 0 for mb in result["megabytes"].values())
    assert result["curves"]["counts"][0][0] > 0  # its tables took time
    for way in ("cached", "uncached"):  # counts have no cache
        assert set(result["tokens per second"][way]) == {benchmark.DEMO, "modern"}
    assert "threads" in result["machine"]


def test_the_table_shows_every_contender_and_the_ratio_of_the_two_demos(result):
    told = benchmark.table(result)
    for name in KNOWN:
        assert f"\n{name} " in told, name
    ms = result["milliseconds"]
    ratio = ms[benchmark.DEMO]["step"] / ms[benchmark.RECONSTRUCTED]["step"]
    assert f"takes {ratio:.2f} of nanoGPT's" in told
    assert "never" in told  # so small a model does not reach the goal


def test_a_curve_that_begins_after_the_demo_has_no_loss_in_its_time(result):
    late = json.loads(json.dumps(result))
    late["curves"]["counts"] = [[1e6, 3.0], [2e6, 2.0]]
    told = benchmark.table(late).splitlines()
    (line,) = [x for x in told if x.startswith("counts ") and "never" in x]
    assert line.endswith(" -")


def test_who_got_less_time_has_no_loss_after_all_of_it(result):
    (line,) = [x for x in benchmark.table(result).splitlines() if x[:6] == "short "]
    assert line.endswith(" -")


def test_the_record_and_the_figure_are_written_whole(result, tmp_path):
    path, image = tmp_path / "bench.json", tmp_path / "bench.png"
    benchmark.publish(result, path, image)
    assert json.loads(path.read_text(encoding="utf-8")) == result
    assert image.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bench.json", "bench.png"]


@pytest.mark.parametrize("quick", [True, False])
def test_a_quick_look_writes_nothing(result, tmp_path, monkeypatch, capsys, quick):
    asked = []

    def bench(text, known, **options):
        asked.append((len(text.val), options.get("demo_steps", 2000)))
        return result

    monkeypatch.setattr(benchmark, "open_text", lambda: TEXT)
    monkeypatch.setattr(benchmark, "bench", bench)
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(benchmark, "FIGURE", tmp_path / "bench.png")
    assert cli.main(["bench", *["--quick"] * quick]) == 0
    said = capsys.readouterr().out
    assert benchmark.table(result) in said
    assert ("nothing was written" in said) == quick
    assert len(list(tmp_path.iterdir())) == (0 if quick else 2)
    assert asked[0][1] == (100 if quick else 2000)


def test_the_presets_of_the_course_are_what_is_measured():
    known = benchmark.contenders(65)
    assert next(iter(known)) == benchmark.DEMO
    assert known[benchmark.DEMO].share == 1
    assert sum(c.share for c in known.values()) < 5  # minutes are soon over
    assert Path(benchmark.FIGURE).name == "bench.png"
