"""Checks for notebook 09: a cache by hand, prompts side by side, drafts, int8."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.course.checks.core import Explained, call, compare, exercise
from minigpt.course.checks.findings import Kind, found
from minigpt.course.checks.old_errors import Problem
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import as_tensor, randn, same, tensor_of

CACHED_STEP = Solution(
    """
def cached_step(q, k, v, keys, values):
    keys = torch.cat([keys, k], dim=2)  # (B, H, T + 1, d)
    values = torch.cat([values, v], dim=2)
    scores = q @ keys.mT / q.shape[-1] ** 0.5  # (B, H, 1, T + 1)
    return F.softmax(scores, dim=-1) @ values, keys, values
""",
    Mistake(
        "The new key and value stand in front of the old ones; the cache has them in "
        "the order of the text.",
        [
            ("torch.cat([keys, k], dim=2)", "torch.cat([k, keys], dim=2)"),
            ("torch.cat([values, v], dim=2)", "torch.cat([v, values], dim=2)"),
        ],
    ),
    Mistake(
        "You return the new key and value alone; what comes back is the cache, old "
        "and new.",
        [("@ values, keys, values", "@ values, k, v")],
    ),
    Mistake(
        "The new character sees only the first one. Is there a causal mask (also "
        "is_causal=True)? It takes a single query for the first of the text.",
        [("F.softmax(scores, dim=-1) @ values", "values[:, :, :1]")],
    ),
    Mistake(
        "The new key and value are left out: the new character should see itself, too.",
        [
            (
                "F.softmax(scores, dim=-1) @ values",
                "F.softmax(scores[..., :-1], dim=-1) @ values[:, :, :-1]",
            )
        ],
    ),
    Mistake(
        "The new character does not see itself: append its key and value before "
        "anything is compared. And they belong behind the old ones, not in front.",
        [
            ("torch.cat([keys, k], dim=2)", "torch.cat([k, keys], dim=2)"),
            ("torch.cat([values, v], dim=2)", "torch.cat([v, values], dim=2)"),
            (
                "F.softmax(scores, dim=-1) @ values",
                "F.softmax(scores[..., 1:], dim=-1) @ values[:, :, 1:]",
            ),
        ],
    ),
    Mistake(
        "The new key and value are nowhere: the new character does not see itself, "
        "and the caches come back as they were.",
        [
            ("torch.cat([keys, k], dim=2)", "keys"),
            ("torch.cat([values, v], dim=2)", "values"),
        ],
    ),
    Mistake(
        "The caches come back as they were: the next step would not "
        "know of this character.",
        [
            ("@ values, keys, values", "@ values, keys[:, :, :-1], values[:, :, :-1]"),
        ],
    ),
    Mistake(
        "Key and value have changed places on their way into the caches.",
        [
            ("[keys, k]", "[keys, v]"),
            ("[values, v]", "[values, k]"),
        ],
    ),
    Mistake(
        "The new character's own value is left out of the sum, though "
        "its weight was counted: append to the values, too, before "
        "they are used.",
        [
            (
                "F.softmax(scores, dim=-1) @ values",
                "F.softmax(scores, dim=-1)[..., :-1] @ values[:, :, :-1]",
            ),
        ],
    ),
    Mistake(
        "The scores are used as they are, without a softmax: weights "
        "are positive and sum to one.",
        [
            ("F.softmax(scores, dim=-1)", "scores"),
        ],
    ),
    Mistake(
        "All characters count the same: the mean of the values asks "
        "neither query nor keys.",
        [
            ("F.softmax(scores, dim=-1) @ values", "values.mean(dim=2, keepdim=True)"),
        ],
    ),
    Mistake(
        "Only the character with the highest score is heard; attention "
        "takes the mean of all values, weighted by the softmax.",
        [
            (
                "F.softmax(scores, dim=-1)",
                ("F.one_hot(scores.argmax(dim=-1), scores.shape[-1]).to(scores)"),
            ),
        ],
    ),
    Mistake(
        "The new key asks in place of the query.",
        [
            ("q @ keys.mT", "k @ keys.mT"),
        ],
    ),
    Mistake(
        "The weights meet the keys a second time; what they average are the values.",
        [
            ("@ values, keys", "@ keys, keys"),
        ],
    ),
    Mistake(
        "The scores are divided by the root of the number of characters; "
        "it should be the root of d, the length of a query.",
        [
            ("q.shape[-1] ** 0.5", "keys.shape[2] ** 0.5"),
        ],
    ),
)


@exercise("09.1 One step by hand", CACHED_STEP)
def check_cached_step(cached_step: Any) -> str:
    """cached_step(q, k, v, keys, values) -> out, keys, values."""
    cases = [
        (*randn(3, B, H, 1, d), *randn(2, B, H, T, d, seed=3))
        for B, H, T, d in [(1, 1, 1, 2), (2, 3, 4, 5), (1, 2, 6, 3), (2, 1, 0, 3)]
    ]
    hint = "cat along dim=2, scores / √d, softmax over the last dimension, @ values."
    parts = ("out", "keys", "values")
    how: dict[str, Any] = {"value_names": parts, "hint": hint}
    compare(cached_step, CACHED_STEP, cases[:3], complete=False, **how)
    compare(cached_step, CACHED_STEP, cases[3:], **how)  # the empty cache, for itself
    return "4 sizes, one of them with an empty cache."


def _settled(left_pad: Callable, prompts: list[list[int]]) -> Any:
    """What left_pad returns, with what nobody reads, rows of padding, made equal.

    A row of padding must look at something; at what is free, and so is its token.
    """
    right_idx, right = LEFT_PAD(prompts)
    lengths, got = [*map(len, prompts)], left_pad(prompts)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return got
    idx, mask = map(as_tensor, got)
    if idx is None or mask is None or mask.shape != right.shape:
        return got
    if isinstance(got[0], torch.Tensor) and got[0].is_floating_point():
        if same(idx, right_idx):
            kinds = {"got": got[0].dtype, "expected": right_idx.dtype}
            raise Problem(found(Kind.DTYPE, **kinds))
    T = right.shape[-1]
    real = torch.stack([torch.arange(T) >= T - length for length in lengths])
    if idx.shape == real.shape and same(idx[real], right_idx[real]):
        idx = torch.where(real, idx, 0.0)
    free = ~real & (mask == 1).any(dim=-1) & ((mask == 0) | (mask == 1)).all()
    return idx, torch.where(free[..., None], right.double(), mask)


def _right(prompts: list[list[int]]) -> list[list[int]]:
    T = max(map(len, prompts))
    return [prompt + [0] * (T - len(prompt)) for prompt in prompts]


LEFT_PAD = Solution(
    """
def left_pad(prompts):
    T = max(len(prompt) for prompt in prompts)
    rows = [[0] * (T - len(prompt)) + prompt for prompt in prompts]
    pads = torch.tensor([T - len(prompt) for prompt in prompts])
    real = torch.arange(T) >= pads[:, None]  # (B, T), of the keys
    past = torch.ones(T, T).tril().bool()
    own = torch.eye(T).bool()
    return torch.tensor(rows), past & real[:, None] | own
""",
    Mistake(
        "The future is not hidden: in your mask a character sees those behind it.",
        [("torch.ones(T, T).tril().bool()", "torch.ones(T, T).bool()")],
    ),
    Mistake(
        "Your mask is True where nobody may look: turn it round.",
        [("past & real[:, None] | own", "~(past & real[:, None] | own)")],
    ),
    Mistake(
        "A character with the id 0 is hidden as if it were padding: go by the lengths.",
        [("torch.arange(T) >= pads[:, None]", "torch.tensor(rows) != 0")],
    ),
    Mistake(
        "Real characters look at the padding, too: its columns j in mask[b, i, j] are "
        "to be hidden from all. Do you hide its rows i, or count it to the lengths?",
        [("past & real[:, None] | own", "past.expand(len(prompts), T, T)")],
    ),
    Mistake(
        "Rows of padding may see nothing here, and a softmax over nothing is "
        "nan: let each see itself.",
        [(" | own", "")],
    ),
    Mistake(
        "A batch is cut to its shortest prompt; the shorter ones are to be filled up.",
        [
            ("max(len", "min(len"),
            ("[0] * (T - len(prompt)) + prompt for", "prompt[-T:] for"),
        ],
    ),
    Mistake(
        "The mask says that a place may be looked at if it is past "
        "*or* real; it must be both.",
        [
            ("past & real[:, None] | own", "past | real[:, None]"),
        ],
    ),
    Mistake(
        "The real columns are taken for the first ones, but the "
        "padding stands on the left.",
        [
            ("torch.arange(T) >= pads[:, None]", "torch.arange(T) < T - pads[:, None]"),
        ],
    ),
    Mistake(
        "Your columns are counted from the prompt's length; a prompt "
        "that is padded on the left begins at T - len(prompt).",
        [
            (
                "pads = torch.tensor([T - len(prompt) for prompt in prompts])",
                "pads = torch.tensor([len(prompt) for prompt in prompts])",
            ),
        ],
    ),
    Mistake(
        "One prompt's padding is taken for that of all: each row has its own.",
        [
            (
                "real = torch.arange(T) >= pads[:, None]",
                ("real = torch.arange(T) >= pads[-1:, None].expand(len(pads), 1)"),
            ),
        ],
    ),
    Mistake(
        "The prompts are turned round: padding moves them, and leaves their order.",
        [
            ("+ prompt for", "+ prompt[::-1] for"),
        ],
    ),
    Mistake(
        "The future is not hidden, and a row of padding may see "
        "nothing: a softmax over nothing is nan.",
        [
            ("past & real[:, None] | own", "real[:, None] & real[:, :, None]"),
        ],
    ),
    Mistake(
        "The real columns are taken for the first ones, but the "
        "padding stands on the left.",
        [
            (
                "past & real[:, None] | own",
                (
                    "past & (first := torch.arange(T) < T - pads[:, None])[:, "
                    "None] & first[:, :, None] | own"
                ),
            ),
        ],
    ),
)


@exercise("09.2 Prompts side by side", LEFT_PAD)
def check_left_pad(left_pad: Any) -> str:
    """left_pad(prompts): a list of lists of ids -> idx (B, T), mask (B, T, T)."""
    prompts = [[5, 6, 7], [8]], [[0, 3], [4, 0, 0, 2, 1], [9, 8, 7]], [[1, 2], [3, 4]]
    cases = [(some,) for some in prompts]
    known = [
        Mistake(
            "You pad on the right: the next character is drawn in the last column, and "
            "would follow the padding.",
            sign=lambda got, _, prompts: same(got[0], _right(prompts)),
        ),
        Mistake(
            "A character may look at itself, too; in your mask it sees only others.",
            sign=lambda got, right, _: (
                not got[1][:, -1, -1].any()
                and same(got[1].bool() | torch.eye(got[1].shape[-1]).bool(), right[1])
            ),
        ),
    ]
    hint = "Column j of row b is real if j >= T - len(prompts[b])."
    how: dict[str, Any] = {
        "work": _settled,
        "value_names": ("idx", "mask"),
        "hint": hint,
    }
    compare(left_pad, LEFT_PAD, cases, known, **how)
    mask = call(left_pad, prompts[0])[1]
    if isinstance(mask, torch.Tensor) and mask.dtype != torch.bool:
        raise Explained(
            f"The mask is right, but its dtype is {mask.dtype}, where True and False "
            "are asked: a mask of numbers is added to the scores, and hides nothing.",
            "mask.bool(), or dtype=torch.bool where it is made.",
            share=0.9,
        )
    return "3 batches; ids and padding in their places, 0 as an id included."


ONE_DRAFT = Solution(
    """
def one_draft(p, q):
    kept = torch.minimum(p, q)
    after_refusal = (p - q).clamp(min=0)
    return kept, after_refusal
""",
    Mistake(
        "p * q says how often two draws agree that know nothing of each other; what "
        "was drafted is kept with min(1, p / q).",
        [("torch.minimum(p, q)", "p * q")],
    ),
    Mistake(
        "min(1, p / q) is right, but a token is drafted with its probability in q, "
        "not in p.",
        [("torch.minimum(p, q)", "p * (p / q).clamp(max=1).nan_to_num(1)")],
    ),
    Mistake(
        "min(1, p / q) is right, but a token is drafted with its probability in q, "
        "not in p.",
        [
            ("torch.minimum(p, q)", "p * (p / q).clamp(max=1).nan_to_num(1)"),
            ("(p - q).clamp(min=0)", "p - kept"),
        ],
    ),
    Mistake(
        "Where q is larger than p, nothing is left over: a difference below 0 counts "
        "as 0, not as its size.",
        [("(p - q).clamp(min=0)", "(p - q).abs()")],
    ),
    Mistake(
        "min(1, p / q) is given that it was drafted; how probable is that?",
        [("torch.minimum(p, q)", "(p / q).clamp(max=1).nan_to_num()")],
    ),
    Mistake(
        "You keep the larger of p and q: min(1, p / q) is .clamp(max=1).",
        [("torch.minimum(p, q)", "torch.maximum(p, q)")],
    ),
    Mistake(
        "You keep the larger of p and q: min(1, p / q) is .clamp(max=1).",
        [("torch.minimum(p, q)", "torch.maximum(p, q) * (q > 0)")],
    ),
    Mistake(
        "after_refusal is given a refusal; how probable is a refusal?",
        [
            (
                "(p - q).clamp(min=0)",
                "(d := (p - q).clamp(min=0)) / d.sum().clamp(min=1e-12)",
            )
        ],
        hint="Multiply by 1 - kept.sum(), and see what cancels.",
    ),
    Mistake(
        "After a refusal nothing ever comes: what is refused at one character "
        "is for the others that the draft gave too little.",
        [("(p - q).clamp(min=0)", "torch.zeros_like(p)")],
        hint="How often is anything refused? That is one number, 1 - kept.sum().",
    ),
    Mistake(
        "What is refused is not given out again as p says, but as p - q does, "
        "where it is positive.",
        [("return kept, after_refusal", "return kept, (1 - kept.sum()) * p")],
    ),
    Mistake(
        "kept.sum() is how often a draft is kept; a refusal has 1 - kept.sum().",
        [
            (
                "return kept, after_refusal",
                "rest = after_refusal.sum().clamp(min=1e-12)\n"
                "    return kept, kept.sum() * after_refusal / rest",
            )
        ],
    ),
    Mistake(
        "All characters come out alike after a refusal; it should be "
        "those that the draft gave too little, as p - q says.",
        [
            (
                "return kept, after_refusal",
                "return kept, torch.full_like(p, 1 - kept.sum()) / len(p)",
            ),
        ],
    ),
    Mistake(
        "After a refusal comes what the draft gave too little, p - q "
        "where that is positive; yours is what it gave too much.",
        [
            ("(p - q).clamp", "(q - p).clamp"),
        ],
    ),
    Mistake(
        "A softmax makes other shares, also where p - q is not "
        "positive; divide by the sum.",
        [
            (
                "return kept, after_refusal",
                "return kept, (1 - kept.sum()) * after_refusal.softmax(0)",
            ),
        ],
    ),
    Mistake(
        "kept is divided by its sum: that is given that the draft was "
        "kept. Asked is drafted *and* kept.",
        [
            ("return kept, after_refusal", "return kept / kept.sum(), after_refusal"),
        ],
    ),
    Mistake(
        "max(p - q, 0) is weighed with the probability of a refusal, "
        "but not divided by its own sum: do both, or neither.",
        [
            (
                "return kept, after_refusal",
                "return kept, (1 - kept.sum()) * after_refusal",
            ),
        ],
    ),
    Mistake(
        "The sum of |p - q| is twice that of max(p - q, 0).",
        [
            (
                "return kept, after_refusal",
                ("return kept, after_refusal / (p - q).abs().sum().clamp(min=1e-12)"),
            ),
        ],
    ),
    Mistake(
        "What the draft gave too much is taken away from q, so kept is "
        "too small: drafted and kept is the smaller of p and q.",
        [
            ("torch.minimum(p, q)", "q - (p - q).clamp(min=0)"),
            (("(p - q).clamp(min=0)\n    return"), ("p - kept\n    return")),
        ],
    ),
    Mistake(
        "How probable a refusal is, is one number, 1 - kept.sum(); 1 - "
        "kept has another one for each character.",
        [
            (
                "return kept, after_refusal",
                (
                    "return kept, (1 - kept) * after_refusal / "
                    "after_refusal.sum().clamp(min=1e-12)"
                ),
            ),
        ],
    ),
)


@exercise("09.3 Nothing is lost in the draft", ONE_DRAFT)
def check_one_draft(one_draft: Any) -> str:
    """one_draft(p, q): (V,), (V,) -> kept (V,), after_refusal (V,)."""
    cases = [
        (torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25])),
        tuple(F.softmax(1.5 * randn(2, 6), dim=-1)),
        (torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.6, 0.0, 0.4])),
        (torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])),
        (torch.tensor([0.1, 0.2, 0.7]), torch.tensor([0.1, 0.2, 0.7])),
    ]
    known = [
        Mistake(
            "There is a nan. Where q is 0, or where nothing is ever refused, a "
            "division by it is 0 / 0.",
            sign=lambda got, *_: any(tensor_of(part).isnan().any() for part in got),
            hint="Both divisions can be cancelled on paper.",
        ),
    ]
    hint = "q times min(1, p / q) is min(p, q); what p has beyond that comes second."
    how: dict[str, Any] = {"value_names": ("kept", "after_refusal"), "hint": hint}
    compare(one_draft, ONE_DRAFT, cases[:4], known, complete=False, **how)
    compare(one_draft, ONE_DRAFT, cases[4:], known, **how)  # nothing is refused
    shares = [tensor_of(call(one_draft, *case)[0]).sum() for case in cases]
    kept = ", ".join(f"{share:.0%}" for share in shares)
    return f"5 pairs; the two parts add up to p in each, with {kept} kept."


def _as_bytes(to_int8: Callable, weight: torch.Tensor) -> Any:
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


TO_INT8 = Solution(
    """
def to_int8(weight):
    largest = weight.abs().amax(dim=1, keepdim=True)  # (m, 1)
    scale = largest.clamp(min=1e-12) / 127
    return (weight / scale).round().to(torch.int8), scale


def from_int8(numbers, scale):
    return numbers * scale
""",
)


@exercise("09.4 A matrix in bytes", TO_INT8)
def check_int8(to_int8: Any, from_int8: Any) -> str:
    """to_int8(weight) -> numbers, scale; from_int8(numbers, scale) -> weight."""
    cases = [
        (torch.tensor([[1.0, -4.0], [0.5, 0.1]]),),
        (randn(4, 6) * torch.tensor([[1.0], [10.0], [0.01], [3.0]]),),
        (torch.tensor([[0.0, 0.0, 0.0], [300.0, -20.0, 1.0]]),),
    ]
    right, parts = TO_INT8.named("to_int8"), ("numbers", "scale", "type")
    hint = "scale = a row's largest distance from 0 / 127; round; .to(torch.int8)."
    how: dict[str, Any] = {"value_names": parts, "hint": hint, "complete": False}
    known = [
        Mistake(
            "A row of zeros has the scale 0: it should be above 0, for 0 / 0 is nan.",
            sign=lambda got, _, weight: (
                (weight == 0).all(dim=1).any()
                and not tensor_of(got[1])[(weight == 0).all(dim=1)].any()
            ),
            hint="What is the least number that a row's largest may be taken for?",
        )
    ]
    compare(to_int8, right, cases, known, work=_as_bytes, **how)
    packed = [right(*case) for case in cases]
    hint = "The way back: numbers * scale, as floats."
    compare(from_int8, TO_INT8.named("from_int8"), packed, hint=hint)
    return "3 matrices, with a row of zeros, and the way back."


def _found(Memory: Callable, size: int, *prompts: torch.Tensor) -> torch.Tensor | None:
    """What each step of the last prompt finds; the memory is cleared before each."""
    d = prompts[0].shape[-1]
    memory = Memory(size, d)
    for prompt in prompts:
        memory.clear()
        try:
            steps = [memory.step(q, k, v) for q, k, v in prompt.unbind(1)]
        except (RuntimeError, ValueError):
            Memory(size, d).step(*prompts[0][:, 0])  # raises, if a new one does, too
            raise Explained(
                f"A step after clear() raises an error, where in a new Memory({size}, "
                f"{d}) it raises none: what the memory was made with must stay.",
                "Its room and d are as before; what is forgotten is what was kept.",
            ) from None
    return None if any(step is None for step in steps) else torch.stack(steps)


def _two_at_once(
    Memory: Callable, one: torch.Tensor, other: torch.Tensor
) -> torch.Tensor:
    """What the last step finds in each of two memories that take turns."""
    memories = [Memory(9, prompt.shape[-1]) for prompt in (one, other)]
    found = []
    for memory in memories:  # what the class keeps may be of earlier cases
        memory.clear()
    for steps in zip(one.unbind(1), other.unbind(1)):
        found = [m.step(*step) for m, step in zip(memories, steps)]
    memories[0].clear()
    return torch.stack([*found, memories[1].step(*other[:, 0])])


MEMORY = Solution(
    """
class Memory:
    def __init__(self, size, d):
        self.keys, self.values = torch.zeros(2, size, d)
        self.length = 0

    def step(self, q, k, v):
        self.keys[self.length], self.values[self.length] = k, v
        self.length += 1
        n = self.length
        weights = F.softmax(self.keys[:n] @ q / len(q) ** 0.5, dim=0)
        return weights @ self.values[:n]

    def clear(self):
        self.length = 0
""",
    Mistake(
        "The bug is still there: the numbers are gone, but their places still "
        "count, and a key of zeros takes its share.",
        [
            (
                "def clear(self):\n        self.length = 0",
                "def clear(self):\n        self.keys.zero_(); self.values.zero_()",
            )
        ],
        untouched=True,
    ),
    Mistake(
        "You tell an empty place by its zeros; a real key may be zero, and the "
        "room runs out.",
        [
            (
                "self.keys[:n] @ q / len(q) ** 0.5",
                "(self.keys @ q / len(q) ** 0.5).masked_fill((self.keys == 0).all(-1), "
                "-1e9)",
            ),
            ("weights @ self.values[:n]", "weights @ self.values"),
            (
                "    def clear(self):\n        self.length = 0",
                "    def clear(self):\n        self.keys.zero_(); self.values.zero_()",
            ),
        ],
    ),
    Mistake(
        "`step` looks at the whole room: empty places, with keys of zeros, take"
        " their share.",
        [
            ("self.keys[:n]", "self.keys"),
            ("self.values[:n]", "self.values"),
            (
                "def clear(self):\n        self.length = 0",
                "def clear(self):\n"
                "        self.length = 0; self.keys.zero_(); self.values.zero_()",
            ),
        ],
    ),
    Mistake(
        "You tell an empty place by its zeros; a real key may be zero, "
        "and the room runs out.",
        [
            (
                "self.keys[:n] @ q / len(q) ** 0.5",
                (
                    "(self.keys[:n] @ q / len(q) ** 0.5).masked_fill((self.keys[:n] "
                    "== 0).all(-1), -1e9)"
                ),
            ),
            (
                ("    def clear(self):\n        self.length = 0"),
                (
                    "    def clear(self):\n"
                    "        self.keys.zero_(); self.values.zero_()"
                ),
            ),
        ],
    ),
    Mistake(
        "A key of zeros is taken for an empty place; a real key may be "
        "zero. Only the length says which places are empty.",
        [
            (
                "self.keys[:n] @ q / len(q) ** 0.5",
                (
                    "(self.keys[:n] @ q / len(q) ** 0.5).masked_fill((self.keys[:n] "
                    "== 0).all(-1), -1e9)"
                ),
            ),
        ],
    ),
    Mistake(
        "A character does not see itself: its own key and value are not "
        "among those that are read. Is `n` taken before `self.length` "
        "grows?",
        [
            ("n = self.length", "n = self.length - 1"),
        ],
        hint="Keep k and v first, count them, and then read.",
    ),
    Mistake(
        "The scores are divided by the root of the number of characters; "
        "it should be the root of d, the length of a query.",
        [
            ("len(q) ** 0.5", "n**0.5"),
        ],
        hint="len(q) is d.",
    ),
)


@exercise("09.5 The memory of the last prompt", MEMORY)
def check_cleared_memory(Memory: Any) -> str:
    """Memory(size, d): a class with step(q, k, v) -> (d,) and clear()."""
    one = torch.tensor([[0.0], [0.0], [1.0]])[:, None]  # q, k and v of a character
    prompts = [randn(3, n, 2, seed=n) for n in (3, 2, 4)]
    silent = randn(3, 3, 2, seed=5)
    silent[1, 1] = 0  # a key of zeros among others
    cases = [(12, 2 * one, 4 * one), (12, *prompts[:2]), (12, *prompts)]
    cases.append((12, prompts[0], silent))
    cases.append((4, *(randn(3, 4, 3, seed=seed) for seed in range(3))))
    solution = MEMORY
    known = [
        Mistake(
            "It goes wrong where a key is zero. Is a place told to be empty by the "
            "numbers in it? Only the length says who is there.",
            sign=lambda got, _, size, *prompts: (
                tensor_of(got).isnan().any() or (prompts[-1][1] == 0).all(dim=-1).any()
            ),
            vague=True,
        ),
    ]
    hint = "What a memory holds is said by its length: where must it stand after clear?"
    compare(Memory, solution, cases, known, work=_found, hint=hint)
    pair = prompts[0][:, :2], prompts[1]
    if not same(call(_two_at_once, Memory, *pair), _two_at_once(MEMORY, *pair)):
        raise Explained(
            "Two memories at once know of each other: what one keeps is found by the "
            "other. Does the class keep it, and not each memory?",
            "What belongs to one memory is made in __init__: self.keys = ...",
            share=0.9,
        )
    return "series of 2 and 3 prompts, 3 in a memory with room for one, two memories."
