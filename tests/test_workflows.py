"""GitHub tests what the project promises, with actions that may do no harm."""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")  # comes with Jupyter

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
NAMES = sorted(path.name for path in FOLDER.glob("*.yml"))


def jobs():
    """{workflow and job: the job} of all workflows."""
    return {
        f"{name} {job}": description
        for name in NAMES
        for job, description in yaml.safe_load((FOLDER / name).read_text("utf-8"))[
            "jobs"
        ].items()
    }


def test_the_oldest_and_the_newest_supported_torch_and_python_are_tested():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pinned = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    matrix = jobs()["tests.yml linux"]["strategy"]["matrix"]["include"]
    oldest = re.search(r'"torch>=([\d.]+)"', project)[1]
    newest = re.search(r"^torch==([\d.]+)$", pinned, flags=re.M)[1]
    tested = [re.sub(r"\.0$", "", each["torch"]) for each in matrix]
    assert tested == [re.sub(r"\.0$", "", version) for version in (oldest, newest)]
    python = re.search(r'requires-python = ">=([\d.]+)"', project)[1]
    assert python in [each["python"] for each in matrix]


def test_actions_are_pinned_and_may_only_read_and_end():
    pins = {}
    for name in NAMES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert "permissions:\n  contents: read\n" in text and "secrets." not in text
        for action in re.findall(r"uses: (.*)", text):
            found = re.fullmatch(r"([\w/-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+", action)
            assert found, action
            assert pins.setdefault(found[1], found[2]) == found[2], action
    for job in jobs().values():
        assert job["timeout-minutes"] <= 120
