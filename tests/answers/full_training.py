"""Answers to notebook 06's exercises."""

import string

import torch
from exercises import edited, exercises_of

from minigpt import record
from minigpt.data import CharTokenizer
from minigpt.gpt import GPT, GPTConfig

EXERCISES = exercises_of("06")


def names():
    tokenizer = CharTokenizer(string.ascii_letters + " !?.\n")
    V = tokenizer.vocab_size
    data = torch.randint(V, (4000,), generator=torch.Generator().manual_seed(0))
    config = GPTConfig(V, block_size=64, n_layer=1, n_head=2, n_embd=8)
    model = GPT(config).eval()
    model.lm_head.weight.data.mul_(5)
    return {
        "device": torch.device("cpu"),
        "record": record,
        **{"tokenizer": tokenizer, "config": config, "model": model},
        **{"train_data": data[:3000], "val_data": data[3000:]},
        "probs": model(data[None, 3000:3050])[0][0].detach().softmax(dim=-1),
    }


def body(number, *edits):
    return edited(EXERCISES[number].solution, *edits)


# 06.2


def rate(up="(step + 1) / warmup", done=None, down="0.1 + 0.9 * falling"):
    done = done or "(step - warmup) / (steps - warmup)"
    return f"""
def rate(step, steps, warmup, peak):
    if step < warmup:
        return peak * ({up})
    done = {done}
    falling = 0.5 * (1 + math.cos(math.pi * done))
    return peak * ({down})
"""


# 06.3


def step(clip, lines="forward zero backward clip step return"):
    known = {
        "forward": "loss = model(x, y)[1]",
        "zero": "optimizer.zero_grad()",
        "backward": "loss.backward()",
        "clip": clip,
        "step": "optimizer.step()",
        "return": "return loss.item()",
    }
    body = "\n".join(known[line] for line in lines.split())
    indented = "\n".join("    " + line for line in body.splitlines())
    head = "def train_step(model, optimizer, x, y, max_norm):\n"
    return head + "    ps = list(model.parameters())\n" + indented + "\n"


def by_hand(length, condition="length > max_norm"):
    return f"""length = {length}
if {condition}:
    for p in ps:
        p.grad *= max_norm / length"""


LENGTH = "sum((p.grad**2).sum() for p in ps) ** 0.5"
TORCHS = "torch.nn.utils.clip_grad_norm_(ps, max_norm)"
CLIP = by_hand(LENGTH)


# 06.4


def probs(crop="idx[:, -block_size:]", last="[:, -1]", end=None, keep=None):
    keep = keep or "logits = logits.masked_fill(logits < kth, float('-inf'))"
    return f"""
def next_probs(model, idx, block_size, temperature=1.0, top_k=None):
    logits = model({crop})[0]{last}
    logits, unscaled = logits / temperature, logits
    if top_k is not None:
        kth = logits.topk(top_k, dim=-1).values[:, -1:]
        {keep}
    return {end or "F.softmax(logits, dim=-1)"}
"""


def keep(condition):
    return f"logits = logits.masked_fill(~({condition}), float('-inf'))"


# 06.5


def nucleus(expression, sums="probs.sort(dim=-1, descending=True).values.cumsum(-1)"):
    head = "def nucleus_size(probs, p):\n"
    return f"{head}    sums = {sums}\n    return {expression}\n"


# 06.6

WEIGHED = 'reduction="sum").item()\n    return total / len(spots)'
BATCH_MEANS = ").item()\n    return total / len(x.split(128))"
EVIDENCE = "losses = {n: loss_with_past(model, val_data, spots, n)"


# 06.10


def verdict(*lines):
    return "def verdict(before, after):\n" + "".join(f"    {line}\n" for line in lines)


# 06.7


def poet(loop, before="", seed="seed"):
    return f"""
{before}
def sample(model, idx, n, seed):
    rng = torch.Generator().manual_seed({seed})
    for step in range(n):
        logits = model(idx[:, -model.block_size:])[0][:, -1]
        probs = F.softmax(logits, dim=-1)
        {loop}
        idx = torch.cat([idx, next_idx], dim=1)
    return idx
"""


# 06.8


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
        "In AdamW it is decoupled": body(
            "06.1",
            ("m = b1 * m", "g = g + decay * p; m = b1 * m"),
            ("decay * p + mean", "mean"),
        ),
        "not multiplied by the learning rate": body(
            "06.1", ("lr * (decay * p + mean", "decay * p - (lr * mean")
        ),
        "That is plain gradient descent": """
def walk(p, grads, lr, betas, decay, eps=1e-8):
    path = []
    for g in grads:
        p = p - lr * (g + decay * p)
        path.append(p)
    return path
""",
        "but for `(v / (1 - b2 ** t) + eps) ** 0.5` where": body(
            "06.1",
            (
                "root = (v / (1 - b2**t)) ** 0.5",
                "root = (v / (1 - b2**t) + eps) ** 0.5",
            ),
            ("(root + eps)", "root"),
        ),
        "but for `m` where": body(
            "06.1", ("mean = m / (1 - b1**t)", "m = m / (1 - b1**t); mean = m")
        ),
        "only m and v should": body(
            "06.1",
            ("mean = m / (1 - b1**t)", "mean = m = m / (1 - b1**t)"),
            ("root = (v / (1 - b2**t))", "v = v / (1 - b2**t); root = v"),
        ),
        "get with `return p` where": body("06.1", ("return path", "return p")),
        "`/ (1 - b1 ** t)` left out": body(
            "06.1", ("mean = m / (1 - b1**t)", "mean = m")
        ),
        "get with the root left out": body("06.1", (") ** 0.5", ")")),
        "your line 8: p = p + lr": body("06.1", ("p = p - lr", "p = p + lr")),
        "`(1 - b1) *` left out": body(
            "06.1", ("m = b1 * m + (1 - b1) * g", "m = b1 * m + g")
        ),
        "inside the loop in place of behind it": body(
            "06.1", ("        path.append(p)\n    return path", "        return [p]")
        ),
        "It raised ZeroDivisionError": body("06.1", (", start=1", "")),
        "two values exchanged: `(b2, b1)`": body(
            "06.1", ("(b1, b2), m", "(b2, b1), m")
        ),
    },
    "06.2": {
        "get with `+ 1` left out": rate(up="step / warmup"),
        "but for `peak * ((step + 1) / (warmup + 1))` where": rate(
            up="(step + 1) / (warmup + 1)"
        ),
        "take the full rate": rate(up="1"),
        "but for `peak * (0.1 + 0.45 * (1 + math.cos(math.p": rate(
            up="0.1 + 0.45 * (1 + math.cos(math.pi * step / steps))"
        ).replace("done = (step - warmup) / (steps - warmup)", "done = step / steps"),
        "but for `1 - falling` where": rate(down="0.1 + 0.9 * (1 - falling)"),
        "but for `2 * math.pi` where": rate().replace(
            "math.pi * done", "2 * math.pi * done"
        ),
        "but for `falling` where": rate(down="falling"),
        "`0.9 *` left out": rate(down="0.1 + falling"),
        "but for `1 - 0.9 * done` where": rate(down="1 - 0.9 * done"),
        "counts the warm-up as done": rate(done="step / steps"),
        "`- warmup` left out": rate(done="(step - warmup) / steps"),
    },
    "06.3": {
        "old gradients are still there": step(
            CLIP, "forward backward clip step return"
        ),
        "do not move at all": [
            step(CLIP, "forward backward clip zero step return"),
            step(CLIP, "forward zero backward clip return"),
        ],
        "as if nothing were clipped: it is missing, comes after": [
            step(
                "grads = [p.grad for p in ps]\n"
                f"length = {LENGTH}\n"
                "for g in grads:\n"
                "    if length > max_norm:\n"
                "        g = g * max_norm / length"
            ),
            step("pass"),
            step(CLIP, "forward zero backward step clip return"),
        ],
        "p.grad is None before": step(CLIP, "forward zero clip backward step return"),
        "each number on its own": step(
            "for p in ps:\n    p.grad.clamp_(-max_norm, max_norm)"
        ),
        "each parameter on its own": step(
            "for p in ps:\n    nn.utils.clip_grad_norm_(p, max_norm)"
        ),
        "You scale the weights": step(
            f"if {LENGTH} > max_norm:\n"
            "    for p in ps:\n"
            f"        p.data *= max_norm / {LENGTH}"
        ),
        "short gradients, too": step(by_hand(LENGTH, "True")),
        "the root left out (`** 0.5`)": step(
            by_hand("sum((p.grad**2).sum() for p in ps)")
        ),
        "Lengths do not add": step(by_hand("sum(p.grad.norm() for p in ps)")),
        "absolute values": step(by_hand("sum(p.grad.abs().sum() for p in ps)")),
        "before the step it was 225": step(CLIP).replace(
            "return loss", "return model(x, y)[1]"
        ),
        "a tensor that still knows": step(CLIP).replace("loss.item()", "loss"),
        "not returned as a number": step(CLIP).replace("return loss.item()", ""),
    },
    "06.4": {
        "The input has T = 5 tokens": probs(crop="idx"),
        "keep the first": [
            probs(crop="idx[:, :block_size]"),
            probs(crop="idx[:, :block_size]", end="F.softmax(unscaled, dim=-1)"),
        ],
        "get with `[-block_size + 1:]` where": probs(crop="idx[:, 1 - block_size:]"),
        "first position": probs(last="[:, 0]"),
        "get with `model(context)[0][-1, :]` where": probs(last="[-1]"),
        "get with the index `[:, -1]` left out": probs(last=""),
        "`logits` itself, without `F.softmax`, where `F.softmax": probs(end="logits"),
        "`dim=0` where `dim=-1` belongs": probs(end="F.softmax(logits, dim=0)"),
        "but for `unscaled` where": probs(end="F.softmax(unscaled, dim=-1)"),
        "but for `unscaled * temperature` where": probs(
            end="F.softmax(unscaled * temperature, dim=-1)"
        ),
        "You divide the probabilities": probs(
            end="F.softmax(unscaled, dim=-1) / temperature"
        ),
        "to the power 1 / temperature": probs(
            end="F.softmax(unscaled, dim=-1) ** (1 / temperature)"
        ),
        "get with `top_k is None` where": probs(keep="pass"),
        "the wrong side": probs(
            keep=keep("logits <= logits.sort(dim=-1).values[:, [top_k - 1]]")
        ),
        "but for `~(logits > kth)` where": probs(keep=keep("logits > kth")),
        "but for `~(logits >= logits.sort(-1, descending=Tr": probs(
            keep=keep("logits >= logits.sort(-1, descending=True)[0][:, [top_k]]")
        ),
        "it may still be drawn": probs(
            keep="logits = logits.masked_fill(logits < kth, 0.0)"
        ),
        "sum to less than one": probs(
            keep="return F.softmax(logits, -1).masked_fill(logits < kth, 0.0)"
        ),
        "only k numbers": probs(keep="logits = logits.topk(top_k).values"),
        "but for `~(logits >= kth[0])` where": probs(keep=keep("logits >= kth[0]")),
    },
    "06.5": {
        "You drop the character": [
            nucleus("(sums < p).sum(-1)"),
            nucleus("(sums <= p).sum(-1)"),
        ],
        "`likely.cumsum(dim=-1) <= p` where": nucleus("(sums <= p).sum(-1) + 1"),
        "in the order of the ids": nucleus(
            "(sums < p).sum(-1) + 1", "probs.cumsum(-1)"
        ),
        "`descending=True` left out": nucleus(
            "(sums < p).sum(-1) + 1", "probs.sort(-1).values.cumsum(-1)"
        ),
        "`dim=0` where `dim=-1` belongs": nucleus(
            "(sums < p).sum(-1) + 1", "probs.sort(-1, descending=True).values.cumsum(0)"
        ),
        "single probabilities": nucleus("(probs >= p).sum(-1)"),
        "one number": nucleus("((sums < p).sum(-1) + 1).sum()"),
        "asked is how many": nucleus("sums < p"),
        "You give the sum that is reached": nucleus(
            "sums.gather(-1, (sums < p).sum(-1)[:, None])[:, 0]"
        ),
    },
    "06.6": {
        "includes the very character": body(
            "06.6", ("torch.arange(-n, 0)", "torch.arange(1 - n, 1)")
        ),
        "but for `-n - 1` where": body(
            "06.6", ("torch.arange(-n, 0)", "torch.arange(-n - 1, -1)")
        ),
        "get with `spots + 1` where": (
            body("06.6", ("data[spots].to", "data[spots + 1].to"))
            + "losses, enough = {}, 1"
        ),
        "mean over all positions": """
@torch.no_grad()
def loss_with_past(model, data, spots, n):
    model.eval()
    windows = data[spots[:, None] + torch.arange(-n, 1)]
    return model(windows[:, :-1], windows[:, 1:])[1].item()
""",
        "first position": body("06.6", ("[0][:, -1]", "[0][:, 0]")),
        "whatever n is": body(
            "06.6", ("torch.arange(-n, 0)", "torch.arange(-model.block_size, 0)")
        ),
        "`/ len(spots)` left out": body("06.6", ("total / len(spots)", "total")),
        "These are bits": body(
            "06.6", ("total / len(spots)", "total / len(spots) / math.log(2)")
        ),
        "e to the power of what": body(
            "06.6", ("total / len(spots)", "math.exp(total / len(spots))")
        ),
        "training mode": [
            body("06.6", ("model.eval()", "model.train()")),
            body("06.6", ("    model.eval()\n", "")),
        ],
        "the last batch is shorter": [
            body("06.6", (WEIGHED, BATCH_MEANS)),
            body("06.6", (WEIGHED, BATCH_MEANS)).replace("split(128)", "split(50)"),
        ],
        "The mean over dimension 0 is missing": """
@torch.no_grad()
def loss_with_past(model, data, spots, n):
    logits = model.eval()(data[spots[:, None] + torch.arange(-n, 0)])[0][:, -1]
    return F.cross_entropy(logits, data[spots], reduction="none")
""",
        "Now the evidence": body("06.6") + "losses = {}",
        "you judged on the training split": body(
            "06.6", ("model, val_data", "model, train_data")
        ),
        "your evidence says": body(
            "06.6", ("val_data, spots, n", "val_data, spots - n, n")
        ),
        "it should be one of the lengths": body("06.6") + "enough = best",
        "too short": body("06.6") + "enough = max(losses, key=losses.get)",
        "more than it takes": (
            body("06.6")
            + "enough = [n for n in lengths if losses[n] < best + 0.05][-1]"
        ),
    },
    "06.7": {
        "always take the likeliest": poet(
            "next_idx = probs.argmax(dim=-1, keepdim=True)"
        ),
        "another text at each call": [
            poet("next_idx = torch.multinomial(probs, 1)"),
            poet(
                "next_idx = torch.multinomial(probs, 1, generator=shared)",
                before="shared = torch.Generator().manual_seed(1)",
            ),
        ],
        "every seed writes the same": poet(
            "next_idx = torch.multinomial(probs, 1, generator=rng)", seed="1"
        ),
        "shifted by one": poet(
            "rng.manual_seed(seed + step); "
            "next_idx = torch.multinomial(probs, 1, generator=rng)"
        ),
        "The bug is still there": poet(
            "torch.manual_seed(seed); next_idx = torch.multinomial(probs, 1)"
        ),
        "the model is not listened to": poet(
            "next_idx = torch.randint(probs.shape[-1], (1, 1), generator=rng)"
        ),
        "lead to shares": poet(
            "next_idx = torch.multinomial(probs**3, 1, generator=rng)"
        ),
        "Return all of it": body("06.7", ("return idx", "return idx[:, -n:]")),
    },
    "06.8": {
        "The bug is still there": [
            body("06.8") + split(SHUFFLED.format(stride=1)),
            split(SHUFFLED.format(stride=2)),
        ],
        "Around the cut": split(
            "windows = ids.unfold(0, size, 1)\n"
            "n = int(train_fraction * len(windows))\n"
            "return windows[:n], windows[n:]"
        ),
        "that is the training loss": split(
            "a = ids[:n].unfold(0, size, 1)\nreturn a, a[-20:]"
        ),
        "the parts are exchanged": split(
            "return ids[n:].unfold(0, size, 1), ids[:n].unfold(0, size, 1)"
        ),
        "characters themselves are shuffled": split(
            "ids = ids[torch.randperm(len(ids))]\n"
            "return ids[:n].unfold(0, size, 1), ids[n:].unfold(0, size, 1)"
        ),
        "one part is": split(
            "return [part.unfold(0, size - 1, 1) for part in (ids[:n], ids[n:])]"
        ),
        "text is lost": [
            split(
                "n = int(0.5 * len(ids))\n"
                "return ids[:n].unfold(0, size, 1), ids[n:].unfold(0, size, 1)"
            ),
            split(
                "n = 48\nreturn ids[:n].unfold(0, size, 1), ids[n:].unfold(0, size, 1)"
            ),
        ],
        "Return two tensors": split("return ids.unfold(0, size, 1)"),
        "One of the two parts is empty": split(
            "a = ids.unfold(0, size, 1)\nreturn a, a[:0]"
        ),
    },
    "06.9": {
        "as two parameters": body(
            "06.9",
            (
                "model.lm_head.weight = model.token_embedding.weight",
                "model.lm_head.weight.data = model.token_embedding.weight.data.clone()",
            ),
        ),
        "no longer a linear layer": body(
            "06.9",
            (
                "model.lm_head.weight = model.token_embedding.weight",
                "model.lm_head = model.token_embedding",
            ),
        ),
        "counted twice": """
def tie(model):
    before = sum(p.numel() for p in model.parameters())
    model.lm_head.weight = model.token_embedding.weight
    return before, sum(p.numel() for p in model.state_dict().values())
""",
        "Two numbers are wanted": body(
            "06.9", ("return before, after", "return after")
        ),
        "weight` left out": body(
            "06.9", ("    model.lm_head.weight = model.token_embedding.weight\n", "")
        ),
        "The two numbers are exchanged": body(
            "06.9", ("return before, after", "return after, before")
        ),
        "the bias of lm_head is gone": body(
            "06.9",
            (
                "model.lm_head.weight = model.token_embedding.weight",
                "model.lm_head = nn.Linear(4, 5, bias=False); "
                "model.lm_head.weight = model.token_embedding.weight",
            ),
        ),
        "You count tensors": """
def tie(model):
    before = len(list(model.parameters()))
    model.lm_head.weight = model.token_embedding.weight
    return before, len(list(model.parameters()))
""",
    },
    "06.10": {
        "Exactly on the border": body("06.10", ("<= max", "< max")),
        "You compare two heaps": verdict(
            "mean = sum(after) / len(after) - sum(before) / len(before)",
            "spread = max(max(after) - min(after), max(before) - min(before))",
            "if abs(mean) <= spread: return 'tie'",
            "return 'better' if mean < 0 else 'worse'",
        ),
        "Half the spread": body(
            "06.10",
            ("max(changes) - min(changes)", "(max(changes) - min(changes)) / 2"),
        ),
        "mean only": verdict(
            "mean = sum(after) / len(after) - sum(before) / len(before)",
            "return 'tie' if mean == 0 else 'better' if mean < 0 else 'worse'",
        ),
        "but for `mean > 0` where": body("06.10", ("mean < 0", "mean > 0")),
        "min(changes):` left out": verdict(
            "return 'better' if sum(after) < sum(before) else 'worse'"
        ),
        "at least three seeds": body("06.10") + "\nafter = [1.68]",
        "`sorted(": body(
            "06.10", ("zip(after, before)", "zip(sorted(after), sorted(before))")
        ),
        "whether all seeds agree": verdict(
            "d = [a - b for a, b in zip(after, before)]",
            "if max(d) < 0: return 'better'",
            "return 'worse' if min(d) > 0 else 'tie'",
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
        "sums of the past": """
def walk(p, grads, lr, betas, decay, eps=1e-8):
    path = []
    for t in range(1, len(grads) + 1):
        means = []
        for beta, values in zip(betas, (grads, [g * g for g in grads])):
            weights = [beta ** (t - 1 - s) for s in range(t)]
            means.append(sum(w * x for w, x in zip(weights, values)) / sum(weights))
        p = p * (1 - lr * decay) - lr * means[0] / (math.sqrt(means[1]) + eps)
        path.append(p)
    return torch.tensor(path, dtype=torch.double)
""",
    },
    "06.2": {
        "in torch, float64": rate().replace(
            "math.cos(math.pi * done)",
            "torch.cos(torch.tensor(math.pi * done, dtype=torch.float64))",
        ),
        "low and high": rate(down="0.55 + 0.45 * math.cos(math.pi * done)"),
        "one expression": """
def rate(step, steps, warmup, peak):
    angle = math.pi * (step - warmup) / (steps - warmup)
    low = peak / 10
    down = low + (peak - low) * math.cos(angle / 2) ** 2
    return min(peak * (step + 1) / max(1, warmup), peak) if step < warmup else down
""",
    },
    "06.3": {
        "torch's own": step(TORCHS),
        "zero_grad at the end": step(CLIP, "forward backward clip step zero return"),
        "zero_grad first": step(CLIP, "zero forward backward clip step return"),
        "one long vector": step(
            by_hand("torch.cat([p.grad.flatten() for p in ps]).norm().item()")
        ),
        "always multiplied by a factor": step(
            f"factor = (max_norm / {LENGTH}).clamp(max=1)\n"
            "for p in ps:\n    p.grad = p.grad * factor"
        ),
        "a tensor for the loss": step(CLIP).replace("loss.item()", "loss.detach()"),
    },
    "06.4": {
        "float64": probs(end="F.softmax(logits.double(), dim=-1)"),
        "exp and sum": probs(end="logits.exp() / logits.exp().sum(-1, keepdim=True)"),
        "power, scaled again": probs(
            last="[:, -1].log_softmax(-1)",
            end="(logits.exp() / logits.exp().sum(-1, keepdim=True))",
        ),
        "top-k by scatter, on the probabilities": """
def next_probs(model, idx, block_size, temperature=1.0, top_k=None):
    logits = model(idx[:, -block_size:])[0][:, -1, :]
    probs = (logits / temperature).softmax(1)
    if top_k is not None:
        values, places = probs.topk(top_k)
        probs = torch.zeros_like(probs).scatter(1, places, values)
    return probs / probs.sum(1, keepdim=True)
""",
        "loop over the rows": """
def next_probs(model, idx, block_size, temperature=1.0, top_k=None):
    if idx.shape[1] > block_size:
        idx = idx[:, idx.shape[1] - block_size:]
    rows = []
    for logits in model(idx)[0][:, -1]:
        if top_k is not None:
            logits[logits.argsort(descending=True)[top_k:]] = -math.inf
        rows.append(torch.softmax(logits / temperature, 0))
    return torch.stack(rows)
""",
    },
    "06.5": {
        "searchsorted": nucleus(
            "torch.searchsorted(sums, torch.full((len(sums), 1), p))[:, 0] + 1"
        ),
        "argmax": nucleus("(sums >= p).int().argmax(dim=-1) + 1"),
        "loops and a list": """
def nucleus_size(probs, p):
    sizes = []
    for row in probs.tolist():
        total, n = 0.0, 0
        for value in sorted(row, reverse=True):
            total, n = total + value, n + 1
            if total >= p:
                break
        sizes.append(n)
    return sizes
""",
    },
    "06.6": {
        "all at once, a tensor": (
            body("06.6").replace("x.split(128)", "[x]")
            + """
@torch.no_grad()
def loss_with_past(model, data, spots, n):
    x = torch.stack([data[s - n : s] for s in spots.tolist()])
    logits = model.eval()(x)[0][:, -1]
    return F.cross_entropy(logits, data[spots])
"""
        ),
        "probabilities by hand": (
            body("06.6")
            + """
def loss_with_past(model, data, spots, n):
    was, device = model.training, next(model.parameters()).device
    model.train(False)
    losses = []
    for s in spots:
        with torch.no_grad():
            row = model(data[s - n : s][None].to(device))[0][0, n - 1]
        losses.append(-row.double().softmax(0)[data[s]].log().item())
    model.train(was)
    return sum(losses) / len(losses)
"""
        ),
        "other lengths": body("06.6", ("1, 2, 4, 8, 16", "1, 3, 7, 11, 30")),
    },
    "06.7": {
        "global random numbers": poet("next_idx = torch.multinomial(probs, 1)").replace(
            "rng = torch.Generator()", "torch"
        ),
        "Gumbel's way": poet(
            "noise = -torch.rand(probs.shape, generator=rng).log(); "
            "next_idx = (probs / noise).argmax(dim=-1, keepdim=True)"
        ),
    },
    "06.8": {
        "loops": split(
            "parts = []\n"
            "for part in (ids[:n], ids[n:]):\n"
            "    starts = range(len(part) - block_size)\n"
            "    parts.append(torch.stack([part[s:s + size] for s in starts]))\n"
            "return parts"
        ),
        "shuffled afterwards": split(
            "learn = ids[:n].unfold(0, size, 1)\n"
            "learn = learn[torch.randperm(len(learn))]\n"
            "return learn, ids[n:].unfold(0, size, 1)"
        ),
        "one behind the other": split(
            "return ids[:n].unfold(0, size, block_size), "
            "ids[n:].unfold(0, size, block_size)"
        ),
        "pieces without overlap, shuffled": split(SHUFFLED.format(stride="size")),
    },
    "06.9": {
        "the other way round": """
def tie(model):
    before = sum(p.numel() for p in model.parameters())
    model.token_embedding.weight = model.lm_head.weight
    return before, before - model.lm_head.weight.numel()
""",
        "a list, counted by id": """
def tie(model):
    def count():
        return sum({id(p): p.numel() for p in model.state_dict(keep_vars=True).values()}
                   .values())
    before = count()
    model.lm_head.weight = model.token_embedding.weight
    return [before, torch.tensor(count())]
""",
    },
    "06.10": {
        "tensors": verdict(
            "d = torch.tensor(after) - torch.tensor(before)",
            "if d.mean().abs() <= d.max() - d.min(): return 'tie'",
            "return ['better', 'worse'][int(d.mean() > 0)]",
        ),
        "measured": verdict(
            "d = sorted(a - b for a, b in zip(after, before))",
            "mean = sum(d) / len(d)",
            "if mean > d[-1] - d[0]: return 'worse'",
            "return 'better' if -mean > d[-1] - d[0] else 'tie'",
        )
        + "\nafter = [1.68, 1.675, 1.695]",
    },
}
