"""Lesson 09: from text to text: prompts of any length, as it comes, until a stop."""

import torch

from minigpt.arguments import check_kind, check_model, device_of
from minigpt.data import CharTokenizer
from minigpt.generation import tokens
from minigpt.reading import Reader


def stream(
    model,
    tokenizer,
    prompt,
    max_new_tokens,
    stop=(),
    *,
    cache=True,
    window=None,
    **knobs,
):
    """Yield what a model writes after `prompt`, piece by piece as it is drawn.

    stop: strings that end the text, themselves not yielded; a piece that may yet
    become one waits until that is decided. cache, window: see `Reader`; knobs: of
    `generate`, which would have written the same. Between two pieces the model is
    free for other use. Raises ValueError for an empty prompt or stop, for unknown
    characters, and as `generate`.
    """
    stop = _checked(model, tokenizer, stop)
    idx, _ = left_padded([tokenizer.encode(prompt)], device_of(model))
    reader = Reader(model, cache, window)
    waiting = ""
    for next_idx in tokens(model, idx, max_new_tokens, reader=reader, **knobs):
        waiting += tokenizer.decode(next_idx[0])
        text = before_stop(waiting, stop)
        if text is not None:
            waiting = text
            break
        decided = len(waiting) - _undecided(waiting, stop)
        if decided:
            yield waiting[:decided]
        waiting = waiting[decided:]
    if waiting:
        yield waiting


def write(
    model,
    tokenizer,
    prompts,
    max_new_tokens,
    stop=(),
    *,
    cache=True,
    window=None,
    **knobs,
):
    """What a model writes after each of several prompts, in one batch: list of str.

    The prompts may differ in length; each text ends before its own first stop.
    Arguments and errors as in `stream`.
    """
    stop = _checked(model, tokenizer, stop)
    check_kind("prompts", prompts, (list, tuple), "a list of them: [prompt]")
    idx, lengths = left_padded([tokenizer.encode(p) for p in prompts], device_of(model))
    reader = Reader(model, cache, window, lengths)
    texts = [""] * len(prompts)
    ended = [None] * len(prompts)
    for next_idx in tokens(model, idx, max_new_tokens, reader=reader, **knobs):
        for b, char in enumerate(tokenizer.decode(next_idx[:, 0])):
            texts[b] += char
            if ended[b] is None:
                ended[b] = before_stop(texts[b], stop)
        if None not in ended:
            break
    return [text if end is None else end for text, end in zip(texts, ended)]


def left_padded(rows, device=None):
    """Lists of ids -> idx (B, T) with the ends aligned, and their lengths (B,).

    What stands before a row is never read. Raises ValueError if one is empty.
    """
    check_kind("rows", rows, (list, tuple), "lists of ids: [ids]")
    for row in rows:
        check_kind("A row", row, list, "lists of ids: [ids]")
        for i in row:
            check_kind("An id", i, int, "whole numbers, as encode gives them")
    if not rows:
        raise ValueError(f"There is no prompt in {rows}: give at least one.")
    if not all(rows):
        raise ValueError(
            "A prompt is empty: give at least one character to go on from, for "
            "example a line break."
        )
    lengths = torch.tensor([len(row) for row in rows], device=device)
    T = max(len(row) for row in rows)
    idx = torch.tensor([[0] * (T - len(row)) + row for row in rows], device=device)
    return idx, lengths


def before_stop(text, stop):
    """The text before the first of the stop strings in it; None if there is none."""
    found = [text.find(s) for s in stop if s in text]
    return text[: min(found)] if found else None


def _undecided(text, stop):
    """How many characters at the end of a text may yet become a stop string."""
    starts = [n for s in stop for n in range(1, len(s)) if text.endswith(s[:n])]
    return max(starts, default=0)


def _checked(model, tokenizer, stop):
    check_model(model)
    check_kind("tokenizer", tokenizer, CharTokenizer, "the model's CharTokenizer")
    stop = stop if isinstance(stop, (list, tuple)) else [stop]
    for text in stop:
        check_kind("stop", text, str, "a string, or a list of them")
        if not text:
            raise ValueError(
                "A stop string is empty, so the text would end before it began: give "
                "at least one character."
            )
    return stop
