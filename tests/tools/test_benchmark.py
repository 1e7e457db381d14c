"""The benchmark: who trains as what, what is timed, and what is written."""

import json
from functools import partial

import pytest
import torch
from small import DATA, PLAN, TOKENIZER, V, weights_of

from minigpt.course import record
from minigpt.course.experiments import bench_record
from minigpt.gpt import GPTConfig
from minigpt.modern.counting import CountingGPT, fit_smoothing, fold_batch
from minigpt.modern.counts import ContinuationCounts
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import MuonConfig
from minigpt.tools import benchmark
from minigpt.tools.benchmark import Contender, TheirConfig, TheirShape, Training
from minigpt.tools.corpus import Corpus
from minigpt.tools.speedrun import demo
from minigpt.training import train

TEXT = Corpus(DATA[:1500], DATA[1500:], TOKENIZER)
GPT = GPTConfig(V, 8, n_layer=1, n_head=2, n_embd=16)
MODERN = ModernConfig(V, 8, n_layer=1, n_head=2, n_embd=16)
MUON = MuonConfig(**vars(PLAN))
THEIRS = TheirShape(**vars(GPT)), TheirConfig(**vars(PLAN))
KNOWN = {
    benchmark.DEMO: Contender(GPT, PLAN),
    benchmark.RECONSTRUCTED: Contender(*THEIRS),
    "counts": Contender(MODERN, MUON, order=3),
    "short": Contender(MODERN, MUON, share=1 / 6),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tensors so small only wait for a second one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "THREADS", 1)
        yield


@pytest.fixture(scope="module")
def result(one_thread):
    """A whole benchmark of small contenders."""
    return benchmark.bench(TEXT, KNOWN, 24, rounds=2)


@pytest.mark.parametrize("settings", [PLAN, MUON], ids=["adamw", "muon"])
def test_a_timed_training_is_the_training_of_the_course(settings):
    timed = Training(Contender(GPT, settings), TEXT)
    timed.advance(settings.steps)
    torch.manual_seed(settings.seed)
    model = GPT.build()
    train(model, TEXT.train, TEXT.val, settings)
    torch.testing.assert_close(weights_of(timed.model), weights_of(model))


def test_a_counting_model_trains_as_in_the_course_too():
    timed = Training(KNOWN["counts"], TEXT)
    assert timed.seconds > 0  # its tables took time
    timed.advance(MUON.steps)
    counts = ContinuationCounts(TEXT.train, V, order=3)
    smoothing = fit_smoothing(counts, TEXT.train, MUON)
    torch.manual_seed(MUON.seed)
    model = CountingGPT(MODERN, counts, smoothing)
    draw = partial(fold_batch, model)
    train(model, TEXT.train, TEXT.val, MUON, draw=draw)
    torch.testing.assert_close(weights_of(timed.model), weights_of(model))


def test_the_reconstruction_has_as_many_parameters_as_nanogpt_says():
    """Its demo prints 0.80M, without the table of positions."""
    shape, _ = demo(65)
    model = TheirShape(**vars(shape)).build()
    counted = sum(p.numel() for p in model.parameters())
    assert round((counted - model.position_embedding.weight.numel()) / 1e6, 2) == 0.80
    assert model.lm_head.weight is model.token_embedding.weight
    names = [name for name, _ in model.named_parameters()]
    assert not [name for name in names if name.endswith("bias")]
    proj = model.body[0].attention.proj.weight.std().item()
    assert proj == pytest.approx(0.02 / 8**0.5, rel=0.1)


def test_the_reconstruction_learns_and_does_not_read_ahead():
    timed = Training(KNOWN[benchmark.RECONSTRUCTED], TEXT)
    assert not any(group["fused"] for group in timed.run.optimizer.param_groups)
    timed.judge(TEXT.val)
    timed.advance(30)
    timed.judge(TEXT.val)
    assert timed.curve[1][1] < timed.curve[0][1] - 0.3
    model, x = timed.model, DATA[None, :8]
    changed = torch.cat([x[:, :5], (x[:, 5:] + 1) % V], dim=1)
    before, after = (model(idx, x)[0] for idx in (x, changed))
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert (before[:, 5:] - after[:, 5:]).abs().max() > 1e-4


def test_the_others_get_the_time_of_the_demo_or_their_share_of_it(monkeypatch):
    class Timed(Training):
        def __init__(self, contender, text):
            super().__init__(contender, text)
            self.counting = 0.02 if contender.order else 0.0

    def times(trainings, rounds):
        return dict.fromkeys(trainings, 1.0) | {benchmark.DEMO: 3.0}

    monkeypatch.setattr(benchmark, "Training", Timed)
    monkeypatch.setattr(benchmark, "step_times", times)
    found = benchmark.bench(TEXT, KNOWN, 20, 1)
    assert found["steps"] == {
        benchmark.DEMO: 20,
        benchmark.RECONSTRUCTED: 60,  # 20 steps of 3 ms
        "counts": 40,  # less 20 ms for its tables
        "short": 10,
    }


def test_the_table_shows_every_contender_and_the_ratio_of_the_two_demos(result):
    told = benchmark.bench_table(result)
    assert all(f"\n{name} " in told for name in KNOWN)
    ms = result["milliseconds"]
    ratio = ms[benchmark.DEMO] / ms[benchmark.RECONSTRUCTED]
    assert f"takes {ratio:.2f} of nanoGPT's" in told
    assert result["curves"]["counts"][0][0] > 0  # its tables took time


def test_the_record_and_the_figure_are_written_whole(result, tmp_path):
    path, image = tmp_path / "bench.json", tmp_path / "bench.png"
    bench_record.publish(result, path, image)
    assert json.loads(path.read_text(encoding="utf-8")) == result
    assert image.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bench.json", "bench.png"]


def test_the_record_of_today_can_be_shown():
    kept = json.loads((record.FOLDER / "bench.json").read_text(encoding="utf-8"))
    assert list(kept["curves"]) == list(benchmark.contenders(65))
    assert bench_record.figure(kept).axes
