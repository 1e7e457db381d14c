"""Notebook 03's exercises: solutions pass, skeletons wait, mistakes are named."""

import math
from textwrap import indent

import matplotlib.pyplot as plt
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from exercises import exercises_of, play

from minigpt import plots
from minigpt.attention import Head, attention, attention_weights
from minigpt.checks import self_attention
from minigpt.language_model import LanguageModel

EXERCISES = {exercise.number: exercise for exercise in exercises_of("03")}


@pytest.fixture
def namespace(monkeypatch):
    """What the notebook has defined above its exercises, with a small model."""
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    model = LanguageModel(11, 32, 16, Head(16, 16))
    val_data = torch.randint(11, (32 * 5 + 1,))
    torch.random.set_rng_state(state)
    names = [math, plt, torch, nn, F, plots, Head, LanguageModel]
    names += [attention, attention_weights]
    space = {thing.__name__.split(".")[-1]: thing for thing in names}
    space |= {"plt": plt, "F": F, "model": model, "val_data": val_data}
    checks = {n: c for n, c in vars(self_attention).items() if n.startswith("check_")}
    monkeypatch.setattr(plots, "show", lambda fig, alt: plt.close(fig))  # slow
    return space | checks


def test_six_exercises_and_two_bug_hunts():
    assert list(EXERCISES) == [f"03.{k}" for k in range(1, 9)]
    assert [e.kind for e in EXERCISES.values()].count("Bug hunt") == 2


@pytest.mark.parametrize("number", EXERCISES)
def test_the_untouched_skeleton_waits(number, namespace):
    said = play(EXERCISES[number], namespace, "")
    expected = "not attempted yet"
    if EXERCISES[number].kind == "Bug hunt":
        expected = "The bug is still there"
    assert expected in said


@pytest.mark.parametrize("number", EXERCISES)
def test_the_folded_solution_passes(number, namespace):
    said = play(EXERCISES[number], namespace, EXERCISES[number].solution)
    assert said.startswith("✓") and "Verified:" in said


@pytest.mark.parametrize("number", EXERCISES)
def test_checks_leave_the_random_state_alone(number, namespace):
    exercise = EXERCISES[number]
    exec(exercise.skeleton, namespace)
    exec(exercise.solution, namespace)
    before = torch.random.get_rng_state()
    exec(exercise.check, namespace)
    assert torch.equal(before, torch.random.get_rng_state())


# What the answers below have in common, each with its own last lines.

HEADS = {
    "03.1": """
def scaled_scores(x, W_query, W_key):
    q, k = x @ W_query, x @ W_key
    root = q.shape[-1] ** 0.5
""",
    "03.2": """
def head_in_numbers(B, T, C, H):
    n = B * T * (T + 1) / 2
""",
    "03.3": """
def cross_attention(e, f, W_query, W_key, W_value):
    q, k, v = e @ W_query, f @ W_key, f @ W_value
    root, C = q.shape[-1] ** 0.5, e.shape[-1]
""",
    "03.4": """
def look_back(T, distance):
    one = torch.eye(T)
    big = 30 * T**0.5 * one
""",
    "03.5": """
def reach(model, idx):
    T = idx.shape[1]
    places, head = torch.arange(T), model.body
    token, pos = model.token_embedding, model.position_embedding
    x = token(idx) + pos(places)
    q, k = head.query(x), head.key(x)
    past = torch.ones(T, T, dtype=torch.bool).tril()
    back = places[:, None] - places
    root = q.shape[-1] ** 0.5
    scores = q @ k.mT / root
    def mean_distance(q, k, causal=True):
        return (attention_weights(q, k, causal) * back).sum(-1)
""",
    "03.6": """
from copy import deepcopy
P, Q = "position_embedding", "body.query"
def say(p, c):
    return "positions" if p > c else "choice"
def knock_outs(model, idx, targets):
    def loss(*layers, model=model, targets=targets):
        patient = deepcopy(model)
        for layer in layers:
            nn.init.zeros_(patient.get_submodule(layer).weight)
        return patient(idx, targets)[1].item()
    w, p, c = loss(), loss(P), loss(Q)
""",
    "03.7": """
def causal_weights(q, k):
    T, head_size = q.shape[-2:]
    past = torch.tril(torch.ones(T, T))
    scores = q @ k.transpose(-2, -1) / head_size**0.5
    low = float("-inf")
    def masked(scores, past=past, low=low):
        return scores.masked_fill(past == 0, low)
""",
    "03.8": """
class TinyModel(TinyModel):
    def forward(self, idx):
        token = self.token_embedding(idx)
        embed, body, end = self.position_embedding, self.body, self.lm_head
        places = torch.arange(idx.shape[1])
""",
}


def answer(number, last_lines):
    return HEADS[number] + indent(last_lines, "    " * (2 if number == "03.8" else 1))


# For each exercise: a name for the wrong answer, its last lines, what is said.

WRONG = {
    "03.1": [
        ("no scale", "return q @ k.mT", "the scale is forgotten"),
        ("inverted", "return q @ k.mT * q.shape[-1] ** 0.5", "upside down"),
        ("minus twice", "return q @ k.mT / q.shape[-1] ** -0.5", "upside down"),
        ("root of C", "return q @ k.mT / x.shape[-1] ** 0.5", "√C, the width"),
        ("no root", "return q @ k.mT / q.shape[-1]", "the root is missing"),
        ("root of T", "return q @ k.mT / x.shape[1] ** 0.5", "You divide by √T"),
        ("root of 2", "return q @ k.mT / 2**0.5", "for the six words"),
        ("exchanged", "return k @ q.mT / q.shape[-1] ** 0.5", "rows belong to the"),
        (
            "softmax",
            "return F.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)",
            "These are weights already",
        ),
        ("x", "return x @ x.mT / q.shape[-1] ** 0.5", "x with x itself"),
        ("queries transposed", "return q.mT @ k", "transposed the queries"),
        ("not transposed", "return q @ k", ".transpose(-2, -1) belongs there"),
        ("batch transposed", "return q @ k.transpose(0, 1)", "do not fit together"),
        ("batch too", "return q @ k.permute(2, 1, 0)", "do not fit together"),
        ("a constant", "return q @ k.mT / 5**0.5", "not right yet"),
    ],
    "03.2": [
        ("one layer", "return C * H, n, H, 1", "a head has three"),
        ("two layers", "return 2 * C * H, n, H, 1", "the values' layer"),
        ("biases", "return 3 * (C + 1) * H, n, H, 1", "you count biases"),
        ("for each token", "return 3 * T * C * H, n, H, 1", "so T plays no role"),
        ("all", "return 3 * B * T * C * H, n, H, 1", "so B and T play no role"),
        ("square", "return 3 * C * C, n, H, 1", "not square"),
        ("no mask", "return 3 * C * H, B * T * T, H, 1", "mask is forgotten"),
        ("one window", "return 3 * C * H, n / B, H, 1", "that is one window"),
        ("strict", "return 3 * C * H, n - B * T, H, 1", "diagonal is missing"),
        ("half", "return 3 * C * H, B * T * T / 2, H, 1", "more than half"),
        ("variance 1", "return 3 * C * H, n, 1, 1", "only after the division"),
        ("deviation", "return 3 * C * H, n, H**0.5, 1", "standard deviation"),
        ("C", "return 3 * C * H, n, C, 1", "head_size entries each, not C"),
        ("T", "return 3 * C * H, n, T, 1", "not over tokens"),
        ("squared", "return 3 * C * H, n, H**2, 1", "they do not multiply"),
        ("root", "return 3 * C * H, n, H, H**0.5", "divides the variance by its"),
        ("unchanged", "return 3 * C * H, n, H, H", "does change the variance"),
        ("no root", "return 3 * C * H, n, H, 1 / H", "without the root"),
        ("tuned", "return 45, 3, 5, 1", "not right yet"),
        ("in part", "return 3 * C * H, n, ..., 1", "Still missing: raw_variance"),
        ("too few", "return 3 * C * H, n", "Return 4 values"),
    ],
    "03.3": [
        (
            "sources exchanged",
            "return attention(f @ W_query, e @ W_key, e @ W_value, False)[0]",
            "The sources are exchanged",
        ),
        (
            "English values",
            "return attention(q, k, e @ W_value, False)[0]",
            "what is handed over is English",
        ),
        (
            "English keys",
            "return attention(q, e @ W_key, v, False)[0]",
            "The keys come from the English",
        ),
        (
            "self-attention",
            "return attention(q, e @ W_key, e @ W_value, False)[0]",
            "no influence at all",
        ),
        ("no values", "return attention(q, k, f, False)[0]", "in place of their v"),
        ("weights", "return attention(q, k, v, False)[1]", "These are the weights"),
        ("a pair", "return attention(q, k, v, False)", "You return a pair"),
        ("mask", "return attention(q, k, v)[0]", "A causal mask is at work"),
        (
            "mask from the left",
            "s = q @ k.mT / root\n"
            "m = torch.ones_like(s).tril() == 0\n"
            "return s.masked_fill(m, -math.inf).softmax(-1) @ v",
            "A causal mask is at work",
        ),
        ("columns", "return (q @ k.mT / root).softmax(1) @ v", "the columns"),
        (
            "keys and values exchanged",
            "return attention(q, v, k, False)[0]",
            "W_key and W_value are exchanged",
        ),
        ("no scale", "return (q @ k.mT).softmax(-1) @ v", "scale is forgotten"),
        ("inverted", "return (q @ k.mT * root).softmax(-1) @ v", "upside down"),
        ("root of C", "return (q @ k.mT / C**0.5).softmax(-1) @ v", "√C, the width"),
        ("transposed", "return (q @ k / root).softmax(-1) @ v", "do not fit toget"),
    ],
    "03.4": [
        ("itself", "return big, one", "looks at itself"),
        ("forwards", "return big.roll(distance, 1), one", "wrong way round"),
        ("exchanged", "return big, one.roll(-distance, 1)", "wrong way round"),
        ("one step", "return big.roll(-1, 1), one", "one step back, whatever"),
        ("soft", "return 5 * one.roll(-distance, 1), one", "too soft"),
        ("softer", "return 30 * one.roll(-distance, 1), one", "too soft"),
        ("zeros", "return torch.zeros(T, 4), torch.ones(T, 4)", "averages evenly"),
        (
            "infinite",
            "return one.roll(-distance, 1) * math.inf, one",
            "an infinity meets a zero",
        ),
        ("one place", "return big[:1].repeat(T, 1), one", "their queries"),
        ("one matrix", "return big.roll(-distance, 1)", "Return 2 values"),
        ("flat", "return one[0], one[0]", "should be (T, head_size)"),
        ("widths", "return one, torch.ones(T, T + 1)", "need the same head_size"),
        ("in part", "return one, ...", "Still missing: W_key"),
    ],
    "03.5": [
        (
            "no positions",
            "x = token(idx)\nreturn mean_distance(head.query(x), head.key(x))",
            "position embedding is forgotten",
        ),
        (
            "positions by token",
            "x = token(idx) + pos(idx)\n"
            "return mean_distance(head.query(x), head.key(x))",
            "indexed by the tokens",
        ),
        (
            "exchanged",
            "return mean_distance(k, q)",
            "Queries and keys are exchanged",
        ),
        (
            "no mask",
            "return mean_distance(q, k, causal=False)",
            "The mask is forgotten",
        ),
        (
            "mask after softmax",
            "return (scores.softmax(-1) * past * back).sum(-1)",
            "You mask after the softmax",
        ),
        (
            "mask of 0",
            "return (scores.masked_fill(~past, 0).softmax(-1) * back).sum(-1)",
            "You mask with 0",
        ),
        (
            "columns",
            "s = scores.masked_fill(~past, -math.inf)\n"
            "return (s.softmax(1) * back).sum(-1)",
            "Softmax runs over the queries",
        ),
        (
            "sign",
            "return (attention_weights(q, k) * back.T).sum(-1)",
            "The sign is turned round",
        ),
        (
            "place",
            "return (attention_weights(q, k) * places).sum(-1)",
            "average place that is looked at",
        ),
        (
            "largest",
            "return places - attention_weights(q, k).argmax(-1)",
            "the largest weight only",
        ),
        (
            "listeners",
            "return (attention_weights(q, k) * back).sum(1)",
            "sum over those who look",
        ),
        (
            "mean",
            "return (attention_weights(q, k) * back).mean(-1)",
            "You divide by T",
        ),
        (
            "one number",
            "return (attention_weights(q, k) * back).sum(-1).mean()",
            "one number for everything",
        ),
        (
            "no scale",
            "return mean_distance(q * root, k)",
            "the scale is forgotten",
        ),
        (
            "root of C",
            "q = q * root / x.shape[-1] ** 0.5\nreturn mean_distance(q, k)",
            "√C, the width",
        ),
        (
            "no root",
            "return mean_distance(q / root, k)",
            "the root is missing",
        ),
        ("logits", "return model(idx)", "not right yet"),
        ("no attribute", "return head.weights", "no attribute 'weights'"),
    ],
    "03.6": [
        (
            "mixed",
            "return w, p, loss(P, Q), say(p, loss(P, Q))",
            "had already lost its positions",
        ),
        (
            "mixed the other way",
            "return w, loss(P, Q), c, say(loss(P, Q), c)",
            "had already lost its choice",
        ),
        (
            "one model for all",
            "nn.init.zeros_(model.get_submodule(P).weight)\n"
            "p = model(idx, targets)[1].item()\n"
            "nn.init.zeros_(model.get_submodule(Q).weight)\n"
            "return w, p, model(idx, targets)[1].item(), 'choice'",
            "had already lost its positions",
        ),
        (
            "tokens",
            "return w, loss('token_embedding'), c, 'choice'",
            "took away the token embedding",
        ),
        (
            "place 0",
            "m = deepcopy(model)\n"
            "m.position_embedding.weight.data[:] = "
            "m.position_embedding.weight.data[0].clone()\n"
            "return w, loss(model=m), c, say(p, c)",
            "the vector of place 0",
        ),
        (
            "values",
            "return w, p, loss('body.value'), say(p, c)",
            "took away the values",
        ),
        (
            "future open",
            "class Even(nn.Module):\n"
            "    def forward(self, x):\n"
            "        v = model.body.value(x)\n"
            "        return v.mean(1, keepdim=True) + 0 * v\n"
            "m = deepcopy(model)\n"
            "m.body = Even()\n"
            "return w, p, m(idx, targets)[1].item(), say(p, c)",
            "includes the future",
        ),
        ("differences", "return w, p - w, c - w, say(p, c)", "are differences"),
        (
            "input as target",
            "return tuple(loss(*n, targets=idx) "
            "for n in [[], [P], [Q]]) + (say(p, c),)",
            "repeats its input",
        ),
        (
            "sums",
            "n = targets.numel()\nreturn w * n, p * n, c * n, say(p, c)",
            "sums over all characters",
        ),
        (
            "damaged",
            "nn.init.zeros_(model.body.query.weight)\nreturn w, p, c, say(p, c)",
            "leaves the model damaged",
        ),
        ("prejudice", "return w, p, c, say(c, p)", "your own numbers say"),
        ("always positions", "return w, p, c, 'positions'", "say 'choice'"),
        ("always choice", "return w, p, c, 'choice'", "say 'positions'"),
        ("no verdict", "return w, p, c, 'both'", "The verdict is 'both'"),
        ("in part", "return w, p, ..., ...", "Still missing: no_choice, verdict"),
    ],
    "03.7": [
        (
            "0 by masked_fill",
            "return masked(scores, low=0.0).softmax(-1)",
            "The bug is still there",
        ),
        (
            "after softmax",
            "return scores.softmax(-1) * past",
            "rows no longer sum to one",
        ),
        (
            "inverted",
            "return scores.masked_fill(past == 1, -math.inf).softmax(-1)",
            "The mask is inverted",
        ),
        (
            "present hidden",
            "return masked(scores, past.tril(-1)).softmax(-1)",
            "The present is hidden",
        ),
        (
            "too wide",
            "past = torch.ones(T, T).tril(1)\nreturn masked(scores, past).softmax(-1)",
            "one step too wide",
        ),
        (
            "0 times infinity",
            "return (scores * past + (1 - past) * -math.inf).softmax(-1)",
            "you multiply infinity by 0",
        ),
        (
            "columns",
            "return masked(scores).softmax(-2)",
            "The columns sum to one",
        ),
        (
            "exchanged",
            "return masked(scores.mT).softmax(-1)",
            "Queries and keys are exchanged",
        ),
        (
            "scale lost",
            "scores = q @ k.mT\nreturn masked(scores).softmax(-1)",
            "the scale is forgotten",
        ),
        (
            "not low enough",
            "return masked(scores, low=-5.0).softmax(-1)",
            "not low enough",
        ),
        ("no mask", "return scores.softmax(-1)", "There is no mask at all"),
    ],
    "03.8": [
        (
            "modulo",
            "return end(body(token + embed(idx % embed.num_embeddings)))",
            "The bug is still there",
        ),
        ("removed", "return end(body(token))", "Without any position embedding"),
        (
            "rows of the batch",
            "return end(body(token + embed(torch.arange(idx.shape[0]))))",
            "the vector of place 0",
        ),
        ("too late", "return end(body(token) + embed(places))", "come too late"),
        (
            "from the end",
            "return end(body(token + embed(places.flip(0))))",
            "not counted from the start",
        ),
        ("tokens lost", "return end(body(embed(places) + 0 * token))", "got lost"),
        ("product", "return end(body(token * embed(places)))", "are multiplied"),
        ("from 1", "return end(body(token + embed(places + 1)))", "IndexError"),
        (
            "whole table",
            "return end(body(token + embed.weight))",
            "do not fit together",
        ),
        ("body's output", "return body(token + embed(places))", "not (B, T, V)"),
    ],
}

RIGHT = {
    "03.1": [
        "return torch.einsum('bth,bsh->bts', q, k) * q.shape[-1] ** -0.5",
        "return (q.double() / math.sqrt(k.shape[2])) @ k.double().transpose(1, 2)",
        "B, T, n = q.shape\ns = torch.zeros(B, T, T)\n"
        "for b in range(B):\n    for i in range(T):\n"
        "        for j in range(T):\n"
        "            s[b, i, j] = q[b, i] @ k[b, j] / n**0.5\nreturn s",
        "return (q @ k.mT / W_key.shape[1] ** 0.5).tolist()",
    ],
    "03.2": [
        "return [H * C * 3.0, B * sum(range(T + 1)), float(H), H / H]",
        "past = torch.ones(B, T, T).tril()\n"
        "n = sum(p.numel() for p in Head(C, H).parameters())\n"
        "return n, past.sum(), torch.tensor(H), 1.0",
    ],
    "03.3": [
        "return F.scaled_dot_product_attention(q, k, v)",
        "w = torch.einsum('bth,bsh->bts', q, k).div(root).softmax(-1)\n"
        "return torch.einsum('bts,bsh->bth', w, v).double()",
        "rows = []\nfor b in range(len(q)):\n"
        "    w = torch.exp(q[b] @ k[b].T / root)\n"
        "    rows.append((w / w.sum(-1, keepdim=True)) @ v[b])\n"
        "return torch.stack(rows)",
    ],
    "03.4": [
        "return one * 100, one.roll(distance, 1) * T",
        "q, k = torch.zeros(T, T), torch.zeros(T, T)\n"
        "for t in range(T):\n    k[t, t] = 1000\n"
        "    if t >= distance:\n        q[t, t - distance] = 1\n"
        "return q, k",
        "a = torch.arange(T).double() * 2 * math.pi / T\n"
        "b = a - distance * 2 * math.pi / T\n"
        "circle = lambda a: torch.stack([a.cos(), a.sin()], 1) * 200\n"
        "return circle(b), circle(a)",
        "return (40 * T * one.long().roll(-distance, 1)).tolist(), one.tolist()",
    ],
    "03.5": [
        "w = attention_weights(q, k).double()\n"
        "return torch.einsum('bts,ts->bt', w, back.double())",
        "return places - (attention_weights(q, k) @ places.float())",
        "w = scores.masked_fill(~past, -math.inf).softmax(-1).detach()\n"
        "out = torch.zeros(idx.shape)\nfor t in range(T):\n"
        "    for i in range(t + 1):\n"
        "        out[:, t] += (t - i) * w[:, t, i]\nreturn out.tolist()",
    ],
    "03.6": [
        "c = loss('body.key')\nreturn [w, p, c, say(p, c)]",
        "old = model.position_embedding.weight.data.clone()\n"
        "model.position_embedding.weight.data.zero_()\n"
        "p = F.cross_entropy(model(idx)[0].mT, targets)\n"
        "model.position_embedding.weight.data = old\n"
        "return torch.tensor(w), p, c, say(p, c)",
        "x = model.token_embedding(idx)\n"
        "x = x + model.position_embedding(torch.arange(idx.shape[1]))\n"
        "n = torch.arange(1, idx.shape[1] + 1)[:, None]\n"
        "mean = model.body.value(x).cumsum(1) / n\n"
        "c = F.cross_entropy(model.lm_head(mean).mT, targets).item()\n"
        "return w, p, c, say(p, c)",
    ],
    "03.7": [
        "future = torch.triu(torch.full((T, T), -math.inf), diagonal=1)\n"
        "return (scores.double() + future).softmax(-1)",
        "return masked(scores, low=-1e9).softmax(-1)",
        "w = scores.exp() * past\nreturn w / w.sum(-1, keepdim=True)",
        "return attention_weights(q, k)",
    ],
    "03.8": [
        "return end(body(token + embed.weight[: len(places)]))",
        "return end(body(token + embed(places.expand(idx.shape)))), None",
        "return end(body(embed(torch.ones_like(idx).cumsum(1) - 1) + token))",
    ],
}


@pytest.mark.parametrize(
    "number, last_lines, says",
    [
        pytest.param(number, last_lines, says, id=f"{number} {name}")
        for number, table in WRONG.items()
        for name, last_lines, says in table
    ],
)
def test_a_wrong_answer_is_recognised(number, last_lines, says, namespace):
    said = play(EXERCISES[number], namespace, answer(number, last_lines))
    assert said.startswith("✗") and says in said


@pytest.mark.parametrize(
    "number, last_lines",
    [
        pytest.param(number, last_lines, id=f"{number} variant {i}")
        for number, variants in RIGHT.items()
        for i, last_lines in enumerate(variants)
    ],
)
def test_a_right_answer_written_differently_passes(number, last_lines, namespace):
    said = play(EXERCISES[number], namespace, answer(number, last_lines))
    assert said.startswith("✓")


def test_a_module_is_as_good_as_a_function(namespace):
    code = """
class Scores(nn.Module):
    def forward(self, x, W_query, W_key):
        q, k = x @ W_query, x @ W_key
        return q @ k.mT / q.shape[-1] ** 0.5
scaled_scores = Scores()
"""
    assert play(EXERCISES["03.1"], namespace, code).startswith("✓")


def test_the_learners_own_model_is_unharmed(namespace):
    model = namespace["model"]
    (damage,) = [code for name, code, _ in WRONG["03.6"] if name == "damaged"]
    before = {name: p.clone() for name, p in model.state_dict().items()}
    play(EXERCISES["03.6"], namespace, answer("03.6", damage))
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())


def test_every_exercise_knows_many_mistakes_and_lets_two_variants_pass():
    assert all(len(WRONG[number]) >= 5 for number in EXERCISES)
    assert all(len(RIGHT[number]) >= 2 for number in EXERCISES)
