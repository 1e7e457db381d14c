"""Lesson 06: sampling text from any model that returns (logits, loss)."""

import torch
import torch.nn.functional as F


@torch.no_grad()
def generate(
    model,
    idx,
    max_new_tokens,
    temperature=1.0,
    top_k=None,
    top_p=None,
    generator=None,
):
    """Append max_new_tokens sampled tokens: idx (B, T) -> (B, T + new).

    temperature divides the logits; 0 always takes the likeliest token.
    top_k keeps the k likeliest; top_p keeps the likeliest whose probabilities
    sum to at least top_p (Holtzman et al., The Curious Case of Neural Text
    Degeneration, 2020, section 3.1). generator: on the model's device.
    Raises ValueError for values out of range.
    """
    _check(idx, max_new_tokens, temperature, top_k, top_p)
    block_size = getattr(model, "block_size", None)
    was_training = model.training
    model.eval()
    try:
        for _ in range(max_new_tokens):
            context = idx if block_size is None else idx[:, -block_size:]
            logits = model(context)[0][:, -1]  # (B, vocab_size), the last position
            if temperature == 0:
                next_idx = logits.argmax(dim=-1, keepdim=True)  # (B, 1)
            else:
                logits = keep_likeliest(logits / temperature, top_k, top_p)
                probs = F.softmax(logits, dim=-1)
                next_idx = torch.multinomial(probs, 1, generator=generator)
            idx = torch.cat([idx, next_idx], dim=1)  # (B, T + 1)
    finally:
        model.train(was_training)
    return idx


def keep_likeliest(logits, top_k=None, top_p=None):
    """Set all other logits (B, vocab_size) to -inf; ties with the k-th stay."""
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        smallest_kept = logits.topk(k, dim=-1).values[:, -1:]  # (B, 1)
        logits = logits.masked_fill(logits < smallest_kept, float("-inf"))
    if top_p is not None:
        probs, order = F.softmax(logits, dim=-1).sort(dim=-1, descending=True)
        before = probs.cumsum(dim=-1) - probs  # what the likelier ones sum to
        enough = before >= top_p  # (B, vocab_size), in sorted order
        drop = enough.scatter(-1, order, enough)  # back in the order of the ids
        logits = logits.masked_fill(drop, float("-inf"))
    return logits


def _check(idx, max_new_tokens, temperature, top_k, top_p):
    if idx.dim() != 2 or idx.shape[1] == 0:
        raise ValueError(
            f"idx has shape {tuple(idx.shape)}; generation starts from (B, T) with "
            "at least one token, for example torch.zeros(1, 1, dtype=torch.long)."
        )
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens is {max_new_tokens}; it must be 0 or more.")
    if temperature < 0:
        raise ValueError(f"temperature is {temperature}; it must be 0 or more.")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k is {top_k}; keep at least 1 token, or pass None.")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}; it must lie in (0, 1], or be None.")
