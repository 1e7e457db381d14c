"""Solutions of notebook 08."""


import torch
import torch.nn.functional as F


# 08.1
def rms_norm_with_gain(x, gain):
    mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return x / (mean_square + 1e-6).sqrt() * gain


# 08.2
def rotate_halves(x, angles):
    cos = angles.cos()[:, None]  # (T, 1, head_size / 2)
    sin = angles.sin()[:, None]
    first, second = x.chunk(2, dim=-1)
    turned = first * cos - second * sin, second * cos + first * sin
    return torch.cat(turned, dim=-1)


# 08.3
def grouped_attention(q, k, v):
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, dim=1)  # (B, n_head, T, head_size)
    v = v.repeat_interleave(group, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# 08.4
def newton_schulz(G, steps):
    X = G / G.norm()
    for _ in range(steps):
        X = 1.5 * X - 0.5 * X @ X.mT @ X
    return X


# 08.5
def counts_without(ids, vocab_size, folds):
    n = len(ids) - 1
    fold = torch.arange(n) * folds // n
    pair = ids[:-1] * vocab_size + ids[1:]  # (N - 1,)
    tables = []
    for f in range(folds):
        others = pair[fold != f]
        count = torch.bincount(others, minlength=vocab_size**2)
        tables.append(count.view(vocab_size, vocab_size))
    return torch.stack(tables)


# 08.6
def turn(x, angles):
    cos = torch.cat([angles, angles], dim=-1).cos()
    sin = torch.cat([angles, angles], dim=-1).sin()
    first, second = x.chunk(2, dim=-1)
    partner = torch.cat([-second, first], dim=-1)
    return x * cos + partner * sin


# 08.7
def head_norm(q):
    mean_square = q.square().mean(dim=-1, keepdim=True)
    return q / (mean_square + 1e-6).sqrt()


# 08.8
def for_muon(model):
    named = model.named_parameters()
    return [
        name
        for name, p in named
        if p.dim() == 2 and name.startswith("body.")
    ]


# 08.9
def counted_loss(counts, smoothing, ids):
    x = ids[:-1].view(counts.folds, -1)
    y = ids[1:].view(counts.folds, -1)
    losses = []
    for fold in range(counts.folds):
        seen = counts(x[fold][None], without=fold)
        logp = smoothing(seen)[0, :, -1]
        losses.append(F.nll_loss(logp, y[fold]))
    return torch.stack(losses).mean()
