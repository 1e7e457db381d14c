"""The experiment of notebook 12: how far two trainings drift apart by rounding."""

from dataclasses import replace

import torch

from minigpt.backward.steps import losses_of, ours, torchs
from minigpt.course.experiments.fit import DTYPES, corpus, cpu, grid

STEPS = 60  # as in 12


def drift(seed: int, dtype: torch.dtype) -> dict[str, float]:
    """The GPT of 06, trained with torch's gradients and with ours: how far apart the
    losses are at some steps, and at the step where they differ most."""
    config, recipe = cpu()
    plan, curves = replace(recipe, steps=STEPS, seed=seed), []
    for gradients in (torchs, ours):
        torch.manual_seed(seed)
        model = config.build().to(dtype)
        curves.append(losses_of(gradients, model, corpus().train, plan))
    first, second = torch.tensor(curves, dtype=torch.float64)
    off = (first - second).abs()
    found = {f"step {n}": off[n - 1].item() for n in (20, 40, 60)}
    return found | {"apart": off.max().item()}


EXPERIMENTS = {"12-rounding": grid("{dtype}", drift, dtype=DTYPES)}
