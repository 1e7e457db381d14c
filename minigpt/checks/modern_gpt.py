"""Checks for notebook 08: norms, turns, shared heads, straight steps, fair counts."""

from functools import partial

import torch
import torch.nn.functional as F

from minigpt.attention import attention
from minigpt.checks.core import (
    Explained,
    Sign,
    call,
    compare,
    describe,
    exercise,
    mistakes,
    same,
)
from minigpt.counting import ContextCounts, Smoothing
from minigpt.modern import ModernConfig
from minigpt.modern_parts import rotary_turns


def _randn(*shape, seed=8):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# 08.1

EPS = 1e-6


def _rms(x, gain, dim=-1, eps=EPS, root=torch.sqrt, mean=torch.mean):
    """x / root of the mean square * gain, with mistakes to choose."""
    return x / root(mean(x.square(), dim=dim, keepdim=True) + eps) * gain


def _layer_norm(x, gain):
    return F.layer_norm(x, x.shape[-1:], gain, eps=EPS)


NORM_MISTAKES = {
    "A row of zeros gives nan: 0 / 0. Something tiny belongs under the root.": (
        partial(_rms, eps=0.0),
        "mean of squares + 1e-6, and then the root.",
    ),
    "This is LayerNorm: you subtract the mean; RMSNorm leaves it alone.": _layer_norm,
    "You divide by the standard deviation: it does not know where zero is.": (
        Sign(
            lambda got, expected, x, gain: any(
                same(got, x / (x.var(-1, unbiased=u, keepdim=True) + e).sqrt() * gain)
                for u in (True, False)
                for e in (0.0, EPS)
            )
        ),
        "Root of the mean square: no mean is subtracted on the way.",
    ),
    "The root is missing: you divide by the mean square itself.": (
        partial(_rms, root=torch.clone)
    ),
    "You sum the squares: each row gets length 1, √C times too short.": (
        partial(_rms, mean=torch.sum)
    ),
    "The gain is missing.": lambda x, gain: _rms(x, 1.0),
    "The gain comes before the norm, which undoes a part of it.": (
        lambda x, gain: _rms(x * gain, 1.0)
    ),
    "You divide by the gain: it multiplies.": lambda x, gain: _rms(x, 1 / gain),
    "You multiply by the root of the mean square: large rows grow larger.": (
        lambda x, gain: x * x.square().mean(-1, keepdim=True).sqrt() * gain
    ),
    "One scale for the whole tensor: each position has its own.": (
        lambda x, gain: x / (x.square().mean() + EPS).sqrt() * gain
    ),
    "The mean runs over the positions: a channel's scale knows the future.": (
        partial(_rms, dim=-2)
    ),
    "You take the mean of |x|: square, mean, root is the order.": (
        lambda x, gain: x / (x.abs().mean(-1, keepdim=True) + EPS) * gain
    ),
}


@exercise("08.1 The norm without the mean")
def check_rms_norm_with_gain(rms_norm_with_gain):
    """rms_norm_with_gain(x, gain): (..., C), (C,) -> (..., C)."""
    gain = torch.tensor([1.0, 2.0, 0.5])
    cases = [
        (torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]]), gain),
        (_randn(2, 4, 6) * 3 + 1, _randn(6, seed=9)),
        (torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), gain),
    ]
    known = mistakes(
        "Square, mean over the last dimension, root; x divided by it; then the gain.",
        NORM_MISTAKES,
    )
    compare(rms_norm_with_gain, _rms, cases, known, atol=1e-4)
    return "3 tensors, a row of zeros included; with gain 1 the mean square is 1."


# 08.2


def _halves(x):
    return x.chunk(2, dim=-1)


def _turn_halves(x, angles, join=torch.cat, way=1, pairs=_halves):
    """Pairs (j, j + head_size / 2) turned by angles (T, head_size / 2)."""
    cos, sin = angles.cos()[:, None], way * angles.sin()[:, None]
    first, second = pairs(x)
    turned = first * cos - second * sin, second * cos + first * sin
    return join(turned, dim=-1)


def _interleaved(parts, dim):
    return torch.stack(parts, dim=dim).flatten(-2)


def _even_odd(x):
    return x[..., ::2], x[..., 1::2]


def _mirrored(x, angles):
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    first, second = _halves(x)
    return torch.cat([first * cos + second * sin, second * cos + first * sin], -1)


def _from_outside(x):
    first, second = _halves(x)
    return first, second.flip(-1)


def _only_first(x, angles):
    first, second = _halves(x)
    return torch.cat([_halves(_turn_halves(x, angles))[0], second], -1)


TURN_MISTAKES = {
    "These are neighbours again, as in `rotate`; wanted are halves.": (
        partial(_turn_halves, join=_interleaved, pairs=_even_odd)
    ),
    "The halves are turned rightly, but put back as neighbours: q·k would not mind, "
    "the next layer would.": partial(_turn_halves, join=_interleaved),
    "You read neighbours and put them back as halves.": (
        partial(_turn_halves, pairs=_even_odd)
    ),
    "You turn the other way round. The scores would be the same; `rotate` turns "
    "from the first number of a pair to the second.": (
        partial(_turn_halves, way=-1),
        "first * cos - second * sin, second * cos + first * sin.",
    ),
    "A minus is missing: this is no turn, and pairs change their length.": (
        _mirrored,
        "first * cos - second * sin, second * cos + first * sin.",
    ),
    "Sine and cosine have changed places: position 0 must not turn at all.": (
        lambda x, angles: _turn_halves(x, torch.pi / 2 - angles)
    ),
    "The two halves have changed places.": (
        lambda x, angles: torch.cat(_halves(_turn_halves(x, angles))[::-1], -1)
    ),
    "Your pairs close in from both ends: number j belongs to j + head_size / 2.": (
        lambda x, angles: torch.cat(
            [
                (parts := _halves(_turn_halves(x, angles, pairs=_from_outside)))[0],
                parts[1].flip(-1),
            ],
            -1,
        )
    ),
    "Only the first half is new; the second is x as it was.": _only_first,
    "All pairs turn by the first pair's angle: each has its own.": (
        lambda x, angles: _turn_halves(x, angles[:, :1].expand_as(angles))
    ),
    "Nothing turns: you return x.": lambda x, angles: x,
}


@exercise("08.2 Turn in halves")
def check_rotate_halves(rotate_halves):
    """rotate_halves(x, angles): (B, T, n_head, head_size) -> the same shape."""
    small = torch.arange(8.0).view(1, 2, 1, 4), torch.tensor([[0.0, 0.0], [1.5, 0.3]])
    square = _randn(1, 2, 2, 4), torch.tensor([[0.4, 0.1], [0.8, 0.2]])
    angles = rotary_turns(torch.arange(7), 6).angle()
    cases = [small, square, (_randn(2, 7, 3, 6), angles)]
    known = mistakes(
        "first, second = x.chunk(2, dim=-1): first[j] and second[j] are a pair.",
        TURN_MISTAKES,
    )
    compare(rotate_halves, _turn_halves, cases, known)
    one = _randn(2, 1, 1, 1, 6).expand(2, 1, 7, 1, 6)  # the same q and k everywhere
    q, k = (torch.as_tensor(call(rotate_halves, z, angles))[0, :, 0] for z in one)
    scores = (q @ k.mT).detach()  # (7, 7)
    spread = max(
        (scores.diagonal(d).max() - scores.diagonal(d).min()).item()
        for d in range(-6, 7)
    )
    if spread > 1e-4:
        raise Explained(f"Scores at the same distance differ by {spread:.4f}.")
    return "3 shapes; the same q and k at any place: scores depend on the distance."


# 08.3


def _shared(q, k, v, share=None, share_v=None, causal=True, scale=1.0):
    """Attention whose query heads share the heads of k and v, as `share` says."""
    share = share or _in_a_row
    k, v = share(k, q.shape[1]), (share_v or share)(v, q.shape[1])
    return attention(q * scale, k, v, causal)[0]


def _in_a_row(z, n_head):
    return z.repeat_interleave(n_head // z.shape[1], dim=1)


def _in_turns(z, n_head):
    return z.repeat(1, n_head // z.shape[1], 1, 1)


GROUP_MISTAKES = {
    "Your query heads take turns: head 0 and its neighbour read different keys.": (
        partial(_shared, share=_in_turns),
        "repeat gives 0 1 0 1; repeat_interleave gives 0 0 1 1.",
    ),
    "Your keys stand in groups, your values take turns: they no longer match.": (
        partial(_shared, share_v=_in_turns)
    ),
    "Your values stand in groups, your keys take turns: they no longer match.": (
        partial(_shared, share=_in_turns, share_v=_in_a_row)
    ),
    "All query heads read the first key/value head (this is multi-query).": (
        partial(_shared, share=lambda z, n: z[:, :1].expand(-1, n, -1, -1))
    ),
    "You average the key/value heads: each group has one of its own.": (
        partial(_shared, share=lambda z, n: z.mean(1, keepdim=True))
    ),
    "The groups are in reverse order: the first one reads the last head.": (
        partial(_shared, share=lambda z, n: _in_a_row(z, n).flip(1))
    ),
    "The mask is missing: every position sees the future.": (
        partial(_shared, causal=False)
    ),
    "The scores are not divided by √head_size.": (
        Sign(
            lambda got, expected, q, k, v: same(
                got, _shared(q, k, v, scale=q.shape[-1] ** 0.5)
            )
        ),
        "minigpt.attention.attention and F.scaled_dot_product_attention do it.",
    ),
    "The right heads, but in another order: yours has the groups inside out.": (
        lambda q, k, v: (
            _shared(q, k, v)
            .unflatten(1, (k.shape[1], -1))
            .transpose(1, 2)
            .flatten(1, 2)
        ),
        "Heads of a group lie next to each other: (n_kv_head, group), flattened.",
    ),
    "Only n_kv_head heads come out: every query head gives one.": (
        Sign(
            lambda got, expected, q, k, v: (
                got.shape == k.shape and got.shape != expected.shape
            )
        ),
        "The queries keep their n_head heads; it is k and v that are repeated.",
    ),
}


@exercise("08.3 Heads that share a memory")
def check_grouped_attention(grouped_attention):
    """grouped_attention(q, k, v) -> (B, n_head, T, head_size), causal."""
    cases = []
    for B, n_head, n_kv_head, T, size in [(1, 4, 2, 2, 2), (2, 6, 2, 5, 4)]:
        q = _randn(B, n_head, T, size)
        k, v = _randn(2, B, n_kv_head, T, size, seed=9)
        cases.append((q, k, v))
    same_heads = _randn(3, 2, 3, 4, 2)
    cases += [(_randn(2, 6, 4, 2), *same_heads[1:]), tuple(same_heads)]
    known = mistakes(
        "Query heads 0 to group - 1 read key/value head 0, the next group head 1.",
        GROUP_MISTAKES,
    )
    compare(grouped_attention, _shared, cases, known)
    return "4 sizes; with as many key/value heads as queries it is lesson 04's."


# 08.4


def _schulz(G, steps, a=1.5, b=-0.5, start=None, step=None, again=False):
    """X <- a X + b X Xᵀ X from X = G / its length, with mistakes to choose."""
    X = G / G.norm() if start is None else start(G)
    step = step or (lambda X: a * X + b * X @ X.mT @ X)
    for _ in range(steps):
        X = step(X / X.norm() if again else X)
    return X


def _once_made(G, steps):
    X = G / G.norm()
    product = X @ X.mT
    for _ in range(steps):
        X = 1.5 * X - 0.5 * product @ X
    return X


def _muons(X):
    A = X @ X.mT
    return 3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X


SCHULZ_MISTAKES = {
    "The length is not divided out: singular values above √3 run away.": (
        partial(_schulz, start=torch.clone),
        "X = G / G.norm() before the loop.",
    ),
    "You divide by the length in each step: once, before the loop, is enough.": (
        partial(_schulz, again=True)
    ),
    "You divide by the largest number in G, not by its length.": (
        partial(_schulz, start=lambda G: G / G.abs().max())
    ),
    "Each row gets length 1 on its own: that bends the matrix.": (
        partial(_schulz, start=lambda G: F.normalize(G, dim=-1)),
        "One number for the whole matrix: G.norm().",
    ),
    "Your rows have length 1, but they are not orthogonal: no step was taken.": (
        lambda G, steps: F.normalize(G, dim=-1)
    ),
    "No step was taken: this is G divided by its length.": partial(_schulz, a=1, b=0),
    "The sign is wrong: with a plus all singular values grow.": (
        partial(_schulz, b=0.5)
    ),
    "1.5 and 0.5 have changed places.": partial(_schulz, a=0.5, b=-1.5),
    "X ** 3 cubes each number; X Xᵀ X cubes the singular values.": (
        partial(_schulz, step=lambda X: 1.5 * X - 0.5 * X**3)
    ),
    "You take one step, however many are asked for.": (
        lambda G, steps: _schulz(G, min(1, steps))
    ),
    "You take one step too few.": lambda G, steps: _schulz(G, max(0, steps - 1)),
    "You take one step too many.": lambda G, steps: _schulz(G, steps + 1),
    "X Xᵀ is made once, before the loop: it must follow X.": _once_made,
    "At the end you multiply by the length again: that undoes the work.": (
        lambda G, steps: _schulz(G, steps) * G.norm()
    ),
    "This is Muon's polynomial; wanted is the cubic of the exercise.": (
        partial(_schulz, step=_muons)
    ),
    "The result is transposed.": lambda G, steps: _schulz(G, steps).mT,
}


@exercise("08.4 Orthogonal without an SVD")
def check_newton_schulz(newton_schulz):
    """newton_schulz(G, steps): (m, n) -> (m, n)."""
    cases = [
        (torch.tensor([[3.0, 0.0], [0.0, 4.0]]), 1),
        (_randn(4, 2), 3),  # tall
        (_randn(2, 5), 2),  # wide
        (_randn(3, 3) * 100, 5),
    ]
    known = mistakes(
        "X = G / G.norm(); `steps` times X = 1.5 * X - 0.5 * X @ X.mT @ X.",
        SCHULZ_MISTAKES,
    )
    compare(newton_schulz, _schulz, cases, known)
    G = _randn(6, 3)
    values = torch.linalg.svdvals(torch.as_tensor(call(newton_schulz, G, 20)).detach())
    return (
        "square, tall and wide. After 20 steps the singular values of a 6 by 3 matrix "
        f"lie between {values.min():.3f} and {values.max():.3f}."
    )


# 08.5


def _table(ids, vocab_size, kept=None):
    """Pairs counted, where kept says so: (V, V), rows are what came first."""
    pair = ids[:-1] * vocab_size + ids[1:]
    pair = pair if kept is None else pair[kept]
    return torch.bincount(pair, minlength=vocab_size**2).view(-1, vocab_size).float()


def _cut(ids, folds):
    n = len(ids) - 1
    return torch.arange(n) * folds // n


def _left_out(ids, vocab_size, folds, fold_of=_cut, keep=torch.ne, end=None):
    """The table of each fold, of the pairs for which keep(fold of the pair, fold)."""
    fold = fold_of(ids, folds)
    tables = [_table(ids, vocab_size, kept=keep(fold, f)) for f in range(folds)]
    tables = torch.stack(tables)
    return end(tables) if end else tables


def _without_borders(ids, vocab_size, folds):
    """What comes of counting each piece by itself."""
    fold = _cut(ids, folds)
    inside = torch.ones_like(fold, dtype=torch.bool)
    inside[1:] = fold[1:] == fold[:-1]
    tables = [_table(ids, vocab_size, kept=(fold != f) & inside) for f in range(folds)]
    return torch.stack(tables)


def _repeated(ids, vocab_size, folds):
    return _table(ids, vocab_size).expand(folds, -1, -1)


LEFT_OUT_MISTAKES = {
    "Nothing is left out: every piece still sees its own counts.": _repeated,
    "The other way round: you count the piece itself, and leave out the rest.": (
        partial(_left_out, keep=torch.eq)
    ),
    "You count what came before the piece only; what comes after is fair, too.": (
        partial(_left_out, keep=torch.lt)
    ),
    "A pair that occurs often counts once: `table[a, b] += 1` adds once for each "
    "place, not for each time.": (
        partial(_left_out, end=lambda t: (t > 0).float()),
        "torch.bincount(a * V + b, minlength=V * V), or index_put_ with accumulate.",
    ),
    "Rows and columns have changed places: table[before, after].": (
        partial(_left_out, end=lambda t: t.mT)
    ),
    "These are shares; counts are wanted.": (
        partial(_left_out, end=lambda t: (t / t.sum(-1, keepdim=True)).nan_to_num())
    ),
    "You deal the pairs out like cards; a piece is a stretch of the text. Its "
    "neighbours would tell what was left out.": (
        partial(_left_out, fold_of=lambda ids, f: torch.arange(len(ids) - 1) % f)
    ),
    "The pairs across the borders of pieces are lost: they belong to the piece of "
    "their second character.": _without_borders,
    "One is taken from every count, however often the piece holds the pair.": (
        lambda ids, V, folds: (_repeated(ids, V, folds) - 1).clamp(min=0)
    ),
    "You leave out the next piece, not the piece itself.": (
        partial(_left_out, end=lambda t: t.roll(-1, 0))
    ),
}


@exercise("08.5 Leave one piece out")
def check_counts_without(counts_without):
    """counts_without(ids, vocab_size, folds) -> (folds, V, V), counts of pairs."""
    generator = torch.Generator().manual_seed(8)
    random = [
        torch.randint(v, (n,), generator=generator) for v, n in [(3, 25), (5, 61)]
    ]
    cases = [
        (torch.tensor([0, 1, 0, 1, 0, 1, 1, 0, 0]), 2, 2),
        (random[0], 3, 4),
        (random[1], 5, 6),
    ]
    known = mistakes(
        "All counts, minus those of the pairs whose fold is the one left out.",
        LEFT_OUT_MISTAKES,
    )
    compare(counts_without, _left_out, cases, known)
    total = len(random[1]) - 1
    return f"3 texts; each of {total} pairs is missing in exactly one of 6 tables."


# 08.6


def _turn(x, angles, spread="halves", partner="halves", minus=-1, way=1):
    """x * cos + partner * sin, in either convention; both must be the same."""
    angles = _SPREAD[spread](angles)
    return x * angles.cos() + way * _PARTNER[partner](x, minus) * angles.sin()


def _partner_in_halves(x, minus):
    first, second = _halves(x)
    return torch.cat([minus * second, first], -1)


def _partner_next_door(x, minus):
    return torch.stack([minus * x[..., 1::2], x[..., ::2]], -1).flatten(-2)


_SPREAD = {
    "halves": lambda angles: torch.cat([angles, angles], -1),
    "neighbours": lambda angles: angles.repeat_interleave(2, -1),
}
_PARTNER = {"halves": _partner_in_halves, "neighbours": _partner_next_door}
RIGHT_TURNS = [
    partial(_turn, spread=pairs, partner=pairs, way=way)
    for pairs in _SPREAD
    for way in (1, -1)
]
BOTH = "Choose one convention: neighbours in both, or halves in both."
PAIR_MISTAKES = {
    "The bug is still there: the same q and k at the same distance, and yet another "
    "score. The angles are laid out for neighbours, the partners are half a head "
    "away.": (partial(_turn, spread="neighbours"), BOTH),
    "Now it is the other way round: the angles are laid out for halves, the partners "
    "are neighbours.": (partial(_turn, partner="neighbours"), BOTH),
    "The minus is lost: (a, b) turns a quarter into (-b, a).": (
        Sign(
            lambda got, expected, x, angles: any(
                same(got, _turn(x, angles, p, p, minus=1)) for p in _SPREAD
            )
        ),
        "Without it this is no turn: pairs change their length.",
    ),
    "Nothing turns any more: scores then do not know the distance at all.": (
        lambda x, angles: x
    ),
    "All pairs turn by the same angle: each is to have its own.": (
        Sign(
            lambda got, expected, x, angles: any(
                same(got, turn(x, angles[:, :1].expand_as(angles)))
                for turn in RIGHT_TURNS
            )
        ),
        "Lay all angles out, and the partners to match.",
    ),
    "Sine and cosine have changed places: position 0 must not turn.": (
        Sign(
            lambda got, expected, x, angles: any(
                same(got, turn(x, torch.pi / 2 - angles)) for turn in RIGHT_TURNS
            )
        ),
        "x * cos + partner * sin.",
    ),
    "Lengths change: a turn keeps each pair's length.": (
        Sign(
            lambda got, expected, x, angles: (
                got.shape == x.shape and not same(got.norm(dim=-1), x.norm(dim=-1))
            )
        ),
        BOTH,
    ),
    "All keep their length, but scores still depend on more than the distance.": (
        Sign(lambda got, expected, x, angles: got.shape == x.shape),
        BOTH,
    ),
}


@exercise("08.6 The wrong partner")
def check_turn(turn):
    """turn(x, angles): (T, head_size), (T, head_size / 2) -> (T, head_size)."""
    cases = []
    for T, size in [(2, 4), (5, 8)]:
        angles = rotary_turns(torch.arange(T), size).angle()
        cases.append((_randn(T, size), angles))
    right = RIGHT_TURNS[0]
    for way in RIGHT_TURNS:  # four conventions, all of them as good
        if all(same(call(turn, *case), way(*case)) for case in cases):
            right = way
    compare(turn, right, cases, mistakes(BOTH, PAIR_MISTAKES))
    return "2 widths; a score depends on the distance only, lengths are kept."


# 08.7


def _norm_over(*dims):
    def program(q):
        return q / (q.square().mean(dims, keepdim=True) + EPS).sqrt()

    return program


def _so_far(q):
    """The mean square over the positions up to now: causal, and yet another norm."""
    count = torch.arange(1, q.shape[2] + 1)[:, None]
    return q / (q.square().cumsum(2) / count + EPS).sqrt()


LEAK = "Which dimension is head_size? (B, n_head, T, head_size): the last."
LEAK_MISTAKES = {
    "The bug is still there: position 0 changes when the last position does. The "
    "mean runs over T.": (_norm_over(2), LEAK),
    "Positions still share a scale: the mean runs over T and head_size.": (
        _norm_over(2, 3)
    ),
    "One scale for each text: the mean runs over all of its positions and heads.": (
        _norm_over(1, 2, 3)
    ),
    "No leak any more, but the mean runs over the heads: each has its own scale.": (
        _norm_over(1)
    ),
    "No leak any more, but all heads share a scale: the mean runs over n_head, too.": (
        _norm_over(1, 3)
    ),
    "The mean runs over the batch: texts learn about each other.": _norm_over(0),
    "One scale for everything: texts learn about each other.": _norm_over(0, 1, 2, 3),
    "No leak any more, but this is still a mean over time, up to now.": _so_far,
    "The root has gone: the mean square itself is no length.": (
        lambda q: q / (q.square().mean(-1, keepdim=True) + EPS)
    ),
    "You sum the squares: a mean belongs under the root.": (
        lambda q: q / (q.square().sum(-1, keepdim=True) + EPS).sqrt()
    ),
    "Nothing is normalised any more.": lambda q: q,
    "This is LayerNorm: RMSNorm does not subtract the mean.": (
        lambda q: F.layer_norm(q, q.shape[-1:], eps=EPS)
    ),
}


@exercise("08.7 The norm that sees the future")
def check_head_norm(head_norm):
    """head_norm(q): (B, n_head, T, head_size) -> the same shape."""
    cases = [
        (torch.tensor([[[[3.0, 4.0], [1.0, 0.0]], [[2.0, 2.0], [0.0, 5.0]]]]),),
        (_randn(2, 3, 4, 6) * 2 + 1,),
    ]
    compare(head_norm, _norm_over(3), cases, mistakes(LEAK, LEAK_MISTAKES), atol=1e-4)
    return "2 shapes; every position of every head has a scale of its own."


# 08.8


def _chosen(rule):
    """The program that gives the names for which rule(name, p) holds."""

    def program(model):
        return ", ".join(
            sorted(name for name, p in model.named_parameters() if rule(name, p))
        )

    return program


def _inside(name):
    return name.startswith("body.")


TABLES = (
    "A row of a table is a token's own: rows say nothing about each other. "
    "Everything outside the blocks goes to AdamW."
)
MUON_MISTAKES = {
    "The bug is still there: the embedding is a matrix by its shape, and a list of "
    "rows by its meaning. Muon lets rows that agree share one step.": (
        _chosen(lambda name, p: p.dim() == 2)
    ),
    "The embeddings are out, but the head is still in: it has a row for each token, "
    "too.": _chosen(lambda name, p: p.dim() == 2 and "embedding" not in name),
    "The head is out, but the embeddings are still in.": (
        _chosen(lambda name, p: p.dim() == 2 and "lm_head" not in name)
    ),
    "The token embedding is out, but positions have a table as well.": (
        _chosen(
            lambda name, p: (
                p.dim() == 2 and (_inside(name) or name == "position_embedding.weight")
            )
        )
    ),
    "Nothing is left for Muon: the matrices of the blocks are its work.": (
        _chosen(lambda name, p: False)
    ),
    "Vectors are in: Muon refuses gains and biases.": _chosen(
        lambda name, p: _inside(name)
    ),
    "The tables are chosen, and the blocks left out: the other way round.": (
        _chosen(lambda name, p: p.dim() == 2 and not _inside(name))
    ),
    "Only the attention is Muon's: the feed-forward layers are matrices, too.": (
        _chosen(lambda name, p: p.dim() == 2 and "attention" in name)
    ),
    "Only the feed-forward is Muon's: attention has matrices, too.": (
        _chosen(lambda name, p: p.dim() == 2 and "feed_forward" in name)
    ),
}


@exercise("08.8 A table is no matrix")
def check_for_muon(for_muon):
    """for_muon(model) -> the names of the parameters that Muon is to move."""
    plain = dict(rotary=False, bias=True, qk_norm=False, rms_norm=False)
    with torch.device("meta"):  # names and shapes will do
        models = [
            ModernConfig(7, 8, n_layer=2, n_head=2, n_embd=8, **changes).build()
            for changes in (plain, {}, {"activation": "swiglu", "n_kv_head": 1})
        ]

    def answer(model):
        got = for_muon(model)
        if got is None or got is ...:
            return got
        if isinstance(got, str):
            raise Explained(f"Wanted is a list of names; this is {describe(got)}.")
        got = list(got)
        if got and not all(isinstance(name, str) for name in got):
            raise Explained(
                "Wanted are the names of the parameters, not the parameters.",
                "[name for name, p in model.named_parameters() if ...]",
            )
        return ", ".join(sorted(got))

    right = _chosen(lambda name, p: _inside(name) and p.dim() == 2)
    cases = [(model,) for model in models]
    compare(answer, right, cases, mistakes(TABLES, MUON_MISTAKES))
    return "3 models; matrices of the blocks only, whatever else there is."


# 08.9


def _counted(counts, smoothing, ids, ask=None, order=-1, end=None):
    """Mean surprise at ids, with mistakes in the question or in the answer."""
    x, y = (z.view(counts.folds, -1) for z in (ids[:-1], ids[1:]))
    ask = ask or (lambda counts, x, fold: counts(x, without=fold))
    losses = []
    for fold in range(counts.folds):
        logp = smoothing(ask(counts, x[fold][None], fold))[0, :, order]
        losses.append(F.nll_loss(logp, y[fold]).detach())
    return end(torch.stack(losses)) if end else torch.stack(losses).mean()


COUNTED_MISTAKES = {
    "The bug is still there: below the entropy of the letters, which nobody gets "
    "below. Each piece is asked about with its own counts.": (
        partial(_counted, ask=lambda counts, x, fold: counts(x)),
        "counts(x, without=...) leaves a piece out. Which one?",
    ),
    "Another piece is left out than the one that is asked about.": (
        partial(
            _counted,
            ask=lambda counts, x, fold: counts(x, without=(fold + 1) % counts.folds),
        )
    ),
    "Always the same piece is left out: only that one is judged fairly.": (
        Sign(
            lambda got, expected, counts, smoothing, ids: any(
                same(
                    got,
                    _counted(
                        counts, smoothing, ids, lambda c, x, _, f=f: c(x, without=f)
                    ),
                )
                for f in range(counts.folds)
            )
        ),
        "The loop knows the number of the piece: fold.",
    ),
    "Only the piece's own counts are used: leave those out, and keep the rest.": (
        partial(
            _counted,
            ask=lambda counts, x, fold: counts(x) - counts(x, without=fold),
        )
    ),
    "One is taken from every count: a piece that holds a pair twice still knows it.": (
        partial(_counted, ask=lambda counts, x, fold: (counts(x) - 1).clamp(min=0))
    ),
    "No leak any more, but no context either: this is order 0.": (
        partial(_counted, order=0)
    ),
    "No leak any more, but this is the next shorter context.": (
        partial(_counted, order=-2)
    ),
    "This is a sum over the pieces; a mean is wanted.": partial(
        _counted, end=torch.sum
    ),
    "Only the first piece is judged.": partial(_counted, end=lambda losses: losses[0]),
    "Only the last piece is judged.": partial(_counted, end=lambda losses: losses[-1]),
}


@exercise("08.9 Counting your own homework")
def check_counted_loss(counted_loss):
    """counted_loss(counts, smoothing, ids) -> nats per character."""
    cases = []
    for vocab_size, order, folds, n in [(2, 3, 4, 81), (4, 5, 10, 601)]:
        generator = torch.Generator().manual_seed(n)
        ids = torch.randint(vocab_size, (n,), generator=generator)
        counts = ContextCounts(ids, vocab_size, order, folds)
        smoothing = Smoothing(order)
        cases.append((counts, smoothing, ids))

    def answer(counts, smoothing, ids):
        got = counted_loss(counts, smoothing, ids)
        return got.detach() if isinstance(got, torch.Tensor) else got

    known = mistakes(
        "On letters drawn at random, counting cannot get below ln V.",
        COUNTED_MISTAKES,
    )
    compare(answer, _counted, cases, known, atol=1e-4)
    return "2 random texts: not below the entropy any more."
