"""Lesson 09: which part of a text a model reads when the text outgrows its context.

Then the text loses its beginning, and everything left moves to another position. With
learned positions, the keys and values we kept are wrong, so we compute them again.
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
    """Whether a model's forward pass has an argument `cache`."""
    return "cache" in inspect.signature(module.forward).parameters


def computes_as(module: Any, kind: type[nn.Module]) -> bool:
    """Whether this is a `kind` with the forward pass of `kind` itself."""
    return isinstance(module, kind) and type(module).forward is kind.forward


def can_cache(model: Model) -> bool:
    """Whether `forward_with_cache` computes the same as this model itself.

    A model of lesson 08 takes the cache as an argument if its attention does. Lesson
    06's GPT doesn't know about caches. gpt_with_cache computes in its place, so all of
    its parts must be the course's own.
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
    """What a model says about a text's newest characters: idx (B, T), the first
    cache.length of them already in `cache` -> logits (B, T - cache.length, vocab_size).

    The model must pass `can_cache` and be in evaluation mode.
    """
    if isinstance(model, ModernGPT):
        return model(idx, cache=cache)[0]
    return gpt_with_cache(model, idx[:, cache.length :], cache)


class Reader:
    """reader(idx) -> what a model says about a text that grows from call to call.

    window: which part of a longer text is read. "half": the window grows to a whole
    context, then drops its older half and reads the rest again. "slide": the last
    context, read again for each character, as in lesson 06's `generate`. None: "half"
    for a model that can use a cache, "slide" for others.
    """

    def __init__(self, model: Model, window: str | None = None) -> None:
        self.model, self.cached = model, can_cache(model)
        self.window = window or ("half" if self.cached else "slide")
        if self.window not in WINDOWS:
            raise ValueError(f"window is {window!r}; give one of {WINDOWS}.")
        self.cache: KVCache | None = None
        self.start = 0  # of the text in the cache
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
        """Where the window starts in a text of T characters."""
        size = self.model.block_size
        if self.first is None:
            self.first = max(T - size, 0)
        over = T - self.first - size
        if over <= 0:
            return self.first
        half = max(size // 2, 1) if self.window == "half" else 1
        return self.first + -(-over // half) * half  # halves, rounded up

    def room(self, T: int) -> int:
        """How many more characters fit before a text of T characters loses its
        beginning."""
        return self.model.block_size - (T - self.start_of(T))

    def forget(self, T: int) -> None:
        """Keep only the first T characters of what was read. Others will follow."""
        if self.cache is not None:
            self.cache.length = min(self.cache.length, T - self.start)
