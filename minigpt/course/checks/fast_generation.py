"""Checks for notebook 09: a cache by hand, prompts side by side, drafts, int8."""

import torch
import torch.nn.functional as F

from minigpt.course.checks.core import Sign, call, compare, exercise
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import as_tensor, randn, same


@exercise("09.1 One step by hand")
def check_cached_step(cached_step):
    """cached_step(q, k, v, keys, values) -> out, keys, values."""
    cases = [
        (*randn(3, B, H, 1, d), *randn(2, B, H, T, d, seed=3))
        for B, H, T, d in [(1, 1, 1, 2), (2, 3, 4, 5), (1, 2, 6, 3), (2, 1, 0, 3)]
    ]
    hint = "cat along dim=2, scores / √d, softmax over the last dimension, @ values."
    parts = ("out", "keys", "values")
    for some in (cases[:3], cases[3:]):  # the empty cache last, for itself
        compare(cached_step, Solution("09.1"), some, parts=parts, hint=hint)
    return "4 sizes, one of them with an empty cache."


def _settled(left_pad, prompts):
    """What left_pad returns, with what nobody reads, rows of padding, made equal.

    A row of padding must look at something; at what is free, and so is its token.
    """
    right_idx, right = Solution("09.2")(prompts)
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


@exercise("09.2 Prompts side by side")
def check_left_pad(left_pad):
    """left_pad(prompts): a list of lists of ids -> idx (B, T), mask (B, T, T)."""
    prompts = [[5, 6, 7], [8]], [[0, 3], [4, 0, 0, 2, 1], [9, 8, 7]], [[1, 2], [3, 4]]
    cases = [(some,) for some in prompts]
    known = {
        "You pad on the right: the next character is drawn in the last column, and "
        "would follow the padding.": Sign(
            lambda got, _, prompts: same(got[0], _right(prompts))
        ),
    }
    hint = "Column j of row b is real if j >= T - len(prompts[b])."
    how = {"work": _settled, "parts": ("idx", "mask"), "hint": hint}
    compare(left_pad, Solution("09.2"), cases, known, **how)
    return "3 batches; ids and padding in their places, 0 as an id included."


@exercise("09.3 Nothing is lost in the draft")
def check_one_draft(one_draft):
    """one_draft(p, q): (V,), (V,) -> kept (V,), after_refusal (V,)."""
    cases = [
        (torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25])),
        tuple(F.softmax(1.5 * randn(2, 6), dim=-1)),
        (torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.6, 0.0, 0.4])),
        (torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])),
        (torch.tensor([0.1, 0.2, 0.7]), torch.tensor([0.1, 0.2, 0.7])),
    ]
    known = {
        "There is a nan: 0 / 0, where q is 0 or where nothing is ever refused.": (
            Sign(lambda got, *_: any(as_tensor(part).isnan().any() for part in got)),
            "Both divisions can be cancelled on paper.",
        )
    }
    hint = "q times min(1, p / q) is min(p, q); what p has beyond that comes second."
    how = {"parts": ("kept", "after_refusal"), "hint": hint}
    for some in (cases[:4], cases[4:]):  # where nothing is refused last, for itself
        compare(one_draft, Solution("09.3"), some, known, **how)
    shares = [as_tensor(call(one_draft, *case)[0]).sum() for case in cases]
    kept = ", ".join(f"{share:.0%}" for share in shares)
    return f"5 pairs; the two parts add up to p in each, with {kept} kept."


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


@exercise("09.4 A matrix in bytes")
def check_int8(to_int8, from_int8):
    """to_int8(weight) -> numbers, scale; from_int8(numbers, scale) -> weight."""
    cases = [
        (torch.tensor([[1.0, -4.0], [0.5, 0.1]]),),
        (randn(4, 6) * torch.tensor([[1.0], [10.0], [0.01], [3.0]]),),
        (torch.tensor([[0.0, 0.0, 0.0], [300.0, -20.0, 1.0]]),),
    ]
    right, parts = Solution("09.4", "to_int8"), ("numbers", "scale", "type")
    hint = "scale = a row's largest distance from 0 / 127; round; .to(torch.int8)."
    compare(to_int8, right, cases, work=_as_bytes, parts=parts, hint=hint)
    packed = [right(*case) for case in cases]
    hint = "The way back: numbers * scale, as floats."
    solution = Solution("09.4")
    solution.listed = []  # of the way there
    compare(from_int8, solution, packed, hint=hint)
    return "3 matrices, with a row of zeros, and the way back."


def _found(Memory, size, *prompts):
    """What each step of the last prompt finds; the memory is cleared before each."""
    memory = Memory(size, prompts[0].shape[-1])
    for prompt in prompts:
        memory.clear()
        steps = [memory.step(q, k, v) for q, k, v in prompt.unbind(1)]
    return torch.stack(steps)


@exercise("09.5 The memory of the last prompt")
def check_cleared_memory(Memory):
    """Memory(size, d): a class with step(q, k, v) -> (d,) and clear()."""
    one = torch.tensor([[0.0], [0.0], [1.0]])[:, None]  # q, k and v of a character
    prompts = [randn(3, n, 2, seed=n) for n in (3, 2, 4)]
    cases = [(12, 2 * one, 4 * one), (12, *prompts[:2]), (12, *prompts)]
    cases.append((4, *(randn(3, 4, 3, seed=seed) for seed in range(3))))
    solution = Solution("09.5")
    known = {
        "The result is nan: a place is told to be empty by the numbers in it, but only "
        "the length says who is there.": (
            Sign(lambda got, *_: as_tensor(got).isnan().any())
        ),
    }
    hint = "What a memory holds is said by its length: where must it stand after clear?"
    compare(Memory, solution, cases, known, work=_found, hint=hint)
    return "series of 2 and 3 prompts, and 3 in a memory with room for one."
