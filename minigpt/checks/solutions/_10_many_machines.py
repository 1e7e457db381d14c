"""Solutions of notebook 10."""


import torch


# 10.1
def whole_gradient(gradients, sizes):
    weights = torch.tensor(sizes).float() / sum(sizes)  # (n,)
    return weights @ gradients


# 10.2
def share(batch_size, rank, workers):
    first = rank * batch_size // workers
    return first, (rank + 1) * batch_size // workers


# 10.3
def ring_bytes(workers, size):
    chunk = size / workers
    return 2 * (workers - 1) * chunk


# 10.4
def step_time(workers, compute, size, latency, bandwidth):
    steps = 2 * (workers - 1)
    sent = 2 * (workers - 1) / workers * size
    return compute / workers + steps * latency + sent / bandwidth


# 10.5
def fsdp_bytes(parameters, largest, workers):
    kept = 4 + 4 + 8  # weight, gradient, two averages
    at_work = 4 + 4  # weight, gradient
    return kept * parameters / workers + at_work * largest


# 10.6
def step(w, x, y, workers, rate=0.1):
    total = torch.zeros_like(w)
    for rank in range(workers):
        first = rank * len(x) // workers
        mine = slice(first, (rank + 1) * len(x) // workers)
        error = x[mine] @ w - y[mine]
        gradient = len(error) / len(x) * 2 * x[mine].T @ error / len(error)
        total = total + gradient  # all_reduce
    return w - rate * total


# 10.7
def windows(rank, seed, batch_size, length, workers):
    generator = torch.Generator().manual_seed(seed)
    first = rank * batch_size // workers
    last = (rank + 1) * batch_size // workers
    drawn = torch.randint(length, (batch_size,), generator=generator)
    return drawn[first:last]


# 10.8
def evaluate(rank, losses, group):
    total = group.all_reduce(sum(losses))
    count = group.all_reduce(len(losses))
    return total / count


# 10.9
def save_and_load(rank, text, disk, group):
    if rank == 0:
        disk.write(text)
    group.barrier()
    return disk.read()
