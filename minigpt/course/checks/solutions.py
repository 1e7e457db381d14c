"""An exercise's solution and its known mistakes, as data."""

import ast
import contextlib
import copy
import functools
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

NAMES = {"torch": torch, "nn": nn, "F": F, "math": math, "copy": copy, "np": np}


@dataclass(frozen=True)
class Mistake:
    """A known mistake: the sentence that a learner hears who has made it.

    It stands behind "Your results are those of this mistake:" where the answer gives
    what the mistake gives, but its text does not show the edits.

    edits: pairs (old, new) that make the mistake in the solution's text. program:
    where edits would be hard to read, a function that makes it. sign: where no program
    can stand for all that make it, holds(got, expected, *inputs); vague, if many
    mistakes look like that, so that a cause which can be named comes first.
    hint: in place of the exercise's own. untouched: this is the bug hunt's program as
    it was given.
    """

    says: str
    edits: Sequence[tuple[str, str]] = ()
    hint: str = ""
    program: Callable | None = None
    sign: Callable | None = None
    vague: bool = False
    untouched: bool = False


class Solution:
    """A right program: called, it is its last function or class (or that of a name).

    text: its code, which the notebooks show in a fold. mistakes: each a Mistake.
    helpers: functions that it calls and whose slips count as its own. names: what the
    code needs besides NAMES, by name. Raises ValueError if an edit of a mistake does
    not stand in the text.
    """

    def __init__(
        self,
        text: str,
        *mistakes: Mistake,
        helpers: Iterable[Callable] = (),
        **names: Any,
    ):
        self.shown = text.strip("\n")
        self.text, self.mistakes = self.shown, mistakes
        self.namespace = {"__name__": __name__, **NAMES, **names}
        defined = re.findall(r"^(?:def|class) (\w+)", self.text, re.M)
        if defined:
            self._choose(defined[-1])
        for helper in helpers:
            self.text += "\n\n\n" + bare(inspect.getsource(helper))
        for mistake in mistakes:
            try:
                self.edited(*mistake.edits)
            except ValueError as error:
                raise ValueError(f"Mistake {mistake.says!r}: {error}") from None

    def _choose(self, name: str) -> None:
        self.name = name
        self.program = self.made(compile(self.shown, "<solution>", "exec"))

    def named(self, name: str) -> "Solution":
        """The same with another of its functions, without known mistakes."""
        other = copy.copy(self)
        other.mistakes = ()
        other._choose(name)
        return other

    def made(self, code: Any) -> Any:
        """The function or class of its name that some code defines."""
        space = dict(self.namespace)
        exec(code, space)
        return space[self.name]

    def __call__(self, *inputs: Any) -> Any:
        return self.program(*inputs)

    def edited(self, *edits: tuple[str, str]) -> str:
        """Its text with each (old, new) replaced."""
        text = self.text
        for old, new in edits:
            if old not in text:
                raise ValueError(f"{old!r} is not in the solution: {text}")
            text = text.replace(old, new)
        return text

    def but(self, *edits: tuple[str, str]) -> Callable:
        """The program with each (old, new) of its text: a mistake."""
        return self.made(compile(self.edited(*edits), "<edited>", "exec"))

    @functools.cached_property
    def buggy(self) -> str:
        """The text of a bug hunt's program as it was given; "" where it is none."""
        bugs = (m.edits for m in self.mistakes if m.untouched)
        return next((self.edited(*edits) for edits in bugs), "")

    def is_untouched(self, text: str) -> bool:
        """Whether a text is the bug hunt's program, but for comments."""
        if not self.buggy:
            return True
        with contextlib.suppress(SyntaxError, IndexError):  # no text, or a part of one
            return bare(text) == bare(self.buggy)
        return False

    @property
    def arguments(self) -> list[str]:
        """The names of its inputs."""
        if inspect.isclass(self.program):
            return []
        return list(inspect.signature(self.program).parameters)


def bare(text: str) -> str:
    """A program's function or class without comments, docstrings and `pass`."""
    tree: Any = ast.parse(text).body[0]
    every: list[Any] = list(ast.walk(tree))
    for node in every:
        if isinstance(getattr(node, "body", None), list):
            node.body = [n for n in node.body if not isinstance(n, ast.Pass)]
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                node.body = node.body[bool(ast.get_docstring(node)) :]
    return ast.unparse(ast.fix_missing_locations(tree))


@functools.cache
def texts(notebook: str) -> dict[str, str]:
    """{"03.1": its solution's text, …} of a notebook ("03")."""
    package, found = importlib.import_module("minigpt.course.checks"), {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for check in vars(module).values():
            solution = getattr(check, "solution", None)
            if isinstance(solution, Solution) and check.number[:2] == notebook:
                found[check.number] = solution.shown
            if getattr(check, "number", "")[:2] == notebook and solution is None:
                found[check.number] = check.exercise.displayed
    if not found:
        raise ValueError(f"There are no exercises of notebook {notebook!r}.")
    return dict(sorted(found.items()))
