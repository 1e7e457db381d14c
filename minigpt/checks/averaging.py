"""Checks for notebook 02: means of the past, fading memories, leaks and two bugs."""

import math

import torch
import torch.nn.functional as F

from minigpt.averaging import average_attention, average_loop, average_matmul
from minigpt.checks.core import (
    Explained,
    Sign,
    as_tensor,
    attempted,
    compare,
    describe,
    exercise,
    same,
)
from minigpt.checks.solutions import Solution

TOY = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])  # the notebook's, (1, T, C)
MOST = 200  # characters of the learner's text that are looked at


def _random(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator)


MEAN = ".mean(dim=1) → .sum(dim=1)"
MEANS = {
    "You return position t alone: an index, where a slice is needed.": (
        ": t + 1].mean(dim=1) → t]",
        "A slice a:b holds a, ..., b - 1. Which b makes position t the last one?",
    ),
    "You divide by T, but there are fewer positions so far.": f"{MEAN} / x.shape[1]",
    "You divide by t, but counting from 0 there are t + 1 positions.": f"{MEAN} / t",
}


@exercise("02.1 The present included")
def check_mean_so_far(mean_so_far):
    """mean_so_far(x, t): (B, T, C) -> (B, C)."""
    small, solution = _random(2, 5, 3), Solution("02.1")
    cases = [(TOY, 1), (small, 2), (small, 0), (small, 4), (_random(3, 4, 6), 1)]
    hint = "A slice a:b holds a, ..., b - 1. x is (B, T, C), dimensions 0, 1 and 2: "
    hint += "which of them is time?"
    compare(mean_so_far, solution, cases, MEANS, hint=hint)
    return "3 shapes and 4 positions; the present is in, the future is out."


WINDOWS = {
    "The present is not included, and row 0 is the mean of nothing, nan.": (
        ".tril().triu(-(k - 1)) → .tril(-1).triu(-k)"
    ),
    "Your window looks ahead: above the diagonal is the future.": (
        "-(k - 1)) → -(k - 1)).T"
    ),
    "You average the first k positions in each row, not the last k.": (
        ".triu(-(k - 1)) → * (torch.arange(T) < k)"
    ),
    "Softmax of zeros and ones leaks: exp(0) = 1, so a 0 hides nothing.": (
        "seen / seen.sum(dim=1, keepdim=True) → seen.softmax(dim=1)"
    ),
    "You normalise first and cut the window after: rows do not sum to one.": (
        "/ seen.sum(dim=1, keepdim=True) → / torch.arange(1, T + 1)[:, None]"
    ),
}


@exercise("02.2 A memory of k positions")
def check_window_weights(window_weights):
    """window_weights(T, k) -> (T, T)."""
    cases = [(3, 2), (5, 3), (4, 1), (6, 6), (4, 9), (1, 1)]
    hint = "Write the row t = 2 for k = 2 on paper: which entries are not zero? Then "
    hint += "divide each row by its own sum, a column (T, 1)."
    compare(window_weights, Solution("02.2"), cases, WINDOWS, hint=hint)
    return (
        "6 pairs of T and k; rows sum to one, the future is hidden, k = 1 is only "
        "the present, and from k = T on it is the plain mean."
    )


def _but_for_order(got, expected, text):
    return same(as_tensor(got).sort().values, expected.sort().values)


SHARES = {
    "The present is not included: row t counts text[:t], not text[: t + 1].": (
        Sign(lambda got, expected, text: same(as_tensor(got)[1:], expected[:-1])),
        "The slice [:t] ends before t, as in section 2; tril keeps the diagonal.",
    ),
    "Your columns are not in the order sorted(set(text)).": Sign(_but_for_order),
}


@exercise("02.3 Counting is averaging")
def check_shares_so_far(shares_so_far, my_text):
    """shares_so_far(text) -> (T, V), on texts of our own and on the learner's."""
    solution, texts = Solution("02.3"), ["ba", "noon", "to be", "aaa", "Ça va?"]
    hint = "One-hot rows (T, V), a column for each of sorted(set(text)); then rows of "
    hint += "a lower triangle that sum to one, times one_hot: section 3."
    cases = [(text,) for text in texts]
    compare(shares_so_far, solution, cases, SHARES, hint=hint)
    if not isinstance(my_text, str) or not my_text:
        raise Explained(
            f"my_text should be a text of yours, but it is {describe(my_text)}.",
            'For example my_text = "my own words", or load_text()[:200].',
            share=0.9,
        )
    mine = my_text[:MOST]
    compare(shares_so_far, solution, [(mine,)], SHARES, hint=hint)
    share, column = solution(mine)[-1].max(dim=0)
    return (
        f"5 short texts and yours; rows sum to one. After {len(mine)} characters of "
        f"yours, {sorted(set(mine))[column]!r} leads with {share:.0%}."
    )


FADING = {
    "Your rows do not sum to one: exp is there, the division is not.": (
        "F.softmax(scores, dim=-1) → scores.exp()"
    ),
    "The rate changes nothing: this is the plain mean, version 3.": "-rate * → 0 *",
    "You take rate itself for the factor of one step back; that is exp(-rate), for a "
    "score of -rate.": "-rate * → math.log(rate or 1e-9) *",
    "Everything is nan: 0 times minus infinity is nan, and a row without any score "
    "left is 0 / 0.": (
        Sign(lambda got, *_: as_tensor(got).isnan().all()),
        "Do not multiply by the mask; scores.masked_fill(~past, float('-inf')).",
    ),
}


@exercise("02.4 A memory that fades")
def check_fading_average(fading_average):
    """fading_average(x, rate): (B, T, C) -> (B, T, C)."""
    cases = [(TOY, math.log(2)), (TOY, 0.0), (_random(2, 5, 3), 0.5)]
    cases += [(_random(3, 4, 1), 2.0), (_random(2, 1, 4), 1.0)]
    hint = "scores.masked_fill(~past, float('-inf')) before the softmax over each row "
    hint += "(section 4), then weights @ x. A step back must lower the score."
    compare(fading_average, Solution("02.4", math=math), cases, FADING, hint=hint)
    return (
        "4 shapes and 5 rates; the future is hidden, rows sum to one, and rate 0 is "
        "the plain mean."
    )


def _by(weights, x):
    return (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype) @ x


def _everything(x):
    return _by(torch.ones(x.shape[1], x.shape[1]), x)


def _one_ahead(x):
    return _by(torch.ones(x.shape[1], x.shape[1]).tril(1), x)


def _two_positions(x):
    return _by(torch.ones(x.shape[1], x.shape[1]).tril().triu(-1), x)


def _total_less_rest(x):
    """The plain mean, honest, but rounded: the future is added, then taken away."""
    x = x.double() / 7  # sevenths have no exact binary form
    rest = x.flip(1).cumsum(dim=1).flip(1) - x
    count = torch.arange(1, x.shape[1] + 1)[:, None]
    return 7 * (x.sum(dim=1, keepdim=True) - rest) / count


def _masked_late(x):
    """Leaks through the sum below the fraction; cos keeps all scores moderate."""
    scores = x.cos() @ x.cos().transpose(-2, -1) / x.shape[-1]
    return F.softmax(scores, dim=-1).tril() @ x


def _moderate_attention(x):
    return average_attention(x, x.cos() / x.shape[-1], x.cos())


def _last_channel(x):
    honest, leaky = average_matmul(x), _everything(x)
    return torch.cat([honest[..., :-1], leaky[..., -1:]], dim=-1)


SUSPECTS = {  # black boxes, the simplest first
    "a plain mean, by loops": average_loop,
    "a plain mean, by a product": average_matmul,
    "the mean of everything": _everything,
    "a mean that is one step ahead": _one_ahead,
    "a mean of the last two": _two_positions,
    "attention": _moderate_attention,
    "attention, masked after the softmax": _masked_late,
    "a leak in the last channel only": _last_channel,
    "the total less the future: honest, but it rounds": _total_less_rest,
}
HONEST = list(SUSPECTS)[-1]


def _tried(who_hears_whom, average, T):
    torch.manual_seed(0)
    result = who_hears_whom(SUSPECTS[average], T)
    if result is ... or result is None:
        return result
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Explained(
            f"Return two things, heard and causal; this is {describe(result)}.",
            "return heard, causal",
        )
    heard, causal = map(as_tensor, result)
    if heard is not None and not ((heard == 0) | (heard == 1)).all():
        raise Explained(
            "heard should hold True or False, but yours holds other numbers.",
            "How far must an output move to count? Compare with that.",
        )
    if attempted(result[1]) and (causal is None or causal.numel() != 1):
        raise Explained(
            f"causal should be one True or False; it is {describe(result[1])}.",
            "One conclusion from the whole map: .any() or .all(), without a dim.",
        )
    return tuple(result)


MOVED = "(average(changed) - before).abs() > 1e-4"
SUSPICIONS = {
    "This honest box adds the future and takes it away again: its past moves by "
    "rounding errors, about 1e-15, and you call that hearing.": (
        Sign(lambda got, e, box, T: box == HONEST and not same(got[0], e[0])),
        "Which change would you tolerate? A float32 keeps about 7 digits; what is "
        "heard moves by far more.",
    ),
    "You poison an input with nan (or infinity) and follow it, but 0 * nan is nan: it "
    "marks positions that have the weight 0.": (
        "+= 1.0 → = float('nan')",
        f"{MOVED} → ~({MOVED[:-6]}<= 1e-4)",
    ),
    "Your experiment starts from zeros, where this leak cannot show: the weights do "
    "move, but they are multiplied by x = 0.": "randn → zeros",
    "You miss a leak in one channel of several: it shows neither if you look at one "
    "channel only, nor if you ask whether all of them move.": (
        ".any(dim=-1) → [..., 0]",
        "Any channel may move: .any(dim=-1).",
    ),
    "Your map is empty: no output ever moves.": (
        Sign(lambda got, *_: not as_tensor(got[0]).any()),
        "Is `changed` a copy? `changed = x` is a second name for one tensor.",
    ),
    "All maps are right, but a causal box need not hear all of its past.": Sign(
        lambda got, e, box, T: same(got[0], e[0]) and "last two" in box
    ),
    "All maps are right, but this one has a True above the diagonal: the box is not "
    "causal.": Sign(lambda got, e, *_: same(got[0], e[0]) and got[1] and not e[1]),
}


@exercise("02.5 Who hears whom?")
def check_who_hears_whom(who_hears_whom):
    """who_hears_whom(average, T) -> heard (T, T), causal; tried on nine black boxes."""
    compare(
        who_hears_whom,
        Solution("02.5"),
        [(name, 3 + i % 2) for i, name in enumerate(SUSPECTS)],
        SUSPICIONS,
        work=_tried,
        parts=("heard", "causal"),
        hint="Column i of heard: change input i of a fresh copy by 1; any channel of "
        "any row may move. causal: no True above the diagonal; below, anything goes.",
    )
    return (
        "9 black boxes; you found the leak in one channel and the one through the "
        "softmax, and did not accuse the honest one that rounds."
    )


@exercise("02.6 Better than luck")
def check_nats_per_character(nats_per_character):
    """nats_per_character(text) -> float; the first character may be left out."""
    solution, texts = Solution("02.6"), ["ab", "aab", "noon", "to be or not to be"]
    last, present = "(probs.log(), ids)", "diagonal=-1 → diagonal=0"
    shorter = solution.but(f"{last} → (probs[1:].log(), ids[1:])")

    def without_first(nats_per_character, text):
        """The loss; where it is right but for the first character, the one with it."""
        loss = nats_per_character(text)
        return solution(text) if same(loss, shorter(text)) else loss

    known = {
        "The bug is still there: on letters drawn blindly, which nobody can predict, "
        "the program claims to do better than guessing.": (
            present,
            "Take the text 'ab' on paper. What may be known when 'a' is guessed? When "
            "'b'?",
        ),
        "Better than before, hence worse: even the next character is counted.": (
            "diagonal=-1 → diagonal=1"
        ),
        "The targets are shifted the wrong way: row t + 1 guesses character t.": (
            present,
            f"{last} → (probs[1:].log(), ids[:-1])",
        ),
        "Mended twice, diagonal and targets: now the counts are two steps behind.": (
            f"{last} → (probs[:-1].log(), ids[1:])",
            "One of the two repairs is enough.",
        ),
        "The loss is infinite: a character that was never seen has probability 0.": (
            Sign(lambda got, *_: as_tensor(got).isinf().all()),
            "Keep the + 1: it gives every character a chance before it has come.",
        ),
    }
    hint = "The probabilities for character t may count characters 0 to t - 1."
    cases = [(text,) for text in texts]
    compare(nats_per_character, solution, cases, known, work=without_first, hint=hint)
    return "4 texts; every character is guessed from those before it, and only those."


# A right mask does not look at the scores; these betray one that still does.
UNLUCKY = (
    torch.arange(10.0).reshape(1, 10, 1),
    torch.ones(1, 10, 1),
    -torch.tensor([200.0, 1.0] + [10.0**-n for n in range(5, 13)]).reshape(1, 10, 1),
)


@exercise("02.7 The silent query")
def check_attend(attend):
    """attend(x, q, k): (B, T, C) -> (B, T, C), equal to averaging.average_attention."""
    solution = Solution("02.7")
    silent = (
        TOY,
        *torch.tensor([[[[1.0, 0], [0, 0], [1, 0]]], [[[1, 0], [2, 1], [3, 0]]]]),
    )
    one_hot = torch.eye(4)[[1, 0, 1, 2, 0]].expand(2, 5, 4)
    orthogonal = (_random(2, 5, 3), one_hot, one_hot * torch.arange(5.0)[:, None])
    usual = (_random(3, 6, 2), _random(3, 6, 4), _random(3, 6, 5)[..., :4])
    fill, by = 'masked_fill(~past, float("-inf"))', "masked_fill(scores.tril() == 0, "
    by_score = f'{fill} → {by}float("-inf"))'
    print_it = "Print what each line makes of one silent query: where is the nan born?"
    known = {
        "The bug is still there: a query of zeros should give the plain mean, as in "
        "version 3, but gives nan.": (by_score, print_it),
        "You have swept the nan away, not its cause: the silent position now gets "
        "zeros instead of the plain mean.": (
            by_score,
            "weights @ x → weights.nan_to_num() @ x",
            print_it,
        ),
        "The nan is gone, since the future gets a finite score; but your mask is still "
        "made from the scores: the silent query hears everything, the future too.": (
            f"{fill} → {by}-1e9)"
        ),
        "Scores of zero are safe now, but negative scores of the past are not.": (
            f'{fill} → masked_fill(scores.tril() < 0, float("-inf"))'
        ),
        "You divide the scores by the root of head_size. That comes in notebook 03; "
        "here they are q · k as it is.": (
            "k.transpose(-2, -1) → k.transpose(-2, -1) / q.shape[-1] ** 0.5"
        ),
        "Right on the usual scores, wrong on unlucky ones (here from -200 to -1e-12): "
        "either your mask still depends on the values of the scores, or what you put "
        "in the place of the future is not low enough.": (
            Sign(lambda got, expected, x, *_: x.shape == UNLUCKY[0].shape),
            "Make the mask without looking at the scores; fill in -inf.",
        ),
    }
    hint = "The mask says which positions are the future: make it from ones (T, T)."
    cases = [silent, orthogonal, usual, UNLUCKY]
    compare(attend, solution, cases, known, hint=hint)
    return (
        "4 inputs, among them silent queries, scores of zero and tiny ones; rows sum "
        "to one, the future is hidden."
    )
