"""Experiments of notebook 05: what each part of a block is good for."""

from dataclasses import replace
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.block import Block, FeedForward
from minigpt.course.experiments.fit import (
    CONTEXT,
    SMALL,
    WIDTH,
    corpus,
    fit,
    grid,
    small,
)
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention
from minigpt.training import TrainConfig, train

N_HEAD = 4
SHORT = TrainConfig(steps=200, batch_size=16, block_size=CONTEXT, learning_rate=3e-3)


class Alone(CausalSelfAttention):
    """The same weights, but each position sees only itself: none is mixed."""

    def forward(self, x):
        return self.proj(self.qkv(x)[..., -x.shape[-1] :])


class ItselfFirst(CausalSelfAttention):
    """A learned score for the own position, which starts at 4: hardly any mixing."""

    def __init__(self, n_embd, n_head):
        super().__init__(n_embd, n_head)
        self.own = nn.Parameter(torch.tensor(4.0))

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_head, self.head_size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        bias = (self.own * torch.eye(T)).masked_fill(future, float("-inf"))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.proj(out.transpose(1, 2).reshape(B, T, C))


class Linear(FeedForward):
    """As many weights as a feed-forward layer, without the bend: it cannot think."""

    def __init__(self, n_embd):
        super().__init__(n_embd)
        self.relu = nn.Identity()


class Parts(nn.Module):
    """A block of which only attention is sure to be there: (B, T, C) -> (B, T, C)."""

    def __init__(self, plus, think, norm, attention=CausalSelfAttention):
        super().__init__()
        self.plus, make = plus, {True: FeedForward, "linear": Linear}.get(think)
        self.norm1 = nn.LayerNorm(WIDTH) if norm else nn.Identity()
        self.attention = attention(WIDTH, N_HEAD)
        self.feed_forward = make(WIDTH) if make else None
        self.norm2 = nn.LayerNorm(WIDTH) if norm and make else nn.Identity()

    def forward(self, x):
        x = self.attention(self.norm1(x)) + (x if self.plus else 0)
        if self.feed_forward is not None:
            x = self.feed_forward(self.norm2(x)) + (x if self.plus else 0)
        return x


class PostNorm(Block):
    """The block of 2017: LayerNorm on the pathway, after each addition."""

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.feed_forward(x))


def stack(make_block, n_layer, last, n_embd=WIDTH):
    """Blocks one behind the other; last: whether a LayerNorm ends them."""
    each = [make_block() for _ in range(n_layer)]
    return nn.Sequential(*each, *[nn.LayerNorm(n_embd)] * last)


def shell(make_block, n_layer, last, seed):
    """The shell around a stack of blocks."""
    torch.manual_seed(seed)
    body = stack(make_block, n_layer, last)
    return LanguageModel(corpus().vocab_size, CONTEXT, WIDTH, body)


def body(n_layer, plus, think, norm):
    """A function that makes n_layer Parts; LayerNorm ends them if they have it, too."""
    return partial(stack, partial(Parts, plus, think, norm), n_layer, norm)


def combinations(n_layer, which):
    """{name: function(seed)}; each of `which` says (plus, think, norm)."""
    found = {}
    for plus, think, norm in which:
        name = "heads" + " + plus" * plus + " + think" * think + " + norm" * norm
        found[name] = partial(small, body=body(n_layer, plus, think, norm))
    return found


@torch.no_grad()
def own_share(model, x):
    """How much of the norm behind the body is left without the mean over positions:
    x (B, T) -> 0 (all positions of a window are alike) to 1."""
    h = model.token_embedding(x) + model.position_embedding(torch.arange(x.shape[1]))
    h = model.body(h)
    return ((h - h.mean(dim=1, keepdim=True)).norm() / h.norm()).item()


def plain(make_block, seed, n_layer=6, last=0, scale=1.0, **recipe):
    """Layers in the shell: loss, and at the start the own share of the positions
    behind the last layer and the length of the first layer's gradient.

    scale: by which the weights of the layers are multiplied before.
    """
    model, text = shell(make_block, n_layer, last, seed), corpus()
    with torch.no_grad():
        for p in model.body.parameters():
            p.mul_(scale if p.dim() == 2 else 1.0)
    torch.manual_seed(0)
    x, y = get_batch(text.train, 32, CONTEXT)
    share = own_share(model, x)
    model(x, y)[1].backward()
    gradients = [p.grad for p in model.body[0].parameters() if p.grad is not None]
    gradient = sum(g.square().sum() for g in gradients).sqrt().item()
    model.zero_grad()
    found = fit(model, replace(SHORT, **recipe), seed)
    return {"own share": share, "gradient": gradient, "loss": found["loss"]}


def shaped(n_layer, C):
    """n_layer blocks of width C at four rates, and at one of them for longer."""
    name = f"{n_layer} x {C}, {{steps}} steps, rate {{learning_rate:g}}"
    blocks = partial(stack, partial(Block, C, N_HEAD), n_layer, True, C)
    at = partial(grid, name, small, body=[blocks], n_embd=[C])
    rates = [2.5e-3, 5e-3, 1e-2, 2e-2]
    return at(steps=[600], learning_rate=rates) | at(steps=[2400], learning_rate=[1e-2])


def dropped(seed, length, dropout):
    """Three blocks with dropout, trained on the first characters
    (None: on all) for so many steps."""
    text, (characters, steps) = corpus(), length
    learned = text.train[:characters]
    model = shell(partial(Block, WIDTH, N_HEAD, dropout), 3, True, seed)
    history = train(model, learned, text.val, replace(SMALL, steps=steps, seed=seed))
    return {
        "loss": evaluate(model, text.val, CONTEXT),
        "training loss": evaluate(model, learned, CONTEXT),
        "lowest": min(row.val_loss for row in history),
        "seconds": round(history[-1].seconds, 1),
    }


bare = partial(Parts, False, True, False)
alone = partial(Parts, False, True, False, Alone)
itself = partial(Parts, False, True, False, ItselfFirst)
heads_only = partial(Parts, False, False, False)
ROOT = 3**0.5
LENGTHS = {
    "25,000 characters, 1,500 steps": (25_000, 1500),
    "all, 600 steps": (None, 600),
}
ALL = [(p, t, n) for n in (False, True) for p in (False, True) for t in (False, True)]
EXPERIMENTS = {
    "05-plain": {
        "1 plain layer": partial(plain, bare, n_layer=1),
        "6 plain layers": partial(plain, bare),
        "6, rate 0.0005": partial(plain, bare, learning_rate=5e-4),
        "6, rate 0.01": partial(plain, bare, learning_rate=1e-2),
        "6, 1,000 steps": partial(plain, bare, steps=1000),
        "6, LayerNorm": partial(plain, partial(Parts, False, True, True), last=1),
        "6, weights x 1.73": partial(plain, bare, scale=ROOT),
        "6, each alone": partial(plain, alone),
        "6, each alone, weights x 1.73": partial(plain, alone, scale=ROOT),
        "6, heads only": partial(plain, heads_only),
        "6, heads only, weights x 1.73": partial(plain, heads_only, scale=ROOT),
        "6, plus sign": partial(plain, partial(Parts, True, True, False)),
    },
    "05-plain-longer": grid(
        "{make_block}weights x 1.73",
        plain,
        scale=[ROOT],
        steps=[600],
        make_block={"": bare, "itself first, ": itself, "each alone, ": alone},
    ),
    "05-parts": combinations(1, ALL),
    "05-parts-3": combinations(3, [c for c in ALL if sum(c) != 1 or c[0]]),
    "05-no-plus": grid(
        "rate {learning_rate:g}",
        small,
        body=[body(3, plus=False, think=True, norm=True)],
        learning_rate=[1e-3, 2.5e-3, 5e-3],
    ),
    "05-think": grid(
        "{body}, rate {learning_rate:g}",
        small,
        learning_rate=[5e-3, 1e-2, 2e-2],
        body={
            "heads": body(1, False, False, False),
            "as many weights": body(1, False, "linear", False),
            "heads + think": body(1, False, True, False),
        },
    ),
    "05-norm": grid(
        "{body}, rate {learning_rate:g}, warm-up {warmup_steps}",
        partial(small, recipe=SHORT),
        warmup_steps=[40, 0],
        body={
            "pre-norm": partial(stack, partial(Block, WIDTH, N_HEAD), 6, True),
            "post-norm": partial(stack, partial(PostNorm, WIDTH, N_HEAD), 6, False),
            "no norm": body(6, True, True, False),
        },
        learning_rate=[1e-3, 3e-3, 6e-3, 1e-2, 2e-2],
    ),
    "05-depth": shaped(1, 108) | shaped(3, 64),
    "05-dropout": grid(
        "{length}, dropout {dropout}", dropped, length=LENGTHS, dropout=[0.0, 0.2]
    ),
}
