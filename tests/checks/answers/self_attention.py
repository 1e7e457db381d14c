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
def look_back(T, distance):
    one = torch.eye(T)
    big = 30 * T**0.5 * one
""",
    "03.3": """
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
    "03.4": """
class TinyModel(TinyModel):
    def forward(self, idx):
        token = self.token_embedding(idx)
        embed, body, end = self.position_embedding, self.body, self.lm_head
        places = torch.arange(idx.shape[1])
""",
}


WRONG = {
    "03.1": {
        "`q @ k.mT` isn't divided by a root": "return q @ k.mT",
        "right except for a factor": "s = q @ k.mT\nreturn s / s.std()",
        "except for a factor. Here it's 1.4142": "return q @ k.mT / 2**0.5",
        "in the wrong order in": "return k @ q.mT / root",
    },
    "03.2": {
        "looks evenly at everything": (
            "keys = torch.zeros(T, T)\nfor t in range(distance, T):\n"
            "    keys[t, t - distance] = 50 * T**0.5\nreturn one, keys"
        ),
        "Every position looks at itself": (
            "big = big.roll(distance, 0)\nreturn big, big"
        ),
        "of its attention": "return 5 * one.roll(-distance, 1), one",
        "yours is a tensor of shape (3, 3) torch.int64": (
            "return 1000 * one.long().roll(-distance, 1), one"
        ),
    },
    "03.3": {
        "The position embedding is missing": (
            "x = token(idx)\nreturn mean_distance(head.query(x), head.key(x))"
        ),
        "in the wrong order in": "return (attention_weights(k, q) * back).sum(-1)",
        "shape is (), but": "return (attention_weights(q, k) * back).sum(-1).mean()",
        "no attribute 'weights'": "return head.weights",
    },
    "03.4": {
        "has no positions at all": "return end(body(token))",
        "an index is wrong in `idx.shape[0]`": (
            "return end(body(token + embed(torch.arange(idx.shape[0]))))"
        ),
        "It raised RuntimeError": "return end(body(token + embed.weight))",
    },
}

RIGHT = {
    "03.1": {
        "einsum": "return torch.einsum('bth,bsh->bts', q, k) * q.shape[-1] ** -0.5",
    },
    "03.2": {
        "keys shifted": "return one * 100, one.roll(distance, 1) * T",
    },
    "03.3": {
        "einsum in float64": (
            "w = attention_weights(q, k).double()\n"
            "return torch.einsum('bts,ts->bt', w, back.double())"
        ),
        "places minus their mean": (
            "return places - (attention_weights(q, k) @ places.float())"
        ),
    },
    "03.4": {
        "the first rows": "return end(body(token + embed.weight[: len(places)]))",
        "places for every text, a pair": (
            "return end(body(token + embed(places.expand(idx.shape)))), None"
        ),
    },
}


def answer(number, ends):
    if isinstance(ends, list):
        return [answer(number, end) for end in ends]
    return HEADS[number] + indent(ends, "    " * (2 if number == "03.4" else 1))


for table in (WRONG, RIGHT):
    for number, rows in table.items():
        table[number] = {text: answer(number, ends) for text, ends in rows.items()}
