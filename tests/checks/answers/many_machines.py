"""Answers to notebook 10's exercises."""

from exercises import exercises_of

EXERCISES = exercises_of("10")


def names():
    return {}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def share(*lines):
    return defined("share(batch_size, rank, workers)", *lines)


def windows(*lines):
    return defined("windows(rank, seed, batch_size, length, workers)", *lines)


SEEDED = "generator = torch.Generator().manual_seed(seed)"
ALL = "drawn = torch.randint(length, (batch_size,), generator=generator)"
MINE = "first, last = rank * batch_size // workers, (rank + 1) * batch_size // workers"


def evaluate(*lines):
    return defined("evaluate(rank, losses, group)", *lines)


# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "10.1": {
        "The last share ends at 6": share(
            "each = batch_size // workers", "return rank * each, (rank + 1) * each"
        ),
        "Everyone has to wait": share(
            "each = batch_size // workers",
            "end = batch_size if rank == workers - 1 else (rank + 1) * each",
            "return rank * each, end",
        ),
        "Return two numbers, first": share(MINE, "return list(range(first, last))[:1]"),
        "Some rows are read twice": share("return 0, batch_size"),
        "yours says how many rows": share(
            "q, rest = divmod(batch_size, workers)",
            "return rank * q + min(rank, rest), q + (rank < rest)",
        ),
        "can't be used in a slice": share(
            "each = batch_size / workers", "return rank * each, (rank + 1) * each"
        ),
    },
    "10.2": {
        "Every worker has its own seed": windows(
            SEEDED.replace("seed)", "seed + rank)"),
            MINE,
            "return torch.randint(length, (last - first,), generator=generator)",
        ),
        "Every window of the batch": windows(SEEDED, ALL, "return drawn"),
        "rank times your own number": windows(
            *(SEEDED, MINE, ALL, "n = last - first", "return drawn[rank * n :][:n]")
        ),
        "It raised NameError": windows(SEEDED, ALL, "return drawn[first:last]"),
        "Some of yours are read twice": windows(
            SEEDED,
            "first = rank * batch_size // workers",
            "mine = (rank + 1) * batch_size // workers - first",
            "starts = torch.randint(length, (batch_size,), generator=generator)",
            "return starts[first:mine]",
        ),
    },
    "10.3": {
        "The bug is still there": evaluate(
            "if rank == 0:",
            "    total = group.all_reduce(sum(losses))",
            "    return total / group.all_reduce(len(losses))",
        ),
        "(meeting 2); worker 1 has left": evaluate(
            "total = group.all_reduce(sum(losses))",
            "if rank == 0:",
            "    return total / group.all_reduce(len(losses))",
        ),
        "waits in barrier": evaluate(
            "total = group.all_reduce(sum(losses))",
            "if rank == 0:",
            "    group.barrier()",
            "return total / group.all_reduce(len(losses))",
        ),
        "It's right for 2 of 5 inputs. ": evaluate(
            "mine = [sum(losses), len(losses)][:: 1 if rank else -1]",
            "one, two = map(group.all_reduce, mine)",
            "return one / two if rank else two / one",
        ),
        "Only worker 0's losses count": evaluate(
            "mine = [] if rank else losses",
            "return group.all_reduce(sum(mine)) / group.all_reduce(len(mine))",
        ),
        "knows only its own losses": evaluate(
            "return sum(losses) / max(len(losses), 1)"
        ),
    },
}

RIGHT = {
    "10.1": {
        "torch's": share(
            "parts = torch.arange(batch_size).tensor_split(workers)",
            "first = sum(map(len, parts[:rank]))",
            "return first, first + len(parts[rank])",
        ),
    },
    "10.2": {
        "every nth": windows(SEEDED, ALL, "return drawn[rank::workers]"),
        "a list": windows(SEEDED, ALL, MINE, "return drawn[first:last].tolist()"),
    },
    "10.3": {
        "the other way round": evaluate(
            "count = group.all_reduce(len(losses))",
            "return group.all_reduce(sum(losses)) / count",
        ),
        "a tensor": evaluate(
            "both = group.all_reduce(torch.tensor([sum(losses), len(losses)]))",
            "return both[0] / both[1]",
        ),
    },
}
