"""Experiments of 05: what makes blocks stack."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.block import Block, FeedForward
from minigpt.course.experiments.fit import (
    CONTEXT,
    WIDTH,
    corpus,
    grid,
    made,
    run,
    small,
)
from minigpt.course.experiments.small_models import AT_RATE, STEPS
from minigpt.interfaces import Model
from minigpt.multi_head import CausalSelfAttention
from minigpt.training import TrainConfig


class Alone(CausalSelfAttention):
    """The same weights, but each position sees only itself: none is mixed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(self.qkv(x)[..., -x.shape[-1] :])


class Parts(nn.Module):
    """A block without norms, which may lack its plus signs or the mixing, too.

    plus: around which parts a plus sign stands, a tuple of their names.
    """

    def __init__(
        self, plus: Sequence[str] = (), attention: Callable = CausalSelfAttention
    ) -> None:
        super().__init__()
        self.plus, self.attention = plus, attention(WIDTH, 4)
        self.feed_forward = FeedForward(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x) + (x if "attention" in self.plus else 0)
        return self.feed_forward(x) + (x if "feed-forward" in self.plus else 0)


class PostNorm(Block):
    """The block of 2017: LayerNorm on the pathway, after each addition."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.feed_forward(x))


def stack(
    block: Callable, n_layer: int, n_embd: int = WIDTH, last: Callable = nn.LayerNorm
) -> nn.Sequential:
    """Blocks one behind the other, and what ends them."""
    return nn.Sequential(*(block() for _ in range(n_layer)), last(n_embd))


def blocks(n_layer: int, n_embd: int = WIDTH, dropout: float = 0.0) -> dict[str, Any]:
    """The changes that make a stack of lesson 05's blocks."""
    block = partial(Block, n_embd, 4, dropout)
    return {"body": partial(stack, block, n_layer, n_embd), "n_embd": n_embd}


def bare(n_layer: int, block: Callable = Parts, **parts: Any) -> dict[str, Any]:
    """The changes that make a stack of other blocks, without a last norm."""
    return {"body": partial(stack, partial(block, **parts), n_layer, last=nn.Identity)}


@torch.no_grad()
def larger(model: Model) -> None:
    """The matrices of the layers, times √3."""
    for p in model.body.parameters():
        p.mul_(3**0.5 if p.dim() == 2 else 1.0)


def beginning() -> tuple[torch.Tensor, torch.Tensor]:
    """The first 25,000 characters of the training text, and the validation text."""
    return corpus().train[:25_000], corpus().val


class TinyEpsilon(TrainConfig):
    """A TrainConfig whose ε is below any gradient here: 1e-20, not 1e-8."""

    def make_optimizer(self, model: Model) -> Any:
        optimizer = super().make_optimizer(model)
        for group in optimizer.param_groups:
            group["eps"] = 1e-20
        return optimizer


def read(seed: int, **changes: Any) -> dict[str, float]:
    """How often you can read a position's own character off the output of a stack that
    wasn't trained: with the best "linear" reader for 1,000 windows, and with a
    "network" trained on them. Both are judged on 100 other windows."""
    model, _ = made(seed, small, **changes)
    idx = corpus().train[: 1100 * CONTEXT].view(1100, CONTEXT)
    known, target = 1000 * CONTEXT, idx.flatten()
    with torch.no_grad():
        h = model.token_embedding(idx) + model.position_embedding.weight
        h = model.body.double()(h.double()).flatten(0, 1)  # (35200, C)
        h = F.pad((h - h.mean(dim=0)) / h.std(dim=0), (0, 1), value=1.0)
    answers = F.one_hot(target[:known]).double()
    linear = h[known:] @ torch.linalg.lstsq(h[:known], answers).solution
    torch.manual_seed(seed)
    reader = nn.Sequential(nn.Linear(WIDTH + 1, 256), nn.ReLU(), nn.Linear(256, 65))
    optimizer = torch.optim.AdamW(reader.parameters(), lr=3e-3)
    for _ in range(600):
        some = torch.randint(known, (512,))
        loss = F.cross_entropy(reader(h[some].float()), target[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    guesses = {"linear": linear, "network": reader(h[known:].float())}
    return {
        name: (guess.argmax(dim=-1) == target[known:]).float().mean().item()
        for name, guess in guesses.items()
    }


BOTH = ("attention", "feed-forward")
six, apart = bare(6), bare(6, attention=Alone)
PLAIN = {
    "1 plain layer": bare(1),
    "6 plain layers": six,
    "6, rate 0.0005": six | {"learning_rate": 5e-4},
    "6, rate 0.01": six | {"learning_rate": 1e-2},
    "6, 1,000 steps": six | {"steps": 1000},
    "6, matrices x 1.73": six | {"change": larger},
    "6, each alone": apart,
    "6, each alone, matrices x 1.73": apart | {"change": larger},
    "6, plus sign": bare(6, plus=BOTH),
}
# Each reason mended alone: the size of the gradient, or what a position keeps.
MENDED = {
    "replacing": six,
    "matrices x 1.73": six | {"change": larger},
    "tiny epsilon": six | {"kind": TinyEpsilon},
    "each alone": apart,
    "plus around attention": bare(6, plus=BOTH[:1]),
}
OTHER_PLUS = {"plus around feed-forward": bare(6, plus=BOTH[1:])}
SLOWED = {name: MENDED[name] for name in ("replacing", "matrices x 1.73")}
READ = {
    f"{name}, {n}": make(n)
    for name, make in [
        ("replacing", bare),
        ("adding", partial(bare, plus=BOTH)),
        ("each alone", partial(bare, attention=Alone)),
    ]
    for n in (1, 2, 3, 4, 6)
}
NORMS = {
    "pre-norm": blocks(6),
    "post-norm": bare(6, PostNorm, n_embd=WIDTH, n_head=4),
    "no norm": bare(6, plus=BOTH),
}
NORMED, NO_NORM = ({name: NORMS[name]} for name in ("pre-norm", "no norm"))
LARGE = {"1 x 108": blocks(1, 108), "3 x 64": blocks(3)}
SHAPES = {"1 x 64": blocks(1)} | LARGE
SHORT = {"data": beginning, "steps": 1500, "learning_rate": 5e-3}
LENGTHS = {"25,000 characters, 1,500 steps": SHORT}
LENGTHS |= {"all, 600 steps": {"learning_rate": 5e-3}}
DROPOUTS = {f"dropout {p}": blocks(3, dropout=p) for p in (0.0, 0.2)}
each = partial(run, base=small)
brief = partial(each, batch_size=16, steps=200, learning_rate=3e-3)
LOW = {"learning_rate": [1e-3, 3e-3, 6e-3, 1e-2, 2e-2]}
HIGH = {"learning_rate": [5e-3, 1e-2, 2e-2]}
WIDE = {"learning_rate": [1e-3, 3e-3, 1e-2]}
LOWEST = {"learning_rate": [1e-3]}  # the best one of the two, of 600 steps
BELOW = {"learning_rate": [1e-3, 3e-3]}  # with the other plus 1e-2 breaks down
EXPERIMENTS = {
    "05-plain": grid("{variant}", brief, variant=PLAIN),
    "05-mended": grid(STEPS, brief, variant=SLOWED, steps=[2400], **LOWEST)
    | grid(STEPS, brief, variant=OTHER_PLUS, steps=[600], **BELOW)
    | grid(STEPS, brief, variant=MENDED, steps=[600], **WIDE),
    "05-read": grid("{variant}", read, variant=READ),
    "05-norm": grid(f"{AT_RATE}, warm-up 40", brief, variant=NORMS, **LOW),
    "05-norm-longer": grid(
        STEPS, brief, variant=NORMED, steps=[800], learning_rate=[6e-3, 1e-2]
    )
    | grid(STEPS, brief, variant=NO_NORM, steps=[800], learning_rate=[6e-3]),
    "05-depth": grid(STEPS, each, variant=SHAPES, steps=[600], **HIGH)
    | grid(STEPS, each, variant=LARGE, steps=[2400], **HIGH),
    "05-dropout": grid("{length}, {dropout}", each, length=LENGTHS, dropout=DROPOUTS),
}
