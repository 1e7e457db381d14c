"""Answers to notebook 03's exercises, each written as its last lines."""

from textwrap import indent

import torch
from exercises import exercises_of

from minigpt.attention import Head, attention, attention_weights
from minigpt.language_model import LanguageModel

EXERCISES = exercises_of("03")


def names():
    return {
        "Head": Head,
        "attention": attention,
        "attention_weights": attention_weights,
        "model": LanguageModel(11, 32, 16, Head(16, 16)),
        "val_data": torch.randint(11, (32 * 5 + 1,)),
    }


# What the answers have in common; the tables give the last lines of each.
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
    "03.9": """
def find(wanted, T):
    V = len(wanted)
    one = torch.eye(V)
    q, k = torch.zeros(2, V + T, V)
    q[:V], k[:V] = one[wanted], one
""",
    "03.10": """
def train_head(x, W_query, W_key, scale, rate, steps):
    layers = [W.clone().requires_grad_() for W in (W_query, W_key)]
    past = torch.ones(len(x), len(x)).tril()
""",
    "03.8": """
class TinyModel(TinyModel):
    def forward(self, idx):
        token = self.token_embedding(idx)
        embed, body, end = self.position_embedding, self.body, self.lm_head
        places = torch.arange(idx.shape[1])
""",
}


def lines(
    scores="q @ k.T * scale",
    mask="scores = scores.masked_fill(past == 0, -math.inf)",
    loss="-log_weights.diagonal(-1).mean()",
    forget="optimizer.zero_grad()",
    move="optimizer.step()",
):
    """The last lines of train_head."""
    return f"""optimizer = torch.optim.SGD(layers, lr=rate)
losses = []
for _ in range(steps):
    q, k = x @ layers[0], x @ layers[1]
    scores = {scores}
    {mask}
    log_weights = F.log_softmax(scores, dim=-1)
    loss = {loss}
    {forget}
    loss.backward()
    {move}
    losses.append(loss.item())
return losses"""


WRONG = {
    "03.1": {
        "`/ q.shape[-1] ** 0.5` left out": "return q @ k.mT",
        "q @ k.transpose(-2, -1) * q.shape[-1] ** 0.5": (
            "return q @ k.mT * q.shape[-1] ** 0.5"
        ),
        "`-0.5` where `0.5`": "return q @ k.mT / q.shape[-1] ** -0.5",
        "the spread that these": [
            "s = q @ k.mT\nreturn s / s.std()",
            "s = q @ k.mT\nreturn (s - s.mean()) / s.std()",
        ],
        "`x` where `q` belongs": "return q @ k.mT / x.shape[-1] ** 0.5",
        "the root left out": "return q @ k.mT / q.shape[-1]",
        "the index `-2` where `-1`": "return q @ k.mT / x.shape[1] ** 0.5",
        "In this case it is 1.581": "return q @ k.mT / 2**0.5",
        "(x @ W_key, x @ W_query)": "return k @ q.mT / q.shape[-1] ** 0.5",
        "These are weights already": (
            "return F.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)"
        ),
        "x with x itself": "return x @ x.mT / q.shape[-1] ** 0.5",
        "transposed the queries": "return q.mT @ k",
        ".transpose(-2, -1) belongs there": "return q @ k",
        "do not fit together": [
            "return q @ k.transpose(0, 1)",
            "return q @ k.permute(2, 1, 0)",
        ],
        "In this case it is 0.6325": "return q @ k.mT / 5**0.5",
    },
    "03.2": {
        "parameters: Your result is what you get with `3 *` left out": (
            "return C * H, n, H, 1"
        ),
        "`2` where `3` belongs": "return 2 * C * H, n, H, 1",
        "you count biases": "return 3 * (C + 1) * H, n, H, 1",
        "T plays no role": "return 3 * T * C * H, n, H, 1",
        "B plays no role": "return 3 * B * T * C * H, n, H, 1",
        "`C` where `head_size` belongs in `3 *": "return 3 * C * C, n, H, 1",
        "mask is forgotten": "return 3 * C * H, B * T * T, H, 1",
        "`B *` left out": "return 3 * C * H, n / B, H, 1",
        "`T - 1` where": "return 3 * C * H, n - B * T, H, 1",
        "more than half": "return 3 * C * H, B * T * T / 2, H, 1",
        "only after the division": "return 3 * C * H, n, 1, 1",
        "standard deviation": "return 3 * C * H, n, H**0.5, 1",
        "raw_variance = C": "return 3 * C * H, n, C, 1",
        "raw_variance = T": "return 3 * C * H, n, T, 1",
        "raw_variance: The result is not right": "return 3 * C * H, n, H**2, 1",
        "divides the variance by its": "return 3 * C * H, n, H, H**0.5",
        "does change the variance": "return 3 * C * H, n, H, H",
        "without the root": "return 3 * C * H, n, H, 1 / H",
        "right for 1 of 4": "return 45, 3, 5, 1",
        "Still missing: raw_variance": "return 3 * C * H, n, ..., 1",
        "Return 4 values": "return 3 * C * H, n",
    },
    "03.3": {
        "The sources are exchanged": (
            "return attention(f @ W_query, e @ W_key, e @ W_value, False)[0]"
        ),
        "both sentences in a row": (
            "both = torch.cat([e, f], dim=1)\n"
            "return attention(q, both @ W_key, both @ W_value, False)[0]"
        ),
        "`english` where `french` belongs in `french @ W_value`": (
            "return attention(q, k, e @ W_value, False)[0]"
        ),
        "in `french @ W_key`": "return attention(q, e @ W_key, v, False)[0]",
        "no influence at all": "return attention(q, e @ W_key, e @ W_value, False)[0]",
        "`@ W_value` left out": "return attention(q, k, f, False)[0]",
        "(weights, weights @ v)": "return attention(q, k, v, False)[1]",
        "the one at place 0 is right": "return attention(q, k, v, False)",
        "`causal=False` left out": [
            "return attention(q, k, v)[0]",
            (
                "s = q @ k.mT / root\n"
                "m = torch.ones_like(s).tril() == 0\n"
                "return s.masked_fill(m, -math.inf).softmax(-1) @ v"
            ),
        ],
        "`dim=1` where `dim=-1` belongs": "return (q @ k.mT / root).softmax(1) @ v",
        "`k` and `v` exchanged": "return attention(q, v, k, False)[0]",
        "`/ math.sqrt(q.shape[-1])` left out": "return (q @ k.mT).softmax(-1) @ v",
        "without `math.sqrt`": "return (q @ k.mT / root**2).softmax(-1) @ v",
        "the index `-2` where `-1`": (
            "return (q @ k.mT / k.shape[1] ** 0.5).softmax(-1) @ v"
        ),
        "do not fit toget": "return (q @ k / root).softmax(-1) @ v",
    },
    "03.4": {
        ".roll(-distance, dims=1)` left out": "return big, one",
        "It looks ahead": [
            "return big.roll(distance, 1), one",
            "return big, one.roll(-distance, 1)",
        ],
        "one step back, whatever": "return big.roll(-1, 1), one",
        "too soft": [
            "return 5 * one.roll(-distance, 1), one",
            "return 30 * one.roll(-distance, 1), one",
        ],
        "x @ W_query raises an error": (
            "return 1000 * one.long().roll(-distance, 1), one"
        ),
        "an infinity meets": "return 1e30 * one.roll(-distance, 1), 1e30 * one",
        "averages evenly": "return torch.zeros(T, 4), torch.ones(T, 4)",
        "The weights are nan": "return one.roll(-distance, 1) * math.inf, one",
        "their queries": "return big[:1].repeat(T, 1), one",
        "Return 2 values": "return big.roll(-distance, 1)",
        "should be (3, head_size)": "return one[0], one[0]",
        "need the same head_size": "return one, torch.ones(T, T + 1)",
        "Still missing: W_key": "return one, ...",
    },
    "03.5": {
        "`+ model.position_embedding(places)` left out": (
            "x = token(idx)\nreturn mean_distance(head.query(x), head.key(x))"
        ),
        "`idx` where `places` belongs": (
            "x = token(idx) + pos(idx)\n"
            "return mean_distance(head.query(x), head.key(x))"
        ),
        "(head.key(x), head.query(x), head.value(x))": "return mean_distance(k, q)",
        "`if causal:` left out": "return mean_distance(q, k, causal=False)",
        "You mask after the softmax": (
            "return (scores.softmax(-1) * past * back).sum(-1)"
        ),
        "`0.0` where `float('-inf')`": (
            "return (scores.masked_fill(~past, 0).softmax(-1) * back).sum(-1)"
        ),
        "`dim=1` where `dim=-1` belongs.\n    weights =": (
            "s = scores.masked_fill(~past, -math.inf)\n"
            "return (s.softmax(1) * back).sum(-1)"
        ),
        "the two sides of `-` exchanged": (
            "return (attention_weights(q, k) * back.T).sum(-1)"
        ),
        "average place that is looked at": (
            "return (attention_weights(q, k) * places).sum(-1)"
        ),
        "return (weights * distances).sum(dim=1)": (
            "return (attention_weights(q, k) * back).sum(1)"
        ),
        "`mean` where `sum`": "return (attention_weights(q, k) * back).mean(-1)",
        "one number for everything": (
            "return (attention_weights(q, k) * back).sum(-1).mean()"
        ),
        "`/ math.sqrt(q.shape[-1])` left out": "return mean_distance(q * root, k)",
        "the index `-2` where `-1`": "return mean_distance(q * root / T**0.5, k)",
        "for the six words": "return mean_distance(q * root / 2**0.5, k)",
        "The zeros are in the right places": (
            "q = q * root / x.shape[-1] ** 0.5\nreturn mean_distance(q, k)"
        ),
        "without `math.sqrt`": "return mean_distance(q / root, k)",
        "no attribute 'weights'": "return head.weights",
    },
    "03.6": {
        "had already lost its positions": [
            "return w, p, loss(P, Q), say(p, loss(P, Q))",
            (
                "nn.init.zeros_(model.get_submodule(P).weight)\n"
                "p = model(idx, targets)[1].item()\n"
                "nn.init.zeros_(model.get_submodule(Q).weight)\n"
                "return w, p, model(idx, targets)[1].item(), 'choice'"
            ),
        ],
        "had already lost its choice": "return w, loss(P, Q), c, say(loss(P, Q), c)",
        "took away the token embedding": (
            "return w, loss('token_embedding'), c, 'choice'"
        ),
        "took away the values": "return w, p, loss('body.value'), say(p, c)",
        "are differences": "return w, p - w, c - w, say(p, c)",
        "`idx` where `targets` belongs": (
            "return tuple(loss(*n, targets=idx) for n in [[], [P], [Q]]) + (say(p, c),)"
        ),
        "changes its input in place": (
            "nn.init.zeros_(model.body.query.weight)\nreturn w, p, c, say(p, c)"
        ),
        "`no_positions < no_choice` where": "return w, p, c, say(c, p)",
        "`'positions'` where `'positions' if more": "return w, p, c, 'positions'",
        "`'choice'` where `'positions' if more": "return w, p, c, 'choice'",
        "The verdict is 'both'": "return w, p, c, 'both'",
        "Still missing: no_choice": "return w, p, ..., ...",
    },
    "03.7": {
        "The bug is still there": "return masked(scores, low=0.0).softmax(-1)",
        "rows no longer sum to one": "return scores.softmax(-1) * past",
        "`past != 0` where": (
            "return scores.masked_fill(past == 1, -math.inf).softmax(-1)"
        ),
        "diagonal=-1": "return masked(scores, past.tril(-1)).softmax(-1)",
        "diagonal=1)` where": (
            "past = torch.ones(T, T).tril(1)\nreturn masked(scores, past).softmax(-1)"
        ),
        "you multiply infinity by 0": (
            "return (scores * past + (1 - past) * -math.inf).softmax(-1)"
        ),
        "`dim=1` where": "return masked(scores).softmax(-2)",
        "`q` and `k` exchanged": "return masked(scores.mT).softmax(-1)",
        "get with `/ head_size ** 0.5` left out": (
            "scores = q @ k.mT\nreturn masked(scores).softmax(-1)"
        ),
        "the root left out": "return masked(scores / head_size**0.5).softmax(-1)",
        "`T` where `head_size`": "return masked(q @ k.mT / T**0.5).softmax(-1)",
        "light above the diagonal: positions": (
            "return masked(scores, low=-5.0).softmax(-1)"
        ),
        "`scores = scores.masked_fill(past == 0, float('-inf'))` left out": (
            "return scores.softmax(-1)"
        ),
    },
    "03.8": {
        "`+ position` left out": "return end(body(token))",
        "torch.arange(idx.shape[0]": (
            "return end(body(token + embed(torch.arange(idx.shape[0]))))"
        ),
        "come too late": "return end(body(token) + embed(places))",
        ".flip(0)` where": "return end(body(token + embed(places.flip(0))))",
        "got lost": "return end(body(embed(places) + 0 * token))",
        "are multiplied": "return end(body(token * embed(places)))",
        "torch.arange(1, idx.shape[1] + 1": (
            "return end(body(token + embed(places + 1)))"
        ),
        "do not fit together": "return end(body(token + embed.weight))",
        "itself, without `self.lm_head`": "return body(token + embed(places))",
    },
    "03.9": {
        "too soft": "return 4 * q, k",
        "but for `one` where": "q[:V] = one\nreturn 90 * q, k",
        "two values exchanged: `(W_key": "return k, 90 * q",
        "should be (7, head_size)": "return 90 * one[wanted], one",
        "Still missing: W_key": "return q, ...",
    },
    "03.10": {
        "`optimizer.zero_grad()` left out": lines(forget=""),
        "no step reaches the matrices": lines(move=""),
        "`* scale` left out": lines(scores="q @ k.T"),
        "float('-inf'))` left out": lines(mask=""),
        "the minus before": lines(loss="log_weights.diagonal(-1).mean()"),
        "`sum` where `mean` belongs": lines(loss="-log_weights.diagonal(-1).sum()"),
    },
}

RIGHT = {
    "03.1": {
        "einsum": "return torch.einsum('bth,bsh->bts', q, k) * q.shape[-1] ** -0.5",
        "in float64": (
            "return (q.double() / math.sqrt(k.shape[2])) @ k.double().transpose(1, 2)"
        ),
        "three loops": (
            "B, T, n = q.shape\ns = torch.zeros(B, T, T)\n"
            "for b in range(B):\n    for i in range(T):\n"
            "        for j in range(T):\n"
            "            s[b, i, j] = q[b, i] @ k[b, j] / n**0.5\nreturn s"
        ),
        "W_key's width, as lists": "return (q @ k.mT / W_key.shape[1] ** 0.5).tolist()",
    },
    "03.2": {
        "sums and floats": (
            "return [H * C * 3.0, B * sum(range(T + 1)), float(H), H / H]"
        ),
        "counted in a Head": (
            "past = torch.ones(B, T, T).tril()\n"
            "n = sum(p.numel() for p in Head(C, H).parameters())\n"
            "return n, past.sum(), torch.tensor(H), 1.0"
        ),
    },
    "03.3": {
        "torch's own": "return F.scaled_dot_product_attention(q, k, v)",
        "einsum in float64": (
            "w = torch.einsum('bth,bsh->bts', q, k).div(root).softmax(-1)\n"
            "return torch.einsum('bts,bsh->bth', w, v).double()"
        ),
        "one text at a time": (
            "rows = []\nfor b in range(len(q)):\n"
            "    w = torch.exp(q[b] @ k[b].T / root)\n"
            "    rows.append((w / w.sum(-1, keepdim=True)) @ v[b])\n"
            "return torch.stack(rows)"
        ),
    },
    "03.4": {
        "keys shifted": "return one * 100, one.roll(distance, 1) * T",
        "a loop": (
            "q, k = torch.zeros(T, T), torch.zeros(T, T)\n"
            "for t in range(T):\n    k[t, t] = 1000\n"
            "    if t >= distance:\n        q[t, t - distance] = 1\n"
            "return q, k"
        ),
        "a circle": (
            "a = torch.arange(T).double() * 2 * math.pi / T\n"
            "b = a - distance * 2 * math.pi / T\n"
            "circle = lambda a: torch.stack([a.cos(), a.sin()], 1) * 200\n"
            "return circle(b), circle(a)"
        ),
        "as lists, of integers": (
            "return (40 * T * one.long().roll(-distance, 1)).tolist(), one.tolist()"
        ),
    },
    "03.5": {
        "einsum in float64": (
            "w = attention_weights(q, k).double()\n"
            "return torch.einsum('bts,ts->bt', w, back.double())"
        ),
        "places minus their mean": (
            "return places - (attention_weights(q, k) @ places.float())"
        ),
        "loops": (
            "w = scores.masked_fill(~past, -math.inf).softmax(-1).detach()\n"
            "out = torch.zeros(idx.shape)\nfor t in range(T):\n"
            "    for i in range(t + 1):\n"
            "        out[:, t] += (t - i) * w[:, t, i]\nreturn out.tolist()"
        ),
    },
    "03.6": {
        "keys in place of queries": "c = loss('body.key')\nreturn [w, p, c, say(p, c)]",
        "by hand, mended afterwards": (
            "old = model.position_embedding.weight.data.clone()\n"
            "model.position_embedding.weight.data.zero_()\n"
            "p = F.cross_entropy(model(idx)[0].mT, targets)\n"
            "model.position_embedding.weight.data = old\n"
            "return torch.tensor(w), p, c, say(p, c)"
        ),
        "running means": (
            "x = model.token_embedding(idx)\n"
            "x = x + model.position_embedding(torch.arange(idx.shape[1]))\n"
            "n = torch.arange(1, idx.shape[1] + 1)[:, None]\n"
            "mean = model.body.value(x).cumsum(1) / n\n"
            "c = F.cross_entropy(model.lm_head(mean).mT, targets).item()\n"
            "return w, p, c, say(p, c)"
        ),
    },
    "03.7": {
        "infinities added": (
            "future = torch.triu(torch.full((T, T), -math.inf), diagonal=1)\n"
            "return (scores.double() + future).softmax(-1)"
        ),
        "a large negative number": "return masked(scores, low=-1e9).softmax(-1)",
        "rows divided after all": (
            "w = scores.exp() * past\nreturn w / w.sum(-1, keepdim=True)"
        ),
        "the package's": "return attention_weights(q, k)",
    },
    "03.8": {
        "the first rows": "return end(body(token + embed.weight[: len(places)]))",
        "places for every text, a pair": (
            "return end(body(token + embed(places.expand(idx.shape)))), None"
        ),
        "counted by cumsum": (
            "return end(body(embed(torch.ones_like(idx).cumsum(1) - 1) + token))"
        ),
    },
    "03.9": {
        "smaller matrices, loud keys": "return q, 99 * T * k",
        "three numbers of a circle": (
            "a = torch.arange(V) * 2 * math.pi / V\n"
            "p = torch.stack([a.cos(), a.sin()], 1) * 200\n"
            "k = torch.cat([p, torch.zeros(T, 2)])\n"
            "q = torch.cat([p[wanted], torch.zeros(T, 2)])\nreturn q, k"
        ),
        "lists": "return (90 * q).tolist(), k.tolist()",
    },
    "03.10": {
        "the optimizer": lines(),
        "by hand": (
            "losses = []\nfor _ in range(steps):\n"
            "    s = scale * (x @ layers[0]) @ (x @ layers[1]).T\n"
            "    w = (s - 1e9 * (1 - past)).softmax(-1)\n"
            "    loss = -w.diagonal(-1).log().mean()\n"
            "    grads = torch.autograd.grad(loss, layers)\n"
            "    layers = [(W - rate * g).detach().requires_grad_()\n"
            "              for W, g in zip(layers, grads)]\n"
            "    losses.append(loss.detach())\nreturn losses"
        ),
    },
}


def answer(number, ends):
    if isinstance(ends, list):
        return [answer(number, end) for end in ends]
    return HEADS[number] + indent(ends, "    " * (2 if number == "03.8" else 1))


for table in (WRONG, RIGHT):
    for number, rows in table.items():
        table[number] = {text: answer(number, ends) for text, ends in rows.items()}
