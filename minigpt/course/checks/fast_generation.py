"""The exercises of lesson 09: a cache by hand, padded prompts, drafts and int8."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.course.checks.exercise import Wrong, exercise


def _heads(*rows: list) -> torch.Tensor:
    return torch.tensor(rows).float()[None, None]  # (1, 1, T, d)


STEP = (
    *(_heads([1, 2]), _heads([0, 1]), _heads([5, 6])),
    *(_heads([2, 0], [1, 1]), _heads([1, 2], [3, 0])),
)


@exercise(
    "09.1 One step by hand",
    cases=[STEP, (*STEP[:3], torch.zeros(1, 1, 0, 2), torch.zeros(1, 1, 0, 2))],
    fresh=lambda: [
        (*torch.randn(3, B, H, 1, d), *torch.randn(2, B, H, T, d))
        for B, H, T, d in [(2, 3, 4, 5), (1, 2, 6, 3), (2, 1, 0, 3)]
    ],
    values=("out", "keys", "values"),
    hint="Work the first case out on paper: which three keys does the query meet?",
)
def cached_step(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """A function of q, k, v, keys and values that returns out, keys and values."""
    keys = torch.cat([keys, k], dim=2)  # (B, H, T + 1, d)
    values = torch.cat([values, v], dim=2)
    scores = q @ keys.mT / q.shape[-1] ** 0.5  # (B, H, 1, T + 1)
    return F.softmax(scores, dim=-1) @ values, keys, values


cached_step.mistakes("""
The new character sees only the first one. Is there a causal mask (or is_causal=True)?
It treats a single query as the first character of the text.
    F.softmax(scores, dim=-1) @ values -> values[:, :, :1]
The new character doesn't see itself. It should.
    F.softmax(scores, dim=-1) @ values
        -> F.softmax(scores[..., :-1], dim=-1) @ values[:, :, :-1]
""")
check_cached_step = cached_step.check


def _read(left_pad: Callable, prompts: list[list[int]]) -> tuple:
    """The ids and the rows of the mask that somebody reads: not those of padding."""
    idx, mask = left_pad(prompts)
    if idx.is_floating_point() or mask.dtype != torch.bool:
        raise Wrong(
            f"Yours are {idx.dtype} and {mask.dtype}. Ids should be integers, and the "
            "mask torch.bool: numbers are added to the scores and hide nothing."
        )
    each = list(zip(idx, mask, map(len, prompts), strict=True))
    ids = torch.cat([row[-n:] for row, _, n in each])
    return ids, torch.cat([rows[-n:] for _, rows, n in each]), mask.any(dim=-1).all()


@exercise(
    "09.2 Prompts side by side",
    cases=[([[5, 6], [8]],), ([[5, 0, 7], [8], [0, 9]],), ([[1, 2], [3, 4]],)],
    fresh=lambda: [
        ([torch.randint(4, (n,)).tolist() for n in lengths],)
        for lengths in ([2, 5, 3], [4, 1])
    ],
    work=_read,
    values=("ids", "rows of the mask", "no row is empty"),
    hint="Draw the mask of the shorter prompt on paper, row by row.",
)
def left_pad(prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """A function of a list of lists of ids that returns idx (B, T), mask (B, T, T)."""
    T = max(len(prompt) for prompt in prompts)
    rows = [[0] * (T - len(prompt)) + prompt for prompt in prompts]
    pads = torch.tensor([T - len(prompt) for prompt in prompts])
    real = torch.arange(T) >= pads[:, None]  # (B, T), of the keys
    past = torch.ones(T, T).tril().bool()
    own = torch.eye(T).bool()
    return torch.tensor(rows), past & real[:, None] | own


left_pad.mistakes("""
You hide a character whose id happens to be 0, as if it were padding. Go by the lengths.
    torch.arange(T) >= pads[:, None] -> torch.tensor(rows) != 0
Real characters look at the padding. In mask[b, i, j] the padded columns j should be
hidden from all of them.
    past & real[:, None] | own -> past.expand(len(prompts), T, T)
A row of padding may look at nothing here, and softmax turns that into nan. Let it look
at something.
    | own ->
You pad on the right. The next character is drawn in the last column, so it would follow
the padding.
    [0] * (T - len(prompt)) + prompt -> prompt + [0] * (T - len(prompt))
""")
check_left_pad = left_pad.check


@exercise(
    "09.3 Nothing is lost in the draft",
    cases=[
        (torch.tensor([0.5, 0.125, 0.375]), torch.tensor([0.25, 0.5, 0.25])),
        (torch.tensor([0.25, 0.25, 0.5]), torch.tensor([0.75, 0.0, 0.25])),
        (torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])),
        (torch.tensor([0.125, 0.25, 0.625]), torch.tensor([0.125, 0.25, 0.625])),
    ],
    fresh=lambda: [tuple((1.5 * torch.randn(2, V)).softmax(-1)) for V in (6, 4)],
    values=("kept", "after_refusal"),
    hint="Take one character: how probable is it that it's drafted, and then that it's "
    "kept?",
)
def one_draft(p: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A function of p (V,) and q (V,) that returns kept (V,), after_refusal (V,)."""
    kept = torch.minimum(p, q)
    after_refusal = (p - q).clamp(min=0)
    return kept, after_refusal


one_draft.mistakes("""
This is the probability that it's kept once it has been drafted. How probable is it that
it's drafted?
    torch.minimum(p, q) -> (p / q).clamp(max=1)
These are the probabilities after a refusal. How probable is a refusal?
    (p - q).clamp(min=0) -> (d := (p - q).clamp(min=0)) / d.sum().clamp(min=1e-12)
There's a nan: where nothing is ever refused, you divide 0 by 0.
    (p - q).clamp(min=0) -> (d := (p - q).clamp(min=0)) / d.sum() * d.sum()
    Hint: Try to cancel the division on paper.
""")
check_one_draft = one_draft.check


def _there_and_back(to_int8: Callable, from_int8: Callable, weight: Any) -> tuple:
    """numbers, scale and the weight again; a row of zeros may have any scale."""
    numbers, scale = to_int8(weight)
    if numbers.dtype != torch.int8:
        raise Wrong(f"The numbers should be torch.int8, but yours are {numbers.dtype}.")
    back, flat = from_int8(numbers, scale), scale.flatten()
    if len(flat) == len(weight):
        scale = flat.masked_fill(~weight.any(dim=1) & (flat > 0), 1)[:, None]
    return numbers, scale, back


def from_int8(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return numbers * scale


@exercise(
    "09.4 A matrix in bytes",
    cases=[
        (torch.tensor([[127.0, -30.75], [254.0, 11.5], [-508.0, 127.0]]),),
        (torch.tensor([[0.0, 0.0, 0.0], [381.0, -20.0, 1.0]]),),
    ],
    fresh=lambda: [(torch.randn(3, 6) * torch.tensor([[1.0], [10.0], [0.01]]),)],
    work=_there_and_back,
    values=("numbers", "scale", "weight again"),
    also=[from_int8],
    call="check_int8(to_int8, from_int8)",
    hint="In the first case the scales are 1, 2 and 4.",
)
def to_int8(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A function of weight (m, n) that returns numbers (m, n) and scale (m, 1)."""
    largest = weight.abs().amax(dim=1, keepdim=True)  # (m, 1)
    scale = largest.clamp(min=1e-12) / 127
    return (weight / scale).round().to(torch.int8), scale


to_int8.mistakes("""
You have one scale for the whole matrix. Each row should get its own.
    weight.abs().amax(dim=1, keepdim=True) -> weight.abs().max()
A row of zeros gets the scale 0. Its scale should be above 0, since 0 / 0 is nan.
    largest.clamp(min=1e-12) -> largest
You cut off what's after the decimal point. Round to the nearest number instead.
    .round() ->
""")
check_int8 = to_int8.check


def _found(Memory: Callable, size: int, prompts: list[torch.Tensor]) -> torch.Tensor:
    """What each step of the last prompt finds, while another memory is in use.

    A prompt is (n, 3, d): the query, key and value of each character.
    """
    memory, other = (Memory(size, prompts[0].shape[-1]) for _ in range(2))
    for prompt in prompts:
        memory.clear(), other.clear()
        found = []
        for q, k, v in prompt:
            other.step(q, 3 * k, 7 + v)
            found.append(memory.step(q, k, v))
    return torch.stack(found)


A = torch.tensor([[[0.0], [1.0], [4.0]], [[0.0], [1.0], [4.0]]])
B = torch.tensor([[[0.0], [1.0], [6.0]], [[0.0], [1.0], [2.0]]])
ZERO = torch.tensor([[[1.0], [2.0], [3.0]], [[1.0], [0.0], [5.0]]])  # a key that is 0


@exercise(
    "09.5 The memory of the last prompt",
    cases=[(4, [A, B]), (4, [A, ZERO]), (2, [A, B, A])],
    fresh=lambda: [
        (size, [torch.randn(n, 3, 2) for n in lengths])
        for size, lengths in [(12, (3, 2)), (12, (3, 2, 4)), (4, (4, 4, 4))]
    ],
    work=_found,
    call="check_cleared_memory(Memory)",
    hint="After clear(), how many characters should the memory believe it holds?",
)
class Memory:
    """A class: Memory(size, d), with step(q, k, v) and clear()."""

    def __init__(self, size: int, d: int):
        self.keys, self.values = torch.zeros(2, size, d)
        self.length = 0

    def step(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        self.keys[self.length], self.values[self.length] = k, v
        self.length += 1
        n = self.length
        weights = F.softmax(self.keys[:n] @ q / len(q) ** 0.5, dim=0)
        return weights @ self.values[:n]

    def clear(self) -> None:
        self.length = 0


Memory.mistakes("""
The bug is still there: the numbers are gone, but their places still count, and a key of
zeros gets its share of the attention.
    None:
            self.length = 0 -> None:
            self.keys.zero_(); self.values.zero_()
    Hint: Print memory.length after clear().
`step` looks at the whole memory. The empty places get their share of the attention.
    self.keys[:n] -> self.keys
    self.values[:n] -> self.values
    None:
            self.length = 0 -> None:
            self.keys.zero_(); self.values.zero_(); self.length = 0
""")
check_cleared_memory = Memory.check
