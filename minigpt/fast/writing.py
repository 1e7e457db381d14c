"""Lesson 09: writing with a cache, and from text to text: as it comes, until a stop."""

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
    """Like lesson 06's `generate`, reading each character once: (B, T) -> (B, T + new).

    knobs: temperature, top_k, top_p, generator, and the window of `Reader`. With the
    same generator it is the same text, as long as it fits into the context.
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
    """Yield what `generate` appends, one (B, 1) after the other, as they are drawn.

    Until the last one the model is in evaluation mode.
    """
    reader = Reader(model, window)
    with evaluating(model):  # even if nobody wants the rest
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
    """Yield what a model writes after `prompt`, piece by piece as it is drawn.

    stop: strings that end the text and are not yielded; a piece that may yet become
    one waits until that is decided. knobs: those of `generate`.
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
    """A function of the next ids (n,) -> what they add to a text. Bytes that end within
    a character wait for the rest of it, and are dropped if it never comes."""
    held = []

    def decode(ids):
        held.extend(ids.tolist())
        text = tokenizer.decode(held)
        if text.endswith("\ufffd"):
            return ""
        held.clear()
        return text

    return decode
