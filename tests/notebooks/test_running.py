"""`make notebooks` executes, cleans, and leaves a notebook alone that fails."""

import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from syllabus import ROOT

KEPT = {
    "tags": ["within-0.1"],
    "slideshow": {"slide_type": "slide"},
    "nbgrader": {"grade": False},
    "jupyter": {"source_hidden": True},
}
PRINTS = "import sys\nprint('a')\nsys.stdout.flush()\nprint('b')"


def run(*notebooks):
    command = "-m nbconvert --to notebook --inplace --config .jupyter/run.py".split()
    return subprocess.run(
        [sys.executable, *command, *notebooks],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        timeout=120,
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Two notebooks after one run, what it said, and the second one before it."""
    folder = tmp_path_factory.mktemp("ran")
    good, bad = folder / "good.ipynb", folder / "bad.ipynb"
    cell = new_code_cell(PRINTS, id="prints", metadata={**KEPT, "collapsed": True})
    cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": True}
    made = new_notebook(cells=[cell], metadata={"vscode": {}})
    nbformat.write(made, good)
    cells = [new_code_cell("one = 1"), new_code_cell("one / 0")]
    nbformat.write(new_notebook(cells=cells), bad)
    before = bad.read_bytes()
    return good, bad, run(good, bad), before


def test_a_notebook_is_executed_and_keeps_only_the_metadata_that_we_use(ran):
    path, _, done, _ = ran
    (cell,) = (notebook := nbformat.read(path, as_version=4)).cells
    assert (cell.id, cell.execution_count, cell.metadata) == ("prints", 1, KEPT)
    assert [output.text for output in cell.outputs] == ["a\nb\n"]
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}


def test_a_notebook_with_an_error_stays_as_it_was_and_is_named(ran):
    _, path, done, before = ran
    assert done.returncode == 1
    assert str(path) in done.stderr and "one / 0" in done.stderr
    assert path.read_bytes() == before
