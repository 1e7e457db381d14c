"""Lesson 09: speculative decoding: a quick model drafts, the model checks.

Sources: Leviathan et al., Fast Inference from Transformers via Speculative Decoding
(2023), section 2.3 and algorithm 1; Chen et al., Accelerating Large Language Model
Decoding with Speculative Sampling (2023), algorithm 2.
"""

from typing import NamedTuple

import torch
import torch.nn as nn

from minigpt.arguments import at_least_one, check_kind, check_model
from minigpt.counts import ContextCounts
from minigpt.evaluation import judging
from minigpt.generation import check_request, probabilities
from minigpt.reading import Reader
from minigpt.tensors import vocabulary_of


class Speculation(NamedTuple):
    """What `speculate` wrote, and how often the model agreed with the draft."""

    idx: torch.Tensor  # (1, T + max_new_tokens)
    drafted: int  # tokens that the draft proposed
    accepted: int  # those of them that stand in the text
    passes: int  # of the model

    @property
    def share(self):
        """The share of the drafted tokens that was accepted; 0 if there was none."""
        return self.accepted / max(self.drafted, 1)


def speculate(
    model,
    draft,
    idx,
    max_new_tokens,
    k=4,
    temperature=1.0,
    top_k=None,
    top_p=None,
    generator=None,
    *,
    window=None,
):
    """Write as `generate` does, from the same distribution: idx (1, T) -> Speculation.

    draft: any model with the same vocabulary; it proposes up to k tokens, one after
    the other, and `model` checks them all in one pass. With temperature 0 the text
    is the one of `generate`. Where the window is full nothing is drafted, so "half"
    serves better than "slide". Raises ValueError for a batch of several rows, for k
    below 1, and as `generate`.
    """
    check_model(model)
    check_kind("draft", draft, nn.Module, "a model that drafts")
    sizes = [vocabulary_of(each) for each in (model, draft)]
    if None not in sizes and sizes[0] != sizes[1]:
        raise ValueError(
            f"The model knows {sizes[0]} ids and draft {sizes[1]}: give a draft that "
            "has the same vocabulary."
        )
    check_request(model, idx, max_new_tokens, temperature, top_k, top_p, generator)
    if len(idx) != 1:
        raise ValueError(
            f"idx has {len(idx)} rows; speculation writes one row, since each accepts "
            "another number of tokens: give idx[:1]."
        )
    at_least_one(k=k)
    knobs = temperature, top_k, top_p
    end, drafted, accepted, passes = idx.shape[1] + max_new_tokens, 0, 0, 0
    with judging(model), judging(draft):
        reader, drafter = Reader(model, window=window), Reader(draft)
        while idx.shape[1] < end:
            T = idx.shape[1]
            n = max(min(k, reader.room(idx), end - T - 1), 0)  # and the check writes 1
            text, q = idx, []
            for _ in range(n):
                q.append(probabilities(drafter(text), *knobs))  # (1, V)
                guess = torch.multinomial(q[-1], 1, generator=generator)
                text = torch.cat([text, guess], dim=1)
            logits = reader(text, last=n + 1).view(n + 1, -1)
            p = probabilities(logits, *knobs)  # (n + 1, V)
            q = torch.cat(q) if q else p[:0]  # (n, V)
            kept, next_idx = check(p, q, text[0, T:], generator)
            idx = torch.cat([text[:, : T + kept], next_idx[None]], dim=1)
            for each in (reader, drafter):
                each.forget(T + kept)
            drafted, accepted, passes = drafted + n, accepted + kept, passes + 1
    return Speculation(idx.clone(), drafted, accepted, passes)


def check(p, q, tokens, generator=None):
    """How many of n drafted tokens to keep, and the token (1,) that comes after them.

    p: (n + 1, V), the model's probabilities before each token and after the last;
    q: (n, V), the draft's, from which the tokens (n,) were drawn.

    A token x is kept with probability min(1, p(x) / q(x)). What the draft says too
    rarely then lacks max(p - q, 0): the token after the first refusal is drawn from
    that. Both together are p: Leviathan et al., appendix A.1.
    """
    n = len(tokens)
    u = torch.rand(n, generator=generator, device=p.device)
    drawn = tokens[:, None]  # (n, 1)
    fine = u * q.gather(1, drawn)[:, 0] < p[:n].gather(1, drawn)[:, 0]  # (n,)
    kept = int(fine.long().cumprod(0).sum())  # up to the first refusal
    weights = p[kept]
    if kept < n:
        lacking = (weights - q[kept]).clamp(min=0)
        weights = lacking if lacking.any() else weights  # p = q but for rounding
    return kept, torch.multinomial(weights, 1, generator=generator)


class CountingDraft(nn.Module):
    """Counts as a model to draft with: the last `order` characters look up the next.

    counts, smoothing: of lesson 08; all vocab_size ** order contexts are asked once
    and kept as a table. draft(idx) -> logits (B, T, vocab_size), None.
    Raises ValueError for an order of 0 or a table of more than 10 million numbers.
    """

    def __init__(self, counts, smoothing):
        super().__init__()
        check_kind("counts", counts, ContextCounts, "the ContextCounts of a text")
        V, self.order = counts.vocab_size, counts.order
        if self.order < 1 or V ** (self.order + 1) > 10_000_000:
            raise ValueError(
                f"A table of order {self.order} for {V} characters has "
                f"{V ** (self.order + 1):,} numbers: choose an order of 1 or more with "
                "at most 10 million."
            )
        self.block_size = self.order
        place = V ** torch.arange(self.order - 1, -1, -1)  # of each character
        contexts = torch.arange(V**self.order)[:, None] // place % V
        with torch.no_grad():
            logp = smoothing(counts(contexts))[:, -1, -1]  # (V ** order, V)
        self.register_buffer("place", place)
        self.register_buffer("table", logp)

    def forward(self, idx, targets=None):
        """Where fewer than `order` characters came before, token 0 stands in."""
        padded = nn.functional.pad(idx, (self.order - 1, 0))
        context = padded.unfold(1, self.order, 1) @ self.place  # (B, T)
        return self.table[context], None
