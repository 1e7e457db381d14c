"""Fake workers: threads that play processes, so that none can wait forever."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from minigpt.course.checks.run import interrupt


class Stuck(Exception):
    """Some workers wait for others that will never come."""


class Group:
    """What a worker is handed so that it can meet the others."""

    def __init__(self, rank: int, meeting: "_Meeting"):
        self._rank, self._meeting = rank, meeting
        self.size = meeting.barrier.parties

    def all_reduce(self, value: Any) -> Any:
        """The sum of what all workers bring; returns when all have come."""
        if isinstance(value, (str, list, tuple, dict)):
            raise TypeError("all_reduce adds numbers or tensors, not lists or texts")
        first, *others = self._meeting.attend(self._rank, "all_reduce", value)
        for value in others:
            first = first + value
        return first

    def barrier(self) -> None:
        """Returns when all have come."""
        self._meeting.attend(self._rank, "barrier")


class _Meeting:
    """Where all workers come together, again and again.

    A worker that has ended comes once more to say so. Then nobody waits for it in vain,
    and where real processes would wait forever, we find out at once.
    """

    def __init__(self, size: int):
        self.barrier = threading.Barrier(size)
        self.number, self.brought = 1, [("", None)] * size
        self.stuck: Stuck | None = None

    def attend(self, rank: int, what: str, value: Any = None) -> list[Any]:
        """What each has brought to this meeting, in the order of their ranks."""
        self.brought[rank] = what, value
        self.barrier.wait()  # all are here
        found, number = list(self.brought), self.number
        self.barrier.wait()  # all have read, so that the next meeting may begin
        if rank == 0:
            self.number += 1
        if len({what for what, _ in found}) > 1:
            told = [
                f"worker {i} "
                + (f"waits in {what} (meeting {number})" if what else "has left")
                for i, (what, _) in enumerate(found)
            ]
            self.stuck = Stuck("; ".join(told))
            if what:
                raise self.stuck
        return [value for _, value in found]


def as_workers(function: Callable, inputs: Sequence[tuple]) -> tuple:
    """function(rank, *inputs[rank], group) for each worker -> their results.

    Threads play the processes. group.all_reduce(value) is the sum over all workers,
    and group.barrier() waits for all of them. Where real processes would hang, this
    raises Stuck and says which workers are waiting.
    """
    meeting, errors = _Meeting(len(inputs)), {}
    results = [None] * len(inputs)

    def work(rank: int) -> None:
        try:
            results[rank] = function(rank, *inputs[rank], Group(rank, meeting))
        except BaseException as error:  # the learner's code may raise anything
            errors[rank] = error
        if not meeting.stuck:
            meeting.attend(rank, "")

    threads = [
        threading.Thread(target=work, args=(rank,), daemon=True)
        for rank in range(len(inputs))
    ]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:  # in steps: an endless loop can be interrupted
                thread.join(0.02)
    finally:
        meeting.barrier.abort()
        for thread in filter(threading.Thread.is_alive, threads):
            interrupt(thread)
            thread.join(1)
    own = [error for error in errors.values() if not isinstance(error, Stuck)]
    if own:
        raise own[0]
    if meeting.stuck:
        raise meeting.stuck
    return tuple(results)
