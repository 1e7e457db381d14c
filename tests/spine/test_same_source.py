"""What a notebook builds is what the package holds: the same syntax trees, but for
docstrings and type hints, which notebooks do not show."""

import ast
import re

import nbformat
import pytest
from syllabus import ROOT, built

BUILT = built()
LESSON_OF = {
    name: module
    for modules in BUILT.values()
    for module, names in modules.items()
    for name in names.split()
} | {"keep_top_p": "generation"}
OWN = {"Config", "read_text", "train", "main"}  # of whole.py, which needs no package


class WithoutHints(ast.NodeTransformer):
    """Takes the hints off functions and classes; a dataclass needs its own."""

    def visit_ClassDef(self, node):
        self.generic_visit(node)
        if not node.decorator_list:  # it is no dataclass
            hints = [
                p for p in node.body if isinstance(p, ast.AnnAssign) and not p.value
            ]
            node.body = [part for part in node.body if part not in hints]
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_arg(self, node):
        node.annotation = None
        return node


def definitions(source):
    """{name: its syntax tree without docstrings and hints}; of several the last one."""
    found = {}
    for node in WithoutHints().visit(ast.parse(source)).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for part in ast.walk(node):
                if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
                    if ast.get_docstring(part) is not None:
                        part.body = part.body[1:] or [ast.Pass()]
            found[node.name] = ast.unparse(node)
    return found


def of_notebook(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    cells = [c.source for c in notebook.cells if c.cell_type == "code"]
    return definitions("\n".join(cells))


def of_module(name):
    return definitions((ROOT / "minigpt" / f"{name}.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("lesson", BUILT)
def test_what_a_notebook_builds_is_the_package(lesson):
    built = of_notebook(lesson)
    for module, names in BUILT[lesson].items():
        held = of_module(module)
        for name in names.split():
            assert built.get(name) == held[name], f"{lesson} and {module}.py: {name}"


def test_whole_is_the_sum_of_the_lessons():
    """But for what only the package's command line and its checkpoints need."""
    whole = of_module("whole")
    for name in whole.keys() - OWN:
        source = of_module(LESSON_OF[name])[name]
        source = source.replace("    refuse_knobs(temperature, top_k, top_p)\n", "")
        source = re.sub(r"\n\n    def state\(self\):\n.*", "", source)
        assert whole[name] == source, name
    parts = {"CharTokenizer", "get_batch", "CausalSelfAttention", "Block", "GPT"}
    assert parts | {"evaluate", "make_optimizer", "generate"} <= whole.keys()
