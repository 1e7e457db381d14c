"""The package as a whole: small modules, imports that point one way."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from minigpt import measure

PACKAGE = Path(__file__).resolve().parent.parent / "minigpt"
# What a lesson may lean on stands before it; files, interrupts, arguments,
# tensors and texts teach nothing.
ORDER = (
    "files sealed interrupts arguments tensors texts workers data device evaluation "
    "bigram averaging attention language_model multi_head block gpt recipe optimizer "
    "training checkpoint cache reading generation modern_parts modern counts "
    "counting writing speculative quantization parallel shards corpus "
    "looking marks originality"
).split()


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
        assert len(lines) <= 200, f"{name}.py has {len(lines)} lines"


def test_importing_the_lessons_does_not_import_matplotlib():
    modules = ", ".join(f"minigpt.{name}" for name in ORDER)
    code = f"import sys, {modules}; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_every_public_function_and_class_has_a_docstring():
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name in ("checks", "solutions"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path.name
        for node in tree.body:
            public = isinstance(node, (ast.FunctionDef, ast.ClassDef))
            if public and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name}"


def test_all_that_belongs_to_the_package_is_installed_with_it():
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))
    named = project["tool"]["setuptools"]["packages"]
    found = {
        ".".join(p.parent.relative_to(PACKAGE.parent).parts)
        for p in PACKAGE.rglob("__init__.py")
    }
    assert set(named) == found
    data = {
        path
        for package, patterns in project["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for path in (PACKAGE.parent / package.replace(".", "/")).glob(pattern)
    }
    page = {p for p in (PACKAGE / "page").iterdir() if p.suffix not in (".py", "")}
    assert page | set(PACKAGE.rglob("*.json")) <= data


def test_peak_bytes_counts_what_is_alive_at_once():
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


def test_seconds_are_the_median_of_many_calls(monkeypatch):
    now = [0.0]

    def function():
        now[0] += next(times, 0.03)

    times = iter([9.0, 0.03, 0.05, 0.04, 1.0])  # the first call is not counted
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    assert measure.seconds(function) == pytest.approx(0.045)
