"""Checks for lesson 01: surprise, windows, counts, positions, text, and two bugs."""

from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import BigramLanguageModel
from minigpt.checks.core import (
    Difference,
    Explained,
    Mistake,
    Sign,
    as_tensor,
    attempted,
    call,
    compare,
    exercise,
    explain,
    same,
)
from minigpt.data import get_batch

FROM_0_TO_1 = "x begins at character 0 and y at character 1."
COUNT = "N characters have N - 1 targets: there are (N - 1) // T windows."


def _dice():
    return torch.Generator().manual_seed(1)


# 01.1


def _surprise(p, log=torch.log):
    return -log(p).mean()


SURPRISES = (
    Mistake(
        "You add the surprises up, so a longer text gets a larger loss.",
        "Divide by how many there are: the loss is their mean.",
        lambda p: -p.log().sum(),
    ),
    Mistake(
        "Your surprises are in bits (log base 2); the loss is in nats.",
        "Nats come from the natural logarithm: torch.log.",
        partial(_surprise, log=torch.log2),
    ),
    Mistake(
        "The sign is turned round: a surprise is never negative.",
        "The logarithm of a probability is negative; put a minus before it.",
        lambda p: p.log().mean(),
    ),
    Mistake(
        "You average the probabilities first and take the logarithm of that.",
        "Take the logarithm of each one, and the mean as the last step.",
        lambda p: -p.mean().log(),
    ),
    Mistake(
        "You weigh each surprise by its own p, but the text itself does the weighing.",
        "Drop the factor p and take the plain mean.",
        lambda p: -(p * p.log()).sum(),
    ),
    Mistake(
        "That is one surprise for each character; the loss is one number.",
        "Take the mean of them.",
        lambda p: -p.log(),
    ),
)


@exercise("01.1 How surprised was it?")
def check_surprise(surprise):
    """surprise(p): p (N,) probabilities of what came -> mean surprise in nats."""
    cases = [torch.tensor(p) for p in ([0.5, 0.125], [0.2] * 5, [1.0])]
    cases += [0.1 + 0.9 * torch.rand(n, generator=_dice()).double() for n in (7, 65)]
    compare(surprise, _surprise, [(p,) for p in cases], SURPRISES)
    return "5 texts, in nats, and a longer text costs no more than a short one."


# 01.2


def _tile(data, T, shift=1):
    n = (len(data) - 1) // T
    return data[: n * T].view(n, T), data.roll(-shift)[: n * T].view(n, T)


def _last_missing(got, expected, *inputs):
    return same(got[0], expected[0][:-1]) and same(got[1], expected[1][:-1])


def _one_too_many(got, expected, *inputs):
    return len(as_tensor(got[0])) == len(expected[0]) + 1


TILES = (
    Mistake(
        "Your targets are not shifted: a model would learn to repeat what it sees.",
        FROM_0_TO_1,
        partial(_tile, shift=0),
    ),
    Mistake(
        "Your targets are shifted twice: they skip a character.",
        FROM_0_TO_1,
        partial(_tile, shift=2),
    ),
    Mistake(
        "Inputs and targets are exchanged: a model would guess what came before.",
        FROM_0_TO_1,
        lambda data, T: _tile(data, T)[::-1],
    ),
    Mistake(
        "Your targets are shifted the wrong way: they are the characters before.",
        "y[0, 0] is the character after x[0, 0].",
        partial(_tile, shift=-1),
    ),
    Mistake(
        "Your windows overlap: one begins at every character.",
        "The next window begins block_size characters further on.",
        lambda data, T: (data[:-1].unfold(0, T, 1), data[1:].unfold(0, T, 1)),
    ),
    Mistake(
        "Your last window is missing, although it has all its targets.",
        COUNT,
        Sign(_last_missing),
    ),
    Mistake(
        "You cut one window too many: its last character has no target.",
        COUNT,
        Sign(_one_too_many),
    ),
)


@exercise("01.2 Every character once")
def check_tile(tile):
    """tile(data, block_size): data (N,) -> x, y (n, T), all full windows in order."""
    data = torch.tensor([3, 1, 4, 0, 5, 9, 2, 6])
    long = torch.randint(65, (47,), generator=_dice())
    compare(tile, _tile, [(data, 3), (data[:6], 4), (long, 4)], TILES)
    compare(tile, _tile, [(data[:7], 3), (long[:41], 8)], TILES)
    try:
        compare(tile, _tile, [(data[:6], 3), (data[:2], 1), (long[:40], 8)], TILES)
    except Explained as problem:
        if "It raised" not in problem.args[0]:
            raise
        what = "With 6 characters and block_size 3 you cut one window too many: "
        what += "there are only 5 targets.\n    " + problem.args[0]
        raise Explained(what, COUNT) from None
    return "8 lengths, every target used once, nothing wasted, nothing invented."


# 01.3


def _pairs(first, second, V):
    return torch.bincount(first * V + second, minlength=V * V).view(V, V).double()


def _count_before(ids, V):
    return _pairs(ids[1:], ids[:-1], V)


def _by_row(table):
    return table / table.sum(dim=1, keepdim=True)


def _before(ids, V):
    return _by_row(_count_before(ids, V) + 1)


def _forward(ids, V):
    return _by_row(_pairs(ids[:-1], ids[1:], V) + 1)


BEFORE = (
    Mistake(
        "That is the table of what comes after a character, as in section 9.",
        "Row i is for the pairs whose second character is i.",
        _forward,
    ),
    Mistake(
        "Your rows do not sum to one, but your columns do: you divide by column sums, "
        "or you turned the finished table of section 9 round.",
        "Turn the counts round, then divide each row by its sum(dim=1, keepdim=True).",
        lambda ids, V: _forward(ids, V).T,
    ),
    Mistake(
        "You divide by one total: the whole table sums to one, but each row should.",
        "sum(dim=1, keepdim=True) gives each row its own sum.",
        lambda ids, V: (_count_before(ids, V) + 1) / (len(ids) - 1 + V * V),
    ),
    Mistake(
        "Repeated pairs count once: table[a, b] += 1 on whole tensors forgets them.",
        "Count in a loop, or with torch.bincount(a * V + b, minlength=V * V).",
        lambda ids, V: _by_row((_count_before(ids, V) > 0) + 1.0),
    ),
    Mistake(
        "The +1 is missing: unseen pairs get no chance, and empty rows are 0 / 0.",
        "Add 1 to every cell before you divide.",
        lambda ids, V: _by_row(_count_before(ids, V)),
    ),
    Mistake(
        "Your rows sum to more than one: the +1 is in the cells, but not in the sums.",
        "Add 1 to the table first, then take its row sums.",
        lambda ids, V: (
            (_count_before(ids, V) + 1) / _count_before(ids, V).sum(dim=1, keepdim=True)
        ),
    ),
    Mistake(
        "Your pairs are two places apart: the character between them is skipped.",
        "Neighbours are ids[:-1] and ids[1:].",
        lambda ids, V: _by_row(_pairs(ids[2:], ids[:-2], V) + 1),
    ),
    Mistake(
        "You count one pair too many: the last character before the first one.",
        "Nothing stands before the first character: N of them make N - 1 pairs.",
        lambda ids, V: _by_row(_pairs(ids, ids.roll(1), V) + 1),
    ),
)


@exercise("01.3 Read it backwards")
def check_before_table(before_table, data, tokenizer):
    """before_table(ids, vocab_size): ids (N,) -> (V, V), row i: what stood before i."""
    V, data = tokenizer.vocab_size, data[:20_000]
    random = torch.randint(5, (60,), generator=_dice())
    cases = [(torch.tensor([0, 1, 0, 1, 1, 2]), 3), (random, 5), (random, 9), (data, V)]
    compare(before_table, _before, cases, BEFORE)
    often = torch.bincount(data, minlength=V) >= 100
    table = _before(data, V) * often[:, None]
    seen, before = divmod(table.argmax().item(), V)
    return (
        "4 texts, all rows sum to one. Your text is most predictable before "
        f"{tokenizer.chars[seen]!r}: {tokenizer.chars[before]!r} stands there with "
        f"probability {table[seen, before]:.2f}."
    )


# 01.4


def _each(logits, y):
    return F.cross_entropy(logits.transpose(1, 2), y, reduction="none")  # (B, T)


def _by_position(logits, y):
    return _each(logits, y).mean(dim=0)


def _view_as_classes(logits, y):
    B, T, C = logits.shape
    return F.cross_entropy(logits.reshape(B, C, T), y, reduction="none").mean(dim=0)


def _not_flattened(got, expected, logits, y):
    each = F.cross_entropy(logits, y, reduction="none")
    return same(got, each.mean(dim=0)) or same(got, each.mean())


POSITIONS = (
    Mistake(
        "cross_entropy took your T time steps for classes: nothing is flattened. Here "
        "T = C, so it did not complain.",
        "Classes belong in dimension 1: (B * T, C), or one position, logits[:, t].",
        Sign(_not_flattened),
    ),
    Mistake(
        "Your view or reshape to (B, C, T) mixes time and classes up.",
        "To exchange two dimensions, use transpose(1, 2).",
        _view_as_classes,
    ),
    Mistake(
        "You take the softmax twice: cross_entropy wants logits, not probabilities.",
        "Give F.cross_entropy the logits as they are.",
        lambda z, y: _by_position(z.softmax(dim=-1), y),
    ),
    Mistake(
        "You have one loss for each row of the batch; wanted is one for each position.",
        "Take the mean over the batch, dimension 0 of (B, T).",
        lambda z, y: _each(z, y).mean(dim=1),
    ),
    Mistake(
        "That is one number for everything; wanted is one loss for each position.",
        'reduction="none" keeps the single losses; then take the mean over the batch.',
        Sign(lambda got, *_: as_tensor(got).dim() == 0),
    ),
    Mistake(
        "You add up over the batch: a larger batch gets a larger loss.",
        "A mean belongs there, not a sum.",
        lambda z, y: _each(z, y).sum(dim=0),
    ),
    Mistake(
        "You cut the B * T losses in the wrong order: they lie row by row, T for each.",
        "view(B, T), then the mean over dimension 0.",
        lambda z, y: _each(z, y).reshape(y.T.shape).mean(dim=1),
    ),
    Mistake(
        "The sign is turned round: a surprise is never negative.",
        "The log-probability of the target is negative; put a minus before it.",
        lambda z, y: -_by_position(z, y),
    ),
)


@exercise("01.4 Does it get wiser along the line?")
def check_loss_by_position(loss_by_position, model, data):
    """loss_by_position(logits, y): (B, T, C), (B, T) -> mean loss (T,), in nats."""
    dice = _dice()
    cases = []
    for B, T, C in [(2, 3, 4), (4, 6, 5), (5, 1, 3), (2, 3, 3), (4, 5, 5)]:
        y = torch.randint(C, (B, T), generator=dice)
        cases.append((2 * torch.randn(B, T, C, generator=dice), y))
    try:
        compare(loss_by_position, _by_position, cases, POSITIONS)
    except Explained as problem:
        if "Expected target size" in problem.args[0]:  # T = C goes through, wrongly
            compare(loss_by_position, _by_position, cases[3:], POSITIONS)
        raise
    x, y = get_batch(data, 4096, 8, generator=dice)
    logits = call(model, x)[0].detach()
    compare(loss_by_position, _by_position, [(logits, y)], POSITIONS)
    losses = _by_position(logits, y)
    return (
        f"6 shapes, the last from your own model. It pays {losses[0]:.2f} nats at the "
        f"first position and {losses[-1]:.2f} at the eighth."
    )


# 01.5


def counted_loss(learn_from, judge_on):
    """Nats per character of the counted bigram table (add-one) on another text.

    learn_from, judge_on: ids (N,). The table has a row for each id up to the largest.
    """
    V = int(max(learn_from.max(), judge_on.max())) + 1
    table = _by_row(_pairs(learn_from[:-1], learn_from[1:], V) + 1)
    return -table[judge_on[:-1], judge_on[1:]].log().mean().item()


def _curve(loss_at):
    def curve(sizes, train, val):
        return torch.tensor([loss_at(train, val, n) for n in sizes.tolist()])

    return curve


CURVES = "on_read: loss(train[:n], train[:n]); on_new: loss(train[:n], val)."
_read = _curve(lambda t, v, n: counted_loss(t[:n], t[:n]))
_new = _curve(lambda t, v, n: counted_loss(t[:n], v))
ON_READ = (
    Mistake(
        "Your first curve judges on the whole train split, read or not.",
        CURVES,
        _curve(lambda t, v, n: counted_loss(t[:n], t)),
    ),
    Mistake("Your first curve judges on the validation split.", CURVES, _new),
)
ON_NEW = (
    Mistake(
        "Your second curve judges each table on text that it has read: the questions "
        "of the exam were in the homework.",
        CURVES,
        _read,
    ),
    Mistake(
        "Your second curve judges on the train split: most of the exam's questions "
        "were in the homework.",
        CURVES,
        _curve(lambda t, v, n: counted_loss(t[:n], t)),
    ),
    Mistake(
        "Your second curve learns from the validation split itself.",
        CURVES,
        _curve(lambda t, v, n: counted_loss(v[:n], v)),
    ),
    Mistake(
        "Your second curve learns from all of the train split at every size.",
        CURVES,
        _curve(lambda t, v, n: counted_loss(t, v)),
    ),
    Mistake(
        "Your second curve cuts the validation split too: each size has another exam.",
        CURVES,
        _curve(lambda t, v, n: counted_loss(t[:n], v[:n])),
    ),
)


def _readable(values):
    numbers = as_tensor(values)
    return values if numbers is None else numbers


def _check_evidence(result, train, val):
    """How far apart the curves are at each size; Explained unless both are right."""
    if not isinstance(result, (tuple, list)) or len(result) != 4:
        raise Explained("Return four things: sizes, on_read, on_new, verdict.")
    sizes, N = as_tensor(result[0]), len(train)
    if sizes is None or sizes.dim() != 1 or len(sizes) == 0 or sizes[-1] != N:
        what = f"Your sizes are {result[0]}, but this text has {N} characters to learn "
        what += "from: the last size should be all of them."
        raise Explained(what, "Compute the sizes from len(train).")
    sizes = sizes.long()
    if len(sizes) < 4 or (sizes.diff() < 1).any() or sizes[0] * 8 > N or sizes[0] < 2:
        what = f"Your sizes are {sizes.tolist()}: that is no curve yet. Take four or "
        what += "more, growing, the first at most an eighth of the last."
        raise Explained(what, "For example an eighth, a quarter, a half and all.")
    inputs = (sizes, train, val)
    read, new = _read(*inputs), _new(*inputs)
    if same(result[1], new) and same(result[2], read):
        raise Explained("Your two curves are exchanged: first on_read.", CURVES)
    for got, expected, mistakes in [
        (result[1], read, ON_READ),
        (result[2], new, ON_NEW),
    ]:
        if not same(got, expected):
            explain([Difference(inputs, expected, _readable(got))], mistakes)
    return (new - read).tolist()


def _text(V, N):
    """Three characters may follow each of the V, alike often: a split of N ids."""
    ids = [0]
    for choice in torch.randint(3, (N - 1,), generator=_dice()).tolist():
        ids.append((3 * ids[-1] + choice) % V)
    return torch.tensor(ids).chunk(2)


def _verdict(gap):
    return "context" if gap < 0.05 else "text"


@exercise("01.5 Short of text, or short of context?")
def check_experiment(experiment, train, val):
    """experiment(train, val, loss) -> sizes, on_read, on_new, "text" or "context"."""
    gaps, verdicts = [], []
    for text in (_text(40, 900), _text(20, 8000), _text(3, 20_000), (train, val)):
        result = call(experiment, *text, counted_loss)
        gaps.append(_check_evidence(result, *text))
        verdicts.append(result[3])
        if verdicts[-1] not in ("text", "context"):
            what = f'The verdict should be "text" or "context", not {verdicts[-1]!r}.'
            raise Explained(what)
    at_first = [_verdict(gap[0]) for gap in gaps]
    at_last = [_verdict(gap[-1]) for gap in gaps]
    for gap, verdict, right in zip(gaps, verdicts, at_last):
        if verdict != right:
            what = f"Your curves are right. But where they end {gap[-1]:.3f} nats "
            what += f"apart, you say {verdict!r}"
            if len(set(verdicts)) == 1:
                what += ", as you do for every text, whatever its curves say"
            elif verdicts == at_first:
                what += ": that is the verdict for the first size, not for the last"
            elif not any(map(str.__eq__, verdicts, at_last)):
                what += ": your two verdicts are exchanged"
            hint = "Compare the last points, where all the text has been read: a gap "
            hint += "of 0.05 or more is what further text could still close."
            raise Explained(what + ".", hint)
    return (
        f"4 texts. In yours, new text costs {gaps[-1][-1]:.3f} nats more than what was "
        f"read: it is short of {at_last[-1]}."
    )


# 01.6


class _SumModel(nn.Module):
    """Certain that the next id is the sum of all so far plus one, modulo 7."""

    def forward(self, idx, targets=None):
        nexts = (idx.cumsum(dim=1) + 1) % 7  # (B, T)
        return F.one_hot(nexts, 7) * 1000.0, None


class _OneToThree(nn.Module):
    """Gives id 1 three times the probability of id 0, whatever came before."""

    def forward(self, idx, targets=None):
        logits = torch.tensor([0.25, 0.75]).log()
        return logits.expand(*idx.shape, 2), None


def _write(idx, n, newest=lambda z: z[:, -1], seen=None, front=False):
    for _ in range(n):
        logits = _SumModel()(idx if seen is None else idx[:, -seen:])[0]
        drawn = newest(logits).argmax(dim=-1, keepdim=True)
        idx = torch.cat([drawn, idx] if front else [idx, drawn], dim=1)
    return idx


WRITINGS = (
    Mistake(
        "Now you take the last row of the batch; the last position is wanted.",
        "logits is (B, T, C): which of the three is the time?",
        partial(_write, newest=lambda z: z[-1]),
    ),
    Mistake(
        "You give the model the last character only: the bigram does not mind, but "
        "every later model needs the whole text so far.",
        "Call model(idx), and choose among its answers.",
        partial(_write, seen=1),
    ),
    Mistake(
        "You put the new character in front of the text.",
        "torch.cat([idx, drawn], dim=1)",
        partial(_write, front=True),
    ),
    Mistake(
        "You return only what is new; the text so far belongs to it.",
        "Return idx, which grows by one character a step.",
        lambda idx, n: _write(idx, n)[:, -n:],
    ),
    Mistake(
        "You write one character too few.",
        "range(max_new_tokens) goes round max_new_tokens times.",
        lambda idx, n: _write(idx, n - 1),
    ),
)


@exercise("01.6 Quuuuuuuuuuuu")
def check_write_on(write_on):
    """write_on(model, idx, max_new_tokens): (B, T) -> (B, T + max_new_tokens)."""
    small = (torch.tensor([[2, 3], [1, 5]]), 1)
    longer = torch.randint(7, (2, 3), generator=_dice())

    def on_sums(idx, n):
        return write_on(_SumModel(), idx, n)

    if same(call(on_sums, *small), _write(*small, newest=lambda z: z[:, 0])):
        raise Explained(
            "The bug is still there: after the `u` comes another `u`, and another, "
            "although in the table a `u` hardly ever follows a `u`."
        )

    def draw(times):
        start = torch.zeros(1, 1, dtype=torch.long)
        return sum(int(write_on(_OneToThree(), start, 1).sum()) for _ in range(times))

    share = call(draw, 400) / 400
    if share == 1:
        what = "Your program always writes the likeliest character: nothing is drawn. "
        what += "With probabilities 1/4 and 3/4, the first never came in 400 draws."
        raise Explained(what, "torch.multinomial(probs, num_samples=1) draws.")
    if share and not 0.65 < share < 0.85:
        what = f"With probabilities 1/4 and 3/4, the second came in {share:.0%} of 400 "
        what += "draws: these are not the model's probabilities."
        raise Explained(what, "F.softmax(..., dim=-1) over the C logits of each row.")
    try:
        compare(on_sums, _write, [small], WRITINGS)
        compare(on_sums, _write, [(small[0][:1, :1], 4), (longer, 5)], WRITINGS)
    except Explained as problem:
        model = "\n    (a model that always writes the sum of all so far plus 1, mod 7)"
        raise Explained(problem.args[0] + model, *problem.args[1:]) from None
    return "every position counts, each row by itself, and characters are drawn."


# 01.7


def _fit(x, y, rate, clear=True, late=False, fresh=False, clip=None):
    model = _small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    for xb, yb in zip(x.split(1), y.split(1)):
        if fresh:
            optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
        loss = model(xb, yb)[1]
        if clear:
            optimizer.zero_grad()
        loss.backward()
        if late:
            optimizer.zero_grad()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def _small_model():
    model = BigramLanguageModel(5)
    nn.init.normal_(model.token_embedding.weight, generator=_dice())
    return model


_never = partial(_fit, clear=False)


def _second_loss_differs(got, expected, *inputs):
    return len(got) == len(expected) and not same(got[1], expected[1])


FITS = (
    Mistake(
        "The table never moves: each gradient is thrown away before the step uses it.",
        "Forget the old gradient before backward(), or after step().",
        Sign(lambda got, expected, *xy: same(got, _fit(*xy, late=True), atol=0.02)),
    ),
    Mistake(
        "You make a new optimiser at every step: it forgets all it knows about the "
        "steps before, and the bug is still there.",
        "Make it once, before the loop. Who else keeps something between two steps?",
        partial(_never, fresh=True),
    ),
    Mistake(
        "You make a new optimiser at every step: it forgets all it knows about the "
        "steps before.",
        "Make it once, before the loop.",
        partial(_fit, fresh=True),
    ),
    Mistake(
        "You made the gradient shorter, but its direction is still that of a sum over "
        "all steps so far.",
        "What does backward() do with a gradient that is already there?",
        partial(_never, clip=1.0),
    ),
    Mistake(
        "Already the second loss is different, and up to there nothing was wrong: you "
        "changed the optimiser or its step size. That only hides the symptom.",
        "Leave AdamW and learning_rate as they were; look at what one step leaves "
        "behind for the next.",
        Sign(_second_loss_differs),
    ),
)


@exercise("01.7 The loss that comes back up")
def check_fit(fit):
    """fit(model, batches, learning_rate) -> list of losses, one for each batch."""

    def on_rows(x, y, rate):
        losses = fit(_small_model(), list(zip(x.split(1), y.split(1))), rate)
        if not attempted(losses):
            return None
        return torch.stack([torch.as_tensor(loss).detach() for loss in losses])

    x = torch.tensor([[0, 1, 2], [2, 2, 1], [3, 0, 0], [1, 2, 4]])
    cases = [(x, x.roll(-1, dims=1), 0.2), (x[:, :2].flip(0), x[:, 1:].flip(0), 0.1)]
    if all(same(call(on_rows, *case), _never(*case)) for case in cases):
        raise Explained(
            "The bug is still there: the first steps help, but then the loss climbs "
            "back up, far above where it began."
        )
    compare(on_rows, _fit, cases, FITS)
    return "every step uses the gradient of its own batch, and of no other."
