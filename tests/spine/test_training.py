"""Lesson 06: the recipe, the optimizer, the schedule, the loop."""

import contextlib
import copy
import math
import time

import pytest
import torch
from small import DATA, PLAN, Recorder, fit, identical, plan, small_gpt, weights_of
from torch.testing import assert_close

from minigpt import training
from minigpt.evaluation import estimate_loss, evaluate
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.training import Run, TrainConfig, check_seed, preset, train


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps is 0; give a whole number, at least 1"),
        ({"batch_size": 1.5}, "batch_size is 1.5"),
        ({"eval_every": True}, "eval_every is True"),
        ({"warmup_steps": 2.5}, "warmup_steps is 2.5; give a whole number, 0 or more"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        ({"learning_rate": 0}, "learning_rate is 0; give a finite number above 0"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1"),
        ({"weight_decay": math.inf}, "weight_decay is inf"),
        ({"beta2": 1.0}, "beta2 is 1.0"),
        ({"grad_clip": 0}, "grad_clip is 0; give more than 0; math.inf clips nothing"),
        ({"seed": 1.0}, "seed is 1.0"),
    ],
    ids=str,
)
def test_a_recipe_that_cannot_work_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        plan(**change)


def test_the_edges_of_a_recipe_are_allowed():
    plan(steps=1, warmup_steps=0, weight_decay=0, beta2=0, grad_clip=math.inf, seed=-1)


def test_presets_fit_their_models_and_unknown_ones_are_refused():
    for name in ("cpu", "gpu"):
        model, recipe = preset(name, 65)
        assert model.vocab_size == 65 and model.block_size == recipe.block_size
    with pytest.raises(ValueError, match="no preset 'tpu'; choose 'cpu' or 'gpu'"):
        preset("tpu", 65)


# --- The optimizer and its schedule. ---


def test_decay_falls_on_matrices_only():
    model = small_gpt()
    decayed, free = make_optimizer(model, PLAN).param_groups
    assert decayed["weight_decay"] == PLAN.weight_decay and free["weight_decay"] == 0
    assert all(p.dim() == 2 for p in decayed["params"])
    assert all(p.dim() == 1 for p in free["params"])
    assert len(decayed["params"]) + len(free["params"]) == len(list(model.parameters()))


def test_a_step_is_the_one_that_the_papers_of_adam_and_adamw_write():
    """Kingma and Ba (2015), algorithm 1; Loshchilov and Hutter, algorithm 2."""
    model, config = Recorder().double(), plan(beta2=0.7, weight_decay=0.3)
    optimizer = make_optimizer(model, config)
    w, m, v = 1.0, 0.0, 0.0
    for t in (1, 2, 3):
        g = 2 * w
        m, v = 0.9 * m + 0.1 * g, 0.7 * v + 0.3 * g * g
        step = m / (1 - 0.9**t) / (math.sqrt(v / (1 - 0.7**t)) + 1e-8)
        w -= config.learning_rate * (step + 0.3 * w)
        optimizer.zero_grad()
        model(DATA[:8][None], None)[1].backward()
        optimizer.step()
        assert model.weight.item() == pytest.approx(w, rel=1e-9)


def test_the_learning_rate_warms_up_and_ends_near_zero():
    config = TrainConfig(100, 4, 8, 1e-2, warmup_steps=10)
    rates = [learning_rate_at(step, config) for step in range(101)]
    assert rates[:10] == pytest.approx([1e-3 * (step + 1) for step in range(10)])
    assert max(rates) == rates[10] == 1e-2
    assert rates[55] == pytest.approx(1e-2 / 2)  # half way down
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[100] == pytest.approx(0)


@pytest.mark.parametrize(("steps", "peak"), [(100, 20), (499, 99), (5000, 100), (4, 0)])
def test_a_short_run_is_not_all_warm_up(steps, peak):
    config = TrainConfig(steps, 4, 8, 1e-2)
    rates = [learning_rate_at(step, config) for step in range(steps)]
    assert rates.index(max(rates)) in (peak, peak - 1) and rates[peak] == 1e-2


def test_every_step_takes_the_rate_of_the_schedule():
    def note(run):
        rates.append({group["lr"] for group in run.optimizer.param_groups})

    rates = []
    fit(small_gpt(), on_step=note)
    assert rates == [{learning_rate_at(step, PLAN)} for step in range(20)]


# --- The loop. ---


def test_training_lowers_the_loss_and_reports_it():
    model = small_gpt()
    before = evaluate(model, DATA, 8)
    start = time.perf_counter()
    history = fit(model, plan(steps=25))
    seconds = time.perf_counter() - start
    assert [row.step for row in history] == [10, 20, 25]
    assert evaluate(model, DATA, 8) < before - 0.3
    assert not model.training
    assert identical(history[-1].val_loss, estimate_loss(model, DATA, 8, 4, 2))
    assert 0 < history[0].seconds < history[1].seconds < history[2].seconds < seconds


def test_the_history_tells_the_training_split_from_the_validation_split():
    history = train(Recorder(), DATA * 0, DATA * 0 + 5, PLAN)
    for row in history:
        assert row.val_loss - row.train_loss == pytest.approx(5, abs=1e-5)


def test_only_the_training_split_is_learned_from():
    model = Recorder()
    train(model, DATA * 0, DATA * 0 + 5, PLAN)
    assert len(model.learned) == 20
    assert all(batch.shape == (4, 8) and not batch.any() for batch in model.learned)


def test_training_is_repeatable_from_its_seed():
    runs = [small_gpt(dropout=0.1) for _ in range(2)]
    for model in runs:
        torch.manual_seed(torch.seed() % 1000)  # whatever came before
        fit(model)
    assert torch.equal(*map(weights_of, runs))


def test_another_seed_sees_other_batches_and_drops_other_values():
    seen = {}
    for seed in (1, 2):
        model = Recorder()
        fit(model, plan(seed=seed))
        seen[seed] = torch.stack(model.learned), torch.rand(9)
    assert not torch.equal(seen[1][0], seen[2][0])
    assert not torch.equal(seen[1][1], seen[2][1])


def test_training_and_its_judging_leave_each_others_random_numbers_alone():
    often, seldom = small_gpt(dropout=0.1), small_gpt(dropout=0.1)
    fit(often, plan(eval_every=1, eval_batches=3))
    fit(seldom, plan(eval_every=99))
    assert torch.equal(weights_of(often), weights_of(seldom))


def test_gradients_are_clipped_after_the_last_ones_are_gone(monkeypatch):
    seen, weights = [], [1.0]
    clip = torch.nn.utils.clip_grad_norm_

    def spy(parameters, limit):
        (weight,) = parameters
        before = weight.grad.item()
        clip([weight], limit)
        seen.append((before, weight.grad.item()))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", spy)
    model = Recorder()
    fit(
        model,
        plan(grad_clip=1e-3),
        on_step=lambda run: weights.append(model.weight.item()),
    )
    assert [grad for grad, _ in seen] == pytest.approx([2 * w for w in weights[:-1]])
    assert [clipped for _, clipped in seen] == pytest.approx([1e-3] * 20, rel=0.01)


def test_training_computes_the_loss_in_the_numbers_of_its_device(monkeypatch):
    @contextlib.contextmanager
    def spy(device):
        entered.append(device)
        with torch.autocast("cpu", torch.bfloat16):
            yield

    entered, wide, narrow = [], small_gpt(), small_gpt()
    fit(wide)
    monkeypatch.setattr(training, "autocast", spy)
    fit(narrow)
    assert entered == [torch.device("cpu")] * 20
    assert not torch.equal(weights_of(narrow), weights_of(wide))
    assert_close(weights_of(narrow), weights_of(wide), atol=0.1, rtol=0.1)


def test_a_training_tells_of_every_step_and_of_every_evaluation():
    told = []
    fit(
        small_gpt(),
        on_step=lambda run: told.append(run.step),
        on_eval=lambda run: told.append(("judged", run.history[-1].step)),
    )
    assert told == [*range(1, 11), ("judged", 10), *range(11, 21), ("judged", 20)]


def test_a_run_that_is_asked_to_end_is_judged_first_and_can_go_on():
    whole, model, told = small_gpt(), small_gpt(), []
    history = fit(whole)
    run = Run(model, PLAN)
    cut = fit(model, run=run, on_step=lambda run: run.step == 13, on_eval=told.append)
    assert [row.step for row in cut] == [10, 13] and len(told) == 2
    assert not model.training and run.step == 13
    cut_loss = cut[-1].val_loss
    assert identical(cut_loss, estimate_loss(model, DATA, 8, 4, 2))
    assert identical(fit(model, run=run)[-1].val_loss, history[-1].val_loss)
    assert torch.equal(weights_of(model), weights_of(whole))


def test_a_complete_run_goes_on_only_to_more_steps():
    model, run = small_gpt(), None
    run = Run(model, PLAN)
    fit(model, run=run)
    before = weights_of(model)
    fit(model, run=run, on_step=lambda run: pytest.fail("a step"))
    assert torch.equal(weights_of(model), before)
    seconds = run.seconds
    assert fit(model, plan(steps=25), run=run)[-1].step == 25
    assert run.seconds > seconds


def test_a_run_that_goes_on_takes_the_rate_and_batch_of_its_new_recipe():
    model = small_gpt()
    run = Run(model, PLAN)
    fit(model, run=run)
    shapes, longer = [], plan(steps=25, batch_size=2, learning_rate=1e-3)
    model.register_forward_pre_hook(lambda m, inputs: shapes.append(inputs[0].shape))
    fit(copy.deepcopy(model), longer)
    fit(model, longer, run=run)
    assert shapes[-1] == (2, 8)
    assert run.optimizer.param_groups[0]["lr"] == learning_rate_at(24, longer)


def test_seeds_are_refused_where_torch_refuses_them():
    for seed in (-(2**63), 2**64 - 1):
        check_seed(seed)
        torch.Generator().manual_seed(seed)
    for seed in (-(2**63) - 1, 2**64):
        with pytest.raises(ValueError, match="seed is"):
            check_seed(seed)
        with pytest.raises((RuntimeError, ValueError, OverflowError)):
            torch.Generator().manual_seed(seed)
