"""Answers to notebook 02's exercises."""

from exercises import edited, exercises_of

from minigpt.data import CharTokenizer

EXERCISES = exercises_of("02")


def names():
    return {"CharTokenizer": CharTokenizer}


def mean(body):
    return f"def mean_so_far(x, t):\n    return {body}\n"


def fading(*edits):
    return edited(EXERCISES["02.2"].solution, *edits)


def nats(*edits):
    return edited(EXERCISES["02.3"].skeleton, *edits)


def attend(*edits):
    return edited(EXERCISES["02.4"].skeleton, *edits)


HIDE = ('scores = scores.masked_fill(~past, float("-inf"))', "")
TRUE_PAST = (
    "torch.tril(scores) == 0  # tril puts zeros there",
    "~torch.ones_like(scores).tril().bool()",
)
FILL = 'scores.masked_fill(future, float("-inf"))'

# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "02.1": {
        "for i in range(t + 1))) / (t + 1)": mean(
            "sum(x[:, i] for i in range(t)) / t if t else x[:, 0] * math.nan"
        ),
        "changes its input `x`": mean("x[:, : t + 1].cumsum_(1)[:, t] / (t + 1)"),
        "It raised IndexError": mean("torch.stack([x[t], x[t]])"),
    },
    "02.2": {
        "the mask is missing": fading(HIDE),
        "there is too much in `past.T`": fading(("~past", "~past.T")),
        "`past` swaps True and False": fading(("~past", "past")),
        "wrong order in `time - time[:, None]`": fading(
            ("time[:, None] - time)", "time - time[:, None])")
        ),
    },
    "02.3": {
        "is the wrong number in `torch.tril(": nats(("len(ids)))", "len(ids)), -2)")),
        "`past @ one_hot` is one too small": nats(
            ("@ one_hot + 1", "@ one_hot"),
            ("(probs.log(), ids)", "(probs[:-1].log(), ids[1:])"),
        ),
        "The result isn't right yet": nats(("one_hot + 1", "one_hot + 9")),
    },
    "02.4": {
        "4 of 6 numbers": attend((FILL, "scores")),
        "It's right for 4 of 5 inputs": attend(TRUE_PAST, ('float("-inf")', "-100.0")),
        "of the 30 numbers are nan": attend(("= q @", "= (q + 1e-6) @")),
        "torch.triu(torch.ones(T, T), diagonal=1)": (
            "def attend(x, q, k):\n"
            "    T = x.shape[1]\n"
            "    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5\n"
            "    future = torch.triu(torch.ones(T, T)) == 1\n"
            "    scores = scores.masked_fill(future, float('-inf'))\n"
            "    return F.softmax(scores, dim=-1) @ x\n"
        ),
    },
}

RIGHT = {
    "02.1": {
        "running sum": mean("x.cumsum(dim=1)[:, t] / (t + 1)"),
        "einsum in float64": mean(
            "torch.einsum('btc->bc', x[:, : t + 1].double()) / (t + 1)"
        ),
    },
    "02.2": {
        "factors": (
            "def fading_average(x, rate):\n"
            "    T = x.shape[1]\n"
            "    factors = [[math.exp(-rate * (t - i)) if i <= t else 0.0\n"
            "                for i in range(T)] for t in range(T)]\n"
            "    w = torch.tensor(factors).double()\n"
            "    return torch.einsum('ti,bic->btc', w / w.sum(1)[:, None], x.double())"
        ),
    },
    "02.3": {
        "targets shifted": nats(("(probs.log(), ids)", "(probs[:-1].log(), ids[1:])")),
        "the present subtracted": nats(("one_hot + 1 ", "one_hot - one_hot + 1 ")),
    },
    "02.4": {
        "triangle of ones": attend(TRUE_PAST),
        "two-dimensional mask": attend(
            (TRUE_PAST[0], "torch.ones(x.shape[1], x.shape[1]).triu(1).bool()")
        ),
    },
}
