"""Lesson 08: today's decoder in the shell of lesson 03, with what came after GPT-2.

These are its parts. Each one except the last two is a field of ModernConfig:
- RMSNorm, before each part of a block and at the end
- rotary positions in place of a table of positions
- queries and keys normalized, head by head
- relu² in the feed-forward layer, or a gate (SwiGLU)
- no bias anywhere
- projections into the stream and a head that start as zeros
- on request: heads that share keys and values (n_kv_head), values mixed with those of
  block 0, the stream mixed with the embedding, logits held within a soft cap
- embedding and head are two matrices
- the forward pass can take the key/value cache of lesson 09

AS_IN_06 switches the new parts off. What's left is the GPT of lesson 06, with the same
parameters and the same logits. The notebook measures what each part is worth.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import next_token_loss
from minigpt.gpt import GPTConfig, init_weights
from minigpt.language_model import LanguageModel
from minigpt.modern import parts
from minigpt.require import require

# The fields that make a ModernConfig the GPT of lesson 06.
AS_IN_06 = {
    "rms_norm": False,
    "rotary": False,
    "qk_norm": False,
    "activation": "relu",
    "bias": True,
    "zero_init": False,
}


@dataclass
class ModernConfig(GPTConfig):
    """The shape of a ModernGPT. Raises ValueError for a shape that can't be built."""

    n_kv_head: int | None = None  # None: as many as n_head
    rms_norm: bool = True
    rotary: bool = True
    qk_norm: bool = True
    activation: str = "relu2"  # or "relu", "swiglu"
    bias: bool = False
    zero_init: bool = True
    value_residual: bool = False
    embedding_mix: bool = False
    softcap: float | None = None
    norm_eps: float = 1e-6  # what RMSNorm adds to the mean square

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.dropout == 0,
            f"dropout is {self.dropout!r}; give 0: a ModernGPT has none.",
        )
        kv = self.n_kv_head
        require(
            kv is None or type(kv) is int and kv >= 1 and self.n_head % kv == 0,
            f"n_kv_head is {kv!r}; give a divisor of n_head = {self.n_head}.",
        )
        require(
            not self.rotary or self.n_embd // self.n_head % 2 == 0,
            f"n_head is {self.n_head!r}; give one with an even n_embd / n_head: rotary "
            "turns pairs.",
        )
        require(
            self.activation in parts.BENDS,
            f"activation is {self.activation!r}; give one of {[*parts.BENDS]}.",
        )
        require(
            self.softcap is None or 0 < self.softcap < math.inf,
            f"softcap is {self.softcap!r}; give a finite number above 0, or None.",
        )
        require(
            0 < self.norm_eps < math.inf,
            f"norm_eps is {self.norm_eps!r}; give a finite number above 0.",
        )

    def build(self) -> "ModernGPT":
        """A model of this shape, with new weights."""
        return ModernGPT(self)


class ModernAttention(nn.Module):
    """Lesson 04's CausalSelfAttention with what came later.

    x: (B, T, C), first_values: block 0's values, or None in block 0; cache: a KVCache
    with the text before x, and this layer's number in it
    -> (B, T, C), values (B, T, n_kv_head, head_size).

    There are n_kv_head heads of keys and values, each shared by a group of query heads:
    Ainslie et al., GQA (2023), section 2.2. Queries and keys are normalized per head:
    Henry et al., Query-Key Normalization (2020), but with the scale sqrt(head_size)
    where theirs is learned. Values are mixed with those of block 0: Zhou et al., Value
    Residual Learning (2024).
    """

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        c = config
        self.n_head, self.n_kv_head = c.n_head, c.n_kv_head or c.n_head
        self.head_size = c.n_embd // c.n_head
        self.qk_norm, self.norm_eps, self.rotary = c.qk_norm, c.norm_eps, c.rotary
        out = (self.n_head + 2 * self.n_kv_head) * self.head_size
        self.qkv = nn.Linear(c.n_embd, out, bias=False)
        self.proj = nn.Linear(c.n_embd, c.n_embd, bias=c.bias)
        mix = nn.Parameter(torch.tensor([0.5, 0.5])) if c.value_residual else None
        self.value_mix = mix  # None in block 0, too, which has nothing to mix

    def queries_keys_values(
        self,
        x: torch.Tensor,
        first_values: torch.Tensor | None,
        turns: torch.Tensor,
    ) -> tuple:
        """x: (B, T, C) -> q (B, n_head, T, head_size), k and v (B, n_kv_head, T, same),
        and the values before mixing, (B, T, n_kv_head, same)."""
        B, T, _ = x.shape
        heads = self.qkv(x).view(B, T, -1, self.head_size)
        n = self.n_head + self.n_kv_head
        qk, values = heads[:, :, :n], heads[:, :, n:]  # norm and rotate both at once
        if self.qk_norm:
            qk = parts.rms_norm(qk, self.norm_eps)
        if self.rotary:
            qk = parts.rotate(qk, turns)
        v = values
        if self.value_mix is not None and first_values is not None:
            v = self.value_mix[0] * v + self.value_mix[1] * first_values
        q, k = qk[:, :, : self.n_head], qk[:, :, self.n_head :]
        return *(t.transpose(1, 2) for t in (q, k, v)), values

    def forward(
        self,
        x: torch.Tensor,
        first_values: torch.Tensor | None,
        turns: torch.Tensor,
        cache: Any = None,
        layer: int | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v, values = self.queries_keys_values(x, first_values, turns)
        mask = None
        if cache is not None:  # to the text before x, too
            mask = cache.past_mask(x.shape[1])  # (T, length + T) or None
            k, v = cache.put(layer, k, v)  # (B, n_kv_head, length + T, head_size)
        out = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            is_causal=cache is None,
            enable_gqa=self.n_kv_head < self.n_head,
        )  # (B, n_head, T, head_size)
        return self.proj(out.transpose(1, 2).flatten(2)), values  # (B, T, C)


def norm_of(config: ModernConfig) -> nn.Module:
    """The norm that a config asks for: (..., n_embd) -> the same."""
    if config.rms_norm:
        return parts.RMSNorm(config.n_embd, config.norm_eps)
    return nn.LayerNorm(config.n_embd)


class ModernBlock(nn.Module):
    """Lesson 05's Block, made from these parts. It also passes on the first values.

    With embedding_mix, it reads a learned mixture of the stream and the token's
    embedding: Jordan et al., modded-nanogpt (2024), record 9.
    """

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.norm1, self.norm2 = norm_of(config), norm_of(config)
        self.attention = ModernAttention(config)
        sizes = config.n_embd, config.activation, config.bias
        self.feed_forward = parts.ModernFeedForward(*sizes)
        start = torch.tensor([1.0, 0.0])
        self.mix = nn.Parameter(start) if config.embedding_mix else None

    def forward(
        self,
        x: torch.Tensor,
        embedding: torch.Tensor,
        first_values: torch.Tensor | None,
        turns: torch.Tensor,
        cache: Any = None,
        layer: int | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self.mix is not None:
            x = self.mix[0] * x + self.mix[1] * embedding
        out, values = self.attention(
            self.norm1(x), first_values, turns, cache=cache, layer=layer
        )
        x = x + out
        return x + self.feed_forward(self.norm2(x)), values


class ModernBody(nn.Sequential):
    """The stack: (B, T, C) -> (B, T, C). Its last part is the final norm."""

    def forward(self, input: torch.Tensor, cache: Any = None) -> torch.Tensor:
        layers: list[Any] = [*self]
        *blocks, norm = layers
        x = embedding = input
        T, start = x.shape[1], 0 if cache is None else cache.length
        positions = torch.arange(start, start + T, device=x.device)  # (T,)
        head_size = blocks[0].attention.head_size
        turns = parts.rotary_turns(positions, head_size, dtype=x.dtype)
        first_values = None
        for layer, block in enumerate(blocks):
            x, values = block(x, embedding, first_values, turns, cache, layer)
            first_values = values if first_values is None else first_values
        x = norm(x)
        if cache is not None:
            cache.length += T  # only now: what fails leaves the cache as it was
        return x


def body_of(config: ModernConfig) -> ModernBody:
    """The ModernBody of a config, with new weights."""
    blocks = [ModernBlock(config) for _ in range(config.n_layer)]
    blocks[0].attention.value_mix = None  # it has no first values to mix with
    return ModernBody(*blocks, norm_of(config))


class ModernGPT(LanguageModel):
    """Like GPT: model(idx, targets=None) -> logits (B, T, vocab_size), loss or None.

    It can't be differentiated twice or used with torch.func, because its norms bring
    their own first derivative. You can't export it to ONNX either, because its rotary
    positions are complex numbers. Real numbers with sines and cosines do the same, but
    training took longer.
    """

    def __init__(self, config: ModernConfig) -> None:
        c = config
        super().__init__(c.vocab_size, c.block_size, c.n_embd, body_of(c))
        self.config = config
        if c.rotary:
            self.position_embedding = None
        if not c.bias:
            self.lm_head.register_parameter("bias", None)
        init_weights(self)
        if c.zero_init:  # blocks start as the identity, logits as zeros
            for block in list(self.body)[:-1]:
                nn.init.zeros_(block.attention.proj.weight)
                nn.init.zeros_(block.feed_forward.proj.weight)
            nn.init.zeros_(self.lm_head.weight)

    def embed(self, idx: torch.Tensor, start: int = 0) -> torch.Tensor:
        """idx: (B, T) -> (B, T - start, C), without the first `start` positions.

        Raises ValueError if T > block_size.
        """
        T = idx.shape[1]
        if T > self.block_size:
            raise ValueError(
                f"idx has T = {T} tokens, but block_size is {self.block_size}: "
                f"pass the last ones, idx[:, -{self.block_size}:]."
            )
        x = self.token_embedding(idx[:, start:])  # (B, T - start, C)
        if self.position_embedding is not None:
            x = x + self.position_embedding.weight[start:T]
        return x

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(B, T, C) -> (B, T, vocab_size), held within ±softcap: Gemma 2 (2024),
        section 2."""
        logits, cap = self.lm_head(hidden), self.config.softcap
        return logits if cap is None else cap * torch.tanh(logits / cap)

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None, cache: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None.

        cache: a KVCache of lesson 09 that holds the first cache.length characters of
        idx. Only the rest is computed, returned and judged.
        """
        x = self.embed(idx, 0 if cache is None else cache.length)
        logits = self.logits(self.body(x, cache))
        return logits, next_token_loss(logits, targets)
