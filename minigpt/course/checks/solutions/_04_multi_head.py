"""Solutions of notebook 04."""

import copy

import torch
import torch.nn as nn

from minigpt.attention import Head, attention

# 04.1
def parameters(n_embd, n_head):
    head_size = n_embd // n_head
    heads = n_head * 3 * n_embd * head_size
    proj = n_embd * n_embd + n_embd
    return heads + proj
# ✗ You give queries, keys and values a bias; here they have none.
# n_embd * head_size → (n_embd + 1) * head_size
# ✗ Each head has a projection of its own here; there is one for all of them.
# return heads + proj → return heads + n_head * proj
# ✗ The bias of the projection is counted for each head; there is one projection for all.
# n_embd * n_embd + n_embd → n_embd * n_embd + n_head * n_embd
# ✗ That is the number of one head's matrices: there are n_head heads, and each reads all
# n_embd channels.
# n_head * 3 → 3

# 04.2
def without_head(model, h):
    smaller = copy.deepcopy(model)
    layer = smaller.body
    start = h * layer.head_size
    with torch.no_grad():
        layer.proj.weight[:, start : start + layer.head_size] = 0
    return smaller
# ✗ The head is not off: with all scores at zero, it hands over the mean of its values.
# proj.weight[:, start → qkv.weight[start
# ✗ You switch off every n_head-th channel. Heads do not take turns.
# [:, start : start + layer.head_size] → [:, h :: layer.n_head]
# ✗ qkv's rows are not sorted by head: all queries come first, then keys, then values.
# layer.proj.weight[:, start : start + layer.head_size] = 0 → layer.qkv.weight[
# 3 * start : 3 * (start + layer.head_size)] = 0
# ✗ A head has head_size channels; n_head says how many heads there are.
# layer.head_size → layer.n_head

# 04.3
class Heads(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.heads = nn.ModuleList(
            Head(n_embd, n_embd // n_head)
            for _ in range(n_head)
        )
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        side_by_side = [head(x) for head in self.heads]
        return self.proj(torch.cat(side_by_side, dim=-1))

# 04.4
class DiceHeads(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        shape = B, T, 3, self.n_head, C // self.n_head
        qkv = self.qkv(x).view(shape)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        out, _ = attention(q, k, v)  # (B, n_head, T, head_size)
        out = out.transpose(1, 2).reshape(B, T, C)
        return self.proj(out)
# ✗ The bug is still there: nobody can foresee dice, yet the model is better than
# chance. It knows throws that are still to come.
# out = out.transpose(1, 2).reshape(B, T, C) → pass
# self.proj(out) → self.proj(out.reshape(B, T, C))
# ✗ Each head gets the mean of all heads; they belong side by side.
# out.transpose(1, 2) → out.mean(1, True).expand_as(out).transpose(1, 2)
# ✗ At each position heads look at heads, and no position sees another one.
# permute(2, 0, 3, 1, 4) → unbind(2)
# out.transpose(1, 2).reshape → out.reshape
# ✗ The view mixes positions and heads: (B, T, 3, n_head, head_size) comes first.
# self.qkv(x).view(shape) → self.qkv(x).view(B, 3, self.n_head, T, -1)
# qkv.permute(2, 0, 3, 1, 4) → qkv.unbind(1)
# ? A view keeps the order in memory; permute exchanges dimensions.
# ✗ The causal mask is off: each position sees the throws that are still to come.
# attention(q, k, v) → attention(q, k, v, False)
