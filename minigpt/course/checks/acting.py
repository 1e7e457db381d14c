"""Workers in threads that stand in for processes; none waits for ever."""

import threading
from functools import partial

from minigpt.course.checks.running import interrupt


class Stuck(Exception):
    """Some workers wait for others that will never come."""


class _Member:
    """What one worker knows of its group: how to meet the others."""

    def __init__(self, rank, stage):
        self._rank, self._stage = rank, stage
        self.size = stage.size

    def all_reduce(self, value):
        """The sum of what all workers bring; returns when all have come."""
        return self._stage.meet(self._rank, "all_reduce", value)

    def barrier(self):
        """Returns when all have come."""
        self._stage.meet(self._rank, "barrier", 0)


class _Stage:
    """Runs workers in threads, one at a time and always in the same order."""

    def __init__(self, function, inputs):
        self.size, self.broken = len(inputs), False
        self.state = ["running"] * self.size  # or "ended", or (what, value)
        self.results, self.errors = [None] * self.size, []
        self.go = [threading.Semaphore(0) for _ in inputs]
        self.back, self.met = threading.Semaphore(0), 0
        self.waiting_for = None  # the one at work, while it is
        work = partial(self._work, function)
        self.threads = [
            threading.Thread(target=work, args=(rank, given), daemon=True)
            for rank, given in enumerate(inputs)
        ]

    def _work(self, function, rank, given):
        self.go[rank].acquire()
        try:
            if not self.broken:
                self.results[rank] = function(rank, *given, _Member(rank, self))
        except BaseException as error:  # the learner's code may raise anything
            self.errors.append(error)
        self.state[rank] = "ended"
        self.back.release()

    def meet(self, rank, what, value):
        """Wait for all workers; their sum."""
        self.state[rank] = (what, value)
        self.back.release()  # the others have their turn, then this worker goes on
        self.go[rank].acquire()
        if self.broken:
            raise Stuck
        return self.total

    def run(self):
        """The results of all workers, in their order."""
        for thread in self.threads:
            thread.start()
        try:
            while any(state != "ended" for state in self.state):
                self._round()
            return tuple(self.results)
        finally:
            self._end()

    def _round(self):
        for rank in reversed(range(self.size)):  # worker 0 comes last
            if self.state[rank] == "running":
                self.waiting_for = rank
                self.go[rank].release()
                while not self.back.acquire(timeout=0.05):
                    pass  # so that an endless loop can be interrupted
                self.waiting_for = None
        if self.errors:
            raise self.errors[0]
        if "running" in self.state or set(self.state) == {"ended"}:
            return
        if len({state if state == "ended" else state[0] for state in self.state}) > 1:
            waits = f"waits in {{}} (meeting {self.met + 1})"
            told = [
                waits.format(s[0]) if s != "ended" else "has gone" for s in self.state
            ]
            raise Stuck("; ".join(f"worker {i} {what}" for i, what in enumerate(told)))
        first, *others = [value for _, value in self.state]
        for value in others:
            first = first + value
        self.total, self.state = first, ["running"] * self.size
        self.met += 1

    def _end(self):
        self.broken = True
        for rank, thread in enumerate(self.threads):
            self.go[rank].release()
            if rank == self.waiting_for:
                interrupt(thread)
        for thread in self.threads:
            thread.join(1)


def as_workers(function, inputs):
    """function(rank, *inputs[rank], group) for each worker -> their results.

    Threads stand in for processes. group.all_reduce(value) is the sum over all
    workers, group.barrier() waits for all. Raises Stuck, and says who waits, where
    real processes would hang.
    """
    return _Stage(function, inputs).run()
