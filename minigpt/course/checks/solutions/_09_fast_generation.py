"""Solutions of notebook 09."""

import torch
import torch.nn.functional as F

# 09.1
def cached_step(q, k, v, keys, values):
    keys = torch.cat([keys, k], dim=2)  # (B, H, T + 1, d)
    values = torch.cat([values, v], dim=2)
    scores = q @ keys.mT / q.shape[-1] ** 0.5  # (B, H, 1, T + 1)
    return F.softmax(scores, dim=-1) @ values, keys, values
# ✗ The new character sees only the first character: a causal mask (also is_causal=True)
# takes the one query for the first of the text.
# F.softmax(scores, dim=-1) @ values → values[:, :, :1]
# ✗ The new key and value are left out: the new character should see itself, too.
# F.softmax(scores, dim=-1) @ values → F.softmax(scores[..., :-1], dim=-1)
#  @ values[:, :, :-1]

# 09.2
def left_pad(prompts):
    T = max(len(prompt) for prompt in prompts)
    rows = [[0] * (T - len(prompt)) + prompt for prompt in prompts]
    pads = torch.tensor([T - len(prompt) for prompt in prompts])
    real = torch.arange(T) >= pads[:, None]  # (B, T), of the keys
    past = torch.ones(T, T).tril().bool()
    own = torch.eye(T).bool()
    return torch.tensor(rows), past & real[:, None] | own
# ✗ Your mask is True where nobody may look: turn it round.
# past & real[:, None] | own → ~(past & real[:, None] | own)
# ✗ You tell padding by its 0, but 0 may be a character, too: go by the lengths.
# torch.arange(T) >= pads[:, None] → torch.tensor(rows) != 0
# ✗ The mask is only causal: real characters look at the padding, too.
# past & real[:, None] | own → past.expand(len(prompts), T, T)
# ✗ Rows of padding may see nothing here, and a softmax over nothing is nan: let each see
# itself.
#  | own →

# 09.3
def one_draft(p, q):
    kept = torch.minimum(p, q)
    after_refusal = (p - q).clamp(min=0)
    return kept, after_refusal
# ✗ min(1, p / q) is given that it was drafted; how probable is that?
# torch.minimum(p, q) → (p / q).clamp(max=1).nan_to_num()
# ✗ You keep the larger of p and q: min(1, p / q) is .clamp(max=1).
# torch.minimum(p, q) → torch.maximum(p, q)
# ✗ after_refusal is given a refusal; how probable is a refusal?
# (p - q).clamp(min=0) → (d := (p - q).clamp(min=0)) / d.sum().clamp(min=1e-12)
# ? Multiply by 1 - kept.sum(), and see what cancels.
# ✗ After a refusal nothing ever comes: what is refused at one character is for the others
# that the draft gave too little.
# (p - q).clamp(min=0) → torch.zeros_like(p)
# ✗ What is refused is not given out again as p says, but as p - q does, where it is positive.
# return kept, after_refusal → return kept, (1 - kept.sum()) * p
# ✗ kept.sum() is how often a draft is kept; a refusal has 1 - kept.sum().
# return kept, after_refusal → rest = after_refusal.sum().clamp(min=1e-12)
#     return kept, kept.sum() * after_refusal / rest

# 09.4
def to_int8(weight):
    largest = weight.abs().amax(dim=1, keepdim=True)  # (m, 1)
    scale = largest.clamp(min=1e-12) / 127
    return (weight / scale).round().to(torch.int8), scale


def from_int8(numbers, scale):
    return numbers * scale

# 09.5
class Memory:
    def __init__(self, size, d):
        self.keys, self.values = torch.zeros(2, size, d)
        self.length = 0

    def step(self, q, k, v):
        self.keys[self.length], self.values[self.length] = k, v
        self.length += 1
        n = self.length
        weights = F.softmax(self.keys[:n] @ q / len(q) ** 0.5, dim=0)
        return weights @ self.values[:n]

    def clear(self):
        self.length = 0
# ✗ The bug is still there: the numbers are gone, but their places still count, and a key
# of zeros takes its share.
# def clear(self):\n        self.length = 0 → def clear(self):
#         self.keys.zero_(); self.values.zero_()
# ✗ You tell an empty place by its zeros; a real key may be zero, and the room runs out.
# self.keys[:n] @ q / len(q) ** 0.5 → (self.keys @ q / len(q) ** 0.5).masked_fill(
# (self.keys == 0).all(-1), -1e9)
# weights @ self.values[:n] → weights @ self.values
#     def clear(self):\n        self.length = 0 →     def clear(self):
#         self.keys.zero_(); self.values.zero_()
# ✗ `step` looks at the whole room: empty places, with keys of zeros, take their share.
# self.keys[:n] → self.keys
# self.values[:n] → self.values
# def clear(self):\n        self.length = 0 → def clear(self):
#         self.length = 0; self.keys.zero_(); self.values.zero_()
