"""The exercises of lesson 11: scores of attention maps, mean ablation and hooks."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn

from minigpt.course.checks.exercise import exercise

MAP = torch.tensor([[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.125, 0.25, 0.625]])
PAIR = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]]])


def _maps(*shape: int) -> torch.Tensor:
    """Causal attention maps (*shape, T, T), where T is the last of shape."""
    future = torch.ones(shape[-1], shape[-1]).triu(1).bool()
    scores = torch.randn(*shape, shape[-1])
    return scores.masked_fill(future, float("-inf")).softmax(dim=-1)


@exercise(
    "11.1 The one before",
    cases=[(MAP,), (PAIR,)],
    fresh=lambda: [
        (_maps(2, 4),),
        (_maps(2, 3, 5),),
        (torch.randn(2, 4, 4).softmax(dim=-1),),  # without a mask
    ],
    hint="In the map, mark the weights that point to the character before.",
)
def previous_score(weights: torch.Tensor) -> torch.Tensor:
    """A function of weights (..., T, T) that returns a score per map (...)."""
    before = weights.diagonal(offset=-1, dim1=-2, dim2=-1)  # (..., T - 1)
    return before.mean(dim=-1)


previous_score.mistakes("""
You divide by T, but the first character has nobody before it, so there are only T - 1
queries.
    before.mean(dim=-1) -> before.sum(dim=-1) / weights.shape[-1]
This is how much each character attends to the one after it. Rows are queries, and
columns are keys.
    offset=-1 -> offset=1
Without its dims, diagonal works on the first two dimensions. The maps are in the last
two.
    , dim1=-2, dim2=-1 ->
""")
check_previous_score = previous_score.check

SMALL = torch.tensor([[[1.0, 5.0], [3.0, 7.0]]])
TWO = torch.tensor(
    [[[1.0, 2, 3, 4], [5, 6, 7, 8]], [[0, 9, 1, 0], [2, 3, 5, 0]]]  # (2, 2, 4)
)


@exercise(
    "11.2 Its usual word",
    cases=[(SMALL, 1, 1), (SMALL, 0, 1), (TWO, 1, 2)],
    fresh=lambda: [
        (torch.randn(2, 3, 6), 2, 2),
        (torch.randn(3, 2, 8), 0, 2),
        (torch.randn(2, 5, 9), 1, 3),
    ],
    hint="How many numbers does the usual word of one head have?",
)
def mean_ablated(heads: torch.Tensor, head: int, head_size: int) -> torch.Tensor:
    """A function of heads (B, T, C), head and head_size that returns (B, T, C)."""
    mine = slice(head * head_size, (head + 1) * head_size)
    changed = heads.clone()
    changed[..., mine] = heads[..., mine].mean(dim=(0, 1))
    return changed


mean_ablated.mistakes("""
You put a single number into all channels of the head. Each channel should get its own
mean.
    heads[..., mine].mean(dim=(0, 1)) -> heads[..., mine].mean()
You put zeros there, which is zero ablation. You want the head's mean.
    heads[..., mine].mean(dim=(0, 1)) -> 0
""")
check_mean_ablated = mean_ablated.check

FOUR = torch.tensor(
    [
        [1.0, 0, 0, 0],
        [0.75, 0.25, 0, 0],
        [0.125, 0.5, 0.375, 0],
        [0.25, 0, 0.625, 0.125],
    ]
)
SELF = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])


def _ids(*ids: int) -> torch.Tensor:
    return torch.tensor(ids)


@exercise(
    "11.3 Prefix matching",
    cases=[
        (FOUR, _ids(1, 2, 1, 2), 1),
        (FOUR, _ids(1, 2, 1, 2), 2),
        (FOUR, _ids(3, 3, 3, 3), 2),
        (FOUR, _ids(5, 5, 2, 5), 1),
        (SELF, _ids(0, 1, 0), 1),  # a query that doesn't look there
    ],
    fresh=lambda: [
        (_maps(9), _ids(0, 1, 2, 0, 1, 2, 0, 1, 2), 2),
        (_maps(8), _ids(0, 0, 0, 0, 0, 1, 0, 0), 3),
        (_maps(12), torch.randint(2, (12,)), 2),
    ],
    hint="Try the ids 1, 2, 1, 2 on paper. At the last 2, which s do you find for "
    "n = 1, and for n = 2?",
)
def prefix_score(weights: torch.Tensor, ids: torch.Tensor, n: int = 2) -> Any:
    """A function of weights (T, T), ids (T,) and n that returns a number."""
    found = []
    for t in range(n - 1, len(ids)):
        read = ids[t - n + 1 : t + 1]  # the last n, up to t
        total, seen = 0.0, False
        for s in range(n, t + 1):
            if torch.equal(ids[s - n : s], read):  # they end just before s
                total, seen = total + weights[t, s], True
        if seen:
            found.append(total)
    return sum(found) / len(found)


prefix_score.mistakes("""
You divide by all T. Only queries that have something to find should count.
    / len(found) -> / len(ids)
You take only the latest match. Add up the attention on all of them.
    total + weights[t, s] -> weights[t, s]
""")
check_prefix_score = prefix_score.check


def _silent_and_healed(silenced: Callable, module: nn.Module, x: torch.Tensor) -> dict:
    """What came, and whether a hook was there then, next to somebody else's."""
    module.register_forward_hook(lambda *given: None)
    hooks, count = module._forward_hooks, []
    module.register_forward_pre_hook(lambda *given: count.append(len(hooks)))
    silent = silenced(module, x)
    seen = {"silenced": silent, "hooked while it ran": max(count, default=0) > 1}
    return seen | {"hooks left": len(hooks), "afterwards": module(x)}


@exercise(
    "11.4 The cut that does not heal",
    cases=[(nn.PReLU(), torch.tensor([[1.0, 2.0]])), (nn.Identity(), SMALL)],
    fresh=lambda: [
        (nn.Sequential(nn.Linear(3, 4), nn.Tanh()), torch.randn(2, 3)),
        (nn.Linear(3, 4), torch.randn(2, 3)),
    ],
    work=_silent_and_healed,
    hint="What does module(x) give before the call, during it, and after it?",
)
def silenced(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A function of a module and x that returns zeros like the module's output."""

    def silence(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(output)

    hook = module.register_forward_hook(silence)
    silent = module(x)
    hook.remove()
    return silent


silenced.mistakes("""
The bug is still there: after the call, the module still has the hook.
    hook = module -> module
    silent = module(x)
        hook.remove()
        return silent -> return module(x)
    Hint: What does register_forward_hook return?
The module isn't silenced. Either your hook wasn't there while the module ran, or it
returned nothing. (`.forward` alone skips all hooks.)
    silent = module(x)
        hook.remove() -> hook.remove()
        silent = module(x)
    or
    return torch.zeros_like(output) -> torch.zeros_like(output)
Somebody else's hook on this module is gone. Remove only your own.
    hook.remove() -> module._forward_hooks.clear()
These are zeros, but there was no hook while the module ran. Inside a larger model, the
layers after it would still hear what it says.
    hook = module.register_forward_hook(silence) ->
    silent = module(x)
        hook.remove() -> silent = 0 * module(x)
""")
check_silenced = silenced.check
