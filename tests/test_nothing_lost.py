"""Whatever happens to a run: killed, out of room, not alone, astray."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small import PLAN, TOKENIZER, fit, plan, small_gpt, weights_of
from torch.testing import assert_close

import minigpt.__main__ as cli
from minigpt.__main__ import main
from minigpt.checkpoint import load_checkpoint, saver
from minigpt.files import only_one, replacing
from minigpt.interrupts import Interrupts

HERE = Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
POSIX = pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")
SMALL = (
    "--preset cpu --steps 12 --batch-size 4 --block-size 8 --n-layer 1 --n-head 2 "
    "--n-embd 16 --learning-rate 0.01 --dropout 0.1"
).split()


def python(code, *arguments, first=()):
    """A Python of its own at work on `code`, started by the command `first`."""
    return subprocess.Popen(
        [*first, sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=ENVIRONMENT,
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a corpus and a model of 12 steps; the test runs in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").write_text("to be or not to be; " * 100, encoding="utf-8")
    assert train(*SMALL) == 0
    return tmp_path


def train(*options):
    return main(["train", "--data", "corpus.txt", "--device", "cpu", *options])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def refused(text):
    """The last line of standard error, if it is one sentence of ours."""
    assert "Traceback" not in text
    last = text.strip().splitlines()[-1]
    assert last.startswith("error: ") and last.endswith(".")
    return last


# --- Killed. ---


def assert_ends_alike(one, other):
    """Two finished runs hold the same, but for the seconds that they took."""
    assert torch.equal(weights_of(one.model), weights_of(other.model))
    assert one.config == other.config and one.model.config == other.model.config
    assert one.state.step == other.state.step and one.state.seed == other.state.seed
    assert_close(one.state.optimizer, other.state.optimizer, rtol=0, atol=0)
    assert_close(one.state.random_state, other.state.random_state, rtol=0, atol=0)
    histories = [[row[:3] for row in run.state.history] for run in (one, other)]
    assert histories[0] == histories[1]


@POSIX
@pytest.mark.parametrize(("kind", "kills"), [("gpt", 16), ("modern", 14)])
def test_killed_at_any_moment_a_run_keeps_a_checkpoint_and_ends_as_if_undisturbed(
    tmp_path, kind, kills, record_property
):
    done = subprocess.run(
        [sys.executable, HERE / "killed_runs.py", tmp_path, kind, str(kills), "13"],
        env=ENVIRONMENT,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    at_random = sum(kill["stop"] is None for kill in report["kills"])
    assert at_random == kills and len(report["kills"]) == kills + 9
    whole = load_checkpoint(tmp_path / "whole" / "model.pt")
    steps = [0]
    for kill in report["kills"]:
        if kill["kept"]:
            steps.append(load_checkpoint(tmp_path / kill["kept"]).state.step)
        if kill["stop"] in ("stop_in_the_middle_of_a_write", "stop_before_the_move"):
            assert kill["writing"]
    assert len(set(steps)) > 2 and set(steps) <= set(range(0, 37, 3))
    for run in report["ended"]:
        assert run["code"] == 0 and run["left"] == ["model.pt"]
        assert_ends_alike(load_checkpoint(tmp_path / run["run"] / "model.pt"), whole)
    writing = sum(kill["writing"] for kill in report["kills"])
    assert writing >= 6
    record_property(
        f"{kind}: kills survived",
        f"{kills} at random times, 9 at chosen ones; {writing} fell into a write",
    )


def test_what_is_written_is_on_the_disk_before_it_moves_and_the_move_is_too(
    tmp_path, monkeypatch
):
    done = []
    sync, move = os.fsync, os.replace

    def noted_sync(number):
        place = os.fstat(number).st_ino
        done.append("folder" if place == os.stat(tmp_path).st_ino else "file")
        sync(number)

    def noted_move(*paths):
        done.append("move")
        move(*paths)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_move)
    with replacing(tmp_path / "run.pt") as unfinished:
        unfinished.write_bytes(b"all")
        assert done == []
    assert done == ["file", "move", "folder"][: 2 if os.name == "nt" else 3]


def test_a_folder_that_cannot_be_flushed_is_no_obstacle(tmp_path, monkeypatch):
    sync = os.fsync

    def files_only(number):
        if os.fstat(number).st_ino == os.stat(tmp_path).st_ino:
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(number)

    monkeypatch.setattr(os, "fsync", files_only)
    with replacing(tmp_path / "run.pt") as unfinished:
        unfinished.write_bytes(b"all")
    assert (tmp_path / "run.pt").read_bytes() == b"all"


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP])
def test_a_drive_that_knows_no_flushing_is_no_obstacle(tmp_path, monkeypatch, code):
    def refuse(number):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with replacing(tmp_path / "run.pt") as unfinished:
        unfinished.write_bytes(b"all")
    assert (tmp_path / "run.pt").read_bytes() == b"all"


def test_what_killed_runs_left_is_removed_and_nothing_else(tmp_path):
    path = tmp_path / "run.pt"
    others = ["run.pt.old.tmp", "run.pt.12", "other.pt.12.tmp", "xrun.pt.12.tmp"]
    for name in [*others, "run.pt.12.tmp", "run.pt.99999.tmp", ".run.pt.lock"]:
        (tmp_path / name).write_text(name, encoding="utf-8")
    fit(small_gpt(), plan(steps=5), save=saver(path, small_gpt(), TOKENIZER, PLAN))
    assert names(tmp_path) == sorted([*others, "run.pt"])


# --- No room. ---

RESUME = "train --data corpus.txt --device cpu --resume --steps 15".split()


@POSIX
def test_a_file_that_cannot_grow_leaves_the_previous_checkpoint(folder, capsys):
    import resource  # there is none on Windows

    before = (folder / "model.pt").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        assert main(RESUME) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refused(capsys.readouterr().err) == (
        "error: Step 15 could not be written to model.pt (File too large): make room "
        "there or move to another folder, then go on with --resume from step 12, which "
        "model.pt keeps."
    )
    assert (folder / "model.pt").read_bytes() == before
    assert names(folder) == ["corpus.txt", "model.pt"]
    assert main(RESUME) == 0 and load_checkpoint("model.pt").state.step == 15


def test_a_full_disk_leaves_the_previous_checkpoint(folder):
    """A real one, in memory, if a process may have a disk of its own here."""
    (folder / "disk").mkdir()
    alone = ["unshare", "--map-root-user", "--mount", "sh", "-e", "-c"]
    disk = "mount -t tmpfs -o size=$0 tmpfs disk && cp model.pt disk/"
    try:
        subprocess.run([*alone, disk, "1m"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the leave to mount a disk")
    size = (folder / "model.pt").stat().st_size + 3 * 4096  # one fits, two do not
    train = [sys.executable, "-m", "minigpt", *RESUME, "--out", "disk/model.pt"]
    look = "cmp model.pt disk/model.pt; ls -A disk"
    done = subprocess.run(
        [*alone, f'{disk}; "$@" || echo code $?; {look}', str(size), *train],
        env=ENVIRONMENT,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.stdout == "code 2\nmodel.pt\n", done
    said = refused(done.stderr)
    assert "(No space left on device): make room" in said
    assert "from step 12, which disk/model.pt keeps." in said


LOCKED = """
import os, sys
import minigpt.__main__ as cli

def train(*args, on_step, **options):
    def locked(step):
        on_step(step)
        if step == 14:
            os.chmod(".", 0o555)
    return real(*args, on_step=locked, **options)

real, cli.train = cli.train, train
print(cli.main(sys.argv[1:]))
print(cli.main(sys.argv[1:]))  # now the folder is read-only from the beginning
"""


@POSIX
def test_a_folder_that_turns_read_only_leaves_the_previous_checkpoint(folder):
    before = (folder / "model.pt").read_bytes()
    bound = []
    if os.getuid() == 0:  # who else could write anywhere
        if not shutil.which("setpriv"):
            pytest.skip("needs a user whom permissions bind")
        bound = ["setpriv", "--bounding-set=-dac_override"]
    try:
        out, err = python(LOCKED, *RESUME, first=bound).communicate(timeout=120)
    finally:
        folder.chmod(0o755)
    assert out == "2\n2\n", err
    first, last = [line for line in err.splitlines() if line.startswith("error: ")]
    assert refused(first) == (
        "error: Step 15 could not be written to model.pt (Permission denied): make "
        "room there or move to another folder, then go on with --resume from step 12, "
        "which model.pt keeps."
    )
    assert refused(last) == (
        "error: Nothing can be written to model.pt (Permission denied): give another "
        "place."
    )
    assert (folder / "model.pt").read_bytes() == before
    assert train("--resume", "--steps", "15") == 0
    assert names(folder) == ["corpus.txt", "model.pt"]


def test_a_write_that_fails_says_what_is_kept(folder, monkeypatch, capsys):
    """What cannot be had everywhere: a disk that breaks."""
    before = (folder / "model.pt").read_bytes()

    def broken(number):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    assert train("--resume", "--steps", "15") == 2
    said = refused(capsys.readouterr().err)
    assert "(Input/output error): make room" in said
    assert "from step 12, which model.pt keeps" in said
    assert (folder / "model.pt").read_bytes() == before
    assert names(folder) == ["corpus.txt", "model.pt"]
    assert train(*SMALL, "--overwrite", "--seed", "3") == 2  # the kept one is another's
    assert "train again, for model.pt is as it was" in refused(capsys.readouterr().err)
    assert train(*SMALL, "--out", "new.pt") == 2
    assert "train again, for new.pt is as it was" in refused(capsys.readouterr().err)
    assert names(folder) == ["corpus.txt", "model.pt"]


# --- Not alone. ---

HOLD = """
import sys
from minigpt.files import only_one

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
        if os.name != "nt":
            assert f"by another run (process {another.pid} on " in said
        assert "wait until it has ended, or give another --out." in said
    assert (folder / "model.pt").read_bytes() == before
    assert (folder / "model.pt.12.tmp").exists()
    assert main(["sample", "--tokens", "3"]) == 0  # reading is free
    assert train(*SMALL, "--out", "mine.pt") == 0


def test_a_killed_run_gives_its_place_free(folder, another):
    another.kill()
    another.wait(60)
    assert train("--resume", "--steps", "15") == 0
    assert names(folder) == ["corpus.txt", "model.pt"]


def test_a_run_that_ends_gives_its_place_free_and_leaves_no_trace(folder, another):
    another.communicate("end\n", timeout=60)
    assert names(folder) == ["corpus.txt", "model.pt"]
    assert train("--resume", "--steps", "15") == 0


def test_a_notebook_is_refused_where_a_run_writes(folder, another):
    with pytest.raises(BlockingIOError, match="is being written by another run"):
        saver("model.pt", small_gpt(), TOKENIZER, PLAN)
    save = saver("mine.pt", small_gpt(), TOKENIZER, PLAN)
    process = python(HOLD, folder / "mine.pt")
    assert process.stdout.readline() == "in\n"
    with pytest.raises(BlockingIOError, match="mine.pt is being written by another"):
        fit(small_gpt(), plan(steps=5), save=save)
    process.communicate("end\n", timeout=60)
    fit(small_gpt(), plan(steps=5), save=save)
    assert load_checkpoint("mine.pt").state.step == 5


def test_a_cell_that_runs_twice_may_save_twice(tmp_path):
    path = tmp_path / "run.pt"
    for _ in range(2):
        model = small_gpt()
        save = saver(path, model, TOKENIZER, PLAN)
        saver(str(path), model, TOKENIZER, PLAN)
        fit(model, save=save)
    with only_one(path), only_one(str(path)):
        fit(model, save=save)
    assert names(tmp_path) == ["run.pt"]


TAKE_TURNS = """
import os, sys
from minigpt.files import only_one

for _ in range(60):
    with only_one(sys.argv[1]):
        os.close(os.open(sys.argv[2], os.O_CREAT | os.O_EXCL))  # fails if two are in
        os.unlink(sys.argv[2])
"""


@POSIX
def test_of_many_that_come_and_go_only_one_is_in(tmp_path):
    paths = tmp_path / "run.pt", tmp_path / "inside"
    crowd = [python(TAKE_TURNS, *paths) for _ in range(3)]
    for process in crowd:
        error = process.communicate(timeout=120)[1]
        assert process.returncode == 0 or "BlockingIOError" in error, error
    assert any(process.returncode == 0 for process in crowd)
    assert names(tmp_path) == []


# --- Astray. ---


@pytest.mark.parametrize("preset", ["cpu", "modern"])
def test_a_run_that_diverges_does_not_replace_a_good_checkpoint(folder, capsys, preset):
    small = ["--dropout", "0" if preset == "modern" else "0.1", "--out", "good.pt"]
    assert train(*SMALL, "--preset", preset, *small) == 0
    before = (folder / "good.pt").read_bytes()
    options = "--resume --steps 40 --learning-rate 1e6 --out good.pt".split()
    assert train(*options) == 2
    said = refused(capsys.readouterr().err)
    assert "The run diverged (losses " in said and " at step 40): use a smaller" in said
    assert "go on with --resume from step 12, which good.pt keeps." in said
    assert (folder / "good.pt").read_bytes() == before
    assert train(*options, "--steps", "15", "--learning-rate", "0.001") == 0


def test_a_run_that_diverges_from_the_start_saves_nothing(folder, capsys):
    assert train(*SMALL, *"--learning-rate 1e6 --steps 40 --out new.pt".split()) == 2
    said = refused(capsys.readouterr().err)
    assert "and train again, for new.pt is as it was before this run." in said
    assert names(folder) == ["corpus.txt", "model.pt"]


def test_weights_that_are_no_numbers_are_not_saved_even_if_the_losses_are(tmp_path):
    model, path = small_gpt(), tmp_path / "run.pt"
    save = saver(path, model, TOKENIZER, PLAN)
    states = []
    fit(model, save=lambda state: states.append(state) or save(state))
    before = path.read_bytes()
    with torch.no_grad():
        model.lm_head.bias[3] = torch.inf
    with pytest.raises(ValueError, match="The run diverged .* which .*run.pt keeps"):
        save(states[-1])
    assert path.read_bytes() == before


# --- Told to end. ---


@pytest.fixture
def sigterm():
    """SIGTERM as Python leaves it; a test must leave it so."""
    outside = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    assert signal.signal(signal.SIGTERM, outside) == signal.SIG_DFL


def test_a_run_that_is_told_to_end_saves_its_step_and_goes_on(
    folder, monkeypatch, capsys, sigterm
):
    def told(*args, on_step, **kwargs):
        def stop(step):
            on_step(step)
            if step == 5:
                signal.raise_signal(signal.SIGTERM)

        return real(*args, on_step=stop, **kwargs)

    real = cli.train
    monkeypatch.setattr(cli, "train", told)
    assert train("--out", "cut.pt", *SMALL) == 130
    assert "after step 5 of 12" in capsys.readouterr().out
    assert load_checkpoint("cut.pt").state.step == 5
    monkeypatch.setattr(cli, "train", real)
    assert train("--out", "cut.pt", "--resume") == 0
    one, other = load_checkpoint("cut.pt"), load_checkpoint("model.pt")
    assert torch.equal(weights_of(one.model), weights_of(other.model))


@POSIX
def test_a_second_call_to_end_ends_at_once():
    code = (
        "import signal\n"
        "from minigpt.interrupts import Interrupts\n"
        "with Interrupts() as interrupts:\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print(interrupts.asked, flush=True)\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print('went on')\n"
    )
    process = python(code)
    assert process.communicate(timeout=60)[0] == "True\n"
    assert process.returncode == -signal.SIGTERM


def test_a_run_that_was_told_to_ignore_sigterm_goes_on_ignoring_it(sigterm):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        assert not interrupts.asked
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
