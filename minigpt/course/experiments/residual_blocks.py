"""Experiments of notebook 05: what each part of a block is good for."""

from dataclasses import replace
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.block import Block, FeedForward
from minigpt.course.experiments.fit import CONTEXT, SMALL, WIDTH, corpus, fit
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


def shell(make_block, n_layer, last, seed, n_embd=WIDTH):
    """The shell around a stack of blocks; last: whether a LayerNorm ends it."""
    torch.manual_seed(seed)
    each = [make_block() for _ in range(n_layer)]
    body = nn.Sequential(*each, *[nn.LayerNorm(n_embd)] * last)
    return LanguageModel(corpus().vocab_size, CONTEXT, n_embd, body)


def parts(n_layer, plus, think, norm, seed, **recipe):
    """n_layer Parts, trained with the small recipe or what changes it."""
    model = shell(partial(Parts, plus, think, norm), n_layer, norm, seed)
    return fit(model, replace(SMALL, **recipe), seed)


def combinations(n_layer, which):
    """{name: function(seed)}; each of `which` says (plus, think, norm)."""
    words = [("plus", 0), ("think", 1), ("norm", 2)]
    return {
        " + ".join(["heads", *(w for w, i in words if flags[i])]): partial(
            parts, n_layer, *flags
        )
        for flags in which
    }


def deep(make_block, last, seed, **recipe):
    """Six blocks in the shell, for 200 steps."""
    return fit(shell(make_block, 6, last, seed), replace(SHORT, **recipe), seed)


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


def shaped(n_layer, n_embd, seed, **recipe):
    """n_layer blocks of a width, else the small recipe."""
    model = shell(partial(Block, n_embd, N_HEAD), n_layer, True, seed, n_embd)
    return fit(model, replace(SMALL, **recipe), seed)


def dropped(dropout, characters, steps, seed):
    """Three blocks with dropout, trained on the first characters (None: on all)."""
    torch.set_num_threads(1)
    text = corpus()
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
ROOT, LONG = 3**0.5, {"steps": 600}
KINDS = {
    "pre-norm": (partial(Block, WIDTH, N_HEAD), True),
    "post-norm": (partial(PostNorm, WIDTH, N_HEAD), False),
    "no norm": (partial(Parts, True, True, False), False),
}
ALL = [(p, t, n) for n in (False, True) for p in (False, True) for t in (False, True)]
THINK = {"heads": False, "as many weights": "linear", "heads + think": True}
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
    "05-plain-longer": {
        "weights x 1.73": partial(plain, bare, scale=ROOT, **LONG),
        "itself first, weights x 1.73": partial(plain, itself, scale=ROOT, **LONG),
        "each alone, weights x 1.73": partial(plain, alone, scale=ROOT, **LONG),
    },
    "05-parts": combinations(1, ALL),
    "05-parts-3": combinations(3, [c for c in ALL if sum(c) != 1 or c[0]]),
    "05-no-plus": {
        f"rate {rate:g}": partial(parts, 3, False, True, True, learning_rate=rate)
        for rate in (1e-3, 2.5e-3, 5e-3)
    },
    "05-think": {
        f"{name}, rate {rate:g}": partial(
            parts, 1, False, think, False, learning_rate=rate
        )
        for rate in (5e-3, 1e-2, 2e-2)
        for name, think in THINK.items()
    },
    "05-norm": {
        f"{name}, rate {rate:g}, warm-up {warmup}": partial(
            deep, *kind, learning_rate=rate, warmup_steps=warmup
        )
        for warmup in (40, 0)
        for name, kind in KINDS.items()
        for rate in (1e-3, 3e-3, 6e-3, 1e-2, 2e-2)
    },
    "05-depth": {
        f"{n_layer} x {n_embd}, {steps} steps, rate {rate:g}": partial(
            shaped, n_layer, n_embd, learning_rate=rate, steps=steps
        )
        for n_layer, n_embd in [(1, 108), (3, 64)]
        for steps, rates in [(600, (2.5e-3, 5e-3, 1e-2, 2e-2)), (2400, (1e-2,))]
        for rate in rates
    },
    "05-dropout": {
        f"{name}, dropout {p}": partial(dropped, p, characters, steps)
        for name, characters, steps in [
            ("25,000 characters, 1,500 steps", 25_000, 1500),
            ("all, 600 steps", None, 600),
        ]
        for p in (0.0, 0.2)
    },
}
