"""What stands beside the lessons: no module of theirs needs it, but notebooks do.

For notebooks: `setup` and `continued` below, `plots`, `drawings`, `measure` (seconds
and memory), `record` and `ladder` (reading what was measured), and `pocket` (the pocket
play). In rooms of their own: `checks` of the exercises, `experiments`, which measure
what the record says and which no lesson imports, and `publish`.
"""

from typing import NamedTuple

import torch

from minigpt.data import CharTokenizer, load_text, train_val_split
from minigpt.device import pick_device
from minigpt.generation import generate
from minigpt.playwright.grammar import ALPHABET
from minigpt.stored import load_stored


class LessonStart(NamedTuple):
    """What `setup` returns; train_data and val_data are ids (N,), on the CPU."""

    text: str
    tokenizer: CharTokenizer
    train_data: torch.Tensor
    val_data: torch.Tensor
    device: torch.device


def setup(seed: int = 1337) -> LessonStart:
    """Text, tokenizer, split and device of a lesson; torch draws from this seed on."""
    text = load_text()
    tokenizer = CharTokenizer(ALPHABET | set(text))  # the stored GPT's, too
    ids = torch.tensor(tokenizer.encode(text))  # (N,)
    torch.manual_seed(seed)
    return LessonStart(text, tokenizer, *train_val_split(ids), pick_device())


def continued(
    prompt: str, n: int = 300, temperature: float = 0.8, seed: int = 1337
) -> str:
    """The prompt and n characters that the stored GPT of lesson 06 writes after it."""
    model, tokenizer = load_stored("gpt")
    ids = torch.tensor([tokenizer.encode(prompt)])  # (1, T)
    dice = torch.Generator().manual_seed(seed)
    written = generate(model, ids, n, temperature, generator=dice)  # (1, T + n)
    return tokenizer.decode(written[0])
