"""Exported notebooks run where the project is not: in an empty folder, as on Colab."""

import ast
import io
import json
import os
import site
import subprocess
import sys
import zipfile

import pytest
from nbclient import NotebookClient
from syllabus import ROOT

from minigpt.course.publish import colab, shared

PATHS = shared.notebook_paths()
PACKAGE = ROOT / "minigpt"
ON_COLAB = set("torch numpy filelock matplotlib cycler IPython tqdm".split())
ON_COLAB |= {"transformers"}  # 14 compares with it where it is


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("colab")
    colab.build_colab(folder)
    return folder


@pytest.fixture(scope="module")
def elsewhere():
    """Arguments and environment of a Python that does not find the project.

    With -S no .pth file is read, and by such a file an editable install is found;
    the other packages come from where they are, through PYTHONPATH.
    """
    places = [p for p in [*site.getsitepackages(), *sys.path] if "-packages" in p]
    environment = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(places))}
    names = "MINIGPT_DATA XDG_CACHE_HOME HOME PATH"
    for name in f"{names} USERPROFILE SYSTEMROOT TEMP".split():  # the last: Windows'
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


@pytest.mark.weekly
@pytest.mark.parametrize("prefix", ["00", "02"])
def test_an_exported_notebook_runs_in_an_empty_folder(
    prefix, exported, without_project, tmp_path, monkeypatch
):
    arguments, environment = without_project
    kernel = ["-m", "ipykernel_launcher", "--log-level=40", "-f", "{connection_file}"]
    spec = {"argv": arguments + kernel, "display_name": "x", "language": "python"}
    shared.write(tmp_path / "kernels" / "elsewhere" / "kernel.json", json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    empty = tmp_path / "empty"
    empty.mkdir()
    (path,) = exported.glob(f"{prefix}_*.ipynb")
    notebook = shared.read(path)
    NotebookClient(
        notebook,
        kernel_name="elsewhere",
        timeout=300,
        coalesce_streams=True,
        resources={"metadata": {"path": str(empty)}},
    ).execute(env=environment)

    first = notebook.cells[0].outputs[0].text
    assert first.startswith(f"minigpt {colab.minigpt.__version__} (")
    original = shared.read(next(p for p in PATHS if p.name.startswith(prefix)))
    for ran, stored in zip(notebook.cells[1:], original.cells):
        if stored.get("outputs") and "tags" not in stored.metadata:
            kinds = [output.output_type for output in stored.outputs]
            shown = [o for o in ran.outputs if o.get("name") != "stderr"]
            assert [output.output_type for output in shown] == kinds, ran.id
    assert list(empty.iterdir()) == []


def test_an_exported_notebook_is_the_original_behind_one_cell(exported):
    for path in shared.every_path():
        copy = shared.read(exported / path.relative_to(shared.NOTEBOOKS))
        original = shared.read(path)
        for cell in original.cells:
            cell.source = shared.to_files(cell.source)  # which it does not carry
        assert copy.cells[1:] == original.cells
        assert copy.metadata == original.metadata
        assert copy.cells[0].metadata.cellView == "form"


@pytest.fixture
def set_up(exported, without_project, tmp_path):
    """function(code) -> what a fresh Python prints that runs it; SET_UP is the cell."""
    source = shared.read(exported / PATHS[0].name).cells[0].source
    shared.write(tmp_path / "set_up.py", source)
    arguments, environment = without_project

    def run(code):
        code = f"SET_UP = open('set_up.py', encoding='utf-8').read()\n{code}"
        done = subprocess.run(
            [*arguments, "-c", code],
            cwd=tmp_path,
            env={**environment, "TMPDIR": str(tmp_path), "TEMP": str(tmp_path)},
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_the_first_cell_may_run_again_and_keeps_what_is_loaded(set_up, tmp_path):
    said = set_up(
        "exec(SET_UP)\nimport sys, minigpt.gpt\nbefore = sys.path[:], minigpt.gpt.GPT\n"
        "exec(SET_UP)\nimport minigpt.gpt\n"
        "print((sys.path, minigpt.gpt.GPT) == before)"
    )
    assert said[0] == said[1] and "is ready." in said[0]
    assert said[2] == "True"
    assert len(list(tmp_path.glob("minigpt-*"))) == 1
    assert set_up("exec(SET_UP)") == said[:1]  # after a restart of the runtime


def test_the_first_cell_of_another_version_takes_the_place_of_the_first(set_up):
    said = set_up(
        "import re\nOTHER = re.sub('minigpt-[0-9a-f]{12}-', 'minigpt-0-', SET_UP)\n"
        "for cell in (SET_UP, OTHER, SET_UP):\n"
        "    exec(cell)\n    import minigpt.gpt\n"
        "    print(minigpt.gpt.__file__.split('minigpt-')[1][:2] == '0-')"
    )
    assert said[1::2] == ["False", "True", "False"]


def test_the_first_cell_leaves_no_names_behind(exported):
    source = shared.read(exported / PATHS[0].name).cells[0].source
    names = [type(node).__name__ for node in ast.parse(source).body]
    assert names == ["FunctionDef", "Expr"]
    assert colab.minigpt.__version__ in source.splitlines()[0]


def test_what_lessons_need_is_carried_and_alike_at_each_build():
    with zipfile.ZipFile(io.BytesIO(colab.packed())) as archive:
        names = set(archive.namelist())
        for path in PACKAGE.rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith("minigpt/course/publish/"):
                assert name not in names
            else:
                assert archive.read(name) == path.read_bytes()
    assert not any("__pycache__" in name for name in names)
    assert colab.packed() == colab.packed()


def test_package_and_notebooks_need_nothing_that_colab_lacks():
    files = [path for path in colab.carried_files() if path.suffix == ".py"]
    sources = [path.read_text(encoding="utf-8") for path in files]
    for path in PATHS:
        cells = [cell for cell in shared.read(path).cells if cell.cell_type == "code"]
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


def test_with_a_repository_there_is_a_badge_and_links_lead_to_colab(tmp_path, exported):
    colab.build_colab(tmp_path, repo="owner/name")
    for path in PATHS:
        badge, first, *rest = shared.read(tmp_path / path.name).cells
        here = f"https://colab.research.google.com/github/owner/name/blob/colab/{path.name}"
        assert badge.source.endswith(f"({here})")
        carried, *original = shared.read(exported / path.name).cells
        assert first == carried and len(rest) == len(original)
        for new, old in zip(rest, original):
            assert new.cell_type == "markdown" or new == old
        text = "\n".join(cell.source for cell in rest)
        assert "](0" not in text  # links between notebooks lead to Colab, too


@pytest.mark.parametrize("repo", ["name", "https://github.com/owner/name", "a/b c"])
def test_a_repository_is_given_as_owner_and_name(repo, tmp_path):
    with pytest.raises(ValueError, match="owner/name"):
        colab.build_colab(tmp_path, repo=repo)
