"""Every notebook is well formed; that it runs is checked by nbval."""

import ast
import copy
import json
import re
import sys
import warnings
from pathlib import Path

import nbformat
import pytest

from minigpt.publish.execute import fold_solutions

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ANSWER = re.compile(r"# ((?:Exercise|Bug hunt) \d\d\.\d+)\n")
TAGS = re.compile(r"nbval-ignore-output|tiny-shakespeare|within-[\d.]+%?")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
        nbformat.validate(notebook)
    return notebook


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def markdown(notebook):
    cells = [c.source for c in notebook.cells if c.cell_type == "markdown"]
    return "\n\n".join(cells)


def test_cell_ids_are_unique(notebook):
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids))


def test_cells_were_executed_in_order_from_one(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_no_stray_metadata_is_stored(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags", "slideshow"}, cell.id
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


def test_code_fits_on_a_slide(notebook):
    for cell in code_cells(notebook):
        lines = cell.source.splitlines()
        wide = [line for line in lines if len(line) > 72]
        assert not wide, f"{cell.id}: {wide}"
        assert len(lines) <= 30, f"{cell.id} has {len(lines)} lines"


def test_every_figure_has_alternative_text(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                alt = output.metadata["image/png"]["alt"]
                assert len(alt) > 30, cell.id
                assert output.data["text/plain"] == f"Figure: {alt}"


def test_links_between_notebooks_exist(path, notebook):
    links = re.findall(r"\]\(([^)#]+\.ipynb)\)", markdown(notebook))
    assert links
    for link in links:
        assert (path.parent / link).is_file(), link
    i = NOTEBOOKS.index(path)
    for neighbour in NOTEBOOKS[max(0, i - 1) : i] + NOTEBOOKS[i + 1 : i + 2]:
        assert neighbour.name in links, f"no link to {neighbour.name}"


def test_every_notebook_has_the_parts_that_readers_expect(path, notebook):
    text = markdown(notebook)
    parts = ["| Time |", "| You need |", "| Builds |", "| Previous / next |"]
    if not path.name.startswith("00"):
        parts += ["## Recap", "<summary>Answers</summary>", "**Further reading**"]
        parts += ["Predict"]
    for part in parts:
        assert part in text, part


def test_every_exercise_has_an_answer_cell(notebook):
    headings = re.findall(
        r"^#+ ((?:Exercise|Bug hunt) .*?):", markdown(notebook), flags=re.M
    )
    answers = [ANSWER.match(cell.source) for cell in code_cells(notebook)]
    assert [answer[1] for answer in answers if answer] == headings


def test_an_exercise_is_prompt_answer_check_demonstration_solution(notebook):
    checked = []
    for place, answer in enumerate(notebook.cells):
        if answer.cell_type != "code" or not (title := ANSWER.match(answer.source)):
            continue
        before, (check, *after) = notebook.cells[:place], notebook.cells[place + 1 :]
        prompt = [cell for cell in before if cell.cell_type == "markdown"][-1]
        assert prompt.source.startswith(f"### {title[1]}: ")
        (only,) = ast.parse(check.source).body
        assert ast.unparse(only.value.func).startswith("check_"), check.id
        assert check.source.startswith("check_") and check.source.endswith(")")
        assert check.id == f"{answer.id}-check"
        if after[0].cell_type == "code":
            assert after.pop(0).id == f"{answer.id}-demo"
        assert "<summary>Solution" in after[0].source
        checked.append(check)
    calls = re.compile(r"\bcheck_\w+\(")
    assert [c for c in code_cells(notebook) if calls.search(c.source)] == checked


def test_nine_in_ten_cells_with_text_output_are_compared(record_property):
    how = {"strictly": 0, "within a tolerance": 0}
    exempt = []
    for path in NOTEBOOKS:
        for cell in code_cells(nbformat.read(path, as_version=4)):
            tags = cell.metadata.get("tags", [])
            if "nbval-ignore-output" in tags:
                exempt.append(f"{path.stem}: {cell.source.splitlines()[0]}")
            elif cell.outputs:
                within = any(tag.startswith("within") for tag in tags)
                how["within a tolerance" if within else "strictly"] += 1
    record_property("notebook cells that are compared", str(how))
    record_property(f"the {len(exempt)} that are not", "\n  ".join(["", *exempt]))
    assert sum(how.values()) >= 9 * len(exempt)


def test_jupyterlab_knows_the_settings_that_keep_it_from_asking():
    schemas = Path(sys.prefix) / "share" / "jupyter" / "lab" / "schemas"
    if not schemas.is_dir():
        pytest.skip("needs JupyterLab: type python -m pip install jupyterlab")
    text = (ROOT / ".jupyter" / "overrides.json").read_text(encoding="utf-8")
    for plugin, settings in json.loads(text).items():
        schema = schemas / (plugin.replace(":", "/") + ".json")
        known = json.loads(schema.read_text(encoding="utf-8"))["properties"]
        for name, value in settings.items():
            assert value in [choice["const"] for choice in known[name]["oneOf"]]


def slides(notebook):
    """{id of the first cell: words of prose} of each slide; notes do not count."""
    words, current = {}, None
    for cell in notebook.cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type", "-")
        if kind in ("slide", "subslide"):
            current = cell.id
            words[current] = 0
        if cell.cell_type == "markdown" and kind not in ("skip", "notes"):
            text = re.sub(r"```.*?```", " ", cell.source, flags=re.S)
            text = re.sub(r"[|`*#$]|---+|<[^>]+>", " ", text)
            words[current] += len(text.split())
    return words


def test_a_slide_carries_one_thought(notebook):
    heavy = {cell: n for cell, n in slides(notebook).items() if n > 80}
    assert not heavy


def test_no_lesson_prints_a_verdict_where_a_number_belongs(notebook):
    ends = [c.source.startswith("## Exercises") for c in notebook.cells] + [True]
    for cell in notebook.cells[: ends.index(True)]:
        printed = "".join(o.get("text", "") for o in cell.get("outputs", []))
        for line in printed.splitlines():
            assert not re.search(r": (True|False)$", line), f"{cell.id}: {line}"


def test_the_sample_on_the_first_page_was_written_in_notebook_06():
    first, last = (
        nbformat.read(path, as_version=4)
        for path in NOTEBOOKS
        if path.name.startswith(("00", "06"))
    )
    sample = re.search(r"```\n(ROMEO:.*?)\n```", markdown(first), re.S)[1]
    written = "".join(o.get("text", "") for c in code_cells(last) for o in c.outputs)
    assert sample.count("\n") == 7 and sample in written


def test_the_folded_solutions_are_those_that_the_checks_run(notebook, path):
    before = copy.deepcopy(notebook.cells)
    answers = [cell for cell in notebook.cells if ANSWER.match(cell.source)]
    assert fold_solutions(notebook) == len(answers)
    changed = [c.id for c, b in zip(notebook.cells, before) if c.source != b.source]
    assert changed == [], "make notebooks writes them"
