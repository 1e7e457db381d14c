"""Lesson 09: the cached pass for the models of 08b, where what is read of a character
also depends on the last ones before it. Their share is small and computed anew.
"""

import math

import torch
import torch.nn.functional as F

from minigpt.fast.cache import KVCache, body_with_cache
from minigpt.modern.counting import RECENT


class TextCache(KVCache):
    """A KVCache that also keeps the ids (B, block_size) of what was read."""

    def __init__(self, model, batch_size=1):
        super().__init__(model, batch_size)
        self.ids = self.keys.new_empty(batch_size, self.size, dtype=torch.long)

    def extended(self, idx):
        """The text with idx (B, T) behind it (B, length + T), positions of idx (T,)."""
        positions = self.positions(idx.shape[1])
        end = self.length + len(positions)
        self.ids[:, self.length : end] = idx
        return self.ids[:, :end], positions


def ngram_with_cache(model, idx, cache):
    """gpt_with_cache for an NgramGPT: idx (B, T) -> (B, T, vocab_size)."""
    text, positions = cache.extended(idx)
    x = model.embed(text)[:, -len(positions) :]  # (B, T, C)
    return model.logits(body_with_cache(model, x, positions, cache))


def counting_with_cache(model, idx, cache):
    """gpt_with_cache for a CountingGPT: idx (B, T) -> (B, T, vocab_size)."""
    T, V = idx.shape[1], model.config.vocab_size
    text, positions = cache.extended(idx)
    # The convolution looks back, and what it sees has its whole context, too.
    end = T + len(model.convolution.weight) - 1 + model.counts.order
    logp = model.smoothing(model.counts(text[:, -end:]))  # (B, end, order + 1, V)
    x = model.embed(text)[:, -end:] + model.read(logp[..., -1, :] + math.log(V))
    x = model.convolution(x)[:, -T:]  # (B, T, C)
    hidden = body_with_cache(model, x, positions, cache)
    recent = newest_window_counts(text, T, V, RECENT).log1p()
    known = torch.cat([logp[:, -T:], recent], dim=-2)
    gate = model.gate(hidden)[..., None, :]  # (B, T, 1, order + 1 + RECENT)
    return model.logits(hidden) + (gate @ known)[..., 0, :]


def newest_window_counts(idx, T, vocab_size, longest):
    """The last T rows of `window_counts`, -> (B, T, longest, V), without the others."""
    end = idx.shape[1]
    follows = F.one_hot(idx[:, 1:], vocab_size).float()  # (B, end - 1, V)
    alike = torch.ones(T, end - 1, device=idx.device).tril(end - T - 1) == 1  # earlier
    levels = []
    for n in range(longest):
        back = idx.roll(n, dims=1)  # the character n before each
        same = back[:, end - T :, None] == back[:, None, :-1]  # (B, T, end - 1)
        same[..., :n] = False  # there is none
        alike = alike & same
        levels.append(alike.float() @ follows)
    return torch.stack(levels, dim=-2)
