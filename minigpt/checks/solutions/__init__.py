"""The exercises' solutions, a file for each notebook: they stand here only.

The folded solutions of the notebooks are written from these by `make notebooks`; the
checks run them, right and with slips of the pen. What comes before the first line
`# 03.1` are the names that the notebook's cells have made by then.
"""

import functools
import inspect
import re
from importlib import resources

from minigpt.checks.core import mistakes
from minigpt.checks.mutants import mutants


@functools.cache
def texts(notebook):
    """{"03.1": its solution's text, …} of a notebook ("03"); "" is what is given."""
    for file in resources.files(__name__).iterdir():
        if re.match(rf"_{notebook}_\w+\.py", file.name):
            given, *parts = re.split(
                r"^# (\d\d\.\d+)\n", file.read_text("utf-8"), flags=re.M
            )
            parts = [part.strip() for part in parts]
            return {"": given, **dict(zip(parts[::2], parts[1::2]))}
    raise ValueError(f"There are no solutions of notebook {notebook!r}.")


class Solution:
    """The solution of an exercise; called, it is right, and `wrong()` are its mutants.

    number: "03.1". name: which of its functions or classes (default: the last).
    known: names that its text may use besides those of its file.
    """

    def __init__(self, number, name=None, **known):
        self.text = texts(number[:2])[number]
        self.space = {"__name__": __name__}
        exec(texts(number[:2])[""], self.space)
        self.space.update(known)
        defined = re.findall(r"^(?:def|class) (\w+)", self.text, re.M)
        self.name = name or defined[-1]
        self.program = self._made(compile(self.text, f"<solution {number}>", "exec"))

    def _made(self, code):
        space = dict(self.space)
        exec(code, space)
        return space[self.name]

    def __call__(self, *inputs):
        return self.program(*inputs)

    def but(self, *edits):
        """The program with each (old, new), or "old → new", of its text: a mistake."""
        text = self.text
        for edit in edits:
            old, new = edit.split(" → ") if isinstance(edit, str) else edit
            if old not in text:
                raise ValueError(f"{old!r} is not in the solution: {text}")
            text = text.replace(old, new)
        return self._made(compile(text, "<edited>", "exec"))

    @property
    def arguments(self):
        """The names of its inputs."""
        if inspect.isclass(self.program):
            return []
        return list(inspect.signature(self.program).parameters)

    def mistakes(self, hint, table, work=None):
        """Mistakes from {what to say: an edit, a program or a Sign, or a tuple}.

        A tuple holds several edits, and perhaps a hint at its end. work: as in
        compare; the edited programs are run by it, too.
        """
        programs = {}
        for says, wrong in table.items():
            *edits, last = wrong if type(wrong) is tuple else (wrong,)
            own = hint
            if isinstance(last, str) and " → " not in last:
                own, last = last, edits.pop()
            if isinstance(last, str):
                last = self.but(*edits, last)
                last = functools.partial(work, last) if work else last
            programs[says] = last, own
        return mistakes(hint, programs)

    def wrong(self, pairs=False, without=()):
        """Yield (Mutant, its program); what cannot even be defined is left out."""
        for mutant in mutants(self.text, pairs, without):
            try:
                program = self._made(mutant.program)
            except BaseException:  # or hangs, and is stopped
                continue
            yield mutant, program
