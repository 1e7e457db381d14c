"""The exercises of lesson 01: surprise, windows, counts, losses, text and two bugs."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import BigramLanguageModel
from minigpt.course.checks.exercise import exercise
from minigpt.course.checks.results import same
from minigpt.data import CharTokenizer, get_batch


@exercise(
    "01.1 How surprised was it?",
    cases=[
        (torch.tensor([0.5, 0.125]),),
        (torch.tensor([1.0]),),
        (torch.tensor([0.2] * 5),),
        (torch.tensor([0.0001, 0.5]),),
    ],
    fresh=lambda: [(0.1 + 0.9 * torch.rand(n),) for n in (7, 650)],
    hint="How surprising is a character whose probability was p? Average that.",
)
def surprise(p: torch.Tensor) -> torch.Tensor:
    """A function of p (N,), the probabilities of what came, that returns a number."""
    return -p.log().mean()


surprise.wrong(
    "You weigh each surprise with its own p, but the text has done that already: "
    "likely characters come more often. Take the plain mean.",
    *("-p.log().mean()", "-(p * p.log()).sum()"),
)
surprise.wrong(
    "You weigh each surprise with its own p, but the text has done that already: "
    "likely characters come more often. Take the plain mean.",
    *("-p.log().mean()", "-(p * p.log()).mean()"),
)
surprise.wrong(
    "This is the logarithm of the mean. It forgives a bad surprise; the mean of the "
    "logarithms doesn't.",
    *("p.log().mean()", "p.mean().log()"),
)
surprise.wrong(
    "1 - p is what was left for the others. The surprise is -ln p.",
    *("-p.log().mean()", "(1 - p).mean()"),
)
surprise.wrong(
    "This is the surprise at the whole text. Divide it by the number of characters.",
    *("-p.log().mean()", "-p.log().sum()"),
)
surprise.wrong(
    "This is the logarithm of the mean of 1/p, so one bad surprise outweighs all "
    "others. Take the logarithm of each p first.",
    *("-p.log().mean()", "(1 / p).mean().log()"),
)
surprise.wrong(
    "This is e to the power of the loss. The logarithm is missing.",
    *("-p.log().mean()", "(-p.log().mean()).exp()"),
)
surprise.wrong(
    "This is the surprise in bits. In nats, it's the natural logarithm.",
    *("p.log()", "p.log2()"),
)
surprise.wrong(
    "A probability is at most 1, so its logarithm is negative. A surprise is positive.",
    *("-p.log()", "p.log()"),
)
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


X, Y = "data[: n * block_size]", "data[1 : n * block_size + 1]"
tile.wrong(
    "The targets of the last window aren't all there: the last character has no next "
    "one. So there may be one window fewer.",
    "(len(data) - 1) // block_size",
    "len(data) // block_size",
)
tile.wrong(
    "You always leave out the last window. Its targets are there unless block_size "
    "divides N.",
    "(len(data) - 1) // block_size",
    "len(data) // block_size - 1",
)
tile.wrong(
    "Your windows run down the columns, so neighbors in a row aren't neighbors in the "
    "text.",
    *(".view(n, block_size)", ".view(block_size, n).T"),
)
tile.wrong(
    "You cut windows of block_size + 1, so the last character of each is never an "
    "input.",
    "x = data[",
    "data = data[: len(data) // (block_size + 1) * (block_size + 1)]; x = data[",
    "return x, y",
    "w = data.view(-1, block_size + 1); return w[:, :-1], w[:, 1:]",
)
tile.wrong(
    "Your windows overlap: one begins at every character.",
    "return x, y",
    "return [d.unfold(0, block_size, 1) for d in (data[:-1], data[1:])]",
)
tile.wrong(
    "Your targets are the whole next window. They should be shifted by one character, "
    "not by block_size.",
    *("(len(data) - 1) // block_size", "len(data) // block_size - 1"),
    *(Y, "data[block_size : (n + 1) * block_size]"),
)
tile.wrong(
    "The last target of each window is that window's own first character. It should be "
    "the character that follows in the text.",
    *(f"{Y}.view(n, block_size)", "x.roll(-1, dims=1)"),
)
tile.wrong(
    "The very last target is the first character of the text, because roll goes round "
    "in a circle.",
    *(Y, f"{X}.roll(-1)"),
)
tile.wrong(
    "Your windows are cut from the end of the text. They should begin at position 0, "
    "and what doesn't fill a window is left out at the end.",
    *(X, "data[len(data) - n * block_size - 1 : -1]"),
    *(Y, "data[len(data) - n * block_size :]"),
)
tile.wrong("Your targets are the inputs themselves. y should begin one later.", Y, X)
tile.wrong(
    "Each window has only one target, the character after it. Every position needs "
    "one.",
    *(f"{Y}.view(n, block_size)", "data[block_size::block_size][:n]"),
)
tile.wrong(
    "You fill up the last window with zeros that aren't in the text. A window without "
    "all its targets is left out.",
    "n = (len(data) - 1) // block_size",
    "n = -(-(len(data) - 1) // block_size); data = F.pad(data, (0, n * block_size + 1 "
    "- len(data)))",
)
check_tile = tile.check


def _most_predictable(data: torch.Tensor, tokenizer: CharTokenizer) -> str:
    table, text = before_table(data[:50_000], tokenizer.vocab_size), data[:50_000]
    often = torch.bincount(text, minlength=tokenizer.vocab_size) >= 100
    most = (table * often[:, None]).argmax().item()
    seen, before = divmod(int(most), tokenizer.vocab_size)
    chars, share = tokenizer.chars, table[seen, before]
    return (
        f"The easiest guess in your text is what comes before {chars[seen]!r}: it's "
        f"{chars[before]!r} with probability {share:.2f}."
    )


@exercise(
    "01.3 Read it backwards",
    cases=lambda data, tokenizer: [
        (torch.tensor([0, 1, 0, 1, 1, 2]), 3),
        (torch.tensor([2, 0, 0, 0, 1, 0, 2]), 4),
        (data[:300], tokenizer.vocab_size),
    ],
    fresh=lambda *_: [(torch.randint(5, (60,)), n) for n in (5, 9)],
    hint="The second character of a pair chooses the row. Divide each row by its sum.",
    reward=_most_predictable,
)
def before_table(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """A function of ids (N,) and vocab_size that returns a table (V, V)."""
    table = torch.ones(vocab_size, vocab_size)
    for a, b in zip(ids[:-1].tolist(), ids[1:].tolist()):
        table[b, a] += 1
    return table / table.sum(dim=1, keepdim=True)


before_table.wrong(
    "This is the lesson's table, forwards: your row i tells what comes after i.",
    *("table[b, a]", "table[a, b]"),
)
before_table.wrong(
    "Repeated pairs count only once. table[rows, columns] += 1 with lists does that: "
    "it writes each place once.",
    *("+= 1", "= 2"),
)
before_table.wrong(
    "You count one pair too many: the last character before the first one.",
    *("ids[1:]", "ids.roll(-1)", "ids[:-1]", "ids"),
)
before_table.wrong(
    "Your columns sum to one, but your rows should. Swap the counts first, then divide "
    "each row by its sum.",
    *("dim=1", "dim=0"),
)
before_table.wrong(
    "Your columns sum to one, but your rows should. Swap the counts first, then divide "
    "each row by its sum.",
    *("table[b, a]", "table[a, b]", "return table / table.sum(dim=1, keepdim=True)"),
    "return (table / table.sum(dim=1, keepdim=True)).T",
)
before_table.wrong(
    "Every count is one too high. A table that begins with ones has its 1 already.",
    *("torch.ones(vocab_size, vocab_size)", "torch.full((vocab_size,) * 2, 2.0)"),
)
before_table.wrong(
    "Only the pairs that never came get a 1. Every count gets one more.",
    *("torch.ones", "torch.zeros"),
    *("return table /", "return (table := table.clamp(min=1)) /"),
)
before_table.wrong(
    "The 1 for each pair is missing, so what was never seen gets 0.",
    *("torch.ones", "torch.zeros", "table.sum(dim=1, keepdim=True)"),
    "table.sum(dim=1, keepdim=True).clamp(min=1)",
)
before_table.wrong(
    "You take the softmax of the counts, which raises e to the power of each. Divide "
    "each row by its sum instead.",
    *("table / table.sum(dim=1, keepdim=True)", "table.softmax(dim=1)"),
)
before_table.wrong(
    "The 1 is added to the probabilities. Add it to the counts, before you divide.",
    *("torch.ones", "torch.zeros", "return table / table.sum(dim=1, keepdim=True)"),
    "return table / table.sum(dim=1, keepdim=True) + 1",
)
before_table.wrong(
    "You divide by the sums from before the ones were added. They add vocab_size to "
    "each.",
    *(
        "table.sum(dim=1, keepdim=True)",
        "(table.sum(dim=1, keepdim=True) - vocab_size)",
    ),
)
before_table.wrong(
    "You count every character that comes anywhere before. Only the one right before "
    "counts.",
    "zip(ids[:-1].tolist(), ids[1:].tolist())",
    "((ids[j].item(), ids[i].item()) for i in range(len(ids)) for j in range(i))",
)
check_before_table = before_table.check


# Two texts, three positions, four characters, and the logarithms of easy numbers
EASY = torch.tensor(
    [
        [[1.0, 1, 1, 1], [1, 1, 2, 4], [4, 2, 1, 1]],
        [[8.0, 4, 2, 2], [1, 1, 1, 1], [2, 2, 2, 2]],
    ]
).log()
NEXT = torch.tensor([[0, 3, 2], [2, 1, 3]])


def _batch(model: nn.Module, data: torch.Tensor) -> list[tuple]:
    x, y = get_batch(data, 256, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return [(model(x)[0], y)]


def _first_and_last(model: nn.Module, data: torch.Tensor) -> str:
    x, y = get_batch(data, 4096, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        losses = loss_by_position(model(x)[0], y)
    return (
        f"Your model loses {losses[0]:.2f} nats at first and {losses[-1]:.2f} at last."
    )


def _of_any_size(*_: Any) -> list[tuple]:
    sizes = [(2, 3, 3), (4, 5, 5), (4, 6, 5), (5, 1, 3)]
    return [(2 * torch.randn(B, T, C), torch.randint(C, (B, T))) for B, T, C in sizes]


@exercise(
    "01.4 Does it get wiser along the line?",
    cases=lambda model, data: [(EASY, NEXT), (EASY[:, :1], NEXT[:, :1])],
    fresh=lambda model, data: [*_of_any_size(), *_batch(model, data)],
    hint="F.cross_entropy takes (B * T, C) and (B * T,). Which mean do you want at the "
    "end: over the texts, or over the positions?",
    reward=_first_and_last,
)
def loss_by_position(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A function of logits (B, T, C) and y (B, T) that returns losses (T,)."""
    B, T, C = logits.shape
    rows = logits.reshape(B * T, C)
    each = F.cross_entropy(rows, y.reshape(B * T), reduction="none")
    return each.view(B, T).mean(dim=0)


def _not_flattened(got: Any, _: Any, logits: torch.Tensor, y: torch.Tensor) -> bool:
    """cross_entropy takes dimension 1 for the classes."""
    each = F.cross_entropy(logits, y, reduction="none")
    return same(got, each.mean(dim=0)) or same(got, each.mean())


def _one_more_shift(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    each = F.cross_entropy(logits[:, :-1].transpose(1, 2), y[:, 1:], reduction="none")
    return each.mean(dim=0)


def _mixed_up(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    B, T, C = logits.shape
    each = F.cross_entropy(logits.reshape(B, C, T), y, reduction="none")
    return each.mean(dim=0)


LAST = "each.view(B, T).mean(dim=0)"
loss_by_position.wrong(
    "cross_entropy took your T time steps for classes, because nothing was flattened. "
    "If T = C it doesn't even complain.",
    sign=_not_flattened,
)
loss_by_position.wrong(
    "y already holds the character after each position. You shift the logits and the "
    "targets against each other once more.",
    _one_more_shift,
)
loss_by_position.wrong(
    "y already holds the character after each position. You shift it once more, in a "
    "circle.",
    *("y.reshape(B * T)", "y.roll(-1, dims=1).reshape(B * T)"),
)
loss_by_position.wrong(
    "reshape to (B, C, T) mixes the logits of different positions. transpose swaps "
    "dimensions.",
    _mixed_up,
)
loss_by_position.wrong(
    "The losses lie text by text, so view(T, B) mixes positions. Use view(B, T).",
    *(LAST, "each.view(T, B).mean(dim=1)"),
)
loss_by_position.wrong(
    "You average the probabilities first. Average the losses, -ln p.",
    *(LAST, "-(-each).exp().view(B, T).mean(dim=0).log()"),
)
loss_by_position.wrong(
    "This is the mean of 1 - p, which is what was left for others. A loss is -ln p.",
    *(LAST, "(1 - (-each).exp()).view(B, T).mean(dim=0)"),
)
loss_by_position.wrong(
    "This is the mean probability of what came. The loss is -ln p, averaged.",
    *(LAST, "(-each).exp().view(B, T).mean(dim=0)"),
)
loss_by_position.wrong(
    "You count wrong guesses. The loss asks how probable the right character was: -ln "
    "p.",
    *(LAST, "(logits.argmax(-1) != y).float().mean(dim=0)"),
)
loss_by_position.wrong(
    "This is the entropy of what the model expects. The loss is the surprise at what "
    "came: -ln p of the target.",
    "return each.view(B, T)",
    "p = logits.softmax(-1); return -(p * p.log()).sum(-1)",
)
loss_by_position.wrong(
    "There's a softmax too many: cross_entropy has one inside.",
    *("rows = logits", "rows = logits.softmax(-1)"),
)
loss_by_position.wrong(
    "Each of your numbers is the mean of all positions up to it. You want each "
    "position's own loss.",
    *(".mean(dim=0)", ".mean(dim=0).cumsum(0) / torch.arange(1, T + 1)"),
)
loss_by_position.wrong(
    "These are the losses of the last text alone. Take the mean over all texts.",
    *("mean(dim=0)", "select(0, -1)"),
)
check_loss_by_position = loss_by_position.check


class SumModel(nn.Module):
    """Certain that the next id is the sum of all so far plus one, modulo 7."""

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, None]:
        nexts = (idx.cumsum(dim=1) + 1) % 7  # (B, T)
        return F.one_hot(nexts, 7) * 50.0, None  # e^50 is a number yet


class OneToFour(nn.Module):
    """Gives id 1 four times the probability of id 0, whatever came before."""

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, None]:
        logits = torch.tensor([0.2, 0.8]).log()
        return logits.expand(*idx.shape, 2), None


def _text_and_share(write_on: Callable, idx: torch.Tensor, max_new_tokens: int) -> Any:
    """What is written after idx; how often another model draws what it should."""
    text = write_on(SumModel(), idx, max_new_tokens)
    if not isinstance(text, torch.Tensor):
        return text
    drawn = write_on(OneToFour(), torch.zeros(1000, 2, dtype=torch.long), 1)
    share = torch.as_tensor(drawn)[:, -1].double().mean()
    return text, round(share.item(), 1)


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


write_on.wrong(
    "The bug is still there: after the `u` comes another `u`, and another.",
    *("[:, -1]", "[:, 0]"),
    hint="Print idx and the shape of `now` in each step.",
    untouched=True,
)
write_on.wrong(
    "The model only sees the last character. The bigram doesn't mind, but every later "
    "model needs the whole text so far.",
    *("model(idx)", "model(idx[:, -1:])"),
)
write_on.wrong(
    "After the first step the model only sees what was drawn last. The bigram doesn't "
    "mind, but every later model needs the whole text so far.",
    *("    for _ in", "    out = idx\n    for _ in", "return idx", "return out"),
    "idx = torch.cat([idx, drawn], dim=1)",
    "idx, out = drawn, torch.cat([out, drawn], dim=1)",
)
write_on.wrong(
    "You always write the most likely character. Nothing is drawn.",
    "torch.multinomial(probs, num_samples=1)",
    "probs.argmax(dim=-1, keepdim=True)",
)
write_on.wrong(
    "max_new_tokens isn't the length of the whole text. It's how many tokens you add.",
    *("range(max_new_tokens)", "range(max_new_tokens - idx.shape[1])"),
)
write_on.wrong(
    "You mix what all positions say. Only the last one is about the next character.",
    *("logits[:, -1]", "logits.mean(dim=1)"),
)
write_on.wrong(
    "You return the new characters alone. Return the whole text, idx included.",
    *("return idx", "return idx[:, -max_new_tokens:]"),
)
write_on.wrong(
    "You draw all new characters from the first answer. Ask the model again whenever "
    "the text has grown.",
    "    for _ in range(max_new_tokens):\n        logits, _ = model(idx)",
    "    logits, _ = model(idx)\n    for _ in range(max_new_tokens):\n        pass",
)
write_on.wrong(
    "Every text gets the character of the last one. The first dimension holds the "
    "texts, the second one the positions.",
    *("logits[:, -1]", "logits[-1]"),
    *("num_samples=1)", "num_samples=1)[-1].expand(len(idx), 1)"),
)
write_on.wrong(
    "The softmax is taken twice, which makes the probabilities nearly even.",
    *("F.softmax(now, dim=-1)", "F.softmax(now, dim=-1).softmax(dim=-1)"),
)
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


# fmt: off
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
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate
    )
    for x, y in batches:
        _, loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
# fmt: on


CLEAR = "optimizer.zero_grad()"
fit.wrong(
    "The bug is still there: the first steps help, but then the loss climbs back up.",
    *(CLEAR, "pass"),
    hint="Print the norm of the gradient in each step.",
    untouched=True,
)
fit.wrong(
    "You made the gradient shorter, but it's still the sum over all steps so far.",
    *(CLEAR, "pass", "loss.backward()"),
    "loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1)",
)
fit.wrong(
    "You divide the gradient, but it's still the sum over all steps so far.",
    *(CLEAR, "pass", "loss.backward()"),
    "loss.backward(); [p.grad.div_(len(losses) + 1) for p in model.parameters()]",
)
fit.wrong(
    "The parameters are set to zero, not their gradients. Everything learned is gone "
    "after every step.",
    *(CLEAR, "[p.data.zero_() for p in model.parameters()]"),
)
fit.wrong(
    "The parameters are set to zero, not their gradients. Everything learned is gone "
    "after every step.",
    *(CLEAR, "pass", "losses.append", "[p.data.zero_() for p in model.parameters()]"),
    *("(loss.item())", "; losses.append(loss.item())"),
)
fit.wrong(
    "A new optimizer in every round has forgotten all earlier steps. Make it once, "
    "before the loop.",
    *(
        CLEAR,
        f"optimizer = torch.optim.AdamW(model.parameters(), learning_rate); {CLEAR}",
    ),
)
fit.wrong(
    "Nothing is learned: every loss is that of the model you began with. step() needs "
    "a gradient that backward() has just computed.",
    *("optimizer.step()", "pass"),
)
check_fit = fit.check
