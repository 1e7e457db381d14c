"""Checks for lesson 01: surprise, windows, counts, a gradient, text, and two bugs."""

import math
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import BigramLanguageModel
from minigpt.checks.core import (
    Explained,
    Sign,
    as_tensor,
    call,
    compare,
    describe,
    exercise,
    mistakes,
    same,
)
from minigpt.checks.running import source
from minigpt.checks.solutions import Solution
from minigpt.data import get_batch


def _dice():
    return torch.Generator().manual_seed(1)


SURPRISES = mistakes(
    "Take the logarithm of each one, and the mean as the last step.",
    {
        "You average the probabilities first and take the logarithm of that.": (
            lambda p: -p.mean().log()
        ),
        "You weigh each surprise by its own p, but the text does the weighing: what "
        "is likely comes often.": lambda p: -(p * p.log()).sum(),
    },
)


@exercise("01.1 How surprised was it?")
def check_surprise(surprise):
    """surprise(p): p (N,) probabilities of what came -> mean surprise in nats."""
    cases = [torch.tensor(p) for p in ([0.5, 0.125], [0.2] * 5, [1.0])]
    cases += [0.1 + 0.9 * torch.rand(n, generator=_dice()) for n in (7, 65)]
    hint = "A surprise is -ln p, and the loss is the mean of the surprises."
    compare(surprise, Solution("01.1"), [(p,) for p in cases], SURPRISES, hint=hint)
    return "5 texts, in nats, and a longer text costs no more than a short one."


def _tile(data, T, shift):
    n = (len(data) - 1) // T
    return tuple(part[: n * T].view(n, T) for part in (data, data.roll(-shift)))


TILES = mistakes(
    "y[0, 0] is the character that follows x[0, 0].",
    {
        "Your targets are not shifted: a model would learn to repeat what it "
        "sees.": partial(_tile, shift=0),
        "Your targets are shifted twice: they skip a character.": partial(
            _tile, shift=2
        ),
        "Your targets are shifted the wrong way: they are the characters before.": (
            partial(_tile, shift=-1)
        ),
        "Your windows overlap: one begins at every character.": (
            lambda data, T: (data[:-1].unfold(0, T, 1), data[1:].unfold(0, T, 1)),
            "The next window begins block_size characters further on.",
        ),
    },
)


def _tiles(tile, data, T):
    """What tile returns, or Explained where it wants a target that there is not."""
    result, fails, n = None, "", len(data) // T
    try:
        result = tile(data, T)
    except Exception as error:
        if len(data) % T:
            raise
        fails = f". It raised {type(error).__name__}: {error}"
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    x = as_tensor(result[0]) if pair else None
    if fails or (len(data) % T == 0 and x is not None and x.shape == (n, T)):
        raise Explained(
            f"{len(data)} characters and block_size {T} make {n - 1} full windows, not "
            f"{n}: there are only {len(data) - 1} targets{fails}",
            "(N - 1) // block_size windows.",
        )
    return result


@exercise("01.2 Every character once")
def check_tile(tile):
    """tile(data, block_size): data (N,) -> x, y (n, T), all full windows in order."""
    data = torch.tensor([3, 1, 4, 0, 5, 9, 2, 6])
    long = torch.randint(65, (47,), generator=_dice())
    cases = [(data, 3), (data[:5], 4), (long, 4), (data[:7], 3), (long[:41], 8)]
    cases += [(data[:6], 3), (data[:2], 1), (long[:40], 8)]
    hint = "x begins at character 0 and y at character 1; N characters have N - 1 "
    hint += "targets, so there are (N - 1) // block_size windows."
    solution, parts = Solution("01.2"), ("x", "y")
    compare(tile, solution, cases, TILES, work=_tiles, parts=parts, hint=hint)
    return "8 lengths, every target used once, nothing wasted, nothing invented."


def _pairs(ids, V):
    key = ids[:-1] * V + ids[1:]
    return torch.bincount(key, minlength=V * V).view(V, V).double()


def _by_row(table):
    return table / table.sum(dim=1, keepdim=True)


BEFORE = mistakes(
    "",
    {
        "Repeated pairs count once: table[a, b] += 1 on whole tensors forgets them.": (
            lambda ids, V: _by_row((_pairs(ids, V).T > 0) + 1.0),
            "Count in a loop, or with torch.bincount(a * V + b, minlength=V * V).",
        ),
        "Your rows sum to more than one: the +1 is in the cells, not in the sums.": (
            lambda ids, V: (_pairs(ids, V).T + 1) / _pairs(ids, V).sum(dim=0)[:, None],
            "Add 1 to the table first, then take its row sums.",
        ),
        "You count one pair too many: the last character before the first one.": (
            lambda ids, V: _by_row(_pairs(torch.cat([ids, ids[:1]]), V).T + 1),
            "Nothing stands before the first character: N of them make N - 1 pairs.",
        ),
    },
)


@exercise("01.3 Read it backwards")
def check_before_table(before_table, data, tokenizer):
    """before_table(ids, vocab_size): ids (N,) -> (V, V), row i: what stood before i."""
    V, solution = tokenizer.vocab_size, Solution("01.3")
    random = torch.randint(5, (60,), generator=_dice())
    cases = [(torch.tensor([0, 1, 0, 1, 1, 2]), 3), (random, 5), (random, 9)]
    cases.append((data[:1000], V))
    hint = "In each pair the second character chooses the row, the first the column; "
    hint += "add 1 to all counts, then divide each row by its own sum."
    compare(before_table, solution, cases, BEFORE, hint=hint)
    often = torch.bincount(data, minlength=V) >= 100
    table = _by_row(_pairs(data, V).T + 1) * often[:, None]
    seen, before = divmod(table.argmax().item(), V)
    return (
        "4 texts, all rows sum to one. Your text is most predictable before "
        f"{tokenizer.chars[seen]!r}: {tokenizer.chars[before]!r} stands there with "
        f"probability {table[seen, before]:.2f}."
    )


def _each(logits, y):
    return F.cross_entropy(logits.transpose(1, 2), y, reduction="none")  # (B, T)


def _not_flattened(got, expected, logits, y):
    each = F.cross_entropy(logits, y, reduction="none")
    return same(got, each.mean(dim=0)) or same(got, each.mean())


POSITIONS = mistakes(
    "Classes belong in dimension 1: (B * T, C), or one position, logits[:, t].",
    {
        "cross_entropy took your T time steps for classes: nothing is flattened. Here "
        "T = C, so it did not complain.": Sign(_not_flattened),
        "Your view or reshape to (B, C, T) mixes time and classes up.": (
            lambda z, y: _each(z.reshape(z.mT.shape).mT, y).mean(dim=0),
            "To exchange two dimensions, use transpose(1, 2).",
        ),
        "You take the softmax twice: cross_entropy wants logits, not probabilities.": (
            lambda z, y: _each(z.softmax(dim=-1), y).mean(dim=0),
            "Give F.cross_entropy the logits as they are.",
        ),
    },
)


@exercise("01.4 Does it get wiser along the line?")
def check_loss_by_position(loss_by_position, model, data):
    """loss_by_position(logits, y): (B, T, C), (B, T) -> mean loss (T,), in nats."""
    dice, solution = _dice(), Solution("01.4")
    cases = []  # where T = C, time taken for classes raises no error
    for B, T, C in [(2, 3, 3), (4, 5, 5), (2, 3, 4), (4, 6, 5), (5, 1, 3)]:
        y = torch.randint(C, (B, T), generator=dice)
        cases.append((2 * torch.randn(B, T, C, generator=dice), y))
    x, y = get_batch(data, 4096, 8, generator=dice)
    logits = call(model, x)[0].detach()
    hint = "F.cross_entropy takes (B * T, C) and (B * T,); its losses, one for each "
    hint += "character, back to (B, T), and the mean over the batch."
    compare(loss_by_position, solution, [*cases, (logits, y)], POSITIONS, hint=hint)
    losses = solution(logits, y)
    return (
        f"6 shapes, the last from your own model. It pays {losses[0]:.2f} nats at the "
        f"first position and {losses[-1]:.2f} at the eighth."
    )


def counted_loss(learn_from, judge_on):
    """Nats per character of the counted bigram table (add-one) on another text.

    learn_from, judge_on: ids (N,). The table has a row for each id up to the largest.
    """
    V = int(max(learn_from.max(), judge_on.max())) + 1
    table = _by_row(_pairs(learn_from, V) + 1)
    return -table[judge_on[:-1], judge_on[1:]].log().mean().item()


def _sizes(result, N):
    """An answer's sizes as a list and its verdict, or Explained."""
    if not isinstance(result, (tuple, list)) or len(result) != 4:
        raise Explained("Return four things: sizes, on_read, on_new, verdict.")
    sizes = as_tensor(result[0])
    if sizes is None or sizes.dim() != 1 or len(sizes) == 0 or sizes[-1] != N:
        what = f"Your sizes are {describe(result[0])}. This text has {N} characters to "
        what += "learn from: the last size should be all of them."
        raise Explained(what, "Compute the sizes from len(train).")
    sizes = sizes.long()
    if len(sizes) < 4 or (sizes.diff() < 1).any() or sizes[0] * 8 > N or sizes[0] < 2:
        what = f"Your sizes are {sizes.tolist()}: that is no curve yet. Take four or "
        what += "more, growing, the first at most an eighth of the last."
        raise Explained(what, "For example an eighth, a quarter, a half and all.")
    if result[3] not in ("text", "context", ...):
        what = f'The verdict should be "text" or "context", not {result[3]!r}.'
        raise Explained(what)
    return sizes.tolist(), result[3]


def _text(V, N):
    """Three characters may follow each of the V, alike often: a split of N ids."""
    ids = [0]
    for choice in torch.randint(3, (N - 1,), generator=_dice()).tolist():
        ids.append((3 * ids[-1] + choice) % V)
    return torch.tensor(ids).chunk(2)


@exercise("01.5 Short of text, or short of context?")
def check_experiment(experiment, train, val):
    """experiment(train, val, loss) -> sizes, on_read, on_new, "text" or "context"."""
    texts = [_text(40, 900), _text(20, 4000), _text(3, 8000)]
    texts.append((train[:20_000], val[:5000]))
    cases = [(*text, counted_loss) for text in texts]
    chosen, verdicts = {}, []
    for case in cases:
        N = len(case[0])
        chosen[N], verdict = _sizes(call(experiment, *case), N)
        verdicts.append(verdict)
    solution = Solution("01.5", chosen=chosen)  # at the learner's sizes
    solution.text = solution.text.replace(
        "[len(train) // k for k in (16, 8, 4, 2, 1)]", "chosen[len(train)]"
    )
    solution.program = solution.but()
    known = mistakes(
        "The exam is val, the same for all sizes, and none of it was in the homework.",
        {
            "Your curves are right, but your verdict is the same for all 4 texts, "
            "whether they end close together or far apart.": (
                Sign(
                    lambda got, right, *_: (
                        same(got[:3], right[:3]) and len(set(verdicts)) == 1
                    )
                ),
                "on_new[-1] - on_read[-1] against 0.05; the other way round it is "
                "negative, and always less.",
            ),
            "Your curves are right, but your verdict is what they say at the first "
            "size; what counts is how far apart they end.": (
                solution.but(("on_new[-1] - on_read[-1]", "on_new[0] - on_read[0]"))
            ),
            "on_new judges each table on the text that it has read.": solution.but(
                ("train[:n], val)", "train[:n], train[:n])")
            ),
            "on_new cuts val too: each size has another exam.": solution.but(
                ("train[:n], val)", "train[:n], val[:n])")
            ),
        },
    )
    compare(
        experiment,
        solution,
        cases,
        known,
        parts=("sizes", "on_read", "on_new", "verdict"),
        hint="Each table learns from train[:n] and is asked twice: about train[:n] and "
        "about val. The verdict is about the last points, on_new[-1] - on_read[-1].",
    )
    gap = counted_loss(train, val) - counted_loss(train, train)
    return (
        f"4 texts. With all of yours, new text costs {gap:.3f} nats more than what was "
        f"read: it is short of {'context' if gap < 0.05 else 'text'}."
    )


STEPS = 200  # of a training by hand


def _trained_by_hand(loss_gradient, data, V):
    """The mean loss of the last batches of a table trained with such a gradient."""
    dice, table, losses = _dice(), torch.zeros(V, V), []
    for _ in range(STEPS):
        x, y = get_batch(data, 16, 32, generator=dice)
        logits = table[x]
        losses.append(F.cross_entropy(logits.view(-1, V), y.view(-1)).item())
        slope = as_tensor(call(loss_gradient, logits, y)).float()
        table.index_add_(0, x.view(-1), slope.view(-1, V), alpha=-50)
    return sum(losses[-20:]) / 20


@exercise("01.6 Believed minus came")
def check_loss_gradient(loss_gradient, data, tokenizer):
    """loss_gradient(logits, y): (B, T, C), (B, T) -> (B, T, C), of the mean loss."""
    V, dice, cases = tokenizer.vocab_size, _dice(), []
    for B, T, C in [(1, 2, 3), (2, 1, 4), (3, 4, 5), (2, 8, V)]:
        y = torch.randint(C, (B, T), generator=dice)
        cases.append((2 * torch.randn(B, T, C, generator=dice), y))
    hint = "What was believed is a softmax over the C logits, what came is one-hot. "
    hint += "The loss is a mean of B * T surprises, so each weighs 1 / (B * T)."
    compare(loss_gradient, Solution("01.6"), cases, hint=hint)
    if "backward(" in (text := source(loss_gradient)) or "autograd" in text:
        raise Explained(
            "The numbers are right, but autograd made them.",
            "Here you are autograd: softmax, one_hot, a difference, a division.",
            share=0.5,
        )
    logits, y = cases[-1][0].requires_grad_(), cases[-1][1]
    F.cross_entropy(logits.view(-1, V), y.view(-1)).backward()
    mine = as_tensor(call(loss_gradient, logits.detach(), y))
    apart = (mine - logits.grad).abs().max()
    loss = _trained_by_hand(loss_gradient, data, V)
    return (
        f"4 shapes, {apart:.0e} from autograd's; each row sums to 0: what came "
        f"is pulled up, the others down. {STEPS} steps by your formula, no backward(), "
        f"bring a table of zeros from ln {V} = {math.log(V):.2f} to {loss:.2f} nats."
    )


class _SumModel(nn.Module):
    """Certain that the next id is the sum of all so far plus one, modulo 7."""

    def forward(self, idx, targets=None):
        nexts = (idx.cumsum(dim=1) + 1) % 7  # (B, T)
        return F.one_hot(nexts, 7) * 1000.0, None


class _OneToFour(nn.Module):
    """Gives id 1 four times the probability of id 0, whatever came before."""

    def forward(self, idx, targets=None):
        logits = torch.tensor([0.2, 0.8]).log()
        return logits.expand(*idx.shape, 2), None


def _written(write_on, model, idx, n):
    """What is written after idx; how often another model draws what it should."""
    torch.manual_seed(0)
    text = write_on(model, idx, n)
    drawn = write_on(_OneToFour(), torch.zeros(1000, 1000, dtype=torch.long), 1)
    return text, f"{as_tensor(drawn)[:, -1].mean():.1f}"


@exercise("01.7 Quuuuuuuuuuuu")
def check_write_on(write_on):
    """write_on(model, idx, max_new_tokens): (B, T) -> (B, T + max_new_tokens)."""
    small, model = torch.tensor([[2, 3], [1, 5]]), _SumModel()
    longer, solution = torch.randint(7, (2, 3), generator=_dice()), Solution("01.7")

    def told(*edit):
        return partial(_written, solution.but(edit))

    draw = "torch.multinomial(probs, num_samples=1)"
    known = mistakes(
        "Call model(idx), choose among its answers, append what was drawn.",
        {
            "The bug is still there: after the `u` comes another `u`, and another, "
            "although in the table a `u` hardly ever follows a `u`. (Below, a model "
            "that always writes the sum of all so far plus 1, mod 7.)": (
                told("[:, -1]", "[:, 0]"),
                "",
            ),
            "You give the model the last character only: the bigram does not mind, but "
            "every later model needs the whole text so far.": told(
                "model(idx)", "model(idx[:, -1:])"
            ),
            "You return only what is new; the text so far belongs to it.": told(
                "return idx", "return idx[:, -max_new_tokens:]"
            ),
            "Your program always writes the likeliest character: nothing is drawn.": (
                told(draw, "probs.argmax(dim=-1, keepdim=True)"),
                f"{draw} draws.",
            ),
        },
    )
    compare(
        write_on,
        solution,
        [(model, small, 1), (model, small[:1, :1], 4), (model, longer, 5)],
        known,
        work=_written,
        parts=(
            "With a model that always writes the sum of all so far plus 1, mod 7",
            "With a model that gives a character 0.8, its share of 1000 draws",
        ),
        hint="The last position's logits (B, C), softmax over C, one draw a row, "
        "appended behind idx.",
    )
    return "every position counts, each row by itself, and characters are drawn."


@exercise("01.8 The loss that comes back up")
def check_fit(fit):
    """fit(model, batches, learning_rate) -> list of losses, one for each batch."""
    model, solution = BigramLanguageModel(5), Solution("01.8")
    nn.init.normal_(model.token_embedding.weight, generator=_dice())
    x = torch.tensor([[0, 1, 2], [2, 2, 1], [3, 0, 0], [1, 2, 4]])
    batches = list(zip(x.split(1), x.roll(-1, dims=1).split(1)))
    shorter = [(x[:, :2], x[:, 1:]) for x, _ in batches[::-1]]
    cases = [(model, batches, 0.2), (model, shorter, 0.1)]
    forget, back = "optimizer.zero_grad()", "loss.backward()"
    clip = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1)"
    still = solution.but((back, f"pass; {forget}"))
    known = mistakes(
        "What does backward() do with a gradient that is already there?",
        {
            "The bug is still there: the first steps help, but then the loss climbs "
            "back up, far above where it began.": (
                solution.but((forget, "pass")),
                "",
            ),
            "You made the gradient shorter, but its direction is still that of a sum "
            "over all steps so far.": solution.but(
                (forget, "pass"), (back, f"{back}; {clip}")
            ),
            "The table never moves: no step(), or none that has a gradient to use.": (
                Sign(lambda got, _, *inputs: same(got, still(*inputs), atol=0.02)),
                "Forget the old gradient before backward(), or after step().",
            ),
            "The first loss is right, the second is not: your first step is another "
            "one than AdamW's with this learning rate. That only hides the symptom.": (
                Sign(lambda got, e, *_: same(got[0], e[0]) and not same(got[1], e[1])),
                "Leave AdamW and learning_rate as they were; look at what one step "
                "leaves behind for the next.",
            ),
        },
    )
    hint = "One round: the loss, forget the old gradient, backward(), step()."
    compare(fit, solution, cases, known, changes=True, hint=hint)
    return "every step uses the gradient of its own batch, and of no other."
