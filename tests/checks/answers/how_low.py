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
        "There is a nan: where p is 0": entropy("-(p * p.log()).sum(-1)"),
        "but for `s.sum(-1) / math.log(2)` where": entropy("s.sum(-1) / math.log(2)"),
        "p[p > 0] makes one list": entropy("-(p[p > 0] * p[p > 0].log()).sum(-1)"),
        "should count p times": entropy("-p.clamp(min=1e-9).log().mean(-1)"),
    },
    "07.2": {
        "where `math.exp(": perplexity("(x * n).sum() / n.sum()"),
        "upside down": perplexity("(-(x * n).sum() / n.sum()).exp()"),
    },
    "07.3": {
        "`+ strength` left out after `seen`": smooth(
            "(counts + strength * lower) / seen"
        ),
        "but for `counts + strength * l": smooth(
            "counts + strength * lower / (seen + strength)"
        ),
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
        "a mixture whose weight knows": smooth(
            "(counts / seen).nan_to_num() * seen / (seen + strength)"
            " + lower * strength / (seen + strength)"
        ),
    },
}
