"""Lesson 08: Muon, its orthogonal steps, its schedule, and AdamW beside it."""

import contextlib
import copy
import math

import pytest
import torch
from small import V, fit, plan, small_gpt, weights_of
from torch.testing import assert_close

from minigpt.modern import ModernConfig
from minigpt.optimizer import (
    Muon,
    Together,
    learning_rate_at,
    make_optimizer,
    orthogonalize,
)
from minigpt.training import TrainConfig

SHAPES = [(8, 8), (12, 5), (5, 12), (1, 6), (6, 1)]
RUN = dict(optimizer="muon", schedule="trapezoid", weight_decay=0.1)


def modern():
    torch.manual_seed(0)
    return ModernConfig(V, 8, 2, 2, 16, embedding_mix=True).build()


# --- Orthogonal steps. ---


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orthogonalize_brings_singular_values_near_one_and_keeps_directions(shape):
    U, S, Vt = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    S = torch.linspace(0.3, 1.0, len(S))  # none near zero
    out = orthogonalize((U * S) @ Vt)
    inside = U.mT @ out @ Vt.mT  # in the directions of the svd
    assert_close(inside, inside.diagonal().diag(), atol=1e-4, rtol=0)
    assert inside.diagonal().min() > 0.65 and inside.diagonal().max() < 1.25
    assert_close(out, U @ inside @ Vt, atol=1e-4, rtol=0)


def test_each_singular_value_goes_through_the_polynomial_alone():
    values = torch.tensor([0.9, 0.4, 0.1, 0.01], dtype=torch.double)
    values = values / values.norm()
    expected = values
    for _ in range(3):
        expected = 3.4445 * expected - 4.7750 * expected**3 + 2.0315 * expected**5
    got = orthogonalize(values.diag(), steps=3).diagonal()
    assert_close(got, expected, atol=1e-6, rtol=1e-5)


def test_the_band_is_the_one_that_the_docstring_names():
    grid = torch.linspace(0.01, 1, 5000, dtype=torch.double)
    for _ in range(5):
        grid = 3.4445 * grid - 4.7750 * grid**3 + 2.0315 * grid**5
    assert 0.65 < grid.min() < 0.75 and 1.1 < grid.max() < 1.25


@pytest.mark.parametrize("shape", [(7, 4), (4, 7)], ids=str)
def test_scale_and_company_do_not_matter_and_transposing_commutes(shape):
    x = torch.randn(3, *shape)
    out = orthogonalize(x)
    assert_close(orthogonalize(1000 * x), out, atol=1e-4, rtol=0)
    assert_close(orthogonalize(x[1]), out[1], atol=1e-5, rtol=0)
    assert_close(orthogonalize(x.mT), out.mT, atol=1e-4, rtol=0)
    assert not orthogonalize(torch.zeros(shape)).any()


# --- The optimizer. ---


def moved(optimizer_of, shape, steps=4):
    """A matrix after steps with given gradients."""
    generator = torch.Generator().manual_seed(3)
    p = torch.nn.Parameter(torch.randn(shape, generator=generator))
    start = p.detach().clone()
    optimizer = optimizer_of([p])
    for _ in range(steps):
        p.grad = torch.randn(shape, generator=generator)
        optimizer.step()
    return p.detach(), start


@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (8, 8)], ids=str)
@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_muon_is_torchs_up_to_the_rounding_of_bfloat16(shape, decay):
    """torch.optim.Muon iterates in bfloat16, which keeps about 3 digits."""
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("needs torch 2.9")
    ours, start = moved(lambda p: Muon(p, 0.02, decay), shape)
    theirs, _ = moved(
        lambda p: torch.optim.Muon(p, lr=0.02, weight_decay=decay, momentum=0.95), shape
    )
    assert (ours - start).norm() > 0.05
    assert (ours - theirs).norm() < 0.03 * (ours - start).norm()


def test_a_step_of_muon_by_hand():
    """Momentum 0.95, Nesterov's look ahead, one orthogonal step, decay."""
    generator = torch.Generator().manual_seed(3)
    w = torch.randn(6, 3, generator=generator)
    p, momentum = torch.nn.Parameter(w.clone()), torch.zeros(6, 3)
    optimizer = Muon([p], lr=0.1, weight_decay=0.2, ns_steps=3)
    for _ in range(3):
        p.grad = g = torch.randn(6, 3, generator=generator)
        optimizer.step()
        momentum = 0.95 * momentum + 0.05 * g
        step = orthogonalize(0.05 * g + 0.95 * momentum, 3)
        w = (1 - 0.1 * 0.2) * w - 0.1 * math.sqrt(6 / 3) * step
        assert_close(p.detach(), w, atol=1e-5, rtol=1e-5)


def test_matrices_of_one_shape_move_as_if_each_were_alone():
    grads = torch.randn(3, 4, 6)
    together = [torch.nn.Parameter(torch.zeros(4, 6)) for _ in range(3)]
    for p, grad in zip(together, grads):
        p.grad = grad
    still = torch.nn.Parameter(torch.ones(4, 6))  # without a gradient
    Muon([*together, still]).step()
    for p, grad in zip(together, grads):
        alone = torch.nn.Parameter(torch.zeros(4, 6))
        alone.grad = grad
        Muon([alone]).step()
        assert_close(p, alone, atol=1e-6, rtol=1e-4)
    assert (still == 1).all()


def test_muon_takes_matrices_only_and_says_where_the_rest_belongs():
    for shape in [(3,), (2, 3, 4), ()]:
        p = torch.nn.Parameter(torch.zeros(shape))
        with pytest.raises(ValueError, match="has shape .* Give it to AdamW"):
            Muon([p])


def test_muon_gets_the_matrices_of_the_blocks_and_adamw_all_else():
    model, config = modern(), plan(**RUN, muon_rate=0.05)
    muon, adamw = make_optimizer(model, config).param_groups
    names = {id(p): name for name, p in model.named_parameters()}
    inner = {names[id(p)] for p in muon["params"]}
    outer = {names[id(p)] for p in adamw["params"]}
    assert inner | outer == set(names.values()) and not inner & outer
    assert all(name.startswith("body.") for name in inner) and len(inner) == 2 * 4
    assert {"token_embedding.weight", "lm_head.weight", "body.0.mix"} < outer
    assert muon["weight_decay"] == 0.1 and adamw["weight_decay"] == 0
    assert muon["rate"] * config.learning_rate == pytest.approx(0.05)


def test_both_optimizers_follow_one_schedule_each_at_its_own_rate(monkeypatch):
    from minigpt import training

    made, rates = [], []

    def spy(model, config):
        made.append(make_optimizer(model, config))
        return made[-1]

    monkeypatch.setattr(training, "make_optimizer", spy)
    config = plan(**RUN, muon_rate=0.05)
    fit(
        modern(),
        config,
        on_step=lambda step: rates.append([g["lr"] for g in made[0].param_groups]),
    )
    for step, (muon, adamw) in enumerate(rates):
        assert adamw == learning_rate_at(step, config)
        assert muon == pytest.approx(adamw * 0.05 / config.learning_rate)
    assert max(muon for muon, _ in rates) == pytest.approx(0.05)


def test_together_empties_all_gradients_and_steps_all():
    one, two = torch.nn.Parameter(torch.zeros(2, 2)), torch.nn.Parameter(torch.zeros(2))
    both = Together([Muon([one]), torch.optim.AdamW([two])])
    one.grad, two.grad = torch.eye(2), torch.ones(2)
    both.step()
    assert one.any() and two.any()
    both.zero_grad()
    assert one.grad is None and two.grad is None


class PowerCut(Exception):
    pass


@pytest.mark.parametrize("make", [modern, small_gpt], ids=["ModernGPT", "GPT"])
def test_a_run_with_muon_goes_on_bit_for_bit(make):
    config, half, states = plan(**RUN), make(), []
    whole = make()
    history = fit(whole, config)

    def cut(history):
        raise PowerCut

    with contextlib.suppress(PowerCut):
        fit(half, config, save=states.append, on_eval=cut)
    (state,) = states
    assert state.step == 10
    resumed = fit(half, config, resume=state)
    assert torch.equal(weights_of(half), weights_of(whole))
    assert [row[:3] for row in resumed] == [row[:3] for row in history]


def test_the_state_of_both_goes_there_and_back():
    def pair():
        torch.manual_seed(1)
        one, two = (torch.nn.Parameter(torch.randn(s)) for s in [(4, 3), (5,)])
        return one, two, Together([Muon([one]), torch.optim.AdamW([two])])

    def step(one, two, both, seed):
        generator = torch.Generator().manual_seed(seed)
        one.grad = torch.randn(4, 3, generator=generator)
        two.grad = torch.randn(5, generator=generator)
        both.step()

    first, second = pair(), pair()
    step(*first, seed=1)
    for p, q in zip(second, first[:2]):
        p.data.copy_(q.data)
    second[2].load_state_dict(copy.deepcopy(first[2].state_dict()))
    for each in (first, second):
        step(*each, seed=2)
    assert torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])


def test_muon_learns():
    history = fit(modern(), plan(**RUN, steps=60, eval_every=30))
    assert history[-1].val_loss < math.log(V) - 1


# --- The trapezoid. ---


def trapezoid(**changes):
    given = dict(warmup_steps=10, schedule="trapezoid", cooldown_fraction=0.4)
    return TrainConfig(100, 4, 8, 1e-2, **{**given, **changes})


def test_the_trapezoid_rises_stays_level_and_falls_in_a_straight_line():
    rates = [learning_rate_at(step, trapezoid()) for step in range(101)]
    assert rates[:10] == pytest.approx([1e-3 * (step + 1) for step in range(10)])
    assert rates[10:61] == [1e-2] * 51
    falls = [a - b for a, b in zip(rates[60:], rates[61:])]
    assert falls == pytest.approx([1e-2 / 40] * 40)
    assert rates[100] == 0 == learning_rate_at(200, trapezoid())
    assert rates[99] == pytest.approx(1e-2 / 40)  # the last step still learns


def test_the_trapezoid_ends_at_its_final_fraction():
    config = trapezoid(final_fraction=0.1)
    assert learning_rate_at(100, config) == pytest.approx(1e-3)
    assert learning_rate_at(80, config) == pytest.approx(1e-2 * (0.1 + 0.9 * 0.5))


def test_a_cool_down_of_the_whole_run_falls_from_the_start():
    config = trapezoid(warmup_steps=0, cooldown_fraction=1.0)
    rates = [learning_rate_at(step, config) for step in range(101)]
    assert rates == pytest.approx([1e-4 * (100 - step) for step in range(101)])


@pytest.mark.parametrize(
    ("wrong", "need"),
    [
        ({"optimizer": "sgd"}, "'adamw' or 'muon'"),
        ({"schedule": "linear"}, "'cosine' or 'trapezoid'"),
        ({"muon_rate": 0}, "above 0"),
        ({"muon_rate": math.inf}, "finite"),
        ({"muon_rate": math.nan}, "above 0"),
        ({"cooldown_fraction": 0}, "above 0"),
        ({"cooldown_fraction": 1.1}, "at most 1"),
        ({"cooldown_fraction": math.nan}, "at most 1"),
    ],
    ids=str,
)
def test_a_recipe_that_makes_no_sense_is_refused_with_value_and_remedy(wrong, need):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"^{name} is {value!r}; it must be .*{need}"):
        plan(**wrong)
