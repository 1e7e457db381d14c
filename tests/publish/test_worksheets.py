"""Work sheets ask and do not tell; the solutions are in the teacher's file."""

import re

import nbformat
import pytest

from minigpt.course.publish import shared, worksheets

PATHS = shared.notebook_paths(shelf="exercises")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worksheets")
    worksheets.build_worksheets(folder)
    return folder


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def three(request, folder):
    """A notebook, its work sheet and its solutions."""
    name = request.param.name
    paths = request.param, folder / name, folder / "solutions" / name
    return [shared.read(path) for path in paths]


def folds(notebook):
    return [m["title"] for m in worksheets.FOLD.finditer(shared.markdown(notebook))]


def test_only_hints_stay_on_the_work_sheet(three):
    original, sheet, _ = three
    hints = [title for title in folds(original) if title.startswith("Hint")]
    assert folds(sheet) == hints
    text = shared.markdown(sheet)
    assert "</details>" not in worksheets.FOLD.sub("", text)


def test_all_else_is_as_in_the_notebook(three):
    original, sheet, _ = three
    code = [cell for cell in original.cells if cell.cell_type == "code"]
    assert [cell for cell in sheet.cells if cell.cell_type == "code"] == code
    kept = worksheets.FOLD.sub(worksheets.hint_or_nothing, shared.markdown(original))
    kept = shared.handed_out(kept, beside={path.stem for path in PATHS})
    assert shared.markdown(sheet).split() == kept.split()


def test_what_is_missing_is_in_the_solutions(three):
    original, sheet, solved = three
    text = shared.markdown(solved)
    for fold in worksheets.FOLD.finditer(shared.markdown(original)):
        if not fold["title"].startswith("Hint"):
            assert fold["text"].strip() in text
            assert fold["text"].strip() not in shared.markdown(sheet)
    assert "<details" not in text


def test_solutions_stand_under_the_heading_of_their_exercise(three):
    original, _, solved = three
    exercises = re.findall(
        r"^#+ ((?:Exercise|Bug hunt) \d\d\.\d.*)", shared.markdown(original), re.M
    )
    headings = re.findall(r"^## (.*)", shared.markdown(solved), re.M)
    assert [heading for heading in headings if heading in exercises] == exercises


@pytest.mark.parametrize(
    "source",
    [
        "<details><summary>Solution</summary>\n\nnever closed",
        "<details><summary>Hint</summary><details><summary>Solution</summary>"
        "</details></details>",
    ],
)
def test_a_broken_fold_is_refused_before_it_gives_a_solution_away(source, tmp_path):
    cells = [nbformat.v4.new_markdown_cell(text) for text in ("# Title", source)]
    (tmp_path / "exercises").mkdir()
    path = tmp_path / "exercises" / "00_x.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    with pytest.raises(ValueError, match=f"00_x.ipynb, cell {cells[1].id}"):
        worksheets.build_worksheets(tmp_path / "out", tmp_path)
