"""Lesson 09: speculative decoding. A fast model drafts, and the model checks.

Sources: Leviathan et al., Fast Inference from Transformers via Speculative Decoding
(2023), section 2.3 and algorithm 1; Chen et al., Accelerating Large Language Model
Decoding with Speculative Sampling (2023), algorithm 2.
"""

from typing import Any, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.fast.reader import Reader
from minigpt.generation import probabilities
from minigpt.interfaces import Model


class Speculation(NamedTuple):
    """What `speculate` wrote, and how often the model agreed with the draft."""

    idx: torch.Tensor  # (1, T + max_new_tokens)
    drafted: int  # how many tokens the draft proposed
    accepted: int  # how many of them are in the text
    passes: int  # of the model


@torch.no_grad()
def speculate(
    model: Model,
    draft: Model,
    idx: torch.Tensor,
    max_new_tokens: int,
    k: int = 4,
    generator: torch.Generator | None = None,
    **knobs: Any,
) -> Speculation:
    """Write as `generate` does, from the same distribution: idx (1, T) -> Speculation.

    draft: any model with the same vocabulary. It proposes up to k tokens, one at a
    time, and `model` checks them all in one pass. Both must be in evaluation mode.
    knobs: temperature, top_k, top_p; at temperature 0, you get the same text as from
    `generate`.
    """
    reader, drafter = Reader(model), Reader(draft)
    end, drafted, accepted, passes = idx.shape[1] + max_new_tokens, 0, 0, 0
    while idx.shape[1] < end:
        T = idx.shape[1]
        n = min(k, reader.room(T), end - T - 1)  # the check itself writes one more
        text, q = idx, []
        for _ in range(n):
            q.append(probabilities(drafter(text)[:, -1], **knobs))  # (1, V)
            guess = torch.multinomial(q[-1], 1, generator=generator)  # (1, 1)
            text = torch.cat([text, guess], dim=1)
        p = probabilities(reader(text, last=n + 1)[0], **knobs)  # (n + 1, V)
        q = torch.cat(q) if n else p[:0]  # (n, V); at the end n = 0
        kept, next_idx = check(p, q, text[0, T:], generator)
        idx = torch.cat([text[:, : T + kept], next_idx[None]], dim=1)
        reader.forget(T + kept)
        drafter.forget(T + kept)
        drafted, accepted, passes = drafted + n, accepted + kept, passes + 1
    return Speculation(idx, drafted, accepted, passes)


def check(
    p: torch.Tensor,
    q: torch.Tensor,
    tokens: torch.Tensor,
    generator: torch.Generator | None = None,
) -> tuple[int, torch.Tensor]:
    """How many of n drafted tokens to keep, and the token (1,) that follows them.

    p: (n + 1, V), the model's probabilities before each token and after the last one.
    q: (n, V), the draft's probabilities, which the tokens (n,) were drawn from.

    A token x is kept with probability min(1, p(x) / q(x)). Tokens that the draft
    proposes too rarely are still short by max(p - q, 0). The token after the first
    refusal is drawn from that. Together, this gives exactly p: Leviathan et al.,
    appendix A.1.
    """
    n = len(tokens)
    u = torch.rand(n, generator=generator, device=p.device)
    x = tokens[:, None]  # (n, 1)
    fine = u * q.gather(1, x)[:, 0] < p[:n].gather(1, x)[:, 0]  # (n,)
    kept = int(fine.long().cumprod(0).sum())  # up to the first refusal
    weights = p[kept]
    if kept < n:
        lacking = (weights - q[kept]).clamp(min=0)
        weights = lacking if lacking.any() else weights  # p = q except for rounding
    return kept, torch.multinomial(weights, 1, generator=generator)


class CountingDraft(nn.Module):
    """Draft with counts of what followed the last `order` characters in ids (N,).

    It's a table of all vocab_size ** order contexts. Each count starts at 0.01, so a
    context that never came up can propose anything. draft(idx) -> logits (B, T, V),
    None.
    """

    place: torch.Tensor  # (order,)
    table: torch.Tensor  # (vocab_size ** order, vocab_size)

    def __init__(self, ids: torch.Tensor, vocab_size: int, order: int) -> None:
        super().__init__()
        self.block_size = order
        place = vocab_size ** torch.arange(order - 1, -1, -1)  # of each character
        context = ids[:-1].unfold(0, order, 1) @ place  # (N - order,), each one number
        pairs = context * vocab_size + ids[order:]
        counts = pairs.bincount(minlength=vocab_size ** (order + 1)) + 0.01
        table = counts.view(-1, vocab_size).log()  # (vocab_size ** order, vocab_size)
        self.register_buffer("place", place)
        self.register_buffer("table", table)

    def forward(
        self, idx: torch.Tensor, targets: Any = None
    ) -> tuple[torch.Tensor, None]:
        """If there are fewer than `order` earlier characters, token 0 fills in."""
        padded = F.pad(idx, (self.block_size - 1, 0))
        context = padded.unfold(1, self.block_size, 1) @ self.place  # (B, T)
        return self.table[context], None
