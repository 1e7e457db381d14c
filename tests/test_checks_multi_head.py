"""Notebook 04's exercises: solutions pass, each wrong answer gets its own words."""

import copy
from itertools import combinations

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from exercises import exercises_of, play

from minigpt.attention import Head, attention
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention, MultiHeadAttention

EXERCISES = {exercise.number: exercise for exercise in exercises_of("04")}


@pytest.fixture(scope="module")
def notebook():
    """What the notebook has defined above, with an untrained model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny tensors: threads would only wait for each other
    torch.manual_seed(3)
    model = LanguageModel(65, 8, 12, CausalSelfAttention(12, 4))
    names = dict(
        copy=copy,
        combinations=combinations,
        torch=torch,
        nn=nn,
        F=F,
        Head=Head,
        attention=attention,
        CausalSelfAttention=CausalSelfAttention,
        model=model,
        val_data=torch.randint(65, (200,)),
        bet_on_dice=lambda make_body: None,
    )
    exec("from minigpt.checks.multi_head import *", names)
    yield names
    torch.set_num_threads(threads)


def test_there_are_six_exercises_and_two_bug_hunts():
    kinds = [exercise.kind for exercise in EXERCISES.values()]
    assert kinds == 6 * ["Exercise"] + 2 * ["Bug hunt"]
    assert list(EXERCISES) == [f"04.{k}" for k in range(1, 9)]


@pytest.mark.parametrize("number", EXERCISES)
def test_the_untouched_skeleton_is_not_attempted(number, notebook):
    exercise = EXERCISES[number]
    said = play(exercise, notebook, "")
    hunt = exercise.kind == "Bug hunt"
    assert ("The bug is still there" if hunt else "not attempted yet") in said


@pytest.mark.parametrize("number", EXERCISES)
def test_the_solution_in_the_notebook_passes(number, notebook):
    exercise = EXERCISES[number]
    state = torch.get_rng_state()
    said = play(exercise, notebook, exercise.solution)
    assert "right! Verified:" in said
    if exercise.kind == "Exercise":
        assert torch.equal(state, torch.get_rng_state())


def defined(name, arguments, body):
    """A function's source from its body, a line or several."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"def {name}({arguments}):\n{lines}"


def part(body):
    first = "B, T, C = x.shape; s = C // n\n"
    return defined("part_of_head", "x, h, n", first + body)


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


MIXED = "mixes channels of several heads"
WRONG = {
    "04.1": [
        ("every n_head-th", part("return x[..., h::n]")),
        ("number of heads as the width", part("return x[..., h * n : h * n + n]")),
        ("counted from one", part("return x[..., (h - 1) * s : h * s]")),
        ("the heads overlap", part("return x[..., h : h + s]")),
        ("One channel too many", part("return x[..., h * s : h * s + s + 1]")),
        ("the slice has no end", part("return x[..., h * s :]")),
        ("You take one channel", part("return x[..., h]")),
        ("You cut in time", part("return x[:, h * s : h * s + s]")),
        ("all heads of position h", part("return x.view(B, T, n, s)[:, h]")),
        (MIXED, part("return x.reshape(B, n, T, s)[:, h]")),
        ("The shape is (1, 2, 1, 3)", part("return x.view(B, T, n, s)[:, :, [h]]")),
    ],
    "04.2": [
        ("bias of the projection", count("4 * C * C")),
        ("The projection is missing", count("n * 3 * C * s")),
        ("wide heads", count("n * 3 * C * C + C * C + C")),
        ("one head only", count("3 * C * s + C * C + C")),
        ("keys and values a bias", count("4 * (C * C + C)")),
        ("or heads that read head_size", count("n * 3 * s * s + C * C + C")),
        ("Your projection reads one head", count("n * 3 * C * s + s * C + C")),
        ("its own projection", count("n * (3 * C * s + C * C + C)")),
    ],
    "04.3": [
        (
            "order is key, query, value",
            apart("k, q, v = w.view(3, n, s, C)[:, h]\nreturn q, k, v"),
        ),
        ("were neighbours", apart("return w.chunk(n)[h].chunk(3)")),
        ("next heads' rows", apart("return w.split(s)[h : h + 3]")),
        ("every n_head-th row", apart("return [p[h::n] for p in w.chunk(3)]")),
        (
            "number of heads as the width",
            apart("return [p[h * n : h * n + n] for p in w.chunk(3)]"),
        ),
        ("always hand over head 0", apart("return [p[:s] for p in w.chunk(3)]")),
        ("all heads together", apart("return w.chunk(3)")),
        (
            "but transposed",
            apart("return [p[h * s : h * s + s].T for p in w.chunk(3)]"),
        ),
        (
            "You cut columns",
            apart("return [p[:, h * s : h * s + s] for p in w.chunk(3)]"),
        ),
    ],
    "04.4": [
        ("Your queries mix time", multi_query(q="q.reshape(B, n, T, s)")),
        ("Your way back", multi_query(join="out.reshape(B, T, C)")),
        (
            "Both on the way",
            multi_query(q="q.reshape(B, n, T, s)", join="out.reshape(B, T, C)"),
        ),
        (
            "queries are interleaved",
            multi_query(q="q.view(B, T, s, n).permute(0, 3, 1, 2)"),
        ),
        (
            "outputs are interleaved",
            multi_query(join="out.permute(0, 2, 3, 1).reshape(B, T, C)"),
        ),
        ("values of text h", multi_query(kv="")),
        ("projection is missing", multi_query(end="out")),
        ("divide by √C", multi_query(out="attention(q / n**0.5, k, v)[0]")),
        (
            "divide by √C",
            multi_query(
                out="F.softmax((q @ k.mT / C**0.5).masked_fill("
                "~torch.ones(T, T).tril().bool(), -1e9), -1) @ v"
            ),
        ),
        ("mask is missing", multi_query(out="attention(q, k, v, causal=False)[0]")),
        ("not side by side", multi_query(join="torch.cat(out.unbind(1), dim=1)")),
        ("not side by side", multi_query(join="torch.stack(out.unbind(1), dim=2)")),
        ("not side by side", multi_query(join="out")),
    ],
    "04.5": [
        ("your change does not reach it", without("p.weight[:, a:b].clone().zero_()")),
        ("rows of the projection", without("p.weight[a:b] = 0")),
        ("behind the projection", without("p.weight[a:b] = 0; p.bias[a:b] = 0")),
        ("mean of its values", without("qkv[a:b] = 0")),
        ("mean of its values", without("qkv[n * s + a : n * s + b] = 0")),
        ("input of all heads", without("qkv[:, a:b] = 0")),
        ("were neighbours", without("qkv[3 * a : 3 * b] = 0")),
        ("every n_head-th channel", without("p.weight[:, h::n] = 0")),
        (
            "number of heads as the width",
            without("p.weight[:, h * n : h * n + n] = 0"),
        ),
        ("counted from one", without("p.weight[:, a - s : a] = 0")),
        (
            "switch off all the others",
            without("p.weight[:, :a] = 0; p.weight[:, b:] = 0"),
        ),
        ("projection's bias is too", without("p.weight[:, a:b] = 0; p.bias.zero_()")),
        ("changed it in place", without("p.weight[:, a:b] = 0", start="m = model")),
        (
            "with torch.no_grad():",
            "def without_head(model, h):\n    m = copy.deepcopy(model)\n"
            "    m.body.proj.weight[:, :2] = 0\n    return m",
        ),
    ],
    "04.6": [
        ("mix losses and rises", stand_ins("both - one - other")),
        ("costs most together", stand_ins("both - full")),
        ("larger of the two", stand_ins("both - max(one, other)")),
        ("switch on the heads", stand_ins(RIGHT_EXTRA, loss="h in off")),
        ("smallest extra", stand_ins(RIGHT_EXTRA, choose="min(e, key=e.get)")),
        ("sign is the wrong way", stand_ins("one + other - both - full")),
        (
            "neighbouring heads only",
            stand_ins(
                RIGHT_EXTRA, "max((p for p in e if p[1] - p[0] == 1), key=e.get)"
            ),
        ),
        (
            "far below zero",
            stand_ins(RIGHT_EXTRA, choose="max(e, key=lambda p: abs(e[p]))"),
        ),
        ("not a positive one", stand_ins(f"abs({RIGHT_EXTRA})")),
        (
            "you find no pair",
            stand_ins(
                RIGHT_EXTRA,
                choose="max(e, key=e.get)\nif e[p] < 0: p = None",
                end="p, e[p] if p else 0",
            ),
        ),
        (
            "there are no heads (1, 2) among 2",
            defined("stand_ins", "loss_of, n", "return loss_of(range(1, n + 1))"),
        ),
    ],
    "04.7": [
        (
            "The bug is still there",
            heads(f"self.heads = [{NEW} for _ in range(n)]"),
        ),
        (
            "A tuple hides its modules",
            heads(f"self.heads = tuple({NEW} for _ in range(n))"),
        ),
        (
            "A dict hides its modules",
            heads(
                f"self.heads = {{i: {NEW} for i in range(n)}}",
                "return self.proj(torch.cat([f(x) for f in self.heads.values()], -1))",
            ),
        ),
        (
            "hides the symptom",
            heads(
                f"torch.manual_seed(0); self.heads = [{NEW} for _ in range(n)]\n"
                "        self.proj = nn.Linear(C, C)"
            ),
        ),
        (
            "saving does not",
            heads(f"self.heads = [{NEW} for _ in range(n)]")
            + "    def parameters(self):\n"
            "        yield from self.proj.parameters()\n"
            "        for head in self.heads:\n"
            "            yield from head.parameters()\n",
        ),
        ("one and the same head", heads(f"self.heads = nn.ModuleList([{NEW}] * n)")),
        (
            "Each head is wide",
            heads(
                "self.heads = nn.ModuleList("
                "Head(C, C) for _ in range(n))\n"
                "        self.proj = nn.Linear(n * C, C)"
            ),
        ),
        (
            "The projection is gone",
            heads(
                f"self.heads = nn.ModuleList({NEW} for _ in range(n)); del self.proj",
                "return torch.cat([f(x) for f in self.heads], -1)",
            ),
        ),
        (
            "not the heads side by side",
            heads(
                f"self.heads = nn.ModuleList({NEW} for _ in range(n))",
                "return torch.cat([f(x) for f in self.heads], -1)",
            ),
        ),
        (
            "never get a gradient",
            heads(
                f"self.heads = nn.ModuleList({NEW} for _ in range(n))",
                "return self.proj(torch.cat([f(x).detach() for f in self.heads], -1))",
            ),
        ),
    ],
    "04.8": [
        ("The bug is still there", dice(join="out.reshape(B, T, C)")),
        (
            "channels of the heads are interleaved",
            dice(join="out.permute(0, 2, 3, 1).reshape(B, T, C)"),
        ),
        (
            "time and head_size",
            dice(join="out.transpose(2, 3).reshape(B, T, C)"),
        ),
        ("batch and heads", dice(join="out.transpose(0, 1).reshape(B, T, C)")),
        (
            "heads look at heads",
            dice(
                qkv="qkv.view(B, T, 3, n, C // n).permute(2, 0, 1, 3, 4)",
                join="out.reshape(B, T, C)",
            ),
        ),
        (
            "Now q, k and v",
            dice(qkv="[z.reshape(B, n, T, C // n) for z in qkv.chunk(3, -1)]"),
        ),
        (
            "Now queries, keys and values",
            dice(qkv="qkv.reshape(3, B, n, T, C // n)"),
        ),
        ("projection is missing", dice(end="out")),
        ("divide by √C", dice(out="attention(q / n**0.5, k, v)[0]")),
        ("mask is missing", dice(out="attention(q, k, v, causal=False)[0]")),
    ],
}

RIGHT = {
    "04.1": [
        part("return x.chunk(n, dim=-1)[h]"),
        part("return x.double().view(B, T, n, s)[:, :, h]"),
        part(
            "return [[[x[b, t, h * s + i].item() for i in range(s)]"
            " for t in range(T)] for b in range(B)]"
        ),
        part("return torch.einsum('btns,n->bts', x.view(B, T, n, s), torch.eye(n)[h])"),
    ],
    "04.2": [
        count("4 * C * C + C"),
        count("float(n * 3 * C * s + C * (C + 1))"),
        defined(
            "parameters",
            "C, n",
            "return sum(p.numel() for p in CausalSelfAttention(C, n).parameters())",
        ),
    ],
    "04.3": [
        apart("return w.view(3, n, s, C)[:, h]"),
        apart("return [w[i * C + h * s : i * C + h * s + s] for i in range(3)]"),
        apart(
            "return [z.T.double() for z in "
            "layer.qkv(torch.eye(C)).view(C, 3, n, s)[:, :, h].unbind(1)]"
        ),
        apart("return [p.chunk(n)[h].tolist() for p in w.chunk(3)]"),
    ],
    "04.4": [
        multi_query(
            kv="o = [attention(q[:, h], k, v)[0] for h in range(n)]",
            out="torch.stack(o, 1)",
        ),
        multi_query(
            q="torch.stack(q.chunk(n, -1), 1)",
            kv="k, v = k.unsqueeze(1), v.unsqueeze(1)",
            out="F.scaled_dot_product_attention(q, k.expand_as(q), v.expand_as(q), "
            "is_causal=True)",
            join="torch.cat(out.unbind(1), -1)",
        ),
        multi_query(
            kv="w = torch.einsum('bnts,bus->bntu', q, k) / s**0.5\n"
            "w = w + torch.full((T, T), float('-inf')).triu(1)",
            out="torch.einsum('bntu,bus->btns', w.softmax(-1), v)",
            join="out.reshape(B, T, C)",
            end="proj(out).double()",
        ),
        """
class multi_query(nn.Module):
    def __new__(cls, x, query, key, value, proj, n):
        q = query(x).unflatten(-1, (n, -1)).transpose(1, 2)
        k, v = (f(x).unsqueeze(1).repeat(1, n, 1, 1) for f in (key, value))
        return proj(attention(q, k, v)[0].transpose(1, 2).flatten(2))
""",
    ],
    "04.5": [
        without("qkv[2 * n * s + a : 2 * n * s + b] = 0"),
        without("qkv[a:b] = 0; qkv[2 * n * s + a : 2 * n * s + b] = 0"),
        without(
            "def silence(module, inputs):\n"
            "    out = inputs[0].clone(); out[..., a:b] = 0\n"
            "    return (out,)\n"
            "p.register_forward_pre_hook(silence)"
        ),
        without(
            "p.weight.copy_(torch.cat("
            "[p.weight[:, :a], 0 * p.weight[:, a:b], p.weight[:, b:]], 1))"
        ),
        """
def without_head(model, h):
    smaller = copy.deepcopy(model)
    state = smaller.state_dict()
    kept = torch.ones(model.body.n_head, dtype=torch.float64)
    kept[h] = 0
    kept = kept.repeat_interleave(model.body.head_size)
    state["body.proj.weight"] = state["body.proj.weight"] * kept.float()
    return lambda idx: torch.func.functional_call(smaller, state, idx)[0]
""",
    ],
    "04.6": [
        stand_ins(RIGHT_EXTRA, end="(p[1], p[0]), torch.tensor(e[p])"),
        stand_ins("(both - full) - ((one - full) + (other - full))", end="[p, e[p]]"),
        defined(
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
    ],
    "04.7": [
        heads(f"self.heads = nn.Sequential(*[{NEW} for _ in range(n)])"),
        heads(
            f"self.heads = nn.ModuleDict({{str(i): {NEW} for i in range(n)}})",
            "return self.proj(torch.cat([f(x) for f in self.heads.values()], -1))",
        ),
        heads(
            f"self.heads = [{NEW} for _ in range(n)]\n"
            "        for i, head in enumerate(self.heads):\n"
            "            self.add_module(f'head{i}', head)"
        ),
        heads(
            f"self.heads = nn.ModuleList()\n"
            f"        for _ in range(n): self.heads.append({NEW})"
        ),
    ],
    "04.8": [
        dice(join="torch.cat(out.unbind(1), dim=-1)"),
        dice(join="out.permute(0, 2, 1, 3).contiguous().view(B, T, C)"),
        dice(
            qkv="[z.view(B, T, n, C // n).transpose(1, 2) for z in qkv.chunk(3, -1)]",
            out="F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        ),
    ],
}


@pytest.mark.parametrize(
    "number, message, code",
    [
        pytest.param(number, *row, id=f"{number} {row[0]}")
        for number, rows in WRONG.items()
        for row in rows
    ],
)
def test_a_wrong_answer_hears_what_is_wrong_with_it(number, message, code, notebook):
    said = play(EXERCISES[number], notebook, code)
    assert message in said and "right!" not in said


@pytest.mark.parametrize(
    "number, variant", [(n, i) for n, codes in RIGHT.items() for i in range(len(codes))]
)
def test_a_right_answer_may_be_written_differently(number, variant, notebook):
    code = RIGHT[number][variant]
    assert "right! Verified:" in play(EXERCISES[number], notebook, code)


def test_the_answer_to_multi_query_is_attention_with_repeated_keys(notebook):
    """The exercise says so: one key and value, shared, is a special case."""
    names = dict(notebook)
    exec(EXERCISES["04.4"].solution, names)
    layer, x = CausalSelfAttention(12, 4), torch.randn(2, 5, 12)
    query, key, value = nn.Linear(12, 12, False), *[nn.Linear(12, 3, False)] * 2
    k, v = key.weight.repeat(4, 1), value.weight.repeat(4, 1)
    layer.qkv.weight.data = torch.cat([query.weight, k, v])
    got = names["multi_query"](x, query, key, value, layer.proj, 4)
    torch.testing.assert_close(got, layer(x))


def test_a_part_taken_out_of_the_model_works_as_a_head(notebook):
    names, layer = dict(notebook), notebook["model"].body
    exec(EXERCISES["04.3"].solution, names)
    heads = MultiHeadAttention(12, 4)
    heads.proj.load_state_dict(layer.proj.state_dict())
    for h, head in enumerate(heads.heads):
        parts = names["take_apart"](layer, h)
        for linear, weight in zip((head.query, head.key, head.value), parts):
            linear.weight.data = weight.data
    x = torch.randn(2, 8, 12)
    torch.testing.assert_close(heads(x), layer(x))


@pytest.mark.parametrize("code, hidden", [("skeleton", False), ("solution", True)])
def test_the_planted_bug_of_the_dice_shows_the_future(code, hidden, notebook):
    names = dict(notebook)
    exec(getattr(EXERCISES["04.8"], code), names)
    layer, x = names["DiceHeads"](24, 3), torch.randn(2, 8, 24)
    changed = x.clone()
    changed[:, 5:] = 0
    assert torch.equal(layer(x)[:, :5], layer(changed)[:, :5]) == hidden


def test_checks_leave_the_model_as_it_was(notebook):
    before = copy.deepcopy(notebook["model"].state_dict())
    for number in ("04.3", "04.5", "04.6"):
        play(EXERCISES[number], notebook, EXERCISES[number].solution)
    after = notebook["model"].state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("number", ["04.3", "04.5", "04.6"])
def test_a_model_of_another_kind_is_named(number, notebook):
    changed = {**notebook, "model": nn.Linear(2, 2)}
    said = play(EXERCISES[number], changed, EXERCISES[number].solution)
    assert "Run the cells of section 5 again" in said
