"""Checks for notebook 03: one head of attention, and the learner's own model."""

from copy import deepcopy
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.attention import Head, attention_weights
from minigpt.checks.core import (
    Explained,
    NotAttempted,
    Sign,
    as_tensor,
    attempted,
    call,
    compare,
    describe,
    exercise,
    mistakes,
    same,
)
from minigpt.language_model import LanguageModel

_SCALES = {  # what to say: the mistaken factor on the scores
    "Your scores are not divided by anything: the scale is forgotten, and their "
    "variance grows with head_size.": lambda head_size, T, C: 1.0,
    "You multiply by √head_size: the scale is upside down, and softmax gets sharper "
    "instead of softer.": lambda head_size, T, C: head_size**0.5,
    "You divide by √C, the width of x. But a score adds up head_size products, not "
    "C.": lambda head_size, T, C: C**-0.5,
    "You divide by head_size itself (or twice by its root), so the scores get too "
    "small: the root is missing.": lambda head_size, T, C: 1 / head_size,
    "You divide by √T. But a score adds up head_size products, however many tokens "
    "there are.": lambda head_size, T, C: T**-0.5,
    "You divide by √2. That was right for the six words, where head_size was "
    "2.": lambda head_size, T, C: 2**-0.5,
}


def _scale_mistakes(program):
    """program(*inputs, scale=factor): one mistake for each wrong scale."""
    scaled = {says: partial(program, scale=f) for says, f in _SCALES.items()}
    return mistakes(
        "Take the size from the tensor: divide by q.shape[-1] ** 0.5.", scaled
    )


def _random(*shape, seed=0):
    """Standard normal numbers with one decimal, from a generator of their own."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.randn(shape, generator=generator) * 10).round() / 10


def _ids(vocab_size, *shape):
    generator = torch.Generator().manual_seed(vocab_size)
    return torch.randint(vocab_size, shape, generator=generator)


def _fill(model, seed=0):
    """Rather large random parameters, so that no two mistakes look alike."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.7)
    return model


def _model(vocab_size, block_size, n_embd, head_size):
    model = LanguageModel(vocab_size, block_size, n_embd, Head(n_embd, head_size))
    model.lm_head = nn.Linear(head_size, vocab_size)
    return _fill(model)


def _windows(model, data, count=32):
    """Inputs and targets (count, block_size) from the learner's own data."""
    T = model.block_size
    count = min(count, (len(data) - 1) // T)
    return data[: count * T].view(count, T), data[1 : count * T + 1].view(count, T)


def _scaled(q, k, C=None, scale=None):
    head_size, T = q.shape[-1], k.shape[-2]
    factor = head_size**-0.5 if scale is None else scale(head_size, T, C)
    return q @ k.transpose(-2, -1) * factor


def _weights(q, k, dim=-1, fill=float("-inf"), after=False, seen=0, **wrong):
    """Causal attention weights that can be wrong in every known way.

    seen: the mask's diagonal, None for no mask; after: mask after the softmax.
    """
    scores = _scaled(q, k, **wrong)
    everything = torch.ones(scores.shape[-2:], dtype=torch.bool)
    future = ~(everything if seen is None else everything.tril(seen))
    if after:
        return F.softmax(scores, dim).masked_fill(future, 0.0)
    return F.softmax(scores.masked_fill(future, fill), dim)


def _complete(values, names):
    """Raise unless there is a value for each name: not attempted, or in part."""
    if not isinstance(values, (tuple, list)) or len(values) != len(names):
        raise Explained(f"Return {len(names)} values: {', '.join(names)}.")
    missing = [name for name, value in zip(names, values) if not attempted(value)]
    if len(missing) == len(names):
        raise NotAttempted
    if missing:
        raise Explained(f"Still missing: {', '.join(missing)}.")


# 03.1: scores


def _scores(x, W_query, W_key, scale=None):
    return _scaled(x @ W_query, x @ W_key, C=x.shape[-1], scale=scale)


SCORES = {
    "Queries and keys are exchanged: in your result the rows belong to the keys. "
    "They belong to the one who asks.": (
        lambda *inputs: _scores(*inputs).transpose(-2, -1),
        "Begin the product with q.",
    ),
    "These are weights already: you applied softmax. Scores come before it.": (
        lambda *inputs: F.softmax(_scores(*inputs), dim=-1),
        "Leave the softmax out.",
    ),
    "You compare x with x itself, so W_query and W_key have no say.": (
        lambda x, W, _: x @ x.transpose(-2, -1) / W.shape[1] ** 0.5,
        "Use q and k.",
    ),
    "You transposed the queries, not the keys: the head_size features are compared "
    "with each other, where the tokens should meet.": (
        Sign(lambda got, _, x, W, __: got.shape[1:] == (W.shape[1], W.shape[1])),
        "The last dimension of q must meet the last one of k: transpose k.",
    ),
}


@exercise("03.1 One line and its root")
def check_scaled_scores(answer):
    """answer(x, W_query, W_key) -> scaled scores (B, T, T)."""
    cases = [
        (_random(B, T, C), _random(C, head_size, seed=1), _random(C, head_size, seed=2))
        for B, T, C, head_size in [(1, 2, 3, 5), (3, 6, 4, 2), (2, 5, 7, 9)]
    ]
    cases.append((_random(6, 4, 3).transpose(0, 1), *cases[0][1:]))  # not contiguous
    compare(answer, _scores, cases, _scale_mistakes(_scores) + mistakes("", SCORES))
    return "4 inputs; the queries are in the rows, the scale is √head_size"


# 03.2: counting


def _head_in_numbers(B, T, C, H):
    return {
        "parameters": 3 * C * H,
        "open_scores": B * T * (T + 1) // 2,
        "raw_variance": H,
        "scaled_variance": 1,
    }


def _wrong_numbers(B, T, C, H):
    shared = "all tokens of all windows share the same three matrices"
    return {
        "parameters": {
            "that is one layer; a head has three": C * H,
            "the values' layer is missing": 2 * C * H,
            "you count biases, but a head's layers have none": 3 * (C * H + H),
            shared + ", so T plays no role": 3 * T * C * H,
            shared + ", so B and T play no role": 3 * B * T * C * H,
            "the matrices lead from C to head_size, they are not square": 3 * C * C,
        },
        "open_scores": {
            "the mask is forgotten: it hides the future": B * T * T,
            "that is one window; there are B of them": T * (T + 1) / 2,
            "the diagonal is missing: a position sees itself": B * T * (T - 1) / 2,
            "it is more than half, since the whole diagonal stays": B * T * T / 2,
        },
        "raw_variance": {
            "that is true only after the division": 1,
            "that is the standard deviation; the variance is its square": H**0.5,
            "q and k have head_size entries each, not C": C,
            "a score is a sum over the entries of q and k, not over tokens": T,
            "variances of independent terms add up, they do not multiply": H**2,
        },
        "scaled_variance": {
            "dividing by a number divides the variance by its square": H**0.5,
            "dividing by √head_size does change the variance": H,
            "that would come from dividing by head_size without the root": 1 / H,
        },
    }


_NUMBERS_HINT = {
    "parameters": "One layer leads from C to head_size. How many numbers are in it?",
    "open_scores": "Draw the mask for T = 3 and count the open fields of one window.",
    "raw_variance": "Section 5: how many products does one score add up?",
    "scaled_variance": "Section 5: what does dividing by a do to the variance?",
}


@exercise("03.2 A head in four numbers")
def check_head_in_numbers(answer):
    """answer(B, T, C, head_size) -> four numbers, right for every size."""
    sizes = [(1, 2, 3, 5), (2, 4, 6, 9), (3, 7, 5, 4), (8, 3, 64, 16)]
    answers = [call(answer, *size) for size in sizes]
    for values in answers:
        if not isinstance(values, (tuple, list)) or len(values) != 4:
            _complete(values, list(_NUMBERS_HINT))
    for i, (name, hint) in enumerate(_NUMBERS_HINT.items()):
        got = [values[i] for values in answers]
        right = [_head_in_numbers(*size)[name] for size in sizes]
        if not attempted(got[0]) or all(map(same, got, right)):
            continue
        says = f"{name} is not right yet."
        for reason in reversed(_wrong_numbers(*sizes[0])[name]):
            wrong = [_wrong_numbers(*size)[name][reason] for size in sizes]
            if all(map(same, got, wrong)):
                says = f"{name}: {reason}."
        first = [same(g, r) for g, r in zip(got, right)].index(False)
        raise Explained(
            f"{says}\n    input    B, T, C, head_size = {sizes[first]}"
            f"\n    expected {right[first]}\n    received {describe(got[first])}",
            hint,
        )
    _complete(answers[0], list(_NUMBERS_HINT))
    return "all four formulas, for 4 heads of different sizes"


# 03.3: cross-attention


def _cross(english, french, *matrices, sources="eff", **wrong):
    """sources: who gives queries, keys and values; e English, f French."""
    given = {"e": english, "f": french}
    q, k, v = (given[source] @ W for source, W in zip(sources, matrices))
    return _weights(q, k, **{"seen": None, "C": english.shape[-1], **wrong}) @ v


SOURCES = {
    "The sources are exchanged: in your program French asks and English "
    "answers.": partial(_cross, sources="fee"),
    "The values come from the English sentence: the weights choose between French "
    "words, but what is handed over is English.": partial(_cross, sources="efe"),
    "The keys come from the English sentence, though the values are French.": partial(
        _cross, sources="eef"
    ),
    "This is self-attention: the French sentence has no influence at all.": partial(
        _cross, sources="eee"
    ),
    "You average the French vectors themselves in place of their values.": (
        lambda e, f, Q, K, V: _weights(e @ Q, f @ K, seen=None) @ f,
        "What a token hands over is french @ W_value.",
    ),
    "These are the weights, (B, T, S). The average of the values is missing.": (
        lambda e, f, Q, K, V: _weights(e @ Q, f @ K, seen=None),
        "One product more: weights @ v.",
    ),
    "Softmax runs over the English tokens, so the columns of the weights sum to "
    "one and the rows do not.": (
        partial(_cross, dim=-2),
        "Softmax over the last dimension.",
    ),
    "W_key and W_value are exchanged.": (
        lambda e, f, Q, K, V: _cross(e, f, Q, V, K),
        "Keys are for comparing, values for averaging.",
    ),
    "A causal mask is at work: the first English word sees only a part of the "
    "French sentence, though all of it is known.": (
        Sign(
            lambda got, _, e, f, *W: any(
                same(got, _cross(e, f, *W, seen=d))
                for d in (0, f.shape[1] - e.shape[1])
            )
        ),
        "Without a mask: causal=False, or no masked_fill.",
    ),
    "You return a pair. The function attention gives the output and the weights.": (
        Sign(lambda got, *_: isinstance(got, tuple)),
        "Keep the first of the two.",
    ),
}


@exercise("03.3 English asks, French answers")
def check_cross_attention(answer):
    """answer(english, french, W_query, W_key, W_value) -> (B, T, head_size)."""
    sizes = [(1, 2, 2, 3, 5), (2, 4, 4, 6, 3), (1, 2, 3, 3, 5), (3, 7, 4, 6, 2)]
    cases = []
    for B, T, S, C, head_size in sizes:
        matrices = [_random(C, head_size, seed=i) for i in (1, 2, 3)]
        cases.append((_random(B, T, C), _random(B, S, C, seed=9), *matrices))
    hint = "Only the queries come from the English sentence."
    # Where T equals S even exchanged sources run: find the mistake there first.
    for some in (cases[:2], cases):
        compare(answer, _cross, some, mistakes(hint, SOURCES) + _scale_mistakes(_cross))
    return "4 inputs, also with T ≠ S; every English word sees all French ones"


# 03.4: a head made by hand


@exercise("03.4 A head made by hand")
def check_look_back(answer):
    """answer(T, distance) -> W_query, W_key: each t looks at t - distance."""
    for T, distance in [(3, 1), (4, 2), (6, 1), (9, 3), (16, 5), (64, 7)]:
        pair = call(answer, T, distance)
        _complete(pair, ("W_query", "W_key"))
        W_query, W_key = map(as_tensor, pair)
        for name, W in (("W_query", W_query), ("W_key", W_key)):
            if W is None or W.dim() != 2 or len(W) != T:
                got = "no matrix" if W is None else f"of shape {tuple(W.shape)}"
                raise Explained(
                    f"For T = {T}, {name} is {got}, but should be (T, head_size).",
                    "Row t of it is the query (or key) of position t.",
                )
        if W_query.shape != W_key.shape:
            raise Explained(
                f"W_query {tuple(W_query.shape)} and W_key {tuple(W_key.shape)} need "
                "the same head_size: their rows are compared entry by entry."
            )
        _look_back(W_query, W_key, T, distance)
    return "6 pairs of T and distance, always at least 99 % of the attention"


def _look_back(q, k, T, distance):
    """Raise Explained unless row t of the weights has 99 % at t - distance."""
    weights, scores = attention_weights(q, k), q @ k.T
    rows = torch.arange(distance, T)
    share, picks = weights[rows, rows - distance], weights[rows].argmax(dim=-1)
    if (share >= 0.99).all():
        return
    unmasked = scores[: T - distance].argmax(dim=-1)
    if not weights.isfinite().all():
        says = "The weights are nan, not numbers: somewhere an infinity meets a zero."
        hint = "0 times infinity is nan. A large number does as well."
    elif (scores.amax(dim=-1) - scores.amin(dim=-1) < 1e-9).all():
        says = "In each row all scores are equal, so everyone averages evenly."
        hint = "Let key i be one at place i and zero elsewhere. Whom must t ask for?"
    elif (picks == rows - distance).all():
        says = f"Right place, but too soft: only {share.min():.0%} of the attention."
        hint = "Scores are divided by √head_size: use numbers that grow with it."
    elif (picks == rows).all():
        says = "Every position looks at itself: query t equals key t."
        hint = "Query t must equal key t - distance: shift the rows of one of the two."
    elif (unmasked == torch.arange(distance, T)).all():
        says = "The wrong way round: your positions ask for a later one, hidden by the "
        says += "mask. Queries and keys may be exchanged."
        hint = "Exchange the two matrices, or change the sign of the shift."
    elif (picks == rows - 1).all():
        says = "Every position looks one step back, whatever the distance."
        hint = "Shift by distance instead of 1."
    elif len(picks) > 1 and (picks == picks[0]).all():
        says = f"All positions look at place {picks[0]}: their queries agree."
        hint = "Row t of W_query is the query of position t: each needs its own."
    else:
        says, hint = "Some look elsewhere.", "Print W_query @ W_key.T for T = 3."
    t = share.argmin().item() + distance
    seen = ", ".join(f"{w:.3f}" for w in weights[t])
    if T > 8:
        seen = f"{weights[t, t - distance]:.3f} at place {t - distance}"
    raise Explained(
        f"{says}\n    input    T = {T}, distance = {distance}"
        f"\n    expected row {t}: at least 0.99 at place {t - distance}"
        f"\n    received row {t}: {seen}",
        hint,
    )


# 03.5: the reach of the learner's own model


def _places(idx):
    return torch.arange(idx.shape[1])


def _reach_parts(model, idx, place=_places, swap=False, **wrong):
    x = model.token_embedding(idx)
    if place is not None:
        x = x + model.position_embedding(place(idx))
    q, k = model.body.query(x), model.body.key(x)
    weights = _weights(*((k, q) if swap else (q, k)), C=x.shape[-1], **wrong)
    return weights, _places(idx)[:, None] - _places(idx)


def _reach(*inputs, over=-1, **wrong):
    weights, steps = _reach_parts(*inputs, **wrong)
    return (weights * steps).sum(dim=over)


REACHES = {
    "The position embedding is forgotten: the head's input is token + position.": (
        partial(_reach, place=None),
        "Add model.position_embedding(torch.arange(T)).",
    ),
    "The position embedding is indexed by the tokens. It has a vector for each "
    "place, not for each character.": (
        partial(_reach, place=lambda idx: idx),
        "Look it up with torch.arange(T).",
    ),
    "Queries and keys are exchanged: you measure with the roles reversed.": (
        partial(_reach, swap=True),
        "The rows belong to the queries.",
    ),
    "The mask is forgotten, so you also measure looks into the future.": partial(
        _reach, seen=None
    ),
    "You mask after the softmax, so the rows of the weights sum to less than "
    "one.": partial(_reach, after=True),
    "You mask with 0. But 0 is a score like any other: e⁰ = 1.": partial(
        _reach, fill=0.0
    ),
    "Softmax runs over the queries, so the rows of the weights do not sum to one.": (
        partial(_reach, dim=-2),
        "Softmax over the last dimension.",
    ),
    "The sign is turned round: you compute i - t.": (
        lambda *inputs: -_reach(*inputs),
        "From position t to position i it is t - i steps back.",
    ),
    "You give the average place that is looked at, not how far away it is.": (
        lambda m, idx: (_reach_parts(m, idx)[0] * _places(idx)).sum(dim=-1),
        "Multiply the weights by t - i, not by i.",
    ),
    "You give the distance of the largest weight only.": (
        lambda m, idx: _places(idx) - _reach_parts(m, idx)[0].argmax(dim=-1),
        "Average all distances, with the weights.",
    ),
    "You sum over those who look. For each of them, sum over the places looked at.": (
        partial(_reach, over=-2),
        "Sum over the last dimension.",
    ),
    "You divide by T, but the weights already make the average: they sum to one.": (
        lambda m, idx: _reach(m, idx) / idx.shape[1],
        "Use sum(dim=-1).",
    ),
    "This is one number for everything; keep one for each position.": (
        Sign(lambda got, *_: as_tensor(got).numel() == 1),
        "Sum over the last dimension only: (B, T, T) -> (B, T).",
    ),
}


@exercise("03.5 How far back your model looks")
def check_reach(answer, model, data):
    """answer(model, idx) -> mean distance (B, T); small models and the learner's."""
    sizes = [(5, 8, 4, 3, (1, 3)), (7, 9, 3, 6, (2, 5)), (6, 7, 5, 5, (3, 7))]
    cases = [(_model(*size), _ids(size[0], *shape)) for *size, shape in sizes]
    hint = "Fill the future's scores with minus infinity, then softmax."
    compare(answer, _reach, cases, mistakes(hint, REACHES) + _scale_mistakes(_reach))
    idx, _ = _windows(model, data)
    compare(answer, _reach, [(model, idx)])
    mean, even = _reach(model, idx).mean(), (idx.shape[1] - 1) / 4
    return (
        f"3 small models, and yours: it looks {mean:.1f} characters back on average "
        f"(looking evenly at all the past would be {even:.2f})"
    )


# 03.6: knock-outs

_POSITIONS, _CHOICE = ("position_embedding",), ("body.query",)


@torch.no_grad()
def _losses(model, idx, targets, positions=_POSITIONS, choice=_CHOICE):
    """Three losses, the second and third with the named layers set to zero."""
    losses = []
    for parts in ((), positions, choice):
        changed = deepcopy(model)
        for part in parts:
            nn.init.zeros_(changed.get_submodule(part).weight)
        losses.append(changed(idx, targets)[1].item())
    return tuple(losses)


def _place_zero(model, idx, targets):
    flat = deepcopy(model)
    flat.position_embedding.weight.data[:] = model.position_embedding.weight[0]
    whole, _, choice = _losses(model, idx, targets)
    return whole, _losses(flat, idx, targets)[0], choice


def _future_open(model, idx, targets):
    x = model.token_embedding(idx) + model.position_embedding(_places(idx))
    mean = model.body.value(x).mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1)
    loss = F.cross_entropy(model.lm_head(mean).flatten(0, 1), targets.flatten())
    return (*_losses(model, idx, targets)[:2], loss.item())


def _differences(*inputs):
    whole, positions, choice = _losses(*inputs)
    return whole, positions - whole, choice - whole


KNOCK_OUTS = {
    "Your no_choice was measured on a model that had already lost its positions: "
    "the two experiments are mixed.": partial(_losses, choice=_POSITIONS + _CHOICE),
    "Your no_positions was measured on a model that had already lost its choice: "
    "the two experiments are mixed.": partial(_losses, positions=_POSITIONS + _CHOICE),
    "You took away the token embedding, not the position embedding.": (
        partial(_losses, positions=("token_embedding",)),
        "Set position_embedding.weight to zero.",
    ),
    "Every place still carries the vector of place 0; nothing should be added.": (
        _place_zero,
        "Set all of position_embedding.weight to zero.",
    ),
    "You took away the values, so the head hands over nothing. Only the choice "
    "should go, the even average stays.": (
        partial(_losses, choice=("body.value",)),
        "Equal scores give equal weights: which layer must give zeros?",
    ),
    "Your even average includes the future, but the mask must stay.": (
        _future_open,
        "Leave the head as it is and make all its scores 0.",
    ),
    "The last two are differences.": (
        _differences,
        "Return the losses themselves, without subtracting.",
    ),
    "You measure how well the model repeats its input.": (
        lambda m, idx, _: _losses(m, idx, idx),
        "The loss needs the next tokens: model(idx, targets)[1].",
    ),
    "You give sums over all characters.": (
        lambda m, i, t: tuple(loss * t.numel() for loss in _losses(m, i, t)),
        "The loss is their mean.",
    ),
}


@exercise("03.6 What each part is worth")
def check_knock_outs(answer, model, data):
    """answer(model, idx, targets) -> three losses, and what costs most."""
    cases = []  # in the first the positions matter more, in the second the choice
    sizes = [((5, 8, 4, 3), (1, 3), _CHOICE), ((7, 9, 3, 6), (4, 9), _POSITIONS)]
    for size, shape, (weak,) in sizes:
        small, idx = _model(*size), _ids(size[0], *shape)
        small.get_submodule(weak).weight.data *= 0.2
        cases.append((small, idx, small(idx)[0].argmax(dim=-1)))
    cases.append((model, *_windows(model, data)))
    first = call(answer, *cases[0])
    _complete(first, ("whole", "no_positions", "no_choice", "verdict"))
    damaged, verdicts, right_losses = [], [], []

    def numbers(model, idx, targets):
        before = deepcopy(model.state_dict())
        *losses, verdict = answer(model, idx, targets)
        after = model.state_dict()
        damaged.append(any((before[n] != after[n]).any().item() for n in before))
        verdicts.append(verdict)
        return tuple(round(as_tensor(loss).item(), 4) for loss in losses)

    def right(*inputs):
        right_losses.append(_losses(*inputs))
        return tuple(round(loss, 4) for loss in right_losses[-1])

    fresh = "Give each knock-out a fresh deepcopy of the model."
    compare(numbers, right, cases, mistakes(fresh, KNOCK_OUTS), atol=2e-4)
    if any(damaged):
        raise Explained(
            "The numbers are right, but your function leaves the model damaged: "
            "whoever uses it next gets worse text.",
            fresh,
        )
    for (_, positions, choice), verdict in zip(right_losses, verdicts):
        most = "positions" if positions > choice else "choice"
        if verdict not in ("positions", "choice"):
            raise Explained(f'The verdict is {verdict!r}, not "positions" or "choice".')
        if verdict != most:
            raise Explained(
                f"The verdict is {verdict!r}, but your own numbers say {most!r}: "
                f"{positions:.2f} without positions, {choice:.2f} without choice.",
                "Let the program compare the two; another model may differ.",
            )
    whole, positions, choice = right_losses[-1]
    return (
        f"3 models. Yours has a loss of {whole:.2f}, without positions "
        f"{positions:.2f}, without choice {choice:.2f}"
    )


# 03.7: bug hunt


def _masked_by(mask):
    """The program of the hunt around a mask(scores, past) that is wrong."""

    def program(q, k):
        scores = _scaled(q, k)
        return F.softmax(mask(scores, torch.ones_like(scores).tril()), dim=-1)

    return program


MASKS = {
    "The bug is still there: all rows sum to one, but the first position gives a "
    "part of its attention to one that comes later.": (
        _masked_by(lambda s, past: s * past),
        "Follow one number from above the diagonal through every line.",
    ),
    "The future is dark now, but the rows no longer sum to one: you mask after the "
    "softmax, and the future still stands in the denominator.": (
        partial(_weights, after=True),
        "Mask the scores, then softmax.",
    ),
    "The mask is inverted: you hide the past and the present.": (
        _masked_by(lambda s, past: s.masked_fill(past == 1, -torch.inf)),
        "masked_fill fills where its mask is True: that must be the future.",
    ),
    "The present is hidden together with the future: position 0 has nothing left "
    "to look at, and softmax of nothing is nan.": partial(_weights, seen=-1),
    "The mask is one step too wide: each position sees its successor.": partial(
        _weights, seen=1
    ),
    "There is no mask at all now, everyone sees everyone.": (
        partial(_weights, seen=None),
        "The future's scores must become minus infinity.",
    ),
    "All weights are nan: you multiply infinity by 0.": (
        _masked_by(lambda s, past: s * past + (1 - past) * -torch.inf),
        "Do not multiply: masked_fill puts a value in place.",
    ),
    "The columns sum to one, the rows do not: softmax runs over the queries.": (
        partial(_weights, dim=-2),
        "It was right before: dim=-1.",
    ),
    "Queries and keys are exchanged.": (
        lambda q, k: _weights(k, q),
        "q @ k.transpose(-2, -1) was right.",
    ),
}


def _still_light(got, *_):
    rows_sum_to_one = same(got.sum(dim=-1), torch.ones(got.shape[:-1]))
    return got.shape[-1] == 1 or rows_sum_to_one and got.triu(1).max() > 1e-6


LEAK = {
    "There is still light above the diagonal: your value for the future is low, "
    "but not low enough for softmax to make it 0.": Sign(_still_light),
}


@exercise("03.7 Light above the diagonal")
def check_causal_weights(answer):
    """answer(q, k) -> causal weights (B, T, T)."""
    shapes = [(1, 2, 3), (2, 5, 4), (3, 4, 16), (1, 1, 5)]
    cases = [(_random(*shape), _random(*shape, seed=1)) for shape in shapes]
    hint = "Leave the diagonal as it was: torch.tril with one argument."
    scales = [m for m in _scale_mistakes(_weights) if "√C" not in m.says]
    known = (
        mistakes(hint, MASKS)
        + scales
        + mistakes("No number is lower than minus infinity.", LEAK)
    )
    compare(answer, _weights, cases, known)
    return "4 inputs, rows sum to one, and the future is dark"


# 03.8: bug hunt


def _logits(model, idx):
    out = model(idx)
    return out[0] if isinstance(out, tuple) else out


def _placed(model, place, idx):
    """Logits if place(token, position) made the head's input."""
    positions = model.position_embedding(_places(idx))
    return model.lm_head(model.body(place(model.token_embedding(idx), positions)))


@exercise("03.8 The model that cannot spell")
def check_word_order(answer):
    """answer(vocab_size, block_size, n_embd) -> a model that knows who sits where."""
    for vocab_size, block_size, n_embd in [(5, 8, 6), (11, 7, 4)]:
        model = call(answer, vocab_size, block_size, n_embd)
        if not isinstance(model, nn.Module):
            raise Explained("Give the class itself to the check, not its output.")
        _order_matters(_fill(model), vocab_size)
        cases = [(_ids(vocab_size, B, T),) for B, T in [(1, 2), (3, block_size)]]
        for case in cases:
            call(partial(_logits, model), *case)
        names = ("token_embedding", "position_embedding", "body", "lm_head")
        if all(isinstance(getattr(model, n, None), nn.Module) for n in names):
            says = "The order counts now, but token and position are multiplied."
            product = {says: partial(_placed, model, torch.mul)}
            known = mistakes("Add the two: token + position.", product)
            right = partial(_placed, model, torch.add)
            compare(partial(_logits, model), right, cases, known)
    return "the order counts, in 2 models and up to block_size tokens"


def _order_matters(model, vocab_size):
    """Raise Explained if the last logits do not notice an exchange before them."""

    def read(*ids):
        logits = call(partial(_logits, model), torch.tensor([ids]))
        if logits.shape != (1, len(ids), vocab_size):
            raise Explained(
                f"The logits have shape {tuple(logits.shape)}, not (B, T, V)."
            )
        return logits[0]

    one, two, short = read(0, 1, 2, 3), read(2, 1, 0, 3), read(0, 1)
    if not same(one[:2], short):
        raise Explained(
            "The places are not counted from the start: when characters are added, the "
            "earlier ones move, and what was predicted after 01 changes.",
            "The first character is at place 0, however many follow.",
        )
    if not same(one[-1], two[-1], atol=1e-4):
        return
    both = "after 0123 and after 2103 the model predicts exactly the same"
    used = _places_used(model, torch.tensor([[4, 3, 4]]))
    if used == [3, 4]:
        says = f"The bug is still there: {both}, as if it could not tell who sat where."
        hint = "Print what is added to the token vectors for 0123, and for 2103."
    elif used == []:
        says = f"Without any position embedding the order cannot count: {both}."
        hint = "The embedding was a good idea. Is it asked the right question?"
    elif used == [0]:
        says = f"Every place gets the vector of place 0, so they are all alike: {both}."
        hint = "idx is (B, T): which of the two counts the places?"
    elif used == [2]:
        says = f"The positions come too late, when the head has mixed all: {both}."
        hint = "Queries and keys must know the places: add before the body."
    else:
        says = f"The tokens got lost, only the places are left: {both}."
        hint = "Add the two: token + position."
    raise Explained(says, hint)


def _places_used(model, idx):
    """Rows of the position embedding that have a say in the last logits."""
    model.zero_grad()
    _logits(model, idx)[0, -1].square().sum().backward()
    weight = getattr(getattr(model, "position_embedding", None), "weight", None)
    if weight is None or weight.grad is None:
        return []
    return weight.grad.abs().sum(dim=-1).nonzero().flatten().tolist()
