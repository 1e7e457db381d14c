"""The whole GPT on one page: model, training, sampling, each as in its lesson.

python -m minigpt.whole [my_book.txt]    trains on Tiny Shakespeare or your text
"""

import math
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.data import CharTokenizer, get_batch, load_text, train_val_split
from minigpt.evaluation import evaluate
from minigpt.multi_head import head_width

config = SimpleNamespace(  # the recipe of 06
    block_size=64, n_layer=2, n_head=4, n_embd=128, dropout=0.0, steps=2400,
    batch_size=16, learning_rate=3e-3, warmup_steps=100, weight_decay=0.1, beta2=0.99,
    grad_clip=1.0, seed=1337)  # fmt: skip


# Attention with many heads (03, 04), in blocks (05) ---------------------------------
class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, dropout=0.0):
        super().__init__()
        self.n_head = n_head
        self.head_size = head_width(n_embd, n_head)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_head, self.head_size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_size)
        p = self.dropout.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        out = out.transpose(1, 2).reshape(B, T, C)  # heads side by side again
        return self.dropout(self.proj(out))


class FeedForward(nn.Module):
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
    def __init__(self, n_embd, n_head, dropout=0.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(n_embd)
        self.attention = CausalSelfAttention(n_embd, n_head, dropout)
        self.norm2 = nn.LayerNorm(n_embd)
        self.feed_forward = FeedForward(n_embd, dropout)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


# The GPT (03, 06) -------------------------------------------------------------------
def next_token_loss(logits, targets):
    if targets is None:
        return None
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class LanguageModel(nn.Module):
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
        x = self.token_embedding(idx) + self.position_embedding(positions)
        logits = self.lm_head(self.body(x))  # (B, T, n_embd) -> (B, T, vocab_size)
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
    for block in list(model.body)[:-1]:  # 2 * n_layer additions add up: shrink each
        for proj in (block.attention.proj, block.feed_forward.proj):
            nn.init.normal_(proj.weight, std=std / math.sqrt(2 * c.n_layer))


# Training: AdamW, warm-up and cosine (06) -------------------------------------------
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


# Sampling: ask, draw, append, ask again (06) ----------------------------------------
@torch.no_grad()
def generate(
    model, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None
):
    with evaluating(model):
        for _ in range(max_new_tokens):
            logits, _ = model(idx[:, -model.block_size :])  # (B, T, vocab_size)
            probs = probabilities(logits[:, -1], temperature, top_k, top_p)
            next_idx = torch.multinomial(probs, 1, generator=generator)  # (B, 1)
            idx = torch.cat([idx, next_idx], dim=1)  # (B, T + 1)
    return idx


@contextmanager
def evaluating(model):
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def require(condition, message):
    if not condition:
        raise ValueError(message)


def refuse_knobs(temperature=1.0, top_k=None, top_p=None):
    require(
        temperature == 0 or 1e-6 <= temperature < math.inf,  # below, logits overflow
        f"temperature is {temperature}; give 0, or a finite one from 1e-6 on.",
    )
    require(top_k is None or top_k >= 1, f"top_k is {top_k}; give at least 1.")
    require(
        top_p is None or 0 < top_p <= 1,
        f"top_p is {top_p}; give above 0, at most 1.",
    )


def probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    refuse_knobs(temperature, top_k, top_p)
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    logits = logits / temperature
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    return F.softmax(logits, dim=-1)


def keep_top_k(logits, top_k):
    k = min(top_k, logits.shape[-1])
    kth = logits.topk(k, dim=-1).values[:, -1:]  # (B, 1)
    return logits.masked_fill(logits < kth, float("-inf"))


def keep_top_p(logits, top_p):
    probs, order = F.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    before = probs.cumsum(dim=-1) - probs  # what the likelier ones sum to
    drop = (before >= top_p) & (top_p < 1)  # (B, vocab_size), in sorted order
    drop = drop.scatter(-1, order, drop)  # back in the order of the ids
    return logits.masked_fill(drop, float("-inf"))


def main(source="tinyshakespeare", c=config):
    tokenizer = CharTokenizer(text := load_text(source))
    train_data, val_data = train_val_split(torch.tensor(tokenizer.encode(text)))
    c.vocab_size = tokenizer.vocab_size
    torch.manual_seed(c.seed)
    model, batches = GPT(c), torch.Generator().manual_seed(c.seed)
    optimizer = make_optimizer(model, c)
    for step in range(c.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, c)
        x, y = get_batch(train_data, c.batch_size, c.block_size, generator=batches)
        loss = model(x, y)[1]
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), c.grad_clip)
        optimizer.step()
        if step % 100 == 0 or step == c.steps - 1:
            print(f"step {step:4}: loss {loss.item():.3f}", flush=True)
    loss = evaluate(model, val_data, c.block_size)
    print(f"validation loss {loss:.4f} nats per character")
    print(tokenizer.decode(generate(model, train_data[None, :1], 500, 0.8)[0]))


if __name__ == "__main__":
    main(*sys.argv[1:2])
