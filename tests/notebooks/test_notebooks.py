"""Every notebook is well formed; that it runs is checked by nbval."""

import ast
import functools
import html
import re
import warnings

import nbformat
import pytest
from syllabus import NOTEBOOKS

PATHS = sorted(NOTEBOOKS.glob("*.ipynb")) + sorted(NOTEBOOKS.glob("*/*.ipynb"))
MAIN = sorted(NOTEBOOKS.glob("*.ipynb"))
ANSWER = re.compile(r"# ((?:Exercise|Bug hunt) \d\d\.\d+)\n")
TAGS = re.compile(
    r"nbval-[a-z-]+|raises-exception|tiny-shakespeare|transformers|within-[\d.]+%?"
    r"|hide-input|remove-input|answer-key|second-lecture|finding-\d(?:-\d)?|result-only"
)
METADATA = {"tags", "slideshow", "nbgrader", "jupyter"}  # .jupyter/run.py keeps these


def name_of(path):
    return str(path.relative_to(NOTEBOOKS).with_suffix(""))


@functools.cache  # no test changes what it reads
def read(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
        nbformat.validate(notebook)
    return notebook


@pytest.fixture(params=PATHS, ids=name_of)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return read(path)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def markdown(notebook):
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return "\n\n".join(cells)


def test_cells_were_executed_in_order_from_one(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_no_stray_metadata_is_stored(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert set(cell.metadata) <= METADATA, cell.id
        for tag in cell.metadata.get("tags", []):
            assert TAGS.fullmatch(tag), f"{cell.id}: {tag}"


def test_no_output_is_an_error_or_noise(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert output.output_type != "error", cell.id
            assert output.get("name") != "stderr", cell.id


def test_headings_form_an_outline(notebook):
    text = re.sub(r"```.*?```", "", markdown(notebook), flags=re.S)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, flags=re.M)]
    assert levels[0] == 1 and levels.count(1) == 1
    for before, after in zip(levels, levels[1:]):
        assert after <= before + 1


def test_code_fits_on_a_slide(path, notebook):
    for cell in code_cells(notebook):
        if cell.metadata.get("slideshow", {}).get("slide_type") == "skip":
            continue  # no slide shows it
        if "remove-input" in cell.metadata.get("tags", []):
            continue  # a lecture hides it
        lines = cell.source.splitlines()
        wide = [line for line in lines if len(line) > 72]
        assert not wide, f"{cell.id} has lines of more than 72 characters: {wide}"
        assert len(lines) <= 30, f"{cell.id} has {len(lines)} lines"


def test_every_figure_has_alternative_text(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                alt = output.metadata["image/png"]["alt"]
                assert len(alt) > 30, cell.id
                assert output.data["text/plain"] == f"Figure: {alt}"
                shown = output.data["text/html"]  # what JupyterLab reads out
                assert f'alt="{html.escape(alt)}"' in shown, cell.id


def test_links_between_notebooks_lead_somewhere(path, notebook):
    links = re.findall(r"\]\(([^)#]+\.ipynb)(#[^)]*)?\)", markdown(notebook))
    assert links or path.parent.name == "lectures"
    for link, anchor in links:
        target = path.parent / link
        assert target.is_file(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)", markdown(read(target)), re.M)
            assert anchor[1:] in [h.replace(" ", "-") for h in headings], anchor


@pytest.mark.parametrize("path", MAIN, ids=name_of)
def test_a_lesson_has_the_parts_that_readers_expect(path):
    text = markdown(read(path))
    parts = ["| Time |"]
    if path.name[:2] != "00":
        parts += ["| You need |", "| Builds |", "| Previous / next |", "Predict"]
        parts += ["<summary>Answers</summary>", "**Further reading"]
        parts += [f"exercises/{path.name[:2]}_"]
    for part in parts:
        assert part in text, part
    place = MAIN.index(path)
    for neighbour in MAIN[max(0, place - 1) : place] + MAIN[place + 1 : place + 2]:
        assert f"({neighbour.name}" in text, f"no link to {neighbour.name}"


def test_an_exercise_is_prompt_answer_check_demonstration_solution(notebook):
    headings = re.findall(
        r"^#+ ((?:Exercise|Bug hunt) .*?):", markdown(notebook), flags=re.M
    )
    answers = [ANSWER.match(cell.source) for cell in code_cells(notebook)]
    assert [answer[1] for answer in answers if answer] == headings
    checked = []
    for place, answer in enumerate(notebook.cells):
        if answer.cell_type != "code" or not (title := ANSWER.match(answer.source)):
            continue
        before, (check, *after) = notebook.cells[:place], notebook.cells[place + 1 :]
        prompt = [cell for cell in before if cell.cell_type == "markdown"][-1]
        assert prompt.source.startswith(f"### {title[1]}: ")
        imported, call = ast.parse(check.source).body  # fresh, whatever an answer made
        assert [name.name for name in imported.names] == [call.value.func.id]
        assert check.id == f"{answer.id}-check"
        if after[0].cell_type == "code":
            assert after.pop(0).id == f"{answer.id}-demo"
        hint, solution = after[:2]
        assert hint.source.startswith("<details><summary>Hint")
        assert solution.source.startswith("<details><summary>Solution")
        assert solution.metadata.tags == ["answer-key"]
        checked.append(check)
    calls = re.compile(r"\bcheck_\w+\(")
    assert [c for c in code_cells(notebook) if calls.search(c.source)] == checked


def test_nbgrader_is_told_what_each_cell_of_code_is_for(notebook):
    """answer: the learner's; check: graded, locked; the rest that is given: locked."""
    answers = {cell.id for cell in notebook.cells if ANSWER.match(cell.source)}
    for cell in notebook.cells:
        answer, _, part = cell.id.rpartition("-")
        about = cell.metadata.get("nbgrader", {"grade_id": cell.id})
        assert about["grade_id"] == cell.id
        assert about.get("solution", False) == (cell.id in answers)
        assert about.get("grade", False) == (answer in answers and part == "check")
        if about.get("grade"):
            assert about["locked"] and about["points"] > 0


def test_nine_in_ten_cells_with_output_are_compared():
    cells = [cell for path in PATHS for cell in code_cells(read(path))]
    tags = [cell.metadata.get("tags", []) for cell in cells if cell.outputs]
    exempt = sum("nbval-ignore-output" in each for each in tags)
    assert len(tags) >= 10 * exempt
