"""Answers to notebook 10's exercises."""

from exercises import edited, exercises_of

from minigpt.checks.many_machines import Disk, as_workers

EXERCISES = exercises_of("10")


def names():
    return {"Disk": Disk, "as_workers": as_workers}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def weighed(weights, *before):
    return defined(
        "whole_gradient(gradients, sizes)",
        "sizes = torch.tensor(sizes).float()",
        *before,
        f"return {weights} @ gradients",
    )


def share(*lines):
    return defined("share(batch_size, rank, workers)", *lines)


ENDS = "return rank * batch_size // workers, (rank + 1) * batch_size // workers"


def ring(body):
    return defined("ring_bytes(workers, size)", f"return {body}")


def time(body):
    return defined("step_time(workers, compute, size, latency, bandwidth)", body)


RING = "2 * (workers - 1) / workers * size / bandwidth"


def fsdp(body):
    return defined("fsdp_bytes(parameters, largest, workers)", f"return {body}")


def step(*edits):
    return edited(EXERCISES["10.6"].solution, *edits)


WEIGHT = "len(error) / len(x) * 2"


def windows(*lines):
    return defined("windows(rank, seed, batch_size, length, workers)", *lines)


SEEDED = "generator = torch.Generator().manual_seed(seed)"
ALL = "drawn = torch.randint(length, (batch_size,), generator=generator)"
MINE = "first, last = rank * batch_size // workers, (rank + 1) * batch_size // workers"


def evaluate(*lines):
    return defined("evaluate(rank, losses, group)", *lines)


def save(*lines):
    return defined("save_and_load(rank, text, disk, group)", *lines)


FIRST = "if rank == 0: disk.write(text)"

# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "10.1": {
        "This is the sum;": [
            weighed("torch.ones_like(sizes)"),
            defined("whole_gradient(gradients, sizes)", "return gradients.sum(0)"),
        ],
        "Each piece counts alike": [
            defined("whole_gradient(gradients, sizes)", "return gradients.mean(0)"),
            defined(
                "whole_gradient(gradients, sizes)",
                "return sum(gradients) / len(sizes)",
            ),
        ],
        "`/ sum(sizes)` left out": weighed("sizes"),
        "the sizes of the pieces are not": weighed(
            "(torch.ones_like(sizes) / sizes.sum())"
        ),
        "where the number of windows belongs": weighed("sizes / len(sizes)"),
        "Only the last piece is left;": defined(
            "whole_gradient(gradients, sizes)", "return gradients[-1]"
        ),
        "The sum over dimension 0 is missing": defined(
            "whole_gradient(gradients, sizes)",
            "sizes = torch.tensor(sizes)[:, None]",
            "return gradients * sizes / sizes.sum()",
        ),
    },
    "10.2": {
        "Rows are left over": share(
            "each = batch_size // workers", "return rank * each, (rank + 1) * each"
        ),
        "One share is larger by two rows or more": share(
            "each = batch_size // workers",
            "end = batch_size if rank == workers - 1 else (rank + 1) * each",
            "return rank * each, end",
        ),
        "Rows are read twice": share("return 0, batch_size"),
        "ends behind the batch": share(
            "each = math.ceil(batch_size / workers)",
            "return rank * each, (rank + 1) * each",
        ),
        "does not begin at row 0": share("rank = rank + 1", ENDS),
        "`last` is not read any more, as in a slice": share(
            "return (rank * batch_size // workers,",
            "        (rank + 1) * batch_size // workers - 1)",
        ),
        "The ends are no whole numbers": share(
            "return rank * batch_size / workers, (rank + 1) * batch_size / workers"
        ),
        "Return two numbers": share(
            "return slice(rank * batch_size // workers,",
            "             (rank + 1) * batch_size // workers)",
        ),
    },
    "10.3": {
        "`2 *` left out": ring("(workers - 1) / workers * size"),
        "`/ workers` left out": ring("workers * 2 * (workers - 1) / workers * size"),
        "`size` where `chunk` belongs": ring("2 * (workers - 1) * size"),
        "Everyone sends everything to everyone": ring("(workers - 1) * size"),
        "`- 1` left out": ring("2 * size"),
        "get with `return chunk` where": ring("size / workers"),
        "`* (workers - 1)` left out": ring("2 * size / workers"),
        "`* chunk` left out": ring("2 * (workers - 1)"),
        "`return size` where `return 2 * (workers - 1) * chunk`": ring("size"),
    },
    "10.4": {
        "but for `compute` where": time(
            f"return compute + 2 * (workers - 1) * latency + {RING}"
        ),
        "`steps *` left out": time(f"return compute / workers + latency + {RING}"),
        "`+ steps * latency` left out": time(f"return compute / workers + {RING}"),
        "This is half a ring": time(
            "return compute / workers + (workers - 1) * latency"
            " + (workers - 1) / workers * size / bandwidth"
        ),
        "You take the longer of the two": time(
            f"return max(compute / workers, 2 * (workers - 1) * latency + {RING})"
        ),
        "You divide the talking": time(
            f"return (compute + 2 * (workers - 1) * latency + {RING}) / workers"
        ),
        "`compute / workers +` left out": time(
            f"return 2 * (workers - 1) * latency + {RING}"
        ),
        "`sent * bandwidth` where": time(
            "return compute / workers + 2 * (workers - 1) * latency"
            " + 2 * (workers - 1) / workers * size * bandwidth"
        ),
        "sent = 2 * (workers - 1) * size": time(
            "return compute / workers"
            " + 2 * (workers - 1) * (latency + size / bandwidth)"
        ),
        "`- 1` left out": time(
            "return compute / workers + 2 * (workers - 1) * latency"
            " + 2 * size / bandwidth"
        ),
        "This is the speed-up": time(
            "return compute / (compute / workers"
            f" + 2 * (workers - 1) * latency + {RING})"
        ),
    },
    "10.5": {
        "nothing is shared": fsdp("16 * parameters"),
        "The layer at work is missing": fsdp("16 * parameters / workers"),
        "at_work = 4": fsdp("16 * parameters / workers + 4 * largest"),
        "`kept` where `at_work` belongs": fsdp(
            "16 * parameters / workers + 16 * largest"
        ),
        "is whole on each": fsdp("(16 * parameters + 8 * largest) / workers"),
        "AdamW keeps two numbers": fsdp("12 * parameters / workers + 8 * largest"),
        "0.25 times as large": fsdp("4 * parameters / workers + 2 * largest"),
    },
    "10.6": {
        "The bug is still there": step((WEIGHT, "2")),
        "The mean of means": step((WEIGHT, "2 / workers")),
        "but for `2 / len(x)` where": step((WEIGHT, "2 / len(x)")),
        "`/ len(x)` left out": step((WEIGHT, "len(error) * 2")),
        "`w + rate * total` where `w - rate * total` belongs": step(
            ("w - rate", "w + rate")
        ),
    },
    "10.7": {
        "The bug is still there": [
            windows(
                SEEDED,
                MINE,
                "return torch.randint(length, (last - first,), generator=generator)",
            ),
        ],
        "are not in the batch that one process draws": [
            windows(
                SEEDED.replace("seed)", "seed + rank)"),
                MINE,
                "return torch.randint(length, (last - first,), generator=generator)",
            ),
            windows(
                SEEDED.replace("seed)", "seed * (rank + 1))"),
                MINE,
                "return torch.randint(length, (last - first,), generator=generator)",
            ),
        ],
        "`return drawn` where": windows(SEEDED, ALL, "return drawn"),
        "Windows are lost or read twice": [
            windows(
                SEEDED, ALL, "n = batch_size // workers", "return drawn[rank:][:n]"
            ),
            windows(
                SEEDED,
                ALL,
                "each = batch_size // workers",
                "return drawn[rank * each : (rank + 1) * each]",
            ),
        ],
        "It raised": windows(SEEDED, ALL, "return drawn[first:last]"),
    },
    "10.8": {
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
        "knows its own windows only": evaluate("return sum(losses) / len(losses)"),
        "Some workers return nothing": evaluate(
            "total = group.all_reduce(sum(losses))",
            "count = group.all_reduce(len(losses))",
            "if rank == 0:",
            "    return total / count",
        ),
        "The mean of means": evaluate(
            "return group.all_reduce(sum(losses) / len(losses)) / group.size"
        ),
        "`/ count` left out": evaluate("return group.all_reduce(sum(losses))"),
        "this worker's number of windows": evaluate(
            "return group.all_reduce(sum(losses)) / len(losses)"
        ),
        "by the number of workers": evaluate(
            "return group.all_reduce(sum(losses)) / group.size"
        ),
        "still running": evaluate("while True: pass"),
    },
    "10.9": {
        "The bug is still there": save("disk.write(text)", "return disk.read()"),
        "get with no condition where": save(
            "disk.write(text)", "group.barrier()", "return disk.read()"
        ),
        "but for `group.barrier()` left out": save(FIRST, "return disk.read()"),
        "but for `group.barrier()` in the wrong": save(
            "group.barrier()", FIRST, "return disk.read()"
        ),
        "`group.barrier()` in the wrong place": save(
            "if rank == 0:",
            "    disk.write(text)",
            "    group.barrier()",
            "return disk.read()",
        ),
        "Nobody has written": save("return text"),
        "Some workers return nothing": save(
            FIRST, "group.barrier()", "if rank == 0: return disk.read()"
        ),
    },
}

RIGHT = {
    "10.1": {
        "a loop": defined(
            "whole_gradient(gradients, sizes)",
            "total = 0",
            "for gradient, size in zip(gradients, sizes):",
            "    total += size * gradient",
            "return total / sum(sizes)",
        ),
        "weights first": weighed("sizes / sizes.sum()"),
        "einsum": weighed("torch.tensor(1.0)[None]").replace(
            "return torch.tensor(1.0)[None] @ gradients",
            "return torch.einsum('n,nd->d', sizes, gradients) / sizes.sum()",
        ),
    },
    "10.2": {
        "the rest to the first": share(
            "each, rest = divmod(batch_size, workers)",
            "first = rank * each + min(rank, rest)",
            "return first, first + each + (rank < rest)",
        ),
        "torch's": share(
            "rows = torch.arange(batch_size).tensor_split(workers)[rank]",
            "return int(rows[0]), int(rows[-1]) + 1",
        ),
        "a list": share(ENDS.replace("return ", "return [") + "]"),
    },
    "10.3": {
        "chunks": ring("2 * (workers - 1) * (size / workers)"),
        "what stays": ring("2 * (size - size / workers)"),
    },
    "10.4": {
        "by hand": time(
            "return compute / workers + 2 * (workers - 1)"
            " * (latency + size / workers / bandwidth)"
        ),
        "in steps": time(
            "return compute / workers + sum(latency + size / workers / bandwidth"
            " for _ in range(2 * (workers - 1)))"
        ),
    },
    "10.5": {
        "one by one": fsdp(
            "sum(n * parameters / workers for n in (4, 4, 4, 4)) + 4 * 2 * largest"
        ),
        "in one": fsdp("8 * (2 * parameters / workers + largest)"),
    },
    "10.6": {
        "sums, divided at the end": step(
            (f"{WEIGHT} * x", "2 * x"), ("rate * total", "rate * total / len(x)")
        ).replace("/ len(error)", ""),
        "all at once": defined(
            "step(w, x, y, workers, rate=0.1)",
            "return w - rate * 2 * x.T @ (x @ w - y) / len(x)",
        ),
    },
    "10.7": {
        "every so-manieth": windows(SEEDED, ALL, "return drawn[rank::workers]"),
        "a list": windows(SEEDED, ALL, MINE, "return drawn[first:last].tolist()"),
        "torch's": windows(SEEDED, ALL, "return drawn.tensor_split(workers)[rank]"),
    },
    "10.8": {
        "the other way round": evaluate(
            "count = group.all_reduce(len(losses))",
            "return group.all_reduce(sum(losses)) / count",
        ),
        "a tensor": evaluate(
            "both = group.all_reduce(torch.tensor([sum(losses), len(losses)]))",
            "return both[0] / both[1]",
        ),
        "weighed": evaluate(
            "share = len(losses) / group.all_reduce(len(losses))",
            "return group.all_reduce(share * sum(losses) / len(losses))",
        ),
    },
    "10.9": {
        "the last writes": save(
            "if rank == group.size - 1:",
            "    disk.write(text)",
            "group.barrier()",
            "return disk.read()",
        ),
        "an all_reduce waits, too": save(
            FIRST, "group.all_reduce(1)", "return disk.read()"
        ),
        "waiting twice": save(
            "group.barrier()", FIRST, "group.barrier()", "return disk.read()"
        ),
    },
}
