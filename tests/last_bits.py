"""With LAST_BITS=1 in the environment, torch computes as on another processor.

Processors differ in the last bit of products, sums and most functions: they add in
another order, keep a product unrounded before it is added, or know exp otherwise. Here
half of the numbers that such an operation gives move by one unit in the last place, by
a rule that sees only the number, the shape and the salt, LAST_BITS: the same call twice
is the same, another shape another one. What is exact everywhere (zeros, ones, whole
sums: its last bits are 0) stays, and so do copies, comparisons, +, -, *, / and roots.

Processes and kernels get it, too: each Python that starts imports sitecustomize.
"""

import functools
import os
import threading
import zlib
from pathlib import Path

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SALT = os.environ.get("LAST_BITS")
# An operation is one of these if its name has one of these words: `linalg_vector_norm`,
# `_softmax_backward_data`. An optimizer, lerp and uniform add a product.
MOVED = set(
    """mm bmm addmm addbmm baddbmm mv addmv dot vdot convolution linalg attention
    sum nansum cumsum mean var std norm dist prod cumprod logsumexp logcumsumexp
    logaddexp logaddexp2 softmax loss entropy exp exp2 expm1 log log2 log10 log1p
    xlogy pow rsqrt sin cos tan sinc sinh cosh tanh asin acos atan atan2 asinh acosh
    atanh erf erfc erfinv lgamma digamma polar hypot sigmoid gelu silu softplus elu
    mish adam adamw sgd lerp addcmul addcdiv linspace logspace randn normal uniform
    """.split()
)
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class LastBits(TorchDispatchMode):
    """Within it, and in the backward passes, the last bits are another processor's."""

    def __init__(self, salt):
        super().__init__()
        self.salt = salt

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled():  # there `linear` arrives in one piece
            with self:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        if is_moved(func) or kwargs.get("alpha", 1) != 1:
            for t in tree_leaves(written(func, args) if out is None else out):
                if type(t) in (torch.Tensor, torch.nn.Parameter) and not t.is_meta:
                    move(t, self.salt)
        return out


@functools.cache
def is_moved(func):
    return not MOVED.isdisjoint(func.overloadpacket.__name__.split("_"))


def written(func, args):
    """The arguments that an operation without a result writes into."""
    kinds = [a.alias_info for a in func._schema.arguments]
    return [a for a, kind in zip(args, kinds) if kind and kind.is_write]


def move(t, salt):
    """Move half of the numbers of t, in place, by one unit in the last place."""
    t = torch.view_as_real(t) if t.is_complex() else t.detach()
    if t.is_floating_point():
        bits = np.atleast_1d(t.view(INTEGERS[t.element_size()]).numpy())
        key = zlib.crc32(f"{tuple(t.shape)} {salt}".encode())
        mixed = bits.astype(np.int32) * np.int32(-1640531535)  # Knuth: the top is mixed
        mixed += np.uint32(key).astype(np.int32)
        bits += ((mixed >> 31) - (mixed >> 30)) * (bits & 7 != 0)


def begin():
    """Compute so from now on, in this thread and in those that it starts."""
    run = threading.Thread.run

    def moved(thread):
        with LastBits(SALT):
            run(thread)

    threading.Thread.run = moved
    LastBits(SALT).__enter__()
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if (here := str(Path(__file__).parent)) not in others:
        os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, others)])


if SALT:
    begin()
