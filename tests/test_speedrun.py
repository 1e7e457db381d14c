"""The speed run: its rules, what it says of a recipe, and the table of records."""

import re
import sys
from dataclasses import replace

import pytest
import torch
import torch.nn as nn
from small import DATA, PLAN, V, small_gpt

import minigpt.__main__ as cli
from minigpt import record, speedrun
from minigpt.bigram import BigramLanguageModel
from minigpt.counting import ContextCounts
from minigpt.evaluation import evaluate
from minigpt.experiments import speedrun as entries
from minigpt.language_model import next_token_loss
from minigpt.modern import ModernConfig
from minigpt.playwright import write_play
from minigpt.record import Variant
from minigpt.speedrun import BrokenRule

TEXT = speedrun.Text(DATA[:1500], DATA[1500:], V)
GOOD = """
import torch
from minigpt.bigram import BigramLanguageModel

def recipe(train_ids, vocab_size, seed):
    model = BigramLanguageModel(vocab_size)
    model.block_size = 8
    return model
"""


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    """An empty folder to work in, no records, and a machine that is timed at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "FOLDER", tmp_path / "records")
    monkeypatch.setattr(speedrun, "demo_speed", lambda seconds=3: 20.0)
    monkeypatch.setattr(speedrun, "THREADS", 1)  # for tensors so small
    monkeypatch.setattr(sys, "path", list(sys.path))
    corpus = "the quick brown fox jumps over the lazy dog; " * 40
    (tmp_path / "corpus.txt").write_text(corpus, encoding="utf-8")
    return tmp_path


def bigram(train_ids, vocab_size, seed):
    model = BigramLanguageModel(vocab_size)
    model.block_size = 8
    return model


def command(source, *options, data="corpus.txt"):
    """Write a recipe and run the command on it; returns the exit code."""
    with open("my_recipe.py", "w", encoding="utf-8") as file:
        file.write(source)
    return cli.main(["speedrun", "my_recipe.py", "--data", data, *options])


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
        return bigram(train_ids, vocab_size, seed)

    speedrun.run(greedy, TEXT, seed=7)
    assert TEXT.train.sum() > 0


def test_the_seconds_are_those_of_the_call(monkeypatch):
    now = [0.0]

    def slow(*arguments):
        now[0] += 61.0
        return bigram(*arguments)

    monkeypatch.setattr(speedrun.time, "perf_counter", lambda: now[0])
    assert speedrun.run(slow, TEXT, seed=1)["seconds"] == 61.0


def test_a_seed_makes_the_same_model_on_the_threads_of_the_rules(monkeypatch):
    monkeypatch.setattr(speedrun, "THREADS", 2)
    found = []

    def note(*arguments):
        found.append(torch.get_num_threads())
        return bigram(*arguments)

    before = torch.get_num_threads()
    losses = [speedrun.run(note, TEXT, seed)["loss"] for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]
    assert found == [2, 2, 2] and torch.get_num_threads() == before


def test_a_model_is_judged_by_its_logits_whatever_it_calls_its_loss():
    class Liar(BigramLanguageModel):
        block_size = 8

        def forward(self, idx, targets=None):
            assert targets is None  # nor is it shown the answers
            return super().forward(idx)[0], torch.tensor(0.1)

    torch.manual_seed(1)
    honest = BigramLanguageModel(V)
    found = speedrun.run(lambda *_: Liar(V), TEXT, seed=1)
    assert found["loss"] == pytest.approx(evaluate(honest, TEXT.val, 8), rel=1e-6)


class Odd(nn.Module):
    """A model with logits of any kind: make(table, idx) -> (B, T, vocab_size)."""

    def __init__(self, make, block_size=8):
        super().__init__()
        self.table, self.make = nn.Embedding(V, V), make
        self.block_size, self.seen = block_size, 0

    def forward(self, idx, targets=None):
        logits = self.make(self.table, idx)
        return logits, next_token_loss(logits, targets)


def refused(model):
    with pytest.raises(BrokenRule) as said:
        speedrun.run(lambda *_: model, TEXT, seed=1)
    return str(said.value)


def test_a_model_that_reads_the_future_is_told_the_position():
    def peek(table, idx):
        logits = table(idx)
        logits[:, 2] += table(idx[:, 5])  # position 2 reads position 5
        return logits

    said = refused(Odd(peek))
    assert "not causal" in said and "the logits at position 2 moved by" in said


@pytest.mark.parametrize("block_size", [1, 2, 3, 50])
def test_a_causal_model_passes_whatever_its_context(block_size):
    past = Odd(lambda table, idx: table(idx).cumsum(dim=1), block_size)
    assert speedrun.run(lambda *_: past, TEXT, seed=1)["loss"] > 0


def test_windows_that_read_one_another_are_refused():
    """The next window of the validation split begins with this one's last target."""

    def peek(table, idx):
        return table(idx) + table(idx.roll(-1, dims=0)[:, :1])

    assert "windows of a batch read one another" in refused(Odd(peek))


def test_a_model_that_learns_while_it_is_judged_is_refused():
    def learn(table, idx):
        if len(idx) > 4:  # more windows than the check of causality shows
            table.weight += 1.0 * torch.randn_like(table.weight)
        return table(idx)

    assert "may not learn or count while it reads" in refused(Odd(learn))


BAD_MODELS = {
    "nothing": (lambda: None, "returned None: end it with `return model`"),
    "no model": (lambda: 3, "returned a int; return the model"),
    "no context": (lambda: BigramLanguageModel(V), "block_size is None; set"),
    "another shape": (
        lambda: Odd(lambda table, idx: table(idx[:, -1])),
        "they must be (4, 8, 28): one row for each position",
    ),
    "no pair": (lambda: NoPair(), "returned a Tensor; it must return a pair"),
    "not a number": (
        lambda: Odd(lambda table, idx: table(idx) * float("nan")),
        "not finite: the training diverged",
    ),
    "empty": (lambda: Empty(), "has no parameter: register one"),
    "elsewhere": (lambda: small_gpt().to("meta"), "race on the CPU"),
}


class NoPair(BigramLanguageModel):
    block_size = 8

    def __init__(self):
        super().__init__(V)

    def forward(self, idx, targets=None):
        return super().forward(idx)[0]


class Empty(nn.Module):
    block_size = 8


@pytest.mark.parametrize("make, message", BAD_MODELS.values(), ids=BAD_MODELS.keys())
def test_what_cannot_be_judged_is_refused_with_the_remedy(make, message):
    assert message in refused(make())


def test_more_threads_than_two_are_refused(monkeypatch):
    def greedy(*arguments):
        torch.set_num_threads(3)
        return bigram(*arguments)

    monkeypatch.setattr(speedrun, "THREADS", 2)
    before = torch.get_num_threads()
    with pytest.raises(BrokenRule, match="3 threads; the rules allow 2"):
        speedrun.run(greedy, TEXT, seed=1)
    assert torch.get_num_threads() == before


# --- The command. ---


def test_the_command_tells_each_seed_the_mean_and_the_spread(capsys):
    assert command(GOOD, "--seeds", "1", "2") == 0
    said = capsys.readouterr().out
    seeds = [line for line in said.splitlines() if line.startswith("seed ")]
    losses = [float(line.split()[3].rstrip(",")) for line in seeds]
    assert [line.split()[1] for line in seeds] == ["1:", "2:"]
    mean, spread = re.search(r"loss ([\d.]+), spread ([\d.]+) over 2", said).groups()
    assert float(mean) == pytest.approx(sum(losses) / 2, abs=2e-4)
    assert float(spread) == pytest.approx(max(losses) - min(losses), abs=2e-4)
    assert "20.0 steps of nanoGPT's demo per second" in said
    assert "no table of records to compare with" in said


def test_a_recipe_over_the_time_is_told_so_and_exits_with_1(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(speedrun.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(speedrun, "late", now, raising=False)
    slow = "from minigpt import speedrun\n" + GOOD.replace(
        "    return model", "    speedrun.late[0] += 5\n    return model"
    )
    assert command(slow, "--seeds", "1", "--seconds", "4") == 1
    said = capsys.readouterr().out
    assert "5.0 s - OVER THE TIME" in said
    assert "OVER THE TIME by 1.0 s: it cannot stand in the table" in said
    assert command(slow, "--seeds", "1", "--seconds", "6") == 0
    assert "OVER" not in capsys.readouterr().out


BAD_FILES = {
    "no recipe": ("x = 1", "my_recipe.py has no function recipe(train_ids"),
    "a recipe that is none": ("recipe = 3", "has no function recipe"),
    "too few arguments": ("def recipe(ids): pass", "TypeError: recipe() takes 1"),
    "nothing": ("def recipe(ids, V, seed): pass", "error: recipe(...) returned None"),
    "the end": ("def recipe(ids, V, seed): exit(3)", "SystemExit: 3"),
    "not Python": ("def recipe(", "SyntaxError"),
}


@pytest.mark.parametrize("source, message", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_cannot_run_is_refused_with_the_reason(capsys, source, message):
    assert command(source) == 2
    assert message in capsys.readouterr().err


def test_an_error_shows_the_readers_lines_and_none_of_ours(capsys):
    source = GOOD.replace("    return model", "    return 1 / 0  # my mistake")
    assert command(source) == 2
    said = capsys.readouterr().err
    assert "my_recipe.py raised:" in said and "1 / 0  # my mistake" in said
    assert said.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "speedrun.py" not in said


def test_an_error_of_the_model_shows_the_readers_lines_too(capsys):
    source = GOOD.replace(
        "def recipe",
        "class Broken(BigramLanguageModel):\n"
        "    def forward(self, idx, targets=None):\n"
        "        return idx @ idx.nonsense\n\n"
        "def recipe",
    ).replace("= BigramLanguageModel", "= Broken")
    assert command(source) == 2
    said = capsys.readouterr().err
    assert "idx @ idx.nonsense" in said and "AttributeError" in said
    assert "speedrun.py" not in said


def test_an_interrupt_ends_the_whole_run(capsys):
    source = GOOD.replace("    return model", "    raise KeyboardInterrupt")
    assert command(source) == 130


def test_a_recipe_may_import_what_lies_beside_it(at_home):
    (at_home / "my_parts.py").write_text("SIZE = 8\n", encoding="utf-8")
    source = "from my_parts import SIZE\n" + GOOD.replace("= 8", "= SIZE")
    assert command(source, "--seeds", "1") == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "Name the file of your recipe"),
        (["gone.py"], "speedrun --example > my_recipe.py"),
        (["my_recipe.py", "--seconds", "0"], "--seconds is 0.0; it must be above 0"),
        (["my_recipe.py", "--data", "gone.txt"], "There is no file 'gone.txt'"),
    ],
)
def test_bad_options_are_refused_with_the_remedy(capsys, at_home, arguments, message):
    (at_home / "my_recipe.py").write_text(GOOD, encoding="utf-8")
    assert cli.main(["speedrun", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_example_is_a_recipe_that_runs(capsys):
    assert cli.main(["speedrun", "--example"]) == 0
    example = capsys.readouterr().out
    assert "STEPS = 700" in example
    quick = example.replace("STEPS = 700", "STEPS = 2")
    assert command(quick, "--seeds", "1") == 0
    assert "seed 1: loss" in capsys.readouterr().out


def test_on_the_playwrights_text_the_share_of_the_way_is_told(monkeypatch, capsys):
    play = write_play(20_000)
    monkeypatch.setattr("minigpt.playwright.write_play", lambda n: play)
    speedrun.open_text.cache_clear()
    try:
        text = speedrun.open_text("playwright")
        assert len(text.train) + len(text.val) == 20_000
        assert text.floor == play.nats(18_001)  # the first is never predicted
        # A bigram that starts as the uniform guess has gone none of the way.
        flat = GOOD.replace(
            "    return", "    torch.nn.init.zeros_(*model.parameters())\n    return"
        )
        assert command(flat, "--seeds", "1", data="playwright") == 0
    finally:
        speedrun.open_text.cache_clear()
    said = capsys.readouterr().out
    assert f"The floor is {text.floor:.4f}" in said and "0.0% of the way" in said


# --- The table. ---


def variant(name, *losses, seconds=50.0, steps=100):
    runs = {
        1337 + i: {
            "loss": loss,
            "seconds": seconds,
            "steps": steps,
            "parameters": 1000,
            "demo steps per second": 10.0,
        }
        for i, loss in enumerate(losses)
    }
    return Variant(name, runs)


TABLE = {
    v.name: v
    for v in [
        variant("GPT of 06", 1.80, 1.82, 1.81),
        variant("+ context 128, third block", 1.70, 1.74, 1.71),
        variant("counts alone", 1.69, 1.73, 1.70, seconds=5.0),
        variant("+ counts", 1.50, 1.52, 1.51),
        variant("+ counts, 10 seconds", 1.60, 1.62, 1.61, seconds=10.0),
    ]
}


def test_a_gain_is_paired_and_against_what_the_entry_changes():
    first, context, alone, counts, ten = speedrun.rows(TABLE)
    assert first.gain is None and alone.gain is None
    assert context.gain.mean == pytest.approx((0.10 + 0.08 + 0.10) / 3)
    assert counts.gain.mean == pytest.approx((0.20 + 0.22 + 0.20) / 3)
    assert ten.gain.mean == pytest.approx(-0.10)
    assert (ten.seconds, ten.steps, ten.parameters) == (10.0, 100, 1000)


def test_the_table_has_a_line_for_each_entry_in_order():
    head, *lines = speedrun.table(TABLE).splitlines()
    assert "gain" in head and [x.split("  ")[0] for x in lines] == list(TABLE)
    assert (
        "against '+ context 128, third block'" in lines[3]
        and "+0.207 ± 0.010" in lines[3]
    )


def test_a_table_that_was_never_measured_says_how_to_measure_it():
    with pytest.raises(FileNotFoundError, match="minigpt.experiments speedrun"):
        speedrun.rows()


def test_a_result_stands_between_its_neighbours():
    said = speedrun.standing(variant("mine", 1.55, 1.57, 1.56), 60, TABLE)
    assert said.startswith("Place 2 of 6; ")
    assert "+0.050 against '+ counts' (1.510)" in said
    assert "-0.050 against '+ counts, 10 seconds' (1.610)" in said
    assert "tie" not in said
    assert "Place 1 of 6" in speedrun.standing(variant("m", 1.0, 1.0, 1.0), 60, TABLE)
    assert "Place 6 of 6" in speedrun.standing(variant("m", 3.0, 3.0, 3.0), 60, TABLE)


def test_a_difference_within_its_spread_is_a_tie():
    said = speedrun.standing(variant("mine", 1.49, 1.53, 1.51), 60, TABLE)
    assert "'+ counts' (1.510), a tie" in said


def test_within_less_time_only_such_entries_are_rivals():
    said = speedrun.standing(variant("mine", 1.65, 1.67, 1.66), 10, TABLE)
    assert said.startswith("Place 2 of 3") and "10 seconds" in said
    said = speedrun.standing(variant("mine", 1.65), 1, TABLE)
    assert "no entry of at most 1 s" in said


def test_a_result_is_put_beside_the_records_and_their_machine(monkeypatch, capsys):
    record.save("speedrun", TABLE)
    monkeypatch.setattr(speedrun, "open_text", lambda source: TEXT)
    assert command(GOOD, "--seeds", "1337", data="tinyshakespeare") == 0
    said = capsys.readouterr().out
    assert "the machine of the records 10.0: 60 s here are as good as 120 s" in said
    assert speedrun.table(TABLE) in said and "Place 6 of 6" in said
    assert "An entry of the table takes 3 seeds." in said
    assert command(GOOD, "--seeds", "1337") == 0  # on another text nothing compares
    assert "Place" not in capsys.readouterr().out


def test_the_speed_of_the_machine_leaves_the_random_numbers_alone(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(speedrun, "THREADS", 1)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert speedrun.demo_speed(seconds=0.01) > 0
    torch.testing.assert_close(torch.rand(3), expected)


# --- The entries. ---


@pytest.fixture
def tiny(monkeypatch):
    """The entries' settings, small enough for a test."""
    shape = ModernConfig(V, 8, n_layer=1, n_head=4, n_embd=16)
    plans = entries.shapes_and_plans(V)
    small = {
        name: (
            replace(s, block_size=8, n_layer=1, n_head=4, n_embd=16),
            entries.until(replace(p, block_size=8, batch_size=4, warmup_steps=1), 2),
        )
        for name, (s, p) in plans.items()
    }
    monkeypatch.setattr(entries, "shapes_and_plans", lambda vocab_size: small)
    monkeypatch.setattr(entries, "preset", lambda *_: (shape, PLAN))
    monkeypatch.setattr(entries, "ORDER", 2)
    monkeypatch.setattr(entries, "FIT_STEPS", 2)
    monkeypatch.setattr(speedrun, "open_text", lambda source="": TEXT)


@pytest.mark.parametrize("name", entries.RECIPES)
def test_every_entry_keeps_the_rules_and_depends_on_its_seed_alone(tiny, name):
    function = entries.EXPERIMENTS["speedrun"][name]
    first, again = function(1), function(1)
    assert first["loss"] == again["loss"] and 0 < first["loss"] < 5
    assert first.keys() == {
        "loss",
        "seconds",
        "parameters",
        "steps",
        "demo steps per second",
    }
    assert first["steps"] == entries.STEPS[name]


def test_the_entries_change_what_they_name():
    found = entries.shapes_and_plans(65)
    (gpt, adamw), (muon, plan) = found["GPT of 06"], found["+ Muon, trapezoid"]
    assert gpt == muon and (adamw.batch_size, adamw.block_size) == (16, 64)
    assert (plan.batch_size, plan.block_size, plan.optimizer) == (16, 64, "muon")
    block, same = found["+ today's block"]
    assert replace(same, steps=1, eval_every=1) == replace(plan, steps=1, eval_every=1)
    assert (block.n_layer, block.n_embd) == (gpt.n_layer, gpt.n_embd) and block.rotary
    assert list(entries.RECIPES) == list(entries.STEPS)


def test_the_order_is_chosen_on_a_piece_of_the_training_text(tiny, monkeypatch):
    hidden = TEXT._replace(val=torch.full_like(TEXT.val, V + 5))  # would raise
    monkeypatch.setattr(speedrun, "open_text", lambda source="": hidden)
    assert 0 < entries.EXPERIMENTS["speedrun-order"]["3 characters"](1)["loss"] < 4


def test_an_interrupted_entry_is_no_measurement(tiny, monkeypatch):
    monkeypatch.setattr(entries, "train", lambda *a, **k: [type("R", (), {"step": 1})])
    with pytest.raises(KeyboardInterrupt):
        entries.EXPERIMENTS["speedrun"]["GPT of 06"](1)


def test_counts_answer_windows_that_are_shorter_than_their_contexts():
    """The last window of a split may be short, and a prompt has one character."""
    counts = ContextCounts(DATA, V, order=5)
    whole = counts(DATA[None, :20])  # (1, 20, 6, V)
    for T in (1, 2, 3, 5, 6):
        torch.testing.assert_close(counts(DATA[None, :T]), whole[:, :T])
