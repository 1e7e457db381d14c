"""Checks for notebook 06: AdamW, sampling, and honest judging."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course.checks.core import Explained, call, compare, exercise
from minigpt.course.checks.findings import Kind
from minigpt.course.checks.old_errors import Problem
from minigpt.course.checks.reading import source
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import as_tensor, randn, tensor_of

WALK = Solution(
    """
def walk(p, grads, lr, betas, decay, eps=1e-8):
    (b1, b2), m, v, path = betas, 0.0, 0.0, []
    for t, g in enumerate(grads, start=1):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        mean = m / (1 - b1**t)
        root = (v / (1 - b2**t)) ** 0.5
        p = p - lr * (decay * p + mean / (root + eps))
        path.append(p)
    return path
""",
    Mistake(
        "The decay goes through the averages: that is Adam. In AdamW it acts on"
        " p alone.",
        [("m = b1 * m", "g = g + decay * p; m = b1 * m"), ("decay * p + mean", "mean")],
    ),
    Mistake(
        "The decay is not multiplied by the learning rate.",
        [("lr * (decay * p + mean", "(decay * p + lr * mean")],
    ),
    Mistake(
        "The corrected averages go on into the next step; only m and v should.",
        [
            ("mean = m /", "mean = m = m /"),
            ("root = (v / (1 - b2**t))", "v = v / (1 - b2**t); root = v"),
        ],
    ),
    Mistake(
        "The corrected mean goes on into the next step; only m should.",
        [("mean = m /", "mean = m = m /")],
    ),
    Mistake(
        "eps stands under the root; it belongs beside it.",
        [("** 0.5", ""), ("/ (root + eps)", "/ (root + eps) ** 0.5")],
    ),
    Mistake(
        "The correction is missing: m and v begin at 0, so they are too small "
        "at first.",
        [("m / (1 - b1**t)", "m"), ("(v / (1 - b2**t))", "v")],
    ),
    Mistake(
        "You correct in the first step only; m and v are too small for a long time.",
        [
            ("m / (1 - b1**t)", "m / (1 - b1**t if t == 1 else 1)"),
            ("(v / (1 - b2**t))", "(v / (1 - b2**t if t == 1 else 1))"),
        ],
    ),
    Mistake(
        "The decay acts on p after the step; it should act on the p before it.",
        [
            (
                "p = p - lr * (decay * p + mean / (root + eps))",
                "p = p - lr * mean / (root + eps)\n        p = p - lr * decay * p",
            )
        ],
    ),
    Mistake(
        "m and v begin at 0 again in every step: they are to be kept "
        "from one step to the next.",
        [
            ("m = b1 * m", "m = v = 0.0; m = b1 * m"),
        ],
    ),
    Mistake(
        "v averages the gradients, and squares come afterwards: what "
        "goes up and down cancels. It is the squares that are averaged.",
        [
            ("(1 - b2) * g**2", "(1 - b2) * g"),
            ("root = (v / (1 - b2**t)) ** 0.5", "root = abs(v / (1 - b2**t))"),
        ],
    ),
    Mistake(
        "v averages the gradients, and squares come afterwards: what "
        "goes up and down cancels. It is the squares that are averaged.",
        [
            ("(1 - b2) * g**2", "(1 - b2) * g"),
            ("root = (v / (1 - b2**t)) ** 0.5", "root = (v**2 / (1 - b2**t)) ** 0.5"),
        ],
    ),
    Mistake(
        "v averages the sizes of the gradients; it is their squares, and "
        "a root follows.",
        [
            ("g**2", "abs(g)"),
            (") ** 0.5", ")"),
        ],
    ),
    Mistake(
        "These are the steps; wanted are the places after them.",
        [
            ("(b1, b2), m", ("start = p\n    (b1, b2), m")),
            ("return path", "return [b - a for a, b in zip([start, *path], path)]"),
        ],
    ),
)


@exercise("06.1 AdamW by hand", WALK)
def check_walk(walk: Any) -> str:
    """walk(p, grads, lr, betas, decay, eps) -> list: p after each of AdamW's steps."""
    betas, gentle = (0.9, 0.95), (0.5, 0.7)
    cases = [
        (1.0, [2.0], 0.1, gentle, 0.0, 1e-8),
        (3.0, [0.5, -2.0, 4.0], 0.1, gentle, 0.0, 1e-8),
        (3.0, [1.0, -2.0, 1.5], 0.1, gentle, 0.5, 0.25),
        (5 * randn(1).item(), randn(8, seed=1).tolist(), 0.02, betas, 0.1, 0.1),
    ]
    hint = "m and v are updated first; then m / (1 - b1**t), with t = 1 at first."
    compare(walk, WALK, cases, atol=1e-7, hint=hint)
    return "4 walks, as torch goes them: decay, eps and corrections included."


class _Counts(nn.Module):
    """Logits that can be checked on paper: how often each id occurred so far."""

    def __init__(self, block_size: int, vocab_size: int = 4):
        super().__init__()
        self.block_size, self.vocab_size = block_size, vocab_size

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, None]:
        if idx.shape[1] > self.block_size:
            what = "You feed the model more tokens than its block_size."
            raise Explained(what, "Keep the last ones: idx[:, -block_size:].")
        so_far = F.one_hot(idx, self.vocab_size).cumsum(1)  # (B, T, vocab_size)
        return so_far + 0.3 * torch.arange(self.vocab_size), None


NEXT_PROBS = Solution(
    """
def next_probs(model, idx, block_size, temperature=1.0, top_k=None):
    context = idx[:, -block_size:]
    logits = model(context)[0][:, -1] / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        smallest = logits.topk(k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return F.softmax(logits, dim=-1)
""",
    Mistake(
        "One token too many stays: the first k of a sorted row end at index k - 1.",
        [
            (
                "logits.topk(k, dim=-1).values[:, -1:]",
                "logits.sort(dim=-1, descending=True).values[:, [min(k, "
                "logits.shape[-1] - 1)]]",
            )
        ],
    ),
    Mistake(
        "The temperature changes nothing here: it must divide the logits, before the "
        "softmax.",
        [("[:, -1] / temperature", "[:, -1]")],
    ),
    Mistake(
        "You keep the first block_size tokens: the model never sees how the "
        "text goes on.",
        [("-block_size:", ":block_size")],
    ),
    Mistake(
        "What you throw away gets the logit 0, and e⁰ is 1: it may still be drawn.",
        [('float("-inf")', "0.0")],
    ),
    Mistake(
        "You cut after the softmax and leave it so: the rows sum to less than one.",
        [
            (
                "smallest =",
                "kept = logits.softmax(-1); return kept.masked_fill(kept < kept.topk(k,"
                " dim=-1).values[:, -1:], 0.0)\n"
                "        smallest =",
            )
        ],
    ),
    Mistake(
        "The temperature divides the probabilities, so the rows no "
        "longer sum to one; it belongs to the logits.",
        [
            ("[:, -1] / temperature", "[:, -1]"),
            (
                "return F.softmax(logits, dim=-1)",
                "return F.softmax(logits, dim=-1) / temperature",
            ),
        ],
    ),
    Mistake(
        "You return k probabilities; every token keeps its place, "
        "those that are thrown away with the probability 0.",
        [
            (
                'logits.masked_fill(logits < smallest, float("-inf"))',
                "logits.topk(k, dim=-1).values",
            ),
        ],
    ),
    Mistake(
        "Only the likeliest token stays: values[:, 0] is the largest "
        "of the k; the smallest to keep is the last of them.",
        [
            ("values[:, -1:]", "values[:, :1]"),
        ],
    ),
    Mistake(
        "What is thrown away gets the logarithm 0, which is the probability 1.",
        [
            (
                ('logits = logits.masked_fill(logits < smallest, float("-inf"))'),
                "log_probs = logits.log_softmax(dim=-1)\n"
                "        return log_probs.masked_fill(logits < smallest, "
                "0.0).exp()",
            ),
        ],
    ),
    Mistake(
        "One row's threshold cuts all rows; each row has a k-th largest of its own.",
        [
            (
                "logits.topk(k, dim=-1).values[:, -1:]",
                "logits.topk(k, dim=-1).values[:1, -1:]",
            ),
        ],
    ),
    Mistake(
        "The k likeliest of the whole batch stay; each row should keep its own.",
        [
            (
                "logits.topk(k, dim=-1).values[:, -1:]",
                "logits.flatten().topk(k).values[-1]",
            ),
        ],
    ),
    Mistake(
        "The ids 0, ..., k - 1 stay; it should be the k likeliest.",
        [
            ("logits < smallest", "torch.arange(logits.shape[-1]) >= k"),
        ],
    ),
)


@exercise("06.2 What comes next?", NEXT_PROBS)
def check_next_probs(next_probs: Any) -> str:
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
            compare(next_probs, NEXT_PROBS, cases, hint=hint, complete=done == 2)
        except Problem as problem:
            problem.share = (done + problem.share) / 3
            raise
    return "4 contexts, 3 temperatures, top-k of 1 to 9; each row sums to one"


SPLIT_WINDOWS = Solution(
    """
def split_windows(ids, block_size, train_fraction=0.9):
    n = int(train_fraction * len(ids))
    to_learn, to_judge = ids[:n], ids[n:]
    return (to_learn.unfold(0, block_size + 1, 1),
            to_judge.unfold(0, block_size + 1, 1))
""",
)


@exercise("06.3 Too good to be true", SPLIT_WINDOWS)
def check_split_windows(split_windows: Any) -> str:
    """split_windows(ids, block_size, train_fraction) -> windows to learn and judge."""
    for N, size, fraction in [(60, 3, 0.8), (200, 8, 0.9), (331, 5, 0.7)]:
        ids = torch.arange(N)  # each id says where in the text it stands
        parts = [tensor_of(part) for part in call(split_windows, ids, size, fraction)]
        if any(part.dim() != 2 or part.shape[1] != size + 1 for part in parts):
            shapes = " and ".join(str(tuple(part.shape)) for part in parts)
            raise Explained(
                f"With block_size {size}, windows should be (n, {size + 1}); yours are "
                f"{shapes}.",
                "block_size inputs, and one more for the last target.",
            )
        if problem := _windows_problem(*parts, N, size, fraction):
            if problem.findings[0].kind is Kind.UNTOUCHED:
                _equal_ones_left_out(source(split_windows))
            raise problem
    return "3 texts: no validation target was learned from, and little text is lost"


def _equal_ones_left_out(text: str) -> None:
    """Explained for who removes only the windows that both parts have whole."""
    if "not in " in text or "isin(" in text:
        raise Explained(
            "You leave out what both parts have as a whole window. Two windows that "
            "begin side by side are not equal, and yet share all characters but one: "
            "most targets to judge on were learned from.",
            "Make the windows of ids[:n] and of ids[n:], each by themselves.",
        )


def _windows_problem(
    learned: torch.Tensor, judged: torch.Tensor, N: int, size: int, fraction: float
) -> Explained | None:
    """What is wrong, as Explained, or None."""
    windows, asked_of = ({tuple(row) for row in p.tolist()} for p in (learned, judged))
    targets, asked = (set(part[:, 1:].flatten().tolist()) for part in (learned, judged))
    own = "Make the windows of ids[:n] and of ids[n:], each by themselves."
    both = targets & asked
    if any((part.diff() != 1).any() for part in (learned, judged)):
        what = "The characters of a window are not neighbours in the text any more."
        return Explained(what, "Only the order of whole windows may change.")
    if asked_of <= windows:
        what = "You judge on windows that were learned from: that is the training loss."
        what += f" The first part ends with character {int(learned.max())} of {N}, the "
        what += f"second begins with character {int(judged.min())}."
        return Explained(what, own)
    if windows <= asked_of:
        what = "You judge on the whole text, and so on all that was learned from."
        return Explained(what, own)
    if both and max(both) - min(both) < size and len(both) < len(asked):
        what = "Nearly. Around the cut, windows of both parts still overlap: of "
        what += f"{len(asked)} validation targets, {len(both)} were learned from: the "
        what += f"characters {int(min(both))} to {int(max(both))}."
        return Explained(what, own)
    step = min(b - a for a, b in pairwise(sorted(w[0] for w in windows | asked_of)))
    if both and 1 < step <= size:
        what = f"Windows that begin {int(step)} places apart still overlap: of "
        what += f"{len(asked)} targets to judge on, {len(both)} were learned from."
        return Explained(what, own)
    if both:
        what = "The bug is still there: a model that only learns its windows by heart, "
        what += "and understands nothing, still gets a splendid validation loss. Of "
        what += f"{len(asked)} targets to judge on, {len(both)} were learned from."
        hint = "Two windows that begin side by side share all characters but one. With "
        hint += "ids = torch.arange(60), which ids do both parts contain?"
        return Explained(what, hint, untouched=True)
    reads = set(learned.flatten().tolist()), set(judged.flatten().tolist())
    if leaks := targets & reads[1] or asked & reads[0]:
        what = "Nearly. A character that is predicted in one part is still read in the "
        what += f"other: {len(leaks)} of them, for one character {int(min(leaks))}."
        return Explained(what, own)
    if len(asked) > len(targets):
        what = "No leak any more, but the parts are exchanged: the small one is first."
        return Explained(what, "Return the windows to learn from first.")
    if len(targets) < 0.7 * fraction * N or len(asked) < 0.4 * (1 - fraction) * N:
        what = f"No leak any more, but of {N} characters only {len(targets)} are "
        what += f"learned and {len(asked)} judged."
        return Explained(
            what, "Use train_fraction for the cut, and all windows of each side."
        )


VERDICT = Solution(
    """
def verdict(before, after):
    changes = [a - b for a, b in zip(after, before)]
    if all(change < 0 for change in changes):
        return "better"
    if all(change > 0 for change in changes):
        return "worse"
    return "tie"
""",
    Mistake(
        "You look at the mean only: any difference decides.",
        [
            ("all(change < 0 for change in changes)", "sum(changes) < 0"),
            ("all(change > 0 for change in changes)", "sum(changes) > 0"),
        ],
    ),
    Mistake(
        "You compare two heaps. Pair them: the difference of each seed comes first.",
        [
            ("all(change < 0 for change in changes)", "max(after) < min(before)"),
            ("all(change > 0 for change in changes)", "min(after) > max(before)"),
        ],
    ),
    Mistake(
        "You let the majority decide, but all seeds must agree.",
        [
            (
                "all(change < 0 for change in changes)",
                "sum((c > 0) - (c < 0) for c in changes) < 0",
            ),
            (
                "all(change > 0 for change in changes)",
                "sum((c > 0) - (c < 0) for c in changes) > 0",
            ),
        ],
    ),
    Mistake(
        "You decide by the first seed that moved, but all seeds must agree.",
        [
            (
                "all(change < 0 for change in changes)",
                "next(filter(None, changes), 0) < 0",
            ),
            (
                "all(change > 0 for change in changes)",
                "next(filter(None, changes), 0) > 0",
            ),
        ],
    ),
    Mistake(
        "Sorted, the losses are no longer paired by their seeds: "
        "compare each seed with itself.",
        [
            ("zip(after, before)", "zip(sorted(after), sorted(before))"),
        ],
    ),
    Mistake(
        "Small changes are taken for none; the rule asks for their sign alone.",
        [
            ("a - b for", "round(a - b, 2) for"),
        ],
    ),
    Mistake(
        "There is no tie in it: whatever did not rise with every seed "
        "is called better.",
        [
            (
                "all(change < 0 for change in changes)",
                "not all(change > 0 for change in changes)",
            ),
        ],
    ),
    Mistake(
        "There is no tie in it: whatever did not fall with every seed is called worse.",
        [
            ("all(change > 0 for change in changes)", "True"),
        ],
    ),
    Mistake(
        "You hold the mean change against its spread. The rule asks "
        "for less, and for more: do all seeds move the same way?",
        [
            (
                "all(change < 0 for change in changes)",
                "sum(changes) < 0 and abs(sum(changes) / len(changes)) > "
                "torch.tensor(changes).std(correction=0)",
            ),
            (
                "all(change > 0 for change in changes)",
                "sum(changes) > 0 and abs(sum(changes) / len(changes)) > "
                "torch.tensor(changes).std(correction=0)",
            ),
        ],
    ),
    Mistake(
        "You hold the mean change against its spread. The rule asks "
        "for less, and for more: do all seeds move the same way?",
        [
            (
                "all(change < 0 for change in changes)",
                "sum(changes) < 0 and abs(sum(changes) / len(changes)) > "
                "torch.tensor(changes).std(correction=1)",
            ),
            (
                "all(change > 0 for change in changes)",
                "sum(changes) > 0 and abs(sum(changes) / len(changes)) > "
                "torch.tensor(changes).std(correction=1)",
            ),
        ],
    ),
    Mistake(
        "You ask the first seed and the last; all of them must agree.",
        [
            (
                "all(change < 0 for change in changes)",
                "changes[0] < 0 and changes[0] * changes[-1] >= 0",
            ),
            ("all(change > 0 for change in changes)", "changes[0] * changes[-1] >= 0"),
        ],
    ),
)


@exercise("06.4 One change, three seeds, a verdict", VERDICT)
def check_verdict(verdict: Any, before: Any, after: Any) -> str:
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
        ([2.0, 2.0, 2.0], [1.9995, 1.9999, 1.9996]),  # small, but all of one sign
    ]

    def said(verdict: Callable, before: list[float], after: list[float]) -> Any:
        word = verdict(before, after)
        return word.strip().lower() if isinstance(word, str) else word

    hint = "changes = [a - b for a, b in zip(after, before)]: are all of one sign?"
    solution = VERDICT
    known = [
        Mistake(
            "Better and worse are exchanged: a loss that fell is better.",
            sign=lambda got, right, *_: {got, right} == {"better", "worse"},
            vague=True,
        ),
    ]
    compare(verdict, solution, cases, known, work=said, hint=hint)
    told = f"{len(cases)} pairs of runs, ties included"
    first, second = as_tensor(before), as_tensor(after)
    if first is None or second is None or not len(second):
        return (
            f"{told}. Now the real thing: one change, three seeds, and run this again"
        )
    if first.shape != second.shape or len(second) < 3:
        raise Explained(
            f"Your rule is right. But `before` has {len(first)} losses and `after` "
            f"{len(second)}: at least three seeds, the same for both.",
            "after = three_seeds(name=value), with one change.",
            share=0.9,
        )
    changes = second - first
    return (
        f"{told}. Your change: {changes.mean():+.3f} ({changes.min():+.3f} to "
        f"{changes.max():+.3f}), {solution(list(first), list(second))}"
    )


NUCLEUS = Solution(
    """
def nucleus(probs, top_p):
    likely, order = probs.sort(dim=-1, descending=True)
    before = likely.cumsum(dim=-1) - likely
    kept = likely.masked_fill(before >= top_p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, kept)
""",
    Mistake(
        "The set ends one token too early: the token with which the sum reaches "
        "top_p belongs to it, not only the first one.",
        [("before >= top_p", "(before + likely > top_p) & (before > 0)")],
    ),
    Mistake(
        "The order of the first row is used for all rows: each has its own.",
        [
            (
                "likely, order = probs.sort(dim=-1, descending=True)",
                "order = probs[:1].argsort(dim=-1, "
                "descending=True).expand(len(probs), -1); likely = probs.gather(-1, "
                "order)",
            )
        ],
    ),
    Mistake(
        "The token with which the sum reaches top_p is lost; it belongs to the set.",
        [(".cumsum(dim=-1) - likely", ".cumsum(dim=-1)")],
    ),
    Mistake(
        "You return them from likely to unlikely; each must go back to its id.",
        [("return torch.zeros_like(probs).scatter(-1, order, kept)", "return kept")],
    ),
    Mistake(
        "gather puts them in order once more, the wrong way round; scatter takes each "
        "back to its id.",
        [
            (
                "torch.zeros_like(probs).scatter(-1, order, kept)",
                "kept.gather(-1, order)",
            )
        ],
    ),
    Mistake(
        "The rows sum to less than one: what stays must be divided by its sum.",
        [("kept = kept / kept.sum(dim=-1, keepdim=True)", "")],
    ),
    Mistake(
        "You begin with the least likely tokens.",
        [("descending=True", "descending=False")],
    ),
    Mistake(
        "You look at each probability alone; what counts is the sum of the "
        "likelier ones.",
        [("before >= top_p", "likely < 1 - top_p")],
    ),
    Mistake(
        "You compare each probability with the largest one (that is min-p); what "
        "counts is the sum of the likelier ones.",
        [("before >= top_p", "likely < (1 - top_p) * likely[..., :1]")],
    ),
    Mistake(
        "You compare each probability with a share of the largest one (that is min-p); "
        "what counts is the sum of the likelier ones.",
        [("before >= top_p", "likely < top_p * likely[..., :1]")],
    ),
    Mistake(
        "What is thrown away is set to 0 before a softmax, and e⁰ is 1: it may "
        "be drawn.",
        [("kept / kept.sum(dim=-1, keepdim=True)", "kept.softmax(dim=-1)")],
    ),
    Mistake(
        "The set ends one token too early: the token with which the "
        "sum reaches top_p belongs to it. Where the first alone is "
        "above top_p, nothing stays at all.",
        [
            ("before >= top_p", "before + likely > top_p"),
        ],
    ),
    Mistake(
        "The set ends one token too early: the token with which the "
        "sum reaches top_p belongs to it, not only the first.",
        [
            ("before >= top_p", "(before + likely >= top_p) & (before > 0)"),
        ],
    ),
    Mistake(
        "You add up the probabilities in the order of their ids; the "
        "set is filled from the likeliest downwards.",
        [
            (
                "likely, order = probs.sort(dim=-1, descending=True)",
                "likely, order = probs, torch.arange(probs.shape[-1]).expand_as(probs)",
            ),
        ],
    ),
    Mistake(
        "All rows keep as many tokens as the first one; each row has a sum of its own.",
        [
            ("before >= top_p", "before[:1].expand_as(before) >= top_p"),
        ],
    ),
    Mistake(
        "A softmax of probabilities makes other probabilities; divide "
        "what stays by its sum.",
        [
            (
                "masked_fill(before >= top_p, 0.0)",
                'masked_fill(before >= top_p, float("-inf"))',
            ),
            ("kept / kept.sum(dim=-1, keepdim=True)", "kept.softmax(dim=-1)"),
        ],
    ),
    Mistake(
        "You keep a fixed share of the vocabulary, as many tokens "
        "everywhere: that is top-k. How many stay should depend on "
        "their probabilities.",
        [
            (
                "before >= top_p",
                "torch.arange(probs.shape[-1]) >= max(1, int(top_p * probs.shape[-1]))",
            ),
        ],
    ),
)


@exercise("06.5 The smallest set", NUCLEUS)
def check_nucleus(nucleus: Any) -> str:
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
    compare(nucleus, NUCLEUS, cases, hint=hint)
    even = tensor_of(call(nucleus, torch.full((1, 4), 0.25), 0.5))  # any two of them
    if (many := int((even > 0).sum())) != 2:
        raise Explained(
            f"Of four tokens of 0.25 each, {many} stay with top_p 0.5; two are the "
            "fewest that reach it. Tokens as likely as the last one of the set need "
            "not stay.",
            "Decide by the place in the sorted row, not by the probability.",
            share=0.9,
        )
    return f"{len(cases)} sets, from one token to all; each row sums to one"
