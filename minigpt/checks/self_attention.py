"""Checks for notebook 03: one head of attention, and the learner's own model."""

from copy import deepcopy
from zlib import crc32

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
    compare,
    exercise,
    same,
)
from minigpt.checks.opened import Opened
from minigpt.checks.running import is_skeleton
from minigpt.checks.solutions import Solution
from minigpt.language_model import LanguageModel


def _random(*shape, seed=0):
    """Standard normal numbers with one decimal, from a generator of their own."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.randn(shape, generator=generator) * 10).round() / 10


def _ids(vocab_size, *shape):
    generator = torch.Generator().manual_seed(vocab_size)
    return torch.randint(vocab_size, shape, generator=generator)


def _fill(model):
    """Rather large numbers, drawn by each parameter's name: no two look alike."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            generator = torch.Generator().manual_seed(crc32(name.encode()))
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


def _several(names):
    """work(program, *inputs) for a program that returns a value for each name."""

    def work(program, *inputs):
        values = program(*inputs)
        if not isinstance(values, (tuple, list)) or len(values) != len(names):
            raise Explained(f"Return {len(names)} values: {', '.join(names)}.")
        if not any(map(attempted, values)):
            raise NotAttempted
        return tuple(values)

    return work


SCORES = {
    "You divide by the spread that these scores happen to have. Change one token, and "
    "all scores of the batch change.": (
        Sign(lambda got, *_: abs(got.std() - 1) < 1e-4),
        "Divide by a fixed number: the root of head_size.",
    ),
    "You compare x with x itself, so W_query and W_key have no say.": (
        "q @ k.transpose → x @ x.transpose",
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
    hint = "The number under the root is the length of a query: q.shape[-1]."
    compare(answer, Solution("03.1"), cases, SCORES, hint=hint)
    return "4 inputs; the queries are in the rows, the scale is √head_size"


NUMBERS = {  # what to say: (which number, what it is)
    "you count biases, but a head's layers have none": (0, "3 * (C * H + H)"),
    "all tokens share the same matrices, T plays no role": (0, "3 * T * C * H"),
    "all windows share the same matrices, B plays no role": (0, "3 * B * T * C * H"),
    "the mask is forgotten: it hides the future": (1, "B * T * T"),
    "it is more than half, since the whole diagonal stays": (1, "B * T * T / 2"),
    "that is true only after the division": (2, "1"),
    "that is the standard deviation; the variance is its square": (2, "H**0.5"),
    "dividing by a number divides the variance by its square": (3, "H**0.5"),
    "that would come from dividing by head_size without the root": (3, "1 / H"),
    "dividing by √head_size does change the variance": (3, "H"),
}


def _number(i, formula):
    """A Sign: the first i values are right, and the next is this formula."""

    def holds(got, expected, *sizes):
        wrong = eval(formula, dict(zip("BTCH", sizes)))
        return same(got[:i], expected[:i]) and same(got[i], wrong)

    return Sign(holds)


@exercise("03.2 A head in four numbers")
def check_head_in_numbers(answer):
    """answer(B, T, C, head_size) -> four numbers, right for every size."""
    sizes = [(1, 2, 3, 5), (2, 4, 6, 9), (3, 7, 5, 4), (8, 3, 64, 16)]
    names = ("parameters", "open_scores", "raw_variance", "scaled_variance")
    hint = "A layer has C * head_size numbers; row t of a mask opens t; section 5."
    says = {f"{names[i]}: {text}.": _number(i, f) for text, (i, f) in NUMBERS.items()}
    how = {"work": _several(names), "parts": names, "hint": hint}
    compare(answer, Solution("03.2"), sizes, says, **how)
    return "all four formulas, for 4 heads of different sizes"


SOURCES = {
    "The sources are exchanged: in your program French asks and English answers.": (
        "english @ W_query → french @ W_query",
        "french @ W_key → english @ W_key",
        "french @ W_value → english @ W_value",
    ),
    "This is self-attention: the French sentence has no influence at all.": (
        "french @ W_key → english @ W_key",
        "french @ W_value → english @ W_value",
    ),
    "You put both sentences in a row: English words answer, too, not French alone.": (
        "french @ W_key → torch.cat([english, french], 1) @ W_key",
        "french @ W_value → torch.cat([english, french], 1) @ W_value",
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
    hint = "Only the queries come from the English sentence, and nothing is hidden."
    # Where T equals S even exchanged sources run: find the mistake there first.
    for some in (cases[:2], cases):
        compare(answer, Opened("03.3"), some, SOURCES, hint=hint)
    return "4 inputs, also with T ≠ S; every English word sees all French ones"


def _looks(pair, x, marked):
    """Weights of a head made by hand, where rows that are right are made perfect.

    x: (..., T, C); marked: (..., T, T), where each row should look; rows that have
    nothing to look at are 0. A row with 99 % in the right places is right.
    """
    names, C = ("W_query", "W_key"), x.shape[-1]
    pair = _several(names)(lambda: pair)
    for name, W in zip(names, pair):
        if not attempted(W):
            raise Explained(f"Still missing: {name}.")
        numbers = as_tensor(W)
        if numbers is None or numbers.dim() != 2 or len(numbers) != C:
            got = "no matrix" if numbers is None else f"of shape {tuple(numbers.shape)}"
            raise Explained(
                f"{name} is {got}, but should be ({C}, head_size).",
                f"x has {C} numbers for each position: a row of {name} for each.",
            )
        if hasattr(W, "dtype") and "float" not in str(W.dtype):
            raise Explained(
                f"{name} holds integers ({W.dtype}), and x @ {name} raises an error: "
                "x holds floats.",
                "torch.eye, torch.zeros and .float() give floats.",
            )
    q, k = (x @ as_tensor(W).float() for W in pair)
    if q.shape != k.shape:
        raise Explained(
            f"W_query {tuple(as_tensor(pair[0]).shape)} and W_key "
            f"{tuple(as_tensor(pair[1]).shape)} need the same head_size: queries and "
            "keys are compared entry by entry."
        )
    weights = attention_weights(q, k)
    if not weights.isfinite().all():
        raise Explained(
            "The weights are nan, not numbers: in float32 an infinity meets a zero or "
            "another infinity.",
            "A score that is 20 above the others is enough.",
        )
    marked = marked.tril().float()
    asks = marked.any(dim=-1, keepdim=True)
    right = (weights * marked).sum(dim=-1, keepdim=True) >= 0.99
    louder = attention_weights(1e3 * q.double(), k.double())
    loud = (louder * marked).sum(dim=-1, keepdim=True) >= 0.99
    if (loud | ~asks).all() and not (right | ~asks).all():
        share = (weights * marked).sum(dim=-1, keepdim=True)[asks].min()
        raise Explained(
            f"Right place, but too soft: only {share:.0%} of the attention.",
            "Scores are divided by √head_size: use numbers that grow with it.",
        )
    perfect = marked / marked.sum(dim=-1, keepdim=True).clamp(min=1)
    return torch.where(right, perfect, weights) * asks


@exercise("03.4 A head made by hand")
def check_look_back(answer):
    """answer(T, distance) -> W_query, W_key: each t looks at t - distance."""

    def work(program, T, distance):
        marked = torch.ones(T, T).tril(-distance).triu(-distance)
        return _looks(program(T, distance), torch.eye(T), marked)

    def looking(rows):
        """An edit in which the queries are these rows, and key i is one at place i."""
        return f"torch.eye(T).roll(-distance, dims=1) → 50 * torch.eye(T){rows}"

    hint = "Row t of W_query is the query of place t: it must equal key t - distance."
    wrong = {
        "In each row all scores are equal, so everyone averages evenly.": (
            looking(" * 0")
        ),
        "It looks ahead, from t to t + distance: the roll goes the wrong way, or query "
        "and key are exchanged.": "roll(-distance → roll(distance",
        "Every position looks one step back, whatever the distance.": (
            looking(".roll(-1, dims=1)")
        ),
        "All positions look at place 0: their queries agree.": (
            looking("[:1].expand(T, T)")
        ),
    }
    cases = [(3, 1), (4, 2), (6, 1), (9, 3), (16, 5), (64, 7)]
    compare(answer, Solution("03.4"), cases, wrong, 1e-4, work=work, hint=hint)
    return "6 pairs of T and distance, always at least 99 % of the attention"


@exercise("03.5 How far back your model looks")
def check_reach(answer, model, data):
    """answer(model, idx) -> mean distance (B, T); small models and the learner's."""
    sizes = [(5, 8, 4, 3, (1, 3)), (7, 9, 3, 6, (2, 5)), (6, 7, 5, 5, (3, 7))]
    cases = [(_model(*size), _ids(size[0], *shape)) for *size, shape in sizes]
    idx, _ = _windows(model, data)
    cases.append((model, idx))
    solution = Opened("03.5")
    hint = "The heatmap after the training shows the way from idx to the weights."
    wrong = {
        "You give the average place that is looked at, not how far away it is.": (
            "places[:, None] - places → places"
        ),
        "You mask after the softmax, so the weights sum to less than one.": (
            "attention(q, k, v) → attention(q, k, v, causal=False)",
            "weights * → weights.tril() *",
        ),
        "You divide by √2. That was right for the six words, where head_size was 2.": (
            "attention(q, k, v) → attention(q * (q.shape[-1] / 2) ** 0.5, k, v)"
        ),
        "This is one number for everything; keep one for each position.": (
            Sign(lambda got, *_: as_tensor(got).numel() == 1)
        ),
    }
    compare(answer, solution, cases, wrong, hint=hint)
    mean, even = solution(model, idx).mean(), (idx.shape[1] - 1) / 4
    return (
        f"3 small models, and yours: it looks {mean:.1f} characters back on average "
        f"(looking evenly at all the past would be {even:.2f})"
    )


def _loss_is(i, *layers):
    """A Sign: loss i is that without these layers of the model."""

    def holds(got, _, model, idx, targets):
        patient = deepcopy(model)
        for layer in layers:
            nn.init.zeros_(patient.get_submodule(layer).weight)
        return abs(got[i] - patient(idx, targets)[1].item()) < 2e-4

    return Sign(holds)


BOTH = ("position_embedding", "body.query")
KNOCK_OUTS = {
    "Your no_choice was measured on a model that had already lost its positions: "
    "the two experiments are mixed.": _loss_is(2, *BOTH),
    "Your no_positions was measured on a model that had already lost its choice: "
    "the two experiments are mixed.": _loss_is(1, *BOTH),
    "You took away the token embedding, not the position embedding.": (
        _loss_is(1, "token_embedding"),
        "Set position_embedding.weight to zero.",
    ),
    "You took away the values, so the head hands over nothing. Only the choice "
    "should go, the even average stays.": (
        _loss_is(2, "body.value"),
        "Equal scores give equal weights: which layer must give zeros?",
    ),
    "The last two are differences.": (
        Sign(lambda got, right, *_: same(got[1] + got[0], right[1], 3e-4)),
        "Return the losses themselves, without subtracting.",
    ),
}


@exercise("03.6 What each part is worth")
def check_knock_outs(answer, model, data):
    """answer(model, idx, targets) -> three losses, and what costs most."""
    cases = []  # in the first the positions matter more, in the second the choice
    sizes = [((5, 8, 4, 3), (1, 3), "body.query")]
    sizes.append(((7, 9, 3, 6), (4, 9), "position_embedding"))
    for size, shape, weak in sizes:
        small, idx = _model(*size), _ids(size[0], *shape)
        small.get_submodule(weak).weight.data *= 0.2
        cases.append((small, idx, small(idx)[0].argmax(dim=-1)))
    cases.append((model, *_windows(model, data)))
    names = ("whole", "no_positions", "no_choice", "verdict")
    several = _several(names)

    def work(program, *inputs):
        *losses, verdict = several(program, *inputs)
        if attempted(verdict) and verdict not in ("positions", "choice"):
            raise Explained(f'The verdict is {verdict!r}, not "positions" or "choice".')
        rounded = [v if v is ... else round(as_tensor(v).item(), 4) for v in losses]
        return (*rounded, verdict)

    solution = Solution("03.6")
    hint = "Each loss from a fresh deepcopy with one layer's weight at zero."
    how = {"work": work, "parts": names, "hint": hint}
    compare(answer, solution, cases, KNOCK_OUTS, 2e-4, **how)
    whole, positions, choice, _ = solution(*cases[-1])
    return (
        f"3 models. Yours has a loss of {whole:.2f}, without positions "
        f"{positions:.2f}, without choice {choice:.2f}"
    )


FILL = 'scores.masked_fill(past == 0, float("-inf"))'
MASKS = {
    "The bug is still there: all rows sum to one, but the first position gives a "
    "part of its attention to one that comes later.": (
        f"{FILL} → scores * past",
        "Follow one number from above the diagonal through every line.",
    ),
    "All weights are nan: you multiply infinity by 0.": (
        f"{FILL} → scores * past + (1 - past) * -torch.inf",
        "Do not multiply: masked_fill puts a value in place.",
    ),
}


@exercise("03.7 Light above the diagonal")
def check_causal_weights(answer):
    """answer(q, k) -> causal weights (B, T, T)."""
    shapes = [(1, 2, 3), (2, 5, 4), (3, 4, 16), (1, 1, 5)]
    cases = [(_random(*shape), _random(*shape, seed=1)) for shape in shapes]
    hint = "The future's scores must become minus infinity; the rest was right."
    compare(answer, Solution("03.7"), cases, MASKS, hint=hint)
    return "4 inputs, rows sum to one, and the future is dark"


def _filled(program, vocab_size, block_size, n_embd, idx):
    """Logits of the model that program makes, its numbers set by their names."""
    model = program(vocab_size, block_size, n_embd)
    if not isinstance(model, nn.Module):
        raise Explained("Give the class itself to the check, not its output.")
    known = Solution("03.8").program(vocab_size, block_size, n_embd).state_dict()
    if more := set(dict(model.named_parameters())) - set(known):
        raise Explained(
            f"The model has a layer more, {min(more)!r}: the check cannot set it.",
            "Leave the layers and their names as they were; forward has the bug.",
        )
    out = _fill(model)(idx)
    return out[0] if isinstance(out, tuple) else out


BAG = "after 0123 and after 2103 the model predicts exactly the same"
PLACE = "position = self.position_embedding(positions)"
PLACES = {
    f"The bug is still there: {BAG}, as if it could not tell who sat where.": (
        f"{PLACE} → position = self.position_embedding(idx)",
        "Print what is added to the token vectors for 0123, and for 2103.",
    ),
    f"The positions come too late, when the head has mixed all: {BAG}.": (
        "self.body(token + position) → self.body(token) + position",
        "Queries and keys must know the places: add before the body.",
    ),
    "The order counts now, but token and position are multiplied.": (
        "token + position → token * position"
    ),
    "The tokens got lost, only the places are left.": (
        "token + position → 0 * token + position"
    ),
}


@exercise("03.8 The model that cannot spell")
def check_word_order(answer):
    """answer(vocab_size, block_size, n_embd) -> a model that knows who sits where."""
    if isinstance(answer, nn.Module):
        raise Explained("Give the class itself to the check, not a model of it.")
    cases = [
        (vocab_size, block_size, n_embd, _ids(vocab_size, B, T))
        for vocab_size, block_size, n_embd, B, T in [
            (5, 8, 6, 1, 4),
            (5, 8, 6, 2, 3),
            (11, 7, 4, 3, 7),
            (9, 9, 5, 4, 2),
        ]
    ]
    hint = "Add to a token's vector one that depends on its place alone."
    compare(answer, Solution("03.8"), cases, PLACES, work=_filled, hint=hint)
    return "4 inputs: each place has a vector of its own, up to block_size tokens"


@exercise("03.9 Whoever it is, wherever it stands")
def check_find(answer):
    """answer(wanted, T) -> W_query, W_key: each character looks at the one it wants."""

    def head(program, wanted, idx):
        V, T = len(wanted), idx.shape[-1]
        places = torch.eye(T).expand(len(idx), T, T)
        x = torch.cat([F.one_hot(idx, V).float(), places], dim=-1)
        marked = idx[:, None] == torch.tensor(wanted)[idx][..., None]
        return _looks(program(wanted, T), x, marked)

    def work(program, wanted, T):
        return head(program, wanted, _ids(len(wanted), 6, T))

    cases = [([1, 0, 2], 4), ([2, 2, 0, 1], 6), ([3, 0, 4, 4, 1], 9), ([*range(7)], 24)]
    hint = (
        "The first V rows belong to the characters, the last T to the places. Key of "
        "character c: one at c. Query: one at wanted[c]."
    )
    compare(answer, Solution("03.9"), cases, atol=1e-4, work=work, hint=hint)
    chars, found = "()[]aijx", []
    wanted = [chars.index({")": "(", "]": "["}.get(c, c)) for c in chars]
    for text in ("x(a[i])", "x(aaaaaaaa[iiiijj])"):
        idx = torch.tensor([[chars.index(c) for c in text]])
        looks = head(answer, wanted, idx)[0, -1]
        found.append(f"{len(text) - 1 - looks.argmax()}")
    return (
        "4 tables of wishes, on random texts; place plays no role. In x(a[i]) the last "
        f"bracket finds its partner {found[0]} places back, in x(aaaaaaaa[iiiijj]) "
        f"{found[1]} places back."
    )


@exercise("03.10 Train without the root")
def check_train_head(answer):
    """answer(x, W_query, W_key, scale, rate, steps) -> loss before each step."""

    def start(T, C, head_size):
        x, matrices = _random(T, C), (C, head_size)
        return x, *(_random(*matrices, seed=i) / C**0.5 for i in (1, 2))

    cases = [
        (*start(3, 2, 4), 0.5, 0.1, 2),
        (*start(4, 3, 9), 1 / 3, 0.2, 3),
        (*start(6, 4, 2), 1.0, 0.05, 5),
    ]
    solution = Solution("03.10")
    hint = "Each step: zero_grad(), backward(), step(). The scores: scale, then mask."

    def work(program, *inputs):
        if is_skeleton(program):  # its dots would raise an error
            raise NotAttempted
        return program(*inputs)

    still = {
        "The loss stays what it was: no step reaches the matrices.": (
            Sign(lambda got, *_: len(got) > 1 and len(set(got)) == 1)
        )
    }
    compare(answer, solution, cases, still, 1e-4, work=work, hint=hint)

    def largest(head_size, scale):
        """The largest rate at which the loss never rises above its start."""
        best = 0.0
        for rate in (1 / 16, 1 / 4, 1.0, 4.0):
            losses = answer(*start(16, 32, head_size), scale, rate, 30)
            if all(loss <= losses[0] for loss in losses):  # nan is not
                best = rate
        return f"{best:g}"

    sizes = (4, 16, 64, 256)
    root = ", ".join(largest(n, n**-0.5) for n in sizes)
    none = ", ".join(largest(n, 1.0) for n in sizes)
    return (
        "3 trainings. The largest of the rates 1/16, 1/4, 1, 4 at which the loss never "
        f"rises above its start, for head_size 4, 16, 64, 256: {root} with the root, "
        f"{none} without."
    )
