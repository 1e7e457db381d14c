"""Checks for notebook 08: norms, turns, shared heads, straight steps."""

import torch

from minigpt.course.checks.core import Explained, Sign, compare, exercise
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import describe, randn, same
from minigpt.gpt import GPT, GPTConfig
from minigpt.modern.parts import rotary_turns


@exercise("08.1 The norm without the mean")
def check_rms_norm_with_gain(rms_norm_with_gain):
    """rms_norm_with_gain(x, gain): (..., C), (C,) -> (..., C)."""
    gain = torch.tensor([1.0, 2.0, 0.5])
    cases = [
        (torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]]), gain),
        (randn(2, 4, 6) * 3 + 1, randn(6, seed=9)),
        (torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), gain),
    ]
    known = {
        "You divide by the standard deviation: it does not know where zero is.": Sign(
            lambda got, _, x, gain: any(
                same(got[x.std(-1) > 0], (x / d * gain)[x.std(-1) > 0])
                for d in (x.std(-1, True, keepdim=True), x.std(-1, False, True))
            )
        )
    }
    hint = "Square, mean over the last dimension, root; x divided by it; then the gain."
    solution = Solution("08.1")
    compare(rms_norm_with_gain, solution, cases, known, atol=1e-4, hint=hint)
    return "3 tensors, a row of zeros included; with gain 1 the mean square is 1."


@exercise("08.2 Turn in halves")
def check_rotate_halves(rotate_halves):
    """rotate_halves(x, angles): (B, T, n_head, head_size) -> the same shape."""
    small = torch.arange(8.0).view(1, 2, 1, 4), torch.tensor([[0.0, 0.0], [1.5, 0.3]])
    square = randn(1, 2, 2, 4), torch.tensor([[0.4, 0.1], [0.8, 0.2]])
    angles = rotary_turns(torch.arange(7), 6).angle()
    cases = [small, square, (randn(2, 7, 3, 6), angles)]
    hint = "first, second = x.chunk(2, dim=-1): first[j] and second[j] turn by angle j."
    compare(rotate_halves, Solution("08.2"), cases, hint=hint)
    return "3 shapes; first[j] and second[j] turn by the angle j of their place."


@exercise("08.3 Heads that share a memory")
def check_grouped_attention(grouped_attention):
    """grouped_attention(q, k, v) -> (B, n_head, T, head_size), causal."""
    cases = [
        (randn(B, n, T, size), *randn(2, B, kv, T, size, seed=9))
        for B, n, kv, T, size in [(1, 4, 2, 2, 2), (2, 6, 2, 5, 4), (2, 6, 3, 4, 2)]
    ]
    cases.append(tuple(randn(3, 2, 3, 4, 2)))
    hint = "Query heads 0 to group - 1 read key/value head 0, the next group head 1."
    compare(grouped_attention, Solution("08.3"), cases, hint=hint)
    return "4 sizes; with as many key/value heads as queries it is lesson 04's."


@exercise("08.4 A table is no matrix")
def check_for_muon(for_muon):
    """for_muon(model) -> the names of the parameters that Muon is to move."""
    with torch.device("meta"):  # names and shapes will do
        models = [GPT(GPTConfig(7, 8, n, n_head=2, n_embd=8)) for n in (1, 2, 3)]
    solution = Solution("08.4")

    def work(program, model):
        got = program(model)
        if got is None or got is ...:
            return got
        names = [got] if isinstance(got, str) else list(got)
        if isinstance(got, str) or not all(isinstance(name, str) for name in names):
            what = f"Wanted is a list of names; yours holds {describe(names[0])}."
            raise Explained(what, "[name for name, p in model.named_parameters() if …]")
        right, names = set(solution(model)), set(names)
        return {"too many": sorted(names - right), "missing": sorted(right - names)}

    known = {
        "These are names of the body's own: the model knows its parameters by their "
        "full names, with `body.` in front.": Sign(
            lambda got, *_: {f"body.{n}" for n in got["too many"]} & {*got["missing"]}
        ),
        "Your list is empty: which of `model.named_parameters()` does its condition "
        "let through?": Sign(
            lambda got, _, model: (
                len(got["missing"]) == len(solution(model)) and not got["too many"]
            )
        ),
        "Matrices of the blocks are missing: all of them are Muon's work.": Sign(
            lambda got, *_: got["missing"], vague=True
        ),
        "A table is in that has a row for each token or each position.": Sign(
            lambda got, *_: not got["too many"][0].startswith("body."), vague=True
        ),
        "Vectors are in: Muon refuses gains and biases.": Sign(
            lambda got, *_: got["too many"][0].startswith("body."), vague=True
        ),
    }
    hint = "A row of a table is a token's own; what is outside the blocks is AdamW's."
    cases = [(model,) for model in models]
    compare(for_muon, solution, cases, known, work=work, hint=hint)
    return "3 models; matrices of the blocks only, whatever else there is."
