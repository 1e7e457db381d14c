"""Experiments of notebook 09: what a model reads of a text beyond its context."""

from dataclasses import replace
from functools import cache, partial

import torch
import torch.nn.functional as F

from minigpt.course import pocket
from minigpt.course.experiments.fit import fit
from minigpt.data import train_val_split
from minigpt.fast.reader import WINDOWS, Reader
from minigpt.interfaces import Model
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import modern_preset

CONTEXT, STEPS, TEXTS = 128, 200, 32


@cache
def writer(seed: int) -> tuple[Model, float]:
    """A model with rotary positions that has learned the pocket play, and its loss."""
    p = pocket.load()
    torch.manual_seed(seed)
    shape = ModernConfig(p.tokenizer.vocab_size, CONTEXT, 6, n_head=4, n_embd=64)
    _, recipe = modern_preset(shape.vocab_size)
    recipe, model = replace(recipe, steps=STEPS, seed=seed), shape.build()
    return model, fit(model, recipe, lambda: train_val_split(p.ids))["loss"]


def beyond(window: str, seed: int) -> dict[str, float]:
    """Nats per character above the play's floor, where more than a context came before.

    Judged is every eighth character of stretches of four contexts.
    """
    (model, within), p = writer(seed), pocket.load()
    texts = p.ids[p.n :][: TEXTS * 4 * CONTEXT].view(TEXTS, -1)
    exact = p.exact[p.n :][: texts.numel()].view(TEXTS, -1)
    reader, extra = Reader(model, window=window), []
    for t in range(CONTEXT, texts.shape[1]):
        if window == "slide" and t % 8:
            continue  # it reads all anew, also without the characters between
        logp = F.log_softmax(reader(texts[:, :t])[:, -1], dim=-1)  # (TEXTS, V)
        if t % 8 == 0:
            nats = -logp.gather(1, texts[:, t, None])[:, 0]
            extra.append((nats - exact[:, t]).mean())
    return {"loss": torch.stack(extra).mean().item(), "within": within}


EXPERIMENTS = {"09-window": {name: partial(beyond, name) for name in WINDOWS}}
