"""Lesson 09: write with a cache, and write text piece by piece until a stop."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from minigpt.evaluation import evaluating
from minigpt.fast.reader import Reader
from minigpt.generation import probabilities
from minigpt.interfaces import Model, Tokenizer


def generate(
    model: Model, idx: torch.Tensor, max_new_tokens: int, **knobs: Any
) -> torch.Tensor:
    """Like lesson 06's `generate`, but it reads each character once: (B, T) -> (B, T +
    new).

    knobs: temperature, top_k, top_p, generator, and the window of `Reader`. The same
    generator gives the same text, as long as it fits into the context.
    """
    return torch.cat([idx, *tokens(model, idx, max_new_tokens, **knobs)], dim=1)


@torch.inference_mode()
def tokens(
    model: Model,
    idx: torch.Tensor,
    max_new_tokens: int,
    generator: torch.Generator | None = None,
    window: str | None = None,
    **knobs: Any,
) -> Iterator[torch.Tensor]:
    """Yield what `generate` appends, one (B, 1) at a time, as soon as it's drawn.

    Until the last one, the model is in evaluation mode.
    """
    reader = Reader(model, window)
    with evaluating(model):  # even if nobody asks for the rest
        for _ in range(max_new_tokens):
            logits = reader(idx)[:, -1]  # (B, vocab_size)
            probs = probabilities(logits, **knobs)
            next_idx = torch.multinomial(probs, 1, generator=generator)  # (B, 1)
            idx = torch.cat([idx, next_idx], dim=1)  # (B, T + 1)
            yield next_idx


def stream(
    model: Model,
    tokenizer: Tokenizer,
    prompt: str,
    max_new_tokens: int,
    stop: Sequence[str] = (),
    **knobs: Any,
) -> Iterator[str]:
    """Yield what a model writes after `prompt`, piece by piece, as it's drawn.

    stop: strings that end the text and aren't yielded. A piece that could still become
    one of them waits until that's decided. knobs: those of `generate`.
    """
    device = next(model.parameters()).device
    idx = torch.tensor([tokenizer.encode(prompt)], device=device)  # (1, T)
    decode, waiting = decoder(tokenizer), ""
    for next_idx in tokens(model, idx, max_new_tokens, **knobs):
        waiting += decode(next_idx[0])
        ends = [waiting.index(s) for s in stop if s in waiting]
        if ends:
            waiting = waiting[: min(ends)]
            break
        begun = (n for s in stop for n in range(1, len(s)) if waiting.endswith(s[:n]))
        decided = len(waiting) - max(begun, default=0)
        if decided:
            yield waiting[:decided]
        waiting = waiting[decided:]
    if waiting:
        yield waiting


def decoder(tokenizer: Tokenizer) -> Callable:
    """A function: the next ids (n,) -> what they add to a text. An unfinished character
    waits for its other bytes, and it's dropped if they never come."""
    held = []

    def decode(ids):
        held.extend(ids.tolist())
        text = tokenizer.decode(held)
        if text.endswith("\ufffd"):
            return ""
        held.clear()
        return text

    return decode
