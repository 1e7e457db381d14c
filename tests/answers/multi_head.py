"""Answers to notebook 04's exercises."""

from itertools import combinations

import torch
from exercises import exercises_of

from minigpt.attention import Head, attention
from minigpt.evaluation import evaluate
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention
from minigpt.training import train

EXERCISES = exercises_of("04")


def names():
    return {
        "combinations": combinations,
        "Head": Head,
        "attention": attention,
        "CausalSelfAttention": CausalSelfAttention,
        "model": LanguageModel(65, 8, 12, CausalSelfAttention(12, 4)),
        "train_data": torch.randint(65, (500,)),
        "val_data": torch.randint(65, (200,)),
        "train": train,
        "evaluate": evaluate,
    }


def defined(name, arguments, body):
    """A function's source from its body, a line or several."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"def {name}({arguments}):\n{lines}"


def plus(
    forward="x + self.layer(x)",
    start="plain, beside = copy.deepcopy(model), copy.deepcopy(model)",
    body="beside.body = Beside(beside.body)",
    data="train_data, val_data",
    judged="val_data",
    end="losses[0] - losses[1]",
):
    return f"""
class Beside(Beside):
    def forward(self, x):
        return {forward}
def saved(model, train_data, val_data, recipe):
    {start}
    {body}
    losses = []
    for each in (plain, beside):
        train(each, {data}, recipe)
        losses.append(evaluate(each, {judged}, recipe.block_size))
    return {end}
"""


def count(expression):
    return defined("parameters", "C, n", f"s = C // n\nreturn {expression}")


def apart(body):
    first = "w, n, s = layer.qkv.weight, layer.n_head, layer.head_size; C = n * s\n"
    return defined("take_apart", "layer, h", first + body)


def multi_query(
    q="q.view(B, T, n, s).transpose(1, 2)",
    kv="k, v = k[:, None], v[:, None]",
    out="attention(q, k, v)[0]",
    join="out.transpose(1, 2).reshape(B, T, C)",
    end="proj(out)",
):
    return defined(
        "multi_query",
        "x, query, key, value, proj, n",
        f"B, T, C = x.shape; s = C // n\nq, k, v = query(x), key(x), value(x)\n"
        f"q = {q}\n{kv}\nout = {out}\nout = {join}\nreturn {end}",
    )


def without(body, start="m = copy.deepcopy(model)"):
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    body = (
        f"{start}\nlayer = m.body\ns, n = layer.head_size, layer.n_head\n"
        f"a, b = h * s, h * s + s\np, qkv = layer.proj, layer.qkv.weight\n"
        f"with torch.no_grad():\n{lines}\nreturn m"
    )
    return defined("without_head", "model, h", body)


def stand_ins(extra, choose="max(e, key=e.get)", loss="h not in off", end="p, e[p]"):
    return defined(
        "stand_ins",
        "loss_of, n",
        f"def loss(*off):\n    return loss_of([h for h in range(n) if {loss}])\n"
        "full = loss_of(range(n))\ne = {}\n"
        "for a, b in combinations(range(n), 2):\n"
        f"    one, other, both = loss(a), loss(b), loss(a, b)\n    e[a, b] = {extra}\n"
        f"p = {choose}\nreturn {end}",
    )


RIGHT_EXTRA = "both - one - other + full"


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
        "both models have learned the same": plus(forward="self.layer(x)"),
        "`x - self.layer(x)` where": plus(forward="x - self.layer(x)"),
        "`+ self.layer(x)` left out": plus(forward="x"),
        "losses[1] - losses[0]": plus(end="losses[1] - losses[0]"),
        "`return losses` where": plus(end="losses"),
        "has been trained already": plus(
            start="plain = model",
            body="train(plain, train_data, val_data, recipe)\n"
            "    first = evaluate(plain, val_data, recipe.block_size)\n"
            "    beside = copy.deepcopy(plain)\n"
            "    beside.body = Beside(beside.body)",
            end="first - losses[1]",
        ),
        "in place": plus(start="plain, beside = model, copy.deepcopy(model)"),
        "`train(each, val_data, train_data, recipe)`": plus(
            data="val_data, train_data"
        ),
    },
    "04.2": {
        "`+ n_embd` left out": count("4 * C * C"),
        "`+ proj` left out": count("n * 3 * C * s"),
        "`// n_head` left out": count("n * 3 * C * C + C * C + C"),
        "one head only": count("3 * C * s + C * C + C"),
        "keys and values a bias": count("4 * (C * C + C)"),
        "or heads that read head_size": count("n * 3 * s * s + C * C + C"),
        "`head_size` where `n_embd` belongs": count("n * 3 * C * s + s * C + C"),
        "its own projection": count("n * (3 * C * s + C * C + C)"),
    },
    "04.3": {
        "(key[rows], query[rows], value[rows])": apart(
            "k, q, v = w.view(3, n, s, C)[:, h]\nreturn q, k, v"
        ),
        "It returns 2 values, where 3 should be": apart("return w[:2].split(1)"),
        "were neighbours": apart("return w.chunk(n)[h].chunk(3)"),
        "next heads' rows": apart("return w.split(s)[h : h + 3]"),
        "every n_head-th row": apart("return [p[h::n] for p in w.chunk(3)]"),
        "number of heads as the width": apart(
            "return [p[h * n : h * n + n] for p in w.chunk(3)]"
        ),
        "always hand over head 0": apart("return [p[:s] for p in w.chunk(3)]"),
        "`[rows]` left out": apart("return w.chunk(3)"),
        "query: The numbers are right, but transposed": apart(
            "return [p[h * s : h * s + s].T for p in w.chunk(3)]"
        ),
        "You cut columns": apart(
            "return [p[:, h * s : h * s + s] for p in w.chunk(3)]"
        ),
    },
    "04.4": {
        "leaves the numbers in memory order, where `query(x)": multi_query(
            q="q.reshape(B, n, T, s)"
        ),
        "`.transpose(1, 2)` left out": multi_query(join="out.reshape(B, T, C)"),
        "Both on the way": multi_query(
            q="q.reshape(B, n, T, s)", join="out.reshape(B, T, C)"
        ),
        "queries are interleaved": multi_query(
            q="q.view(B, T, s, n).permute(0, 3, 1, 2)"
        ),
        "outputs are interleaved": multi_query(
            join="out.permute(0, 2, 3, 1).reshape(B, T, C)"
        ),
        "values of text h": multi_query(kv=""),
        "`out` itself, without `proj`, where `proj(out)` belong": multi_query(
            end="out"
        ),
        "divide by √C": [
            multi_query(out="attention(q / n**0.5, k, v)[0]"),
            multi_query(
                out="F.softmax((q @ k.mT / C**0.5).masked_fill("
                "~torch.ones(T, T).tril().bool(), -1e9), -1) @ v"
            ),
        ],
        "mask is missing": multi_query(out="attention(q, k, v, causal=False)[0]"),
        "not side by side": [
            multi_query(join="torch.cat(out.unbind(1), dim=1)"),
            multi_query(join="torch.stack(out.unbind(1), dim=2)"),
            multi_query(join="out"),
        ],
    },
    "04.5": {
        "] = 0` left out": without("p.weight[:, a:b].clone().zero_()"),
        "layer.proj.weight[start:start + layer.head_size, :]` where": without(
            "p.weight[a:b] = 0"
        ),
        "behind the projection": without("p.weight[a:b] = 0; p.bias[a:b] = 0"),
        "mean of its values": [
            without("qkv[a:b] = 0"),
            without("qkv[n * s + a : n * s + b] = 0"),
        ],
        "input of all heads": without("qkv[:, a:b] = 0"),
        "were neighbours": without("qkv[3 * a : 3 * b] = 0"),
        "every n_head-th channel": without("p.weight[:, h::n] = 0"),
        "one channel, number h": without("p.weight[:, h] = 0"),
        "number of heads as the width": without("p.weight[:, h * n : h * n + n] = 0"),
        "counted from one": without("p.weight[:, a - s : a] = 0"),
        "switch off all the others": without(
            "p.weight[:, :a] = 0; p.weight[:, b:] = 0"
        ),
        "projection's bias is too": without("p.weight[:, a:b] = 0; p.bias.zero_()"),
        "changes `model` in place": without("p.weight[:, a:b] = 0", start="m = model"),
        "put the change under torch.no_grad()": (
            "def without_head(model, h):\n    m = copy.deepcopy(model)\n"
            "    m.body.proj.weight[:, :2] = 0\n    return m"
        ),
    },
    "04.6": {
        "`- full` left out": stand_ins("both - one - other"),
        "costs most together": stand_ins("both - full"),
        "larger of the two": stand_ins("both - max(one, other)"),
        "`h in off` where `h not in off`": stand_ins(RIGHT_EXTRA, loss="h in off"),
        "`min` where `max` belongs": stand_ins(RIGHT_EXTRA, choose="min(e, key=e.get)"),
        "sign is the wrong way": stand_ins("one + other - both - full"),
        "pair: It is right for 2 of 5": stand_ins(
            RIGHT_EXTRA, "max((p for p in e if p[1] - p[0] == 1), key=e.get)"
        ),
        "far below zero": stand_ins(
            RIGHT_EXTRA, choose="max(e, key=lambda p: abs(e[p]))"
        ),
        "not a positive one": stand_ins(f"abs({RIGHT_EXTRA})"),
        "you find no pair": stand_ins(
            RIGHT_EXTRA,
            choose="max(e, key=e.get)\nif e[p] < 0: p = None",
            end="p, e[p] if p else 0",
        ),
        "there are no heads (1, 2) among 2": defined(
            "stand_ins", "loss_of, n", "return loss_of(range(1, n + 1))"
        ),
    },
    "04.7": {
        "The bug is still there": heads(f"self.heads = [{NEW} for _ in range(n)]"),
        "A tuple hides its modules": heads(
            f"self.heads = tuple({NEW} for _ in range(n))"
        ),
        "A dict hides its modules": heads(
            f"self.heads = {{i: {NEW} for i in range(n)}}",
            "return self.proj(torch.cat([f(x) for f in self.heads.values()], -1))",
        ),
        "hides the symptom": heads(
            f"torch.manual_seed(0); self.heads = [{NEW} for _ in range(n)]\n"
            "        self.proj = nn.Linear(C, C)"
        ),
        "saving does not": (
            heads(f"self.heads = [{NEW} for _ in range(n)]")
            + "    def parameters(self):\n"
            "        yield from self.proj.parameters()\n"
            "        for head in self.heads:\n"
            "            yield from head.parameters()\n"
        ),
        "has 1 different head with queries of (2, 6)": heads(
            f"self.heads = nn.ModuleList([{NEW}] * n)"
        ),
        "has 3 different heads with queries of (6, 6)": heads(
            "self.heads = nn.ModuleList("
            "Head(C, C) for _ in range(n))\n"
            "        self.proj = nn.Linear(n * C, C)"
        ),
        "has 1 different head with queries of (6, 6)": heads(
            "self.heads = nn.ModuleList([Head(C, C)])"
        ),
        "the projection is gone": heads(
            f"self.heads = nn.ModuleList({NEW} for _ in range(n)); del self.proj",
            "return torch.cat([f(x) for f in self.heads], -1)",
        ),
        "not the heads side by side": heads(
            f"self.heads = nn.ModuleList({NEW} for _ in range(n))",
            "return torch.cat([f(x) for f in self.heads], -1)",
        ),
        "never get a gradient": heads(
            f"self.heads = nn.ModuleList({NEW} for _ in range(n))",
            "return self.proj(torch.cat([f(x).detach() for f in self.heads], -1))",
        ),
    },
    "04.8": {
        "The bug is still there": dice(join="out.reshape(B, T, C)"),
        "channels of the heads are interleaved": dice(
            join="out.permute(0, 2, 3, 1).reshape(B, T, C)"
        ),
        "time and head_size": dice(join="out.transpose(2, 3).reshape(B, T, C)"),
        "batch and heads": dice(join="out.transpose(0, 1).reshape(B, T, C)"),
        "Each head gets the mean": dice(join="out.mean(1).repeat(1, 1, n)"),
        "heads look at heads": dice(
            qkv="qkv.view(B, T, 3, n, C // n).permute(2, 0, 1, 3, 4)",
            join="out.reshape(B, T, C)",
        ),
        "Now time and heads are mixed up": dice(
            qkv="[z.reshape(B, n, T, C // n) for z in qkv.chunk(3, -1)]"
        ),
        "Now queries, keys and values": dice(qkv="qkv.reshape(3, B, n, T, C // n)"),
        "`out` itself, without `self.proj`, where `self.proj(ou": dice(end="out"),
        "divide by √C": dice(out="attention(q / n**0.5, k, v)[0]"),
        "mask is missing": dice(out="attention(q, k, v, causal=False)[0]"),
    },
}

RIGHT = {
    "04.1": {
        "the layer first, as a tensor": plus(
            forward="self.layer(x).add(x)", end="torch.tensor(losses[0] - losses[1])"
        ),
        "one after the other": """
class Beside(Beside):
    def forward(self, x):
        return self.layer(x) + x
def saved(model, train_data, val_data, recipe):
    def trained(body):
        each = copy.deepcopy(model)
        each.body = body(each.body)
        train(each, train_data, val_data, recipe)
        return evaluate(each, val_data, recipe.block_size)
    return -trained(Beside) + trained(nn.Sequential)
""",
    },
    "04.2": {
        "one formula": count("4 * C * C + C"),
        "part by part": count("float(n * 3 * C * s + C * (C + 1))"),
        "counted in a layer": defined(
            "parameters",
            "C, n",
            "return sum(p.numel() for p in CausalSelfAttention(C, n).parameters())",
        ),
    },
    "04.3": {
        "view": apart("return w.view(3, n, s, C)[:, h]"),
        "rows by number": apart(
            "return [w[i * C + h * s : i * C + h * s + s] for i in range(3)]"
        ),
        "through the identity, transposed": apart(
            "return [z.T.double() for z in "
            "layer.qkv(torch.eye(C)).view(C, 3, n, s)[:, :, h].unbind(1)]"
        ),
        "chunks, as lists": apart(
            "return [p.chunk(n)[h].tolist() for p in w.chunk(3)]"
        ),
    },
    "04.4": {
        "a head at a time": multi_query(
            kv="o = [attention(q[:, h], k, v)[0] for h in range(n)]",
            out="torch.stack(o, 1)",
        ),
        "torch's own": multi_query(
            q="torch.stack(q.chunk(n, -1), 1)",
            kv="k, v = k.unsqueeze(1), v.unsqueeze(1)",
            out="F.scaled_dot_product_attention(q, k.expand_as(q), v.expand_as(q), "
            "is_causal=True)",
            join="torch.cat(out.unbind(1), -1)",
        ),
        "einsum, in float64": multi_query(
            kv="w = torch.einsum('bnts,bus->bntu', q, k) / s**0.5\n"
            "w = w + torch.full((T, T), float('-inf')).triu(1)",
            out="torch.einsum('bntu,bus->btns', w.softmax(-1), v)",
            join="out.reshape(B, T, C)",
            end="proj(out).double()",
        ),
        "a class that is called": """
class multi_query(nn.Module):
    def __new__(cls, x, query, key, value, proj, n):
        q = query(x).unflatten(-1, (n, -1)).transpose(1, 2)
        k, v = (f(x).unsqueeze(1).repeat(1, n, 1, 1) for f in (key, value))
        return proj(attention(q, k, v)[0].transpose(1, 2).flatten(2))
""",
    },
    "04.5": {
        "values silenced": without("qkv[2 * n * s + a : 2 * n * s + b] = 0"),
        "queries and values silenced": without(
            "qkv[a:b] = 0; qkv[2 * n * s + a : 2 * n * s + b] = 0"
        ),
        "a hook": without(
            "def silence(module, inputs):\n"
            "    out = inputs[0].clone(); out[..., a:b] = 0\n"
            "    return (out,)\n"
            "p.register_forward_pre_hook(silence)"
        ),
        "columns joined anew": without(
            "p.weight.copy_(torch.cat("
            "[p.weight[:, :a], 0 * p.weight[:, a:b], p.weight[:, b:]], 1))"
        ),
        "a function": """
def without_head(model, h):
    smaller = copy.deepcopy(model)
    state = smaller.state_dict()
    kept = torch.ones(model.body.n_head, dtype=torch.float64)
    kept[h] = 0
    kept = kept.repeat_interleave(model.body.head_size)
    state["body.proj.weight"] = state["body.proj.weight"] * kept.float()
    return lambda idx: torch.func.functional_call(smaller, state, idx)[0]
""",
    },
    "04.6": {
        "the pair turned round": stand_ins(
            RIGHT_EXTRA, end="(p[1], p[0]), torch.tensor(e[p])"
        ),
        "brackets, as a list": stand_ins(
            "(both - full) - ((one - full) + (other - full))", end="[p, e[p]]"
        ),
        "a loop from the end": defined(
            "stand_ins",
            "loss_of, n",
            "best = (float('-inf'), None)\n"
            "for a in range(n):\n"
            "    for b in range(a):\n"
            "        on = set(range(n))\n"
            "        extra = loss_of(on) + loss_of(on - {a, b})\n"
            "        extra -= loss_of(on - {a})\n"
            "        extra -= loss_of(torch.tensor(list(on - {b})))\n"
            "        best = max(best, (extra, (a, b)))\n"
            "return best[1], best[0]",
        ),
    },
    "04.7": {
        "Sequential": heads(f"self.heads = nn.Sequential(*[{NEW} for _ in range(n)])"),
        "ModuleDict": heads(
            f"self.heads = nn.ModuleDict({{str(i): {NEW} for i in range(n)}})",
            "return self.proj(torch.cat([f(x) for f in self.heads.values()], -1))",
        ),
        "add_module": heads(
            f"self.heads = [{NEW} for _ in range(n)]\n"
            "        for i, head in enumerate(self.heads):\n"
            "            self.add_module(f'head{i}', head)"
        ),
        "appended": heads(
            f"self.heads = nn.ModuleList()\n"
            f"        for _ in range(n): self.heads.append({NEW})"
        ),
    },
    "04.8": {
        "cat": dice(join="torch.cat(out.unbind(1), dim=-1)"),
        "permute and view": dice(
            join="out.permute(0, 2, 1, 3).contiguous().view(B, T, C)"
        ),
        "torch's own": dice(
            qkv="[z.view(B, T, n, C // n).transpose(1, 2) for z in qkv.chunk(3, -1)]",
            out="F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        ),
    },
}
