"""Answers to notebook 01's exercises."""

import torch
from exercises import exercises_of

from minigpt.bigram import BigramLanguageModel
from minigpt.data import CharTokenizer, load_text, train_val_split

EXERCISES = exercises_of("01")


def names():
    text = load_text()  # also without a network, like the notebook
    tokenizer = CharTokenizer(text)
    train_data, val_data = train_val_split(torch.tensor(tokenizer.encode(text)))
    return {
        **{"tokenizer": tokenizer, "V": tokenizer.vocab_size},
        **{"train_data": train_data[:200_000], "val_data": val_data},
        "model": BigramLanguageModel(tokenizer.vocab_size),
    }


def function(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def surprise(expression):
    return function("surprise(p)", f"return {expression}")


def tile(x, y, n="(len(data) - 1) // T", shape="n, T"):
    return function(
        "tile(data, T)",
        f"n = {n}",
        f"return ({x}).reshape({shape}), ({y}).reshape({shape})",
    )


X, Y = "data[:n * T]", "data[1:n * T + 1]"


def table(*lines):
    count = [
        "c = torch.zeros(V, V)",
        "for a, b in zip(ids[:-1].tolist(), ids[1:].tolist()):",
        "    c[a, b] += 1",
    ]
    return function("before_table(ids, V)", *count, *lines)


def positions(*lines):
    return function("loss_by_position(z, y)", "B, T, C = z.shape", *lines)


EACH = 'each = F.cross_entropy(z.transpose(1, 2), y, reduction="none")'


def write_on(
    now="logits[:, -1]",
    given="idx",
    draw="torch.multinomial(F.softmax(now, dim=-1), 1)",
    join="torch.cat([idx, drawn], dim=1)",
    steps="n",
    out="idx",
):
    return function(
        "write_on(model, idx, n)",
        "start = idx.shape[1]",
        f"for _ in range({steps}):",
        f"    logits = model({given})[0].detach()",
        f"    now = {now}",
        f"    drawn = {draw}",
        f"    idx = {join}",
        f"return {out}",
    )


ADAM = "torch.optim.AdamW(model.parameters(), lr=rate)"


def fit(*loop, before=("pass",), optimizer=ADAM):
    return function(
        "fit(model, batches, rate)",
        f"optimizer = {optimizer}",
        "losses = []",
        *before,
        "for i, (x, y) in enumerate(batches):",
        *(f"    {line}" for line in loop),
        "    losses.append(loss.item())",
        "return losses",
    )


LOSS, CLEAR = "loss = model(x, y)[1]", "optimizer.zero_grad()"
BACK, STEP = "loss.backward()", "optimizer.step()"

WRONG = {
    "01.1": {
        "is a sum, but it should be a mean": surprise("-p.log().sum()"),
        "AttributeError": surprise("-p.ln().mean()"),
    },
    "01.2": {
        "Your targets are the inputs themselves": tile(X, X),
        "You always leave out the last window": tile(
            X, "data[T : n * T + T]", "len(data) // T - 1"
        ),
        "n = (len(data) - 1) // T": tile(X, Y, "len(data) // T"),
    },
    "01.3": {
        "table, forwards: your row i": table("c += 1", "return c / c.sum(1, True)"),
        "`c.sum()` takes all numbers together": table(
            "c = c.T + 1", "return c / c.sum()"
        ),
        "`torch.zeros(V, V)` should start with ones": table(
            "return c.T / c.T.sum(1, True)"
        ),
    },
    "01.4": {
        "cross_entropy took your T time steps for classes": positions(
            'return F.cross_entropy(z, y, reduction="none").mean(0)'
        ),
        "cross_entropy has one inside": positions(
            "z = z.softmax(-1)", EACH, "return each.mean(0)"
        ),
        "dimension 1 is the wrong one in `each.mean(1)`": positions(
            EACH, "return each.mean(1)"
        ),
    },
    "01.5": {
        "now = logits[:, -1]": write_on("logits[-1]"),
        "an index is wrong in `logits[:, i]`": (
            "def write_on(model, idx, max_new_tokens):\n"
            "    for i in range(max_new_tokens):\n"
            "        logits, _ = model(idx)\n"
            "        probs = F.softmax(logits[:, i], dim=-1)\n"
            "        drawn = torch.multinomial(probs, num_samples=1)\n"
            "        idx = torch.cat([idx, drawn], dim=1)\n"
            "    return idx\n"
        ),
    },
    "01.6": {
        "`optimizer.zero_grad()` is in the wrong place": fit(
            LOSS, BACK, STEP, before=[CLEAR]
        ),
        "Nothing is learned": fit(LOSS, BACK, CLEAR, STEP),
        "Nothing is learned: every loss": fit(LOSS, CLEAR, BACK),
        "lr=rate)` is superfluous": fit(f"optimizer = {ADAM}", LOSS, CLEAR, BACK, STEP),
    },
}

RIGHT = {
    "01.1": {
        "cross_entropy's own": surprise("F.nll_loss(p.log()[:, None], p.long() * 0)"),
        "a loop": surprise("sum(-math.log(q) for q in p.tolist()) / len(p)"),
    },
    "01.2": {},
    "01.3": {
        "not contiguous": table("c = c + 1", "return (c / c.sum(0)).T"),
    },
    "01.4": {
        "transpose": positions(EACH, "return each.mean(0)"),
        "a loop over positions": positions(
            "return [F.cross_entropy(z[:, t], y[:, t]) for t in range(T)]"
        ),
    },
    "01.5": {
        "the whole last row": write_on("logits[:, -1, :]"),
        "exp by hand": write_on(
            draw="torch.multinomial(now.exp() / now.exp().sum(-1, True), 1)"
        ),
        "by its number": write_on("logits[:, idx.shape[1] - 1]"),
    },
    "01.6": {
        "after the step": fit(LOSS, BACK, STEP, CLEAR),
        "through the model": fit("model.zero_grad()", LOSS, BACK, STEP),
    },
}
