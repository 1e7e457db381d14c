"""A check for marks: what a grader runs where a learner's sheet has the plain check."""

import contextlib
import importlib
import io
import sys

import torch

GENERATOR = torch.Generator


def once(module, name):
    """The check `name` of a module here, whatever a cell made of that name.

    What an answer writes to stderr goes to stdout: nbgrader takes a line on stderr
    for a failure.
    """
    check = getattr(importlib.import_module(f"minigpt.course.checks.{module}"), name)

    def graded(*answers):
        with contextlib.redirect_stderr(sys.stdout):
            return check(*answers)

    return graded


def twice(module, name):
    """Like `once`, but when all is right it looks again, with other random numbers.

    That finds an answer which has the check's random cases by heart; a check whose
    cases are all chosen by hand sees the same ones again. The second look prints only
    what it has to object to, and then its Result is the one that counts.
    """
    check = once(module, name)

    def graded(*answers):
        result = check(*answers)
        if not result:
            return result
        heard = io.StringIO()
        with other_numbers(), contextlib.redirect_stdout(heard):
            again = check(*answers)
        if not again:
            print(f"But with other numbers:\n{heard.getvalue()}", end="")
        return again

    return graded


@contextlib.contextmanager
def other_numbers(shift=1_000_000):
    """Inside, every new torch.Generator gets another seed than it asks for.

    So one check has two sets of cases, and none has to be written twice. Of one within
    the other the inner one counts.
    """

    class Shifted(GENERATOR):
        def manual_seed(self, seed):
            return super().manual_seed(seed + shift)

    usual = torch.Generator
    torch.Generator = Shifted
    try:
        yield
    finally:
        torch.Generator = usual
