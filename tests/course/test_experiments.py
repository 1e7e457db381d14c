"""What the experiments rest on, and the tables that show them."""

import pytest
import torch

from minigpt.course import record
from minigpt.course.experiments import fit as fitting
from minigpt.course.experiments import small_models as lesson
from minigpt.data import CharTokenizer
from minigpt.tools.corpus import Corpus


@pytest.fixture
def noise(monkeypatch):
    """A corpus of random ids in the place of Tiny Shakespeare."""
    ids = torch.randint(9, (8000,), generator=torch.Generator().manual_seed(0))
    text = Corpus(ids[:4000], ids[4000:], CharTokenizer("abcdefghi"))
    monkeypatch.setattr(fitting, "corpus", lambda: text)


def test_quiet_slow_queries_without_the_root_train_like_the_root(noise):
    queries, few = [], dict(steps=8, eval_batches=1, learning_rate=1e-2, vocab_size=9)
    for changes in lesson.ROOTS.values():
        model, plan = fitting.made(1, fitting.small, **few | changes)
        fitting.fit(model, plan)
        queries.append(model.body.query.weight.detach())
    root, _, quick, _, slow = queries
    torch.testing.assert_close(slow * lesson.ROOT, root, atol=1e-3, rtol=1e-3)
    assert (quick * lesson.ROOT - root).abs().max() > 0.1


def test_tables_over_rates():
    losses = {"b, c, rate 0.2": 3.0, "b, c, rate 0.4": 3.5}
    losses |= {"a, rate 0.1": 2.5, "a, rate 0.2": 2.25}
    variants = {n: record.Variant(n, {1: {"loss": x}}) for n, x in losses.items()}
    best = record.at_best(variants)
    assert {n: v.mean() for n, v in best.items()} == pytest.approx(
        {"a": 2.25, "b, c": 3.0}
    )
    head, b, a = record.grid(variants).splitlines()
    assert head.split() == ["learning", "rate", "0.1", "0.2", "0.4"]
    assert a.split() == ["a", "2.500", "2.250"]
    assert b.split() == ["b,", "c", "3.000", "3.500"]
    assert len(a) == len(b) == len(head)


def test_a_grid_names_every_combination_in_order_and_gives_it_its_values():
    def told(seed, body, rate, steps=None):
        return seed, body, rate, steps

    bodies = {"a": {"body": 1}, "b": {"body": 2, "steps": 3}}
    found = fitting.grid("{body}, {rate:g}", told, rate=[0.5, 2.0], body=bodies)
    assert list(found) == ["a, 0.5", "b, 0.5", "a, 2", "b, 2"]
    assert found["b, 0.5"](7) == (7, 2, 0.5, 3)


def test_changes_reach_the_config_the_recipe_and_the_model(noise):
    class Other(fitting.TrainConfig):
        pass

    def zero(model):
        model.lm_head.weight.data.zero_()

    model, plan = fitting.made(
        7, fitting.small, zero, Other, factor=2.0, vocab_size=9, n_embd=8, steps=9
    )
    assert model.lm_head.weight.shape == (9, 8) and not model.lm_head.weight.any()
    assert type(plan) is Other and (plan.steps, plan.seed) == (9, 7)
    assert (plan.learning_rate, plan.batch_size) == (2e-2, 32)
