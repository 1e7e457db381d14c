"""The speed run: its rules, what it says of a recipe, and the table of records."""

import argparse
import os

import pytest
import torch
from small import DATA, TOKENIZER, V, identical

from minigpt.bigram import BigramLanguageModel
from minigpt.course import record
from minigpt.course.experiments import fit
from minigpt.course.experiments import speedrun_entries as entries
from minigpt.evaluation import evaluate
from minigpt.tools import speedrun
from minigpt.tools.corpus import Corpus
from minigpt.tools.speedrun import BrokenRule
from minigpt.training import TrainConfig

TEXT = Corpus(DATA[:1500], DATA[1500:], TOKENIZER)
TABLE = """
import torch
from minigpt.bigram import BigramLanguageModel

class Table(BigramLanguageModel):
    block_size = 8

    def forward(self, idx, targets=None):
        x = idx  # what is looked up
        return self.token_embedding(x), None

def build(train_ids, vocab_size):
    return Table(vocab_size)

def train(model, train_ids, seed):
    pass
"""


def changed(*pieces):
    """TABLE with `pieces`, each (old, new)."""
    source = TABLE
    for old, new in pieces:
        assert old in source
        source = source.replace(old, new)
    return source


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    """An empty folder to work in, and a machine that is timed at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(speedrun, "demo_speed", lambda: 35.3)
    monkeypatch.setattr(speedrun, "corpus", lambda: TEXT)
    monkeypatch.setattr(fit, "corpus", lambda: TEXT)
    monkeypatch.setattr(speedrun, "THREADS", 1)  # for tensors so small
    return tmp_path


def command(*options):
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser()
    speedrun.add_options(parser)
    return speedrun.main(parser.parse_args(options))


def folder_of(source, folder):
    """Put a recipe and the training text into `race` there: what `trained` takes."""
    folder = folder / "race"
    folder.mkdir(exist_ok=True)
    (folder / "my_recipe.py").write_text(source, encoding="utf-8")
    torch.save(TEXT.train.clone(), folder / "train.pt")
    return str(folder), 120, 1, V, "my_recipe.py"


# --- The rules: each of these was a way to win. ---


def test_what_a_recipe_does_to_its_own_process_changes_nothing(at_home):
    attack = """
    import time
    import torch.nn.functional as F
    from minigpt import evaluation

    print("told in between")
    time.perf_counter = time.time = lambda: 0.0
    F.cross_entropy = evaluation.evaluate = lambda *_, **__: torch.tensor(0.1)
    assert seed == 7 and torch.get_num_threads() == 1
    assert train_ids.untyped_storage().nbytes() == train_ids.nbytes == 12_000
    train_ids.zero_()
    torch.set_num_threads(8)
"""
    source = changed(
        ("    pass", attack),
        ("x = idx", "assert targets is None and len(idx) == 1; x = idx"),
    )
    path = at_home / "my_recipe.py"
    path.write_text(source, encoding="utf-8")
    found = speedrun.run(path, TEXT, seed=7)
    torch.manual_seed(7)
    model = BigramLanguageModel(V)
    assert found["loss"] == pytest.approx(evaluate(model, TEXT.val, 8), rel=1e-6)
    assert found["parameters"] == V * V and found["seconds"] > 0.5  # it imports torch


def test_a_recipe_gets_no_text_and_keeps_nothing(at_home, capfd):
    beside = at_home / "beside"
    beside.mkdir()
    secret = beside / "tinyshakespeare.txt"
    secret.write_text("the validation text", encoding="utf-8")
    attempts = f"""
        open({str(secret)!r}).read()
        __import__("os").symlink({str(secret)!r}, "here"); open("here")
        open({str(beside / "kept.py")!r}, "w")
        __import__("os").rename("weights.pt", {str(beside / "kept.pt")!r})
        __import__("socket").socket()
        __import__("minigpt.data").data.tiny_shakespeare()
        __import__("subprocess").run(["true"])
        __import__("os").system("true")
        __import__("multiprocessing").get_context("spawn").Process().start()
        [1 for s in __import__("inspect").stack() if "text" in s.frame.f_locals][0]
"""
    source = f"""
    for attempt in {attempts.split(chr(10))[1:-1]}:
        try:
            exec(attempt.strip())
        except (OSError, ImportError, IndexError) as error:
            print("REFUSED", attempt, error)
"""
    open_in = ("    pass", "    open('scratch', 'w').close()" + source)
    speedrun.trained(*folder_of(changed(open_in), at_home))
    said = capfd.readouterr().err
    assert said.count("REFUSED") == attempts.count("\n") - 1, said
    assert [file.name for file in beside.iterdir()] == [secret.name]


def test_all_seconds_count_from_the_import_to_the_last_thread(at_home, monkeypatch):
    late = (
        "import threading, time; threading.Thread(target=time.sleep, args=[2]).start()"
    )
    source = changed(
        ("    pass", "    " + late),
        ("import torch", "import time, torch; time.sleep(2)"),
    )
    of = folder_of(source, at_home)
    assert speedrun.trained(*of) > 4
    told = [os.times_result([0, 0, cpu, 1, 0]) for cpu in (5, 6005)]
    monkeypatch.setattr(os, "times", lambda: told.pop(0))
    monkeypatch.setattr(speedrun, "THREADS", 2)
    assert (
        speedrun.trained(*folder_of(TABLE, at_home)) == 3000
    )  # all threads': 6000 / 2


def judged(source, folder, size=8, weights=None):
    """Judge a recipe whose weights are these: (loss, late, parameters)."""
    if weights is None:
        weights = BigramLanguageModel(V).state_dict()
    of = folder_of(source, folder)
    torch.save([size, V * V, weights], folder / "race" / "weights.pt")
    return speedrun.judged(TEXT, *of)


def test_training_that_waits_for_the_judge_is_charged(at_home):
    source = changed(
        ("def build", "calls = []\n\ndef build"),
        ("x = idx", "x = idx; calls.append(1); len(calls) == 5 and time.sleep(4)"),
        ("import torch", "import time, torch; open('note', 'x')"),  # once in a folder
    )
    assert judged(source, at_home)[1] > 4


CHEATS = {
    "looks ahead": [("x = idx", "x = idx.roll(-1, dims=1)")],
    "counts what it is asked": [
        ("x = idx", "x = idx; self.token_embedding.weight[x, x] += 1")
    ],
    "remembers the last window": [
        ("x = idx", "x = idx.clone(); x[:, 0] = self.last; Table.last = idx[0, -1]"),
        ("block_size = 8", "block_size, last = 8, 0"),
    ],
}


@pytest.mark.parametrize("pieces", CHEATS.values(), ids=CHEATS.keys())
def test_a_model_that_knows_more_than_the_window_so_far_is_refused(pieces, at_home):
    with pytest.raises(BrokenRule, match="window differ by .*: the model looks ahead"):
        judged(changed(*pieces), at_home)


FAULTS = {
    "a context of 4,096": (4096, None, "", "block_size is 4096; give 1 to 256"),
    "not a number": (8, torch.full((V, V), torch.nan), "", "not finite: try a smaller"),
    "other weights": (8, torch.ones(V, 3), "size mismatch", "recipe failed (judge)"),
}


@pytest.mark.parametrize("size, table, said, why", FAULTS.values(), ids=FAULTS.keys())
def test_what_cannot_be_judged_is_refused(size, table, said, why, at_home, capfd):
    weights = None if table is None else {"token_embedding.weight": table}
    with pytest.raises(BrokenRule) as refused:
        judged(TABLE, at_home, size, weights)
    assert why in str(refused.value) and said in capfd.readouterr().err


def test_a_process_that_takes_too_long_is_stopped(at_home):
    of = list(folder_of(TABLE.replace("pass", "while True: pass"), at_home))
    of[1] = 1
    with pytest.raises(BrokenRule, match=r"\(train\) .* was stopped after 1 seconds"):
        speedrun.trained(*of)


# --- The command. ---


@pytest.fixture
def measured(at_home, monkeypatch):
    """A recipe whose runs are told by this list of (loss, seconds)."""
    (at_home / "my_recipe.py").write_text(TABLE, encoding="utf-8")
    told = []

    def run(path, text, seed):
        loss, seconds = told[seed - 1337]
        found = {"loss": loss, "seconds": seconds, "parameters": 9}
        return found | {"demo steps per second": 35.3}

    monkeypatch.setattr(speedrun, "run", run)
    return told


def test_the_command_tells_each_seed_the_mean_and_the_spread(measured, capsys):
    measured += [(1.5, 50.0), (1.6, 60.0), (1.4, 59.99)]
    assert command() == 0
    said = capsys.readouterr().out
    assert "seed 1338: loss 1.6000, 60.00 of 60.00 s at 35.3 steps" in said
    assert "loss 1.5000, spread 0.2000 over 3 seeds; 9 parameters" in said
    measured[2] = (1.4, 60.001)  # nothing is rounded
    assert command() == 1
    assert "OVER THE TIME: it cannot stand in the table" in capsys.readouterr().out


def test_a_mistake_is_told_with_the_recipes_own_traceback(at_home, capfd):
    source = TABLE.replace("pass", "1 / 0  # mine")
    with pytest.raises(BrokenRule, match=r"recipe failed \(train\) and said above why"):
        speedrun.trained(*folder_of(source, at_home))
    assert "1 / 0  # mine" in capfd.readouterr().err


def test_the_example_is_a_recipe_that_runs(at_home, capsys):
    assert command("--example") == 0
    example = capsys.readouterr().out
    assert "STEPS = 1500" in example
    quick = example.replace("STEPS = 1500", "STEPS = 2")
    speedrun.trained(*folder_of(quick, at_home))
    size, parameters, weights = torch.load("race/weights.pt", weights_only=True)
    assert size == 256 and parameters == sum(w.numel() for w in weights.values())


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


# --- The entries and their table. ---

TINY = """
from dataclasses import replace
from minigpt.course.experiments import speedrun_entries as entries

whole = entries.shape_and_plan

def small(name, vocab_size):
    shape, plan = whole(name, vocab_size)
    shape = replace(shape, block_size=8, n_layer=1, n_head=4, n_embd=16)
    return shape, replace(plan, block_size=8, batch_size=4, steps=2)

entries.shape_and_plan, entries.ORDER, entries.FIT_STEPS = small, 2, 2
build, train = entries.build, entries.train
"""


@pytest.fixture
def tiny(monkeypatch):
    """The entries' settings, small enough for a test: TINY, run here."""
    for name in ("shape_and_plan", "ORDER", "FIT_STEPS"):
        monkeypatch.setattr(entries, name, getattr(entries, name))
    exec(TINY, {})


@pytest.mark.parametrize("name", entries.ENTRIES)
def test_every_entry_depends_on_its_seed_alone(tiny, name):
    made = []
    for _ in range(2):
        torch.manual_seed(1)
        made.append(entries.build(TEXT.train, V, name))
        entries.train(made[-1], TEXT.train, 1, name)
    torch.manual_seed(2)
    again = entries.build(TEXT.train, V, name)  # as the judge does
    again.load_state_dict(made[0].state_dict())
    losses = [evaluate(model.eval(), TEXT.val, 8) for model in (*made, again)]
    assert identical(*losses) and 0 < losses[0] < 5


def test_an_entry_goes_through_the_readers_door(at_home, monkeypatch):
    (at_home / "tiny.py").write_text(TINY, encoding="utf-8")
    monkeypatch.setattr(entries, "__file__", str(at_home / "tiny.py"))
    found = entries.EXPERIMENTS["speedrun"]["+ counts"](1)
    recorded = record.load("speedrun")["+ counts"].runs[1337]
    assert found.keys() == recorded.keys() and found["steps"] == recorded["steps"]


def test_the_order_is_chosen_on_a_piece_of_the_training_text(tiny, monkeypatch):
    hidden = TEXT._replace(val=torch.full_like(TEXT.val, V + 5))  # would raise
    monkeypatch.setattr(fit, "corpus", lambda: hidden)
    assert 0 < entries.EXPERIMENTS["speedrun-order"]["3 characters"](1)["loss"] < 4
