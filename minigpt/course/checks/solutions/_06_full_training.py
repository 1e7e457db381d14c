"""Solutions of notebook 06."""

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
# ✗ The decay goes through the averages: that is Adam. In AdamW it acts on p alone.
# m = b1 * m → g = g + decay * p; m = b1 * m
# decay * p + mean → mean
# ✗ The decay is not multiplied by the learning rate.
# lr * (decay * p + mean → (decay * p + lr * mean
# ✗ The corrected averages go on into the next step; only m and v should.
# mean = m / → mean = m = m /
# root = (v / (1 - b2**t)) → v = v / (1 - b2**t); root = v
# ✗ The corrected mean goes on into the next step; only m should.
# mean = m / → mean = m = m /
# ✗ eps stands under the root; it belongs beside it.
# ** 0.5 →
# / (root + eps) → / (root + eps) ** 0.5
# ✗ The correction is missing: m and v begin at 0, so they are too small at first.
# m / (1 - b1**t) → m
# (v / (1 - b2**t)) → v
# ✗ You correct in the first step only; m and v are too small for a long time.
# m / (1 - b1**t) → m / (1 - b1**t if t == 1 else 1)
# (v / (1 - b2**t)) → (v / (1 - b2**t if t == 1 else 1))
# ✗ The decay acts on p after the step; it should act on the p before it.
# p = p - lr * (decay * p + mean / (root + eps)) → p = p - lr * mean / (root + eps)
#         p = p - lr * decay * p

# 06.2
def next_probs(model, idx, block_size, temperature=1.0, top_k=None):
    context = idx[:, -block_size:]
    logits = model(context)[0][:, -1] / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        smallest = logits.topk(k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return F.softmax(logits, dim=-1)
# ✗ You keep the first block_size tokens: the model never sees how the text goes on.
# -block_size: → :block_size
# ✗ What you throw away gets the logit 0, and e⁰ is 1: it may still be drawn.
# float("-inf") → 0.0
# ✗ You cut after the softmax and leave it so: the rows sum to less than one.
# smallest = → kept = logits.softmax(-1);
#  return kept.masked_fill(kept < kept.topk(k, dim=-1).values[:, -1:], 0.0)
#         smallest =

# 06.3
def split_windows(ids, block_size, train_fraction=0.9):
    n = int(train_fraction * len(ids))
    to_learn, to_judge = ids[:n], ids[n:]
    return (to_learn.unfold(0, block_size + 1, 1),
            to_judge.unfold(0, block_size + 1, 1))

# 06.4
def verdict(before, after):
    changes = [a - b for a, b in zip(after, before)]
    if all(change < 0 for change in changes):
        return "better"
    if all(change > 0 for change in changes):
        return "worse"
    return "tie"
# ✗ You look at the mean only: any difference decides.
# all(change < 0 for change in changes) → sum(changes) < 0
# all(change > 0 for change in changes) → sum(changes) > 0
# ✗ You compare two heaps. Pair them: the difference of each seed comes first.
# all(change < 0 for change in changes) → max(after) < min(before)
# all(change > 0 for change in changes) → min(after) > max(before)
# ✗ You let the majority decide, but all seeds must agree.
# all(change < 0 for change in changes) → sum((c > 0) - (c < 0) for c in changes) < 0
# all(change > 0 for change in changes) → sum((c > 0) - (c < 0) for c in changes) > 0
# ✗ You decide by the first seed that moved, but all seeds must agree.
# all(change < 0 for change in changes) → next(filter(None, changes), 0) < 0
# all(change > 0 for change in changes) → next(filter(None, changes), 0) > 0

# 06.5
def nucleus(probs, top_p):
    likely, order = probs.sort(dim=-1, descending=True)
    before = likely.cumsum(dim=-1) - likely
    kept = likely.masked_fill(before >= top_p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, kept)
# ✗ The token with which the sum reaches top_p is lost; it belongs to the set.
# .cumsum(dim=-1) - likely → .cumsum(dim=-1)
# ✗ You return them from likely to unlikely; each must go back to its id.
# return torch.zeros_like(probs).scatter(-1, order, kept) → return kept
# ✗ The rows sum to less than one: what stays must be divided by its sum.
# kept = kept / kept.sum(dim=-1, keepdim=True) →
# ✗ You begin with the least likely tokens.
# descending=True → descending=False
# ✗ You look at each probability alone; what counts is the sum of the likelier ones.
# before >= top_p → likely < 1 - top_p
# ✗ What is thrown away is set to 0 before a softmax, and e⁰ is 1: it may be drawn.
# kept / kept.sum(dim=-1, keepdim=True) → kept.softmax(dim=-1)
