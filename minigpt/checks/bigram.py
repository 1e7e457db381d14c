"""Checks for lesson 01: surprise, windows, counts, positions, text, and two bugs."""

from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import BigramLanguageModel
from minigpt.checks.core import (
    Difference,
    Explained,
    Sign,
    as_tensor,
    attempted,
    call,
    compare,
    exercise,
    explain,
    mistakes,
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


SURPRISES = {
    "You add the surprises up, so a longer text gets a larger loss.": (
        lambda p: -p.log().sum(),
        "Divide by how many there are: the loss is their mean.",
    ),
    "Your surprises are in bits (log base 2); the loss is in nats.": (
        partial(_surprise, log=torch.log2),
        "Nats come from the natural logarithm: torch.log.",
    ),
    "The sign is turned round: a surprise is never negative.": (
        lambda p: p.log().mean(),
        "The logarithm of a probability is negative; put a minus before it.",
    ),
    "You average the probabilities first and take the logarithm of that.": (
        lambda p: -p.mean().log(),
        "Take the logarithm of each one, and the mean as the last step.",
    ),
    "You weigh each surprise by its own p, but the text itself does the weighing.": (
        lambda p: -(p * p.log()).sum(),
        "Drop the factor p and take the plain mean.",
    ),
    "That is one surprise for each character; the loss is one number.": (
        lambda p: -p.log(),
        "Take the mean of them.",
    ),
}


@exercise("01.1 How surprised was it?")
def check_surprise(surprise):
    """surprise(p): p (N,) probabilities of what came -> mean surprise in nats."""
    cases = [torch.tensor(p) for p in ([0.5, 0.125], [0.2] * 5, [1.0])]
    cases += [0.1 + 0.9 * torch.rand(n, generator=_dice()).double() for n in (7, 65)]
    compare(surprise, _surprise, [(p,) for p in cases], mistakes("", SURPRISES))
    return "5 texts, in nats, and a longer text costs no more than a short one."


# 01.2


def _tile(data, T, shift=1):
    n = (len(data) - 1) // T
    return data[: n * T].view(n, T), data.roll(-shift)[: n * T].view(n, T)


def _last_missing(got, expected, *inputs):
    return same(got[0], expected[0][:-1]) and same(got[1], expected[1][:-1])


def _one_too_many(got, expected, *inputs):
    return len(as_tensor(got[0])) == len(expected[0]) + 1


TILES = {
    "Your targets are not shifted: a model would learn to repeat what it "
    "sees.": partial(_tile, shift=0),
    "Your targets are shifted twice: they skip a character.": partial(_tile, shift=2),
    "Inputs and targets are exchanged: a model would guess what came before.": (
        lambda data, T: _tile(data, T)[::-1]
    ),
    "Your targets are shifted the wrong way: they are the characters before.": (
        partial(_tile, shift=-1),
        "y[0, 0] is the character after x[0, 0].",
    ),
    "Your windows overlap: one begins at every character.": (
        lambda data, T: (data[:-1].unfold(0, T, 1), data[1:].unfold(0, T, 1)),
        "The next window begins block_size characters further on.",
    ),
    "Your last window is missing, although it has all its targets.": (
        Sign(_last_missing),
        COUNT,
    ),
    "You cut one window too many: its last character has no target.": (
        Sign(_one_too_many),
        COUNT,
    ),
}


@exercise("01.2 Every character once")
def check_tile(tile):
    """tile(data, block_size): data (N,) -> x, y (n, T), all full windows in order."""
    data = torch.tensor([3, 1, 4, 0, 5, 9, 2, 6])
    long = torch.randint(65, (47,), generator=_dice())
    known = mistakes(FROM_0_TO_1, TILES)
    compare(tile, _tile, [(data, 3), (data[:6], 4), (long, 4)], known)
    compare(tile, _tile, [(data[:7], 3), (long[:41], 8)], known)
    try:
        compare(tile, _tile, [(data[:6], 3), (data[:2], 1), (long[:40], 8)], known)
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


BEFORE = {
    "That is the table of what comes after a character, as in section 9.": (
        _forward,
        "Row i is for the pairs whose second character is i.",
    ),
    "Your rows do not sum to one, but your columns do: you divide by column sums, "
    "or you turned the finished table of section 9 round.": (
        lambda ids, V: _forward(ids, V).T,
        "Turn the counts round, then divide each row by its sum(dim=1, keepdim=True).",
    ),
    "You divide by one total: the whole table sums to one, but each row should.": (
        lambda ids, V: (_count_before(ids, V) + 1) / (len(ids) - 1 + V * V),
        "sum(dim=1, keepdim=True) gives each row its own sum.",
    ),
    "Repeated pairs count once: table[a, b] += 1 on whole tensors forgets them.": (
        lambda ids, V: _by_row((_count_before(ids, V) > 0) + 1.0),
        "Count in a loop, or with torch.bincount(a * V + b, minlength=V * V).",
    ),
    "The +1 is missing: unseen pairs get no chance, and empty rows are 0 / 0.": (
        lambda ids, V: _by_row(_count_before(ids, V)),
        "Add 1 to every cell before you divide.",
    ),
    "Your rows sum to more than one: the +1 is in the cells, but not in the sums.": (
        lambda ids, V: (
            (_count_before(ids, V) + 1) / _count_before(ids, V).sum(dim=1, keepdim=True)
        ),
        "Add 1 to the table first, then take its row sums.",
    ),
    "Your pairs are two places apart: the character between them is skipped.": (
        lambda ids, V: _by_row(_pairs(ids[2:], ids[:-2], V) + 1),
        "Neighbours are ids[:-1] and ids[1:].",
    ),
    "You count one pair too many: the last character before the first one.": (
        lambda ids, V: _by_row(_pairs(ids, ids.roll(1), V) + 1),
        "Nothing stands before the first character: N of them make N - 1 pairs.",
    ),
}


@exercise("01.3 Read it backwards")
def check_before_table(before_table, data, tokenizer):
    """before_table(ids, vocab_size): ids (N,) -> (V, V), row i: what stood before i."""
    V, data = tokenizer.vocab_size, data[:20_000]
    random = torch.randint(5, (60,), generator=_dice())
    cases = [(torch.tensor([0, 1, 0, 1, 1, 2]), 3), (random, 5), (random, 9), (data, V)]
    compare(before_table, _before, cases, mistakes("", BEFORE))
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


POSITIONS = {
    "cross_entropy took your T time steps for classes: nothing is flattened. Here "
    "T = C, so it did not complain.": (
        Sign(_not_flattened),
        "Classes belong in dimension 1: (B * T, C), or one position, logits[:, t].",
    ),
    "Your view or reshape to (B, C, T) mixes time and classes up.": (
        _view_as_classes,
        "To exchange two dimensions, use transpose(1, 2).",
    ),
    "You take the softmax twice: cross_entropy wants logits, not probabilities.": (
        lambda z, y: _by_position(z.softmax(dim=-1), y),
        "Give F.cross_entropy the logits as they are.",
    ),
    "You have one loss for each row of the batch; wanted is one for each position.": (
        lambda z, y: _each(z, y).mean(dim=1),
        "Take the mean over the batch, dimension 0 of (B, T).",
    ),
    "That is one number for everything; wanted is one loss for each position.": (
        Sign(lambda got, *_: as_tensor(got).dim() == 0),
        'reduction="none" keeps the single losses; then take the mean over the batch.',
    ),
    "You add up over the batch: a larger batch gets a larger loss.": (
        lambda z, y: _each(z, y).sum(dim=0),
        "A mean belongs there, not a sum.",
    ),
    "You cut the B * T losses in the wrong order: they lie row by row, T for each.": (
        lambda z, y: _each(z, y).reshape(y.T.shape).mean(dim=1),
        "view(B, T), then the mean over dimension 0.",
    ),
    "The sign is turned round: a surprise is never negative.": (
        lambda z, y: -_by_position(z, y),
        "The log-probability of the target is negative; put a minus before it.",
    ),
}


@exercise("01.4 Does it get wiser along the line?")
def check_loss_by_position(loss_by_position, model, data):
    """loss_by_position(logits, y): (B, T, C), (B, T) -> mean loss (T,), in nats."""
    dice = _dice()
    cases = []
    for B, T, C in [(2, 3, 4), (4, 6, 5), (5, 1, 3), (2, 3, 3), (4, 5, 5)]:
        y = torch.randint(C, (B, T), generator=dice)
        cases.append((2 * torch.randn(B, T, C, generator=dice), y))
    known = mistakes("", POSITIONS)
    try:
        compare(loss_by_position, _by_position, cases, known)
    except Explained as problem:
        if "Expected target size" in problem.args[0]:  # T = C goes through, wrongly
            compare(loss_by_position, _by_position, cases[3:], known)
        raise
    x, y = get_batch(data, 4096, 8, generator=dice)
    logits = call(model, x)[0].detach()
    compare(loss_by_position, _by_position, [(logits, y)], known)
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
ON_READ = {
    "Your first curve judges on the whole train split, read or not.": _curve(
        lambda t, v, n: counted_loss(t[:n], t)
    ),
    "Your first curve judges on the validation split.": _new,
}
ON_NEW = {
    "Your second curve judges each table on text that it has read: the questions "
    "of the exam were in the homework.": _read,
    "Your second curve judges on the train split: most of the exam's questions "
    "were in the homework.": _curve(lambda t, v, n: counted_loss(t[:n], t)),
    "Your second curve learns from the validation split itself.": _curve(
        lambda t, v, n: counted_loss(v[:n], v)
    ),
    "Your second curve learns from all of the train split at every size.": _curve(
        lambda t, v, n: counted_loss(t, v)
    ),
    "Your second curve cuts the validation split too: each size has another "
    "exam.": _curve(lambda t, v, n: counted_loss(t[:n], v[:n])),
}


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
    for got, expected, known in [
        (result[1], read, mistakes(CURVES, ON_READ)),
        (result[2], new, mistakes(CURVES, ON_NEW)),
    ]:
        if not same(got, expected):
            explain([Difference(inputs, expected, _readable(got))], known)
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


WRITINGS = {
    "Now you take the last row of the batch; the last position is wanted.": (
        partial(_write, newest=lambda z: z[-1]),
        "logits is (B, T, C): which of the three is the time?",
    ),
    "You give the model the last character only: the bigram does not mind, but "
    "every later model needs the whole text so far.": (
        partial(_write, seen=1),
        "Call model(idx), and choose among its answers.",
    ),
    "You put the new character in front of the text.": (
        partial(_write, front=True),
        "torch.cat([idx, drawn], dim=1)",
    ),
    "You return only what is new; the text so far belongs to it.": (
        lambda idx, n: _write(idx, n)[:, -n:],
        "Return idx, which grows by one character a step.",
    ),
    "You write one character too few.": (
        lambda idx, n: _write(idx, n - 1),
        "range(max_new_tokens) goes round max_new_tokens times.",
    ),
}


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
    known = mistakes("", WRITINGS)
    try:
        compare(on_sums, _write, [small], known)
        compare(on_sums, _write, [(small[0][:1, :1], 4), (longer, 5)], known)
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


FITS = {
    "The table never moves: each gradient is thrown away before the step uses it.": (
        Sign(lambda got, expected, *xy: same(got, _fit(*xy, late=True), atol=0.02)),
        "Forget the old gradient before backward(), or after step().",
    ),
    "You make a new optimiser at every step: it forgets all it knows about the "
    "steps before, and the bug is still there.": (
        partial(_never, fresh=True),
        "Make it once, before the loop. Who else keeps something between two steps?",
    ),
    "You make a new optimiser at every step: it forgets all it knows about the "
    "steps before.": (partial(_fit, fresh=True), "Make it once, before the loop."),
    "You made the gradient shorter, but its direction is still that of a sum over "
    "all steps so far.": (
        partial(_never, clip=1.0),
        "What does backward() do with a gradient that is already there?",
    ),
    "Already the second loss is different, and up to there nothing was wrong: you "
    "changed the optimiser or its step size. That only hides the symptom.": (
        Sign(_second_loss_differs),
        "Leave AdamW and learning_rate as they were; look at what one step leaves "
        "behind for the next.",
    ),
}


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
    known = mistakes("", FITS)
    compare(on_rows, _fit, cases, known)
    return "every step uses the gradient of its own batch, and of no other."
