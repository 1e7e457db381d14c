"""Lesson 06: the whole GPT: the shell of lesson 03 around a stack of blocks.

Sources: Radford et al., Improving Language Understanding by Generative Pre-Training
(2018), section 4.1, and Language Models are Unsupervised Multitask Learners (2019),
section 2.3, for the starting values.
"""

import math
from dataclasses import dataclass

import torch.nn as nn

from minigpt.block import Block
from minigpt.interfaces import Model
from minigpt.language_model import LanguageModel
from minigpt.multi_head import head_width
from minigpt.require import require


@dataclass
class GPTConfig:
    """The shape of a GPT. Raises ValueError for a shape that can't be built."""

    vocab_size: int
    block_size: int
    n_layer: int
    n_head: int
    n_embd: int
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(self, "vocab_size", "block_size", "n_layer", "n_head", "n_embd")
        head_width(self.n_embd, self.n_head)
        said = f"dropout is {self.dropout}; give 0 or more, but less than 1."
        require(0 <= self.dropout < 1, said)

    def build(self) -> Model:
        """A model of this shape, with new parameters."""
        return GPT(self)


def check_sizes(config: object, *names: str) -> None:
    """Raise ValueError unless each named field is a whole number, at least 1."""
    for name in names:
        size = getattr(config, name)
        said = f"{name} is {size!r}; give a whole number, at least 1."
        require(type(size) is int and size >= 1, said)


class GPT(LanguageModel):
    """model(idx, targets=None) -> logits (B, T, vocab_size), loss or None."""

    def __init__(self, config: GPTConfig) -> None:
        c = config
        blocks = [Block(c.n_embd, c.n_head, c.dropout) for _ in range(c.n_layer)]
        body = nn.Sequential(*blocks, nn.LayerNorm(c.n_embd))
        super().__init__(c.vocab_size, c.block_size, c.n_embd, body)
        self.config = config
        init_weights(self)


def init_weights(model: Model) -> None:
    """The starting values of lesson 06, for a model whose body ends in a norm."""
    c = model.config
    std = 0.02 * math.sqrt(768 / c.n_embd)  # GPT-2's, at GPT-2's width of 768
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    nn.init.normal_(model.lm_head.weight, std=0.01)  # almost uniform probabilities
    small = std / math.sqrt(2 * c.n_layer)  # so many additions add up: shrink each
    for block in model.body[:-1]:  # the last one is the LayerNorm
        nn.init.normal_(block.attention.proj.weight, std=small)
        nn.init.normal_(block.feed_forward.proj.weight, std=small)
