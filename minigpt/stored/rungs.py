"""The models of 02 to 05 that stand on the ladder, each in the shell of lesson 03."""

from functools import partial

import torch
import torch.nn as nn

from minigpt.attention import Head
from minigpt.averaging import average_attention
from minigpt.bigram import BigramLanguageModel
from minigpt.block import Block
from minigpt.interfaces import Model
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention

WIDTH, CONTEXT = 64, 32  # channels and positions of all of them


class WeightedMean(nn.Module):
    """Version 4 of lesson 02 with learned queries and keys: (B, T, n_embd) ->
    (B, T, n_embd)."""

    def __init__(self, n_embd: int) -> None:
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=False)
        self.key = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return average_attention(x, self.query(x), self.key(x))


def stack(n_layer: int) -> nn.Sequential:
    """Lesson 05's blocks one behind the other, and a last norm."""
    blocks = [Block(WIDTH, n_head=4) for _ in range(n_layer)]
    return nn.Sequential(*blocks, nn.LayerNorm(WIDTH))


BODIES = {
    "weighted mean": partial(WeightedMean, WIDTH),
    "one head": partial(Head, WIDTH, WIDTH),
    "four heads": partial(CausalSelfAttention, WIDTH, n_head=4),
    "one block": partial(stack, 1),
    "three blocks": partial(stack, 3),
}


def build_rung(name: str, vocab_size: int) -> Model:
    """An untrained model of this rung of the ladder; "bigram" is lesson 01's table."""
    if name == "bigram":
        return BigramLanguageModel(vocab_size)
    return LanguageModel(vocab_size, CONTEXT, WIDTH, BODIES[name]())
