"""Checks for lesson 01: surprise, windows, counts, a gradient, text, and two bugs."""

import math
from copy import deepcopy

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
    same,
)
from minigpt.checks.running import source
from minigpt.checks.solutions import Solution
from minigpt.data import get_batch


def _dice():
    return torch.Generator().manual_seed(1)


SURPRISES = {
    "You weigh each surprise by its own p, but the text does the weighing: what is "
    "likely comes often.": (
        lambda p: -(p * p.log()).sum(),
        "Drop the factor p and take the plain mean.",
    ),
    "You multiply all p first: for a text of more than a few dozen characters the "
    "product is smaller than any float32, and the loss infinite.": (
        lambda p: -p.prod().log() / len(p),
        "Take the logarithm of each p, then the mean.",
    ),
}


@exercise("01.1 How surprised was it?")
def check_surprise(surprise):
    """surprise(p): p (N,) probabilities of what came -> mean surprise in nats."""
    cases = [torch.tensor(p) for p in ([0.5, 0.125], [0.2] * 5, [1.0])]
    cases += [0.1 + 0.9 * torch.rand(n, generator=_dice()) for n in (7, 650)]
    hint = "A surprise is -ln p, and the loss is the mean of the surprises."
    compare(surprise, Solution("01.1"), [(p,) for p in cases], SURPRISES, hint=hint)
    return "5 texts, in nats, and a longer text costs no more than a short one."


SLICE = "data[1 : n * block_size + 1]"
TILES = {
    "Your targets are shifted twice: they skip a character.": (
        f"{SLICE} → data.roll(-2)[: n * block_size]"
    ),
    "Your targets are shifted the wrong way: they are the characters before.": (
        f"{SLICE} → data.roll(1)[: n * block_size]"
    ),
    "Your last target of each window is its own first character: the shift goes round "
    "inside the window.": f"y = {SLICE}.view(n, block_size) → y = x.roll(-1, dims=1)",
    "You cut windows of block_size + 1: each gives its last character as a target, "
    "and no window as an input.": (
        lambda data, T: (
            (w := data[: len(data) // (T + 1) * (T + 1)].view(-1, T + 1))[:, :-1],
            w[:, 1:],
        ),
        "The next window begins block_size characters further on.",
    ),
    "Your windows overlap: one begins at every character.": (
        lambda data, T: (data[:-1].unfold(0, T, 1), data[1:].unfold(0, T, 1)),
        "The next window begins block_size characters further on.",
    ),
}


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
    how = {"work": _tiles, "parts": ("x", "y"), "hint": hint}
    compare(tile, Solution("01.2"), cases, TILES, **how)
    return "8 lengths, every target used once, nothing wasted, nothing invented."


def _table(ids, V, by=1):
    """Add-one probabilities (V, V) of what comes after each id; before it if by=-1."""
    a, b = (ids[:-1], ids[1:])[::by]
    table = torch.bincount(a * V + b, minlength=V * V).view(V, V) + 1.0
    return table / table.sum(dim=1, keepdim=True)


BEFORE = {
    "Repeated pairs count once: table[a, b] += 1 on whole tensors forgets them.": (
        "+= 1 → = 2",
        "Count in a loop, or with torch.bincount(a * V + b, minlength=V * V).",
    ),
    "Your rows sum to more than one: the +1 is in the cells, not in the sums.": (
        "table.sum(dim=1, keepdim=True) → (table - 1).sum(dim=1, keepdim=True)",
        "Add 1 to the table first, then take its row sums.",
    ),
    "You count one pair too many: the last character before the first one.": (
        "ids[1:] → ids.roll(-1)",
        "ids[:-1] → ids",
        "Nothing stands before the first character: N of them make N - 1 pairs.",
    ),
    "Your columns sum to one, not your rows: you divide along dim=0, or turn the table "
    "only after the division.": "dim=1 → dim=0",
}


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
    table = _table(data, V, by=-1) * often[:, None]
    seen, before = divmod(table.argmax().item(), V)
    return (
        "4 texts, all rows sum to one. Your text is most predictable before "
        f"{tokenizer.chars[seen]!r}: {tokenizer.chars[before]!r} stands there with "
        f"probability {table[seen, before]:.2f}."
    )


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
        "rows = logits → rows = logits.reshape(logits.mT.shape).mT",
        "To exchange two dimensions, use transpose(1, 2).",
    ),
}


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
    table = _table(learn_from, V).double()
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
    exam = "The exam is val, the same for all sizes; none of it was in the homework."

    def always_the_same(got, right, *_):
        return same(got[:3], right[:3]) and len(set(verdicts)) == 1

    known = {
        "Your curves are right, but your verdict is the same for all 4 texts, whether "
        "they end close together or far apart.": (
            Sign(always_the_same),
            "on_new[-1] - on_read[-1] against 0.05; the other way round it is "
            "negative, and always less.",
        ),
        "Your curves are right, but your verdict is not about where they end. What "
        "counts is the gap between the two at the last size: not at the first, nor "
        "how much one of them still falls.": "on_new[-1] - on_read[-1] → on_new[0] - "
        "on_read[0]",
        "on_new judges each table on the text that it has read.": (
            "train[:n], val) → train[:n], train[:n])",
            exam,
        ),
        "on_new cuts val too: each size has another exam.": (
            "train[:n], val) → train[:n], val[:n])",
            exam,
        ),
    }
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
    draw = "torch.multinomial(probs, num_samples=1)"
    known = {
        "The bug is still there: after the `u` comes another `u`, and another, "
        "although in the table a `u` hardly ever follows a `u`. (Below, a model "
        "that always writes the sum of all so far plus 1, mod 7.)": (
            "[:, -1] → [:, 0]",
            "Print idx and the shape of `now` in each step.",
        ),
        "You give the model the last character only: the bigram does not mind, but "
        "every later model needs the whole text so far.": (
            "model(idx) → model(idx[:, -1:])"
        ),
        "You return only what is new; the text so far belongs to it.": (
            "return idx → return idx[:, -max_new_tokens:]"
        ),
        "Your program always writes the likeliest character: nothing is drawn.": (
            f"{draw} → probs.argmax(dim=-1, keepdim=True)",
            f"{draw} draws.",
        ),
    }
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
        hint="Which position's logits (B, C) are about what comes next? Then softmax "
        "over C, one draw for each row, appended behind idx.",
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
    back, clip = "loss.backward()", "torch.nn.utils.clip_grad_norm_"
    frozen = solution.but((back, "pass; optimizer.zero_grad()"))
    forgets = solution.but("optimizer.zero_grad() → pass")
    hint = "What does backward() do with a gradient that is already there?"

    def another_step(got, e, *inputs):
        first_only = same(got[0], e[0]) and not same(got[1], e[1])
        return first_only and not same(got, frozen(*inputs))

    def once(got, _, *inputs):
        return "zero_grad" in source(fit) and same(got, forgets(*deepcopy(inputs)))

    known = {
        "You empty the gradient, but not in every step: each backward() adds to what "
        "the one before has left.": (
            Sign(once),
            "zero_grad() belongs inside the loop, before backward().",
        ),
        "The bug is still there: the first steps help, but then the loss climbs back "
        "up, far above where it began.": (
            forgets,
            "Print the norm of the gradient in each step.",
        ),
        "You made the gradient shorter, but its direction is still that of a sum over "
        "all steps so far.": (
            "optimizer.zero_grad() → pass",
            f"{back} → {back}; {clip}(model.parameters(), 1)",
        ),
        "The first loss is right, the second is not: your first step is another one "
        "than AdamW's with this learning rate. That only hides the symptom.": (
            Sign(another_step),
            "Leave AdamW and learning_rate as they were; look at what one step leaves "
            "behind for the next.",
        ),
    }
    compare(fit, solution, cases, known, changes=True, hint=hint)
    return "every step uses the gradient of its own batch, and of no other."
