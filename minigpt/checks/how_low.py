"""Checks for notebook 07: entropy, temperature, perplexity, smoothing, a grammar."""

import math
from functools import partial

import torch
import torch.nn.functional as F

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
from minigpt.playwright import write_play
from minigpt.playwright_lexicon import LEXICON, Lexicon


def _beliefs(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return F.softmax(2 * torch.randn(*shape, generator=generator), dim=-1)


# 07.1

DIE = torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 8])
SURE = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])


def _entropy(p):
    return torch.special.entr(p).sum(dim=-1)


ENTROPY_MISTAKES = {
    "A probability of zero gives nan: 0 * ln 0 is 0 times minus infinity.": (
        lambda p: -(p * p.log()).sum(dim=-1),
        "What is 0 times minus infinity? Say what ln should see where p is 0.",
    ),
    "These are bits: you took the logarithm to base 2. We count in nats.": (
        lambda p: _entropy(p) / math.log(2)
    ),
    "The sign is wrong: ln p is negative, so a minus belongs in front.": (
        lambda p: -_entropy(p)
    ),
    "This is the mean over the faces; but p is the weight already: sum.": (
        lambda p: _entropy(p) / p.shape[-1]
    ),
    "These are the single terms p * -ln p, not yet their sum.": torch.special.entr,
    "You sum over everything: each row is a belief of its own.": (
        lambda p: _entropy(p).sum()
    ),
    "You sum over the wrong dimension: the last one holds the outcomes.": (
        lambda p: torch.special.entr(p).sum(dim=0)
    ),
    "Each surprise counts the same here; it should count p times.": (
        lambda p: -p.clamp(min=1e-9).log().mean(dim=-1)
    ),
    "Each surprise counts the same here, also the infinite one of p = 0.": (
        lambda p: -p.log().mean(dim=-1)
    ),
    "Nearly: what you add inside the logarithm is so large that it shows.": (
        Sign(lambda got, expected, p: same(got, expected, atol=0.05)),
        "p.clamp(min=1e-12) changes nothing but zeros.",
    ),
}


@exercise("07.1 The entropy of anything")
def check_entropy(entropy):
    """entropy(p): (..., V) -> (...), in nats; 0 * ln 0 counts as 0."""
    cases = [(DIE,), (_beliefs(2, 3),), (_beliefs(2, 4, 5),), (SURE,)]
    known = mistakes(
        "Each surprise, -ln p, weighted by how often it happens, p, and summed.",
        ENTROPY_MISTAKES,
    )
    compare(entropy, _entropy, cases, known)
    return "4 shapes, impossible outcomes included; nobody gets below 0 or above ln V."


# 07.2


def _heat(logits, temperature):
    return _entropy(F.softmax(logits.double() / temperature, dim=-1)).item()


def _temperature(logits, nats, low=1e-3, high=1e3):
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _heat(logits, middle) < nats else (low, middle)
    return middle


def _stuck(got, expected, logits, nats):
    got = float(as_tensor(got))
    return got > 0 and abs(math.log(got / expected)) > 1


def _near(got, expected, logits, nats):
    return abs(float(as_tensor(got)) / expected - 1) < 0.15


TEMPERATURE_MISTAKES = {
    "This is one over the temperature: you multiply the logits by it.": (
        lambda logits, nats: 1 / _temperature(logits, nats)
    ),
    "You aim at a number of bits: the entropy is to be measured in nats.": (
        lambda logits, nats: _temperature(logits, nats * math.log(2))
    ),
    "You return the entropy that you reached; wanted is the temperature.": (
        lambda logits, nats: nats
    ),
    "Your search ends at 1, but above 1 there are temperatures too.": (
        lambda logits, nats: min(1.0, _temperature(logits, nats))
    ),
    "Your search ends at 2, but there are higher temperatures.": (
        lambda logits, nats: min(2.0, _temperature(logits, nats))
    ),
    "Close, but the entropy still differs in the second digit: search finer.": (
        Sign(_near),
        "Halve the interval again and again: 40 times are enough.",
    ),
    "Your search runs into one end of its interval: it turns the wrong way.": (
        Sign(_stuck),
        "Entropy too low? Then the temperature must rise: move the lower end up.",
    ),
}


@exercise("07.2 As surprising as you like")
def check_temperature_for(temperature_for):
    """temperature_for(logits, nats) -> the temperature with that entropy."""
    three = torch.tensor([2.0, 1.0, 0.0])
    five = torch.tensor([4.0, -1.0, 0.5, 0.0, 3.0])
    cases = [(three, 1.0), (three, 0.3), (five, 1.2), (five, 0.5), (five, 1.55)]

    def answer(logits, nats):
        got = temperature_for(logits, nats)
        number = as_tensor(got)  # right if the entropy is right, whatever the digits
        if number is None or number.numel() != 1 or not float(number) > 0:
            return got
        right = abs(_heat(logits, float(number)) - nats) < 2e-3
        return _temperature(logits, nats) if right else got

    known = mistakes(
        "Temperature divides the logits; a higher one evens out, entropy rises.",
        TEMPERATURE_MISTAKES,
    )
    compare(answer, _temperature, cases, known)
    return "5 searches, from nearly certain to nearly even; the entropies are right."


# 07.3


def _perplexity(nats, sizes):
    nats, sizes = as_tensor(nats), as_tensor(sizes)
    return ((nats * sizes).sum() / sizes.sum()).exp()


def _of(mean):
    """A program that turns the two lists into tensors first."""
    return lambda nats, sizes: mean(as_tensor(nats), as_tensor(sizes))


def _weighted(x, n):
    return (x * n).sum() / n.sum()


PERPLEXITY_MISTAKES = {
    "You average the perplexities. Surprises add up, perplexities do not.": _of(
        lambda x, n: _weighted(x.exp(), n)
    ),
    "You average the perplexities, and a short text counts like a long one.": _of(
        lambda x, n: x.exp().mean()
    ),
    "A short text counts as much as a long one: weigh by the characters.": _of(
        lambda x, n: x.mean().exp()
    ),
    "This is the mean loss in nats; its exp is still missing.": _of(_weighted),
    "You raise 2 to a number of nats: 2 belongs to bits, e to nats.": _of(
        lambda x, n: 2 ** _weighted(x, n)
    ),
    "The sign is wrong: this is the typical probability, one over it.": _of(
        lambda x, n: (-_weighted(x, n)).exp()
    ),
    "You sum all the surprise without dividing by the characters.": _of(
        lambda x, n: (x * n).sum().exp()
    ),
}


@exercise("07.3 How many sides has the die?")
def check_perplexity(perplexity):
    """perplexity(nats, sizes): two lists of equal length -> float."""
    cases = [
        ([math.log(2), math.log(8)], [3, 1]),
        ([1.5], [10]),
        ([0.5, 1.0, 2.0], [10, 1, 2]),
    ]
    known = mistakes(
        "Total surprise divided by total characters; exp comes last.",
        PERPLEXITY_MISTAKES,
    )
    compare(perplexity, _perplexity, cases, known)
    return "3 collections of texts; cutting a text in two changes nothing."


# 07.4

COUNTS = torch.tensor([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
LOWER = torch.tensor([0.5, 0.25, 0.25])


def _smooth(counts, lower, strength):
    seen = counts.sum(dim=-1, keepdim=True)
    return (counts + strength * lower) / (seen + strength)


def _smooth_cases():
    generator = torch.Generator().manual_seed(4)
    counts = torch.randint(5, (4, 5), generator=generator).float()
    return [
        (COUNTS, LOWER, 4.0),
        (counts, _beliefs(4, 5), 2.0),
        (counts, _beliefs(4, 5), 20.0),
        (counts[:, :4] + 1, torch.full((4,), 0.25), 4.0),
    ]


SMOOTH_MISTAKES = {
    "Rows sum to more than one: only the real observations are counted.": (
        lambda c, p, a: (c + a * p) / c.sum(-1, keepdim=True),
        "How many observations has a row now, real and pretended? Divide by those.",
    ),
    "Counts were added, but nothing is divided: rows do not sum to one.": (
        lambda c, p, a: c + a * p,
        "How many observations has a row now, real and pretended? Divide by those.",
    ),
    "Only the pretended part is divided: the sum above needs its brackets.": (
        lambda c, p, a: c + a * p / (c.sum(-1, keepdim=True) + a),
        "How many observations has a row now, real and pretended? Divide by those.",
    ),
    "You divide by the total of the whole table, not of each row.": (
        lambda c, p, a: (c + a * p) / (c + a * p).sum(),
        "How many observations has a row now, real and pretended? Divide by those.",
    ),
    "What was seen is added up over all rows: each row has its own sum.": (
        lambda c, p, a: (c + a * p) / (c.sum() + a),
        "How many observations has a row now, real and pretended? Divide by those.",
    ),
    "You add the strength once for each character; it is the total.": (
        lambda c, p, a: (c + a * p) / (c.sum(-1, keepdim=True) + a * c.shape[-1]),
        "How many observations has a row now, real and pretended? Divide by those.",
    ),
    "Your columns sum to one, but your rows do not: the sum runs over dim=0.": (
        lambda c, p, a: (c + a * p) / (c + a * p).sum(dim=0),
        "How many observations has a row now, real and pretended? Divide by those.",
    ),
    "Every character gets the same extra: the shorter context is ignored.": (
        lambda c, p, a: (c + a) / (c + a).sum(-1, keepdim=True)
    ),
    "You spread the strength evenly; `lower` says who deserves how much.": (
        lambda c, p, a: _smooth(c, torch.ones_like(c) / c.shape[-1], a)
    ),
    "The strength has no effect: exactly one observation is pretended.": (
        lambda c, p, a: _smooth(c, p, 1.0)
    ),
    "Below, `strength` are pretended; above, only one of them is shared out.": (
        lambda c, p, a: (c + p) / (c.sum(-1, keepdim=True) + a)
    ),
    "Shares, not counts, meet the strength: evidence has lost its weight.": (
        lambda c, p, a: (c / c.sum(-1, keepdim=True) + a * p) / (1 + a)
    ),
    "Nothing is smoothed: unseen is still impossible, an empty row is nan.": (
        lambda c, p, a: c / c.sum(-1, keepdim=True)
    ),
    "You return the shorter context's belief: the counts change nothing.": (
        lambda c, p, a: p.expand_as(c)
    ),
    "Always half and half: but much evidence should count for more.": (
        lambda c, p, a: (
            (c / c.sum(-1, keepdim=True)).nan_to_num() / 2 + p.expand_as(c) / 2
        )
    ),
    "Half and half, and a row never seen is nan: 0 / 0.": (
        lambda c, p, a: c / c.sum(-1, keepdim=True) / 2 + p.expand_as(c) / 2
    ),
    "Your rows do not sum to one.": (
        Sign(
            lambda got, expected, *_: (
                got.shape == expected.shape and not same(got.sum(-1), expected.sum(-1))
            )
        ),
        "Divide each row by how many observations it has, real and pretended.",
    ),
}


@exercise("07.4 Pretended observations")
def check_smooth(smooth):
    """smooth(counts, lower, strength): (R, V), (V,) or (R, V) -> (R, V)."""
    known = mistakes(
        "`strength` pretended observations, shared out as `lower` says.",
        SMOOTH_MISTAKES,
    )
    compare(smooth, _smooth, _smooth_cases(), known)
    return (
        "4 tables, one with a row never seen; rows sum to one, nothing is impossible."
    )


# 07.5

GOAL, TOLERANCE = 0.40, 0.02


@exercise("07.5 Your own playwright")
def check_my_lexicon(my_lexicon):
    """my_lexicon() -> a Lexicon with another cast, and a floor of 0.40 nats."""
    mine = call(my_lexicon)
    if isinstance(mine, (dict, tuple, list)):
        raise Explained(
            f"This is {describe(mine)}: only a part of a lexicon.",
            "dataclasses.replace(LEXICON, names=(...)) gives a whole one.",
        )
    if hasattr(mine, "surprise"):
        raise Explained(
            "This is a play already; wanted is the lexicon it is written from.",
            "Leave write_play to the check.",
        )
    if not isinstance(mine, Lexicon):
        raise Explained(
            f"Return a Lexicon; this is {describe(mine)}.",
            "return dataclasses.replace(LEXICON, ...)",
        )
    if shared := sorted(set(mine.names) & set(LEXICON.names)):
        raise Explained(
            f"The cast is not all your own yet: {shared[0]!r} is one of ours.",
            'names=("Ada", "Alan", ...) replaces all of them.',
        )
    play = call(partial(write_play, 60_000, lexicon=mine))
    floor = play.nats()
    if abs(floor - GOAL) > TOLERANCE:
        side, way = ("high", "shorter") if floor > GOAL else ("low", "longer")
        more = "" if floor > GOAL else ", or take all lines, lines=LEXICON.lines"
        raise Explained(
            f"Your grammar works, but its floor is {floor:.2f} nats per character: "
            f"too {side}, between 0.38 and 0.42 is wanted.",
            f"The choices cost the nats. Make lists of words {way}: "
            "{slot: words[:k] for slot, words in LEXICON.words.items()}" + more,
        )
    return (
        f"60,000 characters with {len(mine.names)} people of your own, and an exact "
        f"floor of {floor:.3f} nats per character."
    )


# 07.6


def _mean_surprise(probs, ids):
    return F.nll_loss(probs.log(), ids)


def _given(probs, ids):
    return probs.gather(1, ids[:, None])[:, 0]


MEAN_MISTAKES = {
    "The bug is still there: the right belief, and yet a loss below the entropy. "
    "Nobody can be so little surprised in the long run.": (
        lambda p, i: -_given(p, i).mean().log()
    ),
    "The sign has turned: a surprise is never negative.": (
        lambda p, i: _given(p, i).log().mean()
    ),
    "This is the whole surprise, which grows with the text: divide by it.": (
        lambda p, i: -_given(p, i).log().sum()
    ),
    "This is the entropy of the beliefs: it does not look at what happened.": (
        lambda p, i: _entropy(p).mean()
    ),
    "These are bits: log2 in the place of log.": (
        lambda p, i: -_given(p, i).log2().mean()
    ),
    "A median hides the rare surprises, and those are the expensive ones.": (
        lambda p, i: -_given(p, i).log().median()
    ),
    "You take the largest probability in place of what really came.": (
        lambda p, i: -p.max(dim=1).values.log().mean()
    ),
    "Now the probabilities are averaged per outcome before the logarithm.": (
        lambda p, i: -p.mean(dim=0)[i].log().mean()
    ),
}


@exercise("07.6 Below the floor")
def check_mean_surprise(mean_surprise):
    """mean_surprise(probs, ids): (N, V), (N,) -> one number."""
    generator = torch.Generator().manual_seed(6)
    ids = torch.randint(5, (9,), generator=generator)
    cases = [
        (DIE.expand(4, 4), torch.tensor([0, 0, 1, 3])),
        (_beliefs(9, 5), ids),
        (_beliefs(4, 3), torch.tensor([2, 0, 1, 1])),
    ]
    known = mistakes(
        "Two rolls with 1/2 and 1/8: the surprises are ln 2 and ln 8. Their mean?",
        MEAN_MISTAKES,
    )
    compare(mean_surprise, _mean_surprise, cases, known)
    return "3 texts; each character's surprise counts the same."


# 07.7


def _pieces(nats, window):
    return nats.split(window)


WINDOW_MISTAKES = {
    "The bug is still there: one and the same text, and its loss depends on how it "
    "is cut.": (lambda x, w: torch.stack([p.mean() for p in _pieces(x, w)]).mean()),
    "You drop the short window: its characters are not judged at all.": (
        lambda x, w: x[: len(x) // w * w].mean()
    ),
    "You drop the last window even where it is a whole one.": (
        lambda x, w: x[: (len(x) - 1) // w * w].mean()
    ),
    "The short window counts as much as a whole one: weigh it by its length.": (
        lambda x, w: sum(p.mean() * w for p in _pieces(x, w)) / len(x)
    ),
    "You divide by windows * window: more characters than the text has.": (
        lambda x, w: x.sum() / (len(_pieces(x, w)) * w)
    ),
    "You divide the sum by the number of windows, not of characters.": (
        lambda x, w: x.sum() / len(_pieces(x, w))
    ),
    "This is the total of all surprise; a mean is wanted.": (lambda x, w: x.sum()),
    "Only the first window is judged.": (lambda x, w: x[:w].mean()),
}


@exercise("07.7 The loss that depends on the scissors")
def check_loss_in_windows(loss_in_windows):
    """loss_in_windows(nats, window): (N,) -> the mean over all N."""
    nats = torch.tensor([1.0, 1.0, 1.0, 1.0, 6.0])
    longer = torch.special.entr(_beliefs(13, 3))[:, 0] + torch.arange(13.0)
    cases = [(nats, 4), (nats, 2), (longer, 5), (longer, 13)]

    def right(nats, window):
        return nats.mean()

    known = mistakes(
        "Five characters in windows of four: which share has the last one?",
        WINDOW_MISTAKES,
    )
    compare(loss_in_windows, right, cases, known)
    if not same(call(loss_in_windows, longer, 1), longer.mean()):
        raise Explained("With windows of one character it is not right yet.")
    if not same(call(loss_in_windows, longer, 20), longer.mean()):
        raise Explained("It is not right yet if one window holds the whole text.")
    return "2 texts in windows of 1 to 20: the same loss however it is cut."
