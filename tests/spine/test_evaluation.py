"""Lessons 01 and 06: how good a model is, and where it computes."""

import pytest
import torch
from small import DATA, Recorder, fit, plan, small_gpt

from minigpt import evaluation
from minigpt.bigram import BigramLanguageModel
from minigpt.data import get_batch
from minigpt.device import autocast, pick_device, random_state, set_random_state
from minigpt.evaluation import estimate_loss, evaluate
from minigpt.generation import generate
from minigpt.inside.looking import capture
from minigpt.tokens.judging import token_nats

START = torch.zeros(1, 1, dtype=torch.long)
JUDGES = {
    "evaluate": lambda model: evaluate(model, DATA, 8),
    "estimate_loss": lambda model: estimate_loss(model, DATA, 8),
    "generate": lambda model: generate(model, START, 8, temperature=0).tolist(),
}


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


@pytest.mark.parametrize("n", [0, 1])
def test_a_text_with_nothing_to_predict_is_refused(n):
    with pytest.raises(
        ValueError, match=f"has {n} tokens.*one to predict: use more text"
    ):
        evaluate(small_gpt(), DATA[:n], 8)


READERS = JUDGES | {
    "capture": lambda model: capture(model, DATA[:8][None]),
    "token_nats": lambda model: token_nats(model, DATA[:9]),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("reader", READERS)
def test_after_an_error_the_mode_is_what_it_was(reader, training):
    model = small_gpt().train(training)
    modes = []

    def fail(module, inputs):
        modes.append(module.training)
        raise InterruptedError

    model.body.register_forward_pre_hook(fail)
    with pytest.raises(InterruptedError):
        READERS[reader](model)
    assert modes == [False]
    assert all(module.training == training for module in model.modules())


@pytest.mark.parametrize("judge", JUDGES)
def test_judging_is_without_dropout_and_leaves_mode_and_random_state(judge):
    for mode in (True, False):
        model = small_gpt(dropout=0.5).train(mode)
        if judge != "generate":  # which draws, also at temperature 0
            before = torch.get_rng_state()
            JUDGES[judge](model)
            assert torch.equal(torch.get_rng_state(), before)
        assert JUDGES[judge](model) == JUDGES[judge](model)
        assert model.training is mode


def test_an_estimate_averages_as_many_batches_as_it_says(monkeypatch):
    losses = []

    def spy(*arguments):
        x, y = get_batch(*arguments)
        losses.append(model(x, y)[1].item())
        return x, y

    model = small_gpt()
    monkeypatch.setattr(evaluation, "get_batch", spy)
    estimate = estimate_loss(model, DATA, 8, 4, n_batches=7)
    assert len(losses) == 7
    assert estimate == pytest.approx(sum(losses) / 7)
    exact = evaluate(model, DATA, 8)
    assert estimate_loss(model, DATA, 8, n_batches=50) == pytest.approx(exact, abs=0.05)


def test_estimates_see_other_windows_than_training_does():
    model, text = Recorder(), torch.arange(100_000)
    fit(model, plan(batch_size=16, eval_batches=10), data=text)
    learned = {int(start) for batch in model.learned for start in batch[:, 0]}
    judged = {int(start) for batch in model.judged for start in batch[:, 0]}
    assert len(learned & judged) < 5  # by chance; with one seed it would be 160


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
    """machine(cuda=..., mps=..., bf16=...) pretends that they are there, or not."""

    def pretend(cuda=False, mps=False, bf16=False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: bf16)

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


def test_only_a_gpu_that_can_computes_in_16_bits(machine):
    for device, bf16, narrow in [
        ("cuda", True, True),
        ("cuda", False, False),
        ("cpu", True, False),
        ("mps", True, False),
    ]:
        machine(cuda=True, bf16=bf16)
        with autocast(torch.device(device)):
            assert torch.is_autocast_enabled("cuda") is narrow
            assert not torch.is_autocast_enabled("cpu")


def test_random_numbers_go_on_where_their_state_was_taken():
    device = torch.device("cpu")
    state = random_state(device)
    first, second = torch.rand(3), torch.rand(3)
    set_random_state(state, device)
    assert torch.equal(torch.rand(3), first) and not torch.equal(first, second)


def test_the_random_numbers_of_a_gpu_go_on_too(monkeypatch):
    device, seen = torch.device("cuda"), []
    here = torch.tensor([1, 2, 3], dtype=torch.uint8)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda *device: here)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda s, *d: seen.append(s))
    state = random_state(device)
    set_random_state(state, device)
    assert torch.equal(seen[0], here)
    set_random_state(random_state(torch.device("cpu")), device)  # moved to the GPU
    set_random_state(state, torch.device("cpu"))  # and away from it
    assert len(seen) == 1
