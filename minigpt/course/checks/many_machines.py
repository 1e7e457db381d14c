"""The exercises of lesson 10: shares of a batch, and workers that wait forever."""

from collections.abc import Callable
from typing import Any

import torch

from minigpt.course.checks.exercise import Wrong, exercise
from minigpt.course.checks.fake_workers import Stuck, as_workers


def _all_shares(share: Callable, batch_size: int, workers: int) -> Any:
    """True if everyone's rows are a fair share; there may be several fair ways."""
    found = [share(batch_size, rank, workers) for rank in range(workers)]
    if all(ends is ... for ends in found):
        return ...
    if any(not isinstance(ends, (tuple, list)) or len(ends) != 2 for ends in found):
        raise Wrong(f"Return two numbers, first and last. Yours are {found}.")
    if problem := _unfair(found, batch_size):
        rows = f"{batch_size} rows for {workers} workers: {found}"
        raise Wrong(f"{problem}\n    {rows}")
    return True


def _unfair(found: list[Any], batch_size: int) -> str:
    """What is wrong with everyone's first and last; "" for nothing."""
    sizes = [last - first for first, last in found]
    gaps = [(i, b[0] - a[1]) for i, (a, b) in enumerate(zip(found, found[1:]))]
    if any(int(end) != end for ends in found for end in ends):
        return "These aren't whole numbers, so they can't be used in a slice."
    if found[0][0] != 0:
        return "The first share doesn't begin at row 0. (Ranks begin at 0, too.)"
    if gaps and {gap for _, gap in gaps} == {1}:
        return "A slice stops before `last`, so you leave out one row each time."
    if gaps and sum(last for _, last in found) == batch_size:
        return "`last` is where a share ends, but yours says how many rows it has."
    for i, gap in gaps:
        if gap:
            what = (
                "Some rows are read twice"
                if gap < 0
                else "Some rows are read by nobody"
            )
            ends = f"worker {i} ends at {found[i][1]}"
            return f"{what}: {ends}, and worker {i + 1} begins at {found[i + 1][0]}."
    if found[-1][1] != batch_size:
        return f"The last share ends at {found[-1][1]}, so the batch isn't used up."
    if max(sizes) - min(sizes) > 1:
        return (
            f"The shares have {sizes} rows. Everyone has to wait for the largest one."
        )
    return ""


@exercise(
    "10.1 Whose rows?",
    cases=[(4, 2), (7, 3), (16, 3), (10, 4), (11, 8), (5, 5), (6, 1), (3, 5)],
    fresh=lambda: [tuple(torch.randint(1, 40, (2,)).tolist()) for _ in range(6)],
    work=_all_shares,
)
def share(batch_size: int, rank: int, workers: int) -> tuple[int, int]:
    """A function of batch_size, rank and workers that returns first and last."""
    first = rank * batch_size // workers
    return first, (rank + 1) * batch_size // workers


check_share = share.check


def _together(
    windows: Callable, seed: int, batch_size: int, length: int, workers: int
) -> Any:
    """The starts of all workers, sorted, as one batch."""
    found = [
        windows(rank, seed, batch_size, length, workers) for rank in range(workers)
    ]
    if any(starts is None or starts is ... for starts in found):
        return found[0]
    numbers = [torch.as_tensor(starts) for starts in found]
    sizes = [part.numel() for part in numbers]
    if sum(sizes) == batch_size and max(sizes) - min(sizes) > 1:
        raise Wrong(
            f"The workers read {sizes} windows, so some of them have to wait.",
            "No share may be larger than another by two, as in 10.1.",
        )
    return sorted(sum((part.long().tolist() for part in numbers), []))


@exercise(
    "10.2 The same dice",
    cases=[(1, 4, 100, 2), (7, 5, 100, 2), (7, 10, 1000, 3), (3, 5, 50, 1)],
    fresh=lambda: [(int(torch.randint(100, ())), 18, 50, 4), (5, 23, 70, 5)],
    work=_together,
    hint="Which starts would one worker alone draw? All workers can know them.",
)
def windows(
    rank: int, seed: int, batch_size: int, length: int, workers: int
) -> torch.Tensor:
    """A function that returns the starts which are this worker's."""
    generator = torch.Generator().manual_seed(seed)
    first = rank * batch_size // workers
    last = (rank + 1) * batch_size // workers
    drawn = torch.randint(length, (batch_size,), generator=generator)
    return drawn[first:last]


windows.mistakes("""
The bug is still there: all workers draw the same windows.
    last = (rank + 1) * batch_size // workers -> pass
    drawn = torch.randint(length, (batch_size,), generator=generator)
        -> mine = (rank + 1) * batch_size // workers - first
    drawn[first:last] -> torch.randint(length, (mine,), generator=generator)
Every worker has its own seed, so together they don't draw the batch that one worker
alone would draw.
    manual_seed(seed) -> manual_seed(seed + rank)
    (batch_size,) -> (last - first,)
    drawn[first:last] -> drawn
Your slice begins at rank times your own number of rows. That's only right if all
workers have the same number.
    [first:last] -> [rank * (last - first) : (rank + 1) * (last - first)]
randperm never draws a start twice, but randint does. One worker alone would draw
another batch.
    torch.randint(length, (batch_size,), generator=generator)
        -> torch.randperm(length, generator=generator)[:batch_size]
""")
windows.wrong(
    "Some of these windows aren't among those that one worker alone would draw. Does "
    "each worker have its own seed, or its own draw?",
    sign=lambda got, expected, *_: not set(got) <= set(expected),
)
windows.wrong(
    "Every window of the batch should be read once. Some of yours are read twice, or "
    "by nobody.",
    sign=lambda got, expected, *_: set(got) <= set(expected),
)
check_windows = windows.check


def _evaluated(evaluate: Callable, losses: list[list[float]]) -> Any:
    """The mean that worker 0 has, and those of others that return something."""
    try:
        first, *others = as_workers(evaluate, [(own,) for own in losses])
    except Stuck as stuck:
        alone = "worker 0 waits in all_reduce (meeting 1); worker 1 has left"
        untouched = str(stuck).startswith(alone)
        raise Wrong(
            f"{'The bug is still there: some' if untouched else 'Some'} workers wait "
            f"forever: {stuck}.",
            "Does a loop or an `if` depend on a worker's rank, or on its losses?",
            untouched,
        ) from None
    return [first, *(first if value is None else value for value in others)]


def _losses(*sizes: int) -> list[list[float]]:
    return [(3 * torch.rand(n)).tolist() for n in sizes]


@exercise(
    "10.3 Waiting for the others",
    cases=[([[1.0, 2.0], [6.0]],), ([[3.0, 5.0]],), ([[1.0], []],)],
    fresh=lambda: [(_losses(2, 1, 3),), (_losses(0, 1, 2, 5),)],
    work=_evaluated,
    hint="How many windows are there in all? Whose losses should be in the sum?",
)
def evaluate(rank: int, losses: list[float], group: Any) -> float:
    """A function of rank, losses and group that returns the mean over all windows."""
    total = group.all_reduce(sum(losses))
    count = group.all_reduce(len(losses))
    return total / count


evaluate.mistakes("""
Only worker 0's losses count. The others should add theirs.
    sum(losses) -> sum(losses) * (rank == 0)
    len(losses) -> len(losses) * (rank == 0)
Every worker knows only its own losses.
    total / count -> sum(losses) / max(len(losses), 1)
This is the mean of the workers' means. A worker with few windows counts as much as one
with many.
    all_reduce(len(losses)) -> all_reduce(1)
    sum(losses) -> sum(losses) / max(len(losses), 1)
You divide by the number of workers. Count the windows instead.
    all_reduce(len(losses)) -> all_reduce(1)
You divide the sum over all workers by one worker's number of windows.
    total / count -> total / max(len(losses), 1)
""")
evaluate.wrong(
    "Worker 0 returns nothing, and it is the one that prints.",
    sign=lambda got, *_: got[0] is None,
)
check_evaluate = evaluate.check
