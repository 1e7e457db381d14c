"""The exercises of lesson 08: a norm, a rotation, shared heads, and a bug."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from minigpt.course.checks.exercise import exercise
from minigpt.course.checks.results import same
from minigpt.gpt import GPT, GPTConfig

ROWS = torch.tensor([[1.0, 7.0], [14.0, -2.0]])  # the roots are 5 and 10
GAIN = torch.tensor([10.0, 5.0])


@exercise(
    "08.1 The norm without the mean",
    cases=[
        (ROWS, GAIN),
        (torch.tensor([[0.0, 0.0], [2.0, 14.0]]), GAIN),
        (torch.tensor([[[0.1, 0.7]], [[-0.7, 0.1]], [[0.5, 0.4]]]), GAIN),
    ],
    fresh=lambda: [
        (torch.randn(2, 4, 6) * 3 + 1, torch.randn(6)),
        (torch.randn(5, 3), torch.randn(3)),
    ],
    atol=1e-4,
    hint="Read the name backward: which squares, which mean, which root?",
)
def rms_norm_with_gain(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    """A function of x (..., C) and gain (C,) that returns a tensor like x."""
    mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return x / (mean_square + 1e-6).sqrt() * gain


rms_norm_with_gain.mistakes("""
This is LayerNorm: you subtract the mean first. RMSNorm doesn't.
    mean_square = -> x = x - x.mean(dim=-1, keepdim=True); mean_square =
You divide by the length of the row, which is the root of the sum of its squares. The
exercise asks for the root of their mean.
    x.square().mean(dim=-1, keepdim=True) -> x.square().sum(dim=-1, keepdim=True)
""")
rms_norm_with_gain.wrong(
    "You divide by the standard deviation, which is measured from the mean. Here the "
    "numbers themselves are squared.",
    sign=lambda got, _, x, gain: any(
        same(got[x.std(-1) > 0], (x / d * gain)[x.std(-1) > 0])
        for d in (x.std(-1, keepdim=True), x.std(-1, correction=0, keepdim=True))
    ),
)
check_rms_norm_with_gain = rms_norm_with_gain.check

COUNT = torch.arange(1.0, 9.0).view(1, 2, 1, 4)  # (B, T, n_head, head_size)
QUARTER = torch.tensor([[0.0, 0.0], [math.pi / 2, 0.0]])  # (T, head_size / 2)


@exercise(
    "08.2 Turn in halves",
    cases=[
        (COUNT, QUARTER),
        (COUNT.view(1, 1, 2, 4), torch.tensor([[math.pi, math.pi / 2]])),
        (torch.arange(1.0, 17.0).view(1, 2, 2, 4), QUARTER),
    ],
    fresh=lambda: [
        (torch.randn(2, 7, 3, 6), 3 * torch.randn(7, 3)),
        (torch.randn(1, 2, 2, 4), torch.rand(2, 2)),
    ],
    hint="A quarter turn turns a pair (a, b) into (-b, a). Which two channels are a "
    "pair here, and where do their new numbers go?",
)
def rotate_halves(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """A function of x (B, T, n_head, head_size) and angles; the result is like x."""
    cos = angles.cos()[:, None]  # (T, 1, head_size / 2)
    sin = angles.sin()[:, None]
    first, second = x.chunk(2, dim=-1)
    turned = first * cos - second * sin, second * cos + first * sin
    return torch.cat(turned, dim=-1)


rotate_halves.mistakes("""
Your pairs are neighbors, as in `rotate`. Here channel j of the first half and channel j
of the second half are a pair.
    x.chunk(2, dim=-1) -> (x[..., ::2], x[..., 1::2])
    torch.cat(turned, dim=-1) -> torch.stack(turned, -1).flatten(-2)
Your pairs are neighbors, as in `rotate`, but their results are written as halves. Take
channel j of each half as a pair.
    x.chunk(2, dim=-1) -> (x[..., ::2], x[..., 1::2])
The results are right, but you write them side by side, as neighbors. The whole first
half comes first.
    torch.cat(turned, dim=-1) -> torch.stack(turned, -1).flatten(-2)
The angles line up with the heads, not the positions: angles needs a dimension for the
heads.
    [:, None] ->
The second half is computed from a first half that has been turned already.
    turned = first * cos - second * sin, second * cos + first * sin
        -> first = first * cos - second * sin
        turned = first * cos - second * sin, second * cos + first * sin
    turned = first * cos - second * sin, -> turned = first,
You turn the other way, from the second number of a pair toward the first.
    angles.sin() -> -angles.sin()
""")
check_rotate_halves = rotate_halves.check

SILENT = torch.zeros(1, 4, 2, 1)  # (B, n_head, T, head_size): all weights are even
KEYS = torch.tensor([[[[1.0], [0.0]], [[0.0], [1.0]]]])
VALUES = torch.tensor([[[[2.0], [4.0]], [[10.0], [30.0]]]])


@exercise(
    "08.3 Heads that share a memory",
    cases=[
        (SILENT, KEYS, VALUES),
        (SILENT + 50, KEYS, VALUES),  # looks where the key is 1
        (torch.tensor([50.0, -50, 50, -50])[:, None, None] + SILENT, KEYS, VALUES),
    ],
    fresh=lambda: [
        (torch.randn(B, n_head, T, size), *torch.randn(2, B, n_kv_head, T, size))
        for B, n_head, n_kv_head, T, size in [(2, 6, 2, 5, 4), (1, 6, 3, 2, 2)]
    ],
    hint="Which key/value head does query head 1 read, and which one does query head 2 "
    "read?",
)
def grouped_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """A function of q, k and v that returns (B, n_head, T, head_size)."""
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, dim=1)  # (B, n_head, T, head_size)
    v = v.repeat_interleave(group, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


grouped_attention.mistakes("""
The causal mask is missing: each position sees the later ones, too.
    , is_causal=True ->
Your query heads take turns: head 0 reads key/value head 0, head 1 reads head 1, and so
on. Neighbors should share one.
    repeat_interleave(group, dim=1) -> repeat(1, group, 1, 1)
""")
check_grouped_attention = grouped_attention.check


def _names(for_muon: Callable, model: GPT) -> dict:
    """Which names are too many, and which are missing."""
    blocks = model.body.named_parameters()
    got, right = set(for_muon(model)), {f"body.{n}" for n, p in blocks if p.dim() == 2}
    return {"wrong": sorted(got - right), "missing": sorted(right - got)}


@exercise(
    "08.4 A table isn't a matrix",
    cases=lambda: [(GPT(GPTConfig(7, 8, n, n_head=2, n_embd=8)),) for n in (1, 2, 4)],
    work=_names,
    hint="Which of these parameters have a row for each token or each position? Their "
    "names say where they belong.",
)
def for_muon(model: GPT) -> list:
    """A function of a model that returns a list of names."""
    named = model.named_parameters()
    matrices = [name for name, p in named if p.dim() == 2]
    return [name for name in matrices if name.startswith("body.")]


for_muon.mistakes("""
The bug is still there: the embeddings have the shape of a matrix, but they are lists of
rows, one for each token or position. Muon lets rows that agree share one step.
    matrices = [name -> return [name
    return [name for name in matrices if name.startswith("body.")] ->
    Hint: Print the names. Which of these have a row for each token or position?
The embeddings are out now, but lm_head has a row for each token, too.
    name.startswith("body.") -> "embedding" not in name
""")
check_for_muon = for_muon.check
