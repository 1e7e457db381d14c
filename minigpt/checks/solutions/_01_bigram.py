"""Solutions of notebook 01."""


import torch
import torch.nn.functional as F


# 01.1
def surprise(p):
    return -p.log().mean()


# 01.2
def tile(data, block_size):
    n = (len(data) - 1) // block_size
    x = data[: n * block_size].view(n, block_size)
    y = data[1 : n * block_size + 1].view(n, block_size)
    return x, y


# 01.3
def before_table(ids, vocab_size):
    table = torch.ones(vocab_size, vocab_size)
    for a, b in zip(ids[:-1].tolist(), ids[1:].tolist()):
        table[b, a] += 1
    return table / table.sum(dim=1, keepdim=True)


# 01.4
def loss_by_position(logits, y):
    B, T, C = logits.shape
    rows = logits.reshape(B * T, C)
    each = F.cross_entropy(rows, y.reshape(B * T), reduction="none")
    return each.view(B, T).mean(dim=0)


# 01.5
def experiment(train, val, loss):
    sizes = [len(train) // k for k in (16, 8, 4, 2, 1)]
    on_read = [loss(train[:n], train[:n]) for n in sizes]
    on_new = [loss(train[:n], val) for n in sizes]
    gap = on_new[-1] - on_read[-1]
    verdict = "context" if gap < 0.05 else "text"
    return sizes, on_read, on_new, verdict


# 01.6
def loss_gradient(logits, y):
    B, T, C = logits.shape
    believed = F.softmax(logits, dim=-1)  # (B, T, C)
    came = F.one_hot(y, C)  # (B, T, C)
    return (believed - came) / (B * T)


# 01.7
@torch.no_grad()
def write_on(model, idx, max_new_tokens):
    for _ in range(max_new_tokens):
        logits, _ = model(idx)  # (B, T, C)
        now = logits[:, -1]  # (B, C): the last position
        probs = F.softmax(now, dim=-1)
        drawn = torch.multinomial(probs, num_samples=1)  # (B, 1)
        idx = torch.cat([idx, drawn], dim=1)  # (B, T + 1)
    return idx


# 01.8
def fit(model, batches, learning_rate):
    losses = []
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate
    )
    for x, y in batches:
        _, loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
