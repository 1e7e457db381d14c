"""Solutions of notebook 02."""

import torch
import torch.nn.functional as F

from minigpt.data import CharTokenizer

# 02.1
def mean_so_far(x, t):
    return x[:, : t + 1].mean(dim=1)  # (B, t + 1, C) -> (B, C)
# ✗ You divide by T, but there are fewer positions so far.
# .mean(dim=1) → .sum(dim=1) / x.shape[1]
# ✗ You halve at every step, so late positions count more: add all, then divide once.
# x[:, : t + 1].mean(dim=1) → sum(x[:, i] / 2 ** (t + (i > 0) - i) for i in range(t + 1))
# ✗ Your mean runs over the batch, too: each row is to have its own.
# .mean(dim=1) → .mean(dim=(0, 1)).expand(len(x), -1)
# ✗ You take the mean of running means: the first positions count again in each of them.
# x[:, : t + 1].mean(dim=1) → torch.stack([x[:, : s + 1].mean(1) for s in range(t + 1)]).mean(0)
# ✗ You cut and average along the batch; time is dimension 1.
# x[:, : t + 1].mean(dim=1) → x[: t + 1].mean(dim=0)

# 02.2
def fading_average(x, rate):
    T = x.shape[1]
    time = torch.arange(T)
    scores = -rate * (time[:, None] - time).float()  # (T, T)
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = scores.masked_fill(~past, float("-inf"))
    return F.softmax(scores, dim=-1) @ x  # (T, T) @ (B, T, C)
# ✗ Your rows do not sum to one: exp is there, the division is not.
# F.softmax(scores, dim=-1) → scores.exp()
# ✗ The mask comes only after the softmax: the rows no longer sum to one.
# scores = scores.masked_fill(~past, float("-inf")) → pass
# dim=-1) @ x → dim=-1).masked_fill(~past, 0.0) @ x
# ✗ Your weights fall like 1 / (1 + rate · distance); a softmax of scores falls by the same
# factor with every step back.
# -rate * (time[:, None] - time).float() → -(1 + rate * (time[:, None] - time).clamp(min=0)).log()
# ✗ The future is not hidden: the scores fall with the distance on both sides.
# time).float() → time).abs().float()
# scores = scores.masked_fill(~past, float("-inf")) → pass
# ✗ Your softmax comes before the mask, and the future has taken its share by then.
# time).float() → time).abs().float()
# scores = scores.masked_fill(~past, float("-inf")) → pass
# F.softmax(scores, dim=-1) → F.softmax(scores, dim=-1).tril()
# ✗ A running mean gives its first place too much: here all weights are divided by their sum.
# F.softmax(scores, dim=-1) → (scores.exp() * torch.cat([
# torch.ones(1), torch.full((T - 1,), 1 - 2.718281828459045**-rate)]))

# 02.3
def nats_per_character(text):
    tokenizer = CharTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))  # (T,)
    one_hot = F.one_hot(ids, tokenizer.vocab_size).float()  # (T, V)
    past = torch.ones(len(ids), len(ids)).tril(diagonal=-1)
    counts = past @ one_hot + 1  # (T, V)
    probs = counts / counts.sum(dim=1, keepdim=True)
    return F.nll_loss(probs.log(), ids).item()
# ✗ The bug is still there: on letters drawn blindly, which nobody can predict, the
# program claims to do better than guessing.
# torch.ones(len(ids), len(ids)).tril(diagonal=-1) → torch.tril(torch.ones(len(ids), len(ids)))
# ? Take the text 'ab' on paper. What may be known when 'a' is guessed? When 'b'?
# ✗ The targets are shifted the wrong way: row t + 1 guesses character t.
# diagonal=-1 → diagonal=0
# (probs.log(), ids) → (probs[1:].log(), ids[:-1])
# ✗ The + 1 was no cheat: each character still counts itself before it is guessed.
# torch.ones(len(ids), len(ids)).tril(diagonal=-1) → torch.tril(torch.ones(len(ids), len(ids)))
# past @ one_hot + 1 → past @ one_hot
# ✗ You leave out the character itself, but count all that come after it.
# past @ one_hot + 1 → one_hot.sum(dim=0) - one_hot + 1

# 02.4
def attend(x, q, k):
    T = x.shape[1]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = scores.masked_fill(~past, float("-inf"))
    weights = F.softmax(scores, dim=-1)  # (B, T, T)
    return weights @ x  # (B, T, C)
# ✗ The bug is still there: a query of zeros should give the plain mean, but gives nan.
# T = x.shape[1] → pass
# past = torch.tril(torch.ones(T, T, dtype=torch.bool)) → future = torch.tril(scores) == 0
# ~past → future
# ? Print what each line makes of one silent query: where is the nan born?
# ✗ You have swept the nan away, not its cause: the silent position gets zeros.
# masked_fill(~past, → masked_fill(scores.tril() == 0,
# weights @ x → weights.nan_to_num() @ x
# ✗ The future gets a finite score now, but your mask is still made from the scores:
# the silent query hears the future, too.
# masked_fill(~past, float("-inf")) → masked_fill(scores.tril() == 0, -1e9)
# ✗ The mask comes only after the softmax: the rows no longer sum to one.
# scores = scores.masked_fill(~past, float("-inf")) → pass
# weights @ x → weights.tril() @ x
# ✗ A future score that is 0 stays: your mask is made from the scores.
# ~past, → scores.triu(1) != 0,
# ✗ The mask is the wrong way round: the past is hidden, and the future is heard.
# torch.tril → torch.triu
