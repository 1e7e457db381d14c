"""GitHub runs what .ci/run and the README say, on all that they promise."""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")  # comes with Jupyter

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
README = (ROOT / "README.md").read_text(encoding="utf-8")
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


def lines_of(job):
    """All lines that a job types, in order."""
    typed = "\n".join(step.get("run", "") for step in job["steps"])
    return [line for line in typed.split("\n") if line]


def without_make():
    """The README's commands for those without make, but the one that opens the lab."""
    block = re.search(r"```\n(python -m venv .*?)\n```", README, flags=re.S)[1]
    return [line for line in block.splitlines() if "jupyter lab" not in line]


def for_notebooks():
    """What the README adds to the command of the unit tests, for the notebooks."""
    prose = README[README.index("The last line runs the unit tests") :]
    return " ".join(re.search(r"`([^`]*--nbval[^`]*)`", prose)[1].split())


def test_linux_runs_the_script_of_continuous_integration_itself():
    for name in ("tests.yml linux", "weekly.yml nightly"):
        typed = lines_of(jobs()[name])
        assert typed[-1] == ".ci/run", name
        assert typed[0] == "make .venv/ready"  # what .ci/run sets up, with a torch


def test_windows_and_macos_type_what_the_readme_says():
    said = without_make()
    said.append(f"{said[-1]} {for_notebooks()}")
    assert lines_of(jobs()["tests.yml windows"]) == said
    own = [line.replace(".venv\\Scripts\\", ".venv/bin/") for line in said]
    own = [re.sub("^python ", "python3 ", line) for line in own]
    assert lines_of(jobs()["tests.yml macos"]) == own


def test_make_compares_notebooks_as_the_readme_does():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    command = re.search(r"^test:.*\n.*pytest.*notebooks.*", makefile, re.M)[0].split()
    assert set(for_notebooks().split()) <= set(command)


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


def test_all_files_that_they_name_are_there():
    named = set()
    for name in NAMES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        named |= set(re.findall(r"[\w./-]+\.(?:txt|json|md)\b", text))
    named = {path for path in named if not path.startswith("/.cache")}
    assert {"requirements.txt", "minigpt/course/publish/package-lock.json"} <= named
    for path in named:
        assert (ROOT / path).is_file(), path
