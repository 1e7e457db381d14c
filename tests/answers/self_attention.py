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
    "03.8": """
class TinyModel(TinyModel):
    def forward(self, idx):
        token = self.token_embedding(idx)
        embed, body, end = self.position_embedding, self.body, self.lm_head
        places = torch.arange(idx.shape[1])
""",
}


WRONG = {
    "03.1": {
        "the scale is forgotten": "return q @ k.mT",
        "upside down": [
            "return q @ k.mT * q.shape[-1] ** 0.5",
            "return q @ k.mT / q.shape[-1] ** -0.5",
        ],
        "√C, the width": "return q @ k.mT / x.shape[-1] ** 0.5",
        "the root is missing": "return q @ k.mT / q.shape[-1]",
        "You divide by √T": "return q @ k.mT / x.shape[1] ** 0.5",
        "for the six words": "return q @ k.mT / 2**0.5",
        "rows belong to the": "return k @ q.mT / q.shape[-1] ** 0.5",
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
        "not right yet": "return q @ k.mT / 5**0.5",
    },
    "03.2": {
        "a head has three": "return C * H, n, H, 1",
        "the values' layer": "return 2 * C * H, n, H, 1",
        "you count biases": "return 3 * (C + 1) * H, n, H, 1",
        "so T plays no role": "return 3 * T * C * H, n, H, 1",
        "so B and T play no role": "return 3 * B * T * C * H, n, H, 1",
        "not square": "return 3 * C * C, n, H, 1",
        "mask is forgotten": "return 3 * C * H, B * T * T, H, 1",
        "that is one window": "return 3 * C * H, n / B, H, 1",
        "diagonal is missing": "return 3 * C * H, n - B * T, H, 1",
        "more than half": "return 3 * C * H, B * T * T / 2, H, 1",
        "only after the division": "return 3 * C * H, n, 1, 1",
        "standard deviation": "return 3 * C * H, n, H**0.5, 1",
        "head_size entries each, not C": "return 3 * C * H, n, C, 1",
        "not over tokens": "return 3 * C * H, n, T, 1",
        "they do not multiply": "return 3 * C * H, n, H**2, 1",
        "divides the variance by its": "return 3 * C * H, n, H, H**0.5",
        "does change the variance": "return 3 * C * H, n, H, H",
        "without the root": "return 3 * C * H, n, H, 1 / H",
        "not right yet": "return 45, 3, 5, 1",
        "Still missing: raw_variance": "return 3 * C * H, n, ..., 1",
        "Return 4 values": "return 3 * C * H, n",
    },
    "03.3": {
        "The sources are exchanged": (
            "return attention(f @ W_query, e @ W_key, e @ W_value, False)[0]"
        ),
        "what is handed over is English": (
            "return attention(q, k, e @ W_value, False)[0]"
        ),
        "The keys come from the English": "return attention(q, e @ W_key, v, False)[0]",
        "no influence at all": "return attention(q, e @ W_key, e @ W_value, False)[0]",
        "in place of their v": "return attention(q, k, f, False)[0]",
        "These are the weights": "return attention(q, k, v, False)[1]",
        "You return a pair": "return attention(q, k, v, False)",
        "A causal mask is at work": [
            "return attention(q, k, v)[0]",
            (
                "s = q @ k.mT / root\n"
                "m = torch.ones_like(s).tril() == 0\n"
                "return s.masked_fill(m, -math.inf).softmax(-1) @ v"
            ),
        ],
        "the columns": "return (q @ k.mT / root).softmax(1) @ v",
        "W_key and W_value are exchanged": "return attention(q, v, k, False)[0]",
        "scale is forgotten": "return (q @ k.mT).softmax(-1) @ v",
        "the root is missing": "return (q @ k.mT / root**2).softmax(-1) @ v",
        "You divide by √T": "return (q @ k.mT / k.shape[1] ** 0.5).softmax(-1) @ v",
        "for the six words": "return (q @ k.mT / 2**0.5).softmax(-1) @ v",
        "upside down": "return (q @ k.mT * root).softmax(-1) @ v",
        "√C, the width": "return (q @ k.mT / C**0.5).softmax(-1) @ v",
        "do not fit toget": "return (q @ k / root).softmax(-1) @ v",
    },
    "03.4": {
        "looks at itself": "return big, one",
        "wrong way round": [
            "return big.roll(distance, 1), one",
            "return big, one.roll(-distance, 1)",
        ],
        "one step back, whatever": "return big.roll(-1, 1), one",
        "too soft": [
            "return 5 * one.roll(-distance, 1), one",
            "return 30 * one.roll(-distance, 1), one",
        ],
        "averages evenly": "return torch.zeros(T, 4), torch.ones(T, 4)",
        "an infinity meets a zero": "return one.roll(-distance, 1) * math.inf, one",
        "their queries": "return big[:1].repeat(T, 1), one",
        "Return 2 values": "return big.roll(-distance, 1)",
        "should be (T, head_size)": "return one[0], one[0]",
        "need the same head_size": "return one, torch.ones(T, T + 1)",
        "Still missing: W_key": "return one, ...",
    },
    "03.5": {
        "position embedding is forgotten": (
            "x = token(idx)\nreturn mean_distance(head.query(x), head.key(x))"
        ),
        "indexed by the tokens": (
            "x = token(idx) + pos(idx)\n"
            "return mean_distance(head.query(x), head.key(x))"
        ),
        "Queries and keys are exchanged": "return mean_distance(k, q)",
        "The mask is forgotten": "return mean_distance(q, k, causal=False)",
        "You mask after the softmax": (
            "return (scores.softmax(-1) * past * back).sum(-1)"
        ),
        "You mask with 0": (
            "return (scores.masked_fill(~past, 0).softmax(-1) * back).sum(-1)"
        ),
        "Softmax runs over the queries": (
            "s = scores.masked_fill(~past, -math.inf)\n"
            "return (s.softmax(1) * back).sum(-1)"
        ),
        "The sign is turned round": "return (attention_weights(q, k) * back.T).sum(-1)",
        "average place that is looked at": (
            "return (attention_weights(q, k) * places).sum(-1)"
        ),
        "the largest weight only": "return places - attention_weights(q, k).argmax(-1)",
        "sum over those who look": "return (attention_weights(q, k) * back).sum(1)",
        "You divide by T": "return (attention_weights(q, k) * back).mean(-1)",
        "one number for everything": (
            "return (attention_weights(q, k) * back).sum(-1).mean()"
        ),
        "the scale is forgotten": "return mean_distance(q * root, k)",
        "upside down": "return mean_distance(q * root**2, k)",
        "You divide by √T": "return mean_distance(q * root / T**0.5, k)",
        "for the six words": "return mean_distance(q * root / 2**0.5, k)",
        "√C, the width": (
            "q = q * root / x.shape[-1] ** 0.5\nreturn mean_distance(q, k)"
        ),
        "the root is missing": "return mean_distance(q / root, k)",
        "not right yet": "return model(idx)",
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
        "the vector of place 0": (
            "m = deepcopy(model)\n"
            "m.position_embedding.weight.data[:] = "
            "m.position_embedding.weight.data[0].clone()\n"
            "return w, loss(model=m), c, say(p, c)"
        ),
        "took away the values": "return w, p, loss('body.value'), say(p, c)",
        "includes the future": (
            "class Even(nn.Module):\n"
            "    def forward(self, x):\n"
            "        v = model.body.value(x)\n"
            "        return v.mean(1, keepdim=True) + 0 * v\n"
            "m = deepcopy(model)\n"
            "m.body = Even()\n"
            "return w, p, m(idx, targets)[1].item(), say(p, c)"
        ),
        "are differences": "return w, p - w, c - w, say(p, c)",
        "repeats its input": (
            "return tuple(loss(*n, targets=idx) for n in [[], [P], [Q]]) + (say(p, c),)"
        ),
        "sums over all characters": (
            "n = targets.numel()\nreturn w * n, p * n, c * n, say(p, c)"
        ),
        "leaves the model damaged": (
            "nn.init.zeros_(model.body.query.weight)\nreturn w, p, c, say(p, c)"
        ),
        "'choice', but your own numbers say": "return w, p, c, say(c, p)",
        "say 'choice'": "return w, p, c, 'positions'",
        "say 'positions'": "return w, p, c, 'choice'",
        "The verdict is 'both'": "return w, p, c, 'both'",
        "Still missing: no_choice, verdict": "return w, p, ..., ...",
    },
    "03.7": {
        "The bug is still there": "return masked(scores, low=0.0).softmax(-1)",
        "rows no longer sum to one": "return scores.softmax(-1) * past",
        "The mask is inverted": (
            "return scores.masked_fill(past == 1, -math.inf).softmax(-1)"
        ),
        "The present is hidden": "return masked(scores, past.tril(-1)).softmax(-1)",
        "one step too wide": (
            "past = torch.ones(T, T).tril(1)\nreturn masked(scores, past).softmax(-1)"
        ),
        "you multiply infinity by 0": (
            "return (scores * past + (1 - past) * -math.inf).softmax(-1)"
        ),
        "The columns sum to one": "return masked(scores).softmax(-2)",
        "Queries and keys are exchanged": "return masked(scores.mT).softmax(-1)",
        "the scale is forgotten": (
            "scores = q @ k.mT\nreturn masked(scores).softmax(-1)"
        ),
        "upside down": "return masked(scores * head_size).softmax(-1)",
        "the root is missing": "return masked(scores / head_size**0.5).softmax(-1)",
        "You divide by √T": "return masked(q @ k.mT / T**0.5).softmax(-1)",
        "for the six words": "return masked(q @ k.mT / 2**0.5).softmax(-1)",
        "not low enough": "return masked(scores, low=-5.0).softmax(-1)",
        "There is no mask at all": "return scores.softmax(-1)",
    },
    "03.8": {
        "The bug is still there": (
            "return end(body(token + embed(idx % embed.num_embeddings)))"
        ),
        "Without any position embedding": "return end(body(token))",
        "the vector of place 0": (
            "return end(body(token + embed(torch.arange(idx.shape[0]))))"
        ),
        "come too late": "return end(body(token) + embed(places))",
        "not counted from the start": "return end(body(token + embed(places.flip(0))))",
        "got lost": "return end(body(embed(places) + 0 * token))",
        "are multiplied": "return end(body(token * embed(places)))",
        "IndexError": "return end(body(token + embed(places + 1)))",
        "do not fit together": "return end(body(token + embed.weight))",
        "not (B, T, V)": "return body(token + embed(places))",
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
}


def answer(number, ends):
    if isinstance(ends, list):
        return [answer(number, end) for end in ends]
    return HEADS[number] + indent(ends, "    " * (2 if number == "03.8" else 1))


for table in (WRONG, RIGHT):
    for number, rows in table.items():
        table[number] = {text: answer(number, ends) for text, ends in rows.items()}
