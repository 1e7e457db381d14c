"""Lesson 06: training, exact evaluation, checkpoints, sampling."""

import dataclasses
import math

import pytest
import torch
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.data import CharTokenizer
from minigpt.generation import generate, keep_likeliest
from minigpt.gpt import GPT, GPTConfig
from minigpt.training import (
    Checkpoint,
    TrainConfig,
    estimate_loss,
    evaluate,
    learning_rate_at,
    load_checkpoint,
    make_optimizer,
    pick_device,
    preset,
    save_checkpoint,
    train,
)

CORPUS = "the quick brown fox jumps over the lazy dog; " * 40
TOKENIZER = CharTokenizer(CORPUS)
DATA = torch.tensor(TOKENIZER.encode(CORPUS))
V = TOKENIZER.vocab_size
PLAN = TrainConfig(
    steps=20, batch_size=4, block_size=8, learning_rate=1e-2, warmup_steps=5
)
PLAN = dataclasses.replace(PLAN, eval_every=10, eval_batches=2)


def small_gpt(dropout=0.0):
    torch.manual_seed(0)
    return GPT(GPTConfig(V, 8, n_layer=2, n_head=2, n_embd=16, dropout=dropout))


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


@pytest.mark.parametrize("judge", [evaluate, estimate_loss])
def test_judging_is_without_dropout_and_leaves_mode_and_random_state(judge):
    model = small_gpt(dropout=0.5).train()
    before = torch.get_rng_state()
    argument = 8 if judge is evaluate else PLAN
    assert judge(model, DATA, argument) == judge(model, DATA, argument)
    assert model.training
    assert torch.equal(torch.get_rng_state(), before)


def test_estimates_come_near_the_exact_loss():
    model, plan = small_gpt(), dataclasses.replace(PLAN, eval_batches=400)
    assert estimate_loss(model, DATA, plan) == pytest.approx(
        evaluate(model, DATA, 8), abs=0.05
    )


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


def test_training_lowers_the_loss_and_reports_it():
    model = small_gpt()
    before = evaluate(model, DATA, 8)
    history = train(model, DATA, DATA, dataclasses.replace(PLAN, steps=25))
    assert [row.step for row in history] == [10, 20, 25]
    assert evaluate(model, DATA, 8) < before - 0.3
    assert not model.training


def test_training_is_repeatable_from_its_seed():
    runs = [small_gpt(dropout=0.1) for _ in range(2)]
    for model in runs:
        torch.manual_seed(torch.seed() % 1000)  # whatever came before
        train(model, DATA, DATA, PLAN)
    for a, b in zip(*(model.parameters() for model in runs)):
        assert torch.equal(a, b)


def test_a_gpt_can_learn_one_batch_by_heart():
    model, plan = small_gpt(), dataclasses.replace(PLAN, steps=150, weight_decay=0.0)
    train(model, DATA[:9], DATA, plan)
    assert evaluate(model, DATA[:9], 8) < 0.1


def test_decay_falls_on_matrices_only():
    model = small_gpt()
    decayed, free = make_optimizer(model, PLAN).param_groups
    assert decayed["weight_decay"] == PLAN.weight_decay and free["weight_decay"] == 0
    assert all(p.dim() == 2 for p in decayed["params"])
    assert all(p.dim() == 1 for p in free["params"])
    assert len(decayed["params"]) + len(free["params"]) == len(list(model.parameters()))


def test_the_learning_rate_warms_up_and_ends_at_its_final_fraction():
    plan = TrainConfig(100, 4, 8, 1e-2, warmup_steps=10, final_fraction=0.1)
    rates = [learning_rate_at(step, plan) for step in range(101)]
    assert rates[0] == pytest.approx(1e-3) and max(rates) == rates[10] == 1e-2
    assert rates[9] == pytest.approx(1e-2)
    assert rates[55] == pytest.approx(1e-2 * (0.1 + 0.9 * 0.5))
    assert rates[100] == pytest.approx(1e-3)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_gradients_are_clipped(monkeypatch):
    seen = []
    clip = torch.nn.utils.clip_grad_norm_

    def spy(parameters, limit):
        parameters = list(parameters)
        clip(parameters, limit)
        seen.append(math.sqrt(sum(p.grad.pow(2).sum() for p in parameters)))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", spy)
    train(small_gpt(), DATA, DATA, dataclasses.replace(PLAN, grad_clip=1e-3))
    assert max(seen) < 1.01e-3


class PowerCut(Exception):
    pass


def cut_at_10(history):
    if history[-1].step == 10:
        raise PowerCut


def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(tmp_path):
    path = tmp_path / "folder" / "run.pt"
    whole = small_gpt(dropout=0.2)
    history = train(whole, DATA, DATA, PLAN)
    files = {"checkpoint_path": path, "tokenizer": TOKENIZER}
    with pytest.raises(PowerCut):
        train(small_gpt(dropout=0.2), DATA, DATA, PLAN, on_eval=cut_at_10, **files)
    half = load_checkpoint(path)
    assert half.step == 10
    torch.manual_seed(999)  # another process, another state
    resumed = train(half.model, DATA, DATA, half.config, resume=half, **files)
    for a, b in zip(whole.parameters(), half.model.parameters()):
        assert torch.equal(a, b)
    assert [row[:3] for row in resumed] == [row[:3] for row in history]
    done = load_checkpoint(path)
    assert done.step == 20
    assert done.tokenizer.chars == TOKENIZER.chars
    assert list(path.parent.iterdir()) == [path]  # nothing unfinished is left


def test_resuming_leaves_the_checkpoint_as_it_was(tmp_path):
    path = tmp_path / "run.pt"
    train(small_gpt(), DATA, DATA, PLAN, checkpoint_path=path, tokenizer=TOKENIZER)
    done = load_checkpoint(path)
    before = {i: s["exp_avg"].clone() for i, s in done.optimizer["state"].items()}
    longer = dataclasses.replace(done.config, steps=25)
    train(done.model, DATA, DATA, longer, resume=done)
    for i, state in done.optimizer["state"].items():
        assert torch.equal(state["exp_avg"], before[i])


def test_an_interrupt_leaves_a_usable_model_and_a_checkpoint(tmp_path, capsys):
    path = tmp_path / "run.pt"

    def interrupt(step):
        if step == 13:
            raise KeyboardInterrupt

    model = small_gpt()
    history = train(
        model,
        DATA,
        DATA,
        PLAN,
        on_step=interrupt,
        checkpoint_path=path,
        tokenizer=TOKENIZER,
    )
    assert "Interrupted after step 13 of 20" in capsys.readouterr().out
    assert history[-1].step == 13
    assert not model.training
    loaded = load_checkpoint(path)
    assert loaded.step == 13
    assert evaluate(loaded.model, DATA, 8) == evaluate(model, DATA, 8)


def test_a_checkpoint_needs_the_vocabulary(tmp_path):
    with pytest.raises(ValueError, match="pass tokenizer="):
        train(small_gpt(), DATA, DATA, PLAN, checkpoint_path=tmp_path / "x.pt")


def test_a_failed_write_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    train(small_gpt(), DATA, DATA, PLAN, checkpoint_path=path, tokenizer=TOKENIZER)
    before = path.read_bytes()

    def full_disk(content, target):
        target.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    checkpoint = Checkpoint(small_gpt(), TOKENIZER, PLAN, 1, [], {}, {})
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(path, checkpoint)
    assert path.read_bytes() == before


def test_a_missing_or_damaged_checkpoint_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="minigpt train --out"):
        load_checkpoint(tmp_path / "none.pt")
    path = tmp_path / "bad.pt"
    for content in (b"", b"not a checkpoint", b"PK\x03\x04 cut"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a checkpoint of this version"):
            load_checkpoint(path)
    torch.save({"something": "else"}, path)
    with pytest.raises(ValueError, match="not a checkpoint of this version"):
        load_checkpoint(path)


def test_devices_are_chosen_and_overridable():
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device().type in ("cuda", "mps", "cpu")


def test_a_device_that_is_not_there_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="finds no cuda here: name cpu"):
        pick_device("cuda")


@pytest.mark.parametrize("splits", [(DATA[:8], DATA), (DATA, DATA[:8])])
def test_a_split_too_short_for_a_window_is_refused_before_the_first_step(splits):
    model = small_gpt()
    with pytest.raises(ValueError, match="has 8 tokens"):
        train(model, *splits, PLAN, on_step=lambda step: pytest.fail("a step"))


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match="n_layer is 0"):
        GPTConfig(V, 8, n_layer=0, n_head=2, n_embd=16)
    with pytest.raises(ValueError, match="n_embd = 0"):
        GPTConfig(V, 8, n_layer=1, n_head=2, n_embd=0)
    with pytest.raises(ValueError, match="eval_batches is 0"):
        dataclasses.replace(PLAN, eval_batches=0)
    with pytest.raises(ValueError, match="block_size is 0"):
        evaluate(small_gpt(), DATA, 0)


def test_presets_fit_their_models_and_unknown_ones_are_refused():
    for name in ("cpu", "gpu"):
        model, plan = preset(name, 65)
        assert model.vocab_size == 65 and model.block_size == plan.block_size
    gpu = preset("gpu", 65)[0]
    assert (gpu.n_layer, gpu.n_head, gpu.n_embd, gpu.block_size) == (6, 6, 384, 256)
    with pytest.raises(ValueError, match="'cpu' or 'gpu'"):
        preset("tpu", 65)


@pytest.fixture
def model():
    return small_gpt()


@pytest.fixture
def start():
    return torch.tensor([TOKENIZER.encode("the "), TOKENIZER.encode("dog;")])


def test_generation_keeps_the_prompt_and_goes_past_the_context(model, start):
    out = generate(model, start, 20)
    assert out.shape == (2, 24)
    assert torch.equal(out[:, :4], start)


def test_generation_depends_only_on_the_last_block_of_the_text(model, start):
    long = torch.cat([start, start, start], dim=1)
    seeds = [torch.Generator().manual_seed(3) for _ in range(2)]
    a = generate(model, long, 5, generator=seeds[0])[:, -5:]
    b = generate(model, long[:, -8:], 5, generator=seeds[1])[:, -5:]
    assert torch.equal(a, b)


def test_temperature_zero_and_top_k_one_take_the_likeliest(model, start):
    greedy = generate(model, start, 10, temperature=0)
    assert torch.equal(greedy, generate(model, start, 10, top_k=1))
    first = model(start)[0][:, -1].argmax(-1)
    assert torch.equal(greedy[:, 4], first)


def test_sampled_frequencies_follow_softmax_of_scaled_logits():
    model = BigramLanguageModel(4)
    start = torch.zeros(20_000, 1, dtype=torch.long)
    torch.manual_seed(0)
    drawn = generate(model, start, 1, temperature=0.5)[:, 1]
    expected = torch.softmax(model.token_embedding.weight[0] / 0.5, -1)
    assert_close(drawn.bincount(minlength=4) / 20_000, expected, atol=0.02, rtol=0)


def test_top_k_and_top_p_keep_the_likeliest_and_nothing_else():
    logits = torch.tensor([[0.15, 0.5, 0.05, 0.3], [0.3, 0.05, 0.5, 0.15]]).log()

    def kept(**knobs):
        return (keep_likeliest(logits, **knobs) > -torch.inf).tolist()

    assert kept(top_k=2) == kept(top_p=0.7) == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert kept(top_p=0.9) == [[1, 1, 0, 1], [1, 0, 1, 1]]
    assert kept(top_p=0.1) == kept(top_k=1) == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert kept(top_k=99) == kept(top_p=1.0) == [[1] * 4] * 2


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"temperature": -1}, "temperature is -1"),
        ({"top_k": 0}, "top_k is 0"),
        ({"top_p": 0.0}, "top_p is 0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
    ],
)
def test_knobs_out_of_range_are_refused(model, start, knobs, message):
    with pytest.raises(ValueError, match=message):
        generate(model, start, 1, **knobs)


def test_generation_from_nothing_is_refused(model):
    with pytest.raises(ValueError, match="at least one token"):
        generate(model, torch.zeros(1, 0, dtype=torch.long), 1)


def test_generation_is_without_dropout_and_gives_the_mode_back(start):
    model = small_gpt(dropout=0.5).train()
    first = generate(model, start, 8, temperature=0)
    assert torch.equal(first, generate(model, start, 8, temperature=0))
    assert model.training
