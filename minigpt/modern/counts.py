"""Lesson 08: how often each character followed each context, in one sorted list."""

import torch
import torch.nn.functional as F


class ContextCounts:
    """How often each character followed each context of 0 to `order` characters.

    ids: (N,) training text. It is cut into `folds` pieces of equal length; the
    counts can be asked for without those of one piece. One sorted list holds all
    (context, next character) pairs as numbers in base vocab_size. It lies on the device
    of ids; what is asked from another one is answered there.
    """

    def __init__(
        self, ids: torch.Tensor, vocab_size: int, order: int, folds: int = 10
    ) -> None:
        if vocab_size ** (order + 1) * (order + 1) >= 2**63:
            raise ValueError(
                f"Contexts of {order} characters out of {vocab_size} do not fit into "
                "64-bit numbers: choose a smaller order."
            )
        self.vocab_size, self.order, self.folds = vocab_size, order, folds
        N = len(ids)
        fold_of = torch.arange(N - 1, device=ids.device) * folds // (N - 1)  # (N - 1,)
        contexts = self._contexts(ids[None, :-1])[0]  # (N - 1, order + 1)
        pairs, counts = [], []
        for n in range(order + 1):
            there = contexts[:, n] >= 0  # the text reaches back so far
            pair = (contexts[:, n] * vocab_size + ids[1:])[there]
            distinct, place = torch.unique(pair, return_inverse=True)  # sorted
            cell = place * folds + fold_of[there]  # of a table (distinct, folds)
            table = torch.bincount(cell, minlength=len(distinct) * folds)
            pairs.append(distinct)
            counts.append(table.view(-1, folds).float())
        # Sorted as a whole, too, for longer contexts are larger numbers.
        self.pairs = torch.cat(pairs)  # (M,)
        self.by_fold = torch.cat(counts).T.contiguous()  # (folds, M)
        self.counts = self.by_fold.sum(dim=0)  # (M,)
        # The pairs of a context lie side by side: where they begin, and how many.
        context_of = self.pairs // vocab_size  # (M,)
        self.contexts, self.length = context_of.unique_consecutive(return_counts=True)
        self.first = self.length.cumsum(0) - self.length

    def _contexts(self, idx: torch.Tensor) -> torch.Tensor:
        """The last n characters at each position as one number, n = 0 ... order; -1
        where the text does not reach back so far: (B, T) -> (B, T, order + 1)."""
        B, T = idx.shape
        V, order = self.vocab_size, self.order
        if (idx >= V).any():  # it would be counted as another context
            raise ValueError(f"The id {idx.max()} is not below vocab_size = {V}.")
        codes = torch.zeros(B, T, order + 1, dtype=torch.long, device=idx.device)
        for n in range(1, min(order, T) + 1):  # one character further back
            further = idx[:, : T - n + 1] * V ** (n - 1)
            codes[:, n - 1 :, n] = codes[:, n - 1 :, n - 1] + further
        lengths = torch.arange(order + 1, device=idx.device)
        codes += V**order * lengths  # so that no two orders collide
        for n in range(2, order + 1):
            codes[:, : n - 1, n] = -1
        return codes

    def __call__(self, idx: torch.Tensor, without: int | None = None) -> torch.Tensor:
        """Counts of what followed each position's contexts, (B, T, order + 1, V).

        without: number of the fold whose counts are left out.
        """
        V, here = self.vocab_size, self.pairs.device
        asked = self._contexts(idx.to(here)).flatten()  # (R,), R questions
        place = torch.searchsorted(self.contexts, asked)
        place = place.clamp(max=len(self.contexts) - 1)
        known = self.contexts[place] == asked
        length = self.length[place] * known  # answers to each question
        row = torch.repeat_interleave(length)  # (A,): the question of each answer
        begin = length.cumsum(0) - length  # (R,): where its answers begin
        shift = self.first[place] - begin  # from there to where they lie in the list
        entry = torch.arange(len(row), device=here) + shift[row]
        values = self.counts[entry]  # (A,)
        if without is not None:
            values = values - self.by_fold[without][entry]
        out = torch.zeros(len(asked) * V, device=here)
        out[row * V + self.pairs[entry] % V] = values
        return out.view(*idx.shape, self.order + 1, V).to(idx.device)


class ContinuationCounts(ContextCounts):
    """Kneser and Ney's counts: after how many *different* characters a pair was seen.

    They take the place of "how often it was seen" for every context that could be a
    character longer: shorter than `order`, and not at the beginning of the window.
    Source: Chen and Goodman (1999), section 2.7.
    """

    def __init__(
        self, ids: torch.Tensor, vocab_size: int, order: int, folds: int = 10
    ) -> None:
        self.often = ContextCounts(ids, vocab_size, order, folds)
        vars(self).update(vars(self.often))  # the same pairs; their numbers follow
        V, base = vocab_size, vocab_size**order
        # The number of a context of n characters is n * base + code.
        context, last = self.pairs // V, self.pairs % V  # (M,) each
        n, code = context // base, context % base  # its characters, and which these are
        # Each pair (context, last) but the shortest adds one to the pair that lacks the
        # first character of the context, and so the highest digit of its code.
        longer = n > 0
        shorter = (n - 1) * base + code % V ** (n - 1).clamp(min=0)
        place = torch.searchsorted(self.pairs, (shorter * V + last)[longer])
        only = (self.by_fold == self.counts)[:, longer].float()  # seen in no other fold
        longest = n == order  # no context is longer: there it stays "how often"
        self.by_fold = (self.by_fold * longest).index_add(1, place, only)
        ones = only.new_ones(len(place))
        self.counts = (self.counts * longest).index_add(0, place, ones)

    def __call__(self, idx: torch.Tensor, without: int | None = None) -> torch.Tensor:
        """Counts of what followed each position's contexts, (B, T, order + 1, V).

        without: number of the fold whose counts are left out.
        """
        out = super().__call__(idx, without)
        often = self.often(idx[:, : max(self.order - 1, 0)], without)
        for t in range(often.shape[1]):  # the window holds no longer context there
            out[:, t, t + 1] = often[:, t, t + 1]
        return out


def window_counts(
    idx: torch.Tensor, vocab_size: int, longest: int, start: int = 0
) -> torch.Tensor:
    """How often each character has followed the last 1 ... longest characters within
    this window, so far: idx (B, T) -> (B, T - start, longest, V).

    start: positions before it are not asked.
    Source: Kuhn and De Mori, A Cache-Based Natural Language Model (1990).
    """
    begin = max(start - longest + 1, 0)
    follows = F.one_hot(idx[:, 1:], vocab_size).float()  # (B, T - 1, V)
    same = idx[:, begin:, None] == idx[:, None, :-1]  # (B, T - begin, T - 1)
    same = alike = torch.tril(same, begin - 1)  # only what came before
    levels = []
    for _ in range(longest):
        levels.append(alike.float() @ follows)
        alike = same & F.pad(alike[:, :-1, :-1], (1, 0, 1, 0))  # one character more
    return torch.stack(levels, dim=-2)[:, start - begin :]
