"""The exercises' solutions, a file for each notebook: they stand here only.

The folded solutions of the notebooks are written from these by `make notebooks`; the
checks run them, right and with slips of the pen. What comes before the first line
`# 03.1` are the names that the notebook's cells have made by then. Behind a solution
stand known mistakes: `# ✗` what to say, edits `old → new` that make the mistake, and
perhaps `# ?` a hint of its own.
"""

import ast
import functools
import inspect
import math
import re
from importlib import resources

import torch.nn.functional as F

from minigpt.course.checks.mutants import mutants


STILL = "The bug is still there"


@functools.cache
def _parts(notebook):
    """{"03.1": (its solution's text, its mistakes), …} of a notebook ("03")."""
    for file in resources.files(__name__).iterdir():
        if re.match(rf"_{notebook}_\w+\.py", file.name):
            parts = re.split(r"^# (\d\d\.\d+)\n", file.read_text("utf-8"), flags=re.M)
            found = [part.strip().split("\n# ✗ ") for part in ["", *parts]]
            numbers = [number for number, in found[::2]]
            return {n: (one[0], one[1:]) for n, one in zip(numbers, found[1::2])}
    raise ValueError(f"There are no solutions of notebook {notebook!r}.")


def texts(notebook):
    """{"03.1": its solution's text, …} of a notebook; "" is what is given."""
    return {number: text for number, (text, _) in _parts(notebook).items()}


def _mistake(text):
    """(what to say, edits, hint) of a mistake that is listed behind a solution.

    Lines that begin with four spaces are lines of an edit, too; others go on. What an
    edit replaces may have a \\n.
    """
    says, edits, hint = [], [], []
    for line in text.split("\n"):
        line = line.removeprefix("#").removeprefix(" ")
        if line.startswith("? ") or hint:
            hint.append(line.removeprefix("? "))
        elif " →" in line:
            edits.append(line)
        elif edits:
            edits[-1] += "\n" * line.startswith("    ") + line
        else:
            says.append(line)
    pairs = [edit.split(" →", 1) for edit in edits]
    edits = [(old.replace("\\n", "\n"), new.removeprefix(" ")) for old, new in pairs]
    return " ".join(says), edits, " ".join(hint)


def _bare(text):
    """A program's function or class without comments, docstrings and `pass`."""
    tree = ast.parse(text).body[0]
    for node in ast.walk(tree):
        if isinstance(getattr(node, "body", None), list):
            node.body = [n for n in node.body if not isinstance(n, ast.Pass)]
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                node.body = node.body[bool(ast.get_docstring(node)) :]
    return ast.dump(tree)


class Solution:
    """The solution of an exercise; called, it is right, and `wrong()` are its mutants.

    number: "03.1". name: which of its functions or classes (default: the last).
    opened: whether slips reach into notebook 03's `attention`, which it calls.
    known: names that its text may use besides those of its file.
    """

    def __init__(self, number, name=None, opened=False, **known):
        self.text, self.listed = _parts(number[:2])[number]
        defined = re.findall(r"^(?:def|class) (\w+)", self.text, re.M)
        self.name, self.space = name or defined[-1], {"__name__": __name__}
        exec(texts(number[:2])[""], self.space)
        self.space.update(known)
        self.program = self.made(compile(self.text, f"<solution {number}>", "exec"))
        if opened:
            self.space.update(math=math, F=F)
            self.text += "\n\n\n" + texts("03")["03.0"]

    def made(self, code):
        """The function or class of this name that some code defines."""
        space = dict(self.space)
        exec(code, space)
        return space[self.name]

    def __call__(self, *inputs):
        return self.program(*inputs)

    def edited(self, *edits):
        """Its text with each (old, new) replaced."""
        text = self.text
        for old, new in edits:
            if old not in text:
                raise ValueError(f"{old!r} is not in the solution: {text}")
            text = text.replace(old, new)
        return text

    def but(self, *edits):
        """The program with each (old, new) of its text: a mistake."""
        return self.made(compile(self.edited(*edits), "<edited>", "exec"))

    def is_untouched(self, text):
        """Whether a text is that of the bug hunt, as it was before any change."""
        found = (e for says, e, _ in map(_mistake, self.listed) if STILL in says)
        bugs = [_bare(self.edited(*edits)) for edits in found]
        return not bugs or _bare(text) in bugs

    @property
    def given(self):
        """The lines of the bug hunt's program, as a set; empty where it is none."""
        found = (e for says, e, _ in map(_mistake, self.listed) if STILL in says)
        texts = (self.edited(*edits) for edits in found)
        return {line.strip() for text in texts for line in text.splitlines()}

    @property
    def arguments(self):
        """The names of its inputs."""
        if inspect.isclass(self.program):
            return []
        return list(inspect.signature(self.program).parameters)

    def mistakes(self, work=None):
        """{what to say: (the program with that mistake, hint)}: those of its file."""
        found = {}
        for says, edits, hint in map(_mistake, self.listed):
            program = self.but(*edits)
            found[says] = functools.partial(work, program) if work else program, hint
        return found

    def wrong(self):
        """Yield Mutants of its text."""
        return mutants(self.text)
