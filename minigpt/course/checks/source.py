"""Finding a program's text: of a learner's cell, or of a solution in these modules."""

import ast
import functools
import inspect
import linecache
import re
import sys
import textwrap
from typing import Any


def written(program: Any) -> Any:
    """The function or class that somebody wrote, out of its wrappings."""
    program = inspect.unwrap(program)
    if isinstance(program, functools.partial):
        return written(program.func)
    named = inspect.isroutine(program) or inspect.isclass(program)
    return program if named else type(program)


def listing(program: Any) -> tuple[str, int]:
    """(text of a learner's function or class, its first line's number); or ("", 1)."""
    try:
        program = written(program)
        if surroundings(program).get("__name__", "__main__") != "__main__":
            return "", 1  # it's not the learner's
        if inspect.isclass(program):  # inspect finds no class of a notebook
            lines, first = _class_lines(program)
        else:
            lines, first = inspect.getsourcelines(program)
        text = textwrap.dedent("".join(lines))
        ast.parse(text)  # a lambda in the middle of something is no program
        return text, max(first, 1)
    except Exception:  # the answer may be anything
        return "", 1


def _class_lines(cls: type) -> tuple[list[str], int]:
    """A class's lines and the first one's number, found by way of its methods."""
    for method in map(inspect.unwrap, filter(callable, vars(cls).values())):
        code = getattr(method, "__code__", None)
        if code is None or cls.__qualname__ not in method.__qualname__:
            continue
        lines = linecache.getlines(code.co_filename)
        for node in ast.walk(ast.parse("".join(lines))):
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                if node.lineno <= code.co_firstlineno <= (node.end_lineno or 0):
                    return lines[node.lineno - 1 : node.end_lineno], node.lineno
    raise OSError("a class without methods of its own")


def undecorated(program: Any) -> str:
    """The text of a solution, without the exercise's own decorator."""
    text = textwrap.dedent(inspect.getsource(program))
    node: Any = ast.parse(text).body[0]
    exercised = [d for d in node.decorator_list if "exercise(" in ast.unparse(d)]
    others = [d for d in node.decorator_list if d not in exercised]
    first = others[0].lineno if others else node.lineno
    return "".join(text.splitlines(keepends=True)[first - 1 :])


def bare(text: str) -> str:
    """A program without hints, docstrings, comments and `pass`."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        body = getattr(node, "body", None)
        if isinstance(body, list):
            lines = [line for line in body if not isinstance(line, ast.Pass)]
            vars(node)["body"] = lines or body
    return ast.unparse(tree)


def surroundings(program: Any) -> dict[str, Any]:
    """The names among which a function or class was written."""
    program = written(program)
    inside = vars(program).values() if inspect.isclass(program) else [program]
    spaces = (getattr(inspect.unwrap(f), "__globals__", None) for f in inside)
    return next(filter(None, spaces), {})


def is_skeleton(program: Any) -> bool:
    """Whether a function or class still has its exercise's dots, or no body at all."""
    text = listing(program)[0]
    body: list[Any] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr | ast.Assign | ast.Return):
            if isinstance(node.value, ast.Constant) and node.value.value is ...:
                return True
        if isinstance(node, ast.FunctionDef):
            body += node.body
    idle = ast.Pass | ast.Expr
    return bool(body) and all(
        isinstance(line, idle) and isinstance(getattr(line, "value", None), _QUIET)
        for line in body
    )


_QUIET = ast.Constant | type(None)


def unread_argument(text: str, right: str) -> str:
    """An argument that an answer never reads, and the solution does; "" for none."""
    mine, ours = _arguments(text), _arguments(right)
    right = re.sub("assert .*", "pass", right)
    for place, name in enumerate(mine):
        needed = place >= len(ours) or ours[place] in _read(right)
        if len(mine) == len(ours) and needed and name not in {*_read(text), "_"}:
            return name
    return ""


def idle_line(text: str) -> str:
    """A line that only names a method, and doesn't call it; "" for none."""
    lines = (n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Expr))
    return next((ast.unparse(n) for n in lines if isinstance(n, ast.Attribute)), "")


def _arguments(text: str) -> list[str]:
    """The names of a function's arguments; [] for a class, or several functions."""
    tree = ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    if len(functions) != 1 or any(isinstance(n, ast.ClassDef) for n in ast.walk(tree)):
        return []
    return [argument.arg for argument in functions[0].args.args]


def _read(text: str) -> set[str]:
    names = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Load)}


def broken_cell(number: str) -> SyntaxError | None:
    """The error of an exercise's cell, if the last one that was run is no Python.

    Such a cell defines nothing, and the function from before would be judged.
    """
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    cells = shell.user_ns.get("In", []) if shell else []
    head = re.compile(rf"# (Exercise|Bug hunt) {re.escape(number)}\b")
    for cell in reversed(cells):
        if head.match(cell):
            try:
                ast.parse(shell.transform_cell(cell))
            except SyntaxError as error:
                return error
            break
    return None
