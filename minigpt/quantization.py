"""Lesson 09: weights in eight bits, for a model that has finished learning.

A row of a weight matrix w becomes whole numbers from -127 to 127 and one scale:
w ≈ scale * q with scale = max |w| / 127, so no weight moves by more than scale / 2.
Source: Dettmers et al., LLM.int8() (2022), sections 2.1 (absmax) and 3.1 (a scale
for each row).
"""

import copy
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.arguments import check_model
from minigpt.tensors import takes


def to_int8(w):
    """w (..., n) -> q (..., n) int8, scale (..., 1), such that w ≈ scale * q."""
    return to_whole(w, torch.int8)


@takes(w="(..., n)")
def to_whole(w, dtype):
    """to_int8 for any of torch's signed integer types, whose largest stands for 127."""
    if not w.is_floating_point():
        raise TypeError(f"w holds {w.dtype}; give w.float().")
    scale = w.abs().amax(dim=-1, keepdim=True) / torch.iinfo(dtype).max
    scale = scale.masked_fill(scale == 0, 1.0)  # a row of zeros stays one
    return (w / scale).round().to(dtype), scale


class Int8Linear(nn.Module):
    """nn.Linear with its weight in eight bits, one scale for each output.

    activations=False: q becomes float again in each call; that saves memory, not
    time. activations=True: each input vector is rounded to eight bits, too, and the
    product is one of whole numbers, for which many processors have their own
    instructions.
    """

    def __init__(self, linear, activations=False):
        super().__init__()
        if not linear.weight.isfinite().all():
            raise ValueError(
                "A weight is nan or infinite: give a model of finite ones."
            )
        weight, scale = to_int8(linear.weight.detach())
        self.activations = activations
        self.register_buffer("weight", weight)  # (out, in), int8
        self.register_buffer("scale", scale[:, 0])  # (out,)
        bias = linear.bias
        self.register_buffer("bias", None if bias is None else bias.detach().clone())

    def forward(self, x):
        if self.activations:
            q, scale = to_int8(x)  # (..., in), (..., 1)
            out = whole_product(q.view(-1, q.shape[-1]), self.weight).to(x.dtype)
            out = out.view(*x.shape[:-1], -1) * scale
        else:
            out = F.linear(x, self.weight.to(x.dtype))
        out = out * self.scale
        return out if self.bias is None else out + self.bias

    def extra_repr(self):
        out, inputs = self.weight.shape
        return f"in_features={inputs}, out_features={out}, activations=" + str(
            self.activations
        )


def whole_product(x, w):
    """x (R, n) times w (m, n) transposed, both int8 -> (R, m), summed in int32.

    On other devices than a CPU, in float32: equal up to the rounding of its sums.
    """
    if x.device.type == "cpu":
        return torch._int_mm(x, w.t())
    return F.linear(x.float(), w.float())


def quantize(model, activations=False):
    """A copy of a model, to write and to judge with, not to train: each nn.Linear
    is an Int8Linear. Embeddings and norms stay as they are.

    A file with its state_dict is read into quantize(config.build()).
    """
    check_model(model)
    small = copy.deepcopy(model).eval().requires_grad_(False)
    for module in list(small.modules()):
        for name, part in list(module.named_children()):
            if type(part) is nn.Linear:
                setattr(module, name, Int8Linear(part, activations))
    return small


def file_bytes(model):
    """The size of a file with the model's weights, in bytes."""
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return file.getbuffer().nbytes
