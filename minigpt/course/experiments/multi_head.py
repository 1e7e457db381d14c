"""Experiments of notebook 04: heads, the pathway around them, traps, memory."""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.attention import attention
from minigpt.course import measure
from minigpt.course.experiments.fit import CONTEXT, SMALL, WIDTH, grid, small
from minigpt.multi_head import CausalSelfAttention, MultiHeadAttention

FAST = 0.02  # among the best rates of all of them; the recipe has 0.005


class Layer(CausalSelfAttention):
    """CausalSelfAttention with one thing changed.

    own: may a position look at itself? root: divide the scores by √root
    (None: √head_size). start: the queries' first weights are multiplied by it.
    trap: reshape the heads instead of transposing them.
    """

    def __init__(self, n_head, own=True, root=None, start=1.0, trap=False):
        super().__init__(WIDTH, n_head)
        self.own, self.trap = own, trap
        self.scale = (root or self.head_size) ** -0.5
        with torch.no_grad():
            self.qkv.weight[:WIDTH] *= start

    def forward(self, x):
        B, T, C = x.shape
        past = torch.ones(T, T, dtype=torch.bool).tril(0 if self.own else -1)
        past[0, 0] = True  # whoever has no past may look at itself
        q, k, v = (self.cut(z) for z in self.qkv(x).split(C, dim=-1))
        out = F.scaled_dot_product_attention(q, k, v, past, scale=self.scale)
        if not self.trap:
            out = out.transpose(1, 2)
        return self.proj(out.reshape(B, T, C))

    def cut(self, z):
        B, T, C = z.shape
        if self.trap:
            return z.reshape(B, self.n_head, T, self.head_size)
        return z.view(B, T, self.n_head, self.head_size).transpose(1, 2)


class Residual(nn.Module):
    """x + body(x): what a position was goes on beside what it has heard."""

    def __init__(self, make_body, n_head):
        super().__init__()
        self.body = make_body(n_head)

    def forward(self, x):
        return x + self.body(x)


def bare(n_head):
    """Heads side by side, and that is all; the same start as with a projection."""
    layer = CausalSelfAttention(WIDTH, n_head)
    layer.proj = nn.Identity()
    return layer


def several(seed, make, n_head, residual, **changes):
    """The shell around make(n_head), or around x + it."""
    body = partial(Residual, make, n_head) if residual else partial(make, n_head)
    return small(seed, body, **changes)


def heads_at(make, heads, rates, what=""):
    """Numbers of heads, without and with x +, at each rate."""
    return grid(
        "{n_head}{residual}" + what + "{learning_rate}",
        partial(several, make=make),
        learning_rate=rates,
        residual={"": False, ", x + attention": True},
        n_head={"1 head" if n == 1 else f"{n} heads": n for n in heads},
    )


def labelled(*rates):
    """Rates as an axis: of the recipe's own the name says nothing."""
    own = SMALL.learning_rate
    return {"" if rate == own else f", rate {rate}": rate for rate in rates}


class Batched(CausalSelfAttention):
    """All heads in one operation, but not fused: it stores all tables of weights."""

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_head, self.head_size)
        out, _ = attention(*qkv.permute(2, 0, 3, 1, 4))
        return self.proj(out.transpose(1, 2).reshape(B, T, C))


def memory(seed, make, training):
    """MiB that one call takes, in a process of its own: see added_memory."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(added_memory, make, training).result()


def added_memory(make, training):
    """MiB of one call on (2, 2048, 64): in tensors, and in the whole process.

    The process counts scratch space inside operations too. training: with backward().
    """
    import resource  # not on Windows

    def peak():
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

    def call(x):
        out = layer(x)
        if training:
            out.sum().backward()

    torch.set_num_threads(1)
    layer = make(WIDTH, 4)
    with torch.set_grad_enabled(training):
        call(torch.randn(1, 16, WIDTH))  # whatever a first call loads
        x = torch.randn(2, 2048, WIDTH)
        before = peak()
        call(x)
        process = peak() - before
        tensors = measure.peak_bytes(call, x) / 2**20
    return {"tensors": tensors, "process": process}


WAYS = {
    "list of heads": MultiHeadAttention,
    "one batched operation": Batched,
    "fused kernel": CausalSelfAttention,
}
heads = partial(CausalSelfAttention, WIDTH)
blind = partial(Layer, own=False)
TRAPS = {
    "reshape": partial(Layer, 4, trap=True),
    "by √C": partial(Layer, 4, root=WIDTH),
}
STARTS = {
    "by √C, the right start": partial(Layer, 4, root=WIDTH, start=2.0),
    "the right root, √C's start": partial(Layer, 4, start=0.5),
}
SHORT = {"block_size": CONTEXT // 4, "batch_size": 4 * SMALL.batch_size}
eight = partial(small, body=partial(heads, 4), **SHORT)
OWN, BOTH = labelled(SMALL.learning_rate), labelled(SMALL.learning_rate, FAST)
ALL, TWO = [1, 2, 4, 8, 16], [1, 4]
EXPERIMENTS = {  # what the later ones are compared with is in 04-heads and 04-rates
    "04-heads": heads_at(heads, ALL, OWN),
    "04-rates": heads_at(heads, TWO, labelled(0.0025, 0.01, 0.04, 0.08))
    | heads_at(heads, ALL, labelled(FAST)),
    "04-projection": heads_at(bare, TWO, BOTH, ", no projection"),
    "04-itself": heads_at(blind, TWO, BOTH, ", not itself"),
    "04-traps": grid("{body}{learning_rate}", small, learning_rate=BOTH, body=TRAPS)
    | grid("4 heads, context 8{learning_rate}", eight, learning_rate=BOTH),
    "04-root": grid("{body}{learning_rate}", small, learning_rate=BOTH, body=STARTS),
    "04-memory": grid(
        "{make}{training}",
        memory,
        training={"": False, ", training": True},
        make=WAYS,
    ),
}
