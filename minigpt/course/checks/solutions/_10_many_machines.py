"""Solutions of notebook 10."""

import torch

# 10.1
def share(batch_size, rank, workers):
    first = rank * batch_size // workers
    return first, (rank + 1) * batch_size // workers

# 10.2
def windows(rank, seed, batch_size, length, workers):
    generator = torch.Generator().manual_seed(seed)
    first = rank * batch_size // workers
    last = (rank + 1) * batch_size // workers
    drawn = torch.randint(length, (batch_size,), generator=generator)
    return drawn[first:last]
# ✗ The bug is still there: all workers draw the same windows.
# last = (rank + 1) * batch_size // workers → mine = (rank + 1) * batch_size // workers - first
# drawn = torch.randint(length, (batch_size,) → return torch.randint(length, (mine,)
# return drawn[first:last] → pass
# ✗ You divide the text among the workers; what is divided is the batch.
# (batch_size,), → (0,), generator=generator)
#     low, high = rank * length // workers, (rank + 1) * length // workers
#     drawn = torch.randint(low, high, (last - first,),
# [first:last] →
# ✗ Your slice begins at rank times your own number of rows: right only if all have as many.
# [first:last] → [rank * (last - first) : (rank + 1) * (last - first)]

# 10.3
def evaluate(rank, losses, group):
    total = group.all_reduce(sum(losses))
    count = group.all_reduce(len(losses))
    return total / count
# ✗ Only worker 0's windows count: the others must bring theirs, too.
# all_reduce(sum(losses)) → all_reduce(sum(losses) * (rank == 0))
# all_reduce(len(losses)) → all_reduce(len(losses) * (rank == 0))
# ✗ Each worker knows its own windows only.
# total / count → sum(losses) / len(losses)
# ✗ The mean of means: workers with few windows speak too loud.
# all_reduce(len(losses)) → all_reduce(1)
# sum(losses) → sum(losses) / len(losses)
# ✗ You divide by the number of workers; count the windows.
# all_reduce(len(losses)) → all_reduce(1)
