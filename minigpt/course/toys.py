"""A text whose rule is known, for a head that learns one thing (lesson 03)."""

import random


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
