"""Lesson 06: the whole GPT: the shell of lesson 03 around a stack of blocks.

Sources: Radford et al., Improving Language Understanding by Generative
Pre-Training (2018), section 4.1, and Language Models are Unsupervised Multitask
Learners (2019), section 2.3, for the starting values.
"""

import math
from dataclasses import dataclass

import torch.nn as nn

from minigpt.arguments import at_least_one, check_dropout, check_kind
from minigpt.block import Block
from minigpt.language_model import LanguageModel
from minigpt.multi_head import head_width


@dataclass
class GPTConfig:
    """The shape of a GPT.

    Raises ValueError if n_embd is no multiple of n_head, if a size is below 1, or
    if dropout is no share.
    """

    vocab_size: int
    block_size: int
    n_layer: int
    n_head: int
    n_embd: int
    dropout: float = 0.0

    def __post_init__(self):
        sizes = "vocab_size block_size n_layer n_head n_embd".split()
        at_least_one(**{name: getattr(self, name) for name in sizes})
        head_width(self.n_embd, self.n_head)
        check_dropout(self.dropout)

    def build(self):
        """A model of this shape, with new weights."""
        return GPT(self)


class GPT(LanguageModel):
    """model(idx, targets=None) -> logits (B, T, vocab_size), loss or None.

    Raises ValueError if T > block_size.
    """

    def __init__(self, config):
        c = config
        check_kind("config", c, GPTConfig, "a GPTConfig: preset('cpu', V)[0] is one")
        blocks = [Block(c.n_embd, c.n_head, c.dropout) for _ in range(c.n_layer)]
        body = nn.Sequential(*blocks, nn.LayerNorm(c.n_embd))
        super().__init__(c.vocab_size, c.block_size, c.n_embd, body)
        self.config = config
        init_weights(self)


def init_weights(model):
    """The starting values of lesson 06, for a model whose body ends in a norm.

    Draws from torch's global generator.
    """
    c = model.config
    std = 0.02 * math.sqrt(768 / c.n_embd)  # GPT-2's, at GPT-2's width of 768
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    # Small logits: the first probabilities are almost uniform.
    nn.init.normal_(model.lm_head.weight, std=0.01)
    # 2 * n_layer additions on the residual pathway would add up their
    # variances: shrink each so that the sum stays of the order of one.
    for block in list(model.body)[:-1]:
        for proj in (block.attention.proj, block.feed_forward.proj):
            nn.init.normal_(proj.weight, std=std / math.sqrt(2 * c.n_layer))
