"""The exercises of lesson 04: a count, a head switched off, and two bugs."""

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn

from minigpt.attention import Head, attention
from minigpt.course.checks.exercise import exercise
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention


@exercise(
    "04.1 Count before you build",
    cases=[(6, 2), (6, 3), (20, 5), (10, 1), (768, 12), (768, 24)],
    hint="How many numbers are in one matrix from n_embd to head_size? How many such "
    "matrices does a head have? And what comes after the heads?",
)
def parameters(n_embd: int, n_head: int) -> int:
    """A function of n_embd and n_head that returns a whole number."""
    head_size = n_embd // n_head
    heads = n_head * 3 * n_embd * head_size
    proj = n_embd * n_embd + n_embd
    return heads + proj


parameters.mistakes("""
You count a projection for each head. There is one projection for all of them.
    return heads + proj -> return heads + n_head * proj
Your queries, keys and values have too few numbers. Each of the n_head heads has three
matrices of its own, from all n_embd channels to head_size.
    n_head * 3 -> 3
You count one matrix per head. A head has three: for queries, keys and values.
    n_head * 3 -> n_head
""")
check_parameters = parameters.check


def _whole() -> LanguageModel:
    """A model whose heads pass on means of x; proj shifts the channels by one."""
    model = LanguageModel(6, 2, 6, CausalSelfAttention(6, 3))
    tokens = torch.arange(6.0) + torch.tensor([1.0, 21, 0, 0, 0, 0])[:, None]
    values = torch.cat([torch.zeros(12, 6), torch.eye(6)])  # no queries, no keys
    proj = torch.eye(6).roll(1, dims=1), torch.full((6,), 100.0)
    numbers = tokens, torch.zeros(2, 6), values, *proj, torch.eye(6), torch.zeros(6)
    for p, new in zip(model.parameters(), numbers, strict=True):
        p.data = new
    return model


def _logits(
    without_head: Callable, model: LanguageModel, h: int, idx: torch.Tensor
) -> Any:
    smaller = without_head(model, h)
    return smaller(idx)[0] if callable(smaller) else smaller


IDS = torch.tensor([[0, 1]])


@exercise(
    "04.2 Switch a head off",
    cases=[(_whole(), h, IDS) for h in (1, 0, 2)],
    fresh=lambda: [
        (LanguageModel(5, 6, 8, CausalSelfAttention(8, 2)), h, torch.arange(5)[None])
        for h in (1, 0)
    ],
    work=_logits,
    hint="Which columns of proj.weight are multiplied by the channels of head h?",
)
def without_head(model: LanguageModel, h: int) -> LanguageModel:
    """A function of a model and h that returns another model."""
    smaller = copy.deepcopy(model)
    layer = smaller.body
    start = h * layer.head_size
    with torch.no_grad():
        layer.proj.weight[:, start : start + layer.head_size] = 0
    return smaller


without_head.mistakes("""
The rows of proj.weight belong to its outputs. What a head wrote comes in through the
columns.
    [:, start : start -> [start : start
The head isn't off: its scores are all 0, so it passes on the plain mean of its values.
    layer.proj.weight[:, start : start + layer.head_size] = 0
        -> layer.qkv.weight[start : start + layer.head_size] = 0
Head h is off, but so is the projection's bias, which belongs to no head. You don't need
that line.
    layer.proj.weight[:, start : start + layer.head_size] = 0
        -> layer.proj.weight[:, start : start + layer.head_size] = 0
            layer.proj.bias[:] = 0
The model that you return works as before. Did you change a copy of a weight, or the
model that was handed in?
    layer.proj.weight[:, start : start + layer.head_size] = 0 -> pass
""")
check_without_head = without_head.check


def _saved(Heads: Callable, n_embd: int, n_head: int) -> dict:
    first, second = (Heads(n_embd, n_head) for _ in range(2))
    second.load_state_dict(first.state_dict())
    saved = {id(p): p.numel() for p in first.state_dict(keep_vars=True).values()}
    x = torch.randn(2, 5, n_embd)
    agree = torch.allclose(first(x), second(x), atol=1e-6)
    first.proj.weight.data.zero_()
    projected = torch.allclose(first(x), first.proj.bias)
    seen = {"numbers saved": sum(saved.values()), "the copy agrees": agree}
    return seen | {"proj comes last": projected}


@exercise(
    "04.3 The copy that differs",
    cases=[(6, 3), (20, 2)],
    work=_saved,
    call="check_copy(Heads)",
    hint="Which names are in first.state_dict(), and which are missing?",
)
class Heads(nn.Module):
    """A class, made with n_embd and n_head."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(
            Head(n_embd, n_embd // n_head) for _ in range(n_head)
        )
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side_by_side = [head(x) for head in self.heads]
        return self.proj(torch.cat(side_by_side, dim=-1))


Heads.mistakes("""
The bug is still there: a fresh copy that loads the saved weights gives different
outputs from the original.
    self.heads = nn.ModuleList(
                Head(n_embd, n_embd // n_head) for _ in range(n_head)
            )
        -> self.heads = []
            for _ in range(n_head):
                head = Head(n_embd, n_embd // n_head)
                self.heads.append(head)
    Hint: Which names are in first.state_dict(), and which are missing?
Only one head is saved. Is it the same one in each place, or do the others have no name?
    nn.ModuleList( -> nn.ModuleList([Head(n_embd, n_embd // n_head)] * n_head)
            list(
    or
    self.heads = nn.ModuleList( -> self.heads = list(
    self.proj = -> self.last = self.heads[-1]
            self.proj =
""")
check_copy = Heads.check


def _dice(DiceHeads: Callable, x: torch.Tensor, n_head: int, heads: str) -> Any:
    layer, C = DiceHeads(x.shape[-1], n_head), x.shape[-1]
    torch.manual_seed(1)
    for p in (layer.qkv.weight, layer.proj.weight, layer.proj.bias):
        nn.init.normal_(p)
    if heads == MEANS:
        layer.qkv.weight.data = torch.cat([torch.zeros(2 * C, C), torch.eye(C)])
        layer.proj.weight.data = torch.eye(C)
        layer.proj.bias.data.zero_()
    return layer(x)


MEANS = "each passes on the mean of x so far"
THROWS = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [9.0, 6.0, 7.0, 20.0]]])


@exercise(
    "04.4 Better than possible",
    cases=[(THROWS, 2, MEANS), (THROWS.flip(-1), 4, MEANS)],
    fresh=lambda: [
        (torch.randn(B, T, C), n, "have random numbers")
        for B, T, C, n in [(1, 3, 6, 3), (2, 5, 8, 2), (3, 4, 12, 2)]
    ],
    work=_dice,
    call="check_dice(DiceHeads)",
    hint="In these layers a head passes on the mean of x so far. What shape does `out` "
    "have, and what does the last line do with it?",
)
class DiceHeads(nn.Module):
    """A class, made with n_embd and n_head, with the layers qkv and proj."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        shape = B, T, 3, self.n_head, C // self.n_head
        qkv = self.qkv(x).view(shape)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        out, _ = attention(q, k, v)  # (B, n_head, T, head_size)
        out = out.transpose(1, 2).reshape(B, T, C)
        return self.proj(out)


DiceHeads.mistakes("""
The bug is still there: nobody can predict dice, but this model does better than
guessing. It knows throws that are still to come.
    out = out.transpose(1, 2).reshape(B, T, C) ->
    self.proj(out) -> self.proj(out.reshape(B, T, C))
    Hint: What shape does `out` have, and what does the last line do with it?
No position sees another one: at each position the heads look at each other. attention
needs (B, n_head, T, head_size).
    permute(2, 0, 3, 1, 4) -> unbind(2)
    out = out.transpose(1, 2).reshape(B, T, C) -> out = out.reshape(B, T, C)
""")
check_dice = DiceHeads.check
