"""Notebook 06's exercises: solutions pass, and each known mistake gets its name."""

import contextlib
import io
import math
import string

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from exercises import exercises_of, play

import minigpt.checks.full_training as checks
from minigpt.data import CharTokenizer
from minigpt.gpt import GPT, GPTConfig

EXERCISES = {exercise.number: exercise for exercise in exercises_of("06")}
HUNTS = ["06.7", "06.8"]


def nothing(*ignored):
    """In place of the training and its figure before the last hunt."""


def _namespace():
    tokenizer = CharTokenizer(string.ascii_letters + " !?.\n")
    generator = torch.Generator().manual_seed(0)
    V = tokenizer.vocab_size
    data = torch.randint(V, (4000,), generator=generator)
    torch.manual_seed(0)
    config = GPTConfig(V, block_size=64, n_layer=1, n_head=2, n_embd=8)
    model = GPT(config).eval()
    model.lm_head.weight.data.mul_(5)

    def pairs(idx):
        return (idx[..., None] * 0.1).expand(*idx.shape, V), None

    pairs.block_size = 1
    names = {name: getattr(checks, name) for name in dir(checks) if "check_" in name}
    return {
        **names,
        **{"math": math, "torch": torch, "nn": nn, "F": F},
        **{"learn": nothing, "draw": nothing, "device": torch.device("cpu")},
        **{"tokenizer": tokenizer, "config": config, "model": model},
        **{"train_data": data[:3000], "val_data": data[3000:]},
        **{"pairs": pairs, "start": torch.zeros(1, 1, dtype=torch.long)},
    }


NAMESPACE = _namespace()


def says(number, code=""):
    return play(EXERCISES[number], NAMESPACE, code)


def body(number, *replacements):
    """The solution with pieces replaced, each of which must be there."""
    code = EXERCISES[number].solution
    for old, new in replacements:
        assert old in code, f"{number}: {old!r} is not in the solution"
        code = code.replace(old, new)
    return code


# 06.1 and 06.2


def decays(expression):
    return f"def decays(name, p):\n    return {expression}\n"


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
        "everything": (decays("True"), "Everything decays"),
        "all but scalars": (decays("p.dim() > 0"), "One dimension is enough"),
        "by the name bias": (decays("'bias' not in name"), "LayerNorm's scales decay"),
        "by two names": (
            decays("not ('bias' in name or 'norm' in name)"),
            "the last LayerNorm slips through",
        ),
        "two exactly": (decays("p.dim() == 2"), "exactly two dimensions"),
        "no embeddings": (
            decays("p.dim() >= 2 and not name.endswith('embedding.weight')"),
            "spares the embeddings",
        ),
        "the other way round": (decays("p.dim() < 2"), "the wrong way round"),
        "misspelt": (decays("p.dims() >= 2"), "It raised AttributeError"),
    },
    "06.2": {
        "one late": (rate(up="step / warmup"), "one step late"),
        "plus one": (rate(up="(step + 1) / (warmup + 1)"), "divides by warmup + 1"),
        "full at once": (rate(up="1"), "take the full rate"),
        "no warm-up": (
            rate(up="0.1 + 0.45 * (1 + math.cos(math.pi * step / steps))").replace(
                "done = (step - warmup) / (steps - warmup)", "done = step / steps"
            ),
            "your cosine begins at step 0",
        ),
        "rising": (rate(down="0.1 + 0.9 * (1 - falling)"), "Your cosine rises"),
        "whole wave": (
            rate().replace("math.pi * done", "2 * math.pi * done"),
            "whole wave",
        ),
        "down to zero": (rate(down="falling"), "falls to 0"),
        "tenth on top": (rate(down="0.1 + falling"), "1.1 times the peak"),
        "line": (rate(down="1 - 0.9 * done"), "straight line"),
        "warm-up counted": (rate(done="step / steps"), "counts the warm-up as done"),
        "never done": (rate(done="(step - warmup) / steps"), "stops short of 1"),
    },
    "06.3": {
        "no zero_grad": (
            step(CLIP, "forward backward clip step return"),
            "old gradients are still there",
        ),
        "zero_grad too late": (
            step(CLIP, "forward backward clip zero step return"),
            "do not move at all",
        ),
        "no step": (
            step(CLIP, "forward zero backward clip return"),
            "do not move at all",
        ),
        "unclipped": (step("pass"), "clipping is missing, or comes too late"),
        "clipped after the step": (
            step(CLIP, "forward zero backward step clip return"),
            "clipping is missing, or comes too late",
        ),
        "clipped before there is anything": (
            step(CLIP, "forward zero clip backward step return"),
            "p.grad is None before",
        ),
        "each number": (
            step("for p in ps:\n    p.grad.clamp_(-max_norm, max_norm)"),
            "each number on its own",
        ),
        "each parameter": (
            step("for p in ps:\n    nn.utils.clip_grad_norm_(p, max_norm)"),
            "each parameter on its own",
        ),
        "always": (step(by_hand(LENGTH, "True")), "short gradients, too"),
        "no root": (
            step(by_hand("sum((p.grad**2).sum() for p in ps)")),
            "the root is missing",
        ),
        "lengths added": (
            step(by_hand("sum(p.grad.norm() for p in ps)")),
            "Lengths do not add",
        ),
        "absolute values": (
            step(by_hand("sum(p.grad.abs().sum() for p in ps)")),
            "absolute values",
        ),
        "loss afterwards": (
            step(CLIP).replace("return loss", "return model(x, y)[1]"),
            "225 before the step",
        ),
        "no return": (
            step(CLIP).replace("return loss.item()", ""),
            "not returned as a number",
        ),
    },
    "06.4": {
        "fed too much": (probs(crop="idx"), "You feed the model 5 tokens"),
        "the first tokens": (probs(crop="idx[:, :block_size]"), "keep the first"),
        "one too short": (
            probs(crop="idx[:, 1 - block_size:]"),
            "block_size - 1 tokens only",
        ),
        "the first position": (probs(last="[:, 0]"), "first position"),
        "the last row": (probs(last="[-1]"), "last row of the batch"),
        "all positions": (probs(last=""), "for every position"),
        "logits": (probs(end="logits"), "Your rows are logits"),
        "columns": (probs(end="F.softmax(logits, dim=0)"), "runs down the batch"),
        "no temperature": (
            probs(end="F.softmax(unscaled, dim=-1)"),
            "temperature changes nothing",
        ),
        "multiplied": (
            probs(end="F.softmax(unscaled * temperature, dim=-1)"),
            "You multiply by the temperature",
        ),
        "after the softmax": (
            probs(end="F.softmax(unscaled, dim=-1) / temperature"),
            "You divide the probabilities",
        ),
        "power without a new sum": (
            probs(end="F.softmax(unscaled, dim=-1) ** (1 / temperature)"),
            "to the power 1 / temperature",
        ),
        "top_k ignored": (probs(keep="pass"), "top_k changes nothing"),
        "the smallest": (
            probs(
                keep=keep("logits <= logits.sort(dim=-1).values[:, [top_k - 1]]"),
            ),
            "the wrong side",
        ),
        "one too few": (probs(keep=keep("logits > kth")), "one too few"),
        "one too many": (
            probs(
                keep=keep(
                    "logits >= logits.sort(-1, descending=True)[0][:, [top_k]]",
                )
            ),
            "one too many",
        ),
        "zero instead of -inf": (
            probs(keep="logits = logits.masked_fill(logits < kth, 0.0)"),
            "it may still be drawn",
        ),
        "cut after the softmax": (
            probs(
                keep="return F.softmax(logits, -1).masked_fill(logits < kth, 0.0)",
            ),
            "sum to less than one",
        ),
        "only k numbers": (
            probs(keep="logits = logits.topk(top_k).values"),
            "only k numbers",
        ),
        "one threshold for all": (
            probs(keep=keep("logits >= kth[0]")),
            "the first row's threshold",
        ),
        "two mistakes, the first is told": (
            probs(crop="idx[:, :block_size]", end="F.softmax(unscaled, dim=-1)"),
            "keep the first",
        ),
    },
    "06.5": {
        "crossing dropped": (nucleus("(sums < p).sum(-1)"), "You drop the character"),
        "crossing dropped, or equal": (
            nucleus("(sums <= p).sum(-1)"),
            "You drop the character",
        ),
        "one more at p": (nucleus("(sums <= p).sum(-1) + 1"), "one too many where"),
        "unsorted": (
            nucleus("(sums < p).sum(-1) + 1", "probs.cumsum(-1)"),
            "in the order of the ids",
        ),
        "unlikeliest first": (
            nucleus("(sums < p).sum(-1) + 1", "probs.sort(-1).values.cumsum(-1)"),
            "begin with the unlikeliest",
        ),
        "down the columns": (
            nucleus(
                "(sums < p).sum(-1) + 1",
                "probs.sort(-1, descending=True).values.cumsum(0)",
            ),
            "down the columns",
        ),
        "single ones": (nucleus("(probs >= p).sum(-1)"), "single probabilities"),
        "one number": (nucleus("((sums < p).sum(-1) + 1).sum()"), "one number"),
        "which ones": (nucleus("sums < p"), "asked is how many"),
        "the sum": (
            nucleus("sums.gather(-1, (sums < p).sum(-1)[:, None])[:, 0]"),
            "You give the sum that is reached",
        ),
    },
    "06.6": {
        "leak": (
            body("06.6", ("torch.arange(-n, 0)", "torch.arange(1 - n, 1)")),
            "includes the very character",
        ),
        "gap": (
            body("06.6", ("torch.arange(-n, 0)", "torch.arange(-n - 1, -1)")),
            "ends one too early",
        ),
        "next one": (
            body("06.6", ("data[spots].to", "data[spots + 1].to"))
            + "losses, enough = {}, 1",
            "one too far",
        ),
        "whole window": (
            """
@torch.no_grad()
def loss_with_past(model, data, spots, n):
    model.eval()
    windows = data[spots[:, None] + torch.arange(-n, 1)]
    return model(windows[:, :-1], windows[:, 1:])[1].item()
""",
            "mean over all positions",
        ),
        "first position": (
            body("06.6", ("[0][:, -1]", "[0][:, 0]")),
            "first position",
        ),
        "always everything": (
            body("06.6", ("torch.arange(-n, 0)", "torch.arange(-model.block_size, 0)")),
            "whatever n is",
        ),
        "one more": (
            body("06.6", ("torch.arange(-n, 0)", "torch.arange(-n - 1, 0)")).replace(
                "64, 128, 256", "63"
            ),
            "sees n + 1",
        ),
        "sum": (body("06.6", ("total / len(spots)", "total")), "add the losses up"),
        "bits": (
            body("06.6", ("total / len(spots)", "total / len(spots) / math.log(2)")),
            "in bits",
        ),
        "perplexity": (
            body("06.6", ("total / len(spots)", "math.exp(total / len(spots))")),
            "perplexity",
        ),
        "training mode": (
            body("06.6", ("model.eval()", "model.train()")),
            "training mode",
        ),
        "mode left as it is": (
            body("06.6", ("    model.eval()\n", "")),
            "training mode",
        ),
        "batch means": (
            body("06.6", (WEIGHED, BATCH_MEANS)),
            "the last batch is shorter",
        ),
        "batch means of 50": (
            body("06.6", (WEIGHED, BATCH_MEANS), ("split(128)", "split(50)")),
            "the last batch is shorter",
        ),
        "each spot": (
            """
@torch.no_grad()
def loss_with_past(model, data, spots, n):
    logits = model.eval()(data[spots[:, None] + torch.arange(-n, 0)])[0][:, -1]
    return F.cross_entropy(logits, data[spots], reduction="none")
""",
            "one loss for each spot",
        ),
        "no evidence yet": (body("06.6") + "losses = {}", "Now the evidence"),
        "judged on training text": (
            body("06.6", ("model, val_data", "model, train_data")),
            "you judged on the training split",
        ),
        "other spots": (
            body("06.6", ("val_data, spots, n", "val_data, spots - n, n")),
            "your evidence says",
        ),
        "a loss for an answer": (
            body("06.6") + "enough = best",
            "it should be one of the lengths",
        ),
        "too short": (
            body("06.6") + "enough = max(losses, key=losses.get)",
            "too short",
        ),
        "more than it takes": (
            body("06.6")
            + "enough = [n for n in lengths if losses[n] < best + 0.05][-1]",
            "more than it takes",
        ),
    },
    "06.7": {
        "argmax": (
            poet("next_idx = probs.argmax(dim=-1, keepdim=True)"),
            "always take the likeliest",
        ),
        "seed dropped": (
            poet("next_idx = torch.multinomial(probs, 1)"),
            "another text at each call",
        ),
        "one generator for all texts": (
            poet(
                "next_idx = torch.multinomial(probs, 1, generator=shared)",
                before="shared = torch.Generator().manual_seed(1)",
            ),
            "another text at each call",
        ),
        "fixed seed": (
            poet("next_idx = torch.multinomial(probs, 1, generator=rng)", seed="1"),
            "every seed writes the same",
        ),
        "seed plus step": (
            poet(
                "rng.manual_seed(seed + step); "
                "next_idx = torch.multinomial(probs, 1, generator=rng)"
            ),
            "shifted by one",
        ),
        "global seed in the loop": (
            poet("torch.manual_seed(seed); next_idx = torch.multinomial(probs, 1)"),
            "The bug is still there",
        ),
        "model ignored": (
            poet("next_idx = torch.randint(probs.shape[-1], (1, 1), generator=rng)"),
            "the model is not listened to",
        ),
        "probabilities bent": (
            poet("next_idx = torch.multinomial(probs**3, 1, generator=rng)"),
            "lead to shares",
        ),
        "prompt forgotten": (
            body("06.7", ("return idx", "return idx[:, -n:]")),
            "Return all of it",
        ),
    },
    "06.8": {
        "other seed": (
            body("06.8") + split(SHUFFLED.format(stride=1)),
            "The bug is still there",
        ),
        "every other window": (
            split(SHUFFLED.format(stride=2)),
            "The bug is still there",
        ),
        "only unshuffled": (
            split(
                "windows = ids.unfold(0, size, 1)\n"
                "n = int(train_fraction * len(windows))\n"
                "return windows[:n], windows[n:]"
            ),
            "Around the cut",
        ),
        "training windows judged": (
            split("a = ids[:n].unfold(0, size, 1)\nreturn a, a[-20:]"),
            "that is the training loss",
        ),
        "exchanged": (
            split("return ids[n:].unfold(0, size, 1), ids[:n].unfold(0, size, 1)"),
            "the parts are exchanged",
        ),
        "characters shuffled": (
            split(
                "ids = ids[torch.randperm(len(ids))]\n"
                "return ids[:n].unfold(0, size, 1), ids[n:].unfold(0, size, 1)"
            ),
            "characters themselves are shuffled",
        ),
        "one too narrow": (
            split(
                "return [part.unfold(0, size - 1, 1) for part in (ids[:n], ids[n:])]"
            ),
            "one part is",
        ),
        "fraction ignored": (
            split(
                "n = int(0.5 * len(ids))\n"
                "return ids[:n].unfold(0, size, 1), ids[n:].unfold(0, size, 1)"
            ),
            "text is lost",
        ),
        "cut at a fixed place": (
            split(
                "n = 48\nreturn ids[:n].unfold(0, size, 1), ids[n:].unfold(0, size, 1)"
            ),
            "text is lost",
        ),
        "not two parts": (split("return ids.unfold(0, size, 1)"), "Return two tensors"),
        "nothing to judge": (
            split("a = ids.unfold(0, size, 1)\nreturn a, a[:0]"),
            "One of the two parts is empty",
        ),
    },
}

RIGHT = {
    "06.1": {
        "length of the shape": decays("len(p.shape) > 1"),
        "not a vector, not a number": decays("p.ndim not in (0, 1)"),
        "a number": decays("int(p.squeeze().dim() >= 2)"),
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
        "all at once, a tensor": body("06.6").replace("x.split(128)", "[x]")
        + """
@torch.no_grad()
def loss_with_past(model, data, spots, n):
    x = torch.stack([data[s - n : s] for s in spots.tolist()])
    logits = model.eval()(x)[0][:, -1]
    return F.cross_entropy(logits, data[spots])
""",
        "probabilities by hand": body("06.6")
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
""",
        "other lengths": body("06.6", ("1, 2, 4, 8, 16", "1, 3, 7, 11, 30")),
    },
    "06.7": {
        "global random numbers": poet(
            "next_idx = torch.multinomial(probs, 1)",
        ).replace("rng = torch.Generator()", "torch"),
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
}


def table(cases):
    return [(number, name) for number, named in cases.items() for name in named]


def test_every_exercise_of_the_notebook_is_tested():
    assert list(EXERCISES) == list(WRONG) == list(RIGHT)
    assert [n for n, e in EXERCISES.items() if e.kind == "Bug hunt"] == HUNTS


@pytest.mark.parametrize("number", EXERCISES)
def test_untouched_it_is_open_and_says_so(number):
    expected = "The bug is still there" if number in HUNTS else "not attempted yet"
    assert expected in says(number)


@pytest.mark.parametrize("number", EXERCISES)
def test_the_folded_solution_passes(number):
    assert "right! Verified" in says(number, EXERCISES[number].solution)


@pytest.mark.parametrize("number, name", table(WRONG))
def test_a_mistake_is_called_by_its_name(number, name):
    code, message = WRONG[number][name]
    said = says(number, code)
    assert "not yet." in said
    assert message in said
    assert "The result is not right yet" not in said


@pytest.mark.parametrize("number, name", table(RIGHT))
def test_another_right_way_passes(number, name):
    assert "right! Verified" in says(number, RIGHT[number][name])


@pytest.mark.parametrize("number", EXERCISES)
def test_a_check_leaves_the_random_state_alone(number):
    namespace = dict(NAMESPACE)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(EXERCISES[number].skeleton, namespace)
        exec(EXERCISES[number].solution, namespace)
        before = torch.get_rng_state()
        exec(EXERCISES[number].check, namespace)
    assert torch.equal(torch.get_rng_state(), before)
