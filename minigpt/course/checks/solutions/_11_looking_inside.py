"""Solutions of notebook 11."""

import torch

# 11.1
def previous_score(weights):
    before = weights.diagonal(offset=-1, dim1=-2, dim2=-1)  # (..., T - 1)
    return before.mean(dim=-1)
# ✗ You divide by T, but the first character has none before it: T - 1.
# before.mean(dim=-1) → before.sum(dim=-1) / weights.shape[-1]
# ✗ You add up what all earlier characters get; wanted is the one right before.
# weights.diagonal(offset=-1, dim1=-2, dim2=-1) → weights.tril(-1).sum(-1)[..., 1:]
# ✗ You count how often the one before gets most; wanted is the mean of what it gets.
# before.mean → (weights.argmax(-1)[..., 1:] == torch.arange(before.shape[-1])).float().mean
# ✗ Without its dims, diagonal takes the first two dimensions; wanted are the last two.
# , dim1=-2, dim2=-1 →
# ✗ That is what each character gives to itself; the one before it stands at t - 1.
# (offset=-1, dim1=-2, dim2=-1) → (dim1=-2, dim2=-1)[..., 1:]

# 11.2
def mean_ablated(heads, head, head_size):
    mine = slice(head * head_size, (head + 1) * head_size)
    changed = heads.clone()
    changed[..., mine] = heads[..., mine].mean(dim=(0, 1))
    return changed
# ✗ These are zeros: zero ablation. Asked is the head's mean.
# heads[..., mine].mean(dim=(0, 1)) → 0
# ✗ Each window keeps a mean of its own: that still depends on the text.
# heads[..., mine].mean(dim=(0, 1)) → heads[..., mine].mean(dim=1, keepdim=True)
# ✗ `head` counts heads, not channels: head h begins at channel h * head_size.
# slice(head * head_size, (head + 1) * head_size) → slice(head, head + head_size)
# ✗ All later heads are replaced, too: the slice needs its end.
# (head + 1) * head_size) → None)
# ✗ That is the mean of all heads; wanted is the usual word of this one.
# heads[..., mine].mean(dim=(0, 1)) → heads.unflatten(-1, (-1, head_size)).mean(dim=(0, 1, 2))

# 11.3
def prefix_score(weights, ids, n=2):
    found = []
    for t in range(n - 1, len(ids)):
        read = ids[t - n + 1 : t + 1]  # the last n, up to t
        total, seen = 0.0, False
        for s in range(n, t + 1):
            if torch.equal(ids[s - n : s], read):  # they stood before s
                total, seen = total + weights[t, s], True
        if seen:
            found.append(total)
    return sum(found) / len(found)
# ✗ Queries with nothing to find count as zeros here: leave them out.
# if seen: → if True:
# ✗ You divide by all T; only queries that have something to find count.
# / len(found) → / len(ids)
# ✗ You look at the earlier occurrence itself; a head that copies looks at what followed.
# weights[t, s] → weights[t, s - 1]
# ✗ The last n characters must include the one just read, at t.
# ids[t - n + 1 : t + 1] → ids[t - n : t]
# range(n - 1, len(ids)) → range(n, len(ids))
# ✗ You take one match only, the latest; add up what t gives to all of them.
# total + weights[t, s] → weights[t, s]
# ✗ You compare the last character only; all n must agree.
# torch.equal(ids[s - n : s], read) → ids[s - 1] == ids[t]
# ✗ You divide by the number of matches; a query with two matches counts once.
# total, seen = total + weights[t, s], True → found.append(weights[t, s])

# 11.4
def silenced(module, x):
    def silence(module, inputs, output):
        return torch.zeros_like(output)

    hook = module.register_forward_hook(silence)
    silent = module(x)
    hook.remove()
    return silent
