"""`make`, or `lab.py`, sets up .venv: with a new enough Python, and from nothing."""

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest
from syllabus import ROOT

TORCH = next(
    line
    for line in (ROOT / "requirements.txt").read_text("utf-8").split()
    if line.startswith("torch=")
)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

# A Python of a version that we choose. Its `venv` leaves a stub, whose pip only notes
# what it was asked for; nothing is installed.
PYTHON = f"""#!/bin/sh
case "$1" in
  -c) exec {sys.executable} -c "import sys; sys.version_info = VERSION; $2" ;;
esac
[ "$3" = --clear ] && rm -rf .venv
mkdir -p .venv/bin
cp pip .venv/bin/python
"""
PIP = """#!/bin/sh
echo "$@" >> asked
case "$*" in *REFUSED*) exit 1 ;; esac
"""


@pytest.fixture
def made(tmp_path):
    """function(version, *arguments) -> (exit status, stderr) of make in a folder."""
    if os.name == "nt" or not shutil.which("make"):
        pytest.skip("Windows has no make")
    folder = tmp_path / "a folder"
    folder.mkdir()
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)

    def make(version, *arguments, refused="nothing"):
        for name, text in {
            "python": PYTHON.replace("VERSION", str(version)),
            "pip": PIP.replace("REFUSED", refused),
            "asked": "",
        }.items():
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)
        command = ["make", "-s", "PYTHON=./python", ".venv/ready", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        return done.returncode, done.stderr

    make.folder = folder
    return make


def installed(made):
    """Lines: what the last call asked pip for."""
    lines = (made.folder / "asked").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "pip install" in line]


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 9, 6)])
def test_an_old_python_is_told_before_anything_is_made(made, version):
    code, said = made(version)
    first = said.splitlines()[0]
    assert code and f"./python is Python {version[0]}.{version[1]}." in first
    assert "3.10 or newer" in first and "make lab PYTHON=python3.13" in first
    assert not (made.folder / ".venv").exists()


def test_a_folder_that_never_became_ready_is_made_anew(made):
    left = made.folder / ".venv" / "of another Python"
    left.mkdir(parents=True)
    assert made((3, 10, 0)) == (0, "")
    assert not left.exists() and (made.folder / ".venv" / "ready").is_file()


def test_a_folder_that_is_ready_stays_and_is_brought_up_to_date(made):
    made((3, 13, 0))
    mine = made.folder / ".venv" / "mine"
    mine.touch()
    made((3, 13, 0))
    assert installed(made) == []
    os.utime(made.folder / ".venv" / "ready", (0, 0))  # older than the requirements
    made((3, 13, 0))
    assert mine.exists() and len(installed(made)) >= 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyPI has the CPU build")
def test_on_linux_torch_comes_without_cuda_unless_it_is_asked_for(made):
    made((3, 13, 0))
    first, second, _ = installed(made)
    assert "whl/cpu torch==" in first and "--retries 0" in first
    assert "requirements.txt" in second and "whl/cpu" not in second
    made((3, 13, 0), "GPU=1")
    assert not any("whl/cpu" in line for line in installed(made))
    os.utime(made.folder / ".venv" / "ready", (0, 0))
    made((3, 13, 0))  # stays what it was
    assert installed(made) and not any("whl/cpu" in one for one in installed(made))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyPI has the CPU build")
def test_an_index_that_does_not_answer_leaves_torch_to_the_usual_one(made):
    code, _ = made((3, 13, 0), refused="whl/cpu")
    assert code == 0 and "requirements.txt" in installed(made)[1]
    code, _ = made((3, 13, 0), ".venv/ready", "-B", refused="requirements.txt")
    assert code


def test_a_folder_of_texts_may_have_a_blank_in_its_name(made):
    (made.folder / "my texts").mkdir()
    show = 'show:\n\t@echo "$$MINIGPT_DATA"\n'
    with open(made.folder / "Makefile", "a", encoding="utf-8") as file:
        file.write(show)
    for given in ("my texts", str(made.folder / "my texts")):
        done = subprocess.run(
            ["make", "-s", "show"],
            cwd=made.folder,
            env={**os.environ, "MINIGPT_DATA": given},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == str(made.folder / "my texts")


# --- where there is no make ---


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """minigpt/tools/lab.py in a project of its own, whose pip and JupyterLab only note
    what they were asked."""
    folder = tmp_path / "a folder"
    (folder / "minigpt" / "tools").mkdir(parents=True)
    for name in ("minigpt/tools/lab.py", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    spec = importlib.util.spec_from_file_location(
        "lab", folder / "minigpt/tools/lab.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ran = []

    def create(where, **_):
        shutil.rmtree(where, ignore_errors=True)
        module.PYTHON.parent.mkdir(parents=True)
        module.PYTHON.touch()

    def ran(command, cwd):
        assert cwd == folder
        module.ran.append(" ".join(command[1:]))
        return subprocess.CompletedProcess(command, module.fails)

    module.fails = 0
    monkeypatch.setattr(module.venv, "create", create)
    monkeypatch.setattr(module.subprocess, "run", ran)
    return module


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_one_command_sets_up_and_opens_the_course(lab, monkeypatch, platform):
    monkeypatch.setattr(lab.sys, "platform", platform)
    lab.main([])
    *torch, first, second, opened = lab.ran
    assert len(torch) == (1 if platform == "linux" else 0)
    assert all(f"whl/cpu {TORCH}" in one for one in torch)
    assert "-r requirements.txt" in first and "--editable ." in second
    for option in ("root_dir=.", "app_settings_dir=.jupyter", "00_start_here.ipynb"):
        assert option in opened and option in MAKEFILE
    lab.main([])
    assert lab.ran[-2:] == [opened, opened]  # all is there
    os.utime(lab.READY, (0, 0))  # older than the requirements
    mine = lab.FOLDER / "mine"
    mine.touch()
    lab.main(["set-up"])
    assert lab.ran[-2:] == [first, second] and mine.exists()


def test_what_pip_refuses_is_not_called_ready(lab):
    lab.fails = 3
    with pytest.raises(SystemExit) as end:
        lab.main([])
    assert end.value.code == 3 and "requirements.txt" in lab.ran[-1]
    assert not lab.is_ready()


def test_an_old_python_is_told_without_make(lab, monkeypatch):
    monkeypatch.setattr(lab.sys, "version_info", (3, 9, 6))
    with pytest.raises(SystemExit, match="this is Python 3.9. Get a newer one"):
        lab.main([])
    assert not lab.FOLDER.exists() and not lab.ran
