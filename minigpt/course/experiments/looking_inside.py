"""Experiments of notebook 11: what heads look for, and who carries a name in the stored
models of the pocket play; and the random text that notebook and experiment share."""

from collections.abc import Iterable
from functools import partial
from itertools import permutations
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.course import pocket
from minigpt.course.experiments.fit import corpus, cpu, fit, made
from minigpt.inside.looking import capture, changed, columns, patched
from minigpt.inside.marks import MARKS, by_chance, score
from minigpt.interfaces import Model
from minigpt.stored import load_stored

NAMES = ["Hob", "Nan", "Ghost", "Sir Loin"]
HEADS = [(layer, head) for layer in (1, 2) for head in (1, 2, 3, 4)]


def heads(seed: int) -> dict[str, float]:
    """The GPT of 06, and its heads' scores over 200 windows."""
    text = corpus()
    model, recipe = made(seed, cpu)
    T, found = model.block_size, fit(model, recipe)
    idx = text.val[: 200 * T].view(200, T)
    for kind, make in MARKS.items():
        found |= scores(kind, model, idx, make(idx))
    found |= scores("random", model, *twice(text.vocab_size, T // 2))
    return {name: round(value, 5) for name, value in found.items()}


def scores(
    kind: Any, model: Model, idx: torch.Tensor, marks: torch.Tensor
) -> dict[str, float]:
    """{"previous, head 1.1": score, ...}, and what chance would give."""
    found = [score(weights, marks) for weights in capture(model, idx).weights]
    return {f"{kind}, by chance": by_chance(marks)} | by_head(kind, torch.cat(found))


def by_head(label: Any, values: Iterable) -> dict[str, float]:
    """{"LABEL, head 1.1": value, ...}, in the order of HEADS."""
    rows = zip(HEADS, map(float, values))
    return {f"{label}, head {a}.{b}": round(value, 5) for (a, b), value in rows}


def twice(vocab_size: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random characters, said twice (32, 2 * length), and marks of what to copy: the
    character after the earlier occurrence (Olsson et al., 2022)."""
    generator = torch.Generator().manual_seed(0)
    once = torch.randint(vocab_size, (32, length), generator=generator)
    marks = torch.zeros(32, 2 * length, 2 * length, dtype=torch.bool)
    here = torch.arange(length, 2 * length - 1)
    marks[:, here, here - length + 1] = True
    return torch.cat([once, once], dim=1), marks


def pocket_model(seed: int) -> Model:
    """The stored GPT of the pocket play that was trained with this seed."""
    return load_stored(f"pocket-{seed}")[0]


@torch.no_grad()
def lead(model: Model, idx: torch.Tensor, pair: tuple[str, str]) -> torch.Tensor:
    """By how many logits the first letter of one name leads: (B, T) -> (B,)."""
    one, other = pocket.load().tokenizer.encode(pair[0][0] + pair[1][0])
    logits = model(idx)[0][:, -1]  # (B, V)
    return logits[:, one] - logits[:, other]


def exchange(seed: int, places: slice) -> dict[str, float]:
    """The mean share of the lead that each head brings over, for each pair of names."""
    model, found = pocket_model(seed), {}
    for pair in permutations(NAMES, 2):
        source, into, _ = pocket.named(pair)
        said, other = capture(model, source).heads, capture(model, into).heads
        low, high, moved = lead(model, into, pair), lead(model, source, pair), []
        for layer, head in HEADS:
            mine = columns(model.body[layer - 1].attention, head)
            instead = other[layer - 1][..., mine].clone()
            instead[:, places] = said[layer - 1][:, places, mine]
            with changed(model, layer, head, instead):
                share = (lead(model, into, pair) - low) / (high - low)
            moved.append(share.mean())
        found |= by_head(" for ".join(pair), moved)
    return found


def looks(seed: int) -> dict[str, float]:
    """The mean attention at the last position to the name that was said and to the
    character after it."""
    model, found = pocket_model(seed), {}
    for name in NAMES:
        seen = []
        for other in [n for n in NAMES if n != name]:
            windows, _, told = pocket.named((name, other))
            weights = torch.cat(capture(model, windows).weights, dim=1)[:, :, -1]
            rows = zip(weights, told)  # weights: (B, 8, T)
            seen += [w[:, at : at + len(name) + 1].sum(dim=1) for w, at in rows]
        found |= by_head(name, torch.stack(seen).mean(dim=0))
    return found


def stream(seed: int) -> dict[str, float]:
    """The mean share of the lead that the stream before block 2 brings over, from a
    group of positions."""
    model, pair, found = pocket_model(seed), ("Nan", "Hob"), {}
    for one, other, told in zip(*pocket.named(pair)):
        source, into = one[None], other[None]
        low, high = lead(model, into, pair), lead(model, source, pair)
        before = capture(model, source).stream[1][0]  # (T, C)
        ends = [told, told + 3, told + 5, len(one) - 1, len(one)]
        groups = ["name", "two after", "between", "last"]
        for group, start, stop in zip(groups, ends, ends[1:]):
            at = slice(start, stop)
            with patched(model, 2, at, before[at]):
                share = (lead(model, into, pair) - low) / (high - low)
            found.setdefault(group, []).append(share)
    return {g: round(torch.cat(each).mean().item(), 5) for g, each in found.items()}


@torch.no_grad()
def cut(seed: int, how: str) -> dict[str, float]:
    """The loss on the first letter of 31 names when one head says nothing, its mean, or
    what it says in another window."""
    model, nats = pocket_model(seed), []
    asked, name_at = pocket.copies("answer")  # (B, T), (B, T)
    due = asked[range(len(asked)), name_at.float().argmax(dim=1)]
    for layer, head in HEADS:
        mine = columns(model.body[layer - 1].attention, head)
        said = capture(model, asked).heads[layer - 1][..., mine]
        instead = {"zeros": 0.0, "mean": said.mean(dim=(0, 1))}
        instead["resampled"] = said.roll(1, dims=0)
        with changed(model, layer, head, instead[how]):
            nats.append(F.cross_entropy(model(asked)[0][:, -1], due))
    return by_head("loss", nats)


NAMED = {
    "last position": partial(exchange, places=slice(-1, None)),
    "all positions": partial(exchange, places=slice(None)),
    "attention": looks,
    "stream": stream,
}
EXPERIMENTS = {
    "11-heads": {"GPT": heads},
    "11-names": NAMED,
    "11-cuts": {how: partial(cut, how=how) for how in ("zeros", "mean", "resampled")},
}
