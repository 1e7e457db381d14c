"""Solutions of notebook 11."""

import torch


# 11.1
def previous_score(weights):
    before = weights.diagonal(offset=-1, dim1=-2, dim2=-1)  # (..., T - 1)
    return before.mean(dim=-1)


# 11.2
def head_shares(heads, weight, n_head):
    outs = heads.chunk(n_head, dim=-1)  # n_head of (..., head_size)
    columns = weight.chunk(n_head, dim=1)  # n_head of (C, head_size)
    return torch.stack([out @ w.T for out, w in zip(outs, columns)])


# 11.3
def mean_ablated(heads, head, head_size):
    mine = slice(head * head_size, (head + 1) * head_size)
    changed = heads.clone()
    changed[..., mine] = heads[..., mine].mean(dim=(0, 1))
    return changed


# 11.4
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


# 11.5
def longest_stretch(text, source):
    best = ""
    for start in range(len(text)):
        while start + len(best) < len(text):
            longer = text[start : start + len(best) + 1]
            if longer not in source:
                break
            best = longer
    return best


# 11.6
def looked_at(weights):
    return weights.mean(dim=(0, 2))


# 11.7
def silenced(module, x):
    def silence(module, inputs, output):
        return torch.zeros_like(output)

    hook = module.register_forward_hook(silence)
    silent = module(x)
    hook.remove()
    return silent


# 11.8
def early_logits(stream, norm, lm_head):
    return lm_head(norm(stream))
