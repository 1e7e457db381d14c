"""The exercises of lesson 10: shares of a batch, and workers that wait forever."""

from collections.abc import Callable
from typing import Any

import torch

from minigpt.course.checks.exercise import Wrong, exercise
from minigpt.course.checks.fake_workers import Stuck, as_workers


def _rows(share: Callable, batch_size: int, workers: int) -> tuple[str, list[int]]:
    """The rows of all workers, and how many each has; there are several fair ways."""
    ends = [share(batch_size, rank, workers) for rank in range(workers)]
    if any(end % 1 for pair in ends for end in pair):
        raise Wrong("These aren't whole numbers, so they can't be used in a slice.")
    shares = [range(int(first), int(last)) for first, last in ends]
    return " ".join(str(i) for rows in shares for i in rows), sorted(map(len, shares))


@exercise(
    "10.1 Whose rows?",
    cases=[(4, 2), (7, 3), (16, 3), (10, 4), (11, 8), (5, 5), (6, 1), (3, 5)],
    fresh=lambda: [tuple(torch.randint(1, 40, (2,)).tolist()) for _ in range(6)],
    work=_rows,
    values=("rows that are read", "rows per worker"),
    hint="A share begins where the one before it ends. The first one begins at 0.",
)
def share(batch_size: int, rank: int, workers: int) -> tuple[int, int]:
    """A function of batch_size, rank and workers that returns first and last."""
    first = rank * batch_size // workers
    return first, (rank + 1) * batch_size // workers


share.mistakes("""
If batch_size // workers leaves a remainder, nobody reads those rows.
    rank * batch_size // workers -> rank * (batch_size // workers)
    (rank + 1) * batch_size // workers -> first + batch_size // workers
The last worker gets all the rows that are left over, and everyone has to wait for it.
    rank * batch_size // workers -> rank * (batch_size // workers)
    (rank + 1) * batch_size // workers
        -> batch_size if rank == workers - 1 else first + batch_size // workers
You round all shares up, so the last workers get much less, or nothing.
    rank * batch_size // workers -> min(rank * -(-batch_size // workers), batch_size)
    (rank + 1) * batch_size // workers
        -> min(first - (-batch_size // workers), batch_size)
Some rows are read twice. A share should begin where the one before it ends.
    rank * batch_size // workers -> rank * (batch_size // workers)
    or
    rank * batch_size // workers -> rank * (batch_size // workers)
    (rank + 1) * batch_size // workers
        -> first + batch_size // workers + (rank < batch_size % workers)
""")
check_share = share.check


def _together(
    windows: Callable, seed: int, batch_size: int, length: int, workers: int
) -> tuple[list, list]:
    """The starts of all workers, sorted, and how many each has."""
    given = seed, batch_size, length, workers
    every = [windows(rank, *given) for rank in range(workers)]
    found = [torch.as_tensor(starts).tolist() for starts in every]
    return sorted(sum(found, [])), sorted(map(len, found))


@exercise(
    "10.2 The same dice",
    cases=[(1, 4, 100, 2), (7, 5, 100, 2), (7, 10, 1000, 3), (3, 5, 50, 1)],
    fresh=lambda: [(int(torch.randint(100, ())), 18, 50, 4), (5, 23, 70, 5)],
    work=_together,
    values=("starts of all workers", "windows per worker"),
    hint="Which starts would one worker alone draw? Every worker can draw them.",
)
def windows(
    rank: int, seed: int, batch_size: int, length: int, workers: int
) -> torch.Tensor:
    """A function that returns the starts that belong to this worker."""
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
randperm never draws a start twice, but randint does. One worker alone would draw a
different batch.
    torch.randint(length, (batch_size,), generator=generator)
        -> torch.randperm(length, generator=generator)[:batch_size]
""")
windows.wrong(
    "Every window of the batch should be read once. Some of yours are read twice, or "
    "not at all.",
    sign=lambda got, expected, *_: set(got[0]) <= set(expected[0]),
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
You divide the sum over all workers by one worker's number of windows.
    total / count -> total / len(losses) if rank == 0 else None
This is the mean of the workers' means. A worker with few windows counts as much as one
with many.
    all_reduce(len(losses)) -> all_reduce(1)
    sum(losses) -> sum(losses) / max(len(losses), 1)
""")
check_evaluate = evaluate.check
