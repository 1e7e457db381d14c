"""Lesson 09: the cached pass for the model of lesson 08: positions that turn, keys and
values that a group of heads shares, values of the first block."""

import torch.nn.functional as F

from minigpt.fast.cache import past_mask
from minigpt.modern.parts import rotary_turns


def modern_attend(attention, x, first_values, turns, cache, layer):
    """ModernAttention, for what comes next -> (B, T, C), the values of this layer."""
    B, T, _ = x.shape
    q, k, v, values = attention.queries_keys_values(x, first_values, turns)
    keys, held = cache.put(layer, k, v)  # (B, n_kv_head, length + T, head_size)
    mask, group = past_mask(cache, T), attention.n_head // attention.n_kv_head
    if group > 1:  # to the keys that they share, the heads of a group are more queries
        q = q.reshape(B, attention.n_kv_head, group * T, -1)
        mask = None if mask is None else mask.repeat(group, 1)
    out = F.scaled_dot_product_attention(q, keys, held, attn_mask=mask)
    out = out.view(B, attention.n_head, T, -1).transpose(1, 2)
    return attention.proj(out.flatten(2)), values


def body_with_cache(model, x, positions, cache):
    """What the blocks make of embedded characters, x (B, T, C) -> (B, T, C)."""
    *blocks, norm = model.body
    turns = rotary_turns(positions, cache.keys.shape[-1], dtype=x.dtype)
    embedding, first = x, None
    for layer, block in enumerate(blocks):
        if block.mix is not None:
            x = block.mix[0] * x + block.mix[1] * embedding
        normed = block.norm1(x)
        out, values = modern_attend(block.attention, normed, first, turns, cache, layer)
        first = values if first is None else first
        x = x + out
        x = x + block.feed_forward(block.norm2(x))
    x = norm(x)
    cache.length += len(positions)  # only now: what fails leaves the cache as it was
    return x


def modern_with_cache(model, idx, cache):
    """gpt_with_cache for a ModernGPT: idx (B, T) -> (B, T, vocab_size)."""
    positions = cache.positions(idx.shape[1])
    x = model.token_embedding(idx)
    if model.position_embedding is not None:
        x = x + model.position_embedding(positions)
    return model.logits(body_with_cache(model, x, positions, cache))
