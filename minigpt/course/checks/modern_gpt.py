"""Checks for notebook 08: norms, turns, shared heads, straight steps."""

from collections.abc import Callable
from typing import Any

import torch

from minigpt.course.checks.core import Explained, compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import describe, randn, same
from minigpt.gpt import GPT, GPTConfig
from minigpt.modern.parts import rotary_turns

RMS_NORM_WITH_GAIN = Solution(
    """
def rms_norm_with_gain(x, gain):
    mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return x / (mean_square + 1e-6).sqrt() * gain
""",
    Mistake(
        "This is LayerNorm: you subtract the mean; RMSNorm leaves it alone.",
        [("mean_square =", "x = x - x.mean(dim=-1, keepdim=True); mean_square =")],
    ),
    Mistake(
        "The gain comes before the norm, which undoes a part of it.",
        [
            ("mean_square =", "x = x * gain; mean_square ="),
            (".sqrt() * gain", ".sqrt()"),
        ],
    ),
    Mistake(
        "You square the mean; the name says the order backwards: first "
        "the squares, then their mean, then the root.",
        [
            (
                "x.square().mean(dim=-1, keepdim=True)",
                "x.mean(dim=-1, keepdim=True).square()",
            ),
        ],
    ),
    Mistake(
        "You divide by the mean of the absolute numbers; the root of "
        "the mean of the squares is another number.",
        [
            (
                "x / (mean_square + 1e-6).sqrt()",
                "x / (x.abs().mean(dim=-1, keepdim=True) + 1e-6)",
            ),
        ],
    ),
    Mistake(
        "Only rows with an rms above 1 are scaled: the tiny number "
        "belongs under the root, and 1 is not tiny.",
        [
            ("(mean_square + 1e-6).sqrt()", "mean_square.sqrt().clamp(min=1)"),
        ],
    ),
    Mistake(
        "Your mean runs over dimension 1, which is the last one of (N, "
        "C) but not of (B, T, C); dim=-1 is the last one everywhere.",
        [
            ("x.square().mean(dim=-1", "x.square().mean(dim=1"),
        ],
    ),
    Mistake(
        "A row of zeros becomes the gain; it stays zeros, which the tiny number under "
        "the root sees to.",
        [
            (
                "x / (mean_square + 1e-6).sqrt()",
                "torch.where(mean_square == 0, 1, x / (mean_square + 1e-6).sqrt())",
            ),
        ],
    ),
)


@exercise("08.1 The norm without the mean", RMS_NORM_WITH_GAIN)
def check_rms_norm_with_gain(rms_norm_with_gain: Any) -> str:
    """rms_norm_with_gain(x, gain): (..., C), (C,) -> (..., C)."""
    gain = torch.tensor([1.0, 2.0, 0.5])
    cases = [
        (torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]]), gain),
        (randn(2, 4, 6) * 3 + 1, randn(6, seed=9)),
        (torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), gain),
        (torch.tensor([[0.25, 0.5, 0.5], [-0.5, 0.25, 0.75]]), gain),
    ]
    known = [
        Mistake(
            "You divide by the standard deviation: it does not know where zero is.",
            sign=lambda got, _, x, gain: any(
                same(got[x.std(-1) > 0], (x / d * gain)[x.std(-1) > 0])
                for d in (x.std(-1, True, keepdim=True), x.std(-1, False, True))
            ),
        ),
    ]
    hint = "Square, mean over the last dimension, root; x divided by it; then the gain."
    solution = RMS_NORM_WITH_GAIN
    compare(rms_norm_with_gain, solution, cases, known, atol=1e-4, hint=hint)
    return "4 tensors, a row of zeros included; with gain 1 the mean square is 1."


ROTATE_HALVES = Solution(
    """
def rotate_halves(x, angles):
    cos = angles.cos()[:, None]  # (T, 1, head_size / 2)
    sin = angles.sin()[:, None]
    first, second = x.chunk(2, dim=-1)
    turned = first * cos - second * sin, second * cos + first * sin
    return torch.cat(turned, dim=-1)
""",
    Mistake(
        "The angles have no dimension for the heads, so they meet the heads and not "
        "the positions: angles is (T, head_size / 2), and [:, None] puts it in.",
        [
            ("angles.cos()[:, None]", "angles.cos()"),
            ("angles.sin()[:, None]", "angles.sin()"),
        ],
    ),
    Mistake(
        "These are neighbours again, as in `rotate`; wanted are halves.",
        [
            ("x.chunk(2, dim=-1)", "(x[..., ::2], x[..., 1::2])"),
            ("torch.cat(turned, dim=-1)", "torch.stack(turned, -1).flatten(-2)"),
        ],
    ),
    Mistake(
        "The second half is made of a first half that has turned already.",
        [
            (
                "turned = first * cos - second * sin,",
                "first = first * cos - second * sin; turned = first,",
            )
        ],
    ),
    Mistake(
        "You turn the other way round: from the second number of a pair to the first.",
        [("angles.sin()", "-angles.sin()")],
    ),
    Mistake(
        "Each angle stands twice side by side here, but the partners are half a"
        " head apart.",
        [
            (
                "turned = first * cos - second * sin, second * cos + first * sin",
                "a, b = (angles.repeat_interleave(2, -1)[:, None].chunk(2, -1))\n"
                "    turned = first * a.cos() - second * a.sin(), second * b.cos() + "
                "first * b.sin()",
            )
        ],
    ),
    Mistake(
        "You write the results side by side, as neighbours: all of the first "
        "half comes first.",
        [("torch.cat(turned, dim=-1)", "torch.stack(turned, -1).flatten(-2)")],
    ),
    Mistake(
        "The pairs are neighbours, as in `rotate`, but the results are "
        "put down as halves. Here a pair is channel j of the first "
        "half and channel j of the second.",
        [
            ("x.chunk(2, dim=-1)", "(x[..., ::2], x[..., 1::2])"),
        ],
    ),
    Mistake(
        "Only the first half is turned; both numbers of a pair change.",
        [
            ("second * cos + first * sin", "second"),
        ],
    ),
    Mistake(
        "The partners are neighbours and the angles are in halves: "
        "both should be halves, channel j with channel j of the second "
        "half.",
        [
            (
                "torch.cat(turned, dim=-1)",
                "torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2) * "
                "torch.cat([sin, sin], -1) + x * torch.cat([cos, cos], -1)",
            ),
        ],
    ),
)


@exercise("08.2 Turn in halves", ROTATE_HALVES)
def check_rotate_halves(rotate_halves: Any) -> str:
    """rotate_halves(x, angles): (B, T, n_head, head_size) -> the same shape."""
    small = torch.arange(8.0).view(1, 2, 1, 4), torch.tensor([[0.0, 0.0], [1.5, 0.3]])
    square = randn(1, 2, 2, 4), torch.tensor([[0.4, 0.1], [0.8, 0.2]])
    angles = rotary_turns(torch.arange(7), 6).angle()
    cases = [small, square, (randn(2, 7, 3, 6), angles)]
    hint = "first, second = x.chunk(2, dim=-1): first[j] and second[j] turn by angle j."
    compare(rotate_halves, ROTATE_HALVES, cases, hint=hint)
    return "3 shapes; first[j] and second[j] turn by the angle j of their place."


GROUPED_ATTENTION = Solution(
    """
def grouped_attention(q, k, v):
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, dim=1)  # (B, n_head, T, head_size)
    v = v.repeat_interleave(group, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
""",
    Mistake(
        "The mask comes only after the softmax: the future has taken its share by "
        "then, and the rows no longer sum to one.",
        [
            (
                "return F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                "weights = F.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1).tril()\n "
                "   return weights @ v",
            )
        ],
        hint="masked_fill(~past, -inf) belongs between the scores and the softmax.",
    ),
    Mistake(
        "The keys and the values are shared in different ways: query head h reads "
        "key and value of the same memory.",
        [("v = v.repeat_interleave(group, dim=1)", "v = v.repeat(1, group, 1, 1)")],
    ),
    Mistake(
        "The keys and the values are shared in different ways: query head h reads "
        "key and value of the same memory.",
        [("k = k.repeat_interleave(group, dim=1)", "k = k.repeat(1, group, 1, 1)")],
    ),
    Mistake(
        "The causal mask is missing: each position sees the ones behind it, too.",
        [(", is_causal=True", "")],
    ),
    Mistake(
        "Your query heads take turns: head 0 and its neighbour read different keys.",
        [("repeat_interleave(group, dim=1)", "repeat(1, group, 1, 1)")],
        hint="repeat gives 0 1 0 1; repeat_interleave gives 0 0 1 1.",
    ),
    Mistake(
        "All query heads read the first key/value head (this is multi-query).",
        [("repeat_interleave(group, dim=1)", "expand(-1, -1, -1, -1)[:, :1]")],
    ),
    Mistake(
        "You put a group's queries one behind the other in time: the mask no "
        "longer fits.",
        [
            (
                "k = k.repeat_interleave(group, dim=1)  # (B, n_head, T, head_size)",
                "long = q.reshape(q.shape[0], k.shape[1], -1, q.shape[3])",
            ),
            ("v = v.repeat_interleave(group, dim=1)", "pass"),
            ("(q, k, v, is_causal=True)", "(long, k, v, is_causal=True).view_as(q)"),
        ],
    ),
    Mistake(
        "You average the queries of a group: they share keys and values, and "
        "nothing else.",
        [
            (
                "k = k.repeat",
                "q = q.unflatten(1, (-1, group)).mean(2).repeat_interleave(group, "
                "dim=1); k = k.repeat",
            )
        ],
    ),
    Mistake(
        "The scores are not divided by √head_size.",
        [("is_causal=True", "is_causal=True, scale=1.0")],
    ),
    Mistake(
        "You average the key/value heads; each query head reads the one of its "
        "own group.",
        [
            (
                "repeat_interleave(group, dim=1)",
                "mean(1, True).expand(-1, q.shape[1], -1, -1)",
            )
        ],
    ),
    Mistake(
        "The scores are divided by head_size, not by its root.",
        [("is_causal=True", "is_causal=True, scale=1 / q.shape[-1]")],
    ),
    Mistake(
        "Head h reads memory h // group; you divide by the number of memories.",
        [
            (
                ".repeat_interleave(group, dim=1)",
                "[:, (torch.arange(q.shape[1]) // v.shape[1]).clamp(max=v.shape[1] - "
                "1)]",
            )
        ],
    ),
)


@exercise("08.3 Heads that share a memory", GROUPED_ATTENTION)
def check_grouped_attention(grouped_attention: Any) -> str:
    """grouped_attention(q, k, v) -> (B, n_head, T, head_size), causal."""
    cases = [
        (randn(B, n, T, size), *randn(2, B, kv, T, size, seed=9))
        for B, n, kv, T, size in [(1, 4, 2, 2, 2), (2, 6, 2, 5, 4), (2, 6, 3, 4, 2)]
    ]
    cases.append(tuple(randn(3, 2, 3, 4, 2)))
    hint = "Query heads 0 to group - 1 read key/value head 0, the next group head 1."
    compare(grouped_attention, GROUPED_ATTENTION, cases, hint=hint)
    return "4 sizes; with as many key/value heads as queries it is lesson 04's."


FOR_MUON = Solution(
    """
def for_muon(model):
    named = model.named_parameters()
    return [
        name
        for name, p in named
        if p.dim() == 2 and name.startswith("body.")
    ]
""",
    Mistake(
        "The bug is still there: the embedding is a matrix by its shape, and a "
        "list of rows by its meaning. Muon lets rows that agree share one step.",
        [('p.dim() == 2 and name.startswith("body.")', "p.dim() == 2")],
        untouched=True,
    ),
)


@exercise("08.4 A table is no matrix", FOR_MUON)
def check_for_muon(for_muon: Any) -> str:
    """for_muon(model) -> the names of the parameters that Muon is to move."""
    with torch.device("meta"):  # names and shapes will do
        models = [GPT(GPTConfig(7, 8, n, n_head=2, n_embd=8)) for n in (1, 2, 4)]
    solution = FOR_MUON

    def work(program: Callable, model: GPT) -> Any:
        got = program(model)
        if got is None or got is ...:
            return got
        names = [got] if isinstance(got, str) else list(got)
        if isinstance(got, str) or not all(isinstance(name, str) for name in names):
            what = f"Wanted is a list of names; yours holds {describe(names[0])}."
            raise Explained(what, "[name for name, p in model.named_parameters() if …]")
        right, names = set(solution(model)), set(names)
        return {"too many": sorted(names - right), "missing": sorted(right - names)}

    known = [
        Mistake(
            "These are names of the body's own: the model knows its parameters by "
            "their "
            "full names, with `body.` in front.",
            sign=lambda got, *_: (
                {f"body.{n}" for n in got["too many"]} & {*got["missing"]}
            ),
        ),
        Mistake(
            "Your list is empty: which of `model.named_parameters()` does its "
            "condition "
            "let through?",
            sign=lambda got, _, model: (
                len(got["missing"]) == len(solution(model)) and not got["too many"]
            ),
        ),
        Mistake(
            "What is outside of the blocks is in, and matrices of the blocks are "
            "missing. Is it numbers of rows that decide? This model has others.",
            sign=lambda got, *_: (
                got["missing"] and not got["too many"][0].startswith("body.")
            ),
            vague=True,
            hint="A parameter's name says where it belongs.",
        ),
        Mistake(
            "Matrices of the blocks are missing: all of them are Muon's work.",
            sign=lambda got, *_: got["missing"],
            vague=True,
        ),
        Mistake(
            "What stands outside of the blocks is in: the embeddings and lm_head are "
            "tables, with a row for each token or each position.",
            sign=lambda got, *_: not got["too many"][0].startswith("body."),
            vague=True,
        ),
        Mistake(
            "Vectors are in: Muon refuses gains and biases.",
            sign=lambda got, *_: got["too many"][0].startswith("body."),
            vague=True,
        ),
    ]
    hint = "A row of a table is a token's own; what is outside the blocks is AdamW's."
    cases = [(model,) for model in models]
    compare(for_muon, solution, cases, known, work=work, hint=hint)
    return "3 models; matrices of the blocks only, whatever else there is."
