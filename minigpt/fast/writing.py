"""Lesson 09: writing with a cache, and from text to text: as it comes, until a stop."""

import torch

from minigpt.fast.reading import Reader
from minigpt.generation import probabilities


def generate(model, idx, max_new_tokens, **knobs):
    """As `generate` of lesson 06, each character read once: (B, T) -> (B, T + new).

    knobs: temperature, top_k, top_p, generator, and the window of `Reader`. With the
    same generator it is the same text, as long as it fits into the context.
    """
    return torch.cat([idx, *tokens(model, idx, max_new_tokens, **knobs)], dim=1)


@torch.inference_mode()
def tokens(model, idx, max_new_tokens, generator=None, window=None, **knobs):
    """Yield what `generate` appends, one (B, 1) after the other, as they are drawn.

    Until the last one the model is in evaluation mode.
    """
    reader, was_training = Reader(model, window), model.training
    model.eval()
    try:
        for _ in range(max_new_tokens):
            logits = reader(idx)[:, -1]  # (B, vocab_size)
            probs = probabilities(logits, **knobs)
            next_idx = torch.multinomial(probs, 1, generator=generator)  # (B, 1)
            idx = torch.cat([idx, next_idx], dim=1)  # (B, T + 1)
            yield next_idx
    finally:  # also if nobody wants the rest
        model.train(was_training)


def stream(model, tokenizer, prompt, max_new_tokens, stop=(), **knobs):
    """Yield what a model writes after `prompt`, piece by piece as it is drawn.

    stop: strings that end the text and are not yielded; a piece that may yet become
    one waits until that is decided. knobs: those of `generate`.
    """
    idx, waiting = encoded(model, tokenizer, [prompt]), ""
    decode = decoder(tokenizer)
    for next_idx in tokens(model, idx, max_new_tokens, **knobs):
        waiting += decode(next_idx[0])
        if ended(waiting, stop):
            break
        decided = len(waiting) - undecided(waiting, stop)
        if decided:
            yield waiting[:decided]
        waiting = waiting[decided:]
    if before_stop(waiting, stop):
        yield before_stop(waiting, stop)


def write(model, tokenizer, prompts, max_new_tokens, stop=(), **knobs):
    """What a model writes after each of several prompts, up to its first stop: a list
    of texts. Those of one length are one batch; stop and knobs as in `stream`."""
    texts, decode = {}, [decoder(tokenizer) for _ in prompts]
    lengths = [len(tokenizer.encode(prompt)) for prompt in prompts]
    for length in set(lengths):
        rows = [b for b, n in enumerate(lengths) if n == length]
        idx = encoded(model, tokenizer, [prompts[b] for b in rows])
        texts.update(dict.fromkeys(rows, ""))
        for next_idx in tokens(model, idx, max_new_tokens, **knobs):
            for b, new in zip(rows, next_idx):
                if not ended(texts[b], stop):
                    texts[b] += decode[b](new)
            if all(ended(texts[b], stop) for b in rows):
                break
    return [before_stop(texts[b], stop) for b in range(len(prompts))]


def encoded(model, tokenizer, prompts):
    """Texts of one length T -> their ids (B, T), where the model is."""
    if "" in prompts:
        raise ValueError(
            "A prompt is empty: give at least one character to go on from, for example "
            "a line break."
        )
    ids = [tokenizer.encode(prompt) for prompt in prompts]
    return torch.tensor(ids, device=next(model.parameters()).device)


def decoder(tokenizer):
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


def ended(text, stop):
    """Whether one of the stop strings stands in a text."""
    return any(s in text for s in stop)


def before_stop(text, stop):
    """The text before the first of the stop strings in it, or all of it."""
    return text[: min((text.find(s) for s in stop if s in text), default=len(text))]


def undecided(text, stop):
    """How many characters at the end of a text may yet become a stop string."""
    starts = [n for s in stop for n in range(1, len(s)) if text.endswith(s[:n])]
    return max(starts, default=0)
