"""Answers to notebook 08's exercises."""

from exercises import edited, exercises_of

from minigpt.attention import attention
from minigpt.counting import ContextCounts, Smoothing
from minigpt.modern import ModernConfig
from minigpt.modern_parts import rms_norm, rotary_turns, rotate
from minigpt.optimizer import orthogonalize

EXERCISES = exercises_of("08")


def names():
    return {
        "attention": attention,
        "ContextCounts": ContextCounts,
        "Smoothing": Smoothing,
        "ModernConfig": ModernConfig,
        "rms_norm": rms_norm,
        "rotary_turns": rotary_turns,
        "rotate": rotate,
        "orthogonalize": orthogonalize,
    }


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def norm(expression, eps=1e-6):
    return defined(
        "rms_norm_with_gain(x, gain)",
        f"scale = 1 / (x.square().mean(-1, keepdim=True) + {eps}).sqrt()",
        f"return {expression}",
    )


def halves(
    new="torch.cat([a * cos - b * sin, b * cos + a * sin], -1)",
    pairs="x.chunk(2, dim=-1)",
    at="[:, None]",
    before="",
):
    return defined(
        "rotate_halves(x, angles)",
        before or "pass",
        f"cos, sin = angles.cos(){at}, angles.sin(){at}",
        f"a, b = {pairs}",
        f"return {new}",
    )


NEIGHBOURS = "x[..., ::2], x[..., 1::2]"
WOVEN = "torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)"


def grouped(
    k="k.repeat_interleave(g, 1)",
    v="v.repeat_interleave(g, 1)",
    out="attention(q, k, v)[0]",
):
    return defined(
        "grouped_attention(q, k, v)",
        "n, m = q.shape[1], k.shape[1]",
        "g = n // m",
        f"k, v = {k}, {v}",
        f"return {out}",
    )


def schulz(*edits):
    return edited(EXERCISES["08.4"].solution, *edits)


def left_out(*edits):
    return edited(EXERCISES["08.5"].solution, *edits)


def left_out_by(end):
    return defined(
        "counts_without(ids, V, folds)",
        "n = len(ids) - 1",
        "fold = torch.arange(n) * folds // n",
        "a, b = ids[:-1], ids[1:]",
        "total = torch.bincount(a * V + b, minlength=V * V).view(V, V)",
        *end.strip().splitlines(),
    )


def turn(*edits):
    return edited(EXERCISES["08.6"].solution, *edits)


COS = "torch.cat([angles, angles], dim=-1).cos()"
SIN = "torch.cat([angles, angles], dim=-1).sin()"
PARTNER = "torch.cat([-second, first], dim=-1)"
NEXT_DOOR = "torch.stack([-x[:, 1::2], x[:, ::2]], -1).flatten(1)"


def head_norm(dim):
    return edited(EXERCISES["08.7"].solution, ("dim=-1", f"dim={dim}"))


def muon(rule):
    return defined(
        "for_muon(model)",
        "named = model.named_parameters()",
        f"return [name for name, p in named if {rule}]",
    )


def counted(*edits):
    return edited(EXERCISES["08.9"].solution, *edits)


ASK = "counts(x[fold][None], without=fold)"
MEAN = "torch.stack(losses).mean()"

# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "08.1": {
        "`0.0` where `1e-06` belongs": norm("x * scale * gain", eps=0.0),
        "This is LayerNorm": norm("F.layer_norm(x, x.shape[-1:], gain, eps=1e-6)"),
        "by the standard deviation": [
            norm("x / x.std(-1, keepdim=True) * gain"),
            norm("x / (x.var(-1, keepdim=True, unbiased=False) + 1e-6).sqrt() * gain"),
        ],
        ".sqrt()` left out": norm("x * scale.square() * gain"),
        "`sum` where `mean` belongs": norm(
            "x / (x.norm(dim=-1, keepdim=True) + 1e-6) * gain"
        ),
        "`* gain` left out": norm("x * scale"),
        "The gain comes before": norm("rms_norm(x * gain)"),
        ".sqrt() / gain` where": norm("x * scale / gain"),
        "`x * (mean_square + 1e-06).sqrt()` where": norm("x / scale * gain"),
        "`dim=-1, keepdim=True` left out": norm(
            "x / (x.square().mean() + 1e-6).sqrt() * gain"
        ),
        "`dim=-2` where `dim=-1` belongs": norm(
            "x / (x.square().mean(-2, keepdim=True) + 1e-6).sqrt() * gain"
        ),
        "get with `.sqrt()` left out": norm(
            "x / (x.abs().mean(-1, True) + 1e-6) * gain"
        ),
        "do not fit together": norm("x * scale[..., 0] * gain"),
    },
    "08.2": {
        "These are neighbours again": halves(WOVEN, NEIGHBOURS),
        "in another order": halves(WOVEN),
        "You read neighbours": halves(pairs=NEIGHBOURS),
        "a first half that has turned already": halves(
            "torch.cat([a := a * cos - b * sin, b * cos + a * sin], -1)"
        ),
        "the other way round": halves(
            "torch.cat([a * cos + b * sin, b * cos - a * sin], -1)"
        ),
        "`first * cos + second * sin` where": halves(
            "torch.cat([a * cos + b * sin, b * cos + a * sin], -1)"
        ),
        "`cos` and `sin` exchanged": halves(
            "torch.cat([a * sin - b * cos, b * sin + a * cos], -1)"
        ),
        "two values exchanged": halves(
            "torch.cat([b * cos + a * sin, a * cos - b * sin], -1)"
        ),
    },
    "08.3": {
        "Your query heads take turns": grouped(
            "k.repeat(1, g, 1, 1)", "v.repeat(1, g, 1, 1)"
        ),
        "read the first key/value head": grouped("k[:, :1]", "v[:, :1]"),
        "You average the key/value heads": grouped(
            "k.mean(1, keepdim=True)", "v.mean(1, keepdim=True)"
        ),
        "get with `is_causal=True` left out": grouped(
            out="attention(q, k, v, False)[0]"
        ),
        "not divided by √head_size": grouped(
            out="F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)"
        ),
        "in another order": grouped(
            out="torch.cat([attention(q, k, v)[0][:, i::g] for i in range(g)], 1)"
        ),
        "The shape is (1, 2, 2, 2), but": grouped(
            "k", "v", "attention(q[:, ::g], k, v)[0]"
        ),
        "do not fit together": grouped("k", "v"),
    },
    "08.4": {
        "`/ G.norm()` left out": schulz(("G / G.norm()", "G")),
        "in each step: once": schulz(("    X = 1.5", "    X = X / X.norm(); X = 1.5")),
        "but for `G.abs().max()` where": schulz(("G.norm()", "G.abs().max()")),
        "but for `G.norm(dim=1, keepdim=True)` where": schulz(
            ("G.norm()", "G.norm(dim=1, keepdim=True)")
        ),
        "but for `0` where": schulz(("range(steps)", "range(0)")),
        "`1.5 * X + 0.5 * X @ X.mT @ X` where": schulz(("X - 0.5", "X + 0.5")),
        "but for `0.5 * X ** 3` where": schulz(("X @ X.mT @ X", "X ** 3")),
        "but for `1` where": schulz(("range(steps)", "range(1)")),
        "`range(1, steps)` where": schulz(("range(steps)", "range(1, steps)")),
        "`range(steps + 1)` where": schulz(("range(steps)", "range(steps + 1)")),
        "but for `0.5 * A` where": schulz(
            ("/ G.norm()", "/ G.norm(); A = X @ X.mT"), ("X @ X.mT @ X", "A @ X")
        ),
        "up to a constant factor": schulz(("return X", "return X * G.norm()")),
        "This is Muon's polynomial": [
            schulz(
                (
                    "1.5 * X - 0.5 * X @ X.mT @ X",
                    "3.4445 * X + (-4.775 * X @ X.mT + 2.0315 * (X @ X.mT) @ X @ X.mT)"
                    " @ X",
                )
            ),
            "newton_schulz = orthogonalize",
        ],
        "do not fit together": schulz(("X @ X.mT @ X", "X @ X @ X.mT")),
    },
    "08.5": {
        "`[fold != f]` left out": left_out_by("return total.expand(folds, -1, -1)"),
        "`fold == f` where": left_out(("!=", "==")),
        "occurs often counts once": left_out_by(
            """
tables = torch.zeros(folds, V, V)
for f in range(folds):
    tables[f, a[fold != f], b[fold != f]] += 1
return tables
"""
        ),
        "with dimensions 1, 2 exchanged": left_out(
            ("ids[:-1] * vocab_size + ids[1:]", "ids[1:] * vocab_size + ids[:-1]")
        ),
        "like cards": left_out(("* folds // n", "% folds")),
        "across the borders": left_out_by(
            """
out = torch.zeros(folds, V, V)
for i in range(1, n):
    if fold[i] == fold[i - 1]:
        out[:, a[i], b[i]] += 1
        out[fold[i], a[i], b[i]] -= 1
others = torch.arange(folds) != 0
out[others, a[0], b[0]] += 1
return out
"""
        ),
        "The shapes [2, 2] and 3": left_out((", minlength=vocab_size**2", "")),
    },
    "08.6": {
        "the same distance, and yet another score": turn(
            (COS, "angles.cos().repeat_interleave(2, 1)"),
            (SIN, "angles.sin().repeat_interleave(2, 1)"),
        ),
        "Now it is the other way round": turn((PARTNER, NEXT_DOOR)),
        "`x` and `partner` exchanged": turn((COS, "COS"), (SIN, COS), ("COS", SIN)),
        "Lengths change": turn((SIN, "angles.sin().repeat_interleave(2, 1)")),
        "The shape is (2, 2)": turn(("return x * cos", "return (x * cos")).replace(
            "partner * sin", "partner * sin)[:, :2]"
        ),
    },
    "08.7": {
        "position 0 changes when the last": head_norm("-2"),
        "over T and head_size": head_norm("(2, 3)"),
        "`dim=1` where": head_norm("1"),
        "get with `+ 1e-06` left out": head_norm("-1").replace(
            " + 1e-6).sqrt()", ").sqrt() + 1e-6"
        ),
        "`dim=0` where": head_norm("0"),
        "but for `dim=(0, 1, 2, 3)` where": head_norm("(0, 1, 2, 3)"),
        "but for `mean_square + 1e-06` where": head_norm("-1").replace(".sqrt()", ""),
        "`sum` where `mean` belongs": head_norm("-1").replace(".mean(", ".sum("),
        "/ (mean_square + 1e-06).sqrt()` left out": "def head_norm(q):\n    return q",
    },
    "08.8": {
        "a list of rows by its meaning": muon("p.dim() > 1"),
        "['lm_head.weight'], 'missing'": muon(
            "p.dim() == 2 and 'embedding' not in name"
        ),
        "['position_embedding.weight'], 'missing'": muon(
            "p.dim() == 2 and name not in ('token_embedding.weight', 'lm_head.weight')"
        ),
        "It is the other way round": muon("p.dim() != 2 or name[:5] != 'body.'"),
        "Vectors are in": muon("name.startswith('body.')"),
        "names of the body's own": muon("p.dim() == 2").replace(
            "model.", "model.body."
        ),
        "'missing': ['body.0.feed_forward": muon(
            "p.dim() == 2 and 'attention' in name"
        ),
        "'missing': ['body.0.attention": muon(
            "p.dim() == 2 and 'feed_forward' in name"
        ),
        "yours holds a tensor": defined(
            "for_muon(model)",
            "return [p for p in model.body.parameters() if p.dim() == 2]",
        ),
        "yours holds 'body": defined(
            "for_muon(model)", "return 'body.0.attention.qkv.weight'"
        ),
    },
    "08.9": {
        "below the entropy of the letters": counted((ASK, "counts(x[fold][None])")),
        "but for `0` where": counted(("without=fold", "without=0")),
        "Only the piece's own counts": counted(
            (ASK, "counts(x[fold][None]) - counts(x[fold][None], without=fold)")
        ),
        "One is taken from every count": counted(
            (ASK, "(counts(x[fold][None]) - 1).clamp(min=0)")
        ),
        "the index `0` where `-1` belongs": counted(("[0, :, -1]", "[0, :, 0]")),
        "the index `-2` where `-1` belongs": counted(("[0, :, -1]", "[0, :, -2]")),
        "but for `sum(losses)` where": counted((MEAN, "sum(losses)")),
        "but for `losses[0]` where": counted((MEAN, "losses[0]")),
        "but for `losses[-1]` where": counted((MEAN, "losses[-1]")),
    },
}

RIGHT = {
    "08.1": {
        "rms_norm": norm("rms_norm(x) * gain"),
        "torch's": norm("F.rms_norm(x, x.shape[-1:], gain, eps=1e-6)"),
        "another tiny number": norm("x * scale * gain", eps=1e-8),
    },
    "08.2": {
        "complex numbers": halves(
            "torch.cat([z.real, z.imag], -1)",
            "x.chunk(2, dim=-1)",
            before="turns = torch.polar(torch.ones_like(angles), angles)[:, None]\n"
            "    z = torch.complex(*x.chunk(2, -1)) * turns",
        ),
        "partner": halves(
            "x * torch.cat([cos, cos], -1)"
            " + torch.cat([-b, a], -1) * torch.cat([sin, sin], -1)"
        ),
        "rotate, with the channels exchanged": halves(
            "torch.cat([y[..., ::2], y[..., 1::2]], -1)",
            before="y = torch.stack(x.chunk(2, -1), -1).flatten(-2)\n"
            "    y = rotate(y, torch.polar(torch.ones_like(angles), angles))",
        ),
    },
    "08.3": {
        "enable_gqa": grouped(
            "k",
            "v",
            "F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)",
        ),
        "a dimension for the group": grouped(
            "k[:, :, None]",
            "v[:, :, None]",
            "attention(q.unflatten(1, (m, g)), k, v)[0].flatten(1, 2)",
        ),
        "a loop": grouped(
            "k",
            "v",
            "torch.stack([attention(q[:, h], k[:, h // g], v[:, h // g])[0]"
            " for h in range(n)], 1)",
        ),
    },
    "08.4": {
        "the smaller product": schulz(("X @ X.mT @ X", "X @ (X.mT @ X)")),
        "the eye": schulz(
            (
                "1.5 * X - 0.5 * X @ X.mT @ X",
                "(3 * torch.eye(len(X)) - X @ X.mT) @ X / 2",
            )
        ),
        "singular values": defined(
            "newton_schulz(G, steps)",
            "U, S, V = torch.linalg.svd(G / G.norm(), full_matrices=False)",
            "for _ in range(steps): S = 1.5 * S - 0.5 * S**3",
            "return (U * S) @ V",
        ),
    },
    "08.5": {
        "subtracted": left_out_by(
            """
own = torch.zeros(folds, V, V)
own.index_put_((fold, a, b), torch.ones(n), accumulate=True)
return total - own
"""
        ),
        "ContextCounts": (
            "def counts_without(ids, V, folds):\n"
            "    counts, each = ContextCounts(ids, V, 1, folds), torch.arange(V)\n"
            "    return torch.stack(\n"
            "        [counts(each[None], without=f)[0, :, 1] for f in range(folds)])\n"
        ),
        "a loop": left_out_by(
            """
out = torch.zeros(folds, V, V)
for f, c, d in zip(fold.tolist(), a.tolist(), b.tolist()):
    out[:, c, d] += 1
    out[f, c, d] -= 1
return out
"""
        ),
    },
    "08.6": {
        "neighbours": turn(
            (COS, "angles.cos().repeat_interleave(2, 1)"),
            (SIN, "angles.sin().repeat_interleave(2, 1)"),
            (PARTNER, NEXT_DOOR),
        ),
        "the other way": turn(("-second, first", "second, -first")),
        "rotate": (
            "def turn(x, angles):\n"
            "    turns = torch.polar(torch.ones_like(angles), angles)\n"
            "    return rotate(x[None, :, None], turns)[0, :, 0]\n"
        ),
    },
    "08.7": {
        "rms_norm": "head_norm = rms_norm",
        "dimension 3": head_norm("3"),
        "lengths": defined(
            "head_norm(q)",
            "return F.normalize(q, dim=-1) * q.shape[-1] ** 0.5",
        ),
    },
    "08.8": {
        "the body": defined(
            "for_muon(model)",
            "named = model.body.named_parameters(prefix='body')",
            "return {name for name, p in named if p.dim() == 2}",
        ),
        "neither embedding nor head": muon(
            "p.dim() == 2 and 'embedding' not in name and 'lm_head' not in name"
        ),
        "a generator": muon("p.dim() == 2 and name[:5] == 'body.'")
        .replace("[name for", "(name for")
        .replace("'body.']", "'body.')"),
    },
    "08.9": {
        "gathered": counted(
            (
                "F.nll_loss(logp, y[fold])",
                "-logp.gather(1, y[fold][:, None]).mean().item()",
            ),
            (MEAN, "sum(losses) / len(losses)"),
        ),
        "subtracted": counted(
            (
                ASK,
                "counts(x[fold][None]) - (counts(x[fold][None])"
                " - counts(x[fold][None], without=fold))",
            )
        ),
    },
}
