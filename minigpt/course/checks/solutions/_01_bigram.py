"""Solutions of notebook 01."""

import torch
import torch.nn.functional as F

# 01.1
def surprise(p):
    return -p.log().mean()
# ✗ You weigh each surprise by its own p, but the text does the weighing.
# -p.log().mean() → -(p * p.log()).sum()
# ? Drop the factor p and take the plain mean.
# ✗ You take the mean first: the logarithm of the mean forgives a bad surprise.
# p.log().mean() → p.mean().log()
# ✗ 1 - p says how much was left for others; the surprise is -ln p.
# -p.log().mean() → (1 - p).mean()
# ✗ That is the surprise of the whole text: divide it by the number of characters.
# -p.log().mean() → -p.prod().log()

# 01.2
def tile(data, block_size):
    n = (len(data) - 1) // block_size
    x = data[: n * block_size].view(n, block_size)
    y = data[1 : n * block_size + 1].view(n, block_size)
    return x, y
# ✗ You cut windows of block_size + 1, so each last character is never an input.
# x = data[ → w = data[: len(data) // (block_size + 1) * (block_size + 1)]; x = data[
# return x, y → return (w := w.view(-1, block_size + 1))[:, :-1], w[:, 1:]
# ✗ Your windows overlap: one begins at every character.
# return x, y → return [d.unfold(0, block_size, 1) for d in (data[:-1], data[1:])]
# ✗ You always leave the last window out; its targets are there unless block_size
# divides N.
# (len(data) - 1) // block_size → len(data) // block_size - 1
# ✗ Your targets are the whole next window: each should be shifted by one, not by
# block_size.
# (len(data) - 1) // block_size → len(data) // block_size - 1
# data[1 : n * block_size + 1] → data[block_size : (n + 1) * block_size]

# 01.3
def before_table(ids, vocab_size):
    table = torch.ones(vocab_size, vocab_size)
    for a, b in zip(ids[:-1].tolist(), ids[1:].tolist()):
        table[b, a] += 1
    return table / table.sum(dim=1, keepdim=True)
# ✗ Repeated pairs count once: table[a, b] += 1 on whole tensors forgets them.
# += 1 → = 2
# ✗ That is the lesson's table, forwards: your row i tells what comes after i.
# table[b, a] → table[a, b]
# ✗ You count one pair too many: the last character before the first one.
# ids[1:] → ids.roll(-1)
# ids[:-1] → ids
# ✗ Your columns sum to one, not your rows: first count with the second character as the
# row, then divide each row by its sum.
# dim=1 → dim=0
# ✗ You add one only where nothing was counted; every count gets one more.
# torch.ones → torch.zeros
# return table / → return (table := table.clamp(min=1)) /
# ✗ The 1 for each pair is missing: what was never seen gets 0.
# torch.ones → torch.zeros
# table.sum(dim=1, keepdim=True) → table.sum(dim=1, keepdim=True).clamp(min=1)

# 01.4
def loss_by_position(logits, y):
    B, T, C = logits.shape
    rows = logits.reshape(B * T, C)
    each = F.cross_entropy(rows, y.reshape(B * T), reduction="none")
    return each.view(B, T).mean(dim=0)
# ✗ These logits are no logarithms of probabilities yet: the softmax is missing.
# F.cross_entropy(rows → F.nll_loss(rows
# ✗ cross_entropy has a softmax inside: give it the logits, not their softmax.
# F.cross_entropy(rows → F.cross_entropy(rows.softmax(-1)
# ✗ The losses lie text by text, so view(T, B) mixes positions: it is view(B, T).
# each.view(B, T).mean(dim=0) → each.view(T, B).mean(dim=1)
# ✗ You take the mean of the probabilities first: the losses, -ln p, are to be averaged.
# each.view(B, T).mean(dim=0) → -(-each).exp().view(B, T).mean(dim=0).log()
# ✗ reshape to (B, C, T) mixes the logits of different positions: transpose exchanges
# dimensions.
# logits.reshape(B * T, C) → logits.reshape(B, C, T)
# y.reshape(B * T) → y

# 01.5
@torch.no_grad()
def write_on(model, idx, max_new_tokens):
    for _ in range(max_new_tokens):
        logits, _ = model(idx)  # (B, T, C)
        now = logits[:, -1]  # (B, C): the last position
        probs = F.softmax(now, dim=-1)
        drawn = torch.multinomial(probs, num_samples=1)  # (B, 1)
        idx = torch.cat([idx, drawn], dim=1)  # (B, T + 1)
    return idx
# ✗ The bug is still there: after the `u` comes another `u`, and another.
# [:, -1] → [:, 0]
# ? Print idx and the shape of `now` in each step.
# ✗ You give the model the last character only. The bigram does not mind, but every
# later model needs the whole text so far.
# model(idx) → model(idx[:, -1:])
# ✗ Your program always writes the likeliest character: nothing is drawn.
# torch.multinomial(probs, num_samples=1) → probs.argmax(dim=-1, keepdim=True)
# ✗ You take max_new_tokens for the length of the whole text; so many are to be added.
# range(max_new_tokens) → range(max_new_tokens - idx.shape[1])

# 01.6
def fit(model, batches, learning_rate):
    losses = []
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate
    )
    for x, y in batches:
        _, loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
# ✗ The bug is still there: the first steps help, but then the loss climbs back up.
# optimizer.zero_grad() → pass
# ? Print the norm of the gradient in each step.
# ✗ You made the gradient shorter, but it is still the sum over all steps so far.
# optimizer.zero_grad() → pass
# backward() → backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
