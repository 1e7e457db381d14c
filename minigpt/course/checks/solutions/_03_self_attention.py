"""Solutions of notebook 03; 03.0 is its attention, as the package has it."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.attention import Head, attention, attention_weights

# 03.0
def attention_weights(q, k, causal=True):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        T, S = scores.shape[-2:]
        past = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        scores = scores.masked_fill(~past, float("-inf"))
    return F.softmax(scores, dim=-1)


def attention(q, k, v, causal=True):
    weights = attention_weights(q, k, causal)
    return weights @ v, weights

# 03.1
def scaled_scores(x, W_query, W_key):
    q, k = x @ W_query, x @ W_key  # (B, T, head_size) each
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores
# ✗ Your vectors have length 1 now (that is the cosine). Only head_size should count: divide
# by its root.
# q, k = x @ W_query, x @ W_key → q, k = F.normalize(x @ W_query, dim=-1), F.normalize(x @ W_key, dim=-1)
#  / q.shape[-1] ** 0.5 →

# 03.2
def look_back(T, distance):
    W_key = torch.eye(T)  # key i is one at place i
    W_query = torch.eye(T).roll(-distance, dims=1)  # one at t - distance
    return 20 * T**0.5 * W_query, W_key
# ✗ It looks ahead, from t to t + distance: the roll goes the wrong way, or query and
# key are exchanged.
# roll(-distance → roll(distance
# ✗ Every position looks one step back, whatever the distance.
# roll(-distance → roll(-1
# ✗ Your positions look one place too near, at t - distance + 1.
# roll(-distance → roll(1 - distance
# ✗ All positions look at place 0: their queries agree.
# .roll(-distance, dims=1) → [:1].expand(T, T)
# ✗ Your scores grow with the place, so the last one wins: a product of two numbers does
# not tell whether they are equal.
# W_key = torch.eye(T) → W_key = torch.arange(T)[:, None].float()
# torch.eye(T).roll(-distance, dims=1) → (W_key - distance)
# ✗ Everyone looks at itself: of all products of query t with a key, the one with key t is
# the largest (are both shifted alike, or none?); it should be the one with key t - distance.
# .roll(-distance, dims=1) →

# 03.3
def reach(model, idx):
    places = torch.arange(idx.shape[1])  # (T,)
    x = model.token_embedding(idx) + model.position_embedding(places)
    head = model.body
    weights = attention_weights(head.query(x), head.key(x))  # (B, T, T)
    distances = places[:, None] - places  # (T, T)
    return (weights * distances).sum(dim=-1)  # (B, T)
# ✗ You give the average place that is looked at, not how far away it is.
# places[:, None] - places → places
# ✗ Query and key have changed places: the keys ask.
# head.query(x), head.key(x) → head.key(x), head.query(x)
# ✗ You take the likeliest place alone; wanted is the mean over all places.
# (weights * distances).sum(dim=-1) → (places - weights.argmax(dim=-1)).float()

# 03.4
class TinyModel(nn.Module):
    def __init__(self, vocab_size, block_size, n_embd):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.position_embedding = nn.Embedding(block_size, n_embd)
        self.body = Head(n_embd, n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx):
        positions = torch.arange(idx.shape[1], device=idx.device)
        token = self.token_embedding(idx)  # (B, T, C)
        position = self.position_embedding(positions)  # (T, C)
        return self.lm_head(self.body(token + position))
# ✗ The bug is still there: after 0123 and after 2103 the model predicts the same, as if
# it could not tell who sat where.
# positions = torch.arange(idx.shape[1], device=idx.device) → pass
# self.position_embedding(positions) → self.position_embedding(idx)
# ? Print what is added to the token vectors for 0123, and for 2103.
# ✗ The positions come too late, when the head has mixed all.
# self.body(token + position) → self.body(token) + position
# ✗ You look up the place of the text in the batch, not of the character in the text.
# self.position_embedding(positions) → self.position_embedding(
# torch.arange(len(idx)))[:, None]
# ✗ All characters get the vector of one place: each needs that of its own.
# self.position_embedding(positions) → self.position_embedding(positions[-1:])
# ✗ These are the ranks of the ids; the place counts 0, 1, 2 along the text.
# self.position_embedding(positions) → self.position_embedding(idx.argsort(1).argsort(1))
