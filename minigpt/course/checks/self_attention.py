"""Checks for notebook 03: one head of attention, and the learner's own model."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

import torch
import torch.nn as nn

from minigpt.attention import Head, attention, attention_weights
from minigpt.course.checks import core
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import as_tensor, describe, randint, randn, tensor_of
from minigpt.language_model import LanguageModel


def _tenths(*shape: int, seed: int = 0) -> torch.Tensor:
    """Standard normal numbers with one decimal."""
    return (randn(*shape, seed=seed + sum(shape)) * 10).round() / 10


def _fill(model: nn.Module) -> nn.Module:
    """Rather large numbers, drawn by each parameter's name: no two look alike."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(randn(*p.shape, seed=crc32(name.encode())) * 0.7)
    return model


def _model(vocab_size: int, block_size: int, n_embd: int, head_size: int) -> nn.Module:
    model = LanguageModel(vocab_size, block_size, n_embd, Head(n_embd, head_size))
    model.lm_head = nn.Linear(head_size, vocab_size)
    return _fill(model)


SCALED_SCORES = Solution(
    """
def scaled_scores(x, W_query, W_key):
    q, k = x @ W_query, x @ W_key  # (B, T, head_size) each
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores
""",
    Mistake(
        "You divide by the root of the size of x; what counts is the length of a "
        "query, head_size.",
        [("q.shape[-1] ** 0.5", "x.shape[-1] ** 0.5")],
    ),
    Mistake(
        "Your vectors have length 1 now (that is the cosine). Only head_size "
        "should count: divide by its root.",
        [
            (
                "q, k = x @ W_query, x @ W_key",
                "q, k = F.normalize(x @ W_query, dim=-1), F.normalize(x @ W_key, "
                "dim=-1)",
            ),
            (" / q.shape[-1] ** 0.5", ""),
        ],
    ),
    Mistake(
        "These are weights already: the exercise wants the scores, without a softmax.",
        [
            ("return scores", "return scores.softmax(dim=-1)"),
        ],
    ),
    Mistake(
        "You compare each query with the key of its own place only. "
        "Every query is to meet every key, which is a product of "
        "matrices: (B, T, T).",
        [
            ("q @ k.transpose(-2, -1)", "(q * k).sum(dim=-1)"),
        ],
    ),
    Mistake(
        "The root is drawn from the scores, some of which are "
        "negative; it belongs to the head size alone.",
        [
            (
                "q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5",
                "(q @ k.transpose(-2, -1)) ** 0.5 / q.shape[-1]",
            ),
        ],
    ),
    Mistake(
        "The future is hidden already; no mask is asked for yet.",
        [
            ("return scores", "return scores.tril()"),
        ],
    ),
    Mistake(
        "You compare by distance; the lesson's scores are dot "
        "products, which grow with the length of the vectors, too.",
        [
            (
                "q @ k.transpose(-2, -1)",
                "-(q[:, :, None] - k[:, None]).square().sum(dim=-1)",
            ),
        ],
    ),
    Mistake(
        "Every query meets the keys of all windows of the batch; it "
        "should meet those of its own window.",
        [
            ("q @ k.transpose(-2, -1)", "q.flatten(0, 1) @ k.flatten(0, 1).T"),
        ],
    ),
    Mistake(
        "The scores are divided by head_size itself, not by its root. "
        "Are queries and keys both divided by the root?",
        [
            ("q.shape[-1] ** 0.5", "q.shape[-1]"),
        ],
    ),
    Mistake(
        "The keys ask here, and the queries are asked: rows and columns are exchanged.",
        [("q @ k.transpose(-2, -1)", "k @ q.transpose(-2, -1)")],
    ),
)


@core.exercise("03.1 One line and its root", SCALED_SCORES)
def check_scaled_scores(answer: Any) -> str:
    """answer(x, W_query, W_key) -> scaled scores (B, T, T)."""
    cases = [
        (_tenths(B, T, C), _tenths(C, head_size, seed=1), _tenths(C, head_size, seed=2))
        for B, T, C, head_size in [(1, 2, 3, 5), (3, 6, 4, 2), (2, 5, 7, 9)]
    ]
    cases.append((_tenths(6, 4, 3).transpose(0, 1), *cases[0][1:]))  # not contiguous
    known = [
        Mistake(
            "You divide by the spread that these scores happen to have. Change one "
            "token, "
            "and all scores of the batch change.",
            sign=lambda got, *_: abs(got.std() - 1) < 1e-4,
            hint="Divide by a fixed number: the root of head_size.",
        ),
    ]
    hint = "The number under the root is the length of a query: q.shape[-1]."
    core.compare(answer, SCALED_SCORES, cases, known, hint=hint)
    return "4 inputs; the queries are in the rows, the scale is √head_size"


def _looks(pair: Any, distance: int, T: int) -> torch.Tensor:
    """Weights of a head made by hand, where rows that are right are made perfect.

    The input is the identity. A row with 99 % in the right place is right.
    """
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise core.Explained(
            f"look_back should return two matrices, W_query and W_key; yours is "
            f"{describe(pair)}.",
            "return W_query, W_key",
        )
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
    q, k = (tensor_of(W).float() for W in pair)
    if not (q @ k.T).isfinite().all():
        raise core.Explained(
            "Some products of a query with a key are no finite numbers: more than "
            "3.4e38 is inf in a float, 0 * inf is nan, and so is a softmax over inf.",
            "Numbers of a hundred or so are large enough for 99 %.",
        )
    weights = attention_weights(q, k)
    marked = torch.ones(T, T).tril(-distance).triu(-distance)
    asks = marked.any(dim=-1, keepdim=True)
    share = (weights * marked).sum(dim=-1, keepdim=True)
    loud = (attention_weights(1e3 * q.double(), k.double()) * marked).sum(-1)
    if (loud[asks[:, 0]] >= 0.99).all() and (share[asks] < 0.99).any():
        raise core.Explained(
            f"Right place, but too soft: only {share[asks].min():.2%} attention.",
            "Scores are divided by √head_size: use numbers that grow with it.",
        )
    return torch.where(share >= 0.99, marked, weights) * asks


LOOK_BACK = Solution(
    """
def look_back(T, distance):
    W_key = torch.eye(T)  # key i is one at place i
    W_query = torch.eye(T).roll(-distance, dims=1)  # one at t - distance
    return 20 * T**0.5 * W_query, W_key
""",
    Mistake(
        "It looks ahead, from t to t + distance. Does a roll go the wrong way, "
        "or are query and key exchanged?",
        [("roll(-distance", "roll(distance")],
    ),
    Mistake(
        "Every position looks one step back, whatever the distance.",
        [("roll(-distance", "roll(-1")],
    ),
    Mistake(
        "Your positions look one place too near, at t - distance + 1.",
        [("roll(-distance", "roll(1 - distance")],
    ),
    Mistake(
        "All positions look at place 0. Do their queries agree?",
        [(".roll(-distance, dims=1)", "[:1].repeat(T, 1)")],
    ),
    Mistake(
        "Your scores grow with the place, so the last one wins: a product of "
        "two numbers does not tell whether they are equal.",
        [
            ("W_key = torch.eye(T)", "W_key = torch.arange(T)[:, None].float()"),
            ("torch.eye(T).roll(-distance, dims=1)", "(W_key - distance)"),
        ],
    ),
    Mistake(
        "Everyone looks at itself: of all products of query t with a key, the "
        "one with key t is the largest; it should be the one with key t - distance. "
        "Are both shifted alike, or none? Or do the numbers only grow with the place?",
        [(".roll(-distance, dims=1)", "")],
    ),
    Mistake(
        "Your positions look one place too far back, at t - distance - 1.",
        [
            ("roll(-distance", "roll(-1 - distance"),
        ],
    ),
    Mistake(
        "Position t = distance, the first that can look back so far, "
        "does not: does your loop begin one too late?",
        [
            ("    return 20", ("    W_query[distance] = 0\n    return 20")),
        ],
    ),
    Mistake(
        "Each position looks evenly at all that it may see: no key there fits its "
        "query better than the others. Is key t + distance the one that fits? It lies "
        "in the future, which is hidden.",
        [
            ("torch.eye(T).roll(-distance, dims=1)", "torch.eye(T).roll(distance, 1)"),
            ("20 * T**0.5 * W_query", "20 * T**0.5 * W_query.triu()"),
        ],
    ),
)


@core.exercise("03.2 A head made by hand", LOOK_BACK)
def check_look_back(answer: Any) -> str:
    """answer(T, distance) -> W_query, W_key: each t looks at t - distance."""

    def work(program: Callable, T: int, distance: int) -> torch.Tensor:
        return _looks(program(T, distance), distance, T)

    hint = "Row t of W_query is the query of place t: it must equal key t - distance."
    cases = [(3, 1), (4, 2), (6, 1), (9, 3), (16, 5), (64, 7)]
    core.compare(answer, LOOK_BACK, cases, atol=1e-4, work=work, hint=hint)
    return "6 pairs of T and distance, always at least 99 % of the attention"


REACH = Solution(
    """
def reach(model, idx):
    places = torch.arange(idx.shape[1])  # (T,)
    x = model.token_embedding(idx) + model.position_embedding(places)
    head = model.body
    weights = attention_weights(head.query(x), head.key(x))  # (B, T, T)
    distances = places[:, None] - places  # (T, T)
    return (weights * distances).sum(dim=-1)  # (B, T)
""",
    Mistake(
        "The causal mask is missing: the weights also go to what comes later.",
        [
            (
                "attention_weights(head.query(x), head.key(x))",
                "attention_weights(head.query(x), head.key(x), False)",
            )
        ],
    ),
    Mistake(
        "You count the characters in between: the one before t is one step away, not "
        "none.",
        [("places[:, None] - places", "(places[:, None] - places - 1).clamp(min=0)")],
    ),
    Mistake(
        "You take the distances of later places as zeros, but the weights still go "
        "there: the causal mask is missing.",
        [
            (
                "attention_weights(head.query(x), head.key(x))",
                "attention_weights(head.query(x), head.key(x), False)",
            ),
            ("places[:, None] - places", "(places[:, None] - places).clamp(min=0)"),
        ],
    ),
    Mistake(
        "You give the average place that is looked at, not how far away it is.",
        [("places[:, None] - places", "places")],
    ),
    Mistake(
        "Query and key have changed places: the keys ask.",
        [("head.query(x), head.key(x)", "head.key(x), head.query(x)")],
    ),
    Mistake(
        "You take the likeliest place alone; wanted is the mean over all places.",
        [
            (
                "(weights * distances).sum(dim=-1)",
                "(places - weights.argmax(dim=-1)).float()",
            )
        ],
    ),
    Mistake(
        "`weights @ distances` mixes distances of different queries: "
        "each weight meets the distance of its own t and i, entry by "
        "entry, and then the row is summed.",
        [
            ("(weights * distances).sum(dim=-1)", "weights @ distances.float()"),
        ],
    ),
    Mistake(
        "The position table is asked by the ids; a character's place "
        "is 0, 1, 2, ... along the text.",
        [
            (
                "model.position_embedding(places)",
                "model.position_embedding(idx % idx.shape[1])",
            ),
        ],
    ),
    Mistake(
        "Without scale and without mask these are not the weights of "
        "your model: attention_weights(q, k) gives them.",
        [
            (
                "attention_weights(head.query(x), head.key(x))",
                "(head.query(x) @ head.key(x).mT).softmax(dim=-1)",
            ),
        ],
    ),
    Mistake(
        "The position table is missing: the model adds a row of it to each "
        "character's.",
        [(" + model.position_embedding(places)", "")],
    ),
    Mistake(
        "Queries meet the values here; a weight comes from a query and a key.",
        [
            ("head.key(x))", "head.value(x))"),
        ],
    ),
    Mistake(
        "Your distances are one too large: a position looks back 0 places at itself.",
        [
            ("places[:, None] - places", "places[:, None] - places + 1"),
        ],
    ),
    Mistake(
        "The distances of all queries are added up for each place that "
        "is looked at; the result has one for each query: sum over the "
        "last dimension.",
        [
            (".sum(dim=-1)", ".sum(dim=-2)"),
        ],
    ),
    Mistake(
        "Two things at once. The position embedding is missing: the head reads the "
        "sum of both tables. And your distances are negative: query t looks t - i "
        "back at place i.",
        [
            (" + model.position_embedding(places)", ""),
            ("places[:, None] - places", "places - places[:, None]"),
        ],
    ),
    attention_weights=attention_weights,
    helpers=(attention_weights, attention),
)


@core.exercise("03.3 How far back your model looks", REACH)
def check_reach(answer: Any, model: LanguageModel, data: torch.Tensor) -> str:
    """answer(model, idx) -> mean distance (B, T); small models and the learner's."""
    sizes = [(5, 8, 4, 3, (1, 3)), (7, 9, 3, 6, (2, 5)), (6, 7, 5, 5, (3, 7))]
    cases = [(_model(*size), randint(size[0], *shape)) for *size, shape in sizes]
    T = model.block_size
    count = min(32, (len(data) - 1) // T)
    idx = data[: count * T].view(count, T)
    cases.append((model, idx))
    solution = REACH
    hint = "The lesson's picture of a trained head shows the way to the weights."
    core.compare(answer, solution, cases, hint=hint)
    mean, even = solution(model, idx).mean(), (idx.shape[1] - 1) / 4
    return f"4 models; yours looks {mean:.1f} characters back (evenly: {even:.2f})"


def _filled(
    program: Callable, vocab_size: int, block_size: int, n_embd: int, idx: torch.Tensor
) -> Any:
    """Logits of the model that program makes, its numbers set by their names."""
    model = program(vocab_size, block_size, n_embd)
    known = TINY_MODEL.program(vocab_size, block_size, n_embd).state_dict()
    if more := set(dict(model.named_parameters())) - set(known):
        raise core.Explained(
            f"The model has a layer more, {min(more)!r}: the check cannot set it.",
            "Leave the layers and their names as they were; forward has the bug.",
        )
    if gone := set(known) - set(dict(model.named_parameters())):
        raise core.Explained(
            f"The model has no {min(gone)!r} any more: it keeps no such table.",
            "Layers are made in __init__. What is made in forward is new, of random "
            "numbers, in every call, and no optimizer knows it.",
        )
    out = _fill(model)(idx)
    return out[0] if isinstance(out, tuple) else out


TINY_MODEL = Solution(
    """
class TinyModel(nn.Module):
    def __init__(self, vocab_size, block_size, n_embd):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.position_embedding = nn.Embedding(block_size, n_embd)
        self.body = Head(n_embd, n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx):
        positions = torch.arange(idx.shape[1], device=idx.device)
        token = self.token_embedding(idx)  # (B, T, C)
        position = self.position_embedding(positions)  # (T, C)
        return self.lm_head(self.body(token + position))
""",
    Mistake(
        "The bug is still there: after 0123 and after 2103 the model predicts "
        "the same, as if it could not tell who sat where.",
        [
            ("positions = torch.arange(idx.shape[1], device=idx.device)", "pass"),
            ("self.position_embedding(positions)", "self.position_embedding(idx)"),
        ],
        hint="Print what is added to the token vectors for 0123, and for 2103.",
        untouched=True,
    ),
    Mistake(
        "The positions come too late, when the head has mixed all.",
        [("self.body(token + position)", "self.body(token) + position")],
    ),
    Mistake(
        "You look up the place of the text in the batch, not of the character "
        "in the text.",
        [
            (
                "self.position_embedding(positions)",
                "self.position_embedding(torch.arange(len(idx)))[:, None]",
            )
        ],
    ),
    Mistake(
        "All characters get the vector of one place: each needs that of its own.",
        [
            (
                "self.position_embedding(positions)",
                "self.position_embedding(positions[-1:])",
            )
        ],
    ),
    Mistake(
        "These are the ranks of the ids; the place counts 0, 1, 2 along the text.",
        [
            (
                "self.position_embedding(positions)",
                "self.position_embedding(idx.argsort(1).argsort(1))",
            )
        ],
    ),
    Mistake(
        "You count the places from the end of the text: when it grows, "
        "every character gets another vector. Count from the beginning.",
        [
            (
                "torch.arange(idx.shape[1], device=idx.device)",
                "torch.arange(idx.shape[1]).flip(0)",
            ),
        ],
    ),
    Mistake(
        "You multiply by the place's vector; the lesson's model adds it.",
        [
            ("token + position", "token * position"),
        ],
    ),
    Mistake(
        "The places are looked up in the table of tokens; they have a "
        "table of their own.",
        [
            ("self.position_embedding(positions)", "self.token_embedding(positions)"),
        ],
    ),
    Mistake(
        "Your places begin at 1; the first is 0, and the last of a text of block_size "
        "tokens is block_size - 1.",
        [
            (
                "torch.arange(idx.shape[1], device=idx.device)",
                "torch.arange(1, idx.shape[1] + 1)",
            ),
        ],
    ),
    Mistake(
        "The place's vector is taken away from the token's; the lesson's "
        "model adds it.",
        [
            ("token + position", "token - position"),
        ],
    ),
    Head=Head,
)


@core.exercise("03.4 The model that cannot spell", TINY_MODEL)
def check_word_order(answer: Any) -> str:
    """answer(vocab_size, block_size, n_embd) -> a model that knows who sits where."""
    sizes = [(5, 8, 6, 1, 4), (5, 8, 6, 2, 3), (11, 7, 4, 3, 7), (9, 9, 5, 4, 2)]
    cases = [(V, size, C, randint(V, B, T)) for V, size, C, B, T in sizes]
    hint = "Add to a token's vector one that depends on its place alone."
    core.compare(answer, TINY_MODEL, cases, work=_filled, hint=hint)
    return "4 inputs: each place has a vector of its own, up to block_size tokens"
