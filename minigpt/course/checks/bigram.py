"""The exercises of lesson 01: surprise, windows, counts, losses, text and two bugs."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import BigramLanguageModel
from minigpt.course.checks.exercise import exercise


@exercise(
    "01.1 How surprised was it?",
    cases=[(torch.tensor(p),) for p in ([0.5, 0.125], [1.0], [0.2] * 5, [0.0001, 0.5])],
    fresh=lambda: [(0.1 + 0.9 * torch.rand(n),) for n in (7, 650)],
    hint="How surprising is a character whose probability was p? Average that.",
)
def surprise(p: torch.Tensor) -> torch.Tensor:
    """A function of p (N,), the probabilities of what came, that returns a number."""
    return -p.log().mean()


surprise.mistakes("""
You weigh each surprise with its own p, but the text has done that already: likely
characters come more often. Take the plain mean.
    -p.log().mean() -> -(p * p.log()).sum()
    or
    -p.log().mean() -> -(p * p.log()).mean()
This is the logarithm of the mean. It forgives a bad surprise; the mean of the
logarithms doesn't.
    p.log().mean() -> p.mean().log()
""")
check_surprise = surprise.check


EIGHT = torch.tensor([3, 1, 4, 0, 5, 9, 2, 6])


@exercise(
    "01.2 Every character once",
    cases=[
        *[(EIGHT, 3), (EIGHT[:5], 4), (EIGHT[:7], 3), (EIGHT[:6], 3), (EIGHT[:2], 1)],
        *[(torch.arange(n), size) for n, size in ((47, 4), (41, 8), (40, 8))],
    ],
    fresh=lambda: [(torch.randint(65, (n,)), 4) for n in (13, 14, 17)],
    hint="How many characters have a character after them? Cut that many into windows.",
    values=("x", "y"),
    exact=True,
)
def tile(data: torch.Tensor, block_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A function of data (N,) and block_size that returns x and y, both (n, T)."""
    n = (len(data) - 1) // block_size
    x = data[: n * block_size].view(n, block_size)
    y = data[1 : n * block_size + 1].view(n, block_size)
    return x, y


tile.mistakes("""
You cut windows of block_size + 1, so the last character of each is never an input.
    x = data[
        -> data = data[: len(data) // (block_size + 1) * (block_size + 1)]; x = data[
    return x, y -> w = data.view(-1, block_size + 1); return w[:, :-1], w[:, 1:]
Your windows overlap: one begins at every character.
    return x, y -> return [d.unfold(0, block_size, 1) for d in (data[:-1], data[1:])]
""")
check_tile = tile.check


@exercise(
    "01.3 Read it backwards",
    cases=[
        (torch.tensor([0, 1, 0, 1, 1, 2]), 3),
        (torch.tensor([2, 0, 0, 0, 1, 0, 2]), 4),
    ],
    fresh=lambda: [(torch.randint(5, (60,)), n) for n in (5, 9)],
    hint="The second character of a pair chooses the row. Divide each row by its sum.",
)
def before_table(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """A function of ids (N,) and vocab_size that returns a table (V, V)."""
    table = torch.ones(vocab_size, vocab_size)
    for a, b in zip(ids[:-1].tolist(), ids[1:].tolist()):
        table[b, a] += 1
    return table / table.sum(dim=1, keepdim=True)


before_table.mistakes("""
Repeated pairs count only once. table[rows, columns] += 1 with lists does that: it
writes each place once.
    += 1 -> = 2
Your columns sum to one, but your rows should. Swap the counts first, then divide each
row by its sum.
    dim=1 -> dim=0
""")
check_before_table = before_table.check


# Two texts, three positions, four characters, and the logarithms of easy numbers
EASY = torch.tensor(
    [
        [[1.0, 1, 1, 1], [1, 1, 2, 4], [4, 2, 1, 1]],
        [[8.0, 4, 2, 2], [1, 1, 1, 1], [2, 2, 2, 2]],
    ]
).log()
NEXT = torch.tensor([[0, 3, 2], [2, 1, 3]])


@exercise(
    "01.4 Does it get wiser along the line?",
    cases=[(EASY, NEXT), (EASY[:, :1], NEXT[:, :1])],
    fresh=lambda: [
        (2 * torch.randn(B, T, C), torch.randint(C, (B, T)))
        for B, T, C in [(2, 3, 3), (4, 5, 5), (4, 6, 5), (5, 1, 3)]
    ],
    hint="F.cross_entropy takes (B * T, C) and (B * T,). Which mean do you want at the "
    "end: over the texts, or over the positions?",
)
def loss_by_position(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A function of logits (B, T, C) and y (B, T) that returns losses (T,)."""
    B, T, C = logits.shape
    rows = logits.reshape(B * T, C)
    each = F.cross_entropy(rows, y.reshape(B * T), reduction="none")
    return each.view(B, T).mean(dim=0)


loss_by_position.mistakes("""
There's one softmax too many: cross_entropy has one inside.
    rows = logits -> rows = logits.softmax(-1)
reshape to (B, C, T) mixes the logits of different positions. transpose swaps
dimensions.
    reshape(B * T, C) -> reshape(B, C, T)
    y.reshape(B * T) -> y
Each of your numbers is the mean of all positions up to it. You want each position's own
loss.
    .mean(dim=0) -> .mean(dim=0).cumsum(0) / torch.arange(1, T + 1)
""")
check_loss_by_position = loss_by_position.check


class _Model(nn.Module):
    """A model of one line, whose logits anybody can calculate."""

    def __init__(self, logits: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.logits = logits

    def forward(self, idx: torch.Tensor, targets: Any = None) -> tuple:
        return self.logits(idx), None


SUM = _Model(lambda idx: F.one_hot((idx.cumsum(dim=1) + 1) % 7, 7) * 50.0)
DICE = _Model(lambda idx: torch.tensor([0.2, 0.8]).log().expand(*idx.shape, 2))


def _text_and_share(write_on: Callable, idx: torch.Tensor, max_new_tokens: int) -> Any:
    """What is written after idx; how often another model draws what it should."""
    text = write_on(SUM, idx, max_new_tokens)
    if text is None:
        return None
    drawn = write_on(DICE, torch.zeros(1000, 2, dtype=torch.long), 1)
    return text, round(drawn[:, -1].double().mean().item(), 1)


@exercise(
    "01.5 Quuuuuuuuuuuu",
    cases=[
        (torch.tensor([[2, 3]]), 1),
        (torch.tensor([[2, 3], [1, 5]]), 1),
        (torch.tensor([[2]]), 4),
    ],
    fresh=lambda: [(torch.randint(7, (2, 3)), 5)],
    hint="Which position tells what comes next? Take the softmax over C, and draw once "
    "for each row.",
    work=_text_and_share,
    values=(
        "With a model that always writes the sum of all ids so far plus 1 (modulo 7)",
        "With a model that gives character 1 a probability of 0.8, its share of 1000",
    ),
)
@torch.no_grad()
def write_on(model: nn.Module, idx: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    """A function of a model, idx (B, T) and max_new_tokens that returns longer ids."""
    for _ in range(max_new_tokens):
        logits, _ = model(idx)  # (B, T, C)
        now = logits[:, -1]  # (B, C): the last position
        probs = F.softmax(now, dim=-1)
        drawn = torch.multinomial(probs, num_samples=1)  # (B, 1)
        idx = torch.cat([idx, drawn], dim=1)  # (B, T + 1)
    return idx


write_on.mistakes("""
The bug is still there: after the `u` comes another `u`, and another.
    [:, -1] -> [:, 0]
    Hint: Print idx and the shape of `now` in each step.
The model only sees the last character. The bigram doesn't mind, but every later model
needs the whole text so far.
    model(idx) -> model(idx[:, -1:])
You always write the most likely character. Nothing is drawn.
    torch.multinomial(probs, num_samples=1) -> probs.argmax(dim=-1, keepdim=True)
""")
check_write_on = write_on.check


def _steps(
    fit: Callable, table: torch.Tensor, batches: list, learning_rate: float
) -> Any:
    """The losses of a model with this table."""
    model = BigramLanguageModel(len(table))
    model.token_embedding.weight.data = table.clone()
    return fit(model, batches, learning_rate)


def _batches(x: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(zip(x.split(1), x.roll(-1, dims=1).split(1)))


FOUR = torch.tensor([[0, 1, 2], [2, 2, 1], [1, 0, 0], [1, 2, 0]])


@exercise(
    "01.6 The loss that comes back up",
    cases=[(torch.zeros(3, 3), _batches(FOUR), 0.5)],
    fresh=lambda: [
        (torch.randn(5, 5), _batches(torch.randint(5, (n, 3))), 0.2) for n in (4, 6)
    ],
    hint="What does backward() do with a gradient that is already there?",
    work=_steps,
)
def fit(model: nn.Module, batches: list, learning_rate: float) -> list[float]:
    """A function of a model, batches and a learning_rate that returns the losses."""
    losses = []
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for x, y in batches:
        _, loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


fit.mistakes("""
The bug is still there: the first steps help, but then the loss climbs back up.
    optimizer.zero_grad() -> pass
    Hint: Print the norm of the gradient in each step.
You make a new optimizer in each step, so AdamW forgets its averages.
    for x, y in batches: -> for x, y in batches:
            optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
Nothing is learned: every loss is that of the model you began with. step() needs a
gradient that backward() has just computed.
    optimizer.step() -> pass
""")
check_fit = fit.check
