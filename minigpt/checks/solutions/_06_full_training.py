"""Solutions of notebook 06."""

import math

import torch
import torch.nn.functional as F


# 06.1
def walk(p, grads, lr, betas, decay, eps=1e-8):
    (b1, b2), m, v, path = betas, 0.0, 0.0, []
    for t, g in enumerate(grads, start=1):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        mean = m / (1 - b1**t)
        root = (v / (1 - b2**t)) ** 0.5
        p = p - lr * (decay * p + mean / (root + eps))
        path.append(p)
    return path


# 06.2
def rate(step, steps, warmup, peak):
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / (steps - warmup)
    falling = 0.5 * (1 + math.cos(math.pi * done))
    return peak * (0.1 + 0.9 * falling)


# 06.3
def train_step(model, optimizer, x, y, max_norm):
    loss = model(x, y)[1]
    optimizer.zero_grad()
    loss.backward()
    grads = [p.grad for p in model.parameters()]
    length = sum((g**2).sum() for g in grads) ** 0.5
    if length > max_norm:
        for g in grads:
            g *= max_norm / length
    optimizer.step()
    return loss.item()


# 06.4
def next_probs(model, idx, block_size, temperature=1.0, top_k=None):
    context = idx[:, -block_size:]
    logits = model(context)[0][:, -1] / temperature
    if top_k is not None:
        smallest = logits.topk(top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return F.softmax(logits, dim=-1)


# 06.5
def nucleus_size(probs, p):
    likely = probs.sort(dim=-1, descending=True).values
    return (likely.cumsum(dim=-1) < p).sum(dim=-1) + 1


# 06.6
@torch.no_grad()
def loss_with_past(model, data, spots, n):
    model.eval()
    x = data[spots[:, None] + torch.arange(-n, 0)].to(device)
    y = data[spots].to(device)
    total = 0.0
    for xb, yb in zip(x.split(128), y.split(128)):
        logits = model(xb)[0][:, -1]  # (S, vocab_size)
        total += F.cross_entropy(logits, yb, reduction="sum").item()
    return total / len(spots)


lengths = [n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)
           if n <= config.block_size]
losses = {n: loss_with_past(model, val_data, spots, n)
          for n in lengths}
best = min(losses.values())
enough = min(n for n in lengths if losses[n] < best + 0.05)


# 06.7
def sample(model, idx, n, seed):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(n):
        context = idx[:, -model.block_size:]
        logits = model(context)[0][:, -1]
        probs = F.softmax(logits, dim=-1).cpu()
        next_idx = torch.multinomial(probs, 1, generator=rng)
        idx = torch.cat([idx, next_idx.to(idx.device)], dim=1)
    return idx


# 06.8
def split_windows(ids, block_size, train_fraction=0.9):
    n = int(train_fraction * len(ids))
    to_learn, to_judge = ids[:n], ids[n:]
    return (to_learn.unfold(0, block_size + 1, 1),
            to_judge.unfold(0, block_size + 1, 1))


# 06.9
def tie(model):
    before = sum(p.numel() for p in model.parameters())
    model.lm_head.weight = model.token_embedding.weight
    after = sum(p.numel() for p in model.parameters())
    return before, after


# 06.10
def verdict(before, after):
    changes = [a - b for a, b in zip(after, before)]
    mean = sum(changes) / len(changes)
    if abs(mean) <= max(changes) - min(changes):
        return "tie"
    return "better" if mean < 0 else "worse"
