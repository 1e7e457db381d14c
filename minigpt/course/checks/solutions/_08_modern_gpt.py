"""Solutions of notebook 08."""

import torch
import torch.nn.functional as F

# 08.1
def rms_norm_with_gain(x, gain):
    mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return x / (mean_square + 1e-6).sqrt() * gain
# ✗ This is LayerNorm: you subtract the mean; RMSNorm leaves it alone.
# mean_square = → x = x - x.mean(dim=-1, keepdim=True); mean_square =
# ✗ The gain comes before the norm, which undoes a part of it.
# mean_square = → x = x * gain; mean_square =
# .sqrt() * gain → .sqrt()

# 08.2
def rotate_halves(x, angles):
    cos = angles.cos()[:, None]  # (T, 1, head_size / 2)
    sin = angles.sin()[:, None]
    first, second = x.chunk(2, dim=-1)
    turned = first * cos - second * sin, second * cos + first * sin
    return torch.cat(turned, dim=-1)
# ✗ These are neighbours again, as in `rotate`; wanted are halves.
# x.chunk(2, dim=-1) → (x[..., ::2], x[..., 1::2])
# torch.cat(turned, dim=-1) → torch.stack(turned, -1).flatten(-2)
# ✗ The second half is made of a first half that has turned already.
# turned = first * cos - second * sin, → first = first * cos - second * sin;
#  turned = first,
# ✗ You turn the other way round: from the second number of a pair to the first.
# angles.sin() → -angles.sin()
# ✗ Each angle stands twice side by side here, but the partners are half a head apart.
# turned = first * cos - second * sin, second * cos + first * sin → a, b = (
# angles.repeat_interleave(2, -1)[:, None].chunk(2, -1))
#     turned = first * a.cos() - second * a.sin(), second * b.cos() + first * b.sin()
# ✗ You write the results side by side, as neighbours: all of the first half comes first.
# torch.cat(turned, dim=-1) → torch.stack(turned, -1).flatten(-2)

# 08.3
def grouped_attention(q, k, v):
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, dim=1)  # (B, n_head, T, head_size)
    v = v.repeat_interleave(group, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
# ✗ Your query heads take turns: head 0 and its neighbour read different keys.
# repeat_interleave(group, dim=1) → repeat(1, group, 1, 1)
# ? repeat gives 0 1 0 1; repeat_interleave gives 0 0 1 1.
# ✗ All query heads read the first key/value head (this is multi-query).
# repeat_interleave(group, dim=1) → expand(-1, -1, -1, -1)[:, :1]
# ✗ You put a group's queries one behind the other in time: the mask no longer fits.
# k = k.repeat_interleave(group, dim=1)  # (B, n_head, T, head_size) → long = q.reshape(
# q.shape[0], k.shape[1], -1, q.shape[3])
# v = v.repeat_interleave(group, dim=1) → pass
# (q, k, v, is_causal=True) → (long, k, v, is_causal=True).view_as(q)
# ✗ You average the queries of a group: they share keys and values, and nothing else.
# k = k.repeat → q = q.unflatten(1, (-1, group)).mean(2).repeat_interleave(group, dim=1);
#  k = k.repeat
# ✗ The scores are not divided by √head_size.
# is_causal=True → is_causal=True, scale=1.0
# ✗ You average the key/value heads; each query head reads the one of its own group.
# repeat_interleave(group, dim=1) → mean(1, True).expand(-1, q.shape[1], -1, -1)
# ✗ The scores are divided by head_size, not by its root.
# is_causal=True → is_causal=True, scale=1 / q.shape[-1]
# ✗ Head h reads memory h // group; you divide by the number of memories.
# .repeat_interleave(group, dim=1) → [
# :, (torch.arange(q.shape[1]) // v.shape[1]).clamp(max=v.shape[1] - 1)]

# 08.4
def for_muon(model):
    named = model.named_parameters()
    return [
        name
        for name, p in named
        if p.dim() == 2 and name.startswith("body.")
    ]
# ✗ The bug is still there: the embedding is a matrix by its shape, and a list of rows by
# its meaning. Muon lets rows that agree share one step.
# p.dim() == 2 and name.startswith("body.") → p.dim() == 2
