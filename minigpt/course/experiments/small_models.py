"""Experiments of 02 to 05: the small model of these lessons around other bodies."""

import math
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import averaging
from minigpt.attention import Head, attention_weights
from minigpt.block import Block, FeedForward
from minigpt.course.experiments.fit import CONTEXT, WIDTH, corpus, grid, run, small
from minigpt.multi_head import CausalSelfAttention
from minigpt.training import TrainConfig

RATES = [2.5e-3, 5e-3, 1e-2, 2e-2, 4e-2, 8e-2]  # the recipe's is 1e-2
ROOT = WIDTH**0.5


class Residual(nn.Module):
    """x + body(x): what a position was goes on beside what it has heard."""

    def __init__(self, body):
        super().__init__()
        self.body = body()

    def forward(self, x):
        return x + self.body(x)


# 02: who sets the weights of a mean.
class Mean(nn.Module):
    """The plain mean of the past."""

    def forward(self, x):
        return averaging.average_matmul(x)


class Learned(nn.Module):
    """One table of scores for all texts, learned: the same weights whatever x is."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(CONTEXT, CONTEXT))

    def forward(self, x):
        T = x.shape[1]
        scores = averaging.hide_future(self.scores[:T, :T])  # (T, T)
        return F.softmax(scores, dim=-1) @ x


class Chosen(nn.Module):
    """Version 4 with learned queries and keys."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return averaging.average_attention(x, self.query(x), self.key(x))


AVERAGES = {
    "the present alone": {"body": nn.Identity},
    "mean": {"body": Mean},
    "present + mean": {"body": partial(Residual, Mean)},
    "learned table": {"body": Learned},
    "version 4": {"body": Chosen},
}


# 03: what the root does.
class Unscaled(Head):
    """The scores are not divided by √head_size."""

    def forward(self, x):
        return attention_weights(self.query(x) * ROOT, self.key(x)) @ self.value(x)


class SlowQueries(TrainConfig):
    """A TrainConfig with which the query matrix learns √head_size times as slowly."""

    def make_optimizer(self, model):
        query, optimizer = model.body.query.weight, super().make_optimizer(model)
        for group in optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p is not query]
        decay = self.weight_decay * ROOT  # for the same share of the weight
        optimizer.add_param_group({"params": [query], "weight_decay": decay})

        def slow(optimizer, *_):  # `train` sets "lr" anew before each step
            optimizer.param_groups[-1]["lr"] /= ROOT

        optimizer.register_step_pre_hook(slow)
        return optimizer


@torch.no_grad()
def quiet(model):
    """The first queries are smaller by √head_size."""
    model.body.query.weight /= ROOT


# Without the root the gradient of the queries is longer: clipping would shorten all.
SLOW = {"kind": SlowQueries, "grad_clip": math.inf}
UNSCALED = {"body": partial(Unscaled, WIDTH, WIDTH)}
ROOTS = {
    "root": {"body": partial(Head, WIDTH, WIDTH)},
    "no root": UNSCALED,
    "no root, queries / 8": UNSCALED | {"change": quiet},
    "no root, queries and their rate / 8": UNSCALED | SLOW | {"change": quiet},
}


# 04: several heads.
class Reshaped(CausalSelfAttention):
    """The trap: the heads are reshaped instead of transposed."""

    def forward(self, x):
        B, T, C = x.shape
        split = self.qkv(x).split(C, dim=-1)
        q, k, v = (z.reshape(B, self.n_head, T, self.head_size) for z in split)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(out.reshape(B, T, C))


one, four = (partial(CausalSelfAttention, WIDTH, n_head) for n_head in (1, 4))
HEADS = {
    "1 head": {"body": one},
    "4 heads": {"body": four},
    "1 head, x + attention": {"body": partial(Residual, one)},
    "4 heads, x + attention": {"body": partial(Residual, four)},
}
TRAP = {"4 heads, reshaped": {"body": partial(Reshaped, WIDTH, 4)}}


# 05: what makes blocks stack.
class Alone(CausalSelfAttention):
    """The same weights, but each position sees only itself: none is mixed."""

    def forward(self, x):
        return self.proj(self.qkv(x)[..., -x.shape[-1] :])


class Parts(nn.Module):
    """A block without norms, which may lack its plus signs or the mixing, too."""

    def __init__(self, plus=False, attention=CausalSelfAttention):
        super().__init__()
        self.plus, self.attention = plus, attention(WIDTH, 4)
        self.feed_forward = FeedForward(WIDTH)

    def forward(self, x):
        x = self.attention(x) + (x if self.plus else 0)
        return self.feed_forward(x) + (x if self.plus else 0)


class PostNorm(Block):
    """The block of 2017: LayerNorm on the pathway, after each addition."""

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.feed_forward(x))


def stack(block, n_layer, n_embd=WIDTH, last=nn.LayerNorm):
    """Blocks one behind the other, and what ends them."""
    return nn.Sequential(*(block() for _ in range(n_layer)), last(n_embd))


def blocks(n_layer, n_embd=WIDTH, dropout=0.0):
    """The changes that make a stack of lesson 05's blocks."""
    block = partial(Block, n_embd, 4, dropout)
    return {"body": partial(stack, block, n_layer, n_embd), "n_embd": n_embd}


def bare(n_layer, block=Parts, **parts):
    """The changes that make a stack of other blocks, without a last norm."""
    return {"body": partial(stack, partial(block, **parts), n_layer, last=nn.Identity)}


@torch.no_grad()
def larger(model):
    """The matrices of the layers, times √3."""
    for p in model.body.parameters():
        p.mul_(3**0.5 if p.dim() == 2 else 1.0)


def beginning():
    """The first 25,000 characters of the training text, and the validation text."""
    return corpus().train[:25_000], corpus().val


six, apart = bare(6), bare(6, attention=Alone)
PLAIN = {
    "1 plain layer": bare(1),
    "6 plain layers": six,
    "6, rate 0.0005": six | {"learning_rate": 5e-4},
    "6, rate 0.01": six | {"learning_rate": 1e-2},
    "6, 1,000 steps": six | {"steps": 1000},
    "6, weights x 1.73": six | {"change": larger},
    "6, each alone": apart,
    "6, each alone, weights x 1.73": apart | {"change": larger},
    "6, plus sign": bare(6, plus=True),
}
NORMS = {
    "pre-norm": blocks(6),
    "post-norm": bare(6, PostNorm, n_embd=WIDTH, n_head=4),
    "no norm": bare(6, plus=True),
}
LARGE = {"1 x 108": blocks(1, 108), "3 x 64": blocks(3)}
SHAPES = {"1 x 64": blocks(1)} | LARGE
LENGTHS = {"25,000 characters, 1,500 steps": {"data": beginning, "steps": 1500}}
LENGTHS |= {"all, 600 steps": {}}
DROPOUTS = {f"dropout {p}": blocks(3, dropout=p) for p in (0.0, 0.2)}
each = partial(run, base=small)
brief = partial(each, steps=200, batch_size=16, learning_rate=3e-3)
LOW, HIGH = [1e-3, 3e-3, 6e-3, 1e-2, 2e-2], [5e-3, 1e-2, 2e-2]
AT_RATE = "{variant}, rate {learning_rate:g}"
SHAPED = "{variant}, {steps} steps, rate {learning_rate:g}"
ONE_HEAD = partial(each, **ROOTS["root"])  # with `--seeds 1337 … 1348`
EXPERIMENTS = {
    "02-averages": grid(AT_RATE, each, variant=AVERAGES, learning_rate=RATES),
    "03-root": grid(AT_RATE, each, variant=ROOTS, learning_rate=RATES),
    "03-seeds": grid("{learning_rate:g}", ONE_HEAD, learning_rate=[5e-3, 1e-2]),
    "04-heads": grid(AT_RATE, each, variant=HEADS, learning_rate=RATES)
    | grid(AT_RATE, each, variant=TRAP, learning_rate=[5e-3, 2e-2]),
    "05-plain": grid("{variant}", brief, variant=PLAIN),
    "05-norm": grid(f"{AT_RATE}, warm-up 40", brief, variant=NORMS, learning_rate=LOW),
    "05-depth": grid(SHAPED, each, variant=SHAPES, steps=[600], learning_rate=HIGH)
    | grid(SHAPED, each, variant=LARGE, steps=[2400], learning_rate=[1e-2]),
    "05-dropout": grid("{length}, {dropout}", each, length=LENGTHS, dropout=DROPOUTS),
}
