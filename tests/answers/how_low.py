"""Answers to notebook 07's exercises."""

import dataclasses

from exercises import edited, exercises_of

from minigpt.playwright_lexicon import LEXICON

EXERCISES = exercises_of("07")


def first(k, lists):
    return {name: entries[:k] for name, entries in lists.items()}


def names():
    return {"dataclasses": dataclasses, "LEXICON": LEXICON, "first": first}


def entropy(body):
    return f"def entropy(p):\n    s = torch.special.entr(p)\n    return {body}\n"


def temperature(*edits):
    return edited(EXERCISES["07.2"].solution, *edits)


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


CAST = 'names=("Ada", "Alan", "Grace", "Kurt")'


def lexicon(*changes):
    inside = ", ".join((CAST, *changes))
    return f"def my_lexicon():\n    return dataclasses.replace(LEXICON, {inside})\n"


def surprise(body):
    return (
        "def mean_surprise(probs, ids):\n"
        "    given = probs.gather(1, ids[:, None])[:, 0]\n"
        f"    return {body}\n"
    )


def windows(body):
    return (
        "def loss_in_windows(nats, window):\n"
        "    pieces = nats.split(window)\n"
        f"    return {body}\n"
    )


# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "07.1": {
        "zero gives nan": entropy("-(p * p.log()).sum(-1)"),
        "These are bits": entropy("s.sum(-1) / math.log(2)"),
        "The sign is wrong": entropy("-s.sum(-1)"),
        "mean over the faces": entropy("s.mean(-1)"),
        "not yet their sum": entropy("s"),
        "sum over everything": entropy("s.sum()"),
        "wrong dimension": entropy("s.sum(0)"),
        "should count p times": entropy("-p.clamp(min=1e-9).log().mean(-1)"),
        "also the infinite one": entropy("-p.log().mean(-1)"),
        "so large that it shows": entropy("-(p * (p + 1e-3).log()).sum(-1)"),
        "The shape is () , but".replace(" ,", ","): entropy("torch.tensor(1.2130)"),
    },
    "07.2": {
        "one over the temperature": temperature(
            ("logits / middle", "logits * middle"), ("low = m", "HIGH = m")
        )
        .replace("high = m", "low = m")
        .replace("HIGH = m", "high = m"),
        "a number of bits": temperature(
            (".sum() < nats", ".sum() / math.log(2) < nats")
        ),
        "the entropy that you reached": temperature(("return middle", "return nats")),
        "search ends at 1": temperature(("100.0", "1.0")),
        "search ends at 2": temperature(("100.0", "2.0")),
        "search finer": temperature(("range(40)", "range(7)")),
        "wrong way": temperature((".sum() < nats", ".sum() > nats")),
        "still running": (
            "def temperature_for(logits, nats):\n    while True:\n        pass"
        ),
    },
    "07.3": {
        "perplexities do not": perplexity("(x.exp() * n).sum() / n.sum()"),
        "and a short text": perplexity("x.exp().mean()"),
        "A short text counts as much": perplexity("x.mean().exp()"),
        "exp is still missing": perplexity("(x * n).sum() / n.sum()"),
        "2 belongs to bits": perplexity("2 ** ((x * n).sum() / n.sum())"),
        "one over it": perplexity("(-(x * n).sum() / n.sum()).exp()"),
        "without dividing": perplexity("(x * n).sum().exp()"),
    },
    "07.4": {
        "only the real observations": smooth("(counts + strength * lower) / seen"),
        "nothing is divided": smooth("counts + strength * lower"),
        "needs its brackets": smooth("counts + strength * lower / (seen + strength)"),
        "whole table": smooth("(c := counts + strength * lower) / c.sum()"),
        "added up over all rows": smooth(
            "(counts + strength * lower) / (counts.sum() + strength)"
        ),
        "it is the total": smooth(
            "(counts + strength * lower) / (seen + strength * counts.shape[1])"
        ),
        "only one of them is shared out": smooth(
            "(counts + lower) / (seen + strength)"
        ),
        "evidence has lost its weight": smooth(
            "(counts / seen + strength * lower) / (1 + strength)"
        ),
        "a row never seen is nan": smooth("counts / seen / 2 + lower / 2"),
        "Your rows do not sum to one": smooth(
            "(counts + 2 * strength * lower) / (seen + strength)"
        ),
        "columns sum to one": smooth("(c := counts + strength * lower) / c.sum(0)"),
        "shorter context is ignored": smooth(
            "(c := counts + strength) / c.sum(-1, keepdim=True)"
        ),
        "spread the strength evenly": smooth(
            "(counts + strength / counts.shape[1]) / (seen + strength)"
        ),
        "exactly one observation": smooth("(counts + lower) / (seen + 1)"),
        "Nothing is smoothed": smooth("counts / seen"),
        "counts change nothing": smooth("lower + 0 * counts"),
        "Always half and half": smooth("(counts / seen).nan_to_num() / 2 + lower / 2"),
        "do not fit together": smooth(
            "(counts + strength * lower) / (counts.sum(-1) + strength)"
        ),
    },
    "07.5": {
        "not all your own yet: 'Duke Bun'": "def my_lexicon():\n    return LEXICON",
        "not all your own yet: 'Nan'": lexicon().replace('"Kurt"', '"Nan"'),
        "too high": lexicon(),
        "too low": lexicon("words=first(2, LEXICON.words)"),
        "only a part of a lexicon": (
            "def my_lexicon():\n    return first(20, LEXICON.words)"
        ),
        "This is a play already": (
            "from minigpt.playwright import write_play\n"
            "def my_lexicon():\n    return write_play(100)"
        ),
        "Return a Lexicon": "def my_lexicon():\n    return type(LEXICON)",
        "bring two or more, and give at least as many names": lexicon().replace(
            '"Grace", "Kurt"', ""
        ),
        "which Tiny Shakespeare": lexicon().replace("Kurt", "Erdős"),
        "one begins the other": lexicon().replace("Kurt", "Ada, too"),
        "should be a function": f"my_lexicon = dataclasses.replace(LEXICON, {CAST})",
    },
    "07.6": {
        "The bug is still there": surprise("-given.mean().log()"),
        "never negative": surprise("given.log().mean()"),
        "the whole surprise": surprise("-given.log().sum()"),
        "does not look at what happened": surprise(
            "torch.special.entr(probs).sum(1).mean()"
        ),
        "These are bits": surprise("-given.log2().mean()"),
        "A median hides": surprise("-given.log().median()"),
        "largest probability": surprise("-probs.max(1)[0].log().mean()"),
        "averaged per outcome": surprise("-probs.mean(0)[ids].log().mean()"),
    },
    "07.7": {
        "The bug is still there": windows(
            "torch.stack([p.mean() for p in pieces]).mean()"
        ),
        "not judged at all": [
            windows("nats[: len(nats) // window * window].mean()"),
            windows(
                "torch.stack([p.mean() for p in pieces if len(p) == window]).mean()"
            ),
        ],
        "even where it is a whole one": windows(
            "nats[: (len(nats) - 1) // window * window].mean()"
        ),
        "weigh it by its length": windows(
            "sum(p.mean() * window for p in pieces) / len(nats)"
        ),
        "more characters than": windows("nats.sum() / (len(pieces) * window)"),
        "number of windows": windows("nats.sum() / len(pieces)"),
        "a mean is wanted": windows("nats.sum()"),
        "Only the first window": windows("pieces[0].mean()"),
    },
}

RIGHT = {
    "07.1": {
        "entr": entropy("s.sum(-1)"),
        "where, in float64": entropy(
            "-torch.where(p > 0, p.double() * p.log(), 0.0).sum(-1)"
        ),
        "torch's distribution": entropy(
            "torch.distributions.Categorical(probs=p).entropy()"
        ),
        "nan swept": entropy("-(p * p.log()).nan_to_num().sum(-1).float()"),
    },
    "07.2": {
        "arithmetic middle": temperature(
            ("(low * high) ** 0.5", "(low + high) / 2"), ("100.0", "50.0")
        ),
        "a fine grid": (
            "def temperature_for(logits, nats):\n"
            "    grid = torch.logspace(-2, 2, 40_000)\n"
            "    p = F.softmax(logits / grid[:, None], dim=-1)\n"
            "    gap = (torch.special.entr(p).sum(-1) - nats).abs()\n"
            "    return grid[gap.argmin()]"
        ),
        "in steps, as a tensor": (
            "def temperature_for(logits, nats):\n"
            "    t, step = torch.tensor(1.0), 1.0\n"
            "    for _ in range(60):\n"
            "        p = F.softmax(logits / t.exp(), dim=-1)\n"
            "        low = torch.special.entr(p).sum() < nats\n"
            "        t = t + step if low else t - step\n"
            "        step *= 0.8\n"
            "    return t.exp()"
        ),
    },
    "07.3": {
        "tensors": perplexity("((x * n).sum() / n.sum()).exp()"),
        "product of powers": perplexity("(x.exp() ** (n / n.sum())).prod()"),
        "written out": perplexity("torch.repeat_interleave(x, n).mean().exp().item()"),
    },
    "07.4": {
        "sum of the row": smooth(
            "(c := counts + strength * lower) / c.sum(-1, keepdim=True)"
        ),
        "a mixture whose weight knows": smooth(
            "(counts / seen).nan_to_num() * seen / (seen + strength)"
            " + lower * strength / (seen + strength)"
        ),
        "rows, in float64": smooth(
            "torch.stack([(c.double() + strength * p) / (c.sum() + strength)"
            " for c, p in zip(counts, lower.expand_as(counts))])"
        ),
    },
    "07.5": {
        "other words": lexicon("words=first(18, LEXICON.words)"),
        "fewer lines, more words": lexicon(
            "words=first(25, LEXICON.words)", "lines=first(5, LEXICON.lines)"
        ),
    },
    "07.6": {
        "nll_loss": surprise("F.nll_loss(probs.log(), ids)"),
        "a loop": surprise("sum(-math.log(g) for g in given.tolist()) / len(ids)"),
        "product": surprise("-given.double().prod().log() / len(given)"),
    },
    "07.7": {
        "no windows": windows("nats.mean()"),
        "joined again": windows("torch.cat(pieces).double().mean()"),
        "weighted": windows("sum(p.mean() * len(p) for p in pieces) / len(nats)"),
    },
}
