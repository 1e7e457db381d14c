"""A text whose rule is known, for a head that learns one thing (lesson 03)."""

import random

import torch
import torch.nn as nn

from minigpt.data import CharTokenizer


def last_capital(n: int, seed: int = 0) -> str:
    """n characters or one more: small letters and a capital now and then; behind each
    "?" stands the last capital, written small."""
    dice, text, last = random.Random(seed), "A", "A"
    while len(text) < n:
        chance = dice.random()
        if chance < 0.1:
            last = dice.choice("ABCDEFGH")
            text += last
        elif chance < 0.3:
            text += "?" + last.lower()
        else:
            text += dice.choice("abcdefgh")
    return text


@torch.no_grad()
def right(
    model: nn.Module, ids: torch.Tensor, tokenizer: CharTokenizer, T: int = 24
) -> tuple[float, int]:
    """How often a language model names the letter after a "?", and of how many cases.

    ids: (N,) of such a text, cut into windows of T. Only a "?" with a capital before it
    in its own window counts.
    """
    whole = (len(ids) - 1) // T * T
    x, y = ids[:whole].view(-1, T), ids[1 : whole + 1].view(-1, T)
    capital = torch.tensor([char.isupper() for char in tokenizer.chars])
    question = tokenizer.encode("?")[0]
    asked = (x == question) & (capital[x].cumsum(dim=1) > 0)  # (B, T)
    hits = (model(x)[0].argmax(dim=-1) == y)[asked]
    return hits.float().mean().item(), len(hits)
