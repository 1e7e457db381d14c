"""The course on one page is the package's GPT, trained and sampled the same way."""

import pytest
import torch
from torch.testing import assert_close

from minigpt import training, whole
from minigpt.evaluation import evaluate
from minigpt.gpt import GPT
from minigpt.training import preset

TEXT = "the quick brown fox jumps over the lazy dog; " * 40
CHARS = sorted(set(TEXT))
DATA = whole.encode(TEXT, CHARS)


@pytest.fixture
def models():
    """The page's model and the package's, both made from the same seed."""
    config, _ = preset("cpu", len(CHARS))
    torch.manual_seed(0)
    mine = whole.GPT(len(CHARS))
    torch.manual_seed(0)
    return mine, GPT(config)


def test_the_page_has_at_most_200_lines():
    with open(whole.__file__, encoding="utf-8") as file:
        assert len(file.readlines()) <= 200


def test_its_recipe_is_the_cpu_preset():
    config, recipe = preset("cpu", 65)
    for name in ("block_size", "n_layer", "n_head", "n_embd"):
        assert getattr(whole, name) == getattr(config, name)
    for (
        name
    ) in "steps batch_size learning_rate weight_decay beta2 grad_clip seed".split():
        assert getattr(whole, name) == getattr(recipe, name)
    for step in (0, 50, 99, 100, 1200, 2399):
        rate = training.learning_rate_at(step, recipe)
        assert whole.learning_rate_at(step) == pytest.approx(rate)


def test_both_models_start_alike_and_agree_under_copied_weights(models):
    mine, package = models
    for (name, a), b in zip(mine.state_dict().items(), package.state_dict().values()):
        assert torch.equal(a, b), name
    with torch.no_grad():
        for p in package.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    mine.load_state_dict(package.state_dict())
    idx = DATA[:128].view(2, 64)
    logits, loss = mine(idx, idx)
    assert_close(logits, package(idx)[0])
    assert_close(loss, package(idx, idx)[1])


def test_its_training_is_the_packages_step_for_step(models, monkeypatch, capsys):
    mine, package = (model.double() for model in models)  # float32: see 10, section 3
    monkeypatch.setattr(whole, "steps", 30)
    monkeypatch.setattr(whole, "warmup_steps", 6)
    whole.train(mine, DATA)
    plan = preset("cpu", len(CHARS))[1]
    plan.steps, plan.warmup_steps = 30, 6
    training.train(package, DATA, DATA, plan)
    for a, b in zip(mine.parameters(), package.parameters()):
        assert_close(a, b, rtol=0, atol=1e-10)
    assert "step   29: loss" in capsys.readouterr().out
    n = len(DATA) // 64 * 64 + 1  # full windows only
    assert whole.evaluate(mine, DATA[:n]) == pytest.approx(
        evaluate(package, DATA[:n], 64), abs=1e-10
    )


def test_it_writes_what_the_package_would_write(models):
    from minigpt.generation import generate

    mine, package = models
    torch.manual_seed(1)
    text = whole.generate(mine, DATA[None, :1], 80)
    torch.manual_seed(1)
    start, knobs = DATA[None, :1], {"temperature": 0.8, "window": "slide"}
    assert torch.equal(text, generate(package, start, 80, **knobs))
    assert whole.decode(text[0, :1], CHARS) == TEXT[0]


def test_the_page_runs_from_text_to_sample(tmp_path, monkeypatch, capsys):
    for name, value in {"steps": 2, "warmup_steps": 1, "n_embd": 16}.items():
        monkeypatch.setattr(whole, name, value)
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    whole.main(path)
    assert "validation loss" in capsys.readouterr().out
