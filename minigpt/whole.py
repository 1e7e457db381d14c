"""The whole GPT in one file: it learns to predict a text, then it writes.

    python whole.py                                    learns Tiny Shakespeare (1.1 MB)
    python whole.py my_book.txt                        learns your text, in UTF-8
    python whole.py my_book.txt steps=600 n_embd=64    with another recipe

It needs torch and nothing else. With the recipe below, two processor cores take about
two minutes, and Shakespeare's validation loss ends near 1.70 nats per character; a
blind guess among his 65 characters is ln 65 = 4.17. The notebooks 01 to 06 of the
course build these lines one after the other. The number after a heading says where.

In the comments, B is the number of texts side by side, T is the number of characters in
each, and C = n_embd is how many numbers describe a character.
"""

import math
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

SHAKESPEARE = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/"
    "data/tinyshakespeare/input.txt"
)


@dataclass
class Config:
    """The recipe: the shape of the model, and how it is trained."""

    vocab_size: int = 65  # different characters; main counts them in the text
    block_size: int = 64  # how many characters the model sees
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 128
    dropout: float = 0.0
    steps: int = 2400
    batch_size: int = 16
    learning_rate: float = 3e-3  # at its peak
    warmup_steps: int = 100
    weight_decay: float = 0.1  # of matrices
    beta2: float = 0.99
    grad_clip: float = 1.0
    seed: int = 1337


# The text as numbers (01) -----------------------------------------------------------
def read_text(path=None):
    """The text of a file. Without a path, it downloads Tiny Shakespeare."""
    if path is not None:
        return Path(path).read_text(encoding="utf-8")
    with urllib.request.urlopen(SHAKESPEARE, timeout=30) as answer:
        return answer.read().decode("utf-8")


class CharTokenizer:
    """One number for each different character, in sorted order."""

    def __init__(self, text):
        self.chars = "".join(sorted(set(text)))
        self.vocab_size = len(self.chars)
        self.id_of = {char: i for i, char in enumerate(self.chars)}

    def encode(self, text):
        unknown = sorted(set(text) - set(self.chars))
        if unknown:
            some, n = unknown[:9], len(unknown)
            raise ValueError(
                f"Not in the vocabulary: {some} ({n} unknown in all). "
                f"Its {self.vocab_size} characters end in {self.chars[-9:]!r}."
            )
        return [self.id_of[char] for char in text]

    def decode(self, ids):
        unknown = {int(i) for i in ids} - set(range(self.vocab_size))
        if unknown:
            raise ValueError(f"There are no tokens {sorted(unknown)} here.")
        return "".join(self.chars[i] for i in ids)


def train_val_split(ids, train_fraction=0.9):
    """The first part to learn from, the rest to judge on."""
    n = int(train_fraction * len(ids))
    return ids[:n], ids[n:]


def get_batch(data, batch_size, block_size, device="cpu", generator=None):
    """Random pieces of the text, x (B, T), and what followed each character, y."""
    if len(data) <= block_size:
        raise ValueError(
            f"The data has {len(data)} tokens, but one window and its targets take "
            f"block_size + 1 = {block_size + 1}: use more text or a smaller block_size."
        )
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)
    positions = starts[:, None] + torch.arange(block_size)  # (B, T)
    x, y = data[positions], data[positions + 1]  # each (B, T)
    return x.to(device), y.to(device)


# Attention: each position takes from those before it (03, 04) -----------------------
def head_width(n_embd, n_head):
    if n_embd % n_head:
        raise ValueError(f"n_head = {n_head} must divide n_embd = {n_embd}.")
    return n_embd // n_head


def split_heads(x, n_head):
    """The channels cut into heads: (B, T, C) -> (B, n_head, T, head_size)."""
    B, T, C = x.shape
    heads = x.view(B, T, n_head, C // n_head)
    return heads.transpose(1, 2)  # attention takes the last two dimensions


class CausalSelfAttention(nn.Module):
    """softmax(q kᵀ / √head_size) v in n_head heads: (B, T, C) -> (B, T, C)."""

    def __init__(self, n_embd, n_head, dropout=0.0):
        super().__init__()
        self.n_head = n_head
        self.head_size = head_width(n_embd, n_head)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=-1)  # (B, T, C) each
        q = split_heads(q, self.n_head)  # (B, n_head, T, head_size)
        k = split_heads(k, self.n_head)
        v = split_heads(v, self.n_head)
        p = self.dropout.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        out = out.transpose(1, 2).reshape(B, T, C)  # heads side by side again
        return self.dropout(self.proj(out))


# The block: attention, then a computation at each position, each added (05) ---------
class FeedForward(nn.Module):
    """(B, T, C) -> (B, T, C), each position on its own."""

    def __init__(self, n_embd, dropout=0.0):
        super().__init__()
        self.expand = nn.Linear(n_embd, 4 * n_embd)
        self.relu = nn.ReLU()
        self.proj = nn.Linear(4 * n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.relu(self.expand(x))  # (..., 4 * n_embd)
        return self.dropout(self.proj(hidden))  # (..., n_embd)


class Block(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, n_embd, n_head, dropout=0.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(n_embd)
        self.attention = CausalSelfAttention(n_embd, n_head, dropout)
        self.norm2 = nn.LayerNorm(n_embd)
        self.feed_forward = FeedForward(n_embd, dropout)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


# The model: embeddings, a stack of blocks, a head (03, 06) --------------------------
def next_token_loss(logits, targets):
    """The mean surprise at the characters that came, in nats, or None."""
    if targets is None:
        return None
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class LanguageModel(nn.Module):
    """idx, targets: (B, T) -> logits (B, T, vocab_size), loss or None."""

    def __init__(self, vocab_size, block_size, n_embd, body):
        super().__init__()
        self.block_size = block_size
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.position_embedding = nn.Embedding(block_size, n_embd)
        self.body = body
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx, targets=None):
        T = idx.shape[1]
        if T > self.block_size:
            raise ValueError(
                f"idx has T = {T} tokens, but block_size is {self.block_size}: "
                f"pass the last ones, idx[:, -{self.block_size}:]."
            )
        positions = torch.arange(T, device=idx.device)  # (T,)
        x = self.token_embedding(idx)  # (B, T, n_embd)
        x = x + self.position_embedding(positions)  # the same for each piece
        logits = self.lm_head(self.body(x))  # (B, T, vocab_size)
        return logits, next_token_loss(logits, targets)


class GPT(LanguageModel):
    def __init__(self, config):
        c = config
        blocks = [Block(c.n_embd, c.n_head, c.dropout) for _ in range(c.n_layer)]
        body = nn.Sequential(*blocks, nn.LayerNorm(c.n_embd))
        super().__init__(c.vocab_size, c.block_size, c.n_embd, body)
        self.config = config
        init_weights(self)


def init_weights(model):
    c = model.config
    std = 0.02 * math.sqrt(768 / c.n_embd)  # GPT-2's, at GPT-2's width of 768
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    nn.init.normal_(model.lm_head.weight, std=0.01)  # almost uniform probabilities
    small = std / math.sqrt(2 * c.n_layer)  # so many additions add up: shrink each
    for block in model.body[:-1]:  # the last one is the LayerNorm
        nn.init.normal_(block.attention.proj.weight, std=small)
        nn.init.normal_(block.feed_forward.proj.weight, std=small)


# How good is it: the exact loss over a whole text (01) ------------------------------
@contextmanager
def evaluating(model):
    """Puts a model into evaluation mode, then back to how it was."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


@torch.no_grad()
def evaluate(model, data, block_size, batch_size=128):
    """In nats per character. Each one except the first is predicted once."""
    if len(data) < 2:
        raise ValueError(
            f"The data has {len(data)} tokens, but we need one to read and one to "
            "predict: use more text."
        )
    device = next(model.parameters()).device
    n = len(data) - 1
    rows = n // block_size
    whole = rows * block_size
    inputs = data[:whole].view(rows, block_size).split(batch_size)
    targets = data[1 : whole + 1].view(rows, block_size).split(batch_size)
    rest = data[whole:-1][None], data[whole + 1 :][None]  # (1, n - whole)
    total = 0.0
    with evaluating(model):
        for x, y in [*zip(inputs, targets), rest]:
            if y.numel() > 0:
                loss = model(x.to(device), y.to(device))[1].item()
                total += loss * y.numel()
    return total / n


# Training: AdamW, its rate up in a line and down along a cosine (06) ----------------
def make_optimizer(model, config):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    betas = (0.9, config.beta2)
    return torch.optim.AdamW(groups, config.learning_rate, betas, fused=True)


def learning_rate_at(step, config):
    warmup = min(config.warmup_steps, config.steps // 5)
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    done = (step - warmup) / (config.steps - warmup)  # from 0 to 1
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def train(model, data, config):
    """Take config.steps steps: each draws a batch and moves all parameters a little."""
    c, device = config, next(model.parameters()).device
    optimizer = make_optimizer(model, c)
    batches = torch.Generator().manual_seed(c.seed)
    model.train()
    for step in range(c.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, c)
        x, y = get_batch(data, c.batch_size, c.block_size, device, batches)
        loss = model(x, y)[1]
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), c.grad_clip)
        optimizer.step()
        if step % 100 == 0 or step == c.steps - 1:
            print(f"step {step:4}: loss {loss.item():.3f}", flush=True)


# Writing: ask, draw, append, ask again (06) -----------------------------------------
@torch.no_grad()
def generate(
    model, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None
):
    """Append what the model writes: idx (B, T) -> (B, T + max_new_tokens)."""
    with evaluating(model):
        for _ in range(max_new_tokens):
            logits, _ = model(idx[:, -model.block_size :])  # (B, T, vocab_size)
            probs = probabilities(logits[:, -1], temperature, top_k, top_p)
            next_idx = torch.multinomial(probs, 1, generator=generator)  # (B, 1)
            idx = torch.cat([idx, next_idx], dim=1)  # (B, T + 1)
    return idx


def probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """The probability of each next character: (B, vocab_size) -> the same."""
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    logits = logits / temperature
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    return F.softmax(logits, dim=-1)


def keep_top_k(logits, top_k):
    """Only the k likeliest characters stay possible."""
    k = min(top_k, logits.shape[-1])
    kth = logits.topk(k, dim=-1).values[:, -1:]  # (B, 1)
    return logits.masked_fill(logits < kth, float("-inf"))


def keep_top_p(logits, top_p):
    """Only the likeliest characters that together reach top_p stay possible."""
    probs, order = F.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    before = probs.cumsum(dim=-1) - probs  # what the likelier ones sum to
    drop = (before >= top_p) & (top_p < 1)  # (B, vocab_size), in sorted order
    drop = drop.scatter(-1, order, drop)  # back in the order of the ids
    return logits.masked_fill(drop, float("-inf"))


def main(path=None, **recipe):
    """Learn a text, say how well, and write 500 characters."""
    text = read_text(path)
    tokenizer = CharTokenizer(text)
    train_data, val_data = train_val_split(torch.tensor(tokenizer.encode(text)))
    config = Config(vocab_size=tokenizer.vocab_size, **recipe)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(config.seed)
    model = GPT(config).to(device)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters on {device}")
    train(model, train_data, config)
    loss = evaluate(model, val_data, config.block_size)
    print(f"validation loss {loss:.4f} nats per character")
    start = train_data[None, :1].to(device)  # (1, 1), the text's first character
    print(tokenizer.decode(generate(model, start, 500, temperature=0.8)[0]))


if __name__ == "__main__":
    paths = [word for word in sys.argv[1:] if "=" not in word]
    changes = [word.split("=") for word in sys.argv[1:] if "=" in word]
    main(*paths, **{name: type(getattr(Config, name))(x) for name, x in changes})
