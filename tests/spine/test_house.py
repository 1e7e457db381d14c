"""Imports go down only: spine, later lessons, tools, course; and the house is small."""

import ast
import json
import re

from syllabus import BELOW, LATER, NOTEBOOKS, ORDER, ROOT, SPINE

PACKAGE = ROOT / "minigpt"


def imports(path):
    """The modules of the package that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "minigpt":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "minigpt."
        ):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("minigpt."):
                    yield alias.name.split(".")[1]


def test_imports_go_down_only():
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if own in ("__init__", "__main__"):
            continue
        for name in imports(path):
            above = ORDER.index(name) > ORDER.index(own)
            assert not above or (own, name) in NAMED, f"{path} imports {name}"


# What a module may name that stands above it.
NAMED = {
    ("data", "stored"),  # the folder of the play, a text like the others
    ("data", "playwright"),  # that text's name
    ("clinic", "course"),  # compares a loss with the course's ladder
    ("tools", "course"),  # the speed run says where the course's table stands
}


def named(path):
    """Modules that a file names in texts, docstrings aside: minigpt.tools, "tools"."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in bare:
                found = re.findall(r"minigpt[./](\w+)", node.value)
                yield from {*found} & {*ORDER}
                yield from {node.value} & {*ORDER} - {*SPINE}  # those are plain words


def test_no_text_reaches_up_either():
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if own not in ("__init__", "__main__", "course"):
            for name in named(path):
                above = ORDER.index(name) > ORDER.index(own)
                assert not above or (own, name) in NAMED, f"{path} names {name}"


def test_nothing_is_imported_by_name():
    """What hides an import from the test above: importlib, __import__."""
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        text = path.read_text(encoding="utf-8")
        if own != "course":
            assert "importlib" not in text and "__import__" not in text, path


ROOMS = ["checks", "experiments"]  # of the course; none knows another


def course_imports(source):
    """What of minigpt.course a source text imports: sets of names below it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "minigpt.course":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").startswith("minigpt.course."):
                yield node.module.split(".")[2]


def test_the_rooms_of_the_course_do_not_know_each_other():
    """And what notebooks use knows no room."""
    for path in (PACKAGE / "course").rglob("*.py"):
        own = path.relative_to(PACKAGE / "course").parts[0]
        for name in course_imports(path.read_text(encoding="utf-8")):
            assert name == own or name not in ROOMS, f"{path} imports {name}"


def test_no_lesson_imports_an_experiment():
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        for source in code:
            if not source.startswith("%%"):
                assert "experiments" not in course_imports(source), path


def test_a_file_name_stands_for_one_thing():
    """Of tools and course. The name of a lesson stands for it in every room."""
    lessons = {path.stem.split("_", 1)[1] for path in NOTEBOOKS.glob("*.ipynb")}
    seen = {}
    for room in ("stored", "tools", "course"):
        for path in (PACKAGE / room).rglob("*.py"):
            seen.setdefault(path.stem, []).append(path)
    for name, paths in seen.items():
        if not name.startswith("_") and name not in lessons | {*SPINE, *LATER}:
            assert len(paths) == 1, paths


BESIDE = ["clinic", "tools", "course"]


def test_the_package_has_few_entries():
    entries = [p.name for p in PACKAGE.iterdir() if not p.name.startswith(("_", "."))]
    assert sorted(entries) == sorted(
        [*(f"{n}.py" for n in [*BELOW, *SPINE]), *LATER, "stored", *BESIDE]
    )


def test_no_lesson_imports_matplotlib():
    """Nor does what a lesson imports, because that stands below it."""
    for name in [*BELOW, *SPINE, *LATER, "stored"]:
        for path in [PACKAGE / f"{name}.py", *(PACKAGE / name).rglob("*.py")]:
            if path.exists():
                text = path.read_text(encoding="utf-8")
                assert not re.search(r"^ *(import|from) matplotlib", text, re.M), path


def test_every_public_function_and_class_has_a_docstring():
    for path in PACKAGE.rglob("*.py"):
        if path.name == "whole.py" or "checks" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        for node in tree.body:
            public = isinstance(node, (ast.FunctionDef, ast.ClassDef))
            if public and not node.name.startswith("_") and node.name != "main":
                assert ast.get_docstring(node), f"{path}: {node.name}"


def functions(tree):
    """The functions of a file, and the methods of its classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node)
        elif isinstance(node, ast.FunctionDef):
            yield node


def test_every_function_has_hints():
    for path in PACKAGE.rglob("*.py"):
        if path.name == "whole.py":
            continue  # as notebooks show it
        for node in functions(ast.parse(path.read_text(encoding="utf-8"))):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            every += filter(None, [node.args.vararg, node.args.kwarg])
            bare = [a.arg for a in every if a.annotation is None]
            told = node.returns or node.name == "__init__"
            assert {*bare} <= {"self", "cls"} and told, f"{path}: {node.name}"
