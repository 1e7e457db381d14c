"""Lesson 08: today's decoder, in the shell of lesson 03: what came after GPT-2.

Each change is one field of ModernConfig. All switched off, they leave the GPT of
lesson 06: same weights, same logits. The notebook measures what each is worth.
"""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.arguments import check_kind, must, number
from minigpt.gpt import GPTConfig, init_weights
from minigpt.language_model import LanguageModel
from minigpt.modern_parts import (
    ModernFeedForward,
    RMSNorm,
    rms_norm,
    rotary_turns,
    rotate,
)
from minigpt.multi_head import head_width

ACTIVATIONS = ["relu", "relu2", "swiglu"]
SWITCHES = "rms_norm rotary qk_norm bias zero_init value_residual embedding_mix".split()


@dataclass
class ModernConfig(GPTConfig):
    """The shape of a ModernGPT; dropout has no place here and must be 0.

    Raises ValueError as GPTConfig, also where heads, activation or softcap cannot be.
    """

    n_kv_head: int | None = None  # None: as many as n_head
    rms_norm: bool = True
    rotary: bool = True
    qk_norm: bool = True
    activation: str = "relu2"
    bias: bool = False
    zero_init: bool = True
    value_residual: bool = False
    embedding_mix: bool = False
    softcap: float | None = None

    def __post_init__(self):
        super().__post_init__()
        kv_heads = self.kv_heads if type(self.kv_heads) is int else 0
        heads = kv_heads >= 1 and self.n_head % kv_heads == 0
        even = not self.rotary or self.n_embd // self.n_head % 2 == 0
        capped = self.softcap is None or 0 < number(self.softcap) < torch.inf
        rules = {  # name: what must hold, and how to say it
            "dropout": (self.dropout == 0, "0: a ModernGPT has none"),
            "n_kv_head": (heads, f"a divisor of n_head = {self.n_head}"),
            "n_head": (even, "such that n_embd / n_head is even: rotary turns pairs"),
            "activation": (self.activation in ACTIVATIONS, f"one of {ACTIVATIONS}"),
            "softcap": (capped, "above 0 and finite, or None"),
        }
        rules |= {
            n: (type(getattr(self, n)) is bool, "True or False") for n in SWITCHES
        }
        for name, (holds, need) in rules.items():
            must(name, getattr(self, name), holds, need)

    @property
    def kv_heads(self):
        """How many heads of keys and values there are."""
        return self.n_head if self.n_kv_head is None else self.n_kv_head

    def build(self):
        """A model of this shape, with new weights."""
        return ModernGPT(self)


class ModernAttention(nn.Module):
    """CausalSelfAttention of lesson 04 with what came later.

    x: (B, T, C), first_values: those of block 0, or None in block 0
    -> (B, T, C), values (B, T, kv_heads, head_size).

    kv_heads key/value heads, each shared by a group of query heads: Ainslie et
    al., GQA (2023), section 2.2. Queries and keys normalised per head: Henry et
    al., Query-Key Normalization (2020), but with the scale sqrt(head_size) where
    theirs is learned. Values mixed with those of block 0: Zhou et al., Value
    Residual Learning (2024).
    """

    cache = None  # as in CausalSelfAttention

    def __init__(self, config):
        super().__init__()
        c = self.config = config
        self.head_size = head_width(c.n_embd, c.n_head)
        out = (c.n_head + 2 * c.kv_heads) * self.head_size
        self.qkv = nn.Linear(c.n_embd, out, bias=False)
        self.proj = nn.Linear(c.n_embd, c.n_embd, bias=c.bias)
        if c.value_residual:
            self.value_mix = nn.Parameter(torch.tensor([0.5, 0.5]))

    def forward(self, x, first_values, turns):
        c, (B, T, C) = self.config, x.shape
        heads = self.qkv(x).view(B, T, -1, self.head_size)
        qk = heads[:, :, : c.n_head + c.kv_heads]  # norm and rotate both at once
        v = heads[:, :, c.n_head + c.kv_heads :]  # (B, T, kv_heads, head_size)
        if c.qk_norm:
            qk = rms_norm(qk)
        if c.rotary:
            qk = rotate(qk, turns)
        values = v
        if c.value_residual and first_values is not None:
            v = self.value_mix[0] * v + self.value_mix[1] * first_values
        q, k = qk[:, :, : c.n_head], qk[:, :, c.n_head :]
        group = c.n_head // c.kv_heads
        if group > 1 and self.cache is None:
            k, v = (t.repeat_interleave(group, dim=2) for t in (k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))  # (B, n_head, T, head_size)
        if self.cache is None:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            out = self.cache.attend(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(B, T, C)), values


class ModernBlock(nn.Module):
    """Block of lesson 05, of these parts; it also hands on the first values.

    With embedding_mix it reads a learned mixture of the stream and of the token's
    embedding: Jordan et al., modded-nanogpt (2024), record 9.
    """

    def __init__(self, config):
        super().__init__()
        norm = RMSNorm if config.rms_norm else nn.LayerNorm
        self.norm1, self.norm2 = norm(config.n_embd), norm(config.n_embd)
        self.attention = ModernAttention(config)
        self.feed_forward = ModernFeedForward(
            config.n_embd, config.activation, config.bias
        )
        start = torch.tensor([1.0, 0.0])
        self.mix = nn.Parameter(start) if config.embedding_mix else None

    def forward(self, x, embedding, first_values, turns):
        if self.mix is not None:
            x = self.mix[0] * x + self.mix[1] * embedding
        out, values = self.attention(self.norm1(x), first_values, turns)
        x = x + out
        return x + self.feed_forward(self.norm2(x)), values


class ModernBody(nn.Sequential):
    """The stack: (B, T, C) -> (B, T, C). Its last part is the final norm."""

    cache = None  # as in LanguageModel

    def __init__(self, config):
        norm = RMSNorm if config.rms_norm else nn.LayerNorm
        blocks = [ModernBlock(config) for _ in range(config.n_layer)]
        blocks[0].attention.value_mix = None  # here there is nothing yet to mix
        super().__init__(*blocks, norm(config.n_embd))
        self.head_size = config.n_embd // config.n_head

    def forward(self, x):
        *blocks, norm = self
        positions = torch.arange(x.shape[1], device=x.device)
        if self.cache is not None:
            positions = self.cache.positions
        turns = rotary_turns(positions, self.head_size)
        embedding, first_values = x, None
        for block in blocks:
            x, values = block(x, embedding, first_values, turns)
            first_values = values if first_values is None else first_values
        return norm(x)


class ModernGPT(LanguageModel):
    """As GPT: model(idx, targets=None) -> logits (B, T, vocab_size), loss or None."""

    def __init__(self, config):
        c = config
        check_kind("config", c, ModernConfig, "a ModernConfig: preset('modern', V)[0]")
        super().__init__(c.vocab_size, c.block_size, c.n_embd, ModernBody(c))
        self.config = config
        if c.rotary:
            self.position_embedding = None
        if not c.bias:
            self.lm_head.bias = None
        init_weights(self)
        if c.zero_init:  # each block starts as the identity, the logits as zeros
            for block in list(self.body)[:-1]:
                nn.init.zeros_(block.attention.proj.weight)
                nn.init.zeros_(block.feed_forward.proj.weight)
            nn.init.zeros_(self.lm_head.weight)

    def logits(self, hidden):
        """Logits held within ±softcap: Gemma 2 (2024), section 2."""
        logits = super().logits(hidden)
        cap = self.config.softcap
        return logits if cap is None else cap * torch.tanh(logits / cap)
