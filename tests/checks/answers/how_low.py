"""Answers to notebook 07's exercises."""

from exercises import exercises_of

EXERCISES = exercises_of("07")


def names():
    return {}


def entropy(body):
    return f"def entropy(p):\n    s = torch.special.entr(p)\n    return {body}\n"


def perplexity(body):
    return (
        "def perplexity(nats, sizes):\n"
        "    x, n = torch.tensor(nats), torch.tensor(sizes)\n"
        f"    return {body}\n"
    )


def smooth(body):
    return (
        "def smooth(counts, lower, strength):\n"
        "    seen = counts.sum(-1, keepdim=True)\n"
        f"    return {body}\n"
    )


# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "07.1": {
        "You get nan where p is 0": entropy("-(p * p.log()).sum(-1)"),
        "You get the same results as with": entropy("s.sum(-1) / math.log(2)"),
        "forgets the rows, too": entropy("-(p[p > 0] * p[p > 0].log()).sum(-1)"),
        "You add 0.001 to every p": entropy("-(p * (p + 1e-3).log()).sum(-1)"),
    },
    "07.2": {
        "an exponential is missing at `(x * n).sum()": perplexity(
            "(x * n).sum() / n.sum()"
        ),
        "there's a minus too many": perplexity("(-(x * n).sum() / n.sum()).exp()"),
        "OverflowError": perplexity("math.exp((x * n).sum()) ** (1 / n.sum().item())"),
    },
    "07.3": {
        "something has to be added to `seen`": smooth(
            "(counts + strength * lower) / seen"
        ),
        "the steps of `counts + strength * l": smooth(
            "counts + strength * lower / (seen + strength)"
        ),
        "gives nan, because 0 / 0": smooth("(counts / seen) * 0.5 + lower * 0.5"),
    },
}

RIGHT = {
    "07.1": {
        "entr": entropy("s.sum(-1)"),
        "where, in float64": entropy(
            "-torch.where(p > 0, p.double() * p.log(), 0.0).sum(-1)"
        ),
    },
    "07.2": {
        "tensors": perplexity("((x * n).sum() / n.sum()).exp()"),
        "product of powers": perplexity("(x.exp() ** (n / n.sum())).prod()"),
    },
    "07.3": {
        "sum of the row": smooth(
            "(c := counts + strength * lower) / c.sum(-1, keepdim=True)"
        ),
    },
}
