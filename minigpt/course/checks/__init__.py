"""The exercises' checks: a module for each notebook of exercises, and their engine.

A notebook says

    from minigpt.course.checks import progress
    from minigpt.course.checks.averaging import check_mean_so_far

and calls `check_mean_so_far(mean_so_far)`. No lesson imports this package.

The modules with the names of notebooks (bigram to bridge) are data: solutions, the
mistakes that people make, cases. All others are the engine; core shows the way of an
answer through it. .github/CONTRIBUTING.md says, step by step, how an exercise is
added; averaging is a short module to copy from. Besides:

- A known mistake is the sentence that a learner hears, and the edits of the solution
  that make it. Write it for somebody who does not see yet what is wrong; no jokes. Of a
  bug hunt's program as it is given, say `untouched=True`.
- The cases, the smallest first, must tell the solution from each known mistake, and
  from whatever else a small change makes of it: tests/checks/test_checks.py tries all.
- The checker's docstring is heard by whoever returns something that cannot be compared,
  the text that it returns by whoever is right.
- Answers that a check has never seen go to tests/checks/answers, right and wrong ones.
"""

from minigpt.course.checks.core import progress

__all__ = ["progress"]
