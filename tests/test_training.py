"""Lesson 06: the recipe, the optimizer, the schedule and the training loop."""

import contextlib
import copy
import math
import signal
import threading
import time

import pytest
import torch
from small import DATA, PLAN, Recorder, V, fit, plan, small_gpt, weights_of
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.testing import assert_close

from minigpt import training
from minigpt.data import at_least_one
from minigpt.evaluation import estimate_loss, evaluate
from minigpt.generation import generate
from minigpt.gpt import GPTConfig
from minigpt.interrupts import Interrupts
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.training import TrainConfig, preset, train


def same(one, other):
    """True if two histories agree in everything but the seconds."""
    return [row[:3] for row in one] == [row[:3] for row in other]


# --- The recipe. ---


@pytest.mark.parametrize(
    ("wrong", "need"),
    [
        ({"learning_rate": 0}, "above 0"),
        ({"learning_rate": -1e-3}, "above 0"),
        ({"learning_rate": math.nan}, "above 0"),
        ({"learning_rate": math.inf}, "finite"),
        ({"warmup_steps": -1}, "in 0 to 20 steps"),
        ({"warmup_steps": 21}, "in 0 to 20 steps"),
        ({"final_fraction": -0.1}, "from 0 to 1"),
        ({"final_fraction": 1.1}, "from 0 to 1"),
        ({"weight_decay": -0.1}, "0 or more"),
        ({"weight_decay": math.nan}, "0 or more"),
        ({"weight_decay": math.inf}, "finite"),
        ({"beta2": 1}, "below 1"),
        ({"beta2": -0.1}, "at least 0"),
        ({"grad_clip": 0}, "above 0; math.inf clips nothing"),
        ({"grad_clip": -1}, "above 0; math.inf clips nothing"),
        ({"grad_clip": math.nan}, "above 0; math.inf clips nothing"),
        ({"seed": 0.5}, "a whole number"),
    ],
    ids=str,
)
def test_a_recipe_that_makes_no_sense_is_refused_with_value_and_remedy(wrong, need):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"^{name} is {value}; it must be .*{need}"):
        plan(**wrong)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "32", True, None], ids=repr)
@pytest.mark.parametrize(
    "name", ["steps", "batch_size", "block_size", "eval_every", "eval_batches"]
)
def test_a_size_in_the_recipe_is_a_whole_number_from_one_up(name, wrong):
    with pytest.raises(ValueError, match=f"^{name} is {wrong!r}; give a whole number"):
        plan(**{name: wrong})


@pytest.mark.parametrize("wrong", [0, 2.5, "32", True], ids=repr)
@pytest.mark.parametrize("name", "vocab_size block_size n_layer n_head n_embd".split())
def test_a_size_of_a_gpt_is_a_whole_number_from_one_up(name, wrong):
    sizes = dict(vocab_size=V, block_size=8, n_layer=1, n_head=1, n_embd=16)
    with pytest.raises(ValueError, match=f"^{name} is {wrong!r}; give a whole number"):
        GPTConfig(**{**sizes, name: wrong})


@pytest.mark.parametrize("dropout", [math.nan, 1, -0.1])
def test_a_dropout_that_is_no_share_is_refused(dropout):
    with pytest.raises(ValueError, match=f"dropout is {dropout}; .* below 1"):
        GPTConfig(V, 8, n_layer=1, n_head=2, n_embd=16, dropout=dropout)


def test_heads_that_do_not_share_the_width_are_refused_before_a_model_is_made():
    with pytest.raises(ValueError, match="n_embd = 16 .* n_head = 3"):
        GPTConfig(V, 8, n_layer=1, n_head=3, n_embd=16)


def test_the_limits_themselves_are_fine():
    at_least_one(steps=1)
    plan(warmup_steps=0, final_fraction=0, weight_decay=0, beta2=0, grad_clip=math.inf)
    plan(warmup_steps=20, final_fraction=1, seed=-1)
    GPTConfig(1, 1, 1, 1, 1, dropout=0)


def test_presets_fit_their_models_and_unknown_ones_are_refused():
    for name in ("cpu", "modern", "gpu"):
        model, recipe = preset(name, 65)
        assert model.vocab_size == 65 and model.block_size == recipe.block_size
    gpu, recipe = preset("gpu", 65)
    assert (recipe.steps, recipe.eval_every) == (2000, 250)
    assert (gpu.n_layer, gpu.n_head, gpu.n_embd, gpu.block_size) == (6, 6, 384, 256)
    with pytest.raises(ValueError, match="'cpu', 'modern' or 'gpu'"):
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


def test_the_learning_rate_warms_up_and_ends_at_its_final_fraction():
    config = TrainConfig(100, 4, 8, 1e-2, warmup_steps=10, final_fraction=0.1)
    rates = [learning_rate_at(step, config) for step in range(101)]
    assert rates[:10] == pytest.approx([1e-3 * (step + 1) for step in range(10)])
    assert max(rates) == rates[10] == 1e-2
    assert rates[55] == pytest.approx(1e-2 * (0.1 + 0.9 * 0.5))
    assert rates[100] == pytest.approx(1e-3) == learning_rate_at(200, config)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert learning_rate_at(100, TrainConfig(100, 4, 8, 1e-2)) == 0  # if not told


@pytest.mark.parametrize(
    ("steps", "peak"), [(100, 20), (499, 99), (500, 100), (5000, 100), (4, 0), (1, 0)]
)
def test_a_short_run_is_not_all_warm_up(steps, peak):
    config = TrainConfig(steps, 4, 8, 1e-2, final_fraction=0.1)
    rates = [learning_rate_at(step, config) for step in range(steps + 1)]
    assert rates.index(max(rates)) in (peak, peak - 1)
    assert rates[peak] == 1e-2
    assert rates[-1] == pytest.approx(1e-3)


def test_a_warm_up_as_long_as_the_run_only_rises():
    config = TrainConfig(10, 4, 8, 1e-2, warmup_steps=10)
    rates = [learning_rate_at(step, config) for step in range(10)]
    assert rates == pytest.approx([1e-3 * (step + 1) for step in range(10)])
    assert learning_rate_at(10, config) == 1e-2


@pytest.fixture
def optimizers(monkeypatch):
    """The optimizers that a training makes."""
    made = []

    def spy(model, config):
        made.append(make_optimizer(model, config))
        return made[-1]

    monkeypatch.setattr(training, "make_optimizer", spy)
    return made


def test_every_step_takes_the_rate_of_the_schedule(optimizers):
    def note(step):
        (optimizer,) = optimizers
        rates.append({group["lr"] for group in optimizer.param_groups})

    rates = []
    fit(small_gpt(), on_step=note)
    assert rates == [{learning_rate_at(step, PLAN)} for step in range(20)]


# --- The loop. ---


def test_training_lowers_the_loss_and_reports_it():
    model = small_gpt()
    before = evaluate(model, DATA, 8)
    history = fit(model, plan(steps=25))
    assert [row.step for row in history] == [10, 20, 25]
    assert evaluate(model, DATA, 8) < before - 0.3
    assert not model.training
    assert history[-1].val_loss == estimate_loss(model, DATA, plan(steps=25))


def test_the_seconds_of_a_history_are_those_of_its_steps():
    start = time.perf_counter()
    first, second = (row.seconds for row in fit(small_gpt()))
    assert 0 < first < second < time.perf_counter() - start


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


def test_a_gpt_can_learn_one_batch_by_heart():
    model = small_gpt()
    fit(model, plan(steps=150, weight_decay=0.0), data=DATA[:9])
    assert evaluate(model, DATA[:9], 8) < 0.1


def test_gradients_are_clipped(monkeypatch):
    seen = []
    clip = torch.nn.utils.clip_grad_norm_

    def spy(parameters, limit):
        parameters = list(parameters)
        clip(parameters, limit)
        seen.append(math.sqrt(sum(p.grad.pow(2).sum() for p in parameters)))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", spy)
    fit(small_gpt(), plan(grad_clip=1e-3))
    assert len(seen) == 20 and max(seen) == pytest.approx(1e-3, rel=0.01)
    seen.clear()
    fit(small_gpt(), plan(grad_clip=math.inf))
    assert min(seen) > 0.1


def test_no_gradient_of_one_step_is_left_in_the_next(monkeypatch):
    grads = []
    monkeypatch.setattr(
        torch.nn.utils,
        "clip_grad_norm_",
        lambda parameters, limit: grads.append(next(parameters).grad.item()),
    )
    model, weights = Recorder(), [1.0]
    fit(model, on_step=lambda step: weights.append(model.weight.item()))
    assert grads == pytest.approx([2 * w for w in weights[:-1]])


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


@pytest.mark.parametrize("splits", [(DATA[:8], DATA), (DATA, DATA[:8])])
def test_a_split_too_short_for_a_window_is_refused_before_the_first_step(splits):
    model = small_gpt()
    with pytest.raises(ValueError, match="has 8 tokens"):
        train(model, *splits, PLAN, on_step=lambda step: pytest.fail("a step"))


def test_a_training_tells_of_every_step_and_of_every_evaluation():
    told = []
    fit(
        small_gpt(),
        on_step=told.append,
        save=lambda state: told.append(("saved", state.step)),
        on_eval=lambda history: told.append(("judged", history[-1].step)),
    )
    ten = [*range(1, 11), ("saved", 10), ("judged", 10)]
    assert told == [*ten, *range(11, 21), ("saved", 20), ("judged", 20)]


# --- Going on. ---


class PowerCut(Exception):
    pass


def run_until(last, model, config=PLAN):
    """Train, and lose the power at step `last`; the TrainState saved before."""
    states = []

    def cut(step):
        if step == last:
            raise PowerCut

    with contextlib.suppress(PowerCut):
        fit(model, config, save=states.append, on_step=cut)
    return states[-1]


@pytest.fixture
def half():
    """A GPT after the first ten steps of PLAN, and its TrainState."""
    model = small_gpt(dropout=0.2)
    before = copy.deepcopy(model)

    def keep(history):
        before.load_state_dict(model.state_dict())
        raise PowerCut

    states = []
    with contextlib.suppress(PowerCut):
        fit(model, save=states.append, on_eval=keep)
    return before, states[-1]


def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(half):
    whole = small_gpt(dropout=0.2)
    history = fit(whole)
    model, state = half
    assert state.step == 10
    torch.manual_seed(999)  # another process, another state
    resumed = fit(model, resume=state)
    assert torch.equal(weights_of(model), weights_of(whole))
    assert same(resumed, history)


def test_the_seconds_of_a_resumed_run_are_added_to_those_before(half):
    model, state = half
    row = state.history[-1]._replace(seconds=1000.0)
    history = fit(model, resume=state._replace(history=[row]))
    assert history[0] == row and history[1].seconds > 1000


def test_a_state_stays_as_it_was_when_training_goes_on():
    states, copies = [], []

    def save(state):
        states.append(state)
        copies.append(copy.deepcopy(state))

    fit(small_gpt(), save=save)
    for state, before in zip(states, copies):
        assert state.history == before.history
        assert_close(state.optimizer, before.optimizer, rtol=0, atol=0)
        assert_close(state.random_state, before.random_state, rtol=0, atol=0)


def test_resuming_leaves_the_state_as_it_was(half):
    model, state = half
    before = copy.deepcopy(state)
    fit(model, resume=state)
    assert state.history == before.history
    assert_close(state.optimizer, before.optimizer, rtol=0, atol=0)


@pytest.mark.parametrize(
    "change",
    [
        {"weight_decay": 0.5},
        {"beta2": 0.5},
        {"learning_rate": 1e-3},
        {"batch_size": 2},
        {"steps": 13},
        {"grad_clip": 1e-3},
    ],
    ids=str,
)
def test_a_resumed_run_takes_the_settings_that_it_is_given(half, optimizers, change):
    model, state = half
    config = plan(**change)
    shapes = []
    model.register_forward_pre_hook(lambda m, inputs: shapes.append(inputs[0].shape))
    as_before = copy.deepcopy(model)
    fit(as_before, resume=state)
    history = fit(model, config, resume=state)
    assert history[-1].step == config.steps
    assert not torch.equal(weights_of(model), weights_of(as_before))
    decayed, free = optimizers[-1].param_groups
    assert decayed["weight_decay"] == config.weight_decay and not free["weight_decay"]
    for group in (decayed, free):
        assert group["betas"] == (0.9, config.beta2)
        assert group["lr"] == learning_rate_at(config.steps - 1, config)
    assert shapes[-1] == (config.batch_size, 8)


def test_a_complete_run_goes_on_only_to_more_steps():
    model, states = small_gpt(), []
    fit(model, save=states.append)
    before = weights_of(model)
    again = fit(model, resume=states[-1], on_step=lambda step: pytest.fail("a step"))
    assert again == states[-1].history and torch.equal(weights_of(model), before)
    assert fit(model, plan(steps=25), resume=states[-1])[-1].step == 25


def test_a_run_cannot_go_on_with_another_seed(half):
    model, state = half
    with pytest.raises(ValueError, match="seed 1337, so seed 7 would have no effect"):
        fit(model, plan(seed=7), resume=state)


def test_a_run_cannot_go_on_with_another_optimizer(half):
    model, state = half
    with pytest.raises(ValueError, match="another optimizer than 'muon'"):
        fit(model, plan(optimizer="muon"), resume=state)


# --- Interrupts. ---


def interrupt():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def sigint():
    """Every test here must leave the handler of Ctrl+C as it found it."""
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    after = signal.signal(signal.SIGINT, outside)
    assert after is signal.default_int_handler


def thirteenth():
    """A hook that interrupts when it is called for the thirteenth time."""
    left = iter(range(12, -1, -1))

    def hook(*arguments):
        if next(left, None) == 0:
            interrupt()

    return hook


def in_the_forward_pass(model):
    hook = thirteenth()
    model.register_forward_pre_hook(lambda m, inputs: m.training and hook() or None)


def in_the_backward_pass(model):
    model.body[0].attention.qkv.weight.register_hook(thirteenth())


def after_the_optimizer(model):
    return register_optimizer_step_post_hook(thirteenth())


PLACES = {
    "forward": (in_the_forward_pass, 13),
    "backward": (in_the_backward_pass, 13),
    "after optimizer.step": (after_the_optimizer, 13),
    "between the steps": (None, 13),
    "while saving": (None, 11),  # after step 10: the next step is the last
}


@pytest.mark.parametrize("place", PLACES)
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(place, capsys):
    whole = small_gpt(dropout=0.2)
    history = fit(whole)

    model, saved = small_gpt(dropout=0.2), {}
    prepare, last = PLACES[place]
    handle = prepare(model) if prepare else None

    def save(state):
        if place == "while saving" and state.step == 10:
            interrupt()
        saved.update(state=state, model=copy.deepcopy(model.state_dict()))

    def on_step(step):
        if place == "between the steps" and step == 13:
            interrupt()

    try:
        cut = fit(model, save=save, on_step=on_step)
    finally:
        if handle:
            handle.remove()
    assert f"Interrupted after step {last} of 20" in capsys.readouterr().out
    assert cut[-1].step == saved["state"].step == last
    assert not model.training
    assert cut[-1].val_loss == estimate_loss(model, DATA, PLAN)

    again = small_gpt(dropout=0.2)
    again.load_state_dict(saved["model"])
    resumed = fit(again, resume=saved["state"])
    assert torch.equal(weights_of(again), weights_of(whole))
    assert same([row for row in resumed if row.step != last], history)


def test_an_interrupt_in_the_last_step_changes_nothing(capsys):
    def on_step(step):
        if step == 20:
            interrupt()

    model, whole = small_gpt(), small_gpt()
    assert same(fit(model, on_step=on_step), fit(whole))
    assert torch.equal(weights_of(model), weights_of(whole))
    assert "Interrupted" not in capsys.readouterr().out


def test_a_second_interrupt_stops_at_once():
    steps = []

    def on_step(step):
        steps.append(step)
        interrupt()
        interrupt()
        pytest.fail("went on")

    with pytest.raises(KeyboardInterrupt):
        fit(small_gpt(), on_step=on_step)
    assert steps == [1]


@pytest.mark.parametrize("first", [None, "handler", signal.SIG_DFL], ids=str)
def test_after_a_training_an_interrupt_does_what_it_did_before(first):
    def handler(number, frame):
        heard.append(number)

    heard, before = [], signal.getsignal(signal.SIGINT)
    mine = {None: before, "handler": handler}.get(first, first)
    signal.signal(signal.SIGINT, mine)
    try:
        fit(small_gpt(), plan(steps=5))
        assert signal.getsignal(signal.SIGINT) is mine
        with pytest.raises(PowerCut):
            fit(small_gpt(), on_step=power_cut)
        assert signal.getsignal(signal.SIGINT) is mine
        if first == "handler":
            fit(small_gpt(), on_step=lambda step: interrupt())
            assert not heard
            interrupt()
            assert heard == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def power_cut(step):
    raise PowerCut


def test_a_handler_that_python_does_not_know_is_no_obstacle(monkeypatch):
    """Then signal.signal() returns None, and does not take None back."""
    real = signal.signal
    monkeypatch.setattr(
        signal, "signal", lambda number, handler: real(number, handler) and None
    )
    with Interrupts() as interrupts:
        interrupt()
        assert interrupts.asked
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_training_works_in_a_thread_that_is_not_the_main_one():
    result = []
    model, whole = small_gpt(), small_gpt()
    thread = threading.Thread(target=lambda: result.append(fit(model)))
    thread.start()
    thread.join()
    assert same(result[0], fit(whole))
    assert torch.equal(weights_of(model), weights_of(whole))


def test_a_run_of_many_evaluations_can_be_used_right_after_an_interrupt():
    model = small_gpt()
    history = fit(model, on_step=lambda step: interrupt())
    assert [row.step for row in history] == [1]
    assert generate(model, DATA[:4][None], 5).shape == (1, 9)
