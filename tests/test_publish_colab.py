"""Exported notebooks run where the project is not: in an empty folder, as on Colab."""

import ast
import io
import json
import os
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from nbclient import NotebookClient

from minigpt.publish import colab, page

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = Path(os.environ.get("MINIGPT_NOTEBOOKS", ROOT / "notebooks"))
PATHS = page.notebook_paths(NOTEBOOKS)
PACKAGE = ROOT / "minigpt"
ON_COLAB = {"torch", "numpy", "matplotlib", "cycler", "IPython", "tqdm"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("colab")
    colab.build(folder, NOTEBOOKS)
    return folder


@pytest.fixture(scope="module")
def elsewhere():
    """Arguments and environment of a Python that does not find the project.

    With -S no .pth file is read, and by such a file an editable install is found;
    the other packages come from where they are, through PYTHONPATH.
    """
    places = [p for p in [*site.getsitepackages(), *sys.path] if "-packages" in p]
    environment = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(places))}
    for name in ("MINIGPT_DATA", "XDG_CACHE_HOME", "HOME", "PATH"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return [sys.executable, "-S"], environment


@pytest.fixture(scope="module")
def without_project(elsewhere, tmp_path_factory):
    """`elsewhere`, once it is certain that minigpt cannot be imported there."""
    arguments, environment = elsewhere
    done = subprocess.run(
        [*arguments, "-c", "import ipykernel, torch, minigpt"],
        cwd=tmp_path_factory.mktemp("nothing"),
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        pytest.skip("minigpt is installed as a copy here, so it cannot be hidden")
    assert "No module named 'minigpt'" in done.stderr, done.stderr
    return elsewhere


@pytest.mark.parametrize("prefix", ["00", "02"])
def test_an_exported_notebook_runs_in_an_empty_folder(
    prefix, exported, without_project, tmp_path, monkeypatch
):
    arguments, environment = without_project
    kernel = ["-m", "ipykernel_launcher", "--log-level=40", "-f", "{connection_file}"]
    spec = {"argv": arguments + kernel, "display_name": "x", "language": "python"}
    page.write(tmp_path / "kernels" / "elsewhere" / "kernel.json", json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    empty = tmp_path / "empty"
    empty.mkdir()
    (path,) = exported.glob(f"{prefix}_*.ipynb")
    notebook = page.read(path)
    NotebookClient(
        notebook,
        kernel_name="elsewhere",
        timeout=300,
        coalesce_streams=True,
        resources={"metadata": {"path": str(empty)}},
    ).execute(env=environment)

    first = notebook.cells[0].outputs[0].text
    assert first.startswith(f"minigpt {colab.minigpt.__version__} (")
    original = page.read(next(p for p in PATHS if p.name.startswith(prefix)))
    for ran, stored in zip(notebook.cells[1:], original.cells):
        if stored.get("outputs") and "tags" not in stored.metadata:
            kinds = [output.output_type for output in stored.outputs]
            shown = [o for o in ran.outputs if o.get("name") != "stderr"]
            assert [output.output_type for output in shown] == kinds, ran.id
    assert list(empty.iterdir()) == []


def test_an_exported_notebook_is_the_original_behind_one_cell(exported):
    for path in PATHS:
        original, copy = page.read(path), page.read(exported / path.name)
        assert copy.cells[1:] == original.cells
        assert copy.metadata == original.metadata
        assert copy.cells[0].metadata.cellView == "form"


def test_the_first_cell_leaves_no_names_behind(exported):
    source = page.read(exported / PATHS[0].name).cells[0].source
    names = [type(node).__name__ for node in ast.parse(source).body]
    assert names == ["FunctionDef", "Expr"]
    assert colab.minigpt.__version__ in source.splitlines()[0]


def test_what_lessons_need_is_carried_and_alike_at_each_build():
    with zipfile.ZipFile(io.BytesIO(colab.packed())) as archive:
        names = set(archive.namelist())
        for path in PACKAGE.rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith("minigpt/publish/"):
                assert name not in names
            else:
                assert archive.read(name) == path.read_bytes()
    assert not any("__pycache__" in name for name in names)
    assert colab.packed() == colab.packed()


def test_package_and_notebooks_need_nothing_that_colab_lacks():
    files = [path for path in colab.carried_files() if path.suffix == ".py"]
    sources = [path.read_text(encoding="utf-8") for path in files]
    for path in PATHS:
        cells = [cell for cell in page.read(path).cells if cell.cell_type == "code"]
        # what is left of the magic's line, by_hand.py, is Python as well
        sources += [cell.source.removeprefix("%%writefile ") for cell in cells]
    for source in sources:
        for node in ast.walk(ast.parse(source, feature_version=(3, 10))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for name in names:
                top = name.split(".")[0]
                known = sys.stdlib_module_names | ON_COLAB | {"minigpt"}
                assert top in known, f"{top} is not on Colab"


@pytest.fixture
def committed(monkeypatch):
    """A repository in which all is committed, as far as colab.py can see."""
    answers = {"rev-parse": "0123456789abcdef0123456789abcdef01234567", "status": ""}
    monkeypatch.setattr(colab, "git", lambda command, *_: answers[command])
    return answers


def test_with_a_repository_there_is_a_badge_and_an_install(committed, tmp_path):
    colab.build(tmp_path, NOTEBOOKS, repo="owner/name")
    for path in PATHS:
        badge, first, *rest = page.read(tmp_path / path.name).cells
        here = f"https://colab.research.google.com/github/owner/name/blob/colab/{path.name}"
        assert badge.source.endswith(f"({here})")
        wanted = f'"git+https://github.com/owner/name@{committed["rev-parse"]}"'
        assert f"%pip install --quiet --no-deps {wanted}" in first.source
        original = page.read(path)
        assert len(rest) == len(original.cells)
        for new, old in zip(rest, original.cells):
            assert new.cell_type == "markdown" or new == old
        text = "\n".join(cell.source for cell in rest)
        assert "](0" not in text  # links between notebooks lead to Colab, too


def test_the_exported_folder_may_lie_elsewhere_in_the_repository(committed, tmp_path):
    colab.build(tmp_path, NOTEBOOKS, repo="owner/name", at="main/colab")
    badge = page.read(tmp_path / PATHS[0].name).cells[0].source
    assert f"owner/name/blob/main/colab/{PATHS[0].name}" in badge


def test_a_commit_that_lacks_the_present_package_is_refused(committed, tmp_path):
    committed["status"] = " M minigpt/data.py"
    with pytest.raises(ValueError, match="Commit and push"):
        colab.build(tmp_path, NOTEBOOKS, repo="owner/name")
    committed["rev-parse"] = None
    with pytest.raises(ValueError, match="no git repository"):
        colab.build(tmp_path, NOTEBOOKS, repo="owner/name")


@pytest.mark.parametrize("repo", ["name", "https://github.com/owner/name", "a/b c"])
def test_a_repository_is_given_as_owner_and_name(repo, committed, tmp_path):
    with pytest.raises(ValueError, match="owner/name"):
        colab.build(tmp_path, NOTEBOOKS, repo=repo)
