"""What the experiments of 02 and 03 rest on, and the tables that show them."""

from dataclasses import replace

import pytest
import torch

from minigpt.course import record
from minigpt.course.experiments import fit as fitting
from minigpt.course.experiments import self_attention as lesson
from minigpt.data import CharTokenizer


@pytest.fixture
def noise(monkeypatch):
    """A corpus of random ids in the place of Tiny Shakespeare."""
    ids = torch.randint(9, (8000,), generator=torch.Generator().manual_seed(0))
    text = fitting.Corpus(ids[:4000], ids[4000:], CharTokenizer("abcdefghi"))
    for module in (fitting, lesson):
        monkeypatch.setattr(module, "corpus", lambda: text)


def test_quiet_slow_queries_without_the_root_train_like_the_root(noise):
    few, fast = {"steps": 8, "eval_batches": 1}, {"learning_rate": 1e-2}
    quiet = {"quiet": lesson.ROOT}
    root, slow, quick = (
        lesson.trained(head, 1, recipe=replace(recipe, **few), **fast | other)
        for head, recipe, other in [
            (lesson.Head, lesson.SMALL, {}),
            (lesson.Unscaled, lesson.SLOW, quiet),
            (lesson.Unscaled, lesson.SMALL, quiet),
        ]
    )
    for of in ("loss", "variance at start", "variance", "itself", "copies"):
        assert slow[of] == pytest.approx(root[of], rel=1e-3), of
    assert quick["variance at start"] == pytest.approx(root["variance at start"])
    assert quick["variance"] != pytest.approx(root["variance"], rel=1e-2)


def test_only_the_leaks_predict_better_in_windows_than_in_writing(noise):
    data = fitting.corpus().val[:1281]
    for head, leaks in [(lesson.Head, False), (lesson.MaskedAfter, True)]:
        model = lesson.model_with(head, seed=1)
        written = lesson.writing_loss(model, data, fitting.CONTEXT)
        windows = fitting.evaluate(model, data, fitting.CONTEXT)
        assert (abs(written - windows) > 1e-4) == leaks


def test_tables_over_rates():
    losses = {"a, rate 0.1": 2.5, "a, rate 0.2": 2.25, "b, c, rate 0.2": 3.0}
    variants = {n: record.Variant(n, {1: {"loss": x}}) for n, x in losses.items()}
    best = record.at_best(variants)
    assert {n: v.mean() for n, v in best.items()} == {"a": 2.25, "b, c": 3.0}
    head, a, b = record.grid(variants).splitlines()
    assert head.split() == ["learning", "rate", "0.1", "0.2"]
    assert a.split() == ["a", "2.500", "2.250"]
    assert b.split() == ["b,", "c", "3.000"] and len(a) == len(b) == len(head)


def test_a_grid_names_every_combination_in_order_and_gives_it_its_values():
    def told(seed, body, rate):
        return seed, body, rate

    found = fitting.grid(
        "{body}, {rate:g}", told, rate=[0.5, 2.0], body={"a": 1, "b": 2}
    )
    assert list(found) == ["a, 0.5", "b, 0.5", "a, 2", "b, 2"]
    assert found["b, 0.5"](7) == (7, 2, 0.5)


def test_what_a_variant_changes_reaches_its_recipe(noise, monkeypatch):
    monkeypatch.setattr(fitting, "fit", lambda model, plan, seed: plan)
    plan = fitting.small(1, torch.nn.Identity, steps=7, learning_rate=0.5)
    assert (plan.steps, plan.learning_rate, plan.batch_size) == (7, 0.5, 32)
