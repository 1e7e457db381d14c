"""The exercises of lesson 06: AdamW, sampling, a leak, a verdict, and top-p."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course.checks.exercise import Wrong, exercise
from minigpt.course.checks.results import as_tensor

GENTLE = (0.5, 0.7)


@exercise(
    "06.1 AdamW by hand",
    cases=[
        (1.0, [2.0], 0.1, GENTLE, 0.0, 1e-8),
        (3.0, [0.5, -2.0, 4.0], 0.1, GENTLE, 0.0, 1e-8),
        (4.0, [1.0], 0.1, GENTLE, 0.5, 1e-8),
        (3.0, [1.0, -2.0, 1.5], 0.1, GENTLE, 0.5, 0.25),
    ],
    fresh=lambda: [
        (
            5 * torch.randn(()).item(),
            torch.randn(8).tolist(),
            0.02,
            (0.9, 0.95),
            0.1,
            0.1,
        )
    ],
    atol=1e-7,
    hint="Do the first step on paper: what are m and v, and what are they divided by?",
)
def walk(
    p: float, grads: list, lr: float, betas: tuple, decay: float, eps: float = 1e-8
) -> list:
    """A function of p, grads, lr, betas, decay and eps that returns a list."""
    (b1, b2), m, v, path = betas, 0.0, 0.0, []
    for t, g in enumerate(grads, start=1):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        mean = m / (1 - b1**t)
        root = (v / (1 - b2**t)) ** 0.5
        p = p - lr * (decay * p + mean / (root + eps))
        path.append(p)
    return path


walk.mistakes("""
The decay goes through the averages here. That's Adam. In AdamW it acts on p alone.
    m = b1 * m -> g = g + decay * p
            m = b1 * m
    decay * p + mean -> mean
Your decay isn't multiplied by the learning rate.
    lr * (decay * p + mean / (root + eps)) -> (decay * p + lr * mean / (root + eps))
Your corrected averages go on into the next step. Keep m and v as they are, and use the
corrected ones only once.
    mean = m / -> mean = m = m /
    root = (v / (1 - b2**t)) ** 0.5 -> v = v / (1 - b2**t)
            root = v**0.5
eps is under the root. It belongs next to the root.
    ** 0.5 ->
    / (root + eps) -> / (root + eps) ** 0.5
The correction is missing: m and v start at 0, so they are too small at first.
    m / (1 - b1**t) -> m
    (v / (1 - b2**t)) -> v
Your decay acts on p after the step. It should act on the p before it.
    p = p - lr * (decay * p + mean / (root + eps)) -> p = p - lr * (mean / (root + eps))
            p = p - lr * decay * p
m and v start at 0 again in every step. Keep them from one step to the next.
    m = b1 * m -> m = v = 0.0
            m = b1 * m
You average the gradients in v, where steps up and down cancel. Average their squares.
    (1 - b2) * g**2 -> (1 - b2) * g
    root = (v / (1 - b2**t)) ** 0.5 -> root = abs(v / (1 - b2**t))
These are the steps. The exercise asks for the places after them.
    (b1, b2), m -> start = p
        (b1, b2), m
    return path -> return [b - a for a, b in zip([start, *path], path)]
""")
check_walk = walk.check


class _Counts(nn.Module):
    """Logits that can be checked on paper."""

    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.block_size = block_size

    def forward(self, idx: torch.Tensor, targets: Any = None) -> tuple:
        if idx.shape[1] > self.block_size:
            raise Wrong(
                f"You give the model {idx.shape[1]} tokens, but block_size is "
                f"{self.block_size}. Keep only the last ones."
            )
        return F.one_hot(idx, 4).cumsum(1) + 0.3 * torch.arange(4), None


def _probs(
    next_probs: Callable,
    model: str,
    idx: torch.Tensor,
    block_size: int,
    temperature: float,
    top_k: int | None,
) -> Any:
    return next_probs(_Counts(block_size), idx, block_size, temperature, top_k)


COUNTS = "logits: how often each id 0-3 occurred, + 0.3 * id"
SHORT, LONG = torch.tensor([[0, 1, 1]]), torch.tensor([[3, 3, 0, 1, 0]])
BATCH = torch.tensor([[0, 1, 1, 2, 1], [3, 3, 3, 1, 0], [2, 0, 2, 2, 2]])


@exercise(
    "06.2 What comes next?",
    cases=[
        (COUNTS, SHORT, 3, 1.0, None),
        (COUNTS, LONG, 3, 1.0, None),
        (COUNTS, BATCH, 4, 1.0, None),
        (COUNTS, SHORT, 3, 0.5, None),
        (COUNTS, BATCH, 8, 2.0, None),
        (COUNTS, SHORT, 3, 1.0, 2),
        (COUNTS, SHORT, 3, 1.0, 1),
        (COUNTS, BATCH, 4, 1.0, 3),
        (COUNTS, BATCH, 8, 0.5, 2),
        (COUNTS, SHORT, 3, 2.0, 4),
        (COUNTS, SHORT, 3, 1.0, 9),
    ],
    fresh=lambda: [
        (COUNTS, torch.randint(4, (2, 7)), 5, 0.8, None),
        (COUNTS, torch.randint(4, (3, 6)), 4, 1.5, 2),
    ],
    work=_probs,
    hint="Which tokens may the model see? Which position predicts the next one? Where "
    "do temperature and top_k come in?",
)
def next_probs(
    model: Callable,
    idx: torch.Tensor,
    block_size: int,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> torch.Tensor:
    """A function of model, idx, block_size, temperature and top_k."""
    context = idx[:, -block_size:]
    logits = model(context)[0][:, -1] / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        smallest = logits.topk(k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return F.softmax(logits, dim=-1)


SMALLEST, CUT = "logits.topk(k, dim=-1).values[:, -1:]", 'float("-inf")'
next_probs.mistakes("""
The temperature changes nothing. Divide the logits by it, before the softmax.
    [:, -1] / temperature -> [:, -1]
You divide the probabilities by the temperature, so the rows no longer sum to one.
Divide the logits.
    [:, -1] / temperature -> [:, -1]
    F.softmax(logits, dim=-1) -> F.softmax(logits, dim=-1) / temperature
You keep the first block_size tokens, so the model never sees how the text goes on.
    -block_size: -> :block_size
The tokens that you cut get the logit 0, and e⁰ is 1: they can still be drawn.
    float("-inf") -> 0.0
You cut after the softmax, so the rows sum to less than one.
    return F.softmax(logits, dim=-1) ->
    if top_k is not None: -> logits = F.softmax(logits, dim=-1)
        if top_k:
    float("-inf")) -> 0.0)
        return logits
You return only k probabilities. Every id keeps its place; those that are cut get the
probability 0.
    logits.masked_fill(logits < smallest, float("-inf"))
        -> logits.topk(k, dim=-1).values
Only the likeliest token stays. You compare with the largest logit, not with the k-th.
    values[:, -1:] -> values[:, :1]
You keep the k likeliest of the whole batch. Each row should keep its own.
    logits.topk(k, dim=-1).values[:, -1:] -> logits.flatten().topk(k).values[-1]
The first row decides for all rows. Each row has its own k-th largest logit.
    logits.topk(k, dim=-1).values[:, -1:] -> logits.topk(k, dim=-1).values[:1, -1:]
""")
next_probs.wrong(
    "One token too many stays. The first k of a sorted row end at index k - 1.",
    SMALLEST,
    "logits.sort(dim=-1, descending=True).values[:, [min(k, logits.shape[-1] - 1)]]",
)
check_next_probs = next_probs.check


def _leaks(
    split_windows: Callable, ids: torch.Tensor, block_size: int, train_fraction: float
) -> Any:
    """Which characters leak, as each id is its own position in the text."""
    parts = split_windows(ids, block_size, train_fraction)
    if not isinstance(parts, (tuple, list)) or len(parts) != 2:
        return parts
    learned, judged = map(as_tensor, parts)
    if learned is None or judged is None:
        raise Wrong("Both parts should be tensors of windows.")
    for part in (learned, judged):
        if part.dim() != 2 or part.shape[1] != block_size + 1:
            raise Wrong(
                f"With block_size {block_size}, both parts should be windows, "
                f"(n, {block_size + 1})."
            )
        if (part.diff() != 1).any():
            raise Wrong("The characters of a window aren't neighbors in the text.")
    windows, asked_of = ({tuple(row) for row in p.tolist()} for p in (learned, judged))
    if asked_of and asked_of <= windows:
        raise Wrong(
            "You judge on windows that the model learns from. That's the training loss."
        )
    if windows and windows <= asked_of:
        raise Wrong("You judge on the whole text, so also on everything learned.")
    targets, asked = (set(part[:, 1:].flatten().tolist()) for part in (learned, judged))
    reads = (set(part.flatten().tolist()) for part in (learned, judged))
    both, crossed = targets & asked, [targets, asked]
    leaks = {i for own, other in zip(crossed, reversed([*reads])) for i in own & other}
    N = len(ids)
    if not leaks and len(asked) > max(len(targets), 0.7 * train_fraction * N):
        raise Wrong("Nothing leaks, but the parts are swapped: the small one is first.")
    few = len(targets) < 0.45 * train_fraction * N
    if not leaks and (few or len(asked) < 0.4 * (1 - train_fraction) * N):
        raise Wrong(
            f"Nothing leaks, but of {N} characters you learn only {len(targets)} and "
            f"judge only {len(asked)}."
        )
    return {
        "judged and learned": [int(i) for i in sorted(both)],
        "predicted here, read there": [int(i) for i in sorted(leaks - both)],
    }


@exercise(
    "06.3 Too good to be true",
    cases=[
        (torch.arange(16), 2, 0.75),
        (torch.arange(60), 3, 0.8),
        (torch.arange(200), 8, 0.9),
        (torch.arange(331), 5, 0.7),
    ],
    work=_leaks,
    hint="In these texts each id is its own position, so you see which characters both "
    "parts contain.",
)
def split_windows(
    ids: torch.Tensor, block_size: int, train_fraction: float = 0.9
) -> tuple:
    """A function of ids, block_size and train_fraction that returns two tensors."""
    n = int(train_fraction * len(ids))
    to_learn, to_judge = ids[:n], ids[n:]
    size = block_size + 1
    return to_learn.unfold(0, size, 1), to_judge.unfold(0, size, 1)


def _around_the_cut(got: dict, _: Any, ids: Any, block_size: int, *given: Any) -> bool:
    both = got["judged and learned"]
    return len(both) > 0 and both[-1] - both[0] < block_size


BUG = (
    "The bug is still there: a model that learns its windows by heart, and understands "
    "nothing, still gets a splendid validation loss."
)
PAIR = (
    "Two windows that begin at neighboring positions share all characters but one. "
    "What happens to such a pair when the windows are shuffled?"
)
split_windows.mistakes("""
The bug is still there: a model that learns its windows by heart, and understands
nothing, still gets a splendid validation loss.
    n = int(train_fraction * len(ids))
        to_learn, to_judge = ids[:n], ids[n:]
        size = block_size + 1
        return to_learn.unfold(0, size, 1), to_judge.unfold(0, size, 1)
        -> windows = ids.unfold(0, block_size + 1, 1)
        rng = torch.Generator().manual_seed(1337)
        windows = windows[torch.randperm(len(windows), generator=rng)]
        n = int(train_fraction * len(windows))
        return windows[:n], windows[n:]
    Hint: Two windows that begin at neighboring positions share all characters but one.
        What happens to such a pair when the windows are shuffled?
""")
split_windows.wrong(
    "You're nearly there. Only around the cut do windows of both parts still overlap.",
    sign=_around_the_cut,
    hint="Which characters does the last window to learn share with the first one to "
    "judge?",
)
split_windows.wrong(
    BUG, sign=lambda got, *_: len(got["judged and learned"]) > 0, hint=PAIR
)
check_split_windows = split_windows.check


def _word(verdict: Callable, before: list, after: list) -> Any:
    word = verdict(before, after)
    return word.strip().lower() if isinstance(word, str) else word


def _runs() -> list[tuple]:
    before = torch.rand(8, 3) + 1
    changes = (
        torch.randn(8, 3) * 0.1 - 0.1 * torch.tensor([1.0, -1.0]).repeat(4)[:, None]
    )
    return [(b.tolist(), a.tolist()) for b, a in zip(before, before + changes)]


@exercise(
    "06.4 One change, three seeds, a verdict",
    cases=[
        ([2.0, 2.0, 2.0], [1.75, 1.5, 1.625]),
        ([2.0, 2.0, 2.0], [2.25, 2.5, 2.375]),
        ([2.0, 2.5, 3.0], [1.875, 2.375, 2.875]),  # better, though they overlap
        ([2.0, 2.5, 3.0], [2.125, 2.625, 3.125]),
        ([2.0, 2.0, 2.0, 2.0], [2.125, 1.5, 1.5, 1.5]),  # lower on average: a tie
        ([2.0, 2.0, 2.0], [1.0, 2.25, 2.25]),  # lower on average, higher in most
        ([2.0, 2.0, 2.0], [2.5, 1.75, 2.25]),
        ([1.0, 2.0, 3.0], [2.5, 1.5, 0.5]),  # sorted: better; paired: a tie
        ([2.0, 2.0, 2.0], [1.75, 1.5, 2.0]),  # one seed didn't change
        ([1.5, 1.75], [1.5, 1.75]),
        ([2.0, 2.0, 2.0], [1.9995, 1.9999, 1.9996]),  # small, but all of one sign
        ([2.0, 2.0, 2.0], [2.25, 1.75, 2.25]),  # the first and the last agree
    ],
    fresh=_runs,
    work=_word,
    hint="Take the change of each seed by itself. What does the rule ask of all the "
    "changes together?",
)
def verdict(before: list, after: list) -> str:
    """A function of before and after that returns "better", "worse" or "tie"."""
    changes = [a - b for a, b in zip(after, before)]
    if all(change < 0 for change in changes):
        return "better"
    if all(change > 0 for change in changes):
        return "worse"
    return "tie"


verdict.mistakes("""
You decide by the mean. The rule asks whether every single seed agrees.
    all(change < 0 for change in changes) -> sum(changes) < 0
    all(change > 0 for change in changes) -> sum(changes) > 0
You compare all losses before with all losses after. Compare each seed with itself
first.
    all(change < 0 for change in changes) -> max(after) < min(before)
    all(change > 0 for change in changes) -> min(after) > max(before)
You let the majority decide. All seeds must agree.
    all(change < 0 for change in changes) -> sum((c > 0) - (c < 0) for c in changes) < 0
    all(change > 0 for change in changes) -> sum((c > 0) - (c < 0) for c in changes) > 0
You decide by the first seed. All seeds must agree.
    all(change < 0 for change in changes) -> changes[0] < 0
    all(change > 0 for change in changes) -> changes[0] > 0
There's no tie left: whatever didn't rise with every seed is called better.
    all(change < 0 for change in changes) -> not all(change > 0 for change in changes)
There's no tie left: whatever didn't fall with every seed is called worse.
    all(change > 0 for change in changes) -> True
Better and worse are swapped: a loss that fell is better.
    a - b for -> b - a for
You sort the losses, so they're no longer paired by their seeds.
    zip(after, before) -> zip(sorted(after), sorted(before))
""")
check_verdict = verdict.check


def _set(nucleus: Callable, probs: torch.Tensor, top_p: float) -> Any:
    """The set; sorted where all are alike, since any of them will do."""
    kept = nucleus(probs, top_p)
    alike = (probs == probs[:1, :1]).all() and isinstance(kept, torch.Tensor)
    return kept.sort(dim=-1, descending=True).values if alike else kept


PLAIN = torch.tensor([[0.5, 0.25, 0.125, 0.125]])
MIXED = torch.tensor([[0.125, 0.5, 0.0625, 0.25, 0.0625]])
TWO = torch.tensor([[0.125, 0.5, 0.25, 0.125], [0.25, 0.25, 0.125, 0.375]])


@exercise(
    "06.5 The smallest set",
    cases=[
        (PLAIN, 0.6),  # two tokens: 0.5 isn't enough
        (PLAIN, 0.5),  # one: it's exactly enough
        (PLAIN, 0.1),  # one always stays
        (MIXED, 0.8),
        (TWO, 0.7),
        (PLAIN, 1.0),
        (torch.full((1, 4), 0.25), 0.5),  # any two of them
    ],
    fresh=lambda: [
        (F.softmax(2 * torch.randn(3, 9), dim=-1), 0.3),
        (F.softmax(2 * torch.randn(2, 7), dim=-1), 0.9),
    ],
    work=_set,
    hint="Start with the likeliest token and keep adding. When do you stop?",
)
def nucleus(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    """A function of probs (B, vocab_size) and top_p that returns a tensor like it."""
    likely, order = probs.sort(dim=-1, descending=True)
    before = likely.cumsum(dim=-1) - likely
    kept = likely.masked_fill(before >= top_p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, kept)


nucleus.mistakes("""
Your set ends one token too early. The token with which the sum reaches top_p belongs to
it.
    before >= top_p -> before + likely > top_p
    or
    before >= top_p -> (before + likely) * (before > 0) > top_p
    or
    before >= top_p -> before + likely >= top_p
    or
    before >= top_p -> (before + likely) * (before > 0) >= top_p
You return them from likely to unlikely. Each one must go back to its id.
    torch.zeros_like(probs).scatter(-1, order, kept) -> kept
gather doesn't put them back: it sorts them once more. Each one must go back to its id.
    torch.zeros_like(probs).scatter(-1, order, kept) -> kept.gather(-1, order)
Your rows sum to less than one. Divide what stays by its sum.
    kept = kept / kept.sum(dim=-1, keepdim=True) ->
You start with the unlikeliest tokens.
    descending=True -> descending=False
You look at each probability by itself. What counts is the sum of the likelier ones.
    before >= top_p -> (likely < 1 - top_p) & (before > 0)
You compare each probability with the largest one. (That's called min-p.) What counts is
the sum of the likelier ones.
    before >= top_p -> likely < (1 - top_p) * likely[..., :1]
What you throw away is 0 before a softmax, and e⁰ is 1: it can still be drawn.
    kept / kept.sum(dim=-1, keepdim=True) -> kept.softmax(dim=-1)
You add up the probabilities in the order of their ids. Start with the likeliest.
    likely, order = probs.sort(dim=-1, descending=True)
        -> likely, order = probs, torch.arange(probs.shape[-1]).expand_as(probs)
""")
check_nucleus = nucleus.check
