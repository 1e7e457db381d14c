"""Checks for notebook 09: a cache by hand, prompts side by side, drafts, int8."""

from functools import partial

import torch
import torch.nn.functional as F

from minigpt.attention import attention
from minigpt.cache import KVCache
from minigpt.checks.core import (
    Explained,
    Sign,
    as_tensor,
    call,
    compare,
    exercise,
    mistakes,
    same,
)
from minigpt.modern import ModernConfig


def _randn(*shape, seed=9):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _has_nan(got):
    parts = got if isinstance(got, (tuple, list)) else [got]
    return any(bool(part.isnan().any()) for part in map(as_tensor, parts))


# 09.1


def _bytes(n_layer, n_kv_head, head_size, context, batch, size):
    return 2 * n_layer * n_kv_head * head_size * context * batch * size


BYTES_MISTAKES = {
    "These are only the keys (or only the values): both are kept.": (
        lambda L, h, d, T, B, s: _bytes(L, h, d, T, B, s) / 2
    ),
    "You keep the queries too: a query is used once, in its own step.": (
        lambda L, h, d, T, B, s: _bytes(L, h, d, T, B, s) * 3 / 2
    ),
    "This is the cache of a single layer.": (
        lambda L, h, d, T, B, s: _bytes(1, h, d, T, B, s)
    ),
    "This is the cache of a single head.": (
        lambda L, h, d, T, B, s: _bytes(L, 1, d, T, B, s)
    ),
    "This is the cache of a single text: each of the batch has its own.": (
        lambda L, h, d, T, B, s: _bytes(L, h, d, T, 1, s)
    ),
    "This is the cache of a single character: the context is missing.": (
        lambda L, h, d, T, B, s: _bytes(L, h, d, 1, B, s)
    ),
    "These are numbers, not yet bytes: each takes `size` of them.": (
        lambda L, h, d, T, B, s: _bytes(L, h, d, T, B, 1)
    ),
    "These are bits: eight times too many.": (
        lambda L, h, d, T, B, s: 8 * _bytes(L, h, d, T, B, s)
    ),
    "You count every pair of characters: those are scores, and no step keeps them.": (
        lambda L, h, d, T, B, s: T * _bytes(L, h, d, T, B, s)
    ),
    "These are the weights that make keys and values, not what they make.": (
        lambda L, h, d, T, B, s: 2 * L * (h * d) ** 2 * s
    ),
    "These are megabytes; bytes were asked for.": (
        Sign(
            lambda got, expected, *_: any(
                same(as_tensor(got) * mega, expected) for mega in (1e6, 2**20)
            )
        )
    ),
    "The head_size is missing: a key is not one number, but head_size of them.": (
        lambda L, h, d, T, B, s: _bytes(L, h, 1, T, B, s)
    ),
}


@exercise("09.1 The price of remembering")
def check_cache_bytes(cache_bytes):
    """cache_bytes(n_layer, n_kv_head, head_size, context, batch, size) -> a number."""
    cases = [(1, 1, 2, 3, 1, 1), (3, 2, 5, 7, 11, 4), (6, 6, 64, 256, 2, 2)]
    known = mistakes(
        "One character in one head of one layer: head_size numbers, twice.",
        BYTES_MISTAKES,
    )
    compare(cache_bytes, _bytes, cases, known)
    model = ModernConfig(5, 8, n_layer=3, n_head=4, n_embd=24, n_kv_head=2).build()
    cache = KVCache(model)
    with cache:
        model(torch.zeros(2, 1, dtype=torch.long))
    if not same(call(cache_bytes, 3, 2, 6, 8, 2, 4), cache.bytes()):
        raise Explained(f"The KVCache of a small GPT has {cache.bytes()} bytes.")
    return f"3 sizes, and a real KVCache ({cache.bytes()} bytes)."


# 09.2


def _step(q, k, v, keys, values, weigh=None, order=None):
    """One cached step; weigh(q, keys) -> weights; order(kept, new) -> together."""
    order = order or (lambda kept, new: torch.cat([kept, new], dim=2))
    keys, values = order(keys, k), order(values, v)
    return (weigh or _weights)(q, keys) @ values, keys, values


def _weights(q, keys, scale=None):
    scores = q @ keys.mT / (q.shape[-1] ** 0.5 if scale is None else scale)
    return F.softmax(scores, dim=-1)


def _without_itself(q, k, v, keys, values):
    out = _weights(q, keys) @ values
    return out, *_step(q, k, v, keys, values)[1:]


def _only_first(q, keys):
    weights = torch.zeros(*q.shape[:-1], keys.shape[2])
    weights[..., 0] = 1
    return weights


def _front(kept, new):
    return torch.cat([new, kept], dim=2)


def _no_longer(q, k, v, keys, values):
    return _step(q, k, v, keys, values)[0], keys, values


def _key_in_front(q, k, v, keys, values):
    keys, values = _front(keys, k), torch.cat([values, v], dim=2)
    return _weights(q, keys) @ values, keys, values


def _exchanged(q, k, v, keys, values):
    out, keys, values = _step(q, k, v, keys, values)
    return out, values, keys


STEP_MISTAKES = {
    "The new character does not see itself: its key and value go in first.": (
        _without_itself
    ),
    "The caches do not grow: the next step will have forgotten this character.": (
        _no_longer
    ),
    "The new character sees only itself: its query should meet all keys.": (
        lambda q, k, v, keys, values: (v, *_step(q, k, v, keys, values)[1:])
    ),
    "The scores are not divided by √d.": (
        partial(_step, weigh=partial(_weights, scale=1.0))
    ),
    "The scores are divided by d, not by its root.": (
        partial(_step, weigh=lambda q, keys: _weights(q, keys, q.shape[-1]))
    ),
    "The new character sees only the first character: is_causal=True takes the one "
    "query for the first of the text.": (
        partial(_step, weigh=_only_first),
        "There is no future in the cache: no mask is needed.",
    ),
    "The new ones stand in front of the old ones. Attention does not mind, a mask "
    "would: the order is that of the text.": partial(_step, order=_front),
    "The new value stands at the end, its key in front: they no longer match.": (
        _key_in_front
    ),
    "Keys and values have changed places in what you return.": _exchanged,
    "Your softmax runs over the one query: every weight becomes 1.": (
        partial(_step, weigh=lambda q, keys: torch.ones(*q.shape[:-1], keys.shape[2]))
    ),
    "There is no softmax: raw scores weigh the values.": (
        partial(_step, weigh=lambda q, keys: q @ keys.mT / q.shape[-1] ** 0.5)
    ),
    "The oldest character is forgotten: nothing asked for that yet.": (
        partial(_step, order=lambda kept, new: torch.cat([kept, new], dim=2)[:, :, 1:])
    ),
    "You return the new key and value alone; wanted are all, the new ones last.": (
        lambda q, k, v, keys, values: (_step(q, k, v, keys, values)[0], k, v)
    ),
    "Return three things: out, keys, values.": Sign(
        lambda got, *_: not isinstance(got, (tuple, list)) or len(got) != 3
    ),
}


@exercise("09.2 One step by hand")
def check_cached_step(cached_step):
    """cached_step(q, k, v, keys, values) -> out, keys, values."""
    cases = []
    for B, H, T, d in [(1, 1, 1, 2), (2, 3, 4, 5), (1, 2, 6, 3)]:
        cases.append((*_randn(3, B, H, 1, d), *_randn(2, B, H, T, d, seed=3)))
    known = mistakes(
        "cat along dim=2, scores / √d, softmax over the last dimension, times values.",
        STEP_MISTAKES,
    )
    compare(cached_step, _step, cases, known)
    q, k, v = _randn(3, 2, 2, 7, 3, seed=4)
    kept, out = (k[:, :, :0], v[:, :, :0]), []
    for t in range(7):
        now = slice(t, t + 1)
        new, *kept = call(cached_step, q[:, :, now], k[:, :, now], v[:, :, now], *kept)
        out.append(torch.as_tensor(new))
    if not same(torch.cat(out, dim=2), attention(q, k, v)[0]):
        raise Explained("Seven steps from an empty cache are not the causal attention.")
    return (
        "3 sizes; 7 steps from an empty cache equal the causal attention of one pass."
    )


# 09.3


def _pads(prompts):
    longest = max(map(len, prompts))
    return torch.tensor([longest - len(prompt) for prompt in prompts])


def _left(prompts):
    rows = [[0] * int(n) + prompt for n, prompt in zip(_pads(prompts), prompts)]
    return torch.tensor(rows)


def _right(prompts):
    rows = [prompt + [0] * int(n) for n, prompt in zip(_pads(prompts), prompts)]
    return torch.tensor(rows)


def _past(prompts):
    longest = max(map(len, prompts))
    return torch.ones(longest, longest).tril().bool()


def _real(prompts, shift=0):
    pads = _pads(prompts)[:, None]
    return torch.arange(max(map(len, prompts))) >= pads + shift  # (B, T)


def _mask(prompts, real=None, past=None, own=True):
    real = _real(prompts) if real is None else real
    past = _past(prompts) if past is None else past
    mask = past & real[:, None]
    return mask | torch.eye(len(past)).bool() if own else mask


def _padded(idx=_left, mask=_mask):
    return lambda prompts: _settled((idx(prompts), mask(prompts)), prompts)


def _settled(got, prompts):
    """The answer with what nobody reads, the rows of padding, made equal.

    A row of padding must look at something; at what is free, and so is its token.
    """
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return got
    idx, mask = map(as_tensor, got)
    right, real = _mask(prompts), _real(prompts)
    if idx is None or mask is None or mask.shape != right.shape:
        return got
    zero_or_one = ((mask == 0) | (mask == 1)).all()
    free = ~real & (mask == 1).any(dim=-1) & zero_or_one
    mask = torch.where(free[..., None], right.double(), mask)
    left = same(idx[real], _left(prompts)[real]) if idx.shape == real.shape else False
    return torch.where(real, idx, 0.0) if left else idx, mask


def _two_by_right(prompts):
    lengths = max(map(len, prompts)) - _pads(prompts)[:, None]
    return _mask(prompts, torch.arange(max(map(len, prompts))) < lengths)


def _cut(prompts):
    short = min(map(len, prompts))
    cut = [prompt[-short:] for prompt in prompts]
    return _left(cut), _mask(cut)


def _to_add(got, expected, prompts):
    right, mask = expected[1].bool(), as_tensor(got[1])
    fine = mask.shape == right.shape and bool((mask <= 0).all())
    return (
        fine
        and bool((mask < -1e3).any())
        and same((mask == 0)[_real(prompts)], right[_real(prompts)])
    )


PAD_MISTAKES = {
    "You pad on the right: the next character would follow the padding.": (
        _padded(_right)
    ),
    "You pad on the right, and so does your mask: but the next character is drawn in "
    "the last column.": _padded(_right, _two_by_right),
    "The ids are padded on the left, but the mask belongs to padding on the right.": (
        _padded(mask=_two_by_right)
    ),
    "Everyone may look at the future.": (
        _padded(mask=lambda p: _mask(p, past=torch.ones_like(_past(p))))
    ),
    "The real characters may look at padding, which must be hidden from them.": (
        _padded(mask=lambda p: _past(p).expand(len(p), -1, -1))
    ),
    "A padded column sees nothing: its softmax is 0 / 0, nan.": (
        _padded(mask=partial(_mask, own=False)),
        "Let it see itself: | torch.eye(T).bool()",
    ),
    "Your mask is True where nobody may look: turn it round.": (
        _padded(mask=lambda p: ~_mask(p))
    ),
    "You tell padding by its 0, but 0 may be a character, too: go by the lengths.": (
        _padded(mask=lambda p: _mask(p, _left(p) != 0))
    ),
    "The mask allows also the last column of padding.": (
        _padded(mask=lambda p: _mask(p, _real(p, -1)))
    ),
    "The first real character is hidden: the mask begins one column late.": (
        _padded(mask=lambda p: _mask(p, _real(p, 1)))
    ),
    "The prompts were cut to the shortest: nothing is to be lost.": _cut,
    "This mask is a number to add to the scores; wanted is True or False.": (
        Sign(_to_add),
        "True where it may look: what you had before masked_fill.",
    ),
    "This mask says which columns are real; wanted is one answer for each pair of "
    "columns, (B, T, T).": lambda p: (_left(p), _real(p)),
    "A character does not see itself: the diagonal belongs to the past.": (
        _padded(mask=lambda p: _mask(p, past=_past(p).tril(-1), own=False))
    ),
    "Your mask goes the other way round in time: it shows the future only.": (
        _padded(mask=lambda p: _mask(p, past=_past(p).mT))
    ),
    "Return two things: idx, mask.": Sign(
        lambda got, *_: not isinstance(got, (tuple, list)) or len(got) != 2
    ),
}


@exercise("09.3 Prompts side by side")
def check_left_pad(left_pad):
    """left_pad(prompts): a list of lists of ids -> idx (B, T), mask (B, T, T)."""
    cases = [
        ([[5, 6, 7], [8]],),
        ([[0, 3], [4, 0, 0, 2, 1], [9, 8, 7]],),
        ([[1, 2], [3, 4]],),
    ]

    def answer(prompts):
        return _settled(left_pad(prompts), prompts)

    known = mistakes(
        "Column j of row b is real if j >= T - len(prompts[b]).", PAD_MISTAKES
    )
    compare(answer, _padded(), cases, known)
    prompts = cases[1][0]
    idx, mask = map(as_tensor, call(left_pad, prompts))
    x = _randn(10, 4)[idx.long()].double()  # (B, T, 4): a vector for each id
    weights = (x @ x.mT).masked_fill(mask == 0, -torch.inf).softmax(dim=-1)
    rows = zip((weights @ x)[:, -1], prompts)
    worst = max((row - _alone(prompt)).abs().max().item() for row, prompt in rows)
    if not worst < 1e-5:
        raise Explained("A row of the batch is not what the prompt gives alone.")
    return (
        "3 batches; attention at the end of each row is what it is alone "
        f"(largest difference {worst:.0e})."
    )


def _alone(prompt):
    x = _randn(10, 4)[torch.tensor(prompt)].double()
    return ((x @ x.mT).softmax(dim=-1) @ x)[-1]


# 09.4


def _draft(p, q):
    return torch.minimum(p, q), (p - q).clamp(min=0)


def _refused(how):
    """A program that is right about what is kept."""
    return lambda p, q: (torch.minimum(p, q), how(p, q))


def _lacking(p, q):
    lacking = (p - q).clamp(min=0)
    return lacking / lacking.sum()


def _again(p, q):
    return 1 - torch.minimum(p, q).sum()  # the probability of a refusal


DRAFT_MISTAKES = {
    "There is a nan: 0 / 0, where q is 0 or where nothing is ever refused.": (
        Sign(lambda got, *_: _has_nan(got)),
        "Both divisions can be cancelled on paper.",
    ),
    "Everything is kept: then the text is the draft's, not the model's.": (
        lambda p, q: (q, torch.zeros_like(p))
    ),
    "p q is how often two draws of their own agree; the model does not draw, it "
    "accepts with min(1, p / q).": lambda p, q: (p * q, (p - q).clamp(min=0)),
    "min(1, p / q) is the probability given that it was drafted; that happens with "
    "probability q.": (
        lambda p, q: ((p / q).clamp(max=1).nan_to_num(), (p - q).clamp(min=0))
    ),
    "The fraction is the other way up: p / q, or the rare ones are kept too often.": (
        lambda p, q: (q * (q / p).clamp(max=1).nan_to_num(), (p - q).clamp(min=0))
    ),
    "The second is given a refusal; how probable is a refusal?": (
        _refused(_lacking),
        "Multiply by 1 - kept.sum(), and see what cancels.",
    ),
    "After a refusal you let it be drawn from p: what the draft says often is then "
    "said too often.": _refused(lambda p, q: _again(p, q) * p),
    "After a refusal you let it be drawn from q again.": (
        _refused(lambda p, q: _again(p, q) * q)
    ),
    "p - q counts both ways: what the draft says too often lacks nothing.": (
        _refused(lambda p, q: (p - q).abs())
    ),
    "max(q - p, 0) is what the draft says too often; wanted is what it lacks.": (
        _refused(lambda p, q: (q - p).clamp(min=0))
    ),
    "Some of your probabilities are below zero: where q is larger, nothing lacks.": (
        _refused(lambda p, q: p - q)
    ),
    "Kept and after a refusal have changed places.": lambda p, q: _draft(p, q)[::-1],
    "Here the draft is not used: everything is drawn from the model.": (
        lambda p, q: (p, torch.zeros_like(p))
    ),
    "The second is what comes out at all, the first part included.": (
        _refused(lambda p, q: p)
    ),
    "These are the sums; wanted is a number for each character.": (
        lambda p, q: tuple(part.sum() for part in _draft(p, q))
    ),
}


@exercise("09.4 Nothing is lost in the draft")
def check_one_draft(one_draft):
    """one_draft(p, q): (V,), (V,) -> kept (V,), after_refusal (V,)."""
    p, q = F.softmax(1.5 * _randn(2, 6), dim=-1)
    cases = [
        (torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.75, 0.25, 0.0])),
        (p, q),
        (torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.6, 0.0, 0.4])),
        (torch.tensor([0.1, 0.2, 0.7]), torch.tensor([0.1, 0.2, 0.7])),
        (torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])),
    ]
    known = mistakes(
        "q times min(1, p / q) is min(p, q); what p has beyond that comes second.",
        DRAFT_MISTAKES,
    )
    compare(one_draft, _draft, cases, known)
    shares = [float(as_tensor(call(one_draft, *case)[0]).sum()) for case in cases]
    return (
        "5 pairs; the two parts add up to p in each, with "
        + ", ".join(f"{share:.0%}" for share in shares)
        + " kept."
    )


# 09.5


def _int8(weight, largest=None, levels=127, whole=torch.round, top=128):
    """(m, n) -> numbers, scale (m, 1), with mistakes to choose."""
    largest = _largest(weight) if largest is None else largest(weight)
    scale = largest.clamp(min=1e-12) / levels
    return whole(weight / scale).clamp(-top, top).to(torch.int8), scale


def _largest(weight):
    return weight.abs().amax(dim=1, keepdim=True)


def _one_scale(weight):
    return weight.abs().max().expand(len(weight), 1)


def _of_columns(weight):
    scale = weight.abs().amax(dim=0, keepdim=True).clamp(min=1e-12) / 127
    return (weight / scale).round().to(torch.int8), scale


def _signed(weight):
    scale = weight.amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
    return (weight / scale).round().to(torch.int8), scale


def _multiplied(weight):
    scale = _largest(weight).clamp(min=1e-12) / 127
    return (weight * scale).round().to(torch.int8), scale


def _one_over(weight):
    numbers, scale = _int8(weight)
    return numbers, torch.where(_largest(weight) > 0, 1 / scale, scale)


INT8_MISTAKES = {
    "One scale for the whole matrix: small rows lose their digits to the largest.": (
        partial(_int8, largest=_one_scale)
    ),
    "You take one scale for each column; each row should have one.": _of_columns,
    "You cut off behind the point: .to(torch.int8) does not round.": (
        partial(_int8, whole=torch.trunc)
    ),
    "128 is no int8: it wraps round and becomes -128. The largest is 127.": (
        partial(_int8, levels=128, top=1e9)
    ),
    "You take the largest number, not the largest absolute value: what is below it "
    "on the other side wraps round.": _signed,
    "You multiply by the scale: the weight is numbers times scale, so divide.": (
        _multiplied
    ),
    "The scale that you return is one over it: numbers times scale is the weight.": (
        _one_over
    ),
    "Your numbers end at 63: only seven bits of the eight are used.": (
        partial(_int8, levels=63)
    ),
    "The sign is lost.": lambda w: (_int8(w.abs())[0], _int8(w)[1]),
    "You take the mean absolute value: large weights are cut.": (
        Sign(
            lambda got, expected, w: same(
                got[1], w.abs().mean(dim=1, keepdim=True).clamp(min=1e-12) / 127
            )
        )
    ),
    "These are not whole numbers yet: round, then .to(torch.int8).": (
        lambda w: (w / _int8(w)[1], _int8(w)[1])
    ),
    "Return two things: numbers, scale.": Sign(
        lambda got, *_: not isinstance(got, (tuple, list)) or len(got) != 2
    ),
}

BACK_MISTAKES = {
    "On the way back: divided by the scale; it multiplies.": lambda n, s: n / s,
    "On the way back: the scale is missing.": lambda n, s: n.float(),
    "On the way back: the product is made of whole numbers; the scale is none.": (
        lambda n, s: n * s.to(torch.int8)
    ),
    "On the way back: 127 once more; it is in the scale already.": (
        lambda n, s: n / 127 * s
    ),
}


@exercise("09.5 A matrix in bytes")
def check_int8(to_int8, from_int8):
    """to_int8(weight) -> numbers, scale; from_int8(numbers, scale) -> weight."""
    cases = [
        (torch.tensor([[1.0, -4.0], [0.5, 0.1]]),),
        (_randn(4, 6) * torch.tensor([[1.0], [10.0], [0.01], [3.0]]),),
        (torch.tensor([[0.0, 0.0, 0.0], [300.0, -20.0, 1.0]]),),
    ]

    def answer(weight):
        got = to_int8(weight)
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            return got
        numbers, scale = got
        right_numbers, right_scale = _int8(weight)
        values = as_tensor(scale)
        if values is not None and values.shape in ((len(weight),), (len(weight), 1)):
            empty = (weight == 0).all(dim=1, keepdim=True)
            values = values.view(-1, 1)
            fine = empty & (values > 0)  # any scale does for a row of zeros
            scale = torch.where(fine, right_scale.double(), values)
            if not (values[empty] > 0).all():
                raise Explained(
                    "The scale of a row of zeros should be above 0: 0 / 0 is nan, "
                    "which no whole number is.",
                    "clamp(min=1e-12): any scale above 0 does.",
                )
        if same((numbers, scale), (right_numbers, right_scale)):
            if getattr(numbers, "dtype", None) != torch.int8:
                raise Explained(
                    "The right whole numbers, but not bytes: as they are, they take "
                    "as much memory as before.",
                    ".to(torch.int8) at the end.",
                )
        return numbers, scale

    known = mistakes("scale = largest of the row / 127; weight / scale.", INT8_MISTAKES)
    compare(answer, _int8, cases, known)
    packed = [_int8(*case) for case in cases]
    known = mistakes("numbers * scale, as floats.", BACK_MISTAKES)
    compare(from_int8, lambda numbers, scale: numbers * scale, packed, known)
    weight = _randn(64, 64)
    numbers, scale = call(to_int8, weight)
    scale = as_tensor(scale).view(-1, 1)
    error = (as_tensor(numbers) * scale - weight).abs() / scale
    return (
        "3 matrices, with a row of zeros. Of 4096 weights, the largest error is "
        f"{error.max():.2f} of a scale."
    )


# 09.6


def _keys(text, prompt, chars, places, place=None, shift=0, char=0, end=0, new=1):
    """place(n, prompt): where a step puts character n; shift: of the prompt."""
    keys = chars[text[:prompt]] + places[shift : prompt + shift]
    for n in range(prompt, len(text) + end):
        at = n if place is None else place(n, prompt)
        key = (chars[text[n + char]] + places[at])[None]
        keys = torch.cat([keys, key] if new == 1 else [key, keys])
    return keys


def _placeless(text, prompt, chars, places):
    return torch.cat(
        [_keys(text, prompt, chars, places)[:prompt], chars[text[prompt:]]]
    )


PLACE_MISTAKES = {
    "The bug is still there: after the prompt a place is left out, and every step "
    "stands one too far.": partial(_keys, place=lambda n, prompt: n + 1),
    "Every step stands one place too early now: its first shares the last one's.": (
        partial(_keys, place=lambda n, prompt: n - 1)
    ),
    "Every step stands at place 0: it is new, but not the first.": (
        partial(_keys, place=lambda n, prompt: 0)
    ),
    "The places are counted from the prompt on: they start again at 0.": (
        partial(_keys, place=lambda n, prompt: n - prompt)
    ),
    "The places do not advance: every step stands right after the prompt.": (
        partial(_keys, place=lambda n, prompt: prompt)
    ),
    "The steps have no place at all.": _placeless,
    "The place is right, but the character is not: it is the character before.": (
        partial(_keys, char=-1)
    ),
    "Now the prompt is late as well: the text begins at place 1.": (
        partial(_keys, place=lambda n, prompt: n + 1, shift=1)
    ),
    "Only the keys of the prompt are there: the steps are missing.": (
        lambda text, prompt, chars, places: _keys(text[:prompt], prompt, chars, places)
    ),
    "The last character is missing.": (
        lambda text, prompt, *tables: _keys(text, prompt, *tables, end=-1)
    ),
    "The new key goes in front: keys stand in the order of the text.": (
        partial(_keys, new=0)
    ),
    "The first character stands at place 1: the prompt was right before.": (
        partial(_keys, shift=1)
    ),
}


@exercise("09.6 One place too far")
def check_keys_of(keys_of):
    """keys_of(text, prompt, chars, places) -> (N, d)."""
    chars, places = _randn(4, 3), _randn(12, 3, seed=3)
    small = torch.zeros(3, 1), torch.arange(6.0)[:, None]
    text = torch.tensor([3, 0, 1, 1, 2, 0, 3, 2])
    cases = [(torch.tensor([2, 0, 1]), 1, *small), (text[:5], 2, chars, places)]
    cases += [(text, 4, chars, places), (text, 8, chars, places)]
    known = mistakes(
        "The place of a character is the number of characters before it.",
        PLACE_MISTAKES,
    )
    compare(keys_of, _keys, cases, known)
    return "prompts of 1, 2, 4 and 8 characters; the keys are those of one pass."


# 09.7


def _read_on(q, k, v, keys, values, mask=None, front=False, scale=None):
    """mask(T, n) -> (T, n + T), True where a new character may look."""
    T, n = len(q), len(keys)
    keys = torch.cat([k, keys] if front else [keys, k])[None]
    values = torch.cat([v, values] if front else [values, v])[None]
    mask = _seen(T, n) if mask is None else mask(T, n)
    out = F.scaled_dot_product_attention(
        q[None], keys, values, attn_mask=mask, scale=scale
    )
    return out[0]


def _seen(T, n, more=0):
    return torch.ones(T, n + T).tril(n + more).bool()


def _with_new(new):
    """All that was kept, and of the new ones what new(T, T) of ones leaves."""
    return lambda T, n: torch.cat([torch.ones(T, n), new(torch.ones(T, T))], 1).bool()


MASK_MISTAKES = {
    "The bug is still there: the first new character sees only the first one kept, "
    "as if it were the first of the text.": (
        partial(_read_on, mask=lambda T, n: torch.ones(T, n + T).tril().bool())
    ),
    "Nothing is masked: the new characters see those that come after them.": (
        partial(_read_on, mask=_with_new(torch.clone))
    ),
    "Each new character sees one character of the future.": (
        partial(_read_on, mask=partial(_seen, more=1))
    ),
    "A new character does not see itself.": (
        partial(_read_on, mask=partial(_seen, more=-1))
    ),
    "The new characters do not see each other, nor themselves: only what was kept.": (
        partial(_read_on, mask=_with_new(torch.zeros_like))
    ),
    "What was kept is not looked at: the new ones are among themselves.": (
        partial(_read_on, mask=lambda T, n: _seen(T, n) & (torch.arange(n + T) >= n))
    ),
    "The mask is the wrong way round: True means that it may look.": (
        partial(_read_on, mask=lambda T, n: ~_seen(T, n))
    ),
    "The new keys stand in front of the old ones, and the mask counts from the end.": (
        partial(_read_on, front=True)
    ),
    "Each new character sees only as many as were kept: the oldest drop out.": (
        partial(_read_on, mask=lambda T, n: _seen(T, n).triu(1))
    ),
    "Now each new character sees itself only.": lambda q, k, v, keys, values: v,
    "Among the new ones the triangle is upside down: each sees the later ones.": (
        partial(_read_on, mask=_with_new(torch.triu))
    ),
    "The scores are not divided by √d.": partial(_read_on, scale=1.0),
}


@exercise("09.7 Several at once")
def check_read_on(read_on):
    """read_on(q, k, v, keys, values): (T, d) new, (n, d) kept -> (T, d)."""
    cases = []
    for T, n, d in [(2, 1, 2), (3, 2, 4), (1, 5, 3), (4, 3, 3)]:
        cases.append((*_randn(3, T, d), *_randn(2, n, d, seed=3)))
    known = mistakes(
        "New character t has n + t before it: the triangle moves n to the right.",
        MASK_MISTAKES,
    )
    compare(read_on, _read_on, cases, known)
    q, k, v = _randn(3, 4, 3)
    if not same(call(read_on, q, k, v, k[:0], v[:0]), attention(q, k, v)[0]):
        raise Explained("With an empty cache it is not right yet.")
    return "4 sizes, one new character included, and an empty cache."


# 09.8


def _reading(order, keys, result=torch.stack, kept_of=None, wipe=False):
    """What each read returns, in the order in which the texts are read."""
    kept, out = {}, []
    for text, key in zip(order, keys):
        if wipe:  # all share one list, emptied when a text begins
            kept = dict.fromkeys([*kept, text], [] if text not in kept else kept[text])
        mine = kept.setdefault(text, [])
        if kept_of is not None:
            mine[:] = kept_of(mine, key)
        else:
            mine.append(key)
        out.append(result(list(mine)))
    return tuple(out)


def _late(kept):
    return torch.stack(kept)[:-1]


def _others_keys(got, expected, order, keys):
    """Whether a memory holds keys that it was never given."""
    pairs = list(zip(map(as_tensor, got), expected))
    fine = all(g.shape[1:] == e.shape[1:] for g, e in pairs)
    return fine and any(len(g) > len(e) for g, e in pairs)


MEMORY_MISTAKES = {
    "A new text wipes the memory of the others: they still share one list.": (
        partial(_reading, wipe=True),
        "self.kept = [] in __init__: a list for each object.",
    ),
    "Only the newest key is there: what was read before is not kept.": (
        partial(_reading, kept_of=lambda kept, key: [key])
    ),
    "What you return is one key late: the new one goes in first.": (
        partial(_reading, result=_late)
    ),
    "The keys come newest first; they stand in the order of the text.": (
        partial(_reading, kept_of=lambda kept, key: [key, *kept])
    ),
    "The keys are added up: attention asks each of them.": (
        partial(_reading, result=lambda kept: torch.stack(kept).sum(0))
    ),
    "This is the mean of the keys: attention asks each of them.": (
        partial(_reading, result=lambda kept: torch.stack(kept).mean(0))
    ),
    "Each key is kept twice.": (
        partial(_reading, kept_of=lambda kept, key: [*kept, key, key])
    ),
    "The keys stand side by side: (n * d,) where (n, d) is wanted.": (
        partial(_reading, result=torch.cat)
    ),
    "The oldest key goes when the third comes: nothing asked for that.": (
        partial(_reading, kept_of=lambda kept, key: [*kept, key][-2:])
    ),
    "The bug is still there: a memory holds keys that it was never given.": (
        Sign(_others_keys)
    ),
}


@exercise("09.8 Two texts, one memory")
def check_own_memory(Memory):
    """Memory(): a class; its read(key) returns (n, d), all keys of this text."""
    cases = [
        ([0, 1], torch.tensor([[1.0], [2.0]])),
        ([0, 0, 1, 0], torch.tensor([[1.0], [2.0], [3.0], [4.0]])),
        ([0, 1, 1, 0, 1, 1], _randn(6, 1)),
    ]

    def answer(order, keys):
        memories, out = {}, []
        for text, key in zip(order, keys):
            if text not in memories:
                memories[text] = Memory()
            out.append(memories[text].read(key))
        return tuple(out)

    known = mistakes(
        "When is the list made: once with the class, or with each object?",
        MEMORY_MISTAKES,
    )
    compare(answer, _reading, cases, known)
    return "2 texts read in turns, 3 times: each remembers its own keys only."


# 09.9

ROOM = 12


def _finds(*prompts, clear=None, look=None, forward=1, each=False):
    """What every step finds; clear(keys, values, length) and look(length) -> length."""
    keys, values = torch.zeros(2, ROOM, prompts[0].shape[-1])
    length, found = 0, []
    for prompt in prompts:
        length = clear(keys, values, length) if clear else 0
        out = []
        for q, k, v in prompt.unbind(1):
            length = 0 if each else length
            keys[length], values[length] = k, v
            length += forward
            n = look(length) if look else length
            out.append(attention(q[None], keys[:n], values[:n], causal=False)[0][0])
        found.append(torch.stack(out))
    return tuple(found)


def _emptied(keys=False, values=False):
    """A clear that empties these, and forgets no length."""

    def clear(k, v, length):
        k.mul_(not keys), v.mul_(not values)
        return length

    return clear


def _emptied_and_reset(keys, values, length):
    return 0 * _emptied(True, True)(keys, values, length)


CLEAR_MISTAKES = {
    "The bug is still there: the numbers are gone, but their places still count, and "
    "a key of zeros takes its share.": partial(_finds, clear=_emptied(True, True)),
    "Nothing is cleared: the second prompt reads on where the first one ended.": (
        partial(_finds, clear=_emptied())
    ),
    "The query looks at the empty places, too: a key of zeros takes its share.": (
        partial(_finds, clear=_emptied_and_reset, look=lambda n: ROOM),
        "keys[:n] and values[:n], with n the length.",
    ),
    "Left-overs of the prompt before are looked at: keys[:n] is this one.": (
        partial(_finds, look=lambda n: ROOM)
    ),
    "One character of the last prompt stays.": (
        partial(_finds, clear=lambda k, v, length: min(length, 1))
    ),
    "The last prompt forgets only its last character.": (
        partial(_finds, clear=lambda k, v, length: max(length - 1, 0))
    ),
    "Only the keys are emptied, and the length still counts the last prompt.": (
        partial(_finds, clear=_emptied(keys=True))
    ),
    "Only the values are emptied, and the length still counts the last prompt.": (
        partial(_finds, clear=_emptied(values=True))
    ),
    "You clear before every step: nothing is remembered at all.": (
        partial(_finds, each=True)
    ),
    "The newest character is not looked at.": (
        partial(_finds, look=lambda n: max(n - 1, 1))
    ),
    "Every second place stays empty: a character takes one place.": (
        partial(_finds, forward=2)
    ),
    "Infinite keys make nan: the length is what says who is there.": (
        Sign(lambda got, *_: _has_nan(got))
    ),
}


@exercise("09.9 The memory of the last prompt")
def check_cleared_memory(Memory):
    """Memory(size, d): a class with step(q, k, v) -> (d,) and clear()."""
    one = torch.tensor([[0.0], [0.0], [1.0]])[:, None]  # q, k and v of a character
    cases = [
        (2 * one, 4 * one),
        tuple(_randn(3, n, 2, seed=n) for n in (3, 2, 1)),
        tuple(_randn(3, n, 3, seed=n) for n in (1, 4)),
    ]

    def answer(*prompts, size=ROOM):
        memory, found = Memory(size, prompts[0].shape[-1]), []
        for prompt in prompts:
            memory.clear()
            steps = [memory.step(q, k, v) for q, k, v in prompt.unbind(1)]
            found.append(torch.stack(steps))
        return tuple(found)

    known = mistakes(
        "What a memory holds is said by its length: where must it stand after clear?",
        CLEAR_MISTAKES,
    )
    compare(answer, _finds, cases, known)
    tight = [_randn(3, 4, 2, seed=seed) for seed in range(3)]
    if not same(call(partial(answer, size=4), *tight), _finds(*tight)):
        raise Explained("In a memory as large as a prompt it is not right yet.")
    return "3 series of prompts, and 3 prompts in a memory with room for one."
