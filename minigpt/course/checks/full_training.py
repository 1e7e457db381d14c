"""Checks for notebook 06: the recipe of a training, sampling, and honest judging."""

import re

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course.checks.core import (
    Explained,
    Sign,
    attempted,
    call,
    compare,
    exercise,
)
from minigpt.course.checks.reading import source
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import as_tensor, randn


@exercise("06.1 AdamW by hand")
def check_walk(walk):
    """walk(p, grads, lr, betas, decay, eps) -> list: p after each of AdamW's steps."""
    betas, gentle = (0.9, 0.99), (0.5, 0.75)
    cases = [
        (1.0, [2.0], 0.1, gentle, 0.0, 1e-8),
        (3.0, [0.5, -2.0, 4.0], 0.1, gentle, 0.0, 1e-8),
        (3.0, [1.0, -2.0, 1.5], 0.1, gentle, 0.5, 0.25),
        (-1.5, randn(8, seed=1).tolist(), 0.02, betas, 0.1, 0.1),
    ]
    hint = "m and v are updated first; then m / (1 - b1**t), with t = 1 at first."
    compare(walk, Solution("06.1"), cases, atol=1e-7, hint=hint)
    return "4 walks, as torch goes them: decay, eps and corrections included."


class _Line(nn.Module):
    """loss = mean of (x · w + b - y)²: small enough for paper."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))

    def forward(self, x, targets=None):
        out = x @ self.w + self.b  # (B, 2) -> (B,)
        return out, None if targets is None else ((out - targets) ** 2).mean()


def _trained(train_step, x, y, max_norm):
    """The weights after one SGD step for each row of x, y; what each step returned."""
    model, losses = _Line(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for xb, yb in zip(x, y):
        losses.append(train_step(model, optimizer, xb, yb, max_norm))
    weights = torch.cat([model.w, model.b]).detach()
    return weights if weights.any() or attempted(losses[-1]) else None, losses


@exercise("06.2 One step, clipped by hand")
def check_train_step(train_step):
    """train_step(model, optimizer, x, y, max_norm) -> the loss before the step."""
    one, two = torch.tensor([[[2.0, 2.0]]]), torch.tensor([[[2.0, 2.0]], [[1.0, -3.0]]])
    cases = [
        (one, torch.tensor([[15.0]]), 1.0),
        (one, torch.tensor([[0.1]]), 1.0),  # too short to be clipped
        (two, torch.tensor([[15.0], [4.0]]), 2.0),
        (randn(4, 3, 2), randn(4, 3), 0.5),
    ]

    def weights(train_step, *inputs):
        return _trained(train_step, *inputs)[0]

    known = {
        "You clip after optimizer.step(): by then the weights have moved.": Sign(
            lambda *_: re.search(r"(?s)\.step\(\).*max_norm", source(train_step))
        )
    }
    hint = "zero_grad, backward, clip, step; length = (sum of all squares) ** 0.5"
    compare(train_step, Solution("06.2"), cases, known, work=weights, hint=hint)
    loss = _trained(train_step, *cases[0])[1][0]
    number, what = as_tensor(loss) if attempted(loss) else None, ""
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        what = "is a tensor that still knows how it was computed, and keeps its memory"
    elif number is None or number.numel() != 1:
        what = "is not returned as a number"
    elif abs(number.item() - 225.0) > 1e-3:
        what = f"returned is {number.item():.4g}; before the step it was 225"
    if what:
        hint = "Return the number of the loss that you called backward() on."
        raise Explained(f"The step is right, but the loss {what}.", hint, share=0.75)
    return "4 runs of 1 to 4 steps: fresh gradients, one length for all, direction kept"


class _Counts(nn.Module):
    """Logits that can be checked on paper: how often each id occurred so far."""

    def __init__(self, block_size, vocab_size=4):
        super().__init__()
        self.block_size, self.vocab_size = block_size, vocab_size

    def forward(self, idx, targets=None):
        if idx.shape[1] > self.block_size:
            what = "You feed the model more tokens than its block_size."
            raise Explained(what, "Keep the last ones: idx[:, -block_size:].")
        so_far = F.one_hot(idx, self.vocab_size).cumsum(1)  # (B, T, vocab_size)
        return so_far + 0.3 * torch.arange(self.vocab_size), None


@exercise("06.3 What comes next?")
def check_next_probs(next_probs):
    """next_probs(model, idx, block_size, temperature, top_k) -> (B, vocab_size)."""
    short, longer = torch.tensor([[0, 1, 1]]), torch.tensor([[3, 3, 0, 1, 0]])
    batch = torch.tensor([[0, 1, 1, 2, 1], [3, 3, 3, 1, 0], [2, 0, 2, 2, 2]])
    shapes = [(short, 3), (longer, 3), (batch, 4), (batch, 8)]
    parts = [  # one after the other, so that two mistakes are told one at a time
        (
            "The last block_size tokens, idx[:, -block_size:]; then [:, -1].",
            [(1, None)],
        ),
        (
            "Divide the logits by the temperature, before the softmax.",
            [(0.5, None), (2.0, None)],
        ),
        (
            "values[:, -1:] of topk is the smallest to keep; the others become -inf.",
            [(1.0, 2), (1.0, 3), (0.5, 2), (1.0, 1), (2.0, 4), (1.0, 9)],
        ),
    ]
    for done, (hint, knobs) in enumerate(parts):
        cases = [(_Counts(s), idx, s, *knob) for knob in knobs for idx, s in shapes]
        try:
            compare(next_probs, Solution("06.3"), cases, hint=hint)
        except Explained as problem:
            problem.share = (done + problem.share) / 3
            raise
    return "4 contexts, 3 temperatures, top-k of 1 to 9; each row sums to one"


@exercise("06.4 Too good to be true")
def check_split_windows(split_windows):
    """split_windows(ids, block_size, train_fraction) -> windows to learn and judge."""
    for N, size, fraction in [(60, 3, 0.8), (200, 8, 0.9), (331, 5, 0.7)]:
        ids = torch.arange(N)  # each id says where in the text it stands
        out = call(split_windows, ids, size, fraction)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            what = "Return two tensors: windows to learn from, and to judge on."
            raise Explained(what)
        parts = [as_tensor(part) for part in out]
        for part in parts:
            if part is None or part.dim() != 2 or part.shape[1] != size + 1:
                got = "no tensor" if part is None else tuple(part.shape)
                raise Explained(
                    f"With block_size {size}, windows should be (n, {size + 1}), but "
                    f"one part is {got}.",
                    "block_size inputs, and one more for the last target.",
                )
        if problem := _windows_problem(*parts, N, size, fraction):
            raise Explained(*problem)
    return "3 texts: no validation target was learned from, and little text is lost"


def _windows_problem(learned, judged, N, size, fraction):
    """(what is wrong, a hint), or None."""
    if not len(learned) or not len(judged):
        return "One of the two parts is empty.", "Both need whole windows."
    if any((part.diff(dim=1) != 1).any() for part in (learned, judged)):
        what = "Your windows are no longer pieces of running text."
        return what, "Shuffle windows, if anything, never characters."
    windows = {tuple(row) for row in learned.tolist()}
    if all(tuple(row) in windows for row in judged.tolist()):
        what = "You judge on windows that were learned from: that is the training loss."
        what += f" The first part ends with character {int(learned.max())} of {N}, the "
        what += f"second begins with character {int(judged.min())}."
        return what, "The second part must be text that the first does not contain."
    targets, asked = (set(part[:, 1:].flatten().tolist()) for part in (learned, judged))
    both = targets & asked
    if both and max(both) - min(both) < size and len(both) < len(asked):
        return (
            "Nearly. Around the cut, windows of both parts still overlap: of "
            f"{len(asked)} validation targets, {len(both)} were learned from: the "
            f"characters {int(min(both))} to {int(max(both))}.",
            "Make the windows of ids[:n] and of ids[n:], each by themselves.",
        )
    if both:
        what = "The bug is still there: a model that only learns its windows by heart, "
        what += "and understands nothing, still gets a splendid validation loss. Of "
        what += f"{len(asked)} targets to judge on, {len(both)} were learned from."
        if windows <= {tuple(row) for row in judged.tolist()}:
            what = "You judge on the whole text, and so on all that was learned from."
        hint = "Two windows that begin side by side share all characters but one. With "
        return what, hint + "ids = torch.arange(60), which ids do both parts contain?"
    if len(asked) > len(targets) and len(targets) <= (1 - fraction) * N + size:
        what = "No leak any more, but the parts are exchanged: the small one is first."
        return what, "Return the windows to learn from first."
    if len(targets) < 0.7 * fraction * N or len(asked) < 0.4 * (1 - fraction) * N:
        lost = f"of {N} characters, {len(targets)} are learned and {len(asked)} judged"
        what = f"No leak any more, but text is lost: {lost}."
        return what, "Use train_fraction for the cut, and all windows of each side."


@exercise("06.5 One change, three seeds, a verdict")
def check_verdict(verdict, before, after):
    """verdict(before, after) -> "better", "worse" or "tie", by the rule of the text."""
    cases = [
        ([2.0, 2.0, 2.0], [1.75, 1.5, 1.625]),
        ([2.0, 2.0, 2.0], [2.25, 2.5, 2.375]),
        ([2.0, 2.5, 3.0], [1.875, 2.375, 2.875]),  # paired: better; as heaps they mix
        ([2.0, 2.5, 3.0], [2.125, 2.625, 3.125]),
        ([2.0, 2.0, 2.0, 2.0], [2.125, 1.5, 1.5, 1.5]),  # lower on average: a tie
        ([2.0, 2.0, 2.0], [1.0, 2.25, 2.25]),  # lower on average, higher in most
        ([2.0, 2.0, 2.0], [2.5, 1.75, 2.25]),
        ([1.0, 2.0, 3.0], [2.5, 1.5, 0.5]),  # sorted: better; paired: a tie
        ([2.0, 2.0, 2.0], [1.75, 1.5, 2.0]),  # one seed did not change
        ([1.5, 1.75], [1.5, 1.75]),
    ]

    def said(verdict, before, after):
        word = verdict(before, after)
        return word.strip().lower() if isinstance(word, str) else word

    hint = "changes = [a - b for a, b in zip(after, before)]: are all of one sign?"
    solution = Solution("06.5")
    compare(verdict, solution, cases, work=said, hint=hint)
    told = f"{len(cases)} pairs of runs, ties included"
    runs = [as_tensor(losses) for losses in (before, after)]
    if any(losses is None for losses in runs) or not len(runs[1]):
        return (
            f"{told}. Now the real thing: one change, three seeds, and run this again"
        )
    if runs[0].shape != runs[1].shape or len(runs[1]) < 3:
        raise Explained(
            f"Your rule is right. But `before` has {len(runs[0])} losses and `after` "
            f"{len(runs[1])}: at least three seeds, the same for both.",
            "after = three_seeds(name=value), with one change.",
            share=0.9,
        )
    changes = runs[1] - runs[0]
    return (
        f"{told}. Your change: {changes.mean():+.3f} ({changes.min():+.3f} to "
        f"{changes.max():+.3f}), {solution(*map(list, runs))}"
    )
