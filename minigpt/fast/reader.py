"""Lesson 09: what a model reads of a text that grows beyond its context.

The text then loses its beginning, which moves all that is left to other positions:
learned positions make the kept keys and values wrong, and they are computed anew.
"""

import inspect
from typing import Any

import torch
import torch.nn as nn

from minigpt.block import Block, FeedForward
from minigpt.fast.cache import KVCache, gpt_with_cache
from minigpt.gpt import GPT
from minigpt.interfaces import Model
from minigpt.modern.model import ModernGPT
from minigpt.multi_head import CausalSelfAttention

WINDOWS = ["half", "slide"]


def takes_cache(module: Any) -> bool:
    """Whether its forward pass has an argument `cache`."""
    return "cache" in inspect.signature(module.forward).parameters


def computes_as(module: Any, kind: type[nn.Module]) -> bool:
    """Whether this is a `kind` whose forward pass is that of `kind` itself."""
    return isinstance(module, kind) and type(module).forward is kind.forward


def can_cache(model: Model) -> bool:
    """Whether `forward_with_cache` reads with this model as the model itself does.

    A model of lesson 08 takes the cache as an argument, if its attention does. Lesson
    06's knows of none: gpt_with_cache computes in its place, so that all its parts must
    compute as the course's do.
    """
    if isinstance(model, ModernGPT):
        attentions = [block.attention for block in list(model.body)[:-1]]
        return all(map(takes_cache, [model, *attentions]))
    return computes_as(model, GPT) and all(
        computes_as(block, Block)
        and computes_as(block.attention, CausalSelfAttention)
        and computes_as(block.feed_forward, FeedForward)
        for block in model.body[:-1]
    )


@torch.inference_mode()
def forward_with_cache(model: Model, idx: torch.Tensor, cache: KVCache) -> torch.Tensor:
    """What a model says of a text's newest characters: idx (B, T), whose first
    cache.length characters `cache` holds -> logits (B, T - cache.length, vocab_size).

    For a model that `can_cache`, in evaluation mode.
    """
    if isinstance(model, ModernGPT):
        return model(idx, cache=cache)[0]
    return gpt_with_cache(model, idx[:, cache.length :], cache)


class Reader:
    """reader(idx) -> what a model says of a text that grows from call to call.

    window: what is read of a text longer than the context. "half": it grows to a whole
    context, then its older half is dropped and the rest read again. "slide": the last
    context, read again for each character. None: "half" for a model that can have a
    cache, "slide" for others, as `generate` of lesson 06 reads.
    """

    def __init__(self, model: Model, window: str | None = None) -> None:
        self.model, self.cached = model, can_cache(model)
        self.window = window or ("half" if self.cached else "slide")
        if self.window not in WINDOWS:
            raise ValueError(f"window is {window!r}; give one of {WINDOWS}.")
        self.cache: KVCache | None = None
        self.start = 0  # of what the cache holds
        self.first: int | None = None  # where the first window began

    def __call__(self, idx: torch.Tensor, last: int = 1) -> torch.Tensor:
        """The logits after each of the last texts: idx (B, T) -> (B, last, V)."""
        start = self.start_of(idx.shape[1])
        if not self.cached:
            return self.model(idx[:, start:])[0][:, -last:]
        if self.cache is None:
            self.cache = KVCache(self.model, len(idx))
        if start != self.start:
            self.start, self.cache.length = start, 0
        return forward_with_cache(self.model, idx[:, start:], self.cache)[:, -last:]

    def start_of(self, T: int) -> int:
        """Where the window on a text of T characters begins."""
        size = self.model.block_size
        if self.first is None:
            self.first = max(T - size, 0)
        over = T - self.first - size
        if over <= 0:
            return self.first
        half = max(size // 2, 1) if self.window == "half" else 1
        return self.first + -(-over // half) * half  # halves, rounded up

    def room(self, T: int) -> int:
        """How many more characters fit before a text of T loses its beginning."""
        return self.model.block_size - (T - self.start_of(T))

    def forget(self, T: int) -> None:
        """Keep the first T characters of what was read; others will follow them."""
        if self.cache is not None:
            self.cache.length = min(self.cache.length, T - self.start)
