"""Answers to notebook 04's exercises."""

import torch
from exercises import exercises_of

from minigpt.attention import Head, attention
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention

EXERCISES = exercises_of("04")


def names():
    return {
        "Head": Head,
        "attention": attention,
        "model": LanguageModel(65, 8, 12, CausalSelfAttention(12, 4)),
        "val_data": torch.randint(65, (200,)),
    }


def defined(name, arguments, body):
    """A function's source from its body, a line or several."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"def {name}({arguments}):\n{lines}"


def count(expression):
    return defined("parameters", "C, n", f"s = C // n\nreturn {expression}")


def without(body, start="m = copy.deepcopy(model)"):
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    body = (
        f"{start}\nlayer = m.body\ns, n = layer.head_size, layer.n_head\n"
        f"a, b = h * s, h * s + s\np, qkv = layer.proj, layer.qkv.weight\n"
        f"with torch.no_grad():\n{lines}\nreturn m"
    )
    return defined("without_head", "model, h", body)


def heads(box, forward="return self.proj(torch.cat([f(x) for f in self.heads], -1))"):
    return f"""
class Heads(nn.Module):
    def __init__(self, C, n):
        super().__init__()
        self.proj = nn.Linear(C, C)
        {box}
    def forward(self, x):
        {forward}
"""


NEW = "Head(C, C // n)"


def dice(
    qkv="qkv.view(B, T, 3, n, C // n).permute(2, 0, 3, 1, 4)",
    out="attention(q, k, v)[0]",
    join="out.transpose(1, 2).reshape(B, T, C)",
    end="self.proj(out)",
):
    return f"""
class DiceHeads(nn.Module):
    def __init__(self, C, n):
        super().__init__()
        self.n = n
        self.qkv = nn.Linear(C, 3 * C, bias=False)
        self.proj = nn.Linear(C, C)
    def forward(self, x):
        B, T, C = x.shape
        n, qkv = self.n, self.qkv(x)
        q, k, v = {qkv}
        out = {out}
        out = {join}
        return {end}
"""


WRONG = {
    "04.1": {
        "The bias of the projection is missing": [
            count("4 * C * C"),
            "def parameters(n_embd, n_head):\n"
            "    size = n_embd // n_head\n"
            "    qkv = 3 * n_head * size * n_embd\n"
            "    return qkv + n_embd**2\n",
        ],
        "have too few numbers": count("3 * C * s + C * C + C"),
    },
    "04.2": {
        "works as before": without("p.weight[:, a:b].clone().zero_()"),
        "so is the projection's bias": without("p.weight[:, a:b] = 0; p.bias.zero_()"),
        "changes its input `model`": without("p.weight[:, a:b] = 0", start="m = model"),
    },
    "04.3": {
        "The bug is still there": [
            heads(f"self.heads = [{NEW} for _ in range(n)]"),
            heads(f"self.heads = tuple({NEW} for _ in range(n))"),
        ],
        "hides the symptom": heads(
            f"torch.manual_seed(0); self.heads = [{NEW} for _ in range(n)]\n"
            "        self.proj = nn.Linear(C, C)"
        ),
        "Only one head is saved": heads(f"self.heads = nn.ModuleList([{NEW}] * n)"),
        "self.proj is never called": heads(
            f"self.heads = nn.ModuleList({NEW} for _ in range(n))",
            "return torch.cat([f(x) for f in self.heads], -1)",
        ),
    },
    "04.4": {
        "something is missing around `out`": dice(end="out"),
        "The causal mask is off": dice(out="attention(q, k, v, False)[0]"),
        "head_size before n_head": dice(
            qkv="qkv.view(B, T, 3, C // n, n).permute(2, 0, 4, 1, 3)"
        ),
    },
}

RIGHT = {
    "04.1": {
        "one formula": count("4 * C * C + C"),
        "part by part": count("float(n * 3 * C * s + C * (C + 1))"),
    },
    "04.2": {
        "values silenced": without("qkv[2 * n * s + a : 2 * n * s + b] = 0"),
        "queries and values silenced": without(
            "qkv[a:b] = 0; qkv[2 * n * s + a : 2 * n * s + b] = 0"
        ),
    },
    "04.3": {
        "Sequential": heads(f"self.heads = nn.Sequential(*[{NEW} for _ in range(n)])"),
        "ModuleDict": heads(
            f"self.heads = nn.ModuleDict({{str(i): {NEW} for i in range(n)}})",
            "return self.proj(torch.cat([f(x) for f in self.heads.values()], -1))",
        ),
    },
    "04.4": {
        "cat": dice(join="torch.cat(out.unbind(1), dim=-1)"),
        "permute and view": dice(
            join="out.permute(0, 2, 1, 3).contiguous().view(B, T, C)"
        ),
    },
}
