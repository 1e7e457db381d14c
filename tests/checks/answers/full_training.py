"""Answers to notebook 06's exercises."""

from exercises import edited, exercises_of

EXERCISES = exercises_of("06")


def names():
    return {}


def body(number, *edits):
    return edited(EXERCISES[number].solution, *edits)


def probs(crop="idx[:, -block_size:]", last="[:, -1]", end=None, keep=None):
    keep = keep or "logits = logits.masked_fill(logits < kth, float('-inf'))"
    return f"""
def next_probs(model, idx, block_size, temperature=1.0, top_k=None):
    logits = model({crop})[0]{last}
    logits, unscaled = logits / temperature, logits
    if top_k is not None:
        kth = logits.topk(min(top_k, logits.shape[-1]), dim=-1).values[:, -1:]
        {keep}
    return {end or "F.softmax(logits, dim=-1)"}
"""


def keep(condition):
    return f"logits = logits.masked_fill(~({condition}), float('-inf'))"


def verdict(*lines):
    return "def verdict(before, after):\n" + "".join(f"    {line}\n" for line in lines)


def split(lines):
    head = "def split_windows(ids, block_size, train_fraction=0.9):\n"
    head += "    size = block_size + 1\n    n = int(train_fraction * len(ids))\n"
    return head + "".join(f"    {line}\n" for line in lines.splitlines())


SHUFFLED = """windows = ids.unfold(0, size, {stride})
windows = windows[torch.randperm(len(windows))]
n = int(train_fraction * len(windows))
return windows[:n], windows[n:]"""


WRONG = {
    "06.1": {
        "It's right for 2 of 5 inputs": body(
            "06.1", ("mean = m / (1 - b1**t)", "m = m / (1 - b1**t); mean = m")
        ),
        "`p` is the wrong variable": body("06.1", ("return path", "return p")),
        "It raised ZeroDivisionError": body("06.1", (", start=1", "")),
    },
    "06.2": {
        "You give the model 5 tokens": probs(crop="idx"),
        "starts or stops in the wrong place": probs(crop="idx[:, 1 - block_size:]"),
        "`unscaled` is the wrong variable": probs(end="F.softmax(unscaled, dim=-1)"),
        "topk can't give more values": (
            "def next_probs(model, idx, block_size, temperature=1.0, top_k=None):\n"
            "    logits = model(idx[:, -block_size:])[0][:, -1] / temperature\n"
            "    if top_k is not None:\n"
            "        least = logits.topk(top_k, dim=-1).values[:, -1:]\n"
            "        logits = logits.masked_fill(logits < least, -torch.inf)\n"
            "    return F.softmax(logits, dim=-1)\n"
        ),
    },
    "06.3": {
        "The bug is still there": body("06.3") + split(SHUFFLED.format(stride=1)),
        "Only around the cut": split(
            "windows = ids.unfold(0, size, 1)\n"
            "n = int(train_fraction * len(windows))\n"
            "return windows[:n], windows[n:]"
        ),
        "on the whole text": split(
            "return [part.unfold(0, size, 1) for part in (ids[:n], ids)]"
        ),
        "That's the training loss": split(
            "a = ids[:n].unfold(0, size, 1)\nreturn a, a[-20:]"
        ),
        "aren't neighbors in the text": split(
            "ids = ids[torch.randperm(len(ids))]\n"
            "return ids[:n].unfold(0, size, 1), ids[n:].unfold(0, size, 1)"
        ),
    },
    "06.4": {
        "`change <= 0` is true also when both are equal": body(
            "06.4", ("change < 0", "change <= 0")
        ),
        "Better and worse are swapped": body("06.4", ("[a - b for", "[b - a for")),
    },
    "06.5": {
        "ends one token too early": body(
            "06.5", ("cumsum(dim=-1) - likely", "cumsum(dim=-1)")
        ),
        "must go back to its id": body(
            "06.5",
            ("return torch.zeros_like(probs).scatter(-1, order, kept)", "return kept"),
        ),
        "sum to less than one": body(
            "06.5", ("kept = kept / kept.sum(dim=-1, keepdim=True)", "pass")
        ),
    },
}

RIGHT = {
    "06.1": {
        "torch's own": """
def walk(p, grads, lr, betas, decay, eps=1e-8):
    weight, path = nn.Parameter(torch.tensor([p], dtype=torch.double)), []
    opt = torch.optim.AdamW([weight], lr, betas, eps, weight_decay=decay)
    for g in grads:
        weight.grad = torch.full_like(weight, g)
        opt.step()
        path.append(weight.item())
    return path
""",
    },
    "06.2": {
        "float64": probs(end="F.softmax(logits.double(), dim=-1)"),
        "exp and sum": probs(end="logits.exp() / logits.exp().sum(-1, keepdim=True)"),
    },
    "06.3": {
        "shuffled afterwards": split(
            "learn = ids[:n].unfold(0, size, 1)\n"
            "learn = learn[torch.randperm(len(learn))]\n"
            "return learn, ids[n:].unfold(0, size, 1)"
        ),
    },
    "06.4": {
        "measured": verdict(
            "d = sorted(a - b for a, b in zip(after, before))",
            "return 'better' if d[-1] < 0 else 'worse' if d[0] > 0 else 'tie'",
        ),
    },
    "06.5": {
        "token by token": """
def nucleus(probs, top_p):
    rows = []
    for row in probs:
        kept, total = torch.zeros_like(row), 0.0
        for i in row.argsort(descending=True).tolist():
            kept[i] = row[i]
            total += row[i].item()
            if total >= top_p:
                break
        rows.append(kept / kept.sum())
    return torch.stack(rows)
""",
        "as the lesson's, from logits": """
def nucleus(probs, top_p):
    from minigpt.generation import keep_top_p
    return keep_top_p(probs.log(), top_p).softmax(dim=-1)
""",
    },
}
