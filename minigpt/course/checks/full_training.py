"""The exercises of lesson 06: AdamW, sampling, a leak, a verdict, and top-p."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.course.checks.exercise import Wrong, exercise

GENTLE = (0.5, 0.7)


@exercise(
    "06.1 AdamW by hand",
    cases=[
        (1.0, [2.0], 0.1, GENTLE, 0.0, 1e-8),
        (3.0, [0.5, -2.0, 4.0], 0.1, GENTLE, 0.0, 1e-8),
        (4.0, [1.0], 0.1, GENTLE, 0.5, 1e-8),
        (3.0, [1.0, -2.0, 1.5], 0.1, GENTLE, 0.5, 0.25),
    ],
    fresh=lambda: [(5.0, torch.randn(8).tolist(), 0.02, (0.9, 0.95), 0.1, 0.1)],
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
Your corrected averages carry over into the next step. Keep m and v as they are, and use
the corrected ones only once.
    mean = m / -> mean = m = m /
    root = (v / (1 - b2**t)) ** 0.5 -> v = v / (1 - b2**t)
            root = v**0.5
eps is under the root. It belongs next to the root.
    ** 0.5 ->
    / (root + eps) -> / (root + eps) ** 0.5
The correction is missing: m and v start at 0, so they are too small at first.
    m / (1 - b1**t) -> m
    (v / (1 - b2**t)) -> v
Your decay acts on p after the step. It should act on p before the step.
    p = p - lr * (decay * p + mean / (root + eps)) -> p = p - lr * (mean / (root + eps))
            p = p - lr * decay * p
""")
check_walk = walk.check


def _counts(idx: torch.Tensor, targets: Any = None) -> tuple:
    """A model whose logits can be checked on paper."""
    return F.one_hot(idx, 4).cumsum(1) + 0.3 * torch.arange(4), None


COUNTS = "logits: how often each id 0-3 occurred, + 0.3 * id"
SHORT, LONG = torch.tensor([[0, 1, 1]]), torch.tensor([[3, 3, 0, 1, 0]])
BATCH = torch.tensor([[0, 1, 1, 2, 1], [3, 3, 3, 1, 0], [2, 0, 2, 2, 2]])


@exercise(
    "06.2 What comes next?",
    cases=[
        (COUNTS, SHORT, 3, 1.0, None),
        (COUNTS, LONG, 3, 1.0, None),
        (COUNTS, SHORT, 3, 0.5, None),
        (COUNTS, SHORT, 3, 1.0, 2),
        (COUNTS, SHORT, 3, 1.0, 1),
        (COUNTS, BATCH, 8, 0.5, 2),
        (COUNTS, SHORT, 3, 2.0, 9),
    ],
    fresh=lambda: [
        (COUNTS, torch.randint(4, (2, 7)), 5, 0.8, None),
        (COUNTS, torch.randint(4, (3, 6)), 4, 1.5, 2),
    ],
    work=lambda next_probs, model, idx, block_size, temperature, top_k: next_probs(
        _counts, idx, block_size, temperature, top_k
    ),
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


next_probs.mistakes("""
You keep the first block_size tokens, so the model never sees how the text goes on.
    -block_size: -> :block_size
The tokens that you cut get the logit 0, and e⁰ is 1: they can still be drawn.
    float("-inf") -> 0.0
""")
check_next_probs = next_probs.check


def _leaks(
    split_windows: Callable, ids: torch.Tensor, block_size: int, train_fraction: float
) -> dict:
    """Which characters leak, as each id is its own position in the text."""
    parts = split_windows(ids, block_size, train_fraction)
    if any((p.diff() != 1).any() or p.shape[1] != block_size + 1 for p in parts):
        raise Wrong(
            f"Both parts should be windows of {block_size + 1} neighboring characters."
        )
    learned, judged = (set(p[:, 1:].flatten().tolist()) for p in parts)
    reads = (set(p.flatten().tolist()) for p in parts)
    leaks = {i for own, other in zip((judged, learned), reads) for i in own & other}
    shares = (train_fraction, learned), (1 - train_fraction, judged)
    return {
        "judged and learned": sorted(judged & learned),
        "predicted here, read there": sorted(leaks - (judged & learned)),
        "enough to learn, to judge": [len(p) > 0.4 * f * len(ids) for f, p in shares],
    }


@exercise(
    "06.3 Too good to be true",
    cases=[
        (torch.arange(n), size, fraction)
        for n, size, fraction in [(16, 2, 0.75), (60, 3, 0.8), (200, 8, 0.9)]
    ],
    fresh=lambda: [(torch.arange(int(torch.randint(300, 400, ()))), 5, 0.7)],
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
    "You're nearly there. Windows of the two parts still overlap, but only around the "
    "cut.",
    sign=lambda got, _, ids, block_size, *given: (
        0 < len(both := got["judged and learned"]) and both[-1] - both[0] < block_size
    ),
    hint="Which characters does the last window of the first part share with the first "
    "window of the second?",
)
split_windows.wrong(
    "Your model learns characters that it's also judged on. If it knows its windows by "
    "heart and understands nothing, it still gets a splendid validation loss.",
    sign=lambda got, *_: len(got["judged and learned"]) > 0,
)
check_split_windows = split_windows.check


def _word(verdict: Callable, before: list, after: list) -> Any:
    word = verdict(before, after)
    return word.strip().lower() if isinstance(word, str) else word


@exercise(
    "06.4 One change, three seeds, a verdict",
    cases=[
        ([2.0, 2.0, 2.0], [1.75, 1.5, 1.625]),
        ([2.0, 2.0, 2.0], [2.25, 2.5, 2.375]),
        ([2.0, 2.5, 3.0], [1.875, 2.375, 2.875]),  # better, though they overlap
        ([2.0, 2.0, 2.0, 2.0], [2.125, 1.5, 1.5, 1.5]),  # lower on average: a tie
        ([2.0, 2.0, 2.0], [1.0, 2.25, 2.25]),  # lower on average, higher in most
        ([1.0, 2.0, 3.0], [2.5, 1.5, 0.5]),  # sorted: better; paired: a tie
        ([2.0, 2.0, 2.0], [1.75, 1.5, 2.0]),  # one seed didn't change
        ([1.5, 1.75], [1.5, 1.75]),
        ([2.0, 2.0, 2.0], [1.9995, 1.9999, 1.9996]),  # small, but all of one sign
        ([2.0, 2.0, 2.0], [2.25, 1.75, 2.25]),  # the first and the last agree
    ],
    fresh=lambda: [tuple((1 + torch.rand(2, 3)).tolist()) for _ in range(8)],
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
""")
check_verdict = verdict.check


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
    ],
    fresh=lambda: [
        (F.softmax(2 * torch.randn(3, 9), dim=-1), 0.3),
        (F.softmax(2 * torch.randn(2, 7), dim=-1), 0.9),
    ],
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
Your set ends one token too early. The token that brings the sum up to top_p belongs to
it.
    before >= top_p -> before + likely > top_p
    or
    before >= top_p -> (before + likely) * (before > 0) > top_p
gather doesn't put them back: it sorts them once more. Each one must go back to its id.
    torch.zeros_like(probs).scatter(-1, order, kept) -> kept.gather(-1, order)
Your rows sum to less than one. Divide what stays by its sum.
    kept = kept / kept.sum(dim=-1, keepdim=True) ->
""")
check_nucleus = nucleus.check
