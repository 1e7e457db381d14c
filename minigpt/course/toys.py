"""A text whose rule is known, for a head that learns one thing (lesson 03), and a loss
that is a narrow valley, for an optimizer (06)."""

import math
import random
from typing import Any

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


STEEP, BEGIN = 50.0, (-4.0, 1.0)  # of the valley: its walls, and where a walk begins


def valley(flat: Any, steep: Any) -> Any:
    """A loss of two parameters: nearly flat along the first, steep along the other."""
    return (flat**2 + STEEP * steep**2) / 2


def walk(
    optimizer: str, rate: float, steps: int = 12, turned: float = 0.0
) -> tuple[list[tuple[float, float]], float]:
    """Where "SGD" (plain steps), "momentum" or "Adam" gets to, and the last loss.

    turned: by how many degrees the parameters are turned against the valley. The places
    (flat, steep), steps + 1 of them, are always the valley's.
    """
    angle = math.radians(turned)
    turn = torch.tensor(
        [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    )
    p = nn.Parameter(torch.tensor(BEGIN) @ turn)  # what the optimizer sees
    kind = {
        "SGD": lambda: torch.optim.SGD([p], rate),
        "momentum": lambda: torch.optim.SGD([p], rate, momentum=0.9),
        "Adam": lambda: torch.optim.Adam([p], rate, (0.9, 0.99)),
    }
    chosen, places = kind[optimizer](), []
    for step in range(steps + 1):
        flat, steep = turn @ p
        places.append((flat.item(), steep.item()))
        loss = valley(flat, steep)
        if step < steps:
            chosen.zero_grad()
            loss.backward()
            chosen.step()
    return places, loss.item()
