"""Several processes that train as one: the same losses, one writer, no one hangs."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from small import fit, plan, small_gpt, weights_of
from torch.testing import assert_close

import minigpt.__main__ as cli
from minigpt import parallel, shards
from minigpt.__main__ import main
from minigpt.checkpoint import load_checkpoint
from minigpt.workers import ALONE, Alone

TESTS = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
LONGEST = 240  # seconds; what takes longer hangs
SMALL = (
    "--data corpus.txt --device cpu --preset cpu --batch-size 5 --block-size 8 "
    "--n-layer 1 --n-head 2 --n-embd 16 --learning-rate 0.01 --out"
).split()


def started(*command, cwd, **environment):
    """A process of ours, with what it says in files: out and err."""
    settings = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
        "PYTHONIOENCODING": "utf-8",
        **environment,
    }
    with open(cwd / "out", "wb") as out, open(cwd / "err", "wb") as err:
        return subprocess.Popen(command, cwd=cwd, env=settings, stdout=out, stderr=err)


def told(folder):
    """What was said: (standard output, the lines of standard error that are ours)."""
    out = (folder / "out").read_text(encoding="utf-8")
    err = (folder / "err").read_text(encoding="utf-8")
    return out, re.findall(r"error: .*", err.replace("\r", "\n"), re.MULTILINE)


def ended(process, folder):
    """The exit code, in good time."""
    try:
        return process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"still running: {told(folder)}") from None


# --- One, two and three of them. ---


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """{number of workers: what each of them found}, each kind of training once."""
    found = {}
    for size in (1, 2, 3):
        folder = tmp_path_factory.mktemp(f"{size} workers")
        each = f"--nproc_per_node={size}"
        process = started(*TORCHRUN, each, TESTS / "several.py", folder, cwd=folder)
        assert ended(process, folder) == 0, (folder / "err").read_text("utf-8")
        files = [folder / f"{rank}.json" for rank in range(size)]
        found[size] = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return found


def numbers(rows):
    return torch.tensor(rows, dtype=torch.float64)


def same(found, expected, muon=False):
    """Assert that two runs had the same losses after each step, up to rounding."""
    atol = 1e-8 if muon else 1e-13
    rows = expected["rows"][-len(found["rows"]) :]
    assert len(rows) > 2  # Muon makes every direction as long, rounding's too
    assert_close(numbers(found["rows"]), numbers(rows), atol=atol, rtol=0)
    assert abs(found["exact"] - expected["exact"]) < atol


RUNS = ["adamw", "muon", "accumulate", "more evaluations"]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("run", RUNS)
def test_workers_have_the_losses_of_one_process(seen, run, size):
    for found in seen[size]:
        same(found[run], seen[1][0][run], muon=run == "muon")


@pytest.mark.parametrize(("run", "size"), [*((r, 2) for r in RUNS), ("accumulate", 3)])
def test_workers_with_shares_have_the_losses_of_one_process(seen, run, size):
    for found in seen[size]:
        same(found[f"sharded {run}"], seen[1][0][run], muon=run == "muon")


@pytest.mark.parametrize(("run", "size"), [("accumulate", 2), ("muon", 2), ("muon", 3)])
def test_a_sharded_run_goes_on_from_its_folder(seen, run, size):
    for found in seen[size]:
        same(found[f"sharded and resumed {run}"], seen[1][0][run], muon=run == "muon")


def test_accumulation_alone_equals_the_whole_batch(seen):
    whole = [list(row[1:3]) for row in fit(small_gpt(), plan(eval_every=1))]
    cut = fit(small_gpt(), plan(eval_every=1, accumulate=3))  # 4 windows: 2, 1, 1
    cut = [list(row[1:3]) for row in cut]
    assert_close(torch.tensor(cut), torch.tensor(whole), atol=5e-6, rtol=0)


def test_runs_differ_enough_for_these_tests(seen):
    first, last = seen[1][0]["adamw"]["rows"][0], seen[1][0]["adamw"]["rows"][-1]
    assert first[0] - last[0] > 0.5
    assert seen[1][0]["adamw"]["rows"][3] != seen[1][0]["more evaluations"]["rows"][3]


def test_each_window_of_a_batch_goes_to_one_worker(seen):
    for size, workers in seen.items():
        rows = [range(*found["rows"]) for found in workers]
        assert [row for mine in rows for row in mine] == list(range(7))
        assert {len(mine) for mine in rows} <= {7 // size, 7 // size + 1}
        assert {found["sum"] for found in workers} == {sum(range(size)) + size / 2}


def test_workers_drop_different_values_and_keep_the_same_weights(seen):
    for workers in seen.values():
        noise = {tuple(found["noise"]) for found in workers}
        assert len(noise) == len(workers)
        for found in workers:
            assert found["with dropout"] == workers[0]["with dropout"]
    one, two = (torch.tensor(seen[n][0]["with dropout"]) for n in (1, 2))
    assert not torch.equal(one, two)


# --- Alone. ---


def test_one_process_is_alone(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with parallel.joined() as workers:
        assert workers is ALONE
    assert ALONE.rows(5) == slice(0, 5) and ALONE.sum(2.5) == 2.5
    assert list(ALONE.share("ab")) == [("a", 1), ("b", 1)]


def test_sharding_without_torchrun_says_how_to_start_it(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="torchrun --nproc_per_node=2 -m minigpt"):
        with parallel.joined(fsdp=True):
            pass


class Fifth(Alone):
    rank, size = 4, 5


def test_a_batch_that_leaves_a_worker_without_a_window_is_refused():
    with pytest.raises(ValueError, match="batch of 4 .* 5 workers.*batch_size of 5"):
        fit(small_gpt(), workers=Fifth())


def test_more_pieces_than_windows_are_refused():
    with pytest.raises(ValueError, match="accumulate is 5.*batch_size, 4"):
        plan(accumulate=5)

    class Second(Alone):
        rank, size = 1, 2

    fit(small_gpt(), plan(accumulate=3))
    with pytest.raises(ValueError, match="accumulate is 3, but .* has only 2 windows"):
        fit(small_gpt(), plan(accumulate=3), workers=Second())


@pytest.mark.parametrize("pieces", [0, -1, 1.5, True])
def test_a_batch_is_cut_into_a_whole_number_of_pieces(pieces):
    with pytest.raises(ValueError, match="accumulate is"):
        plan(accumulate=pieces)


def test_each_process_takes_a_gpu_of_its_own(monkeypatch):
    taken = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setattr(parallel, "pick_device", lambda name: torch.device(name))
    assert parallel.place("cuda") == torch.device("cuda")  # alone: as it was
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.setenv(name, "1")
    assert parallel.place("cuda") == torch.device("cuda", 1) and taken == [1]
    assert parallel.place("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match="--device cpu"):
        parallel.place("mps")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ValueError, match="there are 2: start --nproc_per_node=2"):
        parallel.place("cuda")


def test_a_checkpoint_that_only_some_machines_see_is_refused(
    tmp_path, monkeypatch, capsys
):
    class FirstOfTwo(Alone):
        size = 2

        def sum(self, value):
            return value + 1  # the other one sees a file

    monkeypatch.setattr(
        cli, "joined", lambda fsdp: contextlib.nullcontext(FirstOfTwo())
    )
    assert main(["train", "--resume", "--out", str(tmp_path / "one.pt")]) == 2
    assert "Only some of the workers find" in capsys.readouterr().err


def test_after_a_restart_the_run_goes_on_whatever_was_asked_first(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text("to be or not to be; " * 100, encoding="utf-8")
    command = ["train", *SMALL, "cut.pt", "--steps", "12", "--overwrite"]
    assert main(command) == 0
    before = load_checkpoint("cut.pt").state.history
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "1")
    assert main([*command[:-1], "--steps", "15", "--overwrite"]) == 0
    state = load_checkpoint("cut.pt").state
    assert state.step == 15 and state.history[: len(before)] == before


# --- The command line under torchrun. ---


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus.txt").write_text("to be or not to be; " * 100, "utf-8")
    return tmp_path


def train(folder, *options, torchrun=("--nproc_per_node=2",), module="minigpt", **more):
    command = [*TORCHRUN, *torchrun, "-m", module, "train", *SMALL, *options]
    return started(*command, cwd=folder, **more)


def weights(path):
    return weights_of(load_checkpoint(path).model)


def test_torchrun_trains_writes_and_speaks_once(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["train", *SMALL, "one.pt", "--steps", "110"]) == 0
    alone = capsys.readouterr().out
    assert ended(train(folder, "two.pt", "--steps", "110"), folder) == 0
    out, errors = told(folder)
    assert errors == [] and out.count("Validation loss") == 1
    assert "on 2 workers on cpu; written to two.pt." in out
    loss = re.search(r"Validation loss [\d.]+", alone)[0]
    assert loss in out
    assert_close(weights("two.pt"), weights("one.pt"), atol=1e-4, rtol=0)
    assert sorted(p.name for p in folder.glob("*.pt*")) == ["one.pt", "two.pt"]
    assert (folder / "err").read_text("utf-8").count(" 0/110") <= 1  # one bar


def test_a_sharded_training_is_a_folder_that_sample_reads(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["train", *SMALL, "one.pt", "--steps", "110"]) == 0
    assert ended(train(folder, "shards", "--fsdp", "--steps", "105"), folder) == 0
    again = "--fsdp --resume --data corpus.txt --device cpu --steps 110 --out shards"
    command = [*TORCHRUN, "--nproc_per_node=2", "-m", "minigpt", "train"]
    assert ended(started(*command, *again.split(), cwd=folder), folder) == 0
    shown = sorted(p.relative_to(folder).as_posix() for p in folder.glob("shards/**/*"))
    assert shown == [
        "shards/run.pt",
        "shards/step-110",
        "shards/step-110/.metadata",
        "shards/step-110/__0_0.distcp",
        "shards/step-110/__1_0.distcp",
    ]
    capsys.readouterr()
    assert main("sample --checkpoint shards --tokens 30 --seed 1".split()) == 0
    assert len(capsys.readouterr().out) == 1 + 30 + 1
    assert main([*"train --data corpus.txt --resume --out shards".split()]) == 2
    assert "is a folder, as --fsdp writes" in capsys.readouterr().err
    monkeypatch.setattr(cli, "joined", lambda fsdp: contextlib.nullcontext(ALONE))
    assert main([*"train --data corpus.txt --resume --fsdp --out one.pt".split()]) == 2
    assert "is a file, without --fsdp" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["two.pt", "--batch-size", "1"], "a batch_size of 2 or more"),
        (["corpus.txt/two.pt"], "give another place"),
        (["corpus.txt", "--overwrite"], "After a restart nobody could tell"),
    ],
)
def test_what_is_wrong_is_told_once(folder, options, remedy):
    before = sorted(folder.rglob("*.*"))
    torchrun = ["--nproc_per_node=2"]
    if "--overwrite" in options:
        torchrun.append("--max-restarts=1")  # told at each start
    assert ended(train(folder, *options, torchrun=torchrun), folder) != 0
    _, errors = told(folder)
    assert remedy in errors[0] and len(errors) == (1 + ("--overwrite" in options))
    assert sorted(folder.rglob("*.*")) == before


DEATH = """
import os, signal, threading, time
from pathlib import Path
from minigpt.__main__ import main

def die():  # once, some time after the first checkpoint
    while not Path("cut.pt").exists():
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)

first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
if first and os.environ["RANK"] == os.environ["DIES"]:
    threading.Thread(target=die, daemon=True).start()
raise SystemExit(main())
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The weights of two workers whom nobody disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "corpus.txt").write_text("to be or not to be; " * 100, "utf-8")
    options = ["cut.pt", "--steps", "400", "--dropout", "0.1"]
    assert ended(train(folder, *options), folder) == 0
    return weights(folder / "cut.pt")


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_worker_that_is_killed_costs_nothing(folder, undisturbed, rank):
    (folder / "death.py").write_text(DEATH, encoding="utf-8")
    options = ["cut.pt", "--steps", "400", "--dropout", "0.1"]
    restarts = ["--nproc_per_node=2", "--max-restarts=2"]
    more = {"torchrun": restarts, "module": "death", "DIES": rank}
    process = train(folder, *options, **more)
    assert ended(process, folder) == 0
    out, errors = told(folder)
    assert errors == [f"error: {lost('torchrun starts all again (restart 1 of 2).')}"]
    assert out.count("Validation loss") == 1
    assert torch.equal(weights(folder / "cut.pt"), undisturbed)


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_without_restarts_one_sentence_says_how_to_go_on(folder, undisturbed):
    (folder / "death.py").write_text(DEATH, encoding="utf-8")
    options = ["cut.pt", "--steps", "400", "--dropout", "0.1"]
    assert ended(train(folder, *options, module="death", DIES="1"), folder) != 0
    _, errors = told(folder)
    assert errors == [
        f"error: {lost('start it again with --resume; --max-restarts=3')}"
        " does so by itself."
    ]
    assert 0 < load_checkpoint(folder / "cut.pt").state.step < 400
    again = "--resume --data corpus.txt --device cpu --out cut.pt".split()
    command = [*TORCHRUN, "--nproc_per_node=2", "-m", "minigpt", "train", *again]
    assert ended(started(*command, cwd=folder), folder) == 0
    assert torch.equal(weights(folder / "cut.pt"), undisturbed)


def lost(then):
    return (
        "This job ends: a worker died, or torchrun was told to stop. What was saved "
        f"last is whole; to go on from there, {then}"
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_an_interrupt_ends_all_workers_after_the_same_step(folder):
    process = train(folder, "cut.pt", "--steps", "400", "--dropout", "0.1")
    while not (folder / "cut.pt").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert ended(process, folder) != 0
    out, errors = told(folder)
    assert errors == [] and out.count("Interrupted after step") == 1
    step = int(re.search(r"Interrupted after step (\d+)", out)[1])
    assert load_checkpoint(folder / "cut.pt").state.step == step < 400


# --- A folder is a checkpoint, too: nothing in it is executed. ---


def test_a_table_of_contents_that_would_execute_something_is_refused(tmp_path):
    import pickle

    class Intruder:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "in"),)

    (tmp_path / ".metadata").write_bytes(pickle.dumps(Intruder()))
    with pytest.raises(pickle.UnpicklingError, match="mkdir belongs in no checkpoint"):
        shards._Reader(tmp_path).read_metadata()
    assert not (tmp_path / "in").exists()
