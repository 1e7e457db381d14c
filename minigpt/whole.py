"""The whole course on one page: data, model, training, sampling.

    python -m minigpt.whole                  trains on Tiny Shakespeare, then writes
    python -m minigpt.whole my_book.txt      the same with a text of your own

Nothing here is new: each part says in which notebook it was built, and the model is
the package's to the last bit (the tests copy its weights over and compare). Shapes:
B windows, T tokens in each, C channels, V characters.
"""

import math
import sys
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

# The recipe (06) -----------------------------------------------------------------
block_size, n_layer, n_head, n_embd = 64, 2, 4, 128
steps, batch_size, learning_rate = 2400, 16, 3e-3
warmup_steps, weight_decay, beta2, grad_clip = 100, 0.1, 0.99, 1.0
seed = 1337


# The data (01): characters become ids, windows become batches ----------------------
def encode(text, chars):
    """str -> ids (N,): the place of each character in the sorted vocabulary."""
    id_of = {char: i for i, char in enumerate(chars)}
    return torch.tensor([id_of[char] for char in text])


def decode(ids, chars):
    """ids (N,) -> str."""
    return "".join(chars[i] for i in ids.tolist())


def get_batch(data, generator):
    """Random windows x (B, T), and the same shifted by one, y (B, T)."""
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)
    positions = starts[:, None] + torch.arange(block_size)  # (B, T)
    return data[positions], data[positions + 1]


# The model: attention (03) with many heads (04), in blocks (05) --------------------
class CausalSelfAttention(nn.Module):
    """Every position asks all earlier ones: (B, T, C) -> (B, T, C)."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        head_size = C // n_head
        qkv = self.qkv(x).view(B, T, 3, n_head, head_size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_size)
        scores = q @ k.transpose(-2, -1) / math.sqrt(head_size)  # (B, n_head, T, T)
        past = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        weights = F.softmax(scores.masked_fill(~past, float("-inf")), dim=-1)
        out = (weights @ v).transpose(1, 2).reshape(B, T, C)  # heads side by side
        return self.proj(out)


class FeedForward(nn.Module):
    """Every position thinks on its own: (B, T, C) -> (B, T, C)."""

    def __init__(self):
        super().__init__()
        self.expand = nn.Linear(n_embd, 4 * n_embd)
        self.proj = nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        return self.proj(F.relu(self.expand(x)))


class Block(nn.Module):
    """Both, each added to the residual pathway: (B, T, C) -> (B, T, C)."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(n_embd)
        self.attention = CausalSelfAttention()
        self.norm2 = nn.LayerNorm(n_embd)
        self.feed_forward = FeedForward()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class GPT(nn.Module):
    """idx, targets (B, T) -> logits (B, T, V), mean loss in nats or None."""

    def __init__(self, vocab_size):
        super().__init__()
        blocks = [Block() for _ in range(n_layer)]
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.position_embedding = nn.Embedding(block_size, n_embd)
        self.body = nn.Sequential(*blocks, nn.LayerNorm(n_embd))
        self.lm_head = nn.Linear(n_embd, vocab_size)

        std = 0.02 * math.sqrt(768 / n_embd)  # starting values (06)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.lm_head.weight, std=0.01)
        for block in blocks:
            for proj in (block.attention.proj, block.feed_forward.proj):
                nn.init.normal_(proj.weight, std=std / math.sqrt(2 * n_layer))

    def forward(self, idx, targets=None):
        positions = torch.arange(idx.shape[1], device=idx.device)  # (T,)
        x = self.token_embedding(idx) + self.position_embedding(positions)
        logits = self.lm_head(self.body(x))  # (B, T, C) -> (B, T, V)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


# Training (06): AdamW, warm-up and cosine, clipped gradients -----------------------
def learning_rate_at(step):
    """Up in a line, then down along half a cosine."""
    if step < warmup_steps:
        return learning_rate * (step + 1) / warmup_steps
    done = (step - warmup_steps) / (steps - warmup_steps)
    return learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def train(model, data):
    """All the steps, in place; prints the loss of a batch now and then."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        betas=(0.9, beta2),
    )
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step)
        _, loss = model(*get_batch(data, generator))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimizer.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step:4}: loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def evaluate(model, data):
    """The exact mean loss over all full windows of a split (01)."""
    n = (len(data) - 1) // block_size * block_size
    x = data[:n].view(-1, block_size)
    y = data[1 : n + 1].view(-1, block_size)
    losses = [model(*pair)[1] * len(pair[0]) for pair in zip(x.split(64), y.split(64))]
    return (sum(losses) / len(x)).item()


# Sampling (06): ask, draw, append, ask again ---------------------------------------
@torch.no_grad()
def generate(model, idx, max_new_tokens, temperature=0.8):
    """idx (B, T) -> (B, T + max_new_tokens)."""
    for _ in range(max_new_tokens):
        logits = model(idx[:, -block_size:])[0][:, -1]  # (B, V): the last position
        probs = F.softmax(logits / temperature, dim=-1)
        next_idx = torch.multinomial(probs, num_samples=1)  # (B, 1)
        idx = torch.cat([idx, next_idx], dim=1)
    return idx


def main(path=None):
    """Read, train, judge, write."""
    if path is None:
        from minigpt.data import load_text  # finds Tiny Shakespeare, or fetches it

        text = load_text()
    else:
        text = Path(path).read_text(encoding="utf-8")
    chars = sorted(set(text))
    data = encode(text, chars)
    n = int(0.9 * len(data))  # the first nine tenths to learn from
    torch.manual_seed(seed)
    model = GPT(len(chars))
    train(model, data[:n])
    print(f"validation loss {evaluate(model, data[n:]):.4f} nats per character")
    print(decode(generate(model, data[None, :1], 500)[0], chars))


if __name__ == "__main__":
    main(*sys.argv[1:2])
