"""The record of the speed run: the recipes that come with the course."""

from functools import partial
from pathlib import Path

from minigpt.course.experiments import fit
from minigpt.tools import speedrun


def measured(path: Path, seed: int) -> dict[str, float]:
    """One seed of a recipe: what speedrun.run measures."""
    return speedrun.run(path, fit.corpus(), seed)


RECIPES = sorted(speedrun.RECIPES.glob("[a-z]*.py"))
EXPERIMENTS = {"speedrun": {path.stem: partial(measured, path) for path in RECIPES}}
