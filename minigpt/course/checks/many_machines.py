"""Checks for notebook 10: pieces and shares, rings, memory; and workers in threads."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from minigpt.course.checks.acting import Stuck, as_workers
from minigpt.course.checks.core import Explained, compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import same, tensor_of


def _outcome(
    function: Callable, inputs: Sequence[tuple], bug: str | None = None
) -> list[Any]:
    """The list of results; raises Explained if some wait for ever, as by the bug."""
    try:
        return list(as_workers(function, inputs))
    except Stuck as stuck:
        untouched = bug is not None and str(stuck).startswith(bug)
        what = "The bug is still there: some" if untouched else "Some"
        hint = "Everyone must come to every all_reduce and every barrier, in one order."
        if not untouched:
            hint += " Does a loop or an `if` depend on a worker's rank or losses?"
        raise Explained(
            f"{what} wait for ever: {stuck}.",
            hint,
            untouched=untouched,
        ) from None


def _silent(got: list[Any], *_: Any) -> bool:
    return any(part is None for part in got)


def _fair(share: Callable, batch_size: int, workers: int) -> bool | None:
    """True if everyone's rows are a fair share; raises Explained, or None for dots."""
    found = [share(batch_size, rank, workers) for rank in range(workers)]
    if any(ends is None or ends is ... for ends in found):
        return None
    if problem := _unfair(found, batch_size):
        rows = f"{batch_size} rows for {workers} workers: {found}"
        hint = "Cut the batch at rank / workers of its length, rounded down."
        raise Explained(f"{problem}\n    {rows}", hint)
    return True


def _shares(found: list[Any], batch_size: int) -> bool:
    """Whether all rows are taken once, in their order."""
    ends = [0, *(end for pair in found for end in pair), batch_size]
    return ends[::2] == ends[1::2] and ends == sorted(ends)


def _unfair(found: list[Any], batch_size: int) -> str | None:
    """What is wrong with everyone's first and last, or None."""
    if any(not isinstance(ends, (tuple, list)) or len(ends) != 2 for ends in found):
        return "Return two numbers, first and last."
    if any(int(end) != end for ends in found for end in ends):
        return "The ends are no whole numbers, the first row and the one behind mine."
    if found[0][0] != 0:
        return "The first share does not begin at row 0 (ranks, too, begin at 0)."
    sizes = [last - first for first, last in found]
    if _shares(found, batch_size) and max(sizes) - min(sizes) < 2:
        return None
    if found[1:] and sum(last for _, last in found) == batch_size:
        return "`last` is where a share ends; yours says how many rows it has."
    gaps = [b[0] - a[1] for a, b in zip(found, found[1:])]
    if gaps and min(gaps) < 0:
        i = next(i for i, gap in enumerate(gaps) if gap < 0)
        what = "Rows are read twice: "
        if sum(sizes) == batch_size and max(sizes) - min(sizes) < 2:
            what = "The shares have the right sizes, but not the right beginnings: "
        ends = f"worker {i} ends at {found[i][1]}"
        return f"{what}{ends}, and worker {i + 1} begins at {found[i + 1][0]}."
    if {*gaps} == {1}:
        return "`last` is not read any more, as in a slice: one row is left out each."
    if any(gaps):
        return "One `last` is not the next `first`: rows between are read by nobody."
    if found[-1][1] < batch_size and {*sizes} == {batch_size // len(found)}:
        return "All sizes are rounded down, and nobody reads the rows left over."
    if found[-1][1] != batch_size:
        return "The last share should end with the batch."
    if len({*sizes[:-1]}) == 1 and sizes[-1] < sizes[0] - 1:
        return "All shares but the last are rounded up: too few rows are left for that."
    if len({*sizes[:-1]}) == 1 and sizes[-1] > sizes[0] + 1:
        return "The last worker takes all rows that are left over: share them out."
    if max(sizes) - min(sizes) > 1:
        return "One share is larger by two rows or more, and everyone waits for it."


SHARE = Solution(
    """
def share(batch_size, rank, workers):
    first = rank * batch_size // workers
    return first, (rank + 1) * batch_size // workers
""",
)


@exercise("10.1 Whose rows?", SHARE)
def check_share(share: Any) -> str:
    """share(batch_size, rank, workers) -> first, last: rows[first:last] are mine."""
    cases = [(7, 3), (10, 4), (9, 2), (16, 3), (11, 8), (5, 5), (6, 1), (3, 5), (1, 4)]
    compare(share, SHARE, cases, work=_fair)
    return "9 batches; every row is taken once, and no share is larger by two."


def _drawn(
    windows: Callable, seed: int, batch_size: int, length: int, workers: int
) -> list[Any] | None:
    """The windows of all workers, sorted, as one batch."""
    found = []
    for rank in range(workers):
        starts = windows(rank, seed, batch_size, length, workers)
        if starts is None or starts is ...:
            return None
        found.append(tensor_of(starts).tolist())
    together, sizes = sorted(itertools.chain(*found)), [len(part) for part in found]
    if len(together) == batch_size and max(sizes) - min(sizes) > 1:
        what = f"Of {batch_size} windows, the workers read {sizes}: some have to wait."
        raise Explained(what, "No share may be larger than another by two, as in 10.1.")
    return together


WINDOWS = Solution(
    """
def windows(rank, seed, batch_size, length, workers):
    generator = torch.Generator().manual_seed(seed)
    first = rank * batch_size // workers
    last = (rank + 1) * batch_size // workers
    drawn = torch.randint(length, (batch_size,), generator=generator)
    return drawn[first:last]
""",
    Mistake(
        "The bug is still there: all workers draw the same windows.",
        [
            (
                "last = (rank + 1) * batch_size // workers",
                "mine = (rank + 1) * batch_size // workers - first",
            ),
            (
                "drawn = torch.randint(length, (batch_size,)",
                "return torch.randint(length, (mine,)",
            ),
            ("return drawn[first:last]", "pass"),
        ],
        untouched=True,
    ),
    Mistake(
        "You divide the text among the workers; what is divided is the batch.",
        [
            (
                "(batch_size,),",
                "(0,), generator=generator)\n"
                "    low, high = rank * length // workers, (rank + 1) * length // "
                "workers\n"
                "    drawn = torch.randint(low, high, (last - first,),",
            ),
            ("[first:last]", ""),
        ],
    ),
    Mistake(
        "Each worker has a seed of its own: together they draw another batch than one "
        "process does.",
        [
            ("manual_seed(seed)", "manual_seed(seed + rank)"),
            ("(batch_size,)", "(last - first,)"),
            ("drawn[first:last]", "drawn"),
        ],
        hint="Let all draw the whole batch from the same seed, and each take its rows.",
    ),
    Mistake(
        "You skip rank times your own number of draws: right only if all have as many.",
        [
            (
                "    drawn =",
                "    torch.randint(length, (rank * (last - first),), "
                "generator=generator)\n    drawn =",
            ),
            ("(batch_size,)", "(last - first,)"),
            ("drawn[first:last]", "drawn"),
        ],
    ),
    Mistake(
        "Your slice begins at rank times your own number of rows: right only if"
        " all have as many.",
        [("[first:last]", "[rank * (last - first) : (rank + 1) * (last - first)]")],
    ),
    Mistake(
        "`randperm` draws no start twice, and not those that `randint` "
        "draws: it would be another run.",
        [
            (
                "torch.randint(length, (batch_size,), generator=generator)",
                "torch.randperm(length, generator=generator)[:batch_size]",
            ),
        ],
        hint=(
            "Draw the batch as one worker alone would, with randint, and share it out."
        ),
    ),
    Mistake(
        "`rand` draws other starts than `randint` does: it would be another run.",
        [
            (
                "torch.randint(length, (batch_size,), generator=generator)",
                "(torch.rand(batch_size, generator=generator) * length).long()",
            ),
        ],
        hint=(
            "Draw the batch as one worker alone would, with randint, and share it out."
        ),
    ),
)


@exercise("10.2 The same dice", WINDOWS)
def check_windows(windows: Any) -> str:
    """windows(rank, seed, batch_size, length, workers) -> starts of this worker."""
    cases = [(1, 4, 100, 2), (7, 10, 1000, 3), (3, 18, 50, 4), (3, 5, 50, 1)]
    known = [
        Mistake(
            "Some of these windows are not among those that one worker alone would "
            "draw with `randint`. Is a worker's seed its own, or is its draw another "
            "one?",
            sign=lambda got, right, *_: not set(got) <= set(right),
            vague=True,
            hint="Which numbers does torch.randint(length, (batch_size,)) draw with "
            "this seed? These are to be shared out.",
        ),
        Mistake(
            "Windows are lost or read twice: of the batch, each is for one worker.",
            sign=lambda got, right, *_: set(got) <= set(right),
            vague=True,
        ),
    ]
    hint = "The order of the draw is shared, the rows are not."
    compare(windows, WINDOWS, cases, known, work=_drawn, hint=hint)
    return "4 batches: together the workers draw what one process draws."


def _evaluated(evaluate: Callable, losses: list[list[float]]) -> list[Any]:
    """What worker 0 has, and what others have that return something."""
    alone = "worker 0 waits in all_reduce (meeting 1); worker 1 has gone"
    first, *others = _outcome(evaluate, [(own,) for own in losses], bug=alone)
    return [first, *(first if value is None else value for value in others)]


EVALUATE = Solution(
    """
def evaluate(rank, losses, group):
    total = group.all_reduce(sum(losses))
    count = group.all_reduce(len(losses))
    return total / count
""",
    Mistake(
        "Only worker 0's windows count: the others must bring theirs, too.",
        [
            ("all_reduce(sum(losses))", "all_reduce(sum(losses) * (rank == 0))"),
            ("all_reduce(len(losses))", "all_reduce(len(losses) * (rank == 0))"),
        ],
    ),
    Mistake(
        "Each worker knows its own windows only.",
        [("total / count", "sum(losses) / len(losses)")],
    ),
    Mistake(
        "The mean of means: workers with few windows speak too loud.",
        [
            ("all_reduce(len(losses))", "all_reduce(1)"),
            ("sum(losses)", "sum(losses) / max(len(losses), 1)"),
        ],
    ),
    Mistake(
        "You divide by the number of workers; count the windows.",
        [("all_reduce(len(losses))", "all_reduce(1)")],
    ),
    Mistake(
        "The sum of all workers is divided by this worker's number of "
        "windows: the numbers must be added up, too.",
        [
            ("total / count", "total / len(losses)"),
        ],
    ),
    Mistake(
        "You add up the workers' own means. Bring the sum and the "
        "number of your windows, and divide once.",
        [
            ("sum(losses)", "sum(losses) / max(len(losses), 1)"),
            ("total / count", "total"),
        ],
    ),
    Mistake(
        "The mean of means, and always of three workers: bring the sum "
        "and the number of your windows, and divide once.",
        [
            ("sum(losses)", "sum(losses) / max(len(losses), 1)"),
            ("total / count", "total / 3"),
        ],
    ),
    Mistake(
        "That is the sum over all windows; the mean is asked.",
        [
            ("total / count", "total"),
        ],
    ),
)


@exercise("10.3 Waiting for the others", EVALUATE)
def check_evaluate(evaluate: Any) -> str:
    """evaluate(rank, losses, group) -> the mean over all windows, on worker 0."""
    cases = [[[2.0], [4.0]], [[1.0, 2.0], [3.0], [6.0, 6.0]], [[3.0, 5.0]], [[1.0], []]]
    cases.append([[], [1.0], [2.0, 3.0], [4.0]])
    known = [
        Mistake(
            "Worker 0 returns nothing, and it is the one that prints.", sign=_silent
        ),
        Mistake(
            "Not all come with the same: where one brings its sum, another brings its "
            "count.",
            sign=lambda got, _, losses: same(
                got[0] * (len(losses[0]) + sum(map(sum, losses[1:]))),
                sum(losses[0]) + sum(map(len, losses[1:])),
            ),
        ),
    ]
    hint = "The sum over all windows, divided once by the number of all windows."
    how: dict[str, Any] = {"work": _evaluated, "hint": hint}
    cases = [(losses,) for losses in cases]
    compare(evaluate, EVALUATE, cases, known, **how)
    return "groups of 1, 2, 3 and 4, with unequal shares; nobody waits."
