"""Reading a learner's code: its text and lines, its dots, the names that it uses."""

import ast
import dis
import functools
import inspect
import linecache
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn as nn

from minigpt.course.checks.findings import Finding, Kind, found


def written(answer: Any) -> Any:
    """The function or class that a learner wrote, out of its wrappings."""
    answer = inspect.unwrap(answer)
    if isinstance(answer, functools.partial):
        return written(answer.func)
    named = inspect.isroutine(answer) or inspect.isclass(answer)
    return answer if named else type(answer)


def listing(answer: Any) -> tuple[str, int]:
    """(text of a function or class, dedented, its first line's number); ("", 1)."""
    try:
        answer = written(answer)
        if inspect.isclass(answer):  # inspect finds no class of a notebook
            lines, first = _class_lines(answer)
        else:
            lines, first = inspect.getsourcelines(answer)
        return textwrap.dedent("".join(lines)), max(first, 1)
    except Exception:
        return "", 1


def source(answer: Any) -> str:
    """The text of a function or class, dedented; "" where it cannot be found."""
    return listing(answer)[0]


def surroundings(answer: Any) -> dict[str, Any]:
    """The names among which a function or class was written."""
    answer = written(answer)
    inside = vars(answer).values() if inspect.isclass(answer) else [answer]
    spaces = (getattr(inspect.unwrap(f), "__globals__", None) for f in inside)
    return next(filter(None, spaces), {})


def _class_lines(cls: type) -> tuple[list[str], int]:
    """A class's lines and the first one's number, found by way of its methods."""
    for method in map(inspect.unwrap, filter(callable, vars(cls).values())):
        code = getattr(method, "__code__", None)
        if code is None or cls.__qualname__ not in method.__qualname__:
            continue
        lines = linecache.getlines(code.co_filename)
        for node in _parsed("".join(lines)):
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                if node.lineno <= code.co_firstlineno <= node.end_lineno:
                    return lines[node.lineno - 1 : node.end_lineno], node.lineno
    raise OSError("a class without methods of its own")


def is_skeleton(answer: Any) -> bool:
    """Whether a function or class still has its exercise's dots, or no body at all."""
    for node in _nodes(answer):
        if isinstance(node, (ast.Expr, ast.Assign, ast.Return)):
            if isinstance(node.value, ast.Constant) and node.value.value is ...:
                return True
    code = getattr(written(answer), "__code__", None)
    if code is None:
        return False
    steps = {step.opname for step in dis.get_instructions(code)}
    return steps <= {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}


def _nodes(answer: Any) -> list[Any]:
    try:
        return _parsed(source(answer))
    except SyntaxError:  # a lambda in the middle of something
        return []


@functools.lru_cache(16)
def _parsed(text: str) -> list[Any]:
    """All nodes of a program, which nobody changes: it is asked for many times."""
    return list(ast.walk(ast.parse(text)))


def lost(answer: Any) -> Finding | None:
    """A line that does nothing: no call, or behind a `return`."""
    for node in _nodes(answer):
        if kind_and_text := _lost(node):
            kind, text = kind_and_text
            return found(kind, text=ast.unparse(text))
    return None


def _lost(node: Any) -> tuple[Kind, ast.AST] | None:
    body = getattr(node, "body", ())
    for before, line in zip(body, body[1:]) if isinstance(body, list) else ():
        if isinstance(before, ast.Return) and isinstance(line, ast.Expr):
            return Kind.BEHIND_RETURN, line
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute):
        return Kind.NOT_CALLED, node
    if isinstance(node, ast.Expr) and _makes_anew(node.value):
        return Kind.NOT_KEPT, node
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        for text in (part for part in node.values[:-1] if _is_text(part)):
            return Kind.ALWAYS_TRUE, text
    if isinstance(node, ast.For) and isinstance(node.body[-1], ast.Return):
        if not any(isinstance(part, ast.Continue) for part in ast.walk(node)):
            return Kind.RETURN_IN_LOOP, node.body[-1]
    return None


def unread_line(answer: Any) -> Finding | None:
    """A name that a function's line makes, and that nothing reads."""
    read = _read(answer)
    functions = [n for n in _nodes(answer) if isinstance(n, ast.FunctionDef)]
    for line in (n for f in functions for n in f.body if isinstance(n, ast.Assign)):
        if getattr(line.targets[0], "id", "_") not in read:
            return found(Kind.NEVER_READ, text=ast.unparse(line))
    return None


def suspicious(answer: Any, right: str = "") -> Finding | None:
    """What often goes wrong, where nothing else accounts for an answer.

    right: the solution's text; what stands there, too, is not blamed.
    """
    looks = _used_up, _unused_layer, _unread_argument
    ours = _parsed(right)
    return next(filter(None, (look(_nodes(answer), ours) for look in looks)), None)


def _used_up(nodes: list[Any], ours: list[Any]) -> Finding | None:
    """A generator that is gone through twice."""
    makers = "map", "zip", "filter", "iter", "enumerate", "reversed"
    for line in (n for n in nodes if isinstance(n, ast.Assign)):
        made = getattr(getattr(line.value, "func", None), "id", "") in makers
        name = getattr(line.targets[0], "id", "")
        if name and (made or isinstance(line.value, ast.GeneratorExp)):
            if _names(nodes, ast.Store).count(name) == 1:
                if _names(nodes, ast.Load).count(name) > 1:
                    return found(Kind.USED_UP, name=name)
    return None


def _unused_layer(nodes: list[Any], ours: list[Any]) -> Finding | None:
    """A layer that __init__ makes and that nothing calls."""

    def unused(nodes: list[Any]) -> Iterator[tuple[str, str]]:
        dots = [n for n in nodes if isinstance(n, ast.Attribute)]
        read = {n.attr for n in dots if _is_load(n)}
        for line in (n for n in nodes if isinstance(n, ast.Assign)):
            text = ast.unparse(line)
            if made := re.match(r"self\.(\w+) = nn\.[A-Z]", text):
                if made[1] not in read:
                    yield made[1], text

    given = dict(unused(ours))
    lines = (text for name, text in unused(nodes) if name not in given)
    text = next(lines, None)
    return found(Kind.NEVER_READ, text=text) if text else None


def _unread_argument(nodes: list[Any], ours: list[Any]) -> Finding | None:
    """An argument of a function's that nothing in it reads, and the solution does."""
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef)]
    right = [n for n in ours if isinstance(n, ast.FunctionDef)]
    theirs = [a.arg for a in right[-1].args.args] if right else []
    for i, argument in enumerate(functions[0].args.args if len(functions) == 1 else ()):
        needed = theirs[i] in _names(ours, ast.Load) if i < len(theirs) else True
        if needed and argument.arg not in [*_names(nodes, ast.Load), "self", "_"]:
            return found(Kind.ARGUMENT_UNREAD, name=argument.arg)
    return None


def _names(nodes: list[Any], how: type) -> list[str]:
    """The names that are read (ast.Load) or assigned (ast.Store)."""
    names = [n for n in nodes if isinstance(n, ast.Name)]
    return [n.id for n in names if isinstance(n.ctx, how)]


def shared_default(answer: Any) -> str:
    """A default argument that all calls share, as `seen=[]`; "" for none."""
    for node in _nodes(answer):
        if isinstance(node, ast.FunctionDef) and node.args.defaults:
            named = [*node.args.posonlyargs, *node.args.args]
            for one, value in zip(named[::-1], node.args.defaults[::-1]):
                made = getattr(getattr(value, "func", None), "id", "")
                literal = isinstance(value, (ast.List, ast.Dict, ast.Set))
                if literal or made in ("list", "dict", "set", "Counter", "defaultdict"):
                    return f"{one.arg}={ast.unparse(value)}"
    return ""


def _read(answer: Any) -> set[str]:
    names = [n for n in _nodes(answer) if isinstance(n, ast.Name)]
    return {n.id for n in names if _is_load(n)} | {"_"}


def second_name(answer: Any) -> Finding | None:
    """A second name of something, or of its data, that is then changed in place."""
    nodes = _nodes(answer)
    targets = [n.target for n in nodes if isinstance(n, ast.AugAssign)]
    targets += [t for n in nodes if isinstance(n, ast.Assign) for t in n.targets]
    changed = {
        getattr(getattr(t, "value", None), "id", "")
        for t in targets
        if isinstance(t, ast.Subscript)
    }
    for node in (n for n in nodes if isinstance(n, ast.Assign)):
        value = node.value
        if isinstance(value, ast.Attribute) and value.attr == "data":
            value = value.value
        if isinstance(value, ast.Name):
            if getattr(node.targets[0], "id", "") in changed:
                return found(Kind.NO_COPY, text=ast.unparse(node))
    return None


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value


def _makes_anew(value: Any) -> bool:
    """Whether an expression computes something, and changes nothing."""
    name = getattr(getattr(value, "func", None), "attr", "add")  # of a set, too
    pure = hasattr(torch.Tensor, name) and hasattr(torch.Tensor, f"{name}_")
    made = name[0].isupper() and hasattr(nn, name)
    return isinstance(value, ast.BinOp) or made or pure and name != "add"


def _is_load(name: Any) -> bool:
    return isinstance(name.ctx, ast.Load)


def unreadable_cell(number: str) -> Finding | None:
    """What is wrong with the cell of an exercise where it is no Python.

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
                line, text = error.lineno or 0, (error.text or "").strip()
                return found(Kind.SYNTAX, error=error.msg, line=line, text=text)
            break
    return None
