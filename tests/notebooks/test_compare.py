"""The comparison of notebooks' outputs within a stated tolerance."""

from types import SimpleNamespace

import nbformat
import pytest
from syllabus import ROOT

from minigpt.course import compare_outputs as compare
from minigpt.course.compare_outputs import settle, tolerance_of

STORED = "loss  2.4123, spread 0.010 after 600 steps\n"


@pytest.mark.parametrize(
    "new",
    [
        "loss  2.4123, spread 0.010 after 601 steps\n",  # a whole number is exact
        "loss  2.4123, spread 0.010, 0.011 after 600 steps\n",  # a number more
        "loss  2.4123, spread after 600 steps\n",  # a number less
        "less  2.4123, spread 0.010 after 600 steps\n",  # another word
        "loss  nan, spread 0.010 after 600 steps\n",
    ],
)
def test_all_else_is_compared_letter_by_letter(new):
    assert settle(STORED, new, tolerance_of(["within-0.03"])) == new


def test_tolerances_are_absolute_or_relative_to_the_stored_number():
    share = tolerance_of(["tiny-shakespeare", "within-5%"])
    near = tolerance_of(["within-0.05"])
    assert settle("100.0 and 1.00", "104.9 and 1.06", share) == "100.0 and 1.06"
    assert settle("-0.02", "+0.02", near) == "-0.02"
    assert settle("−0.02", "0.09", near) == "0.09"
    assert settle(" 2.40, 0.01", "12.40, 0.02", near) == "12.40, 0.01"
    assert tolerance_of(["tiny-shakespeare"]) is None


class Cell:
    """What compare sees of nbval's item; `parent` may be changed."""

    def __init__(self, *tags):
        self.cell = SimpleNamespace(metadata={"tags": [*tags]}, source="")
        self.options, self.compare_outputs = {"check": True}, None
        self.parent = SimpleNamespace(skip_compare=())


@pytest.mark.parametrize("there", [True, False])
def test_a_cell_that_needs_something_is_compared_where_it_is(monkeypatch, there):
    monkeypatch.setitem(compare.NEEDS, "transformers", lambda: there)
    items = [Cell("transformers"), Cell("within-0.1"), Cell()]
    compare.pytest_collection_modifyitems(items)
    assert [item.options["check"] for item in items] == [there, True, True]


CELLS = [  # stored is 2.40: tag, source, None or what a failure says
    ("within-0.03", "print('loss 2.42')", None),
    ("within-0.03", "print('loss 2.52')", "loss 2.52"),
    ("within-0.03", "print('loss 2.42 2.43')", "loss 2.42 2.43"),
    ("within-0.03", "print('lass 2.42')", "lass 2.42"),
    ("within-5%", "2.42", None),
    ("within-5%", "2.62", "2.62"),
    (None, "print('loss 2.41')", "loss 2.41"),
]


def test_pytest_nbval_compares_each_cell_as_its_tag_says(tmp_path, capsys):
    pytest.importorskip("nbval")
    new, cells = nbformat.v4, []
    for tag, source, _ in CELLS:
        output = new.new_output("stream", name="stdout", text="loss 2.40\n")
        if "print" not in source:
            data = {"text/plain": "2.40"}
            output = new.new_output("execute_result", data, execution_count=1)
        cell = new.new_code_cell(source, outputs=[output], execution_count=1)
        cell.metadata["tags"] = [tag] if tag else []
        cells.append(cell)
    nbformat.write(new.new_notebook(cells=cells), tmp_path / "cells.ipynb")
    options = ["--nbval", "-vv", "--color=no", "-p", "no:cacheprovider"]
    places = ["--rootdir", tmp_path, "-c", ROOT / "pyproject.toml"]
    pytest.main([*map(str, [*options, *places, tmp_path / "cells.ipynb"])])
    said = capsys.readouterr().out
    for i, (tag, source, complaint) in enumerate(CELLS):
        verdict = "PASSED" if complaint is None else "FAILED"
        assert f"Cell {i} {verdict}" in said, (tag, source, said)
        assert complaint is None or complaint in said
    assert "0.67 of its tolerance: cells.ipynb::Cell 0" in said
    assert "tolerance: cells.ipynb::Cell 4" not in said  # 0.02, 5 % are 0.12


def test_from_another_seed_only_trainings_are_compared(monkeypatch):
    monkeypatch.setattr(compare, "OTHER_SEED", "1338")
    rows = [
        ("seed(1337); train(m)", ["within-0.1"]),
        ("train(m)", []),
        ("7", ["within-1"]),
    ]
    items = [
        SimpleNamespace(
            cell=SimpleNamespace(source=source, metadata={"tags": tags}),
            parent=SimpleNamespace(skip_compare=()),
            options={"check": True},
            compare_outputs=None,
        )
        for source, tags in rows
    ]
    compare.pytest_collection_modifyitems(items)
    assert [item.options["check"] for item in items] == [True, False, False]
    assert items[0].cell.source == "seed(1338); train(m)"
