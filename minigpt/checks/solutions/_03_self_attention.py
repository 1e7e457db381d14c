"""Solutions of notebook 03; 03.0 is its `my_attention`, under the package's name."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.attention import Head, attention


# 03.0
def attention(q, k, v, causal=True):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        T, S = scores.shape[-2:]
        past = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        scores = scores.masked_fill(~past, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


# 03.1
def scaled_scores(x, W_query, W_key):
    q, k = x @ W_query, x @ W_key  # (B, T, head_size) each
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores


# 03.2
def head_in_numbers(B, T, C, head_size):
    parameters = 3 * C * head_size
    open_scores = B * T * (T + 1) // 2
    raw_variance = head_size
    scaled_variance = 1
    return parameters, open_scores, raw_variance, scaled_variance


# 03.3
def cross_attention(english, french, W_query, W_key, W_value):
    q = english @ W_query  # (B, T, head_size): who asks
    k = french @ W_key  # (B, S, head_size): who answers
    v = french @ W_value  # (B, S, head_size)
    out, _ = attention(q, k, v, causal=False)  # weights: (B, T, S)
    return out


# 03.4
def look_back(T, distance):
    W_key = torch.eye(T)  # key i is one at place i
    W_query = torch.eye(T).roll(-distance, dims=1)  # one at t - distance
    return 20 * T**0.5 * W_query, W_key


# 03.5
def reach(model, idx):
    places = torch.arange(idx.shape[1])  # (T,)
    x = model.token_embedding(idx) + model.position_embedding(places)
    head = model.body
    q, k, v = head.query(x), head.key(x), head.value(x)
    _, weights = attention(q, k, v)  # (B, T, T)
    distances = places[:, None] - places  # (T, T)
    return (weights * distances).sum(dim=-1)  # (B, T)


# 03.6
from copy import deepcopy


def loss_without(layer, model, idx, targets):
    patient = deepcopy(model)  # a fresh one for each operation
    nn.init.zeros_(patient.get_submodule(layer).weight)
    return patient(idx, targets)[1].item()


def knock_outs(model, idx, targets):
    whole = model(idx, targets)[1].item()
    data = (model, idx, targets)
    no_positions = loss_without("position_embedding", *data)
    no_choice = loss_without("body.query", *data)
    more = no_positions > no_choice
    verdict = "positions" if more else "choice"
    return whole, no_positions, no_choice, verdict


# 03.7
def causal_weights(q, k):
    T, head_size = q.shape[-2:]
    past = torch.tril(torch.ones(T, T))
    scores = q @ k.transpose(-2, -1) / head_size**0.5
    scores = scores.masked_fill(past == 0, float("-inf"))
    return F.softmax(scores, dim=-1)


# 03.8
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


# 03.9
def find(wanted, T):
    V = len(wanted)
    W_query, W_key = torch.zeros(2, V + T, V)  # places: all zeros
    W_key[:V] = torch.eye(V)  # each says which character it is
    W_query[:V] = torch.eye(V)[wanted]  # and asks for another
    return 20 * V**0.5 * W_query, W_key


# 03.10
def train_head(x, W_query, W_key, scale, rate, steps):
    layers = [W.clone().requires_grad_() for W in (W_query, W_key)]
    past = torch.ones(len(x), len(x)).tril()  # (T, T)
    optimizer = torch.optim.SGD(layers, lr=rate)
    losses = []
    for _ in range(steps):
        q, k = x @ layers[0], x @ layers[1]  # (T, head_size) each
        scores = (q @ k.T) * scale
        scores = scores.masked_fill(past == 0, float("-inf"))
        log_weights = F.log_softmax(scores, dim=-1)
        loss = -log_weights.diagonal(-1).mean()  # t looks at t - 1
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
