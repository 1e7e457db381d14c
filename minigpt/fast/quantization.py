"""Lesson 09: weights in eight bits, for a model that has finished learning.

A row of a weight matrix w becomes whole numbers from -127 to 127 and one scale:
w ≈ scale * q with scale = max |w| / 127, so no weight moves by more than scale / 2.
Source: Dettmers et al., LLM.int8() (2022), sections 2.1 (absmax) and 3.1 (a scale
for each row).
"""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def to_int8(w, dtype=torch.int8):
    """w (..., n) -> q (..., n) int8, scale (..., 1) float32, such that w ≈ scale * q.

    dtype: another of torch's signed integers, whose largest then stands for 127.
    """
    w, largest = w.float(), torch.iinfo(dtype).max  # in bf16 w / scale reaches 128
    scale = w.abs().amax(dim=-1, keepdim=True) / largest
    scale = scale.masked_fill(scale == 0, 1.0)  # a row of zeros stays one
    return (w / scale).round().clamp(-largest, largest).to(dtype), scale


class Int8Linear(nn.Module):
    """nn.Linear with its weight in eight bits, one scale for each output.

    q becomes float again in each call: that saves memory, not time.
    """

    def __init__(self, linear):
        super().__init__()
        weight, scale = to_int8(linear.weight.detach())
        self.register_buffer("weight", weight)  # (out, in), int8
        self.register_buffer("scale", scale[:, 0])  # (out,)
        bias = linear.bias
        self.register_buffer("bias", None if bias is None else bias.detach().clone())

    def forward(self, x):
        out = F.linear(x, self.weight.to(x.dtype)) * self.scale
        out = out if self.bias is None else out + self.bias
        return out.to(x.dtype)


def quantize(model):
    """A copy of a model, to write and to judge with, not to train: each nn.Linear
    is an Int8Linear. Embeddings and norms stay as they are."""
    small = copy.deepcopy(model).eval().requires_grad_(False)
    for module in list(small.modules()):
        for name, part in list(module.named_children()):
            if type(part) is nn.Linear:
                setattr(module, name, Int8Linear(part))
    return small
