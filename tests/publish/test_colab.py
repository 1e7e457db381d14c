"""Notebooks for Colab bring the package along, into an empty folder; all else in them
is as it was."""

import ast
import importlib.util
import json
import os
import shutil
import site
import subprocess
import sys

import nbformat
import pytest
from syllabus import ROOT

spec = importlib.util.spec_from_file_location("colab", ROOT / ".jupyter" / "colab.py")
colab = importlib.util.module_from_spec(spec)
spec.loader.exec_module(colab)

NOTEBOOKS = ROOT / "notebooks"
ON_COLAB = set("torch numpy filelock matplotlib cycler IPython tqdm".split())
ON_COLAB |= {"transformers"}  # 14 compares with it where it is
ON_COLAB |= {"ipykernel", "jupyter_client"}  # which run its notebooks
ON_COLAB |= {"stack_data"}  # a check's message does without, where it is not


def all_of(number):
    """The paths of the lesson, its evidence, its exercises."""
    paths = NOTEBOOKS.rglob(f"{number}*.ipynb")
    return [path for path in paths if path.parent.name != "lectures"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder with what Colab gets of lesson 02."""
    folder = tmp_path_factory.mktemp("colab")
    for path in all_of("02"):
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    colab.build(folder / "out", None, folder / "notebooks")
    return folder / "out"


@pytest.fixture
def elsewhere(tmp_path):
    """function(code) -> what a Python prints that runs it where the project is not.

    With -S no .pth file is read, and by such a file an editable install is found;
    the other packages come from where they are, through PYTHONPATH.
    """
    places = [p for p in [*site.getsitepackages(), *sys.path] if "-packages" in p]
    told = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(places))}

    def run(code):
        (tmp_path / "cells.py").write_text(code, encoding="utf-8")
        command = [sys.executable, "-S", "cells.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env=told, capture_output=True, encoding="utf-8"
        )
        return done.stdout + done.stderr

    if "No module named 'minigpt'" not in run("import minigpt"):
        pytest.skip("minigpt is installed as a copy here, so it cannot be hidden")
    return run


def cells_of_02(exported):
    notebook = nbformat.read(exported / "02_averaging.ipynb", as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def test_the_first_cell_brings_the_package_and_may_run_again(
    exported, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        exec(cells_of_02(exported)[0], {})
    assert capsys.readouterr().out == "minigpt is ready.\n" * 2
    for path in (ROOT / "minigpt").rglob("*.*"):
        if path.suffix == ".tmp" or "__pycache__" in path.parts:
            continue
        assert (tmp_path / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


@pytest.mark.weekly
def test_a_lesson_begins_where_the_project_is_not(exported, elsewhere):
    first, *cells = cells_of_02(exported)
    said = elsewhere("\n".join([first, first, cells[0], "print(len(text) > 1000)"]))
    assert said.splitlines()[:2] == ["minigpt is ready."] * 2
    assert said.splitlines()[-1] == "True", said


def test_an_exported_notebook_is_the_original_behind_one_cell(exported):
    for path in all_of("02"):
        copy = nbformat.read(exported / path.relative_to(NOTEBOOKS), as_version=4)
        nbformat.validate(copy)
        original = nbformat.read(path, as_version=4)
        first, *rest = copy.cells
        assert first.metadata.cellView == "form"
        assert [c.id for c in rest] == [c.id for c in original.cells]
        for new, old in zip(rest, original.cells):
            assert new == old or new.cell_type == "markdown"


def test_without_an_address_no_link_leads_to_another_notebook():
    for path in all_of("[0-9]"):
        place = path.relative_to(ROOT).as_posix()
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                text = colab.led_on(cell.source, place, None)
                assert "](" not in text or ".ipynb)" not in text


FOREIGN = {  # as Colab saves it: no ids, another kernel; a raw cell, a pasted picture
    "nbformat": 4,
    "nbformat_minor": 0,
    "metadata": {"kernelspec": {"name": "colab", "display_name": "Colab"}},
    "cells": [
        {"cell_type": "raw", "metadata": {}, "source": "as it is"},
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": ["# Mine\n", "![](attachment:a.png)"],
            "attachments": {"a.png": {"image/png": "aGVsbG8="}},
        },
        {
            "cell_type": "code",
            "metadata": {"id": "Xy"},
            "source": "print(1)",
            "outputs": [],
            "execution_count": None,
        },
    ],
}


def test_a_notebook_that_colab_saved_goes_out_whole(tmp_path):
    (tmp_path / "notebooks").mkdir()
    path = tmp_path / "notebooks" / "01_mine.ipynb"
    path.write_text(json.dumps(FOREIGN), encoding="utf-8")
    colab.build(tmp_path / "out", None, tmp_path / "notebooks")
    copy = nbformat.read(tmp_path / "out" / "01_mine.ipynb", as_version=4)
    nbformat.validate(copy)
    assert [c.cell_type for c in copy.cells] == ["code", "raw", "markdown", "code"]
    assert copy.cells[2].attachments == FOREIGN["cells"][1]["attachments"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"nbformat": 4}'])
def test_what_is_no_notebook_is_named_in_one_sentence(tmp_path, text):
    path = tmp_path / "01_mine.ipynb"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="01_mine.ipynb can't be read as a notebook"):
        colab.read(path)


def test_package_and_notebooks_need_nothing_that_colab_lacks():
    files = (ROOT / "minigpt").rglob("*.py")
    sources = [
        path.read_text(encoding="utf-8")
        for path in files
        if path.name != "doctor.py"  # which asks whether Jupyter is there
    ]
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        # what is left of the magic's line, by_hand.py, is Python as well
        sources += [
            cell.source.removeprefix("%%writefile ")
            for cell in cells
            if cell.cell_type == "code"
        ]
    known = sys.stdlib_module_names | ON_COLAB | {"minigpt"}
    for source in sources:
        for node in ast.walk(ast.parse(source, feature_version=(3, 10))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for name in names:
                assert name.split(".")[0] in known, f"{name} is not on Colab"


def test_links_lead_to_colab_and_github_once_there_is_an_address():
    text = "[02](../02_averaging.ipynb#One), [how](../../minigpt/course/SPEED.md#a)"
    text += ", [site](https://example.org/x.md), `layers[0](x)` and ![a](a.md)"
    place = "notebooks/exercises/02_averaging_exercises.ipynb"
    named = colab.led_on(text, place, None)
    assert named.startswith(
        "02 (`notebooks/02_averaging.ipynb`), how (`minigpt/course/SPEED.md`), [site]("
    )
    led = colab.led_on(text, place, "owner/name")
    github = "https://github.com/owner/name/blob/HEAD/minigpt/course/SPEED.md#a"
    there = "colab.research.google.com/github/owner/name/blob/colab/02_averaging.ipynb"
    assert led.startswith(f"[02](https://{there}), [how]({github}), [site](")
    assert named.endswith(text[-20:]) and led.endswith(text[-20:])


def test_an_address_is_owner_and_name(monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/name")
    assert colab.address() == "owner/name"
    monkeypatch.setenv("GITHUB_REPOSITORY", "https://github.com/owner/name")
    with pytest.raises(SystemExit, match="give it as owner/name"):
        colab.address()
