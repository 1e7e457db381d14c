"""Checks for notebook 11: maps and their scores, shares, cuts, copies, hooks."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.checks.core import Explained, Sign, call, compare, exercise, mistakes, same
from minigpt.checks.solutions import Solution


def _maps(*shape, seed=0):
    """Causal attention maps (*shape, T, T), the last of shape being T."""
    generator = torch.Generator().manual_seed(seed)
    T = shape[-1]
    scores = torch.randn(*shape, T, generator=generator)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    return F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)


def _numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# 11.1

TOY = torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.1, 0.9, 0.0]])


@exercise("11.1 The one before")
def check_previous_score(previous_score):
    """previous_score(weights): (..., T, T) -> (...), a score for each map."""
    cases = [(TOY,), (_maps(2, 4, seed=1),), (_maps(2, 3, 5, seed=2),)]
    hint = "weights[..., t, t - 1], for t from 1 to T - 1, and their mean."
    solution = Solution("11.1")
    known = {
        "This is the diagonal itself: how much each character looks at itself.": (
            lambda w: w.diagonal(dim1=-2, dim2=-1).mean(-1)
        ),
        "This diagonal lies above the main one: the future, where all is zero.": (
            solution.but("offset=-1 → offset=1")
        ),
        "You divide by T, but the first character has none before it: T - 1.": (
            lambda w: w.diagonal(-1, -2, -1).sum(-1) / w.shape[-1]
        ),
        "This is how much the first character of all is looked at.": (
            lambda w: w[..., 1:, 0].mean(-1)
        ),
        "All maps together give one number here; each map has a score.": (
            lambda w: solution(w).mean()
        ),
    }
    compare(previous_score, solution, cases, mistakes(hint, known), hint=hint)
    return "a map by hand, 2 maps, 2 times 3 maps; the first character is no query."


# 11.2


@exercise("11.2 Every head's share")
def check_head_shares(head_shares):
    """head_shares(heads (..., C), weight (C, C), n_head) -> (n_head, ..., C)."""
    cases = [
        (torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 3.0], [0.0, 1.0]]), 2),
        (_numbers(3, 4, seed=1), _numbers(4, 4, seed=2), 2),
        (_numbers(2, 3, 6, seed=3), _numbers(6, 6, seed=4), 3),
        (_numbers(2, 4, seed=5), _numbers(4, 4, seed=6), 1),
    ]
    hint = "A head's columns of `heads` meet the same columns of `weight`."
    solution = Solution("11.2")
    known = {
        "You cut the rows of the weight; a head's numbers meet its columns.": Sign(
            lambda got, expected, x, weight, n: same(
                got,
                torch.stack(
                    [
                        F.pad(out @ w, (0, 0))
                        for out, w in zip(x.chunk(n, -1), weight.chunk(n, 0))
                    ]
                ),
            )
        ),
        "This is what each head gives to its own columns only; the projection mixes "
        "them into all C.": Sign(
            lambda got, expected, x, weight, n: same(
                got, torch.stack((x @ weight.T).chunk(n, -1))
            )
        ),
        "This is the sum over all heads; asked is each one's share.": Sign(
            lambda got, expected, x, weight, n: same(got, x @ weight.T)
        ),
    }
    compare(head_shares, solution, cases, mistakes(hint, known), hint=hint)
    heads, weight = _numbers(2, 5, 8, seed=7), _numbers(8, 8, seed=8)
    together = call(head_shares, heads, weight, 4).sum(0)
    if not same(together, heads @ weight.T):
        raise Explained("The shares of 4 heads do not add up to the projection.")
    return "4 sizes, one with a single head; the shares add up to the projection."


# 11.3


@exercise("11.3 Its usual word")
def check_mean_ablated(mean_ablated):
    """mean_ablated(heads (B, T, C), head, head_size) -> (B, T, C)."""
    toy = torch.tensor([[[1.0, 5.0], [3.0, 6.0]]])
    cases = [
        (toy, 0, 1),
        (_numbers(2, 3, 6, seed=1), 2, 2),
        (_numbers(3, 2, 4, seed=2), 0, 2),
        (_numbers(2, 5, 6, seed=3), 1, 3),
    ]
    hint = "heads[..., mine].mean(dim=(0, 1)) has a number for each of its columns."
    solution = Solution("11.3")
    mean = "heads[..., mine].mean(dim=(0, 1))"
    known = {
        "These are zeros: zero ablation. Asked is the head's mean.": (
            solution.but((mean, "0"))
        ),
        "One number for all its columns: each column has a mean of its own.": (
            solution.but((mean, "heads[..., mine].mean()"))
        ),
        "Each window keeps a mean of its own: that still depends on the text.": (
            solution.but((mean, "heads[..., mine].mean(dim=1, keepdim=True)"))
        ),
        "Each position keeps a mean of its own: take it over the positions, too.": (
            solution.but((mean, "heads[..., mine].mean(dim=0)"))
        ),
        "All heads are replaced; the others must stay as they are.": (
            lambda x, *_: x.mean(dim=(0, 1)).expand_as(x)
        ),
        "The mean stands at one head, and the numbers of another are gone: heads "
        "count from 0.": Sign(
            lambda got, expected, x, h, size: (
                h > 0 and same(got, solution(x, h - 1, size))
            )
        ),
    }
    compare(mean_ablated, solution, cases, mistakes(hint, known), hint=hint)
    return "4 sizes; the other heads, and the tensor given, stay as they were."


# 11.4


def _text(letters):
    return torch.tensor([ord(c) - ord("a") for c in letters])


@exercise("11.4 Prefix matching")
def check_prefix_score(prefix_score):
    """prefix_score(weights (T, T), ids (T,), n) -> one number."""
    cases = [
        (_maps(4, seed=3), _text("abab"), 1),
        (_maps(5, seed=1), _text("abcab"), 2),
        (_maps(9, seed=2), _text("abcabcabc"), 2),
        (_maps(8, seed=4), _text("aaaaabaa"), 3),
    ]
    hint = "In abcab, the last b looks for the c: what followed the earlier ab."
    solution = Solution("11.4")
    known = {
        "You look at the earlier occurrence itself; a head that copies looks at what "
        "followed it.": solution.but(
            ("weights[t, s]", "weights[t, s - 1]"),
        ),
        "The sum over all queries is not yet their mean.": (
            solution.but((" / len(found)", ""))
        ),
        "Queries with nothing to find count as zeros here: leave them out.": Sign(
            lambda got, expected, w, ids, n: (
                same(got * len(ids), expected * _asked(ids, n))
                or same(got * (len(ids) - n + 1), expected * _asked(ids, n))
            )
        ),
        "Only one of several earlier places counts here: add all of them up.": (
            solution.but(("total + weights", "weights"))
        ),
        "The last n characters must include the one just read, at t.": (
            solution.but(
                ("ids[t - n + 1 : t + 1]", "ids[t - n : t]"),
                ("range(n - 1, len(ids))", "range(n, len(ids))"),
            )
        ),
    }
    compare(prefix_score, solution, cases, mistakes(hint, known), hint=hint)
    return "4 texts, with 1, 2 and 3 characters that must agree."


def _asked(ids, n):
    """The number of queries with something to find."""
    return sum(
        any(
            torch.equal(ids[s - n : s], ids[t - n + 1 : t + 1]) for s in range(n, t + 1)
        )
        for t in range(n - 1, len(ids))
    )


# 11.5


@exercise("11.5 The longest copy")
def check_longest_stretch(longest_stretch):
    """longest_stretch(text, source) -> the longest part of text that source has."""
    source = "to be, or not to be: that is the question"
    cases = [
        ("abc", "xbcx"),
        ("or to be", source),
        ("be not that", source),
        ("ab cd", "cd ab"),
        ("xyz", "abc"),
        ("question", source),
        ("", "abc"),
    ]
    hint = "At each start, try one character more than the best so far."
    solution = Solution("11.5")
    known = {
        "This is the length; asked is the stretch itself.": Sign(
            lambda got, expected, *_: got == len(expected)
        ),
        "Of several equally long ones you take the last: only a longer one is "
        "better.": Sign(
            lambda got, expected, text, source: (
                isinstance(got, str)
                and len(got) == len(expected)
                and got in source
                and got in text
            )
        ),
        "These characters do not stand in the source, one after the other.": Sign(
            lambda got, expected, text, source: (
                isinstance(got, str) and got not in source
            )
        ),
        "There is a longer one; perhaps copies that begin later, or that end with "
        "the text, are lost.": Sign(
            lambda got, expected, text, source: (
                isinstance(got, str) and len(got) < len(expected)
            )
        ),
    }
    compare(longest_stretch, solution, cases, mistakes(hint, known), hint=hint)
    return "7 texts, an empty one and one without a copy among them."


# 11.6


@exercise("11.6 Everybody is equally popular")
def check_looked_at(looked_at):
    """looked_at(weights): (B, n_head, T, T) -> (n_head, T)."""
    cases = [(TOY[None, None],), (_maps(2, 3, 4, seed=1),), (_maps(3, 2, 6, seed=2),)]
    hint = "Rows are queries, columns are keys: which of the two is left?"
    solution = Solution("11.6")
    known = {
        "The bug is still there: every place gets 1 / T, from every head. That is "
        "the mean of a row that sums to one.": solution.but("(0, 2) → (0, 3)"),
        "The queries are added up: ask for their mean.": solution.but("mean → sum"),
        "All heads together: asked is each head for itself.": (
            lambda w: w.mean(dim=(0, 1, 2))
        ),
        "Each window stands for itself: take the mean over windows, too.": (
            solution.but("dim=(0, 2) → dim=2")
        ),
        "Only the last query is heard: all of them ask.": (
            lambda w: w[:, :, -1].mean(dim=0)
        ),
    }
    compare(looked_at, solution, cases, mistakes(hint, known), hint=hint)
    return "3 sets of maps; what all places get adds up to one."


# 11.7


def _before_and_after(program, weight, x):
    """What the program gives; what the module gives then, and its hooks."""
    module = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    with torch.no_grad():
        module.weight.copy_(weight)
    silent = program(module, x)
    if silent is None or silent is ...:
        return None
    return silent, module(x), len(module._forward_hooks)


@exercise("11.7 The cut that does not heal")
def check_silenced(silenced):
    """silenced(module, x) -> zeros of the module's output; the module is as before."""
    cases = [
        (torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 1.0]])),
        (_numbers(3, 2, seed=1), _numbers(4, 2, seed=2)),
        (_numbers(2, 4, seed=3), _numbers(2, 3, 4, seed=4)),
    ]
    hint = "handle = module.register_forward_hook(...), and then handle.remove()."
    solution = Solution("11.7")

    def of(*edits):
        program = solution.but(*edits)
        return lambda *inputs: _before_and_after(program, *inputs)

    known = {
        "The bug is still there: the hook stays, and the module is silent for "
        "good.": of(("hook.remove()", "pass")),
        "The hook is gone before the module is asked: it is not silenced.": of(
            ("    hook.remove()\n", ""),
            ("    silent = module(x)", "    hook.remove()\n    silent = module(x)"),
        ),
        "The module is silenced by its weights, which are lost now.": Sign(
            lambda got, expected, *_: (
                same(got[0], expected[0]) and not same(got[1], expected[1])
            )
        ),
        "What comes out is not zeros of the output's shape.": Sign(
            lambda got, expected, *_: (
                not same(got[0], expected[0]) and same(got[1], expected[1])
            )
        ),
    }
    compare(
        silenced,
        solution,
        cases,
        mistakes(hint, known),
        work=_before_and_after,
        hint=hint,
    )
    return "3 modules: silent inside, and afterwards as before."


# 11.8


def _seen(program, C, V, seed):
    """What the lens gives with a norm and an `lm_head` of these sizes."""
    norm, lm_head = nn.LayerNorm(C), nn.Linear(C, V)
    with torch.no_grad():
        for i, parameter in enumerate([*norm.parameters(), *lm_head.parameters()]):
            parameter.copy_(_numbers(*parameter.shape, seed=seed + i))
    return program(3 * _numbers(2, 3, C, seed=seed), norm, lm_head)


@exercise("11.8 A lens out of focus")
def check_early_logits(early_logits):
    """early_logits(stream (B, T, C), norm, lm_head) -> logits (B, T, V)."""
    cases = [(2, 3, 10), (4, 5, 20), (8, 3, 30)]
    hint = "The stream, then the norm, then `lm_head`: as at the end of the model."
    solution = Solution("11.8")

    def of(edit):
        program = solution.but(edit)
        return lambda *inputs: _seen(program, *inputs)

    known = {
        "The bug is still there: `lm_head` reads the stream without the last norm: "
        "logits too small where it is short, too large where it is long.": of(
            ("norm(stream)", "stream")
        ),
        "A norm without its weights (gain and shift) is not the model's.": of(
            (
                "norm(stream)",
                "torch.nn.functional.layer_norm(stream, stream.shape[-1:])",
            )
        ),
        "These are probabilities; the lens gives logits, as the model does.": of(
            ("lm_head(norm(stream))", "lm_head(norm(stream)).softmax(-1)")
        ),
        "These are logarithms of probabilities; the lens gives the logits "
        "themselves.": of(
            ("lm_head(norm(stream))", "lm_head(norm(stream)).log_softmax(-1)")
        ),
        "The norm is applied twice.": of(("norm(stream)", "norm(norm(stream))")),
    }
    compare(early_logits, solution, cases, mistakes(hint, known), work=_seen, hint=hint)
    return "3 sizes; at the top the lens gives the model's own logits."
