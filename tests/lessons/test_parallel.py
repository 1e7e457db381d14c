"""Several processes that train as one: the same losses, one writer, no one hangs."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import several
import torch
from small import START, TRAIN_SMALL, fit, small_gpt, weights_of
from torch.testing import assert_close

import minigpt
from minigpt.checkpoint import load_checkpoint
from minigpt.parallel.meeting import joined, own_device
from minigpt.parallel.workers import Worker, first, standing, total
from minigpt.tools.command_line import main

# --- One and two of them. ---


def free_ports():
    at = "127.0.0.1", 0
    with socket.create_server(at) as one, socket.create_server(at) as other:
        return one.getsockname()[1], other.getsockname()[1]


@contextlib.contextmanager
def float64():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def alone():
    """The losses of one process, which all workers must have."""
    with float64():
        return {
            "AdamW": several.losses(small_gpt(), several.PLAN),
            "Muon": several.losses(several.small_modern(), several.MUON),
        }


@pytest.fixture(scope="module")
def seen(tmp_path_factory, alone):  # forks have what `alone` imported
    """What the two workers found, and the folder of their files."""
    out, ports = tmp_path_factory.mktemp("several"), free_ports()
    command = ["train", *new("two.pt", *SHORT)]
    folder = with_corpus(out / "command")
    workers = torch.multiprocessing.start_processes(
        several.work,
        (ports, out, folder, command),
        nprocs=2,
        join=False,
        daemon=True,
        start_method=START,
    )
    ends = time.monotonic() + 240
    while not workers.join(5):
        assert time.monotonic() < ends
    files = [out / "0.json", out / "1.json"]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files], out


def same(found, expected, atol=1e-10):
    """Assert equal numbers up to rounding; a resumed run has the later ones."""
    found, expected = torch.tensor(found), torch.tensor(expected)
    assert_close(found, expected[-len(found) :], atol=atol, rtol=0)


def test_workers_have_the_losses_of_one_process(seen, alone):
    for found in seen[0]:
        same(found["AdamW"], alone["AdamW"])
    first, *_, last = alone["AdamW"]
    assert first[0] - last[0] > 0.2  # or nothing would have been compared


@pytest.mark.parametrize("way", ["Muon", "Muon, resumed"])
def test_workers_with_muon_have_the_losses_of_one_process(seen, alone, way):
    for found in seen[0]:  # every direction becomes as long, that of rounding, too
        same(found[way], alone["Muon"], atol=1e-7)


def test_one_process_goes_on_with_the_run_of_two_from_its_one_file(seen, alone):
    files = sorted(path.name for path in seen[1].glob("*.pt*"))
    assert files == ["Muon, resumed.pt", "dropout, resumed.pt"]
    with float64():
        found, _ = several.resumed(seen[1] / "Muon, resumed.pt", several.MUON)
    same(found, alone["Muon"], atol=1e-7)


def test_workers_drop_different_values_and_a_resumed_run_the_same_again(seen, alone):
    zero, one = seen[0]
    assert zero["own numbers"] != one["own numbers"]
    assert zero["common numbers"] == one["common numbers"]
    assert zero["dropped"] == one["dropped"]  # the weights in the end
    for found in (zero, one):
        same(found["dropout, resumed"], found["dropout"], atol=1e-12)
    assert zero["dropout"][-1] != alone["AdamW"][-1]


# --- Alone. ---


def test_a_batch_in_pieces_is_a_whole_batch():
    with float64():
        pieces = fit(Worker(small_gpt(), accumulate=3))  # 4 windows: 2, 1, 1
        whole = fit(small_gpt())
    same([row[1:3] for row in pieces], [row[1:3] for row in whole])


def test_pieces_without_a_window_are_refused():
    with pytest.raises(ValueError, match="batch_size is 4; give 5 or more"):
        fit(Worker(small_gpt(), accumulate=5))


def test_one_process_is_alone(monkeypatch):
    with joined():
        assert standing() == (0, 1) and total(2.5) == 2.5
        done = []
        first(lambda: done.append(1))
        with pytest.raises(OSError, match="full"):
            first(lambda: (_ for _ in ()).throw(OSError("full")))
    assert done == [1]


# --- Where they meet, and on what. ---


def test_each_process_takes_a_gpu_of_its_own(monkeypatch):
    cpu, gpu, mps = (torch.device(name) for name in ("cpu", "cuda", "mps"))
    assert own_device(gpu) == gpu  # alone: as it was
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert own_device(gpu) == torch.device("cuda", 1) and own_device(cpu) == cpu
    with pytest.raises(ValueError, match="--device cpu"):
        own_device(mps)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="torch sees 1: .* --device cpu"):
        own_device(gpu)
    assert own_device(cpu) == cpu


# --- The command line under torchrun. ---


SHORT = "--steps", "60", "--dropout", "0"


def with_corpus(folder):
    folder.mkdir(exist_ok=True)
    (folder / "corpus.txt").write_text("to be or not to be; " * 100, "utf-8")
    return folder


@pytest.fixture
def folder(tmp_path):
    return with_corpus(tmp_path)


def started(folder, *options, torchrun=(), module="minigpt", **environment):
    """Two workers of `train`, which speak into the files out and err."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    settings["PYTHONPATH"] = str(Path(minigpt.__file__).parents[1])
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    command += [*torchrun, "-m", module, "train", *options]
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        return subprocess.Popen(
            command, cwd=folder, env=settings, stdout=out, stderr=err
        )


def ended(process, folder):
    """(exit code, standard output, the sentences of ours on standard error)."""
    try:
        code = process.wait(240)
    finally:
        process.kill()
    out, err = ((folder / name).read_text(encoding="utf-8") for name in ("out", "err"))
    return code, out, re.findall(r"error: .*", err.replace("\r", "\n"))


def new(out, *options):
    return ["--data", "corpus.txt", *TRAIN_SMALL, *options, "--out", out]


def weights(path):
    return weights_of(load_checkpoint(path).model)


@pytest.fixture
def alone_said(folder, monkeypatch, capsys):
    """The loss that one process tells; its model is one.pt, in this folder."""
    monkeypatch.chdir(folder)
    assert main(["train", *new("one.pt", *SHORT)]) == 0
    return re.search(r"Validation loss [\d.]+", capsys.readouterr().out)[0]


def is_once(out, err, loss, files):
    """Assert that two workers spoke and wrote once, and are one process's equal."""
    assert out.count("Validation loss") == 1 and loss in out
    assert "on 2 workers on cpu; written to two.pt." in out
    assert err.count(" 0/60") <= 1  # one bar
    assert sorted(p.name for p in files.glob("*.pt*")) == ["two.pt"]
    assert_close(weights(files / "two.pt"), weights("one.pt"), atol=1e-4, rtol=0)


def test_workers_of_a_command_train_write_and_speak_once(seen, alone_said):
    """Processes of ours, in place of torchrun's; once a week those."""
    codes, outs, errs = zip(*(found["command"] for found in seen[0]))
    assert codes == (0, 0)
    is_once("".join(outs), "".join(errs), alone_said, seen[1] / "command")


@pytest.mark.weekly
def test_torchrun_trains_writes_and_speaks_once(alone_said, tmp_path):
    there = with_corpus(tmp_path / "two")
    code, out, errors = ended(started(there, *new("two.pt", *SHORT)), there)
    assert (code, errors) == (0, [])
    is_once(out, (there / "err").read_text("utf-8"), alone_said, there)


DEATH = """
import os, signal, threading, time
from pathlib import Path
from minigpt.tools.command_line import main

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
LONG = new("cut.pt", "--steps", "400", "--resume")
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The weights of two workers whom nobody disturbed."""
    folder = with_corpus(tmp_path_factory.mktemp("undisturbed"))
    assert ended(started(folder, *LONG), folder)[0] == 0
    return weights(folder / "cut.pt")


@POSIX
@pytest.mark.weekly
@pytest.mark.parametrize("dies", ["0", "1"])
def test_a_worker_that_is_killed_costs_nothing(folder, undisturbed, dies):
    (folder / "death.py").write_text(DEATH, encoding="utf-8")
    more = {"torchrun": ["--max-restarts=2"], "module": "death", "DIES": dies}
    code, out, errors = ended(started(folder, *LONG, **more), folder)
    assert code == 0 and out.count("Validation loss") == 1 and len(errors) <= 1
    assert sorted(p.name for p in folder.glob("cut*")) == ["cut.pt"]  # nothing is left
    run = load_checkpoint(folder / "cut.pt").run
    assert run.step == 400 and [row.step for row in run.history] == [100, 200, 300, 400]
    assert torch.equal(weights(folder / "cut.pt"), undisturbed)


@POSIX
@pytest.mark.weekly
def test_an_interrupt_ends_all_workers_after_the_same_step(folder, undisturbed):
    process = started(folder, *LONG)
    while not (folder / "cut.pt").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    code, out, errors = ended(process, folder)
    assert code != 0 and errors == [] and out.count("Interrupted after step") == 1
    step = int(re.search(r"Interrupted after step (\d+)", out)[1])
    assert load_checkpoint(folder / "cut.pt").run.step == step < 400
    again = "--data corpus.txt --device cpu --resume --out cut.pt".split()
    assert ended(started(folder, *again), folder)[0] == 0
    assert torch.equal(weights(folder / "cut.pt"), undisturbed)


def test_a_start_that_may_be_repeated_must_go_on(monkeypatch, capsys):
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    assert main(["train"]) == 2
    assert "add --resume" in capsys.readouterr().err
