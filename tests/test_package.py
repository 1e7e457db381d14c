"""The package as a whole: small modules, imports that point one way."""

import ast
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minigpt import ladder, measure

PACKAGE = Path(__file__).resolve().parent.parent / "minigpt"
LESSONS = "data bigram averaging attention multi_head block"
ORDER = f"{LESSONS} gpt checkpoint optimizer training generation".split()


def imports_of(path, later=False):
    """Names of minigpt's modules that a file imports at once, or also later on."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = []
    for node in ast.walk(tree) if later else tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            modules += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
    parts = [module.split(".") for module in modules]
    return {names[1] for names in parts if names[0] == "minigpt" and len(names) > 1}


def test_lessons_import_only_earlier_lessons():
    for i, name in enumerate(ORDER):
        later = imports_of(PACKAGE / f"{name}.py") - set(ORDER[:i])
        assert not later, f"{name} imports {later}"


def test_no_lesson_needs_what_stands_beside_the_lessons():
    for name in ORDER:
        aside = {"publish", "checks", "plots"}
        assert not imports_of(PACKAGE / f"{name}.py", later=True) & aside, name


def test_only_the_publishing_tool_imports_itself():
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "publish":
            assert "publish" not in imports_of(path, later=True), path.name


def test_a_lesson_can_be_read_at_one_sitting():
    for name in ORDER:
        lines = (PACKAGE / f"{name}.py").read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 180, f"{name}.py has {len(lines)} lines"


def test_importing_the_lessons_does_not_import_matplotlib():
    modules = ", ".join(f"minigpt.{name}" for name in ORDER)
    code = f"import sys, {modules}; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_every_public_function_and_class_has_a_docstring():
    for path in [*PACKAGE.glob("*.py"), *PACKAGE.glob("publish/*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path.name
        for node in tree.body:
            public = isinstance(node, (ast.FunctionDef, ast.ClassDef))
            if public and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name}"


def test_peak_bytes_counts_what_is_alive_at_once():
    import torch

    x = torch.zeros(1000)  # 4000 bytes, the input does not count

    def two_alive(x):
        return (x + 1) * (x + 2)  # two sums and their product

    def one_after_the_other(x):
        for _ in range(10):
            y = x + 1
        return y

    assert measure.peak_bytes(two_alive, x) == 12_000
    assert measure.peak_bytes(one_after_the_other, x) == 8_000
    assert measure.peak_bytes(torch.Tensor.t, x) == 0  # a view takes nothing
    layer = torch.nn.Linear(1000, 10)  # its parameters were there before the call
    with torch.no_grad():
        assert measure.peak_bytes(layer, x) == 40


def test_seconds_are_at_least_what_the_function_sleeps():
    assert measure.seconds(time.sleep, 0.01) >= 0.01


@pytest.fixture
def record(tmp_path, monkeypatch):
    path = tmp_path / "ladder.json"
    monkeypatch.setattr(ladder, "RECORD", path)
    monkeypatch.setattr(ladder, "measured", {})
    monkeypatch.delenv("MINIGPT_RECORD", raising=False)
    return path


def test_the_recorded_ladder_falls_rung_by_rung():
    rungs = ladder.recorded()
    assert [rung.name for rung in rungs] == ladder.NAMES
    assert ladder.falls(rungs)
    assert rungs[-1].loss < 1.75
    learned = json.loads(ladder.RECORD.read_text(encoding="utf-8"))
    for name in ladder.NAMES[2:]:
        assert len(learned[name]["losses"]) == 3, f"{name} has no spread of three"


def test_a_climb_shows_the_rungs_down_to_itself(record, monkeypatch):
    monkeypatch.setenv("MINIGPT_RECORD", "1")
    ladder.climb("one head", {1: 2.3, 2: 2.5}, 100, 1.0)
    ladder.climb("GPT", {1: 1.7}, 100, 1.0)
    rungs = ladder.climb("bigram", {1: 2.5}, 10, 1.0)
    assert [rung.name for rung in rungs] == ["bigram"]
    rungs = ladder.climb("one head", {2: 2.4}, 100, 1.0)  # seed 1 is kept
    assert [rung.name for rung in rungs] == ["bigram", "one head"]
    assert rungs[1].loss == pytest.approx(2.35)
    assert rungs[1].spread == pytest.approx(0.1)
    assert "one head" in ladder.table(rungs)


def test_a_reader_who_climbs_leaves_the_record_alone(record):
    ladder.climb("bigram", {1: 2.5}, 10, 1.0)
    assert not record.exists()


def test_what_was_measured_before_in_the_same_notebook_is_shown(record):
    ladder.climb("one block", {1: 2.1}, 10, 1.0)
    rungs = ladder.climb("three blocks", {1: 2.0}, 20, 1.0)
    assert [rung.loss for rung in rungs] == [2.1, 2.0]


def test_results_on_another_text_stand_alone(record, monkeypatch):
    monkeypatch.setenv("MINIGPT_RECORD", "1")
    ladder.climb("bigram", {1: 2.5}, 10, 1.0)
    ladder.climb("GPT", {1: 1.7, 2: 1.8}, 100, 1.0)
    before = record.read_text(encoding="utf-8")
    ladder.measured.clear()  # a new notebook
    (rung,) = ladder.climb("GPT", {1: 0.9}, 100, 1.0, comparable=False)
    assert (rung.loss, rung.spread) == (0.9, 0)
    assert record.read_text(encoding="utf-8") == before


def test_an_unknown_rung_is_refused(record):
    with pytest.raises(ValueError, match="no rung 'two heads'"):
        ladder.climb("two heads", {1: 2.0}, 1, 1.0)


def test_a_ladder_falls_only_by_more_than_its_spread():
    def rungs(low, spread):
        return [
            ladder.Rung("a", 2.0, 0.01, 1, 1.0),
            ladder.Rung("b", low, spread, 1, 1.0),
        ]

    assert ladder.falls(rungs(1.9, 0.05))
    assert not ladder.falls(rungs(1.9, 0.15))
    assert not ladder.falls(rungs(2.1, 0.0))
