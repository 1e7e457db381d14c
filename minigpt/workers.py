"""Lesson 06: who trains. Here one process does; lesson 10 lets several act as one."""

from contextlib import nullcontext


class Alone:
    """The only worker: what several would do together, it does by itself.

    `parallel.Workers` of lesson 10 has the same methods for several processes.
    """

    rank, size = 0, 1
    sharded = False  # does each worker hold only a share of the weights?
    again = False  # has this job begun to train before, and torchrun restarted it?

    def begin(self):
        """From here on, the job has begun: a restart goes on with it."""

    def rows(self, batch_size):
        """Which windows of a batch are this worker's: a slice; together they are all.

        Raises ValueError if there are fewer windows than workers.
        """
        if batch_size < self.size:
            raise ValueError(
                f"A batch of {batch_size} cannot be shared by {self.size} workers: "
                f"start fewer of them, or give a batch_size of {self.size} or more."
            )
        first, last = self.rank, self.rank + 1
        return slice(first * batch_size // self.size, last * batch_size // self.size)

    def wrap(self, model):
        """The model whose backward pass leaves the gradients of the whole batch."""
        return model

    def averaging(self, model, last):
        """A context for one piece of a batch; workers talk in the last piece only."""
        return nullcontext()

    def share(self, items):
        """This worker's part of some work: pairs of an item and 1, or 0 if it is done
        only to stay in step."""
        return ((item, 1) for item in items)

    def sum(self, value):
        """The sum of a number over all workers."""
        return value

    def first(self, do):
        """Worker 0 calls do() while the others wait and get None; its failure ends
        them all."""
        return do()

    def part_ways(self, seed, step):
        """Give each worker numbers of its own, for dropout; worker 0 keeps its own."""

    def spread(self, optimizer):
        """Leave of an optimizer's averages, just loaded, this worker's share."""


ALONE = Alone()
