"""Lesson 09: the key/value cache, so that a model reads each character only once.

The key and the value of a character don't depend on any later character, so we compute
them once and keep them. The cache is an argument of a separate forward pass. It reads
the weights of a model that knows nothing about the cache.
Source: Shazeer, Fast Transformer Decoding (2019), section 2.4.
"""

from typing import Any

import torch
import torch.nn.functional as F

from minigpt.interfaces import Model


def causal_mask(T: int, past: int, device: Any = None) -> torch.Tensor | None:
    """Which of the past + T keys each of the last T characters sees: (T, past + T).

    None means all of them: a single new character has no future to hide.
    """
    if T == 1:
        return None
    return torch.ones(T, past + T, device=device).tril(past) == 1


class KVCache:
    """Room for the keys and values of block_size characters in each of B texts.

    keys, values: (n_layer, B, n_kv_head, block_size, head_size). The first `length`
    characters have been read; lower it to forget the last ones.
    """

    def __init__(self, model: Model, batch_size: int = 1) -> None:
        c, like = model.config, model.token_embedding.weight
        heads = getattr(c, "n_kv_head", None) or c.n_head
        shape = c.n_layer, batch_size, heads, c.block_size, c.n_embd // c.n_head
        self.keys = like.new_empty(shape)
        self.values = like.new_empty(shape)
        self.size, self.length = c.block_size, 0

    def positions(self, T: int) -> torch.Tensor:
        """The positions of the next T characters, (T,). Raises ValueError if they don't
        fit."""
        end = self.length + T
        if end > self.size:
            raise ValueError(
                f"The cache holds {self.length} of {self.size} characters, so there is "
                f"no room for {T} more. Start a new cache."
            )
        return torch.arange(self.length, end, device=self.keys.device)

    def past_mask(self, T: int) -> torch.Tensor | None:
        """Which keys each of the next T characters sees: (T, length + T), or None for
        all."""
        return causal_mask(T, self.length, self.keys.device)

    def put(
        self, layer: int, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write k and v (B, n_kv_head, T, head_size) after what this layer holds
        -> all its keys, all its values (B, n_kv_head, length + T, head_size)."""
        start, end = self.length, self.length + k.shape[2]
        self.keys[layer, :, :, start:end] = k
        self.values[layer, :, :, start:end] = v
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]


def attend(attention: Any, x: torch.Tensor, cache: KVCache, layer: int) -> torch.Tensor:
    """CausalSelfAttention for the next characters: (B, T, C) -> (B, T, C)."""
    B, T, C = x.shape
    qkv = attention.qkv(x).view(B, T, 3, attention.n_head, attention.head_size)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_size)
    keys, values = cache.put(layer, k, v)  # (B, n_head, length + T, head_size)
    mask = cache.past_mask(T)
    out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
    return attention.proj(out.transpose(1, 2).reshape(B, T, C))


def gpt_with_cache(model: Model, idx: torch.Tensor, cache: KVCache) -> torch.Tensor:
    """What a GPT says about the next characters: idx (B, T) -> (B, T, vocab_size)."""
    T = idx.shape[1]
    positions = cache.positions(T)
    x = model.token_embedding(idx) + model.position_embedding(positions)
    *blocks, norm = model.body
    for layer, block in enumerate(blocks):
        x = x + attend(block.attention, block.norm1(x), cache, layer)
        x = x + block.feed_forward(block.norm2(x))
    logits = model.lm_head(norm(x))  # (B, T, vocab_size)
    cache.length += T  # only now: what fails leaves the cache as it was
    return logits
