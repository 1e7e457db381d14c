"""Lesson 09: the key/value cache: what a model keeps of the characters it has read.

    cache = KVCache(model)
    with cache:
        logits, _ = model(prompt)    # (B, T): read once, keys and values are kept
        logits, _ = model(next_idx)  # (B, 1): its query meets all that is kept

The key and the value of a character depend on no later character, so each is
computed once. Source: Shazeer, Fast Transformer Decoding (2019), section 2.4.

Rotary keys are kept after their rotation: each was turned by the angle of its own
position, a score depends on the difference of two angles only, and so the oldest
can go without the others turning again.
"""

import functools

import torch
import torch.nn.functional as F


class LayerCache:
    """The keys and values of one attention layer, and how a step reads them."""

    def __init__(self, cache):
        self.cache = cache  # the KVCache that all layers share
        self.keys = self.values = None  # (B, n_kv_head, size, head_size)

    def attend(self, q, k, v):
        """Causal attention of T new characters to themselves and to all that is kept.

        q: (B, n_head, T, head_size); k, v: (B, n_kv_head, T, head_size), which are
        kept -> (B, n_head, T, head_size).
        """
        c, (B, H, T, D) = self.cache, q.shape
        if self.keys is None:
            shape = (B, k.shape[1], c.size, D)
            self.keys, self.values = k.new_empty(shape), v.new_empty(shape)
        self.keys[:, :, c.slots] = k
        self.values[:, :, c.slots] = v
        keys, values = self.keys[:, :, : c.held], self.values[:, :, : c.held]
        group, mask = H // k.shape[1], c.mask
        if group == 1:
            return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        # The heads of a group ask the same keys: to those they are more queries.
        q = q.reshape(B, -1, group * T, D)
        if mask is not None:
            mask = mask.repeat(1, 1, group, 1)
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        return out.view(B, H, T, D)


class KVCache:
    """What a model has read of B texts, at most `size` characters of each.

    Inside `with cache:` model(idx) takes idx (B, T) as what comes next, without
    gradients; outside, the model is as ever. size: block_size of the model. With
    roll=True the oldest character makes room for the newest, for ever; that takes
    rotary positions. lengths: (B,), if the first batch read is padded on the left:
    the number of real tokens in each row.
    Raises ValueError for a model that cannot (see `can_cache`), and when it is full.
    """

    def __init__(self, model, roll=False, lengths=None):
        readers = _readers(model) if isinstance(model, torch.nn.Module) else []
        if not readers:
            raise ValueError(
                f"A {type(model).__name__} cannot keep keys and values: a GPT or a "
                "ModernGPT of this package can, as long as its parts are the package's."
            )
        if roll and model.position_embedding is not None:
            raise ValueError(
                "roll=True takes rotary positions: this model's table ends after "
                f"position {model.block_size - 1}. Clear the cache and read again."
            )
        self.size, self.roll = model.block_size, roll
        self.device = model.token_embedding.weight.device
        self.places = [
            (m, LayerCache(self) if hasattr(m, "qkv") else self) for m in readers
        ]
        self.layers = [each for _, each in self.places if each is not self]
        self.clear(lengths)

    def clear(self, lengths=None):
        """Forget everything; the next batch may have another size."""
        self.length = 0  # characters read, of which `held` are kept
        self.lengths, self.pads = lengths, None
        for layer in self.layers:
            layer.keys = layer.values = None

    def keep(self, length):
        """Forget what was read after the first `length` characters."""
        if length == self.length:
            return
        if not 0 <= length < self.length or self.length > self.size:
            raise ValueError(
                f"Of {self.length} characters read {length} cannot be kept: pass 0 to "
                f"{self.length}, before a rolling cache has dropped any."
            )
        self.length = length

    def extend(self, T):
        """Make room for T characters -> their positions, (T,), or (B, T) if padded.

        The model calls it once in each pass; its layers then find in `slots` where
        they go, in `held` how many are kept and in `mask` which of them
        each of the T may see: (B or 1, 1, T, held), or None for all.
        """
        start, end = self.length, self.length + T
        if end > self.size and not (self.roll and T == 1):
            raise ValueError(
                f"The cache holds {start} of {self.size} characters, too many for "
                f"{T} more: clear it and read the end of the text again"
                + (", or go on one at a time." if self.roll else ".")
            )
        if self.lengths is not None and start == 0:
            self.pads = T - self.lengths.to(self.device)  # (B,)
        slot = start % self.size
        self.slots, self.held = slice(slot, slot + T), min(end, self.size)
        self.length, self.mask = end, None
        self.positions = torch.arange(start, end, device=self.device)  # (T,)
        if T == 1 and self.pads is None:
            return self.positions
        now = self.positions[:, None]  # (T, 1)
        age = (end - 1 - torch.arange(self.held, device=self.device)) % self.size
        kept = end - 1 - age  # (held,): the position of what stands in each slot
        self.mask = (kept <= now)[None, None]  # (1, 1, T, held)
        if self.pads is None:
            return self.positions
        real = kept >= self.pads[:, None, None, None]  # (B, 1, 1, held)
        self.mask = self.mask & real | (kept == now)  # padding sees itself: no 0 / 0
        return (self.positions - self.pads[:, None]).clamp(min=0)  # (B, T)

    def bytes(self):
        """Memory that keys and values take, in all layers."""
        kept = [t for c in self.layers for t in (c.keys, c.values) if t is not None]
        return sum(t.nbytes for t in kept)

    def __enter__(self):
        self.without_gradients = torch.inference_mode()
        self.without_gradients.__enter__()
        for module, cache in self.places:
            vars(module)["cache"] = cache  # nn.Module's own way takes ten times longer
        return self

    def __exit__(self, *error):
        for module, _ in self.places:
            del vars(module)["cache"]  # the class has None
        self.without_gradients.__exit__(*error)


def can_cache(model):
    """Whether a model reads a KVCache: a GPT or ModernGPT made of this package's parts.

    A part that a reader wrote may look at other positions in its own way, so a
    model that has one is read without a cache.
    """
    return bool(_readers(model))


def _readers(model):
    """The model, perhaps its body, and its attention layers; none if it cannot."""
    modules = list(model.modules())
    if not all(_is_known(type(m)) for m in modules):
        return []
    readers = [m for m in modules if _reads_cache(type(m))]
    layers = [m for m in readers if hasattr(m, "qkv")]
    n_layer = getattr(getattr(model, "config", None), "n_layer", None)
    return readers if model in readers[:1] and len(layers) == n_layer else []


@functools.cache
def _is_known(kind):
    return kind.__module__.startswith(("torch.nn.", "minigpt."))


@functools.cache
def _reads_cache(kind):
    """Whether the class that wrote its forward also has a place for a cache."""
    author = next(c for c in kind.__mro__ if "forward" in vars(c))
    return "cache" in vars(author)
