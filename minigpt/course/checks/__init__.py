'''The exercises' checks: a module for each notebook of exercises, and their engine.

A notebook says

    from minigpt.course.checks import progress
    from minigpt.course.checks.averaging import check_mean_so_far

and calls `check_mean_so_far(mean_so_far)`. No lesson imports this package.

To add an exercise, write into the module of its notebook (averaging.py is a short one
to copy from; a new notebook gets a new module, and nothing else has to know of it):

    DOUBLED = Solution(
        """
    def doubled(x):
        return 2 * x
    """,
        Mistake(
            "You square x: for 2 that is the same, and for nothing else but 0.",
            [("2 * x", "x * x")],  # what makes the mistake in the solution's text
            hint="Try it with 3.",
        ),
    )


    @exercise("14.1 Twice as much", DOUBLED)
    def check_doubled(doubled: Any) -> str:
        """doubled(x): (N,) -> (N,)."""  # heard by whoever returns something else
        cases = [(torch.tensor([2.0]),), (randn(5),)]  # inputs, the smallest first
        compare(doubled, DOUBLED, cases, hint="What is x + x?")
        return "2 vectors."  # heard by whoever is right

1. The notebook has, for each exercise, a heading `### Exercise 14.1: Twice as much`, a
   code cell `# Exercise 14.1` (`# Bug hunt 14.1`) with the skeleton, a cell that calls
   the check, and a fold `<summary>Solution…` with a python block, into which `make
   notebooks` writes the solution's text.
2. A known mistake is the sentence that a learner hears, and the edits of the solution
   that make it. Of a bug hunt's program as it is given, say `untouched=True`. Write
   the sentence for somebody who does not see yet what is wrong; no jokes.
3. The cases must tell the solution from each known mistake, and from whatever else a
   small change makes of it: tests/checks/test_checks.py tries them all.
4. Answers that a check has never seen go to tests/checks/answers, right ones and wrong
   ones.
'''

from minigpt.course.checks.core import progress

__all__ = ["progress"]
