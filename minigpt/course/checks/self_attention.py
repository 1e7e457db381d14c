"""The exercises of lesson 03: scores, a head by hand, its reach, and a bug."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn

from minigpt.attention import Head, attention_weights
from minigpt.course.checks.exercise import Wrong, exercise
from minigpt.language_model import LanguageModel

# (B, T, C) = (1, 2, 2) and head_size 4, whose root is 2
X = torch.tensor([[[1.0, 0.0], [1.0, 2.0]]])
TO_QUERY = torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 1.0]])
TO_KEY = torch.tensor([[3.0, 1.0, 1.0, 0.0], [0.0, 2.0, 4.0, 1.0]])
NUMBERS = torch.tensor([[[1.0], [2.0], [0.0]], [[3.0], [-1.0], [2.0]]])  # (2, 3, 1)


@exercise(
    "03.1 One line and its root",
    cases=[
        (X, TO_QUERY, TO_KEY),
        (NUMBERS, torch.tensor([[2.0]]), torch.tensor([[3.0]])),
        (X.transpose(0, 1), TO_QUERY, TO_KEY),  # not contiguous
    ],
    fresh=lambda: [
        (torch.randn(3, 6, 4), torch.randn(4, 2), torch.randn(4, 2)),
        (torch.randn(2, 5, 7), torch.randn(7, 9), torch.randn(7, 9)),
    ],
    hint="Every query meets every key, so the scores are (B, T, T). A sum of head_size "
    "products of such numbers has which variance, whatever x is?",
)
def scaled_scores(
    x: torch.Tensor, W_query: torch.Tensor, W_key: torch.Tensor
) -> torch.Tensor:
    """A function of x (B, T, C), W_query and W_key that returns scores (B, T, T)."""
    q, k = x @ W_query, x @ W_key  # (B, T, head_size) each
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores


scaled_scores.mistakes("""
You divide by the root of C, the size of x. The products are sums of head_size numbers.
    / q.shape[-1] -> / x.shape[-1]
Rows and columns are swapped: here the keys ask the queries. The queries belong to the
rows.
    q @ k.transpose -> k @ q.transpose
""")
check_scaled_scores = scaled_scores.check


def _weights(look_back: Callable, T: int, distance: int) -> torch.Tensor:
    """The head's weights (T, T); a row with 99 % at the right position is perfect."""
    q, k = (torch.as_tensor(W) for W in look_back(T, distance))  # x is the identity
    if not q.is_floating_point() or not k.is_floating_point() or len(q) != T:
        raise Wrong(
            f"Both matrices should be ({T}, head_size) and hold floats. Yours are "
            f"{tuple(q.shape)} {q.dtype} and {tuple(k.shape)} {k.dtype}."
        )
    marked = torch.ones(T, T).tril(-distance).triu(-distance)
    weights = attention_weights(q.float(), k.float())
    share = (weights * marked).sum(dim=-1, keepdim=True)
    return torch.where(share >= 0.99, marked, weights) * marked.any(-1, keepdim=True)


@exercise(
    "03.2 A head made by hand",
    cases=[(3, 1), (4, 2), (6, 1), (9, 3), (64, 7)],
    fresh=lambda: [(int(torch.randint(8, 16, ())), int(torch.randint(2, 6, ())))],
    work=_weights,
    atol=1e-4,
    hint="The check shows the head's weights. Row t of W_query is the query of "
    "position t. Which row of W_key should it be similar to?",
)
def look_back(T: int, distance: int) -> tuple:
    """A function of T and distance that returns W_query, W_key."""
    W_key = torch.eye(T)  # key i is one at place i
    W_query = torch.eye(T).roll(-distance, dims=1)  # one at t - distance
    return 20 * T**0.5 * W_query, W_key


look_back.wrong(
    "Your head looks at the right positions, but gives them less than 99 % of its "
    "attention.",
    sign=lambda got, right, *_: torch.equal(got.argmax(-1), right.argmax(-1)),
    hint="How does the softmax change when all scores are ten times as large?",
)
check_look_back = look_back.check


def _looking(weight: torch.Tensor) -> LanguageModel:
    """A model of 4 ids and 4 positions; its scores are 40 * (position @ weight)."""
    model, eye = LanguageModel(4, 4, 4, Head(4, 4)), torch.eye(4)
    numbers = torch.zeros(4, 4), eye, eye, 40 * weight  # tokens, positions, key, query
    for p, new in zip(model.parameters(), numbers):
        p.data = new
    return model


IDS = torch.tensor([[2, 0, 1, 1]])


@exercise(
    "03.3 How far back your model looks",
    cases=[
        ("looks evenly at all it may see", _looking(torch.zeros(4, 4)), IDS),
        ("looks one step back", _looking(torch.eye(4).roll(-1, dims=0)), IDS),
    ],
    fresh=lambda: [
        ("random", LanguageModel(5, 8, 4, Head(4, 3)), torch.randint(5, (1, 3))),
        ("random", LanguageModel(7, 9, 3, Head(3, 6)), torch.randint(7, (2, 5))),
    ],
    work=lambda reach, head, model, idx: reach(model, idx),
    hint="What does a head read? Follow idx through the model up to the weights, and "
    "then use them to average the distances.",
)
def reach(model: LanguageModel, idx: torch.Tensor) -> torch.Tensor:
    """A function of a model and idx (B, T) that returns mean distances (B, T)."""
    places = torch.arange(idx.shape[1])  # (T,)
    x = model.token_embedding(idx) + model.position_embedding(places)
    head = model.body
    weights = attention_weights(head.query(x), head.key(x))  # (B, T, T)
    distances = places[:, None] - places  # (T, T)
    return (weights * distances).sum(dim=-1)  # (B, T)


reach.mistakes("""
The head reads the sum of two tables. The position embedding is missing.
    + model.position_embedding(places) ->
""")
check_reach = reach.check


def _logits(
    TinyModel: Callable,
    token_embedding: torch.Tensor,
    position_embedding: torch.Tensor,
    idx: torch.Tensor,
) -> Any:
    """Of a model with these two tables, whose head looks evenly at all it may see."""
    (V, C), T = token_embedding.shape, len(position_embedding)
    model = TinyModel(V, T, C)
    for p in model.parameters():
        p.data = torch.eye(*p.shape) if p.dim() == 2 else torch.zeros_like(p)
    model.token_embedding.weight.data = token_embedding
    model.position_embedding.weight.data = position_embedding
    model.body.query.weight.data.zero_()
    out = model(idx)
    return out[0] if isinstance(out, tuple) else out


TOKENS = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
POSITIONS = torch.tensor([[0.0, 1.0], [6.0, 0.0], [9.0, 8.0]])


@exercise(
    "03.4 The model that cannot spell",
    cases=[
        (TOKENS, POSITIONS, torch.tensor([[1, 0]])),
        (TOKENS, POSITIONS, torch.tensor([[0, 1, 1], [1, 1, 1]])),
    ],
    fresh=lambda: [
        (torch.randn(5, 3), torch.randn(8, 3), torch.randint(5, (2, 4))),
        (torch.randn(7, 4), torch.randn(9, 4), torch.randint(7, (3, 9))),
    ],
    work=_logits,
    call="check_word_order(TinyModel)",
    hint="In these models the head passes on the mean of all vectors so far. What "
    "should a character at position 1 add to its own vector?",
)
class TinyModel(nn.Module):
    """A class whose models know the order of their characters."""

    def __init__(self, vocab_size: int, block_size: int, n_embd: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.position_embedding = nn.Embedding(block_size, n_embd)
        self.body = Head(n_embd, n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(idx.shape[1], device=idx.device)
        token = self.token_embedding(idx)  # (B, T, C)
        position = self.position_embedding(positions)  # (T, C)
        return self.lm_head(self.body(token + position))


TinyModel.mistakes("""
The bug is still there: after 0123 and after 2103 the model predicts the same. It can't
tell which character came first.
    positions = torch.arange(idx.shape[1], device=idx.device) ->
    embedding(positions) -> embedding(idx)
    Hint: Print `position` for 0123 and for 2103.
The positions come too late: the head has mixed the characters already.
    self.body(token + position) -> self.body(token) + position
""")
check_word_order = TinyModel.check


LM_HEAD = torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]])  # (V, head_size) = (3, 2)
VALUE = torch.tensor([[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, 4.0]])  # (2, C) = (2, 4)


@exercise(
    "03.5 A head without values",
    cases=[(LM_HEAD, VALUE), (LM_HEAD[:2], VALUE[:, :2])],
    fresh=lambda: [
        (torch.randn(5, 3), torch.randn(3, 4)),
        (torch.randn(2, 6), torch.randn(6, 2)),
    ],
    hint="A layer without a bias multiplies by its weight transposed: nn.Linear(C, d) "
    "holds (d, C). What's the transpose of a product?",
)
def folded(lm_head: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A function of two weights, lm_head (V, head_size) and value (head_size, C), that
    returns one weight (V, C)."""
    return lm_head @ value  # (V, C)


folded.mistakes("""
That's the transpose. A layer from n_embd to vocab_size holds a weight of (vocab_size,
n_embd).
    lm_head @ value -> (lm_head @ value).T
""")
check_folded = folded.check
