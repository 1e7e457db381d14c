"""Whatever happens to a run: killed, out of room, not alone, astray."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small import PLAN, START, TOKENIZER, fit, small_gpt, weights_of
from small import TRAIN_SMALL as SMALL

from minigpt.checkpoint import Checkpoint
from minigpt.files import replacing
from minigpt.tools import command_line as cli
from minigpt.tools.command_line import main
from minigpt.tools.interrupts import Interrupts
from minigpt.tools.saving import load_any, saver
from minigpt.training import Run

HERE = Path(__file__).resolve().parents[1]
POSIX = pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")


def python(code, *arguments):
    """A Python of its own at work on `code`."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def train(*options):  # on the device of `model.pt`: others round otherwise
    return main(["train", "--device", "cpu", "--data", "corpus.txt", *options])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def refused(text):
    """The last line of standard error, if it is one sentence of ours."""
    assert "Traceback" not in text
    last = text.strip().splitlines()[-1]
    assert last.startswith("error: ") and last.endswith(".")
    return last


# --- Killed. ---


def killed(place, *command):
    """Run a command, and be killed in the second write of its checkpoint."""
    torch.set_num_threads(1)
    begun, calls = cli.begun, []

    def often(*args):
        checkpoint = begun(*args)
        checkpoint.config.eval_every = 3  # and so it is saved
        return checkpoint

    def deadly(*args):
        calls.append(args)
        if place == "after" or len(calls) < 2:
            function(*args)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    name = "fsync" if place == "middle" else "replace"
    function = getattr(os, name)
    setattr(os, name, deadly)
    cli.begun = often
    cli.main(command)


processes = multiprocessing.get_context(START)
MODERN = ["--preset", "modern", "--dropout", "0"]


@POSIX
@pytest.mark.parametrize(
    "place, step, more",
    [
        ("middle", 3, []),
        pytest.param("after", 6, MODERN, marks=pytest.mark.weekly),
    ],
)
def test_killed_in_its_second_write_a_run_ends_as_if_undisturbed(
    folder, place, step, more
):
    options = [*SMALL, "--steps", "36", *more]
    assert train(*options, "--out", "whole.pt") == 0
    options += ["--data", "corpus.txt", "--out", "cut.pt"]
    args = place, "train", *options
    process = processes.Process(target=killed, args=args, daemon=True)
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    assert len(list(folder.glob("cut.pt.*.tmp"))) == (place != "after")
    assert load_any("cut.pt").run.step == step
    assert train("--resume", "--out", "cut.pt") == 0
    cut, whole = (load_any(path) for path in ("cut.pt", "whole.pt"))
    assert torch.equal(weights_of(cut.model), weights_of(whole.model))
    assert names(folder) == ["corpus.txt", "cut.pt", "model.pt", "whole.pt"]


def test_what_killed_runs_left_is_removed_and_nothing_else(folder):
    others = ["model.pt.old.tmp", "model.pt.12", "other.pt.12.tmp", "xmodel.pt.12.tmp"]
    for name in [*others, "model.pt.12.tmp", "model.pt.999.tmp", ".model.pt.lock"]:
        (folder / name).write_text(name, encoding="utf-8")
    assert train("--resume", "--steps", "15") == 0
    assert names(folder) == sorted([*others, "corpus.txt", "model.pt"])


def test_a_file_is_replaced_only_when_all_went_well(tmp_path):
    path = tmp_path / "new folder" / "file.txt"
    for text in ("first", "second"):
        with replacing(str(path)) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
            assert not path.exists() or path.read_text(encoding="utf-8") == "first"
            assert unfinished.parent == path.parent  # moving there is one step
    with pytest.raises(KeyboardInterrupt), replacing(path) as unfinished:
        unfinished.write_text("third", encoding="utf-8")
        raise KeyboardInterrupt
    assert path.read_text(encoding="utf-8") == "second"
    assert names(path.parent) == ["file.txt"]


# --- No room. ---


def test_a_write_that_fails_says_what_is_kept(folder, monkeypatch, capsys):
    before = (folder / "model.pt").read_bytes()

    def broken(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    assert train("--resume", "--steps", "15") == 2
    assert refused(capsys.readouterr().err) == (
        "error: Step 15 couldn't be written to model.pt (No space left on device): "
        "make room there or use another folder. model.pt hasn't changed."
    )
    assert (folder / "model.pt").read_bytes() == before
    assert names(folder) == ["corpus.txt", "model.pt"]


# --- Not alone. ---

HOLD = """
import sys
from minigpt.tools.locking import only_one

with only_one(sys.argv[1]):
    print("in", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def another(folder):
    """Another process that is at model.pt."""
    process = python(HOLD, folder / "model.pt")
    assert process.stdout.readline() == "in\n", process.stderr.read()
    yield process
    process.kill()
    process.communicate()


def test_a_second_run_at_one_path_is_refused_by_name(folder, another, capsys):
    before = (folder / "model.pt").read_bytes()
    (folder / "model.pt.12.tmp").write_text("half", encoding="utf-8")  # the other's
    for options in (["--resume", "--steps", "15"], ["--overwrite", *SMALL], SMALL):
        assert train(*options) == 2
        said = refused(capsys.readouterr().err)
        assert "Another run is writing " in said and "wait until it's done" in said
    assert (folder / "model.pt").read_bytes() == before
    assert (folder / "model.pt.12.tmp").exists()
    assert main(["sample", "--tokens", "3"]) == 0  # reading is free
    assert train(*SMALL, "--out", "mine.pt") == 0
    another.communicate("end\n", timeout=60)  # a run that ends leaves no trace
    (folder / "model.pt.12.tmp").unlink()
    assert names(folder) == ["corpus.txt", "mine.pt", "model.pt"]


# --- Astray. ---


def test_a_run_that_diverges_does_not_replace_a_good_checkpoint(folder, capsys):
    assert train(*SMALL, "--dropout", "0", "--out", "good.pt") == 0
    before = (folder / "good.pt").read_bytes()
    options = "--resume --steps 40 --learning-rate 1e6 --out good.pt".split()
    assert train(*options) == 2
    said = refused(capsys.readouterr().err)
    assert "The run diverged (losses " in said and " at step 40): use a smaller" in said
    assert said.endswith("learning rate. good.pt hasn't changed.")
    assert (folder / "good.pt").read_bytes() == before
    assert train(*options, "--steps", "15", "--learning-rate", "0.001") == 0


def test_weights_that_are_no_numbers_are_not_saved_even_if_the_losses_are(tmp_path):
    model, path = small_gpt(), tmp_path / "run.pt"
    run = Run(model, PLAN)
    save = saver(path, Checkpoint(model, TOKENIZER, PLAN, run))
    fit(model, run=run, on_eval=save)
    before = path.read_bytes()
    with torch.no_grad():
        model.lm_head.bias[3] = torch.inf
    with pytest.raises(ValueError, match="The run diverged .*run.pt hasn't changed"):
        save(run)
    assert path.read_bytes() == before


# --- Told to end (test_command_line tells a training, too). ---


@POSIX
def test_a_second_call_to_end_ends_at_once():
    code = (
        "import signal\n"
        "from minigpt.tools.interrupts import Interrupts\n"
        "with Interrupts() as interrupts:\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print(interrupts.asked, flush=True)\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print('went on')\n"
    )
    process = python(code)
    assert process.communicate(timeout=60)[0] == "True\n"
    assert process.returncode == -signal.SIGTERM


def test_a_run_that_was_told_to_ignore_sigterm_goes_on_ignoring_it():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGTERM)
            assert not interrupts.asked
    finally:
        signal.signal(signal.SIGTERM, before)
