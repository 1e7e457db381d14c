"""lab.py sets up .venv, alone or for make: from nothing, with a new enough Python."""

import importlib.util
import os
import shutil
import subprocess

import pytest
from syllabus import ROOT

TORCH = next(
    line
    for line in (ROOT / "requirements.txt").read_text("utf-8").split()
    if line.startswith("torch=")
)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """minigpt/tools/lab.py on Linux in a project of its own. Its pip and JupyterLab
    only note what they were asked; `refused` is a part of a command that then fails."""
    folder = tmp_path / "a folder"
    (folder / "minigpt" / "tools").mkdir(parents=True)
    for name in ("minigpt/tools/lab.py", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    path = folder / "minigpt/tools/lab.py"
    spec = importlib.util.spec_from_file_location("lab", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ran, module.refused = [], "nothing"

    def call(command, cwd):
        assert cwd == str(folder)
        if "venv" in command:
            shutil.rmtree(module.FOLDER, ignore_errors=True)
            module.PYTHON.parent.mkdir(parents=True)
            module.PYTHON.touch()
        module.ran.append(" ".join(command[1:]))
        return 3 if module.refused in module.ran[-1] else 0

    monkeypatch.setattr(module.subprocess, "call", call)
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.delenv("GPU", raising=False)
    return module


def asked(lab, *arguments):
    """What the next call of lab.py runs."""
    lab.ran.clear()
    lab.main([*arguments])
    return list(lab.ran)


def outdated(lab):
    """As when requirements.txt has changed since."""
    os.utime(lab.READY, (0, 0))


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_one_command_sets_up_and_opens_the_course(lab, monkeypatch, platform):
    monkeypatch.setattr(lab.sys, "platform", platform)
    made, *torch, first, second, opened = asked(lab)
    assert "venv --clear" in made
    assert len(torch) == (1 if platform == "linux" else 0)
    assert all(f"whl/cpu {TORCH}" in one and "--retries 0" in one for one in torch)
    assert "-r requirements.txt" in first and "whl/cpu" not in first
    assert "--editable ." in second
    for option in ("root_dir=.", "app_settings_dir=.jupyter", "00_start_here.ipynb"):
        assert option in opened
    assert asked(lab) == [opened]  # all is there
    assert asked(lab, "set-up") == []


def test_a_folder_that_is_ready_stays_and_is_brought_up_to_date(lab):
    asked(lab, "set-up")
    mine = lab.FOLDER / "mine"
    mine.touch()
    outdated(lab)
    assert [one.split()[-1] for one in asked(lab, "set-up")] == [
        TORCH,
        "requirements.txt",
        ".",
    ]
    assert mine.exists()


def test_a_folder_that_never_became_ready_or_lost_its_python_is_made_anew(lab):
    lab.FOLDER.mkdir()
    left = lab.FOLDER / "of another Python"
    left.touch()
    assert "venv --clear" in asked(lab, "set-up")[0] and not left.exists()
    lab.PYTHON.unlink()
    assert "venv --clear" in asked(lab, "set-up")[0]


def test_torch_comes_with_cuda_where_it_is_asked_for_and_stays_so(lab, monkeypatch):
    asked(lab, "set-up")
    monkeypatch.setenv("GPU", "1")
    anew = asked(lab, "set-up")
    assert "venv --clear" in anew[0] and not any("whl/cpu" in one for one in anew)
    monkeypatch.delenv("GPU")
    assert asked(lab, "set-up") == []
    outdated(lab)
    again = asked(lab, "set-up")
    assert again and not any("whl/cpu" in one for one in again)


def test_an_index_that_does_not_answer_leaves_torch_to_the_usual_one(lab):
    lab.refused = "whl/cpu"
    assert "-r requirements.txt" in asked(lab, "set-up")[2]
    assert lab.READY.is_file()


def test_what_pip_refuses_is_not_called_ready(lab):
    lab.refused = "requirements.txt"
    with pytest.raises(SystemExit) as end:
        lab.main([])
    assert end.value.code == 3 and "requirements.txt" in lab.ran[-1]
    assert not lab.READY.exists()


def test_an_old_python_is_told_before_anything_is_made(lab, monkeypatch):
    monkeypatch.setattr(lab.sys, "version_info", (3, 9, 6))
    with pytest.raises(SystemExit, match="this is Python 3.9. Get a newer one"):
        lab.main([])
    assert not lab.FOLDER.exists() and not lab.ran


@pytest.fixture
def make(tmp_path):
    """function(*arguments) -> what make prints in a folder that has a blank in its
    name, where ./python only says how it was called."""
    if os.name == "nt" or not shutil.which("make"):
        pytest.skip("Windows has no make")
    folder = tmp_path / "a folder"
    (folder / "my texts").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    with open(folder / "Makefile", "a", encoding="utf-8") as file:
        file.write('show:\n\t@echo "$$MINIGPT_DATA"\n')
    python = folder / "python"
    python.write_text('#!/bin/sh\necho "$@" GPU=$GPU\n', encoding="utf-8")
    python.chmod(0o755)

    def make(*arguments, **told):
        command = ["make", "-s", "PYTHON=./python", *arguments]
        told = {**os.environ, **told}
        done = subprocess.run(
            command, cwd=folder, env=told, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    make.folder = folder
    return make


def test_make_leaves_it_to_lab(make):
    assert make("lab", "GPU=1") == "minigpt/tools/lab.py GPU=1"
    assert make(".venv/ready") == "minigpt/tools/lab.py set-up GPU="


def test_a_folder_of_texts_may_have_a_blank_in_its_name(make):
    texts = str(make.folder / "my texts")
    assert make("show", MINIGPT_DATA="my texts") == texts
    assert make("show", MINIGPT_DATA=texts) == texts
