"""Lesson 06: sampling text from any model that returns (logits, loss)."""

import math

import torch
import torch.nn.functional as F

from minigpt.arguments import at_least_one, check_generator, must, number, whole
from minigpt.evaluation import judging
from minigpt.reading import Reader
from minigpt.tensors import check_ids, vocabulary_of


def generate(
    model,
    idx,
    max_new_tokens,
    temperature=1.0,
    top_k=None,
    top_p=None,
    generator=None,
    *,
    cache=True,
    window=None,
    lengths=None,
):
    """Append max_new_tokens sampled tokens: idx (B, T) -> (B, T + new).

    temperature divides the logits; 0 always takes the likeliest token.
    top_k keeps the k likeliest; top_p keeps the likeliest whose probabilities
    sum to at least top_p (Holtzman et al., The Curious Case of Neural Text
    Degeneration, 2020, section 3.1). generator: on the model's device.
    cache, window, lengths: see `Reader` of lesson 09; the text is the same with a
    cache or without. Raises ValueError for values out of range.
    """
    if max_new_tokens == 1 and window != "roll":
        cache = False  # there will be no second pass
    reader = Reader(model, cache, window, lengths)
    knobs = temperature, top_k, top_p, generator
    with judging(model):
        new = list(tokens(model, idx, max_new_tokens, *knobs, reader))
    return torch.cat([idx, *new], dim=1)  # outside inference mode: fit for training


def tokens(
    model,
    idx,
    max_new_tokens,
    temperature=1.0,
    top_k=None,
    top_p=None,
    generator=None,
    reader=None,
):
    """Yield what `generate` appends, one (B, 1) after the other, as they are drawn."""
    check_request(model, idx, max_new_tokens, temperature, top_k, top_p, generator)
    reader = reader or Reader(model)
    for _ in range(max_new_tokens):
        with judging(model) if model.training else torch.inference_mode():
            logits = reader(idx)  # (B, vocab_size)
            if temperature == 0:
                next_idx = logits.argmax(dim=-1, keepdim=True)  # (B, 1)
            else:
                probs = probabilities(logits, temperature, top_k, top_p)
                next_idx = torch.multinomial(probs, 1, generator=generator)
            idx = torch.cat([idx, next_idx], dim=1)
        yield next_idx


def probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """Of each token, as the knobs of `generate` have it: (B, V) -> (B, V).

    temperature 0 gives all to the likeliest.
    """
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    # Minus the largest: no inf - inf. Below 1e-30, 1/temperature is inf.
    logits = logits - logits.amax(dim=-1, keepdim=True)
    logits = logits / max(temperature, 1e-30)
    return F.softmax(keep_likeliest(logits, top_k, top_p), dim=-1)


def keep_likeliest(logits, top_k=None, top_p=None):
    """Set all other logits (B, vocab_size) to -inf; ties with the k-th stay."""
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        smallest_kept = logits.topk(k, dim=-1).values[:, -1:]  # (B, 1)
        logits = logits.masked_fill(logits < smallest_kept, float("-inf"))
    if top_p is not None and top_p < 1:  # 1 keeps all, whatever rounding says
        probs, order = F.softmax(logits, dim=-1).sort(dim=-1, descending=True)
        before = probs.cumsum(dim=-1) - probs  # what the likelier ones sum to
        enough = before >= top_p  # (B, vocab_size), in sorted order
        drop = enough.scatter(-1, order, enough)  # back in the order of the ids
        logits = logits.masked_fill(drop, float("-inf"))
    return logits


def check_request(model, idx, max_new_tokens, temperature, top_k, top_p, generator):
    """Raise TypeError or ValueError for what `generate` cannot do."""
    check_ids("idx", idx, 2, vocabulary_of(model))
    whole("max_new_tokens", max_new_tokens)
    fine = 0 <= number(temperature) < math.inf
    must("temperature", temperature, fine, "finite, 0 or more")
    if top_k is not None:
        at_least_one(top_k=top_k)
    fine = top_p is None or 0 < number(top_p) <= 1
    must("top_p", top_p, fine, "in (0, 1], or None")
    check_generator(generator)
