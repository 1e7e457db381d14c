"""Lesson 09: what a model reads of a text that grows beyond its context.

The text then loses its beginning, which moves all that is left to other positions:
learned positions make the kept keys and values wrong, and they are computed anew.
"""

import torch

from minigpt.block import Block, FeedForward
from minigpt.fast.cache import KVCache, gpt_with_cache, modern_with_cache
from minigpt.fast.text_cache import TextCache, counting_with_cache, ngram_with_cache
from minigpt.gpt import GPT
from minigpt.modern.counting import CountingGPT
from minigpt.modern.model import ModernAttention, ModernBlock, ModernGPT
from minigpt.modern.ngrams import NgramGPT
from minigpt.modern.parts import ModernFeedForward
from minigpt.multi_head import CausalSelfAttention

WINDOWS = ["half", "slide"]
PASSES = {
    GPT: (KVCache, gpt_with_cache),
    ModernGPT: (KVCache, modern_with_cache),
    NgramGPT: (TextCache, ngram_with_cache),
    CountingGPT: (TextCache, counting_with_cache),
}
PARTS = [
    [Block, CausalSelfAttention, FeedForward],
    [ModernBlock, ModernAttention, ModernFeedForward],
]


def can_cache(model):
    """Whether this is one of PASSES whose blocks are the course's own: only of those
    does `forward_with_cache` know how they read."""
    if type(model) not in PASSES:
        return False
    expected = PARTS[isinstance(model, ModernGPT)]
    blocks = list(model.body)[:-1]
    parts = [[type(b), type(b.attention), type(b.feed_forward)] for b in blocks]
    return all(part == expected for part in parts)


@torch.inference_mode()
def forward_with_cache(model, idx, cache):
    """What a model of PASSES says of the next characters: idx (B, T), the texts behind
    what `cache` holds -> logits (B, T, vocab_size). For evaluation mode."""
    return PASSES[type(model)][1](model, idx, cache)


class Reader:
    """reader(idx) -> what a model says of a text that grows from call to call.

    window: what is read of a text longer than the context. "half": it grows to a whole
    context, then its older half is dropped and the rest read again. "slide": the last
    context, read again for each character. None: "half" for a model that can have a
    cache, "slide" for others, as `generate` of lesson 06 reads.
    """

    def __init__(self, model, window=None):
        self.model, self.cached = model, can_cache(model)
        self.window = window or ("half" if self.cached else "slide")
        if self.window not in WINDOWS:
            raise ValueError(f"window is {window!r}; give one of {WINDOWS}.")
        self.cache = self.first = self.start = None  # start: of what the cache holds

    def __call__(self, idx, last=1):
        """The logits after each of the last texts: idx (B, T) -> (B, last, V)."""
        start = self.start_of(idx.shape[1])
        if not self.cached:
            return self.model(idx[:, start:])[0][:, -last:]
        if self.cache is None:
            self.cache = PASSES[type(self.model)][0](self.model, len(idx))
        if start != self.start:
            self.start, self.cache.length = start, 0
        new = idx[:, start + self.cache.length :]
        return forward_with_cache(self.model, new, self.cache)[:, -last:]

    def start_of(self, T):
        """Where the window on a text of T characters begins."""
        size = self.model.block_size
        if self.first is None:
            self.first = max(T - size, 0)
        over = T - self.first - size
        if over <= 0:
            return self.first
        half = max(size // 2, 1) if self.window == "half" else 1
        return self.first + -(-over // half) * half  # halves, rounded up

    def room(self, T):
        """How many more characters fit before a text of T loses its beginning."""
        return self.model.block_size - (T - self.start_of(T))

    def forget(self, T):
        """Of the text that was read, only the first T characters are still true."""
        if self.cache is not None:
            self.cache.length = min(self.cache.length, T - self.start)
