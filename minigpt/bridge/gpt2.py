"""Lesson 14: GPT-2, made from the parts of lessons 03 to 06.

Source: Radford et al., Language Models are Unsupervised Multitask Learners (2019),
section 2.3; where the paper leaves something open, we do what OpenAI's code does.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn as nn

from minigpt.gpt import GPT, GPTConfig
from minigpt.require import require

BENDS = {  # the names in GPT-2's config.json
    "gelu_new": partial(nn.GELU, "tanh"),  # GPT-2's: a formula with tanh, quick in 2019
    "gelu": nn.GELU,  # nanoGPT's: the same curve exactly
    "relu": nn.ReLU,  # lesson 06's
}
SAME = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new"}  # the same curves
SAME |= {"gelu_accurate": "gelu_new", "gelu_python": "gelu"}


@dataclass
class GPT2Config(GPTConfig):
    """The shape of a GPT2. Raises ValueError for a shape that can't be built.

    With activation="relu", qkv_bias=False, tied=False and head_bias=True, it's the GPT
    of lesson 06.
    """

    activation: str = "gelu_new"  # or "gelu", "relu"
    qkv_bias: bool = True  # whether queries, keys and values have one
    tied: bool = True  # lm_head shares its matrix with the token embedding
    head_bias: bool = False
    norm_eps: float = 1e-5  # what LayerNorm adds to the variance

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.activation in BENDS,
            f"activation is {self.activation!r}; give one of {[*BENDS]}.",
        )
        require(
            0 < self.norm_eps < math.inf,
            f"norm_eps is {self.norm_eps!r}; give a finite number above 0.",
        )

    def build(self) -> "GPT2":
        """A model of this shape, with new parameters."""
        return GPT2(self)


class GPT2(GPT):
    """Like GPT: model(idx, targets=None) -> logits (B, T, vocab_size), loss or None.

    GPT-2 also applies dropout to its embeddings. Here, dropout is where lesson 05 has
    it. That only matters in training.
    """

    config: GPT2Config
    lm_head: Any  # an nn.Linear; torch's types do not know that one may lack its bias

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        c = config
        for block in self.body[:-1]:
            block.attention.qkv.bias = zeros(3 * c.n_embd) if c.qkv_bias else None
            block.feed_forward.relu = BENDS[c.activation]()  # the name is lesson 05's
        self.lm_head.bias = zeros(c.vocab_size) if c.head_bias else None
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = c.norm_eps
        self.tie()

    def tie(self) -> None:
        """Make lm_head and the token embedding one matrix, if the config says so."""
        if self.config.tied:
            self.lm_head.weight = self.token_embedding.weight


def zeros(n: int) -> nn.Parameter:
    """A new parameter (n,), all zeros."""
    return nn.Parameter(torch.zeros(n))
