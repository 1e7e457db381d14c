"""Solutions of notebook 07."""

import math

import torch

# 07.1
def entropy(p):
    surprise = -p.clamp(min=1e-12).log()  # (..., V)
    return (p * surprise).sum(dim=-1)
# ✗ One number for all rows: a sum without dim adds them up, and p[p > 0] makes one list
# of them.
# (dim=-1) → ()
# ✗ p holds probabilities already: a softmax makes others of them.
# -p.clamp → -(p := p.softmax(-1)).clamp

# 07.2
def perplexity(nats, sizes):
    total = sum(loss * size for loss, size in zip(nats, sizes))
    return math.exp(total / sum(sizes))
# ✗ You average the perplexities. Surprises add up, perplexities do not.
# loss * size → math.exp(loss) * size
# math.exp(total / sum(sizes)) → total / sum(sizes)
# ✗ You average the perplexities, and a short text counts like a long one.
# loss * size → math.exp(loss)
# math.exp(total / sum(sizes)) → total / len(sizes)
# ✗ A short text counts as much as a long one: weigh by the characters.
# loss * size → loss
# sum(sizes) → len(sizes)
# ✗ You raise 2 to a number of nats: 2 belongs to bits, e to nats.
# math.exp( → 2 ** (

# 07.3
def smooth(counts, lower, strength):
    seen = counts.sum(dim=-1, keepdim=True)  # (R, 1)
    return (counts + strength * lower) / (seen + strength)
# ✗ You add the strength once for each character; it is the total.
# (seen + strength) → (seen + strength * counts.shape[-1])
# ✗ Shares, not counts, meet the strength: evidence has lost its weight.
# (counts + strength → (torch.where(seen > 0, counts / seen, lower) + strength
# (seen + strength) → (1 + strength)
# ✗ The shorter context is asked only where a row is empty; it should always have a say.
# (counts + strength * lower) / (seen + strength) → torch.where(
# seen > 0, counts / seen.clamp(min=1), lower)
# ✗ Only what was never seen gets a share of lower; all characters should.
# (counts + strength * lower) / (seen + strength) → (f := torch.where(
# counts > 0, counts, strength * lower)) / f.sum(-1, keepdim=True)
# ✗ You share the pretended observations out evenly; `lower` says who gets them.
# strength * lower → strength / counts.shape[-1]
