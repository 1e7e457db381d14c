"""The speed run: its rules, what it says of a recipe, and the table of records."""

import argparse
import re
import sys
from dataclasses import replace

import pytest
import torch
import torch.nn as nn
from small import DATA, V, small_gpt

from minigpt.bigram import BigramLanguageModel, next_token_loss
from minigpt.course import record
from minigpt.course.experiments import speedrun as entries
from minigpt.course.record import Variant
from minigpt.evaluation import evaluate
from minigpt.playwright.play import write_play
from minigpt.tools import speedrun
from minigpt.tools.speedrun import BrokenRule
from minigpt.training import TrainConfig

TEXT = speedrun.Text(DATA[:1500], DATA[1500:], V)
GOOD = """
from minigpt.bigram import BigramLanguageModel

def recipe(train_ids, vocab_size, seed):
    model = BigramLanguageModel(vocab_size)
    model.block_size = 8
    return model
"""


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    """An empty folder to work in, and a machine that is timed at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(speedrun, "demo_speed", lambda: 20.0)
    monkeypatch.setattr(speedrun, "open_text", lambda source="": TEXT)
    monkeypatch.setattr(speedrun, "THREADS", 1)  # for tensors so small
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def command(*options):
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser()
    speedrun.add_options(parser)
    return speedrun.main(parser.parse_args(options))


def race(source, *options):
    """Write a recipe and run the command on it."""
    with open("my_recipe.py", "w", encoding="utf-8") as file:
        file.write(source)
    return command("my_recipe.py", *options)


# --- The rules. ---


def test_the_loss_is_the_exact_one_in_windows_of_the_models_context():
    found = speedrun.run(lambda *_: small_gpt(), TEXT, seed=1)
    model = small_gpt()
    assert found["loss"] == pytest.approx(evaluate(model, TEXT.val, 8), rel=1e-6)
    assert found["parameters"] == sum(p.numel() for p in model.parameters())


def test_a_recipe_sees_the_training_split_and_can_harm_nothing_but_its_copy():
    def greedy(train_ids, vocab_size, seed):
        assert vocab_size == V and seed == 7
        torch.testing.assert_close(train_ids, TEXT.train)
        assert train_ids.untyped_storage().nbytes() == train_ids.nbytes
        train_ids.zero_()
        return BigramLanguageModel(vocab_size)

    speedrun.run(greedy, TEXT, seed=7)
    assert TEXT.train.sum() > 0


def test_a_seed_makes_the_same_model_on_the_threads_of_the_rules(monkeypatch):
    monkeypatch.setattr(speedrun, "THREADS", 2)
    found = []

    def note(train_ids, vocab_size, seed):
        found.append(torch.get_num_threads())
        return BigramLanguageModel(vocab_size)

    losses = [speedrun.run(note, TEXT, seed)["loss"] for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]
    assert found == [2, 2, 2]
    torch.set_num_threads(1)


def test_a_model_is_judged_by_its_logits_whatever_it_calls_its_loss():
    class Liar(BigramLanguageModel):
        def forward(self, idx, targets=None):
            assert targets is None  # nor is it shown the answers
            return super().forward(idx)[0], torch.tensor(0.1)

    torch.manual_seed(1)
    honest = BigramLanguageModel(V)
    found = speedrun.run(lambda *_: Liar(V), TEXT, seed=1)
    assert found["loss"] == pytest.approx(evaluate(honest, TEXT.val, 1), rel=1e-6)


class Odd(nn.Module):
    """A model with logits of any kind: make(table, idx) -> (B, T, vocab_size)."""

    def __init__(self, make, block_size=8):
        super().__init__()
        self.table, self.make = nn.Embedding(V, V), make
        self.block_size = block_size

    def forward(self, idx, targets=None):
        logits = self.make(self.table, idx)
        return logits, next_token_loss(logits, targets)


@pytest.mark.parametrize("block_size", [1, 2, 3, 50])
def test_a_causal_model_passes_whatever_its_context(block_size):
    past = Odd(lambda table, idx: table(idx).cumsum(dim=1), block_size)
    assert speedrun.run(lambda *_: past, TEXT, seed=1)["loss"] > 0


def ahead(table, idx):
    """Position 2 reads position 5."""
    logits = table(idx)
    logits[:, 2] += table(idx[:, 5])
    return logits


def across(table, idx):
    """The next window of the validation split begins with this one's last target."""
    return table(idx) + table(idx.roll(-1, dims=0)[:, :1])


BAD_MODELS = {
    "nothing": (lambda: None, "returned a NoneType"),
    "no context": (lambda: nn.Linear(1, 1), "returned a Linear"),
    "not a number": (
        lambda: Odd(lambda table, idx: table(idx) * float("nan")),
        "not finite: try a smaller",
    ),
    "tokens": (lambda: BigramLanguageModel(512), "logits of 512 tokens. It is judged"),
    "the future": (lambda: Odd(ahead), "logits at 2 or before moved by"),
    "its neighbours": (lambda: Odd(across), "and the other windows of the batch"),
}


@pytest.mark.parametrize("make, message", BAD_MODELS.values(), ids=BAD_MODELS.keys())
def test_what_cannot_be_judged_is_refused_with_the_reason(make, message):
    with pytest.raises(BrokenRule, match=re.escape(message)):
        speedrun.run(lambda *_: make(), TEXT, seed=1)


# --- The command. ---


def test_the_command_tells_each_seed_the_mean_and_the_spread(capsys):
    assert race(GOOD, "--seeds", "1", "2") == 0
    said = capsys.readouterr().out
    seeds = [line for line in said.splitlines() if line.startswith("seed ")]
    losses = [float(line.split()[3].rstrip(",")) for line in seeds]
    assert [line.split()[1] for line in seeds] == ["1:", "2:"]
    mean, spread = re.search(r"loss ([\d.]+), spread ([\d.]+) over 2", said).groups()
    assert float(mean) == pytest.approx(sum(losses) / 2, abs=2e-4)
    assert float(spread) == pytest.approx(max(losses) - min(losses), abs=2e-4)
    assert "20.0 steps of nanoGPT's demo per second" in said


def test_a_recipe_over_the_time_is_told_so_and_exits_with_1(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(speedrun.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(speedrun, "late", now, raising=False)
    slow = "from minigpt.tools import speedrun\n" + GOOD.replace(
        "    return model", "    speedrun.late[0] += 5\n    return model"
    )
    monkeypatch.setattr(speedrun, "SECONDS", 4)
    assert race(slow, "--seeds", "1") == 1
    said = capsys.readouterr().out
    assert "5.0 s\n" in said and "OVER THE TIME: it cannot stand in the table" in said
    monkeypatch.setattr(speedrun, "SECONDS", 5)
    assert race(slow, "--seeds", "1") == 0
    assert "OVER" not in capsys.readouterr().out


BAD_FILES = {
    "no recipe": ("x = 1", "KeyError: 'recipe'"),
    "too few arguments": ("def recipe(ids): pass", "TypeError: recipe() takes 1"),
    "nothing": ("def recipe(ids, V, seed): pass", "returned a NoneType"),
    "not Python": ("def recipe(", "SyntaxError"),
    "a mistake": (GOOD.replace("= 8", "= 1 / 0  # mine"), "1 / 0  # mine"),
}


@pytest.mark.parametrize("source, message", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_cannot_run_is_refused_with_the_reason(source, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        race(source)


def test_an_interrupt_ends_the_whole_run():
    source = GOOD.replace("    return model", "    raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        race(source)


def test_a_recipe_may_import_what_lies_beside_it(at_home):
    (at_home / "my_parts.py").write_text("SIZE = 8\n", encoding="utf-8")
    source = "from my_parts import SIZE\n" + GOOD.replace("= 8", "= SIZE")
    assert race(source, "--seeds", "1") == 0


@pytest.mark.parametrize("arguments", [[], ["gone.py"]])
def test_without_a_file_the_command_says_what_writes_one(arguments):
    with pytest.raises(ValueError, match="speedrun --example > my_recipe.py"):
        command(*arguments)


def test_the_example_is_a_recipe_that_runs(capsys):
    assert command("--example") == 0
    example = capsys.readouterr().out
    assert "STEPS = 700" in example
    quick = example.replace("STEPS = 700", "STEPS = 2")
    assert race(quick, "--seeds", "1") == 0
    assert "seed 1: loss" in capsys.readouterr().out


def test_of_the_playwrights_text_the_floor_is_known(monkeypatch):
    play = write_play(20_000)
    monkeypatch.undo()
    monkeypatch.setattr(speedrun, "write_play", lambda n: play)
    text = speedrun.open_text.__wrapped__("playwright")
    assert len(text.train) + len(text.val) == 20_000
    assert text.floor == play.nats(18_001)  # the first is never predicted


# --- nanoGPT's demo. ---


def test_the_demo_is_trained_as_its_readme_says():
    shape, plan = speedrun.demo(65)
    assert (shape.n_layer, shape.n_head, shape.n_embd) == (4, 4, 128)
    assert (shape.block_size, plan.batch_size, plan.steps) == (64, 12, 2000)
    assert (plan.beta2, plan.weight_decay, plan.warmup_steps) == (0.99, 0.1, 100)
    ours = TrainConfig(2000, 12, 64, 1e-3)
    for step in (0, 50, 99):
        assert plan.learning_rate_at(step) == ours.learning_rate_at(step)
    assert plan.learning_rate_at(2000) == pytest.approx(1e-4)
    half = plan.learning_rate_at(1050)  # half a cosine, half of the way down
    assert half == pytest.approx((1e-3 + 1e-4) / 2)


def test_the_speed_of_the_machine_leaves_the_random_numbers_alone(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(speedrun, "THREADS", 1)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert speedrun.demo_speed(steps=40) > 0
    torch.testing.assert_close(torch.rand(3), expected)


# --- The entries and their table. ---


@pytest.fixture
def tiny(monkeypatch):
    """The entries' settings, small enough for a test."""
    whole = entries.shape_and_plan

    def small(name, vocab_size):
        shape, plan = whole(name, vocab_size)
        shape = replace(shape, block_size=8, n_layer=1, n_head=4, n_embd=16)
        return shape, replace(plan, block_size=8, batch_size=4, steps=2)

    monkeypatch.setattr(entries, "shape_and_plan", small)
    monkeypatch.setattr(entries, "ORDER", 2)
    monkeypatch.setattr(entries, "FIT_STEPS", 2)
    monkeypatch.setattr(speedrun, "open_text", lambda source="": TEXT)


@pytest.mark.parametrize("name", entries.STEPS)
def test_every_entry_keeps_the_rules_and_depends_on_its_seed_alone(tiny, name):
    function = entries.EXPERIMENTS["speedrun"][name]
    first, again = function(1), function(1)
    assert first["loss"] == again["loss"] and 0 < first["loss"] < 5
    recorded = record.load("speedrun")[name].runs[1337]
    assert first.keys() == recorded.keys() and first["steps"] == recorded["steps"]


def test_the_entries_change_what_they_name():
    (gpt, adamw), (muon, plan), (block, same) = (
        entries.shape_and_plan(name, 65)
        for name in ("GPT of 06", "+ Muon, trapezoid", "+ today's block")
    )
    assert gpt == muon and (adamw.batch_size, adamw.block_size) == (16, 64)
    assert (plan.batch_size, plan.block_size, plan.muon_rate) == (16, 64, 0.02)
    assert replace(same, steps=1, eval_every=1) == replace(plan, steps=1, eval_every=1)
    assert (block.n_layer, block.n_embd) == (gpt.n_layer, gpt.n_embd) and block.rotary


def test_the_order_is_chosen_on_a_piece_of_the_training_text(tiny, monkeypatch):
    hidden = TEXT._replace(val=torch.full_like(TEXT.val, V + 5))  # would raise
    monkeypatch.setattr(speedrun, "open_text", lambda source="": hidden)
    assert 0 < entries.EXPERIMENTS["speedrun-order"]["3 characters"](1)["loss"] < 4


def test_a_gain_is_paired_and_against_what_the_entry_changes(monkeypatch):
    losses = {
        "GPT of 06": (1.80, 1.82, 1.81),
        "+ context 128, third block": (1.70, 1.74, 1.71),
        "counts alone": (1.69, 1.73, 1.70),
        "+ counts": (1.50, 1.52, 1.51),
    }
    variants = {
        name: Variant(
            name, {i: {"loss": x, "seconds": 5.0} for i, x in enumerate(each)}
        )
        for name, each in losses.items()
    }
    monkeypatch.setattr(record, "load", lambda name: variants)
    head, first, context, alone, counts, against = entries.table().splitlines()
    assert "gain" in head and first.endswith("2,900") and alone.endswith("100")
    assert "+0.093 (+0.080 to +0.100, 3 of 3)" in context
    assert "+0.207 (+0.200 to +0.220, 3 of 3)" in counts
    assert "against '+ context 128, third block'" in against
