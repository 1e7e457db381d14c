"""Experiments of notebook 04: heads, the pathway around them, traps, memory."""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import measure
from minigpt.attention import attention
from minigpt.data import get_batch
from minigpt.experiments.fit import CONTEXT, SMALL, WIDTH, corpus, fit
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention, MultiHeadAttention


class Layer(CausalSelfAttention):
    """CausalSelfAttention with one thing changed.

    own: may a position look at itself? root: divide the scores by √root
    (None: √head_size). trap: reshape the heads instead of transposing them.
    """

    def __init__(self, n_head, own=True, root=None, trap=False):
        super().__init__(WIDTH, n_head)
        self.own, self.trap = own, trap
        self.scale = (root or self.head_size) ** -0.5

    def forward(self, x):
        B, T, C = x.shape
        shape = (B, self.n_head, T, self.head_size)
        past = torch.ones(T, T, dtype=torch.bool).tril(0 if self.own else -1)
        past[0, 0] = True  # whoever has no past may look at itself
        q, k, v = (self._cut(z, shape) for z in self.qkv(x).split(C, dim=-1))
        out = F.scaled_dot_product_attention(q, k, v, past, scale=self.scale)
        if not self.trap:
            out = out.transpose(1, 2)
        return self.proj(out.reshape(B, T, C))

    def _cut(self, z, shape):
        B, n_head, T, head_size = shape
        if self.trap:
            return z.reshape(shape)
        return z.view(B, T, n_head, head_size).transpose(1, 2)


class Residual(nn.Module):
    """x + body(x): what a position was goes on beside what it has heard."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return x + self.body(x)


def small(make_body, seed, residual=False, **changes):
    """The shell around a body with the small recipe, or with changes of it."""
    torch.manual_seed(seed)
    layer = make_body()
    body = Residual(layer) if residual else layer
    plan = replace(SMALL, **changes)
    model = LanguageModel(corpus().vocab_size, plan.block_size, WIDTH, body)
    result = fit(model, plan, seed)
    if type(layer) is CausalSelfAttention:
        result |= looks(model, layer)
    return result


def looks(model, layer):
    """Where the heads look, as notebook 04 measures it: the largest share of a head
    on its own position and one place back, the least and the largest mean distance."""
    batches = torch.Generator().manual_seed(0)
    idx, _ = get_batch(corpus().val, 256, model.block_size, generator=batches)
    T, n_head = idx.shape[1], layer.n_head
    with torch.no_grad():
        x = model.token_embedding(idx) + model.position_embedding(torch.arange(T))
        qkv = layer.qkv(x).view(len(idx), T, 3, n_head, layer.head_size)
        weights = attention(*qkv.permute(2, 0, 3, 1, 4))[1]  # (B, n_head, T, T)
    back = torch.arange(T)[:, None] - torch.arange(T)  # how far is k behind q?
    later = weights[:, :, T // 2 :].mean(dim=0)  # (n_head, T / 2, T)
    far = (later * back[T // 2 :]).sum(dim=-1).mean(dim=-1)
    share = [(later * (back == d)[T // 2 :]).sum(dim=-1).mean(dim=-1) for d in (0, 1)]
    return {
        "itself": share[0].max().item(),
        "one back": share[1].max().item(),
        "nearest": far.min().item(),
        "farthest": far.max().item(),
    }


def bare(n_head):
    """Heads side by side, and that is all; the same start as with a projection."""
    layer = CausalSelfAttention(WIDTH, n_head)
    layer.proj = nn.Identity()
    return layer


def name(n_head, residual):
    """What a variant is called."""
    heads = f"{n_head} head" if n_head == 1 else f"{n_head} heads"
    return f"{heads}, x + attention" if residual else heads


def grid(make_body, heads, suffix="", **changes):
    """{variant: function} for every number of heads, without and with residual."""
    return {
        name(n, residual) + suffix: partial(
            small, partial(make_body, n), residual=residual, **changes
        )
        for residual in (False, True)
        for n in heads
    }


def traps(suffix="", **changes):
    """{variant: function} of two mistakes, and of a context that one amounts to."""
    return {
        "reshape" + suffix: partial(small, partial(Layer, 4, trap=True), **changes),
        "4 heads, context 8" + suffix: partial(
            small, partial(heads, 4), **short, **changes
        ),
        "by √C" + suffix: partial(small, partial(Layer, 4, root=WIDTH), **changes),
    }


FAST = 0.02  # among the best rates of all of them; the recipe has 0.005
heads = partial(CausalSelfAttention, WIDTH)
blind = partial(Layer, own=False)
short = {"block_size": CONTEXT // 4, "batch_size": 4 * SMALL.batch_size}


class Batched(CausalSelfAttention):
    """All heads in one operation, but not fused: it stores all tables of weights."""

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_head, self.head_size)
        out, _ = attention(*qkv.permute(2, 0, 3, 1, 4))
        return self.proj(out.transpose(1, 2).reshape(B, T, C))


def memory(make, training, seed):
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
# What the later ones are compared with is in 04-heads.
EXPERIMENTS = {
    "04-heads": grid(heads, [1, 2, 4, 8, 16]),
    "04-rates": {
        variant: function
        for rate in (0.0025, 0.01, 0.02, 0.04, 0.08)
        for variant, function in grid(
            heads,
            [1, 2, 4, 8, 16] if rate == FAST else [1, 4],
            f", rate {rate}",
            learning_rate=rate,
        ).items()
    },
    "04-projection": grid(bare, [1, 4], ", no projection")
    | grid(bare, [1, 4], f", no projection, rate {FAST}", learning_rate=FAST),
    "04-itself": grid(blind, [1, 4], ", not itself")
    | grid(blind, [1, 4], f", not itself, rate {FAST}", learning_rate=FAST),
    "04-traps": traps() | traps(f", rate {FAST}", learning_rate=FAST),
    "04-memory": {
        way + suffix: partial(memory, make, training)
        for training, suffix in [(False, ""), (True, ", training")]
        for way, make in WAYS.items()
    },
}
