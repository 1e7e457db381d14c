"""Several processes that train as one: the same losses, one writer, no one hangs."""

import contextlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from small import PLAN, TOKENIZER, Intruder, fit, plan, small_gpt, weights_of
from torch.testing import assert_close

import minigpt.__main__ as cli
from minigpt import parallel, shards, training
from minigpt.__main__ import main
from minigpt.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from minigpt.sealed import read_sealed, write_sealed
from minigpt.training import TrainState
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


def went_well(process, folder):
    """Assert that it ended without an error; else show all that it said."""
    code = ended(process, folder)
    assert code == 0, (folder / "err").read_text(encoding="utf-8")


# --- One, two and three of them. ---


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """{number of workers: what each of them found}, each kind of training once."""
    found = {}
    for size in (1, 2, 3):
        folder = tmp_path_factory.mktemp(f"{size} workers")
        each = f"--nproc_per_node={size}"
        process = started(*TORCHRUN, each, TESTS / "several.py", folder, cwd=folder)
        went_well(process, folder)
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


def test_a_process_that_is_told_half_of_its_place_is_told_so(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(ValueError, match="LOCAL_RANK is not: use torchrun"):
        with parallel.joined():
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


def test_a_compiler_is_tried_on_one_piece_of_a_batch(monkeypatch):
    tried = []

    def compiled(model, x, y):
        tried.append((len(x), len(y)))
        return model

    monkeypatch.setattr(training, "compiled", compiled)
    for pieces in (1, 2, 3):  # 4 windows: 4, 2 and 2, 2 and 1 and 1
        fit(small_gpt(), plan(steps=1, warmup_steps=0, accumulate=pieces), compile=True)
    assert tried == [(4, 4), (2, 2), (2, 2)]


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
    assert main([*command[:-1], "--steps", "15"]) == 2  # not yet begun: as at first
    monkeypatch.setattr(ALONE, "again", True)
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
    went_well(train(folder, "two.pt", "--steps", "110"), folder)
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
    went_well(train(folder, "shards", "--fsdp", "--steps", "105"), folder)
    again = "--fsdp --resume --data corpus.txt --device cpu --steps 110 --out shards"
    command = [*TORCHRUN, "--nproc_per_node=2", "-m", "minigpt", "train"]
    went_well(started(*command, *again.split(), cwd=folder), folder)
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


@pytest.mark.parametrize(
    ("options", "remedy"),
    [([], "Pass --resume"), (["--overwrite"], "After a restart nobody could tell")],
)
def test_a_refused_run_is_refused_at_each_start(folder, monkeypatch, options, remedy):
    monkeypatch.chdir(folder)
    assert main(["train", *SMALL, "other.pt", "--steps", "5"]) == 0
    before = Path("other.pt").read_bytes()
    torchrun = ["--nproc_per_node=2", "--max-restarts=1"]
    process = train(folder, "other.pt", "--steps", "9", *options, torchrun=torchrun)
    assert ended(process, folder) != 0
    _, errors = told(folder)
    assert len(errors) == 2 and all(remedy in error for error in errors)
    assert Path("other.pt").read_bytes() == before


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
    went_well(train(folder, *options), folder)
    return weights(folder / "cut.pt")


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_worker_that_is_killed_costs_nothing(folder, undisturbed, rank):
    (folder / "death.py").write_text(DEATH, encoding="utf-8")
    options = ["cut.pt", "--steps", "400", "--dropout", "0.1"]
    restarts = ["--nproc_per_node=2", "--max-restarts=2"]
    more = {"torchrun": restarts, "module": "death", "DIES": rank}
    process = train(folder, *options, **more)
    went_well(process, folder)
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
    went_well(started(*command, cwd=folder), folder)
    assert torch.equal(weights(folder / "cut.pt"), undisturbed)


def lost(then):
    return (
        "This job ends: a worker died, or torchrun was told to stop. What was saved "
        f"last is whole; to go on from there, {then}"
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signal to one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_workers_after_the_same_step(folder, number):
    process = train(folder, "cut.pt", "--steps", "400", "--dropout", "0.1")
    while not (folder / "cut.pt").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert ended(process, folder) != 0
    out, errors = told(folder)
    assert errors == [] and out.count("Interrupted after step") == 1
    step = int(re.search(r"Interrupted after step (\d+)", out)[1])
    assert load_checkpoint(folder / "cut.pt").state.step == step < 400


# --- A folder is a checkpoint, too: whole, and nothing in it is executed. ---


ONE_PROCESS = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


class WithShares(Alone):
    sharded = True


def keep(folder, model, step=0):
    state = TrainState(step, [], {"state": {}}, {}, PLAN.seed)
    save_checkpoint(folder, Checkpoint(model, TOKENIZER, PLAN, state), WithShares())


@ONE_PROCESS
def test_a_folder_is_whole_until_its_successor_is(tmp_path, monkeypatch):
    def power_cut(*arguments):
        raise OSError("no power")

    old, new = small_gpt(), small_gpt()
    with torch.no_grad():
        new.lm_head.weight.add_(1)
    keep(tmp_path, old)
    monkeypatch.setattr(shards, "write_sealed", power_cut)
    with pytest.raises(OSError, match="no power"):
        keep(tmp_path, new)  # the same step, as a run that begins anew
    assert torch.equal(weights(tmp_path), weights_of(old))
    monkeypatch.undo()
    for step, model in [(0, new), (0, old), (9, new)]:
        keep(tmp_path, model, step)
        assert torch.equal(weights(tmp_path), weights_of(model))
        assert len(list(tmp_path.iterdir())) == 2  # nothing old is left


def cut_short(tensors):
    shard = next(tensors.glob("*.distcp"))
    shard.write_bytes(shard.read_bytes()[:-9])


def gone(tensors):
    next(tensors.glob("*.distcp")).unlink()


def all_gone(tensors):
    for file in tensors.iterdir():
        file.unlink()
    tensors.rmdir()


def no_contents(tensors):
    (tensors / ".metadata").unlink()


def evil_contents(tensors):
    (tensors / ".metadata").write_bytes(pickle.dumps(Intruder(tensors.parent / "in")))


def one_bit(tensors):
    shard = next(tensors.glob("*.distcp"))
    content = bytearray(shard.read_bytes())
    content[content.index(weights_of(small_gpt())[:4].numpy().tobytes())] ^= 1
    shard.write_bytes(content)


DAMAGES = [cut_short, gone, all_gone, no_contents, evil_contents, one_bit]


@ONE_PROCESS
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_folder_is_refused_and_nothing_in_it_is_executed(tmp_path, damage):
    keep(tmp_path, small_gpt())
    load_checkpoint(tmp_path)
    damage(tmp_path / "step-0")
    refused(tmp_path)


@ONE_PROCESS
def test_a_folder_with_fine_seals_is_not_executed_either(tmp_path):
    keep(tmp_path, small_gpt())
    evil_contents(tmp_path / "step-0")
    small = read_sealed(tmp_path / "run.pt")
    small["seals"] = shards._seals(tmp_path / "step-0")
    write_sealed(tmp_path / "run.pt", small)
    refused(tmp_path)
    with pytest.raises(pickle.UnpicklingError, match="mkdir belongs in no checkpoint"):
        shards._Reader(tmp_path / "step-0").read_metadata()
    pickle.loads((tmp_path / "step-0" / ".metadata").read_bytes())
    assert (tmp_path / "in").is_dir()  # it would have come in


def refused(folder):
    """Assert that load_checkpoint refuses it in a sentence, and ran nothing in it."""
    with pytest.raises(ValueError) as error:
        load_checkpoint(folder)
    said = str(error.value)
    assert said.startswith(f"{folder} is damaged or not whole, or another program's")
    assert "\n" not in said and said.endswith(
        "Copy the whole folder again, or train again."
    )
    assert not (folder / "in").exists()
