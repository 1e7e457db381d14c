"""Checks for notebook 10: pieces and shares, rings, memory; and workers in threads."""

import ctypes
import threading
from functools import partial

import torch

from minigpt.checks.core import (
    Explained,
    Sign,
    as_tensor,
    compare,
    exercise,
    mistakes,
    same,
)


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


def _outcome(function, inputs):
    """What came of it: the results, or "stuck" and where."""
    try:
        return as_workers(function, inputs)
    except Stuck as stuck:
        return f"stuck: {stuck}"


# 10.1


def _weighed(weights):
    """A program: the gradients, weighed by weights(sizes), summed."""

    def program(gradients, sizes):
        return (weights(torch.tensor(sizes).double()) @ gradients.double()).float()

    return program


_whole = _weighed(lambda sizes: sizes / sizes.sum())
PIECE_MISTAKES = {
    "This is the sum: the pieces are averaged, so the whole would be too loud.": (
        _weighed(torch.ones_like)
    ),
    "Each piece counts alike, but a large piece speaks for more windows.": (
        _weighed(lambda sizes: torch.ones_like(sizes) / len(sizes))
    ),
    "You multiply by the sizes, but do not divide by the number of windows.": (
        _weighed(lambda sizes: sizes)
    ),
    "The division by all windows is there, the sizes of the pieces are not.": (
        _weighed(lambda sizes: torch.ones_like(sizes) / sizes.sum())
    ),
    "Your weights are the wrong way up: the smallest piece counts most.": (
        _weighed(lambda sizes: (1 / sizes) / (1 / sizes).sum())
    ),
    "You divide by the number of pieces as well: the weights already add up to one.": (
        _weighed(lambda sizes: sizes / sizes.sum() / len(sizes))
    ),
    "You divide by the number of pieces where the number of windows belongs.": (
        _weighed(lambda sizes: sizes / len(sizes))
    ),
    "Only the last piece is left: each backward should add to the ones before.": (
        lambda gradients, sizes: gradients[-1]
    ),
    "Your weights come from a softmax, which turns sizes into powers of e.": (
        _weighed(lambda sizes: sizes.softmax(dim=0))
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
    known = mistakes(
        "A mean over all windows is a sum over all of them, divided by how many "
        "they are. How much of that sum does a piece of size s hold?",
        PIECE_MISTAKES,
    )
    compare(whole_gradient, _whole, cases, known)
    x, y, w = (torch.randn(*size, generator=seeded) for size in [(9, 4), (9,), (4,)])
    w.requires_grad_()
    pieces = []
    for rows in (slice(0, 6), slice(6, 9), slice(0, 9)):
        loss = (x[rows] @ w - y[rows]).square().mean()
        pieces.append(torch.autograd.grad(loss, w)[0])
    together = whole_gradient(torch.stack(pieces[:2]), [6, 3])
    if not same(together, pieces[2]):
        raise Explained("A regression in pieces of 6 and 3 differs from it in one.")
    return "3 sizes, and a regression of 9 rows in pieces of 6 and 3."


# 10.2


def _shares(batch_size, workers):
    first = [rank * batch_size // workers for rank in range(workers + 1)]
    return tuple(zip(first, first[1:]))


def _settled_shares(found, batch_size, workers):
    """The shares, or the reference's if they are as fair: in order and all rows."""
    try:
        ends = [tuple(int(end) for end in share) for share in found]
        sizes = [last - first for first, last in ends]
        fair = (
            all(len(share) == 2 for share in ends)
            and all(same(e, tuple(s)) for e, s in zip(ends, found))
            and ends[0][0] == 0
            and ends[-1][1] == batch_size
            and all(a[1] == b[0] for a, b in zip(ends, ends[1:]))
            and max(sizes) - min(sizes) <= 1
        )
    except Exception:  # no pairs of whole numbers
        fair = False
    return _shares(batch_size, workers) if fair else tuple(found)


def _each(share):
    """A program from share(batch_size, rank, workers)."""
    return lambda B, n: tuple(share(B, rank, n) for rank in range(n))


SHARE_MISTAKES = {
    "Rows are left over: batch_size // workers drops the rest.": _each(
        lambda B, r, n: (r * (B // n), (r + 1) * (B // n))
    ),
    "All the rest goes to the last worker, and everyone waits for it.": _each(
        lambda B, r, n: (r * (B // n), B if r == n - 1 else (r + 1) * (B // n))
    ),
    "Everyone takes the whole batch: n times the work, and nothing gained.": _each(
        lambda B, r, n: (0, B)
    ),
    "Everyone takes the same share: the rank has no say.": _each(
        lambda B, r, n: (0, B // n)
    ),
    "Rounded up, the last share begins or ends behind the batch.": _each(
        lambda B, r, n: (r * -(-B // n), (r + 1) * -(-B // n))
    ),
    "Rounded up, the first workers take all they can and the last gets the rest.": (
        _each(lambda B, r, n: (min(B, r * -(-B // n)), min(B, (r + 1) * -(-B // n))))
    ),
    "Ranks begin at 0: this is the share of the next worker.": _each(
        lambda B, r, n: ((r + 1) * B // n, (r + 2) * B // n)
    ),
    "The last row of each share is missing: `last` is not taken along.": _each(
        lambda B, r, n: (r * B // n, (r + 1) * B // n - 1)
    ),
    "These are first and number; wanted are first and last.": _each(
        lambda B, r, n: (r * B // n, (r + 1) * B // n - r * B // n)
    ),
    "The ends are no whole numbers: // divides without a rest.": Sign(
        lambda got, *_: any(float(end) != int(end) for pair in got for end in pair)
    ),
    "Return two numbers, first and last.": Sign(
        lambda got, *_: any(
            not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in got
        )
    ),
}


@exercise("10.2 Whose rows?")
def check_share(share):
    """share(batch_size, rank, workers) -> first, last: rows[first:last] are mine."""
    cases = [(4, 2), (10, 4), (7, 3), (16, 3), (11, 8), (5, 5), (6, 1)]

    def answer(batch_size, workers):
        found = [share(batch_size, rank, workers) for rank in range(workers)]
        if any(ends is None or ends is ... for ends in found):
            return None
        return _settled_shares(found, batch_size, workers)

    known = mistakes(
        "Cut the batch at rank / workers of its length: rank * batch_size // workers.",
        SHARE_MISTAKES,
    )
    compare(answer, _shares, cases, known)
    return "7 batches; every row is taken once, and no share is larger by two."


# 10.3

RING_MISTAKES = {
    "This is the first half, the sums; after it each sum must reach everyone.": (
        lambda n, size: (n - 1) / n * size
    ),
    "This is what all workers send together, or one that sends everything in each "
    "step; what moves is one chunk, size / workers.": (
        lambda n, size: 2 * (n - 1) * size
    ),
    "Everyone sends everything to everyone: that is what the ring avoids.": (
        lambda n, size: (n - 1) * size
    ),
    "Nearly: 2 sizes is where it leads with many workers, but one chunk in workers "
    "stays at home.": lambda n, size: 2 * size,
    "This is one chunk; how many are sent?": lambda n, size: size / n,
    "This is two chunks, one of each half; how many steps has a half?": (
        lambda n, size: 2 * size / n
    ),
    "These are steps, not yet bytes.": lambda n, size: 2 * (n - 1),
}


def _ring(n, size):
    return 2 * (n - 1) / n * size


@exercise("10.3 Once round the ring")
def check_ring_bytes(ring_bytes):
    """ring_bytes(workers, size) -> the bytes that one worker sends."""
    cases = [(2, 8), (4, 1000), (8, 2**20), (1, 100), (64, 4e9)]
    known = mistakes(
        "Two halves, workers - 1 steps each, one chunk of size / workers in a step.",
        RING_MISTAKES,
    )
    compare(ring_bytes, _ring, cases, known, atol=1e-3)
    return "5 rings, from 1 worker, who sends nothing, to 64."


# 10.4


def _time(n, compute, size, latency, bandwidth, share=True, twice=2, rounds=None):
    compute = compute / n if share else compute
    steps = twice * (n - 1) if rounds is None else rounds(n)
    return compute + steps * latency + twice * (n - 1) / n * size / bandwidth


TIME_MISTAKES = {
    "The computing is not shared: each worker has one part in workers of it.": (
        partial(_time, share=False)
    ),
    "The latency comes once in your sum: each of the 2 (workers - 1) steps waits.": (
        partial(_time, rounds=lambda n: 1)
    ),
    "The latency is missing.": partial(_time, rounds=lambda n: 0),
    "This is half a ring: there are 2 (workers - 1) steps.": partial(_time, twice=1),
    "You take the longer of the two, but here they do not overlap: add them.": (
        lambda n, c, size, a, b: max(c / n, _time(n, 0.0, size, a, b))
    ),
    "You divide the talking among the workers as well: every one of them sends.": (
        lambda n, c, size, a, b: (c + _time(n, 0.0, size, a, b)) / n
    ),
    "Only the talking is there: add the computing.": (
        lambda n, c, size, a, b: _time(n, 0.0, size, a, b)
    ),
    "Only the computing is there: add the ring.": lambda n, c, size, a, b: c / n,
    "You multiply by the bandwidth: bytes over bytes per second are seconds.": (
        lambda n, c, size, a, b: _time(n, c, size * b * b, a, b)
    ),
    "You send the whole size in each step: a chunk is size / workers.": (
        lambda n, c, size, a, b: _time(n, c, size * n, a, b)
    ),
    "The ring sends 2 (n - 1) / n sizes; you send 2 even when there is nobody else.": (
        lambda n, c, size, a, b: c / n + 2 * (n - 1) * a + 2 * size / b
    ),
    "This is the speed-up, or its inverse; asked is a time in seconds.": Sign(
        lambda got, expected, n, c, size, a, b: any(
            same(got, value) for value in (c / expected, expected / c)
        )
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
    known = mistakes(
        "compute / workers, 2 (workers - 1) times the latency, and the bytes of "
        "exercise 10.3 over the bandwidth.",
        TIME_MISTAKES,
    )
    compare(step_time, _time, cases, known, atol=1e-6)
    best = min(range(1, 1025), key=lambda n: _time(n, 0.3, 4e7, 1e-4, 1e9))
    return (
        "5 clusters. A step of 0.3 s, 40 MB, 0.1 ms and 1 GB/s is shortest with "
        f"{best} workers, and longer with more."
    )


# 10.5


def _fsdp(parameters, largest, n):
    return 16 * parameters / n + 8 * largest


FSDP_MISTAKES = {
    "This is what each worker holds without sharding: all of it.": (
        lambda P, largest, n: 16 * P
    ),
    "The layer that is at work is missing: its weights and gradients are whole.": (
        lambda P, largest, n: 16 * P / n
    ),
    "Of the layer at work, the weights are there, the gradients are not.": (
        lambda P, largest, n: 16 * P / n + 4 * largest
    ),
    "The optimizer never needs the whole layer: only weights and gradients are "
    "gathered.": (lambda P, largest, n: 16 * P / n + 16 * largest),
    "The gathered layer is whole on every worker: it is not divided.": (
        lambda P, largest, n: (16 * P + 8 * largest) / n
    ),
    "AdamW keeps two numbers for each parameter, m and v.": (
        lambda P, largest, n: 12 * P / n + 8 * largest
    ),
    "The gradients are missing: weights, gradients and two of AdamW's make four.": (
        lambda P, largest, n: 12 * P / n + 4 * largest
    ),
    "These are numbers, not yet bytes: each takes four.": (
        lambda P, largest, n: 4 * P / n + 2 * largest
    ),
    "Only the optimizer is sharded here (ZeRO's first stage); FSDP shards all.": (
        lambda P, largest, n: 8 * P + 8 * P / n
    ),
    "The weights stay whole here (ZeRO's second stage); FSDP shards them, too.": (
        lambda P, largest, n: 4 * P + 12 * P / n
    ),
    "Two bytes a number are those of half precision; here all are of four.": (
        lambda P, largest, n: 8 * P / n + 4 * largest
    ),
}


@exercise("10.5 A share of everything")
def check_fsdp_bytes(fsdp_bytes):
    """fsdp_bytes(parameters, largest, workers) -> bytes that each worker holds."""
    cases = [(100, 10, 2), (1000, 300, 8), (1.5e9, 8e7, 64)]
    known = mistakes(
        "Four numbers of four bytes for each parameter, shared out; and twice four "
        "bytes for each of the largest layer, on every worker.",
        FSDP_MISTAKES,
    )
    compare(fsdp_bytes, _fsdp, cases, known, atol=1e-3)
    return "3 models; the third takes 24 GB alone and 1.0 GB as one of 64."


# 10.6


def _regression(weigh, rate=0.1):
    """One step of `workers` on pieces; weigh(own rows, all rows, workers)."""

    def program(w, x, y, workers):
        total = torch.zeros_like(w)
        for first, last in _shares(len(x), workers):
            error = x[first:last] @ w - y[first:last]
            weight = weigh(last - first, len(x), workers)
            total += weight * 2 * x[first:last].T @ error / len(error)
        return w - rate * total

    return program


STEP_MISTAKES = {
    "The bug is still there: the means of all workers are added up, so the step grows "
    "with their number.": _regression(lambda own, all_, n: 1.0),
    "The mean of means: where the batch does not divide, a small piece speaks too "
    "loud.": (
        _regression(lambda own, all_, n: 1 / n),
        "Weigh each piece by its share of the rows, len(error) / len(x).",
    ),
    "Now it is divided twice: each piece's mean, and then by all rows.": (
        _regression(lambda own, all_, n: 1 / all_)
    ),
    "The sums are added up, but nothing divides by the number of rows.": (
        _regression(lambda own, all_, n: float(own))
    ),
    "The sum of all rows is divided by the workers, not by the rows.": (
        _regression(lambda own, all_, n: own / n)
    ),
    "You divide by the workers twice.": _regression(lambda own, all_, n: 1 / n**2),
    "Only the last worker's gradient is left.": (
        lambda w, x, y, n: _regression(lambda own, all_, _: 1.0)(
            w, *(part[slice(*_shares(len(x), n)[-1])] for part in (x, y)), 1
        )
    ),
    "The step goes uphill: the gradient is subtracted.": (
        _regression(lambda own, all_, n: -own / all_)
    ),
}


@exercise("10.6 The louder step")
def check_step(step):
    """step(w, x, y, workers) -> the weights after one step, whoever takes it."""
    seeded = torch.Generator().manual_seed(6)
    cases = [(torch.zeros(1), torch.ones(4, 1), torch.ones(4), 2)]
    for rows, d, n in [(6, 2, 3), (7, 3, 3), (10, 2, 4), (5, 2, 1)]:
        cases.append((*(torch.randn(*s, generator=seeded) for s in
                        [(d,), (rows, d), (rows,)]), n))  # fmt: skip
    known = mistakes(
        "However many workers there are, the step is that of one.", STEP_MISTAKES
    )
    compare(step, _regression(lambda own, all_, n: own / all_), cases, known)
    return "5 batches, also some that do not divide: all workers make one step."


# 10.7


def _drawn(seed, batch_size, length):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(length, (batch_size,), generator=generator)


def _all_windows(program):
    """A program for all workers: their windows, sorted, as one batch."""
    return lambda *case: tuple(
        sorted(w for rank in range(case[-1]) for w in program(rank, *case))
    )


def _own(rank, seed, batch_size, length, workers):
    drawn = _drawn(seed, batch_size, length)
    return drawn[slice(*_shares(batch_size, workers)[rank])].tolist()


def _with_seed(of):
    def program(rank, seed, batch_size, length, workers):
        first, last = _shares(batch_size, workers)[rank]
        return _drawn(of(seed, rank), last - first, length).tolist()

    return program


SEED_MISTAKES = {
    "The bug is still there: all workers draw the same windows, and twice the work "
    "teaches nothing new.": _all_windows(_with_seed(lambda seed, rank: seed)),
    "The windows differ now, but they are not the batch of one process: the run would "
    "not be the same with another number of workers.": (
        Sign(
            lambda got, expected, seed, B, length, n: (
                (
                    len(got) == B
                    and n > 1
                    and not same(got, expected)
                    and not same(
                        got,
                        _all_windows(_with_seed(lambda s, r: s))(seed, B, length, n),
                    )
                )
                or (n == 1 and not same(got, expected) and len(got) == B)
            )
        ),
        "Let all draw the whole batch from the same seed, and each take its rows.",
    ),
    "Everyone takes the whole batch: n times the work, and nothing gained.": (
        _all_windows(lambda rank, s, B, length, n: _drawn(s, B, length).tolist())
    ),
    "Some windows are lost: together, the workers should take all of the batch.": Sign(
        lambda got, expected, seed, B, length, n: len(got) < B
    ),
}


@exercise("10.7 The same dice")
def check_windows(windows):
    """windows(rank, seed, batch_size, length, workers) -> starts of this worker."""
    cases = [(1, 4, 100, 2), (7, 10, 1000, 3), (3, 16, 50, 4), (3, 5, 50, 1)]

    def answer(seed, batch_size, length, workers):
        found = []
        for rank in range(workers):
            starts = windows(rank, seed, batch_size, length, workers)
            if starts is None or starts is ...:
                return None
            found += as_tensor(starts).tolist()
        return tuple(sorted(found))

    known = mistakes(
        "The order of the draw is shared, the rows are not.", SEED_MISTAKES
    )
    compare(answer, _all_windows(_own), cases, known)
    return "4 batches: together the workers draw what one process draws."


# 10.8


def _evaluated(program):
    """What comes of program(rank, losses, group) with these losses of workers."""
    return lambda *losses: _outcome(program, [(own,) for own in losses])


def _mean_of_all(rank, losses, group):
    return group.all_reduce(sum(losses)) / group.all_reduce(len(losses))


def _only_first(rank, losses, group):
    return _mean_of_all(rank, losses, group) if rank == 0 else None


def _half_inside(rank, losses, group):
    total = group.all_reduce(sum(losses))
    return total / group.all_reduce(len(losses)) if rank == 0 else None


EVALUATION_MISTAKES = {
    "The bug is still there: worker 0 waits in all_reduce for workers that do not "
    "come.": _evaluated(_only_first),
    "One all_reduce is met by all, the next by worker 0 alone, and waits.": (
        _evaluated(_half_inside)
    ),
    "Somebody waits for workers that have gone, or that wait somewhere else.": (
        Sign(lambda got, *_: isinstance(got, str) and got.startswith("stuck"))
    ),
    "Nobody waits, but each worker knows its own windows only.": (
        _evaluated(lambda rank, losses, group: sum(losses) / len(losses))
    ),
    "Only worker 0 knows the loss. It took part of everyone to find it: let everyone "
    "have it.": Sign(
        lambda got, expected, *_: (
            isinstance(got, tuple)
            and len(got) > 1
            and same(got[0], expected[0])
            and any(part is None for part in got[1:])
        )
    ),
    "The mean of means: workers with few windows speak too loud.": (
        _evaluated(
            lambda rank, losses, group: (
                group.all_reduce(sum(losses) / len(losses)) / group.size
            )
        )
    ),
    "This is the sum of all losses; divide it by how many there are.": (
        _evaluated(lambda rank, losses, group: group.all_reduce(sum(losses)))
    ),
    "You divide all losses by this worker's number of windows.": (
        _evaluated(
            lambda rank, losses, group: group.all_reduce(sum(losses)) / len(losses)
        )
    ),
    "You divide by the number of workers; a mean is over windows.": (
        _evaluated(
            lambda rank, losses, group: group.all_reduce(sum(losses)) / group.size
        )
    ),
}


@exercise("10.8 Waiting for the others")
def check_evaluate(evaluate):
    """evaluate(rank, losses, group) -> the mean over all windows, on every worker."""
    cases = [([2.0], [4.0]), ([1.0, 2.0], [3.0], [6.0, 6.0]), ([3.0, 5.0],)]
    known = mistakes("Everyone must come to every all_reduce.", EVALUATION_MISTAKES)
    compare(_evaluated(evaluate), _evaluated(_mean_of_all), cases, known)
    return "groups of 1, 2 and 3, with unequal shares; nobody waits."


# 10.9


def _saved(program):
    """What the workers read, and what is on the disk when all have ended."""

    def run(text, workers):
        disk = Disk()
        found = _outcome(program, [(text, disk)] * workers)
        return found if isinstance(found, str) else (*found, disk.text)

    return run


def _first_writes(rank, text, disk, group):
    if rank == 0:
        disk.write(text)
    group.barrier()
    return disk.read()


def _all_write(rank, text, disk, group):
    disk.write(text)
    return disk.read()


def _all_write_and_wait(rank, text, disk, group):
    disk.write(text)
    group.barrier()
    return disk.read()


def _nobody_waits(rank, text, disk, group):
    if rank == 0:
        disk.write(text)
    return disk.read()


SAVE_MISTAKES = {
    "The bug is still there: all write into one file at once, and it is torn.": (
        _saved(_all_write)
    ),
    "All write at once, and then wait: what they wait for is torn already.": (
        _saved(_all_write_and_wait)
    ),
    "Only worker 0 writes, but the others read before it has done so.": (
        _saved(_nobody_waits),
        "The waiting belongs behind the writing: group.barrier() lets nobody pass "
        "until all are there.",
    ),
    "Somebody waits for workers that have gone: all must come to a barrier.": (
        Sign(lambda got, *_: isinstance(got, str) and got.startswith("stuck"))
    ),
    "Nobody reads the file: what was in memory is returned, and the disk is empty.": (
        _saved(lambda rank, text, disk, group: text)
    ),
    "Some workers return nothing: everyone is to have read the file.": Sign(
        lambda got, *_: isinstance(got, tuple) and any(part is None for part in got)
    ),
}


@exercise("10.9 Too many writers")
def check_save_and_load(save_and_load):
    """save_and_load(rank, text, disk, group) -> what is in the file, on each worker."""
    cases = [("step 1000", 3), ("step 20", 2), ("step 9", 1)]
    known = mistakes(
        "One worker writes, the others wait until it has, then all read.",
        SAVE_MISTAKES,
    )
    compare(_saved(save_and_load), _saved(_first_writes), cases, known)
    return "groups of 3, 2 and 1; the file is whole, and everyone has read it."
