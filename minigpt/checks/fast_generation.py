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
    same,
)
from minigpt.checks.solutions import Solution
from minigpt.modern import ModernConfig


def _randn(*shape, seed=9):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# 09.1

BYTES = Solution("09.1")
BYTES_MISTAKES = {
    "You go from bits to bytes, or back: `size` is in bytes already.": Sign(
        lambda got, expected, *_: same(got / 8, expected) or same(got * 8, expected)
    ),
    "You count every pair of characters: those are scores, and no step keeps them.": (
        lambda L, h, d, T, B, s: T * BYTES(L, h, d, T, B, s)
    ),
    "These are larger units (thousands or millions); bytes were asked for.": Sign(
        lambda got, expected, *_: any(
            same(got * unit, expected) for unit in (1e3, 2**10, 1e6, 2**20, 1e9, 2**30)
        )
    ),
}


@exercise("09.1 The price of remembering")
def check_cache_bytes(cache_bytes):
    """cache_bytes(n_layer, n_kv_head, head_size, context, batch, size) -> a number."""
    model = ModernConfig(5, 8, n_layer=3, n_head=4, n_embd=24, n_kv_head=2).build()
    cache = KVCache(model)
    with cache:
        model(torch.zeros(2, 1, dtype=torch.long))
    cases = [(1, 1, 2, 3, 1, 1), (3, 2, 5, 7, 11, 4), (6, 6, 64, 256, 2, 2)]
    hint = "One character in one head of one layer: head_size numbers, twice."
    compare(cache_bytes, BYTES, cases, BYTES_MISTAKES, hint=hint)
    compare(cache_bytes, lambda *_: cache.bytes(), [(3, 2, 6, 8, 2, 4)], hint=hint)
    return f"3 sizes, and a real KVCache ({cache.bytes()} bytes)."


# 09.2

STEP, WEIGHTS = Solution("09.2"), "F.softmax(scores, dim=-1) @ values"
STEP_MISTAKES = {
    "The new character sees only itself: its query should meet all keys.": (
        STEP.but((WEIGHTS, "v"))
    ),
    "The new character sees only the first character: is_causal=True takes the one "
    "query for the first of the text. There is no future in the cache, so no mask is "
    "needed.": STEP.but((WEIGHTS, "values[:, :, :1]")),
    "The oldest character is forgotten: nothing asked for that yet.": (
        "[keys, k], dim=2) → [keys, k], dim=2)[:, :, 1:]",
        "[values, v], dim=2) → [values, v], dim=2)[:, :, 1:]",
    ),
}


@exercise("09.2 One step by hand")
def check_cached_step(cached_step):
    """cached_step(q, k, v, keys, values) -> out, keys, values."""
    cases = []
    for B, H, T, d in [(1, 1, 1, 2), (2, 3, 4, 5), (1, 2, 6, 3)]:
        cases.append((*_randn(3, B, H, 1, d), *_randn(2, B, H, T, d, seed=3)))
    hint = "cat along dim=2, scores / √d, softmax over the last dimension, @ values."
    known, parts = STEP_MISTAKES, ("out", "keys", "values")
    compare(cached_step, STEP, cases, known, parts=parts, hint=hint)
    q, k, v = _randn(3, 2, 2, 7, 3, seed=4)
    kept, out = (k[:, :, :0], v[:, :, :0]), []
    for now in range(7):
        step = (x[:, :, now, None] for x in (q, k, v))
        new, *kept = call(cached_step, *step, *kept)
        out.append(as_tensor(new))
    worst = (torch.cat(out, dim=2) - attention(q, k, v)[0]).abs().max()
    if not worst < 1e-5:
        raise Explained("Seven steps from an empty cache are not the causal attention.")
    return (
        "3 sizes; 7 steps from an empty cache equal the causal attention of one pass "
        f"(largest difference {worst:.0e})."
    )


# 09.3


def _settled(left_pad, prompts):
    """What left_pad returns, with what nobody reads, rows of padding, made equal.

    A row of padding must look at something; at what is free, and so is its token.
    """
    right_idx, right = PADDED(prompts)
    lengths, got = [*map(len, prompts)], left_pad(prompts)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return got
    idx, mask = map(as_tensor, got)
    if idx is None or mask is None or mask.shape != right.shape:
        return got
    T = right.shape[-1]
    real = torch.stack([torch.arange(T) >= T - length for length in lengths])
    if idx.shape == real.shape and same(idx[real], right_idx[real]):
        idx = torch.where(real, idx, 0.0)
    free = ~real & (mask == 1).any(dim=-1) & ((mask == 0) | (mask == 1)).all()
    return idx, torch.where(free[..., None], right.double(), mask)


def _right(prompts):
    T = max(map(len, prompts))
    return [prompt + [0] * (T - len(prompt)) for prompt in prompts]


def _masked(old, new):
    return partial(_settled, PADDED.but((old, new)))


PADDED, MASK = Solution("09.3"), "past & real[:, None] | own"
PAD_MISTAKES = {
    "You pad on the right: the next character is drawn in the last column, and would "
    "follow the padding.": Sign(lambda got, _, prompts: same(got[0], _right(prompts))),
    "The ids are padded on the left, but the mask belongs to padding on the right.": (
        _masked(">= pads[:, None]", "< T - pads[:, None]")
    ),
    "The real characters may look at padding.": (
        _masked(MASK, "past.expand(len(rows), T, T)")
    ),
    "Your mask is True where nobody may look: turn it round.": (
        _masked(MASK, f"~({MASK})")
    ),
    "You tell padding by its 0, but 0 may be a character, too: go by the lengths.": (
        _masked("torch.arange(T) >= pads[:, None]", "torch.tensor(rows) != 0")
    ),
    "This mask is a number to add to the scores; wanted is True or False.": (
        Sign(lambda got, expected, _: same(as_tensor(got[1]) == 0, expected[1])),
        "True where it may look: what you had before masked_fill.",
    ),
}


@exercise("09.3 Prompts side by side")
def check_left_pad(left_pad):
    """left_pad(prompts): a list of lists of ids -> idx (B, T), mask (B, T, T)."""
    prompts = [[0, 3], [4, 0, 0, 2, 1], [9, 8, 7]]
    cases = [([[5, 6, 7], [8]],), (prompts,), ([[1, 2], [3, 4]],)]
    hint = "Column j of row b is real if j >= T - len(prompts[b])."
    known, parts = PAD_MISTAKES, ("idx", "mask")
    compare(left_pad, PADDED, cases, known, work=_settled, parts=parts, hint=hint)
    idx, mask = map(as_tensor, call(left_pad, prompts))
    vector = _randn(10, 4).double()  # for each id
    x = vector[idx.long()]  # (B, T, 4)
    weights = (x @ x.mT).masked_fill(mask == 0, -torch.inf).softmax(dim=-1)
    alone = [(y[-1:] @ y.mT).softmax(dim=-1) @ y for y in (vector[p] for p in prompts)]
    worst = ((weights @ x)[:, -1] - torch.cat(alone)).abs().max()
    if not worst < 1e-5:
        raise Explained("A row of the batch is not what the prompt gives alone.")
    return (
        "3 batches; attention at the end of each row is what it is alone "
        f"(largest difference {worst:.0e})."
    )


# 09.4


def _kept(how):
    """A Sign that got is how(p, q), where it is a number: 0 / 0 is told afterwards."""

    def holds(got, expected, p, q):
        found, meant = as_tensor(got[0]), how(p, q).double()
        known = found.isfinite() & meant.isfinite()
        found, meant, right = found[known], meant[known], as_tensor(expected[0])[known]
        return same(found, meant) and not same(found, right)

    return Sign(holds)


def _refused(how):
    return Sign(lambda got, expected, p, q: same(got[1], how(p, q)))


def _lacking(p, q):
    return (p - q).clamp(min=0)


DRAFT_MISTAKES = {
    "There is a nan: 0 / 0, where q is 0 or where nothing is ever refused.": (
        Sign(lambda got, *_: any(as_tensor(part).isnan().any() for part in got)),
        "Both divisions can be cancelled on paper.",
    ),
    "p q is how often two draws agree; the model does not draw, it accepts.": (
        _kept(lambda p, q: p * q)
    ),
    "min(1, p / q) is given that it was drafted; how probable is that?": (
        _kept(lambda p, q: (p / q).clamp(max=1))
    ),
    "The fraction is the other way up: the rare ones are kept too often.": (
        _kept(lambda p, q: q * (q / p).clamp(max=1))
    ),
    "after_refusal is given a refusal; how probable is a refusal?": (
        _refused(lambda p, q: _lacking(p, q) / _lacking(p, q).sum()),
        "Multiply by 1 - kept.sum(), and see what cancels.",
    ),
    "After a refusal, p says again what the draft said often enough.": (
        _refused(lambda p, q: (1 - torch.minimum(p, q).sum()) * p)
    ),
    "After a refusal you let it be drawn from q again.": (
        _refused(lambda p, q: (1 - torch.minimum(p, q).sum()) * q)
    ),
    "|p - q| counts also what is drafted too often.": _refused(
        lambda p, q: (p - q).abs()
    ),
}


@exercise("09.4 Nothing is lost in the draft")
def check_one_draft(one_draft):
    """one_draft(p, q): (V,), (V,) -> kept (V,), after_refusal (V,)."""
    cases = [
        (torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.75, 0.25, 0.0])),
        tuple(F.softmax(1.5 * _randn(2, 6), dim=-1)),
        (torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.6, 0.0, 0.4])),
        (torch.tensor([0.1, 0.2, 0.7]), torch.tensor([0.1, 0.2, 0.7])),
        (torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])),
    ]
    hint = "q times min(1, p / q) is min(p, q); what p has beyond that comes second."
    parts = ("kept", "after_refusal")
    compare(one_draft, Solution("09.4"), cases, DRAFT_MISTAKES, parts=parts, hint=hint)
    shares = [float(as_tensor(call(one_draft, *case)[0]).sum()) for case in cases]
    return (
        "5 pairs; the two parts add up to p in each, with "
        + ", ".join(f"{share:.0%}" for share in shares)
        + " kept."
    )


# 09.5


def _as_bytes(to_int8, weight):
    """numbers, scale and the numbers' type; a row of zeros may have any scale."""
    got = to_int8(weight)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return got
    numbers, scale = got
    values = as_tensor(scale)
    if values is not None and values.shape in ((len(weight),), (len(weight), 1)):
        values = values.view(-1, 1)
        empty = (weight == 0).all(dim=1, keepdim=True)
        scale = values.masked_fill(empty & (values > 0), 1.0)
    return numbers, scale, str(getattr(numbers, "dtype", None))


INT8_MISTAKES = {
    "128 is no int8: it wraps round and becomes -128. The largest is 127.": (
        partial(_as_bytes, Solution("09.5", "to_int8").but(("127", "128")))
    ),
    "These are not whole numbers yet: round, then .to(torch.int8).": (
        Sign(lambda got, *_: not same(got[0], as_tensor(got[0]).round()))
    ),
    "The right whole numbers, but not bytes: as they are, they take as much memory as "
    "before.": (
        Sign(
            lambda got, expected, _: got[2] != expected[2] and same(got[0], expected[0])
        ),
        ".to(torch.int8) at the end.",
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
    right, parts = Solution("09.5", "to_int8"), ("numbers", "scale", "type")
    hint = "scale = largest of the row / 127; weight / scale."
    compare(
        to_int8, right, cases, INT8_MISTAKES, work=_as_bytes, parts=parts, hint=hint
    )
    packed = [right(*case) for case in cases]
    hint = "The way back: numbers * scale, as floats."
    compare(from_int8, Solution("09.5"), packed, hint=hint)
    weight = _randn(64, 64)
    numbers, scale = call(to_int8, weight)
    scale = as_tensor(scale).view(-1, 1)
    error = (as_tensor(numbers) * scale - weight).abs() / scale
    return (
        "3 matrices, with a row of zeros. Of 4096 weights, the largest error is "
        f"{error.max():.2f} of a scale."
    )


# 09.6

PLACES, PLACE = Solution("09.6"), "len(read) - 1"
PLACE_MISTAKES = {
    "The bug is still there: after the prompt a place is left out, and every step "
    "stands one too far.": PLACES.but((PLACE, "len(read)")),
    "Now the prompt is late as well: the text begins at place 1.": PLACES.but(
        (PLACE, "len(read)"), ("places[:prompt]", "places[1 : prompt + 1]")
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
    hint = "The place of a character is the number of characters before it."
    compare(keys_of, PLACES, cases, PLACE_MISTAKES, hint=hint)
    return "prompts of 1, 2, 4 and 8 characters; the keys are those of one pass."


# 09.7

READ_ON = Solution("09.7")


def _seen(who):
    """read_on with a mask of ones of which another part is left."""
    return READ_ON.but((".tril(n)", who))


MASK_MISTAKES = {
    "The bug is still there: the first new character sees only the first one kept, "
    "as if it were the first of the text.": _seen(".tril()"),
    "The mask is the wrong way round: True means to look.": _seen(".triu(n + 1)"),
    "The new characters do not see each other, nor themselves: only what was kept.": (
        _seen(".where(torch.arange(n + T) < n, 0)")
    ),
    "What was kept is not looked at: the new ones are among themselves.": (
        _seen(".tril(n).where(torch.arange(n + T) >= n, 0)")
    ),
}


@exercise("09.7 Several at once")
def check_read_on(read_on):
    """read_on(q, k, v, keys, values): (T, d) new, (n, d) kept -> (T, d)."""
    own, (q, k) = torch.eye(4), _randn(2, 4, 2)  # such that the output is the weights
    cases = [(q[2:], k[2:], own[2:], k[:2], own[:2])]
    for T, n, d in [(3, 2, 4), (1, 5, 3), (4, 3, 3), (4, 0, 3)]:
        cases.append((*_randn(3, T, d), *_randn(2, n, d, seed=3)))
    hint = "New character t has n + t before it: the triangle moves n to the right."
    compare(read_on, READ_ON, cases, MASK_MISTAKES, hint=hint)
    return "5 sizes: one new character included, and an empty cache."


# 09.8


def _in_turns(Memory, order, keys):
    """What the last read returns, of texts that are read in this order."""
    memories = {}
    for text, key in zip(order, keys):
        if text not in memories:
            memories[text] = Memory()
        found = memories[text].read(key)
    return found


OWN = Solution("09.8")
MEMORY_MISTAKES = {
    "A new text wipes the memory of the others: they still share one list.": (
        partial(_in_turns, OWN.but(("self.kept = []", "Memory.kept = []"))),
        "self.kept = [] in __init__: a list for each object.",
    ),
    "Only the newest key is there: the list is made anew at each read.": (
        partial(_in_turns, OWN.but(("self.kept.append(key)", "self.kept = [key]")))
    ),
    "The bug is still there: a memory holds keys that it was never given.": (
        Sign(lambda got, expected, *_: not torch.isin(got, expected).all())
    ),
}


@exercise("09.8 Two texts, one memory")
def check_own_memory(Memory):
    """Memory(): a class; its read(key) returns (n, d), all keys of this text."""
    orders = [[0], [0, 1], [0, 0], [0, 0, 1, 0], [0, 1, 1, 0, 1, 1, 0, 0]]
    cases = [(o, _randn(len(o), 2, seed=i)) for i, o in enumerate(orders)]
    hint = "When is the list made: once with the class, or with each object?"
    compare(Memory, OWN, cases, MEMORY_MISTAKES, work=_in_turns, hint=hint)
    return "2 texts read in turns, in 5 orders: each remembers its own keys only."


# 09.9


def _found(Memory, size, *prompts):
    """What each step of the last prompt finds; the memory is cleared before each."""
    memory = Memory(size, prompts[0].shape[-1])
    for prompt in prompts:
        memory.clear()
        steps = [memory.step(q, k, v) for q, k, v in prompt.unbind(1)]
    return torch.stack(steps)


CLEARED, CLEAR = Solution("09.9"), "def clear(self):\n        "
EMPTIED = CLEARED.but(
    (f"{CLEAR}self.length = 0", f"{CLEAR}self.keys.zero_(), self.values.zero_()")
)
CLEAR_MISTAKES = {
    "The bug is still there: the numbers are gone, but their places still count, and "
    "a key of zeros takes its share.": partial(_found, EMPTIED),
    "Infinite keys make nan: the length is what says who is there.": (
        Sign(lambda got, *_: as_tensor(got).isnan().any())
    ),
}


@exercise("09.9 The memory of the last prompt")
def check_cleared_memory(Memory):
    """Memory(size, d): a class with step(q, k, v) -> (d,) and clear()."""
    one = torch.tensor([[0.0], [0.0], [1.0]])[:, None]  # q, k and v of a character
    prompts = [_randn(3, n, 2, seed=n) for n in (3, 2, 4)]
    cases = [(12, 2 * one, 4 * one), (12, *prompts[:2]), (12, *prompts)]
    cases.append((4, *(_randn(3, 4, 3, seed=seed) for seed in range(3))))
    hint = "What a memory holds is said by its length: where must it stand after clear?"
    compare(Memory, CLEARED, cases, CLEAR_MISTAKES, work=_found, hint=hint)
    return "series of 2 and 3 prompts, and 3 in a memory with room for one."
