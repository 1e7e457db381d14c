"""Answers to notebook 07's exercises."""

import dataclasses

from exercises import edited, exercises_of

from minigpt.playwright import POCKET, write_play
from minigpt.playwright_lexicon import LEXICON

EXERCISES = exercises_of("07")


def first(k, lists):
    return {name: entries[:k] for name, entries in lists.items()}


def names():
    return {
        "dataclasses": dataclasses,
        "LEXICON": LEXICON,
        "POCKET": POCKET,
        "first": first,
        "write_play": write_play,
    }


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
        "2 of 2 results are nan": entropy("-(p * p.log()).sum(-1)"),
        "`log2` where `log` belongs": entropy("s.sum(-1) / math.log(2)"),
        "the minus before `p.clamp": entropy("-s.sum(-1)"),
        "`mean` where `sum` belongs": entropy("s.mean(-1)"),
        "return p * surprise\n": entropy("s"),
        "`dim=-1` left out": entropy("s.sum()"),
        "`dim=0` where `dim=-1` belongs": entropy("s.sum(0)"),
        "should count p times": [
            entropy("-p.clamp(min=1e-9).log().mean(-1)"),
            entropy("-p.log().mean(-1)"),
        ],
        "so large that it shows": entropy("-(p * (p + 1e-3).log()).sum(-1)"),
        "The shape is () , but".replace(" ,", ","): entropy("torch.tensor(1.2130)"),
        "your function changes `p` in place": (
            "def entropy(p):\n    p[p == 0] = 1\n    return -(p * p.log()).sum(-1)\n"
        ),
    },
    "07.2": {
        "upside down": temperature(
            ("logits / middle", "logits * middle"), ("low = m", "HIGH = m")
        )
        .replace("high = m", "low = m")
        .replace("HIGH = m", "high = m"),
        "a number of bits": temperature(
            (".sum() < nats", ".sum() / math.log(2) < nats")
        ),
        "`return nats` where `return middle` belongs": temperature(
            ("return middle", "return nats")
        ),
        "stops at one end": [
            temperature(("100.0", "10.0")),
            temperature(("100.0", "1.0")),
            temperature(("100.0", "2.0")),
            temperature((".sum() < nats", ".sum() > nats")),
        ],
        "search finer": temperature(("range(40)", "range(7)")),
        "knows only a few temperatures": temperature(
            ("range(40)", "range(5)"), ("(low * high) ** 0.5", "(low + high) / 2")
        ),
        "still running": (
            "def temperature_for(logits, nats):\n    while True:\n        pass"
        ),
    },
    "07.3": {
        "perplexities do not": perplexity("(x.exp() * n).sum() / n.sum()"),
        "and a short text": perplexity("x.exp().mean()"),
        "A short text counts as much": perplexity("x.mean().exp()"),
        "without `math.exp`": perplexity("(x * n).sum() / n.sum()"),
        "2 belongs to bits": perplexity("2 ** ((x * n).sum() / n.sum())"),
        "upside down": perplexity("(-(x * n).sum() / n.sum()).exp()"),
        "`/ sum(sizes)` left out": perplexity("(x * n).sum().exp()"),
    },
    "07.4": {
        "get with `+ strength` left out.": smooth("(counts + strength * lower) / seen"),
        "return counts + strength * lower\n": smooth("counts + strength * lower"),
        "other brackets": smooth("counts + strength * lower / (seen + strength)"),
        "but for `(c := (counts + strength * lower)) / c.su": smooth(
            "(c := counts + strength * lower) / c.sum()"
        ),
        "but for `counts.sum()` where": smooth(
            "(counts + strength * lower) / (counts.sum() + strength)"
        ),
        "it is the total": smooth(
            "(counts + strength * lower) / (seen + strength * counts.shape[1])"
        ),
        "`strength *` left out": smooth("(counts + lower) / (seen + strength)"),
        "evidence has lost its weight": smooth(
            "(counts / seen + strength * lower) / (1 + strength)"
        ),
        "Always half and half": smooth("(counts / seen).nan_to_num() / 2 + lower / 2"),
        "shorter context is ignored": smooth(
            "(c := counts + strength) / c.sum(-1, keepdim=True)"
        ),
        "but for `strength / counts.shape[1]` where": smooth(
            "(counts + strength / counts.shape[1]) / (seen + strength)"
        ),
        "3 of 6 results are nan": smooth("counts / seen"),
        "do not fit together": smooth(
            "(counts + strength * lower) / (counts.sum(-1) + strength)"
        ),
        "your function changes `counts` in place": (
            "def smooth(counts, lower, strength):\n"
            "    counts += strength * lower\n"
            "    return counts / counts.sum(-1, keepdim=True)\n"
        ),
    },
    "07.5": {
        "not all your own yet: 'Duke Bun'": "def my_lexicon():\n    return LEXICON",
        "not all your own yet: 'Nan'": lexicon().replace('"Kurt"', '"Nan"'),
        "too high": lexicon(),
        "too low": lexicon("words=first(2, LEXICON.words)"),
        "Return a whole Lexicon": [
            "def my_lexicon():\n    return first(20, LEXICON.words)",
            "def my_lexicon():\n    return type(LEXICON)",
            "from minigpt.playwright import POCKET, write_play\n"
            "def my_lexicon():\n    return write_play(100)",
        ],
        "bring two or more, and give at least as many names": lexicon().replace(
            '"Grace", "Kurt"', ""
        ),
        "which Tiny Shakespeare": lexicon().replace("Kurt", "Erdős"),
        "one begins the other": lexicon().replace("Kurt", "Ada, too"),
        "'names' is one text, 'Ada': make it a tuple": (
            "def my_lexicon():\n    return dataclasses.replace(LEXICON, names='Ada')\n"
        ),
        "'adj' is one text, 'fat': make it a tuple": lexicon(
            "words={**LEXICON.words, 'adj': 'fat'}"
        ),
        "LEXICON was changed, its words": (
            "def my_lexicon():\n"
            "    for slot, words in LEXICON.words.items():\n"
            "        LEXICON.words[slot] = words[:20]\n"
            f"    return dataclasses.replace(LEXICON, {CAST})\n"
        ),
        "LEXICON was changed, its names": (
            "def my_lexicon():\n"
            "    object.__setattr__(LEXICON, 'names', ('Ada', 'Alan', 'Kurt'))\n"
            "    return LEXICON\n"
        ),
        "should be a function": f"my_lexicon = dataclasses.replace(LEXICON, {CAST})",
    },
    "07.6": {
        "The bug is still there": surprise("-given.mean().log()"),
        "the minus before": surprise("given.log().mean()"),
        "`sum` where `mean` belongs": surprise("-given.log().sum()"),
        "does not look at what happened": surprise(
            "torch.special.entr(probs).sum(1).mean()"
        ),
        "`log2` where `log` belongs": surprise("-given.log2().mean()"),
        "largest probability": surprise("-probs.max(1)[0].log().mean()"),
        "these are probabilities already": surprise("F.cross_entropy(probs, ids)"),
        "more than one probability from each row": [
            surprise("-probs[:, ids].log().mean()"),
            surprise("-probs[ids].log().mean()"),
        ],
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
        "weigh it by its length": windows(
            "sum(p.mean() * window for p in pieces) / len(nats)"
        ),
        "more characters than": windows("nats.sum() / (len(pieces) * window)"),
        "but for `pieces` where": windows("nats.sum() / len(pieces)"),
        "`/ len(nats)` left out": windows("nats.sum()"),
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
