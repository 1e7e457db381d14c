"""How nbgrader hands out and grades the exercises: `make nbgrader` puts this into the
course folder. nbgrader reads the rest in the metadata of the notebooks' cells."""

from pathlib import Path

import nbformat
from nbconvert.preprocessors import TagRemovePreprocessor
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearOutput,
    ComputeChecksums,
    Execute,
    IgnorePattern,
    LimitOutput,
    LockCells,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
    SaveCells,
)
from nbgrader.utils import is_grade, is_solution

RELEASE = Path(__file__).resolve().parent / "release"


class IntoTheRelease(NbGraderPreprocessor):
    """Grade the notebook that was handed out, with the learner's answers in it.

    Then it doesn't matter which cells a learner deleted, changed, copied, or moved.
    Cells of their own stay behind the cell that they follow.
    """

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        path = RELEASE / about["assignment"] / f"{about['notebook']}.ipynb"
        sheet = nbformat.read(path, as_version=4)
        names = {cell.id for cell in sheet.cells}
        found, own, last = {}, {}, None
        for cell in nb.cells:
            name = cell.metadata.pop("nbgrader", {}).get("grade_id", cell.id)
            if name in names and name not in found:
                found[name], last = cell.source, name
            else:
                own.setdefault(last, []).append(cell)
        nb.cells = own.get(None, [])
        for cell in sheet.cells:
            if is_solution(cell):
                cell.source = found.get(cell.id, "")
            nb.cells += [cell, *own.get(cell.id, [])]
        return nb, resources


class Points(NbGraderPreprocessor):
    """A check shows the share that is right; a cell that shows none gets no points.

    nbgrader alone would give all points for that.
    """

    def preprocess_cell(self, cell, resources, cell_index):
        if is_grade(cell):
            shown = [o for o in cell.outputs if o.output_type == "execute_result"]
            try:
                share = float(shown[0].data["text/plain"])
            except (IndexError, KeyError, ValueError):
                share = 0.0
            text = {"text/plain": f"{share * cell.metadata.nbgrader.points:.2f}"}
            result = nbformat.v4.new_output("execute_result", text)
            cell.outputs = [o for o in cell.outputs if o not in shown] + [result]
        return cell, resources


c = get_config()  # noqa: F821 (nbgrader provides it)
c.CourseDirectory.course_id = "minigpt"
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {"answer-key"}
c.GenerateAssignment.preprocessors = [  # ClearSolutions would take the skeletons, too
    TagRemovePreprocessor,
    LockCells,
    ClearOutput,
    CheckCellMetadata,
    ComputeChecksums,
    SaveCells,
    CheckCellMetadata,
]
c.Autograde.sanitize_preprocessors = [
    ClearOutput,
    IntoTheRelease,
    OverwriteKernelspec,
    OverwriteCells,
    CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    Execute,
    IgnorePattern,
    Points,
    LimitOutput,
    SaveAutoGrades,
    CheckCellMetadata,
]
c.Execute.timeout = 60  # seconds for one cell
c.Execute.iopub_timeout = 60  # nbgrader's 4 are too few for a busy machine
c.IgnorePattern.enabled = True
c.IgnorePattern.pattern = ".*"  # a line on stderr is no failure
