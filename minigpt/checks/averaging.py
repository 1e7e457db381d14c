"""Checks for notebook 02: means of the past, fading memories, leaks and two bugs."""

import math
from functools import partial

import torch
import torch.nn.functional as F

from minigpt.averaging import average_attention, average_loop, average_matmul
from minigpt.checks.core import (
    Difference,
    Explained,
    NotAttempted,
    Sign,
    as_tensor,
    attempted,
    call,
    compare,
    describe,
    exercise,
    explain,
    mistakes,
    same,
)
from minigpt.data import CharTokenizer

TOY = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])  # the notebook's, (1, T, C)
MOST = 200  # characters of the learner's text that are looked at


def _random(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator)


def _past(T):
    return torch.ones(T, T).tril()


def _rows_to_one(seen):
    return seen / seen.sum(dim=-1, keepdim=True)


def _mean_so_far(x, t):
    return x[:, : t + 1].mean(dim=1)


MEAN_MISTAKES = {
    "Your slice stops one step too early: the present is not included.": (
        lambda x, t: x[:, :t].mean(dim=1)
    ),
    "Your slice goes one step too far: it includes t + 1, the future.": (
        lambda x, t: x[:, : t + 2].mean(dim=1)
    ),
    "You average all T positions, the future included.": (lambda x, t: x.mean(dim=1)),
    "x[: t + 1] cuts the batch instead of time: the first dimension is B.": (
        lambda x, t: x[: t + 1].mean(dim=1)
    ),
    "You return position t alone: an index, where a slice is needed.": (
        lambda x, t: x[:, t]
    ),
    "Your mean runs over dim=0: it mixes the rows of the batch.": (
        lambda x, t: x[:, : t + 1].mean(dim=0),
        "x is (B, T, C), dimensions 0, 1 and 2. Which of them is time?",
    ),
    "Your mean runs over the channels instead of time.": (
        lambda x, t: x[:, : t + 1].mean(dim=-1),
        "x is (B, T, C), dimensions 0, 1 and 2. Which of them is time?",
    ),
    "You return one number, the mean of everything: .mean() without a dim.": (
        lambda x, t: x[:, : t + 1].mean(),
        "x is (B, T, C), dimensions 0, 1 and 2. Which of them is time?",
    ),
    "This is the sum of the positions, not yet their mean.": (
        lambda x, t: x[:, : t + 1].sum(dim=1),
        "Positions 0, ..., t: how many are they?",
    ),
    "You divide by T, but there are fewer positions so far.": (
        lambda x, t: x[:, : t + 1].sum(dim=1) / x.shape[1],
        "Positions 0, ..., t: how many are they?",
    ),
    "You divide by t, but counting from 0 there are t + 1 positions.": (
        lambda x, t: x[:, : t + 1].sum(dim=1) / t,
        "Positions 0, ..., t: how many are they?",
    ),
}


@exercise("02.1 The present included")
def check_mean_so_far(mean_so_far):
    """mean_so_far(x, t): (B, T, C) -> (B, C)."""
    small = _random(2, 5, 3)
    cases = [(TOY, 1), (small, 2), (small, 0), (small, 4), (_random(3, 4, 6), 1)]
    known = mistakes(
        "A slice a:b holds a, ..., b - 1. Which b makes position t the last one?",
        MEAN_MISTAKES,
    )
    compare(mean_so_far, _mean_so_far, cases, known)
    return "3 shapes and 4 positions; the present is in, the future is out."


def _band(T, k):
    back = torch.arange(T)[:, None] - torch.arange(T)
    return ((back >= 0) & (back < k)).float()


def _window_weights(T, k):
    return _rows_to_one(_band(T, k))


SUM = "The sum of each row as a column (T, 1): which dim, and what keeps the column?"
COLUMNS = "Your columns sum to one, but your rows do not: you divide by column sums."
KEEPDIM = (
    "Your rows do not sum to one. The row sums are right, but without keepdim they "
    "lie along the columns: column j is divided by the sum of row j."
)
WINDOW_MISTAKES = {
    "Your window holds k + 1 positions: it reaches too far into the past.": (
        lambda T, k: _window_weights(T, k + 1)
    ),
    "Your window holds k - 1 positions: it ends one too early.": (
        lambda T, k: _window_weights(T, k - 1)
    ),
    "The present is not included, and row 0 is the mean of nothing, nan.": (
        lambda T, k: _rows_to_one(_band(T, k + 1) - _band(T, 1))
    ),
    "Your window looks ahead: above the diagonal is the future.": (
        lambda T, k: _rows_to_one(_band(T, k).T)
    ),
    "Your window has no far end: every row looks at all of its past.": (
        lambda T, k: _rows_to_one(_past(T))
    ),
    "Your window holds the first k positions, always the same ones.": (
        lambda T, k: _rows_to_one(_past(T) * (torch.arange(T) < k))
    ),
    "Softmax of zeros and ones leaks: exp(0) = 1, so a 0 hides nothing.": (
        lambda T, k: F.softmax(_band(T, k), dim=-1)
    ),
    COLUMNS: (lambda T, k: _band(T, k) / _band(T, k).sum(dim=0), SUM),
    KEEPDIM: (lambda T, k: _band(T, k) / _band(T, k).sum(dim=1), SUM),
    "Your first rows do not sum to one: they have fewer than k positions.": (
        lambda T, k: _band(T, k) / k,
        SUM,
    ),
    "The window is right, but nothing is divided: rows do not sum to one.": (
        _band,
        SUM,
    ),
    "You normalise first and cut the window after: rows do not sum to one.": (
        lambda T, k: _rows_to_one(_past(T)) * _band(T, k),
        SUM,
    ),
}


@exercise("02.2 A memory of k positions")
def check_window_weights(window_weights):
    """window_weights(T, k) -> (T, T)."""
    cases = [(3, 2), (5, 3), (4, 1), (6, 6), (4, 9), (1, 1)]
    known = mistakes(
        "Write the row t = 2 for k = 2 on paper: which entries are not zero?",
        WINDOW_MISTAKES,
    )
    compare(window_weights, _window_weights, cases, known)
    return (
        "6 pairs of T and k; rows sum to one, the future is hidden, k = 1 is only "
        "the present, and from k = T on it is the plain mean."
    )


def _one_hot(text, chars=None):
    chars = chars or CharTokenizer(text).chars
    return F.one_hot(torch.tensor([chars.index(c) for c in text]), len(chars)).float()


def _shares(text):
    return average_matmul(_one_hot(text)[None])[0]


def _sums(text):
    return _one_hot(text).cumsum(dim=0)


def _in_order_of_appearance(text):
    return average_matmul(_one_hot(text, list(dict.fromkeys(text)))[None])[0]


SHARES_MISTAKES = {
    "This is the one-hot text itself: nothing is averaged yet.": _one_hot,
    "These are counts: your rows sum to 1, 2, 3, ... instead of to one.": _sums,
    "You divide by the length of the whole text: only the last row is right.": (
        lambda text: _sums(text) / len(text)
    ),
    "Every row holds the shares in the whole text: it knows the future.": (
        lambda text: _one_hot(text).mean(dim=0).expand(len(text), -1)
    ),
    "You return only the last row: the shares in the whole text.": (
        lambda text: _one_hot(text).mean(dim=0)
    ),
    "Your rows run from position t to the end: that is the future.": (
        lambda text: _rows_to_one(_past(len(text)).T) @ _one_hot(text)
    ),
    KEEPDIM: (lambda text: _past(len(text)) / _past(len(text)).sum(1) @ _one_hot(text)),
    "Your columns are in the order in which the characters first appear.": (
        _in_order_of_appearance,
        "A row for each position, a column for each of sorted(set(text)).",
    ),
    "Your result lies on its side: it is (V, T).": (
        lambda text: _shares(text).T,
        "A row for each position, a column for each of sorted(set(text)).",
    ),
    "The present is not included: row t counts text[:t] instead of text[: t + 1].": (
        Sign(lambda got, expected, text: same(as_tensor(got)[1:], expected[:-1])),
        "The slice [:t] ends before t, as in section 2; tril keeps the diagonal.",
    ),
    "You return a list of tensors; the answer should be one tensor (T, V).": (
        Sign(lambda got, *_: isinstance(got, list) and torch.is_tensor(got[0])),
        "torch.stack(rows) lays the rows upon each other.",
    ),
    "You average the ids. But id 3 is not three times id 1: ids are only names.": (
        Sign(lambda got, expected, text: as_tensor(got).numel() == len(text) > 1),
        "Make each id a vector with a single 1 first: F.one_hot.",
    ),
    "You have more columns than the text has different characters.": (
        Sign(
            lambda got, e, text: (
                as_tensor(got).shape[0] == len(e)
                and as_tensor(got).shape[1] > e.shape[1]
            )
        ),
        "The vocabulary is that of the text given, sorted(set(text)).",
    ),
}


@exercise("02.3 Counting is averaging")
def check_shares_so_far(shares_so_far, my_text):
    """shares_so_far(text) -> (T, V), on texts of our own and on the learner's."""
    texts = ["ba", "noon", "to be", "aaa", "Ça va?"]
    known = mistakes(
        "Rows of a lower triangle that sum to one, times one_hot: section 3.",
        SHARES_MISTAKES,
    )
    compare(shares_so_far, _shares, [(text,) for text in texts], known)
    if not isinstance(my_text, str) or not my_text:
        raise Explained(
            f"my_text should be a text of yours, but it is {describe(my_text)}.",
            'For example my_text = "my own words", or load_text()[:200].',
        )
    mine = my_text[:MOST]
    compare(shares_so_far, _shares, [(mine,)], known)
    share, column = _shares(mine)[-1].max(dim=0)
    return (
        f"5 short texts and yours; rows sum to one. After {len(mine)} characters of "
        f"yours, {sorted(set(mine))[column]!r} leads with {share:.0%}."
    )


def _steps_back(T):
    return (torch.arange(T)[:, None] - torch.arange(T)).float()


def _hide(scores, shown=None, value=float("-inf")):
    T = scores.shape[-1]
    return scores.masked_fill((_past(T) if shown is None else shown) == 0, value)


def _fading(x, rate, sign=-1, shown=None, value=float("-inf"), dim=-1):
    scores = _hide(sign * rate * _steps_back(x.shape[1]), shown, value)
    return F.softmax(scores, dim=dim) @ x


def _fading_without_mask(x, rate):
    return F.softmax(-rate * _steps_back(x.shape[1]), dim=-1) @ x


def _fading_masked_late(x, rate):
    T = x.shape[1]
    return F.softmax(-rate * _steps_back(T), dim=-1) * _past(T) @ x


LATE = "Your rows do not sum to one: the mask comes only after the softmax."
DIM = "Your columns sum to one, but your rows do not: softmax runs over the wrong dim."
PRESENT = "The present is hidden too: position 0 is left with nothing, which gives nan."
RETURNED = mistakes(
    "",
    {
        "You return the weights, one for each pair of positions, not the average.": (
            Sign(
                lambda got, expected, x, *_: (
                    as_tensor(got).shape[-2:] == (x.shape[1], x.shape[1])
                )
            ),
            "weights @ x",
        ),
    },
)
FADING_MISTAKES = {
    "Nothing is hidden: the future, at minus one step back, is the loudest.": (
        _fading_without_mask
    ),
    "You give the future the score 0, but exp(0) = 1: it still has a weight.": partial(
        _fading, value=0.0
    ),
    LATE: _fading_masked_late,
    "You hide the past: masked_fill hides what is True, so it needs ~past.": (
        lambda x, rate: _fading(x, rate, shown=1 - _past(x.shape[1]))
    ),
    "You hide the past, which is the lower triangle: tril, not triu.": (
        lambda x, rate: _fading(x, rate, shown=_past(x.shape[1]).T)
    ),
    PRESENT: (lambda x, rate: _fading(x, rate, shown=_past(x.shape[1]).tril(-1))),
    DIM: (
        partial(_fading, dim=0),
        "scores, then weights = F.softmax(scores, dim=-1), then weights @ x.",
    ),
    "The rate changes nothing: this is the plain mean, version 3.": (
        lambda x, rate: average_matmul(x),
        "scores, then weights = F.softmax(scores, dim=-1), then weights @ x.",
    ),
    "Your rows do not sum to one: exp is there, the division is not.": (
        lambda x, rate: _hide(-rate * _steps_back(x.shape[1])).exp() @ x,
        "scores, then weights = F.softmax(scores, dim=-1), then weights @ x.",
    ),
    "Your memory works the wrong way round: the older, the louder.": (
        partial(_fading, sign=1),
        "A step back must lower the score. Which sign does that need?",
    ),
    "Everything is nan: 0 times minus infinity is not 0 but nan.": (
        Sign(lambda got, *_: as_tensor(got).isnan().all()),
        "Do not multiply by the mask; use masked_fill.",
    ),
}


@exercise("02.4 A memory that fades")
def check_fading_average(fading_average):
    """fading_average(x, rate): (B, T, C) -> (B, T, C)."""
    cases = [(TOY, math.log(2)), (TOY, 0.0), (_random(2, 5, 3), 0.5)]
    cases += [(_random(3, 4, 1), 2.0), (_random(2, 1, 4), 1.0)]
    known = (
        mistakes(
            "scores.masked_fill(~past, float('-inf')) before the softmax: section 4.",
            FADING_MISTAKES,
        )
        + RETURNED
    )
    compare(fading_average, _fading, cases, known)
    return (
        "4 shapes and 5 rates; the future is hidden, rows sum to one, and rate 0 is "
        "the plain mean."
    )


def _by(weights, x):
    return weights.to(x.dtype) @ x


def _everything(x):
    T = x.shape[1]
    return _by(torch.ones(T, T) / T, x)


def _one_ahead(x):
    return _by(_rows_to_one(torch.ones(x.shape[1], x.shape[1]).tril(1)), x)


def _two_positions(x):
    return _by(_window_weights(x.shape[1], 2), x)


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


def _suspects():
    """(name, black box, T, its true map), the simplest first."""
    return [
        ("a plain mean, by loops", average_loop, 3, _past(3)),
        ("a plain mean, by a product", average_matmul, 4, _past(4)),
        ("the mean of everything", _everything, 3, torch.ones(3, 3)),
        ("a mean that is one step ahead", _one_ahead, 4, torch.ones(4, 4).tril(1)),
        ("a mean of the last two", _two_positions, 4, _band(4, 2)),
        ("attention", _moderate_attention, 3, _past(3)),
        ("attention, masked after the softmax", _masked_late, 3, torch.ones(3, 3)),
        ("a leak in the last channel only", _last_channel, 4, torch.ones(4, 4)),
        ("the total less the rest", _total_less_rest, 4, _past(4)),
    ]


def _probe(change, average, T, *_, channels=slice(None), zeros=False):
    """A map (T, T), measured as a learner might: change(x, i) in place, then look."""
    x = torch.zeros(2, T, 3) if zeros else _random(2, T, 3)
    before, heard = average(x), torch.zeros(T, T)
    for i in range(T):
        changed = x.clone()
        change(changed, i)
        still = (average(changed) - before)[..., channels].abs() < 1e-6  # nan: False
        heard[:, i] = (~still).reshape(2, T, -1).any(dim=-1).any(dim=0)
    return heard


def _plus_one(x, i):
    x[:, i] += 1


def _plus_one_from(x, i):
    x[:, i:] += 1


def _plus_one_until(x, i):
    x[:, : i + 1] += 1


def _poison(x, i):
    x[:, i] = float("nan")


HEARD_MISTAKES = {
    "Your map lies on its side: entry [t, i] belongs to output t and input i.": (
        Sign(lambda got, expected, *_: same(got, expected.T)),
        "You change one input i: that fills the column heard[:, i].",
    ),
    "You compare with exact equality, but this honest box adds the future and "
    "takes it away again: its past moves by rounding errors.": (
        Sign(
            lambda got, e, average, T, name: (
                average is _total_less_rest and bool((got >= e).all())
            )
        ),
        "Which change would you tolerate? Section 3: atol=1e-6.",
    ),
    "You poison an input with nan (or infinity) and follow it, but 0 * nan is nan: "
    "it marks positions that have the weight 0.": (
        partial(_probe, _poison),
        "Change the input by an ordinary number, say 1.",
    ),
    "Your changes pile up: when you come to input i, those before are still changed.": (
        partial(_probe, _plus_one_until),
        "Start from a fresh x.clone() for every i.",
    ),
    "You change all inputs from i on, so you cannot tell which one was heard.": (
        partial(_probe, _plus_one_from),
        "Change x[:, i] alone.",
    ),
    "Your experiment starts from zeros, where this leak cannot show: the weights "
    "do move, but they are multiplied by x = 0.": (
        partial(_probe, _plus_one, zeros=True),
        "Start from random numbers, so that nothing cancels by accident.",
    ),
    "You look at one channel of the output only; the leak is in another one.": (
        partial(_probe, _plus_one, channels=0),
        "An output moves if any of its channels does: .any(dim=-1).",
    ),
    "Nothing ever moves: you compare a thing with itself.": (
        Sign(lambda got, *_: not got.any()),
        "Is `changed` a copy? `changed = x` is a second name for the same tensor.",
    ),
    "Every entry is 1: you ask whether the output as a whole moves.": (
        Sign(lambda got, *_: bool(got.all())),
        "Ask each output position t apart: .any over batch and channels, not over t.",
    ),
}


def _map_and_verdict(got, T):
    """The two parts of an answer to 02.5 as tensors, or Explained."""
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise Explained(
            f"Return two things, heard and causal; this is {describe(got)}.",
            "return heard, causal",
        )
    if not all(attempted(part) for part in got):
        raise NotAttempted
    heard, causal = as_tensor(got[0]), as_tensor(got[1])
    if heard is None or heard.shape != (T, T):
        raise Explained(
            f"heard should be a tensor of shape {(T, T)}; it is {describe(got[0])}.",
            "One row for each output, one column for each input that you change.",
        )
    if not ((heard == 0) | (heard == 1)).all():
        raise Explained(
            "heard should hold True or False, but yours holds other numbers.",
            "How far must an output move to count? Compare with that.",
        )
    if causal is None or causal.numel() != 1:
        raise Explained(
            f"causal should be one True or False; it is {describe(got[1])}.",
            "One conclusion from the whole map: .any() or .all(), without a dim.",
        )
    return heard.int(), bool(causal)


def _check_verdicts(verdicts):
    """verdicts: list of (name, conclusion, what the map says)."""
    wrong = [v for v in verdicts if v[1] != v[2]]
    if not wrong:
        return
    name, said, _ = wrong[0]
    if len(wrong) == len(verdicts):
        problem = "All maps are right, but your conclusions are the wrong way round."
    elif all("last two" in name for name, _, _ in wrong):
        problem = (
            f"All maps are right, but you call {name!r} not causal. A causal box need "
            "not hear all of its past."
        )
    else:
        problem = f"All maps are right, but for {name!r} you conclude causal = {said}."
    raise Explained(
        problem, "Causal: no True above the diagonal. Below it, anything goes."
    )


@exercise("02.5 Who hears whom?")
def check_who_hears_whom(who_hears_whom):
    """who_hears_whom(average, T) -> heard (T, T), causal; tried on nine black boxes."""
    differences, verdicts = [], []
    for name, average, T, truth in _suspects():
        got = call(who_hears_whom, average, T)
        heard, causal = _map_and_verdict(got, T)
        if not same(heard, truth):
            differences.append(Difference((average, T, name), truth.int(), heard))
        verdicts.append((name, causal, not truth.triu(1).any()))
    if differences:
        explain(differences, mistakes("", HEARD_MISTAKES))
    _check_verdicts(verdicts)
    return (
        "9 black boxes; you found the leak in one channel and the one through the "
        "softmax, and did not accuse the honest one that rounds."
    )


def _nats(text, past=-1, skip=0):
    """Mean loss from the counts; row t counts text[: t + 1 + past]."""
    one_hot = _one_hot(text)
    known = torch.ones(len(text), len(text)).tril(past)
    return _loss(known @ one_hot + 1, one_hot)[skip:].mean()


def _loss(counts, one_hot):
    return -(_rows_to_one(counts) * one_hot).sum(dim=-1).log()  # (T,)


def _nats_shifted_back(text):
    one_hot = _one_hot(text)
    return _loss((_past(len(text)) @ one_hot + 1)[1:], one_hot[:-1]).mean()


NATS_MISTAKES = {
    "The bug is still there: on letters drawn blindly, which nobody can predict, "
    "the program claims to do better than guessing.": partial(_nats, past=0),
    "Now the counts are two steps behind: the last character is missing.": partial(
        _nats, past=-2
    ),
    "Better than before, hence worse: even the next character is counted.": partial(
        _nats, past=1
    ),
    "Every guess knows the counts of the whole text, the future included.": (
        lambda text: _nats(text, past=len(text))
    ),
    "The targets are shifted the wrong way: row t + 1 guesses character t.": (
        _nats_shifted_back
    ),
    "Mended twice, diagonal and targets: now the counts are two steps behind.": (
        partial(_nats, past=-2, skip=1),
        "One of the two repairs is enough.",
    ),
    "The loss is infinite: a character that was never seen has probability 0.": (
        Sign(lambda got, *_: as_tensor(got).isinf().all()),
        "Keep the + 1: it gives every character a chance before it has been seen.",
    ),
}


@exercise("02.6 Better than luck")
def check_nats_per_character(nats_per_character):
    """nats_per_character(text) -> float; the first character may be left out."""
    cases = [("ab",), ("aab",), ("noon",), ("to be or not to be",)]
    got = [call(nats_per_character, *case) for case in cases]
    known = mistakes(
        "Take the text 'ab' on paper. What may be known when 'a' is guessed? When 'b'?",
        NATS_MISTAKES,
    )
    if not all(same(g, _nats(*case, skip=1)) for g, case in zip(got, cases)):
        compare(nats_per_character, _nats, cases, known)
    return "4 texts; every character is guessed from those before it, and only those."


def _attend(x, q, k, hide=_hide, dim=-1):
    return F.softmax(hide(q @ k.transpose(-2, -1)), dim=dim) @ x


def _hide_zeros(scores):
    return scores.masked_fill(scores.tril() == 0, float("-inf"))


def _attend_masked_late(x, q, k):
    return F.softmax(q @ k.transpose(-2, -1), dim=-1).tril() @ x


# A right mask does not look at the scores; these betray one that still does.
UNLUCKY = (
    torch.arange(10.0).reshape(1, 10, 1),
    torch.ones(1, 10, 1),
    -torch.tensor([200.0] + [10.0**-n for n in range(4, 13)]).reshape(1, 10, 1),
)
ATTEND_MISTAKES = {
    "The bug is still there: a query of zeros should give the plain mean, as in "
    "version 3, but gives nan.": (
        partial(_attend, hide=_hide_zeros),
        "Print what each line makes of one silent query: where is the nan born?",
    ),
    "You have swept the nan away, not its cause: the silent position now gets "
    "zeros instead of the plain mean.": (
        lambda *inputs: _attend(*inputs, hide=_hide_zeros).nan_to_num(),
        "Print what each line makes of one silent query: where is the nan born?",
    ),
    "Scores of zero are safe now, but negative scores of the past are not.": partial(
        _attend, hide=lambda s: s.masked_fill(s.tril() < 0, float("-inf"))
    ),
    "No nan any more, but the future is not hidden at all.": partial(
        _attend, hide=torch.clone
    ),
    "No nan, but the future has the score 0, and exp(0) = 1: it leaks.": partial(
        _attend, hide=torch.tril
    ),
    LATE: _attend_masked_late,
    DIM: partial(_attend, dim=1),
    "The mask is upside down: the past is hidden, the future shown.": partial(
        _attend, hide=lambda s: _hide(s, _past(s.shape[-1]).T)
    ),
    PRESENT: partial(_attend, hide=lambda s: _hide(s, _past(s.shape[-1]).tril(-1))),
    "The trap has only moved: your mask still depends on the values of the scores, "
    "and some unlucky scores are hidden.": (
        Sign(lambda got, expected, x, *_: x.shape == UNLUCKY[0].shape),
        "Make the mask without looking at the scores.",
    ),
}


@exercise("02.7 The silent query")
def check_attend(attend):
    """attend(x, q, k): (B, T, C) -> (B, T, C), equal to averaging.average_attention."""
    silent = (TOY, torch.tensor([[[1.0], [0.0], [1.0]]]), torch.ones(1, 3, 1))
    one_hot = torch.eye(4)[[1, 0, 1, 2, 0]].expand(2, 5, 4)
    orthogonal = (_random(2, 5, 3), one_hot, one_hot * torch.arange(5.0)[:, None])
    usual = (_random(3, 6, 2), _random(3, 6, 4), _random(3, 6, 5)[..., :4])
    cases = [silent, orthogonal, usual, UNLUCKY]
    known = (
        mistakes(
            "Which positions are the future? Does the answer depend on the scores?",
            ATTEND_MISTAKES,
        )
        + RETURNED
    )
    compare(attend, average_attention, cases, known)
    return (
        "4 inputs, among them silent queries, scores of zero and tiny ones; rows sum "
        "to one, the future is hidden."
    )
