"""A displayed solution runs where it stands: with its own notebook's names alone."""

import re

import nbformat
import pytest
from exercises import solution_in
from syllabus import NOTEBOOKS

PATHS = sorted((NOTEBOOKS / "exercises").glob("*.ipynb"))
ANSWER = re.compile(r"# (?:Exercise|Bug hunt) \d\d\w?\.\d+\n")


def with_solutions(notebook):
    """Put each displayed solution in place of its answer cell; the checks' cells."""
    checks = []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and ANSWER.match(cell.source):
            check, *after = notebook.cells[place + 1 :]
            cell.source = solution_in(after)
            checks.append(check)
    return checks


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_displayed_solution_runs_in_its_own_notebook(
    path, shell, monkeypatch, capsys
):
    notebook = nbformat.read(path, as_version=4)
    checks = with_solutions(notebook)
    monkeypatch.chdir(path.parent)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            capsys.readouterr()
            shell.run_cell(cell.source).raise_error()
            said = capsys.readouterr().out
            assert cell not in checks or said.startswith("✓"), said
