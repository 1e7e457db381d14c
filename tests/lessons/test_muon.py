"""Lesson 08: Muon, its orthogonal steps, its schedule, and AdamW beside it."""

import math
from dataclasses import replace

import pytest
import torch
from small import PLAN, V, fit, weights_of
from torch.testing import assert_close

from minigpt.modern.model import ModernConfig
from minigpt.modern.muon import Muon, orthogonalize
from minigpt.modern.recipe import MuonConfig
from minigpt.training import Run

SHAPES = [(8, 8), (12, 5), (5, 12), (1, 6), (6, 1)]
RUN = MuonConfig(**vars(PLAN), muon_rate=0.05)


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


@pytest.mark.parametrize("shape", [(7, 4), (4, 7)], ids=str)
def test_scale_does_not_matter_and_transposing_commutes(shape):
    x = torch.randn(shape)
    out = orthogonalize(x)
    assert_close(orthogonalize(1000 * x), out, atol=1e-4, rtol=0)
    assert_close(orthogonalize(x.mT), out.mT, atol=1e-4, rtol=0)
    assert not orthogonalize(torch.zeros(shape)).any()


# --- The optimizer. ---


@pytest.mark.parametrize("shape", [(12, 5), (5, 12)], ids=str)
def test_muon_is_torchs_up_to_the_rounding_of_bfloat16(shape):
    """torch.optim.Muon iterates in bfloat16, which keeps about 3 digits."""
    start = torch.randn(shape)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    pair = Muon([ours], 0.02, 0.5), torch.optim.Muon([theirs], 0.02, 0.5, momentum=0.95)
    for _ in range(4):
        ours.grad = theirs.grad = torch.randn(shape)
        for optimizer in pair:
            optimizer.step()
    assert (ours - start).norm() > 0.05
    assert (ours - theirs).norm() < 0.03 * (ours - start).norm()


def test_a_step_of_muon_by_hand():
    """Momentum 0.95, Nesterov's look ahead, one orthogonal step, decay."""
    generator = torch.Generator().manual_seed(3)
    w = torch.randn(6, 3, generator=generator)
    p, momentum = torch.nn.Parameter(w.clone()), torch.zeros(6, 3)
    optimizer = Muon([p], lr=0.05, weight_decay=0.2, ns_steps=3, scale=2.0)
    for _ in range(3):
        p.grad = g = torch.randn(6, 3, generator=generator)
        optimizer.step()
        momentum = 0.95 * momentum + 0.05 * g
        step = orthogonalize(0.05 * g + 0.95 * momentum, 3)
        w = (1 - 0.1 * 0.2) * w - 0.1 * math.sqrt(6 / 3) * step
        assert_close(p.detach(), w, atol=1e-5, rtol=1e-5)


def test_muon_gets_the_matrices_of_the_blocks_and_adamw_all_else():
    model = modern()
    muon, adamw = RUN.make_optimizer(model).param_groups
    names = {id(p): name for name, p in model.named_parameters()}
    inner = {names[id(p)] for p in muon["params"]}
    outer = {names[id(p)] for p in adamw["params"]}
    assert inner | outer == set(names.values()) and not inner & outer
    assert all(name.startswith("body.") for name in inner) and len(inner) == 2 * 4
    assert {"token_embedding.weight", "lm_head.weight", "body.0.mix"} < outer
    assert muon["weight_decay"] == 0.1 and adamw["weight_decay"] == 0


def test_both_optimizers_follow_one_schedule_each_at_its_own_rate():
    rates = []

    def note(run):
        muon, adamw = run.optimizer.param_groups
        rates.append((muon["lr"] * muon["scale"], adamw["lr"]))

    fit(modern(), RUN, on_step=note)
    assert [adamw for _, adamw in rates] == [RUN.learning_rate_at(s) for s in range(20)]
    for muon, adamw in rates:
        assert muon == pytest.approx(adamw * 0.05 / RUN.learning_rate)
    assert max(muon for muon, _ in rates) == pytest.approx(0.05)


def test_a_run_with_muon_goes_on_bit_for_bit():
    whole, half = modern(), modern()
    fit(whole, RUN)
    run = Run(half, RUN)
    fit(half, RUN, run=run, on_step=lambda run: run.step == 7)
    fit(half, RUN, run=run)
    assert torch.equal(weights_of(half), weights_of(whole))


# --- The trapezoid. ---


def trapezoid(**changes):
    given = dict(warmup_steps=10, cooldown_fraction=0.4)
    return MuonConfig(100, 4, 8, 1e-2, **{**given, **changes})


def test_the_trapezoid_rises_stays_level_and_falls_in_a_straight_line():
    rates = [trapezoid().learning_rate_at(step) for step in range(101)]
    assert rates[:10] == pytest.approx([1e-3 * (step + 1) for step in range(10)])
    assert rates[10:61] == [1e-2] * 51
    falls = [a - b for a, b in zip(rates[60:], rates[61:])]
    assert falls == pytest.approx([1e-2 / 40] * 40)
    assert rates[100] == 0 and rates[99] == pytest.approx(1e-2 / 40)


@pytest.mark.parametrize(
    "wrong",
    [
        {"muon_rate": 0},
        {"cooldown_fraction": 1.1},
        {"warmup_steps": 2.5},
    ],
    ids=str,
)
def test_a_recipe_that_makes_no_sense_is_refused_with_its_value(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"^{name} is {value!r}; give "):
        replace(RUN, **wrong)


def test_vectors_are_refused_when_it_is_made():
    with pytest.raises(ValueError, match=r"shape \(3,\): Muon only moves matrices"):
        Muon([torch.zeros(3, requires_grad=True)])


def test_a_step_with_a_closure_computes_the_loss_and_gives_it_back():
    w = torch.nn.Parameter(torch.ones(2, 3))
    optimizer = Muon([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (w**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == pytest.approx(6.0)
    assert (w < 1).all()
