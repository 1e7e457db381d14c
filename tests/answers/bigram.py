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
    V = tokenizer.vocab_size
    pairs = train_data[:-1] * V + train_data[1:]
    return {
        "BigramLanguageModel": BigramLanguageModel,
        "tokenizer": tokenizer,
        "V": V,
        "train_data": train_data[:200_000],
        "val_data": val_data,
        "counts": torch.bincount(pairs, minlength=V * V).view(V, V).float(),
        "model": BigramLanguageModel(V),
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


def experiment(
    sizes="[len(train) // k for k in (8, 4, 2, 1)]",
    read="loss(train[:n], train[:n])",
    new="loss(train[:n], val)",
    verdict='"context" if on_new[-1] - on_read[-1] < 0.05 else "text"',
    out="sizes, on_read, on_new, verdict",
):
    return function(
        "experiment(train, val, loss)",
        f"sizes = {sizes}",
        f"on_read = [{read} for n in sizes]",
        f"on_new = [{new} for n in sizes]",
        f"verdict = {verdict}",
        f"return {out}",
    )


def pull(expression):
    return function(
        "loss_gradient(logits, y)",
        "B, T, C = logits.shape",
        "believed, came = F.softmax(logits, -1), F.one_hot(y, C)",
        f"return {expression}",
    )


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
        "`sum` where `mean` belongs": surprise("-p.log().sum()"),
        "`log2` where `log` belongs": surprise("-p.log2().mean()"),
        "the minus before": surprise("p.log().mean()"),
        "`mean` before `log`": surprise("-p.mean().log()"),
        "weigh each surprise": surprise("-(p * p.log()).sum()"),
        "`.mean()` left out": surprise("-p.log()"),
        "right for 1 of 5": surprise("1.3863"),
        "You multiply all p first": surprise("-p.prod().log() / len(p)"),
        "AttributeError": surprise("-p.ln().mean()"),
    },
    "01.2": {
        "`x` where `y` belongs": tile(X, X),
        "the shift goes round": tile(X, f"({X}).view(n, T).roll(-1, 1)"),
        "windows of block_size + 1": function(
            "tile(data, T)",
            "w = data[: len(data) // (T + 1) * (T + 1)].view(-1, T + 1)",
            "return w[:, :-1], w[:, 1:]",
        ),
        "shifted twice": tile(X, "data.roll(-2)[:n * T]"),
        "two values exchanged: `(y, x)`": tile(Y, X),
        "shifted the wrong way": tile(X, "data.roll(1)[:n * T]"),
        "windows overlap": function(
            "tile(data, T)",
            "return data[:-1].unfold(0, T, 1), data[1:].unfold(0, T, 1)",
        ),
        "`2` where `1` belongs": tile(X, Y, "(len(data) - 2) // T"),
        "there are only 5 targets": [
            tile(X, Y, "len(data) // T"),
            tile(X, "data.roll(-1)[:n * T]", "len(data) // T"),
        ],
        "`.view(n, block_size)` left out": tile(X, Y, shape="-1"),
    },
    "01.3": {
        "exchanged: `zip(": table("c += 1", "return c / c.sum(1, True)"),
        "dim=0": [
            table("c = c.T + 1", "return c / c.sum(0)"),
            table("c += 1", "return (c / c.sum(1, True)).T"),
        ],
        "but for `c.sum()` where": table("c = c.T + 1", "return c / c.sum()"),
        "Repeated pairs count once": function(
            "before_table(ids, V)",
            "c = torch.ones(V, V)",
            "c[ids[1:], ids[:-1]] += 1",
            "return c / c.sum(1, keepdim=True)",
        ),
        "`zeros` where `ones` belongs": table("return c.T / c.T.sum(1, True)"),
        "not in the sums": table("return (c.T + 1) / c.T.sum(1, True)"),
        "the index `2` where `1` belongs": table(
            "c = torch.ones(V, V)",
            "for a, b in zip(ids[:-2].tolist(), ids[2:].tolist()):",
            "    c[b, a] += 1",
            "return c / c.sum(1, True)",
        ),
        "one pair too many": table(
            "c[ids[-1], ids[0]] += 1", "c = c.T + 1", "return c / c.sum(1, True)"
        ),
    },
    "01.4": {
        "time steps for classes": [
            positions('return F.cross_entropy(z, y, reduction="none").mean(0)'),
            positions("return F.cross_entropy(z, y)"),
        ],
        "mixes time and classes": (
            positions("z = z.reshape(B, C, T)", EACH.replace(".transpose(1, 2)", ""))
            + "    return each.mean(0)\n"
        ),
        "but for `z` where": positions(
            "z = z.softmax(-1)", EACH, "return each.mean(0)"
        ),
        "`dim=-1` where `dim=0` belongs": positions(EACH, "return each.mean(1)"),
        "`dim=0` left out in": positions(EACH, "return each.mean()"),
        "`sum` where `mean` belongs": positions(EACH, "return each.sum(0)"),
        "The sign is wrong": positions(EACH, "return -each.mean(0)"),
        "`.mean(dim=0)` left out": positions(EACH, "return each"),
        "changes `logits` in place": positions(
            "z -= z.logsumexp(-1, keepdim=True)",
            "return -z.gather(-1, y[..., None])[..., 0].mean(0)",
        ),
    },
    "01.5": {
        "text that it has read": experiment(new="loss(train[:n], train[:n])"),
        "`train` where `val` belongs": experiment(new="loss(train[:n], train)"),
        "`val` where `train` belongs": experiment(new="loss(val[:n], val)"),
        "on_new: Your answer is right but for `train` where": experiment(
            new="loss(train, val)"
        ),
        "another exam": experiment(new="loss(train[:n], val[:n])"),
        "on_read: Your answer is right but for `train` where": experiment(
            read="loss(train[:n], train)"
        ),
        "`val` where `train[:n]` belongs": experiment(read="loss(train[:n], val)"),
        "(sizes, on_new, on_read, verdict)": experiment(
            out="sizes, on_new, on_read, verdict"
        ),
        "no curve": experiment("[len(train) // k for k in (9, 2, 1)]"),
        "eighth": experiment("[len(train) - k for k in (3, 2, 1, 0)]"),
        "should be all": experiment("[100, 1000, 5000, 10000]"),
        "the same for all 4 texts": [
            experiment(verdict='"context"'),
            experiment(
                verdict='"context" if on_read[-1] - on_new[-1] < 0.05 else "text"'
            ),
            experiment(verdict='"text"'),
        ],
        "`gap > 0.05` where `gap < 0.05` belongs": experiment(
            verdict='"text" if on_new[-1] - on_read[-1] < .05 else "context"'
        ),
        "not about where they end": experiment(
            verdict='"context" if on_new[0] - on_read[0] < .05 else "text"'
        ),
        "not 'data'": experiment(verdict='"data"'),
        "Return four things": experiment(out="sizes, on_read, on_new"),
    },
    "01.6": {
        "believed - came\n": pull("believed - came"),
        "other brackets": pull("(believed - came) / B * T"),
        "two sides of `-` exchanged": pull("(came - believed) / (B * T)"),
        "`logits` where `believed` belongs": pull("(logits - came) / (B * T)"),
        "autograd made them": function(
            "loss_gradient(z, y)",
            "z = z.clone().requires_grad_()",
            "F.cross_entropy(z.flatten(0, 1), y.flatten()).backward()",
            "return z.grad",
        ),
        "but for `F.softmax(logits, 1)` where": pull(
            "(F.softmax(logits, 1) - came) / (B * T)"
        ),
    },
    "01.7": {
        "The bug is still there": write_on("logits[:, 0, :]"),
        "`logits[-1]` where `logits[:, -1]` belongs": write_on("logits[-1]"),
        "every later model": write_on(given="idx[:, -1:]"),
        "[drawn, idx]": write_on(join="torch.cat([drawn, idx], dim=1)"),
        "only what is new": write_on(out="idx[:, start:]"),
        "`range(1, max_new_tokens)`": write_on(steps="n - 1"),
        "nothing is drawn": write_on(draw="now.argmax(-1, True)"),
        "`dim=0` where `dim=-1` belongs": write_on(
            draw="torch.multinomial(F.softmax(now, dim=0), 1)"
        ),
    },
    "01.8": {
        "empty the gradient, but not in every step": fit(
            LOSS, BACK, STEP, before=[CLEAR]
        ),
        "but for `optimizer.zero_grad()` in the wrong": fit(LOSS, BACK, CLEAR, STEP),
        "but for `optimizer.step()` left out": fit(LOSS, CLEAR, BACK),
        "inside the loop in place of before": fit(
            f"optimizer = {ADAM}", LOSS, CLEAR, BACK, STEP
        ),
        "gradient shorter": fit(
            LOSS, BACK, "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", STEP
        ),
        "hides the symptom": [
            fit(LOSS, BACK, STEP, optimizer=ADAM.replace("rate", "rate / 10")),
            fit(LOSS, BACK, STEP, optimizer=ADAM.replace("AdamW", "SGD")),
        ],
        "The shape": fit(LOSS, CLEAR, BACK, STEP, "if i > 1: break"),
    },
}

RIGHT = {
    "01.1": {
        "cross_entropy's own": surprise("F.nll_loss(p.log()[:, None], p.long() * 0)"),
        "a loop": surprise("sum(-math.log(q) for q in p.tolist()) / len(p)"),
        "bits turned into nats": surprise("-p.double().log2().mean() * math.log(2)"),
    },
    "01.2": {
        "a loop": function(
            "tile(data, T)",
            "starts = range(0, len(data) - T, T)",
            "x = torch.stack([data[s:s + T] for s in starts])",
            "return x, torch.stack([data[s + 1:s + T + 1] for s in starts])",
        ),
        "lists": function(
            "tile(data, T)",
            "d = data.tolist()",
            "s = range(0, len(d) - T, T)",
            "return [[d[i:i + T] for i in s], [d[i + 1:i + T + 1] for i in s]]",
        ),
        "places, and int32": function(
            "tile(data, T)",
            "n = (data.numel() - 1) // T",
            "at = torch.arange(n)[:, None] * T + torch.arange(T)",
            "return data[at].int(), data[at + 1].int()",
        ),
    },
    "01.3": {
        "bincount in float64": function(
            "before_table(ids, V)",
            "c = torch.bincount(ids[1:] * V + ids[:-1], minlength=V * V)",
            "c = c.view(V, V).double() + 1",
            "return c / c.sum(-1)[:, None]",
        ),
        "not contiguous": table("c = c + 1", "return (c / c.sum(0)).T"),
        "index_put and a list": function(
            "before_table(ids, V)",
            "c = torch.ones(V, V)",
            "one = torch.ones(len(ids) - 1)",
            "c.index_put_((ids[1:], ids[:-1]), one, accumulate=True)",
            "return F.normalize(c, p=1, dim=1).tolist()",
        ),
    },
    "01.4": {
        "transpose": positions(EACH, "return each.mean(0)"),
        "a loop over positions": positions(
            "return [F.cross_entropy(z[:, t], y[:, t]) for t in range(T)]"
        ),
        "by hand, in float64": positions(
            "logp = z.double().log_softmax(-1)",
            "return -logp.gather(-1, y[..., None]).squeeze(-1).mean(0)",
        ),
    },
    "01.5": {
        "four sizes": experiment(),
        "many sizes": experiment("[len(train) // k for k in (30, 12, 9, 6, 3, 2, 1)]"),
        "tensors": experiment(out="sizes, torch.tensor(on_read), on_new, verdict"),
    },
    "01.6": {
        "one less where it came": function(
            "loss_gradient(logits, y)",
            "p = logits.double().softmax(-1)",
            "p.scatter_add_(-1, y[..., None], -torch.ones_like(p[..., :1]))",
            "return p / y.numel()",
        ),
        "a loop, as lists": function(
            "loss_gradient(logits, y)",
            "g = torch.softmax(logits, dim=2) / y.numel()",
            "for b in range(len(y)):",
            "    for t in range(y.shape[1]):",
            "        g[b, t, y[b, t]] -= 1 / y.numel()",
            "return g.tolist()",
        ),
    },
    "01.7": {
        "the whole last row": write_on("logits[:, -1, :]"),
        "by its number": write_on("logits[:, idx.shape[1] - 1]"),
        "Categorical": write_on(
            draw="torch.distributions.Categorical(logits=now).sample()[:, None]"
        ),
    },
    "01.8": {
        "after the step": fit(LOSS, BACK, STEP, CLEAR),
        "through the model": fit("model.zero_grad()", LOSS, BACK, STEP),
        "by hand, and zeros": fit(
            LOSS, BACK, STEP, "for p in model.parameters(): p.grad.zero_()"
        ),
    },
}
