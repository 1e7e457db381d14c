"""The experiment of notebook 11, what heads look for; and the random text that notebook
and experiment share."""

from typing import Any

import torch

from minigpt.course.experiments.fit import corpus, cpu, fit, made
from minigpt.inside.looking import capture
from minigpt.inside.marks import MARKS, by_chance, score
from minigpt.interfaces import Model


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
    found = {f"{kind}, by chance": by_chance(marks)}
    for layer, weights in enumerate(capture(model, idx).weights, 1):
        for head, value in enumerate(score(weights, marks).tolist(), 1):
            found[f"{kind}, head {layer}.{head}"] = value
    return found


def twice(vocab_size: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random characters, said twice (32, 2 * length), and marks of what to copy: the
    character after the earlier occurrence (Olsson et al., 2022)."""
    generator = torch.Generator().manual_seed(0)
    once = torch.randint(vocab_size, (32, length), generator=generator)
    marks = torch.zeros(32, 2 * length, 2 * length, dtype=torch.bool)
    here = torch.arange(length, 2 * length - 1)
    marks[:, here, here - length + 1] = True
    return torch.cat([once, once], dim=1), marks


EXPERIMENTS = {"11-heads": {"GPT": heads}}
