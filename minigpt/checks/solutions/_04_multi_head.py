"""Solutions of notebook 04."""

import copy
from itertools import combinations

import torch
import torch.nn as nn

from minigpt.attention import Head, attention
from minigpt.evaluation import evaluate
from minigpt.training import train


# 04.1
class Beside(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return x + self.layer(x)


def saved(model, train_data, val_data, recipe):
    plain, beside = copy.deepcopy(model), copy.deepcopy(model)
    beside.body = Beside(beside.body)
    losses = []
    for each in (plain, beside):  # one start, the same batches
        train(each, train_data, val_data, recipe)
        losses.append(evaluate(each, val_data, recipe.block_size))
    return losses[0] - losses[1]


# 04.2
def parameters(n_embd, n_head):
    head_size = n_embd // n_head
    heads = n_head * 3 * n_embd * head_size
    proj = n_embd * n_embd + n_embd
    return heads + proj


# 04.3
def take_apart(layer, h):
    weight, head_size = layer.qkv.weight, layer.head_size
    rows = slice(h * head_size, (h + 1) * head_size)
    query, key, value = weight.chunk(3)  # each (C, C)
    return query[rows], key[rows], value[rows]


# 04.4
def multi_query(x, query, key, value, proj, n_head):
    B, T, C = x.shape
    q = query(x).view(B, T, n_head, C // n_head).transpose(1, 2)
    k, v = key(x)[:, None], value(x)[:, None]  # (B, 1, T, head_size)
    out, _ = attention(q, k, v)  # (B, n_head, T, head_size)
    out = out.transpose(1, 2).reshape(B, T, C)
    return proj(out)


# 04.5
def without_head(model, h):
    smaller = copy.deepcopy(model)
    layer = smaller.body
    start = h * layer.head_size
    with torch.no_grad():
        layer.proj.weight[:, start : start + layer.head_size] = 0
    return smaller


# 04.6
def stand_ins(loss_of, n_head):
    everyone = list(range(n_head))
    full = loss_of(everyone)

    def rise(*off):
        return loss_of([h for h in everyone if h not in off]) - full

    extra = {
        (a, b): rise(a, b) - rise(a) - rise(b)
        for a, b in combinations(everyone, 2)
    }
    pair = max(extra, key=extra.get)
    return pair, extra[pair]


# 04.7
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


# 04.8
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
