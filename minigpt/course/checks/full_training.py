"""Checks for notebook 06: AdamW, sampling, and honest judging."""

from itertools import pairwise

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course.checks.core import Explained, Sign, call, compare, exercise
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
        (5 * randn(1).item(), randn(8, seed=1).tolist(), 0.02, betas, 0.1, 0.1),
    ]
    hint = "m and v are updated first; then m / (1 - b1**t), with t = 1 at first."
    compare(walk, Solution("06.1"), cases, atol=1e-7, hint=hint)
    return "4 walks, as torch goes them: decay, eps and corrections included."


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


@exercise("06.2 What comes next?")
def check_next_probs(next_probs):
    """next_probs(model, idx, block_size, temperature, top_k) -> (B, vocab_size)."""
    short, longer = torch.tensor([[0, 1, 1]]), torch.tensor([[3, 3, 0, 1, 0]])
    batch = torch.tensor([[0, 1, 1, 2, 1], [3, 3, 3, 1, 0], [2, 0, 2, 2, 2]])
    shapes = [(short, 3), (longer, 3), (batch, 4), (batch, 8)]
    cold_and_hot = [(0.5, None), (2.0, None)]
    cut = [(1.0, 2), (1.0, 3), (0.5, 2), (1.0, 1), (2.0, 4), (1.0, 9)]
    parts = {  # one after the other, so that two mistakes are told one at a time
        "The last block_size tokens, idx[:, -block_size:]; then [:, -1].": [(1, None)],
        "Divide the logits by the temperature, before the softmax.": cold_and_hot,
        "values[:, -1:] of topk is the smallest to keep; the others become -inf.": cut,
    }
    for done, (hint, knobs) in enumerate(parts.items()):
        cases = [(_Counts(s), idx, s, *knob) for knob in knobs for idx, s in shapes]
        try:
            compare(next_probs, Solution("06.2"), cases, hint=hint)
        except Explained as problem:
            problem.share = (done + problem.share) / 3
            raise
    return "4 contexts, 3 temperatures, top-k of 1 to 9; each row sums to one"


@exercise("06.3 Too good to be true")
def check_split_windows(split_windows):
    """split_windows(ids, block_size, train_fraction) -> windows to learn and judge."""
    for N, size, fraction in [(60, 3, 0.8), (200, 8, 0.9), (331, 5, 0.7)]:
        ids = torch.arange(N)  # each id says where in the text it stands
        parts = [as_tensor(part) for part in call(split_windows, ids, size, fraction)]
        if any(part.dim() != 2 or part.shape[1] != size + 1 for part in parts):
            shapes = " and ".join(str(tuple(part.shape)) for part in parts)
            raise Explained(
                f"With block_size {size}, windows should be (n, {size + 1}); yours are "
                f"{shapes}.",
                "block_size inputs, and one more for the last target.",
            )
        if problem := _windows_problem(*parts, N, size, fraction):
            raise Explained(*problem)
    return "3 texts: no validation target was learned from, and little text is lost"


def _windows_problem(learned, judged, N, size, fraction):
    """(what is wrong, a hint), or None."""
    windows, asked_of = ({tuple(row) for row in p.tolist()} for p in (learned, judged))
    targets, asked = (set(part[:, 1:].flatten().tolist()) for part in (learned, judged))
    own = "Make the windows of ids[:n] and of ids[n:], each by themselves."
    both = targets & asked
    if any((part.diff() != 1).any() for part in (learned, judged)):
        what = "The characters of a window are not neighbours in the text any more."
        return what, "Only the order of whole windows may change."
    if asked_of <= windows:
        what = "You judge on windows that were learned from: that is the training loss."
        what += f" The first part ends with character {int(learned.max())} of {N}, the "
        return what + f"second begins with character {int(judged.min())}.", own
    if windows <= asked_of:
        what = "You judge on the whole text, and so on all that was learned from."
        return what, own
    if both and max(both) - min(both) < size and len(both) < len(asked):
        what = "Nearly. Around the cut, windows of both parts still overlap: of "
        what += f"{len(asked)} validation targets, {len(both)} were learned from: the "
        return what + f"characters {int(min(both))} to {int(max(both))}.", own
    step = min(b - a for a, b in pairwise(sorted(w[0] for w in windows | asked_of)))
    if both and 1 < step <= size:
        what = f"Windows that begin {int(step)} places apart still overlap: of "
        what += f"{len(asked)} targets to judge on, {len(both)} were learned from."
        return what, own
    if both:
        what = "The bug is still there: a model that only learns its windows by heart, "
        what += "and understands nothing, still gets a splendid validation loss. Of "
        what += f"{len(asked)} targets to judge on, {len(both)} were learned from."
        hint = "Two windows that begin side by side share all characters but one. With "
        return what, hint + "ids = torch.arange(60), which ids do both parts contain?"
    if len(asked) > len(targets):
        what = "No leak any more, but the parts are exchanged: the small one is first."
        return what, "Return the windows to learn from first."
    if len(targets) < 0.7 * fraction * N or len(asked) < 0.4 * (1 - fraction) * N:
        what = f"No leak any more, but of {N} characters only {len(targets)} are "
        what += f"learned and {len(asked)} judged."
        return what, "Use train_fraction for the cut, and all windows of each side."


@exercise("06.4 One change, three seeds, a verdict")
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
    solution = Solution("06.4")
    known = {
        "Better and worse are exchanged: a loss that fell is better.": Sign(
            lambda got, right, *_: {got, right} == {"better", "worse"}, vague=True
        )
    }
    compare(verdict, solution, cases, known, work=said, hint=hint)
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


@exercise("06.5 The smallest set")
def check_nucleus(nucleus):
    """nucleus(probs, top_p) -> (B, vocab_size): the likeliest, made to sum to one."""
    plain = torch.tensor([[0.5, 0.25, 0.125, 0.125]])
    mixed = torch.tensor([[0.125, 0.5, 0.0625, 0.25, 0.0625]])
    two = torch.tensor([[0.125, 0.5, 0.25, 0.125], [0.25, 0.25, 0.125, 0.375]])
    many = F.softmax(2 * randn(3, 9, seed=1), dim=-1)
    cases = [
        (plain, 0.6),  # two tokens: 0.5 is not enough
        (plain, 0.5),  # one: it is exactly enough
        (plain, 0.1),  # one always stays
        (mixed, 0.8),
        (two, 0.7),
        (many, 0.3),
        (many, 0.9),
        (plain, 1.0),
    ]
    hint = (
        "Sort, then cumsum: a token stays if the likelier ones sum to less than top_p."
    )
    compare(nucleus, Solution("06.5"), cases, hint=hint)
    return f"{len(cases)} sets, from one token to all; each row sums to one"
