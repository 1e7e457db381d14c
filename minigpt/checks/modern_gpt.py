"""Checks for notebook 08: norms, turns, shared heads, straight steps, fair counts."""

import torch

from minigpt.checks.core import (
    Explained,
    Sign,
    as_tensor,
    call,
    compare,
    describe,
    exercise,
    same,
)
from minigpt.checks.solutions import Solution
from minigpt.counting import ContextCounts, Smoothing
from minigpt.modern import ModernConfig
from minigpt.modern_parts import rotary_turns
from minigpt.optimizer import orthogonalize


def _randn(*shape, seed=8):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# 08.1


@exercise("08.1 The norm without the mean")
def check_rms_norm_with_gain(rms_norm_with_gain):
    """rms_norm_with_gain(x, gain): (..., C), (C,) -> (..., C)."""
    gain = torch.tensor([1.0, 2.0, 0.5])
    cases = [
        (torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]]), gain),
        (_randn(2, 4, 6) * 3 + 1, _randn(6, seed=9)),
        (torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), gain),
    ]
    hint = "Square, mean over the last dimension, root; x divided by it; then the gain."
    solution = Solution("08.1")

    but = solution.but
    known = {
        "This is LayerNorm: you subtract the mean; RMSNorm leaves it alone.": but(
            ("    mean_sq", "    x = x - x.mean(dim=-1, keepdim=True)\n    mean_sq")
        ),
        "You divide by the standard deviation: it does not know where zero is.": (
            Sign(
                lambda got, _, x, gain: any(
                    same(got[x.std(-1) > 0], (x / d * gain)[x.std(-1) > 0])
                    for d in (x.std(-1, True, keepdim=True), x.std(-1, False, True))
                )
            ),
            "Root of the mean square: no mean is subtracted on the way.",
        ),
        "The gain comes before the norm, which undoes a part of it.": but(
            ("    mean_sq", "    x = x * gain\n    mean_sq"),
            (".sqrt() * gain", ".sqrt()"),
        ),
    }
    compare(rms_norm_with_gain, solution, cases, known, atol=1e-4, hint=hint)
    return "3 tensors, a row of zeros included; with gain 1 the mean square is 1."


# 08.2


@exercise("08.2 Turn in halves")
def check_rotate_halves(rotate_halves):
    """rotate_halves(x, angles): (B, T, n_head, head_size) -> the same shape."""
    small = torch.arange(8.0).view(1, 2, 1, 4), torch.tensor([[0.0, 0.0], [1.5, 0.3]])
    square = _randn(1, 2, 2, 4), torch.tensor([[0.4, 0.1], [0.8, 0.2]])
    angles = rotary_turns(torch.arange(7), 6).angle()
    cases = [small, square, (_randn(2, 7, 3, 6), angles)]
    hint = "first, second = x.chunk(2, dim=-1): first[j] and second[j] are a pair."
    solution = Solution("08.2")

    new = "first = first * cos - second * sin"
    read = "x.chunk(2, dim=-1)", "(x[..., ::2], x[..., 1::2])"
    known = {
        "These are neighbours again, as in `rotate`; wanted are halves.": solution.but(
            read, ("torch.cat(turned, dim=-1)", "torch.stack(turned, -1).flatten(-2)")
        ),
        "You read neighbours and put them back as halves.": solution.but(read),
        "The second half is made of a first half that has turned already: keep the old "
        "one until both are done.": solution.but(
            ("turned = first * cos - second * sin,", f"{new}; turned = first,")
        ),
        "You turn the other way round. The scores would be the same; `rotate` turns "
        "from the first number of a pair to the second.": (
            "angles.sin() → -angles.sin()"
        ),
    }
    compare(rotate_halves, solution, cases, known, hint=hint)
    one = _randn(2, 1, 1, 1, 6).expand(2, 1, 7, 1, 6)  # the same q and k everywhere
    q, k = (as_tensor(call(rotate_halves, z, angles))[0, :, 0] for z in one)
    near, far = (q @ k.mT).diagonal(-2)[[0, -1]].tolist()
    return (
        "3 shapes. One q and one k at any place: two positions apart they score "
        f"{near:.4f} at the beginning and {far:.4f} at the end."
    )


# 08.3


@exercise("08.3 Heads that share a memory")
def check_grouped_attention(grouped_attention):
    """grouped_attention(q, k, v) -> (B, n_head, T, head_size), causal."""
    cases = []
    for B, n_head, n_kv_head, T, size in [(1, 4, 2, 2, 2), (2, 6, 2, 5, 4)]:
        q = _randn(B, n_head, T, size)
        k, v = _randn(2, B, n_kv_head, T, size, seed=9)
        cases.append((q, k, v))
    solution, same_heads = Solution("08.3"), _randn(3, 2, 3, 4, 2)
    cases += [(_randn(2, 6, 4, 2), *same_heads[1:]), tuple(same_heads)]
    hint = "Query heads 0 to group - 1 read key/value head 0, the next group head 1."

    repeated = "repeat_interleave(group, dim=1)"
    known = {
        "Your query heads take turns: head 0 and its neighbour read different keys.": (
            solution.but((repeated, "repeat(1, group, 1, 1)")),
            "repeat gives 0 1 0 1; repeat_interleave gives 0 0 1 1.",
        ),
        "All query heads read the first key/value head (this is multi-query).": (
            solution.but((repeated, "expand(-1, -1, -1, -1)[:, :1]"))
        ),
        "You average the key/value heads: each group has one of its own.": (
            f"{repeated} → mean(dim=1, keepdim=True)"
        ),
        "The scores are not divided by √head_size.": (
            "is_causal=True → is_causal=True, scale=1.0",
            "minigpt.attention.attention and F.scaled_dot_product_attention do it.",
        ),
    }
    compare(grouped_attention, solution, cases, known, hint=hint)
    return "4 sizes; with as many key/value heads as queries it is lesson 04's."


# 08.4


@exercise("08.4 Orthogonal without an SVD")
def check_newton_schulz(newton_schulz):
    """newton_schulz(G, steps): (m, n) -> (m, n)."""
    cases = [
        (torch.tensor([[3.0, 0.0], [0.0, 4.0]]), 1),
        (_randn(4, 2), 3),  # tall
        (_randn(2, 5), 2),  # wide
        (_randn(3, 3) * 100, 5),
    ]
    hint = "X = G / G.norm(); `steps` times X = 1.5 * X - 0.5 * X @ X.mT @ X."

    solution = Solution("08.4")
    known = {
        "You divide by the length in each step: once, before the loop, is enough.": (
            "  X = 1.5 →   X = X / X.norm(); X = 1.5"
        ),
        "This is Muon's polynomial; wanted is the cubic of the exercise.": (
            orthogonalize
        ),
    }
    compare(newton_schulz, solution, cases, known, hint=hint)
    G = _randn(6, 3)
    values = torch.linalg.svdvals(as_tensor(call(newton_schulz, G, 20)))
    return (
        "square, tall and wide. After 20 steps the singular values of a 6 by 3 matrix "
        f"lie between {values.min():.3f} and {values.max():.3f}."
    )


# 08.5


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
    hint = "All counts, minus those of the pairs whose fold is the one left out."
    solution = Solution("08.5")

    inside = "(fold != f) & (fold.diff(prepend=fold[:1]) == 0)"
    known = {
        "A pair that occurs often counts once: `table[a, b] += 1` adds once for each "
        "place, not for each time.": (
            "count.view → count.clamp(max=1).view",
            "torch.bincount(a * V + b, minlength=V * V) counts each of them.",
        ),
        "You deal the pairs out like cards; a piece is a stretch of the text. Its "
        "neighbours would tell what was left out.": ("* folds // n → % folds"),
        "The pairs across the borders of pieces are lost: they belong to the piece "
        "of their second character.": solution.but(("fold != f", inside)),
    }
    compare(counts_without, solution, cases, known, hint=hint)
    total = len(random[1]) - 1
    return f"3 texts; each of {total} pairs is missing in exactly one of 6 tables."


# 08.6


@exercise("08.6 The wrong partner")
def check_turn(turn):
    """turn(x, angles): (T, head_size), (T, head_size / 2) -> (T, head_size)."""
    cases = []
    for T, size in [(2, 4), (5, 8)]:
        angles = rotary_turns(torch.arange(T), size).angle()
        cases.append((_randn(T, size), angles))
    solution = Solution("08.6")

    def neighbours(x, angles):
        order = torch.arange(x.shape[-1]).view(-1, 2).mT.flatten()
        return solution(x[:, order], angles)[:, order.argsort()]

    ways = [
        lambda x, angles, turn=turn, sign=sign: turn(x, sign * angles)
        for turn in (solution, neighbours)
        for sign in (1, -1)
    ]

    def work(program, x, angles):  # four conventions, all of them as good
        got = program(x, angles)
        right = any(same(got, way(x, angles)) for way in ways)
        return solution(x, angles) if right else got

    hint = "Choose one convention: neighbours in both, or halves in both."
    spread = (
        "torch.cat([angles, angles], dim=-1)",
        "angles.repeat_interleave(2, dim=-1)",
    )
    next_door = "torch.stack([-x[:, 1::2], x[:, ::2]], -1).flatten(1)"
    known = {
        "The bug is still there: the same q and k at the same distance, and yet "
        "another score. The angles are laid out for neighbours, the partners are "
        "half a head away.": solution.but(spread),
        "Now it is the other way round: the angles are laid out for halves, the "
        "partners are neighbours.": solution.but(
            ("torch.cat([-second, first], dim=-1)", next_door)
        ),
        "Lengths change: a turn keeps each pair's length.": (
            Sign(
                lambda got, _, x, angles: (
                    got.shape == x.shape and not same(got.norm(dim=-1), x.norm(dim=-1))
                ),
                vague=True,
            ),
            "cos and sin are laid out alike, and a quarter turn of (a, b) is (-b, a).",
        ),
    }
    compare(turn, solution, cases, known, work=work, hint=hint)
    return "2 widths; a score depends on the distance only, lengths are kept."


# 08.7


@exercise("08.7 The norm that sees the future")
def check_head_norm(head_norm):
    """head_norm(q): (B, n_head, T, head_size) -> the same shape."""
    cases = [
        (torch.tensor([[[[3.0, 4.0], [1.0, 0.0]], [[2.0, 2.0], [0.0, 5.0]]]]),),
        (_randn(2, 3, 4, 6) * 2 + 1,),
        (torch.tensor([[[[1.0, 2.0], [0.0, 0.0]]]]),),
    ]
    hint = "Which dimension is head_size? (B, n_head, T, head_size): the last."
    solution = Solution("08.7")
    known = {
        "The bug is still there: position 0 changes when the last position does. "
        "The mean runs over T.": "dim=-1 → dim=2",
        "Positions still share a scale: the mean runs over T and head_size.": (
            "dim=-1 → dim=(2, 3)"
        ),
    }
    compare(head_norm, solution, cases, known, atol=1e-4, hint=hint)
    return "3 tensors; every position of every head has a scale of its own."


# 08.8


@exercise("08.8 A table is no matrix")
def check_for_muon(for_muon):
    """for_muon(model) -> the names of the parameters that Muon is to move."""
    plain = dict(rotary=False, bias=True, qk_norm=False, rms_norm=False)
    with torch.device("meta"):  # names and shapes will do
        models = [
            ModernConfig(7, 8, n_layer=2, n_head=2, n_embd=8, **changes).build()
            for changes in (plain, {}, {"activation": "swiglu", "n_kv_head": 1})
        ]
    hint = (
        "A row of a table is a token's own: rows say nothing about each other. "
        "Everything outside the blocks goes to AdamW."
    )
    solution = Solution("08.8")
    bug = solution.but((' and name.startswith("body.")', ""))

    def work(program, model):
        got = program(model)
        if got is None or got is ...:
            return got
        names = [got] if isinstance(got, str) else list(got)
        if not all(isinstance(name, str) for name in names) or isinstance(got, str):
            raise Explained(
                "Wanted is a list of the names of the parameters; yours holds "
                f"{describe(names[0])}.",
                "[name for name, p in model.named_parameters() if ...]",
            )
        right = solution(model)
        return {
            "too many": sorted(set(names) - set(right)),
            "missing": sorted(set(right) - set(names)),
        }

    known = {
        "The bug is still there: the embedding is a matrix by its shape, and a "
        "list of rows by its meaning. Muon lets rows that agree share one step.": (
            lambda model: work(bug, model)
        ),
        "It is the other way round: these are the names that Muon must not move.": (
            Sign(
                lambda got, _, model: (
                    len(got["too many"]) + len(solution(model))
                    == len([*model.named_parameters()])
                    and got["missing"] == sorted(solution(model))
                )
            )
        ),
        "These are names of the body's own: the model knows its parameters by their "
        "full names, with `body.` in front.": Sign(
            lambda got, *_: (
                {f"body.{name}" for name in got["too many"]} & {*got["missing"]}
            )
        ),
        "Matrices of the blocks are missing: all of them are Muon's work.": Sign(
            lambda got, *_: got["missing"]
        ),
        "A table is in that has a row for each token or each position.": Sign(
            lambda got, *_: not got["too many"][0].startswith("body.")
        ),
        "Vectors are in: Muon refuses gains and biases.": Sign(
            lambda got, *_: got["too many"][0].startswith("body.")
        ),
    }
    cases = [(model,) for model in models]
    compare(for_muon, solution, cases, known, work=work, hint=hint)
    return "3 models; matrices of the blocks only, whatever else there is."


# 08.9


@exercise("08.9 Counting your own homework")
def check_counted_loss(counted_loss):
    """counted_loss(counts, smoothing, ids) -> nats per character."""
    cases = []
    for vocab_size, order, folds, n in [(2, 3, 4, 81), (4, 5, 10, 601)]:
        generator = torch.Generator().manual_seed(n)
        ids = torch.randint(vocab_size, (n,), generator=generator)
        counts = ContextCounts(ids, vocab_size, order, folds)
        cases.append((counts, Smoothing(order), ids))
    hint = "On letters drawn at random, counting cannot get below ln V."
    solution = Solution("08.9")

    asked = "counts(x[fold][None], without=fold)"
    known = {
        "The bug is still there: below the entropy of the letters, which nobody "
        "gets below. Each piece is asked about with its own counts.": (
            ", without=fold → ",
            "counts(x, without=...) leaves a piece out. Which one?",
        ),
        "Only the piece's own counts are used: leave those out, keep the rest.": (
            solution.but((asked, f"(counts(x[fold][None]) - {asked})"))
        ),
        "One is taken from every count: a piece that holds a pair twice still "
        "knows it.": solution.but((asked, "(counts(x[fold][None]) - 1).clamp(min=0)")),
    }
    compare(counted_loss, solution, cases, known, atol=1e-4, hint=hint)
    return "2 random texts: not below the entropy any more."
