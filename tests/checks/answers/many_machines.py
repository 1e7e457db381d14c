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
        "All sizes are rounded down": share(
            "each = batch_size // workers", "return rank * each, (rank + 1) * each"
        ),
        "The last worker takes all rows": share(
            "each = batch_size // workers",
            "end = batch_size if rank == workers - 1 else (rank + 1) * each",
            "return rank * each, end",
        ),
        "Return two numbers, first": share(MINE, "return list(range(first, last))"),
        "Rows are read twice": share("return 0, batch_size"),
        "yours says how many rows": (
            "def share(batch_size, rank, workers):\n"
            "    q, rest = divmod(batch_size, workers)\n"
            "    return rank * q + min(rank, rest), q + (rank < rest)\n"
        ),
    },
    "10.2": {
        "Each worker has a seed of its own": windows(
            SEEDED.replace("seed)", "seed + rank)"),
            MINE,
            "return torch.randint(length, (last - first,), generator=generator)",
        ),
        "the solution with this line changed: ": windows(SEEDED, ALL, "return drawn"),
        "Windows are lost or read twice": windows(
            SEEDED, ALL, "n = batch_size // workers", "return drawn[rank:][:n]"
        ),
        "rank times your own number": windows(
            *(SEEDED, MINE, ALL, "n = last - first", "return drawn[rank * n :][:n]")
        ),
        "It raised": windows(SEEDED, ALL, "return drawn[first:last]"),
        "`first:mine` where `first:first + mine`": (
            "def windows(rank, seed, batch_size, length, workers):\n"
            "    generator = torch.Generator().manual_seed(seed)\n"
            "    first = rank * batch_size // workers\n"
            "    mine = (rank + 1) * batch_size // workers - first\n"
            "    starts = torch.randint(length, (batch_size,), generator=generator)\n"
            "    return starts[first:mine]\n"
        ),
        "right but for `2` where `workers` belongs": (
            "def windows(rank, seed, batch_size, length, workers):\n"
            "    generator = torch.Generator().manual_seed(seed)\n"
            "    drawn = torch.randint(length, (batch_size,), generator=generator)\n"
            "    return drawn[rank::2]\n"
        ),
    },
    "10.3": {
        "The bug is still there": evaluate(
            "if rank == 0:",
            "    total = group.all_reduce(sum(losses))",
            "    return total / group.all_reduce(len(losses))",
        ),
        "(meeting 2); worker 1 has gone": evaluate(
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
        "one brings its sum": evaluate(
            "mine = [sum(losses), len(losses)][:: 1 if rank else -1]",
            "one, two = map(group.all_reduce, mine)",
            "return one / two if rank else two / one",
        ),
        "Only worker 0's windows count": evaluate(
            "mine = [] if rank else losses",
            "return group.all_reduce(sum(mine)) / group.all_reduce(len(mine))",
        ),
        "where `sum(losses)`": evaluate(
            "mean = group.all_reduce(sum(losses) / len(losses))",
            "return mean / group.all_reduce(len(losses))",
        ),
        "knows its own windows only": evaluate("return sum(losses) / len(losses)"),
        "Nothing reads what `count": (
            "def evaluate(rank, losses, group):\n"
            "    total = group.all_reduce(sum(losses))\n"
            "    count = group.all_reduce(len(losses))\n"
            "    if rank == 0:\n"
            "        return total / len(losses)\n"
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
        "every so-manieth": windows(SEEDED, ALL, "return drawn[rank::workers]"),
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
