"""Exercises of notebook 01: right answers pass, and each wrong one is recognised."""

import math

import pytest
import torch
import torch.nn.functional as F
from exercises import exercises_of, play

from minigpt.bigram import BigramLanguageModel
from minigpt.checks import bigram
from minigpt.data import CharTokenizer, get_batch, load_text, train_val_split

EXERCISES = {exercise.number: exercise for exercise in exercises_of("01")}
TASKS = ["01.1", "01.2", "01.3", "01.4", "01.5"]
HUNTS = ["01.6", "01.7"]


@pytest.fixture(scope="module")
def namespace():
    """What the notebook has defined when the exercises begin; no training here."""
    text = load_text()  # also without a network, like the notebook
    tokenizer = CharTokenizer(text)
    train_data, val_data = train_val_split(torch.tensor(tokenizer.encode(text)))
    V = tokenizer.vocab_size
    pairs = train_data[:-1] * V + train_data[1:]
    checks = {name: check for name, check in vars(bigram).items() if "check_" in name}
    return checks | {
        "math": math,
        "torch": torch,
        "F": F,
        "get_batch": get_batch,
        "BigramLanguageModel": BigramLanguageModel,
        "tokenizer": tokenizer,
        "V": V,
        "train_data": train_data[:200_000],
        "val_data": val_data,
        "counts": torch.bincount(pairs, minlength=V * V).view(V, V).float(),
        "model": BigramLanguageModel(V),
        "batches": [get_batch(train_data, 4, 8)],
        "draw_curve": max,  # the figure is shown by nbval's run of the notebook
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


def fit(
    *loop,
    before=("pass",),
    optimizer=ADAM,
):
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
    "01.1": [
        ("sum", surprise("-p.log().sum()"), "their mean"),
        ("log base 2", surprise("-p.log2().mean()"), "in bits (log base 2)"),
        ("no minus", surprise("p.log().mean()"), "never negative"),
        ("log of the mean", surprise("-p.mean().log()"), "average the probabilities"),
        ("entropy", surprise("-(p * p.log()).sum()"), "weigh each surprise"),
        ("no mean", surprise("-p.log()"), "one surprise for each character"),
        ("a constant", surprise("1.3863"), "not right yet"),
        ("an error", surprise("-p.ln().mean()"), "AttributeError"),
    ],
    "01.2": [
        ("not shifted", tile(X, X), "not shifted"),
        ("shifted twice", tile(X, "data.roll(-2)[:n * T]"), "shifted twice"),
        ("exchanged", tile(Y, X), "are exchanged"),
        ("the past", tile(X, "data.roll(1)[:n * T]"), "shifted the wrong way"),
        (
            "overlapping",
            function(
                "tile(data, T)",
                "return data[:-1].unfold(0, T, 1), data[1:].unfold(0, T, 1)",
            ),
            "windows overlap",
        ),
        ("last one missing", tile(X, Y, "(len(data) - 2) // T"), "is missing"),
        ("one too many", tile(X, Y, "len(data) // T"), "one window too many"),
        (
            "one too many, round the corner",
            tile(X, "data.roll(-1)[:n * T]", "len(data) // T"),
            "one window too many",
        ),
        ("flat", tile(X, Y, shape="-1"), "not right yet"),
    ],
    "01.3": [
        ("forwards", table("c += 1", "return c / c.sum(1, True)"), "comes after"),
        ("columns", table("c = c.T + 1", "return c / c.sum(0)"), "columns do"),
        ("turned", table("c += 1", "return (c / c.sum(1, True)).T"), "section 9 round"),
        ("total", table("c = c.T + 1", "return c / c.sum()"), "by one total"),
        (
            "repetitions",
            function(
                "before_table(ids, V)",
                "c = torch.ones(V, V)",
                "c[ids[1:], ids[:-1]] += 1",
                "return c / c.sum(1, keepdim=True)",
            ),
            "Repeated pairs count once",
        ),
        ("no +1", table("return c.T / c.T.sum(1, True)"), "The +1 is missing"),
        (
            "+1 above only",
            table("return (c.T + 1) / c.T.sum(1, True)"),
            "not in the sums",
        ),
        (
            "two apart",
            table(
                "c = torch.ones(V, V)",
                "for a, b in zip(ids[:-2].tolist(), ids[2:].tolist()):",
                "    c[b, a] += 1",
                "return c / c.sum(1, True)",
            ),
            "two places apart",
        ),
        (
            "round the corner",
            table(
                "c[ids[-1], ids[0]] += 1", "c = c.T + 1", "return c / c.sum(1, True)"
            ),
            "one pair too many",
        ),
    ],
    "01.4": [
        (
            "not flattened",
            positions('return F.cross_entropy(z, y, reduction="none").mean(0)'),
            "time steps for classes",
        ),
        (
            "view for transpose",
            positions("z = z.reshape(B, C, T)", EACH.replace(".transpose(1, 2)", ""))
            + "    return each.mean(0)\n",
            "mixes time and classes",
        ),
        (
            "softmax twice",
            positions("z = z.softmax(-1)", EACH, "return each.mean(0)"),
            "not probabilities",
        ),
        ("by row", positions(EACH, "return each.mean(1)"), "each row of the batch"),
        ("one number", positions(EACH, "return each.mean()"), "one number"),
        (
            "one number, not flattened",
            positions("return F.cross_entropy(z, y)"),
            "time steps for classes",
        ),
        ("sum", positions(EACH, "return each.sum(0)"), "add up over the batch"),
        (
            "wrong order",
            positions(EACH, "return each.reshape(T, B).mean(1)"),
            "in the wrong order",
        ),
        ("no minus", positions(EACH, "return -each.mean(0)"), "never negative"),
        (
            "all kept",
            positions(EACH, "return each"),
            "The shape is (2, 3), but should be (3,)",
        ),
    ],
    "01.5": [
        ("judged on read", experiment(new="loss(train[:n], train[:n])"), "homework"),
        ("judged on train", experiment(new="loss(train[:n], train)"), "homework"),
        ("learnt from val", experiment(new="loss(val[:n], val)"), "validation split"),
        ("always all", experiment(new="loss(train, val)"), "at every size"),
        ("shorter exam", experiment(new="loss(train[:n], val[:n])"), "another exam"),
        (
            "first on all",
            experiment(read="loss(train[:n], train)"),
            "judges on the whole train split",
        ),
        (
            "both on val",
            experiment(read="loss(train[:n], val)"),
            "first curve judges on the validation split",
        ),
        (
            "curves exchanged",
            experiment(out="sizes, on_new, on_read, verdict"),
            "are exchanged",
        ),
        ("three sizes", experiment("[len(train) // k for k in (9, 2, 1)]"), "no curve"),
        ("late start", experiment("[len(train) - k for k in (3, 2, 1, 0)]"), "eighth"),
        ("fixed sizes", experiment("[100, 1000, 5000, 10000]"), "should be all"),
        ("always context", experiment(verdict='"context"'), "for every text"),
        ("always text", experiment(verdict='"text"'), "for every text"),
        (
            "verdict turned round",
            experiment(
                verdict='"text" if on_new[-1] - on_read[-1] < .05 else "context"'
            ),
            "verdicts are exchanged",
        ),
        (
            "verdict from the first size",
            experiment(verdict='"context" if on_new[0] - on_read[0] < .05 else "text"'),
            "for the first size",
        ),
        ("verdict in other words", experiment(verdict='"data"'), "not 'data'"),
        ("no verdict", experiment(out="sizes, on_read, on_new"), "Return four things"),
    ],
    "01.6": [
        ("still the first", write_on("logits[:, 0, :]"), "The bug is still there"),
        ("last row", write_on("logits[-1]"), "last row of the batch"),
        ("last character only", write_on(given="idx[:, -1:]"), "every later model"),
        (
            "in front",
            write_on(join="torch.cat([drawn, idx], dim=1)"),
            "in front of the text",
        ),
        ("only the new", write_on(out="idx[:, start:]"), "only what is new"),
        ("one too few", write_on(steps="n - 1"), "one character too few"),
        ("the likeliest", write_on(draw="now.argmax(-1, True)"), "nothing is drawn"),
        (
            "softmax over the batch",
            write_on(draw="torch.multinomial(F.softmax(now, dim=0), 1)"),
            "not the model's probabilities",
        ),
    ],
    "01.7": [
        ("cleared once", fit(LOSS, BACK, STEP, before=[CLEAR]), "bug is still there"),
        ("cleared too late", fit(LOSS, BACK, CLEAR, STEP), "never moves"),
        (
            "cleared too late, to zeros",
            fit(LOSS, BACK, "optimizer.zero_grad(set_to_none=False)", STEP),
            "never moves",
        ),
        (
            "new optimizer",
            fit(f"optimizer = {ADAM}", LOSS, BACK, STEP),
            "who else keeps".capitalize(),
        ),
        (
            "new optimizer and cleared",
            fit(f"optimizer = {ADAM}", LOSS, CLEAR, BACK, STEP),
            "before the loop.",
        ),
        (
            "clipped",
            fit(
                LOSS,
                BACK,
                "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                STEP,
            ),
            "gradient shorter",
        ),
        (
            "smaller steps",
            fit(LOSS, BACK, STEP, optimizer=ADAM.replace("rate", "rate / 10")),
            "hides the symptom",
        ),
        (
            "SGD",
            fit(LOSS, BACK, STEP, optimizer=ADAM.replace("AdamW", "SGD")),
            "hides the symptom",
        ),
        ("stops early", fit(LOSS, CLEAR, BACK, STEP, "if i > 1: break"), "The shape"),
    ],
}

RIGHT = {
    "01.1": [
        ("cross_entropy's own", surprise("F.nll_loss(p.log()[:, None], p.long() * 0)")),
        ("a loop", surprise("sum(-math.log(q) for q in p.tolist()) / len(p)")),
        ("bits turned into nats", surprise("-p.double().log2().mean() * math.log(2)")),
    ],
    "01.2": [
        (
            "a loop",
            function(
                "tile(data, T)",
                "starts = range(0, len(data) - T, T)",
                "x = torch.stack([data[s:s + T] for s in starts])",
                "return x, torch.stack([data[s + 1:s + T + 1] for s in starts])",
            ),
        ),
        (
            "lists",
            function(
                "tile(data, T)",
                "d = data.tolist()",
                "s = range(0, len(d) - T, T)",
                "return [[d[i:i + T] for i in s], [d[i + 1:i + T + 1] for i in s]]",
            ),
        ),
        (
            "places, and int32",
            function(
                "tile(data, T)",
                "n = (data.numel() - 1) // T",
                "at = torch.arange(n)[:, None] * T + torch.arange(T)",
                "return data[at].int(), data[at + 1].int()",
            ),
        ),
    ],
    "01.3": [
        (
            "bincount in float64",
            function(
                "before_table(ids, V)",
                "c = torch.bincount(ids[1:] * V + ids[:-1], minlength=V * V)",
                "c = c.view(V, V).double() + 1",
                "return c / c.sum(-1)[:, None]",
            ),
        ),
        ("not contiguous", table("c = c + 1", "return (c / c.sum(0)).T")),
        (
            "index_put and a list",
            function(
                "before_table(ids, V)",
                "c = torch.ones(V, V)",
                "one = torch.ones(len(ids) - 1)",
                "c.index_put_((ids[1:], ids[:-1]), one, accumulate=True)",
                "return F.normalize(c, p=1, dim=1).tolist()",
            ),
        ),
    ],
    "01.4": [
        ("transpose", positions(EACH, "return each.mean(0)")),
        (
            "a loop over positions",
            positions("return [F.cross_entropy(z[:, t], y[:, t]) for t in range(T)]"),
        ),
        (
            "by hand, in float64",
            positions(
                "logp = z.double().log_softmax(-1)",
                "return -logp.gather(-1, y[..., None]).squeeze(-1).mean(0)",
            ),
        ),
    ],
    "01.5": [
        ("four sizes", experiment()),
        (
            "many sizes",
            experiment("[len(train) // k for k in (30, 12, 9, 6, 3, 2, 1)]"),
        ),
        ("tensors", experiment(out="sizes, torch.tensor(on_read), on_new, verdict")),
    ],
    "01.6": [
        ("the whole last row", write_on("logits[:, -1, :]")),
        ("by its number", write_on("logits[:, idx.shape[1] - 1]")),
        (
            "Categorical",
            write_on(
                draw="torch.distributions.Categorical(logits=now).sample()[:, None]"
            ),
        ),
    ],
    "01.7": [
        ("after the step", fit(LOSS, BACK, STEP, CLEAR)),
        ("through the model", fit("model.zero_grad()", LOSS, BACK, STEP)),
        (
            "by hand, and zeros",
            fit(
                LOSS,
                BACK,
                STEP,
                "for p in model.parameters(): p.grad.zero_()",
            ),
        ),
    ],
}


def each(answers):
    return [
        pytest.param(number, *rest, id=f"{number} {name}")
        for number, rows in answers.items()
        for name, *rest in rows
    ]


def test_the_notebook_has_these_exercises():
    assert list(EXERCISES) == TASKS + HUNTS


@pytest.mark.parametrize("number", TASKS + HUNTS)
def test_the_folded_solution_is_right(number, namespace):
    said = play(EXERCISES[number], namespace, EXERCISES[number].solution)
    assert f"✓ {number}" in said and "right! Verified: " in said


@pytest.mark.parametrize("number", TASKS)
def test_an_untouched_skeleton_is_not_attempted(number, namespace):
    assert "not attempted yet" in play(EXERCISES[number], namespace, "")


@pytest.mark.parametrize("number", HUNTS)
def test_an_untouched_hunt_shows_the_symptom_on_one_line(number, namespace):
    said = play(EXERCISES[number], namespace, "")
    assert "The bug is still there" in said and said.count("\n") == 1


@pytest.mark.parametrize("number, code, message", each(WRONG))
def test_a_wrong_answer_is_recognised(number, code, message, namespace):
    said = play(EXERCISES[number], namespace, code)
    assert said.startswith(f"✗ {number}"), said
    assert message in said, said


@pytest.mark.parametrize("number, code", each(RIGHT))
def test_a_right_answer_may_be_written_differently(number, code, namespace):
    said = play(EXERCISES[number], namespace, code)
    assert said.startswith(f"✓ {number}"), said


@pytest.mark.parametrize("number", TASKS + HUNTS)
def test_a_check_leaves_the_random_state_alone(number, namespace):
    exercise = EXERCISES[number]
    local = dict(namespace)
    exec(exercise.skeleton.split("\n\n\n")[0], local)
    exec(exercise.solution, local)
    before = torch.get_rng_state()
    exec(exercise.check, local)
    assert torch.equal(torch.get_rng_state(), before)
