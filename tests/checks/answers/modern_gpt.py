"""Answers to notebook 08's exercises."""

from exercises import exercises_of

from minigpt.attention import attention
from minigpt.modern.parts import rms_norm

EXERCISES = exercises_of("08")


def names():
    return {"attention": attention, "rms_norm": rms_norm}


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


def muon(rule):
    return defined(
        "for_muon(model)",
        "named = model.named_parameters()",
        f"return [name for name, p in named if {rule}]",
    )


# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "08.1": {
        "is the wrong number in": norm("x * scale * gain", eps=0.0),
        "the standard deviation": norm("x / x.std(-1, keepdim=True) * gain"),
        "too much in `scale[..., 0]`": norm("x * scale[..., 0] * gain"),
        "the length of the row": norm("F.normalize(x, dim=-1) * gain"),
    },
    "08.2": {
        "you write them side by side": halves(WOVEN),
        "a * cos - b * sin": halves(
            "torch.cat([a * cos + b * sin, b * cos + a * sin], -1)"
        ),
        "The angles meet the heads": halves(at=""),
    },
    "08.3": {
        "The causal mask is missing": grouped(out="attention(q, k, v, False)[0]"),
        "right numbers in the wrong order": grouped(
            out="torch.cat([attention(q, k, v)[0][:, i::g] for i in range(g)], 1)"
        ),
        "The shape is (1, 2, 2, 1), but": grouped(
            "k", "v", "attention(q[:, ::g], k, v)[0]"
        ),
        "It raised RuntimeError": grouped("k", "v"),
    },
    "08.4": {
        "lm_head has a row for each token": muon(
            "p.dim() == 2 and 'embedding' not in name"
        ),
        "'wrong': ['position_embedding.weight']": muon(
            "p.dim() == 2 and name not in ('token_embedding.weight', 'lm_head.weight')"
        ),
        "The model's names for them": muon("p.dim() == 2").replace(
            "model.", "model.body."
        ),
        "The bug is still there": (
            "def for_muon(model):\n"
            "    named = model.named_parameters()\n"
            "    some = [n for n, p in named if p.dim() == 2]\n"
            "    return [n for n in some if 'embed' or 'head' not in n]\n"
        ),
    },
}

RIGHT = {
    "08.1": {
        "rms_norm": norm("rms_norm(x) * gain"),
        "torch's": norm("F.rms_norm(x, x.shape[-1:], gain, eps=1e-6)"),
    },
    "08.2": {
        "partner": halves(
            "x * torch.cat([cos, cos], -1)"
            " + torch.cat([-b, a], -1) * torch.cat([sin, sin], -1)"
        ),
    },
    "08.3": {
        "a dimension for the group": grouped(
            "k[:, :, None]",
            "v[:, :, None]",
            "attention(q.unflatten(1, (m, g)), k, v)[0].flatten(1, 2)",
        ),
    },
    "08.4": {
        "neither embedding nor head": muon(
            "p.dim() == 2 and 'embedding' not in name and 'lm_head' not in name"
        ),
    },
}
