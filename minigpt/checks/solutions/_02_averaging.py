"""Solutions of notebook 02."""


import torch
import torch.nn.functional as F

from minigpt.data import CharTokenizer


# 02.1
def mean_so_far(x, t):
    return x[:, : t + 1].mean(dim=1)  # (B, t + 1, C) -> (B, C)


# 02.2
def window_weights(T, k):
    seen = torch.ones(T, T).tril().triu(-(k - 1))  # a band of k diagonals
    return seen / seen.sum(dim=1, keepdim=True)  # (T, T) / (T, 1)


# 02.3
def shares_so_far(text):
    tokenizer = CharTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))  # (T,)
    one_hot = F.one_hot(ids, tokenizer.vocab_size).float()  # (T, V)
    weights = torch.ones(len(ids), len(ids)).tril()  # (T, T)
    weights = weights / weights.sum(dim=1, keepdim=True)
    return weights @ one_hot  # (T, T) @ (T, V)


# 02.4
def fading_average(x, rate):
    T = x.shape[1]
    time = torch.arange(T)
    scores = -rate * (time[:, None] - time).float()  # (T, T)
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = scores.masked_fill(~past, float("-inf"))
    return F.softmax(scores, dim=-1) @ x  # (T, T) @ (B, T, C)


# 02.5
def who_hears_whom(average, T):
    x = torch.randn(2, T, 3)
    before = average(x)
    heard = torch.zeros(T, T, dtype=torch.bool)
    for i in range(T):
        changed = x.clone()
        changed[:, i] += 1.0
        moved = (average(changed) - before).abs() > 1e-4  # (2, T, 3)
        heard[:, i] = moved.any(dim=-1).any(dim=0)  # (T,)
    causal = not heard.triu(1).any()
    return heard, causal


# 02.6
def nats_per_character(text):
    tokenizer = CharTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))  # (T,)
    one_hot = F.one_hot(ids, tokenizer.vocab_size).float()  # (T, V)
    past = torch.ones(len(ids), len(ids)).tril(diagonal=-1)
    counts = past @ one_hot + 1  # (T, V)
    probs = counts / counts.sum(dim=1, keepdim=True)
    return F.nll_loss(probs.log(), ids).item()


# 02.7
def attend(x, q, k):
    T = x.shape[1]
    scores = q @ k.transpose(-2, -1)  # (B, T, T)
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = scores.masked_fill(~past, float("-inf"))
    weights = F.softmax(scores, dim=-1)  # (B, T, T)
    return weights @ x  # (B, T, C)
