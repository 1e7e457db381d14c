"""Lesson 09: what a model reads of a text that grows, and how often.

A text longer than the context has to lose its beginning, and learned positions then
change for all that is left: keys and values must be computed anew. Reading half a
window again every half window costs two passes over each character; sliding by one
costs a whole window for each. Rotary positions can also roll: see `KVCache`.
"""

import math

import torch

from minigpt.arguments import check_model, shown
from minigpt.cache import KVCache, can_cache
from minigpt.language_model import LanguageModel

WINDOWS = ["half", "slide", "roll"]


class Reader:
    """reader(idx) -> logits (B, vocab_size) of what follows a text that grows.

    cache: whether a model that can (see `can_cache`) reads each character once.
    window: what is read of a text longer than block_size. "half": it grows to a
    whole block, then its older half is dropped and the rest read again. "slide":
    the last block, read again for each character. "roll" (rotary only): the cache
    drops the oldest key for each new one, and nothing is read again. None: "half"
    for a model that can have a cache, with it or without, "slide" for others.
    lengths: (B,), for prompts padded on the left: the real tokens in each row of
    the first idx; each row is then read as if it were alone.
    Raises ValueError for a window that the model cannot have.
    """

    def __init__(self, model, cache=True, window=None, lengths=None):
        check_model(model)
        cached = can_cache(model)
        if window is None:
            window = "half" if cached else "slide"
        if window not in WINDOWS:
            raise ValueError(f"window is {shown(window)}; it must be one of {WINDOWS}.")
        cached = cached and cache
        if window == "roll" and not cached:
            raise ValueError(
                "window='roll' lives in the cache, and there is none: pass "
                "window='half' or 'slide', or cache=True with a model that can."
            )
        self.model, self.window, self.lengths = model, window, lengths
        self.cache = KVCache(model, roll=window == "roll") if cached else None
        self.block_size = getattr(model, "block_size", None) or math.inf
        self.first = self.starts = None  # where the text of each row begins

    def __call__(self, idx, last=1):
        """last=n: the logits after each of the last n texts, (B, n, vocab_size)."""
        if self.first is None:
            self.first = self._first(idx)
        starts = [self._start(first, idx.shape[1]) for first in self.first]
        if self.cache is None:
            rows = [idx] if len(starts) == 1 else idx.split(1)
            texts = [row[:, start:] for row, start in zip(rows, starts)]
            logits = torch.cat([_last_logits(self.model, t, last) for t in texts])
        else:
            if starts != self.starts:
                self.starts, self.begin = starts, min(starts)
                lengths = idx.shape[1] - torch.tensor(starts)
                self.cache.clear(lengths if len(starts) > 1 else None)
            new = idx[:, self.begin + self.cache.length :]
            with self.cache:
                logits = _last_logits(self.model, new, last)
        return logits if last > 1 else logits[:, 0]

    def room(self, idx):
        """How many more characters the window takes before it drops some."""
        first = self._first(idx) if self.first is None else self.first
        T = idx.shape[1]
        return min(self.block_size - T + self._start(f, T) for f in first)

    def forget(self, length):
        """Of the text read, characters from `length` on have changed."""
        if self.cache is not None and self.starts is not None:
            self.cache.keep(min(max(length - self.begin, 0), self.cache.length))

    def _first(self, idx):
        B, T = idx.shape
        if self.lengths is None:
            return [0 if T <= self.block_size else T - self.block_size]
        given = self.lengths
        lengths = given.tolist() if isinstance(given, torch.Tensor) else given
        fine = isinstance(lengths, (list, tuple)) and len(lengths) == B
        if not fine or not all(type(n) is int and 1 <= n <= T for n in lengths):
            raise ValueError(
                f"lengths is {shown(lengths)}; it must be a number from 1 to {T} for "
                f"each of the {B} rows, padded on the left."
            )
        return [T - int(min(n, self.block_size)) for n in lengths]

    def _start(self, first, T):
        over = T - first - self.block_size
        if over <= 0 or self.window == "roll":
            return first
        if self.window == "slide":
            return first + over
        half = max(self.block_size // 2, 1)
        return first + -(-over // half) * half  # halves, rounded up


def _last_logits(model, idx, last):
    """Logits after the last `last` texts: idx (B, T) -> (B, last, vocab_size)."""
    if type(model).forward is LanguageModel.forward:  # not where a reader changed it
        return model.logits(model.hidden(idx)[:, -last:])
    return model(idx)[0][:, -last:]
