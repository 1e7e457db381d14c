"""Syntax trees: reading a node, making another one like it, replacing some in a tree.

No tree is ever changed: what changes is a copy.
"""

import ast
import contextlib
from collections.abc import Mapping
from typing import Any

MODULES = ("F", "torch", "nn", "math", "np")


def replaced(tree: Any, swaps: Mapping[int, ast.AST] = {}) -> Any:
    """A copy of a tree with other nodes in some places; {id of a node: its new one}.

    All trees share one Load(), to which a traceback of IPython's gives a parent: a
    whole file's tree. deepcopy would follow it, a thousand times as slowly.
    """
    if isinstance(tree, list):
        return [replaced(part, swaps) for part in tree]
    if not isinstance(tree, ast.AST):
        return tree
    if id(tree) in swaps:
        return swaps[id(tree)]
    parts = {name: replaced(part, swaps) for name, part in ast.iter_fields(tree)}
    return ast.copy_location(type(tree)(**parts), tree)


def head(node: ast.stmt) -> str:
    """A statement's first line, without its decorators."""
    return next(line for line in source_of(node).splitlines() if line[:1] != "@")


def source_of(node: ast.AST) -> str:
    """A node as a text."""
    try:
        return ast.unparse(node)
    except AttributeError:  # a new statement stands on no line yet
        return ast.unparse(ast.fix_missing_locations(node))


def parsed(text: str) -> ast.expr:
    """The expression that a text is."""
    return ast.parse(text, mode="eval").body


def remade(node: ast.AST, **changed: Any) -> Any:
    """A new node like it, at its place, with other fields; its children are shared."""
    new = type(node)(**{**dict(ast.iter_fields(node)), **changed})
    return ast.copy_location(new, node)


def literal(node: ast.AST) -> int | float | None:
    """A literal's number."""
    if isinstance(node, (ast.Constant, ast.UnaryOp)):
        with contextlib.suppress(ValueError):
            value = ast.literal_eval(node)
            return value if type(value) in (int, float) else None
    return None


def called(node: ast.AST) -> str:
    """The last name of what is called: "softmax" of F.softmax(...)."""
    func = node.func if isinstance(node, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", ""))


def is_whole(node: ast.AST) -> bool:
    """Whether a node is an expression that a program computes with."""
    if isinstance(node, ast.Name) and node.id in (*MODULES, "self"):
        return False
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    whole = ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp
    return isinstance(node, whole) and not stored
