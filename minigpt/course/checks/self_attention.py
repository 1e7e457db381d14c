"""Checks for notebook 03: one head of attention, and the learner's own model."""

from zlib import crc32

import torch
import torch.nn as nn

from minigpt.attention import Head, attention_weights
from minigpt.course.checks import core
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import as_tensor, describe, randint, randn
from minigpt.language_model import LanguageModel


def _tenths(*shape, seed=0):
    """Standard normal numbers with one decimal."""
    return (randn(*shape, seed=seed + sum(shape)) * 10).round() / 10


def _fill(model):
    """Rather large numbers, drawn by each parameter's name: no two look alike."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(randn(*p.shape, seed=crc32(name.encode())) * 0.7)
    return model


def _model(vocab_size, block_size, n_embd, head_size):
    model = LanguageModel(vocab_size, block_size, n_embd, Head(n_embd, head_size))
    model.lm_head = nn.Linear(head_size, vocab_size)
    return _fill(model)


@core.exercise("03.1 One line and its root")
def check_scaled_scores(answer):
    """answer(x, W_query, W_key) -> scaled scores (B, T, T)."""
    cases = [
        (_tenths(B, T, C), _tenths(C, head_size, seed=1), _tenths(C, head_size, seed=2))
        for B, T, C, head_size in [(1, 2, 3, 5), (3, 6, 4, 2), (2, 5, 7, 9)]
    ]
    cases.append((_tenths(6, 4, 3).transpose(0, 1), *cases[0][1:]))  # not contiguous
    known = {
        "You divide by the spread that these scores happen to have. Change one token, "
        "and all scores of the batch change.": (
            core.Sign(lambda got, *_: abs(got.std() - 1) < 1e-4),
            "Divide by a fixed number: the root of head_size.",
        ),
    }
    hint = "The number under the root is the length of a query: q.shape[-1]."
    core.compare(answer, Solution("03.1"), cases, known, hint=hint)
    return "4 inputs; the queries are in the rows, the scale is √head_size"


def _looks(pair, distance, T):
    """Weights of a head made by hand, where rows that are right are made perfect.

    The input is the identity. A row with 99 % in the right place is right.
    """
    if not any(map(core.attempted, pair)):
        raise core.NotAttempted
    for name, W in zip(("W_query", "W_key"), pair):
        numbers, kind = as_tensor(W), str(getattr(W, "dtype", ""))
        if numbers is None or numbers.shape[:1] != (T,) or "int" in kind:
            raise core.Explained(
                f"{name} should be a matrix ({T}, head_size) of floats; yours is "
                f"{describe(W)} {kind}".strip()
                + ".",
                "A row for each of the T positions; torch.eye(T) holds floats.",
            )
    q, k = (as_tensor(W).float() for W in pair)
    weights = attention_weights(q, k)
    marked = torch.ones(T, T).tril(-distance).triu(-distance)
    asks = marked.any(dim=-1, keepdim=True)
    share = (weights * marked).sum(dim=-1, keepdim=True)
    loud = (attention_weights(1e3 * q.double(), k.double()) * marked).sum(-1)
    if (loud[asks[:, 0]] >= 0.99).all() and (share[asks] < 0.99).any():
        raise core.Explained(
            f"Right place, but too soft: only {share[asks].min():.0%} attention.",
            "Scores are divided by √head_size: use numbers that grow with it.",
        )
    return torch.where(share >= 0.99, marked, weights) * asks


@core.exercise("03.2 A head made by hand")
def check_look_back(answer):
    """answer(T, distance) -> W_query, W_key: each t looks at t - distance."""

    def work(program, T, distance):
        return _looks(program(T, distance), distance, T)

    hint = "Row t of W_query is the query of place t: it must equal key t - distance."
    cases = [(3, 1), (4, 2), (6, 1), (9, 3), (16, 5), (64, 7)]
    core.compare(answer, Solution("03.2"), cases, atol=1e-4, work=work, hint=hint)
    return "6 pairs of T and distance, always at least 99 % of the attention"


@core.exercise("03.3 How far back your model looks")
def check_reach(answer, model, data):
    """answer(model, idx) -> mean distance (B, T); small models and the learner's."""
    sizes = [(5, 8, 4, 3, (1, 3)), (7, 9, 3, 6, (2, 5)), (6, 7, 5, 5, (3, 7))]
    cases = [(_model(*size), randint(size[0], *shape)) for *size, shape in sizes]
    T = model.block_size
    count = min(32, (len(data) - 1) // T)
    idx = data[: count * T].view(count, T)
    cases.append((model, idx))
    solution = Solution("03.3", opened=True)
    hint = "The lesson's picture of a trained head shows the way to the weights."
    core.compare(answer, solution, cases, hint=hint)
    mean, even = solution(model, idx).mean(), (idx.shape[1] - 1) / 4
    return f"4 models; yours looks {mean:.1f} characters back (evenly: {even:.2f})"


def _filled(program, vocab_size, block_size, n_embd, idx):
    """Logits of the model that program makes, its numbers set by their names."""
    model = program(vocab_size, block_size, n_embd)
    known = Solution("03.4").program(vocab_size, block_size, n_embd).state_dict()
    if more := set(dict(model.named_parameters())) - set(known):
        raise core.Explained(
            f"The model has a layer more, {min(more)!r}: the check cannot set it.",
            "Leave the layers and their names as they were; forward has the bug.",
        )
    out = _fill(model)(idx)
    return out[0] if isinstance(out, tuple) else out


@core.exercise("03.4 The model that cannot spell")
def check_word_order(answer):
    """answer(vocab_size, block_size, n_embd) -> a model that knows who sits where."""
    sizes = [(5, 8, 6, 1, 4), (5, 8, 6, 2, 3), (11, 7, 4, 3, 7), (9, 9, 5, 4, 2)]
    cases = [(V, size, C, randint(V, B, T)) for V, size, C, B, T in sizes]
    hint = "Add to a token's vector one that depends on its place alone."
    core.compare(answer, Solution("03.4"), cases, work=_filled, hint=hint)
    return "4 inputs: each place has a vector of its own, up to block_size tokens"
