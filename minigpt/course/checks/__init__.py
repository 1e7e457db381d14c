"""The exercises' checks: a module for each notebook of exercises, and their engine.

A notebook says

    from minigpt.course.checks import progress
    from minigpt.course.checks.averaging import check_mean_so_far

and calls `check_mean_so_far(mean_so_far)`. No lesson imports this package.

The modules with the names of notebooks (bigram to reward) hold the exercises. The
engine is exercise, diagnosis, run, results, slips, source and words; begin with
exercise. .github/CONTRIBUTING.md says step by step how an exercise is added, and
averaging is a short module to copy from.
"""

from minigpt.course.checks.exercise import progress

__all__ = ["progress"]
