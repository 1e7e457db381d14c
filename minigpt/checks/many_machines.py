"""Checks for notebook 10: pieces and shares, rings, memory; and workers in threads."""

import ctypes
import threading
from functools import partial

import torch

from minigpt.checks.core import (
    Explained,
    Sign,
    as_tensor,
    call,
    compare,
    exercise,
    same,
)
from minigpt.checks.solutions import Solution


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


class Disk:
    """A file that all workers see. Writing takes two moments; others come between."""

    def __init__(self):
        self.text, self.stage = "", None

    def write(self, text):
        """Empty the file, write the first half and, a moment later, the second."""
        half = len(text) // 2
        self.text = text[:half]
        self.stage.pause()
        self.text += text[half:]

    def read(self):
        """What is in the file now; "" if nothing has been written."""
        return self.text


class _Stage:
    """Runs workers in threads, one at a time and always in the same order."""

    def __init__(self, function, inputs):
        self.size, self.broken = len(inputs), False
        self.state = ["running"] * self.size  # or "ended", or (what, value)
        self.results, self.errors = [None] * self.size, []
        self.go = [threading.Semaphore(0) for _ in inputs]
        self.back, self.current, self.met = threading.Semaphore(0), None, 0
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

    def pause(self, rank=None):
        """The others have their turn, then this worker goes on."""
        rank = self.current if rank is None else rank
        self.back.release()
        self.go[rank].acquire()
        if self.broken:
            raise Stuck

    def meet(self, rank, what, value):
        """Wait for all workers; their sum."""
        self.state[rank] = (what, value)
        self.pause(rank)
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
                self.current = self.waiting_for = rank
                self.go[rank].release()
                while not self.back.acquire(timeout=0.05):
                    pass  # so that an endless loop can be interrupted
                self.waiting_for = None
        if self.errors:
            raise self.errors[0]
        if "running" in self.state or set(self.state) == {"ended"}:
            return
        waiting = [r for r, state in enumerate(self.state) if state != "ended"]
        kinds = {self.state[rank][0] for rank in waiting}
        if len(waiting) < self.size or len(kinds) > 1:
            told = [
                f"worker {rank} has gone"
                if state == "ended"
                else f"worker {rank} waits in {state[0]} (meeting {self.met + 1})"
                for rank, state in enumerate(self.state)
            ]
            raise Stuck("; ".join(told))
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
                stop = ctypes.py_object(TimeoutError)
                ident = ctypes.c_ulong(thread.ident)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, stop)
        for thread in self.threads:
            thread.join(1)


def as_workers(function, inputs):
    """function(rank, *inputs[rank], group) for each worker -> their results.

    Threads stand in for processes. group.all_reduce(value) is the sum over all
    workers, group.barrier() waits for all. Raises Stuck, and says who waits, where
    real processes would hang.
    """
    stage = _Stage(function, inputs)
    for given in inputs:
        for thing in given:
            if isinstance(thing, Disk):
                thing.stage = stage
    return stage.run()


def _outcome(function, inputs, bug=None):
    """The list of results; raises Explained if some wait for ever, as by the bug."""
    try:
        return list(as_workers(function, inputs))
    except Stuck as stuck:
        untouched = bug is not None and str(stuck).startswith(bug)
        what = "The bug is still there: some" if untouched else "Some"
        raise Explained(
            f"{what} wait for ever: {stuck}.",
            "Everyone must come to every all_reduce and every barrier, in one order.",
        ) from None


def _silent(got, *_):
    return any(part is None for part in got)


# 10.1

PIECE_MISTAKES = {
    "Only the last piece is left; pieces are added.": lambda g, sizes: g[-1],
    "This is the sum; the whole would be too loud.": lambda g, sizes: g.sum(0),
    "Each piece counts alike, a small one too much.": lambda g, sizes: g.mean(0),
    "You divide by the number of pieces where the number of windows belongs.": (
        lambda g, sizes: torch.tensor(sizes).float() @ g / len(sizes)
    ),
    "The division by all windows is there, the sizes of the pieces are not.": (
        lambda g, sizes: g.sum(0) / sum(sizes)
    ),
}


@exercise("10.1 Unequal pieces")
def check_whole_gradient(whole_gradient):
    """whole_gradient(gradients (n, d), sizes) -> the gradient (d,) of the whole."""
    seeded = torch.Generator().manual_seed(10)
    cases = [
        (torch.tensor([[4.0], [8.0]]), [3, 1]),
        (torch.randn(4, 3, generator=seeded), [5, 5, 5, 1]),
        (torch.randn(3, 5, generator=seeded), [2, 7, 4]),
    ]
    hint = "How much of the sum over all windows does a piece of size s hold?"
    compare(whole_gradient, Solution("10.1"), cases, PIECE_MISTAKES, hint=hint)
    x, y, w = (torch.randn(*size, generator=seeded) for size in [(9, 4), (9,), (4,)])
    w.requires_grad_()
    pieces = []
    for rows in (slice(0, 6), slice(6, 9), slice(0, 9)):
        loss = (x[rows] @ w - y[rows]).square().mean()
        pieces.append(torch.autograd.grad(loss, w)[0])
    together = call(whole_gradient, torch.stack(pieces[:2]), [6, 3])
    if not same(together, pieces[2]):
        raise Explained("A regression in pieces of 6 and 3 differs from it in one.")
    return "3 sizes, and a regression of 9 rows in pieces of 6 and 3."


# 10.2


def _fair(share, batch_size, workers):
    """True if everyone's rows are a fair share; raises Explained, or None for dots."""
    found = [share(batch_size, rank, workers) for rank in range(workers)]
    if any(ends is None or ends is ... for ends in found):
        return None
    if problem := _unfair(found, batch_size):
        rows = f"{batch_size} rows for {workers} workers: {found}"
        hint = "Cut the batch at rank / workers of its length, rounded down."
        raise Explained(f"{problem}\n    {rows}", hint)
    return True


def _unfair(found, batch_size):
    """What is wrong with everyone's first and last, or None."""
    if any(not isinstance(ends, (tuple, list)) or len(ends) != 2 for ends in found):
        return "Return two numbers, first and last."
    if any(int(end) != end for ends in found for end in ends):
        return "The ends are no whole numbers: // divides without a rest."
    if found[0][0] != 0:
        return "The first share does not begin at row 0 (ranks, too, begin at 0)."
    sizes = [last - first for first, last in found]
    gaps = {b[0] - a[1] for a, b in zip(found, found[1:])}
    if gaps and min(gaps) < 0:
        if all(first + last == b[0] for (first, last), b in zip(found, found[1:])):
            return "`last` is where a share ends; yours says how many rows it has."
        return "Rows are read twice: one share begins before the last one ends."
    if gaps == {1}:
        return "`last` is not read any more, as in a slice: one row is left out each."
    if gaps and max(gaps):
        return "One `last` is not the next `first`: rows between are read by nobody."
    if found[-1][1] < batch_size:
        return "Rows are left over: the last share should end with the batch."
    if found[-1][1] > batch_size:
        return "The last share ends behind the batch: shares rounded up are too long."
    if max(sizes) - min(sizes) > 1 and sizes[-1] == min(sizes):
        return "Sizes are rounded up, which leaves too little for the last share."
    if max(sizes) - min(sizes) > 1:
        return "One share is larger by two rows or more, and everyone waits for it."


@exercise("10.2 Whose rows?")
def check_share(share):
    """share(batch_size, rank, workers) -> first, last: rows[first:last] are mine."""
    cases = [(4, 2), (10, 4), (7, 3), (16, 3), (11, 8), (5, 5), (6, 1)]
    compare(share, Solution("10.2"), cases, work=_fair)
    return "7 batches; every row is taken once, and no share is larger by two."


# 10.3

RING_MISTAKES = {
    "Everyone sends everything to everyone: that is what the ring avoids.": (
        lambda workers, size: (workers - 1) * size
    ),
}


@exercise("10.3 Once round the ring")
def check_ring_bytes(ring_bytes):
    """ring_bytes(workers, size) -> the bytes that one worker sends."""
    cases = [(2, 8), (4, 1000), (8, 2**20), (1, 100), (64, 4e9)]
    hint = "Two halves, workers - 1 steps each, one chunk of size / workers in a step."
    compare(ring_bytes, Solution("10.3"), cases, RING_MISTAKES, 1e-3, hint=hint)
    return "5 rings, from 1 worker, who sends nothing, to 64."


# 10.4

TIME = Solution("10.4")
TIME_MISTAKES = {
    "This is half a ring: there are 2 (workers - 1) steps.": (
        lambda n, c, *ring: (c / n + TIME(n, c, *ring)) / 2
    ),
    "You take the longer of the two, but here they do not overlap: add them.": (
        lambda n, c, *ring: max(c / n, TIME(n, 0.0, *ring))
    ),
    "You divide the talking among the workers as well: every one of them sends.": (
        lambda n, c, *ring: (c + TIME(n, 0.0, *ring)) / n
    ),
    "This is the speed-up, or its inverse; asked is a time in seconds.": Sign(
        lambda got, right, n, c, *_: same(got, c / right) or same(got, right / c)
    ),
}


@exercise("10.4 How long is a step?")
def check_step_time(step_time):
    """step_time(workers, compute, size, latency, bandwidth) -> seconds."""
    cases = [
        (2, 1.0, 100.0, 0.01, 1000.0),
        (4, 8.0, 40.0, 0.25, 10.0),
        (1, 3.0, 500.0, 0.5, 100.0),
        (16, 2.0, 1e9, 1e-3, 5e9),
        (64, 0.5, 4e7, 2e-3, 1e10),
    ]
    hint = "compute / workers + 2 (workers - 1) latency + ring_bytes / bandwidth"
    compare(step_time, TIME, cases, TIME_MISTAKES, 1e-6, hint=hint)
    best = min(range(1, 1025), key=lambda n: TIME(n, 0.3, 4e7, 1e-4, 1e9))
    return (
        "5 clusters. A step of 0.3 s, 40 MB, 0.1 ms and 1 GB/s is shortest with "
        f"{best} workers, and longer with more."
    )


# 10.5

FSDP = Solution("10.5")
FSDP_MISTAKES = {
    "The layer at work is whole on each.": lambda P, layer, n: FSDP(P, layer / n, n),
    "All of it is on each worker: nothing is shared.": lambda P, layer, n: 16 * P,
    "The layer at work is missing.": lambda P, layer, n: FSDP(P, 0, n),
    "AdamW keeps two numbers for each parameter, m and v.": (
        lambda P, layer, n: 12 * P / n + 8 * layer
    ),
}


@exercise("10.5 A share of everything")
def check_fsdp_bytes(fsdp_bytes):
    """fsdp_bytes(parameters, largest, workers) -> bytes that each worker holds."""
    cases = [(100, 10, 2), (1000, 300, 8), (1.5e9, 8e7, 64)]
    hint = "Of each parameter a share of 16 bytes; of each in the largest layer, 8."
    compare(fsdp_bytes, FSDP, cases, FSDP_MISTAKES, 1e-3, hint=hint)
    return "3 models; the third takes 24 GB alone and 1.0 GB as one of 64."


# 10.6

STEP, WEIGHT = Solution("10.6"), "len(error) / len(x) * 2"
STEP_MISTAKES = {
    "The bug is still there: the means of all workers are added up, so the step grows "
    "with their number.": STEP.but((WEIGHT, "2")),
    "The mean of means: where the batch does not divide, a small piece speaks too "
    "loud.": (
        STEP.but((WEIGHT, "2 / workers")),
        "Weigh each piece by its share of the rows, len(error) / len(x).",
    ),
}


@exercise("10.6 The louder step")
def check_step(step):
    """step(w, x, y, workers) -> the weights after one step, whoever takes it."""
    seeded = torch.Generator().manual_seed(6)
    cases = [(torch.zeros(1), torch.ones(4, 1), torch.ones(4), 2)]
    for rows, d, n in [(6, 2, 3), (7, 3, 3), (10, 2, 4), (5, 2, 1)]:
        shapes = [(d,), (rows, d), (rows,)]
        cases.append((*(torch.randn(*s, generator=seeded) for s in shapes), n))
    hint = "However many workers there are, the step is that of one."
    compare(step, STEP, cases, STEP_MISTAKES, hint=hint)
    return "5 batches, also some that do not divide: all workers make one step."


# 10.7


def _drawn(windows, seed, batch_size, length, workers):
    """The windows of all workers, sorted, as one batch."""
    found = []
    for rank in range(workers):
        starts = windows(rank, seed, batch_size, length, workers)
        if starts is None or starts is ...:
            return None
        found += as_tensor(starts).tolist()
    return sorted(found)


WINDOWS = Solution("10.7")
SAME_DICE = WINDOWS.but(("(batch_size,)", "(last - first,)"), ("[first:last]", ""))
SEED_MISTAKES = {
    "The bug is still there: all workers draw the same windows, and twice the work "
    "teaches nothing new.": partial(_drawn, SAME_DICE),
    "Some windows are not in the batch that one process draws: with another number "
    "of workers, it would be another run.": (
        Sign(lambda got, expected, *_: not set(got) <= set(expected), vague=True),
        "Let all draw the whole batch from the same seed, and each take its rows.",
    ),
    "Windows are lost or read twice: of the batch, each is for one worker.": (
        Sign(lambda got, expected, *_: set(got) <= set(expected), vague=True)
    ),
}


@exercise("10.7 The same dice")
def check_windows(windows):
    """windows(rank, seed, batch_size, length, workers) -> starts of this worker."""
    cases = [(1, 4, 100, 2), (7, 10, 1000, 3), (3, 16, 50, 4), (3, 5, 50, 1)]
    hint = "The order of the draw is shared, the rows are not."
    compare(windows, WINDOWS, cases, SEED_MISTAKES, work=_drawn, hint=hint)
    return "4 batches: together the workers draw what one process draws."


# 10.8


def _evaluated(evaluate, losses):
    """What comes of it with these losses of workers."""
    alone = "worker 0 waits in all_reduce (meeting 1); worker 1 has gone"
    return _outcome(evaluate, [(own,) for own in losses], bug=alone)


def _mean(numbers):
    return sum(numbers) / len(numbers)


EVALUATION_MISTAKES = {
    "Some workers return nothing. They took part to find the loss: let all have it.": (
        Sign(_silent)
    ),
    "Each worker knows its own windows only.": lambda losses: [*map(_mean, losses)],
    "The mean of means: workers with few windows speak too loud.": (
        lambda losses: [_mean([*map(_mean, losses)])] * len(losses)
    ),
    "You divide all losses by this worker's number of windows.": (
        lambda losses: [sum(map(sum, losses)) / len(own) for own in losses]
    ),
    "You divide by the number of workers; a mean is over windows.": (
        lambda losses: [_mean([*map(sum, losses)])] * len(losses)
    ),
}


@exercise("10.8 Waiting for the others")
def check_evaluate(evaluate):
    """evaluate(rank, losses, group) -> the mean over all windows, on every worker."""
    cases = [[[2.0], [4.0]], [[1.0, 2.0], [3.0], [6.0, 6.0]], [[3.0, 5.0]]]
    cases = [(losses,) for losses in cases]
    hint = "Everyone must come to every all_reduce."
    compare(
        evaluate,
        Solution("10.8"),
        cases,
        EVALUATION_MISTAKES,
        work=_evaluated,
        hint=hint,
    )
    return "groups of 1, 2 and 3, with unequal shares; nobody waits."


# 10.9


def _saved(save_and_load, text, workers):
    """What the workers read, and what is on the disk when all have ended."""
    disk = Disk()
    return [*_outcome(save_and_load, [(text, disk)] * workers), disk.text]


SAVED = Solution("10.9")
SAVE_MISTAKES = {
    "The bug is still there: all write into one file at once, and it is torn.": partial(
        _saved, SAVED.but(("rank == 0", "True"), ("group.barrier()", "pass"))
    ),
    "Nobody has written: the disk is empty in the end.": (
        Sign(lambda got, *_: got[-1] == "")
    ),
    "Some workers return nothing: everyone is to have read the file.": Sign(_silent),
}


@exercise("10.9 Too many writers")
def check_save_and_load(save_and_load):
    """save_and_load(rank, text, disk, group) -> what is in the file, on each worker."""
    cases = [("step 1000", 3), ("step 20", 2), ("step 9", 1)]
    hint = "One worker writes, the others wait until it has, then all read."
    compare(save_and_load, SAVED, cases, SAVE_MISTAKES, work=_saved, hint=hint)
    return "groups of 3, 2 and 1; the file is whole, and everyone has read it."
