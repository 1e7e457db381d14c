"""All exercises, what is answered to them, and the names in which their cells run."""

import copy
import functools
import importlib
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from exercises import answered
from syllabus import exercises


def has_the_old_form(module):
    """Whether an exercise's module has not been written anew yet."""
    checks = importlib.import_module(f"minigpt.course.checks.{module}")
    return hasattr(checks, "Solution")


NOTEBOOKS = {n: m for n, m in exercises().items() if has_the_old_form(m)}
ANSWERS = {n: importlib.import_module(f"answers.{m}") for n, m in NOTEBOOKS.items()}
EXERCISES = {k: e for module in ANSWERS.values() for k, e in module.EXERCISES.items()}
WRONG = {k: rows for module in ANSWERS.values() for k, rows in module.WRONG.items()}
RIGHT = {k: rows for module in ANSWERS.values() for k, rows in module.RIGHT.items()}


def checks_of(number):
    return importlib.import_module(f"minigpt.course.checks.{NOTEBOOKS[number[:2]]}")


@functools.cache
def names(notebook):
    """The names in which the cells of a notebook run."""
    checks = checks_of(notebook)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        found = ANSWERS[notebook].names()
    found |= {name: f for name, f in vars(checks).items() if name.startswith("check_")}
    return {
        "__name__": "__main__",
        **{"copy": copy, "math": math, "torch": torch, "nn": nn, "F": F},
        **found,
    }


def solved(number):
    return answered(EXERCISES[number], names(number[:2]), EXERCISES[number].solution)


def check_of(number):
    found = vars(checks_of(number)).values()
    return next(c for c in found if getattr(c, "number", "") == number)
