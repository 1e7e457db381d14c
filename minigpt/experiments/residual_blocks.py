"""Experiments of notebook 05: what each part of a block is good for."""

from dataclasses import replace
from functools import partial

import torch
import torch.nn as nn

from minigpt.block import Block, FeedForward
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.experiments.fit import CONTEXT, SMALL, WIDTH, corpus, fit
from minigpt.experiments.ladder import small
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.training import TrainConfig, train

N_HEAD = 4
SHORT = TrainConfig(steps=200, batch_size=16, block_size=CONTEXT, learning_rate=3e-3)


class Parts(nn.Module):
    """A block of which only attention is sure to be there: (B, T, C) -> (B, T, C)."""

    def __init__(self, plus, think, norm, attention=CausalSelfAttention):
        super().__init__()
        self.plus, self.think = plus, think
        self.norm1 = nn.LayerNorm(WIDTH) if norm else nn.Identity()
        self.attention = attention(WIDTH, N_HEAD)
        if think:
            self.norm2 = nn.LayerNorm(WIDTH) if norm else nn.Identity()
            self.feed_forward = FeedForward(WIDTH)

    def forward(self, x):
        x = self.attention(self.norm1(x)) + (x if self.plus else 0)
        if self.think:
            x = self.feed_forward(self.norm2(x)) + (x if self.plus else 0)
        return x


class Alone(CausalSelfAttention):
    """The same weights, but each position sees only itself: no position is mixed
    with another; (B, T, C) -> (B, T, C)."""

    def forward(self, x):
        values = self.qkv(x)[..., -x.shape[-1] :]
        return self.proj(values)


class PostNorm(Block):
    """The block of 2017: LayerNorm on the pathway, after each addition."""

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.feed_forward(x))


def stack(n_layer, plus, think, norm):
    """n_layer Parts, and the last LayerNorm if there are any."""
    each = [Parts(plus, think, norm) for _ in range(n_layer)]
    return nn.Sequential(*each, *[nn.LayerNorm(WIDTH)] * norm)


def parts(n_layer, combinations):
    """{name: function(seed)}; a combination says (plus, think, norm)."""
    variants = {}
    for plus, think, norm in combinations:
        words = ["heads"] + ["plus"] * plus + ["think"] * think + ["norm"] * norm
        make = partial(stack, n_layer, plus, think, norm)
        variants[" + ".join(words)] = partial(small, make)
    return variants


def wide_heads(seed, n_embd=104):
    """Heads alone, so wide that they have as many parameters as heads + think."""
    torch.manual_seed(seed)
    body = CausalSelfAttention(n_embd, N_HEAD)
    return fit(LanguageModel(corpus().vocab_size, CONTEXT, n_embd, body), SMALL, seed)


def deep(make_block, last, recipe, seed, n_layer=6):
    """A stack of six blocks in the shell; last: whether a LayerNorm ends it."""
    torch.manual_seed(seed)
    each = [make_block() for _ in range(n_layer)]
    body = nn.Sequential(*each, *[nn.LayerNorm(WIDTH)] * last)
    return fit(LanguageModel(corpus().vocab_size, CONTEXT, WIDTH, body), recipe, seed)


@torch.no_grad()
def own_share(x):
    """How much of the norm is left without the mean over positions: (B, T, C) -> 0
    (all positions of a window are alike) to 1."""
    return ((x - x.mean(dim=1, keepdim=True)).norm() / x.norm()).item()


def plain(make_block, seed, n_layer=6, last=0, scale=1.0, eps=1e-8, plan=SHORT):
    """Layers in the shell, trained for 200 steps: loss, and at the start the own
    share of the positions behind the last layer and the first layer's gradient norm.

    last: 1 for a LayerNorm at the end; scale: by which the weights of the layers
    are multiplied; eps: AdamW's.
    """
    torch.set_num_threads(1)
    text, plan = corpus(), replace(plan, seed=seed)
    torch.manual_seed(seed)
    each = [make_block() for _ in range(n_layer)]
    body = nn.Sequential(*each, *[nn.LayerNorm(WIDTH)] * last)
    model = LanguageModel(text.vocab_size, CONTEXT, WIDTH, body)
    with torch.no_grad():
        for p in body.parameters():
            p.mul_(scale if p.dim() == 2 else 1.0)
    torch.manual_seed(0)
    x, y = get_batch(text.train, 32, CONTEXT)
    share = own_share(model.hidden(x))
    model(x, y)[1].backward()
    gradients = [p.grad for p in body[0].parameters() if p.grad is not None]
    gradient = sum(g.pow(2).sum() for g in gradients).sqrt().item()
    return {"own share": share, "gradient": gradient} | adam(model, plan, eps)


def adam(model, plan, eps):
    """`fit`, with AdamW's eps."""
    text, batches = corpus(), torch.Generator().manual_seed(plan.seed)
    optimizer = make_optimizer(model, plan)
    for step in range(plan.steps):
        for group in optimizer.param_groups:
            group |= {"lr": learning_rate_at(step, plan), "eps": eps}
        x, y = get_batch(text.train, plan.batch_size, CONTEXT, generator=batches)
        optimizer.zero_grad()
        model(x, y)[1].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan.grad_clip)
        optimizer.step()
    return {"loss": evaluate(model, text.val, CONTEXT)}


def plains():
    """{name: function(seed)}: the plain stack, and one change at a time."""
    bare = partial(Parts, False, True, False)
    alone = partial(Parts, False, True, False, Alone)
    normed = partial(Parts, False, True, True)
    heads = partial(Parts, False, False, False)
    plus = partial(Parts, True, True, False)
    slow, fast = (replace(SHORT, learning_rate=rate) for rate in (5e-4, 1e-2))
    long, root = replace(SHORT, steps=1000), 3**0.5
    return {
        "1 plain layer": partial(plain, bare, n_layer=1),
        "6 plain layers": partial(plain, bare),
        "6, rate 0.0005": partial(plain, bare, plan=slow),
        "6, rate 0.01": partial(plain, bare, plan=fast),
        "6, 1,000 steps": partial(plain, bare, plan=long),
        "6, eps 1e-16": partial(plain, bare, eps=1e-16),
        "6, LayerNorm": partial(plain, normed, last=1),
        "6, weights x 1.73": partial(plain, bare, scale=root),
        "6, each alone": partial(plain, alone),
        "6, each alone, weights x 1.73": partial(plain, alone, scale=root),
        "6, heads only": partial(plain, heads),
        "6, heads only, weights x 1.73": partial(plain, heads, scale=root),
        "6, plus sign": partial(plain, plus),
    }


def norms():
    """{"pre-norm, rate, warm-up": function(seed)} and so on, at five rates."""
    kinds = {
        "pre-norm": (partial(Block, WIDTH, N_HEAD), True),
        "post-norm": (partial(PostNorm, WIDTH, N_HEAD), False),
        "no norm": (partial(Parts, True, True, False), False),
    }
    variants = {}
    for warmup in (40, 0):
        for name, (make_block, last) in kinds.items():
            for rate in (1e-3, 3e-3, 6e-3, 1e-2, 2e-2):
                plan = replace(SHORT, learning_rate=rate, warmup_steps=warmup)
                run = partial(deep, make_block, last, plan)
                variants[f"{name}, rate {rate:g}, warm-up {warmup}"] = run
    return variants


def shaped(n_layer, n_embd, rate, seed, steps=600):
    """n_layer blocks of width n_embd at a learning rate, else the small recipe."""
    torch.manual_seed(seed)
    each = [Block(n_embd, N_HEAD) for _ in range(n_layer)]
    body = nn.Sequential(*each, nn.LayerNorm(n_embd))
    model = LanguageModel(corpus().vocab_size, CONTEXT, n_embd, body)
    return fit(model, replace(SMALL, learning_rate=rate, steps=steps), seed)


def shapes():
    """{"blocks x width, rate": function(seed)}: deep or wide, as many parameters."""
    variants = {}
    for n_layer, n_embd in [(3, 64), (1, 108)]:
        for rate in (2.5e-3, 5e-3, 1e-2, 2e-2):
            run = partial(shaped, n_layer, n_embd, rate)
            variants[f"{n_layer} x {n_embd}, rate {rate:g}"] = run
        longer = partial(shaped, n_layer, n_embd, 1e-2, steps=2400)
        variants[f"{n_layer} x {n_embd}, rate 0.01, 2,400 steps"] = longer
    return variants


def dropped(dropout, characters, steps, seed):
    """Three blocks with dropout, trained on the first characters (None: on all)."""
    torch.set_num_threads(1)
    text = corpus()
    learned = text.train[:characters]
    torch.manual_seed(seed)
    each = [Block(WIDTH, N_HEAD, dropout) for _ in range(3)]
    body = nn.Sequential(*each, nn.LayerNorm(WIDTH))
    model = LanguageModel(text.vocab_size, CONTEXT, WIDTH, body)
    history = train(model, learned, text.val, replace(SMALL, steps=steps, seed=seed))
    return {
        "loss": evaluate(model, text.val, CONTEXT),
        "training loss": evaluate(model, learned, CONTEXT),
        "lowest": min(row.val_loss for row in history),
        "seconds": round(history[-1].seconds, 1),
    }


ALL = [(p, t, n) for n in (False, True) for p in (False, True) for t in (False, True)]
EXPERIMENTS = {
    "05-plain": plains(),
    "05-parts": parts(1, ALL) | {"heads, 104 channels": wide_heads},
    "05-parts-3": parts(3, [c for c in ALL if sum(c) != 1 or c[0]]),
    "05-norm": norms(),
    "05-depth": shapes(),
    "05-dropout": {
        f"{name}, dropout {p}": partial(dropped, p, characters, steps)
        for name, characters, steps in [
            ("25,000 characters, 1,500 steps", 25_000, 1500),
            ("all, 600 steps", None, 600),
        ]
        for p in (0.0, 0.2)
    },
}
