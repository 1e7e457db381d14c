"""Solutions of notebook 05."""


import torch
import torch.nn as nn

from minigpt.block import Block


# 05.1
def through(x, block, plus, think, norm):
    said = block.attention(block.norm1(x) if norm else x)
    x = x + said if plus else said
    if think:
        said = block.feed_forward(block.norm2(x) if norm else x)
        x = x + said if plus else said
    return x
# ✗ You use norm1 for both parts, so norm2 has nothing to do.
# norm2 → norm1
# ✗ The result is that of the whole block, whatever the switches say.
# said = block.attention → return block(x); said = block.attention
# ✗ Both parts read the same x: the second one should hear what the first has said.
# said = block.attention → start = x; said = block.attention
# feed_forward(block.norm2(x) if norm else x) → feed_forward(
# block.norm2(start) if norm else start)
# ✗ The pathway carries normed numbers: you add to norm(x), not to x.
# x = x + said if plus else said → x = (block.norm1(x) if norm else x) + said
#  if plus else said
# ✗ That is post-norm: the LayerNorm acts after the addition.
# block.norm1(x) if norm else x → x
# block.norm2(x) if norm else x → x
# if think → x = block.norm1(x) if norm else x
#     if think
# return x → if think and norm: x = block.norm2(x)
#     return x


# 05.2
W1 = [[1.0, -1.0]]
W2 = [[1.0], [1.0]]


# 05.3
def terms(x, blocks):
    found = [x]
    for block in blocks:
        said = block.attention(block.norm1(x))
        found.append(said)
        x = x + said
        said = block.feed_forward(block.norm2(x))
        found.append(said)
        x = x + said
    return found
# ✗ You use norm1 for both parts, so norm2 has nothing to do.
# norm2 → norm1
# ✗ x itself, the first entry, is missing.
# [x] → []
# ✗ No LayerNorm is used: the parts read the pathway as it is.
# block.norm1 →
# block.norm2 →
# ✗ Every part reads the start: each should hear what those before have added.
# found = [x] → found, start = [x], x
# norm1(x) → norm1(start)
# norm2(x) → norm2(start)


# 05.4
def dropout_by_hand(x, p, training):
    if not training:
        return x
    survives = torch.rand(x.shape) >= p
    return x * survives / (1 - p)


# 05.5
@torch.no_grad()
def leave_one_out(model, x, y):
    whole, losses = model.body, []
    for i in range(len(whole) - 1):
        rest = [part for j, part in enumerate(whole) if j != i]
        model.body = nn.Sequential(*rest)
        losses.append(model(x, y)[1].item())
    model.body = whole
    return losses, losses.index(min(losses))
# ✗ You put zeros in place of the block: that cuts the road itself.
# part for j → part if j != i else nn.Threshold(1e9, 0.0) for j
#  if j != i] → ]
# ✗ Blocks stay away once they are left out: each time one more is missing.
# j != i → j > i
# ✗ You keep only this block and leave out the others.
# j != i → j in (i, len(whole) - 1)
# ✗ The last LayerNorm is left out as well.
# (whole) if → (whole[:-1]) if
# ✗ You give how much the loss rises; the loss itself is wanted.
# return losses, → return [n - model(x, y)[1].item() for n in losses],
# ✗ The losses are right, but you count the blocks from 1.
# (min(losses)) → (min(losses)) + 1


# 05.6
class HandNorm(nn.Module):
    def __init__(self, n_embd, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(n_embd))
        self.beta = nn.Parameter(torch.zeros(n_embd))
        self.eps = eps

    def forward(self, x):  # (B, T, n_embd)
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.pow(2).mean(dim=-1, keepdim=True)
        normed = centred / (variance + self.eps).sqrt()
        return self.gamma * normed + self.beta
# ✗ The bug is still there: change the last position, and those before it move.
# dim=-1 → dim=(1, 2)
# ? Over which dimensions does your mean run, and over which should it?
# ✗ Now batch and time mix, as in BatchNorm.
# dim=-1 → dim=(0, 1)
# ✗ The future is hidden, but the variance is divided by n_embd - 1.
# centred.pow(2).mean( → x.var(
# ✗ The future is hidden, but epsilon stands outside the root.
# (variance + self.eps).sqrt() → (variance.sqrt() + self.eps)


# 05.7
class Stack(nn.Module):
    def __init__(self, n_layer, n_embd, n_head):
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(n_embd, n_head) for _ in range(n_layer)
        )
        self.norm = nn.LayerNorm(n_embd)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x)
# ✗ Every block gets the first x, so that only the last one counts.
# x = block(x) → out = block(x)
# self.norm(x) → self.norm(out)
# ✗ The last LayerNorm acts after every block, on the pathway.
# x = block(x) → x = self.norm(block(x))
# return self.norm(x) → return x
# ✗ x is added to what a block returns, but the block has added it.
# x = block(x) → x = x + block(x)
