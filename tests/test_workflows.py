"""GitHub runs what .ci/run and the README say, on all that they promise."""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")  # comes with Jupyter

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
NAMES = sorted(path.name for path in FOLDER.glob("*.yml"))
CPU = "https://download.pytorch.org/whl/cpu"


def workflow(name):
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def jobs():
    """(workflow and job, the job) of all workflows."""
    return [
        (f"{name} {job}", description)
        for name in NAMES
        for job, description in workflow(name)["jobs"].items()
    ]


def lines_of(job):
    """All lines that a job types, in order."""
    return "\n".join(step.get("run", "") for step in job["steps"]).split("\n")


def without_make():
    """The README's commands for those without make, but the one that opens the lab."""
    block = re.search(r"```\n(python -m venv .*?)\n```", README, flags=re.S)[1]
    return [line for line in block.splitlines() if "jupyter lab" not in line]


def for_notebooks():
    """What the README adds to the command of the unit tests, for the notebooks."""
    prose = README[README.index("The last line runs the unit tests") :]
    return " ".join(re.search(r"`([^`]*--nbval[^`]*)`", prose)[1].split())


def pin(text):
    return re.search(r"^torch==([\d.]+)$", text, flags=re.M)[1]


def test_linux_runs_the_script_of_continuous_integration_itself():
    for name in ("tests.yml linux", "weekly.yml nightly"):
        typed = [line for line in lines_of(dict(jobs())[name]) if line]
        assert typed[-1] == ".ci/run", name
        assert typed[0] == "make .venv/ready"  # what .ci/run sets up, with a torch
        assert not any("pytest" in line or "ruff" in line for line in typed)


def test_windows_types_what_the_readme_says():
    said = without_make()
    assert said[-1].endswith("-m pytest")
    notebooks = f"{said[-1]} {for_notebooks()}"
    typed = [line for line in lines_of(dict(jobs())["tests.yml windows"]) if line]
    assert typed == [*said, notebooks]


def test_macos_types_the_same_in_its_own_way():
    windows, macos = (
        [line for line in lines_of(dict(jobs())[f"tests.yml {job}"]) if line]
        for job in ("windows", "macos")
    )
    own = [line.replace(".venv\\Scripts\\", ".venv/bin/") for line in windows]
    assert macos == [re.sub("^python ", "python3 ", line) for line in own]
    assert "(elsewhere: `python3`, then `.venv/bin/python`)" in README


def test_make_compares_notebooks_as_the_readme_does():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    command = re.search(r"^test:.*\n.*pytest.*notebooks.*", makefile, re.M)[0].split()
    options = for_notebooks().split()
    assert options[-1] == "notebooks"
    for option in options[:-1]:
        assert option in command, option


def test_the_oldest_and_the_newest_supported_torch_and_python_are_tested():
    matrix = dict(jobs())["tests.yml linux"]["strategy"]["matrix"]["include"]
    oldest = re.search(r'"torch>=([\d.]+)"', PROJECT)[1]
    newest = pin((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    tested = [re.sub(r"\.0$", "", each["torch"]) for each in matrix]
    assert tested == [re.sub(r"\.0$", "", version) for version in (oldest, newest)]
    assert oldest != newest
    python = re.search(r'requires-python = ">=([\d.]+)"', PROJECT)[1]
    assert python in [each["python"] for each in matrix]
    assert f"Python {python} or newer" in README


def test_each_linux_job_takes_the_torch_it_names_and_never_the_one_with_cuda():
    for name in ("tests.yml linux", "weekly.yml nightly"):
        job = dict(jobs())[name]
        assert job["env"] == {"PIP_EXTRA_INDEX_URL": CPU}, name
        (install,) = [line for line in lines_of(job) if "pip install" in line]
        assert install.startswith(".venv/bin/python -m pip install")
        if name.startswith("tests"):
            assert "torch==${{ matrix.torch }}" in install
        else:
            assert "--pre" in install and CPU.replace("/cpu", "/nightly/cpu") in install


def test_pushes_never_wait_for_links_or_for_tomorrows_torch():
    # yaml reads the key `on` as True
    assert set(workflow("tests.yml")[True]) >= {"push", "pull_request"}
    assert set(workflow("weekly.yml")[True]) == {"schedule", "workflow_dispatch"}
    assert set(workflow("weekly.yml")["jobs"]) == {"kills", "nightly", "links"}


def test_links_are_looked_for_in_readme_guide_and_all_notebooks():
    links = workflow("weekly.yml")["jobs"]["links"]
    (check,) = [s for s in links["steps"] if s.get("uses", "").startswith("lychee")]
    words = check["with"]["args"].split()
    assert {"README.md", "minigpt/course/publish/README.md", "notebooks/*.md"} <= set(
        words
    )
    assert check["with"]["fail"] is True
    convert = next(line for line in lines_of(links) if "nbconvert --to" in line)
    assert "--to markdown" in convert and convert.endswith(" notebooks/*.ipynb")


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_pinned_and_may_only_read(name):
    assert workflow(name)["permissions"] == {"contents": "read"}
    text = (FOLDER / name).read_text(encoding="utf-8")
    uses = re.findall(r"uses: (.*)", text)
    assert uses
    for action in uses:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    pins = dict(re.findall(r"uses: ([\w/-]+)@(\w+)", text))
    for other in NAMES:
        theirs = (FOLDER / other).read_text(encoding="utf-8")
        for action, commit in re.findall(r"uses: ([\w/-]+)@(\w+)", theirs):
            assert pins.get(action, commit) == commit, f"{action} in {other}"


@pytest.mark.parametrize(("name", "job"), jobs(), ids=[name for name, _ in jobs()])
def test_no_job_runs_for_ever_or_keeps_a_key(name, job):
    assert job["timeout-minutes"] <= 120
    checkouts = [s for s in job["steps"] if "actions/checkout" in s.get("uses", "")]
    assert checkouts
    for step in checkouts:
        assert step["with"]["persist-credentials"] is False
    assert "secrets." not in str(job)


def test_all_files_that_they_name_are_there():
    named = set()
    for name in NAMES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        named |= set(re.findall(r"[\w./-]+\.(?:txt|json|md)\b", text))
        named |= set(re.findall(r"(?<=run: )\.ci/\w+", text))
    named = {path for path in named if not path.startswith("/.cache")}
    assert {"requirements.txt", "minigpt/course/publish/package-lock.json"} <= named
    assert ".ci/run" in named
    for path in named:
        assert (ROOT / path).is_file(), path
