"""Checks for notebook 11: maps and their scores, shares, cuts, hooks, a lens."""

import ast
from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course.checks.core import Explained, call, compare, exercise
from minigpt.course.checks.reading import source
from minigpt.course.checks.running import run
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import randn, same

TOY = torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.1, 0.9, 0.0]])


def _maps(*shape: int, seed: int = 0) -> torch.Tensor:
    """Causal attention maps (*shape, T, T), the last of shape being T."""
    scores, T = randn(*shape, shape[-1], seed=seed), shape[-1]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    return F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)


PREVIOUS_SCORE = Solution(
    """
def previous_score(weights):
    before = weights.diagonal(offset=-1, dim1=-2, dim2=-1)  # (..., T - 1)
    return before.mean(dim=-1)
""",
    Mistake(
        "Your t is one too small: weights[..., t, t - 1] with t = 0 takes the last "
        "column, and the last row is never asked.",
        [
            (
                "weights.diagonal(offset=-1, dim1=-2, dim2=-1)",
                "weights[..., (t := torch.arange(weights.shape[-1] - 1)), t - 1]",
            )
        ],
    ),
    Mistake(
        "That is how much each character gives to the one behind it: query and key "
        "have changed places.",
        [("offset=-1", "offset=1")],
    ),
    Mistake(
        "You divide by T, but the first character has none before it: T - 1.",
        [("before.mean(dim=-1)", "before.sum(dim=-1) / weights.shape[-1]")],
    ),
    Mistake(
        "You add up what all earlier characters get; wanted is the one right before.",
        [
            (
                "weights.diagonal(offset=-1, dim1=-2, dim2=-1)",
                "weights.tril(-1).sum(-1)[..., 1:]",
            )
        ],
    ),
    Mistake(
        "You count how often the one before gets most; wanted is the mean of "
        "what it gets.",
        [
            (
                "before.mean",
                "(weights.argmax(-1)[..., 1:] == "
                "torch.arange(before.shape[-1])).float().mean",
            )
        ],
    ),
    Mistake(
        "Without its dims, diagonal takes the first two dimensions; wanted are "
        "the last two.",
        [(", dim1=-2, dim2=-1", "")],
    ),
    Mistake(
        "That is what each character gives to itself; the one before it stands "
        "at t - 1.",
        [("(offset=-1, dim1=-2, dim2=-1)", "(dim1=-2, dim2=-1)[..., 1:]")],
    ),
    Mistake(
        "You ask the last query alone; wanted is the mean over all "
        "that have one before.",
        [
            ("before.mean(dim=-1)", "before[..., -1]"),
        ],
    ),
    Mistake(
        "You average a whole square of the map; wanted are the numbers "
        "on its diagonal alone, weights[..., t, t - 1]. (Two lists of "
        "indices must stand in one bracket.)",
        [
            ("before.mean(dim=-1)", "weights[..., 1:, :-1].mean(dim=(-1, -2))"),
        ],
    ),
    Mistake(
        "You divide by what each character gets in all. The rows sum "
        "to one already; take the weights as they are.",
        [
            (
                "weights.diagonal",
                "(weights / weights.sum(dim=-2, keepdim=True)).diagonal",
            ),
        ],
    ),
    Mistake(
        "Position 0 brings the last column in (as the index -1, or by a roll): the "
        "first character has none before it, so begin with 1.",
        [
            (
                "before.mean(dim=-1)",
                ("(before.sum(dim=-1) + weights[..., 0, -1]) / before.shape[-1]"),
            ),
        ],
    ),
    Mistake(
        "Position 0 brings the last column in (as the index -1, or by a roll): the "
        "first character has none before it, so begin with 1 and divide by T - 1.",
        [
            (
                "before.mean(dim=-1)",
                ("(before.sum(dim=-1) + weights[..., 0, -1]) / weights.shape[-1]"),
            ),
        ],
    ),
)


@exercise("11.1 The one before", PREVIOUS_SCORE)
def check_previous_score(previous_score: Any) -> str:
    """previous_score(weights): (..., T, T) -> (...), a score for each map."""
    cases = [(TOY,), (_maps(2, 4, seed=1),), (_maps(2, 3, 5, seed=2),)]
    cases.append((randn(2, 4, 4, seed=3).softmax(dim=-1),))  # without a mask
    hint = "weights[..., t, t - 1], for t from 1 to T - 1, and their mean."
    compare(previous_score, PREVIOUS_SCORE, cases, hint=hint)
    return "9 causal maps and 2 without a mask; the first character is no query."


MEAN_ABLATED = Solution(
    """
def mean_ablated(heads, head, head_size):
    mine = slice(head * head_size, (head + 1) * head_size)
    changed = heads.clone()
    changed[..., mine] = heads[..., mine].mean(dim=(0, 1))
    return changed
""",
    Mistake(
        "These are zeros: zero ablation. Asked is the head's mean.",
        [("heads[..., mine].mean(dim=(0, 1))", "0")],
    ),
    Mistake(
        "Each window keeps a mean of its own: that still depends on the text.",
        [
            (
                "heads[..., mine].mean(dim=(0, 1))",
                "heads[..., mine].mean(dim=1, keepdim=True)",
            )
        ],
    ),
    Mistake(
        "Each position keeps a mean of its own, over the windows alone; wanted is one "
        "over the positions, too.",
        [("heads[..., mine].mean(dim=(0, 1))", "heads[..., mine].mean(dim=0)")],
    ),
    Mistake(
        "`head` counts heads, not channels: head h begins at channel h * head_size.",
        [
            (
                "slice(head * head_size, (head + 1) * head_size)",
                "slice(head, head + head_size)",
            )
        ],
    ),
    Mistake(
        "All later heads are replaced, too: the slice needs its end.",
        [("(head + 1) * head_size)", "None)")],
    ),
    Mistake(
        "That is the mean of all heads; wanted is the usual word of this one.",
        [
            (
                "heads[..., mine].mean(dim=(0, 1))",
                "heads.unflatten(-1, (-1, head_size)).mean(dim=(0, 1, 2))",
            )
        ],
    ),
    Mistake(
        "You average the head's own channels, and each position keeps "
        "a number of its own; the mean is over windows and positions.",
        [
            ("mean(dim=(0, 1))", "mean(dim=-1, keepdim=True)"),
        ],
    ),
    Mistake(
        "Your slice cuts positions; the columns of a head are in the last dimension.",
        [
            ("[..., mine]", "[:, mine]"),
        ],
    ),
    Mistake(
        "That is what all heads say at this place, on average; wanted "
        "is what this head says at all places.",
        [
            (
                "heads[..., mine].mean(dim=(0, 1))",
                "heads.unflatten(-1, (-1, head_size)).mean(dim=2)",
            ),
        ],
    ),
    Mistake(
        "That is what the other heads say at this place; wanted is "
        "what this head says on average.",
        [
            (
                "heads[..., mine].mean(dim=(0, 1))",
                "(heads.unflatten(-1, (-1, head_size)).sum(2) - heads[..., "
                "mine]) / (heads.shape[-1] // head_size - 1)",
            ),
        ],
    ),
    Mistake(
        "You change every n-th channel; a head's channels lie side by "
        "side, head_size of them.",
        [
            (
                "slice(head * head_size, (head + 1) * head_size)",
                "slice(head, None, heads.shape[-1] // head_size)",
            ),
        ],
    ),
    Mistake(
        "All the other heads are replaced by their means, and this one "
        "stays: the wrong way round.",
        [
            ("heads.clone()", "heads.mean(dim=(0, 1)).expand_as(heads).clone()"),
            ("heads[..., mine].mean(dim=(0, 1))", "heads[..., mine]"),
        ],
    ),
    Mistake(
        "Only the replaced head comes back; the result has the shape "
        "of `heads`, with all the others in it.",
        [
            ("return changed", "return changed[..., mine]"),
        ],
    ),
    Mistake(
        "Heads are counted from 0, so head h begins at channel h * "
        "head_size; yours begins one head before.",
        [
            (
                "slice(head * head_size, (head + 1) * head_size)",
                "slice((head - 1) * head_size, head * head_size)",
            ),
        ],
    ),
)


@exercise("11.2 Its usual word", MEAN_ABLATED)
def check_mean_ablated(mean_ablated: Any) -> str:
    """mean_ablated(heads (B, T, C), head, head_size) -> (B, T, C)."""
    cases = [(torch.tensor([[[1.0, 5.0], [3.0, 6.0]]]), 0, 1)]
    cases += [(randn(2, 3, 6, seed=1), 2, 2), (randn(3, 2, 8, seed=2), 0, 2)]
    cases.append((randn(2, 5, 6, seed=3), 1, 3))
    hint = "heads[..., mine].mean(dim=(0, 1)) has a number for each of its columns."
    compare(mean_ablated, MEAN_ABLATED, cases, hint=hint)
    return "4 sizes; the other heads, and the tensor given, stay as they were."


def _text(letters: str) -> torch.Tensor:
    return torch.tensor([ord(c) - ord("a") for c in letters])


PREFIX_SCORE = Solution(
    """
def prefix_score(weights, ids, n=2):
    found = []
    for t in range(n - 1, len(ids)):
        read = ids[t - n + 1 : t + 1]  # the last n, up to t
        total, seen = 0.0, False
        for s in range(n, t + 1):
            if torch.equal(ids[s - n : s], read):  # they stood before s
                total, seen = total + weights[t, s], True
        if seen:
            found.append(total)
    return sum(found) / len(found)
""",
    Mistake(
        "A query that could look there and gives it no attention counts, too: with 0.",
        [("if seen:", "if total > 0:")],
    ),
    Mistake(
        "Queries with nothing to find count as zeros here: leave them out.",
        [("if seen:", "if True:")],
    ),
    Mistake(
        "You divide by all T; only queries that have something to find count.",
        [("/ len(found)", "/ len(ids)")],
    ),
    Mistake(
        "You look at the earlier occurrence itself; a head that copies looks at"
        " what followed.",
        [("weights[t, s]", "weights[t, s - 1]")],
    ),
    Mistake(
        "The last n characters must include the one just read, at t.",
        [
            ("ids[t - n + 1 : t + 1]", "ids[t - n : t]"),
            ("range(n - 1, len(ids))", "range(n, len(ids))"),
        ],
    ),
    Mistake(
        "You take one match only, the latest; add up what t gives to all of them.",
        [("total + weights[t, s]", "weights[t, s]")],
    ),
    Mistake(
        "s may be t itself: in aa, the second a looks at what followed the first.",
        [("range(n, t + 1)", "range(n, t)")],
    ),
    Mistake(
        "You take one match only, the first; add up what t gives to all of them.",
        [
            (
                "total, seen = total + weights[t, s], True",
                "total, seen = weights[t, s], True; break",
            )
        ],
    ),
    Mistake(
        "You compare the last character only; all n must agree.",
        [("torch.equal(ids[s - n : s], read)", "ids[s - 1] == ids[t]")],
    ),
    Mistake(
        "You divide by the number of matches; a query with two matches counts once.",
        [("total, seen = total + weights[t, s], True", "found.append(weights[t, s])")],
    ),
    Mistake(
        "You compare the last character only; all n must agree.",
        [
            ("range(n, t + 1)", "range(1, t + 1)"),
            ("torch.equal(ids[s - n : s], read)", "ids[s - 1] == ids[t]"),
        ],
    ),
    Mistake(
        "Your s goes on beyond t: a match that is still to come counts, too.",
        [
            ("range(n, t + 1)", "range(n, len(ids))"),
        ],
    ),
    Mistake(
        "You look at the place where the match begins; the character "
        "that followed it stands n places further on, at s.",
        [
            ("weights[t, s]", "weights[t, s - n]"),
        ],
    ),
    Mistake(
        "You look for the character that stands at t + 1, which no "
        "head has read yet; compare the n before s with the last n up "
        "to t.",
        [
            (
                "torch.equal(ids[s - n : s], read)",
                "t + 1 < len(ids) and ids[s] == ids[t + 1]",
            ),
        ],
    ),
)


@exercise("11.3 Prefix matching", PREFIX_SCORE)
def check_prefix_score(prefix_score: Any) -> str:
    """prefix_score(weights (T, T), ids (T,), n) -> one number."""
    elsewhere = _maps(5, seed=5)
    elsewhere[2] = torch.eye(5)[2]  # the second a looks at itself alone
    cases = [
        (_maps(4, seed=3), _text("abab"), 1),
        (_maps(5, seed=1), _text("abcab"), 2),
        (_maps(9, seed=2), _text("abcabcabc"), 2),
        (_maps(8, seed=4), _text("aaaaabaa"), 3),
        (elsewhere, _text("ababa"), 1),
    ]

    hint = "In abcab, the last b looks for the c: what followed the earlier ab."
    compare(prefix_score, PREFIX_SCORE, cases, hint=hint)
    return "5 texts, with 1, 2 and 3 characters that must agree."


def _others(module: nn.Module, inputs: Any, output: Any) -> None:
    """Somebody else's hook, which stays."""


def _layer(C: int, V: int, bias: bool) -> nn.Linear:
    module = nn.Linear(C, V, bias)
    module.weight.data = randn(V, C)
    module.register_forward_hook(_others)
    return module


def _before_and_after(
    program: Callable, module: nn.Module, x: torch.Tensor
) -> tuple | None:
    """What the program gives; the module's weights, output and hooks afterwards."""
    weight = next(module.parameters())
    usual = [weight.clone(), module(x)]
    silent = program(module, x)
    if silent is None or silent is ...:
        return None
    heals = [same(*pair) for pair in zip((weight, module(x)), usual)]
    hooks = [hook is _others for hook in module._forward_hooks.values()]
    zeros = program(nn.ReLU(), x)  # a module without parameters
    left = len(module._forward_hooks)  # as many as before, if it is healed by now
    return silent, zeros, heals, hooks, same(silent, usual[1]), left


class _Listening(nn.Module):
    """Notes how many hooks it has whenever it is asked."""

    hooks = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hooks.append(len(self._forward_hooks))
        return x + 1


SILENCED = Solution(
    """
def silenced(module, x):
    def silence(module, inputs, output):
        return torch.zeros_like(output)

    hook = module.register_forward_hook(silence)
    silent = module(x)
    hook.remove()
    return silent
""",
)


@exercise("11.4 The cut that does not heal", SILENCED)
def check_silenced(silenced: Any) -> str:
    """silenced(module, x) -> zeros of the module's output; the module is as before."""
    sizes = [(2, 1, (1,), False), (2, 3, (4,), True), (4, 2, (2, 3), True)]
    cases: list[tuple] = [
        (_layer(C, V, b), randn(*s, C, seed=1)) for C, V, s, b in sizes
    ]
    nested = nn.Sequential(_layer(3, 4, True), nn.Tanh())
    nested.register_forward_hook(_others)
    cases.append((nested, randn(2, 3, seed=2)))
    why, text = "the hook was not there when it was asked", source(silenced)
    if ".forward(x" in text:
        why = "`.forward` alone passes every hook by, so call the module itself"
    tree = ast.walk(ast.parse(text))
    hooks = [n for n in tree if isinstance(n, ast.FunctionDef) and n.name != "silenced"]
    silent = not any(isinstance(n, ast.Return) for h in hooks for n in ast.walk(h))
    known = [
        Mistake(
            "Your hook returns nothing, so what the module gives stays as it is.",
            sign=lambda got, *_: got[4] and hooks and silent,
        ),
        Mistake(
            f"The module is not silenced: {why}.",
            sign=lambda got, *_: got[4] and got[3] == [True],
        ),
        Mistake(
            "Your hook is taken away only when the function is called once more: until "
            "then the module stays silent.",
            sign=lambda got, *_: len(got[3]) > 1 == got[5],
        ),
        Mistake(
            "The bug is still there: the hook stays on until its .remove() is called.",
            sign=lambda got, *_: len(got[3]) > 1,
            untouched=True,
        ),
        Mistake(
            "A hook of somebody else's on this module is gone: remove your own alone.",
            sign=lambda got, *_: got[3] != [True],
        ),
        Mistake(
            "A module without weights goes on, or the weights of this one are changed "
            "for good. Is it silenced by its weights?",
            sign=lambda got, right, *_: not got[2][0] or got[1].any(),
        ),
        Mistake(
            "Afterwards the module gives something else than before: put all of it "
            "back.",
            sign=lambda got, *_: not got[2][1],
        ),
        Mistake(
            "What comes out is not zeros of the output's shape; if zeros go in, a "
            "bias is left.",
            sign=lambda got, right, *_: not same(got[0], right[0]),
        ),
    ]
    hint = "handle = module.register_forward_hook(...), and then handle.remove()."
    how: dict[str, Any] = {"work": _before_and_after, "hint": hint}
    compare(silenced, SILENCED, cases, known, **how)
    _Listening.hooks.clear()
    call(silenced, _Listening(), cases[0][1])
    if not any(_Listening.hooks):
        raise Explained(
            "These are zeros, but no hook is at work while the module runs. Inside a "
            "larger model, the layers behind it would still hear what it says.",
            "handle = module.register_forward_hook(silence), then module(x), then "
            "handle.remove().",
            share=0.9,
        )
    _, changed = run(silenced, (nn.Identity(), torch.ones(2, 3)))
    if 1 in changed:  # x
        raise Explained(
            "Your hook puts zeros into the output itself. A module that hands on what "
            "it is given, as nn.Identity() does, then has zeros in x, too.",
            "torch.zeros_like(output) is a tensor of its own.",
            share=0.9,
        )
    return "4 modules: silent inside, and afterwards as before."
