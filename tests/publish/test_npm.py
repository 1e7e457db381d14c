"""reveal.js and MathJax come from npm's lock file: once, whole, or with a remedy."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from minigpt.course.publish import npm


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder; nothing was installed yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    npm.modules.cache_clear()
    yield tmp_path / "minigpt" / "npm"
    npm.modules.cache_clear()


@pytest.fixture
def fake_npm(monkeypatch):
    """Stands in for npm: installs half and fails, if told so, or all."""

    def run(command, cwd):
        run.calls += 1
        for name in ["reveal.js"] if run.fails else ["reveal.js", "mathjax"]:
            folder = Path(cwd) / "node_modules" / name
            folder.mkdir(parents=True)
            (folder / "file.js").write_bytes(b"script")
        return CompletedProcess(command, run.fails)

    run.calls, run.fails = 0, False
    monkeypatch.setattr(npm, "program", lambda: "npm")
    monkeypatch.setattr(npm.subprocess, "run", run)
    return run


def test_packages_are_installed_once_and_then_need_no_npm(cache, fake_npm, monkeypatch):
    assert npm.read("mathjax", "file.js") == b"script"
    npm.modules.cache_clear()  # another build, another day
    monkeypatch.setattr(npm, "program", lambda: None)
    assert npm.read("reveal.js", "file.js") == b"script"
    assert fake_npm.calls == 1


def test_a_half_done_install_leaves_nothing(cache, fake_npm):
    fake_npm.fails = True
    with pytest.raises(FileNotFoundError, match="connect to the network"):
        npm.modules()
    assert list(cache.iterdir()) == []
    fake_npm.fails = False
    assert npm.read("mathjax", "file.js") == b"script"


def test_without_npm_the_message_says_what_to_type(cache, monkeypatch):
    monkeypatch.setattr(npm, "program", lambda: None)
    with pytest.raises(FileNotFoundError, match=r'pip install -e "\.\[publish\]"'):
        npm.modules()
