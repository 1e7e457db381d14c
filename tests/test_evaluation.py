"""Lesson 01 on: how good a model is, and where and in which numbers it computes."""

import contextlib
import math

import pytest
import torch
from small import DATA, Recorder, V, fit, plan, small_gpt

from minigpt import evaluation
from minigpt.bigram import BigramLanguageModel
from minigpt.data import get_batch
from minigpt.device import autocast, pick_device, random_state, set_random_state
from minigpt.evaluation import estimate_loss, evaluate, judging
from minigpt.generation import generate

START = torch.zeros(1, 1, dtype=torch.long)
JUDGES = {
    "evaluate": lambda model: evaluate(model, DATA, 8),
    "estimate_loss": lambda model: estimate_loss(model, DATA, plan()),
    "generate": lambda model: generate(model, START, 8, temperature=0).tolist(),
}


@pytest.fixture(params=JUDGES)
def judge(request):
    return JUDGES[request.param]


@pytest.mark.parametrize("n", [2, 8, 9, 17, 60])
def test_evaluate_equals_brute_force_over_all_windows(n):
    model, data = small_gpt(), DATA[:n]
    total = 0.0
    for t in range(n - 1):
        start = t // 8 * 8
        logits = model(data[start : t + 1][None])[0][0, -1]
        total -= torch.log_softmax(logits, -1)[data[t + 1]].item()
    for batch_size in (1, 3, 128):
        exact = evaluate(model, data, 8, batch_size)
        assert exact == pytest.approx(total / (n - 1), abs=1e-5)


def test_evaluating_less_than_one_target_is_refused():
    with pytest.raises(ValueError, match="1 tokens"):
        evaluate(small_gpt(), DATA[:1], 8)


@pytest.mark.parametrize("name", ["block_size", "batch_size"])
def test_evaluating_in_windows_or_batches_of_none_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} is 0"):
        evaluate(small_gpt(), DATA, **{"block_size": 8, name: 0})


def test_judging_is_without_dropout_or_gradient_and_leaves_mode_and_random_state(judge):
    for mode in (True, False):
        model = small_gpt(dropout=0.5).train(mode)
        before = torch.get_rng_state()
        assert judge(model) == judge(model)
        assert model.training is mode
        assert torch.equal(torch.get_rng_state(), before)


def test_the_mode_comes_back_after_an_error_too(judge):
    model = small_gpt(dropout=0.5).train()
    model.lm_head = torch.nn.Linear(3, V)  # of the wrong width
    with pytest.raises(ValueError, match="hidden has shape"):
        judge(model)
    assert all(module.training for module in model.modules())


def test_no_gradients_are_kept_while_a_model_is_judged():
    model = small_gpt()
    with judging(model):
        assert not model(START)[0].requires_grad
    assert model(START)[0].requires_grad


def test_estimates_come_near_the_exact_loss():
    model, config = small_gpt(), plan(eval_batches=400)
    assert estimate_loss(model, DATA, config) == pytest.approx(
        evaluate(model, DATA, 8), abs=0.05
    )


def test_an_estimate_averages_as_many_batches_as_it_says(monkeypatch):
    losses = []

    def spy(*arguments):
        x, y = get_batch(*arguments)
        losses.append(model(x, y)[1].item())
        return x, y

    model = small_gpt()
    monkeypatch.setattr(evaluation, "get_batch", spy)
    estimate = estimate_loss(model, DATA, plan(eval_batches=7))
    assert len(losses) == 7
    assert estimate == pytest.approx(sum(losses) / 7)


def test_estimates_see_other_windows_than_training_does():
    model, text = Recorder(), torch.arange(100_000)
    fit(model, plan(batch_size=16, eval_batches=10), data=text)
    learned = {int(start) for batch in model.learned for start in batch[:, 0]}
    judged = {int(start) for batch in model.judged for start in batch[:, 0]}
    assert len(learned & judged) < 5  # by chance; with one seed it would be 160


def test_estimates_compute_in_the_numbers_of_training(monkeypatch):
    entered = []

    @contextlib.contextmanager
    def spy(device):
        entered.append(device)
        with torch.autocast("cpu", torch.bfloat16):
            yield

    model, wide = small_gpt(), estimate_loss(small_gpt(), DATA, plan())
    monkeypatch.setattr(evaluation, "autocast", spy)
    narrow = estimate_loss(model, DATA, plan())
    assert entered == [torch.device("cpu")]
    assert narrow != wide and narrow == pytest.approx(wide, abs=0.01)


def test_counted_bigrams_are_the_floor_that_training_approaches(splits):
    """2.4519 nats on train; with add-one smoothing 2.4546, and 2.4819 on validation."""
    train_data, val_data = splits
    pairs = torch.bincount(train_data[:-1] * 65 + train_data[1:], minlength=65 * 65)
    counts = pairs.view(65, 65).float()
    model = BigramLanguageModel(65)
    model.token_embedding.weight.data = (counts / counts.sum(1, keepdim=True)).log()
    assert evaluate(model, train_data, 32) == pytest.approx(2.4519, abs=5e-5)
    smooth = counts + 1
    model.token_embedding.weight.data = (smooth / smooth.sum(1, keepdim=True)).log()
    assert evaluate(model, train_data, 32) == pytest.approx(2.4546, abs=5e-5)
    assert evaluate(model, val_data, 32) == pytest.approx(2.4819, abs=5e-5)


# --- The device. ---


@pytest.fixture
def machine(monkeypatch):
    """machine(cuda=..., mps=..., bf16=...) pretends that they are there, or not;
    and that what is there computes rightly."""
    monkeypatch.setattr("minigpt.device._fault", lambda device: "")

    def pretend(cuda=False, mps=False, bf16=False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(
            torch.cuda,
            "is_bf16_supported",
            lambda including_emulation=True: bf16 or including_emulation,
        )

    return pretend


def test_the_best_device_there_is_is_taken(machine):
    for there, best in [
        ({}, "cpu"),
        ({"mps": True}, "mps"),
        ({"cuda": True}, "cuda"),
        ({"cuda": True, "mps": True}, "cuda"),
    ]:
        machine(**there)
        assert pick_device() == torch.device(best)
        assert pick_device("cpu") == torch.device("cpu")


def test_a_device_that_is_there_can_be_named_with_its_number(machine):
    machine(cuda=True)
    assert pick_device("cuda:1") == torch.device("cuda:1")


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "nowhere", "meta", "cpu:x"])
def test_a_device_that_is_not_there_is_refused_with_the_remedy(machine, name):
    machine()
    with pytest.raises(ValueError, match=f"finds no {name} here: name cpu"):
        pick_device(name)


def test_only_a_gpu_that_can_computes_in_16_bits(machine):
    for device, bf16, narrow in [
        ("cuda", True, True),
        ("cuda", False, False),  # an emulation would be slow
        ("cpu", True, False),
        ("mps", True, False),
    ]:
        machine(cuda=True, bf16=bf16)
        with autocast(torch.device(device)):
            assert torch.is_autocast_enabled("cuda") is narrow
            if narrow:
                assert torch.get_autocast_dtype("cuda") == torch.bfloat16
            assert not torch.is_autocast_enabled("cpu")


def test_random_numbers_go_on_where_their_state_was_taken():
    device, batches = torch.device("cpu"), torch.Generator().manual_seed(1)

    def draws():
        return torch.cat([torch.rand(3), torch.rand(3, generator=batches)])

    state = random_state(device, batches)
    first, second = draws(), draws()
    set_random_state(state, device, batches)
    assert torch.equal(draws(), first) and not torch.equal(first, second)


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_the_random_numbers_of_a_gpu_go_on_too(monkeypatch, kind):
    device, batches, seen = torch.device(kind), torch.Generator(), []
    module = getattr(torch, kind)
    here = torch.tensor([1, 2, 3], dtype=torch.uint8)
    monkeypatch.setattr(module, "get_rng_state", lambda *device: here)
    monkeypatch.setattr(module, "set_rng_state", lambda *s: seen.append(s))
    state = random_state(device, batches)
    set_random_state(state, device, batches)
    assert torch.equal(seen[0][0], here)
    of_a_cpu = random_state(torch.device("cpu"), batches)
    set_random_state(of_a_cpu, device, batches)  # a run that moves to the GPU
    set_random_state(state, torch.device("cpu"), batches)  # and one that leaves it
    assert len(seen) == 1


def test_a_uniform_model_is_judged_at_ln_of_its_vocabulary():
    model = BigramLanguageModel(V)
    torch.nn.init.zeros_(model.token_embedding.weight)
    assert evaluate(model, DATA, 8) == pytest.approx(math.log(V))
    assert estimate_loss(model, DATA, plan()) == pytest.approx(math.log(V))
